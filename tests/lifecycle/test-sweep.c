/* test-sweep.c - what is due goes, whole and once; what is not, stays; and the rules of the clock. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

#define YEAR (365 * DAY)

static void make_files(struct fixture *f, uint64_t directory, unsigned count)
{
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		make_file(f, directory, name, name);
	}
}

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

/* ---- emptying -------------------------------------------------------------------- */

FIXTURE_TEST(emptying_takes_what_is_there_below_one_directory)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	struct empty_options options = { .directory = a, .dry_run = true };
	struct empty_result result;

	make_file(f, b, "x", "12345");
	make_file(f, a, "y", "123");
	make_file(f, KEY_ID_ROOT, "z", "1");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "z");
	rm(f, a, "y");
	rm_rf(f, a, "b");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.entries, 2);
	ck_assert_uint_eq(result.bytes, 8);
	ck_assert_uint_eq(count_shown(f, a), 2);
	options.dry_run = false;
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(count_shown(f, a), 0);
	ck_assert(is_shown(f, KEY_ID_ROOT, "z"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 4);
	options.now = true;
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 1);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), 3);
}

FIXTURE_TEST(emptying_spares_the_young)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true };
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "old", "");
	make_file(f, KEY_ID_ROOT, "young", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "old");
	fixture_pass(f, DAY);
	options.deleted_before_ns = lifecycle_now_ns(f->life);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "young");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert(is_shown(f, KEY_ID_ROOT, "young"));
	ck_assert(!is_shown(f, KEY_ID_ROOT, "old"));
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
}

struct deleter {
	struct fixture *f;
	bool done;
};

static bool delete_meanwhile(void *data, uint64_t done)
{
	struct deleter *d = data;

	if (!d->done)
		rm(d->f, KEY_ID_ROOT, "later");
	d->done = true;
	return false;
}

FIXTURE_TEST_ONCE(what_is_deleted_while_emptying_survives)
{
	struct deleter deleter = { .f = f };
	struct empty_options options = {
		.directory = KEY_ID_ROOT, .now = true, .progress = delete_meanwhile, .data = &deleter
	};
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "a", "");
	make_file(f, KEY_ID_ROOT, "b", "");
	make_file(f, KEY_ID_ROOT, "later", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.entries, 2);
	ck_assert(is_shown(f, KEY_ID_ROOT, "later"));
}

static int refuse_all(void *data, const struct place *at, const struct item *item)
{
	return -EACCES;
}

FIXTURE_TEST(emptying_asks_for_rights)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true, .allowed = refuse_all };
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "a", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.refused, 1);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
}

/* ---- caps ----------------------------------------------------------------------------- */

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

/* ---- what became of it ---------------------------------------------------------------- */

struct told {
	unsigned count;
	struct gone gone[16];
	char paths[16][64];
};

static bool tell(void *data, const struct gone *gone)
{
	struct told *told = data;

	ck_assert_uint_lt(told->count, 16);
	told->gone[told->count] = *gone;
	snprintf(told->paths[told->count], sizeof(told->paths[0]), "%s", gone->path);
	told->count++;
	return false;
}

static struct told history(struct fixture *f)
{
	struct told told = { 0 };

	ck_assert_int_eq(lifecycle_history(f->life, tell, &told), 0);
	return told;
}

