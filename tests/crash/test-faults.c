/*
 * test-faults.c - the n-th call that changes a file fails, or is the last thing
 * the process does, for every n.
 *
 * The work: transactions of every kind (plan.h), syncs, a checkpoint, space
 * given back, closing. After it, whatever happened, the store opens and holds
 * what was acknowledged, and nothing else.
 *
 *     DDBFS_FAULTS_STEP   every so many-th n only (4; 1 for all)
 *     DDBFS_FAULTS_FIRST  from this n on (what the minute says, below the step: runs meet all in turn)
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "store/util.h"
#include "tests/crash/files.h"
#include "tests/crash/plan.h"
#include "tests/crash/shim.h"
#include "tests/lib/test.h"

#define TRANSACTIONS 75
#define ALL ((1u << SHIM_MEMORY) - 1) /* that change files */

/* What the working process tells, in memory shared with it. */
struct report {
	_Atomic uint64_t acknowledged;
	_Atomic uint64_t calls; /* counted until the end */
	atomic_bool fired;
	atomic_bool read_only; /* the store stopped writing ... */
	atomic_bool told; /* ... and says why */
	atomic_int wrong; /* line of what must not happen */
	char text[200]; /* about it */
};

static char original[4100], path[4100];
static struct report *report;
static uint64_t minute; /* in which it began */

static void setup(void)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };

	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(original, &options), 0);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void wrong(int line)
{
	if (!report->wrong)
		report->wrong = line;
}

/* After an error, the same once more: errors that pass must leave nothing behind. */
static int try_again(struct store *s, uint64_t n)
{
	int r = plan_do(s, n);

	for (unsigned i = 0; i < 3 && r < 0 && r != -EROFS; i++)
		r = plan_do(s, n);
	return r;
}

/* Once it has stopped, it has stopped for good and says why. */
static void expect_stopped(struct store *s)
{
	struct store_status status;
	uint64_t count = 0;
	char text[200] = "";

	store_status(s, &status);
	report->read_only = status.read_only;
	report->told = status.problem != NULL && status.error != 0;
	if (!status.read_only || !report->told)
		wrong(__LINE__);
	if (store_sync(s) != -EIO)
		wrong(__LINE__);
	if (plan_do(s, report->acknowledged) != -EROFS)
		wrong(__LINE__);
	/* What it holds can still be read. */
	if (plan_count(s, &count) || count < report->acknowledged ||
	    plan_check(s, count, text, sizeof(text))) {
		wrong(__LINE__);
		snprintf(report->text, sizeof(report->text), "%lu of %lu: %s", count,
			 (uint64_t)report->acknowledged, text);
	}
}

static void work(const struct shim_fault *fault)
{
	struct store_open_report why;
	struct store *s;

	shim_watch(path);
	shim_arm(fault);
	if (store_open(path, &(struct store_open_options){ .generation_bytes = 400 << 10 }, &why,
		       &s) == 0) {
		for (uint64_t n = 0; n < TRANSACTIONS; n++) {
			int r = try_again(s, n);

			if (r == -EROFS || (r < 0 && fault->stays))
				break;
			if (r != 0) {
				fprintf(stderr, "# transaction %lu: %d\n", n, r);
				wrong(__LINE__);
			}
			report->acknowledged = n + 1;
			if (n % 10 == 4 && store_sync(s) < 0)
				break;
			if (n == 40)
				(void)store_checkpoint(s);
		}
		struct store_status status;

		store_status(s, &status);
		if (status.read_only)
			expect_stopped(s);
		(void)store_close(s);
	}
	report->calls = shim_count();
	report->fired = shim_fired();
	_exit(0);
}

