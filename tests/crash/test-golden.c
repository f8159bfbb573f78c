/*
 * test-golden.c - stores that were made when their format was new must open for
 * ever. Two of each format lie in tests/data/format-vN: one that was closed, and
 * one whose last changes stand in the journal only; both with a passphrase and
 * sealed names. Opened for writing, they are of today's format.
 *
 *     test-golden --make DIRECTORY     makes them anew: only before a release,
 *                                      or beside the old ones for a new format
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle/lifecycle.h"
#include "store/keyring.h"
#include "store/util.h"
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

/* As FORMAT.md has it: bytes 8 to 11. */
static unsigned header_format(const char *store)
{
	uint8_t bytes[12];
	char path[4200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/header", store);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	return util_get_le32(bytes + 8);
}

/* Opened, written to, and opened again. */
static void check_golden(unsigned format, const char *name)
{
	char golden[4096], work[4096];

	snprintf(golden, sizeof(golden), "%s/format-v%u/%s", GOLDEN_DIRECTORY, format, name);
	snprintf(work, sizeof(work), "%s/work", test_directory());
	files_copy(golden, work);
	check_open(work, true);
	ck_assert_uint_eq(header_format(work), format);
	check_open(work, false);
	ck_assert_uint_eq(header_format(work), KEYRING_FORMAT);
	sample_change(&sample_golden, work);
	check_open(work, false);
	files_remove(work);
}

START_TEST(closed_store_opens)
{
	check_golden((unsigned)_i, "closed");
}
END_TEST

START_TEST(killed_store_opens)
{
	check_golden((unsigned)_i, "killed");
}
END_TEST

START_TEST(passphrase_is_asked_for)
{
	const struct sample wrong = { .passphrase = "gold" };
	struct store_open_report report;
	struct store *s;
	char work[4096];

	snprintf(work, sizeof(work), "%s/work", test_directory());
	files_copy(GOLDEN_DIRECTORY "/format-v1/closed", work);
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
	tcase_add_loop_test(c, closed_store_opens, KEYRING_FORMAT_OLDEST, KEYRING_FORMAT + 1);
	tcase_add_loop_test(c, killed_store_opens, KEYRING_FORMAT_OLDEST, KEYRING_FORMAT + 1);
	tcase_add_test(c, passphrase_is_asked_for);
	suite_add_tcase(suite, c);
	return test_main(suite);
}
