/* test-usage.c - what a store and a directory hold, and why. */
#include <string.h>

#include "tests/lifecycle/fixture.h"

static struct usage usage_of(struct fixture *f, uint64_t directory, int64_t within_ns)
{
	struct usage u;

	ck_assert_int_eq(lifecycle_usage(f->life, directory, lifecycle_now_ns(f->life) + within_ns,
					 NULL, NULL, &u),
			 0);
	return u;
}

#define assert_amount(a, i, b)                  \
	do {                                    \
		ck_assert_int_eq((a).items, i); \
		ck_assert_int_eq((a).bytes, b); \
	} while (0)

/* The store by counters and rows, the directory by walking: all but the directory itself. */
static void assert_same(struct fixture *f, uint64_t d)
{
	struct usage whole = usage_of(f, KEY_ID_ROOT, DAY), part = usage_of(f, d, DAY);

	part.live.items++;
	ck_assert_mem_eq(&whole, &part, sizeof(whole));
}

FIXTURE_TEST(what_is_in_the_trash_is_told_by_why_it_is_there)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), e = make_directory(f, d, "e");
	struct place at;
	struct usage u;

	make_big_file(f, d, "live", 1000);
	make_big_file(f, d, "removed", 2000);
	make_big_file(f, d, "old", 4000);
	make_big_file(f, d, "new", 8000);
	make_big_file(f, d, "purged", 16000);
	make_big_file(f, e, "soon", 32000);
	set_policy(f, e, "user.ddbfs.retention", "2h");
	fixture_pass(f, HOUR);
	rm(f, d, "removed");
	rm(f, d, "purged");
	rm(f, e, "soon");
	ck_ok(f, rename_item(f, d, "new", d, "old"));
	at = shown_place(f, d, "purged");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	u = usage_of(f, KEY_ID_ROOT, DAY);
	assert_amount(u.live, 4, 9000);
	assert_amount(u.removed, 2, 34000);
	assert_amount(u.replaced, 1, 4000);
	assert_amount(u.purged, 1, 16000);
	assert_amount(u.trash, 4, 54000);
	assert_amount(u.reclaimable, 4, 54000);
	assert_amount(u.held, 0, 0);
	assert_amount(u.due, 2, 48000);
	assert_same(f, d);
	u = usage_of(f, e, DAY);
	assert_amount(u.live, 0, 0);
	assert_amount(u.trash, 1, 32000);
	set_policy(f, e, "user.ddbfs.hold", "yes");
	u = usage_of(f, d, DAY);
	assert_amount(u.reclaimable, 3, 22000);
	assert_amount(u.held, 1, 32000);
	assert_amount(u.due, 1, 16000);
	assert_same(f, d);
}

FIXTURE_TEST(what_lies_in_a_discarded_directory_is_trash)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), e = make_directory(f, d, "e");
	uint64_t in = make_directory(f, e, "in");
	struct usage u;

	make_big_file(f, d, "live", 1000);
	make_big_file(f, in, "a", 2000);
	make_big_file(f, in, "gone", 4000);
	make_big_file(f, in, "shared", 6000);
	make_link(f, in, "shared", d, "too");
	fixture_pass(f, HOUR);
	rm(f, in, "gone");
	fixture_pass(f, HOUR);
	discard(f, d, "e");
	ck_assert_int_gt(counter(f, COUNTER_LIVE_ITEMS), 3);
	u = usage_of(f, KEY_ID_ROOT, DAY);
	assert_amount(u.live, 3, 1000 + 3000);
	assert_amount(u.trash, 5, 2000 + 4000 + 3000);
	assert_amount(u.removed, 5, 9000);
	assert_same(f, d);
	restore(f, d, "e", d, "e");
	u = usage_of(f, KEY_ID_ROOT, DAY);
	assert_amount(u.trash, 1, 4000);
	assert_same(f, d);
}

FIXTURE_TEST(what_went_with_a_directory_is_due_with_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), e = make_directory(f, d, "e");

	make_big_file(f, e, "f", 2000);
	set_policy(f, e, "user.ddbfs.retention", "1h");
	set_policy(f, d, "user.ddbfs.retention", "3d");
	fixture_pass(f, HOUR);
	rm(f, e, "f");
	assert_amount(usage_of(f, d, DAY).due, 1, 2000);
	fixture_pass(f, 2 * SECOND);
	set_policy(f, e, "user.ddbfs.retention", "3d");
	rm_rf(f, d, "e");
	assert_amount(usage_of(f, d, DAY).due, 0, 0);
	assert_amount(usage_of(f, d, 4 * DAY).due, 2, 2000);
	assert_same(f, d);
	ck_assert_int_eq(lifecycle_usage(f->life, e, 0, NULL, NULL, &(struct usage){ 0 }), -EROFS);
}

int main(void)
{
	Suite *suite = suite_create("usage");
	TCase *tcase = tcase_create("usage");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, what_is_in_the_trash_is_told_by_why_it_is_there);
	tcase_add_test(tcase, what_lies_in_a_discarded_directory_is_trash);
	tcase_add_test(tcase, what_went_with_a_directory_is_due_with_it);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
