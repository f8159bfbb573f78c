/*
 * test-damage.c - bits that flip, files that are cut, emptied, exchanged or
 * another program's. Whatever is done to the files of a store, it gives the
 * bytes that were written, an error on the item that is hurt, or a refusal to
 * open that says why: never other bytes, a missing item, an older state, a
 * crash or a hang.
 *
 * Each case runs in a process of its own on a copy of a sample store.
 *     DDBFS_DAMAGE_FLIPS   flips for each of the two sample stores (1,000)
 *     DDBFS_DAMAGE_CUTS    truncations for each (100)
 *     DDBFS_DAMAGE_SEED    of the random choices
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "lifecycle/lifecycle.h"
#include "store/util.h"
#include "tests/crash/files.h"
#include "tests/crash/sample.h"
#include "tests/lib/test.h"

#define MEMORY_MIN (UINT64_C(512) << 20)
#define SECONDS_MAX 60 /* for one case: longer is a hang */

enum outcome {
	OUTCOME_SAME = 10, /* exit codes of the process that tries */
	OUTCOME_DAMAGED,
	OUTCOME_REFUSED,
	OUTCOME_WRONG,
};

static char original[4200], work[4200]; /* the sample store, and the copy that is hurt */
static struct store_files files;
static uint64_t seed, state;
static bool mended; /* the cases to come are mended, too */

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

static void setup(enum sample_end end)
{
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(work, sizeof(work), "%s/work", test_directory());
	sample_make(&sample_usual, original, end);
	files_list(original, &files);
	seed = from_environment("DDBFS_DAMAGE_SEED", 20261130);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static void setup_closed(void)
{
	setup(SAMPLE_CLOSED);
}

static void setup_killed(void)
{
	setup(SAMPLE_KILLED);
}

static void teardown(void)
{
	files_release(&files);
	files_remove(original);
	files_remove(work);
}

/* ---- one case ------------------------------------------------------------------ */

static void count_problem(void *data, const char *path, const char *text)
{
}

static void print_action(void *data, const char *path, const char *text)
{
	snprintf(data, 400, "%s: %s", path, text);
}

static void print_left(void *data, const char *path, const char *text)
{
	printf("# left: %s: %s\n", path, text);
}

/* What is damaged can be removed; what is still damaged then, set aside; and nothing is wrong with what is left. */
static bool can_be_mended(struct store *s)
{
	char wrong[512], last[400] = "";
	struct quarantine_hooks hooks = { .problem = count_problem, .action = print_action, .data = last };
	struct check_result before, after, check;
	int result;

	sample_remove_damaged(&sample_usual, s, wrong);
	if (wrong[0]) {
		printf("# %s\n", wrong);
		return false;
	}
	result = lifecycle_quarantine(s, &hooks, &before, &after);
	hooks = (struct quarantine_hooks){ .problem = print_left, .aside = count_problem };
	if (result == 0)
		result = lifecycle_check_told(s, &hooks, &check);
	if (result || after.problems || check.problems) {
		printf("# quarantine: %d, %llu problems left; the last thing done was %s\n", result,
		       (unsigned long long)(result ? 0 : check.problems), last);
		return false;
	}
	return true;
}

/* In the child. Prints what is wrong, if something is. */
static enum outcome try_store(const char *path, bool read_only)
{
	struct store_open_report report = { 0 };
	struct sample_result result;
	struct check_result check;
	struct store *s;
	int opened = sample_open(&sample_usual, path, read_only, &report, &s);

	if (opened != 0) {
		if (opened > 0 && !report.text[0])
			printf("# refused with %d and no word\n", opened);
		return opened < 0 || report.text[0] ? OUTCOME_REFUSED : OUTCOME_WRONG;
	}
	sample_verify(&sample_usual, s, &result);
	if (result.wrong[0]) {
		printf("# %s\n", result.wrong);
		return OUTCOME_WRONG;
	}
	if (result.damaged) {
		opened = lifecycle_check(s, count_problem, NULL, NULL, &check);
		if (opened == 0 && check.problems == 0) {
			printf("# %u names are damaged and check finds nothing\n", result.damaged);
			return OUTCOME_WRONG;
		}
	}
	if (mended && !read_only && !can_be_mended(s))
		return OUTCOME_WRONG;
	opened = store_close(s);
	if (opened) {
		printf("# it cannot be closed: %d\n", opened);
		return OUTCOME_WRONG;
	}
	if (mended && !read_only) {
		/* What was mended opens again. */
		opened = sample_open(&sample_usual, path, true, &report, &s);
		if (opened) {
			printf("# it does not open again: %d %s\n", opened, report.text);
			return OUTCOME_WRONG;
		}
		store_close(s);
	}
	if (!result.damaged && result.same != sample_names(&sample_usual)) {
		printf("# %u names instead of %u\n", result.same, sample_names(&sample_usual));
		return OUTCOME_WRONG;
	}
	return result.damaged ? OUTCOME_DAMAGED : OUTCOME_SAME;
}

/* `what` was done to the store at `path`. */
static enum outcome run_case(const char *path, bool read_only, const char *what)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		enum outcome outcome;

		alarm(SECONDS_MAX);
		outcome = try_store(path, read_only);
		fflush(NULL);
		_exit(outcome);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) >= OUTCOME_SAME &&
			      WEXITSTATUS(status) < OUTCOME_WRONG,
		      "%s (seed %llu): %s %d", what, (unsigned long long)seed,
		      WIFSIGNALED(status) ? "ended by signal" : "wrong outcome",
		      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

