/*
 * standing.c - where an item stands in what was deleted.
 *
 * What went with a directory (was deleted in its batch, or was still in it) is
 * shown, expires and is destroyed with it: the top entry decides. Anything older
 * inside is an entry of its own, though hidden when what holds it is.
 */
#include "lifecycle/internal.h"

bool place_equal(const struct place *a, const struct place *b)
{
	return a->directory == b->directory && a->seq == b->seq && a->state == b->state &&
	       !strcmp(a->name, b->name);
}

/* The directory that something went with. STORE_CONFLICT: it is no longer in the trash. */
static int top_load(struct lifecycle *l, uint64_t id, struct standing *st)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	int result = tree_load(l->store, id, &d);

	if (result)
		return result == -ENOENT ? STORE_CONFLICT : result;
	if (tree_is_live(&d))
		return STORE_CONFLICT;
	st->top = d.guard.at;
	st->deletion = d.own.deletion;
	return 0;
}

static int standing_once(struct lifecycle *l, const struct place *at, const struct item *item,
			 struct standing *ret)
{
	struct standing st = { .expires_ns = ITEM_FOREVER };
	int64_t now_ns = lifecycle_now_ns(l);
	bool deleted = at->state == KEY_DEL;
	struct within w;
	int result = within_load(l, at->directory, &w);

	if (result)
		return result;
	if (deleted)
		w = within_enter(&w, item->id, &item->deletion);
	st.deleted = w.inside;
	st.visible = !w.hidden && w.kept_until_ns > now_ns &&
		     !(deleted && item->deletion.cause == ITEM_TEMPORARY);
	if (w.inside) {
		st.top_id = w.top;
		st.top = *at;
		st.deletion = item->deletion;
		if (!deleted || w.top != item->id)
			result = top_load(l, w.top, &st);
		st.expires_ns = st.deletion.expires_ns;
		st.pinned = st.deletion.flags & DELETION_PINNED && st.deletion.destroy_ns > now_ns;
	}
	if (!result)
		*ret = st;
	return result;
}

int standing_load(struct lifecycle *l, const struct place *at, const struct item *item,
		  struct standing *ret)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = standing_once(l, at, item, ret);
	while (store_retry(&retry, &result));
	return result == -EAGAIN ? -ENOENT : result;
}

int standing_joined(struct lifecycle *l, const struct place *at, const struct item *item, bool *ret_joined)
{
	uint64_t batch = item->deletion.batch;
	struct guard guard = { .at = *at };
	struct tree_directory d;
	int result;

	*ret_joined = false;
	while (batch && guard.at.directory != KEY_ID_NONE) {
		uint64_t directory = guard.at.directory;

		result = record_get_guard(l->store, directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		if (guard.at.state != KEY_DEL)
			continue;
		result = tree_load(l->store, directory, &d);
		if (result)
			return result;
		guard = d.guard;
		*ret_joined = guard.at.state == KEY_DEL && d.own.deletion.batch == batch;
		tree_release(&d);
		if (guard.at.state == KEY_DEL)
			return 0;
	}
	return 0;
}

int standing_row_item(struct lifecycle *l, const struct key *key, bool attributes_only,
		      struct place *ret_at, struct store_value *ret_value, struct item *ret_item)
{
	struct store_row row = { .key = key->bytes, .key_size = key->size };
	int result = store_get(l->store, key, attributes_only, &row.value);

	if (result)
		return result;
	result = record_row_item(l->store, &row, ret_at, ret_item);
	if (result) {
		store_value_release(&row.value);
		return result;
	}
	*ret_value = row.value;
	return 0;
}
