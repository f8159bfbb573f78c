/*
 * test-nomem.c - memory ends at the n-th allocation, for every n: the request
 * answers -ENOMEM, nothing of it was done, nothing leaks, and the same request
 * succeeds when there is memory again.
 *
 * The linker sends the store's allocations here (--wrap). They fail only in the
 * thread that asked for it: the engine's own threads are not meant.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "store/record.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

static __thread long until_failure; /* 0: never */
static __thread bool failed;

static bool fails(void)
{
	if (!until_failure || --until_failure)
		return false;
	failed = true;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, count, size);
}

/* ---- the store ---------------------------------------------------------- */

static struct store *store;
static struct test_clock now;

static void start(bool local)
{
	struct store_create_options make = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store_open_options options = { .clock = &now.clock, .map_bytes = 64 << 20 };
	char path[4200];

	test_clock_init(&now);
	if (!local) {
		ck_assert_int_eq(store_open_memory(&now.clock, STORE_NAMES_ORDERED, &store), 0);
		return;
	}
	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &make), 0);
	ck_assert_int_eq(store_open(path, &options, NULL, &store), 0);
}

static void stop(void)
{
	ck_assert_int_eq(store_close(store), 0);
}

#define BODY 90
#define WRITTEN 70000

static struct place place_of(int i)
{
	struct place at = { .directory = 20, .state = KEY_ACT };

	snprintf(at.name, sizeof(at.name), "file%d", i);
	return at;
}

/* Puts a few items, adds to counters, writes to a body: all of it or nothing. */
static int change(int round)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	static uint8_t bytes[WRITTEN];
	struct item item = {
		.id = 1000 + (uint64_t)round,
		.mode = S_IFREG | 0644,
		.size = 3,
		.content = (const uint8_t *)"new",
		.content_size = 3,
	};

	memset(bytes, round, sizeof(bytes));
	for (int i = 0; i < 20; i++) {
		struct place at = place_of(round * 100 + i);

		transaction_put_item(&t, store, &at, &item, 0);
	}
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 20);
	transaction_body_write(&t, BODY, (uint64_t)round * WRITTEN, bytes, sizeof(bytes));
	transaction_body_zero(&t, BODY, (uint64_t)round * WRITTEN, 100);
	return transaction_commit(&t, store, STORE_GROWING, NULL);
}

static int count_items(uint64_t *ret_count)
{
	struct store_query query = { 0 };
	struct store_page page;
	struct key after;
	uint64_t count = 0;
	int result;

	key_range_live(20, &query.range);
	do {
		result = store_query(store, &query, &page);
		if (result)
			return result;
		count += page.count;
		after = page.next;
		query.after = page.more ? &after : NULL;
		store_page_release(&page);
	} while (query.after);
	*ret_count = count;
	return 0;
}

/* Nothing, or all, of the round. */
static bool is_done(int round)
{
	int64_t counters[STORE_COUNTERS_MAX];
	uint64_t items, written = 0;
	uint8_t byte;

	ck_assert_int_eq(count_items(&items), 0);
	ck_assert_int_eq(record_get_counters(store, counters), 0);
	ck_assert_int_eq(counters[COUNTER_LIVE_ITEMS], (int64_t)items);
	ck_assert_int_eq(store_body_read(store, BODY, (uint64_t)(round + 1) * WRITTEN - 1, &byte, 1), 0);
	written = byte == (uint8_t)round;
	ck_assert(items == 20 * (uint64_t)(round - 1) + (written ? 20 : 0));
	return written;
}

#define ROUNDS_MAX 250

