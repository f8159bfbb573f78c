/*
 * ops-attr.c - attributes, symlink targets, extended attributes, statfs.
 */
#include <linux/xattr.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fs/access.h"
#include "fs/ops.h"
#include "fs/view-control.h"

#define FACT_MAX 65536 /* bytes of a fact: Linux' limit of an xattr */
#define BLOCK 4096

/* ---- reading ----------------------------------------------------------------------------- */

static void getattr_control(fuse_req_t req, const struct node *node)
{
	struct fs *fs = session_fs(req);
	struct view_control v = { fs->nodes, fs->control, fs->uid, fs->gid, fs->mounted_ns };
	struct stat st;

	OPS_TRY(req, view_control_stat(&v, node, &st));
	fuse_reply_attr(req, &st, 0);
}

/* As a view shows it, or as it is; *ret_trash: not to be kept. */
static int load_shown(struct fs *fs, struct node *node, struct inode *ret_inode, bool *ret_trash)
{
	struct view v = ops_view(fs);
	bool writable;
	int result;

	*ret_trash = false;
	if (node->directory && !node->detached) {
		result = view_is_trash(&v, node, ret_trash);
		if (result)
			return result;
		if (*ret_trash)
			return view_directory(&v, node->id, ret_inode);
	}
	result = ops_load(fs, node, true, ret_inode);
	if (result || node->directory)
		return result;
	result = view_is_writable(&v, node, &writable);
	if (result) {
		inode_release(ret_inode);
		return result;
	}
	if (!writable)
		view_mask(ret_inode, false);
	*ret_trash = !writable || node->at.state != KEY_ACT;
	return 0;
}

/* What cannot be read is shown as its look-up showed it: rm(1) asks before it removes. */
static int load_damaged(struct fs *fs, const struct node *node, int failure, struct inode *ret_inode)
{
	struct inode inode = { .nlink = 1 };
	int result = failure;

	if (!node->lost && !node->detached)
		result = lifecycle_damaged_at(fs->lifecycle, &node->at, &inode.at, &inode.item);
	if (result)
		return result == STORE_ABSENT ? failure : result;
	*ret_inode = inode;
	return 0;
}

/* A removed directory that is destroyed, as a temporary one is at once: somebody has it open, and what it was like is gone. */
static void answer_gone(fuse_req_t req, const struct node *node)
{
	struct fs *fs = session_fs(req);
	struct stat st = {
		.st_ino = node->id,
		.st_mode = S_IFDIR | 0700,
		.st_uid = fs->uid,
		.st_gid = fs->gid,
		.st_blksize = BLOCK,
	};

	st.st_atim = st.st_mtim = st.st_ctim = tree_time(store_now_ns(fs->store));
	fuse_reply_attr(req, &st, 0);
}

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	struct inode inode;
	struct node node;
	bool trash;
	int result;

	OPS_TRY(req, node_get(fs->nodes, ino, &node));
	if (ops_is_control(&node)) {
		getattr_control(req, &node);
		return;
	}
	result = load_shown(fs, &node, &inode, &trash);
	if (result == -EIO || result == -EBADMSG) {
		trash = true;
		result = load_damaged(fs, &node, result, &inode);
	}
	if (result == -ESTALE && node.directory && node.detached) {
		answer_gone(req, &node);
		return;
	}
	OPS_TRY(req, result);
	if (node.detached)
		inode.nlink = 0;
	reply_attributes(req, &inode, trash || node.detached);
	inode_release(&inode);
}

/*
 * access(2) and chdir(2), where the kernel does not check modes itself: on a mount that only root may
 * enter (mount.c). Writing in a view is granted as it would be elsewhere, and refused when it is tried.
 */
void ops_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct fs *fs = session_fs(req);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct actor actor = { .uid = ctx->uid, .gid = ctx->gid };
	struct inode inode;
	struct node node;
	bool trash;

	OPS_TRY(req, node_get(fs->nodes, ino, &node));
	if (ops_is_control(&node)) {
		reply_result(req, node.directory || !(mask & X_OK) ? 0 : -EACCES);
		return;
	}
	OPS_TRY(req, load_shown(fs, &node, &inode, &trash));
	reply_result(req, access_mode(&actor, inode.item.mode, inode.item.uid, inode.item.gid, mask));
	inode_release(&inode);
}

