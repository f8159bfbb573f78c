/*
 * test-holds.c - long work goes in steps, and what one step does under the lock
 * does not depend on how much there is to do.
 *
 * Work is counted, not timed: reads of the store, rows that they returned, and
 * operations written, between taking the lock and giving it up. Four times the
 * entries must not make the largest step larger.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "lifecycle/internal.h"
#include "store/transaction.h"
#include "tests/lifecycle/fixture.h"

#define FEW 150
#define MANY 600
#define WORK_MAX 700 /* under one hold, whatever there is: a step has at most 100 operations */

/* ---- counting; one thread, so plain variables do --------------------------------- */

static struct store *counted;
static uint64_t operations, at_lock, largest, holds;
static struct lifecycle *watched; /* whose locks are looked at where work waits */
static uint64_t waits, waits_holding;

static uint64_t work_so_far(void)
{
	struct store_status s;

	if (!counted)
		return 0;
	store_status(counted, &s);
	return s.gets + s.rows + operations;
}

void __real_lifecycle_lock(struct lifecycle *l);
void __real_lifecycle_lock_background(struct lifecycle *l);
void __real_lifecycle_unlock(struct lifecycle *l);
void __real_store_yield(struct store *s);
int __real_store_checkpoint(struct store *s);
int __real_store_transact(struct store *s, enum store_purpose purpose, const struct store_op *ops,
			  size_t count, uint64_t *ret_version);
void __wrap_lifecycle_lock(struct lifecycle *l);
void __wrap_lifecycle_lock_background(struct lifecycle *l);
void __wrap_lifecycle_unlock(struct lifecycle *l);
void __wrap_store_yield(struct store *s);
int __wrap_store_checkpoint(struct store *s);
int __wrap_store_transact(struct store *s, enum store_purpose purpose, const struct store_op *ops,
			  size_t count, uint64_t *ret_version);

void __wrap_lifecycle_lock(struct lifecycle *l)
{
	__real_lifecycle_lock(l);
	at_lock = work_so_far();
}

void __wrap_lifecycle_lock_background(struct lifecycle *l)
{
	__real_lifecycle_lock_background(l);
	at_lock = work_so_far();
}

void __wrap_lifecycle_unlock(struct lifecycle *l)
{
	uint64_t work = work_so_far() - at_lock;

	largest = util_max(largest, work);
	holds++;
	__real_lifecycle_unlock(l);
}

int __wrap_store_transact(struct store *s, enum store_purpose purpose, const struct store_op *ops,
			  size_t count, uint64_t *ret_version)
{
	operations += count;
	return __real_store_transact(s, purpose, ops, count, ret_version);
}

static bool is_held(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		return true;
	pthread_mutex_unlock(mutex);
	return false;
}

static void note_wait(void)
{
	if (!watched)
		return;
	waits++;
	waits_holding += is_held(&watched->turn) || is_held(&watched->background) ||
			 is_held(&watched->lock) || is_held(&watched->room.mutex);
}

void __wrap_store_yield(struct store *s)
{
	note_wait();
	__real_store_yield(s);
}

int __wrap_store_checkpoint(struct store *s)
{
	note_wait();
	return __real_store_checkpoint(s);
}

/* ---- trees ------------------------------------------------------------------------ */

static const char *name_of(unsigned count)
{
	return count == FEW ? "few" : "many";
}

static void remove_files(struct fixture *f, uint64_t directory, unsigned count)
{
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		rm(f, directory, name);
	}
}

static uint64_t directory_of(struct fixture *f, const char *name, unsigned files)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, name);

	make_files(f, d, files);
	fixture_pass(f, HOUR);
	return d;
}

/* As rm -r does it. */
static void remove_directory_of(struct fixture *f, const char *name, unsigned files)
{
	remove_files(f, directory_of(f, name, files), files);
	ck_ok(f, lifecycle_remove(f->life, &f->actor, KEY_ID_ROOT, name, true));
}

/* A live tree of many directories, in each of which something was deleted. */
static uint64_t marked_tree(struct fixture *f, const char *name, unsigned directories)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, name);
	char sub[16];

	for (unsigned i = 0; i < directories; i++) {
		uint64_t s;

		snprintf(sub, sizeof(sub), "d%u", i);
		s = make_directory(f, d, sub);
		make_file(f, s, "f", "f");
		fixture_pass(f, HOUR);
		rm(f, s, "f");
	}
	return d;
}

/* ---- the same work with few and with many --------------------------------------------- */

struct work {
	void (*prepare)(struct fixture *f, unsigned count);
	void (*run)(struct fixture *f, unsigned count); /* what is counted */
};

