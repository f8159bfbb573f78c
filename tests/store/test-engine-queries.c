/*
 * test-engine-queries.c - range reads, page by page, and the walk over a store.
 */
#include "tests/store/test-engine.h"

#include <stdio.h>

#define NAMES_MAX 300

/* What a query must give: keys in order. */
static struct key expected[NAMES_MAX];
static size_t expected_count;

static int order(const void *a, const void *b)
{
	return key_compare(a, b);
}

/* Names of all kinds: every byte but NUL and '/', long ones, ones that look like states. */
static size_t name_of(size_t i, char *name)
{
	if (i < 254) {
		name[0] = (char)(i + 1 == '/' ? 0xff : i + 1);
		name[1] = 'n';
		return 2;
	}
	memset(name, 'L', KEY_NAME_MAX);
	return KEY_NAME_MAX - (i - 254);
}

/* Directory 20 has `count` items, some of them checkpointed, between others that must not be seen. */
static void fill(size_t count)
{
	struct place deleted = { .directory = 20, .seq = 4096, .state = KEY_DEL };
	char name[KEY_NAME_MAX + 1] = { 0 };
	struct key key;

	put(item_key(19, "before"), "x", NULL);
	put(item_key(21, "after"), "x", NULL);
	expected_count = 0;
	for (size_t i = 0; i < count; i++) {
		name[name_of(i, name)] = 0;
		key = item_key(20, name);
		put(key, name, "content");
		expected[expected_count++] = key;
		memcpy(deleted.name, name, sizeof(name));
		key_item(store_codec(store), &deleted, &key);
		if (i % 5 == 0)
			put(key, "deleted", NULL);
		if (i == count / 2)
			ck_assert_int_eq(store_checkpoint(store), 0);
	}
	qsort(expected, expected_count, sizeof(*expected), order);
}

/* Reads a range page by page and compares with expected[first .. end). */
static void expect_range(struct store_query query, size_t first, size_t end)
{
	size_t n = 0, pages = 0;
	struct store_page page;
	struct key after;

	do {
		ck_assert_int_eq(store_query(store, &query, &page), 0);
		ck_assert_uint_lt(pages++, 2 * NAMES_MAX);
		ck_assert(!query.limit || page.count <= query.limit);
		for (size_t i = 0; i < page.count; i++, n++) {
			const struct key *want;

			ck_assert_uint_lt(n, end - first);
			want = &expected[query.reverse ? end - 1 - n : first + n];
			ck_assert_uint_eq(page.rows[i].key_size, want->size);
			ck_assert_mem_eq(page.rows[i].key, want->bytes, want->size);
			ck_assert(!page.rows[i].damaged);
			ck_assert_uint_ne(page.rows[i].value.version, 0);
			ck_assert_ptr_nonnull(page.rows[i].value.attrs);
			if (query.attributes_only)
				ck_assert_ptr_null(page.rows[i].value.content);
			else
				ck_assert_mem_eq(page.rows[i].value.content, "content", 7);
		}
		after = page.next;
		query.after = page.more ? &after : NULL;
		store_page_release(&page);
	} while (query.after);
	ck_assert_uint_eq(n, end - first);
}

START_TEST(test_a_directory_is_listed_in_order)
{
	static const size_t limits[] = { 0, 1, 2, 7, 63, 100, 1000 };

	engine_start(_i);
	fill(NAMES_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		for (int mode = 0; mode < 4; mode++) {
			struct store_query q = { .limit = limits[i],
						 .reverse = mode & 1,
						 .attributes_only = mode & 2 };

			key_range_live(20, &q.range);
			expect_range(q, 0, expected_count);
		}
	engine_stop();
}
END_TEST

START_TEST(test_reading_goes_on_after_any_key)
{
	engine_start(_i);
	fill(60);
	for (size_t i = 0; i < expected_count; i++) {
		struct store_query q = { .after = &expected[i], .limit = 17 };
		struct key between = expected[i];

		key_range_live(20, &q.range);
		expect_range(q, i + 1, expected_count);
		q.reverse = true;
		expect_range(q, 0, i);
		/* A key that is not there: just above. */
		between.bytes[between.size++] = 0;
		q.after = &between;
		expect_range(q, 0, i + 1);
		q.reverse = false;
		expect_range(q, i + 1, expected_count);
	}
	engine_stop();
}
END_TEST

START_TEST(test_after_may_lie_outside_of_the_range)
{
	struct store_query q = { .limit = 5 };
	struct key_range other;

	engine_start(_i);
	fill(20);
	key_range_live(20, &q.range);
	key_range_live(19, &other);
	q.after = &other.from;
	expect_range(q, 0, expected_count);
	q.reverse = true;
	expect_range(q, 0, 0);
	key_range_live(21, &other);
	q.after = &other.from;
	expect_range(q, 0, expected_count);
	q.reverse = false;
	expect_range(q, 0, 0);
	engine_stop();
}
END_TEST

START_TEST(test_parts_of_a_range)
{
	struct store_query q = { 0 };

	engine_start(_i);
	fill(30);
	for (size_t from = 0; from < expected_count; from += 3)
		for (size_t to = from; to < expected_count; to += 4) {
			q.range = (struct key_range){ expected[from], expected[to] };
			q.reverse = false;
			expect_range(q, from, to);
			q.reverse = true;
			expect_range(q, from, to);
		}
	engine_stop();
}
END_TEST

START_TEST(test_deleted_items_do_not_show)
{
	struct store_query q = { .limit = 9 };
	size_t kept = 0;

	engine_start(_i);
	fill(90);
	for (size_t i = 0; i < expected_count; i++) {
		if (i % 3)
			expected[kept++] = expected[i];
		else
			ck_assert_int_eq(transact1(op_delete(expected[i], STORE_IF_PRESENT, 0)), 0);
	}
	expected_count = kept;
	key_range_live(20, &q.range);
	expect_range(q, 0, expected_count);
	q.reverse = true;
	expect_range(q, 0, expected_count);
	ck_assert_int_eq(store_checkpoint(store), 0);
	expect_range(q, 0, expected_count);
	engine_again(_i);
	expect_range(q, 0, expected_count);
	engine_stop();
}
END_TEST

START_TEST(test_a_page_of_large_items_is_complete)
{
	struct store_query q = { 0 };
	char *content = malloc(100001), name[16];

	engine_start(_i);
	memset(content, 'c', 100000);
	memcpy(content, "content", 7);
	content[100000] = 0;
	expected_count = 0;
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "large%02d", i);
		expected[expected_count] = item_key(20, name);
		put(expected[expected_count++], "x", content);
		if (i == 20)
			ck_assert_int_eq(store_checkpoint(store), 0);
	}
	qsort(expected, expected_count, sizeof(*expected), order);
	key_range_live(20, &q.range);
	expect_range(q, 0, expected_count);
	q.reverse = true;
	expect_range(q, 0, expected_count);
	free(content);
	engine_stop();
}
END_TEST