FIXTURE_TEST(every_entry_that_is_destroyed_is_remembered_with_its_cause)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), tree = make_directory(f, d, "tree");
	struct place at;
	struct told told;

	set_policy(f, d, "user.ddbfs.versions", "1");
	make_files(f, tree, 40);
	make_file(f, d, "f", "1");
	make_file(f, d, "kept", "x");
	make_big_file(f, d, "purged", 3000);
	for (int i = 0; i < 2; i++) {
		make_file(f, d, "new", "2");
		ck_ok(f, rename_item(f, d, "new", d, "f"));
	}
	fixture_pass(f, HOUR);
	act_as(f, 1001, 77, "mv");
	rm(f, d, "purged");
	at = shown_place(f, d, "purged");
	act_as(f, 1000, 78, "rm");
	rm_rf(f, d, "tree");
	rm(f, d, "kept");
	restore(f, d, "kept", d, "kept");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	fixture_pass(f, HOUR);
	sweep(f, NULL);
	told = history(f);
	/* One version too many, and what was purged; nothing of what is back. */
	ck_assert_uint_eq(told.count, 2);
	ck_assert_str_eq(told.paths[1], "/d/f");
	ck_assert_int_eq(told.gone[1].cause, COUNTER_DESTROYED_VERSIONS);
	ck_assert_str_eq(told.paths[0], "/d/purged");
	ck_assert_int_eq(told.gone[0].cause, COUNTER_DESTROYED_USER);
	ck_assert_uint_eq(told.gone[0].size, 3000);
	ck_assert_uint_eq(told.gone[0].uid, 1001);
	ck_assert_uint_eq(told.gone[0].owner, 1000);
	ck_assert_str_eq(told.gone[0].command, "mv");
	assert_about(told.gone[0].destroyed_ns - told.gone[0].deleted_ns, HOUR);
	fixture_crash(f);
	fixture_pass(f, 40 * DAY);
	sweep(f, NULL);
	told = history(f);
	/* The other version, and the tree as one. */
	ck_assert_uint_eq(told.count, 4);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(told.gone[i].cause, COUNTER_DESTROYED_EXPIRED);
		ck_assert(!strcmp(told.paths[i], "/d/tree") == S_ISDIR(told.gone[i].mode));
	}
	ck_assert_str_ne(told.paths[0], told.paths[1]);
}

static bool count_gone(void *data, const struct gone *gone)
{
	++*(unsigned *)data;
	return false;
}

FIXTURE_TEST_ONCE(history_keeps_the_last_and_takes_no_more_space)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	unsigned count = 0;

	set_policy(f, d, "user.ddbfs.retention", "0");
	for (int i = 0; i < HISTORY_MAX + 20; i++) {
		make_file(f, d, i < HISTORY_MAX ? "early" : "late", "x");
		fixture_pass(f, 2 * MINUTE);
		rm(f, d, i < HISTORY_MAX ? "early" : "late");
		if (i == 100)
			fixture_crash(f);
	}
	ck_assert_int_eq(lifecycle_history(f->life, count_gone, &count), 0);
	ck_assert_uint_eq(count, HISTORY_MAX);
}

/* ---- the clock --------------------------------------------------------------------- */

FIXTURE_TEST(jump_of_a_year_hides_but_destroys_nothing)
{
	struct sweep_result swept;
	struct entry e;
	int64_t jump;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	sweep(f, NULL);
	test_clock_step(&f->clock, YEAR);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "a"));
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	ck_assert(lifecycle_clock_suspect(f->life, &jump));
	assert_about(jump, YEAR);
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
	test_clock_step(&f->clock, -YEAR);
	fixture_pass(f, MINUTE);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
	ck_assert(!lifecycle_clock_suspect(f->life, &jump));
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &e), 0);
	ck_assert_int_lt(llabs((long long)((int64_t)e.at.seq - lifecycle_now_ns(f->life))), 2 * MINUTE);
	entry_release(&e);
}

