/*
 * check-trash.c - what stands beside deleted items: their rows in TRASH and
 * EXP, the batches they belong to, and the counters.
 */
#include <inttypes.h>
#include <stdio.h>

#include "lifecycle/check.h"
#include "lifecycle/repair.h"

/* ---- from an item to its rows ------------------------------------------- */

/* Whether `row_key` holds a row that names the item. */
static int check_row_of(struct check *c, const struct place *at, const struct key *row_key,
			const char *what)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row row;
	struct key key;
	int result = store_get(c->store, row_key, true, &value);

	if (result && result != STORE_ABSENT && !check_is_damage(result))
		return result;
	key_item(store_codec(c->store), at, &key);
	if (result == STORE_ABSENT)
		check_problem(c, at, "missing %s", what);
	else if (result == -EIO)
		check_problem(c, at, "the %s is %s", what, check_words(result));
	else if (result || record_decode_trash(store_codec(c->store), &value, &row))
		check_problem(c, at, "the %s is damaged", what);
	else if (key_compare(&row.key, &key) != 0)
		check_problem(c, at, "the %s names another item", what);
	else
		return 0;
	check_fix_read(c, result, &(struct fix){ .kind = FIX_ROWS, .at = *at });
	return 0;
}

int check_deleted(struct check *c, const struct place *at, const struct item *item)
{
	struct key key;
	int result;

	if (at->seq > c->last_seq)
		check_problem(c, at, "it was deleted later than the store's clock has ever been");
	key_due(item->deletion.destroy_ns, at->seq, &key);
	result = check_row_of(c, at, &key, "EXP row (when it is to be destroyed)");
	if (result || item->deletion.cause == ITEM_TEMPORARY)
		return result;
	key_trash(at->seq, &key);
	return check_row_of(c, at, &key, "TRASH row (what was deleted when)");
}

/* ---- from a row to its item --------------------------------------------- */

static int get_row_item(struct check *c, const struct trash_row *row, struct store_value *ret_value,
			struct place *ret_at, struct item *ret_item)
{
	struct store_row of = { .key = row->key.bytes, .key_size = row->key.size };
	int result = store_get(c->store, &row->key, true, &of.value);

	if (result)
		return result;
	*ret_value = of.value;
	return record_row_item(c->store, &of, ret_at, ret_item);
}

static void drop_row(struct check *c, const struct key_parts *parts, bool due, bool damaged)
{
	struct fix fix = { .kind = FIX_DELETE, .damaged = damaged };

	if (due)
		key_due(parts->due_ns, parts->seq, &fix.key);
	else
		key_trash(parts->seq, &fix.key);
	check_fix(c, &fix);
}

/* By the key alone: of a sealed name nothing but its directory is known. */
static void tell_stale(struct check *c, const struct trash_row *row, const char *what)
{
	struct place at = { .state = KEY_DEL };
	struct key_parts parts;

	if (key_parse(store_codec(c->store), row->key.bytes, row->key.size, &parts))
		return;
	at.directory = parts.id;
	at.seq = parts.seq;
	if (store_codec(c->store)->sealed_names)
		snprintf(at.name, sizeof(at.name), "(a sealed name)");
	else
		memcpy(at.name, parts.name, util_min(parts.name_size, sizeof(at.name) - 1));
	check_problem(c, &at, "stale %s: the deleted item that it names is not there", what);
}

struct row_check {
	const char *what;
	bool due; /* EXP, else TRASH */
};

/* What the batches are compared with: TRASH rows by the batch of the deletion, EXP rows by that of the purge. */
static int note_batch(struct check *c, const struct trash_row *row, const struct item *item,
		      uint64_t seq, bool due)
{
	struct mark mark = { .id = row->batch, .directory = seq };

	if (!row->batch || (due && !(item->deletion.flags & DELETION_PURGED)))
		return 0;
	return marks_add(due ? &c->purged : &c->entries, &mark);
}

