/*
 * What the kernel would ask: modes, sticky directories, views with their masks.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/access.h"
#include "store/util.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT

static struct test_tree t;

static void begin(void)
{
	test_tree_open(&t, TEST_MEMORY);
}

static void end(void)
{
	test_tree_close(&t);
}

static void set(uint64_t parent, const char *name, uint32_t mode, uint32_t uid, uint32_t gid)
{
	struct attr_change change = {
		.set = ATTR_MODE | ATTR_UID | ATTR_GID, .mode = mode, .uid = uid, .gid = gid
	};
	struct inode i = test_look(&t, parent, name);

	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &change, NULL), 0);
}

static struct place deleted_place(uint64_t id)
{
	struct place at;

	ck_assert(t.where.locate(t.where.data, id, &at));
	ck_assert_int_eq(at.state, KEY_DEL);
	return at;
}

static int restore(const struct actor *actor, uint64_t id, uint64_t parent)
{
	struct place at = deleted_place(id);
	struct inode i;
	int result;

	ck_assert_int_eq(namei_load(t.namei, &at, true, &i), 0);
	result = access_restore(t.namei, actor, &at, &i.item, parent);
	inode_release(&i);
	return result;
}

static int purge(const struct actor *actor, uint64_t id)
{
	struct place at = deleted_place(id);
	struct inode i;
	int result;

	ck_assert_int_eq(namei_load(t.namei, &at, true, &i), 0);
	result = access_purge(t.namei, actor, &at, &i.item);
	inode_release(&i);
	return result;
}

START_TEST(only_the_first_class_that_fits_counts)
{
	uint32_t groups[] = { 50, 60 };
	struct actor grouped = t.other;

	grouped.groups = groups;
	grouped.groups_count = 2;
	ck_assert_int_eq(access_mode(&t.user, S_IFREG | 0700, 1000, 1000, R_OK | W_OK | X_OK), 0);
	ck_assert_int_eq(access_mode(&t.user, S_IFREG | 0077, 1000, 1000, R_OK), -EACCES);
	ck_assert_int_eq(access_mode(&t.user, S_IFREG | 0070, 0, 1000, R_OK | W_OK), 0);
	ck_assert_int_eq(access_mode(&t.user, S_IFREG | 0707, 0, 1000, R_OK), -EACCES);
	ck_assert_int_eq(access_mode(&grouped, S_IFREG | 0040, 0, 60, R_OK), 0);
	ck_assert_int_eq(access_mode(&grouped, S_IFREG | 0040, 0, 61, R_OK), -EACCES);
	ck_assert_int_eq(access_mode(&t.other, S_IFREG | 0004, 0, 0, R_OK), 0);
	ck_assert_int_eq(access_mode(&t.other, S_IFREG | 0004, 0, 0, R_OK | W_OK), -EACCES);
}
END_TEST

START_TEST(root_may_all_but_execute_what_nobody_may)
{
	ck_assert_int_eq(access_mode(&t.root, S_IFREG, 1000, 1000, R_OK | W_OK), 0);
	ck_assert_int_eq(access_mode(&t.root, S_IFREG | 0600, 1000, 1000, X_OK), -EACCES);
	ck_assert_int_eq(access_mode(&t.root, S_IFREG | 0001, 1000, 1000, X_OK), 0);
	ck_assert_int_eq(access_mode(&t.root, S_IFDIR, 1000, 1000, X_OK), 0);
}
END_TEST

START_TEST(sticky_directories_are_their_owners)
{
	struct item directory = { .mode = S_IFDIR | 01777, .uid = 0 };
	struct item mine = { .mode = S_IFREG, .uid = 1000 }, his = { .mode = S_IFREG, .uid = 1001 };

	ck_assert_int_eq(access_change(&t.user, &directory, NULL), 0);
	ck_assert_int_eq(access_change(&t.user, &directory, &mine), 0);
	ck_assert_int_eq(access_change(&t.user, &directory, &his), -EPERM);
	ck_assert_int_eq(access_change(&t.root, &directory, &his), 0);
	directory.uid = 1000;
	ck_assert_int_eq(access_change(&t.user, &directory, &his), 0);
	directory.mode = S_IFDIR | 0555;
	ck_assert_int_eq(access_change(&t.user, &directory, &mine), -EACCES);
	directory.mode = S_IFDIR | 0666;
	ck_assert_int_eq(access_change(&t.user, &directory, &mine), -EACCES);
}
END_TEST

START_TEST(every_directory_on_the_way_is_searched)
{
	uint64_t a = test_mkdir(&t, ROOT, "a"), b = test_mkdir(&t, a, "b"), c = test_mkdir(&t, b, "c");

	ck_assert_int_eq(access_path(t.namei, &t.user, c), 0);
	set(a, "b", 0700, 1001, 1001);
	ck_assert_int_eq(access_path(t.namei, &t.user, c), -EACCES);
	ck_assert_int_eq(access_path(t.namei, &t.user, b), -EACCES);
	ck_assert_int_eq(access_path(t.namei, &t.user, a), 0);
	ck_assert_int_eq(access_path(t.namei, &t.other, c), 0);
	ck_assert_int_eq(access_path(t.namei, &t.root, c), 0);
	ck_assert_int_eq(access_path(t.namei, &t.user, c + 1000), -ENOENT);
}
END_TEST

START_TEST(what_was_private_stays_so)
{
	uint64_t d = test_mkdir(&t, ROOT, "d"), f = test_file(&t, d, "f", "secret");

	set(ROOT, "d", 0700, 1001, 1001);
	set(d, "f", 0644, 1001, 1001);
	test_remove(&t, d, "f");
	set(ROOT, "d", 0777, 1001, 1001);
	/* The live directory is open to all now, what was deleted in it is not. */
	ck_assert_int_eq(access_path(t.namei, &t.user, d), 0);
	ck_assert_int_eq(purge(&t.user, f), -EACCES);
	ck_assert_int_eq(restore(&t.user, f, d), -EACCES);
	ck_assert_int_eq(restore(&t.other, f, d), 0);
	ck_assert_int_eq(purge(&t.other, f), 0);
	ck_assert_int_eq(restore(&t.root, f, d), 0);
}
END_TEST

