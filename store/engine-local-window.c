/*
 * engine-local-window.c - looks up what chunks are made of.
 *
 * In one section of `maps` the chunks are looked up in the generations, changed
 * bytes are copied and the snapshot of the index is renewed; then references are
 * read from the index with no lock.
 */
#include "store/engine-local-window.h"

void local_window_release(struct window *w)
{
	buffer_release(&w->pieces);
	buffer_release(&w->bytes);
	index_reader_give(w->e->index, w->reader);
}

static void copy_extent(struct window *w, const struct overlay_extent *extent, uint32_t limit)
{
	struct piece piece = {
		.offset = extent->offset,
		.size = util_min(extent->size, limit - extent->offset),
		.zeros = !extent->bytes,
		.bytes_at = w->bytes.size,
	};

	if (!w->places_only && extent->bytes)
		buffer_append(&w->bytes, extent->bytes, piece.size);
	buffer_append(&w->pieces, &piece, sizeof(piece));
	w->pieces_count++;
}

/* One generation on top of what the view has from below; `limit` is what the generation above leaves of this one. */
static void view_add_chunk(struct window *w, struct view *view, const struct overlay_chunk *chunk,
			   uint32_t limit)
{
	struct overlay_units units = overlay_chunk_units(chunk, limit);

	if (chunk->base != OVERLAY_BELOW) {
		view->below = false;
		view->ref = chunk->base == OVERLAY_REF ? chunk->ref->ref : (struct body_ref){ 0 };
		view->limit = BODY_CHUNK_SIZE;
	}
	view->kept &= units.kept;
	view->added = (view->added & units.kept) | units.added;
	view->limit = util_min(view->limit, chunk->limit);
	view->limit = util_min(view->limit, limit);
	for (const struct overlay_extent *i = chunk->extents; i && i->offset < limit; i = i->next)
		copy_extent(w, i, limit);
}

static bool in_hole(struct overlay *o, uint64_t body, uint64_t index)
{
	struct overlay_body *b = o ? overlay_body_find(o, body) : NULL;
	uint64_t to;

	return b && overlay_body_hole(b, index, &to);
}

/* Under `maps`. */
static void look_at_chunk(struct window *w, size_t i)
{
	struct engine_local *e = w->e;
	uint64_t index = w->first + i;
	struct overlay_chunk *upper = overlay_chunk_find(e->open, w->body, index), *lower = NULL;
	struct view *view = &w->views[i];

	*view = (struct view){
		.below = true,
		.limit = BODY_CHUNK_SIZE,
		.kept = BODY_UNITS_ALL,
		.pieces = w->pieces_count,
	};
	if (e->sealed) {
		lower = overlay_chunk_find(e->sealed, w->body, index);
		view->below = lower || !in_hole(e->sealed, w->body, index);
	}
	if (!upper && in_hole(e->open, w->body, index))
		view->below = false;
	else if (!upper && lower)
		view_add_chunk(w, view, lower, BODY_CHUNK_SIZE);
	else if (upper && upper->base == OVERLAY_BELOW && lower)
		view_add_chunk(w, view, lower, upper->limit);
	if (upper)
		view_add_chunk(w, view, upper, BODY_CHUNK_SIZE);
	view->pieces_count = w->pieces_count - view->pieces;
}

static bool is_changed(struct engine_local *e, uint64_t body)
{
	return overlay_body_find(e->open, body) || (e->sealed && overlay_body_find(e->sealed, body));
}

static int look_at_overlay(struct window *w)
{
	static const struct view untouched = { .below = true,
					       .limit = BODY_CHUNK_SIZE,
					       .kept = BODY_UNITS_ALL };
	struct engine_local *e = w->e;
	bool changed;
	int r;

	buffer_reset(&w->pieces);
	buffer_reset(&w->bytes);
	w->pieces_count = 0;
	pthread_mutex_lock(&e->maps);
	changed = is_changed(e, w->body);
	for (size_t i = 0; i < w->count; i++) {
		if (changed)
			look_at_chunk(w, i);
		else
			w->views[i] = untouched;
	}
	r = index_reader_renew(w->reader);
	pthread_mutex_unlock(&e->maps);
	return r < 0 ? r : w->pieces.failed || w->bytes.failed ? -ENOMEM : 0;
}

/* 0, INDEX_ABSENT, -EBADMSG, other errno. */
static int read_group(struct window *w, uint64_t number, struct body_group *ret_group)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	uint8_t plain[BODY_GROUP_MAX];
	struct value_head head;
	struct key key;
	int r;

	key_body(w->body, number, &key);
	r = index_get(w->reader, key.bytes, key.size, 0, &b);
	if (r == 0)
		r = value_head(b.bytes, b.size, &head);
	if (r == 0 && (head.attrs_size > sizeof(plain) || head.content_size))
		r = -EBADMSG;
	if (r == 0)
		r = value_unseal(w->e->keys, key.bytes, key.size, b.bytes, b.size, true, plain);
	return r == 0 ? body_group_decode(plain, head.attrs_size, ret_group) : r;
}

/* References of the chunks whose base is below. */
static int look_at_index(struct window *w)
{
	struct body_group group;
	uint64_t loaded = UINT64_MAX;
	int state = INDEX_ABSENT;

	for (size_t i = 0; i < w->count; i++) {
		uint64_t index = w->first + i;

		if (!w->views[i].below)
			continue;
		if (index / BODY_GROUP != loaded) {
			loaded = index / BODY_GROUP;
			state = read_group(w, loaded, &group);
		}
		if (state < 0)
			return state;
		if (state == 0)
			w->views[i].ref = group.refs[index % BODY_GROUP];
	}
	return 0;
}

int local_window_look(struct window *w)
{
	int r = w->reader ? 0 : index_reader_take(w->e->index, &w->reader);

	local_note_touch(w->e);
	if (r == 0)
		r = look_at_overlay(w);
	if (r == 0)
		r = look_at_index(w);
	if (w->reader)
		index_reader_rest(w->reader);
	return r;
}
