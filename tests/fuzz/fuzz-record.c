/*
 * fuzz-record.c - every record decoder over the same bytes. There is one
 * encoding of a record: what decodes must encode to the bytes it came from.
 */
#include <string.h>

#include "store/record.h"
#include "tests/fuzz/fuzz.h"

static void expect_same(int result, struct buffer *b, const uint8_t *bytes, size_t size)
{
	FUZZ_EXPECT(result == 0 && !b->failed);
	FUZZ_EXPECT(b->size == size && memcmp(b->bytes, bytes, size) == 0);
	buffer_release(b);
}

static void fuzz_xattrs(const uint8_t *list, size_t size)
{
	const uint8_t *value;
	const char *name;
	size_t at = 0, value_size;
	int result;

	while ((result = record_xattr_next(list, size, &at, &name, &value, &value_size)) > 0) {
		FUZZ_EXPECT(at <= size && (const uint8_t *)name >= list);
		FUZZ_EXPECT(value_size == 0 || (value >= list && value + value_size <= list + size));
	}
}

static void fuzz_item(const struct store_value *value)
{
	struct buffer b = { 0 };
	struct item item;

	if (record_decode_item(value, &item) < 0)
		return;
	fuzz_xattrs(item.xattrs, item.xattrs_size);
	if (value->attrs[1] == 2) /* LINK */
		expect_same(record_encode_link(&item, &b), &b, value->attrs, value->attrs_size);
	else
		expect_same(record_encode_item(&item, &b), &b, value->attrs, value->attrs_size);
}

static void fuzz_small(const struct store_value *value)
{
	struct buffer b = { 0 };
	struct key_codec codec = { .sealed_names = false };
	struct guard guard;
	struct shadow shadow;
	struct trash_row row;
	struct batch batch;
	int64_t counters[STORE_COUNTERS_MAX];

	if (record_decode_guard(value, &guard) == 0)
		expect_same(record_encode_guard(&guard, &b), &b, value->attrs, value->attrs_size);
	if (record_decode_shadow(value, &shadow) == 0)
		expect_same(record_encode_shadow(&shadow, &b), &b, value->attrs, value->attrs_size);
	if (record_decode_trash(&codec, value, &row) == 0)
		expect_same(record_encode_trash(&row, &b), &b, value->attrs, value->attrs_size);
	if (record_decode_batch(value, &batch) == 0)
		expect_same(record_encode_batch(&batch, &b), &b, value->attrs, value->attrs_size);
	if (record_decode_counters(value, counters) == 0)
		FUZZ_EXPECT(value->attrs_size == RECORD_COUNTERS_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct store_value value = { .version = 1, .attrs = bytes, .attrs_size = size };

	fuzz_item(&value);
	fuzz_small(&value);
	fuzz_xattrs(bytes, size);
	/* With content: it must fit what the attributes say. */
	value.content = bytes;
	value.content_size = size;
	fuzz_item(&value);
	return 0;
}
