/*
 * test-util.c - numbers as bytes, the growing buffer, the careful reader.
 */
#include "store/util.h"

#include "tests/lib/test.h"

START_TEST(test_numbers_keep_their_byte_order)
{
	static const uint8_t little[] = { 8, 7, 6, 5, 4, 3, 2, 1 }, big[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint64_t v = UINT64_C(0x0102030405060708);
	uint8_t bytes[8];

	util_put_le64(bytes, v);
	ck_assert_mem_eq(bytes, little, 8);
	ck_assert_uint_eq(util_get_le64(bytes), v);
	util_put_be64(bytes, v);
	ck_assert_mem_eq(bytes, big, 8);
	ck_assert_uint_eq(util_get_be64(bytes), v);
	util_put_le32(bytes, (uint32_t)v);
	ck_assert_mem_eq(bytes, little, 4);
	ck_assert_uint_eq(util_get_le32(bytes), (uint32_t)v);
	util_put_be32(bytes, (uint32_t)v);
	ck_assert_mem_eq(bytes, big + 4, 4);
	ck_assert_uint_eq(util_get_be32(bytes), (uint32_t)v);
	util_put_le16(bytes, (uint16_t)v);
	ck_assert_mem_eq(bytes, little, 2);
	ck_assert_uint_eq(util_get_le16(bytes), (uint16_t)v);
}
END_TEST

START_TEST(test_a_buffer_grows)
{
	struct buffer b = { 0 };

	for (int i = 0; i < 10000; i++)
		buffer_append_le32(&b, (uint32_t)i);
	ck_assert(!b.failed);
	ck_assert_uint_eq(b.size, 40000);
	ck_assert_uint_eq(util_get_le32(b.bytes + 4 * 7777), 7777);
	buffer_reset(&b);
	ck_assert_uint_eq(b.size, 0);
	buffer_append_u8(&b, 1);
	buffer_append_le16(&b, 0x0302);
	buffer_append_le64(&b, 4);
	ck_assert_uint_eq(b.size, 11);
	ck_assert_mem_eq(b.bytes, "\1\2\3\4\0\0\0\0\0\0", 11);
	buffer_release(&b);
	ck_assert_ptr_null(b.bytes);
	buffer_release(NULL);
}
END_TEST

START_TEST(test_room_can_be_appended_and_filled_later)
{
	struct buffer b = { 0 };
	uint8_t *at = buffer_append(&b, NULL, 3);

	ck_assert_ptr_nonnull(at);
	memcpy(at, "abc", 3);
	ck_assert_mem_eq(b.bytes, "abc", 3);
	ck_assert_ptr_nonnull(buffer_append(&b, NULL, 0));
	ck_assert_uint_eq(b.size, 3);
	buffer_release(&b);
}
END_TEST

START_TEST(test_a_buffer_remembers_that_it_failed)
{
	struct buffer b = { 0 };

	buffer_append(&b, "abc", 3);
	ck_assert_ptr_null(buffer_append(&b, NULL, SIZE_MAX - 1));
	ck_assert(b.failed);
	buffer_append(&b, "def", 3);
	ck_assert_uint_eq(b.size, 3);
	buffer_reset(&b);
	ck_assert(!b.failed);
	ck_assert_ptr_nonnull(buffer_append(&b, "def", 3));
	buffer_release(&b);
}
END_TEST

START_TEST(test_a_reader_takes_what_is_there)
{
	static const uint8_t bytes[] = { 1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 'x' };
	struct reader r = { .bytes = bytes, .size = sizeof(bytes) };

	ck_assert_uint_eq(reader_u8(&r), 1);
	ck_assert_uint_eq(reader_le16(&r), 2);
	ck_assert_uint_eq(reader_le32(&r), 3);
	ck_assert_uint_eq(reader_le64(&r), 4);
	ck_assert(!reader_done(&r));
	ck_assert_ptr_eq(reader_take(&r, 1), bytes + 15);
	ck_assert(reader_done(&r));
}
END_TEST

START_TEST(test_a_reader_never_reads_past_the_end)
{
	static const uint8_t bytes[7];
	struct reader r = { .bytes = bytes, .size = sizeof(bytes) };

	ck_assert_uint_eq(reader_le64(&r), 0);
	ck_assert(r.failed);
	ck_assert_uint_eq(r.at, 0);
	ck_assert_ptr_null(reader_take(&r, 1));
	ck_assert(!reader_done(&r));
	r = (struct reader){ .bytes = bytes, .size = sizeof(bytes) };
	ck_assert_ptr_null(reader_take(&r, SIZE_MAX));
	ck_assert(r.failed);
}
END_TEST

START_TEST(test_an_empty_reader_is_done)
{
	struct reader r = { 0 };

	ck_assert(reader_done(&r));
	ck_assert_uint_eq(reader_u8(&r), 0);
	ck_assert(!reader_done(&r));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/util");
	TCase *t = tcase_create("util");

	tcase_add_test(t, test_numbers_keep_their_byte_order);
	tcase_add_test(t, test_a_buffer_grows);
	tcase_add_test(t, test_room_can_be_appended_and_filled_later);
	tcase_add_test(t, test_a_buffer_remembers_that_it_failed);
	tcase_add_test(t, test_a_reader_takes_what_is_there);
	tcase_add_test(t, test_a_reader_never_reads_past_the_end);
	tcase_add_test(t, test_an_empty_reader_is_done);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
