/* test-restore.c - entries come back as they were: files, trees, parts of trees, to their origin. */
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/fixture.h"

#define OLD_TIME 1234567890

static void assert_mtime(struct fixture *f, uint64_t parent, const char *name, int64_t seconds)
{
	struct item item = live_item(f, parent, name);

	ck_assert_int_eq(item.mtime.tv_sec, seconds);
	ck_assert_int_eq(item.mtime.tv_nsec, 123456789);
}

static char *restore_origin(struct fixture *f, uint64_t from, const char *shown, unsigned flags)
{
	struct place at = shown_place(f, from, shown);
	char *path = NULL;

	ck_ok(f, lifecycle_restore_origin(f->life, &f->actor, &at, flags, NULL, NULL, &path));
	return path;
}

FIXTURE_TEST(file_comes_back_as_it_was)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct item before, after;

	make_big_file(f, d, "f", 70000);
	before = live_item(f, d, "f");
	fixture_pass(f, HOUR);
	rm(f, d, "f");
	fixture_pass(f, HOUR);
	restore(f, d, "f", d, "f");
	after = live_item(f, d, "f");
	ck_assert_uint_eq(after.id, before.id);
	ck_assert_uint_eq(after.mode, before.mode);
	ck_assert_uint_eq(after.body, before.body);
	ck_assert_uint_eq(after.size, before.size);
	ck_assert_int_eq(after.mtime.tv_sec, before.mtime.tv_sec);
	ck_assert_int_eq(after.atime.tv_sec, before.atime.tv_sec);
	ck_assert_int_gt(after.ctime.tv_sec, before.ctime.tv_sec);
	ck_assert_uint_eq(count_deleted(f, d), 0);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 70000);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "d"));
}

FIXTURE_TEST(existing_name_is_kept_renamed_or_replaced)
{
	make_file(f, KEY_ID_ROOT, "f", "old");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	make_file(f, KEY_ID_ROOT, "f", "new");
	make_file(f, KEY_ID_ROOT, "f (restored)", "there");
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "f", RESTORE_NOREPLACE), -EEXIST);
	assert_text(f, KEY_ID_ROOT, "f", "new");
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "f", RESTORE_RENAME), 0);
	assert_text(f, KEY_ID_ROOT, "f (restored 2)", "old");
	rm(f, KEY_ID_ROOT, "f (restored 2)");
	restore(f, KEY_ID_ROOT, "f (restored 2)", KEY_ID_ROOT, "f");
	assert_text(f, KEY_ID_ROOT, "f", "old");
	restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "replaced");
	assert_text(f, KEY_ID_ROOT, "replaced", "new");
}

static int swap(struct fixture *f, uint64_t directory, const char *shown)
{
	struct place at = shown_place(f, directory, shown);

	return lifecycle_restore_origin(f->life, &f->actor, &at, RESTORE_SWAP, NULL, NULL, NULL);
}

FIXTURE_TEST(what_a_rename_replaced_is_swapped_with_what_replaced_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "f", "old");
	make_file(f, d, "new", "new");
	ck_ok(f, rename_item(f, d, "new", d, "f"));
	ck_ok(f, swap(f, d, "f"));
	assert_text(f, d, "f", "old");
	ck_assert_uint_eq(count_shown(f, d), 1);
	ck_ok(f, swap(f, d, "f"));
	assert_text(f, d, "f", "new");
	ck_assert_uint_eq(count_shown(f, d), 1);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 1);
	/* What replaced it is elsewhere now, then something else bears the name. */
	ck_ok(f, rename_item(f, d, "f", d, "away"));
	ck_assert_int_eq(FIXTURE_TRY(f, swap(f, d, "f")), -ESTALE);
	make_file(f, d, "f", "another");
	ck_assert_int_eq(FIXTURE_TRY(f, swap(f, d, "f")), -ESTALE);
	assert_text(f, d, "f", "another");
	fixture_pass(f, HOUR);
	rm(f, d, "f");
	ck_assert_int_eq(FIXTURE_TRY(f, swap(f, d, "f")), -ESTALE);
}

