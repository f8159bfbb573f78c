/* Paths: as far as they exist, and inside of which mount. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/util.h"
#include "tests/lib/test.h"
#include "tools/mounts.h"

static char base[PATH_MAX]; /* without symbolic links */

/* base/a/b, base/a/file, base/link -> a, base/dangling -> nowhere */
static void make_tree(void)
{
	ck_assert_ptr_nonnull(realpath(test_directory(), base));
	ck_assert_int_eq(chdir(base), 0);
	if (access("a", F_OK) == 0)
		return;
	ck_assert_int_eq(mkdir("a", 0755), 0);
	ck_assert_int_eq(mkdir("a/b", 0755), 0);
	ck_assert_int_eq(symlink("a", "link"), 0);
	ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
	ck_assert_int_eq(close(creat("a/file", 0644)), 0);
}

/* `expected` below base. */
static void check(const char *path, bool follow, const char *expected)
{
	_cleanup_free_ char *resolved = NULL, *full = NULL;

	ck_assert_int_eq(mounts_resolve(path, follow, &resolved), 0);
	ck_assert_int_ge(asprintf(&full, "%s%s", base, expected), 0);
	ck_assert_str_eq(resolved, full);
}

START_TEST(what_exists_is_resolved)
{
	make_tree();
	check(".", true, "");
	check("a/b", true, "/a/b");
	check("a//b/", true, "/a/b");
	check("a/b/..", true, "/a");
	check("link/b", true, "/a/b");
	check("link/../link", true, "/a");
	check("a/./b/.", false, "/a/b");
	check("a/b/../", false, "/a");
	check("link/..", false, "");
	check("link/...", false, "/a/...");
}
END_TEST

START_TEST(the_last_link_is_followed_only_when_asked)
{
	make_tree();
	check("link", true, "/a");
	check("link", false, "/link");
	check("link/", false, "/link");
	check("dangling", false, "/dangling");
}
END_TEST

START_TEST(what_is_gone_stays_names)
{
	make_tree();
	check("gone", true, "/gone");
	check("a/gone/further/down", false, "/a/gone/further/down");
	check("link/gone", true, "/a/gone");
	/* A file where the path goes on: what was there before may be in the trash. */
	check("a/file/below", false, "/a/file/below");
}
END_TEST

START_TEST(dots_behind_what_is_gone_mean_nothing)
{
	_cleanup_free_ char *resolved = NULL;

	make_tree();
	ck_assert_int_eq(mounts_resolve("gone/../a", true, &resolved), -EINVAL);
	ck_assert_int_eq(mounts_resolve("gone/..", false, &resolved), -EINVAL);
}
END_TEST

START_TEST(a_removed_working_directory_keeps_its_name)
{
	_cleanup_free_ char *resolved = NULL;
	char there[PATH_MAX + 8];

	make_tree();
	ck_assert_int_eq(mkdir("going", 0755), 0);
	ck_assert_int_eq(chdir("going"), 0);
	ck_assert_int_eq(rmdir("../going"), 0);
	snprintf(there, sizeof(there), "%s/going", base);
	setenv("PWD", there, 1);
	check(".", true, "/going");
	check("below", false, "/going/below");
	unsetenv("PWD");
	ck_assert_int_eq(mounts_resolve(".", true, &resolved), -ENOENT);
}
END_TEST

START_TEST(below_is_by_whole_names)
{
	ck_assert(mounts_is_below("/a/b", "/a"));
	ck_assert(mounts_is_below("/a", "/a"));
	ck_assert(mounts_is_below("/a", "/"));
	ck_assert(!mounts_is_below("/ab", "/a"));
	ck_assert(!mounts_is_below("/", "/a"));
}
END_TEST

START_TEST(proc_is_mounted_and_nothing_of_ours)
{
	struct mount m = { 0 };
	_cleanup_free_ char *inner = NULL;

	ck_assert_int_eq(mounts_find("/proc", &m), 1);
	ck_assert_str_eq(m.point, "/proc");
	mount_release(&m);
	ck_assert_int_eq(mounts_find("/no such mount", &m), 0);
	ck_assert_int_eq(mounts_locate("/proc/self", &m, &inner), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tools/mounts");
	TCase *all = tcase_create("all");

	tcase_add_test(all, what_exists_is_resolved);
	tcase_add_test(all, the_last_link_is_followed_only_when_asked);
	tcase_add_test(all, what_is_gone_stays_names);
	tcase_add_test(all, dots_behind_what_is_gone_mean_nothing);
	tcase_add_test(all, a_removed_working_directory_keeps_its_name);
	tcase_add_test(all, below_is_by_whole_names);
	tcase_add_test(all, proc_is_mounted_and_nothing_of_ours);
	suite_add_tcase(suite, all);
	return test_main(suite);
}
