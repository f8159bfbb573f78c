/*
 * ops-name.c - look-up, and everything that makes, removes or moves a name.
 *
 * Most of it is a question of where a directory is: in the live tree it is
 * namei's and lifecycle's, in the trash view-trash's, /.ddbfs is view-control's.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/stat.h>

#include "fs/ops.h"
#include "fs/view-control.h"

#define TRIES \
	64 /* readings of a name while a control job changes its directory; each takes microseconds */

/* ---- look-up --------------------------------------------------------------------- */

static void answer_control(fuse_req_t req, const struct view_control *v, uint64_t id)
{
	struct fuse_entry_param e = { .ino = id };
	struct node node;

	if (node_get(v->nodes, id, &node) == 0 && view_control_stat(v, &node, &e.attr) == 0 &&
	    fuse_reply_entry(req, &e) == 0)
		return;
	node_take_back(v->nodes, id, &node);
}

static void lookup_control(fuse_req_t req, const char *name)
{
	struct fs *fs = session_fs(req);
	struct view_control v = { fs->nodes, fs->control, fs->uid, fs->gid, fs->mounted_ns };
	uint64_t id;

	OPS_TRY(req, view_control_lookup(&v, name, &id));
	answer_control(req, &v, id);
}

static void lookup_tag(fuse_req_t req)
{
	struct fs *fs = session_fs(req);
	struct view_control v = { fs->nodes, fs->control, fs->uid, fs->gid, fs->mounted_ns };
	uint64_t id;

	OPS_TRY(req, view_control_enter_tag(&v, &id));
	answer_control(req, &v, id);
}

/* D/.trash: the root of a view of its own. It cannot go away while D is live; its mode can change. */
static void lookup_trash(fuse_req_t req, struct node *parent)
{
	struct fs *fs = session_fs(req);
	struct view v = ops_view(fs);
	struct inode inode;
	struct reply_entry entry = {
		.inode = &inode,
		.parent = parent->node,
		.view = parent->id,
		.trash = true,
		.trash_name = true,
	};
	int result = -EAGAIN;

	for (int tries = 0; tries < TRIES; tries++) {
		entry.stamp = node_stamp(fs->nodes, parent->at.directory);
		result = view_directory(&v, parent->id, &inode);
		if (result)
			break;
		result = -EAGAIN;
		if (inode.at.directory == parent->at.directory)
			result = reply_entry(req, &entry, NULL);
		inode_release(&inode);
		if (result == 0)
			return;
		result = node_get(fs->nodes, parent->node, parent);
		if (result)
			break;
		result = -EAGAIN;
	}
	reply_result(req, result);
}

static int read_name(struct fs *fs, const struct node *parent, const char *name, bool trash,
		     struct inode *ret_inode)
{
	struct view v = ops_view(fs);

	if (trash)
		return view_lookup(&v, parent->id, name, ret_inode);
	return namei_lookup(fs->namei, parent->id, name, true, ret_inode);
}

/*
 * What cannot be read is found all the same, so that rm(1), which looks first,
 * can remove it; reading it, or anything else but its removal, is EIO. 0, the
 * failure that was, or another.
 */
static int read_damaged(struct fs *fs, const struct node *parent, const char *name, int failure,
			struct inode *ret_inode)
{
	struct inode inode = { .nlink = 1 };
	int result;

	/* Of a name that is not there only one that a listing made up can be meant. */
	if (failure == -ENOENT && !lifecycle_is_made_up(fs->lifecycle, name))
		return failure;
	result = lifecycle_damaged(fs->lifecycle, parent->id, name, &inode.at, &inode.item);

	if (result)
		return result == STORE_ABSENT ? failure : result;
	*ret_inode = inode;
	return 0;
}

/* What CREATE made and is about to open. */
struct creation {
	struct fuse_file_info *file;
	uint64_t id;
};

/*
 * Reads a name and answers with it; again while its directory changes under the
 * reading. CREATE (`made`, else NULL) answers with what it made or not at all.
 */
