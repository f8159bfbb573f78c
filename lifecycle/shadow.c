/*
 * shadow.c - SHD rows: which live sub-directories have something deleted below.
 *
 * A mark may be wrong only by standing where nothing is left. It is set from the
 * top down before the deletion that needs it, so that whatever a crash leaves,
 * a marked directory is marked all the way up; and it is removed from the bottom
 * up, in a transaction that a deletion in between makes fail.
 */
#include "lifecycle/internal.h"

static bool is_marked(const struct tree_directory *d)
{
	return d->id == KEY_ID_ROOT || d->own.flags & ITEM_SHADOWED;
}

/* From `after` on, or all of it. */
static int rest_is_empty(struct store *s, const struct key_range *range, const struct key *after)
{
	struct store_query query = { .range = *range, .after = after, .limit = 1, .attributes_only = true };
	struct store_page page = { 0 };
	struct key next;
	bool more = true;
	int result;

	/* A page may be short, even empty, and go on. */
	do {
		result = store_query(s, &query, &page);
		if (result)
			return result;
		result = page.count == 0;
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	} while (result && more);
	return result;
}

int range_is_empty(struct store *s, const struct key_range *range)
{
	return rest_is_empty(s, range, NULL);
}

int shadow_needed(struct lifecycle *l, uint64_t directory, const struct place *gone)
{
	struct key_range range;
	struct key key;
	int result = 1;

	key_range_deleted(directory, &range);
	if (gone && gone->directory == directory) {
		key_item(store_codec(l->store), gone, &key);
		result = rest_is_empty(l->store, &range, &key);
	}
	if (result == 1)
		result = range_is_empty(l->store, &range);
	if (result != 1)
		return result ? result : 1;
	key_range_shadows(directory, &range);
	result = range_is_empty(l->store, &range);
	return result < 0 ? result : !result;
}

/* ---- marking -------------------------------------------------------------- */

int ids_push(struct ids *ids, uint64_t id)
{
	uint64_t *grown;
	size_t capacity;

	if (ids->count == ids->capacity) {
		capacity = util_max(2 * ids->capacity, (size_t)32);
		grown = reallocarray(ids->items, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ids->items = grown;
		ids->capacity = capacity;
	}
	ids->items[ids->count++] = id;
	return 0;
}

/* Collects a directory and those above it up to, not including, the first that is marked. */
static int unmarked_chain(struct lifecycle *l, uint64_t directory, struct ids *ids)
{
	struct tree_directory d;
	bool marked;
	int result;

	for (;;) {
		result = tree_load(l->store, directory, &d);
		if (result)
			return result;
		/* What lies in a deleted directory is shown by that one. */
		marked = is_marked(&d) || !tree_is_live(&d);
		directory = d.guard.at.directory;
		tree_release(&d);
		if (marked)
			return 0;
		result = ids_push(ids, d.id);
		if (result)
			return result;
	}
}

static int mark_one(struct lifecycle *l, uint64_t directory)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct tree_directory d, parent;
	struct shadow shadow = { .directory = directory };
	int result = tree_load(l->store, directory, &d);

	if (result)
		return result;
	if (is_marked(&d) || !tree_is_live(&d)) {
		tree_release(&d);
		return 0;
	}
	result = tree_load(l->store, d.guard.at.directory, &parent);
	if (!result) {
		memcpy(shadow.name, d.guard.at.name, sizeof(shadow.name));
		d.own.flags |= ITEM_SHADOWED;
		tree_put_own(&t, l->store, &d);
		transaction_put_shadow(&t, l->store, parent.id, &shadow, 0);
		tree_check_guard(&t, &d);
		tree_check_guard(&t, &parent);
		result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
		tree_release(&parent);
	}
	tree_release(&d);
	return result;
}

int lifecycle_mark_shadows(struct lifecycle *l, uint64_t directory)
{
	struct ids ids = { 0 };
	int result = unmarked_chain(l, directory, &ids);

	for (size_t i = ids.count; i-- > 0 && !result;) {
		struct store_retry retry = { 0 };

		do
			result = mark_one(l, ids.items[i]);
		while (store_retry(&retry, &result));
	}
	free(ids.items);
	return result;
}

int shadow_delete(struct lifecycle *l, struct transaction *t, const struct place *at)
{
	struct shadow shadow;
	uint64_t version;
	struct key key;
	int result = record_get_shadow(l->store, at->directory, at->name, &shadow, &version);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	key_shadow(store_codec(l->store), at->directory, at->name, &key);
	transaction_delete(t, &key, STORE_IF_VERSION, version);
	return 0;
}

/* ---- pruning --------------------------------------------------------------- */

/* The guard is put as it is: whoever adds a shadow in this directory checks it. */
static void prune_add(struct lifecycle *l, struct transaction *t, struct tree_directory *d,
		      uint64_t shadow_version)
{
	struct key_range range;
	struct key key;

	d->own.flags &= ~(uint32_t)ITEM_SHADOWED;
	/* Of whom a deletion was hidden from says nothing any more: none is left. */
	d->own.directory.trash_mask = 0777;
	tree_put_own(t, l->store, d);
	transaction_put_guard(t, d->id, &d->guard, d->guard.version);
	key_shadow(store_codec(l->store), d->guard.at.directory, d->guard.at.name, &key);
	transaction_delete(t, &key, STORE_IF_VERSION, shadow_version);
	key_guard(d->id, &key);
	key_range_deleted(d->id, &range);
	transaction_empty(t, &range, &key);
	key_range_shadows(d->id, &range);
	transaction_empty(t, &range, &key);
}

#define PRUNED 3

/* PRUNED, *ret_parent is next; 0: the mark stays. */
static int prune_one(struct lifecycle *l, uint64_t directory, const struct place *gone, uint64_t *ret_parent)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct tree_directory d;
	struct shadow shadow;
	uint64_t version;
	int result = tree_load(l->store, directory, &d);

	if (result)
		return result == -ENOENT ? 0 : result;
	if (d.id == KEY_ID_ROOT || !tree_is_live(&d) || !(d.own.flags & ITEM_SHADOWED))
		goto out;
	result = shadow_needed(l, directory, gone);
	if (result) {
		result = result < 0 ? result : 0;
		goto out;
	}
	result = record_get_shadow(l->store, d.guard.at.directory, d.guard.at.name, &shadow, &version);
	if (result) {
		result = result == STORE_ABSENT ? 0 : result;
		goto out;
	}
	prune_add(l, &t, &d, version);
	result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
	if (!result) {
		*ret_parent = d.guard.at.directory;
		result = PRUNED;
	}
out:
	tree_release(&d);
	return result;
}

int shadow_prune(struct lifecycle *l, uint64_t directory, const struct place *gone)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = prune_one(l, directory, gone, &directory);
	while (result == PRUNED || store_retry(&retry, &result));
	return result;
}
