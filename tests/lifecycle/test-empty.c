/* test-empty.c - emptying the trash by hand. */
#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

FIXTURE_TEST(emptying_takes_what_is_there_below_one_directory)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	struct empty_options options = { .directory = a, .dry_run = true };
	struct empty_result result;

	make_file(f, b, "x", "12345");
	make_file(f, a, "y", "123");
	make_file(f, KEY_ID_ROOT, "z", "1");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "z");
	rm(f, a, "y");
	rm_rf(f, a, "b");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.entries, 2);
	ck_assert_uint_eq(result.bytes, 8);
	ck_assert_uint_eq(count_shown(f, a), 2);
	options.dry_run = false;
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(count_shown(f, a), 0);
	ck_assert(is_shown(f, KEY_ID_ROOT, "z"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 4);
	options.now = true;
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 1);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_USER), 3);
}

FIXTURE_TEST(emptying_spares_the_young)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true };
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "old", "");
	make_file(f, KEY_ID_ROOT, "young", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "old");
	fixture_pass(f, DAY);
	options.deleted_before_ns = lifecycle_now_ns(f->life);
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "young");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert(is_shown(f, KEY_ID_ROOT, "young"));
	ck_assert(!is_shown(f, KEY_ID_ROOT, "old"));
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
}

struct deleter {
	struct fixture *f;
	bool done;
};

static bool delete_meanwhile(void *data, uint64_t done)
{
	struct deleter *d = data;

	if (!d->done)
		rm(d->f, KEY_ID_ROOT, "later");
	d->done = true;
	return false;
}

FIXTURE_TEST_ONCE(what_is_deleted_while_emptying_survives)
{
	struct deleter deleter = { .f = f };
	struct empty_options options = {
		.directory = KEY_ID_ROOT, .now = true, .progress = delete_meanwhile, .data = &deleter
	};
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "a", "");
	make_file(f, KEY_ID_ROOT, "b", "");
	make_file(f, KEY_ID_ROOT, "later", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	rm(f, KEY_ID_ROOT, "b");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.entries, 2);
	ck_assert(is_shown(f, KEY_ID_ROOT, "later"));
}

static int refuse_all(void *data, const struct place *at, const struct item *item)
{
	return -EACCES;
}

FIXTURE_TEST(emptying_asks_for_rights)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true, .allowed = refuse_all };
	struct empty_result result;

	make_file(f, KEY_ID_ROOT, "a", "");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	ck_ok(f, lifecycle_empty(f->life, &f->actor, &options, &result));
	ck_assert_uint_eq(result.refused, 1);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
}

int main(void)
{
	Suite *suite = suite_create("empty");
	TCase *tcase = tcase_create("empty");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, emptying_takes_what_is_there_below_one_directory);
	tcase_add_test(tcase, emptying_spares_the_young);
	tcase_add_test(tcase, what_is_deleted_while_emptying_survives);
	tcase_add_test(tcase, emptying_asks_for_rights);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
