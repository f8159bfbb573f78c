/*
 * test-view-trash.c - what a view shows, what moving in and out of it and
 * removing there means, and whether a directory is in the trash, without a mount.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/view-trash.h"
#include "tests/lib/tree.h"

static struct test_tree t;
static struct node_table *nodes;
static struct view view;

static void open_tree(int engine)
{
	test_tree_open(&t, (enum test_engine)engine);
	ck_assert_int_eq(node_table_new(&nodes), 0);
	view = (struct view){ t.namei, nodes };
}

static void close_tree(void)
{
	test_consistent(&t);
	node_table_free(nodes);
	test_tree_close(&t);
}

/* The node of a live directory, and of the view whose root is its `.trash`. */
static struct node node_of(uint64_t id, uint64_t in_view, const struct place *at)
{
	struct node_entry entry = {
		.id = id,
		.view = in_view,
		.directory = true,
		.live = in_view == 0,
		.at = at,
		.stamp = node_stamp(nodes, at->directory),
	};
	struct node node;
	uint64_t number;

	ck_assert_int_eq(node_enter(nodes, &entry, &number), 0);
	ck_assert_int_eq(node_get(nodes, number, &node), 0);
	return node;
}

static struct node root_node(void)
{
	struct node node;

	ck_assert_int_eq(node_get(nodes, NODE_ROOT, &node), 0);
	return node;
}

static struct node root_view(void)
{
	struct place at = { .directory = KEY_ID_NONE, .state = KEY_ACT };

	return node_of(KEY_ID_ROOT, KEY_ID_ROOT, &at);
}

static struct node live_node(uint64_t parent, const char *name)
{
	struct inode i = test_look(&t, parent, name);

	return node_of(i.item.id, 0, &i.at);
}

static struct inode shown(uint64_t directory, const char *name)
{
	struct inode i;

	ck_assert_int_eq(view_lookup(&view, directory, name, &i), 0);
	inode_release(&i);
	return i;
}

static int look_up(uint64_t directory, const char *name)
{
	struct inode i;
	int result = view_lookup(&view, directory, name, &i);

	if (result == 0)
		inode_release(&i);
	return result;
}

static int move_out(const struct node *from, const char *from_name, const struct node *to,
		    const char *to_name, unsigned flags)
{
	struct view_moved moved;

	return view_move_out(&view, &t.root, from, from_name, to, to_name, flags, &moved);
}

static int move_in(const struct node *from, const char *from_name, const struct node *to,
		   const char *to_name)
{
	struct view_moved moved;

	return view_move_in(&view, &t.root, from, from_name, to, to_name, 0, &moved);
}

static bool is_trash(const struct node *directory)
{
	bool trash;

	ck_assert_int_eq(view_is_trash(&view, directory, &trash), 0);
	return trash;
}

/* ---- what is shown ------------------------------------------------------------------ */

START_TEST(shows_what_was_deleted_and_nothing_else)
{
	open_tree(_i);
	test_file(&t, KEY_ID_ROOT, "gone", "x");
	test_file(&t, KEY_ID_ROOT, "here", "x");
	test_remove(&t, KEY_ID_ROOT, "gone");
	ck_assert_int_eq(look_up(KEY_ID_ROOT, "gone"), 0);
	ck_assert_int_eq(look_up(KEY_ID_ROOT, "here"), -ENOENT);
	ck_assert_int_eq(look_up(KEY_ID_ROOT, store_trash_name(t.store)), -ENOENT);
	ck_assert_int_eq(look_up(KEY_ID_ROOT, ""), -ENOENT);
	close_tree();
}
END_TEST

START_TEST(refuses_names_longer_than_any_shown)
{
	char name[ENTRY_NAME_MAX + 2];

	open_tree(_i);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_int_eq(look_up(KEY_ID_ROOT, name), -ENAMETOOLONG);
	close_tree();
}
END_TEST

START_TEST(deleted_items_have_their_ids_and_mirrors_another)
{
	open_tree(_i);
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	uint64_t f = test_file(&t, d, "f", "x");
	test_remove(&t, d, "f");
	ck_assert_uint_eq(shown(d, "f").item.id, f);
	ck_assert_uint_eq(shown(d, "f").nlink, 0);
	/* The live directory shows in its parent's trash as its shadow. */
	ck_assert_uint_eq(shown(KEY_ID_ROOT, "d").item.id, d | VIEW_MIRROR);
	test_remove(&t, KEY_ID_ROOT, "d");
	ck_assert_uint_eq(shown(KEY_ID_ROOT, "d").item.id, d);
	close_tree();
}
END_TEST

