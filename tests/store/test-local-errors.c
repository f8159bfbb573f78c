/*
 * test-local-errors.c - a disk that cannot read a part of a file: what was
 * acknowledged is kept, and no log is cut short for it.
 *
 * The linker puts __wrap_pread64 in front of the system call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define CHUNK 32768

static const char *unreadable; /* part of the names of files whose reads fail, or NULL */
static unsigned failures; /* so many of them */
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
	if (unreadable && failures && strstr(target, unreadable)) {
		failures--;
		errno = EIO;
		return -1;
	}
	return __real_pread64(fd, to, size, offset);
}

static void read_fails(const char *name, unsigned times)
{
	unreadable = name;
	failures = times;
}

static int try_open(bool read_only, bool discard, struct store_open_report *report, struct store **ret_store)
{
	struct store_open_options options = { .read_only = read_only, .discard_journal = discard };

	*report = (struct store_open_report){ 0 };
	return store_open(path, &options, report, ret_store);
}

static struct store *open_store(void)
{
	struct store_open_report report;
	struct store *s;
	int r = try_open(false, false, &report, &s);

	ck_assert_msg(r == 0, "store_open: %d %s", r, report.text);
	return s;
}

static void expect_refusal(const char *words)
{
	struct store_open_report report;
	struct store *s;

	ck_assert_int_eq(try_open(false, false, &report, &s), STORE_DAMAGED);
	ck_assert_msg(strstr(report.text, words) != NULL, "%s", report.text);
}

static void write_body(struct store *s, uint64_t offset, size_t size)
{
	struct store_op op = {
		.kind = STORE_BODY_WRITE, .body = 100, .offset = offset, .bytes = bytes, .length = size
	};

	ck_assert_int_eq(store_transact(s, STORE_GROWING, &op, 1, NULL), 0);
}

static void expect_bytes(struct store *s, uint64_t offset, uint8_t byte, size_t size)
{
	uint8_t read[CHUNK], expected[CHUNK];

	memset(expected, byte, size);
	ck_assert_int_eq(store_body_read(s, 100, offset, read, size), 0);
	ck_assert_mem_eq(read, expected, size);
}

#define PATCH (CHUNK + 100)

/* A body of three chunks in the index, and 100 bytes above the second that are acknowledged and in the journal. */
static struct store *patched_store(void)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store *s;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
	memset(bytes, 7, sizeof(bytes));
	s = open_store();
	write_body(s, 0, sizeof(bytes));
	ck_assert_int_eq(store_checkpoint(s), 0);
	memset(bytes, 8, 100);
	write_body(s, PATCH, 100);
	memset(bytes, 7, 100);
	return s;
}

