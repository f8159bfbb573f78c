/*
 * test-spin.c - spinning is given up when it finds nothing or stands in the way,
 * and taken up again.
 */
#include "fs/spin.h"
#include "store/clock.h"
#include "tests/lib/test.h"

/* As on a machine with processors enough. */
static struct spin spinning(void)
{
	struct spin s;

	spin_init(&s, true);
	s.enabled = true;
	return s;
}

START_TEST(stays_off_unless_wanted)
{
	struct spin s;

	spin_init(&s, false);
	ck_assert(!spin_allowed(&s, 0));
}
END_TEST

START_TEST(ends_after_misses_and_probes_now_and_then)
{
	struct spin s = spinning();
	unsigned spun = 0;

	while (spin_allowed(&s, 0) && spun < 100) {
		spin_ended(&s, false);
		spun++;
	}
	ck_assert_uint_lt(spun, 20);
	spun = 0;
	for (int i = 0; i < 1000; i++)
		if (spin_allowed(&s, 0)) {
			spin_ended(&s, false);
			spun++;
		}
	ck_assert_uint_gt(spun, 10);
	ck_assert_uint_lt(spun, 100);
}
END_TEST

START_TEST(comes_back_when_it_finds_something_again)
{
	struct spin s = spinning();
	unsigned spun = 0;

	for (int i = 0; i < 100; i++)
		if (spin_allowed(&s, 0))
			spin_ended(&s, false);
	for (int i = 0; i < 100; i++)
		if (spin_allowed(&s, 0)) {
			spin_ended(&s, true);
			spun++;
		}
	ck_assert_uint_gt(spun, 80);
}
END_TEST

START_TEST(pauses_when_it_was_made_to_wait)
{
	struct spin s = spinning();

	spin_looked(&s, 0, 1000);
	ck_assert(spin_allowed(&s, 2000));
	spin_looked(&s, 2000, 2000 + CLOCK_SECOND_NS / 100);
	ck_assert(!spin_allowed(&s, 3000 + CLOCK_SECOND_NS / 100));
	ck_assert(spin_allowed(&s, CLOCK_SECOND_NS));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/spin");
	TCase *tests = tcase_create("spin");

	tcase_add_test(tests, stays_off_unless_wanted);
	tcase_add_test(tests, ends_after_misses_and_probes_now_and_then);
	tcase_add_test(tests, comes_back_when_it_finds_something_again);
	tcase_add_test(tests, pauses_when_it_was_made_to_wait);
	suite_add_tcase(suite, tests);
	return test_main(suite);
}
