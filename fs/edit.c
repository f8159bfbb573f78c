/*
 * edit.c - one change of one item's attributes or data, from finding the item
 * to the commit.
 *
 * A file's changes hold its item lock, a directory's lifecycle_lock (every
 * create in it writes its own item too). Neither keeps a rename or a removal of
 * the file away: those are met by the versions and the repetition, and by
 * asking again where the item is.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <sys/stat.h>

void target_at(struct target *target, struct namei *n, const struct place *at)
{
	*target = (struct target){ .n = n, .at = at };
}

void target_located(struct target *target, struct namei *n, const struct file_locator *where, uint64_t id)
{
	*target = (struct target){ .n = n, .where = where, .id = id };
}

/* Moved meanwhile: a locator is asked again, a place has no better answer. */
static int target_missed(struct target *target)
{
	target->lost = true;
	return target->at ? -ENOENT : STORE_CONFLICT;
}

int target_load(struct target *target, bool attributes_only, struct inode *ret_inode)
{
	struct place located;
	const struct place *at = target->at;
	int result;

	target->lost = false;
	if (!at) {
		if (!target->where->locate(target->where->data, target->id, &located))
			return -ESTALE;
		at = &located;
	}
	result = inode_load(target->n, at, attributes_only, ret_inode);
	if (result == STORE_ABSENT)
		return target_missed(target);
	if (result)
		return result;
	if (target->id && ret_inode->item.id != target->id) {
		inode_release(ret_inode);
		return target_missed(target);
	}
	return 0;
}

/* The bound of the repetition was reached without the item being found: it is gone. */
static int target_result(const struct target *target, int result)
{
	return result == -EAGAIN && target->lost ? -ESTALE : result;
}

int target_look(struct target *target, struct inode *ret_inode)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = target_load(target, true, ret_inode);
	while (target_retry(target, &retry, &result));
	target_unlock(target);
	return target_result(target, result);
}

static int target_read_type(struct target *target, uint64_t *ret_id, bool *ret_directory)
{
	struct inode i;
	int result = target_look(target, &i);

	if (result)
		return result;
	*ret_id = i.item.id;
	*ret_directory = S_ISDIR(i.item.mode);
	inode_release(&i);
	return 0;
}

int target_lock(struct target *target, bool file)
{
	int result = 0;

	if (!file)
		result = target_read_type(target, &target->id, &target->tree);
	if (result)
		return result;
	if (target->tree)
		lifecycle_lock(target->n->lifecycle);
	else
		namei_lock_item(target->n, target->id);
	target->locked = true;
	return 0;
}

void target_unlock(struct target *target)
{
	if (target->locked && !target->tree)
		namei_unlock_item(target->n, target->id);
	if (target->calmed || (target->locked && target->tree))
		lifecycle_unlock(target->n->lifecycle);
	target->locked = target->calmed = false;
}

/* In the order of locks: the item's is given up for a moment. */
static void target_calm(struct target *target)
{
	if (target->calmed || (target->locked && target->tree))
		return;
	if (target->locked)
		namei_unlock_item(target->n, target->id);
	lifecycle_lock(target->n->lifecycle);
	if (target->locked)
		namei_lock_item(target->n, target->id);
	target->calmed = true;
}

bool target_retry(struct target *target, struct store_retry *retry, int *result)
{
	if (!store_retry(retry, result))
		return false;
	if (target->calmed && target->lost) {
		*result = -EAGAIN; /* nothing moves, and yet it is not there: target_result */
		return false;
	}
	if (retry->tries >= NAMEI_CALM_AFTER)
		target_calm(target);
	return true;
}

/* ---- edits ---------------------------------------------------------------- */

static void edit_release(struct edit *e)
{
	inode_release(&e->inode);
	buffer_release(&e->content);
	buffer_release(&e->xattrs);
	store_value_release(&e->xattrs_apart);
	transaction_release(&e->transaction);
}

/* Sizes count as live while the file has a live name. */
static void edit_count_bytes(struct edit *e)
{
	const struct item *item = &e->inode.item;
	int64_t delta = (int64_t)(item->size - e->size_before);

	if (!S_ISREG(item->mode) || delta == 0)
		return;
	if (e->inode.nlink)
		transaction_count_add(&e->transaction, COUNTER_LIVE_BYTES, delta);
	else
		transaction_count_add(&e->transaction, COUNTER_TRASH_BYTES, delta);
}

static int edit_commit(struct namei *n, struct edit *e)
{
	uint64_t version;
	int result;

	edit_count_bytes(e);
	edit_place_xattrs(e);
	inode_put(&e->transaction, n, &e->inode);
	result = tree_commit(&e->transaction, n->store,
			     e->releasing ? STORE_RELEASING : STORE_GROWING, &version);
	if (result)
		return result;
	if (e->inode.item.flags & ITEM_REFERENCE)
		e->inode.link_version = version;
	else
		e->inode.name_version = version;
	e->inode.item.version = version;
	return 0;
}

/* Hands out the attributes; content and xattrs may point into the edit and stay behind. */
static void edit_give(struct edit *e, struct inode *ret_inode)
{
	*ret_inode = e->inode;
	ret_inode->item.content = NULL;
	ret_inode->item.content_size = 0;
	ret_inode->item.xattrs = NULL;
	ret_inode->item.xattrs_size = 0;
	memset(&e->inode.value, 0, sizeof(e->inode.value));
	memset(&e->inode.link_value, 0, sizeof(e->inode.link_value));
}

static int edit_once(struct target *target, edit_step step, void *data, struct inode *ret_inode)
{
	_cleanup_(edit_release) struct edit e = { 0 };
	int result = target_load(target, false, &e.inode);

	if (result)
		return result;
	e.size_before = e.inode.item.size;
	result = step(target->n, &e, data);
	if (result == 0)
		result = edit_commit(target->n, &e);
	else if (result == EDIT_UNCHANGED)
		result = 0;
	if (result == 0 && ret_inode)
		edit_give(&e, ret_inode);
	return namei_error(result);
}

int edit_run(struct target *target, edit_step step, void *data, struct inode *ret_inode)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = edit_once(target, step, data, ret_inode);
	while (target_retry(target, &retry, &result));
	return target_result(target, result);
}

void edit_touch(struct namei *n, struct edit *e)
{
	e->inode.item.mtime = e->inode.item.ctime = tree_time(namei_now_ns(n));
}

int edit_kill_privileges(struct namei *n, struct edit *e)
{
	struct item *item = &e->inode.item;
	const uint8_t *list, *value;
	size_t size, value_size;
	int result;

	item->mode &= ~(uint32_t)S_ISUID;
	if (item->mode & S_IXGRP)
		item->mode &= ~(uint32_t)S_ISGID;
	if (item->xattrs_size == 0 && !(item->flags & ITEM_XATTR_APART))
		return 0;
	result = edit_xattrs(n, e, &list, &size);
	if (result)
		return result;
	result = xattr_find(list, size, "security.capability", &value, &value_size);
	return result > 0 ? edit_set_xattr(n, e, "security.capability", NULL, 0) : result;
}
