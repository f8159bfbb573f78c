/*
 * test-engine-bodies.c - bodies: sparse, cut, zeroed, freed, and atomic with
 * the items beside them.
 */
#include "tests/store/test-engine.h"

#define BODY 70
#define MIB (UINT64_C(1) << 20)

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 2654435761u >> 13 | 1);
}

static void pattern(uint8_t *bytes, uint64_t offset, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(offset + i);
}

static void write_pattern(uint64_t body, uint64_t offset, size_t size)
{
	size_t limit = store_limits(store)->write_bytes;
	uint8_t *bytes = malloc(size);

	pattern(bytes, offset, size);
	for (size_t done = 0; done < size; done += limit)
		ck_assert_int_eq(transact1(op_write(body, offset + done, bytes + done,
						    util_min(limit, size - done))),
				 0);
	free(bytes);
}

static void expect_pattern(uint64_t body, uint64_t offset, size_t size)
{
	uint8_t *want = malloc(size), *got = malloc(size);

	pattern(want, offset, size);
	memset(got, 0xee, size);
	ck_assert_int_eq(store_body_read(store, body, offset, got, size), 0);
	ck_assert(!memcmp(got, want, size));
	free(want);
	free(got);
}

static void expect_zeros(uint64_t body, uint64_t offset, size_t size)
{
	uint8_t *got = malloc(size);
	size_t others = 0;

	memset(got, 0xee, size);
	ck_assert_int_eq(store_body_read(store, body, offset, got, size), 0);
	for (size_t i = 0; i < size; i++)
		others += got[i] != 0;
	ck_assert_uint_eq(others, 0);
	free(got);
}

static uint64_t usage(uint64_t body)
{
	uint64_t bytes = UINT64_MAX;

	ck_assert_int_eq(store_body_usage(store, body, &bytes), 0);
	return bytes;
}

static uint64_t seek(uint64_t offset, bool data)
{
	uint64_t at = 1234567;

	ck_assert_int_eq(store_body_seek(store, BODY, offset, data, &at), 0);
	return at;
}

/* No engine tells data from holes by larger pieces than this. */
#define BLOCK (UINT64_C(64) << 10)

/* What the engine allocates at the least. */
static uint64_t unit_of_engine(void)
{
	uint64_t unit;

	ck_assert_int_eq(transact1(op_write(69, 0, "x", 1)), 0);
	unit = usage(69);
	ck_assert_int_eq(transact1(op_free(69)), 0);
	ck_assert_uint_gt(unit, 0);
	return unit;
}

START_TEST(test_what_was_never_written_is_zeros)
{
	engine_start(_i);
	expect_zeros(BODY, 0, 10000);
	expect_zeros(BODY, UINT64_C(1) << 50, 10000);
	ck_assert_uint_eq(usage(BODY), 0);
	ck_assert_uint_eq(seek(0, true), UINT64_MAX);
	ck_assert_uint_eq(seek(77, false), 77);
	engine_stop();
}
END_TEST

START_TEST(test_bytes_are_read_back)
{
	static const size_t sizes[] = { 1,     511,   4095,  4096,   4097,   32767,
					32768, 32769, 65536, 200000, 2500000 };

	engine_start(_i);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t offset = i * 3 * MIB + i * 1001;

		write_pattern(BODY, offset, sizes[i]);
		expect_pattern(BODY, offset, sizes[i]);
		expect_zeros(BODY, offset + sizes[i], 5000);
	}
	ck_assert_int_eq(store_checkpoint(store), 0);
	engine_again(_i);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t offset = i * 3 * MIB + i * 1001;

		expect_pattern(BODY, offset, sizes[i]);
		expect_zeros(BODY, offset + sizes[i], 5000);
	}
	engine_stop();
}
END_TEST

START_TEST(test_a_sparse_body_occupies_what_it_holds)
{
	uint64_t far = UINT64_C(5) << 30, unit;

	engine_start(_i);
	unit = unit_of_engine();
	write_pattern(BODY, 0, 100);
	write_pattern(BODY, far, 100);
	ck_assert_uint_eq(usage(BODY), 2 * unit);
	expect_pattern(BODY, far, 100);
	expect_zeros(BODY, far - 1000, 1000);
	ck_assert_uint_eq(seek(far / 2, true) / BLOCK, far / BLOCK);
	ck_assert_uint_ge(seek(far, false), far + 100);
	ck_assert_uint_le(seek(far, false), far + BLOCK);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_uint_eq(usage(BODY), 2 * unit);
	expect_pattern(BODY, far, 100);
	engine_stop();
}
END_TEST

