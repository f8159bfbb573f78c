/*
 * engine-local-scrub.c - the index's structure, verified while it is in use.
 *
 * As at opening (engine-local-verify.c), but in this process, whose reads are
 * guarded: a walk over one snapshot, in strict order of keys, each found again
 * from the root, and as many as the database says. The snapshot is held for as
 * long as that takes, a second for some hundred thousand items; pages that are
 * freed meanwhile are used again only afterwards. Seals are not opened here:
 * whoever reads the items opens them.
 */
#include "store/engine-local.h"

#define STOP_EVERY 1024 /* rows */

struct walk {
	struct engine_local *e;
	struct index_reader *reader;
	struct buffer last, value;
	uint64_t count, entries;
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
	if (++w->count >= w->entries)
		return "the database has more items than it says";
	buffer_reset(&w->last);
	buffer_append(&w->last, row->key, row->key_size);
	return NULL;
}

static int walk(struct walk *w, bool (*stop)(void *data), void *data, const char **ret_wrong)
{
	static const uint8_t lowest[1];
	struct index_row row;
	int r = index_reader_renew(w->reader);

	*ret_wrong = NULL;
	if (r == 0)
		r = index_reader_entries(w->reader, &w->entries);
	if (r == 0)
		r = index_seek(w->reader, lowest, sizeof(lowest), false, false, &row);
	while (r == 0 && !*ret_wrong) {
		*ret_wrong = look_at(w, &row);
		if (w->last.failed || w->value.failed)
			return -ENOMEM;
		if (w->count % STOP_EVERY == 0 && stop(data))
			return -EINTR;
		r = index_step(w->reader, false, &row);
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0 && !*ret_wrong)
		*ret_wrong = "the database cannot be read to its end";
	/* The engine's own item is not among the rows. */
	if (!*ret_wrong && w->count + 1 != w->entries)
		*ret_wrong = "the database has not as many items as it says";
	return 0;
}

int local_verify_running(struct engine *engine, bool (*stop)(void *data), void *data, const char **ret_wrong)
{
	struct walk w = { .e = local_of(engine) };
	int r = index_reader_take(w.e->index, &w.reader);

	if (r < 0)
		return r;
	r = walk(&w, stop, data, ret_wrong);
	index_reader_give(w.e->index, w.reader);
	buffer_release(&w.last);
	buffer_release(&w.value);
	return r;
}