static void print_counts(const char *what, const unsigned counts[OUTCOME_WRONG])
{
	printf("# %s: %u gave the same, %u errors on items, %u were refused; seed %llu\n", what,
	       counts[OUTCOME_SAME], counts[OUTCOME_DAMAGED], counts[OUTCOME_REFUSED],
	       (unsigned long long)seed);
	fflush(stdout);
}

/* ---- flips and cuts ---------------------------------------------------------------- */

static uint64_t below(uint64_t n)
{
	return files_random(&state) % n;
}

/* A file that has bytes; the small ones as often as the large. */
static const struct store_file *any_file(void)
{
	const struct store_file *f;

	do
		f = &files.items[below(files.count)];
	while (f->blocks_count == 0);
	return f;
}

/* Where something is written, nine times of ten. */
static uint64_t any_offset(const struct store_file *f)
{
	uint64_t offset = below(10) ? f->blocks[below(f->blocks_count)] * UINT64_C(512) + below(512) :
				      below(f->size);

	return util_min(offset, f->size - 1);
}

START_TEST(flipped_bits)
{
	unsigned long flips = from_environment("DDBFS_DAMAGE_FLIPS", 1000);
	unsigned counts[OUTCOME_WRONG] = { 0 };
	char what[400];

	for (unsigned long i = 0; i < flips; i++) {
		const struct store_file *f = any_file();
		uint64_t offset = any_offset(f);
		unsigned bit = (unsigned)below(8);

		files_copy(original, work);
		files_flip(work, f->path, offset, bit);
		snprintf(what, sizeof(what), "flip of %s at %llu bit %u", f->path,
			 (unsigned long long)offset, bit);
		mended = i % 4 == 1;
		counts[run_case(work, i % 4 == 0, what)]++;
	}
	mended = false;
	print_counts("flips", counts);
}
END_TEST

/* All places in the database where a file's name stands in a key. Returns how many, up to `max`. */
static size_t find_names(uint64_t *ret_offsets, size_t max)
{
	static const char prefix[] = "#file-";
	const struct store_file *f = files_find(&files, "data.mdb");
	char path[4600];
	uint8_t *bytes;
	size_t count = 0;
	FILE *in;

	ck_assert_ptr_nonnull(f);
	bytes = malloc(f->size);
	snprintf(path, sizeof(path), "%s/data.mdb", original);
	in = fopen(path, "re");
	ck_assert(in && bytes && fread(bytes, 1, f->size, in) == f->size);
	fclose(in);
	for (size_t at = 0; at + 16 < f->size && count < max; at++)
		if (memcmp(bytes + at, prefix, sizeof(prefix) - 1) == 0)
			ret_offsets[count++] = at + 1;
	free(bytes);
	return count;
}

/* A key that is another one now hides what it named; nothing else of the item is hurt. */
START_TEST(flipped_bits_in_names)
{
	unsigned long flips = from_environment("DDBFS_DAMAGE_FLIPS", 1000) / 5;
	unsigned counts[OUTCOME_WRONG] = { 0 };
	uint64_t offsets[512];
	size_t count = find_names(offsets, ARRAY_SIZE(offsets));
	char what[400];

	ck_assert_uint_ge(count, 64);
	for (unsigned long i = 0; i < flips; i++) {
		uint64_t offset = offsets[below(count)] + below(7);
		unsigned bit = (unsigned)below(8);

		files_copy(original, work);
		files_flip(work, "data.mdb", offset, bit);
		snprintf(what, sizeof(what), "flip of a name in data.mdb at %llu bit %u",
			 (unsigned long long)offset, bit);
		mended = i % 4 == 1;
		counts[run_case(work, i % 4 == 0, what)]++;
	}
	mended = false;
	print_counts("flips in names", counts);
}
END_TEST

