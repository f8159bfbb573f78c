/*
 * engine-local-apply.c - the bytes of a record become changes of the overlay:
 * the same way when it is acknowledged and when it is replayed.
 */
#include "store/engine-local-attempt.h"

#include <assert.h>

#define COUNTERS_SIZE (8 * STORE_COUNTERS_MAX)

/*
 * What the index says of a counter item: zeros when there is none, or none that
 * can be read, which a recount will find. -EBADMSG if it is some other item.
 */
static int counters_from_index(struct engine_local *e, struct index_reader *reader,
			       const struct change *change, uint8_t ret_counters[COUNTERS_SIZE],
			       uint64_t *ret_version)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	uint8_t counters[COUNTERS_SIZE];
	struct value_head head;
	int r = index_get(reader, change->key, change->key_size, 0, &b);

	if (r != 0)
		return r < 0 ? r : 0;
	r = value_head(b.bytes, b.size, &head);
	if (r == 0 && (head.attrs_size != COUNTERS_SIZE || head.content_size))
		return -EBADMSG;
	if (r == 0)
		r = value_unseal(e->keys, change->key, change->key_size, b.bytes, b.size, true, counters);
	if (r < 0) {
		e->problem = "a counter was damaged and starts from zero: run `ddbfs check`";
		return 0;
	}
	memcpy(ret_counters, counters, COUNTERS_SIZE);
	*ret_version = head.version;
	return 0;
}

static bool is_counters(const struct overlay_item *item)
{
	return item->attrs_size == COUNTERS_SIZE && !item->content_size;
}

/* Makes the open generation have the item, with the value it has now. Under `commit`; memory was reserved. */
static int counters_touch(struct engine_local *e, struct index_reader *reader, const struct change *change)
{
	uint8_t counters[COUNTERS_SIZE] = { 0 };
	struct overlay_item *item;
	uint64_t version = 0;
	bool here;
	int r = 0;

	pthread_mutex_lock(&e->maps);
	item = overlay_find(e->open, change->key, change->key_size);
	here = item && !item->deleted;
	if (!item && e->sealed)
		item = overlay_find(e->sealed, change->key, change->key_size);
	if (item && !item->deleted) {
		r = is_counters(item) ? 0 : -EBADMSG;
		if (r == 0)
			memcpy(counters, item->value, COUNTERS_SIZE);
		version = item->version;
	}
	if (!item)
		r = index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (!item && r == 0)
		r = counters_from_index(e, reader, change, counters, &version);
	if (r < 0 || here)
		return r;
	pthread_mutex_lock(&e->maps);
	overlay_put(e->open, change->key, change->key_size, change->partition_size, version,
		    counters, COUNTERS_SIZE, NULL, 0);
	pthread_mutex_unlock(&e->maps);
	return 0;
}

int apply_prepare(struct engine_local *e, struct index_reader *reader, const struct buffer *record)
{
	struct reader changes = { .bytes = record->bytes, .size = record->size };
	struct change change;
	int r;

	while ((r = change_next(&changes, &change)) > 0) {
		if (change.kind != CHANGE_ADD)
			continue;
		r = counters_touch(e, reader, &change);
		if (r < 0)
			break;
	}
	return r;
}

static void apply_add(struct overlay *o, const struct change *change, uint64_t seq)
{
	struct overlay_item *item = overlay_find(o, change->key, change->key_size);
	uint8_t *counter;

	/* It was touched before. */
	assert(item && is_counters(item));
	counter = item->value + 8 * change->counter;
	util_put_le64(counter, util_get_le64(counter) + (uint64_t)change->delta);
	item->version = seq;
}

static void apply_free(struct overlay *o, uint64_t body, uint64_t seq)
{
	struct key key;

	overlay_body_free(o, body);
	key_free_body(body, &key);
	overlay_put(o, key.bytes, key.size, key.partition_size, seq, NULL, 0, NULL, 0);
}

static void apply_change(struct overlay *o, const struct change *c, uint64_t seq)
{
	switch (c->kind) {
	case CHANGE_PUT:
		overlay_put(o, c->key, c->key_size, c->partition_size, seq, c->attrs, c->attrs_size,
			    c->content, c->content_size);
		break;
	case CHANGE_DELETE:
		overlay_delete(o, c->key, c->key_size, c->partition_size, seq);
		break;
	case CHANGE_ADD:
		apply_add(o, c, seq);
		break;
	case CHANGE_PATCH:
		overlay_patch(o, c->body, c->offset, c->bytes, c->length);
		break;
	case CHANGE_CHUNK:
		overlay_chunk_put(o, c->body, c->index, &c->ref);
		break;
	case CHANGE_ZERO:
		overlay_zero(o, c->body, c->offset, c->length);
		break;
	case CHANGE_TRUNCATE:
		overlay_truncate(o, c->body, c->offset);
		break;
	case CHANGE_FREE:
		apply_free(o, c->body, seq);
		break;
	}
}

void apply_changes(struct overlay *o, const uint8_t *bytes, size_t size, uint64_t seq)
{
	struct reader changes = { .bytes = bytes, .size = size };
	struct change change;
	int r;

	while ((r = change_next(&changes, &change)) > 0)
		apply_change(o, &change, seq);
	/* Encoded by this program, or decoded before: half a transaction must never be acknowledged. */
	assert(r == 0);
	(void)r;
	o->last_seq = seq;
}

int local_apply(struct engine_local *e, const uint8_t *bytes, size_t size, uint64_t seq)
{
	struct reader changes = { .bytes = bytes, .size = size };
	struct buffer record = { .bytes = (uint8_t *)bytes, .size = size };
	struct index_reader *reader;
	struct change change;
	size_t needed = 0;
	int r;

	while ((r = change_next(&changes, &change)) > 0)
		needed += change_overlay_bytes(&change);
	if (r == 0)
		r = overlay_reserve(e->open, needed);
	if (r == 0)
		r = index_reader_take(e->index, &reader);
	if (r < 0)
		return r;
	r = apply_prepare(e, reader, &record);
	index_reader_give(e->index, reader);
	if (r < 0)
		return r;
	apply_changes(e->open, bytes, size, seq);
	e->last_seq = seq;
	return 0;
}
