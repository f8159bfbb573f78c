/*
 * entries.c - what the trash shows: which deleted items are visible, until
 * when, and under which names.
 *
 * A name belongs to the newest deletion that bore it; older ones carry their
 * time. A listing runs through the deleted items backwards, so that the first
 * of each name is the newest and nothing need be kept in memory, however often
 * one name was deleted. Every form of a name that this file gives out leads
 * back to the same entry through lifecycle_find.
 *
 * Invariant: nothing is shown after its effective expiry, whether or not the
 * sweeper has run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

#define LIST_PAGE 256 /* rows of one query */

void entry_release(struct entry *e)
{
	if (!e)
		return;
	store_value_release(&e->value);
	memset(&e->item, 0, sizeof(e->item));
}

/* ---- visibility --------------------------------------------------------- */

/* Sets *ret_expires_ns; whether it shows. */
static bool entry_visible(struct lifecycle *l, const struct within *around, const struct item *item,
			  enum key_state state, int64_t *ret_expires_ns)
{
	struct within w = *around;

	if (state == KEY_DEL)
		w = within_enter(around, item->id, &item->deletion);
	*ret_expires_ns = w.expires_ns;
	return within_shows(&w, lifecycle_now_ns(l)) &&
	       !(state == KEY_DEL && item->deletion.cause == ITEM_TEMPORARY);
}

int lifecycle_visibility(struct lifecycle *l, const struct place *at, int64_t *ret_expires_ns,
			 bool *ret_visible)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct within around;
	struct item item;
	int r;

	r = record_get_item(lifecycle_store(l), at, true, &value, &item);
	if (r)
		return r == STORE_ABSENT ? -ENOENT : r;
	r = within_load(l, at->directory, &around);
	if (r)
		return r;
	*ret_visible = entry_visible(l, &around, &item, at->state, ret_expires_ns);
	return 0;
}

/*
 * Whether a listing shows something under exactly this name already: a deleted
 * item, or a live one inside a deleted directory.
 */
static int literal_taken(struct lifecycle *l, const struct within *around, uint64_t directory,
			 const char *name, bool *ret_taken);

/* ---- single entries ------------------------------------------------------ */

/* A reference shows its file's attributes; what is its own (place, deletion) stays. */
static int merge_link(struct lifecycle *l, struct entry *e)
{
	struct store_value value = { 0 };
	struct item link;
	int r;

	if (!(e->item.flags & ITEM_REFERENCE))
		return 0;
	r = record_get_link(lifecycle_store(l), e->item.id, true, &value, &link);
	if (r)
		return r == STORE_ABSENT ? -EBADMSG : r;
	link.deletion = e->item.deletion;
	link.flags |= e->item.flags & (ITEM_REFERENCE | ITEM_DELETION);
	memcpy(link.name, e->item.name, sizeof(link.name));
	store_value_release(&e->value);
	e->item = link;
	e->value = value;
	return 0;
}

/* Makes the entry one that can only be removed. */
static int entry_damaged(struct lifecycle *l, const struct within *around, const struct damaged *d,
			 const char *shown, struct entry *e)
{
	int r;

	*e = (struct entry){ .at = d->at, .damaged = true };
	e->expires_ns = around->expires_ns;
	snprintf(e->shown, sizeof(e->shown), "%s", shown);
	r = damaged_stand_in(lifecycle_store(l), d, &e->item);
	return r ? r : within_shows(around, lifecycle_now_ns(l)) ? 0 : STORE_ABSENT;
}

static int place_damaged(struct lifecycle *l, const struct within *around, const struct place *at,
			 const char *shown, struct entry *e)
{
	struct damaged d;
	struct key key;
	int r;

	key_item(store_codec(lifecycle_store(l)), at, &key);
	r = damaged_load(lifecycle_store(l), &key, &d);
	return r ? r : entry_damaged(l, around, &d, shown, e);
}

/* A name whose LINK cannot be read keeps its own id, type and place. */
static void link_damaged(struct entry *e)
{
	e->damaged = true;
	e->item.mode &= (uint32_t)S_IFMT;
	e->item.size = 1;
}

/* Fills `e` from a place if it shows. 0, STORE_ABSENT (not there or hidden), negative errno. */
static int entry_load(struct lifecycle *l, const struct within *around, const struct place *at,
		      const char *shown, struct entry *e)
{
	int r;

	*e = (struct entry){ .at = *at };
	r = record_get_item(lifecycle_store(l), at, true, &e->value, &e->item);
	if (damaged_is(r))
		return place_damaged(l, around, at, shown, e);
	if (r)
		return r;
	if (entry_visible(l, around, &e->item, at->state, &e->expires_ns)) {
		snprintf(e->shown, sizeof(e->shown), "%s", shown);
		r = merge_link(l, e);
		if (damaged_is(r)) {
			link_damaged(e);
			r = 0;
		}
	} else {
		r = STORE_ABSENT;
	}
	if (r)
		entry_release(e);
	return r;
}