START_TEST(truncations)
{
	unsigned long cuts = from_environment("DDBFS_DAMAGE_CUTS", 100);
	unsigned counts[OUTCOME_WRONG] = { 0 };
	char what[400];

	for (unsigned long i = 0; i < cuts; i++) {
		const struct store_file *f = any_file();
		uint64_t size = below(4) ? any_offset(f) : any_offset(f) / 4096 * 4096;

		files_copy(original, work);
		files_truncate(work, f->path, size);
		snprintf(what, sizeof(what), "%s cut to %llu", f->path, (unsigned long long)size);
		mended = i % 4 == 1;
		counts[run_case(work, i % 4 == 0, what)]++;
	}
	mended = false;
	print_counts("truncations", counts);
}
END_TEST

START_TEST(undamaged_is_the_same)
{
	files_copy(original, work);
	ck_assert_int_eq(run_case(work, true, "nothing"), OUTCOME_SAME);
	ck_assert_int_eq(run_case(work, false, "nothing"), OUTCOME_SAME);
	ck_assert_int_eq(run_case(work, false, "nothing, again"), OUTCOME_SAME);
}
END_TEST

/* ---- other files in the place of a store's ------------------------------------------- */

/*
 * These are refused whatever stands in their place. A journal that is not the
 * last may hold nothing any more, and a segment nothing but what was replaced:
 * then all may be the same; or a segment is missed when it is read.
 */
static bool is_vital(const char *path)
{
	return strcmp(path, "header") == 0 || strcmp(path, "key") == 0 || strcmp(path, "data.mdb") == 0;
}

/* A store that is refused was not written to. */
static void assert_refused(const char *what, const char *path)
{
	uint64_t before = files_hash(work);
	enum outcome outcome = run_case(work, false, what);

	ck_assert_msg(outcome == OUTCOME_REFUSED || !is_vital(path), "%s of %s was not refused",
		      what, path);
	if (outcome == OUTCOME_REFUSED)
		ck_assert_msg(files_hash(work) == before, "%s of %s: something was written", what, path);
}

START_TEST(empty_files_are_refused)
{
	for (size_t i = 0; i < files.count; i++) {
		if (files_is_lock(files.items[i].path) || !files.items[i].size)
			continue;
		files_copy(original, work);
		files_truncate(work, files.items[i].path, 0);
		assert_refused("emptying", files.items[i].path);
	}
}
END_TEST

START_TEST(random_files_are_refused)
{
	static uint64_t bytes[8192];

	for (size_t i = 0; i < files.count; i++) {
		if (files_is_lock(files.items[i].path) || !files.items[i].size)
			continue;
		for (size_t n = 0; n < ARRAY_SIZE(bytes); n++)
			bytes[n] = files_random(&state);
		files_copy(original, work);
		files_replace(work, files.items[i].path, bytes,
			      util_min(sizeof(bytes), (size_t)files.items[i].size));
		if (files.items[i].size > sizeof(bytes))
			files_truncate(work, files.items[i].path, files.items[i].size);
		assert_refused("randomising", files.items[i].path);
	}
}
END_TEST

START_TEST(foreign_files_are_refused)
{
	static uint8_t program[1 << 20];
	FILE *f = fopen("/proc/self/exe", "re");
	size_t size;

	ck_assert_ptr_nonnull(f);
	size = fread(program, 1, sizeof(program), f);
	fclose(f);
	for (size_t i = 0; i < files.count; i++) {
		if (files_is_lock(files.items[i].path) || !files.items[i].size)
			continue;
		files_copy(original, work);
		files_replace(work, files.items[i].path, program, size);
		assert_refused("exchange for a program", files.items[i].path);
	}
}
END_TEST

