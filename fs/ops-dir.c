/*
 * ops-dir.c - listing directories.
 *
 * Each READDIR is a fresh range read from the key that its offset stands for
 * (handle.h): nothing is read ahead, so nothing stale is ever told. Offsets 1
 * and 2 are "." and ".."; entry cookies follow.
 *
 * Entries of the live tree go out with their attributes (readdirplus), which
 * counts as a look-up of each; those of views without, as nothing of a view
 * may be kept.
 */
#include <linux/fuse.h>
#include <sys/stat.h>

#include "fs/handle.h"
#include "fs/ops.h"
#include "fs/view-control.h"

#define OFFSET_FIRST 2 /* offset of the cookie 0 */
#define INO_UNKNOWN \
	(UINT64_C(1) << 61) /* of an item whose attributes cannot be read; it has a name all the same */

struct listing {
	fuse_req_t req;
	struct fs *fs;
	struct handle *handle;
	struct node node;
	bool trash;
	bool plus;
	uint64_t stamp;
	char *buffer;
	size_t size;
	size_t used;
	bool full;
};

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = session_fs(req);
	struct handle *h;
	struct node node;
	bool trash;
	int result = ops_directory(fs, ino, &node, &trash);

	/* Whoever stands in a removed one may open it: it has no names, of which the kernel needs not ask us. */
	OPS_TRY(req, result == -ENOENT && node.detached ? 0 : result);
	OPS_TRY(req, handle_new(ino, &h));
	fi->fh = (uint64_t)(uintptr_t)h;
	atomic_fetch_add(&fs->handles, 1);
	/* Nobody waits any more: there will be no RELEASEDIR. */
	if (fuse_reply_open(req, fi) != 0) {
		atomic_fetch_sub(&fs->handles, 1);
		handle_free(h);
	}
}

void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	handle_free((struct handle *)(uintptr_t)fi->fh);
	atomic_fetch_sub(&session_fs(req)->handles, 1);
	fuse_reply_err(req, 0);
}

/* ---- entries into the buffer -------------------------------------------------------- */

static size_t entry_size(const struct listing *l, const char *name)
{
	if (l->plus)
		return fuse_add_direntry_plus(l->req, NULL, 0, name, NULL, 0);
	return fuse_add_direntry(l->req, NULL, 0, name, NULL, 0);
}

/* An entry that fits. `e` has st_ino and st_mode at least, and a node id if the kernel is to know it. */
static void put_entry(struct listing *l, const char *name, const struct fuse_entry_param *e, uint64_t offset)
{
	char *at = l->buffer + l->used;
	size_t left = l->size - l->used;

	if (l->plus)
		l->used += fuse_add_direntry_plus(l->req, at, left, name, e, (off_t)offset);
	else
		l->used += fuse_add_direntry(l->req, at, left, name, &e->attr, (off_t)offset);
}

static bool fits(struct listing *l, const char *name)
{
	if (entry_size(l, name) > l->size - l->used)
		l->full = true;
	return !l->full;
}

/* The offset after the entry with `key`, or 0 without memory: the reply ends before it. */
static uint64_t add_key(struct listing *l, const struct key *key)
{
	uint64_t cookie = handle_add(l->handle, key);

	if (cookie == 0)
		l->full = true;
	return cookie ? cookie + OFFSET_FIRST : 0;
}

static void add_plain(struct listing *l, const char *name, uint64_t ino, uint32_t mode,
		      const struct key *key)
{
	struct fuse_entry_param e = { .attr = { .st_ino = ino, .st_mode = mode } };
	uint64_t offset;

	if (fits(l, name) && (offset = add_key(l, key)) != 0)
		put_entry(l, name, &e, offset);
}

static void add_dots(struct listing *l, uint64_t offset)
{
	struct fuse_entry_param e = { .attr = { .st_ino = l->node.id, .st_mode = S_IFDIR } };

	if (l->node.kind == NODE_VIEW)
		e.attr.st_ino |= VIEW_MIRROR;
	else if (ops_is_control(&l->node))
		e.attr.st_ino = INO_UNKNOWN;
	if (offset < 1 && fits(l, "."))
		put_entry(l, ".", &e, 1);
	e.attr.st_ino = l->node.at.directory != KEY_ID_NONE ? l->node.at.directory : KEY_ID_ROOT;
	if (offset < 2 && fits(l, ".."))
		put_entry(l, "..", &e, 2);
}

/* ---- the live tree --------------------------------------------------------------------- */

/* The row's inode; attributes of files with several names stand apart. */
static int row_inode(struct listing *l, const struct store_row *row, struct inode *ret_inode)
{
	struct place at;
	struct item item;
	int result = record_row_item(l->fs->store, row, &at, &item);

	if (result)
		return result;
	if (item.flags & ITEM_REFERENCE && l->plus)
		return namei_load(l->fs->namei, &at, true, ret_inode);
	*ret_inode = (struct inode){ .at = at, .item = item, .nlink = 1 };
	if (S_ISDIR(item.mode))
		ret_inode->nlink = item.directory.subdirectories + 2;
	return 0;
}

/* An item that cannot be read is listed, so that it can be removed. */
static void add_damaged(struct listing *l, const struct store_row *row, const struct key *key)
{
	char name[KEY_NAME_MAX + 1];

	if (lifecycle_damaged_name(l->fs->lifecycle, row, name))
		add_plain(l, name, INO_UNKNOWN, 0, key);
	else
		handle_set_damaged(l->handle);
}

