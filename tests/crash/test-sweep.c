/*
 * test-sweep.c - a file system in use is killed at, or refused, the n-th call
 * that changes a file of its store, for every n.
 *
 * The history has all that users do (world.h), with checkpoints in between. After it, however it
 * ended, the whole tree, the trash with its facts, xattrs, link counts and
 * times are those of a state of the same history on the engine in memory: not
 * older than the last operation that was acknowledged. `check` finds nothing,
 * nothing waits to be given back, and the file system goes on.
 *
 *     DDBFS_SWEEP_STEP    every so many-th n only (1)
 *     DDBFS_SWEEP_FIRST   from this n on (1)
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/crash/files.h"
#include "tests/crash/history.h"
#include "tests/crash/shim.h"

#define ALL ((1u << SHIM_MEMORY) - 1) /* that change files */

/* What the working process tells, in memory shared with it. */
struct report {
	_Atomic size_t acknowledged;
	atomic_bool opened, fired, read_only;
	atomic_bool met; /* the fault came after opening and before closing */
	atomic_int wrong; /* line of what must not happen ... */
	atomic_int result; /* ... and what came instead */
};

static const enum world_op sparse_destroy[] = { WORLD_SPARSE_DESTROY, WORLD_CHECKPOINT };
static const enum world_op sparse_truncate[] = { WORLD_SPARSE_TRUNCATE, WORLD_CHECKPOINT };
static const enum world_op sparse_replace[] = { WORLD_SPARSE_REPLACE, WORLD_CHECKPOINT,
						WORLD_EMPTY_NOW, WORLD_CHECKPOINT };

static struct history history;
static char original[4100], path[4100];
static struct report *report;
static bool told; /* the store, opened again, said why it had stopped */

