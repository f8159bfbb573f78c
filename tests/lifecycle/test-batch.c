/* test-batch.c - what is one deletion to its user, and taking it back. */
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/fixture.h"

static struct undo_result undo_with(struct fixture *f, const struct undo_options *options, int expected)
{
	struct undo_result result;
	int got = FIXTURE_TRY(f, lifecycle_undo(f->life, &f->actor, options, &result));

	ck_assert_msg(got == expected, "undo: %d, not %d (fault %d at %lu)", got, expected,
		      f->fault, (unsigned long)f->fault_at);
	return result;
}

static struct undo_result undo(struct fixture *f)
{
	struct undo_options options = { 0 };

	return undo_with(f, &options, 0);
}

static void make_named(struct fixture *f, uint64_t directory, const char *names)
{
	for (; *names; names++)
		make_file(f, directory, (char[]){ *names, 0 }, (char[]){ *names, 0 });
}

FIXTURE_TEST(one_process_group_is_one_batch)
{
	struct batch batch;

	make_named(f, KEY_ID_ROOT, "abcd");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_pass(f, 59 * SECOND);
	f->actor.pid = 4711; /* another process or thread of the group */
	rm(f, KEY_ID_ROOT, "b");
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "c");
	ck_assert_uint_eq(count_batches(f), 2);
	act_as(f, 1000, 100, "rm");
	fixture_pass(f, 61 * SECOND);
	rm(f, KEY_ID_ROOT, "d");
	ck_assert_uint_eq(count_batches(f), 3);
	batch = last_batch(f);
	ck_assert_uint_eq(batch.count, 1);
	ck_assert_str_eq(batch.command, "rm");
	ck_assert_uint_eq(batch.uid, 1000);
}

FIXTURE_TEST(old_batch_ends_after_a_second)
{
	char name[16];

	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(f, KEY_ID_ROOT, name, "");
	}
	fixture_pass(f, HOUR);
	for (int i = 0; i < 63; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		rm(f, KEY_ID_ROOT, name);
		fixture_pass(f, i < 62 ? 59 * SECOND : 2 * SECOND);
	}
	ck_assert_uint_eq(count_batches(f), 1);
	rm(f, KEY_ID_ROOT, "f63");
	ck_assert_uint_eq(count_batches(f), 2);
}

FIXTURE_TEST(unknown_processes_are_grouped_by_user)
{
	make_named(f, KEY_ID_ROOT, "abc");
	fixture_pass(f, HOUR);
	act_as(f, 1000, 0, "");
	rm(f, KEY_ID_ROOT, "a");
	f->actor.group = 77;
	rm(f, KEY_ID_ROOT, "b");
	act_as(f, 1001, 0, "");
	rm(f, KEY_ID_ROOT, "c");
	ck_assert_uint_eq(count_batches(f), 2);
}

FIXTURE_TEST(undo_brings_the_last_batch_back_then_the_one_before)
{
	struct undo_result result;
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_named(f, d, "xyz");
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm_rf(f, KEY_ID_ROOT, "d");
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	act_as(f, 1000, 555, "ddbfs");
	result = undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "b"));
	ck_assert(!is_live(f, KEY_ID_ROOT, "a"));
	ck_assert_uint_eq(result.batch.count, 1);
	result = undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
	assert_text(f, d, "x", "x");
	ck_assert_uint_eq(result.batch.count, 5);
	ck_assert_uint_eq(result.missing, 0);
	ck_assert_uint_eq(result.restored + result.already, 5);
	undo_with(f, &(struct undo_options){ 0 }, -ENOENT);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST(undo_takes_the_batch_of_the_own_session_first)
{
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	act_as(f, 1000, 101, "rm");
	f->actor.session = 2;
	rm(f, KEY_ID_ROOT, "b");
	act_as(f, 1000, 102, "ddbfs");
	undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
	ck_assert(!is_live(f, KEY_ID_ROOT, "b"));
	undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "b"));
}

