/*
 * test-engine-items.c - items and transactions: conditions, limits, counters.
 */
#include "tests/store/test-engine.h"

#include <stdio.h>

START_TEST(test_an_absent_item_is_absent)
{
	struct key key;
	struct store_value value;

	engine_start(_i);
	key = item_key(20, "a");
	ck_assert_int_eq(store_get(store, &key, false, &value), STORE_ABSENT);
	engine_stop();
}
END_TEST

START_TEST(test_a_put_item_is_read_back)
{
	struct store_value value;
	struct key key;
	uint64_t version;

	engine_start(_i);
	key = item_key(20, "a");
	version = put(key, "attributes", "content");
	ck_assert_int_eq(store_get(store, &key, false, &value), 0);
	ck_assert_uint_eq(value.version, version);
	ck_assert_mem_eq(value.attrs, "attributes", 10);
	ck_assert_uint_eq(value.attrs_size, 10);
	ck_assert_mem_eq(value.content, "content", 7);
	ck_assert_uint_eq(value.content_size, 7);
	store_value_release(&value);
	engine_stop();
}
END_TEST

START_TEST(test_content_is_null_only_when_not_asked_for)
{
	struct store_value value;
	struct key full, bare;

	engine_start(_i);
	full = item_key(20, "full");
	bare = item_key(20, "bare");
	put(full, "x", "content");
	put(bare, "x", NULL);
	ck_assert_int_eq(store_get(store, &full, true, &value), 0);
	ck_assert_ptr_null(value.content);
	ck_assert_uint_eq(value.content_size, 0);
	store_value_release(&value);
	ck_assert_int_eq(store_get(store, &bare, false, &value), 0);
	ck_assert_ptr_nonnull(value.content);
	ck_assert_uint_eq(value.content_size, 0);
	store_value_release(&value);
	engine_stop();
}
END_TEST

START_TEST(test_a_key_never_sees_a_version_twice)
{
	uint64_t last = 0, version;
	struct key key;

	engine_start(_i);
	key = item_key(20, "a");
	for (int i = 0; i < 20; i++) {
		version = put(key, "x", NULL);
		ck_assert_uint_gt(version, last);
		last = version;
		if (i % 3 == 0)
			ck_assert_int_eq(transact1(op_delete(key, STORE_IF_VERSION, last)), 0);
		if (i % 7 == 0)
			engine_again(_i);
	}
	engine_stop();
}
END_TEST

/* Every condition against an absent and a present item: what must happen. */
START_TEST(test_conditions_decide)
{
	static const struct {
		enum store_op_kind kind;
		enum store_condition condition;
		int if_absent, if_present; /* results */
	} cases[] = {
		{ STORE_PUT, STORE_ANY, 0, 0 },
		{ STORE_PUT, STORE_IF_ABSENT, 0, STORE_CONFLICT },
		{ STORE_PUT, STORE_IF_PRESENT, STORE_CONFLICT, 0 },
		{ STORE_PUT, STORE_IF_VERSION, STORE_CONFLICT, 0 },
		{ STORE_DELETE, STORE_ANY, 0, 0 },
		{ STORE_DELETE, STORE_IF_PRESENT, STORE_CONFLICT, 0 },
		{ STORE_DELETE, STORE_IF_VERSION, STORE_CONFLICT, 0 },
		{ STORE_CHECK, STORE_IF_ABSENT, 0, STORE_CONFLICT },
		{ STORE_CHECK, STORE_IF_PRESENT, STORE_CONFLICT, 0 },
		{ STORE_CHECK, STORE_IF_VERSION, STORE_CONFLICT, 0 },
	};

	engine_start(_i);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct key absent = item_key(30, "absent"), present = item_key(31, "present");
		struct store_op op = { .kind = cases[i].kind, .condition = cases[i].condition };

		transact1(op_delete(absent, STORE_ANY, 0));
		op.version = put(present, "old", NULL);
		op.key = absent;
		ck_assert_int_eq(transact1(op), cases[i].if_absent);
		op.key = present;
		ck_assert_int_eq(transact1(op), cases[i].if_present);
		if (op.kind == STORE_DELETE)
			ck_assert_uint_eq(version_of(present), 0);
		if (op.kind == STORE_CHECK || cases[i].if_present)
			ck_assert(item_is(present, "old", NULL));
		ck_assert_uint_eq(version_of(absent) != 0, op.kind == STORE_PUT && !cases[i].if_absent);
	}
	engine_stop();
}
END_TEST