static void add_item(struct listing *l, const struct inode *inode, const struct key *key)
{
	const char *name = inode->at.name;
	struct reply_entry entry = { .inode = inode, .stamp = l->stamp };
	struct fuse_entry_param e = { .attr = { .st_ino = inode->item.id, .st_mode = inode->item.mode } };
	uint64_t offset;

	if (!fits(l, name) || (offset = add_key(l, key)) == 0)
		return;
	/* Changed meanwhile, or no memory: the name alone, to be looked up. */
	if (l->plus)
		reply_enter(l->fs, &entry, &e);
	put_entry(l, name, &e, offset);
}

static void add_row(struct listing *l, const struct store_row *row)
{
	struct inode inode;
	struct key key;

	if (key_from_bytes(store_codec(l->fs->store), row->key, row->key_size, &key) != 0)
		handle_set_damaged(l->handle);
	else if (row_inode(l, row, &inode) != 0)
		add_damaged(l, row, &key);
	else {
		add_item(l, &inode, &key);
		inode_release(&inode);
	}
}

static int list_live(struct listing *l, const struct key *after)
{
	struct store_query query = { .attributes_only = true, .after = after };
	struct key next;
	bool more = true;

	key_range_live(l->node.id, &query.range);
	query.limit = l->size / entry_size(l, "") + 1;
	while (more && !l->full) {
		struct store_page page = { 0 };
		int result = store_query(l->fs->store, &query, &page);

		if (result)
			return result;
		for (size_t i = 0; i < page.count && !l->full; i++)
			add_row(l, &page.rows[i]);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return 0;
}

/* ---- the trash, /.ddbfs ------------------------------------------------------------------ */

static bool add_entry(void *data, const struct entry *entry, const struct key *key)
{
	struct listing *l = data;
	uint64_t ino = entry->item.id | (entry->shadow ? VIEW_MIRROR : 0);

	add_plain(l, entry->shown, ino, entry->item.mode, key);
	return l->full;
}

static void list_control(struct listing *l, uint64_t offset)
{
	const char *name;
	uint32_t mode;

	for (uint64_t i = offset < OFFSET_FIRST ? 0 : offset - OFFSET_FIRST;
	     (name = view_control_name(i, &mode)); i++) {
		struct fuse_entry_param e = { .attr = { .st_ino = INO_UNKNOWN, .st_mode = mode } };

		if (!fits(l, name))
			return;
		put_entry(l, name, &e, i + 1 + OFFSET_FIRST);
	}
}

/* ---- READDIR, READDIRPLUS -------------------------------------------------------------------- */

static int list(struct listing *l, uint64_t offset)
{
	struct view v = ops_view(l->fs);
	struct key after;
	const struct key *from = NULL;
	int result;

	if (offset == 0)
		handle_rewind(l->handle);
	if (offset < OFFSET_FIRST)
		add_dots(l, offset);
	if (l->full)
		return 0;
	if (l->node.kind == NODE_CONTROL_DIRECTORY) {
		list_control(l, offset);
		return 0;
	}
	if (handle_seek(l->handle, offset < OFFSET_FIRST ? 0 : offset - OFFSET_FIRST, &after))
		from = &after;
	if (l->trash)
		result = view_list(&v, l->node.id, from, add_entry, l);
	else
		result = list_live(l, from);
	/*
	 * What cannot be read is told once, after everything that can. Whatever fails, what is there
	 * goes out: its look-ups are counted.
	 */
	if (result && l->used > 0) {
		if (result == -EIO)
			handle_set_damaged(l->handle);
		result = 0;
	}
	if (result == 0 && l->used == 0 && handle_take_damaged(l->handle))
		result = -EIO;
	return result;
}

/* Nobody took the answer: the kernel did not count its look-ups. */
static void forget_entries(struct listing *l)
{
	for (size_t at = 0; l->plus && at + sizeof(struct fuse_direntplus) <= l->used;) {
		const struct fuse_direntplus *d = (const void *)(l->buffer + at);

		if (d->entry_out.nodeid)
			reply_take_back(l->fs, d->entry_out.nodeid);
		at += FUSE_DIRENTPLUS_SIZE(d);
	}
}

static void answer(struct listing *l, uint64_t offset)
{
	bool kept = !l->trash; /* by the kernel: look-ups of a view are not */
	int result;

	if (kept)
		notify_reply_begin(l->fs->notifier);
	l->stamp = node_stamp(l->fs->nodes, l->node.id);
	handle_lock(l->handle);
	result = list(l, offset);
	handle_unlock(l->handle); /* once answered, the handle may be released */
	if (result == 0 && fuse_reply_buf(l->req, l->buffer, l->used) != 0)
		forget_entries(l);
	if (kept)
		notify_reply_end(l->fs->notifier);
	if (result)
		reply_result(l->req, result);
}

static void read_directory(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			   struct fuse_file_info *fi, bool plus)
{
	struct listing l = {
		.req = req,
		.fs = session_fs(req),
		.handle = (struct handle *)(uintptr_t)fi->fh,
		.plus = plus,
		.size = size,
	};

	OPS_TRY(req, ops_directory(l.fs, ino, &l.node, &l.trash));
	l.buffer = malloc(size);
	OPS_TRY(req, l.buffer ? 0 : -ENOMEM);
	answer(&l, (uint64_t)offset);
	free(l.buffer);
}

void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	read_directory(req, ino, size, offset, fi, false);
}

void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	read_directory(req, ino, size, offset, fi, true);
}
