/*
 * test-repair.c - `check --quarantine` and a disk that gives errors: what does
 * not unseal, and does not when it is read again, is mended or set aside; what
 * the disk gives no answer for, or gives another time, is not touched.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lifecycle/tree.h"
#include "tests/lifecycle/fixture.h"

#define MIB (UINT64_C(1) << 20)

/* What cannot be read: an item, or a body from `from` up to `to`. */
struct spoil {
	struct key key; /* size 0: none */
	uint64_t body, from, to;
	int error;
	bool content; /* of the item: only its content */
	unsigned times; /* so often; UINT_MAX: always */
};

static int spoil_read(void *data, const uint8_t *key, size_t key_size, bool attributes_only,
		      uint64_t body, uint64_t offset)
{
	struct spoil *s = data;
	bool hit = key ? key_size == s->key.size && !memcmp(key, s->key.bytes, key_size) &&
				   !(s->content && attributes_only) :
			 s->body && body == s->body && offset >= s->from && offset < s->to;

	if (!hit || !s->times)
		return 0;
	s->times -= s->times != UINT_MAX;
	return s->error;
}

static struct check_result quarantine(struct fixture *f, struct spoil *spoil)
{
	struct store_faults faults = { .read = spoil_read, .data = spoil };
	struct quarantine_hooks hooks = { 0 };
	struct check_result before, after;

	store_memory_inject(f->store, spoil ? &faults : &(struct store_faults){ 0 });
	ck_assert_int_eq(lifecycle_quarantine(f->store, &hooks, &before, &after), 0);
	store_memory_inject(f->store, &(struct store_faults){ 0 });
	return after;
}

static struct key key_of(struct fixture *f, uint64_t directory, const char *name)
{
	struct key key;

	key_act(store_codec(f->store), directory, name, &key);
	return key;
}

/* 3 MiB that no item has: a letter for each. */
static uint64_t make_orphan(struct fixture *f)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	static uint8_t bytes[MIB];
	uint64_t body;

	ck_assert_int_eq(store_new_id(f->store, &body), 0);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned part = 0; part < 16; part++) {
			memset(bytes, 'a' + (int)i, sizeof(bytes));
			transaction_body_write(&t, body, i * MIB + part * (MIB / 16), bytes, MIB / 16);
			ck_assert_int_eq(transaction_commit(&t, f->store, STORE_GROWING, NULL), 0);
			transaction_reset(&t);
		}
	return body;
}

static char byte_at(struct fixture *f, uint64_t body, uint64_t offset)
{
	char byte = 0;

	ck_assert_int_eq(store_body_read(f->store, body, offset, &byte, 1), 0);
	return byte;
}

/* The file of an orphan in /lost+found, which has all of it. */
static void assert_found(struct fixture *f, uint64_t body)
{
	struct item aside = live_item(f, KEY_ID_ROOT, QUARANTINE_NAME), item;
	char name[32];

	snprintf(name, sizeof(name), "body-%llu", (unsigned long long)body);
	item = live_item(f, aside.id, name);
	ck_assert_uint_eq(item.body, body);
	ck_assert_uint_eq(item.size, 3 * MIB);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(byte_at(f, body, i * MIB + 77), 'a' + (int)i);
}

FIXTURE_TEST_ONCE(body_that_the_disk_gives_an_error_for_is_kept)
{
	uint64_t body = make_orphan(f);
	struct spoil spoil = { .body = body, .to = UINT64_MAX, .error = -EIO, .times = UINT_MAX };

	ck_assert_uint_eq(quarantine(f, &spoil).problems, 1);
	ck_assert(!is_live(f, KEY_ID_ROOT, QUARANTINE_NAME));
	ck_assert_int_eq(byte_at(f, body, 0), 'a');
	ck_assert_uint_eq(quarantine(f, NULL).problems, 0);
	assert_found(f, body);
}

FIXTURE_TEST_ONCE(body_of_which_a_part_is_damaged_is_kept_whole)
{
	static const uint64_t places[][2] = { { 0, MIB }, { MIB, 2 * MIB }, { 2 * MIB, 3 * MIB } };

	for (unsigned i = 0; i < 3; i++) {
		uint64_t body = make_orphan(f);
		struct spoil spoil = { .body = body,
				       .from = places[i][0],
				       .to = places[i][1],
				       .error = -EBADMSG,
				       .times = UINT_MAX };
		struct check_result after = quarantine(f, &spoil);

		ck_assert_uint_eq(after.problems, 0);
		ck_assert_uint_eq(after.set_aside, 1);
		assert_found(f, body);
	}
}

FIXTURE_TEST_ONCE(file_whose_content_was_damaged_once_stays)
{
	struct spoil spoil = { .error = -EBADMSG, .content = true };

	make_file(f, KEY_ID_ROOT, "small", "text");
	spoil.key = key_of(f, KEY_ID_ROOT, "small");
	spoil.times = 1;
	ck_assert_uint_eq(quarantine(f, &spoil).problems, 0);
	assert_text(f, KEY_ID_ROOT, "small", "text");
	/* Damaged for good it goes, as it must. */
	spoil.times = UINT_MAX;
	quarantine(f, &spoil);
	ck_assert(!is_live(f, KEY_ID_ROOT, "small"));
}

