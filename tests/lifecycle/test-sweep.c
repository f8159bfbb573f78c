/* test-sweep.c - what is due goes, whole and once; what is not, stays. */
#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

FIXTURE_TEST(expired_file_is_hidden_then_destroyed)
{
	struct sweep_result swept;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	make_big_file(f, KEY_ID_ROOT, "f", 40000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	sweep(f, &swept);
	ck_assert_uint_eq(swept.destroyed, 0);
	assert_about(swept.next_due_ns - lifecycle_now_ns(f->life), HOUR);
	fixture_pass(f, HOUR + SECOND);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "f"));
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	sweep(f, &swept);
	ck_assert_uint_eq(swept.destroyed, 1);
	ck_assert_uint_eq(swept.bytes, 40000);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EXPIRED), 1);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
	ck_assert_int_eq(swept.next_due_ns, ITEM_FOREVER);
}

FIXTURE_TEST(what_went_with_a_directory_waits_for_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");

	make_file(f, sub, "f", "x");
	set_policy(f, sub, "user.ddbfs.retention", "1h");
	set_policy(f, d, "user.ddbfs.protect", "no");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 2 * HOUR);
	ck_assert(is_shown(f, sub, "f"));
	sweep(f, NULL);
	ck_assert(is_shown(f, sub, "f"));
	fixture_pass(f, 29 * DAY);
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "d");
	assert_text(f, sub, "f", "x");
}

FIXTURE_TEST(directory_waits_for_what_is_in_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	set_policy(f, sub, "user.ddbfs.retention", "30d");
	make_file(f, sub, "f", "x");
	fixture_pass(f, HOUR);
	rm(f, sub, "f");
	fixture_pass(f, HOUR);
	act_as(f, 1000, 101, "rm");
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 20 * DAY);
	sweep(f, NULL);
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, sub, "f"));
	fixture_pass(f, 11 * DAY);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST(tree_is_destroyed_in_steps_of_the_budget)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");
	struct sweep_result swept;
	unsigned passes = 0;
	uint64_t destroyed = 0;

	f->disturb = d;
	make_files(f, d, 20);
	make_files(f, sub, 20);
	make_link(f, d, "f0", sub, "link");
	make_link(f, d, "f0", sub, "link2");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 31 * DAY);
	do {
		ck_ok(f, lifecycle_sweep(f->life, 5, &swept));
		destroyed += swept.destroyed;
		ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
		ck_assert_uint_lt(passes++, 100);
	} while (swept.more);
	ck_assert_uint_le(destroyed, 44);
	ck_assert_uint_ge(passes, 8);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EXPIRED), 44);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
}

FIXTURE_TEST(discarded_tree_is_destroyed_whole)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");
	uint64_t other = make_directory(f, sub, "other");

	make_files(f, sub, 3);
	make_files(f, other, 3);
	make_link(f, sub, "f0", KEY_ID_ROOT, "out");
	fixture_pass(f, HOUR);
	rm(f, other, "f1");
	fixture_pass(f, HOUR);
	discard(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 31 * DAY);
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_ITEMS), 1);
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "out").links_total, 1);
	assert_text(f, KEY_ID_ROOT, "out", "f0");
}