static void answer_name(fuse_req_t req, const struct node *parent, const char *name, bool trash,
			const struct creation *made)
{
	struct fs *fs = session_fs(req);
	struct inode inode;
	struct reply_entry entry = {
		.inode = &inode,
		.parent = parent->node,
		.view = parent->view,
		.trash = trash,
	};
	int result = -EAGAIN;

	for (int tries = 0; result == -EAGAIN && tries < TRIES; tries++) {
		entry.stamp = node_stamp(fs->nodes, parent->id);
		result = read_name(fs, parent, name, trash, &inode);
		if (!trash && !made && (result == -EIO || result == -ENOENT)) {
			result = read_damaged(fs, parent, name, result, &inode);
			entry.brief = result == 0;
		}
		if (result == -ENOENT && view_control_is_tag(parent, name)) {
			lookup_tag(req);
			return;
		}
		if (result == -ENOENT && !made) {
			reply_no_entry(req, parent->id, entry.stamp, trash);
			return;
		}
		if (result)
			break;
		if (made && inode.item.id != made->id)
			result = -ESTALE;
		else
			result = reply_entry(req, &entry, made ? made->file : NULL);
		inode_release(&inode);
		if (result && tries > TRIES / 8)
			sched_yield();
	}
	if (result)
		reply_result(req, made && result == -ENOENT ? -ESTALE : result);
}

void ops_lookup(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs *fs = session_fs(req);
	struct node parent;
	bool trash;

	OPS_TRY(req, ops_directory(fs, ino, &parent, &trash));
	if (parent.kind == NODE_CONTROL_DIRECTORY)
		lookup_control(req, name);
	else if (!trash && strcmp(name, store_trash_name(fs->store)) == 0)
		lookup_trash(req, &parent);
	else if (parent.node == NODE_ROOT && strcmp(name, CONTROL_DIRECTORY) == 0)
		lookup_control(req, NULL);
	else
		answer_name(req, &parent, name, trash, NULL);
}

/* ---- making ------------------------------------------------------------------------ */

static void make(fuse_req_t req, fuse_ino_t ino, const char *name, const struct namei_new *what,
		 struct fuse_file_info *file)
{
	struct fs *fs = session_fs(req);
	struct node parent;
	struct actor actor;
	struct inode inode;
	struct reply_entry entry = { .inode = &inode };
	uint64_t created;
	int result;

	OPS_TRY(req, ops_live_directory(fs, ino, &parent));
	ops_actor(req, &actor);
	entry.stamp = node_stamp(fs->nodes, parent.id);
	result = namei_create(fs->namei, &actor, parent.id, name, what, &inode);
	/*
	 * The name came to be after the kernel looked: an undo, say. For what CREATE opens the
	 * kernel asks no permission, so it must look again and do what open(2) says of a file
	 * that is there.
	 */
	if (result == -EEXIST && file && !(file->flags & O_EXCL))
		result = -ESTALE;
	OPS_TRY(req, result);
	result = reply_entry(req, &entry, file);
	created = inode.item.id;
	inode_release(&inode);
	if (result == -EAGAIN)
		answer_name(req, &parent, name, false, file ? &(struct creation){ file, created } : NULL);
}

void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct namei_new what = { .mode = mode, .umask = fuse_req_ctx(req)->umask, .rdev = (uint32_t)rdev };

	make(req, parent, name, &what, NULL);
}

void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct namei_new what = { .mode = S_IFDIR | (mode & 07777), .umask = fuse_req_ctx(req)->umask };

	make(req, parent, name, &what, NULL);
}

void ops_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct namei_new what = { .mode = S_IFLNK | 0777, .target = target };

	make(req, parent, name, &what, NULL);
}

void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi)
{
	struct namei_new what = { .mode = S_IFREG | (mode & 07777), .umask = fuse_req_ctx(req)->umask };

	fi->keep_cache = 1;
	make(req, parent, name, &what, fi);
}

void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *name)
{
	struct fs *fs = session_fs(req);
	struct node parent;
	struct node node;
	struct actor actor;
	struct inode inode;
	struct reply_entry entry = { .inode = &inode };
	int result;

	OPS_TRY(req, ops_live_directory(fs, new_parent, &parent));
	OPS_TRY(req, ops_file(fs, ino, true, &node));
	OPS_TRY(req, ops_is_control(&node) ? -EROFS : 0);
	ops_actor(req, &actor);
	entry.stamp = node_stamp(fs->nodes, parent.id);
	result = file_link(fs->namei, &actor, &fs->locator, node.id, parent.id, name, &inode);
	OPS_TRY(req, result);
	result = reply_entry(req, &entry, NULL);
	inode_release(&inode);
	if (result == -EAGAIN)
		answer_name(req, &parent, name, false, NULL);
}