FIXTURE_TEST(swapped_directories_go_with_what_is_in_them)
{
	uint64_t d, e;

	d = make_directory(f, KEY_ID_ROOT, "d");
	make_file(f, d, "gone", "in the old one");
	fixture_pass(f, HOUR);
	rm(f, d, "gone");
	e = make_directory(f, KEY_ID_ROOT, "e");
	make_file(f, e, "in", "in the new one");
	ck_ok(f, rename_item(f, KEY_ID_ROOT, "e", KEY_ID_ROOT, "d"));
	ck_ok(f, swap(f, KEY_ID_ROOT, "d"));
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "d").id, d);
	ck_assert(is_shown(f, d, "gone"));
	ck_assert(is_shown(f, e, "in"));
	ck_ok(f, swap(f, KEY_ID_ROOT, "d"));
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "d").id, e);
	assert_text(f, e, "in", "in the new one");
	ck_assert(is_shown(f, d, "gone"));
}

FIXTURE_TEST(restore_follows_the_rules_of_rename)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t gone = make_directory(f, KEY_ID_ROOT, "gone");

	make_file(f, d, "x", "x");
	make_file(f, KEY_ID_ROOT, "file", "y");
	make_file(f, KEY_ID_ROOT, "f", "z");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	rm_rf(f, KEY_ID_ROOT, "gone");
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "d", 0), -EISDIR);
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "gone", KEY_ID_ROOT, "file", 0), -ENOTDIR);
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "gone", KEY_ID_ROOT, "d", 0), -ENOTEMPTY);
	ck_assert_int_eq(try_restore(f, KEY_ID_ROOT, "f", gone, "f", 0), -ENOENT);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	rm(f, d, "x");
	restore(f, KEY_ID_ROOT, "gone", KEY_ID_ROOT, "d");
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "d").id, gone);
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
}

/* tree/{a,b,sub/{c,deep/e},empty}, all times old. */
static uint64_t make_tree(struct fixture *f, uint64_t ids[4])
{
	uint64_t tree = make_directory_as(f, KEY_ID_ROOT, "tree", 0750, 1000);
	uint64_t sub = make_directory_as(f, tree, "sub", 0700, 1001);
	uint64_t deep = make_directory(f, sub, "deep");
	uint64_t empty = make_directory(f, tree, "empty");

	make_file(f, tree, "a", "a");
	make_file(f, tree, "b", "bb");
	make_file(f, sub, "c", "ccc");
	make_file(f, deep, "e", "eeee");
	ids[0] = tree;
	ids[1] = sub;
	ids[2] = deep;
	ids[3] = empty;
	for (int i = 0; i < 4; i++)
		set_mtime(f, ids[i], OLD_TIME + i);
	fixture_pass(f, HOUR);
	return tree;
}

static void assert_tree(struct fixture *f, const uint64_t ids[4], bool times)
{
	assert_text(f, ids[0], "a", "a");
	assert_text(f, ids[0], "b", "bb");
	assert_text(f, ids[1], "c", "ccc");
	assert_text(f, ids[2], "e", "eeee");
	ck_assert(is_live(f, ids[0], "empty"));
	ck_assert_uint_eq(live_item(f, ids[0], "sub").id, ids[1]);
	ck_assert_uint_eq(live_item(f, ids[0], "sub").mode, S_IFDIR | 0700);
	ck_assert_uint_eq(live_item(f, ids[0], "sub").uid, 1001);
	if (!times)
		return;
	assert_mtime(f, ids[0], "sub", OLD_TIME + 1);
	assert_mtime(f, ids[1], "deep", OLD_TIME + 2);
	assert_mtime(f, ids[0], "empty", OLD_TIME + 3);
}

FIXTURE_TEST(tree_comes_back_with_its_times)
{
	uint64_t ids[4];

	make_tree(f, ids);
	f->disturb = ids[1];
	rm_rf(f, KEY_ID_ROOT, "tree");
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 8);
	fixture_pass(f, HOUR);
	restore(f, KEY_ID_ROOT, "tree", KEY_ID_ROOT, "tree");
	assert_tree(f, ids, true);
	assert_mtime(f, KEY_ID_ROOT, "tree", OLD_TIME);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "tree").directory.subdirectories, 2);
}

