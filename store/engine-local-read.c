/*
 * engine-local-read.c - one item.
 *
 * Every read looks at the overlay and renews its snapshot of the index in one
 * section of `maps`, then reads the index without a lock.
 */
#include "store/engine-local.h"

static int value_make(uint64_t version, size_t attrs_size, size_t content_size,
		      bool attributes_only, struct store_value *ret_value)
{
	size_t size = attrs_size + (attributes_only ? 0 : content_size);
	/* One byte more: what is empty is not NULL. */
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		return -ENOMEM;
	*ret_value = (struct store_value){
		.version = version,
		.attrs = bytes,
		.attrs_size = attrs_size,
		.content = attributes_only ? NULL : bytes + attrs_size,
		.content_size = attributes_only ? 0 : content_size,
		.memory = bytes,
	};
	return 0;
}

static int value_from_overlay(const struct overlay_item *item, bool attributes_only,
			      struct store_value *ret_value)
{
	int r;

	if (item->deleted)
		return STORE_ABSENT;
	r = value_make(item->version, item->attrs_size, item->content_size, attributes_only, ret_value);
	if (r == 0 && ret_value->attrs_size + ret_value->content_size)
		memcpy(ret_value->memory, item->value, ret_value->attrs_size + ret_value->content_size);
	return r;
}

static int value_from_index(struct engine_local *e, const struct key *key, const struct buffer *b,
			    bool attributes_only, struct store_value *ret_value)
{
	struct value_head head;
	struct store_value value;
	int r = value_head(b->bytes, b->size, &head);

	if (r == 0)
		r = value_make(head.version, head.attrs_size, head.content_size, attributes_only, &value);
	if (r < 0)
		return r;
	r = value_unseal(e->keys, key->bytes, key->size, b->bytes, b->size, attributes_only, value.memory);
	if (r < 0) {
		free(value.memory);
		return r;
	}
	*ret_value = value;
	return 0;
}

struct overlay_item *local_find(struct engine_local *e, const uint8_t *key, size_t key_size)
{
	struct overlay_item *item = overlay_find(e->open, key, key_size);

	return !item && e->sealed ? overlay_find(e->sealed, key, key_size) : item;
}

int local_get(struct engine *engine, const struct key *key, bool attributes_only,
	      struct store_value *ret_value)
{
	struct engine_local *e = local_of(engine);
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct index_reader *reader;
	struct overlay_item *item;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	local_note_touch(e);
	pthread_mutex_lock(&e->maps);
	item = local_find(e, key->bytes, key->size);
	r = item ? value_from_overlay(item, attributes_only, ret_value) : index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (!item && r == 0) {
		r = index_get(reader, key->bytes, key->size, 0, &b);
		if (r == 0)
			r = value_from_index(e, key, &b, attributes_only, ret_value);
		else if (r == INDEX_ABSENT)
			r = STORE_ABSENT;
	}
	index_reader_give(e->index, reader);
	return r;
}
