/*
 * file-internal.h - a file's data inside an edit. Private to file.c and
 * file-space.c.
 */
#ifndef FS_FILE_INTERNAL_H
#define FS_FILE_INTERNAL_H

#include "fs/namei-internal.h"

/* 0, -EISDIR, -EINVAL: only regular files have data. */
int file_check_type(const struct item *item);
/* Adds the write to the transaction, in pieces as the store takes them. `bytes` is borrowed until the commit. */
void edit_write_body(struct namei *n, struct edit *e, uint64_t offset, const void *bytes, size_t size);
/* Moves inline content to a new body, but for [hole, hole_end), which the caller writes. */
int edit_spill(struct namei *n, struct edit *e, uint64_t hole, uint64_t hole_end);
/* Gives the item inline content of `size` in e->content: what it had, then zeros. -ENOMEM. */
int edit_inline(struct edit *e, size_t size);

#endif
