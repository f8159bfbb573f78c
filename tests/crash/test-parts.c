/*
 * test-parts.c - files of a store exchanged for what they were at another time,
 * as half a backup brings them back: one by one and in kinds, older ones under
 * newer ones and the other way round.
 *
 * Such a store is refused with a word that says why, or `check` names what is
 * damaged in it, or nothing is: then it is one of the two states, whole. Never a
 * mixture, and never the older state with the newer one acknowledged.
 */
#include <stdio.h>
#include <sys/wait.h>

#include "tests/crash/files.h"
#include "tests/crash/history.h"

enum outcome {
	OUTCOME_SAME = 10, /* exit codes of the process that tries */
	OUTCOME_DAMAGED,
	OUTCOME_REFUSED,
	OUTCOME_WRONG,
};

static const enum world_op ops[] = { WORLD_APPEND_LARGE, WORLD_OVERWRITE_CHUNKS, WORLD_RM_RF,
				     WORLD_RESTORE,	 WORLD_CHECKPOINT,	 WORLD_EMPTY_NOW,
				     WORLD_WRITE_NEW };
static struct history history = { .ops = ops, .count = ARRAY_SIZE(ops) };
static char older[4200], newer[4200], work[4200];

/* The history happens to `newer`, which is then closed, or killed. */
static void age(bool killed)
{
	struct store_open_report why = { 0 };
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct world w;

		history_begin(&history, &w);
		if (world_open(&w, newer, &(struct store_open_options){ 0 }, &why))
			_exit(1);
		for (size_t i = 0; i < history.count; i++) {
			world_step(&w, ops[i]);
			if (world_do(&w, ops[i]) != history.results[i])
				_exit(2);
		}
		_exit(killed ? store_sync(w.store) != 0 : world_close(&w) != 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void setup(bool killed)
{
	snprintf(older, sizeof(older), "%s/older", test_directory());
	snprintf(newer, sizeof(newer), "%s/newer", test_directory());
	snprintf(work, sizeof(work), "%s/work", test_directory());
	history_run(&history);
	history_make_store(&history, older);
	files_copy(older, newer);
	age(killed);
}

/* In the child. `state` is what the store must have, if nothing in it is damaged. */
static enum outcome try_store(size_t state)
{
	struct store_open_options options = { .read_only = true };
	struct store_open_report report = { 0 };
	struct buffer text = { 0 };
	struct world w;
	int r, problems;

	history_begin(&history, &w);
	options.clock = &w.clock.clock;
	r = store_open(work, &options, &report, &w.store);
	if (r != 0)
		return r > 0 && report.text[0] ? OUTCOME_REFUSED : OUTCOME_WRONG;
	problems = world_check(&w);
	store_close(w.store);
	if (problems != 0)
		return problems > 0 ? OUTCOME_DAMAGED : OUTCOME_WRONG;
	for (size_t i = 0; state && i < history.count; i++)
		world_step(&w, ops[i]);
	if (world_open(&w, work, &(struct store_open_options){ 0 }, &report) != 0)
		return OUTCOME_WRONG;
	world_dump(&w, &text);
	return history_has(&history, (char *)text.bytes, state, state) ? OUTCOME_SAME : OUTCOME_WRONG;
}

static enum outcome run(size_t state, const char *what)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		enum outcome outcome;

		alarm(60);
		outcome = try_store(state);
		fflush(NULL);
		_exit(outcome);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) >= OUTCOME_SAME &&
			      WEXITSTATUS(status) < OUTCOME_WRONG,
		      "%s: status %x", what, status);
	return WEXITSTATUS(status);
}

static void remove_kind(const char *kind)
{
	struct store_files files;
	char path[4600];

	files_list(work, &files);
	for (size_t i = 0; i < files.count; i++) {
		snprintf(path, sizeof(path), "%s/%s", work, files.items[i].path);
		if (strncmp(files.items[i].path, kind, strlen(kind)) == 0)
			ck_assert_int_eq(unlink(path), 0);
	}
	files_release(&files);
}

/* All that begins with `kind` comes from `from`, the rest is of `to`, which has `state`. */
static enum outcome mix(const char *from, const char *to, size_t state, const char *kind)
{
	struct store_files files;
	char what[200];
	unsigned count = 0;

	files_copy(to, work);
	remove_kind(kind);
	files_list(from, &files);
	for (size_t i = 0; i < files.count; i++)
		if (strncmp(files.items[i].path, kind, strlen(kind)) == 0) {
			files_copy_one(from, work, files.items[i].path);
			count++;
		}
	files_release(&files);
	ck_assert_uint_gt(count, 0);
	snprintf(what, sizeof(what), "%s of %s in %s", kind, strrchr(from, '/') + 1,
		 strrchr(to, '/') + 1);
	return run(state, what);
}

static void expect_refused(const char *kind)
{
	ck_assert_msg(mix(older, newer, history.count, kind) == OUTCOME_REFUSED,
		      "an older %s was taken", kind);
	ck_assert_msg(mix(newer, older, 0, kind) == OUTCOME_REFUSED, "a newer %s was taken", kind);
}

START_TEST(test_parts_of_another_time)
{
	static const char *const kinds[] = { "journal.0", "journal.1", "segments/", "header", "key" };
	unsigned counts[OUTCOME_WRONG] = { 0 };

	setup(_i);
	ck_assert_int_eq(mix(newer, newer, history.count, "data.mdb"), OUTCOME_SAME);
	ck_assert_int_eq(mix(older, older, 0, "data.mdb"), OUTCOME_SAME);
	expect_refused("data.mdb");
	expect_refused("journal");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		counts[mix(older, newer, history.count, kinds[i])]++;
		counts[mix(newer, older, 0, kinds[i])]++;
	}
	/* Those of another time have not the chunks that are asked for. */
	ck_assert_int_ne(mix(older, newer, history.count, "segments/"), OUTCOME_SAME);
	printf("# %s: %u mixtures were refused, %u had damage that was named, %u were whole\n",
	       _i ? "killed" : "closed", counts[OUTCOME_REFUSED], counts[OUTCOME_DAMAGED],
	       counts[OUTCOME_SAME]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/parts");
	TCase *t = tcase_create("parts");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, test_parts_of_another_time, 0, 2);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
