/* test-cap.c - what goes before its time, where a cap or the low-space rule says so, and nothing else. */
#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

FIXTURE_TEST(oldest_entries_go_when_the_trash_is_over_its_cap)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t tree = make_directory(f, d, "tree");
	char name[16];

	set_policy(f, d, "user.ddbfs.trash_max", "10000");
	make_big_file(f, KEY_ID_ROOT, "outside", 50000);
	make_big_file(f, tree, "f", 3000);
	make_big_file(f, tree, "g", 3000);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_big_file(f, d, name, 3000);
	}
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "outside");
	fixture_pass(f, MINUTE);
	rm_rf(f, d, "tree");
	fixture_pass(f, MINUTE);
	rm(f, d, "f0");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, d), 2);
	fixture_pass(f, MINUTE);
	rm(f, d, "f1");
	sweep(f, NULL);
	ck_assert(!is_shown(f, d, "tree"));
	ck_assert_uint_eq(count_shown(f, d), 2);
	rm(f, d, "f2");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, d), 3);
	ck_assert(is_shown(f, KEY_ID_ROOT, "outside"));
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 3);
}

FIXTURE_TEST(tree_evicted_in_part_is_never_seen_again)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct sweep_result swept;

	make_files(f, d, 12);
	make_big_file(f, d, "big", 20000);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.trash_max", "10000");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_ok(f, lifecycle_sweep(f->life, 3, &swept));
	ck_assert(swept.more);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert_uint_gt(count_deleted(f, d), 0);
	fixture_crash(f);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	/* Whoever ends it knows why it was begun. */
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 14);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), 0);
}

FIXTURE_TEST(oldest_entries_go_when_there_are_more_than_the_cap)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t tree = make_directory(f, d, "tree");
	char name[16];

	set_policy(f, d, "user.ddbfs.trash_max_entries", "4");
	make_files(f, tree, 8);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(f, d, name, "x");
	}
	fixture_pass(f, HOUR);
	/* However much went with it, a directory is one entry. */
	rm_rf(f, d, "tree");
	for (int i = 0; i < 3; i++) {
		fixture_pass(f, MINUTE);
		snprintf(name, sizeof(name), "f%d", i);
		rm(f, d, name);
	}
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, d), 4);
	fixture_pass(f, MINUTE);
	rm(f, d, "f3");
	sweep(f, NULL);
	ck_assert(!is_shown(f, d, "tree"));
	ck_assert_uint_eq(count_shown(f, d), 4);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 9);
}

/* ---- the disk below ------------------------------------------------------------------- */

/* A rule that wants so much more than is free. */
static void want_free(struct fixture *f, int64_t more)
{
	struct store_space space;
	char text[32];

	ck_ok(f, store_space(f->store, &space));
	snprintf(text, sizeof(text), "%lld", (long long)space.free_bytes + (long long)more);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.low_space", text);
}

FIXTURE_TEST(little_space_lets_the_oldest_go_where_a_rule_says_so)
{
	struct sweep_result swept;

	make_big_file(f, KEY_ID_ROOT, "a", 50000);
	make_big_file(f, KEY_ID_ROOT, "b", 50000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	sweep(f, &swept);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	want_free(f, -100000);
	sweep(f, &swept);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	/* It looks again soon: nothing tells it of the disk. */
	assert_about(swept.next_due_ns - lifecycle_now_ns(f->life), SECOND);
	want_free(f, 1000);
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 2);
}

FIXTURE_TEST(write_without_space_takes_what_was_purged_and_nothing_else)
{
	struct place at;

	make_big_file(f, KEY_ID_ROOT, "a", 50000);
	make_big_file(f, KEY_ID_ROOT, "b", 50000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	ck_assert(!lifecycle_make_room(f->life));
	at = shown_place(f, KEY_ID_ROOT, "a");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	fixture_pass(f, 2 * SECOND);
	ck_assert(lifecycle_make_room(f->life));
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), 1);
	fixture_pass(f, 2 * SECOND);
	ck_assert(!lifecycle_make_room(f->life));
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 0);
}