START_TEST(test_an_old_version_is_a_conflict)
{
	uint64_t old, version;
	struct key key;

	engine_start(_i);
	key = item_key(20, "a");
	old = put(key, "1", NULL);
	version = put(key, "2", NULL);
	ck_assert_int_eq(transact1(op_put(key, "3", NULL, STORE_IF_VERSION, old)), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_delete(key, STORE_IF_VERSION, old)), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_check(key, STORE_IF_VERSION, old)), STORE_CONFLICT);
	ck_assert(item_is(key, "2", ""));
	ck_assert_int_eq(transact1(op_put(key, "3", NULL, STORE_IF_VERSION, version)), 0);
	engine_stop();
}
END_TEST

START_TEST(test_conditions_hold_across_a_checkpoint)
{
	struct key key, gone;
	uint64_t old, version;

	engine_start(_i);
	key = item_key(20, "a");
	gone = item_key(20, "gone");
	old = put(key, "1", NULL);
	put(gone, "1", NULL);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_uint_eq(version_of(key), old);
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_IF_ABSENT, 0)), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_IF_VERSION, old + 1)), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_delete(gone, STORE_IF_PRESENT, 0)), 0);
	ck_assert_int_eq(transact1(op_check(gone, STORE_IF_PRESENT, 0)), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_put(key, "2", NULL, STORE_IF_VERSION, old)), 0);
	version = version_of(key);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_uint_eq(version_of(gone), 0);
	ck_assert_uint_eq(version_of(key), version);
	ck_assert_int_eq(transact1(op_put(gone, "3", NULL, STORE_IF_ABSENT, 0)), 0);
	engine_stop();
}
END_TEST

START_TEST(test_one_failing_condition_undoes_all)
{
	struct store_op ops[4];
	uint64_t kept;

	engine_start(_i);
	kept = put(item_key(20, "kept"), "old", NULL);
	ops[0] = op_put(item_key(20, "a"), "x", NULL, STORE_IF_ABSENT, 0);
	ops[1] = op_delete(item_key(20, "kept"), STORE_IF_VERSION, kept);
	ops[2] = op_add(meta_key("n"), 0, 5);
	ops[3] = op_check(item_key(21, "missing"), STORE_IF_PRESENT, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 4, NULL), STORE_CONFLICT);
	ck_assert_uint_eq(version_of(item_key(20, "a")), 0);
	ck_assert_uint_eq(version_of(item_key(20, "kept")), kept);
	ck_assert_uint_eq(version_of(meta_key("n")), 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 3, NULL), 0);
	ck_assert_uint_eq(version_of(item_key(20, "kept")), 0);
	ck_assert_int_eq(counter_of(meta_key("n"), 0), 5);
	engine_stop();
}
END_TEST

START_TEST(test_all_items_of_a_transaction_get_its_version)
{
	struct store_op ops[2];
	uint64_t version;

	engine_start(_i);
	ops[0] = op_put(item_key(20, "a"), "x", NULL, STORE_ANY, 0);
	ops[1] = op_put(item_key(21, "b"), "y", NULL, STORE_ANY, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, &version), 0);
	ck_assert_uint_eq(version_of(ops[0].key), version);
	ck_assert_uint_eq(version_of(ops[1].key), version);
	engine_stop();
}
END_TEST

/* ---- what is refused ---------------------------------------------------- */

START_TEST(test_a_key_stands_in_one_operation)
{
	struct store_op ops[2];

	engine_start(_i);
	ops[0] = op_put(item_key(20, "a"), "x", NULL, STORE_ANY, 0);
	ops[1] = op_delete(item_key(20, "a"), STORE_ANY, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), -EINVAL);
	ops[1] = op_check(item_key(20, "a"), STORE_IF_ABSENT, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), -EINVAL);
	ops[1] = op_add(item_key(20, "a"), 0, 1);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), -EINVAL);
	ck_assert_uint_eq(version_of(item_key(20, "a")), 0);
	engine_stop();
}
END_TEST

