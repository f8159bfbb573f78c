/*
 * test-within.c - what is remembered of the directories around a place follows
 * every change of them, and spares walking up to the root at each step.
 */
#include "tests/lifecycle/fixture.h"

/* root/a/b/c, with a file in each of the last two. */
struct chain {
	uint64_t a, b, c;
};

static struct chain make_chain(struct fixture *f)
{
	struct chain t;

	t.a = make_directory(f, KEY_ID_ROOT, "a");
	t.b = make_directory(f, t.a, "b");
	t.c = make_directory(f, t.b, "c");
	make_file(f, t.b, "in-b", "1");
	make_file(f, t.c, "in-c", "2");
	fixture_pass(f, HOUR); /* none of them is a temporary name any more */
	return t;
}

/* Asked twice: what was found first is what is remembered. */
static void assert_shown(struct fixture *f, const struct chain *t, bool shown)
{
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(is_shown(f, t->c, "in-c"), shown);
		ck_assert_int_eq(is_shown(f, t->b, "in-b"), shown);
		ck_assert_int_eq(is_shown(f, t->b, "c"), shown);
	}
}

static void purge(struct fixture *f, uint64_t directory, const char *shown, bool recursive)
{
	struct place at = shown_place(f, directory, shown);

	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, recursive));
}

static void undo(struct fixture *f)
{
	struct undo_options options = { .taken = UNDO_REFUSE };
	struct undo_result result;

	ck_ok(f, lifecycle_undo(f->life, &f->actor, &options, &result));
}

FIXTURE_TEST(what_shows_follows_each_directory_above)
{
	struct chain t = make_chain(f);

	assert_shown(f, &t, false); /* live */
	discard(f, KEY_ID_ROOT, "a");
	assert_shown(f, &t, true);
	restore(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "a2");
	assert_shown(f, &t, false);
	discard(f, t.a, "b");
	assert_shown(f, &t, true);
	discard(f, KEY_ID_ROOT, "a2");
	assert_shown(f, &t, true);
	purge(f, KEY_ID_ROOT, "a2", true);
	assert_shown(f, &t, false);
	undo(f);
	assert_shown(f, &t, true);
}

/* No transaction says so: the time does. */
FIXTURE_TEST(what_shows_ends_with_the_first_directory_that_expires)
{
	struct chain t = make_chain(f);

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1d");
	discard(f, t.a, "b");
	fixture_pass(f, HOUR);
	assert_shown(f, &t, true);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "9d");
	discard(f, KEY_ID_ROOT, "a");
	assert_shown(f, &t, true);
	fixture_pass(f, DAY - HOUR + MINUTE);
	assert_shown(f, &t, false);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
}

/* As rm -r in the trash goes: from below, each directory once it shows nothing. */
FIXTURE_TEST(purge_of_what_shows_nothing_hides_that_directory)
{
	struct chain t = make_chain(f);

	rm_rf(f, KEY_ID_ROOT, "a");
	assert_shown(f, &t, true);
	purge(f, t.c, "in-c", false);
	ck_assert(is_shown(f, t.b, "c"));
	purge(f, t.b, "c", false);
	ck_assert(!is_shown(f, t.b, "c"));
	ck_assert(!is_shown(f, t.c, "in-c"));
	ck_assert(is_shown(f, t.b, "in-b"));
	purge(f, t.b, "in-b", false);
	purge(f, t.a, "b", false);
	purge(f, KEY_ID_ROOT, "a", false);
	assert_shown(f, &t, false);
	undo(f);
	assert_shown(f, &t, true);
}

FIXTURE_TEST(what_a_directory_went_with_is_what_it_is_restored_with)
{
	struct chain t = make_chain(f);
	int64_t expires_ns;
	bool visible;
	struct place at;

	rm(f, t.c, "in-c");
	fixture_pass(f, HOUR);
	act_as(f, 1000, 77, "rm");
	rm_rf(f, KEY_ID_ROOT, "a");
	at = shown_place(f, t.c, "in-c");
	ck_assert_int_eq(lifecycle_visibility(f->life, &at, &expires_ns, &visible), 0);
	ck_assert(visible);
	restore(f, KEY_ID_ROOT, "a", KEY_ID_ROOT, "a");
	ck_assert(is_live(f, t.b, "in-b"));
	ck_assert(is_shown(f, t.c, "in-c"));
	ck_assert(!is_shown(f, t.b, "in-b"));
}

static uint64_t reads(struct fixture *f)
{
	struct store_status status;

	store_status(f->store, &status);
	return status.gets + status.queries + status.rows;
}

#define LEVELS 400

/* Reads of a look-up at the last of so many levels, after the one above it was looked up. */
FIXTURE_TEST_ONCE(a_step_in_the_trash_reads_no_more_further_down)
{
	uint64_t directory = make_directory(f, KEY_ID_ROOT, "d"), near = 0, before, far = 0;

	for (int level = 0; level < LEVELS; level++)
		directory = make_directory(f, directory, "d");
	discard(f, KEY_ID_ROOT, "d");
	directory = shown_place(f, KEY_ID_ROOT, "d").directory;
	for (int level = 0; level < LEVELS; level++) {
		struct entry e = { 0 };

		before = reads(f);
		ck_assert_int_eq(lifecycle_find(f->life, directory, "d", &e), 0);
		far = reads(f) - before;
		near = level == 2 ? far : near;
		directory = e.item.id;
		entry_release(&e);
	}
	ck_assert_uint_gt(near, 0);
	ck_assert_uint_eq(far, near);
}

int main(void)
{
	Suite *suite = suite_create("lifecycle/within");
	TCase *tests = tcase_create("within");

	tcase_add_test(tests, what_shows_follows_each_directory_above);
	tcase_add_test(tests, what_shows_ends_with_the_first_directory_that_expires);
	tcase_add_test(tests, purge_of_what_shows_nothing_hides_that_directory);
	tcase_add_test(tests, what_a_directory_went_with_is_what_it_is_restored_with);
	tcase_add_test(tests, a_step_in_the_trash_reads_no_more_further_down);
	suite_add_tcase(suite, tests);
	return test_main(suite);
}
