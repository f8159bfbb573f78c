/*
 * test-local-errors.c - a disk that cannot read a part of a segment: only the
 * chunk that lies there suffers.
 *
 * The linker puts __wrap_pread64 in front of the system call.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define CHUNK 32768

static bool unreadable; /* all that lies in segments */
static char path[4200];
static uint8_t bytes[3 * CHUNK];

ssize_t __real_pread64(int fd, void *to, size_t size, off64_t offset);
ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t offset);

ssize_t __wrap_pread64(int fd, void *to, size_t size, off64_t offset)
{
	char link[64], target[4300];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = 0;
	if (unreadable && strstr(target, "/segments/")) {
		errno = EIO;
		return -1;
	}
	return __real_pread64(fd, to, size, offset);
}

static struct store *open_store(void)
{
	struct store_open_report report = { 0 };
	struct store *s;
	int r = store_open(path, &(struct store_open_options){ 0 }, &report, &s);

	ck_assert_msg(r == 0, "store_open: %d %s", r, report.text);
	return s;
}

static void write_body(struct store *s, uint64_t offset, size_t size)
{
	struct store_op op = {
		.kind = STORE_BODY_WRITE, .body = 100, .offset = offset, .bytes = bytes, .length = size
	};

	ck_assert_int_eq(store_transact(s, STORE_GROWING, &op, 1, NULL), 0);
}

START_TEST(test_a_patch_above_an_unreadable_sector_stops_nothing)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store_status status;
	uint8_t read[CHUNK];
	struct store *s;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
	memset(bytes, 7, sizeof(bytes));
	s = open_store();
	write_body(s, 0, sizeof(bytes));
	ck_assert_int_eq(store_checkpoint(s), 0);
	write_body(s, CHUNK + 100, 100);
	unreadable = true;
	ck_assert_int_eq(store_checkpoint(s), 0);
	store_status(s, &status);
	ck_assert(!status.read_only);
	ck_assert_ptr_nonnull(status.problem);
	write_body(s, 2 * CHUNK, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
	unreadable = false;
	s = open_store();
	ck_assert_int_eq(store_body_read(s, 100, 0, read, CHUNK), 0);
	ck_assert_mem_eq(read, bytes, CHUNK);
	/* The patch is lost: what is below it must not come back, though the disk has got over it. */
	ck_assert_int_eq(store_body_read(s, 100, CHUNK, read, CHUNK), -EBADMSG);
	ck_assert_int_eq(store_body_read(s, 100, 2 * CHUNK, read, CHUNK), 0);
	ck_assert_mem_eq(read, bytes, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/local-errors");
	TCase *t = tcase_create("local-errors");

	tcase_add_test(t, test_a_patch_above_an_unreadable_sector_stops_nothing);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
