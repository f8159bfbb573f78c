/*
 * namei-link.c - link(2).
 *
 * The first further name turns the item into a LINK record and two references.
 * It stays so when names go again: that would save a read and cost a rule.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <sys/stat.h>

struct link {
	struct namei *n;
	struct target from;
	struct place to;
	struct inode inode;
	struct tree_directory parent;
	struct transaction transaction;
};

static void link_reset(struct link *l)
{
	inode_release(&l->inode);
	tree_release(&l->parent);
	memset(&l->parent, 0, sizeof(l->parent));
	transaction_reset(&l->transaction);
}

static void link_release(struct link *l)
{
	link_reset(l);
	transaction_release(&l->transaction);
}

static int link_read(struct link *l)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item existing;
	int result = tree_load(l->n->store, l->to.directory, &l->parent);

	if (result)
		return result;
	if (!tree_is_live(&l->parent))
		return -ENOENT;
	result = lifecycle_check_live(l->n->lifecycle, l->to.directory);
	if (result)
		return result;
	result = record_get_item(l->n->store, &l->to, true, &value, &existing);
	if (result == 0)
		return -EEXIST;
	if (result != STORE_ABSENT)
		return result;
	return target_load(&l->from, false, &l->inode);
}

static int link_check(const struct link *l)
{
	const struct item *item = &l->inode.item;

	/* The kernel names a file, not one of its names: the one we know may be deleted while others live. */
	if (l->inode.at.state != KEY_ACT && !(item->flags & ITEM_REFERENCE && l->inode.nlink > 0))
		return -EROFS;
	if (S_ISDIR(item->mode))
		return -EPERM;
	if (l->inode.nlink == 0)
		return -ENOENT;
	return l->inode.nlink >= NAMEI_LINK_MAX ? -EMLINK : 0;
}

/* The name's item becomes a reference, what it was the LINK. */
static void link_convert(struct link *l)
{
	struct item reference;

	inode_make_reference(&l->inode, l->inode.at.name, &reference);
	transaction_put_item(&l->transaction, l->n->store, &l->inode.at, &reference,
			     l->inode.name_version);
	l->inode.item.flags |= ITEM_REFERENCE;
	l->inode.item.links_live = l->inode.item.links_total = 1;
	l->inode.link_version = 0;
}

static void link_collect(struct link *l, int64_t now_ns)
{
	struct transaction *t = &l->transaction;
	struct item *item = &l->inode.item;
	struct item reference;

	if (!(item->flags & ITEM_REFERENCE))
		link_convert(l);
	item->links_live++;
	item->links_total++;
	item->ctime = tree_time(now_ns);
	inode_put(t, l->n, &l->inode);
	inode_make_reference(&l->inode, l->to.name, &reference);
	transaction_put_item(t, l->n->store, &l->to, &reference, 0);
	tree_touch(&l->parent, now_ns);
	tree_put_own(t, l->n->store, &l->parent);
	tree_check_guard(t, &l->parent);
	transaction_count_add(t, COUNTER_LIVE_ITEMS, 1);
}

static int link_once(struct link *l)
{
	uint64_t version;
	int result;

	link_reset(l);
	result = link_read(l);
	if (result == 0)
		result = link_check(l);
	if (result)
		return result;
	link_collect(l, namei_now_ns(l->n));
	result = tree_commit(&l->transaction, l->n->store, STORE_GROWING, &version);
	if (result)
		return result;
	l->inode.at = l->to;
	strcpy(l->inode.item.name, l->to.name);
	l->inode.name_version = l->inode.link_version = l->inode.item.version = version;
	inode_count_links(&l->inode);
	return 0;
}

static int link_run(struct link *l, uint64_t parent, const char *name, struct inode *ret_inode)
{
	unsigned tries = 0;
	int result = namei_check_name(name);

	if (result)
		return result;
	if (namei_is_reserved(l->n, parent, name))
		return -EEXIST;
	namei_place(&l->to, parent, name);
	do {
		struct store_retry retry = { 0 };

		lifecycle_lock(l->n->lifecycle);
		do
			result = link_once(l);
		while (store_retry(&retry, &result));
		lifecycle_unlock(l->n->lifecycle);
	} while (namei_made_room(l->n, result, &tries));
	if (result == 0 && ret_inode) {
		*ret_inode = l->inode;
		memset(&l->inode.value, 0, sizeof(l->inode.value));
		memset(&l->inode.link_value, 0, sizeof(l->inode.link_value));
	}
	return namei_error(result);
}

int namei_link(struct namei *n, const struct actor *actor, const struct place *from,
	       uint64_t parent, const char *name, struct inode *ret_inode)
{
	_cleanup_(link_release) struct link l = { .n = n };

	target_at(&l.from, n, from);
	return link_run(&l, parent, name, ret_inode);
}

int file_link(struct namei *n, const struct actor *actor, const struct file_locator *where,
	      uint64_t id, uint64_t parent, const char *name, struct inode *ret_inode)
{
	_cleanup_(link_release) struct link l = { .n = n };

	target_located(&l.from, n, where, id);
	return link_run(&l, parent, name, ret_inode);
}
