/*
 * clock.c - a library to be preloaded, through which a daemon in a real mount
 * sees clocks that a test moves.
 *
 * $DDBFS_TEST_CLOCK names a file of two numbers: nanoseconds that are added to
 * the wall clock, and to the boot clock. It is looked at on each call, so a test
 * moves time by writing there.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE 64

static const char *numbers(void)
{
	static const char *mapped;
	const char *path = getenv("DDBFS_TEST_CLOCK");
	const char *found = __atomic_load_n(&mapped, __ATOMIC_ACQUIRE);
	void *memory;
	int fd;

	if (found || !path)
		return found;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	memory = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (memory == MAP_FAILED)
		return NULL;
	__atomic_store_n(&mapped, memory, __ATOMIC_RELEASE);
	return memory;
}

static int64_t ahead_ns(clockid_t id)
{
	const char *text = numbers();
	char *boot;
	int64_t real_ns;

	if (!text || (id != CLOCK_REALTIME && id != CLOCK_BOOTTIME))
		return 0;
	real_ns = strtoll(text, &boot, 10);
	return id == CLOCK_REALTIME ? real_ns : strtoll(boot, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	static int (*real)(clockid_t id, struct timespec * ret_time);
	int64_t ns, ahead;
	int result;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	result = real(id, ret_time);
	ahead = result ? 0 : ahead_ns(id);
	if (!ahead)
		return result;
	ns = ret_time->tv_sec * INT64_C(1000000000) + ret_time->tv_nsec + ahead;
	ret_time->tv_sec = ns / 1000000000;
	ret_time->tv_nsec = ns % 1000000000;
	return 0;
}
