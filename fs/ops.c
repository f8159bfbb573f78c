/*
 * ops.c - libfuse's table, what is negotiated with the kernel, and the few
 * questions that every operation begins with.
 */
#include "fs/ops.h"

#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define MAX_WRITE (1u << 20)
#define INIT_FLAGS_END (offsetof(struct fuse_init_in, flags) + sizeof(uint32_t))
#define TRIES 16 /* of finding an item that is being moved about */

/* ---- beginnings ------------------------------------------------------------------------- */

void ops_actor(fuse_req_t req, struct actor *ret_actor)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	actor_find(session_fs(req)->actors, (uint32_t)ctx->pid, ctx->uid, ctx->gid, ret_actor);
}

int ops_actor_with_groups(fuse_req_t req, struct actor *ret_actor, gid_t **ret_groups)
{
	int capacity = 64;
	gid_t *groups = NULL;
	int count;

	ops_actor(req, ret_actor);
	for (;;) {
		gid_t *grown = realloc(groups, (size_t)capacity * sizeof(*groups));

		if (!grown) {
			free(groups);
			return -ENOMEM;
		}
		groups = grown;
		count = fuse_req_getgroups(req, capacity, groups);
		if (count <= capacity)
			break;
		capacity = count;
	}
	ret_actor->groups = groups;
	ret_actor->groups_count = count > 0 ? (size_t)count : 0;
	*ret_groups = groups;
	return 0;
}

int ops_directory(struct fs *fs, fuse_ino_t ino, struct node *ret_node, bool *ret_trash)
{
	struct view v = ops_view(fs);
	int result = node_get(fs->nodes, ino, ret_node);

	if (result)
		return result;
	if (!ret_node->directory)
		return -ENOTDIR;
	if (ret_node->detached)
		return -ENOENT;
	*ret_trash = false;
	if (ops_is_control(ret_node))
		return 0;
	return view_is_trash(&v, ret_node, ret_trash);
}

int ops_live_directory(struct fs *fs, fuse_ino_t ino, struct node *ret_node)
{
	bool trash;
	int result = ops_directory(fs, ino, ret_node, &trash);

	if (result)
		return result;
	return trash || ops_is_control(ret_node) ? -EROFS : 0;
}

int ops_file(struct fs *fs, fuse_ino_t ino, bool write, struct node *ret_node)
{
	struct view v = ops_view(fs);
	bool writable = true;
	int result = node_get(fs->nodes, ino, ret_node);

	if (result)
		return result;
	if (ret_node->directory)
		return -EISDIR;
	if (ops_is_control(ret_node))
		return 0;
	if (ret_node->lost)
		return -ESTALE;
	if (write)
		result = view_is_writable(&v, ret_node, &writable);
	if (result)
		return result;
	return writable ? 0 : -EROFS;
}

bool ops_moved(struct fs *fs, struct node *node)
{
	struct place before = node->at;

	if (node_get(fs->nodes, node->node, node) != 0 || node->lost)
		return false;
	return before.directory != node->at.directory || before.seq != node->at.seq ||
	       before.state != node->at.state || strcmp(before.name, node->at.name) != 0;
}

/* A change is in the store before it is in the node table; its lock is held until it is in both. */
static void wait_for_change(struct fs *fs)
{
	lifecycle_lock(fs->lifecycle);
	lifecycle_unlock(fs->lifecycle);
}

int ops_load(struct fs *fs, struct node *node, bool attributes_only, struct inode *ret_inode)
{
	bool waited = false;
	int result = -ESTALE;

	if (node->lost)
		return -ESTALE;
	for (int tries = 0; tries < TRIES; tries++) {
		result = namei_load(fs->namei, &node->at, attributes_only, ret_inode);
		if (result == 0 && ret_inode->item.id == node->id)
			return 0;
		if (result == 0)
			inode_release(ret_inode);
		if (result < 0 && result != -ENOENT)
			return result;
		if (ops_moved(fs, node)) {
			waited = false;
			continue;
		}
		if (waited || node->lost)
			break;
		wait_for_change(fs);
		/* Where it moved to, the next change may be under way. */
		waited = !ops_moved(fs, node);
	}
	return -ESTALE;
}

/* ---- forgetting --------------------------------------------------------------------------- */

