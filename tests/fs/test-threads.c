/*
 * test-threads.c - the whole daemon but for the kernel, used by many threads at
 * once: names, contents, attributes, the trash, listings, undo, emptying, the
 * sweeper, syncs and checkpoints, on the local engine. For the thread sanitizer
 * first of all; and what is left must be sound, the writers' files above all.
 *
 *     DDBFS_TEST_ROUNDS   how many times as long (1)
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/random.h"
#include "tests/lib/tree.h"

#define WRITERS 3
#define ROUNDS 150
#define NAMES 6
#define LARGE 150000

static struct test_tree t;
static uint64_t shared; /* the directory that all work in */
static atomic_uint working;
static atomic_ullong done[16]; /* by each thread */

/* ---- what may come --------------------------------------------------------------------- */

/* Where others remove and rename what one has just looked up. */
static void may_race(int result)
{
	static const int races[] = { 0,	      -ENOENT, -EEXIST,	 -ENOTEMPTY,
				     -ESTALE, -EROFS,  -ENOTDIR, -EISDIR };

	for (size_t i = 0; i < ARRAY_SIZE(races); i++)
		if (result == races[i])
			return;
	ck_abort_msg("result %d", result);
}

static void must(int result)
{
	ck_assert_int_eq(result, 0);
}

/* ---- writers ----------------------------------------------------------------------------- */

static int find(uint64_t directory, const char *name, uint64_t *ret_id)
{
	struct inode i = { 0 };
	int result = namei_lookup(t.namei, directory, name, true, &i);

	if (result == 0) {
		*ret_id = i.item.id;
		test_learn(&t, i.item.id, &i.at);
	}
	inode_release(&i);
	return result;
}

static void create(uint64_t directory, const char *name, bool race)
{
	struct namei_new what = { .mode = S_IFREG | 0644 };
	struct inode i = { 0 };
	int result = namei_create(t.namei, &t.user, directory, name, &what, &i);

	if (race)
		may_race(result);
	else
		must(result);
	inode_release(&i);
}

/* In a directory of his own, where nobody comes between: it must be as he left it. */
static void own_round(uint64_t own, unsigned round, uint8_t *bytes)
{
	uint64_t id;
	size_t got;

	memset(bytes, (int)(round + 1), LARGE);
	create(own, "new", false);
	must(find(own, "new", &id));
	must(test_write(&t, id, 0, bytes, round % 3 ? LARGE : 700));
	must(test_write(&t, id, 40000, bytes, 5000));
	if (round % 4 == 0)
		must(file_setattr(t.namei, &t.where, id,
				  &(struct attr_change){ .set = ATTR_SIZE, .size = 45000 }, NULL));
	must(test_rename(&t, own, "new", own, "file", 0));
	memset(bytes, 0, LARGE);
	must(file_read(t.namei, &t.where, id, 40000, bytes, 5000, &got));
	ck_assert_uint_eq(got, 5000);
	for (size_t i = 0; i < got; i++)
		ck_assert_uint_eq(bytes[i], (uint8_t)(round + 1));
	if (round % 5 == 0)
		must(lifecycle_remove(t.lifecycle, &t.remover, own, "file", false));
}

static void shared_round(struct test_random *rnd, unsigned round, uint8_t *bytes)
{
	char name[2] = { (char)('a' + random_below(rnd, NAMES)) },
	     other[2] = { (char)('a' + random_below(rnd, NAMES)) };
	uint64_t id;

	switch (random_below(rnd, 5)) {
	case 0:
		create(shared, name, true);
		break;
	case 1:
		if (find(shared, name, &id) == 0)
			may_race(test_write(&t, id, random_below(rnd, 100000), bytes, 3000));
		break;
	case 2:
		may_race(test_rename(&t, shared, name, shared, other, 0));
		break;
	case 3:
		may_race(lifecycle_remove(t.lifecycle, &t.remover, shared, name, false));
		break;
	default:
		if (find(shared, name, &id) == 0)
			may_race(file_setxattr(t.namei, &t.root, &t.where, id, "user.x", bytes, 500, 0));
	}
}

static void *writer(void *data)
{
	unsigned number = (unsigned)(uintptr_t)data, rounds = random_rounds(ROUNDS);
	_cleanup_free_ uint8_t *bytes = malloc(LARGE);
	struct test_random rnd;
	char name[16];
	uint64_t own;

	ck_assert_ptr_nonnull(bytes);
	random_init(&rnd, number);
	snprintf(name, sizeof(name), "own-%u", number);
	own = test_mkdir(&t, KEY_ID_ROOT, name);
	for (unsigned i = 0; i < rounds; i++, done[number]++) {
		own_round(own, i, bytes);
		for (unsigned k = 0; k < 4; k++)
			shared_round(&rnd, i, bytes);
	}
	working--;
	return NULL;
}