FIXTURE_TEST(undo_passes_what_mv_brought_back)
{
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	restore(f, KEY_ID_ROOT, "b", KEY_ID_ROOT, "b");
	act_as(f, 1000, 102, "ddbfs");
	ck_assert_uint_eq(undo(f).restored, 1);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
}

FIXTURE_TEST(rest_of_a_directory_comes_back_of_the_batch_that_a_part_is_of)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), sub = make_directory(f, d, "sub");
	struct undo_options options = { .directory = d };

	make_named(f, d, "ab");
	make_named(f, sub, "cd");
	make_named(f, KEY_ID_ROOT, "xy");
	fixture_pass(f, HOUR);
	rm(f, d, "a");
	fixture_pass(f, HOUR);
	undo_with(f, &options, -ENOENT); /* nothing of it came back */
	rm(f, KEY_ID_ROOT, "x");
	rm_rf(f, KEY_ID_ROOT, "d");
	rm(f, KEY_ID_ROOT, "y");
	ck_ok(f, lifecycle_restore_origin(f->life, &f->actor, (struct place[]){ shown_place(f, sub, "c") },
					  RESTORE_PARENTS, NULL, NULL, NULL));
	ck_assert(!is_live(f, sub, "d"));
	ck_assert_uint_eq(undo_with(f, &options, 0).restored, 2);
	ck_assert(is_live(f, d, "b"));
	ck_assert(is_live(f, sub, "d"));
	ck_assert(!is_live(f, d, "a"));
	ck_assert(!is_live(f, KEY_ID_ROOT, "x"));
	undo_with(f, &options, -ENOENT);
	undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "x"));
	ck_assert(is_live(f, KEY_ID_ROOT, "y"));
}

static int refuse_all(void *data, const struct place *at, const struct item *item)
{
	return -EACCES;
}

/* Who may bring nothing of it back changes nothing about it: it goes on, and what stays of it is not decided. */
FIXTURE_TEST(rest_of_a_directory_is_left_alone_by_who_may_not)
{
	struct undo_result result;
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct undo_options options = { .directory = d, .allowed = refuse_all };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place older;
	struct item item;

	make_named(f, d, "abx");
	fixture_pass(f, HOUR);
	rm(f, d, "a");
	rm(f, d, "x");
	older = shown_place(f, d, "x");
	make_file(f, d, "x", "newer");
	f->actor.pid = 4711; /* another process of the group: it is no temporary name */
	rm(f, d, "x");
	restore(f, d, "a", d, "a");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_undo(f->life, &f->actor, &options, &result)), -EACCES);
	rm(f, d, "b");
	ck_assert_uint_eq(count_batches(f), 1);
	ck_assert_int_eq(record_get_item(f->store, &older, true, &value, &item), 0);
	ck_assert_uint_eq(item.deletion.replaced_by, 0);
}

FIXTURE_TEST(purge_of_what_is_gone_is_passed)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct undo_options options = { 0 };
	struct undo_result result;
	struct place at;
	struct item item;

	if (f->fault != FAULT_NONE)
		return;
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "b");
	at = shown_place(f, KEY_ID_ROOT, "b");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	fixture_pass(f, MINUTE);
	/* Its item goes between the reading of its row and its own. */
	ck_assert_int_eq(record_get_item(f->store, &at, false, &value, &item), 0);
	transaction_delete_item(&t, f->store, &at, item.version);
	ck_assert_int_eq(tree_commit(&t, f->store, STORE_RELEASING, NULL), 0);
	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &result));
	ck_assert(!result.batch.purge);
	transaction_release(&t);
	t = (struct transaction){ 0 };
	transaction_put_item(&t, f->store, &at, &item, 0);
	ck_assert_int_eq(tree_commit(&t, f->store, STORE_GROWING, NULL), 0);
}

