/*
 * test-local-mend.c - records of the engine and of the store that do not unseal:
 * numbers are never given out again, and space that was lost track of is found.
 *
 * The linker puts __wrap_fallocate64 in front of the system call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/lmdb-index.h"
#include "store/record-kind.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define CHUNK 32768
#define BODY 100

static char path[4200];
static uint8_t bytes[8 * CHUNK];
static bool keeps_holes; /* punching fails */

int __real_fallocate64(int fd, int mode, off64_t offset, off64_t length);
int __wrap_fallocate64(int fd, int mode, off64_t offset, off64_t length);

int __wrap_fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
	if (keeps_holes && mode & FALLOC_FL_PUNCH_HOLE) {
		errno = EIO;
		return -1;
	}
	return __real_fallocate64(fd, mode, offset, length);
}

static int try_open(const struct store_open_options *options, struct store_open_report *report,
		    struct store **ret_store)
{
	*report = (struct store_open_report){ 0 };
	return store_open(path, options, report, ret_store);
}

static struct store *open_with(const struct store_open_options *options)
{
	struct store_open_report report;
	struct store *s;
	int r = try_open(options, &report, &s);

	ck_assert_msg(r == 0, "store_open: %d %s", r, report.text);
	return s;
}

static struct store *open_store(void)
{
	return open_with(&(struct store_open_options){ 0 });
}

static void make_store(void)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
	memset(bytes, 7, sizeof(bytes));
}

/* Flips the last bit of the value of one key, as the index has it. */
static void spoil(const struct key *key)
{
	_cleanup_(buffer_release) struct buffer value = { 0 };
	_cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct index *x;

	ck_assert_int_eq(index_open(dir, false, 0, &x), 0);
	ck_assert_int_eq(index_write_begin(x), 0);
	ck_assert_int_eq(index_write_get(x, key->bytes, key->size, &value), 0);
	value.bytes[value.size - 1] ^= 1;
	ck_assert_int_eq(index_put(x, key->bytes, key->size, value.bytes, value.size), 0);
	ck_assert_int_eq(index_write_commit(x), 0);
	index_close(x);
}

static void transact(struct store *s, const struct store_op *op)
{
	ck_assert_int_eq(store_transact(s, STORE_RELEASING, op, 1, NULL), 0);
}

static void write_body(struct store *s)
{
	struct store_op op = {
		.kind = STORE_BODY_WRITE, .body = BODY, .bytes = bytes, .length = sizeof(bytes)
	};

	transact(s, &op);
}

static void free_body(struct store *s)
{
	transact(s, &(struct store_op){ .kind = STORE_BODY_FREE, .body = BODY });
}

/* The record `name` is not believed by anybody, and made again above what was given out. */
static void expect_mended(const char *name, const char *words)
{
	struct store_open_report report;
	uint64_t id, seq, new_id, new_seq;
	struct store *s;
	struct key key;

	make_store();
	s = open_store();
	ck_assert_int_eq(store_new_id(s, &id), 0);
	ck_assert_int_eq(store_new_seq(s, &seq), 0);
	key_act(store_codec(s), id, "name", &key);
	transact(s, &(struct store_op){ .kind = STORE_PUT, .key = key, .attrs = bytes, .attrs_size = 1 });
	ck_assert_int_eq(store_close(s), 0);
	key_meta(name, &key);
	spoil(&key);
	ck_assert_int_eq(try_open(&(struct store_open_options){ 0 }, &report, &s), STORE_DAMAGED);
	ck_assert_msg(strstr(report.text, words) && strstr(report.text, "--quarantine"), "%s",
		      report.text);
	s = open_with(&(struct store_open_options){ .read_only = true });
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(try_open(&(struct store_open_options){ .mend = true }, &report, &s), 0);
	ck_assert(report.mended);
	ck_assert_msg(strstr(report.text, words) != NULL, "%s", report.text);
	ck_assert_int_eq(store_close(s), 0);
	s = open_store();
	ck_assert_int_eq(store_new_id(s, &new_id), 0);
	ck_assert_int_eq(store_new_seq(s, &new_seq), 0);
	ck_assert_uint_gt(new_id, id);
	ck_assert_uint_gt(new_seq, seq);
	ck_assert_int_eq(store_close(s), 0);
}

START_TEST(test_a_damaged_record_of_ids_is_made_again_when_asked)
{
	expect_mended(RECORD_META_IDS, "ids");
}
END_TEST

START_TEST(test_a_damaged_record_of_the_clock_is_made_again_when_asked)
{
	expect_mended(RECORD_META_CLOCK, "the clock");
}
END_TEST

static uint64_t unused(struct store *s, bool give_back)
{
	uint64_t n = 0;

	ck_assert_int_eq(store_unused(s, give_back, &n), 0);
	return n;
}

START_TEST(test_what_a_damaged_group_named_is_found)
{
	struct store *s;
	struct key key;

	make_store();
	s = open_store();
	write_body(s);
	ck_assert_uint_eq(unused(s, true), 0);
	ck_assert_int_eq(store_close(s), 0);
	key_body(BODY, 0, &key);
	spoil(&key);
	s = open_store();
	/* Nobody knows what the group names: nothing is said, and nothing given back. */
	ck_assert_uint_eq(unused(s, true), 0);
	free_body(s);
	ck_assert_int_eq(store_checkpoint(s), 0);
	ck_assert_uint_eq(unused(s, false), sizeof(bytes));
	ck_assert_uint_eq(unused(s, true), sizeof(bytes));
	ck_assert_uint_eq(unused(s, false), 0);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_what_a_damaged_record_of_freed_space_named_is_found)
{
	struct store_query query = { 0 };
	struct store_page page;
	struct store *s;
	struct key key;

	make_store();
	s = open_store();
	/* Two bodies in a segment, so that the one is punched and not unlinked. */
	write_body(s);
	transact(s, &(struct store_op){
			    .kind = STORE_BODY_WRITE, .body = BODY + 1, .bytes = bytes, .length = CHUNK });
	ck_assert_int_eq(store_checkpoint(s), 0);
	keeps_holes = true;
	free_body(s);
	ck_assert_int_eq(store_close(s), 0);
	key_free_run(1, 0, &key);
	spoil(&key);
	s = open_store();
	keeps_holes = false;
	ck_assert_uint_eq(unused(s, true), sizeof(bytes));
	ck_assert_uint_eq(unused(s, false), 0);
	key_range_free(&query.range);
	ck_assert_int_eq(store_query(s, &query, &page), 0);
	ck_assert_uint_eq(page.count, 0);
	store_page_release(&page);
	ck_assert_int_eq(store_body_read(s, BODY + 1, 0, bytes, CHUNK), 0);
	ck_assert_int_eq(bytes[CHUNK - 1], 7);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/local-mend");
	TCase *t = tcase_create("local-mend");

	tcase_add_test(t, test_a_damaged_record_of_ids_is_made_again_when_asked);
	tcase_add_test(t, test_a_damaged_record_of_the_clock_is_made_again_when_asked);
	tcase_add_test(t, test_what_a_damaged_group_named_is_found);
	tcase_add_test(t, test_what_a_damaged_record_of_freed_space_named_is_found);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
