/*
 * namei.h - names and attributes of the live tree as transactions. Knows no
 * FUSE; testable without a mount. Removing and restoring are lifecycle's.
 *
 * Every function that changes the tree takes lifecycle_lock itself. Results
 * are 0 or a negative errno, as the system call of the same name would give.
 */
#ifndef FS_NAMEI_H
#define FS_NAMEI_H

#include "lifecycle/lifecycle.h"

struct namei; /* shared context: store, lifecycle, per-item locks for data and attributes */

int namei_open(struct lifecycle *l, struct namei **ret_namei);
void namei_close(struct namei *n);
struct lifecycle *namei_lifecycle(struct namei *n);
struct store *namei_store(struct namei *n);

/*
 * An item as the file system shows it: the name's own item, with a reference's
 * attributes taken from its LINK. `value` and `link_value` own what it borrows.
 */
struct inode {
	struct place at;
	struct item item; /* id, mode, times, sizes: true for the file */
	uint64_t name_version; /* of the item at `at` */
	uint64_t link_version; /* of LINK, if item.flags has ITEM_REFERENCE */
	uint32_t nlink; /* as st_nlink; 0 for a file without live names */
	struct store_value value;
	struct store_value link_value;
};
void inode_release(struct inode *i); /* takes zeroed */

/* The live item `name` in `directory`, which is not looked at itself. 0, -ENOENT, -EIO. One read (two for references). */
int namei_lookup(struct namei *n, uint64_t directory, const char *name, bool attributes_only,
		 struct inode *ret_inode);
/* The item at a place, whatever its state. */
int namei_load(struct namei *n, const struct place *at, bool attributes_only, struct inode *ret_inode);
/* st_blocks' bytes: asks the store only for sparse files. */
int namei_allocated(struct namei *n, const struct inode *i, uint64_t *ret_bytes);

struct namei_new {
	uint32_t mode; /* type and permissions */
	uint32_t umask; /* still to be applied (0: it was), unless the parent has a default ACL */
	uint32_t rdev;
	const char *target; /* symlinks */
};
/*
 * mknod, mkdir, symlink, create: -EEXIST, -ENOENT (parent removed), -ENAMETOOLONG, -ENOSPC, -EMLINK. Setgid directories hand down
 * their group, and to directories the bit. -EEXIST for ".trash" anywhere and "/.ddbfs".
 */
int namei_create(struct namei *n, const struct actor *actor, uint64_t parent, const char *name,
		 const struct namei_new *what, struct inode *ret_inode);
/* link(2): the file at `from` gets a further name. At most NAMEI_LINK_MAX names. -EPERM for directories, -EROFS from the trash. */
#define NAMEI_LINK_MAX 1000000
int namei_link(struct namei *n, const struct actor *actor, const struct place *from,
	       uint64_t parent, const char *name, struct inode *ret_inode);

/* What a rename did, for the kernel's caches: which item moved, and what was replaced (id 0: nothing). */
struct namei_renamed {
	uint64_t moved;
	uint64_t other; /* exchanged or replaced */
};
/*
 * rename(2) within the live tree; flags 0, RENAME_NOREPLACE, RENAME_EXCHANGE, others -EINVAL. What is replaced goes to the trash. Two names of one file: nothing happens.
 * Calls lifecycle's hook `changed` for each item that moved.
 */
int namei_rename(struct namei *n, const struct actor *actor, uint64_t old_parent,
		 const char *old_name, uint64_t new_parent, const char *new_name, unsigned flags,
		 struct namei_renamed *ret_renamed);

/* ---- attributes: any place; the caller has checked rights --------------- */

enum attr_set {
	ATTR_MODE = 1 << 0,
	ATTR_UID = 1 << 1,
	ATTR_GID = 1 << 2,
	ATTR_SIZE = 1 << 3,
	ATTR_ATIME = 1 << 4,
	ATTR_MTIME = 1 << 5,
	ATTR_CTIME = 1 << 6,
	ATTR_KILL_SUID = 1 << 7, /* set-user-id, and set-group-id where the group may execute */
};
struct attr_change {
	unsigned set;
	uint32_t mode, uid, gid;
	uint64_t size;
	struct timespec atime, mtime, ctime;
};
/* ctime := now unless given. Size only of regular files; -EFBIG above 2^63-1. */
int namei_setattr(struct namei *n, const struct place *at, const struct attr_change *change,
		  struct inode *ret_inode);

/* Limits of Linux: name 255, value 64 KiB, list 64 KiB: -ERANGE, -E2BIG, -ENOSPC. Names with policy's prefixes are checked and hidden from lists. */
int namei_getxattr(struct namei *n, const struct place *at, const char *name,
		   struct buffer *ret_value); /* -ENODATA */
int namei_listxattr(struct namei *n, const struct place *at, bool trusted,
		    struct buffer *ret_names); /* NUL-terminated each */
int namei_setxattr(struct namei *n, const struct actor *actor, const struct place *at, const char *name,
		   const void *value, size_t size, int flags); /* XATTR_CREATE, XATTR_REPLACE */
int namei_removexattr(struct namei *n, const struct actor *actor, const struct place *at,
		      const char *name);

/* Names no user may make: the trash name everywhere, ".ddbfs" in the root. */
bool namei_is_reserved(struct namei *n, uint64_t parent, const char *name);

/* Private to fs/: serialises changes of one file's data and attributes. */
void namei_lock_item(struct namei *n, uint64_t id);
/* Both files'. Only with lifecycle_lock held: whoever holds one of them does not wait for that. */
void namei_lock_items(struct namei *n, uint64_t a, uint64_t b);
void namei_unlock_items(struct namei *n, uint64_t a, uint64_t b);
void namei_unlock_item(struct namei *n, uint64_t id);

#endif