FIXTURE_TEST(undo_moves_nothing_when_a_name_is_taken)
{
	struct undo_options options = { 0 };
	struct undo_result result;

	make_named(f, KEY_ID_ROOT, "abc");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	rm(f, KEY_ID_ROOT, "c");
	make_file(f, KEY_ID_ROOT, "b", "new");
	undo_with(f, &options, -EEXIST);
	ck_assert(!is_live(f, KEY_ID_ROOT, "a"));
	options.taken = UNDO_SKIP;
	result = undo_with(f, &options, 0);
	ck_assert_uint_eq(result.skipped, 1);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
	assert_text(f, KEY_ID_ROOT, "b", "new");
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
}

FIXTURE_TEST(undo_renames_or_replaces_when_told)
{
	struct undo_options options = { .taken = UNDO_RENAME };

	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	make_file(f, KEY_ID_ROOT, "a", "new");
	make_file(f, KEY_ID_ROOT, "b", "new");
	act_as(f, 1000, 102, "ddbfs");
	options.taken = UNDO_REPLACE;
	undo_with(f, &options, 0);
	assert_text(f, KEY_ID_ROOT, "b", "b");
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
	options.taken = UNDO_RENAME;
	undo_with(f, &options, 0);
	assert_text(f, KEY_ID_ROOT, "a", "new");
	assert_text(f, KEY_ID_ROOT, "a (restored)", "a");
}

FIXTURE_TEST(what_is_back_already_counts_as_done)
{
	struct undo_result result;

	make_named(f, KEY_ID_ROOT, "abc");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	rm(f, KEY_ID_ROOT, "c");
	restore(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "elsewhere");
	result = undo(f);
	ck_assert_uint_ge(result.already, 1);
	ck_assert_uint_eq(result.already + result.restored, 3);
	ck_assert_uint_eq(result.missing, 0);
}

static void count_missing(void *data, const char *path, const struct item *item, int result)
{
	if (result == -ENOENT)
		++*(unsigned *)data;
}

FIXTURE_TEST(expired_and_destroyed_entries_are_told)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t e = make_directory(f, KEY_ID_ROOT, "e");
	unsigned missing = 0;
	struct undo_options options = { .entry = count_missing, .data = &missing };
	struct undo_result result;

	set_policy(f, d, "user.ddbfs.retention", "10s");
	set_policy(f, e, "user.ddbfs.retention", "20s");
	make_named(f, d, "a");
	make_named(f, e, "b");
	make_named(f, KEY_ID_ROOT, "c");
	fixture_pass(f, HOUR);
	rm(f, d, "a");
	rm(f, e, "b");
	rm(f, KEY_ID_ROOT, "c");
	fixture_pass(f, 15 * SECOND);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, d), 0);
	fixture_pass(f, 15 * SECOND);
	result = undo_with(f, &options, 0);
	ck_assert_uint_eq(result.missing, 2);
	ck_assert_uint_ge(missing, 1);
	ck_assert(is_live(f, KEY_ID_ROOT, "c"));
}

FIXTURE_TEST(pattern_takes_back_a_part)
{
	struct undo_options options = { .only = "*.c" };
	struct undo_result result;

	make_file(f, KEY_ID_ROOT, "a.c", "");
	make_file(f, KEY_ID_ROOT, "b.o", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a.c");
	rm(f, KEY_ID_ROOT, "b.o");
	undo_with(f, &options, 0);
	ck_assert(is_live(f, KEY_ID_ROOT, "a.c"));
	ck_assert(!is_live(f, KEY_ID_ROOT, "b.o"));
	result = undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "b.o"));
	ck_assert_uint_eq(result.already, 1);
}

FIXTURE_TEST(dry_run_moves_nothing)
{
	struct undo_options options = { .dry_run = true };
	struct undo_result result;

	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	result = undo_with(f, &options, 0);
	ck_assert_uint_eq(result.restored, 2);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	result = undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
}

static int refuse_b(void *data, const struct place *at, const struct item *item)
{
	return strcmp(at->name, "b") == 0 ? -EACCES : 0;
}

