/*
 * test-power.c - the power fails, at any moment, with any part of what was not
 * synced on the disk.
 *
 * A process works on a file system (world.h) while every call that changes the
 * files of its store is logged. From the log, states are built that a disk may
 * have been in: what was synced is there; of the rest everything, nothing, or any
 * part, down to sectors of 512 bytes and in any order; names in a directory that
 * was not synced may be missing. Each state is opened, and all that can be seen
 * of it, trash, facts, xattrs, links and times too, is what the same history on
 * the engine in memory was at one moment: not before the last sync that had
 * returned, and where only the process ended not before the last operation. `check`
 * finds nothing. It stays that state when the process that recovers it is killed,
 * and the next one; and is used.
 *
 * Many shares, each a test of its own: a way of living, and what is done in it:
 * first the usual, then what chance says.
 *
 *     DDBFS_POWER_STATES   how many in all (6,000)
 *     DDBFS_POWER_FIRST    from this share on (0)
 *     DDBFS_POWER_SEED     of the random choices
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/disk.h"
#include "tests/crash/files.h"
#include "tests/crash/history.h"

#define LOG_MAX (UINT64_C(1) << 30)
#define SHARE 500 /* states */

#define NOTE_CLOSED (UINT64_C(1) << 32) /* of the last process: all is durable */

static const struct course {
	const char *name;
	struct history_rhythm rhythm;
	uint64_t generation_bytes;
	bool close;
} courses[] = {
	{ "no checkpoint", { .sync_every = 7 } },
	{ "no sync" },
	{ "checkpoints", { .sync_every = 9, .checkpoint_every = 23 }, .close = true },
	{ "small generations", { .sync_every = 17 }, .generation_bytes = 300 << 10 },
	{ "a sync after each",
	  { .sync_every = 1, .checkpoint_every = 30 },
	  .generation_bytes = 300 << 10,
	  .close = true },
	{ "one process after the other", { .sync_every = 9, .life = 7 }, .generation_bytes = 400 << 10 },
};

static char original[4100], path[4100], state[4100];
static struct history history;
static enum world_op ops[HISTORY_OPS_MAX];
static struct disk disk;
static uint64_t seed;
static size_t acknowledged, synced;
static unsigned long share, tried, used, recovered;

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

/* ---- the work ----------------------------------------------------------------- */

/* From operation `from` on, to the end of one process. */
static void work(const struct course *c, size_t from)
{
	struct store_open_options options = { .generation_bytes = c->generation_bytes };
	struct store_open_report why;
	struct world w;

	history_begin(&history, &w);
	for (size_t i = 0; i < from; i++)
		world_step(&w, ops[i]);
	if (world_open(&w, path, &options, &why))
		shim_exit(1);
	shim_note(from);
	for (size_t i = from; i < history.count; i++) {
		world_step(&w, ops[i]);
		if (ops[i] != WORLD_REOPEN && world_do(&w, ops[i]) != history.results[i])
			shim_exit(2);
		shim_note(i + 1);
		if (ops[i] == WORLD_REOPEN)
			shim_exit(0);
	}
	if (c->close) {
		if (world_close(&w))
			shim_exit(3);
		shim_note(NOTE_CLOSED);
	}
	shim_exit(0);
}

static size_t end_of_life(size_t from)
{
	while (from < history.count && ops[from] != WORLD_REOPEN)
		from++;
	return from + 1;
}

static void run_logged(const struct course *c)
{
	history_run(&history);
	history_make_store(&history, original);
	files_copy(original, path);
	disk_begin(&disk, path);
	shim_watch(path);
	shim_log_start(LOG_MAX);
	for (size_t from = 0; from < history.count; from = end_of_life(from)) {
		int status;
		pid_t pid;

		fflush(NULL);
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			work(c, from);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "share %lu: the work ended with %x", share, status);
	}
	shim_log_read_only();
}

/* ---- states ---------------------------------------------------------------------- */

