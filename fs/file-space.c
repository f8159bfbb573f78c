/*
 * file-space.c - truncating, allocating, punching, finding holes, copying.
 *
 * ITEM_SPARSE is set by whatever may leave a hole in a body, and cleared only
 * when the body goes: without it a file is known to be dense, and neither
 * st_blocks nor SEEK_HOLE need ask the store.
 */
#include "fs/file-internal.h"

#include <errno.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#define COPY_BLOCK ((size_t)1 << 20)
#define COPY_MAX ((size_t)4 << 20) /* of one call: others wait behind it */

static int resize_body(struct edit *e, uint64_t size)
{
	struct item *item = &e->inode.item;

	if (size == 0) {
		transaction_body_free(&e->transaction, item->body);
		item->body = 0;
		item->content = NULL;
		item->content_size = 0;
		item->flags &= ~(uint32_t)ITEM_SPARSE;
	} else if (size < item->size) {
		transaction_body_truncate(&e->transaction, item->body, size);
	} else {
		item->flags |= ITEM_SPARSE;
	}
	item->size = size;
	return 0;
}

int edit_resize(struct namei *n, struct edit *e, uint64_t size)
{
	struct item *item = &e->inode.item;
	int result = file_check_type(item);

	if (result)
		return result;
	if (size > NAMEI_SIZE_MAX)
		return -EFBIG;
	if (size == item->size)
		return 0;
	e->releasing = size < item->size;
	if (item->body)
		return resize_body(e, size);
	if (size <= store_limits(n->store)->inline_bytes || size < item->size) {
		result = edit_inline(e, (size_t)size);
	} else {
		result = edit_spill(n, e, size, size);
		item->flags |= ITEM_SPARSE;
	}
	if (result == 0)
		item->size = size;
	return result;
}

/* ---- fallocate ------------------------------------------------------------ */

struct allocation {
	int mode;
	uint64_t offset;
	uint64_t end;
	bool beyond; /* more than is free: asked for, not needed yet */
};

/* The range within the file reads as zeros from now on. */
static int zero_range(struct edit *e, uint64_t offset, uint64_t end)
{
	struct item *item = &e->inode.item;
	int result;

	end = util_min(end, item->size);
	if (offset >= end)
		return 0;
	if (item->body) {
		transaction_body_zero(&e->transaction, item->body, offset, end - offset);
		item->flags |= ITEM_SPARSE;
		return 0;
	}
	result = edit_inline(e, (size_t)item->size);
	if (result == 0)
		memset(e->content.bytes + offset, 0, (size_t)(end - offset));
	return result;
}

/* Whether what the range still lacks would fit now: all that can be promised without reserving. */
static int check_space(struct namei *n, const struct item *item, struct allocation *a)
{
	uint64_t from = item->flags & ITEM_SPARSE ? a->offset : util_max(a->offset, item->size);
	struct store_space space;
	int result;

	if (from >= a->end)
		return 0;
	result = store_space(n->store, &space);
	if (result)
		return result;
	a->beyond = a->end - from > space.free_bytes;
	return a->beyond ? -ENOSPC : 0;
}

static int allocate_step(struct namei *n, struct edit *e, void *data)
{
	struct allocation *a = data;
	struct item *item = &e->inode.item;
	bool zero = a->mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE);
	bool grow = !(a->mode & FALLOC_FL_KEEP_SIZE) && a->end > item->size;
	int result = file_check_type(item);

	if (result == -EINVAL)
		return -ENODEV;
	if (result)
		return result;
	if (!(a->mode & FALLOC_FL_PUNCH_HOLE))
		result = check_space(n, item, a);
	if (result)
		return result;
	if (!zero && !grow)
		return EDIT_UNCHANGED;
	if (zero)
		result = zero_range(e, a->offset, a->end);
	if (result == 0 && grow)
		result = edit_resize(n, e, a->end);
	if (result)
		return result;
	e->releasing = a->mode & FALLOC_FL_PUNCH_HOLE;
	edit_touch(n, e);
	return 0;
}

