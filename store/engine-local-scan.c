/*
 * engine-local-scan.c - the next key of any partition, for who walks it all.
 */
#include "store/engine-local.h"

static void key_set(struct engine_local *e, const uint8_t *bytes, size_t size, struct key *ret_key)
{
	if (key_from_bytes(&e->codec, bytes, size, ret_key) == 0)
		return;
	/* A key that no function builds is damage; it is shown as it is, for `check` to name. */
	ret_key->size = (uint16_t)util_min(size, (size_t)KEY_MAX);
	ret_key->partition_size = ret_key->size;
	memcpy(ret_key->bytes, bytes, ret_key->size);
}

/* The first item of a generation at or after `from` that is not deleted. Under `maps`. */
static struct overlay_item *next_live(struct engine_local *e, const uint8_t *from, size_t from_size)
{
	struct overlay_item *upper = overlay_seek(e->open, from, from_size, true, false);
	struct overlay_item *lower =
		e->sealed ? overlay_seek(e->sealed, from, from_size, true, false) : NULL;
	struct overlay_item *item;

	while ((item = overlay_first(upper, lower, false))) {
		bool same = upper && lower &&
			    !overlay_compare(upper->key, upper->key_size, lower->key, lower->key_size);

		if (!item->deleted)
			return item;
		if (item == lower || same)
			lower = overlay_step(lower, false);
		if (item == upper)
			upper = overlay_step(upper, false);
	}
	return NULL;
}

/* The first group, at or after `from`, of a body that has a changed chunk. Under `maps`. */
static bool next_body(struct engine_local *e, const struct key *from, struct key *ret_key)
{
	struct overlay *generations[] = { e->open, e->sealed };
	bool found = false;

	for (unsigned i = 0; i < ARRAY_SIZE(generations); i++) {
		struct overlay_chunk *chunk;

		if (!generations[i])
			continue;
		RB_FOREACH(chunk, overlay_chunks, &generations[i]->chunks) {
			struct overlay_body *open_body = overlay_body_find(e->open, chunk->body);
			struct key key;

			if (chunk->base == OVERLAY_HOLE && !chunk->extents)
				continue;
			if (open_body && open_body->freed)
				continue;
			key_body(chunk->body, chunk->index / BODY_GROUP, &key);
			if (from && key_compare(&key, from) < 0)
				continue;
			if (!found || key_compare(&key, ret_key) < 0)
				*ret_key = key;
			found = true;
			break;
		}
	}
	return found;
}

/* Whether the index's key is hidden: deleted in the overlay, or of a body that was freed. */
static bool is_hidden(struct engine_local *e, const uint8_t *key, size_t key_size)
{
	struct overlay_item *item;
	struct key_parts parts;
	bool hidden;

	pthread_mutex_lock(&e->maps);
	item = local_find(e, key, key_size);
	hidden = item && item->deleted;
	if (!hidden && key_parse(&e->codec, key, key_size, &parts) == 0 && parts.kind == KEY_KIND_BODY) {
		struct overlay_body *open = overlay_body_find(e->open, parts.id);
		struct overlay_body *sealed = e->sealed ? overlay_body_find(e->sealed, parts.id) : NULL;

		hidden = (open && open->freed) || (sealed && sealed->freed);
	}
	pthread_mutex_unlock(&e->maps);
	return hidden;
}

int local_scan(struct engine *engine, const struct key *from, struct key *ret_key)
{
	static const struct key lowest = { .size = 1, .partition_size = 1 };
	struct engine_local *e = local_of(engine);
	const struct key *start = from ? from : &lowest;
	struct index_reader *reader;
	struct overlay_item *item;
	struct index_row row;
	struct key best, body;
	bool found = false, body_found;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	item = next_live(e, start->bytes, start->size);
	if (item) {
		key_set(e, item->key, item->key_size, &best);
		found = true;
	}
	body_found = next_body(e, from, &body);
	r = index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (body_found && (!found || key_compare(&body, &best) < 0)) {
		best = body;
		found = true;
	}
	if (r == 0)
		r = index_seek(reader, start->bytes, start->size, true, false, &row);
	while (r == 0 && is_hidden(e, row.key, row.key_size))
		r = index_step(reader, false, &row);
	if (r == 0 && (!found || overlay_compare(row.key, row.key_size, best.bytes, best.size) < 0)) {
		key_set(e, row.key, row.key_size, &best);
		found = true;
	}
	index_reader_give(e->index, reader);
	if (r < 0)
		return r;
	if (!found)
		return STORE_ABSENT;
	*ret_key = best;
	return 0;
}
