/*
 * entry-list.c - what a view lists, and under which names.
 *
 * The listing runs through the deleted items backwards, so that the first of
 * each name is the newest and nothing need be kept in memory, however often one
 * name was deleted.
 */
#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

#define LIST_PAGE 256 /* rows of one query */

struct listing {
	struct lifecycle *l;
	struct store *store;
	struct within around;
	uint64_t directory;
	bool (*row)(void *data, const struct entry *entry, const struct key *key);
	void *data;
	bool stopped;
	bool damaged; /* something could not be read: told at the end, after all that can be */
	/* The group of deletions of one name that is being passed, newest first. */
	char group[KEY_NAME_MAX + 1];
	uint64_t newer_seq; /* of the row passed before in this group, 0 = none */
	bool named; /* the plain name is taken: by a newer one, or by a live item */
};

static void listing_row(struct listing *g, struct entry *e, const struct store_row *row)
{
	struct key key;

	if (key_from_bytes(store_codec(g->store), row->key, row->key_size, &key))
		g->damaged = true;
	else if (g->row(g->data, e, &key))
		g->stopped = true;
}

/* Gives the entry its name: plain, or with its time. */
static int listing_name(struct listing *g, struct entry *e, uint64_t older_seq)
{
	unsigned digits = entry_name_digits(e->at.seq, g->newer_seq, older_seq);
	bool taken = false;
	int r;

	if (!g->named) {
		g->named = true;
		memcpy(e->shown, e->at.name, sizeof(e->at.name));
		return 0;
	}
	entry_name_format(e->at.name, e->at.seq, digits, e->shown);
	r = entry_name_taken(g->l, &g->around, g->directory, e->shown, &taken);
	if (!r && taken && digits < 9)
		entry_name_format(e->at.name, e->at.seq, 9, e->shown);
	return r;
}

static int listing_enter_group(struct listing *g, const char *name)
{
	struct place live = { .directory = g->directory, .state = KEY_ACT };
	struct entry e = { 0 };
	int r;

	memcpy(g->group, name, sizeof(g->group));
	g->newer_seq = 0;
	g->named = false;
	if (!g->around.inside)
		return 0;
	memcpy(live.name, name, sizeof(live.name));
	r = entry_load(g->l, &g->around, &live, name, &e);
	g->named = !r;
	entry_release(&e);
	return r == STORE_ABSENT ? 0 : r;
}

/* One deleted row; `older_seq` is that of the next row if it bears the same name. */
static int listing_deleted(struct listing *g, const struct store_row *row, const struct place *at,
			   const struct item *item, uint64_t older_seq)
{
	struct entry e = { .at = *at, .item = *item };
	int r = 0;

	if (strcmp(at->name, g->group))
		r = listing_enter_group(g, at->name);
	if (!r && entry_visible(g->l, &g->around, item, KEY_DEL, &e.expires_ns)) {
		r = listing_name(g, &e, older_seq);
		if (!r)
			r = entry_merge_link(g->l, &e);
		if (damaged_is(r)) {
			entry_link_damaged(&e);
			r = 0;
		}
		if (!r)
			listing_row(g, &e, row);
		store_value_release(&e.value);
	}
	g->newer_seq = at->seq;
	return r;
}

static int listing_live(struct listing *g, const struct store_row *row, const struct place *at,
			const struct item *item)
{
	struct entry e = { .at = *at, .item = *item };
	int r;

	if (!entry_visible(g->l, &g->around, item, KEY_ACT, &e.expires_ns))
		return 0;
	memcpy(e.shown, at->name, sizeof(at->name));
	r = entry_merge_link(g->l, &e);
	if (damaged_is(r)) {
		entry_link_damaged(&e);
		r = 0;
	}
	if (!r)
		listing_row(g, &e, row);
	store_value_release(&e.value);
	return r;
}

/*
 * What cannot be read is listed all the same, so that it can be removed: a
 * deleted one under its name and time, so that it takes no other's place.
 */
static int listing_damaged(struct listing *g, const struct store_row *row)
{
	char name[KEY_NAME_MAX + 1];
	struct damaged d;
	struct entry e;
	int r = damaged_load_row(g->store, row, &d);

	if (r)
		return r;
	damaged_show(&d.at, name);
	r = entry_damaged(g->l, &g->around, &d, name, &e);
	if (!r && d.at.state == KEY_DEL)
		entry_name_format(name, d.at.seq, 9, e.shown);
	if (!r)
		listing_row(g, &e, row);
	return r == STORE_ABSENT ? 0 : r;
}

static int listing_shadow(struct listing *g, const struct store_row *row)
{
	struct shadow shadow;
	struct entry e = { 0 };
	bool taken;
	int r;

	r = row->damaged ? -EBADMSG : record_decode_shadow(&row->value, &shadow);
	if (r) {
		g->damaged = true;
		return 0;
	}
	r = entry_name_taken(g->l, &g->around, g->directory, shadow.name, &taken);
	if (r || taken)
		return r;
	r = entry_find_shadow(g->l, g->directory, shadow.name, &e);
	if (!r)
		listing_row(g, &e, row);
	entry_release(&e);
	return r == STORE_ABSENT ? 0 : r;
}

