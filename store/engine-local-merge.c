/*
 * engine-local-merge.c - the bodies' part of a checkpoint.
 *
 * A chunk that only got a new reference costs nothing here. One that was
 * patched is put together from its base and the bytes above it, sealed, and
 * appended to the checkpoint's own stream; what stood there before is let go.
 *
 * A base that does not unseal stays as it is: the chunk is damaged and keeps
 * saying so, and nothing else suffers. One that the disk cannot read may be read
 * later, and what was acknowledged above it has no other place than its
 * generation: that is kept, and tried again, until the disk answers, or the body
 * is freed, or whoever opens the store says that it is to be given up.
 */
#include "store/engine-local.h"

struct merge {
	struct engine_local *e;
	uint64_t body;
	uint64_t version;
	uint64_t number; /* of the group in hand */
	bool loaded;
	bool present; /* the index has it */
	bool changed;
	struct body_group group;
	struct buffer plain;
	uint8_t image[BODY_CHUNK_SIZE];
	uint8_t cipher[BODY_CHUNK_SIZE];
};

/* ---- groups ---------------------------------------------------------------- */

static int unseal_group(struct merge *m, const struct key *key)
{
	uint8_t plain[BODY_GROUP_MAX];
	struct value_head head;
	int r = value_head(m->plain.bytes, m->plain.size, &head);

	if (r == 0 && (head.attrs_size > sizeof(plain) || head.content_size))
		r = -EBADMSG;
	if (r == 0)
		r = value_unseal(m->e->keys, key->bytes, key->size, m->plain.bytes, m->plain.size,
				 true, plain);
	return r == 0 ? body_group_decode(plain, head.attrs_size, &m->group) : r;
}

static int group_store(struct merge *m)
{
	uint8_t bytes[BODY_GROUP_MAX];
	struct key key;
	size_t size;

	if (!m->loaded || !m->changed)
		return 0;
	key_body(m->body, m->number, &key);
	size = body_group_encode(&m->group, bytes);
	if (size)
		return local_put_attrs(m->e, key.bytes, key.size, m->version, bytes, size);
	return m->present ? index_delete(m->e->index, key.bytes, key.size) : 0;
}

/* Makes `number` the group in hand. 0, 1 (it does not unseal, and stays as it is), negative errno. */
static int group_load(struct merge *m, uint64_t number)
{
	struct key key;
	int r;

	if (m->loaded && m->number == number)
		return 0;
	r = group_store(m);
	if (r < 0)
		return r;
	m->number = number;
	m->changed = false;
	m->loaded = false;
	m->group = (struct body_group){ 0 };
	key_body(m->body, number, &key);
	r = index_write_get(m->e->index, key.bytes, key.size, &m->plain);
	if (r < 0 && r != -EBADMSG)
		return r;
	m->present = r != INDEX_ABSENT;
	if (r == 0)
		r = unseal_group(m, &key);
	if (r == -EBADMSG)
		return 1;
	m->loaded = true;
	return 0;
}

static int ref_set(struct merge *m, uint64_t index, const struct body_ref *ref)
{
	struct body_ref *old = &m->group.refs[index % BODY_GROUP];
	int r = 0;

	if (body_ref_equal(old, ref))
		return 0;
	if (old->length)
		r = local_release(m->e, old);
	*old = *ref;
	m->changed = true;
	return r;
}

/* ---- chunks ---------------------------------------------------------------- */

/* Units of the base that still count, whatever is above them. */
static uint8_t base_units(const struct overlay_chunk *chunk, const struct body_ref *ref)
{
	return ref->units & body_units_touched(0, chunk->limit);
}

static bool covers_base(const struct overlay_chunk *chunk, const struct body_ref *ref)
{
	uint32_t reach = 0;

	for (const struct overlay_extent *i = chunk->extents; i && i->offset == reach; i = i->next)
		reach += i->size;
	return reach >= util_min(body_ref_end(ref), chunk->limit);
}

