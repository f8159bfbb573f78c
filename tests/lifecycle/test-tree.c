/* test-tree.c - directories, paths and circles; and commits whose answer was lost. */
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/fixture.h"

FIXTURE_TEST(root_is_made_once)
{
	struct tree_directory root;

	ck_assert_int_eq(FIXTURE_TRY(f, tree_format(f->store, 0700, 1, 1)), -EEXIST);
	ck_assert_int_eq(tree_load(f->store, KEY_ID_ROOT, &root), 0);
	ck_assert(tree_is_live(&root));
	ck_assert_uint_eq(root.own.mode, S_IFDIR | 0755);
	ck_assert_uint_eq(root.own.directory.trash_mask, 0777);
	tree_release(&root);
	ck_assert_int_eq(tree_load(f->store, 12345, &root), -ENOENT);
}

START_TEST(store_that_is_not_formatted_is_refused)
{
	struct test_clock clock;
	struct lifecycle *l;
	struct store *s;

	test_clock_init(&clock);
	ck_assert_int_eq(store_open_memory(&clock.clock, STORE_NAMES_ORDERED, &s), 0);
	ck_assert_int_eq(lifecycle_open(s, NULL, &l), -ENOENT);
	store_close(s);
}
END_TEST

FIXTURE_TEST(paths_lead_through_deleted_directories)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	struct place root = { .directory = KEY_ID_NONE, .state = KEY_ACT }, at;
	char *path;

	make_file(f, b, "f", "");
	fixture_pass(f, HOUR);
	rm(f, b, "f");
	at = shown_place(f, b, "f");
	rm_rf(f, KEY_ID_ROOT, "a");
	ck_assert_int_eq(tree_path(f->store, &at, &path), 0);
	ck_assert_str_eq(path, "/a/b/f");
	free(path);
	ck_assert_int_eq(tree_path(f->store, &root, &path), 0);
	ck_assert_str_eq(path, "/");
	free(path);
}

FIXTURE_TEST_ONCE(long_paths_are_built_and_endless_ones_refused)
{
	const size_t most = (1 << 20) / (KEY_NAME_MAX + 1) - 1; /* levels that a path of 1 MiB has */
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT, .name = "f" };
	char name[KEY_NAME_MAX + 1];
	char *path;

	memset(name, 'n', KEY_NAME_MAX);
	name[KEY_NAME_MAX] = '\0';
	for (size_t levels = 1; levels <= most; levels++) {
		at.directory = make_directory(f, at.directory, name);
		if (levels % 512 && levels < most)
			continue;
		ck_assert_int_eq(tree_path(f->store, &at, &path), 0);
		ck_assert_uint_eq(strlen(path), levels * (KEY_NAME_MAX + 1) + 2);
		free(path);
	}
	at.directory = make_directory(f, at.directory, name);
	ck_assert_int_eq(tree_path(f->store, &at, &path), -ENAMETOOLONG);
}

FIXTURE_TEST(one_directory_is_below_another_or_not)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	uint64_t c = make_directory(f, KEY_ID_ROOT, "c");
	uint64_t version;

	ck_assert_int_eq(tree_is_below(f->store, b, a, &version), 1);
	ck_assert_int_eq(tree_is_below(f->store, a, a, &version), 1);
	ck_assert_int_eq(tree_is_below(f->store, a, b, &version), 0);
	ck_assert_int_eq(tree_is_below(f->store, c, a, &version), 0);
	ck_assert_int_eq(tree_is_below(f->store, b, KEY_ID_ROOT, &version), 1);
	ck_assert_int_eq(tree_is_below(f->store, 999, a, &version), -ENOENT);
}

FIXTURE_TEST(topology_has_one_writer)
{
	struct transaction first = { 0 }, second = { 0 };
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t version, again;

	ck_assert_int_eq(tree_is_below(f->store, a, KEY_ID_ROOT, &version), 1);
	tree_put_topology(&first, version);
	tree_put_topology(&second, version);
	if (f->fault == FAULT_NONE) {
		ck_assert_int_eq(tree_commit(&first, f->store, STORE_GROWING, NULL), 0);
		ck_assert_int_eq(tree_commit(&second, f->store, STORE_GROWING, NULL), STORE_CONFLICT);
		ck_assert_int_eq(tree_is_below(f->store, a, KEY_ID_ROOT, &again), 1);
		ck_assert_uint_ne(again, version);
	}
	transaction_release(&first);
	transaction_release(&second);
}

START_TEST(lost_answer_is_found_out)
{
	struct store_faults faults = { .lost_answer_at = 1 };
	struct store_faults failing = { .error_at = 1 };
	struct place root = { .directory = KEY_ID_NONE, .state = KEY_ACT };
	struct transaction t = { 0 };
	struct store_value value;
	struct test_clock clock;
	struct item item;
	struct store *s;
	uint64_t version;

	test_clock_init(&clock);
	ck_assert_int_eq(store_open_memory(&clock.clock, STORE_NAMES_ORDERED, &s), 0);
	ck_assert_int_eq(tree_format(s, 0755, 0, 0), 0);
	ck_assert_int_eq(record_get_item(s, &root, false, &value, &item), 0);
	item.mtime.tv_sec = 77;
	store_memory_inject(s, &failing);
	transaction_put_item(&t, s, &root, &item, item.version);
	ck_assert_int_eq(tree_commit(&t, s, STORE_GROWING, &version), -EIO);
	store_memory_inject(s, &faults);
	ck_assert_int_eq(tree_commit(&t, s, STORE_GROWING, &version), 0);
	store_value_release(&value);
	ck_assert_int_eq(record_get_item(s, &root, false, &value, &item), 0);
	ck_assert_uint_eq(item.version, version);
	store_value_release(&value);
	transaction_release(&t);
	store_close(s);
}
END_TEST

START_TEST(group_of_a_mask_is_no_wider_than_others)
{
	ck_assert_uint_eq(tree_mask_regrouped(0777), 0777);
	ck_assert_uint_eq(tree_mask_regrouped(0770), 0700);
	ck_assert_uint_eq(tree_mask_regrouped(0755), 0755);
	ck_assert_uint_eq(tree_mask_regrouped(0751), 0711);
}
END_TEST

START_TEST(a_new_owner_is_shown_no_more_than_everybody)
{
	ck_assert_uint_eq(tree_mask_given(0777), 0777);
	ck_assert_uint_eq(tree_mask_given(0700), 0000);
	ck_assert_uint_eq(tree_mask_given(0755), 0555);
	ck_assert_uint_eq(tree_mask_given(0751), 0151);
	ck_assert_uint_eq(tree_mask_given(0707), 0007);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tree");
	TCase *tcase = tcase_create("tree");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, root_is_made_once);
	tcase_add_test(tcase, store_that_is_not_formatted_is_refused);
	tcase_add_test(tcase, paths_lead_through_deleted_directories);
	tcase_add_test(tcase, long_paths_are_built_and_endless_ones_refused);
	tcase_add_test(tcase, one_directory_is_below_another_or_not);
	tcase_add_test(tcase, topology_has_one_writer);
	tcase_add_test(tcase, lost_answer_is_found_out);
	tcase_add_test(tcase, group_of_a_mask_is_no_wider_than_others);
	tcase_add_test(tcase, a_new_owner_is_shown_no_more_than_everybody);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
