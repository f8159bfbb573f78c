/*
 * random.h - numbers from a printed seed, for tests that make histories.
 *
 * $DDBFS_TEST_SEED sets the first seed, $DDBFS_TEST_ROUNDS how many times as
 * long the histories are.
 */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct test_random {
	uint64_t seed;
	uint64_t state;
};

static inline uint64_t random_next(struct test_random *r)
{
	/* splitmix64 */
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0 to n - 1 */
static inline uint64_t random_below(struct test_random *r, uint64_t n)
{
	return random_next(r) % n;
}

static inline bool random_once_in(struct test_random *r, uint64_t n)
{
	return random_below(r, n) == 0;
}

static inline void random_init(struct test_random *r, uint64_t number)
{
	const char *first = getenv("DDBFS_TEST_SEED");

	r->seed = (first ? strtoull(first, NULL, 0) : 1) + number;
	r->state = r->seed;
}

static inline unsigned random_rounds(unsigned usual)
{
	const char *times = getenv("DDBFS_TEST_ROUNDS");

	return usual * (times ? (unsigned)strtoul(times, NULL, 0) : 1);
}

#endif