static uint64_t largest_step(struct fixture *f, const struct work *w, unsigned count)
{
	w->prepare(f, count);
	counted = f->store;
	largest = holds = 0;
	w->run(f, count);
	counted = NULL;
	return largest;
}

static void assert_steps(struct fixture *f, const struct work *w)
{
	uint64_t few = largest_step(f, w, FEW), many = largest_step(f, w, MANY);

	ck_assert_uint_gt(few, 0);
	ck_assert_uint_le(few, WORK_MAX);
	/* Steps do not always end at the same row; a cost by the entry would be four times as much. */
	ck_assert_msg(many <= few + few / 4 + 16, "%ju with %d, %ju with %d", (uintmax_t)few, FEW,
		      (uintmax_t)many, MANY);
}

static void expired_files(struct fixture *f, unsigned count)
{
	uint64_t d = directory_of(f, name_of(count), count);

	remove_files(f, d, count);
	fixture_pass(f, 31 * DAY);
}

static void expired_directory(struct fixture *f, unsigned count)
{
	remove_directory_of(f, name_of(count), count);
	fixture_pass(f, 31 * DAY);
}

static void run_sweep(struct fixture *f, unsigned count)
{
	int64_t before = counter(f, COUNTER_DESTROYED_EXPIRED);

	sweep(f, NULL);
	ck_assert_int_ge(counter(f, COUNTER_DESTROYED_EXPIRED) - before, count);
}

FIXTURE_TEST_ONCE(sweeping_files_has_steps_of_one_size)
{
	assert_steps(f, &(struct work){ expired_files, run_sweep });
}

FIXTURE_TEST_ONCE(sweeping_a_directory_has_steps_of_one_size)
{
	assert_steps(f, &(struct work){ expired_directory, run_sweep });
}

static void removed_tree(struct fixture *f, unsigned count)
{
	remove_directory_of(f, name_of(count), count);
}

static void run_empty(struct fixture *f, unsigned count)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true };
	struct empty_result result;

	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.entries, 1);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST_ONCE(emptying_has_steps_of_one_size)
{
	assert_steps(f, &(struct work){ removed_tree, run_empty });
}

static void run_restore(struct fixture *f, unsigned count)
{
	restore(f, KEY_ID_ROOT, name_of(count), KEY_ID_ROOT, name_of(count));
}

FIXTURE_TEST_ONCE(restoring_a_tree_has_steps_of_one_size)
{
	assert_steps(f, &(struct work){ removed_tree, run_restore });
}

static void live_tree(struct fixture *f, unsigned count)
{
	marked_tree(f, name_of(count), count);
}

static void run_discard(struct fixture *f, unsigned count)
{
	discard(f, KEY_ID_ROOT, name_of(count));
}

FIXTURE_TEST_ONCE(discarding_a_tree_costs_the_same_whatever_was_deleted_in_it)
{
	assert_steps(f, &(struct work){ live_tree, run_discard });
}

static int64_t until_of(struct fixture *f, uint64_t directory)
{
	int64_t until_ns = 0;

	lifecycle_lock(f->life);
	ck_ok(f, outgoing_until(f->life, directory, &until_ns));
	lifecycle_unlock(f->life);
	return until_ns;
}

/* The directories of a tree that goes whole were asked before; what was deleted in it since then counts. */
FIXTURE_TEST_ONCE(what_is_deleted_meanwhile_keeps_a_discarded_tree)
{
	uint64_t d = marked_tree(f, "tree", 3), sub = make_directory(f, d, "sub");
	uint64_t other = make_directory(f, KEY_ID_ROOT, "other");
	struct outgoing out;
	int64_t before_ns, since_ns;

	set_policy(f, sub, "user.ddbfs.retention", "90d");
	set_policy(f, other, "user.ddbfs.retention", "200d");
	make_file(f, sub, "f", "f");
	make_file(f, other, "f", "f");
	fixture_pass(f, HOUR);
	outgoing_begin(f->life, &out, KEY_ID_ROOT, "tree");
	before_ns = until_of(f, d);
	rm(f, other, "f");
	ck_assert_int_eq(until_of(f, d), before_ns);
	rm(f, sub, "f");
	since_ns = until_of(f, d);
	assert_about(since_ns, lifecycle_now_ns(f->life) + 90 * DAY);
	/* What moves there is asked for anew. */
	ck_ok(f, rename_item(f, KEY_ID_ROOT, "other", d, "other"));
	ck_assert_int_gt(until_of(f, d), since_ns + 100 * DAY);
	outgoing_end(f->life, &out);
	discard(f, KEY_ID_ROOT, "tree");
	fixture_pass(f, 150 * DAY);
	sweep(f, NULL);
	ck_assert(is_shown(f, KEY_ID_ROOT, "tree"));
	fixture_pass(f, 51 * DAY);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "tree"));
}