FIXTURE_TEST_ONCE(names_of_a_file_that_was_damaged_once_stay)
{
	struct spoil spoil = { .error = -EBADMSG, .times = 1 };
	uint64_t id = make_file(f, KEY_ID_ROOT, "one", "text");

	make_link(f, KEY_ID_ROOT, "one", KEY_ID_ROOT, "two");
	key_link(id, &spoil.key);
	ck_assert_uint_eq(quarantine(f, &spoil).problems, 0);
	ck_assert(is_live(f, KEY_ID_ROOT, "one"));
	ck_assert(is_live(f, KEY_ID_ROOT, "two"));
}

FIXTURE_TEST_ONCE(file_that_the_disk_gives_an_error_for_once_is_not_moved)
{
	struct spoil spoil = { .to = UINT64_MAX, .error = -EIO, .times = 1 };

	make_big_file(f, KEY_ID_ROOT, "big", 100000);
	spoil.body = live_item(f, KEY_ID_ROOT, "big").body;
	ck_assert_uint_eq(quarantine(f, &spoil).problems, 0);
	ck_assert(is_live(f, KEY_ID_ROOT, "big"));
	/* Unreadable for good it is moved, and nothing of it is lost. */
	spoil.times = UINT_MAX;
	ck_assert_uint_eq(quarantine(f, &spoil).set_aside, 1);
	ck_assert(!is_live(f, KEY_ID_ROOT, "big"));
	ck_assert_uint_eq(live_item(f, live_item(f, KEY_ID_ROOT, QUARANTINE_NAME).id, "big").body,
			  spoil.body);
}

/* A record of the database that the disk gives no answer for when it is asked: it is not dropped, nor made anew. */
static void assert_left(struct fixture *f, const struct key *key)
{
	struct spoil spoil = { .key = *key, .error = -EIO, .times = 1 };
	struct store_value before, after;
	struct check_result left;

	ck_assert_int_eq(store_get(f->store, key, false, &before), 0);
	left = quarantine(f, &spoil);
	ck_assert_uint_eq(left.problems, 1);
	ck_assert_uint_eq(left.unreadable, 1);
	ck_assert_int_eq(store_get(f->store, key, false, &after), 0);
	ck_assert_uint_eq(after.version, before.version);
	store_value_release(&before);
	store_value_release(&after);
}

/* A file whose extended attributes stand apart. */
static uint64_t make_file_with_xattrs(struct fixture *f)
{
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT, .name = "file" };
	_cleanup_(buffer_release) struct buffer xattrs = { 0 };
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value stored = { 0 };
	static uint8_t value[2000];
	struct item item;

	make_file(f, KEY_ID_ROOT, "file", "text");
	ck_assert_int_eq(record_get_item(f->store, &at, false, &stored, &item), 0);
	ck_assert_int_eq(record_xattr_edit(NULL, 0, "user.a", value, sizeof(value), &xattrs), 0);
	item.flags |= ITEM_XATTR_APART;
	transaction_put_item(&t, f->store, &at, &item, item.version);
	transaction_put_xattrs(&t, item.id, xattrs.bytes, xattrs.size);
	ck_assert_int_eq(transaction_commit(&t, f->store, STORE_GROWING, NULL), 0);
	return item.id;
}

FIXTURE_TEST_ONCE(records_that_the_disk_gives_an_error_for_are_left_alone)
{
	uint64_t id = make_file_with_xattrs(f), directory = make_directory(f, KEY_ID_ROOT, "d");
	struct place at;
	struct key key;

	make_file(f, directory, "gone", "text");
	fixture_pass(f, HOUR);
	rm(f, directory, "gone");
	at = shown_place(f, directory, "gone");
	key_xattr(id, &key);
	assert_left(f, &key);
	key_guard(directory, &key);
	assert_left(f, &key);
	key_trash(at.seq, &key);
	assert_left(f, &key);
	key_meta(ITEM_COUNTERS, &key);
	assert_left(f, &key);
}

int main(void)
{
	Suite *suite = suite_create("repair");
	TCase *tcase = tcase_create("repair");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, body_that_the_disk_gives_an_error_for_is_kept);
	tcase_add_test(tcase, body_of_which_a_part_is_damaged_is_kept_whole);
	tcase_add_test(tcase, file_whose_content_was_damaged_once_stays);
	tcase_add_test(tcase, names_of_a_file_that_was_damaged_once_stay);
	tcase_add_test(tcase, file_that_the_disk_gives_an_error_for_once_is_not_moved);
	tcase_add_test(tcase, records_that_the_disk_gives_an_error_for_are_left_alone);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
