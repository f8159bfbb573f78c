/*
 * engine-local-body.c - reading bodies: what a chunk is made of, from both
 * generations and the index, and its bytes from the segments.
 *
 * In one section of `maps` a window of chunks is looked up in the generations,
 * changed bytes are copied and the snapshot of the index is renewed; then, with
 * no lock, references are read from the index and chunks from segments. A chunk
 * may be given back between the two, when a newer one has taken its place: a
 * chunk that does not unseal is looked up again, and is damage only if its
 * reference is still the same.
 */
#include "store/engine-local.h"

#define WINDOW 32 /* chunks looked up at once */
#define READ_MAX (UINT32_C(1) << 20) /* bytes of one pread */
#define TRIES 3
/* What follows a read that goes on where the last one ended is asked of the disk ahead, this far, in steps. */
#define AHEAD_BYTES (UINT32_C(2) << 20)
#define AHEAD_STEP (UINT32_C(512) << 10)

/* What one chunk is made of: a base, and pieces above it. */
struct view {
	bool below; /* the base is what the index says */
	struct body_ref ref; /* the base; length 0: zeros */
	uint32_t limit; /* bytes of the base that count */
	uint8_t kept; /* units of the base that are not zeroed */
	uint8_t added; /* units with data above it */
	size_t pieces; /* index of its first in window.pieces */
	size_t pieces_count;
};

struct piece {
	uint32_t offset; /* in the chunk */
	uint32_t size;
	bool zeros;
	size_t bytes_at; /* in window.bytes */
};

struct window {
	struct engine_local *e;
	uint64_t body;
	uint64_t first; /* number of the first chunk */
	size_t count;
	struct view views[WINDOW];
	struct buffer pieces; /* struct piece */
	size_t pieces_count;
	struct buffer bytes; /* of the pieces; not filled where only places are wanted */
	bool places_only;
	bool ahead; /* reading goes on behind the window */
	struct index_reader *reader;
};

static void window_release(struct window *w)
{
	buffer_release(&w->pieces);
	buffer_release(&w->bytes);
	index_reader_give(w->e->index, w->reader);
}

/* ---- looking up --------------------------------------------------------- */

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

static int look(struct window *w)
{
	int r = w->reader ? 0 : index_reader_take(w->e->index, &w->reader);

	if (r == 0)
		r = look_at_overlay(w);
	if (r == 0)
		r = look_at_index(w);
	if (w->reader)
		index_reader_rest(w->reader);
	return r;
}

/* ---- bytes --------------------------------------------------------------- */

/* Places that a segment does not have are damage, like bytes that do not unseal. */
static int read_place(struct engine_local *e, uint32_t segment, uint32_t offset, void *buffer, size_t size)
{
	int r = segments_read(e->segments, segment, offset, buffer, size);

	return r == -ENOENT || r == -ENODATA ? -EBADMSG : r;
}

int local_chunk_read(struct engine_local *e, uint64_t body, uint64_t index,
		     const struct body_ref *ref, uint8_t *ret_bytes)
{
	int r = read_place(e, ref->segment, ref->offset, ret_bytes, ref->length);

	return r == 0 ? body_chunk_unseal(e->keys, body, index, ref, ret_bytes, ret_bytes) : r;
}

/* The part of the caller's buffer that chunk `i` fills. */
struct target {
	uint8_t *to;
	uint32_t from; /* in the chunk */
	uint32_t size;
};

static struct target target_of(const struct window *w, size_t i, uint64_t offset, uint8_t *buffer,
			       size_t size)
{
	uint64_t start = (w->first + i) * BODY_CHUNK_SIZE;
	uint64_t from = util_max(start, offset), to = util_min(start + BODY_CHUNK_SIZE, offset + size);

	return (struct target){
		.to = buffer + (from - offset),
		.from = (uint32_t)(from - start),
		.size = (uint32_t)(to - from),
	};
}

/* The base's bytes: `cipher` holds ref->length of them; `spare` has room for a chunk. */
static int fill_base(struct window *w, size_t i, struct target t, uint8_t *cipher, uint8_t *spare)
{
	const struct view *view = &w->views[i];
	bool plain = body_units_plain(view->ref.units);
	bool direct = plain && t.from == 0 && t.size >= view->ref.length;
	uint32_t have = util_min(body_ref_end(&view->ref), view->limit);
	uint32_t size = have > t.from ? util_min(have - t.from, t.size) : 0;
	uint8_t *to = direct ? t.to : plain ? cipher : spare;
	int r = 0;

	if (size)
		r = body_chunk_unseal(w->e->keys, w->body, w->first + i, &view->ref, cipher, to);
	if (r < 0)
		return r;
	if (size && !plain)
		body_expand(&view->ref, to);
	if (size && !direct)
		memcpy(t.to, to + t.from, size);
	memset(t.to + size, 0, t.size - size);
	return 0;
}

static void fill_pieces(const struct window *w, size_t i, struct target t)
{
	const struct view *view = &w->views[i];
	const struct piece *pieces = (struct piece *)w->pieces.bytes + view->pieces;

	for (size_t n = 0; n < view->pieces_count; n++) {
		uint32_t from = util_max(pieces[n].offset, t.from);
		uint32_t to = util_min(pieces[n].offset + pieces[n].size, t.from + t.size);

		if (from < to && pieces[n].zeros)
			memset(t.to + (from - t.from), 0, to - from);
		else if (from < to)
			memcpy(t.to + (from - t.from),
			       w->bytes.bytes + pieces[n].bytes_at + (from - pieces[n].offset),
			       to - from);
	}
}

