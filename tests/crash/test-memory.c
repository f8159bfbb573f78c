/*
 * test-memory.c - memory ends at the n-th allocation of an operation, for every
 * n of every operation that users have, on the local engine: the operation says
 * -ENOMEM (or does without), nothing else comes of it, and the same operation
 * succeeds when there is memory again.
 *
 * The program's malloc is the test's (shim.h), so liblmdb's and libsodium's
 * allocations fail too, and those of the engine's thread. A sanitizer has its
 * own malloc: then there is nothing to test. An operation that did without is
 * done, and what comes after its n is tried in a further pass over the history.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/crash/files.h"
#include "tests/crash/history.h"
#include "tests/crash/shim.h"

#define PASSES_MAX 200

static struct history history = { .ops = history_usual, .count = HISTORY_USUAL };
static char original[4100], path[4100];
static uint64_t next[HISTORY_OPS_MAX]; /* the first n not yet tried, of each operation; 0: all were */
static uint64_t failed, did_without;

static void setup(void)
{
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	shim_watch(path);
	shim_skip_syncs();
	history_run(&history);
	history_make_store(&history, original);
}

static void expect_state(struct world *w, size_t from, size_t until, uint64_t n)
{
	struct buffer text = { 0 };

	world_dump(w, &text);
	ck_assert_msg(history_has(&history, (char *)text.bytes, from, until),
		      "operation %zu, %s: allocation %lu", from, world_op_name(history.ops[from]), n);
	buffer_release(&text);
}

/* Whether an allocation was refused meanwhile; the result is in *ret_result. */
static bool do_without_memory(struct world *w, enum world_op op, uint64_t n, int *ret_result)
{
	bool fired;

	shim_arm(&(struct shim_fault){ .at = n, .calls = 1u << SHIM_MEMORY, .error = ENOMEM });
	*ret_result = world_do(w, op);
	fired = shim_fired();
	shim_arm(&(struct shim_fault){ 0 });
	return fired;
}

static void exhaust(struct world *w, size_t i)
{
	uint64_t n = next[i] ? next[i] : UINT64_MAX;
	bool fired;
	int r;

	world_step(w, history.ops[i]);
	while ((fired = do_without_memory(w, history.ops[i], n, &r))) {
		n++;
		if (r == history.results[i]) {
			did_without++;
			break;
		}
		ck_assert_msg(r == -ENOMEM, "operation %zu, %s: allocation %lu: %d", i,
			      world_op_name(history.ops[i]), n - 1, r);
		failed++;
		expect_state(w, i, i + 1, n - 1);
	}
	ck_assert_msg(r == history.results[i], "operation %zu, %s: %d", i,
		      world_op_name(history.ops[i]), r);
	expect_state(w, i + 1, i + 1, n);
	next[i] = fired ? n : 0;
}

static bool all_tried(void)
{
	for (size_t i = 0; i < history.count; i++)
		if (next[i])
			return false;
	return true;
}

static void pass(void)
{
	struct store_open_options options = { .generation_bytes = 400 << 10 };
	struct store_open_report why = { 0 };
	struct world w;

	files_copy(original, path);
	history_begin(&history, &w);
	ck_assert_int_eq(world_open(&w, path, &options, &why), 0);
	for (size_t i = 0; i < history.count; i++)
		exhaust(&w, i);
	ck_assert_int_eq(store_checkpoint(w.store), 0);
	ck_assert_int_eq(world_check(&w), 0);
	ck_assert_int_eq(world_close(&w), 0);
	ck_assert_int_eq(world_open(&w, path, &options, &why), 0);
	expect_state(&w, history.count, history.count, 0);
	ck_assert_int_eq(world_close(&w), 0);
}

START_TEST(test_every_operation)
{
	unsigned passes = 0;

	setup();
	for (size_t i = 0; i < history.count; i++)
		next[i] = 1;
	while (!all_tried()) {
		ck_assert_uint_lt(passes++, PASSES_MAX);
		pass();
	}
	printf("# %lu allocations refused their operation, %lu did not; %u passes over %zu operations\n",
	       failed, did_without, passes, history.count);
	ck_assert_uint_gt(failed, 500);
}
END_TEST

/* ---- opening -------------------------------------------------------------------------- */

/* The first half of the history stands in the journals only. */
static void make_killed(void)
{
	struct store_open_report why = { 0 };
	struct world w;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		history_begin(&history, &w);
		if (world_open(&w, original, &(struct store_open_options){ 0 }, &why))
			_exit(1);
		for (size_t i = 0; i < history.count / 2; i++) {
			world_step(&w, history.ops[i]);
			if (history.ops[i] != WORLD_CHECKPOINT && world_do(&w, history.ops[i]))
				_exit(2);
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void expect_opens(uint64_t n)
{
	struct store_open_report why = { 0 };
	struct world w;
	int r;

	history_begin(&history, &w);
	for (size_t i = 0; i < history.count / 2; i++)
		world_step(&w, history.ops[i]);
	r = world_open(&w, path, &(struct store_open_options){ 0 }, &why);
	ck_assert_msg(r == 0, "after allocation %lu failed: %d %s", n, r, why.text);
	expect_state(&w, history.count / 2, history.count / 2, n);
	ck_assert_int_eq(world_close(&w), 0);
}

START_TEST(test_opening)
{
	struct store_open_report why = { 0 };
	uint64_t n, refused = 0;
	bool fired = true;
	struct world w;
	int r;

	setup();
	make_killed();
	for (n = 1; fired; n++) {
		files_copy(original, path);
		history_begin(&history, &w);
		shim_arm(&(struct shim_fault){ .at = n, .calls = 1u << SHIM_MEMORY, .error = ENOMEM });
		r = world_open(&w, path, &(struct store_open_options){ 0 }, &why);
		fired = shim_fired();
		shim_arm(&(struct shim_fault){ 0 });
		ck_assert_msg(r == 0 || r == -ENOMEM, "allocation %lu: %d %s", n, r, why.text);
		if (r == 0)
			ck_assert_int_eq(world_close(&w), 0);
		refused += r != 0;
		expect_opens(n);
	}
	printf("# %lu allocations, %lu of them kept the store from being opened\n", n, refused);
	ck_assert_uint_gt(refused, 50);
}
END_TEST

int main(void)
{
	Suite *suite;
	TCase *t;

	if (SHIM_SANITIZED) {
		printf("1..0 # skipped: the sanitizer has its own malloc\n");
		return 0;
	}
	suite = suite_create("crash/memory");
	t = tcase_create("memory");
	tcase_set_timeout(t, 600);
	tcase_add_test(t, test_every_operation);
	tcase_add_test(t, test_opening);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
