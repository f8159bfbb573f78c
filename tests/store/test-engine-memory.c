/*
 * test-engine-memory.c - what only the engine in memory has: faults on request
 * and the limits of the strictest engine.
 */
#include "tests/store/test-engine.h"

static void start(void)
{
	engine_start(0);
}

static void inject(struct store_faults faults)
{
	store_memory_inject(store, &faults);
}

START_TEST(test_limits_are_the_strictest)
{
	const struct store_limits *limits;

	start();
	limits = store_limits(store);
	ck_assert_uint_eq(limits->operations, 100);
	ck_assert_uint_eq(limits->transaction_bytes, 4 << 20);
	ck_assert_uint_eq(limits->item_bytes, 400 << 10);
	engine_stop();
}
END_TEST

START_TEST(test_a_conflict_comes_at_the_nth)
{
	struct key key;

	start();
	key = item_key(20, "a");
	inject((struct store_faults){ .conflict_at = 2 });
	ck_assert_int_eq(transact1(op_put(key, "1", NULL, STORE_ANY, 0)), 0);
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_ANY, 0)), STORE_CONFLICT);
	ck_assert(item_is(key, "1", NULL));
	ck_assert_int_eq(transact1(op_put(key, "3", NULL, STORE_ANY, 0)), 0);
	ck_assert(item_is(key, "3", NULL));
	engine_stop();
}
END_TEST

START_TEST(test_an_error_leaves_nothing_done)
{
	struct key key;

	start();
	key = item_key(20, "a");
	inject((struct store_faults){ .error_at = 1 });
	ck_assert_int_eq(transact1(op_put(key, "1", NULL, STORE_ANY, 0)), -EIO);
	ck_assert_uint_eq(version_of(key), 0);
	engine_stop();
}
END_TEST

START_TEST(test_a_lost_answer_was_done)
{
	struct key key;

	start();
	key = item_key(20, "a");
	inject((struct store_faults){ .lost_answer_at = 1 });
	ck_assert_int_eq(transact1(op_put(key, "1", NULL, STORE_ANY, 0)), -EIO);
	ck_assert(item_is(key, "1", NULL));
	inject((struct store_faults){ .lost_answer_at = 1 });
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_IF_ABSENT, 0)), STORE_CONFLICT);
	engine_stop();
}
END_TEST

START_TEST(test_only_growing_ones_find_no_space)
{
	struct store_op op;

	start();
	op = op_put(item_key(20, "a"), "1", NULL, STORE_ANY, 0);
	inject((struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, &op, 1, NULL), 0);
	inject((struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(store_transact(store, STORE_GROWING, &op, 1, NULL), -ENOSPC);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, &op, 1, NULL), 0);
	engine_stop();
}
END_TEST

static uint64_t seen[8];
static size_t seen_count;

static void other_client(void *data, uint64_t n)
{
	seen[seen_count++] = n;
	put(*(struct key *)data, "other", NULL);
}

START_TEST(test_another_client_comes_before)
{
	uint64_t version;
	struct key key;

	start();
	key = item_key(20, "a");
	version = put(key, "mine", NULL);
	seen_count = 0;
	inject((struct store_faults){ .before = other_client, .data = &key });
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_IF_VERSION, version)), STORE_CONFLICT);
	ck_assert(item_is(key, "other", NULL));
	ck_assert_int_eq(transact1(op_check(item_key(20, "b"), STORE_IF_ABSENT, 0)), 0);
	ck_assert_uint_eq(seen_count, 2);
	ck_assert_uint_eq(seen[0], 1);
	ck_assert_uint_eq(seen[1], 2);
	inject((struct store_faults){ 0 });
	engine_stop();
}
END_TEST

/* Each kind of fault at each place: ids and sequence numbers stay unique, whatever the caller is told. */
START_TEST(test_numbers_stand_faults)
{
	uint64_t id, seq, last_id = 0, last_seq = 0;

	start();
	for (int kind = 0; kind < 4; kind++) {
		for (int i = 0; i < 12; i++) {
			struct store_faults faults = { 0 };

			*(kind == 0 ? &faults.conflict_at :
			  kind == 1 ? &faults.lost_answer_at :
			  kind == 2 ? &faults.error_at :
				      &faults.no_space_at) = 1 + (uint64_t)i % 3;
			inject(faults);
			for (int n = 0; n < 4096; n++) {
				test_clock_advance(&now, CLOCK_SECOND_NS);
				if (!store_new_id(store, &id)) {
					ck_assert_uint_gt(id, last_id);
					last_id = id;
				}
				if (n % 64 == 0 && !store_new_seq(store, &seq)) {
					ck_assert_uint_gt(seq, last_seq);
					last_seq = seq;
				}
			}
		}
	}
	ck_assert_uint_gt(last_id, 4096);
	engine_stop();
}
END_TEST

START_TEST(test_retrying_has_an_end)
{
	struct store_retry retry = { 0 };
	int result = 0, tries = 0;

	ck_assert(!store_retry(&retry, &result));
	result = -EIO;
	ck_assert(!store_retry(&retry, &result));
	ck_assert_int_eq(result, -EIO);
	do {
		result = STORE_CONFLICT;
		tries++;
	} while (store_retry(&retry, &result));
	ck_assert_int_eq(tries, 64);
	ck_assert_int_eq(result, -EAGAIN);
}
END_TEST

START_TEST(test_adding_to_another_item_is_refused)
{
	struct key key;

	start();
	key = meta_key("text");
	put(key, "not numbers", NULL);
	ck_assert_int_eq(transact1(op_add(key, 0, 1)), -EBADMSG);
	ck_assert(item_is(key, "not numbers", ""));
	engine_stop();
}
END_TEST

/* A page is never longer than 100 rows, and says so. */
START_TEST(test_pages_are_short)
{
	struct store_query query = { .limit = 1000 };
	struct store_page page;
	char name[3] = { 0 };

	start();
	for (int i = 0; i < 150; i++) {
		name[0] = (char)('a' + i / 26);
		name[1] = (char)('a' + i % 26);
		put(item_key(20, name), "x", NULL);
	}
	key_range_live(20, &query.range);
	ck_assert_int_eq(store_query(store, &query, &page), 0);
	ck_assert_uint_eq(page.count, 100);
	ck_assert(page.more);
	store_page_release(&page);
	engine_stop();
}
END_TEST

TCase *engine_memory(void)
{
	TCase *t = tcase_create("memory");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_limits_are_the_strictest);
	tcase_add_test(t, test_a_conflict_comes_at_the_nth);
	tcase_add_test(t, test_an_error_leaves_nothing_done);
	tcase_add_test(t, test_a_lost_answer_was_done);
	tcase_add_test(t, test_only_growing_ones_find_no_space);
	tcase_add_test(t, test_another_client_comes_before);
	tcase_add_test(t, test_numbers_stand_faults);
	tcase_add_test(t, test_retrying_has_an_end);
	tcase_add_test(t, test_adding_to_another_item_is_refused);
	tcase_add_test(t, test_pages_are_short);
	return t;
}
