/*
 * test-handle.c - a listing goes on after the key of any entry it returned.
 */
#include <stdio.h>

#include "fs/handle.h"
#include "tests/lib/test.h"

static struct handle *handle;

static void setup(void)
{
	ck_assert_int_eq(handle_new(1, &handle), 0);
}

static void teardown(void)
{
	handle_free(handle);
}

static struct key numbered(unsigned i)
{
	struct key key = { .partition_size = 1 };

	key.size = (uint16_t)snprintf((char *)key.bytes, sizeof(key.bytes), "P%08u", i);
	return key;
}

static unsigned number(const struct key *key)
{
	unsigned i;

	ck_assert_int_eq(sscanf((const char *)key->bytes, "P%08u", &i), 1);
	return i;
}

static uint64_t add(unsigned i)
{
	struct key key = numbered(i);
	uint64_t cookie = handle_add(handle, &key);

	ck_assert_uint_ne(cookie, 0);
	return cookie;
}

START_TEST(empty_handle_starts_at_the_beginning)
{
	struct key key;

	ck_assert(!handle_seek(handle, 0, &key));
	ck_assert(!handle_seek(handle, 17, &key));
}
END_TEST

START_TEST(every_recent_entry_can_be_gone_on_after)
{
	uint64_t cookies[1000];
	struct key key;

	for (unsigned i = 0; i < 1000; i++)
		cookies[i] = add(i);
	for (unsigned i = 0; i < 1000; i++) {
		ck_assert(handle_seek(handle, cookies[i], &key));
		ck_assert_uint_eq(number(&key), i);
		ck_assert_uint_eq(key.partition_size, 1);
	}
}
END_TEST

START_TEST(going_back_keeps_later_positions)
{
	uint64_t cookies[100];
	struct key key;

	for (unsigned i = 0; i < 100; i++)
		cookies[i] = add(i);
	ck_assert(handle_seek(handle, cookies[10], &key));
	ck_assert_uint_eq(add(11), cookies[11]);
	ck_assert_uint_gt(add(13), cookies[99]); /* 12 is gone */
	ck_assert(handle_seek(handle, cookies[50], &key));
	ck_assert_uint_eq(number(&key), 50);
}
END_TEST

START_TEST(far_back_repeats_but_never_skips)
{
	enum {
		MANY = 100000
	};
	static uint64_t cookies[MANY];
	struct key key;

	for (unsigned i = 0; i < MANY; i++)
		cookies[i] = add(i);
	ck_assert(!handle_seek(handle, cookies[0], &key));
	for (unsigned i = HANDLE_BLOCK; i < MANY; i += 97) {
		ck_assert(handle_seek(handle, cookies[i], &key));
		ck_assert_uint_le(number(&key), i);
		ck_assert_uint_ge(number(&key) + HANDLE_BLOCK, i);
	}
	for (unsigned i = MANY - HANDLE_EXACT / 2; i < MANY && handle_seek(handle, cookies[i], &key); i++)
		ck_assert_uint_eq(number(&key), i);
}
END_TEST

START_TEST(jumps_do_not_mix_up_where_blocks_begin)
{
	uint64_t cookies[600];
	struct key key;

	for (unsigned i = 0; i < 600; i++)
		cookies[i] = add(i);
	/* Back to the 100th and on from there, far enough to thin out all of the first run. */
	ck_assert(handle_seek(handle, cookies[100], &key));
	for (unsigned i = 101; i < 101 + 3 * HANDLE_EXACT; i++)
		add(i);
	ck_assert(handle_seek(handle, cookies[400], &key));
	ck_assert_uint_le(number(&key), 400);
}
END_TEST

START_TEST(rewinding_starts_anew)
{
	struct key key;
	uint64_t before = add(1);

	handle_rewind(handle);
	ck_assert(!handle_seek(handle, 0, &key));
	ck_assert_uint_gt(add(2), before);
	ck_assert(!handle_seek(handle, before, &key));
}
END_TEST

START_TEST(going_to_the_start_keeps_positions)
{
	uint64_t cookies[100];
	struct key key;

	for (unsigned i = 0; i < 100; i++)
		cookies[i] = add(i);
	ck_assert(!handle_seek(handle, 0, &key));
	ck_assert_uint_eq(add(0), cookies[0]);
	ck_assert_uint_eq(add(1), cookies[1]);
	ck_assert(handle_seek(handle, cookies[60], &key));
	ck_assert_uint_eq(number(&key), 60);
	/* The first is gone, and another one came before it. */
	ck_assert(!handle_seek(handle, 0, &key));
	ck_assert_uint_gt(add(500), cookies[99]);
	ck_assert(handle_seek(handle, cookies[60], &key));
	ck_assert_uint_eq(number(&key), 60);
}
END_TEST

START_TEST(damage_is_told_once)
{
	ck_assert(!handle_take_damaged(handle));
	handle_set_damaged(handle);
	ck_assert(handle_take_damaged(handle));
	ck_assert(!handle_take_damaged(handle));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/handle");
	TCase *tests = tcase_create("handle");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, empty_handle_starts_at_the_beginning);
	tcase_add_test(tests, every_recent_entry_can_be_gone_on_after);
	tcase_add_test(tests, going_back_keeps_later_positions);
	tcase_add_test(tests, far_back_repeats_but_never_skips);
	tcase_add_test(tests, jumps_do_not_mix_up_where_blocks_begin);
	tcase_add_test(tests, rewinding_starts_anew);
	tcase_add_test(tests, going_to_the_start_keeps_positions);
	tcase_add_test(tests, damage_is_told_once);
	suite_add_tcase(suite, tests);
	return test_main(suite);
}