START_TEST(test_malformed_operations_are_refused)
{
	struct key_range range, other;
	struct key key, bad;
	struct store_op ops[2];
	uint8_t byte = 1;

	engine_start(_i);
	key = item_key(20, "a");
	key_range_live(20, &range);
	key_range_live(21, &other);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 0, NULL), -EINVAL);
	ck_assert_int_eq(transact1(op_check(key, STORE_ANY, 0)), -EINVAL);
	ck_assert_int_eq(transact1(op_delete(key, STORE_IF_ABSENT, 0)), -EINVAL);
	ck_assert_int_eq(transact1(op_put(key, "x", NULL, STORE_IF_VERSION, 0)), -EINVAL);
	ck_assert_int_eq(transact1(op_put(key, "x", NULL, (enum store_condition)9, 0)), -EINVAL);
	ck_assert_int_eq(transact1((struct store_op){ .kind = (enum store_op_kind)99, .key = key }),
			 -EINVAL);
	ck_assert_int_eq(transact1(op_add(key, STORE_COUNTERS_MAX, 1)), -EINVAL);
	bad = key;
	bad.size = bad.partition_size;
	ck_assert_int_eq(transact1(op_put(bad, "x", NULL, STORE_ANY, 0)), -EINVAL);
	bad.size = KEY_MAX + 1;
	ck_assert_int_eq(transact1(op_put(bad, "x", NULL, STORE_ANY, 0)), -EINVAL);
	key_body(77, 0, &bad);
	ck_assert_int_eq(transact1(op_put(bad, "x", NULL, STORE_ANY, 0)), -EINVAL);
	key_free_body(77, &bad);
	ck_assert_int_eq(transact1(op_delete(bad, STORE_ANY, 0)), -EINVAL);
	ck_assert_int_eq(transact1(op_empty(range, key)), -EINVAL); /* its guard is not written */
	ops[0] = op_put(key, "x", NULL, STORE_ANY, 0);
	ops[1] = op_empty((struct key_range){ range.from, other.to }, key); /* two partitions */
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), -EINVAL);
	ops[1] = op_empty((struct key_range){ range.to, range.from }, key);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 2, NULL), -EINVAL);
	ck_assert_int_eq(transact1(op_write(0, 0, &byte, 1)), -EINVAL);
	ck_assert_int_eq(transact1(op_write(7, 0, &byte, 0)), -EINVAL);
	ck_assert_int_eq(transact1(op_write(7, 0, NULL, 1)), -EINVAL);
	ck_assert_int_eq(transact1(op_write(7, INT64_MAX, &byte, 1)), -EINVAL);
	ck_assert_int_eq(transact1(op_zero(7, UINT64_MAX, 1)), -EINVAL);
	ck_assert_int_eq(transact1(op_zero(7, 1, UINT64_MAX)), -EINVAL);
	ck_assert_int_eq(transact1(op_truncate(7, UINT64_MAX)), -EINVAL);
	ck_assert_uint_eq(version_of(key), 0);
	engine_stop();
}
END_TEST

/* The largest transaction by count, and one operation more. */
START_TEST(test_the_number_of_operations_is_limited)
{
	size_t limit;
	struct store_op *ops;
	char name[32];

	engine_start(_i);
	limit = store_limits(store)->operations;
	ops = calloc(limit + 3, sizeof(*ops));
	for (size_t i = 0; i < limit + 1; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		ops[i] = op_put(item_key(20, name), "x", NULL, STORE_IF_ABSENT, 0);
	}
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, limit + 1, NULL), -EFBIG);
	ck_assert_uint_eq(version_of(ops[0].key), 0);
	/* Several counters of one item are one operation. */
	ops[limit - 1] = op_add(meta_key("n"), 0, 1);
	ops[limit] = op_add(meta_key("n"), 1, 1);
	ops[limit + 1] = op_add(meta_key("n"), 2, 1);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, limit + 2, NULL), 0);
	ck_assert(item_is(ops[limit - 2].key, "x", NULL));
	ck_assert_int_eq(counter_of(meta_key("n"), 2), 1);
	free(ops);
	engine_stop();
}
END_TEST

static char *text_of(size_t size)
{
	char *text = malloc(size + 1);

	memset(text, 'x', size);
	text[size] = 0;
	return text;
}

START_TEST(test_the_size_of_an_item_is_limited)
{
	struct key key;
	char *content;
	size_t limit;

	engine_start(_i);
	key = item_key(20, "a");
	limit = store_limits(store)->item_bytes;
	content = text_of(limit - key.size - 4);
	ck_assert_int_eq(transact1(op_put(key, "attrs", content, STORE_ANY, 0)), -EFBIG);
	ck_assert_int_eq(transact1(op_put(key, "attr", content, STORE_ANY, 0)), 0);
	ck_assert(item_is(key, "attr", content));
	free(content);
	engine_stop();
}
END_TEST