START_TEST(test_a_change_is_done_or_not)
{
	int round = 1;
	long n = 0;

	start(_i);
	do {
		int result;

		failed = false;
		until_failure = ++n;
		result = change(round);
		until_failure = 0;
		ck_assert_int_eq(result, failed ? -ENOMEM : 0);
		if (failed) {
			ck_assert(!is_done(round));
			ck_assert_int_eq(change(round), 0);
		}
		ck_assert(is_done(round));
		if (round % 7 == 0)
			ck_assert_int_eq(store_checkpoint(store), 0);
		round++;
	} while (failed && round < ROUNDS_MAX);
	ck_assert(!failed);
	ck_assert_int_gt(n, 5);
	stop();
}
END_TEST

static uint8_t read_bytes[3 * WRITTEN];

static int read_everything(void)
{
	struct store_value value = { 0 };
	struct place at = place_of(100);
	struct item item;
	uint64_t count, usage;
	struct key key;
	int result;

	result = record_get_item(store, &at, false, &value, &item);
	store_value_release(&value);
	if (!result)
		result = count_items(&count);
	if (!result)
		result = store_body_read(store, BODY, 0, read_bytes, sizeof(read_bytes));
	if (!result)
		result = store_body_seek(store, BODY, 5, true, &usage);
	if (!result)
		result = store_body_usage(store, BODY, &usage);
	if (!result)
		result = store_scan(store, NULL, &key);
	return result;
}

START_TEST(test_reading_fails_and_succeeds_again)
{
	long n = 0;

	start(_i);
	for (int round = 1; round < 3; round++) {
		ck_assert_int_eq(change(round), 0);
		ck_assert_int_eq(store_checkpoint(store), 0);
	}
	ck_assert_int_eq(change(3), 0);
	do {
		int result;

		failed = false;
		until_failure = ++n;
		result = read_everything();
		until_failure = 0;
		ck_assert_int_eq(result, failed ? -ENOMEM : 0);
	} while (failed && n < 1000);
	ck_assert(!failed);
	ck_assert_int_gt(n, 2);
	ck_assert_uint_eq(read_bytes[WRITTEN + 100], 1);
	stop();
}
END_TEST

START_TEST(test_numbers_are_not_given_twice)
{
	uint64_t id, last = 0, seq, last_seq = 0, wrong = 0;

	start(_i);
	for (long n = 1; n < 30; n++)
		for (int i = 0; i < 8; i++) {
			test_clock_advance(&now, CLOCK_SECOND_NS);
			/* No assertions meanwhile: they allocate too. */
			until_failure = n;
			for (int k = 0; k < 512; k++)
				if (!store_new_id(store, &id)) {
					wrong += id <= last;
					last = id;
				}
			if (!store_new_seq(store, &seq)) {
				wrong += seq <= last_seq;
				last_seq = seq;
			}
			until_failure = 0;
		}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(last, 20 * 4096);
	stop();
}
END_TEST

START_TEST(test_records_are_encoded_or_not)
{
	struct buffer b = { 0 }, list = { 0 };
	struct batch batch = { .seq = 1 };
	int result;

	until_failure = 1;
	result = record_encode_batch(&batch, &b);
	until_failure = 0;
	ck_assert_int_eq(result, -ENOMEM);
	ck_assert_int_eq(record_encode_batch(&batch, &b), -ENOMEM); /* it remembers */
	buffer_reset(&b);
	ck_assert_int_eq(record_encode_batch(&batch, &b), 0);
	until_failure = 1;
	result = record_xattr_edit(NULL, 0, "user.a", (const uint8_t *)"v", 1, &list);
	until_failure = 0;
	ck_assert_int_eq(result, -ENOMEM);
	buffer_release(&b);
	buffer_release(&list);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/nomem");
	TCase *t = tcase_create("nomem");

	tcase_set_timeout(t, 200);
	tcase_add_loop_test(t, test_a_change_is_done_or_not, 0, 2);
	tcase_add_loop_test(t, test_reading_fails_and_succeeds_again, 0, 2);
	tcase_add_loop_test(t, test_numbers_are_not_given_twice, 0, 2);
	tcase_add_test(t, test_records_are_encoded_or_not);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