/* One that was killed while it opened may have a child that holds the lock for another moment. */
static int open_patiently(struct world *w, const struct store_open_options *options,
			  struct store_open_report *ret_report)
{
	int r = world_open(w, state, options, ret_report);

	for (unsigned i = 0; i < 1000 && r == STORE_IN_USE; i++) {
		usleep(2000);
		r = world_open(w, state, options, ret_report);
	}
	return r;
}

static void expect_sound(struct world *w)
{
	ck_assert_msg(world_check(w) == 0, "check finds faults (share %lu, state %lu)", share, tried);
}

/* As `check` does it, before anything is made good. */
static void check_unopened(void)
{
	struct store_open_options options = { .read_only = true };
	struct store_open_report why = { 0 };
	struct world w;
	int r;

	history_begin_after(&history, &w, acknowledged);
	options.clock = &w.clock.clock;
	r = store_open(state, &options, &why, &w.store);
	ck_assert_msg(r == 0, "check cannot open it: %d %s (share %lu, state %lu)", r, why.text,
		      share, tried);
	expect_sound(&w);
	ck_assert_int_eq(store_close(w.store), 0);
}

/* `w` has its time. */
static void open_state(struct world *w)
{
	struct store_open_report why = { 0 };
	int r = open_patiently(w, &(struct store_open_options){ 0 }, &why);

	ck_assert_msg(r == 0, "it does not open: %d %s (share %lu, state %lu)", r, why.text, share, tried);
}

static char *text_of(struct world *w)
{
	struct buffer text = { 0 };

	world_dump(w, &text);
	return (char *)text.bytes;
}

static void expect_text(struct world *w, const char *expected, const char *what)
{
	_cleanup_free_ char *text = text_of(w);

	history_print_difference(text, expected);
	ck_assert_msg(strcmp(text, expected) == 0, "%s: another state (share %lu, state %lu)", what,
		      share, tried);
}

/* It is in the state `text`, goes on from there, and holds after that too. */
static void check_use(const char *text)
{
	static const enum world_op more[] = { WORLD_SPECIAL, WORLD_SOMEWHERE, WORLD_RM };
	_cleanup_free_ char *later = NULL;
	struct store_status status;
	struct world w;

	history_begin_after(&history, &w, acknowledged);
	open_state(&w);
	expect_text(&w, text, "recovered");
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		int r;

		world_step(&w, more[i]);
		r = world_do(&w, more[i]);
		ck_assert_msg(r == 0 || r == -EEXIST || r == -ENOENT, "%s: %d (share %lu, state %lu)",
			      world_op_name(more[i]), r, share, tried);
	}
	later = text_of(&w);
	ck_assert_int_eq(store_checkpoint(w.store), 0);
	store_status(w.store, &status);
	ck_assert_msg(status.free_pending == 0, "%lu runs are not given back (share %lu, state %lu)",
		      status.free_pending, share, tried);
	ck_assert_int_eq(world_close(&w), 0);
	open_state(&w);
	expect_text(&w, later, "used");
	expect_sound(&w);
	ck_assert_int_eq(world_close(&w), 0);
	used++;
}

/* It is opened, and the process ends at call `at` that changes a file; or soon after opening if there are fewer. */
static void recover_and_end(uint64_t at)
{
	struct store_open_report why = { 0 };
	struct world w;

	/* A log of its own, which nobody reads. */
	shim_log_start(LOG_MAX);
	shim_watch(state);
	shim_arm(&(struct shim_fault){ .at = at, .calls = (2u << SHIM_REMOVE) - 1, .half = at % 2 });
	history_begin_after(&history, &w, acknowledged);
	if (open_patiently(&w, &(struct store_open_options){ 0 }, &why)) {
		printf("# %s\n", why.text);
		fflush(stdout);
		_exit(1);
	}
	_exit(at % 3 == 0 && store_checkpoint(w.store) ? 2 : 0);
}

