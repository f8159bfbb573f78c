/* test-history.c - what is told of what is no longer in the trash. */
#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"
#include "tests/lifecycle/fixture.h"

struct told {
	unsigned count;
	struct gone gone[16];
	char paths[16][64];
};

static bool tell(void *data, const struct gone *gone)
{
	struct told *told = data;

	ck_assert_uint_lt(told->count, 16);
	told->gone[told->count] = *gone;
	snprintf(told->paths[told->count], sizeof(told->paths[0]), "%s", gone->path);
	told->count++;
	return false;
}

static struct told history(struct fixture *f)
{
	struct told told = { 0 };

	ck_assert_int_eq(lifecycle_history(f->life, tell, &told), 0);
	return told;
}

FIXTURE_TEST(every_entry_that_is_destroyed_is_remembered_with_its_cause)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), tree = make_directory(f, d, "tree");
	struct place at;
	struct told told;

	set_policy(f, d, "user.ddbfs.versions", "1");
	make_files(f, tree, 40);
	make_file(f, d, "f", "1");
	make_file(f, d, "kept", "x");
	make_big_file(f, d, "purged", 3000);
	for (int i = 0; i < 2; i++) {
		make_file(f, d, "new", "2");
		ck_ok(f, rename_item(f, d, "new", d, "f"));
	}
	fixture_pass(f, HOUR);
	act_as(f, 1001, 77, "mv");
	rm(f, d, "purged");
	at = shown_place(f, d, "purged");
	act_as(f, 1000, 78, "rm");
	rm_rf(f, d, "tree");
	rm(f, d, "kept");
	restore(f, d, "kept", d, "kept");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	fixture_pass(f, HOUR);
	sweep(f, NULL);
	told = history(f);
	/* One version too many, and what was purged; nothing of what is back. */
	ck_assert_uint_eq(told.count, 2);
	ck_assert_str_eq(told.paths[1], "/d/f");
	ck_assert_int_eq(told.gone[1].cause, COUNTER_DESTROYED_VERSIONS);
	ck_assert_str_eq(told.paths[0], "/d/purged");
	ck_assert_int_eq(told.gone[0].cause, COUNTER_DESTROYED_USER);
	ck_assert_uint_eq(told.gone[0].size, 3000);
	ck_assert_uint_eq(told.gone[0].uid, 1001);
	ck_assert_uint_eq(told.gone[0].owner, 1000);
	ck_assert_str_eq(told.gone[0].command, "mv");
	assert_about(told.gone[0].destroyed_ns - told.gone[0].deleted_ns, HOUR);
	fixture_crash(f);
	fixture_pass(f, 40 * DAY);
	sweep(f, NULL);
	told = history(f);
	/* The other version, and the tree as one. */
	ck_assert_uint_eq(told.count, 4);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(told.gone[i].cause, COUNTER_DESTROYED_EXPIRED);
		ck_assert(!strcmp(told.paths[i], "/d/tree") == S_ISDIR(told.gone[i].mode));
	}
	ck_assert_str_ne(told.paths[0], told.paths[1]);
}

static bool count_gone(void *data, const struct gone *gone)
{
	++*(unsigned *)data;
	return false;
}

FIXTURE_TEST_ONCE(history_keeps_the_last_and_takes_no_more_space)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	unsigned count = 0;

	set_policy(f, d, "user.ddbfs.retention", "0");
	for (int i = 0; i < HISTORY_MAX + 20; i++) {
		make_file(f, d, i < HISTORY_MAX ? "early" : "late", "x");
		fixture_pass(f, 2 * MINUTE);
		rm(f, d, i < HISTORY_MAX ? "early" : "late");
		if (i == 100)
			fixture_crash(f);
	}
	ck_assert_int_eq(lifecycle_history(f->life, count_gone, &count), 0);
	ck_assert_uint_eq(count, HISTORY_MAX);
}

static bool take_path(void *data, const struct gone *gone)
{
	snprintf(data, 2048, "%s", gone->path);
	return true;
}

/* Of a long path the end is kept; where that would begin with a slash, and look whole, one byte less. */
FIXTURE_TEST_ONCE(end_of_a_long_path_does_not_look_like_a_whole_one)
{
	static const size_t sizes[] = { 9, 255, 255, 255, 253 }; /* with "/f": 10 bytes, and 1,024 */
	uint64_t d = KEY_ID_ROOT;
	char name[256], path[2048];
	struct place at;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(name, 'a' + (int)i, sizes[i]);
		name[sizes[i]] = '\0';
		d = make_directory(f, d, name);
	}
	make_file(f, d, "f", "x");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.grace", "0");
	fixture_pass(f, HOUR);
	rm(f, d, "f");
	at = shown_place(f, d, "f");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	ck_ok(f, lifecycle_history(f->life, take_path, path));
	ck_assert_uint_eq(strlen(path), 1023);
	ck_assert_int_eq(path[0], 'b');
	ck_assert_str_eq(path + 1021, "/f");
}

int main(void)
{
	Suite *suite = suite_create("history");
	TCase *tcase = tcase_create("history");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, every_entry_that_is_destroyed_is_remembered_with_its_cause);
	tcase_add_test(tcase, history_keeps_the_last_and_takes_no_more_space);
	tcase_add_test(tcase, end_of_a_long_path_does_not_look_like_a_whole_one);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
