/*
 * change.c - encodes and decodes the changes of a transaction.
 */
#include "store/change.h"

#define KEY_HEAD 4

static void encode_key(const struct change *c, struct buffer *b)
{
	buffer_append_le16(b, c->key_size);
	buffer_append_le16(b, c->partition_size);
	buffer_append(b, c->key, c->key_size);
}

void change_encode(const struct change *c, struct buffer *b)
{
	uint8_t ref[BODY_REF_SIZE];

	buffer_append_u8(b, c->kind);
	if (c->kind <= CHANGE_ADD)
		encode_key(c, b);
	else
		buffer_append_le64(b, c->body);
	switch (c->kind) {
	case CHANGE_PUT:
		buffer_append_le32(b, c->attrs_size);
		buffer_append_le32(b, c->content_size);
		buffer_append(b, c->attrs, c->attrs_size);
		buffer_append(b, c->content, c->content_size);
		break;
	case CHANGE_ADD:
		buffer_append_u8(b, (uint8_t)c->counter);
		buffer_append_le64(b, (uint64_t)c->delta);
		break;
	case CHANGE_PATCH:
		buffer_append_le64(b, c->offset);
		buffer_append_le32(b, (uint32_t)c->length);
		buffer_append(b, c->bytes, c->length);
		break;
	case CHANGE_CHUNK:
		buffer_append_le64(b, c->index);
		body_ref_encode(&c->ref, ref);
		buffer_append(b, ref, sizeof(ref));
		break;
	case CHANGE_ZERO:
		buffer_append_le64(b, c->offset);
		buffer_append_le64(b, c->length);
		break;
	case CHANGE_TRUNCATE:
		buffer_append_le64(b, c->offset);
		break;
	case CHANGE_DELETE:
	case CHANGE_FREE:
		break;
	}
}

static bool decode_key(struct reader *r, struct change *c)
{
	c->key_size = reader_le16(r);
	c->partition_size = reader_le16(r);
	c->key = reader_take(r, c->key_size);
	return c->key && c->partition_size && c->partition_size <= c->key_size && c->key_size <= KEY_MAX;
}

static bool decode_put(struct reader *r, struct change *c)
{
	c->attrs_size = reader_le32(r);
	c->content_size = reader_le32(r);
	c->attrs = reader_take(r, c->attrs_size);
	c->content = reader_take(r, c->content_size);
	return true;
}

static bool decode_patch(struct reader *r, struct change *c)
{
	c->offset = reader_le64(r);
	c->length = reader_le32(r);
	c->bytes = reader_take(r, c->length);
	return c->length && c->offset % BODY_CHUNK_SIZE + c->length <= BODY_CHUNK_SIZE &&
	       c->offset <= INT64_MAX - c->length;
}

static bool decode_chunk(struct reader *r, struct change *c)
{
	const uint8_t *ref;

	c->index = reader_le64(r);
	ref = reader_take(r, BODY_REF_SIZE);
	return ref && c->index <= INT64_MAX / BODY_CHUNK_SIZE && body_ref_decode(ref, &c->ref) == 0;
}

static bool decode(struct reader *r, struct change *c)
{
	switch (c->kind) {
	case CHANGE_PUT:
		return decode_key(r, c) && decode_put(r, c);
	case CHANGE_DELETE:
		return decode_key(r, c);
	case CHANGE_ADD:
		if (!decode_key(r, c))
			return false;
		c->counter = reader_u8(r);
		c->delta = (int64_t)reader_le64(r);
		return c->counter < STORE_COUNTERS_MAX;
	case CHANGE_PATCH:
		c->body = reader_le64(r);
		return decode_patch(r, c);
	case CHANGE_CHUNK:
		c->body = reader_le64(r);
		return decode_chunk(r, c);
	case CHANGE_ZERO:
		c->body = reader_le64(r);
		c->offset = reader_le64(r);
		c->length = reader_le64(r);
		return c->offset <= INT64_MAX && c->length <= INT64_MAX - c->offset;
	case CHANGE_TRUNCATE:
		c->body = reader_le64(r);
		c->offset = reader_le64(r);
		return c->offset <= INT64_MAX;
	case CHANGE_FREE:
		c->body = reader_le64(r);
		return true;
	}
	return false;
}

int change_next(struct reader *r, struct change *ret_change)
{
	struct change change = { 0 };

	if (reader_done(r))
		return 0;
	change.kind = (enum change_kind)reader_u8(r);
	if (!decode(r, &change) || r->failed)
		return -EBADMSG;
	*ret_change = change;
	return 1;
}

size_t change_overlay_bytes(const struct change *c)
{
	switch (c->kind) {
	case CHANGE_PUT:
		return OVERLAY_ENTRY_BYTES + c->key_size + c->attrs_size + c->content_size;
	case CHANGE_DELETE:
		return OVERLAY_ENTRY_BYTES + c->key_size;
	case CHANGE_ADD:
		return OVERLAY_ENTRY_BYTES + c->key_size + 8 * STORE_COUNTERS_MAX;
	case CHANGE_PATCH:
		return OVERLAY_PATCH_BYTES;
	case CHANGE_CHUNK:
		return 3 * OVERLAY_ENTRY_BYTES;
	case CHANGE_ZERO:
	case CHANGE_TRUNCATE:
		return 2 * OVERLAY_PATCH_BYTES + 8 * OVERLAY_ENTRY_BYTES;
	case CHANGE_FREE:
		return 8 * OVERLAY_ENTRY_BYTES + KEY_MAX;
	}
	return 0;
}

size_t change_size(const struct change *c)
{
	return 32 + KEY_HEAD + c->key_size + c->attrs_size + c->content_size + BODY_REF_SIZE +
	       (c->kind == CHANGE_PATCH ? c->length : 0);
}