/*
 * Decodes the seq of the row after `i` if it is of the same name; pages end at
 * any row, so it may need a read of its own.
 */
static uint64_t older_in_group(struct listing *g, const struct store_page *page, size_t i,
			       const struct place *at)
{
	struct key_parts parts;

	if (i + 1 < page->count) {
		const struct store_row *next = &page->rows[i + 1];

		if (!key_parse(store_codec(g->store), next->key, next->key_size, &parts) &&
		    key_name_matches(store_codec(g->store), &parts, at->name))
			return parts.seq;
	} else if (page->more) {
		struct store_query query = { .limit = 1, .reverse = true, .attributes_only = true };
		struct store_page one = { 0 };
		struct key here;
		uint64_t seq = 0;

		key_range_deleted_name(store_codec(g->store), at->directory, at->name, &query.range);
		key_item(store_codec(g->store), at, &here);
		query.after = &here;
		if (!store_query(g->store, &query, &one) && one.count &&
		    !key_parse(store_codec(g->store), one.rows[0].key, one.rows[0].key_size, &parts))
			seq = parts.seq;
		store_page_release(&one);
		return seq;
	}
	return 0;
}

static int listing_page(struct listing *g, const struct store_page *page, enum key_kind kind,
			enum key_state state)
{
	int r = 0;

	for (size_t i = 0; i < page->count && !r && !g->stopped; i++) {
		const struct store_row *row = &page->rows[i];
		struct place at;
		struct item item;

		if (kind == KEY_KIND_SHADOW) {
			r = listing_shadow(g, row);
		} else if (record_row_item(g->store, row, &at, &item)) {
			r = listing_damaged(g, row);
		} else if (state == KEY_ACT) {
			r = listing_live(g, row, &at, &item);
		} else {
			r = listing_deleted(g, row, &at, &item, older_in_group(g, page, i, &at));
		}
	}
	return r;
}

static int listing_phase(struct listing *g, const struct key_range *range, const struct key *after,
			 enum key_kind kind, enum key_state state)
{
	struct store_query query = {
		.range = *range,
		.after = after,
		.limit = LIST_PAGE,
		.reverse = kind == KEY_KIND_ITEM && state == KEY_DEL,
		.attributes_only = true,
	};
	struct key next;
	bool more = true;
	int r = 0;

	while (more && !r && !g->stopped) {
		struct store_page page = { 0 };

		r = store_query(g->store, &query, &page);
		if (r)
			break;
		r = listing_page(g, &page, kind, state);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return r;
}

/*
 * Continuing inside a group: the row at `after` was shown, so whatever follows
 * under its name is older.
 */
static void listing_resume(struct listing *g, const struct key_parts *parts, const struct key *after)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = 1, .reverse = true, .attributes_only = true, .after = after };
	struct place at;
	struct item item;

	key_range_deleted(g->directory, &query.range);
	/*
	 * The name of a sealed key is known only from a row that bears it: the next one, if there
	 * is one.
	 */
	if (store_query(g->store, &query, &page) || !page.count ||
	    record_row_item(g->store, &page.rows[0], &at, &item) ||
	    !key_name_matches(store_codec(g->store), parts, at.name))
		return;
	memcpy(g->group, at.name, sizeof(g->group));
	g->newer_seq = parts->seq;
	g->named = true;
}

int lifecycle_list(struct lifecycle *l, uint64_t directory, const struct key *after,
		   bool (*row)(void *data, const struct entry *entry, const struct key *key), void *data)
{
	struct listing g = {
		.l = l, .store = lifecycle_store(l), .directory = directory, .row = row, .data = data
	};
	struct key_parts parts = { .kind = KEY_KIND_ITEM, .state = KEY_ACT };
	struct key_range range;
	int r;

	r = within_load(l, directory, &g.around);
	if (r)
		return r;
	if (after && key_parse(store_codec(g.store), after->bytes, after->size, &parts))
		return -EINVAL;
	if (g.around.inside && parts.kind == KEY_KIND_ITEM && parts.state == KEY_ACT) {
		key_range_live(directory, &range);
		r = listing_phase(&g, &range, after, KEY_KIND_ITEM, KEY_ACT);
		after = NULL;
	}
	if (!r && !g.stopped && parts.kind == KEY_KIND_ITEM) {
		if (after)
			listing_resume(&g, &parts, after);
		key_range_deleted(directory, &range);
		r = listing_phase(&g, &range, after, KEY_KIND_ITEM, KEY_DEL);
		after = NULL;
	}
	if (!r && !g.stopped && !g.around.inside) {
		key_range_shadows(directory, &range);
		r = listing_phase(&g, &range, after, KEY_KIND_SHADOW, KEY_ACT);
	}
	return r ? r : g.damaged && !g.stopped ? -EIO : 0;
}