START_TEST(test_a_zeroed_range_is_zeros_and_given_back)
{
	engine_start(_i);
	write_pattern(BODY, 0, 3 * MIB);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(transact1(op_zero(BODY, MIB - 10, MIB + 20)), 0);
	expect_pattern(BODY, 0, MIB - 10);
	expect_zeros(BODY, MIB - 10, MIB + 20);
	expect_pattern(BODY, 2 * MIB + 10, MIB - 10);
	ck_assert_uint_le(usage(BODY), 2 * MIB + 2 * unit_of_engine());
	ck_assert_uint_eq(seek(MIB + MIB / 2, false), MIB + MIB / 2);
	ck_assert_uint_le(seek(MIB + MIB / 2, true), 2 * MIB + 10);
	ck_assert_int_eq(store_checkpoint(store), 0);
	engine_again(_i);
	expect_pattern(BODY, 0, MIB - 10);
	expect_zeros(BODY, MIB - 10, MIB + 20);
	expect_pattern(BODY, 2 * MIB + 10, MIB - 10);
	engine_stop();
}
END_TEST

START_TEST(test_zeroing_more_than_there_is)
{
	engine_start(_i);
	write_pattern(BODY, 1000, 5000);
	ck_assert_int_eq(transact1(op_zero(BODY, 0, INT64_MAX)), 0);
	expect_zeros(BODY, 0, 10000);
	ck_assert_int_eq(store_checkpoint(store), 0);
	expect_zeros(BODY, 0, 10000);
	ck_assert_uint_eq(usage(BODY), 0);
	ck_assert_uint_eq(seek(0, true), UINT64_MAX);
	engine_stop();
}
END_TEST

START_TEST(test_what_was_cut_does_not_come_back)
{
	static const uint64_t cuts[] = { 0,	1,   4095,    4096,	   4097,    32768,
					 32769, MIB, MIB + 1, 3 * MIB - 1, 3 * MIB, 4 * MIB };

	engine_start(_i);
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		uint64_t kept = util_min(cuts[i], 3 * MIB);

		write_pattern(BODY, 0, 3 * MIB);
		if (i % 2)
			ck_assert_int_eq(store_checkpoint(store), 0);
		ck_assert_int_eq(transact1(op_truncate(BODY, cuts[i])), 0);
		if (kept)
			expect_pattern(BODY, 0, kept);
		expect_zeros(BODY, kept, 2 * MIB);
		/* Growing again shows zeros. */
		write_pattern(BODY, 4 * MIB, 1);
		expect_zeros(BODY, kept, MIB);
		ck_assert_uint_ge(usage(BODY), kept);
	}
	engine_stop();
}
END_TEST

START_TEST(test_a_freed_body_is_gone)
{
	engine_start(_i);
	write_pattern(BODY, 0, 2 * MIB);
	write_pattern(BODY + 1, 0, 5000);
	ck_assert_int_eq(store_checkpoint(store), 0);
	write_pattern(BODY, MIB, 100);
	ck_assert_int_eq(transact1(op_free(BODY)), 0);
	expect_zeros(BODY, 0, 2 * MIB);
	ck_assert_uint_eq(usage(BODY), 0);
	expect_pattern(BODY + 1, 0, 5000);
	ck_assert_int_eq(store_checkpoint(store), 0);
	expect_zeros(BODY, 0, 2 * MIB);
	expect_pattern(BODY + 1, 0, 5000);
	if (engine_again(_i))
		expect_zeros(BODY, 0, 2 * MIB);
	engine_stop();
}
END_TEST

START_TEST(test_body_operations_happen_in_their_order)
{
	struct store_op ops[4];
	uint8_t bytes[8000];

	engine_start(_i);
	pattern(bytes, 0, sizeof(bytes));
	ops[0] = op_write(BODY, 0, bytes, sizeof(bytes));
	ops[1] = op_truncate(BODY, 100);
	ops[2] = op_write(BODY, 200, bytes + 200, 100);
	ops[3] = op_zero(BODY, 250, 1000);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 4, NULL), 0);
	expect_pattern(BODY, 0, 100);
	expect_zeros(BODY, 100, 100);
	expect_pattern(BODY, 200, 50);
	expect_zeros(BODY, 250, 8000);
	ops[0] = op_truncate(BODY, 0);
	ops[1] = op_write(BODY, 5000, bytes, 1);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), 0);
	expect_zeros(BODY, 0, 5000);
	ck_assert_int_eq(store_checkpoint(store), 0);
	expect_zeros(BODY, 0, 5000);
	engine_stop();
}
END_TEST

START_TEST(test_data_and_item_change_together)
{
	struct store_op ops[2];
	struct key key;
	uint64_t version;

	engine_start(_i);
	key = item_key(20, "file");
	version = put(key, "size 0", NULL);
	ops[0] = op_put(key, "size 4", NULL, STORE_IF_VERSION, version + 1);
	ops[1] = op_write(BODY, 0, "data", 4);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), STORE_CONFLICT);
	expect_zeros(BODY, 0, 4);
	ck_assert_uint_eq(usage(BODY), 0);
	ck_assert(item_is(key, "size 0", NULL));
	ops[0].version = version;
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), 0);
	ck_assert(item_is(key, "size 4", NULL));
	ops[0] = op_delete(key, STORE_IF_VERSION, version);
	ops[1] = op_free(BODY);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), STORE_CONFLICT);
	ck_assert_uint_gt(usage(BODY), 0);
	engine_stop();
}
END_TEST