/* ---- removing ------------------------------------------------------------------------ */

/* rmdir: the kernel then holds the directory's node for dead, so it must be known by its id. */
static int remove_directory(struct fs *fs, const struct actor *actor, const struct node *parent,
			    const char *name)
{
	struct inode inode = { 0 };
	int result = namei_lookup(fs->namei, parent->id, name, true, &inode);

	if (result)
		result = read_damaged(fs, parent, name, result, &inode);
	if (result)
		return result;
	result = lifecycle_remove(fs->lifecycle, actor, parent->id, name, true);
	if (result == 0)
		node_detach(fs->nodes, inode.item.id, 0, parent->node);
	inode_release(&inode);
	return result;
}

/* The tag is no entry, and yet it was found. */
static int tag_refused(const struct node *parent, const char *name, int result)
{
	return result == -ENOENT && view_control_is_tag(parent, name) ? -EROFS : result;
}

static void remove_name(fuse_req_t req, fuse_ino_t ino, const char *name, bool directory)
{
	struct fs *fs = session_fs(req);
	struct view v = ops_view(fs);
	struct node parent;
	struct actor actor;
	bool trash;
	int result;

	OPS_TRY(req, ops_directory(fs, ino, &parent, &trash));
	ops_actor(req, &actor);
	if (parent.kind == NODE_CONTROL_DIRECTORY)
		result = -EROFS;
	else if (trash)
		result = tag_refused(&parent, name, view_remove(&v, &actor, &parent, name, directory));
	else if (namei_is_reserved(fs->namei, parent.id, name))
		result = -EBUSY;
	else if (directory)
		result = remove_directory(fs, &actor, &parent, name);
	else
		result = lifecycle_remove(fs->lifecycle, &actor, parent.id, name, false);
	reply_result(req, result);
}

void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, false);
}

void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	remove_name(req, parent, name, true);
}

/* ---- renaming -------------------------------------------------------------------------- */

static int rename_live(struct fs *fs, const struct actor *actor, const struct node *from,
		       const char *from_name, const struct node *to, const char *to_name, unsigned flags)
{
	struct namei_renamed renamed = { 0 };
	int result;

	if (namei_is_reserved(fs->namei, from->id, from_name) ||
	    namei_is_reserved(fs->namei, to->id, to_name))
		return -EBUSY;
	result = namei_rename(fs->namei, actor, from->id, from_name, to->id, to_name, flags, &renamed);
	if (result == 0 && renamed.other && !(flags & RENAME_EXCHANGE))
		node_detach(fs->nodes, renamed.other, 0, to->node);
	return result;
}

/* After the answer: the kernel moved a name whose caching it decided on where it was, its trash's too, and counted no links. */
static void notify_moved(struct fs *fs, const struct view_moved *moved, const struct node *into,
			 const char *name)
{
	if (into)
		notify_entry(fs->notifier, into->id, into->view, name);
	if (into && moved->directory)
		notify_entry(fs->notifier, moved->id, into->view, store_trash_name(fs->store));
	if (moved->reference)
		notify_attributes(fs->notifier, moved->id);
}

void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		const char *new_name, unsigned int flags)
{
	struct fs *fs = session_fs(req);
	struct view v = ops_view(fs);
	struct view_moved moved = { 0 };
	struct node from, to;
	struct actor actor;
	bool from_trash, to_trash;
	int result;

	OPS_TRY(req, ops_directory(fs, parent, &from, &from_trash));
	OPS_TRY(req, ops_directory(fs, new_parent, &to, &to_trash));
	ops_actor(req, &actor);
	if ((from_trash || to_trash) && flags & RENAME_EXCHANGE)
		result = -EINVAL;
	else if (ops_is_control(&from) || ops_is_control(&to) || (from_trash && to_trash))
		result = -EROFS;
	else if (from_trash)
		result = tag_refused(&from, name,
				     view_move_out(&v, &actor, &from, name, &to, new_name, flags, &moved));
	else if (to_trash)
		result = view_move_in(&v, &actor, &from, name, &to, new_name, flags, &moved);
	else
		result = rename_live(fs, &actor, &from, name, &to, new_name, flags);
	reply_result(req, result);
	if (result == 0)
		notify_moved(fs, &moved, to_trash ? &to : NULL, new_name);
}
