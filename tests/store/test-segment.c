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
#include <unistd.h>

#include "store/segment.h"
#include "tests/lib/test.h"

#define MIB (1 << 20)

static int fail_write_back; /* errno of the next sync_file_range */
static atomic_int syncs;
static int synced_fd, written_back_fd; /* the last ones */
/* Called before a sync, a write, an unlink: what somebody else does at that moment. */
static void (*before_sync)(void);
static void (*before_write)(void);
static void (*before_allocation)(void);
static unsigned allocations;
static bool count_only;
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
int __real_fallocate64(int fd, int mode, off64_t at, off64_t size);
int __wrap_fallocate64(int fd, int mode, off64_t at, off64_t size);
int __real_unlinkat(int fd, const char *name, int flags);
int __wrap_unlinkat(int fd, const char *name, int flags);

int __wrap_fdatasync(int fd)
{
	syncs++;
	synced_fd = fd;
	if (before_sync)
		before_sync();
	return __real_fdatasync(fd);
}

int __wrap_sync_file_range(int fd, off64_t at, off64_t size, unsigned flags)
{
	(void)at, (void)size, (void)flags;
	written_back_fd = fd;
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

/* Promises of hundreds of MiB need no disk. */
int __wrap_fallocate64(int fd, int mode, off64_t at, off64_t size)
{
	void (*now)(void) = before_allocation;

	before_allocation = NULL;
	if (now)
		now();
	allocations++;
	return count_only ? 0 : __real_fallocate64(fd, mode, at, size);
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

/* The kernel tells each description of a lost write once: a write-back must not hear it in a sync's place. */
START_TEST(test_a_write_back_does_not_take_an_error_from_a_sync)
{
	append_17_mib();
	ck_assert_int_eq(segments_sync(s, false), 0);
	ck_assert_int_gt(written_back_fd, 0);
	ck_assert_int_gt(synced_fd, 0);
	ck_assert_int_ne(written_back_fd, synced_fd);
}
END_TEST

START_TEST(test_a_file_system_that_cannot_write_back_does_no_harm)
{
	fail_write_back = ENOSYS;
	append_17_mib();
	ck_assert_int_eq(segments_sync(s, false), 0);
}
END_TEST

static void append_more(void)
{
	append(SEGMENT_STREAM_SHARED, 4096);
}

static void retire_and_punch(void)
{
	segments_retire_all(s);
	ck_assert_int_eq(segments_punch(s, 1, 0, 16 * MIB), 0);
}

static bool exists(const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, 0) == 0;
}

START_TEST(test_a_sync_ends_beside_a_stream_that_does_not)
{
	append(SEGMENT_STREAM_SHARED, 4096);
	before_sync = append_more;
	syncs = 0;
	ck_assert_int_eq(segments_sync(s, false), 0);
	before_sync = NULL;
	ck_assert_int_eq(syncs, 1);
	/* What came meanwhile is synced by the next one, once. */
	ck_assert_int_eq(segments_sync(s, false), 0);
	ck_assert_int_eq(segments_sync(s, false), 0);
	ck_assert_int_eq(syncs, 2);
}
END_TEST

/* The chunk before it, all that the file has, is given back while a chunk is on its way. */
START_TEST(test_a_segment_stays_while_it_is_appended_to)
{
	uint8_t read[4096];

	for (unsigned i = 0; i < 16; i++)
		append(SEGMENT_STREAM_SHARED, MIB);
	/* The last MiB that was allocated ahead. */
	before_write = retire_and_punch;
	append(SEGMENT_STREAM_SHARED, MIB);
	ck_assert_ptr_null(before_write);
	ck_assert_uint_eq(segment, 1);
	ck_assert_uint_eq(offset, 16 * MIB);
	ck_assert(exists("segments/00000001"));
	ck_assert_int_eq(segments_read(s, segment, offset, read, sizeof(read)), 0);
	ck_assert_mem_eq(read, bytes, sizeof(read));
}
END_TEST

START_TEST(test_a_segment_goes_with_its_last_chunk)
{
	append(SEGMENT_STREAM_SHARED, MIB);
	append(SEGMENT_STREAM_SHARED, MIB);
	segments_retire_all(s);
	ck_assert_int_eq(segments_punch(s, 1, MIB, MIB), 0);
	ck_assert(exists("segments/00000001"));
	fail_unlink = EIO;
	ck_assert_int_eq(segments_punch(s, 1, 0, MIB), -EIO);
	fail_unlink = 0;
	ck_assert_int_eq(segments_punch(s, 1, 0, MIB), 0);
	ck_assert(!exists("segments/00000001"));
	ck_assert_int_eq(segments_punch(s, 1, 0, MIB), 0);
}
END_TEST

/* One that is short, as the last of a file mostly is. */
START_TEST(test_a_short_last_chunk_keeps_nothing_allocated)
{
	struct stat st;

	append(SEGMENT_STREAM_SHARED, 4096);
	append(SEGMENT_STREAM_SHARED, 1000);
	segments_retire_all(s);
	ck_assert_int_eq(fstatat(dir_fd, "segments/00000001", &st, 0), 0);
	ck_assert_int_le(st.st_blocks, 2 * 4096 / 512);
	ck_assert_int_eq(segments_punch(s, 1, 0, 4096), 0);
	ck_assert_int_eq(segments_punch(s, 1, 4096, 4096), 0);
	ck_assert(!exists("segments/00000001"));
}
END_TEST

START_TEST(test_what_a_stream_takes_back_is_used_again)
{
	append(SEGMENT_STREAM_MERGE, 4096);
	append(SEGMENT_STREAM_MERGE, 4096);
	append(SEGMENT_STREAM_MERGE, MIB);
	ck_assert(!segments_rewind(s, SEGMENT_STREAM_MERGE, 2, 0));
	ck_assert(segments_rewind(s, SEGMENT_STREAM_MERGE, 1, 4096));
	append(SEGMENT_STREAM_MERGE, 4096);
	ck_assert_uint_eq(segment, 1);
	ck_assert_uint_eq(offset, 4096);
	segments_retire_all(s);
	ck_assert_int_eq(segments_punch(s, 1, 0, 8192), 0);
	ck_assert(!exists("segments/00000001"));
}
END_TEST

/* Where the new segment finds no room, the stream stays with the old one and what was allocated there. */
START_TEST(test_a_stream_changes_its_segment_only_with_its_room)
{
	struct segment_end ends[SEGMENT_STREAMS];

	append(SEGMENT_STREAM_MERGE, 4096);
	ck_assert_int_lt(segments_renew(s, SEGMENT_STREAM_MERGE, UINT64_C(1) << 55), 0);
	ck_assert(segments_active(s, 1));
	ck_assert(!exists("segments/00000002"));
	ck_assert_int_eq(segments_renew(s, SEGMENT_STREAM_MERGE, 3 * MIB), 0);
	ck_assert(!segments_active(s, 1));
	ck_assert_uint_eq(segments_ends(s, ends), 1);
	ck_assert_uint_eq(ends[0].segment, 3);
	ck_assert_uint_eq(ends[0].end, 0);
}
END_TEST

/* A generation of small writes all over a big file promises chunk after chunk, beyond a segment's size. */
START_TEST(test_promises_grow_in_steps)
{
	count_only = true;
	for (uint64_t chunks = 1; chunks <= 16000; chunks++)
		ck_assert_int_eq(segments_reserve(s, SEGMENT_STREAM_MERGE, chunks * BODY_CHUNK_SIZE), 0);
	count_only = false;
	ck_assert_uint_le(allocations, 40);
}
END_TEST

static void append_and_retire(void)
{
	append(SEGMENT_STREAM_SHARED, 4096);
	segments_retire_all(s);
}

/* The lock is not held while blocks are allocated: others append, and the stream turns. */
START_TEST(test_blocks_are_allocated_beside_others)
{
	struct stat st;

	append(SEGMENT_STREAM_SHARED, MIB - 4096);
	before_allocation = append_and_retire;
	append(SEGMENT_STREAM_SHARED, MIB);
	ck_assert_ptr_null(before_allocation);
	ck_assert_uint_eq(segment, 2);
	ck_assert_uint_eq(offset, 0);
	/* What was allocated for the old segment was given back. */
	ck_assert_int_eq(fstatat(dir_fd, "segments/00000001", &st, 0), 0);
	ck_assert_int_eq(st.st_size, MIB);
	ck_assert_int_le(st.st_blocks * 512, MIB + 65536);
}
END_TEST

static void make_file(const char *name)
{
	int fd = openat(dir_fd, name, O_CREAT | O_WRONLY, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

START_TEST(test_numbers_that_are_taken_are_passed_over)
{
	make_file("segments/00000001");
	make_file("segments/ffffffff");
	append(SEGMENT_STREAM_SHARED, 4096);
	ck_assert_uint_eq(segment, 2);
	segments_close(s);
	ck_assert_int_eq(segments_open(dir_fd, false, 1, &s), 0);
	append(SEGMENT_STREAM_SHARED, 4096);
	ck_assert_uint_eq(segment, 3);
}
END_TEST

static void *sync_merges(void *data)
{
	(void)data;
	return (void *)(intptr_t)segments_sync(s, true);
}

static atomic_bool held, let_go;

static void hold(void)
{
	held = true;
	while (!let_go)
		usleep(1000);
}

/* A sync that somebody else is still busy with must not make the transactions' look done. */
START_TEST(test_syncs_of_merges_and_of_transactions_are_apart)
{
	pthread_t thread;
	void *r;

	append(SEGMENT_STREAM_MERGE, 4096);
	append(SEGMENT_STREAM_SHARED, 4096);
	before_sync = hold;
	ck_assert_int_eq(pthread_create(&thread, NULL, sync_merges, NULL), 0);
	while (!held)
		usleep(1000);
	before_sync = NULL;
	syncs = 0;
	ck_assert_int_eq(segments_sync(s, false), 0);
	ck_assert_int_eq(syncs, 1);
	let_go = true;
	ck_assert_int_eq(pthread_join(thread, &r), 0);
	ck_assert_ptr_null(r);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/segment");
	TCase *t = tcase_create("segment");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_a_failed_write_back_fails_every_sync_from_then_on);
	tcase_add_test(t, test_a_write_back_does_not_take_an_error_from_a_sync);
	tcase_add_test(t, test_a_file_system_that_cannot_write_back_does_no_harm);
	tcase_add_test(t, test_a_sync_ends_beside_a_stream_that_does_not);
	tcase_add_test(t, test_a_segment_stays_while_it_is_appended_to);
	tcase_add_test(t, test_a_segment_goes_with_its_last_chunk);
	tcase_add_test(t, test_a_short_last_chunk_keeps_nothing_allocated);
	tcase_add_test(t, test_what_a_stream_takes_back_is_used_again);
	tcase_add_test(t, test_a_stream_changes_its_segment_only_with_its_room);
	tcase_add_test(t, test_numbers_that_are_taken_are_passed_over);
	tcase_add_test(t, test_promises_grow_in_steps);
	tcase_add_test(t, test_blocks_are_allocated_beside_others);
	tcase_add_test(t, test_syncs_of_merges_and_of_transactions_are_apart);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