FIXTURE_TEST(crash_while_destroying_is_made_good)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct sweep_result swept;

	make_files(f, d, 20);
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 31 * DAY);
	ck_ok(f, lifecycle_sweep(f->life, 3, &swept));
	fixture_crash(f);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST(open_file_in_a_due_tree_is_spared_until_closed)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t id = make_file(f, d, "open", "x");
	struct sweep_result swept;
	struct place at;

	make_files(f, d, 3);
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	at = shown_place(f, d, "open");
	f->busy[0] = id;
	fixture_pass(f, 31 * DAY);
	sweep(f, &swept);
	ck_assert_uint_eq(count_deleted(f, d), 1);
	ck_assert_int_gt(swept.next_due_ns, lifecycle_now_ns(f->life));
	ck_assert_int_lt(swept.next_due_ns, lifecycle_now_ns(f->life) + MINUTE);
	f->busy[0] = 0;
	lifecycle_note_released(f->life, id, &at);
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST(hold_keeps_everything_below)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true };
	struct empty_result result;
	struct place at;

	set_policy(f, sub, "user.ddbfs.hold", "yes");
	make_file(f, sub, "f", "x");
	make_file(f, d, "g", "x");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	at = shown_place(f, sub, "f");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_purge(f->life, &f->actor, &at, false)), -EPERM);
	at = shown_place(f, KEY_ID_ROOT, "d");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_purge(f->life, &f->actor, &at, true)), -EPERM);
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.refused, 1);
	fixture_pass(f, 31 * DAY);
	sweep(f, NULL);
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 4);
	ck_assert_uint_eq(count_deleted(f, sub), 1);
}

FIXTURE_TEST(purge_overtaken_by_a_hold_lapses)
{
	struct undo_result undone;
	struct undo_options options = { 0 };
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct place at;

	make_file(f, KEY_ID_ROOT, "f", "held");
	make_file(f, d, "inside", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "forever");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	rm_rf(f, KEY_ID_ROOT, "d");
	for (int i = 0; i < 2; i++) {
		at = shown_place(f, KEY_ID_ROOT, i ? "d" : "f");
		ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	}
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "yes");
	/* Within the grace it is hidden, as told. */
	fixture_pass(f, 5 * MINUTE);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "f"));
	for (int month = 0; month < 3; month++) {
		fixture_pass(f, 31 * DAY);
		sweep(f, NULL);
		ck_assert(is_shown(f, KEY_ID_ROOT, "f"));
		ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
		ck_assert_uint_eq(count_shown(f, d), 1);
	}
	/* Nothing of the purge is left to be undone, or missed; the removal is. */
	act_as(f, 1000, 200, "ddbfs");
	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &undone));
	ck_assert_uint_eq(undone.restored, 3);
	ck_assert_uint_eq(undone.missing, 0);
	assert_text(f, KEY_ID_ROOT, "f", "held");
	ck_assert(is_live(f, d, "inside"));
}

static bool take_removal(void *data, const struct batch *batch)
{
	*(struct batch *)data = *batch;
	return !batch->purge;
}

/* What went with it is due at the same instant, and comes first. */
FIXTURE_TEST(purge_that_lapses_is_told_from_its_removal)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct batch removal, purge;
	struct place at;

	make_file(f, d, "inside", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 55 * MINUTE);
	at = shown_place(f, KEY_ID_ROOT, "d");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	fixture_pass(f, 7 * MINUTE);
	sweep(f, NULL);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "yes");
	fixture_pass(f, 5 * MINUTE);
	sweep(f, NULL);
	fixture_pass(f, MINUTE);
	sweep(f, NULL);
	ck_ok(f, lifecycle_batches(f->life, UINT32_MAX, take_removal, &removal));
	ck_assert_uint_eq(removal.restored, 0);
	purge = last_batch(f);
	ck_assert(purge.purge);
	ck_assert_uint_eq(purge.restored, 1);
	ck_assert_uint_eq(count_deleted(f, d), 1);
}

FIXTURE_TEST(hold_that_ends_lets_go)
{
	make_file(f, KEY_ID_ROOT, "f", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "yes");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	fixture_pass(f, 31 * DAY);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.hold", "no");
	fixture_pass(f, DAY + SECOND);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(purged_entry_is_hidden_and_goes_after_its_grace)
{
	struct place at;

	make_file(f, KEY_ID_ROOT, "f", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	at = shown_place(f, KEY_ID_ROOT, "f");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_purge(f->life, &f->actor, &at, false)), -ENOENT);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "f"));
	fixture_pass(f, 9 * MINUTE);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	fixture_pass(f, 2 * MINUTE);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), 1);
}