FIXTURE_TEST(write_without_space_takes_the_oldest_by_the_rule)
{
	make_big_file(f, KEY_ID_ROOT, "a", 50000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	want_free(f, 1000);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "yes");
	ck_assert(!lifecycle_make_room(f->life));
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "no");
	fixture_pass(f, 2 * SECOND);
	ck_assert(lifecycle_make_room(f->life));
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 1);
}

FIXTURE_TEST(without_a_cap_nothing_is_evicted)
{
	for (int i = 0; i < 5; i++) {
		make_big_file(f, KEY_ID_ROOT, "f", 100000);
		fixture_pass(f, HOUR);
		rm(f, KEY_ID_ROOT, "f");
		sweep(f, NULL);
	}
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 5);
}

/* With low_space set the sweeper comes each second: what cannot be helped is not measured each time. */
static void delete_one_by_one(struct fixture *f, uint64_t directory, unsigned count)
{
	char name[16];

	make_files(f, directory, count);
	fixture_pass(f, HOUR);
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		fixture_pass(f, 2 * MINUTE);
		rm(f, directory, name);
	}
}

/* Of a cap inside another one both hold: first the narrow one takes its own oldest, then the wide one the oldest of all. */
FIXTURE_TEST(nested_caps_both_hold)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), sub = make_directory(f, d, "sub");

	set_policy(f, d, "user.ddbfs.trash_max_entries", "6");
	set_policy(f, sub, "user.ddbfs.trash_max_entries", "4");
	delete_one_by_one(f, d, 4);
	delete_one_by_one(f, sub, 5);
	sweep(f, NULL);
	ck_assert(!is_shown(f, sub, "f0"));
	for (unsigned i = 1; i < 5; i++)
		ck_assert(is_shown(f, sub, (char[]){ 'f', (char)('0' + i), 0 }));
	ck_assert(!is_shown(f, d, "f0") && !is_shown(f, d, "f1"));
	ck_assert(is_shown(f, d, "f2") && is_shown(f, d, "f3"));
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), 3);
}

/* Nor does a wider one inside, or one that says there is no limit, lift that around it. */
FIXTURE_TEST(cap_inside_does_not_lift_the_one_around_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), sub = make_directory(f, d, "sub");

	set_policy(f, d, "user.ddbfs.trash_max_entries", "3");
	set_policy(f, sub, "user.ddbfs.trash_max_entries", "0");
	delete_one_by_one(f, sub, 5);
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, sub), 3);
	set_policy(f, sub, "user.ddbfs.trash_max_entries", "100");
	make_file(f, sub, "g", "g");
	fixture_pass(f, HOUR);
	rm(f, sub, "g");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, sub), 3);
	ck_assert(is_shown(f, sub, "g"));
}

/* What root keeps for a directory by trusted.ddbfs.* no cap around it takes; what is there beyond that goes. */
FIXTURE_TEST(cap_around_leaves_what_root_keeps_further_down)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), sub = make_directory(f, d, "sub");

	set_policy(f, d, "user.ddbfs.trash_max_entries", "3");
	set_policy(f, sub, "trusted.ddbfs.trash_max_entries", "4");
	delete_one_by_one(f, sub, 4);
	delete_one_by_one(f, d, 3);
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, sub), 4);
	ck_assert_uint_eq(count_shown(f, d), 1); /* the way to sub */
	make_file(f, sub, "g", "g");
	fixture_pass(f, HOUR);
	rm(f, sub, "g");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, sub), 4);
	ck_assert(!is_shown(f, sub, "f0") && is_shown(f, sub, "g"));
}

