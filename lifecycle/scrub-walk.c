/*
 * scrub-walk.c - one pass of the scrub: the structure, then every item and every
 * byte of every file, in the order of their keys.
 *
 * What cannot be read is told and passed by: a part of the index that the disk
 * gives an error for, too, else a pass would never get beyond it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"
#include "lifecycle/scrub.h"

#define NOTE_NS (5 * MINUTE_NS) /* how often the position is written down */
#define ROW_BYTES 1024 /* what an item counts as */
#define ROWS 64 /* read at once */

/* ---- one item ------------------------------------------------------------------------ */

/* 0, -EINTR (stopped), -EBADMSG or -EIO (damaged), another negative errno. */
static int read_body(struct lifecycle *l, uint64_t body, uint8_t *block)
{
	uint64_t at = 0;
	int result = 0;

	while (!result) {
		result = store_body_seek(l->store, body, at, true, &at);
		if (result || at >= INT64_MAX)
			break;
		result = store_body_read(l->store, body, at, block, SCRUB_BLOCK);
		at += SCRUB_BLOCK;
		if (!result && scrub_pace(&l->scrub, SCRUB_BLOCK))
			result = -EINTR;
	}
	return result;
}

/* It may have gone, or become another, since the row was read. */
static bool is_still_damaged(struct lifecycle *l, const struct key *key)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };

	return damaged_is(store_get(l->store, key, false, &value));
}

static void damaged_row(struct lifecycle *l, const struct store_row *row)
{
	struct key_parts parts;
	struct place at = { 0 };
	struct key key;

	if (key_from_bytes(store_codec(l->store), row->key, row->key_size, &key) ||
	    !is_still_damaged(l, &key))
		return;
	if (key_parse(store_codec(l->store), row->key, row->key_size, &parts) ||
	    parts.kind != KEY_KIND_ITEM) {
		scrub_found(l, "(store)", "a record of the store cannot be read");
		return;
	}
	at = (struct place){ .directory = parts.id, .state = parts.state, .seq = parts.seq };
	key_unknown_name(store_codec(l->store), &parts, at.name);
	scrub_found_at(l, &at, "the item cannot be read");
}

static int scrub_row(struct lifecycle *l, const struct store_row *row, uint8_t *block)
{
	struct place at = { .state = KEY_ACT };
	struct key_parts parts;
	struct item item;
	char what[48];
	int result;

	if (row->damaged) {
		damaged_row(l, row);
		return 0;
	}
	if (key_parse(store_codec(l->store), row->key, row->key_size, &parts))
		return 0;
	if (parts.kind == KEY_KIND_ITEM)
		result = record_row_item(l->store, row, &at, &item);
	else if (parts.kind == KEY_KIND_LINK)
		result = record_decode_item(&row->value, &item);
	else
		return 0;
	/* A name of several has no content of its own. */
	if (result || item.flags & ITEM_REFERENCE || !item.body)
		return 0;
	result = read_body(l, item.body, block);
	if (result != -EBADMSG && result != -EIO)
		return result;
	snprintf(what, sizeof(what), "(item %" PRIu64 ", of several names)", item.id);
	if (parts.kind == KEY_KIND_LINK)
		scrub_found(l, what, "part of its content cannot be read");
	else
		scrub_found_at(l, &at, "part of its content cannot be read");
	return 0;
}

/* ---- what cannot be read ----------------------------------------------------------------- */

#define WINDOW 32 /* bytes of a key that are searched through */
#define FINER 4 /* bytes by which a place is searched for more closely once one is found */

static bool is_unreadable(int result)
{
	return result == -EIO || result == -EBADMSG;
}

/* Whether the index can be read from `size` of `bytes` with `last` behind them on; *ret_from is that. */
static int try_from(struct lifecycle *l, const uint8_t *bytes, size_t size, unsigned last,
		    struct key *ret_from)
{
	struct key from = { .size = (uint16_t)(size + 1), .partition_size = (uint16_t)(size + 1) }, found;
	int result;

	memcpy(from.bytes, bytes, size);
	from.bytes[size] = (uint8_t)last;
	result = store_scan(l->store, &from, &found);
	if (result < 0)
		return result;
	*ret_from = from;
	return 0;
}

/*
 * Moves *at beyond what cannot be read, as little as can be found out by trying:
 * first the closest keys above it, of full length, then ever shorter ones, which
 * are further away; then back by halves. At most some seventy tries. 0,
 * STORE_ABSENT: nothing behind it can be read, negative errno.
 */