static void setup(const enum world_op *ops, size_t count, unsigned sparse)
{
	history = (struct history){ .ops = ops, .count = count, .sparse = sparse };
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	shim_watch(path);
	shim_skip_syncs();
	history_run(&history);
	history_make_store(&history, original);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void wrong(int line, int result)
{
	if (report->wrong)
		return;
	report->result = result;
	report->wrong = line;
}

/* ---- the work --------------------------------------------------------------------- */

/* After an error that passes, the same once more. */
static int do_patiently(struct world *w, enum world_op op, const struct shim_fault *fault)
{
	int r = world_do(w, op);

	for (unsigned i = 0; i < 3 && fault->error && (r == -fault->error || r == -EIO); i++)
		r = world_do(w, op);
	return r;
}

static bool is_read_only(struct world *w)
{
	struct store_status status;

	store_status(w->store, &status);
	if (status.read_only && (!status.problem || !status.error || store_sync(w->store) != -EIO))
		wrong(__LINE__, status.error);
	return status.read_only;
}

static void live(struct world *w, const struct shim_fault *fault)
{
	for (size_t i = 0; i < history.count; i++) {
		int r;

		world_step(w, history.ops[i]);
		r = do_patiently(w, history.ops[i], fault);
		if (r != history.results[i]) {
			if (!is_read_only(w) && !(r == -fault->error && fault->stays))
				wrong(1000 + (int)i, r);
			return;
		}
		report->acknowledged = i + 1;
	}
}

static void work(const struct shim_fault *fault)
{
	struct store_open_options options = { .generation_bytes = 400 << 10 };
	struct store_open_report why;
	struct world w;

	history_begin(&history, &w);
	shim_arm(fault);
	if (world_open(&w, path, &options, &why) == 0) {
		report->opened = true;
		report->met = !shim_fired();
		live(&w, fault);
		report->met = report->met && shim_fired();
		report->read_only = is_read_only(&w);
		(void)world_close(&w);
	}
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
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		work(fault);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* ---- and after it --------------------------------------------------------------------- */

/* One that was killed while it opened may have a child that holds the lock for another moment. */
static void await_lock(void)
{
	int pid;

	for (unsigned i = 0; i < 1000 && store_holder(path, &pid) == 1; i++)
		usleep(1000);
}

/* As it was left, before anything is made good. */
static void expect_sound(struct world *w, uint64_t n, const char *what)
{
	struct store_open_options options = { .read_only = true, .clock = &w->clock.clock };
	struct store_open_report why = { 0 };
	int r = store_open(path, &options, &why, &w->store);

	ck_assert_msg(r == 0, "%s at call %lu: it does not open for check: %d %s", what, n, r, why.text);
	ck_assert_msg(world_check(w) == 0, "%s at call %lu: check finds faults", what, n);
	ck_assert_int_eq(store_close(w->store), 0);
}

static void open_after(struct world *w, uint64_t n, const char *what)
{
	struct store_open_report why = { 0 };
	int r = world_open(w, path, &(struct store_open_options){ 0 }, &why);

	ck_assert_msg(r == 0, "%s at call %lu: it does not open: %d %s", what, n, r, why.text);
	told = why.text[0];
}

static void expect_state(struct world *w, uint64_t n, const char *what)
{
	struct buffer text = { 0 };

	world_dump(w, &text);
	ck_assert_msg(history_has(&history, (char *)text.bytes, report->acknowledged,
				  report->acknowledged + 1),
		      "%s at call %lu, after %zu operations (next: %s)", what, n, report->acknowledged,
		      report->acknowledged < history.count ?
			      world_op_name(history.ops[report->acknowledged]) :
			      "closing");
	buffer_release(&text);
}

/* Nothing is left to be given back, and life goes on. */
static void expect_use(struct world *w, uint64_t n, const char *what)
{
	struct store_status status;
	int r;

	ck_assert_int_eq(store_checkpoint(w->store), 0);
	store_status(w->store, &status);
	ck_assert_msg(status.free_pending == 0, "%s at call %lu: %lu runs are not given back", what,
		      n, status.free_pending);
	for (int i = 0; i < 3; i++) {
		static const enum world_op more[] = { WORLD_SPECIAL, WORLD_WRITE_NEW, WORLD_RM };

		world_step(w, more[i]);
		r = world_do(w, more[i]);
		ck_assert_msg(r == 0 || r == -EEXIST || r == -ENOENT, "%s at call %lu: then %s: %d",
			      what, n, world_op_name(more[i]), r);
	}
}

static void check(uint64_t n, const char *what)
{
	struct world w;

	ck_assert_msg(!report->wrong, "%s at call %lu: line %d: %d", what, n, report->wrong,
		      report->result);
	history_begin(&history, &w);
	for (size_t i = 0; i < report->acknowledged; i++)
		world_step(&w, history.ops[i]);
	await_lock();
	expect_sound(&w, n, what);
	open_after(&w, n, what);
	expect_state(&w, n, what);
	expect_use(&w, n, what);
	ck_assert_int_eq(world_close(&w), 0);
	expect_sound(&w, n, what);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? util_max(strtoull(value, NULL, 0), 1ull) : otherwise;
}

static uint64_t sweep_kills(void)
{
	uint64_t n, runs = 0;

	for (n = number("DDBFS_SWEEP_FIRST", 1);; n += number("DDBFS_SWEEP_STEP", 1)) {
		int ended = run(&(struct shim_fault){ .at = n, .calls = ALL, .half = n % 2 });

		if (!ended)
			break;
		ck_assert_int_eq(ended, SIGKILL);
		check(n, "kill");
		runs++;
	}
	check(n, "no kill");
	ck_assert_uint_eq(report->acknowledged, history.count);
	return runs;
}

START_TEST(test_killed_at_every_call)
{
	uint64_t runs;

	setup(history_usual, HISTORY_USUAL, 0);
	runs = sweep_kills();
	printf("# %zu operations, %zu states, killed at %lu calls\n", history.count,
	       history.states_count, runs);
	ck_assert_uint_gt(number("DDBFS_SWEEP_FIRST", 1) + runs * number("DDBFS_SWEEP_STEP", 1), 200);
}
END_TEST

static const struct {
	const enum world_op *ops;
	size_t count;
} sparse[] = {
	{ sparse_destroy, ARRAY_SIZE(sparse_destroy) },
	{ sparse_truncate, ARRAY_SIZE(sparse_truncate) },
	{ sparse_replace, ARRAY_SIZE(sparse_replace) },
};

/* 2 GiB, 64 MiB of it real. */
START_TEST(test_a_large_sparse_file_is_killed)
{
	uint64_t runs;

	setup(sparse[_i].ops, sparse[_i].count, 2048);
	runs = sweep_kills();
	printf("# %s: %zu states, killed at %lu calls\n", world_op_name(sparse[_i].ops[0]),
	       history.states_count, runs);
	ck_assert_uint_gt(runs * number("DDBFS_SWEEP_STEP", 1), 5);
}
END_TEST

/* ---- calls that fail --------------------------------------------------------------------- */

static const struct {
	enum shim_call call;
	int error;
	bool stays;
} sweeps[] = {
	{ SHIM_WRITE, EIO, false },	  { SHIM_WRITE, ENOSPC, false },
	{ SHIM_SYNC, EIO, false },	  { SHIM_SYNC, ENOSPC, false },
	{ SHIM_ALLOCATE, ENOSPC, false }, { SHIM_ALLOCATE, EIO, false },
	{ SHIM_TRUNCATE, EIO, false },	  { SHIM_TRUNCATE, ENOSPC, false },
};

START_TEST(test_every_call_fails)
{
	enum shim_call call = sweeps[_i].call;
	uint64_t runs = 0;
	char what[64];

	setup(history_usual, HISTORY_USUAL, 0);
	snprintf(what, sizeof(what), "%s %s", strerrorname_np(sweeps[_i].error), shim_call_name(call));
	for (uint64_t n = number("DDBFS_SWEEP_FIRST", 1);; n += number("DDBFS_SWEEP_STEP", 1)) {
		struct shim_fault fault = {
			.at = n, .calls = 1u << call, .error = sweeps[_i].error, .half = n % 2
		};

		ck_assert_int_eq(run(&fault), 0);
		if (!report->fired)
			break;
		check(n, what);
		/* A sync that fails ends all writing; but LMDB tells no ENOSPC of its sync from one of a write. */
		ck_assert_msg(call != SHIM_SYNC || fault.error == ENOSPC || !report->met || report->read_only,
			      "%s at call %lu: it goes on", what, n);
		ck_assert_msg(told || !report->read_only, "%s at call %lu: nothing was told", what, n);
		runs++;
	}
	printf("# %s: %lu calls\n", what, runs);
	ck_assert_uint_gt(runs, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/sweep");
	TCase *kills = tcase_create("kills"), *sparse_kills = tcase_create("sparse"),
	      *faults = tcase_create("faults");

	tcase_set_timeout(kills, 600);
	tcase_add_test(kills, test_killed_at_every_call);
	suite_add_tcase(suite, kills);
	tcase_set_timeout(sparse_kills, 600);
	tcase_add_loop_test(sparse_kills, test_a_large_sparse_file_is_killed, 0, (int)ARRAY_SIZE(sparse));
	suite_add_tcase(suite, sparse_kills);
	tcase_set_timeout(faults, 600);
	tcase_add_loop_test(faults, test_every_call_fails, 0, (int)ARRAY_SIZE(sweeps));
	suite_add_tcase(suite, faults);
	return test_main(suite);
}
