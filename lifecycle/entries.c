/*
 * entries.c - one entry of the trash: whether it is visible, until when, and
 * which one a name means.
 *
 * A name belongs to the newest deletion that bore it; older ones carry their
 * time. Every form of a name that a listing gives out (entry-list.c) leads back
 * to the same entry through lifecycle_find.
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

void entry_release(struct entry *e)
{
	if (!e)
		return;
	store_value_release(&e->value);
	memset(&e->item, 0, sizeof(e->item));
}

/* ---- visibility --------------------------------------------------------- */

/* Sets *ret_expires_ns; whether it shows. */
bool entry_visible(struct lifecycle *l, const struct within *around, const struct item *item,
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

/* ---- single entries ------------------------------------------------------ */

/* A reference shows its file's attributes; what is its own (place, deletion) stays. */
int entry_merge_link(struct lifecycle *l, struct entry *e)
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
int entry_damaged(struct lifecycle *l, const struct within *around, const struct damaged *d,
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
void entry_link_damaged(struct entry *e)
{
	e->damaged = true;
	e->item.mode &= (uint32_t)S_IFMT;
	e->item.size = 1;
}

/* Fills `e` from a place if it shows. 0, STORE_ABSENT (not there or hidden), negative errno. */
int entry_load(struct lifecycle *l, const struct within *around, const struct place *at,
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
		r = entry_merge_link(l, e);
		if (damaged_is(r)) {
			entry_link_damaged(e);
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

int entry_find_shadow(struct lifecycle *l, uint64_t directory, const char *name, struct entry *e)
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
		r = entry_find_shadow(l, directory, shown, ret_entry);
	return r == STORE_ABSENT ? -ENOENT : r;
}

int entry_name_taken(struct lifecycle *l, const struct within *around, uint64_t directory,
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