/* The chunk as its base has it. 0, -EBADMSG: it is damaged, LOCAL_UNREADABLE. */
static int image_base(struct merge *m, const struct overlay_chunk *chunk, const struct body_ref *ref)
{
	int r;

	if (!base_units(chunk, ref) || covers_base(chunk, ref)) {
		memset(m->image, 0, sizeof(m->image));
		return 0;
	}
	r = local_chunk_read(m->e, m->body, chunk->index, ref, m->image);
	/* Once more: everybody's checkpoints wait for it. */
	if (r == -EIO)
		r = local_chunk_read(m->e, m->body, chunk->index, ref, m->image);
	if (r == -EIO)
		return m->e->discard ? -EBADMSG : LOCAL_UNREADABLE;
	if (r < 0)
		return r;
	body_expand(ref, m->image);
	memset(m->image + chunk->limit, 0, BODY_CHUNK_SIZE - chunk->limit);
	return 0;
}

static void image_extents(struct merge *m, const struct overlay_chunk *chunk)
{
	for (const struct overlay_extent *i = chunk->extents; i; i = i->next) {
		if (i->bytes)
			memcpy(m->image + i->offset, i->bytes, i->size);
		else
			memset(m->image + i->offset, 0, i->size);
	}
}

/* Seals the image's `units`, of which data goes as far as `end`, and appends them. */
static int write_image(struct merge *m, uint64_t index, uint8_t units, uint32_t end,
		       struct body_ref *ret_ref)
{
	struct body_ref ref = { .units = units };
	struct body_run run;
	int r;

	ref.length = body_compact(units, end, m->image);
	body_chunk_seal(m->e->keys, m->body, index, m->image, m->cipher, &ref);
	r = segments_append(m->e->segments, SEGMENT_STREAM_MERGE, m->cipher, ref.length,
			    &ref.segment, &ref.offset);
	if (r < 0)
		return r;
	run = (struct body_run){ ref.segment, ref.offset, body_run_size(ref.length) };
	if (!buffer_append(&m->e->merged, &run, sizeof(run)))
		return -ENOMEM;
	*ret_ref = ref;
	return 0;
}

/* The chunk's new reference. 0, -EBADMSG (base damaged: the old one stays), LOCAL_UNREADABLE, other errno. */
static int chunk_resolve(struct merge *m, const struct overlay_chunk *chunk, struct body_ref *ret_ref)
{
	struct overlay_units above = overlay_chunk_units(chunk, BODY_CHUNK_SIZE);
	struct body_ref base = { 0 };
	uint32_t end;
	uint8_t units;
	int r;

	if (chunk->base == OVERLAY_REF)
		base = chunk->ref->ref;
	else if (chunk->base == OVERLAY_BELOW)
		base = m->group.refs[chunk->index % BODY_GROUP];
	*ret_ref = base;
	if (!chunk->extents && body_ref_end(&base) <= chunk->limit)
		return 0;
	units = (base_units(chunk, &base) & above.kept) | above.added;
	end = util_min(body_ref_end(&base), chunk->limit);
	end = util_max(end, above.end);
	r = units ? image_base(m, chunk, &base) : 0;
	if (r < 0)
		return r;
	*ret_ref = (struct body_ref){ 0 };
	if (units) {
		image_extents(m, chunk);
		r = write_image(m, chunk->index, units, end, ret_ref);
	}
	if (r == 0 && chunk->base == OVERLAY_REF)
		r = local_release(m->e, &base);
	return r;
}

/*
 * The chunk is damaged from now on, whatever its place may hold one day: should
 * the disk get over it, its bytes would be those before the patch that is lost.
 */
static int spoil(struct merge *m, const struct overlay_chunk *chunk)
{
	const struct body_ref *base = chunk->base == OVERLAY_REF ?
					      &chunk->ref->ref :
					      &m->group.refs[chunk->index % BODY_GROUP];
	struct body_ref *held = &m->group.refs[chunk->index % BODY_GROUP];
	struct body_ref ref = *base;

	if (!ref.length)
		return 0;
	memset(ref.tag, 0, sizeof(ref.tag));
	/* The place stays its own. */
	if (held->length && held->segment == ref.segment && held->offset == ref.offset) {
		*held = ref;
		m->changed = true;
		return 0;
	}
	return ref_set(m, chunk->index, &ref);
}