FIXTURE_TEST(older_trash_stays_in_a_restored_tree)
{
	uint64_t ids[4];

	make_tree(f, ids);
	make_file(f, ids[1], "old", "older");
	fixture_pass(f, HOUR);
	rm(f, ids[1], "old");
	fixture_pass(f, 7 * DAY);
	rm_rf(f, KEY_ID_ROOT, "tree");
	restore(f, KEY_ID_ROOT, "tree", KEY_ID_ROOT, "tree");
	assert_tree(f, ids, false);
	ck_assert(!is_live(f, ids[1], "old"));
	ck_assert(is_shown(f, ids[1], "old"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "tree"));
	ck_assert(is_shown(f, ids[0], "sub"));
	restore(f, ids[1], "old", ids[1], "old");
	assert_text(f, ids[1], "old", "older");
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(directory_deleted_twice_is_two_trees)
{
	uint64_t first = make_directory(f, KEY_ID_ROOT, "d"), second;

	make_file(f, first, "f", "first");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	second = make_directory(f, KEY_ID_ROOT, "d");
	make_file(f, second, "f", "second");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 2);
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "two");
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "one");
	assert_text(f, second, "f", "second");
	assert_text(f, first, "f", "first");
}

FIXTURE_TEST(name_deleted_twice_in_a_batch_comes_back_newest)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "f", "older");
	fixture_pass(f, HOUR);
	rm(f, d, "f");
	act_as(f, 1000, 300, "sh");
	make_file(f, d, "f", "newer");
	act_as(f, 1000, 100, "rm");
	rm_rf(f, KEY_ID_ROOT, "d");
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "d");
	assert_text(f, d, "f", "newer");
	ck_assert_uint_eq(count_shown(f, d), 1);
}

FIXTURE_TEST(part_of_a_deleted_tree_comes_back_alone)
{
	uint64_t ids[4];

	make_tree(f, ids);
	rm_rf(f, KEY_ID_ROOT, "tree");
	restore(f, ids[0], "sub", KEY_ID_ROOT, "sub");
	assert_text(f, ids[2], "e", "eeee");
	ck_assert(!is_live(f, KEY_ID_ROOT, "tree"));
	restore(f, KEY_ID_ROOT, "tree", KEY_ID_ROOT, "tree");
	assert_text(f, ids[0], "a", "a");
	ck_assert(!is_live(f, ids[0], "sub"));
}

FIXTURE_TEST(origin_brings_missing_parents_back_empty)
{
	uint64_t ids[4];
	char *path;
	struct place at;

	make_tree(f, ids);
	rm_rf(f, KEY_ID_ROOT, "tree");
	at = shown_place(f, ids[2], "e");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_restore_origin(f->life, &f->actor, &at, 0, NULL,
								 NULL, &path)),
			 -ENOENT);
	path = restore_origin(f, ids[2], "e", RESTORE_PARENTS);
	ck_assert_str_eq(path, "/tree/sub/deep/e");
	free(path);
	assert_text(f, ids[2], "e", "eeee");
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "tree").id, ids[0]);
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "tree").mode, S_IFDIR | 0750);
	assert_mtime(f, KEY_ID_ROOT, "tree", OLD_TIME);
	assert_mtime(f, ids[0], "sub", OLD_TIME + 1);
	ck_assert(!is_live(f, ids[0], "a"));
	ck_assert(!is_live(f, ids[1], "c"));
	ck_assert(is_shown(f, ids[0], "a"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "tree"));
}

FIXTURE_TEST(parents_have_their_times_whoever_deleted_what)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");

	make_file(f, b, "f", "x");
	make_file(f, b, "sibling", "y");
	fixture_pass(f, HOUR);
	act_as(f, 1000, 101, "rm");
	rm(f, b, "f");
	set_mtime(f, a, OLD_TIME);
	set_mtime(f, b, OLD_TIME + 1);
	act_as(f, 1000, 102, "rm");
	rm_rf(f, KEY_ID_ROOT, "a");
	free(restore_origin(f, b, "f", RESTORE_PARENTS));
	assert_mtime(f, KEY_ID_ROOT, "a", OLD_TIME);
	assert_mtime(f, a, "b", OLD_TIME + 1);
	ck_assert(!is_live(f, b, "sibling"));
}