START_TEST(test_deletions_of_a_name_are_read_by_age)
{
	struct place at = { .directory = 20, .state = KEY_DEL, .name = "a" };
	struct store_query q = { .limit = 1, .reverse = true };
	struct store_page page;
	struct key key;

	engine_start(_i);
	for (uint64_t seq = 1; seq < 6; seq++) {
		at.seq = seq << 40;
		key_item(store_codec(store), &at, &key);
		put(key, "content", "content");
	}
	strcpy(at.name, "a!");
	key_item(store_codec(store), &at, &key);
	put(key, "content", "content");
	key_range_deleted_name(store_codec(store), 20, "a", &q.range);
	ck_assert_int_eq(store_query(store, &q, &page), 0);
	ck_assert_uint_eq(page.count, 1);
	ck_assert_uint_eq(util_get_be64(page.rows[0].key + page.rows[0].key_size - 8), UINT64_C(5) << 40);
	store_page_release(&page);
	engine_stop();
}
END_TEST

/* Puts one item into every partition there is, and a body. */
static size_t fill_partitions(struct key *keys)
{
	size_t n = 0;

	keys[n++] = item_key(20, "a");
	keys[n++] = item_key(21, "b");
	key_guard(20, &keys[n++]);
	key_link(22, &keys[n++]);
	key_xattr(22, &keys[n++]);
	key_trash(256, &keys[n++]);
	key_due(INT64_MAX, 256, &keys[n++]);
	key_batch(1000, 512, &keys[n++]);
	keys[n++] = meta_key("setting");
	for (size_t i = 0; i < n; i++)
		put(keys[i], "x", NULL);
	ck_assert_int_eq(transact1(op_write(99, 0, "body", 4)), 0);
	return n;
}

static void expect_scan(const struct key *keys, size_t count)
{
	struct key at, from = { 0 };
	struct key_parts parts;
	size_t found = 0, bodies = 0;
	bool first = true;

	while (store_scan(store, first ? NULL : &from, &at) == 0) {
		ck_assert(first || key_compare(&from, &at) <= 0);
		ck_assert_int_eq(key_parse(store_codec(store), at.bytes, at.size, &parts), 0);
		bodies += parts.kind == KEY_KIND_BODY && parts.id == 99;
		for (size_t i = 0; i < count; i++) {
			if (key_compare(&keys[i], &at))
				continue;
			ck_assert_uint_eq(keys[i].partition_size, at.partition_size);
			found++;
		}
		first = false;
		from = at;
		from.bytes[from.size++] = 0;
	}
	ck_assert_uint_eq(found, count);
	ck_assert_uint_ge(bodies, 1);
}

START_TEST(test_a_scan_meets_every_partition)
{
	struct key keys[16];
	size_t count;

	engine_start(_i);
	count = fill_partitions(keys);
	expect_scan(keys, count);
	ck_assert_int_eq(store_checkpoint(store), 0);
	expect_scan(keys, count);
	ck_assert_int_eq(transact1(op_delete(keys[0], STORE_ANY, 0)), 0);
	expect_scan(keys + 1, count - 1);
	engine_stop();
}
END_TEST

TCase *engine_queries(void)
{
	TCase *t = tcase_create("queries");

	tcase_set_timeout(t, 120);
	add_engine_test(t, test_a_directory_is_listed_in_order);
	add_engine_test(t, test_reading_goes_on_after_any_key);
	add_engine_test(t, test_after_may_lie_outside_of_the_range);
	add_engine_test(t, test_parts_of_a_range);
	add_engine_test(t, test_deleted_items_do_not_show);
	add_engine_test(t, test_a_page_of_large_items_is_complete);
	add_engine_test(t, test_deletions_of_a_name_are_read_by_age);
	add_engine_test(t, test_a_scan_meets_every_partition);
	return t;
}