static int check_row_item(struct check *c, const struct key_parts *parts,
			  const struct trash_row *row, const struct row_check *kind)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place at;
	struct item item;
	int result = get_row_item(c, row, &value, &at, &item);

	if (result == STORE_ABSENT) {
		tell_stale(c, row, kind->what);
		drop_row(c, parts, kind->due, false);
		return 0;
	}
	if (check_is_damage(result))
		return 0; /* told where the item stands */
	if (result)
		return result;
	if (at.state != KEY_DEL || at.seq != parts->seq) {
		check_problem(c, &at, "a %s is filed under another time than the item was deleted at",
			      kind->what);
		drop_row(c, parts, kind->due, false);
	} else if (kind->due && item.deletion.destroy_ns != parts->due_ns) {
		check_problem(c, &at,
			      "stale EXP row: it says another time than the item at which it is to be destroyed");
		drop_row(c, parts, true, false);
	} else if (!kind->due && item.deletion.cause == ITEM_TEMPORARY) {
		check_problem(c, &at, "a temporary item has a TRASH row");
		drop_row(c, parts, false, false);
	} else if (row->uid != item.deletion.uid || row->cause != item.deletion.cause ||
		   (!kind->due && row->batch != item.deletion.batch)) {
		check_problem(c, &at,
			      "the %s says otherwise than the item who deleted it, why or in which batch",
			      kind->what);
		check_fix(c, &(struct fix){ .kind = FIX_ROWS, .at = at });
	}
	return note_batch(c, row, &item, parts->seq, kind->due);
}

static int check_row(struct check *c, const struct store_row *store_row, void *data)
{
	const struct row_check *kind = data;
	struct key_parts parts;
	struct trash_row row;
	int result = key_parse(store_codec(c->store), store_row->key, store_row->key_size, &parts);

	if (result)
		return 0;
	if (store_row->damaged || record_decode_trash(store_codec(c->store), &store_row->value, &row)) {
		check_problem_of(c, "(trash)", "the %s of a deletion at %" PRIu64 " is damaged",
				 kind->what, parts.seq);
		drop_row(c, &parts, kind->due, store_row->damaged);
		return 0;
	}
	result = check_row_item(c, &parts, &row, kind);
	return result ? result : check_step(c);
}

int check_trash_rows(struct check *c)
{
	struct row_check kind = { "TRASH row", false };
	struct key_range range;

	key_range_trash(0, UINT64_MAX, &range);
	return check_range(c, &range, check_row, &kind);
}

int check_due_rows(struct check *c)
{
	struct row_check kind = { "EXP row", true };
	struct key_range range;

	key_range_due(ITEM_FOREVER, &range);
	return check_range(c, &range, check_row, &kind);
}

/* ---- batches ------------------------------------------------------------ */

/* Rows that name a batch, in order of time; marked, so that what names none is left over. */
static size_t batch_rows_of(struct marks *rows, uint64_t batch, size_t *ret_first)
{
	size_t first = marks_find(rows, batch), at = first;

	while (at < rows->count && rows->items[at].id == batch)
		rows->items[at++].flags |= MARK_REACHED;
	*ret_first = first;
	return at - first;
}

/*
 * A closed batch says how many entries it had; what came back or was destroyed
 * since is no longer there, so fewer are no fault. A purge's rows lie in EXP, in
 * another order.
 */
