/*
 * namei-internal.h - what the files behind namei.h and file.h share. Private to
 * them.
 *
 * Every change follows one shape: read the item, decide, collect a transaction,
 * commit at the versions read, and on a conflict begin again (store_retry).
 */
#ifndef FS_NAMEI_INTERNAL_H
#define FS_NAMEI_INTERNAL_H

#include <pthread.h>

#include "fs/file.h"
#include "fs/namei.h"

#define NAMEI_ITEM_LOCKS 256 /* stripes; a power of two */
/* Conflicts after which an operation has its adversaries stand still: renamers for a writer, writers for a renamer. */
#define NAMEI_CALM_AFTER 8
#define NAMEI_SIZE_MAX ((uint64_t)INT64_MAX) /* of a file */

struct namei {
	struct lifecycle *lifecycle;
	struct store *store;
	pthread_mutex_t item_locks[NAMEI_ITEM_LOCKS];
};

/* The clock of time stamps. */
int64_t namei_now_ns(struct namei *n);
/* Damage is -EIO to whoever uses the tree; everything else stays as it is. */
int namei_error(int result);
/*
 * After a change that answered `result`: whether it found no space and some was
 * made since, so that it is to be tried again. `tries` begins at 0. No lock held.
 */
bool namei_made_room(struct namei *n, int result, unsigned *tries);
/* 0, -ENOENT (empty), -ENAMETOOLONG, -EINVAL ("/", "." and ".."). */
int namei_check_name(const char *name);
void namei_place(struct place *ret_place, uint64_t directory, const char *name); /* live */

/* As namei_load, but an absent item is STORE_ABSENT. */
int inode_load(struct namei *n, const struct place *at, bool attributes_only, struct inode *ret_inode);
void inode_count_links(struct inode *i); /* computes nlink */
/* A name of the file that `i` is: all that a reference says of itself. */
void inode_make_reference(const struct inode *i, const char *name, struct item *ret_item);
/* Puts the attributes and content as they now stand in `i->item`: the name's own item, or the LINK of a reference. */
void inode_put(struct transaction *t, struct namei *n, const struct inode *i);

/*
 * Where a change finds its item: at a place, or where a locator says that the
 * item `id` is now.
 */
struct target {
	struct namei *n;
	const struct place *at; /* or NULL: ask `where` */
	const struct file_locator *where;
	uint64_t id;
	bool tree; /* a directory: lifecycle_lock is held, not the item's lock */
	bool locked; /* by target_lock */
	bool calmed; /* lifecycle_lock is held too, so that names stand still: see target_retry */
	bool lost; /* the item was not where it should have been */
};

void target_at(struct target *target, struct namei *n, const struct place *at);
void target_located(struct target *target, struct namei *n, const struct file_locator *where,
		    uint64_t id);
/* Reads id and type (unless it is known to be a `file`) and takes the lock that serialises changes of it. 0 or negative errno. */
int target_lock(struct target *target, bool file);
/* Also ends what target_retry began; of a target that is not locked, only that. */
void target_unlock(struct target *target);
/*
 * store_retry for whoever works on a target: after the first few conflicts the
 * names are made to stand still, since somebody who renames the file again and
 * again would otherwise win each time. target_unlock ends it.
 */
bool target_retry(struct target *target, struct store_retry *retry, int *result);
/* 0; STORE_CONFLICT: it moved meanwhile, try again; -ENOENT (place), -ESTALE (locator). */
int target_load(struct target *target, bool attributes_only, struct inode *ret_inode);
/* target_load's attributes for who only looks: no lock, but repeated while it moves. */
int target_look(struct target *target, struct inode *ret_inode);

/*
 * A change of one item: its inode as read, what it shall be (in inode.item),
 * and what goes with it into the transaction. Zeroed is empty.
 */
struct edit {
	struct inode inode;
	struct buffer content; /* new inline content, when item.content points here */
	struct buffer xattrs; /* new list of xattrs, if it changed */
	bool xattrs_changed;
	bool xattrs_known; /* the list as it now stands: */
	const uint8_t *xattrs_list;
	size_t xattrs_list_size;
	struct store_value xattrs_apart; /* owns it if it was read from the XATTR item */
	struct transaction transaction;
	uint64_t size_before;
	bool releasing; /* takes no space, or gives some back: may use the reserve */
};

/*
 * Runs `step` on the locked target's inode, fully read, then commits what it
 * left in the edit; repeats both on a conflict. `step` returns 0, EDIT_UNCHANGED
 * (nothing is to be written) or a negative errno. `ret_inode` may be NULL; it has no content.
 */
#define EDIT_UNCHANGED 16 /* none of the store's outcomes */
typedef int (*edit_step)(struct namei *n, struct edit *e, void *data);
int edit_run(struct target *target, edit_step step, void *data, struct inode *ret_inode);

/* Makes content of the size the edit's file shall have; bytes that were not there are zeros. Data of files, for file-*.c and attr.c. */
int edit_resize(struct namei *n, struct edit *e, uint64_t size);
/* Clears set-user-id, set-group-id of what the group may execute, and security.capability. */
int edit_kill_privileges(struct namei *n, struct edit *e);
/* mtime and ctime := now. */
void edit_touch(struct namei *n, struct edit *e);
/* The xattrs as they now stand: *ret_list is borrowed from the edit until it changes. */
int edit_xattrs(struct namei *n, struct edit *e, const uint8_t **ret_list, size_t *ret_size);
/* Makes `name` have the value, or (NULL) not be there. Not checked. 0, -ENOSPC, -EIO, -ENOMEM. */
int edit_set_xattr(struct namei *n, struct edit *e, const char *name, const void *value, size_t size);
/* Puts a list that changed where it belongs: into the item, or beside it. */
void edit_place_xattrs(struct edit *e);

/* Reads the xattrs of an item (a reference: of its LINK); `apart` owns the list if it stands apart. */
int xattr_load(struct namei *n, const struct item *item, struct store_value *apart,
	       const uint8_t **ret_list, size_t *ret_size);
/* Gives an item a list, which is borrowed: in the item, or (in `t`) beside it. */
void xattr_place(struct transaction *t, struct item *item, const struct buffer *list);
/* 1 and the value, 0 if it is not in the list, -EIO. */
int xattr_find(const uint8_t *list, size_t size, const char *name, const uint8_t **ret_value,
	       size_t *ret_value_size);

#endif
