/*
 * engine-local-seek.c - where a body has data and where holes, to 4 KiB.
 */
#include "store/engine-local-window.h"

static uint8_t view_units(const struct window *w, size_t i)
{
	const struct view *view = &w->views[i];

	return (view->ref.units & body_units_touched(0, view->limit) & view->kept) | view->added;
}

/* Under `maps`: the first chunk at or after `index` that a generation has something for. */
static uint64_t next_in_overlay(struct overlay *o, uint64_t body, uint64_t index)
{
	struct overlay_chunk *chunk = o ? overlay_chunk_seek(o, body, index) : NULL;

	while (chunk && chunk->base == OVERLAY_HOLE && !chunk->extents)
		chunk = overlay_chunk_step(chunk);
	return chunk ? chunk->index : UINT64_MAX;
}

/* The first chunk at or after `index` that there may be something in, UINT64_MAX if none. */
static int next_candidate(struct window *w, uint64_t index, uint64_t *ret_index)
{
	struct engine_local *e = w->e;
	uint64_t upper, lower, group = index / BODY_GROUP, best;
	struct key_parts parts;
	struct index_row row;
	struct key key;
	int r = w->reader ? 0 : index_reader_take(e->index, &w->reader);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	upper = next_in_overlay(e->open, w->body, index);
	lower = next_in_overlay(e->sealed, w->body, index);
	r = index_reader_renew(w->reader);
	pthread_mutex_unlock(&e->maps);
	best = util_min(upper, lower);
	key_body(w->body, group, &key);
	if (r == 0)
		r = index_seek(w->reader, key.bytes, key.size, true, false, &row);
	index_reader_rest(w->reader);
	if (r < 0)
		return r;
	if (r == 0 && key_parse(&e->codec, row.key, row.key_size, &parts) == 0 &&
	    parts.kind == KEY_KIND_BODY && parts.id == w->body) {
		uint64_t first = parts.seq * BODY_GROUP;

		first = util_max(first, index);
		best = util_min(best, first);
	}
	*ret_index = best;
	return 0;
}

/* Chunks beyond the largest offset do not exist. */
#define CHUNKS_MAX (INT64_MAX / BODY_CHUNK_SIZE + 1)

static int look_from(struct window *w, uint64_t index)
{
	/* Up to the end of the group: one item of the index. */
	w->first = index;
	w->count = BODY_GROUP - index % BODY_GROUP;
	return local_window_look(w);
}

/* The first unit from `offset` on that is data (or not) among the chunks looked up. False if there is none. */
static bool find_unit(const struct window *w, uint64_t offset, bool data, uint64_t *ret_offset)
{
	for (size_t i = 0; i < w->count; i++) {
		uint8_t units = view_units(w, i);

		for (uint32_t unit = 0; unit < BODY_UNITS; unit++) {
			uint64_t start = (w->first + i) * BODY_CHUNK_SIZE + unit * BODY_UNIT;

			if (start + BODY_UNIT <= offset || (units >> unit & 1) != data)
				continue;
			*ret_offset = util_max(start, offset);
			return true;
		}
	}
	return false;
}

static int seek_data(struct window *w, uint64_t offset, uint64_t *ret_offset)
{
	uint64_t index = offset / BODY_CHUNK_SIZE;
	int r;

	while ((r = next_candidate(w, index, &index)) == 0 && index < CHUNKS_MAX) {
		r = look_from(w, index);
		if (r < 0 || find_unit(w, offset, true, ret_offset))
			return r;
		index += w->count;
	}
	if (r == 0)
		*ret_offset = UINT64_MAX;
	return r;
}

static int seek_hole(struct window *w, uint64_t offset, uint64_t *ret_offset)
{
	uint64_t index = offset / BODY_CHUNK_SIZE;

	for (;;) {
		int r = look_from(w, index);

		if (r < 0 || find_unit(w, offset, false, ret_offset))
			return r;
		index += w->count;
	}
}

int local_body_seek(struct engine *engine, uint64_t body, uint64_t offset, bool data, uint64_t *ret_offset)
{
	struct window w = { .e = local_of(engine), .body = body, .places_only = true };
	int r = data ? seek_data(&w, offset, ret_offset) : seek_hole(&w, offset, ret_offset);

	local_window_release(&w);
	return r;
}

int local_body_usage(struct engine *engine, uint64_t body, uint64_t *ret_bytes)
{
	struct window w = { .e = local_of(engine), .body = body, .places_only = true };
	uint64_t index = 0, bytes = 0;
	int r;

	while ((r = next_candidate(&w, index, &index)) == 0 && index < CHUNKS_MAX) {
		r = look_from(&w, index);
		if (r < 0)
			break;
		for (size_t i = 0; i < w.count; i++)
			bytes += (uint64_t)__builtin_popcount(view_units(&w, i)) * BODY_UNIT;
		index += w.count;
	}
	if (r == 0)
		*ret_bytes = bytes;
	local_window_release(&w);
	return r;
}