FIXTURE_TEST(rest_of_a_tree_merges_with_the_part_that_is_back)
{
	struct undo_options options = { 0 };
	struct undo_result result;
	uint64_t ids[4];

	make_tree(f, ids);
	rm_rf(f, KEY_ID_ROOT, "tree");
	free(restore_origin(f, ids[2], "e", RESTORE_PARENTS));
	fixture_pass(f, HOUR);
	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &result));
	assert_tree(f, ids, true);
	assert_mtime(f, KEY_ID_ROOT, "tree", OLD_TIME);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

static bool stop_at_once(void *data, uint64_t done)
{
	return true;
}

FIXTURE_TEST(origin_broken_off_leaves_the_recorded_times)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a"), b = make_directory(f, a, "b");
	uint64_t d = make_directory(f, b, "d");
	struct place at;
	int result;

	make_file(f, d, "f", "text");
	make_file(f, d, "g", "more");
	make_file(f, b, "other", "stays");
	make_file(f, a, "another", "stays");
	fixture_pass(f, HOUR);
	rm_rf(f, b, "d");
	set_mtime(f, a, OLD_TIME);
	set_mtime(f, b, OLD_TIME + 1);
	fixture_pass(f, HOUR);
	act_as(f, 1000, 101, "rm");
	rm_rf(f, KEY_ID_ROOT, "a");
	fixture_pass(f, HOUR);
	at = shown_place(f, b, "d");
	result = lifecycle_restore_origin(f->life, &f->actor, &at, RESTORE_PARENTS, stop_at_once,
					  NULL, NULL);
	ck_assert(result == -EINTR || (result == -EIO && f->fault));
	ck_assert(is_live(f, a, "b") || f->fault);
	ck_assert(!is_live(f, b, "d"));
	fixture_reopen(f);
	fixture_pass(f, MINUTE);
	ck_ok(f, lifecycle_restore_origin(f->life, &f->actor, &at, RESTORE_PARENTS, NULL, NULL, NULL));
	assert_text(f, d, "f", "text");
	assert_mtime(f, a, "b", OLD_TIME + 1);
	assert_mtime(f, KEY_ID_ROOT, "a", OLD_TIME);
}

FIXTURE_TEST(origin_in_a_renamed_directory_is_there)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	char *path;

	make_file(f, a, "f", "x");
	fixture_pass(f, HOUR);
	rm(f, a, "f");
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "z"), 0);
	path = restore_origin(f, a, "f", RESTORE_NOREPLACE);
	ck_assert_str_eq(path, "/z/f");
	free(path);
}

struct refusal {
	uint64_t parent; /* nothing may go into it ... */
	uint64_t victim; /* ... nor this be replaced */
	unsigned asked;
};

static int refuse_move(void *data, const struct restore_move *move)
{
	struct refusal *refusal = data;

	refusal->asked++;
	if (move->victim && move->victim->id == refusal->victim)
		return -EPERM;
	return move->parent->id == refusal->parent ? -EACCES : 0;
}

static int restore_with(struct fixture *f, const struct place *at, unsigned flags, struct refusal *refusal)
{
	const struct rights rights = { refuse_move, refusal };
	int result;

	f->actor.rights = &rights;
	result = FIXTURE_TRY(f, lifecycle_restore_origin(f->life, &f->actor, at, flags, NULL, NULL, NULL));
	f->actor.rights = NULL;
	return result;
}

FIXTURE_TEST(parents_come_back_only_where_the_actor_may_put_them)
{
	uint64_t top = make_directory(f, KEY_ID_ROOT, "top");
	uint64_t p = make_directory(f, top, "p"), d = make_directory(f, p, "d");
	struct refusal refusal = { .parent = top };
	struct place at;

	make_file(f, d, "f", "x");
	make_file(f, p, "other", "y");
	fixture_pass(f, HOUR);
	discard(f, top, "p");
	at = (struct place){ .directory = d, .state = KEY_ACT, .name = "f" };
	ck_assert_int_eq(restore_with(f, &at, RESTORE_PARENTS, &refusal), -EACCES);
	ck_assert(!is_live(f, top, "p"));
	/* Nor was anything handed down: what went with the directory is no entry of its own. */
	ck_assert_uint_eq(count_deleted(f, p), 0);
	refusal = (struct refusal){ 0 };
	ck_assert_int_eq(restore_with(f, &at, RESTORE_PARENTS, &refusal), 0);
	ck_assert_uint_ge(refusal.asked, 1);
	assert_text(f, d, "f", "x");
}

