/*
 * engine-local-scrub.c - the index's structure, verified while it is in use.
 *
 * As at opening (engine-local-verify.c), but in this process, whose reads are
 * guarded, and in two walks. One looks at each row: strict order of keys, each
 * found again from the root. It goes in steps, each over a snapshot of its own,
 * so that pauses between them hold none: LMDB uses no page again that was freed
 * since the oldest snapshot. The other only counts, in one snapshot, without a
 * pause: a tenth of a second for a million items. Seals are not opened here:
 * whoever reads the items opens them.
 */
#include "store/engine-local.h"

#define STEP 1024 /* rows looked at between two pauses */
#define STOP_EVERY 65536 /* rows counted before somebody is asked whether to stop */

struct walk {
	struct engine_local *e;
	struct index_reader *reader;
	struct buffer last, value;
};

static bool is_after(const struct index_row *row, const struct buffer *last)
{
	int order = memcmp(row->key, last->bytes, util_min(row->key_size, last->size));

	return order > 0 || (order == 0 && row->key_size > last->size);
}

/* NULL, or what is wrong. */
static const char *look_at(struct walk *w, const struct index_row *row)
{
	struct key_parts parts;

	if (w->last.size && !is_after(row, &w->last))
		return "keys of the database are out of order";
	if (key_parse(&w->e->codec, row->key, row->key_size, &parts) < 0)
		return "the database has a key that no program wrote";
	if (row->value_size < VALUE_HEAD_SIZE || !value_key_holds(row->key, row->key_size, row->value))
		return "a key of the database is damaged: an item is missing where it was";
	/* Only its head: the row itself has been copied whole. */
	if (index_get(w->reader, row->key, row->key_size, VALUE_HEAD_SIZE, &w->value) != 0 ||
	    w->value.size != VALUE_HEAD_SIZE || memcmp(w->value.bytes, row->value, VALUE_HEAD_SIZE))
		return "an item of the database cannot be found by its key";
	buffer_reset(&w->last);
	buffer_append(&w->last, row->key, row->key_size);
	return NULL;
}

/* The row behind the last one looked at, as the index now is. 0, INDEX_ABSENT, negative errno. */
static int seek_on(struct walk *w, struct index_row *ret_row)
{
	static const uint8_t lowest[1];
	const uint8_t *from = w->last.size ? w->last.bytes : lowest;
	size_t size = w->last.size ? w->last.size : sizeof(lowest);
	int r = index_reader_renew(w->reader);

	return r == 0 ? index_seek(w->reader, from, size, false, false, ret_row) : r;
}

/* What was wrong, NULL if nothing was, in *ret_wrong. 1: there is more, 0, -ENOMEM. */
static int look_on(struct walk *w, const char **ret_wrong)
{
	struct index_row row;
	int r = seek_on(w, &row);

	for (unsigned i = 0; r == 0 && i < STEP; i++) {
		*ret_wrong = look_at(w, &row);
		if (w->last.failed || w->value.failed)
			return -ENOMEM;
		if (*ret_wrong)
			return 0;
		r = index_step(w->reader, false, &row);
	}
	if (r < 0 && r != -ENOMEM)
		*ret_wrong = "the database cannot be read to its end";
	return r == -ENOMEM ? r : r == 0;
}

static int look_at_all(struct walk *w, bool (*stop)(void *data, bool held), void *data,
		       const char **ret_wrong)
{
	int r;

	while ((r = look_on(w, ret_wrong)) > 0) {
		index_reader_rest(w->reader);
		if (stop(data, false))
			return -EINTR;
	}
	return r;
}

static int count_all(struct walk *w, bool (*stop)(void *data, bool held), void *data, const char **ret_wrong)
{
	uint64_t entries, count = 0, some = STOP_EVERY;
	int r = index_reader_renew(w->reader);

	if (r == 0)
		r = index_reader_entries(w->reader, &entries);
	for (bool first = true; r == 0 && some == STOP_EVERY && count <= entries; first = false) {
		r = index_count(w->reader, first, STOP_EVERY, &some);
		count += some;
		if (stop(data, true))
			return -EINTR;
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		*ret_wrong = "the database cannot be read to its end";
	else if (count != entries)
		*ret_wrong = count < entries ? "the database has not as many items as it says" :
					       "the database has more items than it says";
	return 0;
}

int local_verify_running(struct engine *engine, bool (*stop)(void *data, bool held), void *data,
			 const char **ret_wrong)
{
	struct walk w = { .e = local_of(engine) };
	int r = index_reader_take(w.e->index, &w.reader);

	if (r < 0)
		return r;
	*ret_wrong = NULL;
	r = look_at_all(&w, stop, data, ret_wrong);
	if (r == 0 && !*ret_wrong)
		r = count_all(&w, stop, data, ret_wrong);
	index_reader_give(w.e->index, w.reader);
	buffer_release(&w.last);
	buffer_release(&w.value);
	return r;
}
