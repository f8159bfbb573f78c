/*
 * overlay-body.c - the changed chunks of bodies in one generation.
 *
 * A chunk's state is a base (what is below, zeros, or a chunk in a segment), of
 * which the first `limit` bytes count, and above it sorted extents of data or of
 * zeros that do not overlap. Zeroing whole chunks in number is a hole of the body
 * instead of an entry for each; a chunk without an entry in a hole is zeros.
 */
#include "store/overlay.h"

#include "store/overlay-internal.h"
#include "store/util.h"

/* Up to so many zeroed chunks get an entry each: holes are a list, to be kept short. */
#define ZERO_ENTRIES 4
#define APART_MIN 2048

static int overlay_chunk_compare(struct overlay_chunk *a, struct overlay_chunk *b)
{
	if (a->body != b->body)
		return a->body < b->body ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int overlay_body_compare(struct overlay_body *a, struct overlay_body *b)
{
	return a->id < b->id ? -1 : a->id > b->id;
}

RB_GENERATE(overlay_chunks, overlay_chunk, by_place, overlay_chunk_compare)
RB_GENERATE(overlay_bodies, overlay_body, by_id, overlay_body_compare)

struct overlay_body *overlay_body_find(struct overlay *o, uint64_t body)
{
	struct overlay_body probe = { .id = body };

	return RB_FIND(overlay_bodies, &o->bodies, &probe);
}

struct overlay_chunk *overlay_chunk_find(struct overlay *o, uint64_t body, uint64_t index)
{
	struct overlay_chunk probe = { .body = body, .index = index };

	return RB_FIND(overlay_chunks, &o->chunks, &probe);
}

struct overlay_chunk *overlay_chunk_seek(struct overlay *o, uint64_t body, uint64_t index)
{
	struct overlay_chunk probe = { .body = body, .index = index };
	struct overlay_chunk *chunk = RB_NFIND(overlay_chunks, &o->chunks, &probe);

	return chunk && chunk->body == body ? chunk : NULL;
}

struct overlay_chunk *overlay_chunk_step(struct overlay_chunk *chunk)
{
	struct overlay_chunk *next = RB_NEXT(overlay_chunks, NULL, chunk);

	return next && next->body == chunk->body ? next : NULL;
}

bool overlay_body_hole(const struct overlay_body *body, uint64_t index, uint64_t *ret_to)
{
	for (const struct overlay_hole *h = body->holes; h && h->from <= index; h = h->next) {
		if (index >= h->to)
			continue;
		*ret_to = h->to;
		return true;
	}
	return false;
}

static struct overlay_body *body_make(struct overlay *o, uint64_t id)
{
	struct overlay_body *body = overlay_body_find(o, id);

	if (body)
		return body;
	body = overlay_allocate(o, sizeof(*body));
	*body = (struct overlay_body){ .id = id };
	RB_INSERT(overlay_bodies, &o->bodies, body);
	return body;
}

static bool same_group(const struct overlay_chunk *a, const struct overlay_chunk *b)
{
	return a && a->body == b->body && a->index / BODY_GROUP == b->index / BODY_GROUP;
}

/* Whether no other chunk has the group of references that this one's stands in. */
static bool begins_group(struct overlay_chunk *chunk)
{
	return !same_group(RB_PREV(overlay_chunks, NULL, chunk), chunk) &&
	       !same_group(RB_NEXT(overlay_chunks, NULL, chunk), chunk);
}

static struct overlay_chunk *chunk_make(struct overlay *o, uint64_t id, uint64_t index)
{
	struct overlay_chunk *chunk = overlay_chunk_find(o, id, index);
	struct overlay_body *body;
	uint64_t to;

	if (chunk)
		return chunk;
	body = body_make(o, id);
	chunk = overlay_allocate(o, sizeof(*chunk));
	*chunk = (struct overlay_chunk){
		.body = id,
		.index = index,
		.base = overlay_body_hole(body, index, &to) ? OVERLAY_HOLE : OVERLAY_BELOW,
		.limit = BODY_CHUNK_SIZE,
	};
	RB_INSERT(overlay_chunks, &o->chunks, chunk);
	o->chunks_count++;
	o->count += begins_group(chunk);
	return chunk;
}

/* The chunk's base is now zeros. */
static void chunk_drop_base(struct overlay *o, struct overlay_chunk *chunk)
{
	if (chunk->base == OVERLAY_REF) {
		chunk->ref->next = o->released;
		o->released = chunk->ref;
		chunk->ref = NULL;
	}
	chunk->base = OVERLAY_HOLE;
	chunk->limit = BODY_CHUNK_SIZE;
}

static void chunk_clear(struct overlay *o, struct overlay_chunk *chunk)
{
	chunk_drop_base(o, chunk);
	chunk->extents = NULL;
	o->patched -= chunk->patched;
	chunk->patched = false;
}

static void chunk_mark(struct overlay *o, struct overlay_chunk *chunk)
{
	o->patched += !chunk->patched;
	chunk->patched = true;
}

static uint32_t extent_end(const struct overlay_extent *extent)
{
	return extent->offset + extent->size;
}

/* The first bytes of an extent go; its memory begins later. */
static void extent_cut_front(struct overlay_extent *extent, uint32_t from)
{
	uint32_t cut = from - extent->offset;

	extent->offset = from;
	extent->size -= cut;
	extent->capacity -= util_min(extent->capacity, cut);
	if (extent->bytes)
		extent->bytes += cut;
}

/* The part of an extent behind `from` becomes one of its own, in the same memory. */
static void extent_split(struct overlay *o, struct overlay_extent *extent, uint32_t from)
{
	struct overlay_extent *rest = overlay_allocate(o, sizeof(*rest));

	*rest = *extent;
	extent_cut_front(rest, from);
	extent->next = rest;
	extent->size = extent->capacity = from - extent->offset;
}

/* Takes [from, to) out of the extents. Returns where one for it belongs. */
static struct overlay_extent **extents_carve(struct overlay *o, struct overlay_chunk *chunk,
					     uint32_t from, uint32_t to)
{
	struct overlay_extent **link = &chunk->extents, *extent;

	while ((extent = *link) && extent_end(extent) <= from)
		link = &extent->next;
	if (extent && extent->offset < from) {
		if (extent_end(extent) > to)
			extent_split(o, extent, to);
		extent->size = from - extent->offset;
		link = &extent->next;
	}
	while ((extent = *link) && extent_end(extent) <= to)
		*link = extent->next;
	if (extent && extent->offset < to)
		extent_cut_front(extent, to);
	return link;
}

/* The data extent that holds `offset`, else the one that ends there. */
static struct overlay_extent *extent_at(const struct overlay_chunk *chunk, uint32_t offset)
{
	struct overlay_extent *found = NULL;

	for (struct overlay_extent *i = chunk->extents; i && i->offset <= offset; i = i->next)
		if (i->bytes && offset <= extent_end(i))
			found = i;
	return found;
}

/* The data extent that begins in (offset, end], the last such. */
static struct overlay_extent *extent_behind(const struct overlay_chunk *chunk, uint32_t offset,
					    uint32_t end)
{
	struct overlay_extent *found = NULL;

	for (struct overlay_extent *i = chunk->extents; i && i->offset <= end; i = i->next)
		if (i->bytes && i->offset > offset)
			found = i;
	return found;
}

/* Whether [from, to) may be written into the extent's memory: it has room, and the next does not live there. */
static bool extent_has_room(const struct overlay_extent *extent, uint32_t end)
{
	return end - extent->offset <= extent->capacity;
}

/* A new data extent that takes over what `front` and `back` have outside of [offset, end). */
static void extents_join(struct overlay *o, struct overlay_chunk *chunk, uint32_t offset,
			 const uint8_t *bytes, uint32_t size)
{
	uint32_t end = offset + size;
	struct overlay_extent *front = extent_at(chunk, offset),
			      *back = extent_behind(chunk, offset, end);
	uint32_t from = front ? front->offset : offset, to = back ? util_max(end, extent_end(back)) : end;
	uint32_t capacity = front || back ? util_max(2 * (to - from), UINT32_C(1024)) : to - from;
	struct overlay_extent *extent = overlay_allocate(o, sizeof(*extent)), **link;

	if (front)
		to = util_max(to, extent_end(front));
	capacity = util_max(capacity, to - from);
	capacity = util_min(capacity, BODY_CHUNK_SIZE - from);
	*extent = (struct overlay_extent){
		.bytes = overlay_allocate(o, capacity),
		.offset = from,
		.size = to - from,
		.capacity = capacity,
	};
	if (front)
		memcpy(extent->bytes, front->bytes, front->size);
	if (back && extent_end(back) > end)
		memcpy(extent->bytes + (end - from),
		       back->bytes + (util_max(end, back->offset) - back->offset),
		       extent_end(back) - end);
	memcpy(extent->bytes + (offset - from), bytes, size);
	link = extents_carve(o, chunk, from, to);
	extent->next = *link;
	*link = extent;
}

/*
 * Joining copies, and takes room to grow: worth it for the small writes of who
 * appends. A larger one that cuts no other extent gets memory of its own, no
 * more than it needs; so a chunk has few extents either way.
 */
static bool stands_apart(const struct overlay_chunk *chunk, uint32_t offset, uint32_t end)
{
	if (end - offset < APART_MIN)
		return false;
	for (const struct overlay_extent *i = chunk->extents; i && i->offset < end; i = i->next)
		if (i->bytes && extent_end(i) > offset && (i->offset < offset || extent_end(i) > end))
			return false;
	return true;
}

static void extents_add(struct overlay *o, struct overlay_chunk *chunk, uint32_t offset,
			const uint8_t *bytes, uint32_t size)
{
	struct overlay_extent *extent = overlay_allocate(o, sizeof(*extent)), **link;

	*extent = (struct overlay_extent){
		.bytes = overlay_allocate(o, size),
		.offset = offset,
		.size = size,
		.capacity = size,
	};
	memcpy(extent->bytes, bytes, size);
	link = extents_carve(o, chunk, offset, offset + size);
	extent->next = *link;
	*link = extent;
}

static void chunk_write(struct overlay *o, struct overlay_chunk *chunk, uint32_t offset,
			const uint8_t *bytes, uint32_t size)
{
	struct overlay_extent *front = extent_at(chunk, offset);
	uint32_t end = offset + size;

	chunk_mark(o, chunk);
	if (front && end > extent_end(front) && extent_has_room(front, end)) {
		extents_carve(o, chunk, extent_end(front), end);
		front->size = end - front->offset;
	}
	if (front && end <= extent_end(front))
		memcpy(front->bytes + (offset - front->offset), bytes, size);
	else if (stands_apart(chunk, offset, end))
		extents_add(o, chunk, offset, bytes, size);
	else
		extents_join(o, chunk, offset, bytes, size);
}

/* Zeros that are no data: an extent without bytes. */
static void chunk_write_zeros(struct overlay *o, struct overlay_chunk *chunk, uint32_t from, uint32_t to)
{
	struct overlay_extent **link, *extent;

	chunk_mark(o, chunk);
	link = extents_carve(o, chunk, from, to);
	if (chunk->base == OVERLAY_HOLE)
		return;
	extent = overlay_allocate(o, sizeof(*extent));
	*extent = (struct overlay_extent){ .next = *link, .offset = from, .size = to - from };
	*link = extent;
}

struct overlay_units overlay_chunk_units(const struct overlay_chunk *chunk, uint32_t limit)
{
	struct overlay_units units = { .kept = BODY_UNITS_ALL };
	uint32_t shown = util_min(chunk->limit, limit); /* from here on the base is zeros anyway */
	uint32_t zeros_from = 0, zeros_to = 0; /* zeros that follow each other */

	for (const struct overlay_extent *i = chunk->extents; i && i->offset < limit; i = i->next) {
		uint32_t end = util_min(extent_end(i), limit);

		if (i->bytes) {
			units.added |= body_units_touched(i->offset, end);
			units.end = end;
			continue;
		}
		if (i->offset != zeros_to)
			zeros_from = i->offset;
		zeros_to = end;
		units.kept &= (uint8_t)~body_units_covered(
			zeros_from, zeros_to < shown ? zeros_to : BODY_CHUNK_SIZE);
	}
	return units;
}

/* All from `limit` on is zeros. */
static void chunk_cut(struct overlay *o, struct overlay_chunk *chunk, uint32_t limit)
{
	struct overlay_extent **link = &chunk->extents;

	chunk_mark(o, chunk);
	chunk->limit = util_min(chunk->limit, limit);
	if (!chunk->limit)
		chunk_drop_base(o, chunk);
	while (*link && (*link)->offset < limit) {
		(*link)->size = util_min((*link)->size, limit - (*link)->offset);
		link = &(*link)->next;
	}
	*link = NULL;
}

void overlay_patch(struct overlay *o, uint64_t body, uint64_t offset, const uint8_t *bytes, size_t size)
{
	struct overlay_chunk *chunk = chunk_make(o, body, offset / BODY_CHUNK_SIZE);

	chunk_write(o, chunk, (uint32_t)(offset % BODY_CHUNK_SIZE), bytes, (uint32_t)size);
}

void overlay_chunk_put(struct overlay *o, uint64_t body, uint64_t index, const struct body_ref *ref)
{
	struct overlay_chunk *chunk = chunk_make(o, body, index);

	chunk_clear(o, chunk);
	chunk->ref = overlay_allocate(o, sizeof(*chunk->ref));
	*chunk->ref = (struct overlay_ref){ .ref = *ref };
	chunk->base = OVERLAY_REF;
}

/* Adds [from, to) to the body's holes and joins those it meets. */
static void hole_add(struct overlay *o, struct overlay_body *body, uint64_t from, uint64_t to)
{
	struct overlay_hole **link = &body->holes;
	struct overlay_hole *hole = overlay_allocate(o, sizeof(*hole));

	o->count++;
	while (*link && (*link)->to < from)
		link = &(*link)->next;
	*hole = (struct overlay_hole){ .next = *link, .from = from, .to = to };
	while (hole->next && hole->next->from <= to) {
		hole->from = util_min(hole->from, hole->next->from);
		hole->to = util_max(hole->to, hole->next->to);
		hole->next = hole->next->next;
	}
	*link = hole;
}

/* Chunks [from, to) are zeros. */
static void chunks_zero(struct overlay *o, uint64_t id, uint64_t from, uint64_t to)
{
	struct overlay_body *body = body_make(o, id);

	for (struct overlay_chunk *c = overlay_chunk_seek(o, id, from); c && c->index < to;
	     c = overlay_chunk_step(c))
		chunk_clear(o, c);
	if (to - from > ZERO_ENTRIES) {
		hole_add(o, body, from, to);
		return;
	}
	for (uint64_t index = from; index < to; index++)
		chunk_clear(o, chunk_make(o, id, index));
}

/* Zeros at [from, to) of one chunk. */
static void chunk_zero(struct overlay *o, uint64_t id, uint64_t index, uint32_t from, uint32_t to)
{
	struct overlay_chunk *chunk = chunk_make(o, id, index);

	if (to == BODY_CHUNK_SIZE) {
		chunk_cut(o, chunk, from);
		return;
	}
	chunk_write_zeros(o, chunk, from, to);
}

void overlay_zero(struct overlay *o, uint64_t body, uint64_t offset, uint64_t length)
{
	uint64_t end = offset + length;
	uint64_t first = offset / BODY_CHUNK_SIZE, last = end / BODY_CHUNK_SIZE;
	uint32_t head = (uint32_t)(offset % BODY_CHUNK_SIZE), tail = (uint32_t)(end % BODY_CHUNK_SIZE);

	if (!length)
		return;
	if (first == last) {
		chunk_zero(o, body, first, head, tail);
		return;
	}
	if (head)
		chunk_zero(o, body, first++, head, BODY_CHUNK_SIZE);
	if (first < last)
		chunks_zero(o, body, first, last);
	if (tail)
		chunk_zero(o, body, last, 0, tail);
}

void overlay_truncate(struct overlay *o, uint64_t body, uint64_t offset)
{
	uint64_t first = offset / BODY_CHUNK_SIZE;
	uint32_t head = (uint32_t)(offset % BODY_CHUNK_SIZE);

	if (head)
		chunk_zero(o, body, first++, head, BODY_CHUNK_SIZE);
	chunks_zero(o, body, first, UINT64_MAX);
}

void overlay_body_free(struct overlay *o, uint64_t body)
{
	overlay_truncate(o, body, 0);
	overlay_body_find(o, body)->freed = true;
	o->freeing = true;
}

void overlay_release(struct overlay *o, const struct body_ref *ref)
{
	struct overlay_ref *place = overlay_allocate(o, sizeof(*place));

	*place = (struct overlay_ref){ .next = o->released, .ref = *ref };
	o->released = place;
}
