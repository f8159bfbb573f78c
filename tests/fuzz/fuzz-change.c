/*
 * fuzz-change.c - the contents of a journal record. What decodes encodes to the
 * same bytes, and lies within the record.
 */
#include <string.h>

#include "store/change.h"
#include "tests/fuzz/fuzz.h"

static void check_change(const struct change *c, const uint8_t *from, size_t size)
{
	struct buffer b = { 0 };

	FUZZ_EXPECT(c->key_size <= KEY_MAX && c->partition_size <= c->key_size);
	if (c->kind == CHANGE_PATCH)
		FUZZ_EXPECT(c->length && c->offset % BODY_CHUNK_SIZE + c->length <= BODY_CHUNK_SIZE);
	if (c->kind == CHANGE_CHUNK)
		FUZZ_EXPECT(c->ref.length && c->ref.length <= BODY_CHUNK_SIZE);
	if (c->kind == CHANGE_ADD)
		FUZZ_EXPECT(c->counter < STORE_COUNTERS_MAX);
	change_encode(c, &b);
	FUZZ_EXPECT(!b.failed && b.size == size && memcmp(b.bytes, from, size) == 0);
	FUZZ_EXPECT(size <= change_size(c));
	buffer_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct reader r = { .bytes = bytes, .size = size };
	struct change change;
	size_t from = 0;

	while (change_next(&r, &change) == 1) {
		check_change(&change, bytes + from, r.at - from);
		from = r.at;
	}
	FUZZ_EXPECT(r.at <= size);
	return 0;
}
