/*
 * rename(2) and renameat2(2): the whole table, without a mount.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT

static struct test_tree t;

static void ck_time(struct timespec ts, int64_t ns)
{
	ck_assert_int_eq(ts.tv_sec, ns / CLOCK_SECOND_NS);
	ck_assert_int_eq(ts.tv_nsec, ns % CLOCK_SECOND_NS);
}

/* Marks `directory` as having trash below, as a deletion in it does. */
static void delete_in(uint64_t directory)
{
	test_file(&t, directory, "junk", "junk");
	test_remove(&t, directory, "junk");
}

static bool has_shadow(uint64_t directory, const char *name, uint64_t id)
{
	struct shadow shadow;
	uint64_t version;
	int result = record_get_shadow(t.store, directory, name, &shadow, &version);

	ck_assert_int_ge(result, 0);
	return result == 0 && shadow.directory == id;
}

START_TEST(file_gets_another_name)
{
	uint64_t d, f;
	struct inode i;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, ROOT, "d");
	f = test_file(&t, ROOT, "a", "text");
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", d, "b", 0), 0);
	ck_assert(!test_exists(&t, ROOT, "a"));
	i = test_look(&t, d, "b");
	ck_assert_uint_eq(i.item.id, f);
	ck_time(i.item.ctime, t.clock.realtime_ns);
	ck_time(i.item.mtime, t.clock.realtime_ns - CLOCK_SECOND_NS);
	ck_time(test_look(&t, ROOT, "d").item.mtime, t.clock.realtime_ns);
	ck_time(test_look(&t, ROOT, "d").item.ctime, t.clock.realtime_ns);
	test_text(&t, f, "text");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(big_file_keeps_its_body)
{
	static uint8_t bytes[100000];
	uint64_t f;

	test_tree_open(&t, _i);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	f = test_file(&t, ROOT, "a", "");
	ck_assert_int_eq(test_write(&t, f, 0, bytes, sizeof(bytes)), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "b", 0), 0);
	test_content(&t, test_look(&t, ROOT, "b").item.id, bytes, sizeof(bytes));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(hook_is_told_what_moved)
{
	uint64_t d, f, g;
	struct namei_renamed renamed;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, ROOT, "d");
	f = test_file(&t, ROOT, "f", "");
	g = test_file(&t, d, "g", "");
	t.changes = 0;
	ck_assert_int_eq(namei_rename(t.namei, &t.root, ROOT, "f", d, "f", 0, &renamed), 0);
	ck_assert_uint_eq(renamed.moved, f);
	ck_assert_uint_eq(renamed.other, 0);
	ck_assert_uint_eq(t.changes, 1);
	ck_assert_uint_eq(t.last_change.id, f);
	ck_assert_uint_eq(t.last_change.from.directory, ROOT);
	ck_assert_uint_eq(t.last_change.to.directory, d);
	ck_assert_str_eq(t.last_change.to.name, "f");
	ck_assert_int_eq(namei_rename(t.namei, &t.root, d, "f", d, "g", RENAME_EXCHANGE, &renamed), 0);
	ck_assert_uint_eq(renamed.moved, f);
	ck_assert_uint_eq(renamed.other, g);
	ck_assert_uint_eq(t.changes, 3);
	ck_assert_int_eq(namei_rename(t.namei, &t.root, d, "f", d, "g", 0, &renamed), 0);
	ck_assert_uint_eq(renamed.moved, g);
	ck_assert_uint_eq(renamed.other, f);
	ck_assert_uint_eq(t.changes, 5);
	test_tree_close(&t);
}
END_TEST

