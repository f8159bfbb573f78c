/*
 * test-scrub.c - a pass of the scrub gets to its end whatever the disk does, and
 * goes on where it was.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"
#include "store/engine.h"
#include "store/store-private.h"
#include "tests/lifecycle/fixture.h"

#define FILES 300
#define LINES 16

/* Items of one directory that the disk gives an error for: names from `from` up to, not including, `to`. */
static struct disk {
	struct key from, to;
	unsigned asked; /* how often it was tried */
	char lines[LINES][300];
	unsigned told;
	unsigned verified; /* how often the structure was */
} disk;

static int spoil_read(void *data, const uint8_t *key, size_t key_size, bool attributes_only,
		      uint64_t body, uint64_t offset)
{
	struct key at = { .size = (uint16_t)key_size };

	if (!key)
		return 0;
	memcpy(at.bytes, key, key_size);
	if (key_compare(&at, &disk.from) < 0 || key_compare(&at, &disk.to) >= 0)
		return 0;
	disk.asked++;
	return -EIO;
}

static void hear(void *data, const char *line)
{
	if (disk.told < LINES)
		snprintf(disk.lines[disk.told], sizeof(disk.lines[0]), "%s", line);
	disk.told++;
}

static uint64_t make_directory_of(struct fixture *f, const char *directory)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, directory);
	char name[16];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%03u", i);
		make_file(f, d, name, "text");
	}
	return d;
}

static struct scrub_status pass(struct fixture *f)
{
	static uint8_t block[SCRUB_BLOCK];
	struct scrub_status status;

	memset(disk.lines, 0, sizeof(disk.lines));
	disk.told = 0;
	f->life->hooks.damaged = hear;
	f->life->scrub.now = true; /* it hurries */
	ck_assert_int_eq(scrub_pass(f->life, block), 0);
	f->life->scrub.now = false;
	lifecycle_scrub_status(f->life, &status);
	return status;
}

static void spoil(struct fixture *f, bool spoilt)
{
	struct store_faults faults = { .read = spoilt ? spoil_read : NULL };

	disk.asked = 0;
	store_memory_inject(f->store, &faults);
}

FIXTURE_TEST_ONCE(unreadable_place_is_told_and_passed_by)
{
	uint64_t d, all, unreadable = 0;
	struct key key;

	make_directory_of(f, "before");
	d = make_directory_of(f, "between");
	make_directory_of(f, "behind");
	all = pass(f).items;
	ck_assert_uint_gt(all, 3 * FILES);
	/* A stretch of it, by keys: of sealed names nobody knows which. */
	key_act(store_codec(f->store), d, "f100", &disk.from);
	key_act(store_codec(f->store), d, "f131", &disk.to);
	if (key_compare(&disk.from, &disk.to) > 0) {
		key = disk.from;
		disk.from = disk.to;
		disk.to = key;
	}
	for (unsigned i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%03u", i);
		key_act(store_codec(f->store), d, name, &key);
		unreadable += key_compare(&key, &disk.from) >= 0 && key_compare(&key, &disk.to) < 0;
	}
	f->life->scrub.status.items = 0;
	f->life->scrub.at.size = 0;
	spoil(f, true);
	ck_assert_uint_eq(pass(f).items, all - unreadable);
	ck_assert_uint_lt(disk.asked, 100);
	spoil(f, false);
	ck_assert_uint_eq(disk.told, 1);
	ck_assert_ptr_nonnull(strstr(disk.lines[0], "/between/"));
	ck_assert_ptr_nonnull(strstr(disk.lines[0], "cannot be read"));
}

FIXTURE_TEST_ONCE(unreadable_end_ends_the_pass)
{
	make_directory_of(f, "d");
	disk.from = (struct key){ .size = 1, .bytes = { 1 } };
	disk.to = (struct key){ .size = 1, .bytes = { 0xff } };
	spoil(f, true);
	pass(f);
	spoil(f, false);
	ck_assert_uint_eq(disk.told, 1);
}

FIXTURE_TEST_ONCE(pass_goes_on_after_another_mount)
{
	static const struct key none;
	uint64_t d = make_directory_of(f, "d");
	uint64_t all = pass(f).items;
	struct scrub *s = &f->life->scrub;

	key_act(store_codec(f->store), d, "f150", &s->at);
	scrub_note(f->life);
	s->at = none;
	ck_assert_int_eq(lifecycle_scrub_start(f->life), 0);
	lifecycle_scrub_stop(f->life);
	ck_assert_uint_gt(s->at.size, 0);
	s->stop = false;
	s->status.items = 0;
	ck_assert_uint_lt(pass(f).items, all);
	ck_assert_uint_gt(s->status.items, 0);
}

static int count_verify(struct engine *e, bool (*stop)(void *data, bool held), void *data,
			const char **ret_wrong)
{
	disk.verified++;
	*ret_wrong = "a page is not what it was";
	return 0;
}

/* What was verified in a mount before says nothing of the structure as it is. */
FIXTURE_TEST_ONCE(structure_is_verified_in_each_mount_and_each_pass)
{
	uint64_t d = make_directory_of(f, "d");
	const struct engine_ops *before = f->store->engine->ops;
	struct engine_ops ops = *before;
	struct scrub *s = &f->life->scrub;

	disk.verified = 0;
	ops.verify = count_verify;
	f->store->engine->ops = &ops;
	key_act(store_codec(f->store), d, "f001", &s->at);
	s->status.found = 0;
	ck_assert_uint_eq(pass(f).found, 1);
	ck_assert_ptr_nonnull(strstr(disk.lines[0], "(database): a page is not what it was"));
	ck_assert_uint_eq(disk.verified, 1);
	pass(f);
	ck_assert_uint_eq(disk.verified, 2);
	f->store->engine->ops = before;
}

int main(void)
{
	Suite *suite = suite_create("scrub");
	TCase *tcase = tcase_create("scrub");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, unreadable_place_is_told_and_passed_by);
	tcase_add_test(tcase, unreadable_end_ends_the_pass);
	tcase_add_test(tcase, pass_goes_on_after_another_mount);
	tcase_add_test(tcase, structure_is_verified_in_each_mount_and_each_pass);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
