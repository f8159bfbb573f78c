/*
 * ops.h - the operations, by the file they stand in. Private to fs/.
 */
#ifndef FS_OPS_H
#define FS_OPS_H

#include "fs/reply.h"
#include "fs/session.h"
#include "fs/view-trash.h"

/* ---- what several need: ops.c ------------------------------------------------ */

static inline struct view ops_view(struct fs *fs)
{
	return (struct view){ fs->namei, fs->nodes };
}

/* Who asks, without supplementary groups. */
void ops_actor(fuse_req_t req, struct actor *ret_actor);
/* With them, as far as they can be read; *ret_groups owns the list. 0 or -ENOMEM. */
int ops_actor_with_groups(fuse_req_t req, struct actor *ret_actor, gid_t **ret_groups);
/* A node that is a directory and was not removed: 0, -ENOTDIR, -ENOENT, -ESTALE. `ret_trash`: its names are those of the trash. */
int ops_directory(struct fs *fs, fuse_ino_t ino, struct node *ret_node, bool *ret_trash);
/* As above for who wants to add to it: -EROFS if it is of the trash, or /.ddbfs. */
int ops_live_directory(struct fs *fs, fuse_ino_t ino, struct node *ret_node);
/* The item of a node, wherever it is now; `node` is brought up to date. -ESTALE: destroyed. */
int ops_load(struct fs *fs, struct node *node, bool attributes_only, struct inode *ret_inode);
/* The item was not where `node` says: brings that up to date. False: it still says the same, or the item is gone. */
bool ops_moved(struct fs *fs, struct node *node);
/* A regular or special file: 0, -ESTALE, -EISDIR; with `write`, -EROFS if it may not be changed any more. */
int ops_file(struct fs *fs, fuse_ino_t ino, bool write, struct node *ret_node);

static inline bool ops_is_control(const struct node *node)
{
	return node->kind >= NODE_CONTROL_DIRECTORY;
}

/* Returns from the operation, answering a failure. */
#define OPS_TRY(req, expression)                          \
	do {                                              \
		int try_result_ = (expression);           \
		if (try_result_ != 0) {                   \
			reply_result((req), try_result_); \
			return;                           \
		}                                         \
	} while (0)

/* ---- names: ops-name.c --------------------------------------------------------- */

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void ops_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi);
void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		const char *new_name, unsigned int flags);

/* ---- listing: ops-dir.c --------------------------------------------------------- */

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);

/* ---- contents: ops-file.c --------------------------------------------------------- */

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void ops_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
	       struct fuse_file_info *fi);
void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi); /* fsyncdir as well */
void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		   struct fuse_file_info *fi);
void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi);
void ops_copy_file_range(fuse_req_t req, fuse_ino_t in, off_t in_offset,
			 struct fuse_file_info *in_fi, fuse_ino_t out, off_t out_offset,
			 struct fuse_file_info *out_fi, size_t size, int flags);
void ops_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
	       struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
	       size_t out_size);

/* ---- attributes: ops-attr.c --------------------------------------------------------- */

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask);
void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi);
void ops_readlink(fuse_req_t req, fuse_ino_t ino);
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		  int flags);
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void ops_statfs(fuse_req_t req, fuse_ino_t ino);

#endif