FIXTURE_TEST(confirmed_jump_destroys)
{
	struct sweep_result swept;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	test_clock_step(&f->clock, YEAR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_ok(f, lifecycle_clock_accept(f->life));
	sweep(f, &swept);
	ck_assert(!swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(steady_day_confirms_a_jump)
{
	struct sweep_result swept;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	test_clock_step(&f->clock, YEAR);
	sweep(f, &swept);
	fixture_pass(f, 23 * HOUR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	test_clock_step(&f->clock, 2 * HOUR); /* not steady: from the start again */
	sweep(f, &swept);
	fixture_pass(f, 23 * HOUR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	fixture_pass(f, 2 * HOUR);
	sweep(f, &swept);
	ck_assert(!swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(jump_between_mounts_of_one_boot_is_noticed)
{
	struct sweep_result swept;
	int64_t jump;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_reopen(f);
	test_clock_step(&f->clock, YEAR);
	fixture_reopen(f);
	ck_assert(lifecycle_clock_suspect(f->life, &jump));
	fixture_reopen(f);
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
}

FIXTURE_TEST(step_back_destroys_nothing_early)
{
	struct entry first, second;
	int64_t deleted_ns;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "2d");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	deleted_ns = lifecycle_now_ns(f->life);
	test_clock_step(&f->clock, -DAY);
	rm(f, KEY_ID_ROOT, "b");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "a", &first), 0);
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &second), 0);
	ck_assert_uint_gt(second.at.seq, first.at.seq);
	assert_about(second.expires_ns - deleted_ns, 2 * DAY);
	entry_release(&first);
	entry_release(&second);
	fixture_pass(f, 2 * DAY - HOUR);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 2);
}

FIXTURE_TEST(clock_of_1970_does_not_date_deletions)
{
	struct entry e;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_reopen(f);
	f->clock.realtime_ns = 5 * SECOND;
	fixture_reopen(f);
	rm(f, KEY_ID_ROOT, "b");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &e), 0);
	ck_assert_uint_gt(e.at.seq, UINT64_C(1700000000) * CLOCK_SECOND_NS);
	entry_release(&e);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
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
	tcase_add_test(tcase, hold_that_ends_lets_go);
	tcase_add_test(tcase, purge_that_lapses_is_told_from_its_removal);
	tcase_add_test(tcase, purged_entry_is_hidden_and_goes_after_its_grace);
	tcase_add_test(tcase, purge_of_a_directory_that_shows_something_needs_recursion);
	tcase_add_test(tcase, undone_purge_is_not_destroyed_by_what_was_decided_before);
	tcase_add_test(tcase, what_cannot_be_read_keeps_nothing_else);
	tcase_add_test(tcase, what_cannot_be_read_expires_all_the_same);
	tcase_add_test(tcase, emptying_takes_what_is_there_below_one_directory);
	tcase_add_test(tcase, emptying_spares_the_young);
	tcase_add_test(tcase, what_is_deleted_while_emptying_survives);
	tcase_add_test(tcase, emptying_asks_for_rights);
	tcase_add_test(tcase, oldest_entries_go_when_the_trash_is_over_its_cap);
	tcase_add_test(tcase, tree_evicted_in_part_is_never_seen_again);
	tcase_add_test(tcase, oldest_entries_go_when_there_are_more_than_the_cap);
	tcase_add_test(tcase, little_space_lets_the_oldest_go_where_a_rule_says_so);
	tcase_add_test(tcase, write_without_space_takes_what_was_purged_and_nothing_else);
	tcase_add_test(tcase, write_without_space_takes_the_oldest_by_the_rule);
	tcase_add_test(tcase, cap_that_held_entries_keep_over_is_not_measured_again);
	tcase_add_test(tcase, nested_caps_both_hold);
	tcase_add_test(tcase, cap_inside_does_not_lift_the_one_around_it);
	tcase_add_test(tcase, without_a_cap_nothing_is_evicted);
	tcase_add_test(tcase, every_entry_that_is_destroyed_is_remembered_with_its_cause);
	tcase_add_test(tcase, history_keeps_the_last_and_takes_no_more_space);
	tcase_add_test(tcase, jump_of_a_year_hides_but_destroys_nothing);
	tcase_add_test(tcase, confirmed_jump_destroys);
	tcase_add_test(tcase, steady_day_confirms_a_jump);
	tcase_add_test(tcase, jump_between_mounts_of_one_boot_is_noticed);
	tcase_add_test(tcase, step_back_destroys_nothing_early);
	tcase_add_test(tcase, clock_of_1970_does_not_date_deletions);
	tcase_add_test(tcase, sweeper_wakes_for_what_becomes_due_sooner);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