START_TEST(masks_write_bits_of_files_only)
{
	struct inode i = { .item = { .mode = S_IFREG | 0666 } };

	open_tree(_i);
	view_mask(&i, true);
	ck_assert_uint_eq(i.item.mode, S_IFREG | 0666);
	view_mask(&i, false);
	ck_assert_uint_eq(i.item.mode, S_IFREG | 0444);
	i.item.mode = S_IFDIR | S_ISVTX | 0777;
	i.item.directory.trash_mask = 0750;
	view_mask(&i, false);
	ck_assert_uint_eq(i.item.mode, S_IFDIR | S_ISVTX | 0750);
	close_tree();
}
END_TEST

START_TEST(view_of_a_private_directory_stays_private)
{
	struct attr_change opened = { .set = ATTR_MODE, .mode = 0755 };
	struct attr_change closed = { .set = ATTR_MODE, .mode = 0700 };
	struct inode i;

	open_tree(_i);
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "x");
	i = test_look(&t, KEY_ID_ROOT, "d");
	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &closed, &i), 0);
	inode_release(&i);
	test_remove(&t, d, "f");
	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &opened, &i), 0);
	inode_release(&i);
	ck_assert_int_eq(view_directory(&view, d, &i), 0);
	ck_assert_uint_eq(i.item.mode & 0777, 0700);
	inode_release(&i);
	close_tree();
}
END_TEST

/* ---- being in the trash ----------------------------------------------------------------- */

START_TEST(directory_below_a_deleted_one_is_in_the_trash)
{
	open_tree(_i);
	uint64_t a = test_mkdir(&t, KEY_ID_ROOT, "a");
	uint64_t b = test_mkdir(&t, a, "b");
	test_mkdir(&t, b, "c");
	struct node c = live_node(b, "c");
	struct node a_node = live_node(KEY_ID_ROOT, "a");
	ck_assert(!is_trash(&c));
	ck_assert_int_eq(lifecycle_discard(t.lifecycle, &t.remover, KEY_ID_ROOT, "a"), 0);
	node_changed(nodes, &t.last_change); /* as a mount's hook does */
	ck_assert(is_trash(&c));
	ck_assert(is_trash(&a_node));
	ck_assert_int_eq(lifecycle_restore(t.lifecycle, &t.root, &t.last_change.to, KEY_ID_ROOT,
					   "a", 0, NULL, NULL),
			 0);
	node_changed(nodes, &t.last_change);
	ck_assert(!is_trash(&c));
	close_tree();
}
END_TEST

START_TEST(liveness_is_remembered_until_a_directory_moves)
{
	struct node again;

	open_tree(_i);
	test_mkdir(&t, KEY_ID_ROOT, "a");
	struct node a = live_node(KEY_ID_ROOT, "a");
	ck_assert(!a.live);
	ck_assert(!is_trash(&a));
	ck_assert_int_eq(node_get(nodes, a.node, &again), 0);
	ck_assert(again.live);
	struct lifecycle_change change = {
		.id = 999,
		.mode = S_IFDIR,
		.from = { .directory = KEY_ID_ROOT, .state = KEY_ACT, .name = "other" },
		.to = { .directory = KEY_ID_ROOT, .state = KEY_DEL, .seq = 5, .name = "other" },
	};
	node_changed(nodes, &change);
	ck_assert_int_eq(node_get(nodes, a.node, &again), 0);
	ck_assert(!again.live);
	close_tree();
}
END_TEST

/* ---- moving ----------------------------------------------------------------------------------- */

START_TEST(moving_in_deletes_in_place_only)
{
	open_tree(_i);
	uint64_t other = test_mkdir(&t, KEY_ID_ROOT, "other");
	test_file(&t, KEY_ID_ROOT, "f", "x");
	struct node root = root_node();
	struct node trash = root_view();
	struct inode i = test_look(&t, KEY_ID_ROOT, "other");
	struct node others = node_of(other, other, &i.at);
	ck_assert_int_eq(move_in(&root, "f", &others, "f"), -EROFS);
	ck_assert_int_eq(move_in(&root, "f", &trash, "g"), -EROFS);
	ck_assert_int_eq(move_in(&root, store_trash_name(t.store), &trash, store_trash_name(t.store)),
			 -EBUSY);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "f"));
	ck_assert_int_eq(move_in(&root, "f", &trash, "f"), 0);
	ck_assert(!test_exists(&t, KEY_ID_ROOT, "f"));
	ck_assert_int_eq(look_up(KEY_ID_ROOT, "f"), 0);
	close_tree();
}
END_TEST

