/*
 * test-pairs.c - every sequence of one or two operations of users, each
 * followed by an fsync, from a small fresh store; and the power fails after
 * each sync of a file, and now and then in between.
 *
 * What is then on the disk opens, and is a state of the same history on the
 * engine in memory (history.h): not older than the last operation that had been
 * synced, not newer than the one that was under way.
 *
 *     DDBFS_PAIRS_FIRST, DDBFS_PAIRS_LAST   only pairs that begin with these operations, by number
 *     DDBFS_PAIRS_STEP                      every so many-th sequence only (1)
 *     DDBFS_PAIRS_BETWEEN                   of the calls between syncs every so many-th is a state too (40)
 */
#include <stdio.h>
#include <sys/wait.h>

#include "tests/crash/disk.h"
#include "tests/crash/files.h"
#include "tests/crash/history.h"

#define LOG_MAX (UINT64_C(1) << 30)
#define PARTS 4 /* tests, by the first operation */
#define WANTED 33 /* operations */

/* That begin the sequences of each part. */
static const unsigned firsts[PARTS] = { 8, 9, 8, 8 };

#define NOTE_BEGIN (UINT64_C(1) << 32)

static char original[4100], state[4100], path[4100];
static struct history history;
static struct disk disk;
static size_t acknowledged, synced;
static uint64_t seed = 88172645463325252;
static unsigned long sequences, tried;

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

/* ---- the work ----------------------------------------------------------------------- */

static void work(void)
{
	struct store_open_report why;
	struct world w;

	history_begin(&history, &w);
	shim_watch(path);
	if (world_open(&w, path, &(struct store_open_options){ 0 }, &why))
		_exit(1);
	shim_note(NOTE_BEGIN);
	for (size_t i = 0; i < history.count; i++) {
		world_step(&w, history.ops[i]);
		if (world_do(&w, history.ops[i]) != history.results[i])
			_exit(2);
		shim_note(i + 1);
	}
	shim_exit(0);
}

static void run_logged(void)
{
	int status;
	pid_t pid;

	files_copy(original, path);
	disk_begin(&disk, path);
	shim_log_start(LOG_MAX);
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		work();
	shim_log_read_only();
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "%s, %s: the work ended with %x", world_op_name(history.ops[0]),
		      world_op_name(history.ops[history.count - 2]), status);
}

/* ---- states --------------------------------------------------------------------------- */

static void say_where(const char *what)
{
	ck_abort_msg("%s; after %zu operations, %zu synced, of: %s %s %s (state %lu)", what,
		     acknowledged, synced, world_op_name(history.ops[0]), history.count > 2 ? "and" : "",
		     history.count > 2 ? world_op_name(history.ops[2]) : "", tried);
}

static void check_state(enum disk_variant variant)
{
	struct store_open_report why = { 0 };
	struct buffer text = { 0 };
	struct world w;

	tried++;
	disk_build(&disk, state, variant, &seed);
	history_begin(&history, &w);
	for (size_t i = 0; i < acknowledged; i++)
		world_step(&w, history.ops[i]);
	shim_watch(state);
	if (world_open(&w, state, &(struct store_open_options){ 0 }, &why))
		say_where(why.text);
	world_dump(&w, &text);
	if (!history_has(&history, (char *)text.bytes, synced, acknowledged + 1))
		say_where("another state");
	buffer_release(&text);
	ck_assert_int_eq(store_checkpoint(w.store), 0);
	if (world_check(&w) != 0)
		say_where("check finds faults");
	ck_assert_int_eq(world_close(&w), 0);
}

/* What is durable by now; a note tells of an operation that returned. */
static void take_note(uint64_t n, bool *begun)
{
	*begun = true;
	acknowledged = n == NOTE_BEGIN ? 0 : n;
	if (acknowledged && (history.ops[acknowledged - 1] == WORLD_SYNC ||
			     history.ops[acknowledged - 1] == WORLD_CHECKPOINT))
		synced = acknowledged;
}

static void check_sequence(void)
{
	unsigned long between = number("DDBFS_PAIRS_BETWEEN", 40), calls = 0;
	const struct shim_record *r = NULL;
	uint64_t durable = UINT64_MAX;
	bool begun = false;

	sequences++;
	run_logged();
	acknowledged = synced = 0;
	while ((r = shim_log_next(r))) {
		if (r->kind == SHIM_LOG_NOTE) {
			take_note(r->offset, &begun);
			continue;
		}
		disk_step(&disk, r);
		if (!begun)
			continue;
		if (disk.durable != durable)
			check_state(DISK_NONE);
		else if (between && ++calls % between == 0)
			check_state(calls / between % 2 ? DISK_TORN : DISK_ALL);
		durable = disk.durable;
	}
}

static void try_sequence(enum world_op first, enum world_op second)
{
	enum world_op ops[4] = { first, WORLD_SYNC, second, WORLD_SYNC };
	unsigned long step = number("DDBFS_PAIRS_STEP", 1);

	if (step > 1 && (first * WORLD_OPS + second) % step)
		return;
	history = (struct history){ .ops = ops, .count = second == WORLD_OPS ? 2 : 4 };
	history_run(&history);
	check_sequence();
	history_release(&history);
}

/* The large file has tests of its own. */
static bool is_wanted(enum world_op op)
{
	return op != WORLD_SYNC && op < WORLD_SPARSE_DESTROY;
}

static void setup(void)
{
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	snprintf(state, sizeof(state), "%s/state", test_directory());
	history_make_store(&history, original);
	shim_skip_syncs();
}

START_TEST(test_pairs)
{
	unsigned long first = number("DDBFS_PAIRS_FIRST", 0),
		      last = number("DDBFS_PAIRS_LAST", WORLD_OPS - 1);

	setup();
	for (enum world_op a = 0; a < WORLD_OPS; a++) {
		if (!is_wanted(a) || a % PARTS != (unsigned)_i || a < first || a > last)
			continue;
		try_sequence(a, WORLD_OPS);
		for (enum world_op b = 0; b < WORLD_OPS; b++)
			if (is_wanted(b))
				try_sequence(a, b);
	}
	disk_release(&disk);
	printf("# %lu sequences, %lu states\n", sequences, tried);
	ck_assert_uint_ge(tried, sequences);
	if (!getenv("DDBFS_PAIRS_FIRST") && !getenv("DDBFS_PAIRS_LAST") && !getenv("DDBFS_PAIRS_STEP"))
		ck_assert_uint_eq(sequences, firsts[_i] * (1 + WANTED));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/pairs");
	TCase *t = tcase_create("pairs");

	tcase_set_timeout(t, 1000);
	tcase_add_loop_test(t, test_pairs, 0, PARTS);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
