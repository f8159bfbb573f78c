/*
 * test-engine-threads.c - many clients at once: no lost update, no half
 * transaction, no number twice.
 */
#include "tests/store/test-engine.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 200
#define BODY 80

static void run(void *(*work)(void *), int threads)
{
	pthread_t ids[THREADS];

	for (intptr_t i = 0; i < threads; i++)
		ck_assert_int_eq(pthread_create(&ids[i], NULL, work, (void *)i), 0);
	for (int i = 0; i < threads; i++) {
		void *failed = NULL;

		pthread_join(ids[i], &failed);
		ck_assert_ptr_null(failed);
	}
}

/* Check's assertions leave by longjmp: threads answer with the line instead. */
#define need(expression)                                   \
	do {                                               \
		if (!(expression))                         \
			return (void *)(intptr_t)__LINE__; \
	} while (0)

/* Reads the number in an item and puts one more, on condition that nobody was quicker. */
static int increment(struct key key)
{
	struct store_value value;
	uint8_t bytes[8];
	struct store_op op = {
		.kind = STORE_PUT, .condition = STORE_IF_VERSION, .key = key, .attrs = bytes, .attrs_size = 8
	};
	int result = store_get(store, &key, true, &value);

	if (result)
		return result < 0 ? result : -EIO;
	util_put_le64(bytes, util_get_le64(value.attrs) + 1);
	op.version = value.version;
	store_value_release(&value);
	return store_transact(store, STORE_GROWING, &op, 1, NULL);
}

static void *increment_many(void *thread)
{
	struct key key = item_key(20, "number");

	for (int i = 0; i < ROUNDS; i++) {
		struct store_retry retry = { 0 };
		int result;

		do
			result = increment(key);
		while (store_retry(&retry, &result));
		need(result == 0);
	}
	return NULL;
}

START_TEST(test_no_update_is_lost)
{
	static const uint8_t zero[8];
	struct store_value value;
	struct store_op op;
	struct key key;

	engine_start(_i);
	key = item_key(20, "number");
	op = op_put(key, "", NULL, STORE_ANY, 0);
	op.attrs = zero;
	op.attrs_size = 8;
	ck_assert_int_eq(transact1(op), 0);
	run(increment_many, THREADS);
	ck_assert_int_eq(store_get(store, &key, true, &value), 0);
	ck_assert_uint_eq(util_get_le64(value.attrs), THREADS * ROUNDS);
	store_value_release(&value);
	engine_stop();
}
END_TEST

static void *add_many(void *thread)
{
	struct store_op op = op_add(meta_key("n"), 3, 1);

	for (int i = 0; i < ROUNDS; i++)
		need(store_transact(store, STORE_GROWING, &op, 1, NULL) == 0);
	return NULL;
}

START_TEST(test_adding_commutes)
{
	engine_start(_i);
	run(add_many, THREADS);
	ck_assert_int_eq(counter_of(meta_key("n"), 3), THREADS * ROUNDS);
	engine_stop();
}
END_TEST

/* One thread changes two items and a body together, one checkpoints, the others look. */
static bool stop_reading;

static void *write_pairs(void *thread)
{
	char text[9] = { 0 };

	for (int i = 0; i < ROUNDS; i++) {
		struct store_op ops[3];

		memset(text, 'a' + i % 26, 8);
		ops[0] = op_put(item_key(20, "one"), text, NULL, STORE_ANY, 0);
		ops[1] = op_put(item_key(20, "two"), text, NULL, STORE_ANY, 0);
		ops[2] = op_write(BODY, 0, text, 8);
		need(store_transact(store, STORE_GROWING, ops, 3, NULL) == 0);
		if (i % 50 == 49)
			need(store_checkpoint(store) == 0);
	}
	__atomic_store_n(&stop_reading, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *read_pairs(void *thread)
{
	struct store_query query = { .limit = 2 };
	struct store_page page;
	char text[8];

	key_range_live(20, &query.range);
	while (!__atomic_load_n(&stop_reading, __ATOMIC_ACQUIRE)) {
		need(store_query(store, &query, &page) == 0);
		need(page.count == 0 || page.count == 2);
		need(!page.count || page.rows[0].value.version == page.rows[1].value.version);
		need(!page.count || !memcmp(page.rows[0].value.attrs, page.rows[1].value.attrs, 8));
		store_page_release(&page);
		need(store_body_read(store, BODY, 0, text, 8) == 0);
		for (int i = 1; i < 8; i++)
			need(text[i] == text[0]);
	}
	return NULL;
}

static void *write_or_read_pairs(void *thread)
{
	return thread ? read_pairs(thread) : write_pairs(thread);
}

START_TEST(test_no_transaction_is_seen_half)
{
	engine_start(_i);
	stop_reading = false;
	run(write_or_read_pairs, 3);
	engine_stop();
}
END_TEST

#define NUMBERS 3000
static uint64_t ids[THREADS][NUMBERS], seqs[THREADS][NUMBERS];

static void *take_numbers(void *thread)
{
	intptr_t t = (intptr_t)thread;

	for (int i = 0; i < NUMBERS; i++) {
		need(store_new_id(store, &ids[t][i]) == 0);
		need(store_new_seq(store, &seqs[t][i]) == 0);
		need(i == 0 || seqs[t][i] > seqs[t][i - 1]);
	}
	return NULL;
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void expect_distinct(uint64_t *numbers, size_t count)
{
	qsort(numbers, count, sizeof(*numbers), order);
	for (size_t i = 1; i < count; i++)
		ck_assert_uint_ne(numbers[i - 1], numbers[i]);
}

START_TEST(test_threads_get_numbers_of_their_own)
{
	engine_start(_i);
	run(take_numbers, THREADS);
	expect_distinct(&ids[0][0], THREADS * NUMBERS);
	expect_distinct(&seqs[0][0], THREADS * NUMBERS);
	engine_stop();
}
END_TEST

TCase *engine_threads(void)
{
	TCase *t = tcase_create("threads");

	tcase_set_timeout(t, 200);
	add_engine_test(t, test_no_update_is_lost);
	add_engine_test(t, test_adding_commutes);
	add_engine_test(t, test_no_transaction_is_seen_half);
	add_engine_test(t, test_threads_get_numbers_of_their_own);
	return t;
}
