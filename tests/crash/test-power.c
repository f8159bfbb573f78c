/*
 * test-power.c - the power fails, at any moment, with any part of what was not
 * synced on the disk.
 *
 * A process works on a store while every call that changes its files is logged.
 * From the log, states are built that a disk may have been in: what was synced
 * is there; of the rest everything, nothing, or any part, down to sectors of 512
 * bytes and in any order; names in a directory that was not synced may be
 * missing. Each state is opened. It must hold exactly the first n transactions,
 * n not below the last store_sync that had returned, and be usable; also when the
 * process that recovers it is killed, and the next one.
 *
 *     DDBFS_POWER_STATES   how many (6,000)
 *     DDBFS_POWER_SEED     of the random choices
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/util.h"
#include "tests/crash/disk.h"
#include "tests/crash/files.h"
#include "tests/crash/plan.h"
#include "tests/crash/shim.h"
#include "tests/lib/test.h"

#define LOG_MAX (UINT64_C(2) << 30)

#define NOTE_SYNCED (UINT64_C(1) << 32) /* added to the number of transactions that are durable */

static char original[4100], state[4100];
static struct disk disk;
static uint64_t seed;
static uint64_t acknowledged, synced;
static unsigned long tried, rewritten, recovered;

/* ---- the work ----------------------------------------------------------------- */

struct history {
	uint64_t transactions;
	uint64_t sync_every;
	uint64_t checkpoint_every;
	uint64_t generation_bytes;
	unsigned lives; /* how often the process ends without closing and another goes on; 0 = 1 */
	bool close;
};

/* One that was killed while it opened may have a child that holds the lock for another moment. */
static int open_patiently(const char *path, const struct store_open_options *options,
			  struct store_open_report *report, struct store **ret_store)
{
	int r = store_open(path, options, report, ret_store);

	for (unsigned i = 0; i < 1000 && r == STORE_IN_USE; i++) {
		usleep(2000);
		r = store_open(path, options, report, ret_store);
	}
	return r;
}

static struct store *open_or_die(const char *path, const struct store_open_options *options)
{
	struct store_open_report report = { 0 };
	struct store *s;
	int r = open_patiently(path, options, &report, &s);

	ck_assert_msg(r == 0, "store_open: %d %s (state %lu, seed %lu)", r, report.text, tried, seed);
	return s;
}

static int work(const struct history *h)
{
	struct store *s;
	uint64_t n, end;

	shim_watch(original);
	s = open_or_die(original,
			&(struct store_open_options){ .generation_bytes = h->generation_bytes });
	if (plan_count(s, &n))
		return 5;
	for (end = n + h->transactions; n < end; n++) {
		if (plan_do(s, n))
			return 1;
		shim_note(n + 1);
		if (h->sync_every && n % h->sync_every == h->sync_every - 1) {
			if (store_sync(s))
				return 2;
			shim_note(NOTE_SYNCED + n + 1);
		}
		if (h->checkpoint_every && n % h->checkpoint_every == h->checkpoint_every - 1) {
			if (store_checkpoint(s))
				return 3;
			shim_note(NOTE_SYNCED + n + 1);
		}
	}
	if (h->close) {
		if (store_close(s))
			return 4;
		shim_note(NOTE_SYNCED + end);
	}
	return 0;
}

static void run_history(const struct history *h)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	files_remove(original);
	ck_assert_int_eq(store_create(original, &options), 0);
	disk_begin(&disk, original);
	shim_log_start(LOG_MAX);
	for (unsigned life = 0; life < util_max(h->lives, 1u); life++) {
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			shim_exit(work(h));
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "the work ended with %x", status);
	}
}

/* ---- states ---------------------------------------------------------------------- */

static uint64_t check(struct store *s)
{
	char text[200] = "";
	uint64_t n;
	int r = plan_count(s, &n);

	ck_assert_msg(r == 0, "the counter cannot be read: %d (state %lu)", r, tried);
	ck_assert_msg(n >= synced && n <= acknowledged + 1,
		      "%lu transactions, %lu synced, %lu acknowledged (state %lu)", n, synced,
		      acknowledged, tried);
	r = plan_check(s, n, text, sizeof(text));
	ck_assert_msg(r == 0, "of %lu transactions: %s (state %lu)", n, text, tried);
	return n;
}

/* It goes on from there, and holds after that too. */
static void check_use(void)
{
	struct store *s = open_or_die(state, &(struct store_open_options){ 0 });
	uint64_t n = check(s), end = n + 3;

	for (; n < end; n++)
		ck_assert_int_eq(plan_do(s, n), 0);
	ck_assert_int_eq(store_close(s), 0);
	acknowledged = util_max(acknowledged, end);
	s = open_or_die(state, &(struct store_open_options){ .read_only = true });
	ck_assert_uint_eq(check(s), end);
	ck_assert_int_eq(store_close(s), 0);
	rewritten++;
}