START_TEST(file_over_file_sends_it_to_the_trash)
{
	uint64_t a, b;
	struct place at;
	struct inode i;

	test_tree_open(&t, _i);
	a = test_file(&t, ROOT, "a", "new");
	b = test_file(&t, ROOT, "b", "old");
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "b", 0), 0);
	ck_assert(!test_exists(&t, ROOT, "a"));
	ck_assert_uint_eq(test_look(&t, ROOT, "b").item.id, a);
	ck_assert_uint_eq(test_deleted(&t, ROOT, "b"), 1);
	ck_assert(t.where.locate(t.where.data, b, &at));
	ck_assert_int_eq(at.state, KEY_DEL);
	ck_assert_int_eq(namei_load(t.namei, &at, true, &i), 0);
	ck_assert_int_eq(i.item.deletion.cause, ITEM_REPLACED);
	ck_assert_uint_eq(i.item.deletion.replaced_by, a);
	ck_assert_uint_eq(i.nlink, 0);
	inode_release(&i);
	test_text(&t, a, "new");
	test_text(&t, b, "old");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(directory_over_empty_directory)
{
	uint64_t d, a, b;
	struct place at;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, ROOT, "d");
	a = test_mkdir(&t, ROOT, "a");
	b = test_mkdir(&t, d, "b");
	test_file(&t, a, "f", "x");
	ck_assert_int_eq(test_rename(&t, ROOT, "a", d, "b", 0), 0);
	ck_assert_uint_eq(test_look(&t, d, "b").item.id, a);
	ck_assert_uint_eq(test_look(&t, ROOT, "d").nlink, 3);
	ck_assert(test_exists(&t, a, "f"));
	ck_assert(t.where.locate(t.where.data, b, &at));
	ck_assert_int_eq(at.state, KEY_DEL);
	test_consistent(&t);
	/* A create that still knew the replaced one fails. */
	ck_assert_int_eq(namei_create(t.namei, &t.root, b, "f",
				      &(struct namei_new){ .mode = S_IFREG }, NULL),
			 -ENOENT);
	test_tree_close(&t);
}
END_TEST