FIXTURE_TEST(purge_of_a_directory_that_shows_something_needs_recursion)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct place top, child;

	make_file(f, d, "f", "x");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	top = shown_place(f, KEY_ID_ROOT, "d");
	child = shown_place(f, d, "f");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_purge(f->life, &f->actor, &top, false)), -ENOTEMPTY);
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &child, false));
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &top, false));
	fixture_pass(f, HOUR);
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

static void undo_last(struct fixture *f)
{
	struct undo_options options = { 0 };
	struct undo_result result;

	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &result));
}

/* What the sweeper decided, told apart from what is true when it gets to it. */
static int destroy_as_purged(struct fixture *f, const char *name, bool undo)
{
	struct place at = shown_place(f, KEY_ID_ROOT, name);
	struct store_value value = { 0 };
	struct destroyed total = { 0 };
	uint64_t budget = 100;
	struct item item;
	int result;

	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	ck_assert_int_eq(record_get_item(f->store, &at, true, &value, &item), 0);
	store_value_release(&value);
	if (undo)
		undo_last(f);
	result = FIXTURE_TRY(f, destroy_entry(f->life, &at, &item.deletion, COUNTER_DESTROYED_USER,
					      &budget, &total));
	return result;
}

FIXTURE_TEST(undone_purge_is_not_destroyed_by_what_was_decided_before)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "x", "text");
	make_file(f, KEY_ID_ROOT, "f", "text");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	discard(f, KEY_ID_ROOT, "d");
	ck_assert_int_eq(destroy_as_purged(f, "d", true), -EBUSY);
	ck_assert_int_eq(destroy_as_purged(f, "f", true), -EBUSY);
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "f"));
	assert_text(f, d, "x", "text");
	ck_assert_int_eq(destroy_as_purged(f, "d", false), 0);
	ck_assert_int_eq(destroy_as_purged(f, "f", false), 0);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

/* ---- damage ---------------------------------------------------------------------- */

static void put_garbage(struct fixture *f, const struct key *key)
{
	struct transaction t = { 0 };

	transaction_put(&t, key, "garbage", 7, NULL, 0, STORE_ANY, 0);
	ck_assert_int_eq(transaction_commit(&t, f->store, STORE_RELEASING, NULL), 0);
	transaction_release(&t);
}

FIXTURE_TEST_ONCE(what_cannot_be_read_keeps_nothing_else)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct empty_options options = { .directory = KEY_ID_ROOT };
	struct empty_result emptied;
	struct sweep_result swept;
	struct key key;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	f->keep_problems = true;
	make_file(f, KEY_ID_ROOT, "linked", "x");
	make_link(f, KEY_ID_ROOT, "linked", KEY_ID_ROOT, "other");
	make_file(f, d, "below", "x");
	make_file(f, KEY_ID_ROOT, "sound", "x");
	make_file(f, KEY_ID_ROOT, "later", "x");
	fixture_pass(f, HOUR);
	key_link(live_item(f, KEY_ID_ROOT, "linked").id, &key);
	rm(f, KEY_ID_ROOT, "linked");
	put_garbage(f, &key);
	rm(f, d, "below");
	key_guard(d, &key);
	put_garbage(f, &key);
	rm(f, KEY_ID_ROOT, "sound");
	fixture_pass(f, 2 * HOUR);
	ck_assert_int_eq(lifecycle_sweep(f->life, 100, &swept), 0);
	ck_assert_uint_eq(swept.destroyed, 2); /* the name alone of what was linked */
	assert_about(swept.next_due_ns - lifecycle_now_ns(f->life), HOUR);
	rm(f, KEY_ID_ROOT, "later");
	ck_assert_int_eq(lifecycle_empty(f->life, &f->actor, &options, &emptied), 0);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "later"));
}