/* Whether the base is needed for this part: there, and not wholly under one piece. */
static bool needs_base(const struct window *w, size_t i, struct target t)
{
	const struct view *view = &w->views[i];
	const struct piece *pieces = (struct piece *)w->pieces.bytes + view->pieces;

	if (util_min(body_ref_end(&view->ref), view->limit) <= t.from)
		return false;
	for (size_t n = 0; n < view->pieces_count; n++)
		if (pieces[n].offset <= t.from && pieces[n].offset + pieces[n].size >= t.from + t.size)
			return false;
	return true;
}

/* How many chunks from `i` on lie one behind the other in one segment and are all needed. */
static size_t run_length(const struct window *w, size_t i, uint64_t offset, uint8_t *buffer, size_t size)
{
	const struct body_ref *first = &w->views[i].ref;
	uint64_t end = (uint64_t)first->offset + body_run_size(first->length);
	size_t n = i + 1;

	while (n < w->count && w->views[n].ref.segment == first->segment &&
	       w->views[n].ref.offset == end && end + w->views[n].ref.length - first->offset <= READ_MAX &&
	       needs_base(w, n, target_of(w, n, offset, buffer, size))) {
		end += body_run_size(w->views[n].ref.length);
		n++;
	}
	return n - i;
}

static int fill_run(struct window *w, size_t i, size_t count, uint64_t offset, uint8_t *buffer,
		    size_t size, uint8_t *scratch, uint8_t *spare)
{
	const struct body_ref *first = &w->views[i].ref, *last = &w->views[i + count - 1].ref;
	int r = read_place(w->e, first->segment, first->offset, scratch,
			   last->offset + last->length - first->offset);

	for (size_t n = i; n < i + count && r == 0; n++)
		r = fill_base(w, n, target_of(w, n, offset, buffer, size),
			      scratch + (w->views[n].ref.offset - first->offset), spare);
	return r;
}

/* Chunks that are written in order stand in order, so what comes next is behind this run, in all likelihood. */
static void read_ahead(struct window *w, size_t i, size_t count)
{
	const struct body_ref *first = &w->views[i].ref, *last = &w->views[i + count - 1].ref;
	uint32_t end = last->offset + last->length;

	if (w->ahead && first->offset / AHEAD_STEP != end / AHEAD_STEP)
		segments_advise(w->e->segments, last->segment, end, AHEAD_BYTES);
}

static int fill(struct window *w, uint64_t offset, uint8_t *buffer, size_t size)
{
	size_t scratch_size = util_min(w->count * BODY_CHUNK_SIZE, (size_t)READ_MAX);
	_cleanup_free_ uint8_t *scratch = malloc(scratch_size + BODY_CHUNK_SIZE);
	int r = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < w->count && r == 0;) {
		struct target t = target_of(w, i, offset, buffer, size);
		size_t count = 1;

		if (needs_base(w, i, t)) {
			count = run_length(w, i, offset, buffer, size);
			read_ahead(w, i, count);
			r = fill_run(w, i, count, offset, buffer, size, scratch, scratch + scratch_size);
		} else {
			memset(t.to, 0, t.size);
		}
		for (size_t n = i; n < i + count; n++)
			fill_pieces(w, n, target_of(w, n, offset, buffer, size));
		i += count;
	}
	return r;
}

static bool same_refs(const struct view *a, const struct view *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!body_ref_equal(&a[i].ref, &b[i].ref))
			return false;
	return true;
}

static int read_window(struct window *w, uint64_t offset, uint8_t *buffer, size_t size)
{
	struct view before[WINDOW];
	int r = look(w);

	for (unsigned tries = 0; r == 0; tries++) {
		r = fill(w, offset, buffer, size);
		if (r != -EBADMSG || tries == TRIES)
			break;
		memcpy(before, w->views, sizeof(before));
		r = look(w);
		if (r == 0 && same_refs(before, w->views, w->count))
			r = -EBADMSG;
	}
	return r;
}

/* Whether the read begins where the last one of the body ended. Threads may race here: it is a hint. */
static bool goes_on(struct engine_local *e, uint64_t body, uint64_t offset, size_t size)
{
	_Atomic uint64_t *place = &e->reading[body % LOCAL_READING];
	/* Body and offset in one number, so that both are of one read. */
	uint64_t here = body * UINT64_C(0x9e3779b97f4a7c15) + offset;

	return atomic_exchange_explicit(place, here + size, memory_order_relaxed) == here;
}

int local_body_read(struct engine *engine, uint64_t body, uint64_t offset, void *buffer, size_t size)
{
	struct engine_local *e = local_of(engine);
	struct window w = { .e = e, .body = body, .ahead = goes_on(e, body, offset, size) };
	uint8_t *to = buffer;
	int r = 0;

	while (size && r == 0) {
		uint64_t first = offset / BODY_CHUNK_SIZE;
		uint64_t end = util_min(offset + size, (first + WINDOW) * BODY_CHUNK_SIZE);

		w.first = first;
		w.count = (end + BODY_CHUNK_SIZE - 1) / BODY_CHUNK_SIZE - first;
		r = read_window(&w, offset, to, end - offset);
		to += end - offset;
		size -= end - offset;
		offset = end;
	}
	window_release(&w);
	return r;
}

/* ---- where there is data -------------------------------------------------- */

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
	return look(w);
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

	window_release(&w);
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
	window_release(&w);
	return r;
}
