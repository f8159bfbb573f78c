/*
 * file.c - reading and writing.
 *
 * Content is inline up to the store's inline size and in a body of its own
 * above it; it comes back inline only when the file is emptied, so a file that
 * grows and shrinks about the limit does not move to and fro. Inline, the
 * content's size is the file's.
 */
#include "fs/file-internal.h"

#include <errno.h>
#include <sys/stat.h>

int file_check_type(const struct item *item)
{
	if (S_ISREG(item->mode))
		return 0;
	return S_ISDIR(item->mode) ? -EISDIR : -EINVAL;
}

/* ---- reading -------------------------------------------------------------- */

static void read_inline(const struct item *item, uint64_t offset, uint8_t *buffer, size_t size)
{
	size_t have = offset < item->content_size ? item->content_size - (size_t)offset : 0;

	have = util_min(have, size);
	if (have)
		memcpy(buffer, item->content + offset, have);
	memset(buffer + have, 0, size - have);
}

/*
 * A body that was cut or let go since the item was read gives zeros that never
 * were in the file: what was read counts only if the item still says the same.
 */
static int read_body(struct target *target, const struct item *item, uint64_t offset,
		     uint8_t *buffer, size_t size)
{
	struct inode now;
	bool same;
	int result, again;

	result = store_body_read(target->n->store, item->body, offset, buffer, size);
	again = target_load(target, true, &now);
	if (again)
		return again;
	same = now.item.body == item->body && now.item.size >= offset + size;
	inode_release(&now);
	return same ? namei_error(result) : STORE_CONFLICT;
}

static int read_once(struct target *target, uint64_t offset, void *buffer, size_t size, size_t *ret_read)
{
	_cleanup_(inode_release) struct inode i = { 0 };
	int result = target_load(target, false, &i);

	if (result == 0)
		result = file_check_type(&i.item);
	if (result)
		return result;
	if (offset >= i.item.size)
		size = 0;
	else
		size = (size_t)util_min((uint64_t)size, i.item.size - offset);
	if (size && i.item.body)
		result = read_body(target, &i.item, offset, buffer, size);
	else if (size)
		read_inline(&i.item, offset, buffer, size);
	if (result == 0)
		*ret_read = size;
	return result;
}

int file_read(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	      void *buffer, size_t size, size_t *ret_read)
{
	struct store_retry retry = { 0 };
	struct target target;
	int result;

	target_located(&target, n, where, id);
	do
		result = read_once(&target, offset, buffer, size, ret_read);
	while (target_retry(&target, &retry, &result));
	target_unlock(&target);
	return result == -EAGAIN && target.lost ? -ESTALE : result;
}

/* ---- writing -------------------------------------------------------------- */

void edit_write_body(struct namei *n, struct edit *e, uint64_t offset, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	size_t unit = store_limits(n->store)->write_bytes;

	while (size) {
		size_t piece = util_min(size, unit - (size_t)(offset % unit));

		transaction_body_write(&e->transaction, e->inode.item.body, offset, at, piece);
		offset += piece;
		at += piece;
		size -= piece;
	}
}

static size_t inline_size(const struct item *item)
{
	return (size_t)util_min((uint64_t)item->content_size, item->size);
}

int edit_spill(struct namei *n, struct edit *e, uint64_t hole, uint64_t hole_end)
{
	struct item *item = &e->inode.item;
	const uint8_t *content = item->content;
	size_t size = inline_size(item);
	uint64_t body;
	int result = store_new_id(n->store, &body);

	if (result)
		return result;
	item->body = body;
	item->content = NULL;
	item->content_size = 0;
	edit_write_body(n, e, 0, content, (size_t)util_min((uint64_t)size, hole));
	if (size > hole_end)
		edit_write_body(n, e, hole_end, content + hole_end, size - (size_t)hole_end);
	return 0;
}

/* An earlier step of the same edit may have put the content into the edit's buffer already. */
int edit_inline(struct edit *e, size_t size)
{
	struct item *item = &e->inode.item;
	size_t kept = util_min(size, inline_size(item));
	uint8_t *more;

	if (item->content && item->content == e->content.bytes) {
		e->content.size = kept;
	} else {
		buffer_reset(&e->content);
		buffer_append(&e->content, item->content, kept);
	}
	more = buffer_append(&e->content, NULL, size - kept);
	if (!more)
		return -ENOMEM;
	memset(more, 0, size - kept);
	item->content = size ? e->content.bytes : NULL;
	item->content_size = size;
	return 0;
}

struct write {
	uint64_t offset;
	const void *bytes;
	size_t size;
	bool append;
	bool kill_privileges;
};

static int write_data(struct namei *n, struct edit *e, const struct write *w)
{
	struct item *item = &e->inode.item;
	uint64_t end = w->offset + w->size;
	uint64_t size = util_max(item->size, end);
	int result = 0;

	if (item->body == 0 && size <= store_limits(n->store)->inline_bytes) {
		result = edit_inline(e, (size_t)size);
		if (result)
			return result;
		memcpy(e->content.bytes + w->offset, w->bytes, w->size);
	} else {
		if (item->body == 0)
			result = edit_spill(n, e, w->offset, end);
		if (result)
			return result;
		edit_write_body(n, e, w->offset, w->bytes, w->size);
		if (w->offset > item->size)
			item->flags |= ITEM_SPARSE;
	}
	item->size = size;
	return 0;
}

static int write_step(struct namei *n, struct edit *e, void *data)
{
	struct write *w = data;
	int result = file_check_type(&e->inode.item);

	if (result)
		return result;
	if (w->append)
		w->offset = e->inode.item.size;
	if (w->offset > NAMEI_SIZE_MAX || w->size > NAMEI_SIZE_MAX - w->offset)
		return -EFBIG;
	if (w->size == 0)
		return EDIT_UNCHANGED;
	if (w->kill_privileges)
		result = edit_kill_privileges(n, e);
	if (result)
		return result;
	edit_touch(n, e);
	return write_data(n, e, w);
}

/* What one transaction takes beside the item itself. The kernel's requests (1 MiB) are always one. */
static size_t write_at_once(struct namei *n)
{
	const struct store_limits *limits = store_limits(n->store);

	return util_min(limits->transaction_bytes / 2, (limits->operations / 2) * limits->write_bytes);
}

/* All of it, or as much as there is space for: *left says how much is still to be written, from w on. */
static int write_pieces(struct target *target, struct write *w, size_t *left, struct inode *ret_inode)
{
	int result;

	for (;;) {
		w->size = util_min(*left, write_at_once(target->n));
		result = edit_run(target, write_step, w, *left > w->size ? NULL : ret_inode);
		if (result)
			return result;
		*left -= w->size;
		if (*left == 0)
			return 0;
		w->offset += w->size;
		w->bytes = (const uint8_t *)w->bytes + w->size;
		w->append = false;
	}
}

int file_write(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	       const void *bytes, size_t size, bool append, bool kill_privileges, struct inode *ret_inode)
{
	struct write w = { offset, bytes, size, append, kill_privileges };
	struct target target;
	unsigned tries = 0;
	int result;

	target_located(&target, n, where, id);
	do {
		result = target_lock(&target, true);
		if (result)
			return result;
		result = write_pieces(&target, &w, &size, ret_inode);
		target_unlock(&target);
	} while (namei_made_room(n, result, &tries));
	return result;
}