START_TEST(test_the_size_of_a_transaction_is_limited)
{
	const struct store_limits *limits;
	struct store_op *ops;
	size_t count;
	char *bytes;

	engine_start(_i);
	limits = store_limits(store);
	bytes = text_of(limits->write_bytes);
	ck_assert_int_eq(transact1(op_write(50, 0, bytes, limits->write_bytes + 1)), -EFBIG);
	count = limits->transaction_bytes / limits->write_bytes + 1;
	ck_assert_uint_le(count, limits->operations);
	ops = calloc(count, sizeof(*ops));
	for (size_t i = 0; i < count; i++)
		ops[i] = op_write(50, i * limits->write_bytes, bytes, limits->write_bytes);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, count, NULL), -EFBIG);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, count - 1, NULL), 0);
	free(ops);
	free(bytes);
	engine_stop();
}
END_TEST

/* ---- empty and guards --------------------------------------------------- */

START_TEST(test_empty_holds_only_without_items)
{
	struct key_range live;
	struct store_op ops[2];
	struct key guard;

	engine_start(_i);
	key_guard(40, &guard);
	key_range_live(40, &live);
	ops[0] = op_put(guard, "live", NULL, STORE_ANY, 0);
	ops[1] = op_empty(live, guard);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), 0);
	put(item_key(41, "neighbour"), "x", NULL);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), 0);
	put(item_key(40, "inside"), "x", NULL);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), STORE_CONFLICT);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), STORE_CONFLICT);
	ck_assert_int_eq(transact1(op_delete(item_key(40, "inside"), STORE_ANY, 0)), 0);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), 0);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), 0);
	engine_stop();
}
END_TEST

/* What the transaction itself puts or deletes in the range does not count. */
START_TEST(test_empty_is_about_the_state_before)
{
	struct key_range live;
	struct store_op ops[3];
	struct key guard;

	engine_start(_i);
	key_guard(40, &guard);
	key_range_live(40, &live);
	ops[0] = op_put(guard, "live", NULL, STORE_ANY, 0);
	ops[1] = op_empty(live, guard);
	ops[2] = op_put(item_key(40, "first"), "x", NULL, STORE_IF_ABSENT, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 3, NULL), 0);
	ops[2] = op_delete(item_key(40, "first"), STORE_IF_PRESENT, 0);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 3, NULL), STORE_CONFLICT);
	ck_assert(item_is(item_key(40, "first"), "x", NULL));
	engine_stop();
}
END_TEST

START_TEST(test_a_deleted_item_does_not_fill_the_live_range)
{
	struct place at = { .directory = 40, .seq = 512, .state = KEY_DEL, .name = "old" };
	struct key_range live;
	struct store_op ops[2];
	struct key guard, deleted;

	engine_start(_i);
	key_guard(40, &guard);
	key_range_live(40, &live);
	key_item(store_codec(store), &at, &deleted);
	put(deleted, "x", NULL);
	ops[0] = op_put(guard, "gone", NULL, STORE_ANY, 0);
	ops[1] = op_empty(live, guard);
	ck_assert_int_eq(store_transact(store, STORE_RELEASING, ops, 2, NULL), 0);
	engine_stop();
}
END_TEST

/* ---- counters ----------------------------------------------------------- */

START_TEST(test_counters_add_up)
{
	struct store_op ops[3];
	struct key key;

	engine_start(_i);
	key = meta_key("n");
	ops[0] = op_add(key, 0, 10);
	ops[1] = op_add(key, 15, -3);
	ops[2] = op_add(key, 0, 5);
	ck_assert_int_eq(store_transact(store, STORE_GROWING, ops, 3, NULL), 0);
	ck_assert_int_eq(counter_of(key, 0), 15);
	ck_assert_int_eq(counter_of(key, 15), -3);
	ck_assert_int_eq(counter_of(key, 1), 0);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(transact1(op_add(key, 15, 4)), 0);
	ck_assert_int_eq(counter_of(key, 15), 1);
	ck_assert_int_eq(counter_of(key, 0), 15);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(counter_of(key, 15), 1);
	engine_again(_i);
	ck_assert_int_eq(counter_of(key, 15), 1);
	ck_assert_int_eq(transact1(op_add(key, 0, -15)), 0);
	ck_assert_int_eq(counter_of(key, 0), 0);
	engine_stop();
}
END_TEST