void ops_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = session_fs(req);
	_cleanup_free_ char *target = NULL;
	struct inode inode;
	struct node node;

	OPS_TRY(req, ops_file(fs, ino, false, &node));
	OPS_TRY(req, ops_is_control(&node) ? -EINVAL : ops_load(fs, &node, false, &inode));
	if (S_ISLNK(inode.item.mode) && inode.item.content)
		target = strndup((const char *)inode.item.content, inode.item.content_size);
	inode_release(&inode);
	if (target)
		fuse_reply_readlink(req, target);
	else
		reply_result(req, S_ISLNK(inode.item.mode) ? -EIO : -EINVAL);
}

/* ---- changing ------------------------------------------------------------------------------ */

static void translate(struct fs *fs, const struct stat *attr, int to_set, struct attr_change *change)
{
	struct timespec now = tree_time(clock_now_ns(store_clock(fs->store)));

	*change = (struct attr_change){
		.mode = attr->st_mode & 07777,
		.uid = attr->st_uid,
		.gid = attr->st_gid,
		.size = (uint64_t)attr->st_size,
		.atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? now : attr->st_atim,
		.mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? now : attr->st_mtim,
		.ctime = attr->st_ctim,
	};
	if (to_set & FUSE_SET_ATTR_MODE)
		change->set |= ATTR_MODE;
	if (to_set & FUSE_SET_ATTR_UID)
		change->set |= ATTR_UID;
	if (to_set & FUSE_SET_ATTR_GID)
		change->set |= ATTR_GID;
	if (to_set & FUSE_SET_ATTR_SIZE)
		change->set |= ATTR_SIZE;
	if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW))
		change->set |= ATTR_ATIME;
	if (to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW))
		change->set |= ATTR_MTIME;
	if (to_set & FUSE_SET_ATTR_CTIME)
		change->set |= ATTR_CTIME;
	/*
	 * FATTR_KILL_SUIDGID: both. Nothing at all to set: chown(-1, -1), which kills them too, or the
	 * announcement of what changes the contents, the only one that fallocate and
	 * copy_file_range make.
	 */
	if (to_set & FUSE_SET_ATTR_KILL_SUID || change->set == 0)
		change->set |= ATTR_KILL_SUID;
}

/* Whether a node's attributes may be changed, and the node itself. */
static int changeable(struct fs *fs, fuse_ino_t ino, struct node *ret_node)
{
	int result = node_get(fs->nodes, ino, ret_node);

	if (result)
		return result;
	if (ops_is_control(ret_node))
		return -EROFS;
	if (ret_node->directory)
		return ops_live_directory(fs, ino, ret_node);
	return ops_file(fs, ino, true, ret_node);
}

void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	struct attr_change change;
	struct inode inode;
	struct node node;

	translate(fs, attr, to_set, &change);
	OPS_TRY(req, changeable(fs, ino, &node));
	if (change.set & ATTR_SIZE)
		loop_yield(fs->loop);
	OPS_TRY(req, file_setattr(fs->namei, &fs->locator, node.id, &change, &inode));
	reply_attributes(req, &inode, inode.at.state != KEY_ACT);
	inode_release(&inode);
}

/* ---- extended attributes -------------------------------------------------------------------- */

static void reply_bytes(fuse_req_t req, const void *bytes, size_t length, size_t size)
{
	if (size == 0)
		fuse_reply_xattr(req, length);
	else if (length > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, bytes, length);
}

/* What the trash says of a deleted item. True: answered. */
static bool answer_fact(fuse_req_t req, const struct node *node, const char *name, size_t size)
{
	struct view v = ops_view(session_fs(req));
	_cleanup_free_ char *text = NULL;
	ssize_t length;

	if (strncmp(name, POLICY_PREFIX_USER, strlen(POLICY_PREFIX_USER)) != 0)
		return false;
	text = malloc(FACT_MAX);
	length = text ? view_fact(&v, node, name, text, FACT_MAX) : -ENOMEM;
	if (length == -ENODATA)
		return false;
	if (length < 0)
		reply_result(req, (int)length);
	else
		reply_bytes(req, text, (size_t)length, size);
	return true;
}

