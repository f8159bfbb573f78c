/*
 * view-trash.h - directories and files as `.trash` shows them, and what moving
 * them in and out and removing them there means. Knows no FUSE.
 *
 * A view is built on lifecycle_find and lifecycle_list; this adds nodes, rights
 * and refusals. Whether a directory is in the trash is asked of its ancestors
 * each time (the answer is kept only until any directory moves), never stored
 * with it: a directory that is moved into `.trash` takes a whole subtree with
 * it that the kernel may still know, and stand in.
 */
#ifndef FS_VIEW_TRASH_H
#define FS_VIEW_TRASH_H

#include "fs/namei.h"
#include "fs/node.h"

/* Set in the st_ino of directories that are only mirrors: `.trash` itself, and live directories shown in it. */
#define VIEW_MIRROR (UINT64_C(1) << 62)

struct view {
	struct namei *namei;
	struct node_table *nodes;
};

/* Whether a directory's names are those of the trash: a view, or anything below a deleted directory. 0 or negative errno. */
int view_is_trash(const struct view *v, const struct node *directory, bool *ret_trash);
/* Whether a file may be changed: it is live, or the kernel has had it since it was. */
int view_is_writable(const struct view *v, const struct node *file, bool *ret_writable);

/* Looks a name up as a view shows it. 0, -ENOENT, -ENAMETOOLONG. A file is as it was: view_mask is the caller's, who knows its node. */
int view_lookup(const struct view *v, uint64_t directory, const char *name, struct inode *ret_inode);
/* A directory's own attributes as seen in a view: `.trash` of `directory`, its mirror, or itself deleted. */
int view_directory(const struct view *v, uint64_t directory, struct inode *ret_inode);
/* Changes what was loaded into what is shown: no write bits of files that may not be written, the trash mask of directories. */
void view_mask(struct inode *inode, bool writable);

/* What moved, for the kernel's caches. */
struct view_moved {
	uint64_t id;
	bool directory;
	bool reference; /* one of several names: link counts of the others changed too */
};
/*
 * rename(2) out of a view into a live directory. 0; -EROFS: a live directory's
 * mirror; -EINVAL: flags other than RENAME_NOREPLACE; as lifecycle_restore.
 */
int view_move_out(const struct view *v, const struct actor *actor, const struct node *from,
		  const char *from_name, const struct node *to, const char *to_name, unsigned flags,
		  struct view_moved *ret_moved);
/*
 * rename(2) from a live directory into a view: deletes, if the view is of that
 * very directory's trash and the name stays. -EROFS otherwise.
 */
int view_move_in(const struct view *v, const struct actor *actor, const struct node *from,
		 const char *from_name, const struct node *to, const char *to_name, unsigned flags,
		 struct view_moved *ret_moved);
/* unlink(2) or rmdir(2) in a view: purges. -EISDIR, -ENOTDIR, -ENOTEMPTY. */
int view_remove(const struct view *v, const struct actor *actor, const struct node *from,
		const char *name, bool directory);

/* Lists; as lifecycle_list. `row` gets entries whose items are as shown. */
int view_list(const struct view *v, uint64_t directory, const struct key *after,
	      bool (*row)(void *data, const struct entry *entry, const struct key *key), void *data);

/* A fact (lifecycle_fact) of the deleted item that a node is. Its length; -ENODATA: no fact, or not deleted. */
ssize_t view_fact(const struct view *v, const struct node *node, const char *name, char *buffer,
		  size_t size);

#endif
