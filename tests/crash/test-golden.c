/*
 * test-golden.c - stores that were made when this format was new must open for
 * ever. Two lie in tests/data/format-v1: one that was closed, and one whose last
 * changes stand in the journal only; both with a passphrase and sealed names.
 *
 *     test-golden --make DIRECTORY     makes them anew: only before a release,
 *                                      or beside the old ones for a new format
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle/lifecycle.h"
#include "tests/crash/files.h"
#include "tests/crash/sample.h"
#include "tests/lib/test.h"

static void tell(void *data, const char *path, const char *text)
{
	fprintf(stderr, "# %s: %s\n", path, text);
}

static void check_open(const char *path, bool read_only)
{
	struct store_open_report report = { 0 };
	struct sample_result result;
	struct check_result check;
	struct store *s;

	ck_assert_msg(sample_open(&sample_golden, path, read_only, &report, &s) == 0, "%s", report.text);
	sample_verify(&sample_golden, s, &result);
	ck_assert_msg(!result.wrong[0], "%s", result.wrong);
	ck_assert_uint_eq(result.damaged, 0);
	ck_assert_uint_eq(result.same, sample_names(&sample_golden));
	ck_assert_int_eq(lifecycle_check(s, tell, NULL, NULL, &check), 0);
	ck_assert_uint_eq(check.problems, 0);
	ck_assert_int_eq(store_close(s), 0);
}

/* Opened, written to, and opened again. */
static void check_golden(const char *name)
{
	char golden[4096], work[4096];

	snprintf(golden, sizeof(golden), "%s/%s", GOLDEN_DIRECTORY, name);
	snprintf(work, sizeof(work), "%s/work", test_directory());
	files_copy(golden, work);
	check_open(work, true);
	check_open(work, false);
	sample_change(&sample_golden, work);
	check_open(work, false);
	files_remove(work);
}

START_TEST(closed_store_opens)
{
	check_golden("closed");
}
END_TEST

START_TEST(killed_store_opens)
{
	check_golden("killed");
}
END_TEST

START_TEST(passphrase_is_asked_for)
{
	const struct sample wrong = { .passphrase = "gold" };
	struct store_open_report report;
	struct store *s;
	char work[4096];

	snprintf(work, sizeof(work), "%s/work", test_directory());
	files_copy(GOLDEN_DIRECTORY "/closed", work);
	ck_assert_int_eq(sample_open(&wrong, work, true, &report, &s), STORE_WRONG_KEY);
	files_remove(work);
}
END_TEST

/* Nothing of the machine that made it: no locks. */
static void make_one(const char *directory, const char *name, enum sample_end end)
{
	char path[4096], lock[4200];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	files_remove(path);
	sample_make(&sample_golden, path, end);
	snprintf(lock, sizeof(lock), "%s/lock", path);
	unlink(lock);
	snprintf(lock, sizeof(lock), "%s/lock.mdb", path);
	unlink(lock);
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("golden");
	TCase *c = tcase_create("golden");

	if (argc == 3 && strcmp(argv[1], "--make") == 0) {
		make_one(argv[2], "closed", SAMPLE_CLOSED);
		make_one(argv[2], "killed", SAMPLE_KILLED);
		return EXIT_SUCCESS;
	}
	tcase_set_timeout(c, 60);
	tcase_add_test(c, closed_store_opens);
	tcase_add_test(c, killed_store_opens);
	tcase_add_test(c, passphrase_is_asked_for);
	suite_add_tcase(suite, c);
	return test_main(suite);
}
