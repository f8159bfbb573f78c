/*
 * engine-local-unused.c - what lies in segments and belongs to nothing.
 *
 * A crash may leave chunks that no reference names below the end of a segment,
 * and a damaged BODY or FREE item takes what it said with it. Nothing of that is
 * ever used again: places are given once. So it only costs space, which is found
 * by looking at all references there are. Where one cannot be read nobody knows
 * what it names, and nothing is given back.
 */
#include "store/engine-local.h"

struct held_place {
	uint32_t segment;
	uint64_t from, to;
};

struct search {
	struct engine_local *e;
	struct buffer places; /* struct held_place */
	bool unknown; /* there is a reference that cannot be read */
	bool damaged_free; /* there is a FREE item that does not say how long its run is */
};

static int add_place(struct search *s, uint32_t segment, uint64_t from, uint64_t length)
{
	struct held_place place = { segment, from, from + length };

	return buffer_append(&s->places, &place, sizeof(place)) ? 0 : -ENOMEM;
}

static int add_ref(struct search *s, const struct body_ref *ref)
{
	return ref->length ? add_place(s, ref->segment, ref->offset, body_run_size(ref->length)) : 0;
}

/* ---- what is referred to ------------------------------------------------------ */

/* 0 and the size of its box in `plain`, or -EBADMSG. */
static int unseal_row(struct search *s, const struct index_row *row, uint8_t *plain, size_t max,
		      size_t *ret_size)
{
	struct value_head head;

	if (value_head(row->value, row->value_size, &head) < 0 || head.attrs_size > max ||
	    head.content_size ||
	    value_unseal(s->e->keys, row->key, row->key_size, row->value, row->value_size, true, plain) < 0)
		return -EBADMSG;
	*ret_size = head.attrs_size;
	return 0;
}

static int add_group(struct search *s, const struct index_row *row)
{
	uint8_t plain[BODY_GROUP_MAX];
	struct body_group group;
	size_t size;
	int r = 0;

	if (unseal_row(s, row, plain, sizeof(plain), &size) < 0 ||
	    body_group_decode(plain, size, &group) < 0) {
		s->unknown = true;
		return 0;
	}
	for (unsigned i = 0; i < BODY_GROUP && r == 0; i++)
		r = add_ref(s, &group.refs[i]);
	return r;
}

static int add_free_run(struct search *s, const struct index_row *row, const struct key_parts *parts)
{
	uint8_t plain[sizeof(uint32_t)];
	size_t size;

	if (unseal_row(s, row, plain, sizeof(plain), &size) < 0 || size != sizeof(plain)) {
		s->damaged_free = true;
		return 0;
	}
	return add_place(s, (uint32_t)parts->id, parts->seq, util_get_le32(plain));
}

static int search_index(struct search *s)
{
	static const uint8_t lowest[1];
	struct index_reader *reader;
	struct key_parts parts;
	struct index_row row;
	int r = index_reader_take(s->e->index, &reader);

	if (r < 0)
		return r;
	r = index_reader_renew(reader);
	if (r == 0)
		r = index_seek(reader, lowest, sizeof(lowest), false, false, &row);
	while (r == 0) {
		if (key_parse(&s->e->codec, row.key, row.key_size, &parts) < 0)
			s->unknown = true;
		else if (parts.kind == KEY_KIND_BODY)
			r = add_group(s, &row);
		else if (parts.kind == KEY_KIND_FREE_RUN)
			r = add_free_run(s, &row, &parts);
		if (r == 0)
			r = index_step(reader, false, &row);
	}
	index_reader_give(s->e->index, reader);
	return r < 0 ? r : 0;
}

static int search_generation(struct search *s, struct overlay *o)
{
	struct overlay_chunk *chunk;
	int r = 0;

	RB_FOREACH(chunk, overlay_chunks, &o->chunks) {
		if (chunk->base == OVERLAY_REF)
			r = add_ref(s, &chunk->ref->ref);
		if (r < 0)
			return r;
	}
	for (const struct overlay_ref *i = o->released; i && r == 0; i = i->next)
		r = add_ref(s, &i->ref);
	return r;
}

/* What was replayed by an opening that only reads stays in the overlay. */
static int search_overlay(struct search *s)
{
	struct engine_local *e = s->e;
	int r;

	pthread_mutex_lock(&e->maps);
	r = search_generation(s, e->open);
	if (r == 0 && e->sealed)
		r = search_generation(s, e->sealed);
	pthread_mutex_unlock(&e->maps);
	return r;
}

static int compare_places(const void *a, const void *b)
{
	const struct held_place *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* ---- what is not ---------------------------------------------------------------- */

/* [from, to) of a segment; adds what is there to *bytes. */
static int look_at_gap(struct engine_local *e, uint32_t segment, uint64_t from, uint64_t to,
		       bool give_back, uint64_t *bytes)
{
	uint64_t found;
	int r;

	if (from >= to)
		return 0;
	r = segments_data(e->segments, segment, from, to, &found);
	if (r == 0 && found && give_back)
		r = segments_punch(e->segments, segment, from, to - from);
	if (r == 0)
		*bytes += found;
	return r;
}

/* `places` are those of the segment, in order. */
static int look_at_segment(struct engine_local *e, uint32_t segment, const struct held_place *places,
			   size_t count, bool give_back, uint64_t *bytes)
{
	uint64_t at = 0, size;
	int r = segments_size(e->segments, segment, &size);

	for (size_t i = 0; i < count && r == 0; i++) {
		r = look_at_gap(e, segment, at, util_min(places[i].from, size), give_back, bytes);
		at = util_max(at, places[i].to);
	}
	return r == 0 ? look_at_gap(e, segment, at, size, give_back, bytes) : r;
}

static int look_at_all(struct search *s, bool give_back, uint64_t *bytes)
{
	const struct held_place *places = (struct held_place *)s->places.bytes;
	size_t count = s->places.size / sizeof(*places), segments, first = 0, end;
	_cleanup_free_ uint32_t *numbers = NULL;
	int r = segments_list(s->e->segments, 0, &numbers, &segments);

	if (count)
		qsort(s->places.bytes, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < segments && r == 0; i++) {
		while (first < count && places[first].segment < numbers[i])
			first++;
		for (end = first; end < count && places[end].segment == numbers[i];)
			end++;
		/* What is being appended may not be referred to yet. */
		if (!segments_active(s->e->segments, numbers[i]))
			r = look_at_segment(s->e, numbers[i], places + first, end - first,
					    give_back, bytes);
		first = end;
	}
	return r;
}

/* FREE items that do not say how long their runs are: what they named was given back with the rest. */
static int forget_damaged(struct engine_local *e)
{
	int r;

	e->forget_damaged = true;
	r = local_checkpoint_wait(e, true);
	e->forget_damaged = false;
	return r;
}

int local_unused(struct engine *engine, bool give_back, uint64_t *ret_bytes)
{
	struct search s = { .e = local_of(engine) };
	uint64_t bytes = 0;
	int r = give_back ? local_checkpoint_wait(s.e, true) : 0;

	if (r == 0 && give_back)
		segments_retire_all(s.e->segments);
	if (r == 0)
		r = search_index(&s);
	if (r == 0)
		r = search_overlay(&s);
	if (r == 0 && !s.unknown)
		r = look_at_all(&s, give_back, &bytes);
	if (r == 0 && !s.unknown && give_back && s.damaged_free)
		r = forget_damaged(s.e);
	buffer_release(&s.places);
	if (r < 0)
		return r;
	*ret_bytes = bytes;
	return 0;
}