FIXTURE_TEST(refused_entries_are_left)
{
	struct undo_options options = { .allowed = refuse_b };
	struct undo_result result;

	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	result = undo_with(f, &options, 0);
	ck_assert_uint_eq(result.skipped, 1);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
	options.batch = result.batch.seq;
	undo_with(f, &options, -EACCES);
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
}

FIXTURE_TEST(replacement_is_no_removal)
{
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "b"), 0);
	undo_with(f, &(struct undo_options){ 0 }, -ENOENT);
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
}

FIXTURE_TEST(newest_of_a_name_deleted_twice_is_undone)
{
	make_file(f, KEY_ID_ROOT, "f", "older");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	act_as(f, 1000, 9, "sh");
	make_file(f, KEY_ID_ROOT, "f", "newer");
	act_as(f, 1000, 100, "rm");
	rm(f, KEY_ID_ROOT, "f");
	undo(f);
	assert_text(f, KEY_ID_ROOT, "f", "newer");
	ck_assert(is_shown(f, KEY_ID_ROOT, "f"));
}

FIXTURE_TEST(entry_whose_directory_went_later_comes_back_with_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct batch batch;
	struct undo_options options = { 0 };

	make_named(f, d, "ab");
	fixture_pass(f, HOUR);
	rm(f, d, "a");
	batch = last_batch(f);
	act_as(f, 1000, 101, "rm");
	rm_rf(f, KEY_ID_ROOT, "d");
	options.batch = batch.seq;
	undo_with(f, &options, 0);
	assert_text(f, d, "a", "a");
	ck_assert(!is_live(f, d, "b"));
	undo(f);
	assert_text(f, d, "b", "b");
}

FIXTURE_TEST(crash_closes_an_open_batch)
{
	struct batch batch;

	make_named(f, KEY_ID_ROOT, "abc");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	fixture_crash(f);
	batch = last_batch(f);
	ck_assert_uint_ne(batch.last_seq, 0);
	ck_assert_uint_eq(batch.count, 2);
	ck_assert_uint_eq(batch.bytes, 2);
	rm(f, KEY_ID_ROOT, "c");
	ck_assert_uint_eq(count_batches(f), 2);
	undo(f);
	undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "b"));
}

/* As one that ended cleanly: undo does not take the batch before for it. */
FIXTURE_TEST(crash_keeps_an_open_batch_of_which_nothing_is_left)
{
	struct batch batch;

	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	restore(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "a");
	restore(f, KEY_ID_ROOT, "b", KEY_ID_ROOT, "b");
	fixture_crash(f);
	ck_assert_uint_eq(count_batches(f), 1);
	batch = last_batch(f);
	ck_assert_uint_ne(batch.last_seq, 0);
	ck_assert_uint_eq(batch.count, 2);
	ck_assert_uint_eq(batch.restored, 2);
}

static bool take_removal(void *data, const struct batch *batch)
{
	*(struct batch *)data = *batch;
	return !batch->purge;
}

/* Some came back, and the rest was destroyed: it is not taken for all back. */
FIXTURE_TEST(crash_remembers_how_many_an_open_batch_had)
{
	struct place at;
	struct batch batch;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.grace", "0");
	make_named(f, KEY_ID_ROOT, "abc");
	fixture_pass(f, HOUR);
	for (const char *name = "abc"; *name; name++)
		rm(f, KEY_ID_ROOT, (char[]){ *name, 0 });
	restore(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "a");
	for (const char *name = "bc"; *name; name++) {
		at = shown_place(f, KEY_ID_ROOT, (char[]){ *name, 0 });
		ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	}
	fixture_crash(f);
	ck_ok(f, lifecycle_batches(f->life, UINT32_MAX, take_removal, &batch));
	ck_assert_uint_eq(batch.count, 3);
	ck_assert_uint_eq(batch.restored, 1);
}

static bool stop_at_once(void *data, uint64_t done, uint64_t total)
{
	return done >= 3;
}

