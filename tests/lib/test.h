/*
 * test.h - what every unit test starts from: a main for Check that prints TAP,
 * temporary directories, and a clock that stands still until it is told.
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <check.h>
#include <stdint.h>

#include "store/clock.h"

/* Runs the suite; prints TAP on standard output. To be returned from main. */
int test_main(Suite *suite);

/* Path of a fresh empty directory (static storage, one per process), removed at exit. $DDBFS_TEST_TMP or /tmp. */
const char *test_directory(void);

struct test_clock {
	struct clock clock; /* give &t.clock to what takes a clock */
	int64_t realtime_ns;
	int64_t boottime_ns;
};
/* Starts at 2026-11-30T16:25:39Z. */
void test_clock_init(struct test_clock *t);
/* Both clocks move on. */
void test_clock_advance(struct test_clock *t, int64_t ns);
/* Only the wall clock jumps. */
void test_clock_step(struct test_clock *t, int64_t ns);

#endif