static void check_batch_rows(struct check *c, const char *what, const struct batch *batch)
{
	struct marks *rows = batch->purge ? &c->purged : &c->entries;
	uint64_t last = batch->last_seq ? batch->last_seq : UINT64_MAX;
	size_t first, count = batch_rows_of(rows, batch->seq, &first), inside = 0;
	uint64_t problems = c->result.problems;
	const char *fault =
		batch->last_seq && batch->last_seq < batch->seq ? "it ends before it begins" : NULL;

	for (size_t i = first; i < first + count && !batch->purge; i++) {
		uint64_t seq = rows->items[i].directory;

		if (seq < batch->seq)
			fault = "an entry of it was deleted before it began";
		else if (seq <= last)
			inside++;
		else
			fault = "an entry of it was deleted after it ended";
	}
	if (fault)
		check_problem_of(c, what, "wrong batch range: %s", fault);
	if (batch->last_seq && !batch->purge && inside + batch->restored > batch->count)
		check_problem_of(c, what,
				 "wrong batch count: it says %" PRIu64
				 " entries, %zu are there and %" PRIu64 " came back",
				 batch->count, inside, batch->restored);
	if (batch->last_seq && batch->purge && count > batch->count)
		check_problem_of(c, what, "wrong batch count: it says %" PRIu64 " entries, %zu are there",
				 batch->count, count);
	if (c->result.problems > problems)
		check_fix(c, &(struct fix){ .kind = FIX_BATCH, .id = batch->seq, .uid = batch->uid });
}

static int check_batch(struct check *c, const struct store_row *row, void *data)
{
	struct key_parts parts;
	struct batch batch;
	char what[64];
	size_t first;

	if (key_parse(store_codec(c->store), row->key, row->key_size, &parts))
		return 0;
	snprintf(what, sizeof(what), "(batch %" PRIu64 " of uid %" PRIu32 ")", parts.seq, parts.uid);
	if (!row->damaged && !record_decode_batch(&row->value, &batch) && batch.seq == parts.seq &&
	    batch.uid == parts.uid) {
		check_batch_rows(c, what, &batch);
	} else {
		check_problem_of(c, what, "the record of the batch is damaged");
		check_fix(c, &(struct fix){ .kind = FIX_BATCH, .id = parts.seq, .uid = parts.uid });
		batch_rows_of(&c->entries, parts.seq, &first);
	}
	return check_step(c);
}

/* Whose batch it is stands in the rows of its entries. */
static uint32_t uid_of(struct check *c, uint64_t seq)
{
	struct trash_row row;
	uint64_t version;

	return record_get_trash(c->store, seq, &row, &version) ? 0 : row.uid;
}

int check_batches(struct check *c)
{
	struct key_range range;
	int result;

	marks_sort(&c->entries);
	marks_sort(&c->purged);
	key_range_batches_all(&range);
	result = check_range(c, &range, check_batch, NULL);
	for (size_t i = 0; i < c->entries.count && !result; i++) {
		const struct mark *row = &c->entries.items[i];

		if (!(row->flags & MARK_REACHED) && (!i || row[-1].id != row->id)) {
			check_problem_of(c, "(batch)",
					 "entries of batch %" PRIu64
					 " are in the trash, but it has no record",
					 row->id);
			check_fix(c, &(struct fix){ .kind = FIX_BATCH,
						    .id = row->id,
						    .uid = uid_of(c, row->directory) });
		}
	}
	return result;
}

/* ---- counters ----------------------------------------------------------- */

int check_counters(struct check *c)
{
	static const char *const names[] = {
		[COUNTER_LIVE_ITEMS] = "live items",
		[COUNTER_LIVE_BYTES] = "bytes in live files",
		[COUNTER_TRASH_ITEMS] = "deleted items",
		[COUNTER_TRASH_BYTES] = "bytes in deleted files",
	};
	int64_t stored[STORE_COUNTERS_MAX];
	int result = record_get_counters(c->store, stored);

	if (check_is_damage(result)) {
		check_problem_of(c, "(counters)", "the counters are %s", check_words(result));
		check_fix_read(c, result, &(struct fix){ .kind = FIX_COUNTERS });
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names) && !result; i++) {
		if (stored[i] == c->counters[i])
			continue;
		check_problem_of(c, "(counters)", "the counter of %s says %" PRId64 ", a recount %" PRId64,
				 names[i], stored[i], c->counters[i]);
		check_fix(c, &(struct fix){ .kind = FIX_COUNTER,
					    .counter = (unsigned)i,
					    .delta = c->counters[i] - stored[i] });
	}
	return result;
}