START_TEST(moved_directory_takes_its_node_along)
{
	open_tree(_i);
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "x");
	struct node root = root_node();
	struct node trash = root_view();
	struct node node = live_node(KEY_ID_ROOT, "d");
	ck_assert_int_eq(move_in(&root, "d", &trash, "d"), 0);
	ck_assert_uint_eq(node_find(nodes, d, KEY_ID_ROOT), node.node);
	ck_assert_uint_eq(node_find(nodes, d, 0), 0);
	ck_assert_int_eq(move_out(&trash, "d", &root, "back", 0), 0);
	ck_assert_uint_eq(node_find(nodes, d, 0), node.node);
	ck_assert(test_exists(&t, d, "f"));
	close_tree();
}
END_TEST

START_TEST(moving_out_replaces_as_rename_does)
{
	open_tree(_i);
	struct node root = root_node();
	struct node trash = root_view();
	test_file(&t, KEY_ID_ROOT, "f", "old");
	test_remove(&t, KEY_ID_ROOT, "f");
	test_file(&t, KEY_ID_ROOT, "f", "new");
	ck_assert_int_eq(move_out(&trash, "f", &root, "f", RENAME_NOREPLACE), -EEXIST);
	ck_assert_int_eq(move_out(&trash, "f", &root, "f", RENAME_EXCHANGE), -EINVAL);
	ck_assert_int_eq(move_out(&trash, "f", &root, store_trash_name(t.store), 0), -EBUSY);
	ck_assert_int_eq(move_out(&trash, "f", &root, "f", 0), 0);
	test_text(&t, test_look(&t, KEY_ID_ROOT, "f").item.id, "old");
	ck_assert_uint_eq(test_deleted(&t, KEY_ID_ROOT, "f"), 1);
	ck_assert_int_eq(move_out(&trash, "nothing", &root, "g", 0), -ENOENT);
	close_tree();
}
END_TEST

START_TEST(replaced_directory_is_dead_to_the_kernel)
{
	open_tree(_i);
	struct node root = root_node();
	struct node trash = root_view();
	test_mkdir(&t, KEY_ID_ROOT, "d");
	test_remove(&t, KEY_ID_ROOT, "d");
	uint64_t second = test_mkdir(&t, KEY_ID_ROOT, "d");
	struct node node = live_node(KEY_ID_ROOT, "d");
	ck_assert_int_eq(move_out(&trash, "d", &root, "d", 0), 0);
	ck_assert_uint_eq(node_find(nodes, second, 0), 0);
	ck_assert_int_eq(node_get(nodes, node.node, &node), 0);
	ck_assert(node.detached);
	close_tree();
}
END_TEST

START_TEST(mirrors_do_not_move)
{
	open_tree(_i);
	struct node root = root_node();
	struct node trash = root_view();
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "x");
	test_remove(&t, d, "f");
	ck_assert_int_eq(move_out(&trash, "d", &root, "e", 0), -EROFS);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "d"));
	close_tree();
}
END_TEST

/* ---- removing ------------------------------------------------------------------------------------ */

START_TEST(removing_in_a_view_purges)
{
	open_tree(_i);
	struct node trash = root_view();
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "x");
	test_file(&t, KEY_ID_ROOT, "g", "x");
	test_remove(&t, KEY_ID_ROOT, "g");
	ck_assert_int_eq(lifecycle_discard(t.lifecycle, &t.remover, KEY_ID_ROOT, "d"), 0);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "g", true), -ENOTDIR);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "d", false), -EISDIR);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "d", true), -ENOTEMPTY);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "g", false), 0);
	ck_assert_int_eq(look_up(KEY_ID_ROOT, "g"), -ENOENT);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "g", false), -ENOENT);
	close_tree();
}
END_TEST

