/*
 * test-crew.c - every piece of a job is done once, whoever does it and whoever
 * else has one; nothing of a job is touched after it.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/crew.h"
#include "tests/lib/test.h"

#define PIECES 64
#define OWNERS 4
#define JOBS 2000

static struct crew *crew;

static void setup(void)
{
	ck_assert_int_eq(crew_new(&crew), 0);
}

static void teardown(void)
{
	crew_free(crew);
}

static void count_piece(void *data, size_t i)
{
	atomic_uint *counts = data;

	counts[i]++;
}

START_TEST(test_each_piece_is_done_once)
{
	for (size_t count = 0; count <= PIECES; count++) {
		atomic_uint counts[PIECES + 1] = { 0 };

		crew_run(crew, count_piece, counts, count);
		for (size_t i = 0; i <= PIECES; i++)
			ck_assert_uint_eq(counts[i], i < count);
	}
}
END_TEST

/* Jobs lie on the stack, so that one that is touched later spoils what comes there next. */
static void *run_jobs(void *data)
{
	for (unsigned n = 0; n < JOBS; n++) {
		atomic_uint counts[PIECES] = { 0 };
		size_t count = n % PIECES;

		crew_run(crew, count_piece, counts, count);
		for (size_t i = 0; i < PIECES; i++)
			if (counts[i] != (i < count))
				return data;
	}
	return NULL;
}

START_TEST(test_many_owners_share_a_crew)
{
	pthread_t threads[OWNERS];
	void *wrong;

	for (unsigned i = 0; i < OWNERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, run_jobs, threads), 0);
	for (unsigned i = 0; i < OWNERS; i++) {
		pthread_join(threads[i], &wrong);
		ck_assert_ptr_null(wrong);
	}
}
END_TEST

struct slow {
	pthread_t owner;
	atomic_uint by_others;
};

static void be_slow_for_others(void *data, size_t i)
{
	struct slow *s = data;

	(void)i;
	usleep(100);
	if (pthread_equal(s->owner, pthread_self()))
		return;
	s->by_others++;
	usleep(20000);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Who was held up by a helper does the next jobs alone. */
START_TEST(test_late_helpers_are_left_alone)
{
	struct slow slow = { .owner = pthread_self() };
	bool alone = false;
	cpu_set_t set;
	long before;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 2)
		return;
	/* On a busy machine the pause may be over before the next job begins: again. */
	for (unsigned tries = 0; tries < 20 && !alone; tries++) {
		while (!slow.by_others)
			crew_run(crew, be_slow_for_others, &slow, PIECES);
		before = now_ms();
		slow.by_others = 0;
		crew_run(crew, be_slow_for_others, &slow, PIECES);
		alone = !slow.by_others && now_ms() - before < 40;
	}
	ck_assert(alone);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("crew");
	Suite *suite = suite_create("store/crew");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_each_piece_is_done_once);
	tcase_add_test(t, test_many_owners_share_a_crew);
	tcase_add_test(t, test_late_helpers_are_left_alone);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