START_TEST(test_a_patch_above_an_unreadable_sector_is_kept)
{
	struct store *s = patched_store();
	struct store_status status;
	uint8_t read[CHUNK];

	read_fails("/segments/", UINT32_MAX);
	ck_assert_int_eq(store_checkpoint(s), -EIO);
	store_status(s, &status);
	ck_assert(!status.read_only);
	ck_assert_ptr_nonnull(status.problem);
	/* Readers get what was written, or an error; others go on. */
	expect_bytes(s, PATCH, 8, 100);
	ck_assert_int_eq(store_body_read(s, 100, CHUNK, read, CHUNK), -EIO);
	write_body(s, 2 * CHUNK, CHUNK);
	ck_assert_int_eq(store_sync(s), 0);
	read_fails(NULL, 0);
	ck_assert_int_eq(store_checkpoint(s), 0);
	store_status(s, &status);
	ck_assert_ptr_null(status.problem);
	expect_bytes(s, PATCH, 8, 100);
	expect_bytes(s, CHUNK, 7, 100);
	ck_assert_int_eq(store_close(s), 0);
	s = open_store();
	expect_bytes(s, PATCH, 8, 100);
	expect_bytes(s, 0, 7, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_a_patch_above_an_unreadable_sector_is_kept_over_openings)
{
	struct store *s = patched_store();
	struct store_open_report report;

	read_fails("/segments/", UINT32_MAX);
	ck_assert_int_eq(store_close(s), -EIO);
	expect_refusal("read-only");
	ck_assert_int_eq(try_open(true, false, &report, &s), 0);
	expect_bytes(s, PATCH, 8, 100);
	ck_assert_int_eq(store_close(s), 0);
	expect_refusal("read-only");
	read_fails(NULL, 0);
	s = open_store();
	expect_bytes(s, PATCH, 8, 100);
	expect_bytes(s, CHUNK, 7, 100);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_removing_the_file_lets_checkpoints_go_on)
{
	struct store *s = patched_store();
	struct store_op op = { .kind = STORE_BODY_FREE, .body = 100 };
	struct store_status status;

	read_fails("/segments/", UINT32_MAX);
	ck_assert_int_eq(store_checkpoint(s), -EIO);
	ck_assert_int_eq(store_transact(s, STORE_RELEASING, &op, 1, NULL), 0);
	ck_assert_int_eq(store_checkpoint(s), 0);
	store_status(s, &status);
	ck_assert_ptr_null(status.problem);
	ck_assert_int_eq(store_close(s), 0);
	read_fails(NULL, 0);
	s = open_store();
	expect_bytes(s, PATCH, 0, 100);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_a_patch_is_given_up_only_when_that_was_asked_for)
{
	struct store *s = patched_store();
	struct store_open_report report;
	uint8_t read[CHUNK];

	read_fails("/segments/", UINT32_MAX);
	ck_assert_int_eq(store_close(s), -EIO);
	ck_assert_int_eq(try_open(false, true, &report, &s), 0);
	ck_assert_int_eq(store_close(s), 0);
	read_fails(NULL, 0);
	s = open_store();
	expect_bytes(s, 0, 7, CHUNK);
	expect_bytes(s, 2 * CHUNK, 7, CHUNK);
	/* What is below it must not come back, though the disk has got over it. */
	ck_assert_int_eq(store_body_read(s, 100, CHUNK, read, CHUNK), -EBADMSG);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

static void remove_store(void)
{
	char words[4300];

	snprintf(words, sizeof(words), "rm -rf %s", path);
	ck_assert_int_eq(system(words), 0);
}

/* Two transactions that no sync made durable, the first with data in a segment; the process is gone. */
static void leave_unsynced(void)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	pid_t child;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
	memset(bytes, 7, sizeof(bytes));
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		struct store *s = open_store();

		write_body(s, 0, CHUNK);
		write_body(s, 2 * CHUNK, 100);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

START_TEST(test_an_error_of_the_disk_does_not_end_the_log)
{
	struct store_open_report report;
	struct store *s;

	leave_unsynced();
	/* One that passes is none. */
	read_fails("/segments/", 1);
	s = open_store();
	expect_bytes(s, 0, 7, CHUNK);
	expect_bytes(s, 2 * CHUNK, 7, 100);
	ck_assert_int_eq(store_close(s), 0);
	remove_store();
	leave_unsynced();
	read_fails("/segments/", UINT32_MAX);
	expect_refusal("--discard-journal");
	read_fails(NULL, 0);
	s = open_store();
	expect_bytes(s, 0, 7, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
	remove_store();
	leave_unsynced();
	read_fails("/segments/", UINT32_MAX);
	ck_assert_int_eq(try_open(false, true, &report, &s), 0);
	ck_assert(report.discarded);
	expect_bytes(s, 2 * CHUNK, 0, 100);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_a_journal_that_cannot_be_read_is_none_that_never_began)
{
	struct store *s;

	leave_unsynced();
	read_fails("/journal.", 1);
	s = open_store();
	expect_bytes(s, 0, 7, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
	for (unsigned i = 0; i < 2; i++) {
		read_fails(i ? "/journal.1" : "/journal.0", UINT32_MAX);
		expect_refusal("cannot be read from the disk");
	}
	read_fails(NULL, 0);
	s = open_store();
	expect_bytes(s, 0, 7, CHUNK);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_a_sync_of_a_store_that_was_removed_fails)
{
	struct store *s = patched_store();
	struct store_status status;

	ck_assert_int_eq(store_sync(s), 0);
	remove_store();
	write_body(s, 0, 100);
	ck_assert_int_eq(store_sync(s), -EIO);
	store_status(s, &status);
	ck_assert(status.read_only);
	ck_assert_ptr_nonnull(strstr(status.problem, "removed"));
	ck_assert_int_eq(store_close(s), -EIO);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/local-errors");
	TCase *t = tcase_create("local-errors");

	tcase_add_test(t, test_a_patch_above_an_unreadable_sector_is_kept);
	tcase_add_test(t, test_a_patch_above_an_unreadable_sector_is_kept_over_openings);
	tcase_add_test(t, test_removing_the_file_lets_checkpoints_go_on);
	tcase_add_test(t, test_a_patch_is_given_up_only_when_that_was_asked_for);
	tcase_add_test(t, test_an_error_of_the_disk_does_not_end_the_log);
	tcase_add_test(t, test_a_journal_that_cannot_be_read_is_none_that_never_began);
	tcase_add_test(t, test_a_sync_of_a_store_that_was_removed_fails);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