START_TEST(masks_hold_all_the_way_down)
{
	uint64_t a = test_mkdir(&t, ROOT, "a"), b = test_mkdir(&t, a, "b"), c = test_mkdir(&t, b, "c");
	uint64_t f = test_file(&t, c, "f", "x");

	set(ROOT, "a", 0700, 1001, 1001);
	set(a, "b", 0777, 1001, 1001);
	set(b, "c", 0777, 1001, 1001);
	test_remove(&t, c, "f");
	test_remove(&t, b, "c");
	test_remove(&t, a, "b");
	set(ROOT, "a", 0777, 1001, 1001);
	ck_assert_int_eq(access_path(t.namei, &t.user, c), -EACCES);
	ck_assert_int_eq(access_path(t.namei, &t.other, c), 0);
	ck_assert_int_eq(purge(&t.user, f), -EACCES);
	ck_assert_int_eq(restore(&t.other, f, a), 0);
}
END_TEST

START_TEST(restoring_needs_both_directories)
{
	uint64_t d = test_mkdir(&t, ROOT, "d"), e = test_mkdir(&t, ROOT, "e"), s;
	uint64_t f = test_file(&t, d, "f", "x");

	set(ROOT, "d", 0777, 0, 0);
	set(d, "f", 0644, 1000, 1000);
	test_remove(&t, d, "f");
	ck_assert_int_eq(restore(&t.user, f, d), 0);
	ck_assert_int_eq(restore(&t.user, f, e), -EACCES);
	set(ROOT, "e", 0777, 0, 0);
	ck_assert_int_eq(restore(&t.user, f, e), 0);
	/* A sticky directory protects its entries in the trash too. */
	set(ROOT, "d", 01777, 0, 0);
	ck_assert_int_eq(restore(&t.user, f, e), 0);
	ck_assert_int_eq(restore(&t.other, f, e), -EPERM);
	ck_assert_int_eq(purge(&t.other, f), -EPERM);
	set(ROOT, "d", 0777, 0, 0);
	/* A directory goes elsewhere only by who may write it. */
	s = test_mkdir(&t, d, "s");
	set(d, "s", 0755, 1001, 1001);
	test_remove(&t, d, "s");
	ck_assert_int_eq(restore(&t.user, s, d), 0);
	ck_assert_int_eq(restore(&t.user, s, e), -EACCES);
	ck_assert_int_eq(restore(&t.other, s, e), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/access");
	TCase *c = tcase_create("access");

	tcase_add_checked_fixture(c, begin, end);
	tcase_add_test(c, only_the_first_class_that_fits_counts);
	tcase_add_test(c, root_may_all_but_execute_what_nobody_may);
	tcase_add_test(c, sticky_directories_are_their_owners);
	tcase_add_test(c, every_directory_on_the_way_is_searched);
	tcase_add_test(c, what_was_private_stays_so);
	tcase_add_test(c, masks_hold_all_the_way_down);
	tcase_add_test(c, restoring_needs_both_directories);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	return test_main(s);
}