/* 0, or the signal that ended it. */
static int run(const struct shim_fault *fault)
{
	int status;
	pid_t pid;

	files_copy(original, path);
	memset(report, 0, sizeof(*report));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		work(fault);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void check(uint64_t n, const char *what)
{
	struct store_open_report why = { 0 };
	uint64_t count, known = report->acknowledged;
	char text[200] = "";
	struct store *s;
	int r;

	ck_assert_msg(!report->wrong, "%s at call %lu: line %d: %s", what, n, report->wrong,
		      report->text);
	for (unsigned i = 0; i < 200; i++) {
		r = store_open(path, &(struct store_open_options){ 0 }, &why, &s);
		if (r != STORE_IN_USE)
			break;
		usleep(5000);
	}
	ck_assert_msg(r == 0, "%s at call %lu: store_open: %d %s", what, n, r, why.text);
	ck_assert_int_eq(plan_count(s, &count), 0);
	ck_assert_msg(count >= known && count <= known + 1, "%s at call %lu: %lu of %lu", what, n,
		      count, known);
	r = plan_check(s, count, text, sizeof(text));
	ck_assert_msg(r == 0, "%s at call %lu: of %lu: %s", what, n, count, text);
	ck_assert_int_eq(plan_do(s, count), 0);
	ck_assert_int_eq(store_close(s), 0);
}

static uint64_t step(void)
{
	const char *value = getenv("DDBFS_FAULTS_STEP");

	return value ? util_max(strtoull(value, NULL, 0), 1ull) : 4;
}

/* One run after the other meets every n. */
static uint64_t first(void)
{
	const char *value = getenv("DDBFS_FAULTS_FIRST");

	return value ? util_max(strtoull(value, NULL, 0), 1ull) : 1 + minute % step();
}

START_TEST(test_killed_at_every_call)
{
	uint64_t n, runs = 0;

	setup();
	for (n = first();; n += step()) {
		int ended = run(&(struct shim_fault){ .at = n, .calls = ALL, .half = n % 2 });

		if (!ended)
			break;
		ck_assert_int_eq(ended, SIGKILL);
		check(n, "kill");
		runs++;
	}
	printf("# killed at %lu calls, every %lu from %lu on\n", runs, step(), first());
	ck_assert_uint_gt(first() + runs * step(), 100);
}
END_TEST

static void sweep(enum shim_call call, int error, bool stays)
{
	char what[64];
	uint64_t runs = 0;

	snprintf(what, sizeof(what), "%s %s%s", strerrorname_np(error), shim_call_name(call),
		 stays ? " for good" : "");
	for (uint64_t n = first();; n += call == SHIM_MEMORY ? 5 * step() : step()) {
		ck_assert_int_eq(
			run(&(struct shim_fault){
				.at = n, .calls = 1u << call, .error = error, .stays = stays, .half = n % 2 }),
			0);
		if (!report->fired)
			break;
		/* A sync that fails ends all writing: what the disk has is not known any more. */
		if (call == SHIM_SYNC && report->acknowledged)
			ck_assert_msg(report->read_only || report->acknowledged == TRANSACTIONS,
				      "%s at call %lu", what, n);
		check(n, what);
		runs++;
	}
	printf("# %s: %lu calls, every %lu from %lu on\n", what, runs, step(), first());
	/* There may be fewer calls of a kind than the first one that this run asks for. */
	ck_assert(runs > 0 || first() > 1);
}

static const struct {
	enum shim_call call;
	int error;
	bool stays;
} sweeps[] = {
	{ SHIM_WRITE, EIO, false },	  { SHIM_WRITE, ENOSPC, false },
	{ SHIM_SYNC, EIO, false },	  { SHIM_SYNC, ENOSPC, false },
	{ SHIM_ALLOCATE, ENOSPC, false }, { SHIM_ALLOCATE, EIO, false },
	{ SHIM_TRUNCATE, EIO, false },	  { SHIM_CREATE, ENOSPC, false },
	{ SHIM_CREATE, EIO, false },	  { SHIM_WRITE, ENOSPC, true },
	{ SHIM_WRITE, EIO, true },	  { SHIM_ALLOCATE, ENOSPC, true },
	{ SHIM_CREATE, EMFILE, false },
};

/* A request that finds no memory is refused, and nothing else comes of it. */
START_TEST(test_memory_runs_out)
{
	setup();
	if (!SHIM_SANITIZED)
		sweep(SHIM_MEMORY, ENOMEM, false);
}
END_TEST

START_TEST(test_every_call_fails)
{
	setup();
	sweep(sweeps[_i].call, sweeps[_i].error, sweeps[_i].stays);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/faults");
	TCase *t = tcase_create("faults");

	minute = (uint64_t)time(NULL) / 60;
	tcase_set_timeout(t, 600);
	tcase_add_test(t, test_killed_at_every_call);
	tcase_add_test(t, test_memory_runs_out);
	tcase_add_loop_test(t, test_every_call_fails, 0, (int)ARRAY_SIZE(sweeps));
	suite_add_tcase(suite, t);
	return test_main(suite);
}