/* The same by bytes, through a directory between the two; and 0 is no limit: all of it stays. */
FIXTURE_TEST(cap_around_leaves_all_where_root_sets_no_limit)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), between = make_directory(f, d, "between");
	uint64_t sub = make_directory(f, between, "sub");

	set_policy(f, d, "user.ddbfs.trash_max", "1000");
	set_policy(f, sub, "trusted.ddbfs.trash_max", "7000");
	make_big_file(f, sub, "a", 3000);
	make_big_file(f, sub, "b", 3000);
	make_big_file(f, sub, "c", 3000);
	fixture_pass(f, HOUR);
	rm(f, sub, "a");
	rm(f, sub, "b");
	sweep(f, NULL);
	/* Without a, less than 7000 would be left. */
	ck_assert(is_shown(f, sub, "a") && is_shown(f, sub, "b"));
	rm(f, sub, "c");
	sweep(f, NULL);
	ck_assert(!is_shown(f, sub, "a") && is_shown(f, sub, "b") && is_shown(f, sub, "c"));
	set_policy(f, sub, "trusted.ddbfs.trash_max", "0");
	make_big_file(f, sub, "e", 3000);
	fixture_pass(f, HOUR);
	rm(f, sub, "e");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, sub), 3);
}

#define MANY_CAPS 200

static void in_each(struct fixture *f, const uint64_t *directories, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		make_file(f, directories[i], name, name);
	fixture_pass(f, HOUR);
	for (unsigned i = 0; i < count; i++)
		rm(f, directories[i], name);
}

/* Each is kept to, and none is measured again only because there are others. */
static void keep_to_caps(struct fixture *f, unsigned count)
{
	struct store_status before, after;
	uint64_t directories[MANY_CAPS];
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		directories[i] = make_directory(f, KEY_ID_ROOT, name);
		set_policy(f, directories[i], "user.ddbfs.trash_max_entries", "3");
	}
	in_each(f, directories, count, "a");
	sweep(f, NULL);
	in_each(f, directories, count, "b");
	store_status(f->store, &before);
	sweep(f, NULL);
	store_status(f->store, &after);
	ck_assert_uint_eq(after.gets, before.gets);
	in_each(f, directories, count, "c");
	in_each(f, directories, count, "d");
	sweep(f, NULL);
	for (unsigned i = 0; i < count; i++) {
		ck_assert_uint_eq(count_shown(f, directories[i]), 3);
		ck_assert(!is_shown(f, directories[i], "a"));
	}
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EVICTED), count);
}

FIXTURE_TEST_ONCE(seventeen_caps_are_kept_to)
{
	keep_to_caps(f, 17);
}

FIXTURE_TEST_ONCE(two_hundred_caps_are_kept_to)
{
	keep_to_caps(f, MANY_CAPS);
}

FIXTURE_TEST(cap_that_held_entries_keep_over_is_not_measured_again)
{
	struct store_status before, after;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.trash_max", "1000");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "yes");
	make_big_file(f, KEY_ID_ROOT, "a", 3000);
	make_big_file(f, KEY_ID_ROOT, "b", 3000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	store_status(f->store, &before);
	sweep(f, NULL);
	store_status(f->store, &after);
	ck_assert_uint_eq(after.gets, before.gets);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "no");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

int main(void)
{
	Suite *suite = suite_create("cap");
	TCase *tcase = tcase_create("cap");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, oldest_entries_go_when_the_trash_is_over_its_cap);
	tcase_add_test(tcase, tree_evicted_in_part_is_never_seen_again);
	tcase_add_test(tcase, oldest_entries_go_when_there_are_more_than_the_cap);
	tcase_add_test(tcase, little_space_lets_the_oldest_go_where_a_rule_says_so);
	tcase_add_test(tcase, write_without_space_takes_what_was_purged_and_nothing_else);
	tcase_add_test(tcase, write_without_space_takes_the_oldest_by_the_rule);
	tcase_add_test(tcase, without_a_cap_nothing_is_evicted);
	tcase_add_test(tcase, nested_caps_both_hold);
	tcase_add_test(tcase, cap_inside_does_not_lift_the_one_around_it);
	tcase_add_test(tcase, cap_that_held_entries_keep_over_is_not_measured_again);
	tcase_add_test(tcase, cap_around_leaves_what_root_keeps_further_down);
	tcase_add_test(tcase, cap_around_leaves_all_where_root_sets_no_limit);
	tcase_add_test(tcase, seventeen_caps_are_kept_to);
	tcase_add_test(tcase, two_hundred_caps_are_kept_to);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
