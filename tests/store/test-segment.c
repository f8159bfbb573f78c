/*
 * test-segment.c - streams of segments by themselves: what a sync promises when
 * write-backs fail or others append meanwhile, and what is never given back.
 *
 * The linker puts the functions __wrap_ below in front of the system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/segment.h"
#include "tests/lib/test.h"

#define MIB (1 << 20)

static int fail_write_back; /* errno of the next sync_file_range */
static atomic_int syncs;
/* Called before a sync, a write, an unlink: what somebody else does at that moment. */
static void (*before_sync)(void);
static void (*before_write)(void);
static int fail_unlink;

static struct segments *s;
static int dir_fd;
static uint8_t bytes[MIB];
static uint32_t segment, offset;

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __wrap_sync_file_range(int fd, off64_t at, off64_t size, unsigned flags);
ssize_t __real_pwrite64(int fd, const void *from, size_t size, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t size, off64_t at);
int __real_unlinkat(int fd, const char *name, int flags);
int __wrap_unlinkat(int fd, const char *name, int flags);

int __wrap_fdatasync(int fd)
{
	syncs++;
	if (before_sync)
		before_sync();
	return __real_fdatasync(fd);
}

int __wrap_sync_file_range(int fd, off64_t at, off64_t size, unsigned flags)
{
	(void)fd, (void)at, (void)size, (void)flags;
	errno = fail_write_back;
	fail_write_back = 0;
	return errno ? -1 : 0;
}

ssize_t __wrap_pwrite64(int fd, const void *from, size_t size, off64_t at)
{
	void (*now)(void) = before_write;

	before_write = NULL;
	if (now)
		now();
	return __real_pwrite64(fd, from, size, at);
}

int __wrap_unlinkat(int fd, const char *name, int flags)
{
	errno = fail_unlink;
	return fail_unlink ? -1 : __real_unlinkat(fd, name, flags);
}

static void setup(void)
{
	dir_fd = open(test_directory(), O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dir_fd, 0);
	ck_assert_int_eq(segments_create(dir_fd), 0);
	ck_assert_int_eq(segments_open(dir_fd, false, 1, &s), 0);
	memset(bytes, 7, sizeof(bytes));
}

static void teardown(void)
{
	segments_close(s);
	close(dir_fd);
}

static void append(uint64_t stream, size_t size)
{
	ck_assert_int_eq(segments_append(s, stream, bytes, size, &segment, &offset), 0);
}

static void append_17_mib(void)
{
	for (unsigned i = 0; i < 17; i++)
		append(SEGMENT_STREAM_SHARED, MIB);
}

START_TEST(test_a_failed_write_back_fails_every_sync_from_then_on)
{
	fail_write_back = EIO;
	append_17_mib();
	ck_assert_int_eq(fail_write_back, 0);
	ck_assert_int_eq(segments_sync(s, false), -EIO);
	ck_assert_int_eq(segments_sync(s, false), -EIO);
	ck_assert_int_eq(segments_sync(s, true), -EIO);
}
END_TEST

START_TEST(test_a_file_system_that_cannot_write_back_does_no_harm)
{
	fail_write_back = ENOSYS;
	append_17_mib();
	ck_assert_int_eq(segments_sync(s, false), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/segment");
	TCase *t = tcase_create("segment");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_a_failed_write_back_fails_every_sync_from_then_on);
	tcase_add_test(t, test_a_file_system_that_cannot_write_back_does_no_harm);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