static bool allocate_supports(int mode)
{
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		return true;
	default:
		return false;
	}
}

int file_allocate(struct namei *n, const struct file_locator *where, uint64_t id, int mode,
		  uint64_t offset, uint64_t length)
{
	struct allocation a = { .mode = mode, .offset = offset, .end = offset + length };
	struct target target;
	unsigned tries = 0;
	int result;

	if (!allocate_supports(mode))
		return -EOPNOTSUPP;
	if (length == 0 || offset > NAMEI_SIZE_MAX)
		return -EINVAL;
	if (length > NAMEI_SIZE_MAX - offset)
		return -EFBIG;
	target_located(&target, n, where, id);
	do {
		result = target_lock(&target, true);
		if (result)
			return result;
		result = edit_run(&target, allocate_step, &a, NULL);
		target_unlock(&target);
		/* Nothing of the trash goes for a size that was merely named: whoever writes makes room. */
	} while (!a.beyond && namei_made_room(n, result, &tries));
	return result;
}

/* ---- lseek ---------------------------------------------------------------- */

static int seek_body(struct namei *n, const struct item *item, uint64_t offset, bool data,
		     uint64_t *ret_offset)
{
	uint64_t found;
	int result = store_body_seek(n->store, item->body, offset, data, &found);

	if (result)
		return namei_error(result);
	if (data && found >= item->size)
		return -ENXIO;
	*ret_offset = util_min(found, item->size);
	return 0;
}

static int seek_once(struct target *target, uint64_t offset, bool data, uint64_t *ret_offset)
{
	_cleanup_(inode_release) struct inode i = { 0 };
	int result = target_load(target, true, &i);

	if (result == 0)
		result = file_check_type(&i.item);
	if (result)
		return result;
	if (offset >= i.item.size)
		return -ENXIO;
	if (i.item.body && i.item.flags & ITEM_SPARSE)
		return seek_body(target->n, &i.item, offset, data, ret_offset);
	*ret_offset = data ? offset : i.item.size;
	return 0;
}

int file_seek(struct namei *n, const struct file_locator *where, uint64_t id, uint64_t offset,
	      bool data, uint64_t *ret_offset)
{
	struct store_retry retry = { 0 };
	struct target target;
	int result;

	target_located(&target, n, where, id);
	do
		result = seek_once(&target, offset, data, ret_offset);
	while (target_retry(&target, &retry, &result));
	target_unlock(&target);
	return result == -EAGAIN && target.lost ? -ESTALE : result;
}

/* ---- copy_file_range ------------------------------------------------------ */

static bool ranges_overlap(uint64_t a, uint64_t b, uint64_t size)
{
	return a < b ? b - a < size : a - b < size;
}

int file_copy(struct namei *n, const struct file_locator *from_where, uint64_t from,
	      uint64_t from_offset, const struct file_locator *to_where, uint64_t to,
	      uint64_t to_offset, size_t size, size_t *ret_copied)
{
	_cleanup_free_ uint8_t *block = NULL;
	size_t copied = 0, asked, got;
	int result = 0;

	if (from == to && ranges_overlap(from_offset, to_offset, size))
		return -EINVAL;
	size = util_min(size, COPY_MAX);
	block = malloc(COPY_BLOCK);
	if (!block)
		return -ENOMEM;
	/* A short read was the end as it then was: what is written may have moved it since. */
	do {
		asked = util_min(size - copied, COPY_BLOCK);
		result = file_read(n, from_where, from, from_offset + copied, block, asked, &got);
		if (result == 0 && got)
			result = file_write(n, to_where, to, to_offset + copied, block, got, false,
					    false, NULL);
		if (result)
			break;
		copied += got;
	} while (got == asked && copied < size);
	if (result && copied == 0)
		return result;
	*ret_copied = copied;
	return 0;
}