/* ---- what is told of holds ------------------------------------------------------------- */

#define SPINNERS 3
#define SPIN_NS 200000000

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

FIXTURE_TEST_ONCE(what_a_step_waits_for_is_its_own)
{
	struct lifecycle_holds told;

	lifecycle_lock_background(f->life);
	usleep(2 * LIFECYCLE_HOLD_LONG_NS / 1000);
	lifecycle_unlock(f->life);
	lifecycle_holds(f->life, &told);
	ck_assert_uint_eq(told.steps, 1);
	ck_assert_uint_eq(told.long_steps, 1);
	ck_assert_int_gt(told.longest_own_ns, LIFECYCLE_HOLD_LONG_NS);
	ck_assert_int_le(told.longest_own_ns, told.longest_ns);
	/* Another thread's lock is no step. */
	lifecycle_lock(f->life);
	lifecycle_unlock(f->life);
	lifecycle_holds(f->life, &told);
	ck_assert_uint_eq(told.steps, 1);
}

/* Four want one processor: of what a step of pure work takes, three quarters are the others'. */
FIXTURE_TEST_ONCE(waiting_for_a_processor_is_not_its_own)
{
	struct lifecycle_holds told;
	pid_t spinners[SPINNERS];
	cpu_set_t one;
	int64_t start_ns;

	if (access("/proc/thread-self/schedstat", R_OK) < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	for (unsigned i = 0; i < SPINNERS; i++) {
		spinners[i] = fork();
		while (!spinners[i])
			if (getppid() == 1)
				_exit(0);
	}
	start_ns = monotonic_ns();
	lifecycle_lock_background(f->life);
	while (monotonic_ns() - start_ns < SPIN_NS)
		;
	lifecycle_unlock(f->life);
	for (unsigned i = 0; i < SPINNERS; i++) {
		kill(spinners[i], SIGKILL);
		waitpid(spinners[i], NULL, 0);
	}
	lifecycle_holds(f->life, &told);
	ck_assert_int_ge(told.longest_ns, SPIN_NS / 2);
	ck_assert_int_lt(told.longest_own_ns, told.longest_ns / 4 * 3);
}

/* ---- what waits holds nothing ---------------------------------------------------------- */

/* Something was waited for since the last time, and no lock was held. */
static void assert_waited_holding_nothing(void)
{
	ck_assert_uint_gt(waits, 0);
	ck_assert_uint_eq(waits_holding, 0);
	waits = 0;
}

static void want_free_space(struct fixture *f)
{
	struct store_space space;
	char text[32];

	ck_ok(f, store_space(f->store, &space));
	snprintf(text, sizeof(text), "%lld", (long long)space.free_bytes + 1000);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.low_space", text);
}

/* Making room, by a write and by the sweeper, waits for checkpoints as other long work does. */
FIXTURE_TEST_ONCE(no_lock_is_held_while_room_is_made)
{
	struct place at;

	make_big_file(f, KEY_ID_ROOT, "a", 50000);
	make_big_file(f, KEY_ID_ROOT, "b", 50000);
	make_big_file(f, KEY_ID_ROOT, "c", 50000);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	at = shown_place(f, KEY_ID_ROOT, "a");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	watched = f->life;
	waits = waits_holding = 0;
	ck_assert(lifecycle_make_room(f->life));
	assert_waited_holding_nothing();
	want_free_space(f);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "b"));
	assert_waited_holding_nothing();
	rm(f, KEY_ID_ROOT, "c");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.low_space", "0");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.trash_max", "1");
	make_big_file(f, KEY_ID_ROOT, "e", 50000);
	rm(f, KEY_ID_ROOT, "e");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	assert_waited_holding_nothing();
	watched = NULL;
}

int main(void)
{
	Suite *suite = suite_create("holds");
	TCase *tcase = tcase_create("holds");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, sweeping_files_has_steps_of_one_size);
	tcase_add_test(tcase, sweeping_a_directory_has_steps_of_one_size);
	tcase_add_test(tcase, emptying_has_steps_of_one_size);
	tcase_add_test(tcase, restoring_a_tree_has_steps_of_one_size);
	tcase_add_test(tcase, discarding_a_tree_costs_the_same_whatever_was_deleted_in_it);
	tcase_add_test(tcase, what_is_deleted_meanwhile_keeps_a_discarded_tree);
	tcase_add_test(tcase, what_a_step_waits_for_is_its_own);
	tcase_add_test(tcase, waiting_for_a_processor_is_not_its_own);
	tcase_add_test(tcase, no_lock_is_held_while_room_is_made);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
