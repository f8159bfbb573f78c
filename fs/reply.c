/*
 * reply.c - see reply.h.
 */
#include "fs/reply.h"

#include <stdio.h>
#include <sys/stat.h>

#include "fs/view-trash.h"

/* ---- errors ------------------------------------------------------------------- */

/* One line, once, when the store itself refuses to write. */
static void tell_failure(struct fs *fs)
{
	struct store_status status;
	char line[256];

	store_status(fs->store, &status);
	if (!status.read_only || atomic_flag_test_and_set(&fs->failure_told))
		return;
	snprintf(line, sizeof(line),
		 "the store stopped writing: %s (%s); it can be read until it is unmounted",
		 status.problem ? status.problem : "a write failed", strerror(-status.error));
	if (fs->events->log)
		fs->events->log(fs->events->data, line);
}

static int error_number(int result)
{
	if (result > 0) /* an outcome that its caller should have dealt with */
		return EIO;
	if (result == -EBADMSG)
		return EIO;
	return -result;
}

void reply_result(fuse_req_t req, int result)
{
	if (result == -EIO || result == -EROFS)
		tell_failure(session_fs(req));
	fuse_reply_err(req, error_number(result));
}

/* ---- inodes --------------------------------------------------------------------- */

void reply_stat(struct fs *fs, const struct inode *inode, struct stat *ret_stat)
{
	const struct item *item = &inode->item;
	uint64_t allocated;

	/* Blocks that cannot be counted: as for a dense file. */
	if (namei_allocated(fs->namei, inode, &allocated) != 0)
		allocated = item->size;
	*ret_stat = (struct stat){
		.st_ino = item->id,
		.st_mode = item->mode,
		.st_nlink = inode->nlink,
		.st_uid = item->uid,
		.st_gid = item->gid,
		.st_rdev = item->rdev,
		.st_size = (off_t)item->size,
		.st_blksize = 4096,
		.st_blocks = (blkcnt_t)((allocated + 511) / 512),
		.st_atim = item->atime,
		.st_mtim = item->mtime,
		.st_ctim = item->ctime,
	};
}

void reply_attributes(fuse_req_t req, const struct inode *inode, bool trash)
{
	double keep = inode->item.id == KEY_ID_ROOT ? REPLY_ROOT : REPLY_FOREVER;
	struct stat st;

	reply_stat(session_fs(req), inode, &st);
	fuse_reply_attr(req, &st, trash ? 0 : keep);
}

/* ---- entries ---------------------------------------------------------------------- */

/* A file found in the trash that may still be written shows so: whatever finds it shows the same. */
static void mask_file(struct fs *fs, uint64_t node, struct stat *st)
{
	struct node known;

	if (node_get(fs->nodes, node, &known) == 0 && !known.writable)
		st->st_mode &= ~(mode_t)0222;
}

int reply_enter(struct fs *fs, const struct reply_entry *entry, struct fuse_entry_param *ret_param)
{
	const struct item *item = &entry->inode->item;
	bool keep = !entry->trash && !entry->brief;
	struct node_entry node = {
		.id = item->id & ~VIEW_MIRROR,
		.view = entry->view,
		.parent = entry->parent,
		.directory = S_ISDIR(item->mode),
		.live = !entry->trash,
		.reference = item->flags & ITEM_REFERENCE,
		.at = &entry->inode->at,
		.stamp = entry->stamp,
	};
	struct fuse_entry_param e = {
		.entry_timeout = keep		   ? REPLY_FOREVER :
				 entry->trash_name ? REPLY_TRASH_NAME :
						     0,
		.attr_timeout = keep ? REPLY_FOREVER : 0,
	};
	int result = node_enter(fs->nodes, &node, &e.ino);

	if (result)
		return result;
	reply_stat(fs, entry->inode, &e.attr);
	if (entry->trash && !node.directory)
		mask_file(fs, e.ino, &e.attr);
	*ret_param = e;
	return 0;
}

/*
 * How many names a file has, changes in other directories too, of which the
 * stamp knows nothing: it is read where the notifier waits for the answer.
 */
static int reply_enter_linked(struct fs *fs, const struct reply_entry *entry,
			      struct fuse_entry_param *ret_param)
{
	struct reply_entry again = *entry;
	struct inode inode;
	int result = namei_load(fs->namei, &entry->inode->at, true, &inode);

	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	again.inode = &inode;
	result = reply_enter(fs, &again, ret_param);
	inode_release(&inode);
	return result;
}

void reply_take_back(struct fs *fs, uint64_t node)
{
	struct node released;

	if (node_take_back(fs->nodes, node, &released))
		lifecycle_note_released(fs->lifecycle, released.id, &released.at);
}

int reply_entry(fuse_req_t req, const struct reply_entry *entry, struct fuse_file_info *file)
{
	struct fs *fs = session_fs(req);
	bool linked = entry->inode->item.flags & ITEM_REFERENCE && !entry->trash && !entry->brief;
	struct fuse_entry_param e;
	int result;
	int sent = 0;

	notify_reply_begin(fs->notifier);
	result = linked ? reply_enter_linked(fs, entry, &e) : reply_enter(fs, entry, &e);
	if (result == 0 && file)
		sent = fuse_reply_create(req, &e, file);
	else if (result == 0)
		sent = fuse_reply_entry(req, &e);
	notify_reply_end(fs->notifier);
	if (result == -EAGAIN)
		return -EAGAIN;
	if (result)
		reply_result(req, result);
	else if (sent != 0) /* nobody waits for it any more: the kernel did not count it */
		reply_take_back(fs, e.ino);
	return 0;
}

void reply_no_entry(fuse_req_t req, uint64_t directory, uint64_t stamp, bool trash)
{
	struct fs *fs = session_fs(req);
	struct fuse_entry_param none = { .ino = 0 };

	if (trash) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	notify_reply_begin(fs->notifier);
	if (node_stamp(fs->nodes, directory) == stamp)
		none.entry_timeout = REPLY_FOREVER;
	fuse_reply_entry(req, &none);
	notify_reply_end(fs->notifier);
}