/* Mirrors of live directories have none of their own: they are the live ones', to be asked there. */
static bool has_xattrs(const struct node *node)
{
	return !ops_is_control(node) && !node->lost &&
	       !(node->kind == NODE_VIEW && node->at.state == KEY_ACT);
}

static bool is_acl(const char *name)
{
	static const char prefix[] = XATTR_SYSTEM_PREFIX "posix_acl_";

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0;
}

/* ACLs that nobody enforces must not look as if they were kept. */
static int acl_refused(const struct fs *fs, const char *name)
{
	return !fs->options->acl && is_acl(name) ? -EOPNOTSUPP : 0;
}

void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct fs *fs = session_fs(req);
	struct buffer value = { 0 };
	struct node node;
	int result;

	OPS_TRY(req, node_get(fs->nodes, ino, &node));
	OPS_TRY(req, acl_refused(fs, name));
	/* In a view the mode counts, of which the trash mask took away: an ACL would give it back. */
	if (!has_xattrs(&node) || (node.kind == NODE_VIEW && is_acl(name))) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	if (answer_fact(req, &node, name, size))
		return;
	result = file_getxattr(fs->namei, &fs->locator, node.id, name, &value);
	if (result)
		reply_result(req, result);
	else
		reply_bytes(req, value.bytes, value.size, size);
	buffer_release(&value);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct fs *fs = session_fs(req);
	struct buffer names = { 0 };
	struct node node;
	bool trusted = fuse_req_ctx(req)->uid == 0;
	int result = 0;

	OPS_TRY(req, node_get(fs->nodes, ino, &node));
	if (has_xattrs(&node))
		result = file_listxattr(fs->namei, &fs->locator, node.id, trusted, &names);
	if (result)
		reply_result(req, result);
	else
		reply_bytes(req, names.bytes, names.size, size);
	buffer_release(&names);
}

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size,
		  int flags)
{
	struct fs *fs = session_fs(req);
	_cleanup_free_ gid_t *groups = NULL;
	struct actor actor;
	struct node node;

	OPS_TRY(req, acl_refused(fs, name));
	OPS_TRY(req, changeable(fs, ino, &node));
	/* An ACL takes the set-group-id bit from who is no member. */
	if (is_acl(name))
		OPS_TRY(req, ops_actor_with_groups(req, &actor, &groups));
	else
		ops_actor(req, &actor);
	reply_result(req, file_setxattr(fs->namei, &actor, &fs->locator, node.id, name, value, size,
					flags));
}

void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct fs *fs = session_fs(req);
	struct actor actor;
	struct node node;

	OPS_TRY(req, changeable(fs, ino, &node));
	ops_actor(req, &actor);
	reply_result(req, file_removexattr(fs->namei, &actor, &fs->locator, node.id, name));
}

/* ---- statfs ------------------------------------------------------------------------------------ */

void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fs *fs = session_fs(req);
	struct store_space space = { 0 };
	int64_t counters[STORE_COUNTERS_MAX] = { 0 };
	struct statvfs st = { .f_bsize = BLOCK, .f_frsize = BLOCK, .f_namemax = KEY_NAME_MAX };

	OPS_TRY(req, store_space(fs->store, &space));
	OPS_TRY(req, record_get_counters(fs->store, counters));
	st.f_blocks = space.total_bytes / BLOCK;
	st.f_bfree = st.f_bavail = space.free_bytes / BLOCK;
	/* There is no limit of files but space: an item takes about half a KiB. */
	st.f_ffree = st.f_favail = space.free_bytes / 512;
	st.f_files = (fsfilcnt_t)util_max(counters[COUNTER_LIVE_ITEMS], (int64_t)0) + st.f_ffree;
	fuse_reply_statfs(req, &st);
}
