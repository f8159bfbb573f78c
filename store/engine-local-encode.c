/*
 * engine-local-encode.c - a transaction becomes the bytes of its journal record.
 *
 * File data in whole chunks is sealed and written to a segment here, before any
 * lock is taken, and the record names it; what is less rides in the record.
 */
#include "store/engine-local-attempt.h"

static void add_change(struct attempt *a, const struct change *change)
{
	change_encode(change, &a->record);
	a->overlay_bytes += change_overlay_bytes(change);
}

/* Whole chunks on their way into a segment. */
struct sealing {
	const struct keyring *keys;
	uint64_t body;
	uint64_t index; /* of the first */
	const uint8_t *bytes;
	uint8_t *cipher;
	struct body_ref *refs;
};

static void seal_one(void *data, size_t i)
{
	const struct sealing *s = data;
	size_t at = i * BODY_CHUNK_SIZE;

	s->refs[i].length = BODY_CHUNK_SIZE;
	s->refs[i].units = BODY_UNITS_ALL;
	body_chunk_seal(s->keys, s->body, s->index + i, s->bytes + at, s->cipher + at, &s->refs[i]);
}

/* Seals `count` whole chunks into one place of a segment. */
static int place_chunks(struct attempt *a, uint64_t body, uint64_t index, const uint8_t *bytes,
			size_t count)
{
	struct engine_local *e = a->e;
	uint64_t stream = index >= SEGMENT_OWN_FROM / BODY_CHUNK_SIZE ? body : SEGMENT_STREAM_SHARED;
	_cleanup_free_ uint8_t *cipher = malloc(count * BODY_CHUNK_SIZE);
	_cleanup_free_ struct body_ref *refs = calloc(count, sizeof(*refs));
	struct sealing sealing = { e->keys, body, index, bytes, cipher, refs };
	uint32_t segment, offset;
	int r;

	if (!cipher || !refs)
		return -ENOMEM;
	crew_run(e->crew, seal_one, &sealing, count);
	r = segments_append(e->segments, stream, cipher, count * BODY_CHUNK_SIZE, &segment, &offset);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		refs[i].segment = segment;
		refs[i].offset = offset + (uint32_t)i * BODY_CHUNK_SIZE;
		add_change(a, &(struct change){ .kind = CHANGE_CHUNK,
						.body = body,
						.index = index + i,
						.ref = refs[i] });
	}
	return 0;
}

static int encode_write(struct attempt *a, const struct store_op *op)
{
	const uint8_t *bytes = op->bytes;
	uint64_t at = op->offset, end = op->offset + op->length;

	while (at < end) {
		uint64_t size = util_min(BODY_CHUNK_SIZE - at % BODY_CHUNK_SIZE, end - at);
		int r = 0;

		if (size == BODY_CHUNK_SIZE) {
			size_t count = (end - at) / BODY_CHUNK_SIZE;

			size = count * BODY_CHUNK_SIZE;
			r = place_chunks(a, op->body, at / BODY_CHUNK_SIZE, bytes, count);
		} else {
			add_change(a, &(struct change){
					      .kind = CHANGE_PATCH,
					      .body = op->body,
					      .offset = at,
					      .length = size,
					      .bytes = bytes,
				      });
			a->patches++;
		}
		if (r < 0)
			return r;
		at += size;
		bytes += size;
	}
	return 0;
}

static int encode_op(struct attempt *a, const struct store_op *op)
{
	struct change change = {
		.key = op->key.bytes,
		.key_size = op->key.size,
		.partition_size = op->key.partition_size,
		.body = op->body,
		.offset = op->offset,
	};

	switch (op->kind) {
	case STORE_PUT:
		change.kind = CHANGE_PUT;
		change.attrs = op->attrs;
		change.attrs_size = (uint32_t)op->attrs_size;
		change.content = op->content;
		change.content_size = (uint32_t)op->content_size;
		break;
	case STORE_DELETE:
		change.kind = CHANGE_DELETE;
		break;
	case STORE_ADD:
		change.kind = CHANGE_ADD;
		change.counter = op->counter;
		change.delta = op->delta;
		a->adds = true;
		break;
	case STORE_BODY_WRITE:
		return encode_write(a, op);
	case STORE_BODY_ZERO:
		change.kind = CHANGE_ZERO;
		change.length = op->length;
		a->patches += 2;
		break;
	case STORE_BODY_TRUNCATE:
		change.kind = CHANGE_TRUNCATE;
		a->patches += op->offset % BODY_CHUNK_SIZE != 0;
		break;
	case STORE_BODY_FREE:
		change.kind = CHANGE_FREE;
		a->frees = true;
		break;
	case STORE_CHECK:
	case STORE_EMPTY:
		return 0;
	}
	add_change(a, &change);
	return 0;
}

int attempt_encode(struct attempt *a)
{
	int r = 0;

	for (size_t i = 0; i < a->count && r == 0; i++)
		r = encode_op(a, &a->ops[i]);
	return r < 0 ? r : a->record.failed ? -ENOMEM : 0;
}

void attempt_release_chunks(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct reader changes = { .bytes = a->record.bytes, .size = a->record.size };
	struct change change;

	while (change_next(&changes, &change) > 0) {
		if (change.kind != CHANGE_CHUNK)
			continue;
		pthread_mutex_lock(&e->commit);
		if (overlay_reserve(e->open, OVERLAY_ENTRY_BYTES) == 0)
			overlay_release(e->open, &change.ref);
		pthread_mutex_unlock(&e->commit);
	}
}
