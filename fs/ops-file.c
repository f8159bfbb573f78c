/*
 * ops-file.c - contents of files.
 *
 * There is no OPEN (answered ENOSYS once, so the kernel asks no more), hence no
 * RELEASE; no FLUSH either: a write that returned has reached the store. What
 * may wait for a disk gives up the lead first (loop.h).
 */
#include <stdlib.h>

#include "fs/ops.h"
#include "fs/view-control.h"

#define QUICK_BYTES 32768 /* reads and writes up to here are served by the leader */
#define SEEK_DATA_WHENCE 3 /* SEEK_DATA, SEEK_HOLE as the kernel numbers them */
#define SEEK_HOLE_WHENCE 4
#define SEEK_TRIES \
	16 /* holes filled by a map, one after the other, before the file is called all data */
#define FLUSHES_MAX 8 /* threads that wait in seek_flush */

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fuse_reply_err(req, ENOSYS);
}

static void read_stats(fuse_req_t req, fuse_ino_t ino, char *buffer, size_t size, off_t offset)
{
	size_t copied;
	size_t whole;
	int result = node_text(session_fs(req)->nodes, ino, (uint64_t)offset, buffer, size, &copied,
			       &whole);

	if (result)
		reply_result(req, result);
	else
		fuse_reply_buf(req, buffer, copied);
}

static void read_tag(fuse_req_t req, size_t size, off_t offset)
{
	const char *bytes;
	size_t count = view_control_read_tag((uint64_t)offset, size, &bytes);

	fuse_reply_buf(req, bytes, count);
}

static void read_file(fuse_req_t req, const struct node *node, char *buffer, size_t size, off_t offset)
{
	struct fs *fs = session_fs(req);
	size_t count;
	int result = file_read(fs->namei, &fs->locator, node->id, (uint64_t)offset, buffer, size, &count);

	if (result)
		reply_result(req, result);
	else
		fuse_reply_buf(req, buffer, count);
}

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	_cleanup_free_ char *buffer = malloc(size);
	struct node node;

	OPS_TRY(req, buffer ? 0 : -ENOMEM);
	OPS_TRY(req, ops_file(fs, ino, false, &node));
	if (size > QUICK_BYTES)
		loop_yield(fs->loop);
	if (node.kind == NODE_CONTROL_STATS)
		read_stats(req, ino, buffer, size, offset);
	else if (node.kind == NODE_CONTROL_TAG)
		read_tag(req, size, offset);
	else if (ops_is_control(&node))
		fuse_reply_buf(req, NULL, 0);
	else
		read_file(req, &node, buffer, size, offset);
}

/*
 * A write that is refused although the kernel, with the writeback cache, took it
 * for written. Its pages must go, and with them its idea of the size, which
 * nothing but another inode changes.
 */
static void drop_refused(struct fs *fs, fuse_ino_t ino)
{
	if (!fs->options->writeback)
		return;
	node_set_aside(fs->nodes, ino);
	notify_contents(fs->notifier, ino);
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
	       struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	bool kill_privileges = fi->fh != 0; /* see ops.c: FUSE_WRITE_KILL_SUIDGID */
	struct node node;
	int result = ops_file(fs, ino, true, &node);

	if (result == 0 && ops_is_control(&node))
		result = node.kind == NODE_CONTROL_TAG ? -EROFS : -EINVAL;
	if (size > QUICK_BYTES)
		loop_yield(fs->loop);
	if (result == 0)
		result = file_write(fs->namei, &fs->locator, node.id, (uint64_t)offset, bytes, size,
				    false, kill_privileges, NULL);
	if (result)
		reply_result(req, result);
	else
		fuse_reply_write(req, size);
	if (result == -EROFS)
		drop_refused(fs, ino);
}

void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);

	loop_yield(fs->loop);
	reply_result(req, store_sync(fs->store));
}

void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
		   struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	struct node node;

	OPS_TRY(req, ops_file(fs, ino, true, &node));
	OPS_TRY(req, ops_is_control(&node) ? -EOPNOTSUPP : 0);
	loop_yield(fs->loop);
	reply_result(req, file_allocate(fs->namei, &fs->locator, node.id, mode, (uint64_t)offset,
					(uint64_t)length));
}

/* ---- holes -------------------------------------------------------------------------- */

static int seek_store(struct fs *fs, const struct node *node, uint64_t offset, bool data,
		      uint64_t *ret_found)
{
	return file_seek(fs->namei, &fs->locator, node->id, offset, data, ret_found);
}

/* All of the file is data: always a right answer, if not the best. */
static int seek_dense(struct fs *fs, struct node *node, uint64_t offset, bool data, uint64_t *ret_found)
{
	struct inode i = { 0 };
	uint64_t size;
	int result = ops_load(fs, node, true, &i);

	if (result)
		return result;
	size = i.item.size;
	inode_release(&i);
	if (offset >= size)
		return -ENXIO;
	*ret_found = data ? offset : size;
	return 0;
}

/* The hole that an answer of the store rests on; *ret_to of 0: up to the end. False: on none. */
static bool seek_hole_of(struct fs *fs, const struct node *node, uint64_t offset, bool data,
			 int result, uint64_t found, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t next;

	if (result && !(data && result == -ENXIO))
		return false;
	*ret_from = data ? offset : found;
	*ret_to = data && result == 0 ? found : 0;
	if (!data && seek_store(fs, node, found, true, &next) == 0)
		*ret_to = next;
	return *ret_to == 0 || *ret_to > *ret_from;
}