static void forget_one(struct fs *fs, fuse_ino_t ino, uint64_t count)
{
	struct node node;

	if (node_forget(fs->nodes, ino, count, &node))
		lifecycle_note_released(fs->lifecycle, node.id, &node.at);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	struct fs *fs = session_fs(req);

	fuse_reply_none(req);
	forget_one(fs, ino, count);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct fs *fs = session_fs(req);

	for (size_t i = 0; i < count; i++)
		forget_one(fs, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* ---- negotiation ----------------------------------------------------------------------------- */

static void op_init(void *data, struct fuse_conn_info *conn)
{
	struct fs *fs = data;
	unsigned want = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
			FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_ASYNC_DIO |
			FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_NO_OPEN_SUPPORT;

	if (fs->options->writeback)
		want |= FUSE_CAP_WRITEBACK_CACHE;
	/* With ACLs a default one takes the umask's place: that is decided where it is read. */
	if (fs->options->acl)
		want |= FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;
	/*
	 * Everything else off, libfuse's own defaults too. FUSE_CAP_ATOMIC_O_TRUNC above all: with OPEN
	 * answered ENOSYS, the kernel would tell nobody that a file was truncated.
	 */
	conn->want = want & conn->capable;
	conn->max_write = MAX_WRITE;
	conn->max_readahead = MAX_WRITE;
	conn->time_gran = 1;
}

/*
 * libfuse 3.14 does not know FUSE_HANDLE_KILLPRIV_V2, without which the kernel
 * asks for security.capability before every write(2): it is put into the reply
 * to INIT as it goes out. The kernel then leaves set-id bits to us: SETATTR has
 * a flag for it, and WRITE has one that libfuse drops, so it is copied into
 * the file handle, which without OPEN nobody else uses.
 */
static ssize_t io_writev(int fd, struct iovec *iov, int count, void *data)
{
	struct fs *fs = data;

	if (!fs->patched_init && count == 2 && iov[1].iov_len >= FUSE_COMPAT_22_INIT_OUT_SIZE) {
		struct fuse_init_out *out = iov[1].iov_base;

		if (fs->kernel_flags & FUSE_HANDLE_KILLPRIV_V2)
			out->flags |= FUSE_HANDLE_KILLPRIV_V2;
		fs->patched_init = true;
	}
	return writev(fd, iov, count);
}

static void mark_write(struct fuse_in_header *header)
{
	struct fuse_write_in *in = (struct fuse_write_in *)(header + 1);

	in->fh = in->write_flags & FUSE_WRITE_KILL_SUIDGID;
}

static ssize_t io_read(int fd, void *buffer, size_t size, void *data)
{
	struct fs *fs = data;
	struct fuse_in_header *header = buffer;
	ssize_t n = read(fd, buffer, size);

	if (n >= (ssize_t)(sizeof(*header) + sizeof(struct fuse_write_in)) && header->opcode == FUSE_WRITE)
		mark_write(header);
	else if (n >= (ssize_t)(sizeof(*header) + INIT_FLAGS_END) && header->opcode == FUSE_INIT)
		fs->kernel_flags = ((struct fuse_init_in *)(header + 1))->flags;
	return n;
}

const struct fuse_custom_io session_io = {
	.writev = io_writev,
	.read = io_read,
};

const struct fuse_lowlevel_ops session_ops = {
	.init = op_init,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.lookup = ops_lookup,
	.mknod = ops_mknod,
	.mkdir = ops_mkdir,
	.symlink = ops_symlink,
	.create = ops_create,
	.link = ops_link,
	.unlink = ops_unlink,
	.rmdir = ops_rmdir,
	.rename = ops_rename,
	.opendir = ops_opendir,
	.releasedir = ops_releasedir,
	.readdir = ops_readdir,
	.readdirplus = ops_readdirplus,
	.fsyncdir = ops_fsync,
	.open = ops_open,
	.read = ops_read,
	.write = ops_write,
	.fsync = ops_fsync,
	.fallocate = ops_fallocate,
	.lseek = ops_lseek,
	.copy_file_range = ops_copy_file_range,
	.ioctl = ops_ioctl,
	.getattr = ops_getattr,
	.setattr = ops_setattr,
	.access = ops_access,
	.readlink = ops_readlink,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.setxattr = ops_setxattr,
	.removexattr = ops_removexattr,
	.statfs = ops_statfs,
};