START_TEST(directory_over_directory_with_trash_only)
{
	uint64_t a, b;

	test_tree_open(&t, _i);
	a = test_mkdir(&t, ROOT, "a");
	b = test_mkdir(&t, ROOT, "b");
	delete_in(b);
	ck_assert(has_shadow(ROOT, "b", b));
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "b", 0), 0);
	ck_assert_uint_eq(test_look(&t, ROOT, "b").item.id, a);
	/* The mark was the replaced one's. */
	ck_assert(!has_shadow(ROOT, "b", b));
	ck_assert(!has_shadow(ROOT, "b", a));
	test_consistent(&t);
	delete_in(a);
	test_mkdir(&t, ROOT, "c");
	ck_assert_int_eq(test_rename(&t, ROOT, "b", ROOT, "c", 0), 0);
	ck_assert(has_shadow(ROOT, "c", a));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(shadowed_over_shadowed)
{
	uint64_t a, b;

	test_tree_open(&t, _i);
	a = test_mkdir(&t, ROOT, "a");
	b = test_mkdir(&t, ROOT, "b");
	delete_in(a);
	delete_in(b);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "b", 0), 0);
	ck_assert(has_shadow(ROOT, "b", a));
	ck_assert(!has_shadow(ROOT, "a", a));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(types_must_agree)
{
	uint64_t full, before;

	test_tree_open(&t, _i);
	test_mkdir(&t, ROOT, "empty");
	full = test_mkdir(&t, ROOT, "full");
	test_file(&t, full, "f", "");
	test_mkdir(&t, ROOT, "d");
	test_file(&t, ROOT, "f", "");
	before = t.changes;
	ck_assert_int_eq(test_rename(&t, ROOT, "d", ROOT, "full", 0), -ENOTEMPTY);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "empty", 0), -EISDIR);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "full", 0), -EISDIR);
	ck_assert_int_eq(test_rename(&t, ROOT, "d", ROOT, "f", 0), -ENOTDIR);
	ck_assert_int_eq(test_rename(&t, ROOT, "none", ROOT, "f", 0), -ENOENT);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", full + 1000, "f", 0), -ENOENT);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, ".trash", 0), -EBUSY);
	ck_assert_int_eq(test_rename(&t, ROOT, ".trash", ROOT, "x", 0), -EBUSY);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, ".ddbfs", 0), -EBUSY);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "g", 1 << 2), -EINVAL);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "g", RENAME_NOREPLACE | RENAME_EXCHANGE),
			 -EINVAL);
	ck_assert_uint_eq(t.changes, before);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(onto_itself_does_nothing)
{
	struct inode before, after;

	test_tree_open(&t, _i);
	test_file(&t, ROOT, "f", "x");
	before = test_look(&t, ROOT, "f");
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "f", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "f", RENAME_EXCHANGE), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "f", RENAME_NOREPLACE), -EEXIST);
	after = test_look(&t, ROOT, "f");
	ck_assert_uint_eq(after.name_version, before.name_version);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(two_names_of_one_file_stay)
{
	uint64_t d;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, ROOT, "d");
	test_file(&t, ROOT, "a", "x");
	test_link(&t, ROOT, "a", d, "b");
	t.changes = 0;
	ck_assert_int_eq(test_rename(&t, ROOT, "a", d, "b", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", d, "b", RENAME_EXCHANGE), 0);
	ck_assert(test_exists(&t, ROOT, "a"));
	ck_assert(test_exists(&t, d, "b"));
	ck_assert_uint_eq(test_look(&t, d, "b").nlink, 2);
	ck_assert_uint_eq(t.changes, 0);
	ck_assert_uint_eq(test_deleted(&t, d, "b"), 0);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(references_move_and_are_replaced)
{
	uint64_t f, g;

	test_tree_open(&t, _i);
	f = test_file(&t, ROOT, "f1", "f");
	test_link(&t, ROOT, "f1", ROOT, "f2");
	g = test_file(&t, ROOT, "g1", "g");
	test_link(&t, ROOT, "g1", ROOT, "g2");
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(test_rename(&t, ROOT, "f1", ROOT, "g1", 0), 0);
	ck_assert_uint_eq(test_look(&t, ROOT, "g1").item.id, f);
	ck_assert_uint_eq(test_look(&t, ROOT, "g1").nlink, 2);
	ck_time(test_look(&t, ROOT, "f2").item.ctime, t.clock.realtime_ns);
	ck_assert_uint_eq(test_look(&t, ROOT, "g2").item.id, g);
	ck_assert_uint_eq(test_look(&t, ROOT, "g2").nlink, 1);
	test_text(&t, f, "f");
	test_text(&t, g, "g");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(noreplace_keeps_what_is_there)
{
	test_tree_open(&t, _i);
	test_file(&t, ROOT, "a", "a");
	test_file(&t, ROOT, "b", "b");
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "b", RENAME_NOREPLACE), -EEXIST);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", ROOT, "c", RENAME_NOREPLACE), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "c", ROOT, ".trash", RENAME_NOREPLACE), -EEXIST);
	ck_assert(test_exists(&t, ROOT, "b"));
	ck_assert(test_exists(&t, ROOT, "c"));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(directories_do_not_go_into_themselves)
{
	uint64_t a, b, c;

	test_tree_open(&t, _i);
	a = test_mkdir(&t, ROOT, "a");
	b = test_mkdir(&t, a, "b");
	c = test_mkdir(&t, b, "c");
	ck_assert_int_eq(test_rename(&t, ROOT, "a", a, "x", 0), -EINVAL);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", b, "x", 0), -EINVAL);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", c, "x", 0), -EINVAL);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", b, "c", RENAME_EXCHANGE), -EINVAL);
	ck_assert_int_eq(test_rename(&t, b, "c", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
	ck_assert_int_eq(test_rename(&t, a, "b", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
	/* Onto an ancestor, which is not empty. */
	ck_assert_int_eq(test_rename(&t, b, "c", ROOT, "a", 0), -ENOTEMPTY);
	ck_assert_int_eq(test_rename(&t, a, "b", ROOT, "a", 0), -ENOTEMPTY);
	/* Downwards into what is no descendant is allowed. */
	ck_assert_int_eq(test_rename(&t, b, "c", ROOT, "c", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "a", c, "a", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "c", b, "c", 0), -EINVAL);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(exchange_swaps_whatever_they_are)
{
	uint64_t p, q, d, f, e;

	test_tree_open(&t, _i);
	p = test_mkdir(&t, ROOT, "p");
	q = test_mkdir(&t, ROOT, "q");
	d = test_mkdir(&t, p, "d");
	test_file(&t, d, "in", "in");
	f = test_file(&t, q, "f", "text");
	ck_assert_int_eq(test_rename(&t, p, "d", q, "f", RENAME_EXCHANGE), 0);
	ck_assert_uint_eq(test_look(&t, p, "d").item.id, f);
	ck_assert_uint_eq(test_look(&t, q, "f").item.id, d);
	ck_assert_uint_eq(test_look(&t, ROOT, "p").nlink, 2);
	ck_assert_uint_eq(test_look(&t, ROOT, "q").nlink, 3);
	test_consistent(&t);
	ck_assert_int_eq(test_rename(&t, p, "d", q, "f", RENAME_EXCHANGE), 0);
	ck_assert_uint_eq(test_look(&t, ROOT, "p").nlink, 3);
	ck_assert_uint_eq(test_look(&t, ROOT, "q").nlink, 2);
	e = test_mkdir(&t, q, "e");
	ck_assert_int_eq(test_rename(&t, p, "d", q, "e", RENAME_EXCHANGE), 0);
	ck_assert_uint_eq(test_look(&t, p, "d").item.id, e);
	ck_assert_uint_eq(test_look(&t, q, "e").item.id, d);
	ck_assert_int_eq(test_rename(&t, p, "d", q, "none", RENAME_EXCHANGE), -ENOENT);
	ck_assert_uint_eq(
		test_deleted(&t, p, "d") + test_deleted(&t, q, "e") + test_deleted(&t, q, "f"), 0);
	/* In one directory. */
	ck_assert_int_eq(test_rename(&t, q, "e", q, "f", RENAME_EXCHANGE), 0);
	ck_assert_uint_eq(test_look(&t, q, "e").item.id, f);
	ck_assert_uint_eq(test_look(&t, q, "f").item.id, d);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(exchange_swaps_marks)
{
	uint64_t p, q, a, b;

	test_tree_open(&t, _i);
	p = test_mkdir(&t, ROOT, "p");
	q = test_mkdir(&t, ROOT, "q");
	a = test_mkdir(&t, p, "a");
	b = test_mkdir(&t, q, "b");
	delete_in(a);
	ck_assert_int_eq(test_rename(&t, p, "a", q, "b", RENAME_EXCHANGE), 0);
	ck_assert(has_shadow(q, "b", a));
	ck_assert(!has_shadow(p, "a", b));
	ck_assert(!has_shadow(p, "a", a));
	ck_assert(has_shadow(ROOT, "q", q));
	test_consistent(&t);
	delete_in(b);
	ck_assert_int_eq(test_rename(&t, p, "a", q, "b", RENAME_EXCHANGE), 0);
	ck_assert(has_shadow(p, "a", a));
	ck_assert(has_shadow(q, "b", b));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(marks_go_with_their_directory)
{
	uint64_t a, b, d;

	test_tree_open(&t, _i);
	a = test_mkdir(&t, ROOT, "a");
	b = test_mkdir(&t, a, "b");
	d = test_mkdir(&t, ROOT, "d");
	delete_in(b);
	ck_assert_int_eq(test_rename(&t, a, "b", d, "c", 0), 0);
	ck_assert(!has_shadow(a, "b", b));
	ck_assert(has_shadow(d, "c", b));
	ck_assert(has_shadow(ROOT, "d", d));
	ck_assert(test_look(&t, ROOT, "d").item.flags & ITEM_SHADOWED);
	ck_assert_int_eq(test_rename(&t, d, "c", d, "e", 0), 0);
	ck_assert(has_shadow(d, "e", b));
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(protected_directories_keep_their_names)
{
	uint64_t p, q;
	struct inode i;

	test_tree_open(&t, _i);
	p = test_mkdir(&t, ROOT, "p");
	q = test_mkdir(&t, ROOT, "q");
	test_file(&t, p, "a", "a");
	test_file(&t, p, "b", "b");
	test_file(&t, q, "c", "c");
	i = test_look(&t, ROOT, "p");
	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &i.at, "user.ddbfs.protect", "1", 1, 0), 0);
	ck_assert_int_eq(test_rename(&t, p, "a", p, "b", 0), -EPERM);
	ck_assert_int_eq(test_rename(&t, p, "a", p, "b", RENAME_EXCHANGE), -EPERM);
	ck_assert_int_eq(test_rename(&t, p, "a", q, "a", 0), -EPERM);
	ck_assert_int_eq(test_rename(&t, q, "c", p, "a", 0), -EPERM);
	ck_assert_int_eq(test_rename(&t, q, "c", p, "a", RENAME_EXCHANGE), -EPERM);
	ck_assert_int_eq(test_rename(&t, p, "a", q, "c", RENAME_EXCHANGE), -EPERM);
	/* What loses nothing is allowed: a new name there, something from outside. */
	ck_assert_int_eq(test_rename(&t, p, "a", p, "z", 0), 0);
	ck_assert_int_eq(test_rename(&t, q, "c", p, "c", 0), 0);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &i.at, "user.ddbfs.protect"), 0);
	ck_assert_int_eq(test_rename(&t, p, "z", p, "b", 0), 0);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(writes_follow_a_rename)
{
	uint64_t d, f;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, ROOT, "d");
	f = test_file(&t, ROOT, "f", "one");
	ck_assert_int_eq(test_rename(&t, ROOT, "f", d, "g", 0), 0);
	ck_assert_int_eq(test_write(&t, f, 3, " two", 4), 0);
	test_file(&t, d, "h", "other");
	ck_assert_int_eq(test_rename(&t, d, "h", d, "g", 0), 0);
	ck_assert_int_eq(test_write(&t, f, 7, " three", 6), 0);
	test_text(&t, f, "one two three");
	test_text(&t, test_look(&t, d, "g").item.id, "other");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

/* ---- faults ------------------------------------------------------------------- */

static void rename_all(void)
{
	uint64_t p, q, a, b;

	p = test_mkdir(&t, ROOT, "p");
	q = test_mkdir(&t, ROOT, "q");
	a = test_mkdir(&t, p, "a");
	b = test_mkdir(&t, q, "b");
	delete_in(a);
	test_file(&t, p, "f", "f");
	test_file(&t, q, "g", "g");
	test_link(&t, p, "f", q, "f2");
	ck_assert_int_eq(test_rename(&t, p, "f", q, "g", 0), 0);
	ck_assert_int_eq(test_rename(&t, p, "a", q, "b", 0), 0);
	ck_assert_int_eq(test_rename(&t, q, "b", q, "f2", RENAME_EXCHANGE), 0);
	ck_assert_uint_eq(test_look(&t, q, "f2").item.id, a);
	ck_assert_uint_eq(test_look(&t, q, "g").nlink, 2);
	ck_assert_uint_eq(test_deleted(&t, q, "b"), 1);
	ck_assert_uint_eq(test_deleted(&t, q, "g"), 1);
	ck_assert(!test_exists(&t, p, "a"));
	ck_assert_uint_ne(a, b);
	test_consistent(&t);
}

START_TEST(a_conflict_at_any_write_is_overcome)
{
	test_tree_open(&t, TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .conflict_at = (uint64_t)_i });
	rename_all();
	test_faults(&t, NULL);
	test_tree_close(&t);
}
END_TEST

START_TEST(a_lost_answer_at_any_write_is_overcome)
{
	test_tree_open(&t, TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .lost_answer_at = (uint64_t)_i });
	rename_all();
	test_faults(&t, NULL);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/rename");
	TCase *c = tcase_create("table"), *f = tcase_create("faults");

	tcase_add_loop_test(c, file_gets_another_name, 0, TEST_ENGINES);
	tcase_add_loop_test(c, big_file_keeps_its_body, 0, TEST_ENGINES);
	tcase_add_loop_test(c, hook_is_told_what_moved, 0, TEST_ENGINES);
	tcase_add_loop_test(c, file_over_file_sends_it_to_the_trash, 0, TEST_ENGINES);
	tcase_add_loop_test(c, directory_over_empty_directory, 0, TEST_ENGINES);
	tcase_add_loop_test(c, directory_over_directory_with_trash_only, 0, TEST_ENGINES);
	tcase_add_loop_test(c, shadowed_over_shadowed, 0, TEST_ENGINES);
	tcase_add_loop_test(c, types_must_agree, 0, TEST_ENGINES);
	tcase_add_loop_test(c, onto_itself_does_nothing, 0, TEST_ENGINES);
	tcase_add_loop_test(c, two_names_of_one_file_stay, 0, TEST_ENGINES);
	tcase_add_loop_test(c, references_move_and_are_replaced, 0, TEST_ENGINES);
	tcase_add_loop_test(c, noreplace_keeps_what_is_there, 0, TEST_ENGINES);
	tcase_add_loop_test(c, directories_do_not_go_into_themselves, 0, TEST_ENGINES);
	tcase_add_loop_test(c, exchange_swaps_whatever_they_are, 0, TEST_ENGINES);
	tcase_add_loop_test(c, exchange_swaps_marks, 0, TEST_ENGINES);
	tcase_add_loop_test(c, marks_go_with_their_directory, 0, TEST_ENGINES);
	tcase_add_loop_test(c, protected_directories_keep_their_names, 0, TEST_ENGINES);
	tcase_add_loop_test(c, writes_follow_a_rename, 0, TEST_ENGINES);
	tcase_add_loop_test(f, a_conflict_at_any_write_is_overcome, 1, 30);
	tcase_add_loop_test(f, a_lost_answer_at_any_write_is_overcome, 1, 30);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	tcase_set_timeout(f, 60);
	suite_add_tcase(s, f);
	return test_main(s);
}