/* The recovery is cut too, twice, and has lost nothing and not locked itself out. */
static void cut_recovery(void)
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
			      "recovery ended with %x (share %lu, state %lu)", status, share, tried);
		recovered++;
	}
}

/* With nothing lost that must be there. */
static char *check_found(enum disk_variant variant)
{
	size_t from = variant == DISK_ALL ? acknowledged : synced;
	char *text;
	struct world w;

	history_begin_after(&history, &w, acknowledged);
	open_state(&w);
	text = text_of(&w);
	ck_assert_msg(history_has(&history, text, from, acknowledged + 1),
		      "after %zu operations, %zu synced (share %lu, state %lu)", acknowledged,
		      synced, share, tried);
	ck_assert_int_eq(world_close(&w), 0);
	return text;
}

static void check_state(enum disk_variant variant)
{
	_cleanup_free_ char *text = NULL;
	uint64_t choices = seed;

	disk_build(&disk, state, variant, &seed);
	check_unopened();
	text = check_found(variant);
	if (tried % 6 == 3 || tried % 6 == 5) {
		/* The same once more. */
		disk_build(&disk, state, variant, &choices);
		cut_recovery();
	}
	if (tried % 6 == 0 || tried % 6 == 3 || tried % 6 == 5)
		check_use(text);
	tried++;
}

/* What is known of the work, or one more call for the disk. */
static void take(const struct shim_record *r)
{
	if (r->kind != SHIM_LOG_NOTE) {
		disk_step(&disk, r);
	} else if (r->offset == NOTE_CLOSED) {
		synced = history.count;
	} else {
		acknowledged = r->offset;
		if (acknowledged && !history_is_change(ops[acknowledged - 1]))
			synced = acknowledged;
	}
}

static void check_states(unsigned long states)
{
	const struct shim_record *r = NULL;
	unsigned long records = 0, at = 0;

	while ((r = shim_log_next(r)))
		records++;
	while ((r = shim_log_next(r))) {
		take(r);
		at++;
		/* Evenly over the history. */
		while (tried < states * at / records)
			check_state(tried % DISK_VARIANTS);
	}
}

static void setup(void)
{
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	snprintf(state, sizeof(state), "%s/state", test_directory());
	ck_assert_int_eq(mkdir(state, 0700), 0);
	history = (struct history){ .ops = ops };
	seed = number("DDBFS_POWER_SEED", 20261130) + share * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

START_TEST(test_share)
{
	const struct course *c = &courses[_i % ARRAY_SIZE(courses)];
	unsigned long all = number("DDBFS_POWER_STATES", 6000);

	share = (unsigned long)_i;
	setup();
	if (share < ARRAY_SIZE(courses))
		history.count = history_choose_usual(&c->rhythm, ops);
	else
		history.count = history_choose_any(&c->rhythm, 90, &seed, ops);
	run_logged(c);
	/* From here on nothing is lost. */
	shim_watch(state);
	shim_skip_syncs();
	check_states(util_min(all - share * SHARE, (unsigned long)SHARE));
	printf("# share %lu, %s: %zu operations, %zu moments; %lu states, %lu of them used, %lu recoveries cut\n",
	       share, c->name, history.count, history.states_count, tried, used, recovered);
	history_release(&history);
	disk_release(&disk);
}
END_TEST

int main(void)
{
	unsigned long shares = (number("DDBFS_POWER_STATES", 6000) + SHARE - 1) / SHARE;
	Suite *suite = suite_create("crash/power");
	TCase *t = tcase_create("power");

	tcase_set_timeout(t, 900);
	if (number("DDBFS_POWER_FIRST", 0) >= shares) {
		fprintf(stderr, "DDBFS_POWER_FIRST is beyond the last share of DDBFS_POWER_STATES\n");
		return 2;
	}
	tcase_add_loop_test(t, test_share, (int)number("DDBFS_POWER_FIRST", 0), (int)shares);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