FIXTURE_TEST(deletion_handed_down_shows_to_nobody_new)
{
	uint64_t p = make_directory_as(f, KEY_ID_ROOT, "p", 0700, 1000);
	uint64_t d = make_directory_as(f, p, "d", 0755, 1000);
	struct place at = { .directory = d, .state = KEY_ACT, .name = "x" };

	make_file(f, d, "s", "secret");
	make_file(f, d, "x", "x");
	fixture_pass(f, HOUR);
	discard(f, p, "d");
	set_mode(f, p, 0755);
	ck_ok(f, lifecycle_restore_origin(f->life, &f->actor, &at, RESTORE_PARENTS, NULL, NULL, NULL));
	ck_assert(is_shown(f, d, "s"));
	ck_assert_uint_eq(live_item(f, p, "d").directory.trash_mask & 077, 0);
}

FIXTURE_TEST(way_through_another_directory_asks_for_that_one)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), other;
	struct refusal refusal = { 0 };
	struct place at;

	make_file(f, d, "f", "x");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	other = make_directory(f, KEY_ID_ROOT, "d");
	at = shown_place(f, d, "f");
	refusal.parent = other;
	ck_assert_int_eq(restore_with(f, &at, RESTORE_PARENTS, &refusal), -EACCES);
	ck_assert(!is_live(f, other, "f"));
	refusal.parent = d;
	ck_assert_int_eq(restore_with(f, &at, RESTORE_PARENTS, &refusal), 0);
	assert_text(f, other, "f", "x");
}

FIXTURE_TEST(what_is_replaced_is_asked_for)
{
	struct refusal refusal = { 0 };
	struct place at;

	make_file(f, KEY_ID_ROOT, "f", "mine");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	refusal.victim = make_file(f, KEY_ID_ROOT, "f", "theirs");
	at = shown_place(f, KEY_ID_ROOT, "f");
	ck_assert_int_eq(restore_with(f, &at, 0, &refusal), -EPERM);
	assert_text(f, KEY_ID_ROOT, "f", "theirs");
	ck_assert_int_eq(restore_with(f, &at, RESTORE_RENAME, &refusal), 0);
	assert_text(f, KEY_ID_ROOT, "f (restored)", "mine");
}

FIXTURE_TEST(origin_whose_parent_is_a_file_now_fails)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	struct place at;
	char *path = NULL;

	make_file(f, a, "f", "x");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "a");
	make_file(f, KEY_ID_ROOT, "a", "file");
	at = shown_place(f, a, "f");
	ck_assert_int_eq(lifecycle_restore_origin(f->life, &f->actor, &at, RESTORE_PARENTS, NULL,
						  NULL, &path),
			 -ENOTDIR);
	ck_assert_str_eq(path, "/a");
	free(path);
	ck_assert(is_shown(f, a, "f"));
}

FIXTURE_TEST(origin_goes_into_a_directory_made_anew)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b"), a2;
	char *path;

	make_file(f, b, "f", "x");
	make_file(f, b, "g", "y");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "a");
	a2 = make_directory(f, KEY_ID_ROOT, "a");
	path = restore_origin(f, b, "f", RESTORE_PARENTS);
	ck_assert_str_eq(path, "/a/b/f");
	free(path);
	ck_assert_uint_eq(live_item(f, a2, "b").id, b);
	ck_assert(!is_live(f, b, "g"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "a@") || is_shown(f, KEY_ID_ROOT, "a"));
}

