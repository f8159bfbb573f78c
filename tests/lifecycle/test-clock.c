/* test-clock.c - what a clock that jumps does to what is due. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

#define YEAR (365 * DAY)

FIXTURE_TEST(jump_of_a_year_hides_but_destroys_nothing)
{
	struct sweep_result swept;
	struct entry e;
	int64_t jump;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	sweep(f, NULL);
	test_clock_step(&f->clock, YEAR);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "a"));
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	ck_assert(lifecycle_clock_suspect(f->life, &jump));
	assert_about(jump, YEAR);
	act_as(f, 1000, 101, "rm");
	rm(f, KEY_ID_ROOT, "b");
	ck_assert(is_shown(f, KEY_ID_ROOT, "b"));
	test_clock_step(&f->clock, -YEAR);
	fixture_pass(f, MINUTE);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
	ck_assert(!lifecycle_clock_suspect(f->life, &jump));
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &e), 0);
	ck_assert_int_lt(llabs((long long)((int64_t)e.at.seq - lifecycle_now_ns(f->life))), 2 * MINUTE);
	entry_release(&e);
}

FIXTURE_TEST(confirmed_jump_destroys)
{
	struct sweep_result swept;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	test_clock_step(&f->clock, YEAR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_ok(f, lifecycle_clock_accept(f->life));
	sweep(f, &swept);
	ck_assert(!swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(steady_day_confirms_a_jump)
{
	struct sweep_result swept;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	test_clock_step(&f->clock, YEAR);
	sweep(f, &swept);
	fixture_pass(f, 23 * HOUR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	test_clock_step(&f->clock, 2 * HOUR); /* not steady: from the start again */
	sweep(f, &swept);
	fixture_pass(f, 23 * HOUR);
	sweep(f, &swept);
	ck_assert(swept.paused);
	fixture_pass(f, 2 * HOUR);
	sweep(f, &swept);
	ck_assert(!swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(jump_between_mounts_of_one_boot_is_noticed)
{
	struct sweep_result swept;
	int64_t jump;

	make_file(f, KEY_ID_ROOT, "a", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_reopen(f);
	test_clock_step(&f->clock, YEAR);
	fixture_reopen(f);
	ck_assert(lifecycle_clock_suspect(f->life, &jump));
	fixture_reopen(f);
	sweep(f, &swept);
	ck_assert(swept.paused);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
}

FIXTURE_TEST(step_back_destroys_nothing_early)
{
	struct entry first, second;
	int64_t deleted_ns;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "2d");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	deleted_ns = lifecycle_now_ns(f->life);
	test_clock_step(&f->clock, -DAY);
	rm(f, KEY_ID_ROOT, "b");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "a", &first), 0);
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &second), 0);
	ck_assert_uint_gt(second.at.seq, first.at.seq);
	assert_about(second.expires_ns - deleted_ns, 2 * DAY);
	entry_release(&first);
	entry_release(&second);
	fixture_pass(f, 2 * DAY - HOUR);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 2);
}

FIXTURE_TEST(clock_of_1970_does_not_date_deletions)
{
	struct entry e;

	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	fixture_reopen(f);
	f->clock.realtime_ns = 5 * SECOND;
	fixture_reopen(f);
	rm(f, KEY_ID_ROOT, "b");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "b", &e), 0);
	ck_assert_uint_gt(e.at.seq, UINT64_C(1700000000) * CLOCK_SECOND_NS);
	entry_release(&e);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
}

int main(void)
{
	Suite *suite = suite_create("clock");
	TCase *tcase = tcase_create("clock");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, jump_of_a_year_hides_but_destroys_nothing);
	tcase_add_test(tcase, confirmed_jump_destroys);
	tcase_add_test(tcase, steady_day_confirms_a_jump);
	tcase_add_test(tcase, jump_between_mounts_of_one_boot_is_noticed);
	tcase_add_test(tcase, step_back_destroys_nothing_early);
	tcase_add_test(tcase, clock_of_1970_does_not_date_deletions);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