/* ---- the others, as long as writers work ----------------------------------------------------- */

static bool read_entry(void *data, const struct entry *e, const struct key *key)
{
	struct test_random *rnd = data;
	char text[300];

	(void)lifecycle_fact(t.lifecycle, e, lifecycle_fact_names[random_below(rnd, 6)], text,
			     sizeof(text));
	return false;
}

static void *reader(void *data)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	_cleanup_free_ uint8_t *bytes = malloc(LARGE);
	unsigned number = (unsigned)(uintptr_t)data;
	struct test_random rnd;
	size_t got;
	uint64_t id;

	ck_assert_ptr_nonnull(bytes);
	random_init(&rnd, number);
	for (; working; done[number]++) {
		if (find(shared, names[random_below(&rnd, NAMES)], &id) == 0)
			may_race(file_read(t.namei, &t.where, id, 0, bytes, LARGE, &got));
		may_race(lifecycle_list(t.lifecycle, shared, NULL, read_entry, &rnd));
	}
	return NULL;
}

struct oldest {
	struct place at;
	bool found;
};

static bool take_entry(void *data, const struct entry *e, const struct key *key)
{
	struct oldest *o = data;

	o->at = e->at;
	o->found = !e->shadow;
	return o->found;
}

/* Brings back, purges, undoes and empties. */
static void *restorer(void *data)
{
	unsigned number = (unsigned)(uintptr_t)data;
	struct undo_options undo = { .taken = UNDO_SKIP };
	struct empty_options empty = { .directory = shared, .now = true };
	struct empty_result emptied;
	struct undo_result undone;

	for (; working; done[number]++) {
		struct oldest o = { 0 };

		may_race(lifecycle_list(t.lifecycle, shared, NULL, take_entry, &o));
		if (o.found && done[number] % 2)
			may_race(lifecycle_restore(t.lifecycle, &t.root, &o.at, shared, "back", 0,
						   NULL, NULL));
		else if (o.found)
			may_race(lifecycle_purge(t.lifecycle, &t.root, &o.at, true));
		if (done[number] % 8 == 3)
			may_race(lifecycle_undo(t.lifecycle, &t.remover, &undo, &undone));
		if (done[number] % 16 == 9)
			may_race(lifecycle_empty(t.lifecycle, &t.root, &empty, &emptied));
	}
	return NULL;
}

/* Time passes by minutes, so that batches end and what was purged is destroyed; and the disk is written to. */
static void *keeper(void *data)
{
	unsigned number = (unsigned)(uintptr_t)data;

	for (; working; done[number]++) {
		test_clock_advance(&t.clock, 90 * CLOCK_SECOND_NS);
		must(done[number] % 3 ? store_sync(t.store) : store_checkpoint(t.store));
		usleep(2000);
	}
	return NULL;
}

static void print_problem(void *data, const char *path, const char *text)
{
	printf("# check: %s: %s\n", path, text);
}

START_TEST(all_at_once)
{
	static void *(*const others[])(void *) = { reader, reader, restorer, keeper };
	pthread_t threads[WRITERS + ARRAY_SIZE(others)];
	struct check_result result;
	unsigned count = 0;

	test_tree_open(&t, TEST_LOCAL);
	shared = test_mkdir(&t, KEY_ID_ROOT, "shared");
	must(lifecycle_sweeper_start(t.lifecycle));
	working = WRITERS;
	for (; count < WRITERS; count++)
		must(pthread_create(&threads[count], NULL, writer, (void *)(uintptr_t)count));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++, count++)
		must(pthread_create(&threads[count], NULL, others[i], (void *)(uintptr_t)count));
	for (unsigned i = 0; i < count; i++)
		must(pthread_join(threads[i], NULL));
	lifecycle_sweeper_stop(t.lifecycle);
	test_consistent(&t);
	must(store_checkpoint(t.store));
	must(lifecycle_check(t.store, print_problem, NULL, NULL, &result));
	ck_assert_uint_eq(result.problems, 0);
	printf("# rounds of writers %llu %llu %llu, readers %llu %llu, the trash %llu, the disk %llu\n",
	       done[0], done[1], done[2], done[3], done[4], done[5], done[6]);
	test_tree_reopen(&t);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/threads");
	TCase *c = tcase_create("threads");

	tcase_add_test(c, all_at_once);
	tcase_set_timeout(c, 280);
	suite_add_tcase(s, c);
	return test_main(s);
}