START_TEST(test_adding_changes_the_version)
{
	uint64_t before;
	struct key key;

	engine_start(_i);
	key = meta_key("n");
	ck_assert_int_eq(transact1(op_add(key, 0, 1)), 0);
	before = version_of(key);
	ck_assert_int_eq(transact1(op_add(key, 0, 1)), 0);
	ck_assert_uint_gt(version_of(key), before);
	ck_assert_int_eq(transact1(op_check(key, STORE_IF_VERSION, before)), STORE_CONFLICT);
	engine_stop();
}
END_TEST

/* ---- the rest ----------------------------------------------------------- */

START_TEST(test_what_was_acknowledged_outlives_closing)
{
	struct key key, gone;
	uint64_t version;

	engine_start(_i);
	key = item_key(20, "a");
	gone = item_key(20, "gone");
	version = put(key, "attributes", "content");
	put(gone, "x", NULL);
	ck_assert_int_eq(transact1(op_delete(gone, STORE_ANY, 0)), 0);
	if (engine_again(_i)) {
		ck_assert(item_is(key, "attributes", "content"));
		ck_assert_uint_eq(version_of(key), version);
		ck_assert_uint_eq(version_of(gone), 0);
	}
	engine_stop();
}
END_TEST

START_TEST(test_invalid_reads_are_refused)
{
	struct store_query query = { 0 };
	struct store_value value;
	struct store_page page;
	struct key key;

	engine_start(_i);
	key = item_key(20, "a");
	key.size = key.partition_size;
	ck_assert_int_eq(store_get(store, &key, false, &value), -EINVAL);
	key.size = 0;
	ck_assert_int_eq(store_get(store, &key, false, &value), -EINVAL);
	ck_assert_int_eq(store_query(store, &query, &page), -EINVAL);
	key_range_live(20, &query.range);
	query.range.to = query.range.from;
	query.range.to.bytes[1]++;
	ck_assert_int_eq(store_query(store, &query, &page), -EINVAL);
	engine_stop();
}
END_TEST

START_TEST(test_space_and_status_answer)
{
	struct store_status status;
	struct store_space space;

	engine_start(_i);
	put(item_key(20, "a"), "x", NULL);
	ck_assert_int_eq(store_sync(store), 0);
	ck_assert_int_eq(store_checkpoint(store), 0);
	ck_assert_int_eq(store_space(store, &space), 0);
	ck_assert_uint_gt(space.total_bytes, 0);
	ck_assert_uint_gt(space.used_bytes, 0);
	ck_assert_uint_le(space.free_bytes, space.total_bytes);
	store_status(store, &status);
	ck_assert(!status.read_only);
	ck_assert_int_eq(status.error, 0);
	engine_stop();
}
END_TEST

TCase *engine_items(void)
{
	TCase *t = tcase_create("items");

	tcase_set_timeout(t, 120);
	add_engine_test(t, test_an_absent_item_is_absent);
	add_engine_test(t, test_a_put_item_is_read_back);
	add_engine_test(t, test_content_is_null_only_when_not_asked_for);
	add_engine_test(t, test_a_key_never_sees_a_version_twice);
	add_engine_test(t, test_conditions_decide);
	add_engine_test(t, test_an_old_version_is_a_conflict);
	add_engine_test(t, test_conditions_hold_across_a_checkpoint);
	add_engine_test(t, test_one_failing_condition_undoes_all);
	add_engine_test(t, test_all_items_of_a_transaction_get_its_version);
	add_engine_test(t, test_a_key_stands_in_one_operation);
	add_engine_test(t, test_malformed_operations_are_refused);
	add_engine_test(t, test_the_number_of_operations_is_limited);
	add_engine_test(t, test_the_size_of_an_item_is_limited);
	add_engine_test(t, test_the_size_of_a_transaction_is_limited);
	add_engine_test(t, test_empty_holds_only_without_items);
	add_engine_test(t, test_empty_is_about_the_state_before);
	add_engine_test(t, test_a_deleted_item_does_not_fill_the_live_range);
	add_engine_test(t, test_counters_add_up);
	add_engine_test(t, test_adding_changes_the_version);
	add_engine_test(t, test_what_was_acknowledged_outlives_closing);
	add_engine_test(t, test_invalid_reads_are_refused);
	add_engine_test(t, test_space_and_status_answer);
	return t;
}