static int skip(struct lifecycle *l, struct key *at)
{
	uint8_t bytes[WINDOW] = { 0 };
	size_t size = WINDOW;
	unsigned low, high;
	int result = -EIO;

	memcpy(bytes, at->bytes, util_min((size_t)at->size, sizeof(bytes)));
	while (is_unreadable(result) && size--)
		if (bytes[size] < 0xff)
			result = try_from(l, bytes, size, bytes[size] + 1u, at);
	if (result)
		return is_unreadable(result) ? STORE_ABSENT : result;
	/* Readable from the byte `size` one higher on; not so from the next byte one higher on. */
	low = size + 1 < WINDOW ? bytes[size + 1] + 1u : 0;
	for (unsigned i = 0; i < FINER && ++size < WINDOW; i++, low = 0) {
		for (high = 256; low < high;) {
			unsigned middle = (low + high) / 2;

			result = try_from(l, bytes, size, middle, at);
			if (result && !is_unreadable(result))
				return result;
			if (result)
				low = middle + 1;
			else
				high = middle;
		}
		bytes[size] = (uint8_t)(high - 1);
	}
	return 0;
}

/* Names it by where it begins. */
static int pass_by(struct lifecycle *l, struct key *at)
{
	struct key_parts parts;
	struct place place = { 0 };
	char what[64];

	snprintf(what, sizeof(what), "(database)");
	if (key_parse(store_codec(l->store), at->bytes, at->size, &parts) == 0 &&
	    parts.kind == KEY_KIND_ITEM) {
		place = (struct place){ .directory = parts.id, .state = parts.state, .seq = parts.seq };
		key_unknown_name(store_codec(l->store), &parts, place.name);
		scrub_found_at(l, &place,
			       "items from here on cannot be read: the disk gives an error for a part of the database");
	} else {
		scrub_found(l, what,
			    "the disk gives an error for a part of it that says where contents and deleted items are");
	}
	return skip(l, at);
}

/* ---- all of them ------------------------------------------------------------------------- */

/* Where a walk is: at a key, or behind one that was read. */
struct position {
	struct key key;
	bool behind;
};

/* At most `rows` of one partition from *at on, which moves on. */
static int scrub_page(struct lifecycle *l, const struct key_range *range, size_t rows,
		      struct position *at, uint8_t *block)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .range = *range, .limit = rows };
	int result;

	query.range.from = at->key;
	query.after = at->behind ? &at->key : NULL;
	result = store_query(l->store, &query, &page);
	for (size_t i = 0; i < page.count && !result; i++) {
		result = scrub_row(l, &page.rows[i], block);
		pthread_mutex_lock(&l->scrub.mutex);
		l->scrub.status.items++;
		pthread_mutex_unlock(&l->scrub.mutex);
		if (!result && scrub_pace(&l->scrub, ROW_BYTES))
			result = -EINTR;
	}
	if (result)
		return result;
	at->key = page.more ? page.next : range->to;
	at->behind = page.more;
	return 0;
}

/* As far as it goes. */
static int scrub_singly(struct lifecycle *l, const struct key_range *range, struct position *at,
			uint8_t *block)
{
	int result = 0;

	while (!result && key_compare(&at->key, &range->to) < 0)
		result = scrub_page(l, range, 1, at, block);
	return result;
}

/* A key that is as long as keys get is read once more. */
static void step_behind(struct position *at)
{
	if (at->behind && at->key.size < KEY_MAX)
		at->key.bytes[at->key.size++] = 0;
}

/* What is at *at or behind it, which moves on. 0, STORE_ABSENT: nothing, -EINTR, other errno. */
static int scrub_some(struct lifecycle *l, struct key *at, uint8_t *block)
{
	struct position position = { .key = *at };
	struct key_range range;
	struct key key;
	int result = store_scan(l->store, at->size ? at : NULL, &key);

	if (!result) {
		position.key = key;
		key_range_partition(&key, &range);
		result = scrub_page(l, &range, ROWS, &position, block);
		if (is_unreadable(result))
			result = scrub_singly(l, &range, &position, block);
	}
	if (result && !is_unreadable(result))
		return result;
	if (result)
		result = pass_by(l, &position.key);
	else
		step_behind(&position);
	*at = position.key;
	return result;
}

static int scrub_rows(struct lifecycle *l, uint8_t *block)
{
	struct scrub *s = &l->scrub;
	int64_t noted_ns = clock_boot_ns(store_clock(l->store));
	struct key at = s->at;
	int result;

	while (!(result = scrub_some(l, &at, block))) {
		pthread_mutex_lock(&s->mutex);
		s->at = at;
		pthread_mutex_unlock(&s->mutex);
		if (clock_boot_ns(store_clock(l->store)) - noted_ns > NOTE_NS) {
			scrub_note(l);
			noted_ns = clock_boot_ns(store_clock(l->store));
		}
	}
	return result == STORE_ABSENT ? 0 : result;
}

int scrub_pass(struct lifecycle *l, uint8_t *block)
{
	struct scrub *s = &l->scrub;
	const char *wrong = NULL;
	int result = 0;

	/* Also in one that goes on: what was verified then says nothing of now. */
	if (!s->verified)
		result = store_verify(l->store, scrub_is_stopped, s, &wrong);
	s->verified = s->verified || !result;
	if (wrong)
		scrub_found(l, "(database)", wrong);
	result = result ? result : scrub_rows(l, block);
	s->verified = s->verified && result;
	return result;
}