/*
 * What a shared map wrote over a hole is in the kernel's pages alone until it
 * writes them back, and for LSEEK it does not: so it is made to, for the hole.
 * Elsewhere no request may notify (README); here the kernel holds no page and
 * no directory meanwhile, and another thread serves those writes. Enough of
 * them must be left for that: false if many wait here already.
 */
static bool seek_flush(struct fs *fs, const struct node *node, uint64_t from, uint64_t to)
{
	bool few = atomic_fetch_add(&fs->flushes, 1) < FLUSHES_MAX;

	if (few) {
		loop_yield(fs->loop);
		fuse_lowlevel_notify_inval_inode(fs->session, node->node, (off_t)from,
						 to ? (off_t)(to - from) : 0);
	}
	atomic_fetch_sub(&fs->flushes, 1);
	return few;
}

static int seek(struct fs *fs, struct node *node, uint64_t offset, bool data, uint64_t *ret_found)
{
	uint64_t from = 0, to = 0, flushed_from = 0, flushed_to = 0;

	/* Where the map filled a whole hole, the answer rests on the next one. */
	for (int tries = 0; tries < SEEK_TRIES; tries++) {
		int result = seek_store(fs, node, offset, data, ret_found);

		if (!seek_hole_of(fs, node, offset, data, result, *ret_found, &from, &to) ||
		    (tries && from >= flushed_from && (!flushed_to || from < flushed_to)))
			return result;
		if (!seek_flush(fs, node, from, to))
			break;
		flushed_from = from;
		flushed_to = to;
	}
	return seek_dense(fs, node, offset, data, ret_found);
}

/* The texts of views and of /.ddbfs have no holes. */
static int seek_control(struct fs *fs, const struct node *node, off_t offset, bool data, uint64_t *ret_found)
{
	struct view_control v = { fs->nodes, fs->control, fs->uid, fs->gid, fs->mounted_ns };
	struct stat st;
	int result = view_control_stat(&v, node, &st);

	if (result)
		return result;
	if (offset >= st.st_size)
		return -ENXIO;
	*ret_found = (uint64_t)(data ? offset : st.st_size);
	return 0;
}

void ops_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	struct node node;
	uint64_t found = 0;

	/* With the writeback cache the kernel has bytes we do not know of: it then takes the file to be all data. */
	OPS_TRY(req, fs->options->writeback ? -ENOSYS : 0);
	OPS_TRY(req, whence == SEEK_DATA_WHENCE || whence == SEEK_HOLE_WHENCE ? 0 : -EINVAL);
	OPS_TRY(req, ops_file(fs, ino, false, &node));
	if (ops_is_control(&node))
		OPS_TRY(req, seek_control(fs, &node, offset, whence == SEEK_DATA_WHENCE, &found));
	else
		OPS_TRY(req, seek(fs, &node, (uint64_t)offset, whence == SEEK_DATA_WHENCE, &found));
	fuse_reply_lseek(req, (off_t)found);
}

/* ---- copies ------------------------------------------------------------------------- */

void ops_copy_file_range(fuse_req_t req, fuse_ino_t in, off_t in_offset,
			 struct fuse_file_info *in_fi, fuse_ino_t out, off_t out_offset,
			 struct fuse_file_info *out_fi, size_t size, int flags)
{
	struct fs *fs = session_fs(req);
	struct node from, to;
	size_t copied;

	OPS_TRY(req, flags ? -EINVAL : 0);
	OPS_TRY(req, ops_file(fs, in, false, &from));
	OPS_TRY(req, ops_file(fs, out, true, &to));
	OPS_TRY(req, ops_is_control(&from) || ops_is_control(&to) ? -EXDEV : 0); /* then the caller reads and writes */
	loop_yield(fs->loop);
	OPS_TRY(req, file_copy(fs->namei, &fs->locator, from.id, (uint64_t)in_offset, &fs->locator,
			       to.id, (uint64_t)out_offset, size, &copied));
	fuse_reply_write(req, copied);
}

/* ---- /.ddbfs/control ---------------------------------------------------------------------- */

static int control_request(fuse_req_t req, struct control_message *message)
{
	struct fs *fs = session_fs(req);
	_cleanup_free_ gid_t *groups = NULL;
	struct actor actor;
	int result = ops_actor_with_groups(req, &actor, &groups);

	return result ? result : control_call(fs->control, &actor, message);
}

void ops_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
	       struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
	       size_t out_size)
{
	struct fs *fs = session_fs(req);
	_cleanup_free_ struct control_message *message = NULL;
	struct node node;

	OPS_TRY(req, node_get(fs->nodes, ino, &node));
	if (node.kind != NODE_CONTROL_FILE || command != (unsigned)CONTROL_CALL ||
	    in_size != sizeof(*message) || out_size != sizeof(*message)) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	message = malloc(sizeof(*message));
	OPS_TRY(req, message ? 0 : -ENOMEM);
	memcpy(message, in, sizeof(*message));
	loop_yield(fs->loop);
	OPS_TRY(req, message->size > CONTROL_TEXT_MAX ? -EINVAL : 0);
	OPS_TRY(req, control_request(req, message));
	fuse_reply_ioctl(req, 0, message, sizeof(*message));
}