/* It is opened, and the process ends at call `at` that changes a file; or soon after opening if there are fewer. */
static void recover_and_end(uint64_t at)
{
	struct store_open_report report = { 0 };
	struct store *s;
	uint64_t n;

	/* A log of its own, which nobody reads. */
	shim_log_start(LOG_MAX);
	shim_watch(state);
	shim_arm(&(struct shim_fault){ .at = at, .calls = (2u << SHIM_REMOVE) - 1, .half = at % 2 });
	if (open_patiently(state, &(struct store_open_options){ 0 }, &report, &s)) {
		printf("# %s\n", report.text);
		fflush(stdout);
		_exit(1);
	}
	if (plan_count(s, &n) || (at % 3 == 0 && (plan_do(s, n) || store_sync(s))))
		_exit(2);
	_exit(0);
}

/* The recovery is cut too, twice, and has lost nothing and not locked itself out. */
static void check_recovery(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 1 + files_random(&seed) % 60;
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			recover_and_end(at);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) == 0,
			      "recovery ended with %x (state %lu, seed %lu)", status, tried, seed);
		acknowledged++;
		recovered++;
	}
	check_use();
}

static void check_state(enum disk_variant variant)
{
	uint64_t known = acknowledged;
	struct store *s;

	tried++;
	disk_build(&disk, state, variant, &seed);
	s = open_or_die(state, &(struct store_open_options){ .read_only = true });
	check(s);
	ck_assert_int_eq(store_close(s), 0);
	if (tried % 6 == 0)
		check_use();
	else if (tried % 6 == 3 || tried % 6 == 5)
		check_recovery();
	acknowledged = known;
}

/* What is known of the work, or one more call for the disk. */
static void take(const struct shim_record *r)
{
	if (r->kind != SHIM_LOG_NOTE)
		disk_step(&disk, r);
	else if (r->offset >= NOTE_SYNCED)
		synced = r->offset - NOTE_SYNCED;
	else
		acknowledged = r->offset;
}

static void check_history(const struct history *h, unsigned long states)
{
	const struct shim_record *r = NULL;
	unsigned long records = 0, at = 0, first = tried;

	run_history(h);
	/* From here on nothing is lost. */
	ck_assert_int_eq(mkdir(state, 0700), 0);
	shim_log_read_only();
	shim_watch(state);
	shim_skip_syncs();
	while ((r = shim_log_next(r)))
		records++;
	acknowledged = synced = 0;
	while ((r = shim_log_next(r))) {
		take(r);
		at++;
		/* Evenly over the history. */
		while (tried - first < states * at / records)
			check_state(tried % DISK_VARIANTS);
	}
}

static void test_history(const struct history *h)
{
	const char *number = getenv("DDBFS_POWER_STATES"), *start = getenv("DDBFS_POWER_SEED");
	unsigned long states = (number ? strtoul(number, NULL, 0) : 6000) / 6;

	seed = (start ? strtoul(start, NULL, 0) : 20261130) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(state, sizeof(state), "%s/state", test_directory());
	check_history(h, states);
	printf("# %lu states, %lu of them worked on, %lu recoveries cut\n", tried, rewritten, recovered);
}

START_TEST(test_without_checkpoints)
{
	test_history(&(struct history){ .transactions = 60, .sync_every = 7 });
}
END_TEST

START_TEST(test_without_a_sync)
{
	test_history(&(struct history){ .transactions = 60 });
}
END_TEST

START_TEST(test_with_checkpoints)
{
	test_history(&(struct history){
		.transactions = 100, .sync_every = 9, .checkpoint_every = 23, .close = true });
}
END_TEST

START_TEST(test_with_small_generations)
{
	test_history(&(struct history){
		.transactions = 200, .sync_every = 17, .generation_bytes = 300 << 10 });
}
END_TEST

START_TEST(test_a_sync_after_each)
{
	test_history(&(struct history){ .transactions = 80,
					.sync_every = 1,
					.checkpoint_every = 30,
					.generation_bytes = 300 << 10,
					.close = true });
}
END_TEST

/* The power fails while what a killed process left is being replayed, or after it. */
START_TEST(test_lives_one_after_the_other)
{
	test_history(&(struct history){
		.transactions = 14, .sync_every = 9, .lives = 8, .generation_bytes = 400 << 10 });
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/power");
	TCase *t = tcase_create("power");

	tcase_set_timeout(t, 1200);
	tcase_add_test(t, test_without_checkpoints);
	tcase_add_test(t, test_without_a_sync);
	tcase_add_test(t, test_with_checkpoints);
	tcase_add_test(t, test_with_small_generations);
	tcase_add_test(t, test_a_sync_after_each);
	tcase_add_test(t, test_lives_one_after_the_other);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
