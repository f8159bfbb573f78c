/*
 * file.h - contents of regular files: inline in the item while small, in a body
 * otherwise. Knows no FUSE.
 *
 * Data and size change in one transaction. A change holds the item's lock
 * (namei_lock_item), not lifecycle's; `locate` supplies where the item is now,
 * since a rename may move its key at any time: it is asked again after a
 * conflict or an absence.
 */
#ifndef FS_FILE_H
#define FS_FILE_H

#include "fs/namei.h"

struct file_locator {
	/* Copies the present place of item `id`. False: it is known no more. */
	bool (*locate)(void *data, uint64_t id, struct place *ret_place);
	void *data;
};

/* Reads up to `size` bytes; *ret_read is short at the end of the file. 0, -EIO (damaged), -ESTALE (destroyed). */
int file_read(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	      void *buffer, size_t size, size_t *ret_read);
/*
 * Writes all of `size` bytes or nothing. With `append`, at the end as it is now. Clears set-id bits and security.capability
 * when `kill_privileges`. *ret_inode (may be NULL) is the file afterwards. -EFBIG beyond 2^63-1, -ENOSPC.
 */
int file_write(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	       const void *bytes, size_t size, bool append, bool kill_privileges,
	       struct inode *ret_inode);
/* As namei_setattr, of the item `id` wherever it is, directories too. */
int file_setattr(struct namei *n, const struct file_locator *where, uint64_t id,
		 const struct attr_change *change, struct inode *ret_inode);
/* As namei_getxattr and the like, of the item `id` wherever it is: never of another that bears its name by now. Also of directories. */
int file_getxattr(struct namei *n, const struct file_locator *where, uint64_t id, const char *name,
		  struct buffer *ret_value);
int file_listxattr(struct namei *n, const struct file_locator *where, uint64_t id, bool trusted,
		   struct buffer *ret_names);
int file_setxattr(struct namei *n, const struct actor *actor, const struct file_locator *where,
		  uint64_t id, const char *name, const void *value, size_t size, int flags);
int file_removexattr(struct namei *n, const struct actor *actor, const struct file_locator *where,
		     uint64_t id, const char *name);
/* As namei_link. */
int file_link(struct namei *n, const struct actor *actor, const struct file_locator *where,
	      uint64_t id, uint64_t parent, const char *name, struct inode *ret_inode);
/* fallocate(2): 0, KEEP_SIZE, PUNCH_HOLE|KEEP_SIZE, ZERO_RANGE[|KEEP_SIZE]; others -EOPNOTSUPP. Reserves no space beyond what is checked: see README. */
int file_allocate(struct namei *n, const struct file_locator *where, uint64_t id, int mode,
		  uint64_t offset, uint64_t length);
/* lseek(2) SEEK_DATA, SEEK_HOLE: -ENXIO at or after the end. */
int file_seek(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	      bool data, uint64_t *ret_offset);
/* copy_file_range(2) between files of one store; may copy less. */
int file_copy(struct namei *n, const struct file_locator *from_where, uint64_t from,
	      uint64_t from_offset, const struct file_locator *to_where, uint64_t to,
	      uint64_t to_offset, size_t size, size_t *ret_copied);

#endif
