/*
 * test-engine-numbers.c - ids, sequence numbers and the store's clock.
 */
#include "tests/store/test-engine.h"

#define DAY (86400 * CLOCK_SECOND_NS)

static uint64_t new_seq(void)
{
	uint64_t seq = 0;

	ck_assert_int_eq(store_new_seq(store, &seq), 0);
	return seq;
}

static uint64_t new_id(void)
{
	uint64_t id = 0;

	ck_assert_int_eq(store_new_id(store, &id), 0);
	return id;
}

START_TEST(test_ids_are_never_given_twice)
{
	uint64_t last = KEY_ID_FIRST - 1;

	engine_start(_i);
	for (int i = 0; i < 10000; i++) {
		uint64_t id = new_id();

		ck_assert_uint_gt(id, last);
		last = id;
		if (i == 100 || i == 5000)
			engine_again(_i);
	}
	engine_stop();
}
END_TEST

START_TEST(test_seqs_increase_while_the_clock_stands_still)
{
	uint64_t last = 0;

	engine_start(_i);
	for (int i = 0; i < 10000; i++) {
		uint64_t seq = new_seq();

		ck_assert_uint_gt(seq, last);
		last = seq;
	}
	ck_assert_uint_lt(last, (uint64_t)now.realtime_ns + CLOCK_SECOND_NS);
	engine_stop();
}
END_TEST

START_TEST(test_seqs_follow_the_clock)
{
	engine_start(_i);
	for (int i = 0; i < 50; i++) {
		uint64_t seq = new_seq();

		ck_assert_int_lt(llabs((int64_t)seq - now.realtime_ns), 256);
		test_clock_advance(&now, 123456789 + i * CLOCK_SECOND_NS);
	}
	engine_stop();
}
END_TEST

START_TEST(test_seqs_increase_when_the_clock_steps_back)
{
	uint64_t before, after;

	engine_start(_i);
	before = new_seq();
	test_clock_step(&now, -DAY);
	after = new_seq();
	ck_assert_uint_gt(after, before);
	ck_assert_uint_lt(after, before + CLOCK_SECOND_NS);
	ck_assert_int_ge(store_now_ns(store), (int64_t)after);
	engine_stop();
}
END_TEST

START_TEST(test_seqs_increase_over_mounts)
{
	uint64_t last = 0;

	engine_start(_i);
	for (int i = 0; i < 10; i++) {
		for (int j = 0; j < 5; j++) {
			uint64_t seq = new_seq();

			ck_assert_uint_gt(seq, last);
			last = seq;
		}
		test_clock_step(&now, i == 5 ? -now.realtime_ns : -DAY);
		engine_again(_i);
		ck_assert_int_ge(store_now_ns(store), (int64_t)last);
	}
	engine_stop();
}
END_TEST

START_TEST(test_mounts_have_numbers_of_their_own)
{
	uint8_t first;

	engine_start(_i);
	first = (uint8_t)new_seq();
	ck_assert_uint_eq((uint8_t)new_seq(), first);
	if (engine_again(_i))
		ck_assert_uint_ne((uint8_t)new_seq(), first);
	engine_stop();
}
END_TEST

START_TEST(test_the_newest_deletion_holds_the_clock)
{
	uint64_t future;
	struct key key;

	engine_start(_i);
	future = (uint64_t)(now.realtime_ns + 5 * DAY);
	key_trash(future, &key);
	put(key, "x", NULL);
	if (engine_again(_i)) {
		ck_assert_uint_gt(new_seq(), future);
		ck_assert_int_ge(store_now_ns(store), (int64_t)future);
	}
	engine_stop();
}
END_TEST

START_TEST(test_a_clock_before_1970_is_no_time)
{
	engine_start(_i);
	now.realtime_ns = -5 * DAY;
	ck_assert_uint_gt(new_seq(), 0);
	ck_assert_uint_gt(new_seq(), 255);
	ck_assert_int_ge(store_now_ns(store), 0);
	engine_stop();
}
END_TEST

START_TEST(test_reading_the_clock_leaves_no_trace)
{
	engine_start(_i);
	new_seq();
	test_clock_step(&now, 365 * DAY);
	ck_assert_int_eq(store_now_ns(store), now.realtime_ns);
	test_clock_step(&now, -365 * DAY + CLOCK_SECOND_NS);
	ck_assert_int_eq(store_now_ns(store), now.realtime_ns);
	engine_stop();
}
END_TEST

TCase *engine_numbers(void)
{
	TCase *t = tcase_create("numbers");

	tcase_set_timeout(t, 120);
	add_engine_test(t, test_ids_are_never_given_twice);
	add_engine_test(t, test_seqs_increase_while_the_clock_stands_still);
	add_engine_test(t, test_seqs_follow_the_clock);
	add_engine_test(t, test_seqs_increase_when_the_clock_steps_back);
	add_engine_test(t, test_seqs_increase_over_mounts);
	add_engine_test(t, test_mounts_have_numbers_of_their_own);
	add_engine_test(t, test_the_newest_deletion_holds_the_clock);
	add_engine_test(t, test_a_clock_before_1970_is_no_time);
	add_engine_test(t, test_reading_the_clock_leaves_no_trace);
	return t;
}