FIXTURE_TEST(origin_in_a_discarded_tree_leaves_the_siblings)
{
	struct undo_options options = { 0 };
	struct undo_result result;
	uint64_t ids[4];
	char *path;

	make_tree(f, ids);
	make_file(f, ids[1], "shared", "s");
	make_link(f, ids[1], "shared", ids[1], "shared2");
	set_mtime(f, ids[1], OLD_TIME + 1);
	fixture_pass(f, HOUR);
	discard(f, KEY_ID_ROOT, "tree");
	path = restore_origin(f, ids[2], "e", RESTORE_PARENTS);
	ck_assert_str_eq(path, "/tree/sub/deep/e");
	free(path);
	ck_assert(!is_live(f, ids[0], "a"));
	ck_assert(!is_live(f, ids[0], "empty"));
	ck_assert(!is_live(f, ids[1], "c"));
	ck_assert(is_shown(f, ids[0], "a"));
	ck_assert(is_shown(f, ids[1], "shared2"));
	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &result));
	assert_tree(f, ids, false);
	assert_mtime(f, ids[0], "sub", OLD_TIME + 1);
	ck_assert_uint_eq(live_item(f, ids[1], "shared").links_live, 2);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(live_item_inside_a_discarded_tree_moves_out)
{
	uint64_t ids[4];
	struct place at;

	make_tree(f, ids);
	discard(f, KEY_ID_ROOT, "tree");
	at = shown_place(f, ids[0], "sub");
	ck_assert_int_eq(at.state, KEY_ACT);
	restore(f, ids[0], "sub", KEY_ID_ROOT, "sub");
	restore(f, ids[0], "a", KEY_ID_ROOT, "a");
	assert_text(f, KEY_ID_ROOT, "a", "a");
	assert_text(f, ids[1], "c", "ccc");
	restore(f, KEY_ID_ROOT, "tree", KEY_ID_ROOT, "tree");
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "tree").directory.subdirectories, 1);
	assert_mtime(f, KEY_ID_ROOT, "tree", OLD_TIME);
}

FIXTURE_TEST(what_a_batch_deleted_before_discarding_comes_back_too)
{
	uint64_t ids[4];

	make_tree(f, ids);
	rm(f, ids[1], "c");
	discard(f, KEY_ID_ROOT, "tree");
	restore(f, KEY_ID_ROOT, "tree", KEY_ID_ROOT, "tree");
	assert_tree(f, ids, false);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(links_out_of_a_tree_are_kept)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "in", "shared");
	make_link(f, d, "in", d, "in2");
	make_link(f, d, "in", KEY_ID_ROOT, "out");
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "out").links_live, 1);
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "d");
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "out").links_live, 3);
	assert_text(f, d, "in2", "shared");
	ck_assert_uint_eq(live_item(f, d, "in").id, live_item(f, KEY_ID_ROOT, "out").id);
}

FIXTURE_TEST(many_children_come_back_in_steps)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	char name[32];

	f->disturb = d;
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "file-%02d", i);
		make_file(f, d, name, name);
	}
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "d");
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "file-%02d", i);
		assert_text(f, d, name, name);
	}
	ck_assert_int_eq(counter(f, COUNTER_RESTORED), 31);
	ck_assert_uint_eq(count_deleted(f, d), 0);
}

static bool stop_after_some(void *data, uint64_t done)
{
	return done >= *(uint64_t *)data;
}

FIXTURE_TEST(restore_broken_off_goes_on)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), limit = 1;
	struct place at;
	char name[32];

	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "file-%02d", i);
		make_file(f, d, name, name);
	}
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	at = shown_place(f, KEY_ID_ROOT, "d");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_restore(f->life, &f->actor, &at, KEY_ID_ROOT, "d",
							  0, stop_after_some, &limit)),
			 -EINTR);
	ck_assert(!is_live(f, KEY_ID_ROOT, "d"));
	fixture_crash(f);
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "d");
	ck_assert_uint_eq(count_deleted(f, d), 0);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_ITEMS), 31);
}