static int merge_chunk(struct merge *m, const struct overlay_chunk *chunk)
{
	struct body_ref ref;
	int r = group_load(m, chunk->index / BODY_GROUP);

	if (r == 1)
		return chunk->base == OVERLAY_REF ? local_release(m->e, &chunk->ref->ref) : 0;
	if (r < 0)
		return r;
	r = chunk_resolve(m, chunk, &ref);
	if (r == -EBADMSG)
		return spoil(m, chunk);
	return r == 0 ? ref_set(m, chunk->index, &ref) : r;
}

/* ---- holes ------------------------------------------------------------------- */

/* The references in [from, to) of the group in hand are let go. */
static int clear_refs(struct merge *m, uint64_t from, uint64_t to)
{
	static const struct body_ref none;
	uint64_t first = m->number * BODY_GROUP;
	int r = 0;

	for (unsigned i = 0; i < BODY_GROUP && r == 0; i++)
		if (first + i >= from && first + i < to && m->group.refs[i].length)
			r = ref_set(m, first + i, &none);
	return r;
}

static int group_remove(struct merge *m, uint64_t number)
{
	struct key key;

	key_body(m->body, number, &key);
	return index_delete(m->e->index, key.bytes, key.size);
}

static int merge_hole(struct merge *m, const struct overlay_hole *hole)
{
	struct key key;
	struct key_parts parts;
	struct index_row row;
	uint64_t number = hole->from / BODY_GROUP;
	int r;

	for (;;) {
		key_body(m->body, number, &key);
		r = index_write_seek(m->e->index, key.bytes, key.size, true, &row);
		if (r != 0)
			return r < 0 ? r : 0;
		if (key_parse(&m->e->codec, row.key, row.key_size, &parts) < 0 ||
		    parts.kind != KEY_KIND_BODY || parts.id != m->body ||
		    parts.seq * BODY_GROUP >= hole->to)
			return 0;
		number = parts.seq;
		r = group_load(m, number);
		if (r == 0)
			r = clear_refs(m, hole->from, hole->to);
		/* A damaged group that the hole covers whole goes too; what it named is found by local_unused. */
		else if (r == 1 && number * BODY_GROUP >= hole->from &&
			 (number + 1) * BODY_GROUP <= hole->to)
			r = group_remove(m, number);
		if (r < 0)
			return r;
		number++;
	}
}

/* Whether a body has been freed since, and whoever loses power now loses it too. 1, 0, negative errno. */
static int is_gone(struct engine_local *e, uint64_t id)
{
	struct overlay_body *later;
	uint64_t seq;
	int r;

	pthread_mutex_lock(&e->commit);
	later = overlay_body_find(e->open, id);
	seq = later && later->freed ? e->last_seq : 0;
	pthread_mutex_unlock(&e->commit);
	r = seq ? local_sync_to(e, seq) : 0;
	return r < 0 ? r : seq != 0;
}

static int merge_body(struct merge *m, struct overlay *o, struct overlay_body *body)
{
	int r = 0;

	m->body = body->id;
	m->loaded = false;
	for (const struct overlay_hole *h = body->holes; h && r == 0; h = h->next)
		r = merge_hole(m, h);
	for (struct overlay_chunk *c = overlay_chunk_seek(o, body->id, 0); c && r == 0;
	     c = overlay_chunk_step(c))
		r = merge_chunk(m, c);
	return r == 0 ? group_store(m) : r;
}

int local_merge(struct engine_local *e, struct overlay *o)
{
	struct overlay_body *body;
	struct merge *m;
	int r = 0;

	if (RB_EMPTY(&o->bodies))
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->e = e;
	m->version = o->last_seq;
	RB_FOREACH(body, overlay_bodies, &o->bodies) {
		/* Of a body that was freed, the index's part is walked in steps; see local_free_write. */
		if (!body->freed)
			r = merge_body(m, o, body);
		if (r == LOCAL_UNREADABLE) {
			r = is_gone(e, body->id);
			r = r == 0 ? LOCAL_UNREADABLE : r;
		}
		if (r < 0)
			break;
	}
	buffer_release(&m->plain);
	free(m);
	return r;
}