FIXTURE_TEST(undo_broken_off_goes_on)
{
	struct undo_options options = { .progress = stop_at_once };
	struct undo_result result;

	make_named(f, KEY_ID_ROOT, "abcdefgh");
	fixture_pass(f, HOUR);
	for (const char *name = "abcdefgh"; *name; name++)
		rm(f, KEY_ID_ROOT, (char[]){ *name, 0 });
	undo_with(f, &options, -EINTR);
	fixture_crash(f);
	act_as(f, 1000, 700, "ddbfs");
	result = undo(f);
	ck_assert_uint_eq(result.already + result.restored, 8);
	for (const char *name = "abcdefgh"; *name; name++)
		ck_assert(is_live(f, KEY_ID_ROOT, (char[]){ *name, 0 }));
}

static bool stop_after_one(void *data, uint64_t done, uint64_t total)
{
	return done >= 1;
}

static void undo_twice_deleted(struct fixture *f, enum undo_taken taken)
{
	struct undo_options options = { .taken = taken, .progress = stop_after_one };
	struct undo_result result;

	make_file(f, KEY_ID_ROOT, "a", "first");
	make_file(f, KEY_ID_ROOT, "b", "b");
	fixture_pass(f, 2 * MINUTE);
	act_as(f, 1000, 102, "rm");
	rm(f, KEY_ID_ROOT, "a");
	make_file(f, KEY_ID_ROOT, "a", "second");
	f->actor.pid = 4711; /* another process of the group: it is no temporary name */
	rm(f, KEY_ID_ROOT, "b");
	rm(f, KEY_ID_ROOT, "a");
	/* The newest comes first; then it is broken off. */
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_undo(f->life, &f->actor, &options, &result)), -EINTR);
	fixture_crash(f);
	undo_with(f, &(struct undo_options){ .taken = taken }, 0);
	assert_text(f, KEY_ID_ROOT, "a", "second");
	assert_text(f, KEY_ID_ROOT, "b", "b");
	ck_assert(!is_live(f, KEY_ID_ROOT, "a (restored)"));
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 1);
}

FIXTURE_TEST(undo_broken_off_leaves_the_older_of_a_name_when_it_goes_on)
{
	undo_twice_deleted(f, UNDO_REFUSE);
}

FIXTURE_TEST(undo_broken_off_renames_no_older_one_when_it_goes_on)
{
	undo_twice_deleted(f, UNDO_RENAME);
}

FIXTURE_TEST(undo_broken_off_replaces_nothing_by_an_older_one_when_it_goes_on)
{
	undo_twice_deleted(f, UNDO_REPLACE);
}

FIXTURE_TEST(purge_is_undone_into_the_trash)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct undo_result result;
	struct place at;

	make_named(f, d, "ab");
	fixture_pass(f, HOUR);
	rm(f, d, "a");
	rm_rf(f, KEY_ID_ROOT, "d");
	act_as(f, 1000, 101, "rsync");
	at = shown_place(f, KEY_ID_ROOT, "d");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	fixture_pass(f, 9 * MINUTE);
	sweep(f, NULL);
	act_as(f, 1000, 102, "ddbfs");
	result = undo(f);
	ck_assert(result.batch.purge);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 1);
	ck_assert_uint_eq(count_shown(f, d), 2);
	undo(f);
	assert_text(f, d, "a", "a");
}

FIXTURE_TEST(purge_whose_grace_is_over_is_passed)
{
	struct place at;

	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	act_as(f, 1000, 102, "rm");
	at = shown_place(f, KEY_ID_ROOT, "b");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	fixture_pass(f, 11 * MINUTE);
	sweep(f, NULL);
	act_as(f, 1000, 103, "ddbfs");
	ck_assert_uint_eq(undo(f).missing, 1); /* the batch of b: it is gone */
	undo(f);
	ck_assert(is_live(f, KEY_ID_ROOT, "a"));
}