/* Data and holes in turn, by seeking from every offset that matters. */
START_TEST(test_seeking_tells_data_from_holes)
{
	uint64_t end = 39 * BLOCK;

	engine_start(_i);
	for (uint64_t i = 0; i < 40; i += 2)
		write_pattern(BODY, i * BLOCK, BLOCK);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < 40; i++) {
			uint64_t at = i * BLOCK, next_data = i % 2 ? at + BLOCK : at;

			ck_assert_uint_eq(seek(at, true), next_data < end ? next_data : UINT64_MAX);
			ck_assert_uint_eq(seek(at, false), i % 2 ? at : at + BLOCK);
			ck_assert_uint_eq(seek(at + 7, true),
					  i % 2 ? (i < 39 ? at + BLOCK : UINT64_MAX) : at + 7);
			ck_assert_uint_eq(seek(at + 7, false), i % 2 ? at + 7 : at + BLOCK);
		}
		ck_assert_int_eq(store_checkpoint(store), 0);
	}
	ck_assert_uint_eq(usage(BODY), 20 * BLOCK);
	engine_stop();
}
END_TEST

/* Whatever the pieces are, a byte that was written is never called a hole. */
START_TEST(test_seeking_never_calls_data_a_hole)
{
	uint64_t at = 0;

	engine_start(_i);
	for (uint64_t i = 1; i < 30; i++) {
		at += i * 1777;
		write_pattern(BODY, at, i);
		if (i % 8 == 0)
			ck_assert_int_eq(store_checkpoint(store), 0);
		for (uint64_t back = 0; back < 3; back++)
			ck_assert_uint_le(seek(at - back * 600, true), at);
		ck_assert_uint_eq(seek(at, true), at);
		ck_assert_uint_eq(seek(at + i - 1, true), at + i - 1);
		ck_assert_uint_ge(seek(at, false), at + i);
		ck_assert_uint_eq(seek(at + BLOCK, true), UINT64_MAX);
	}
	engine_stop();
}
END_TEST

START_TEST(test_rewriting_does_not_add_up)
{
	engine_start(_i);
	for (int i = 0; i < 10; i++) {
		write_pattern(BODY, 0, 300000);
		if (i % 4 == 3)
			ck_assert_int_eq(store_checkpoint(store), 0);
	}
	ck_assert_uint_le(usage(BODY), 300000 + 2 * unit_of_engine());
	expect_pattern(BODY, 0, 300000);
	engine_stop();
}
END_TEST

START_TEST(test_invalid_body_calls_are_refused)
{
	uint64_t answer;
	uint8_t byte;

	engine_start(_i);
	ck_assert_int_eq(store_body_read(store, 0, 0, &byte, 1), -EINVAL);
	ck_assert_int_eq(store_body_read(store, BODY, UINT64_MAX, &byte, 1), -EINVAL);
	ck_assert_int_eq(store_body_read(store, BODY, INT64_MAX, &byte, 1), -EINVAL);
	ck_assert_int_eq(store_body_read(store, BODY, INT64_MAX - 1, &byte, 1), 0);
	ck_assert_uint_eq(byte, 0);
	ck_assert_int_eq(store_body_seek(store, BODY, UINT64_MAX, true, &answer), -EINVAL);
	ck_assert_int_eq(store_body_usage(store, 0, &answer), -EINVAL);
	engine_stop();
}
END_TEST

TCase *engine_bodies(void)
{
	TCase *t = tcase_create("bodies");

	tcase_set_timeout(t, 120);
	add_engine_test(t, test_what_was_never_written_is_zeros);
	add_engine_test(t, test_bytes_are_read_back);
	add_engine_test(t, test_a_sparse_body_occupies_what_it_holds);
	add_engine_test(t, test_a_zeroed_range_is_zeros_and_given_back);
	add_engine_test(t, test_zeroing_more_than_there_is);
	add_engine_test(t, test_what_was_cut_does_not_come_back);
	add_engine_test(t, test_a_freed_body_is_gone);
	add_engine_test(t, test_body_operations_happen_in_their_order);
	add_engine_test(t, test_data_and_item_change_together);
	add_engine_test(t, test_seeking_tells_data_from_holes);
	add_engine_test(t, test_seeking_never_calls_data_a_hole);
	add_engine_test(t, test_rewriting_does_not_add_up);
	add_engine_test(t, test_invalid_body_calls_are_refused);
	return t;
}
