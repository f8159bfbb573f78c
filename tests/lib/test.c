#include "tests/lib/test.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int test_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static char directory[4096];
static pid_t directory_owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_directory(void)
{
	if (getpid() == directory_owner)
		nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_directory(void)
{
	const char *base = getenv("DDBFS_TEST_TMP");

	if (directory_owner == getpid())
		return directory;
	snprintf(directory, sizeof(directory), "%s/ddbfs-test-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(directory))
		abort();
	directory_owner = getpid();
	atexit(remove_directory);
	return directory;
}

static int64_t realtime(void *data)
{
	return __atomic_load_n(&((struct test_clock *)data)->realtime_ns, __ATOMIC_RELAXED);
}

static int64_t boottime(void *data)
{
	return __atomic_load_n(&((struct test_clock *)data)->boottime_ns, __ATOMIC_RELAXED);
}

void test_clock_init(struct test_clock *t)
{
	*t = (struct test_clock){
		.clock = { realtime, boottime, t },
		.realtime_ns = INT64_C(1796055939) * CLOCK_SECOND_NS,
		.boottime_ns = 1000 * CLOCK_SECOND_NS,
	};
}

void test_clock_advance(struct test_clock *t, int64_t ns)
{
	__atomic_fetch_add(&t->realtime_ns, ns, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->boottime_ns, ns, __ATOMIC_RELAXED);
}

void test_clock_step(struct test_clock *t, int64_t ns)
{
	__atomic_fetch_add(&t->realtime_ns, ns, __ATOMIC_RELAXED);
}