FIXTURE_TEST(live_item_in_a_discarded_directory_is_purged_and_unpurged)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");
	struct place at;

	make_named(f, sub, "ab");
	fixture_pass(f, HOUR);
	discard(f, KEY_ID_ROOT, "d");
	act_as(f, 1000, 101, "rm");
	at = shown_place(f, sub, "a");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	ck_assert_uint_eq(count_shown(f, sub), 1);
	at = shown_place(f, d, "sub");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_purge(f->life, &f->actor, &at, false)), -ENOTEMPTY);
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, true));
	ck_assert_uint_eq(count_shown(f, d), 0);
	act_as(f, 1000, 102, "ddbfs");
	undo(f);
	ck_assert_uint_eq(count_shown(f, sub), 2);
	undo(f);
	assert_text(f, sub, "a", "a");
	assert_text(f, sub, "b", "b");
	discard(f, KEY_ID_ROOT, "d");
	at = shown_place(f, sub, "a");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
}

FIXTURE_TEST(records_of_batches_go_when_nothing_is_left)
{
	make_named(f, KEY_ID_ROOT, "ab");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	act_as(f, 1000, 101, "rm");
	fixture_pass(f, 20 * DAY);
	rm(f, KEY_ID_ROOT, "b");
	fixture_reopen(f);
	ck_assert_uint_eq(count_batches(f), 2);
	fixture_pass(f, 11 * DAY);
	sweep(f, NULL);
	fixture_pass(f, 20 * DAY);
	sweep(f, NULL);
	ck_assert_uint_eq(count_batches(f), 0);
}

int main(void)
{
	Suite *suite = suite_create("batch");
	TCase *tcase = tcase_create("batch");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, one_process_group_is_one_batch);
	tcase_add_test(tcase, old_batch_ends_after_a_second);
	tcase_add_test(tcase, unknown_processes_are_grouped_by_user);
	tcase_add_test(tcase, undo_brings_the_last_batch_back_then_the_one_before);
	tcase_add_test(tcase, undo_takes_the_batch_of_the_own_session_first);
	tcase_add_test(tcase, undo_passes_what_mv_brought_back);
	tcase_add_test(tcase, rest_of_a_directory_comes_back_of_the_batch_that_a_part_is_of);
	tcase_add_test(tcase, undo_moves_nothing_when_a_name_is_taken);
	tcase_add_test(tcase, undo_renames_or_replaces_when_told);
	tcase_add_test(tcase, what_is_back_already_counts_as_done);
	tcase_add_test(tcase, expired_and_destroyed_entries_are_told);
	tcase_add_test(tcase, pattern_takes_back_a_part);
	tcase_add_test(tcase, dry_run_moves_nothing);
	tcase_add_test(tcase, refused_entries_are_left);
	tcase_add_test(tcase, replacement_is_no_removal);
	tcase_add_test(tcase, newest_of_a_name_deleted_twice_is_undone);
	tcase_add_test(tcase, entry_whose_directory_went_later_comes_back_with_it);
	tcase_add_test(tcase, crash_closes_an_open_batch);
	tcase_add_test(tcase, crash_keeps_an_open_batch_of_which_nothing_is_left);
	tcase_add_test(tcase, crash_remembers_how_many_an_open_batch_had);
	tcase_add_test(tcase, rest_of_a_directory_is_left_alone_by_who_may_not);
	tcase_add_test(tcase, purge_of_what_is_gone_is_passed);
	tcase_add_test(tcase, undo_broken_off_goes_on);
	tcase_add_test(tcase, undo_broken_off_leaves_the_older_of_a_name_when_it_goes_on);
	tcase_add_test(tcase, undo_broken_off_renames_no_older_one_when_it_goes_on);
	tcase_add_test(tcase, undo_broken_off_replaces_nothing_by_an_older_one_when_it_goes_on);
	tcase_add_test(tcase, purge_is_undone_into_the_trash);
	tcase_add_test(tcase, purge_whose_grace_is_over_is_passed);
	tcase_add_test(tcase, live_item_in_a_discarded_directory_is_purged_and_unpurged);
	tcase_add_test(tcase, records_of_batches_go_when_nothing_is_left);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