/* Of a store made the same way: only its keys and its identity are others. */
START_TEST(files_of_another_store_are_refused)
{
	char other[4300], from[4600];

	snprintf(other, sizeof(other), "%s/other", test_directory());
	sample_make(&sample_usual, other, SAMPLE_CLOSED);
	for (size_t i = 0; i < files.count; i++) {
		const char *path = files.items[i].path;

		snprintf(from, sizeof(from), "%s/%s", other, path);
		if (files_is_lock(path) || access(from, F_OK) != 0)
			continue;
		files_copy(original, work);
		files_copy_one(other, work, path);
		assert_refused("exchange for another store's", path);
	}
	files_remove(other);
}
END_TEST

START_TEST(missing_files_are_refused)
{
	char path[4600];

	for (size_t i = 0; i < files.count; i++) {
		if (files_is_lock(files.items[i].path))
			continue;
		files_copy(original, work);
		snprintf(path, sizeof(path), "%s/%s", work, files.items[i].path);
		ck_assert_int_eq(unlink(path), 0);
		assert_refused("removing", files.items[i].path);
	}
}
END_TEST

/* Above all, nothing is written through a link into somebody else's file. */
START_TEST(links_and_fifos_are_not_followed)
{
	uint64_t before = files_hash(original);
	char path[4600], target[4600], what[400];

	for (size_t i = 0; i < files.count; i++) {
		if (files_is_lock(files.items[i].path))
			continue;
		files_copy(original, work);
		snprintf(path, sizeof(path), "%s/%s", work, files.items[i].path);
		snprintf(target, sizeof(target), "%s/%s", original, files.items[i].path);
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(symlink(target, path), 0);
		snprintf(what, sizeof(what), "a symlink instead of %s", files.items[i].path);
		ck_assert_msg(run_case(work, false, what) == OUTCOME_REFUSED ||
				      !is_vital(files.items[i].path),
			      "%s", what);
		ck_assert_msg(files_hash(original) == before, "%s was written through a symlink",
			      files.items[i].path);
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(mkfifo(path, 0600), 0);
		snprintf(what, sizeof(what), "a FIFO instead of %s", files.items[i].path);
		run_case(work, false, what);
	}
}
END_TEST

/* LMDB makes its lock file where there is none, through a link too. */
START_TEST(linked_lock_file_is_refused)
{
	char path[4600], target[4600];
	struct stat st;

	snprintf(path, sizeof(path), "%s/lock.mdb", work);
	snprintf(target, sizeof(target), "%s/elsewhere", test_directory());
	files_copy(original, work);
	unlink(path);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(run_case(work, false, "a symlink instead of lock.mdb"), OUTCOME_REFUSED);
	ck_assert_int_ne(stat(target, &st), 0);
}
END_TEST

/* ---- parts of different times --------------------------------------------------------- */

/* `work`, which is refused for its journals, opens without them, and again. */
static void assert_opens_without_journal(const char *what)
{
	struct store_open_options options = { .discard_journal = true };
	struct store_open_report report = { 0 };
	struct quarantine_hooks hooks = { .problem = count_problem };
	struct check_result before, after;
	struct store *s;
	int result = store_open(work, &options, &report, &s);

	ck_assert_msg(result == 0 && report.discarded, "%s: %d %s", what, result, report.text);
	result = lifecycle_quarantine(s, &hooks, &before, &after);
	ck_assert_msg(result == 0 && after.problems == 0, "%s: %d, %llu problems left", what,
		      result, (unsigned long long)(result ? 0 : after.problems));
	ck_assert_int_eq(store_close(s), 0);
	options.discard_journal = false;
	result = store_open(work, &options, &report, &s);
	ck_assert_msg(result == 0, "%s, again: %d %s", what, result, report.text);
	ck_assert_int_eq(store_close(s), 0);
}

/* The store as it is, and as it was: `work` becomes a mixture. */
START_TEST(old_database_is_refused)
{
	char newer[4300];

	snprintf(newer, sizeof(newer), "%s/newer", test_directory());
	files_copy(original, newer);
	sample_change(&sample_usual, newer);
	files_copy(newer, work);
	files_copy_one(original, work, "data.mdb");
	assert_refused("a database older than the journals instead", "data.mdb");
	files_copy(newer, work);
	files_copy_one(original, work, "journal.0");
	files_copy_one(original, work, "journal.1");
	ck_assert_int_eq(run_case(work, false, "journals older than the database"), OUTCOME_REFUSED);
	assert_opens_without_journal("journals older than the database");
	files_copy(newer, work);
	files_copy_one(original, work, "data.mdb");
	assert_opens_without_journal("a database older than the journals");
	files_copy(newer, work);
	for (unsigned i = 0; i < 2; i++) {
		const char *journal = i ? "journal.1" : "journal.0";
		uint64_t size = files_find(&files, journal)->size;

		files_truncate(work, journal, 0);
		files_truncate(work, journal, size);
	}
	ck_assert_int_eq(run_case(work, false, "two empty journals"), OUTCOME_REFUSED);
	assert_opens_without_journal("two empty journals");
	files_remove(newer);
}
END_TEST

