/*
 * test-store.c - stores in directories: making, locking, opening, keys. What
 * an engine does inside is the engine suite's.
 */
#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/lock.h"
#include "store/store-private.h"
#include "store/util.h"
#include "tests/lib/test.h"

static char path[4200];
static const struct store_create_options quick = { .kdf_level = 3, .journal_bytes = 1 << 20 };
static const struct store_open_options plainly = { .map_bytes = 64 << 20 };

static const char *in_directory(const char *name)
{
	static char full[4300];

	snprintf(full, sizeof(full), "%s/%s", path, name);
	return full;
}

static void choose_path(void)
{
	snprintf(path, sizeof(path), "%s/store", test_directory());
}

static void make(void)
{
	choose_path();
	ck_assert_int_eq(store_create(path, &quick), 0);
}

static int try_open(const struct store_open_options *options, struct store_open_report *report)
{
	struct store *s = NULL;
	int result = store_open(path, options, report, &s);

	if (!result)
		ck_assert_int_eq(store_close(s), 0);
	return result;
}

/* Changes when anything in the directory does: names, sizes, contents' times. */
static uint64_t state_of_directory(void)
{
	char command[4400];
	uint64_t sum = 5381;
	FILE *f;
	int c;

	snprintf(command, sizeof(command), "find '%s' -printf '%%P %%s %%T@ %%m\\n' | sort", path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	while ((c = fgetc(f)) != EOF)
		sum = sum * 33 + (uint64_t)c;
	pclose(f);
	return sum;
}

/* ---- making ------------------------------------------------------------- */

START_TEST(test_a_new_store_opens)
{
	struct store_open_report report;
	struct stat st;

	make();
	ck_assert_int_eq(try_open(&plainly, &report), 0);
	ck_assert_int_eq(try_open(&plainly, NULL), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(in_directory("header"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(test_an_empty_directory_becomes_a_store)
{
	choose_path();
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(store_create(path, &quick), 0);
	ck_assert_int_eq(try_open(&plainly, NULL), 0);
}
END_TEST

START_TEST(test_nothing_is_made_over_something)
{
	uint64_t before;
	int fd;

	make();
	before = state_of_directory();
	ck_assert_int_eq(store_create(path, &quick), -EEXIST);
	ck_assert_uint_eq(state_of_directory(), before);
	snprintf(path, sizeof(path), "%s/other", test_directory());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	fd = open(in_directory("precious"), O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	before = state_of_directory();
	ck_assert_int_eq(store_create(path, &quick), -ENOTEMPTY);
	ck_assert_uint_eq(state_of_directory(), before);
	ck_assert_int_eq(store_create(in_directory("precious"), &quick), -ENOTDIR);
	ck_assert_int_eq(store_create(in_directory("no/such"), &quick), -ENOENT);
}
END_TEST

START_TEST(test_a_store_that_cannot_be_made_leaves_nothing)
{
	struct store_create_options bad = quick;

	choose_path();
	bad.trash_name = "a/b";
	ck_assert_int_eq(store_create(path, &bad), -EINVAL);
	ck_assert_int_eq(access(path, F_OK), -1);
	bad = quick;
	bad.journal_bytes = 1000;
	ck_assert_int_eq(store_create(path, &bad), -EINVAL);
	bad = quick;
	bad.credentials.key_file = "/does/not/exist";
	ck_assert_int_eq(store_create(path, &bad), -ENOENT);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(store_create(path, &bad), -ENOENT);
	ck_assert_int_eq(rmdir(path), 0); /* it is there, and empty as before */
}
END_TEST

START_TEST(test_the_trash_has_its_name)
{
	struct store_create_options options = quick;
	struct store *s;

	choose_path();
	options.trash_name = ".removed";
	ck_assert_int_eq(store_create(path, &options), 0);
	ck_assert_int_eq(store_open(path, &plainly, NULL, &s), 0);
	ck_assert_str_eq(store_trash_name(s), ".removed");
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_names_are_sealed_with_a_passphrase_by_default)
{
	struct store_create_options options = quick;
	struct store_open_options with = plainly;
	struct store *s;

	make();
	ck_assert_int_eq(store_open(path, &plainly, NULL, &s), 0);
	ck_assert(!store_codec(s)->sealed_names);
	ck_assert_int_eq(store_close(s), 0);
	snprintf(path, sizeof(path), "%s/secret", test_directory());
	options.credentials.passphrase = with.credentials.passphrase = "correct horse";
	ck_assert_int_eq(store_create(path, &options), 0);
	ck_assert_int_eq(store_open(path, &with, NULL, &s), 0);
	ck_assert(store_codec(s)->sealed_names);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* ---- opening ------------------------------------------------------------ */

START_TEST(test_what_is_no_store_is_said_to_be_none)
{
	struct store_open_report report;
	int fd;

	choose_path();
	ck_assert_int_eq(try_open(&plainly, &report), STORE_NOT_A_STORE);
	ck_assert_uint_gt(strlen(report.text), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_NOT_A_STORE);
	ck_assert_int_eq(rmdir(path), 0); /* nothing was written */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_NOT_A_STORE);
}
END_TEST

START_TEST(test_an_unfinished_store_is_none)
{
	char from[4400];

	make();
	snprintf(from, sizeof(from), "%s", in_directory("header"));
	ck_assert_int_eq(rename(from, in_directory("header.new")), 0);
	ck_assert_int_eq(try_open(&plainly, NULL), STORE_NOT_A_STORE);
}
END_TEST

START_TEST(test_a_wrong_key_writes_nothing)
{
	struct store_create_options options = quick;
	struct store_open_options with = plainly;
	struct store_open_report report;
	uint64_t before;

	choose_path();
	options.credentials.passphrase = "correct horse";
	ck_assert_int_eq(store_create(path, &options), 0);
	before = state_of_directory();
	with.credentials.passphrase = "wrong horse";
	ck_assert_int_eq(try_open(&with, &report), STORE_WRONG_KEY);
	with.credentials.passphrase = NULL;
	ck_assert_int_eq(try_open(&with, &report), STORE_WRONG_KEY);
	ck_assert_uint_eq(state_of_directory(), before);
	with.credentials.passphrase = "correct horse";
	ck_assert_int_eq(try_open(&with, &report), 0);
}
END_TEST

START_TEST(test_a_store_is_open_once)
{
	struct store_open_report report;
	struct store *s;
	int holder;

	make();
	ck_assert_int_eq(store_holder(path, &holder), 0);
	ck_assert_int_eq(store_open(path, &plainly, NULL, &s), 0);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_IN_USE);
	ck_assert_int_eq(report.holder_pid, getpid());
	ck_assert_int_eq(store_holder(path, &holder), 1);
	ck_assert_int_eq(holder, getpid());
	ck_assert_ptr_nonnull(strstr(report.text, "has the store open"));
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(store_holder(path, &holder), 0);
	ck_assert_int_eq(store_holder("/does/not/exist", &holder), -ENOENT);
	ck_assert_int_eq(try_open(&plainly, &report), 0);
}
END_TEST

/* A process that dies lets go, whatever it left in the lock file. */
START_TEST(test_the_dead_hold_no_lock)
{
	struct store_open_report report;
	struct store *s;
	int status, ready[2];
	pid_t child;
	char c;

	make();
	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	if (!child) {
		if (store_open(path, &plainly, NULL, &s) == 0)
			(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_IN_USE);
	ck_assert_int_eq(report.holder_pid, child);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(try_open(&plainly, &report), 0);
}
END_TEST

START_TEST(test_a_lost_lock_file_is_made_again)
{
	struct store_open_report report;
	struct store *s;

	make();
	ck_assert_int_eq(unlink(in_directory(LOCK_FILE)), 0);
	ck_assert_int_eq(store_open(path, &plainly, NULL, &s), 0);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_IN_USE);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_reading_only_changes_nothing)
{
	struct store_open_options reading = plainly;
	struct store *s;
	uint64_t before, id, version;
	struct key key;
	struct store_op op = { .kind = STORE_PUT, .attrs = (const uint8_t *)"x", .attrs_size = 1 };

	make();
	ck_assert_int_eq(try_open(&plainly, NULL), 0);
	before = state_of_directory();
	reading.read_only = true;
	ck_assert_int_eq(store_open(path, &reading, NULL, &s), 0);
	key_act(store_codec(s), 20, "a", &op.key);
	ck_assert_int_eq(store_transact(s, STORE_GROWING, &op, 1, &version), -EROFS);
	ck_assert_int_lt(store_new_id(s, &id), 0);
	ck_assert_int_eq(store_scan(s, NULL, &key), 0);
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_uint_eq(state_of_directory(), before);
}
END_TEST

START_TEST(test_damaged_settings_are_damage)
{
	struct store_op op = { .kind = STORE_PUT, .attrs = (const uint8_t *)"junk", .attrs_size = 4 };
	struct store_open_report report;
	struct store *s;

	make();
	ck_assert_int_eq(store_open(path, &plainly, NULL, &s), 0);
	key_meta("clock", &op.key);
	ck_assert_int_eq(store_transact(s, STORE_GROWING, &op, 1, NULL), 0);
	s->seqs.bound = s->seqs.last; /* closing must not mend it */
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(try_open(&plainly, &report), STORE_DAMAGED);
	ck_assert_ptr_nonnull(strstr(report.text, "is damaged: mount the store read-only"));
}
END_TEST

START_TEST(test_a_held_clock_goes_by_the_boot_clock)
{
	struct test_clock now;
	uint64_t before, seq;
	struct store *s;
	int64_t real_ns, boot_ns;

	test_clock_init(&now);
	ck_assert_int_eq(store_open_memory(&now.clock, STORE_NAMES_ORDERED, &s), 0);
	ck_assert_int_eq(store_new_seq(s, &before), 0);
	real_ns = now.realtime_ns;
	boot_ns = now.boottime_ns;
	test_clock_step(&now, 1000 * CLOCK_SECOND_NS);
	test_clock_advance(&now, 5 * CLOCK_SECOND_NS);
	store_hold_clock(s, true, real_ns, boot_ns);
	ck_assert_int_eq(store_now_ns(s), real_ns + 5 * CLOCK_SECOND_NS);
	ck_assert_int_eq(store_new_seq(s, &seq), 0);
	ck_assert_uint_gt(seq, before);
	ck_assert_uint_lt(seq, (uint64_t)real_ns + 6 * CLOCK_SECOND_NS);
	store_hold_clock(s, false, 0, 0);
	ck_assert_int_eq(store_now_ns(s), now.realtime_ns);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* Takes numbers until it is killed, telling each after it has it. */
static void take_until_killed(int out)
{
	struct store *s;
	uint64_t numbers[2];

	if (store_open(path, &plainly, NULL, &s))
		_exit(1);
	while (!store_new_id(s, &numbers[0]) && !store_new_seq(s, &numbers[1]))
		if (write(out, numbers, sizeof(numbers)) != sizeof(numbers))
			break;
	_exit(1);
}

START_TEST(test_numbers_stay_unique_when_the_process_is_killed)
{
	uint64_t numbers[2], last[2] = { 0, 0 };
	int out[2], status;

	make();
	for (int round = 0; round < 8; round++) {
		pid_t child;

		ck_assert_int_eq(pipe(out), 0);
		child = fork();
		if (!child)
			take_until_killed(out[1]);
		close(out[1]);
		for (int i = 0; i < 700 * round + 1; i++) {
			if (read(out[0], numbers, sizeof(numbers)) != sizeof(numbers) ||
			    numbers[0] <= last[0] || numbers[1] <= last[1])
				ck_abort_msg("round %d, number %d", round, i);
			memcpy(last, numbers, sizeof(last));
		}
		kill(child, SIGKILL);
		/* What it told before it died counts too. */
		while (read(out[0], numbers, sizeof(numbers)) == sizeof(numbers))
			memcpy(last, numbers, sizeof(last));
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		close(out[0]);
	}
}
END_TEST

/* ---- keys --------------------------------------------------------------- */

START_TEST(test_the_key_can_be_changed)
{
	struct store_credentials none = { 0 }, first = { .passphrase = "first" },
				 second = { .passphrase = "second" };
	struct store_open_options with = plainly;
	struct store *s;

	make();
	ck_assert_int_eq(store_change_key(path, &none, &first, false, NULL), 0);
	ck_assert_int_eq(try_open(&plainly, NULL), 0);
	ck_assert_int_eq(store_change_key(path, &first, &second, true, NULL), 0);
	ck_assert_int_ne(try_open(&plainly, NULL), 0);
	with.credentials = first;
	ck_assert_int_eq(try_open(&with, NULL), STORE_WRONG_KEY);
	with.credentials = second;
	ck_assert_int_eq(store_open(path, &with, NULL, &s), 0);
	ck_assert_int_eq(store_change_key(path, &second, &first, false, NULL), STORE_IN_USE);
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(store_change_key(path, &first, &second, false, NULL), STORE_WRONG_KEY);
}
END_TEST

START_TEST(test_closing_nothing_is_fine)
{
	struct store_value value = { 0 };
	struct store_page page = { 0 };

	ck_assert_int_eq(store_close(NULL), 0);
	store_value_release(NULL);
	store_value_release(&value);
	store_page_release(NULL);
	store_page_release(&page);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/store");
	TCase *t = tcase_create("store");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, test_a_new_store_opens);
	tcase_add_test(t, test_an_empty_directory_becomes_a_store);
	tcase_add_test(t, test_nothing_is_made_over_something);
	tcase_add_test(t, test_a_store_that_cannot_be_made_leaves_nothing);
	tcase_add_test(t, test_the_trash_has_its_name);
	tcase_add_test(t, test_names_are_sealed_with_a_passphrase_by_default);
	tcase_add_test(t, test_what_is_no_store_is_said_to_be_none);
	tcase_add_test(t, test_an_unfinished_store_is_none);
	tcase_add_test(t, test_a_wrong_key_writes_nothing);
	tcase_add_test(t, test_a_store_is_open_once);
	tcase_add_test(t, test_the_dead_hold_no_lock);
	tcase_add_test(t, test_a_lost_lock_file_is_made_again);
	tcase_add_test(t, test_reading_only_changes_nothing);
	tcase_add_test(t, test_damaged_settings_are_damage);
	tcase_add_test(t, test_a_held_clock_goes_by_the_boot_clock);
	tcase_add_test(t, test_numbers_stay_unique_when_the_process_is_killed);
	tcase_add_test(t, test_the_key_can_be_changed);
	tcase_add_test(t, test_closing_nothing_is_fine);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