FIXTURE_TEST(restore_begun_in_time_ends_in_time)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), limit = 1;
	struct place at;
	char name[32];

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	for (int i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "file-%02d", i);
		make_file(f, d, name, name);
	}
	fixture_pass(f, HOUR);
	rm_rf(f, KEY_ID_ROOT, "d");
	fixture_pass(f, 59 * MINUTE);
	at = shown_place(f, KEY_ID_ROOT, "d");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_restore(f->life, &f->actor, &at, KEY_ID_ROOT, "d",
							  0, stop_after_some, &limit)),
			 -EINTR);
	fixture_pass(f, 2 * MINUTE);
	sweep(f, NULL);
	ck_ok(f, lifecycle_restore(f->life, &f->actor, &at, KEY_ID_ROOT, "d", 0, NULL, NULL));
	ck_assert_int_eq(counter(f, COUNTER_LIVE_ITEMS), 31);
}

FIXTURE_TEST(expired_entry_does_not_come_back)
{
	struct place at;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	make_file(f, KEY_ID_ROOT, "f", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "f");
	at = shown_place(f, KEY_ID_ROOT, "f");
	fixture_pass(f, 61 * MINUTE);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "f"));
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_restore(f->life, &f->actor, &at, KEY_ID_ROOT, "f",
							  0, NULL, NULL)),
			 -ENOENT);
}

FIXTURE_TEST(restored_directory_can_be_removed_again)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t q = make_directory(f, KEY_ID_ROOT, "q");

	make_file(f, d, "f", "x");
	fixture_pass(f, HOUR);
	for (int i = 0; i < 3; i++) {
		act_as(f, 1000, 100 + (uint32_t)i, "rm");
		rm_rf(f, i % 2 ? q : KEY_ID_ROOT, "d");
		restore(f, i % 2 ? q : KEY_ID_ROOT, "d", i % 2 ? KEY_ID_ROOT : q, "d");
	}
	assert_text(f, d, "f", "x");
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

int main(void)
{
	Suite *suite = suite_create("restore");
	TCase *tcase = tcase_create("restore");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, file_comes_back_as_it_was);
	tcase_add_test(tcase, existing_name_is_kept_renamed_or_replaced);
	tcase_add_test(tcase, what_a_rename_replaced_is_swapped_with_what_replaced_it);
	tcase_add_test(tcase, swapped_directories_go_with_what_is_in_them);
	tcase_add_test(tcase, restore_follows_the_rules_of_rename);
	tcase_add_test(tcase, tree_comes_back_with_its_times);
	tcase_add_test(tcase, older_trash_stays_in_a_restored_tree);
	tcase_add_test(tcase, directory_deleted_twice_is_two_trees);
	tcase_add_test(tcase, name_deleted_twice_in_a_batch_comes_back_newest);
	tcase_add_test(tcase, part_of_a_deleted_tree_comes_back_alone);
	tcase_add_test(tcase, origin_brings_missing_parents_back_empty);
	tcase_add_test(tcase, parents_have_their_times_whoever_deleted_what);
	tcase_add_test(tcase, rest_of_a_tree_merges_with_the_part_that_is_back);
	tcase_add_test(tcase, origin_broken_off_leaves_the_recorded_times);
	tcase_add_test(tcase, origin_in_a_renamed_directory_is_there);
	tcase_add_test(tcase, parents_come_back_only_where_the_actor_may_put_them);
	tcase_add_test(tcase, deletion_handed_down_shows_to_nobody_new);
	tcase_add_test(tcase, way_through_another_directory_asks_for_that_one);
	tcase_add_test(tcase, what_is_replaced_is_asked_for);
	tcase_add_test(tcase, origin_whose_parent_is_a_file_now_fails);
	tcase_add_test(tcase, origin_goes_into_a_directory_made_anew);
	tcase_add_test(tcase, origin_in_a_discarded_tree_leaves_the_siblings);
	tcase_add_test(tcase, live_item_inside_a_discarded_tree_moves_out);
	tcase_add_test(tcase, what_a_batch_deleted_before_discarding_comes_back_too);
	tcase_add_test(tcase, links_out_of_a_tree_are_kept);
	tcase_add_test(tcase, many_children_come_back_in_steps);
	tcase_add_test(tcase, restore_broken_off_goes_on);
	tcase_add_test(tcase, restore_begun_in_time_ends_in_time);
	tcase_add_test(tcase, expired_entry_does_not_come_back);
	tcase_add_test(tcase, restored_directory_can_be_removed_again);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
