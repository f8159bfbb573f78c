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

/* The deletion seen last on the way up, which those above it may join. */
struct group {
	bool any;
	bool first; /* it is still the one that the item went with */
	struct deletion deletion;
};

static bool deletion_hides(const struct deletion *d)
{
	return d->flags & (DELETION_DOOMED | DELETION_PURGED);
}

/* Nothing above belongs to the group any more. */
static void group_end(const struct group *g, int64_t now_ns, struct standing *st)
{
	if (!g->any)
		return;
	if (g->deletion.expires_ns <= now_ns &&
	    !(g->deletion.flags & DELETION_PINNED && g->deletion.destroy_ns > now_ns))
		st->visible = false;
}

static void group_add(struct group *g, const struct place *at, const struct item *item,
		      int64_t now_ns, struct standing *st)
{
	const struct deletion *d = &item->deletion;
	bool joins = !g->any || (d->batch && d->batch == g->deletion.batch);

	if (!joins) {
		group_end(g, now_ns, st);
		g->first = false;
	} else if (!g->any) {
		g->first = true;
	}
	g->any = true;
	g->deletion = *d;
	st->deleted = true;
	if (deletion_hides(d))
		st->visible = false;
	if (g->first) {
		st->top = *at;
		st->top_id = item->id;
		st->deletion = *d;
		st->expires_ns = d->expires_ns;
		st->pinned = d->flags & DELETION_PINNED && d->destroy_ns > now_ns;
	}
}

static int standing_climb(struct lifecycle *l, uint64_t directory, struct group *g, int64_t now_ns,
			  struct standing *st)
{
	struct tree_directory d;
	struct guard guard;
	int result;

	while (directory != KEY_ID_NONE) {
		result = record_get_guard(l->store, directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		if (guard.at.state == KEY_DEL) {
			result = tree_load(l->store, directory, &d);
			if (result)
				return result;
			guard = d.guard;
			if (guard.at.state == KEY_DEL)
				group_add(g, &guard.at, &d.own, now_ns, st);
			tree_release(&d);
		}
		directory = guard.at.directory;
	}
	return 0;
}

int standing_load(struct lifecycle *l, const struct place *at, const struct item *item,
		  struct standing *ret)
{
	struct standing st = { .visible = true, .expires_ns = ITEM_FOREVER };
	int64_t now_ns = lifecycle_now_ns(l);
	struct group g = { 0 };
	int result;

	if (at->state == KEY_DEL) {
		group_add(&g, at, item, now_ns, &st);
		if (item->deletion.cause == ITEM_TEMPORARY)
			st.visible = false;
	}
	result = standing_climb(l, at->directory, &g, now_ns, &st);
	if (result)
		return result;
	group_end(&g, now_ns, &st);
	*ret = st;
	return 0;
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