/* ---- chunks exchanged -------------------------------------------------------------------- */

static void swap_runs(const char *path, off_t a, off_t b, size_t size)
{
	static uint8_t first[32768], second[32768];
	char whole[4600];
	int fd;

	snprintf(whole, sizeof(whole), "%s/%s", work, path);
	fd = open(whole, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, first, size, a), (ssize_t)size);
	ck_assert_int_eq(pread(fd, second, size, b), (ssize_t)size);
	ck_assert_int_eq(pwrite(fd, second, size, a), (ssize_t)size);
	ck_assert_int_eq(pwrite(fd, first, size, b), (ssize_t)size);
	close(fd);
}

static void find_swapped(void *data, const char *path, const char *text)
{
	ck_assert_msg(strncmp(path, "/dir-", 5) == 0 && strstr(text, "content is damaged"),
		      "%s: %s", path, text);
	*(unsigned *)data += strcmp(path, SAMPLE_LARGEST) == 0;
}

/* Exchanges the chunk at `at` with the next one, if both are there. Whether check named the file. */
static bool swap_and_check(const struct store_file *segment, uint64_t at)
{
	struct store_open_report report;
	struct check_result result;
	unsigned named = 0;
	struct store *s;

	if (at + 65536 > segment->size)
		return false;
	files_copy(original, work);
	swap_runs(segment->path, (off_t)at, (off_t)at + 32768, 32768);
	ck_assert_int_eq(sample_open(&sample_usual, work, false, &report, &s), 0);
	ck_assert_int_eq(lifecycle_check(s, find_swapped, NULL, &named, &result), 0);
	ck_assert_int_eq(store_close(s), 0);
	return named == 1;
}

/*
 * Two chunks of one file, of one length, under one key: only their numbers
 * differ. Where they are is the engine's business, so places are tried until
 * they are hit; what else is hit are chunks of other files, or nobody's.
 */
START_TEST(swapped_chunks_are_named)
{
	bool named = false;

	for (size_t i = 0; i < files.count && !named; i++)
		for (unsigned eighth = 0; eighth < 8 && !named; eighth++)
			if (strncmp(files.items[i].path, "segments/", 9) == 0)
				named = swap_and_check(&files.items[i], files.items[i].size * eighth /
										8 / 32768 * 32768);
	ck_assert(named);
}
END_TEST

/* Thousands of stores are copied and opened, and none has to outlive this machine: in memory, if there is room. */
static void prefer_memory(void)
{
	struct statvfs vfs;

	if (statvfs("/dev/shm", &vfs) == 0 && vfs.f_bavail * vfs.f_frsize > MEMORY_MIN)
		setenv("DDBFS_TEST_TMP", "/dev/shm", 0);
}

int main(void)
{
	Suite *suite = suite_create("damage");
	static const struct {
		const char *name;
		void (*setup)(void);
	} fixtures[] = { { "closed", setup_closed }, { "killed", setup_killed } };

	prefer_memory();
	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++) {
		TCase *c = tcase_create(fixtures[i].name);

		tcase_add_checked_fixture(c, fixtures[i].setup, teardown);
		tcase_set_timeout(c, 1200);
		tcase_add_test(c, undamaged_is_the_same);
		tcase_add_test(c, flipped_bits);
		tcase_add_test(c, flipped_bits_in_names);
		tcase_add_test(c, truncations);
		tcase_add_test(c, empty_files_are_refused);
		tcase_add_test(c, random_files_are_refused);
		tcase_add_test(c, foreign_files_are_refused);
		tcase_add_test(c, files_of_another_store_are_refused);
		tcase_add_test(c, missing_files_are_refused);
		tcase_add_test(c, links_and_fifos_are_not_followed);
		tcase_add_test(c, linked_lock_file_is_refused);
		tcase_add_test(c, old_database_is_refused);
		tcase_add_test(c, swapped_chunks_are_named);
		suite_add_tcase(suite, c);
	}
	return test_main(suite);
}