static void spoil(struct fixture *f, const struct place *at)
{
	struct key key;

	key_item(store_codec(f->store), at, &key);
	put_garbage(f, &key);
}

FIXTURE_TEST_ONCE(what_cannot_be_read_expires_all_the_same)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), sub = make_directory(f, d, "sub");
	struct sweep_result swept;
	struct key_range range;
	struct place at;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	f->keep_problems = true;
	make_file(f, KEY_ID_ROOT, "lost", "x");
	make_file(f, sub, "deep", "x");
	make_file(f, d, "live", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "lost");
	at = shown_place(f, KEY_ID_ROOT, "lost");
	spoil(f, &at);
	discard(f, KEY_ID_ROOT, "d");
	at = shown_place(f, KEY_ID_ROOT, "d");
	spoil(f, &at);
	at = (struct place){ .directory = d, .state = KEY_ACT, .name = "sub" };
	spoil(f, &at);
	at = (struct place){ .directory = d, .state = KEY_ACT, .name = "live" };
	spoil(f, &at);
	fixture_pass(f, 2 * HOUR);
	for (int passes = 0; passes < 3; passes++)
		ck_ok(f, lifecycle_sweep(f->life, 100, &swept));
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
	key_range_directory(d, &range);
	ck_assert_int_eq(range_is_empty(f->store, &range), 1);
	key_range_directory(sub, &range);
	ck_assert_int_eq(range_is_empty(f->store, &range), 1);
}

/* ---- the thread ------------------------------------------------------------------------ */

static void wait_until_destroyed(struct fixture *f, int64_t count)
{
	struct timespec pause = { .tv_nsec = 2000000 };

	for (int i = 0; i < 5000 && counter(f, COUNTER_DESTROYED_USER) < count; i++)
		nanosleep(&pause, NULL);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), count);
}

FIXTURE_TEST_ONCE(sweeper_wakes_for_what_becomes_due_sooner)
{
	struct place at;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.grace", "1");
	fixture_pass(f, HOUR);
	ck_assert_int_eq(lifecycle_sweeper_start(f->life), 0);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	at = shown_place(f, KEY_ID_ROOT, "a");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	fixture_pass(f, 2 * SECOND);
	at = shown_place(f, KEY_ID_ROOT, "b");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false)); /* wakes it: the first is due by now */
	wait_until_destroyed(f, 1);
	lifecycle_sweeper_stop(f->life);
}

int main(void)
{
	Suite *suite = suite_create("sweep");
	TCase *tcase = tcase_create("sweep");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, expired_file_is_hidden_then_destroyed);
	tcase_add_test(tcase, what_went_with_a_directory_waits_for_it);
	tcase_add_test(tcase, directory_waits_for_what_is_in_it);
	tcase_add_test(tcase, tree_is_destroyed_in_steps_of_the_budget);
	tcase_add_test(tcase, discarded_tree_is_destroyed_whole);
	tcase_add_test(tcase, crash_while_destroying_is_made_good);
	tcase_add_test(tcase, open_file_in_a_due_tree_is_spared_until_closed);
	tcase_add_test(tcase, hold_keeps_everything_below);
	tcase_add_test(tcase, purge_overtaken_by_a_hold_lapses);
	tcase_add_test(tcase, purge_that_lapses_is_told_from_its_removal);
	tcase_add_test(tcase, hold_that_ends_lets_go);
	tcase_add_test(tcase, purged_entry_is_hidden_and_goes_after_its_grace);
	tcase_add_test(tcase, purge_of_a_directory_that_shows_something_needs_recursion);
	tcase_add_test(tcase, undone_purge_is_not_destroyed_by_what_was_decided_before);
	tcase_add_test(tcase, what_cannot_be_read_keeps_nothing_else);
	tcase_add_test(tcase, what_cannot_be_read_expires_all_the_same);
	tcase_add_test(tcase, sweeper_wakes_for_what_becomes_due_sooner);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