START_TEST(mirror_goes_when_nothing_is_left_in_it)
{
	open_tree(_i);
	uint64_t d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "x");
	test_remove(&t, d, "f");
	struct node trash = root_view();
	struct inode i = test_look(&t, KEY_ID_ROOT, "d");
	struct node mirror = node_of(d, KEY_ID_ROOT, &i.at);
	ck_assert_int_eq(view_remove(&view, &t.root, &trash, "d", true), -ENOTEMPTY);
	ck_assert_int_eq(view_remove(&view, &t.root, &mirror, "f", false), 0);
	int result = view_remove(&view, &t.root, &trash, "d", true);
	ck_assert(result == 0 || result == -ENOENT); /* it may have gone by itself */
	ck_assert(test_exists(&t, KEY_ID_ROOT, "d"));
	close_tree();
}
END_TEST

/* ---- writing, facts --------------------------------------------------------------------------------- */

START_TEST(restored_file_may_be_written_again)
{
	struct node root, trash, file;
	bool writable;
	uint64_t number;

	open_tree(_i);
	root = root_node();
	trash = root_view();
	uint64_t f = test_file(&t, KEY_ID_ROOT, "f", "x");
	test_remove(&t, KEY_ID_ROOT, "f");
	struct inode i = shown(KEY_ID_ROOT, "f");
	struct node_entry entry = { .id = f, .at = &i.at, .stamp = node_stamp(nodes, KEY_ID_ROOT) };
	ck_assert_int_eq(node_enter(nodes, &entry, &number), 0);
	ck_assert_int_eq(node_get(nodes, number, &file), 0);
	ck_assert_int_eq(view_is_writable(&view, &file, &writable), 0);
	ck_assert(!writable);
	ck_assert_int_eq(move_out(&trash, "f", &root, "f", 0), 0);
	node_changed(nodes, &t.last_change);
	ck_assert_int_eq(node_get(nodes, number, &file), 0);
	ck_assert_int_eq(view_is_writable(&view, &file, &writable), 0);
	ck_assert(writable);
	close_tree();
}
END_TEST

START_TEST(facts_are_of_deleted_items_only)
{
	char text[256];

	open_tree(_i);
	test_mkdir(&t, KEY_ID_ROOT, "d");
	struct node live = live_node(KEY_ID_ROOT, "d");
	ck_assert_int_eq(view_fact(&view, &live, "user.ddbfs.cause", text, sizeof(text)), -ENODATA);
	test_remove(&t, KEY_ID_ROOT, "d");
	struct inode i = shown(KEY_ID_ROOT, "d");
	struct node dead = node_of(i.item.id, KEY_ID_ROOT, &i.at);
	ssize_t length = view_fact(&view, &dead, "user.ddbfs.cause", text, sizeof(text));
	ck_assert_int_eq(length, 7);
	ck_assert_int_eq(memcmp(text, "removed", 7), 0);
	ck_assert_int_eq(view_fact(&view, &dead, "user.ddbfs.nonsense", text, sizeof(text)), -ENODATA);
	close_tree();
}
END_TEST

static void add(TCase *tests, const TTest *test)
{
	tcase_add_loop_test(tests, test, 0, TEST_ENGINES);
}

int main(void)
{
	Suite *suite = suite_create("fs/view-trash");
	TCase *tests = tcase_create("view-trash");

	tcase_set_timeout(tests, 60);
	add(tests, shows_what_was_deleted_and_nothing_else);
	add(tests, refuses_names_longer_than_any_shown);
	add(tests, deleted_items_have_their_ids_and_mirrors_another);
	add(tests, masks_write_bits_of_files_only);
	add(tests, view_of_a_private_directory_stays_private);
	add(tests, directory_below_a_deleted_one_is_in_the_trash);
	add(tests, liveness_is_remembered_until_a_directory_moves);
	add(tests, moving_in_deletes_in_place_only);
	add(tests, moved_directory_takes_its_node_along);
	add(tests, moving_out_replaces_as_rename_does);
	add(tests, replaced_directory_is_dead_to_the_kernel);
	add(tests, mirrors_do_not_move);
	add(tests, removing_in_a_view_purges);
	add(tests, mirror_goes_when_nothing_is_left_in_it);
	add(tests, restored_file_may_be_written_again);
	add(tests, facts_are_of_deleted_items_only);
	suite_add_tcase(suite, tests);
	return test_main(suite);
}