/* The newest visible deletion of a name. */
static int find_newest(struct lifecycle *l, const struct within *around, uint64_t directory,
		       const char *name, struct entry *e)
{
	struct store *s = lifecycle_store(l);
	struct store_query query = { .limit = 8, .reverse = true, .attributes_only = true };
	struct key after;
	int r = STORE_ABSENT;

	key_range_deleted_name(store_codec(s), directory, name, &query.range);
	for (bool more = true; more && r == STORE_ABSENT; query.after = &after) {
		struct store_page page = { 0 };
		int failed = store_query(s, &query, &page);

		if (failed)
			return failed;
		for (size_t i = 0; i < page.count && r == STORE_ABSENT; i++) {
			struct place at;
			struct item item;

			/* One that cannot be read is found by its time alone: it hides no other. */
			if (!record_row_item(s, &page.rows[i], &at, &item))
				r = entry_load(l, around, &at, name, e);
		}
		more = page.more;
		after = page.next;
		store_page_release(&page);
	}
	return r;
}

static int row_damaged(struct lifecycle *l, const struct within *around,
		       const struct store_row *row, const char *shown, struct entry *e)
{
	struct damaged d;
	int r = damaged_load_row(lifecycle_store(l), row, &d);

	return r ? r : entry_damaged(l, around, &d, shown, e);
}

/* By its time: only if exactly one deletion is meant. */
static int find_timed(struct lifecycle *l, const struct within *around, uint64_t directory,
		      const char *shown, struct entry *e)
{
	struct store *s = lifecycle_store(l);
	struct store_query query = { .limit = 2, .attributes_only = true };
	struct place from = { .directory = directory, .state = KEY_DEL }, to = from;
	struct store_page page = { 0 };
	struct place at;
	struct item item;
	int r;

	if (!entry_name_parse(shown, from.name, &from.seq, &to.seq))
		return STORE_ABSENT;
	damaged_unshow(store_codec(s), from.name, from.name);
	memcpy(to.name, from.name, sizeof(to.name));
	key_item(store_codec(s), &from, &query.range.from);
	key_item(store_codec(s), &to, &query.range.to);
	r = store_query(s, &query, &page);
	if (r)
		return r;
	r = STORE_ABSENT;
	if (page.count == 1 && !page.more) {
		r = record_row_item(s, &page.rows[0], &at, &item);
		r = damaged_is(r) ? row_damaged(l, around, &page.rows[0], shown, e) :
		    r		  ? r :
				    entry_load(l, around, &at, shown, e);
	}
	store_page_release(&page);
	return r;
}

static int find_shadow(struct lifecycle *l, uint64_t directory, const char *name, struct entry *e)
{
	struct store *s = lifecycle_store(l);
	struct place at = { .directory = directory, .state = KEY_ACT };
	struct shadow shadow;
	uint64_t version;
	int r;

	r = record_get_shadow(s, directory, name, &shadow, &version);
	if (r)
		return r;
	memcpy(at.name, shadow.name, sizeof(at.name));
	*e = (struct entry){ .at = at, .shadow = true, .expires_ns = ITEM_FOREVER };
	r = record_get_item(s, &at, true, &e->value, &e->item);
	if (!r && e->item.id != shadow.directory) {
		entry_release(e);
		return STORE_ABSENT;
	}
	snprintf(e->shown, sizeof(e->shown), "%s", at.name);
	return r;
}

int lifecycle_find(struct lifecycle *l, uint64_t directory, const char *shown, struct entry *ret_entry)
{
	struct place live = { .directory = directory, .state = KEY_ACT };
	size_t length = strlen(shown);
	struct within around;
	int r;

	r = within_load(l, directory, &around);
	if (r)
		return r;
	r = STORE_ABSENT;
	if (length <= KEY_NAME_MAX) {
		memcpy(live.name, shown, length + 1);
		if (around.inside)
			r = entry_load(l, &around, &live, shown, ret_entry);
		if (r == STORE_ABSENT && around.inside &&
		    damaged_unshow(store_codec(lifecycle_store(l)), shown, live.name))
			r = place_damaged(l, &around, &live, shown, ret_entry);
		if (r == STORE_ABSENT)
			r = find_newest(l, &around, directory, shown, ret_entry);
	}
	if (r == STORE_ABSENT)
		r = find_timed(l, &around, directory, shown, ret_entry);
	if (r == STORE_ABSENT && !around.inside && length <= KEY_NAME_MAX)
		r = find_shadow(l, directory, shown, ret_entry);
	return r == STORE_ABSENT ? -ENOENT : r;
}

static int literal_taken(struct lifecycle *l, const struct within *around, uint64_t directory,
			 const char *name, bool *ret_taken)
{
	struct place live = { .directory = directory, .state = KEY_ACT };
	struct entry e = { 0 };
	size_t length = strlen(name);
	int r = STORE_ABSENT;

	if (length <= KEY_NAME_MAX) {
		memcpy(live.name, name, length + 1);
		if (around->inside)
			r = entry_load(l, around, &live, name, &e);
		if (r == STORE_ABSENT)
			r = find_newest(l, around, directory, name, &e);
	}
	if (r && r != STORE_ABSENT)
		return r;
	*ret_taken = !r;
	entry_release(&e);
	return 0;
}

/* ---- listing -------------------------------------------------------------- */

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
	r = literal_taken(g->l, &g->around, g->directory, e->shown, &taken);
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
			r = merge_link(g->l, &e);
		if (damaged_is(r)) {
			link_damaged(&e);
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
	r = merge_link(g->l, &e);
	if (damaged_is(r)) {
		link_damaged(&e);
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
	r = literal_taken(g->l, &g->around, g->directory, shadow.name, &taken);
	if (r || taken)
		return r;
	r = find_shadow(g->l, g->directory, shadow.name, &e);
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
