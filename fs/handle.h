/*
 * handle.h - an open directory: which one, and by what key each entry that was
 * returned can be found again. Knows no FUSE.
 *
 * Every entry returned gets a cookie, the next number, and a cookie stands for
 * that entry's key until the listing is rewound. Listing goes on after the KEY:
 * the kernel resumes in the middle of a reply, and programs delete what they
 * have just read. Keys of the last HANDLE_EXACT entries are kept one by one; of
 * older ones, one for every HANDLE_BLOCK or fewer, so that a listing of a
 * million names stays small: seekdir(3) to a place that far back returns some
 * entries twice, and leaves none out.
 */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "fs/node.h"

#define HANDLE_BLOCK 256
#define HANDLE_EXACT 8192

struct handle;

int handle_new(uint64_t node, struct handle **ret_handle);
void handle_free(struct handle *h); /* takes NULL */
uint64_t handle_node(const struct handle *h);

/* One reader at a time: the kernel allows several on one descriptor. */
void handle_lock(struct handle *h);
void handle_unlock(struct handle *h);

/* rewinddir(3): all cookies are void. */
void handle_rewind(struct handle *h);
/*
 * Where listing goes on for a cookie: true and the key to go on after, or false
 * = from the start, as for cookie 0. What handle_add is told next follows it.
 */
bool handle_seek(struct handle *h, uint64_t cookie, struct key *ret_after);
/* The next entry's cookie, or 0 without memory. */
uint64_t handle_add(struct handle *h, const struct key *key);

/* Something in the directory could not be read: to be told at its end. */
void handle_set_damaged(struct handle *h);
bool handle_take_damaged(struct handle *h);

#endif
