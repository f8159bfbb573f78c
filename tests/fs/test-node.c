/*
 * test-node.c - node ids: one for a file whatever the view, one for a directory
 * in each view, none that comes back, and counts that end at nothing.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/node.h"
#include "tests/lib/test.h"

static struct node_table *table;

static void setup(void)
{
	ck_assert_int_eq(node_table_new(&table), 0);
}

static void teardown(void)
{
	node_table_free(table);
}

static struct place live(uint64_t directory, const char *name)
{
	struct place at = { .directory = directory, .state = KEY_ACT };

	strcpy(at.name, name);
	return at;
}

static struct place dead(uint64_t directory, const char *name, uint64_t seq)
{
	struct place at = live(directory, name);

	at.state = KEY_DEL;
	at.seq = seq;
	return at;
}

static uint64_t enter_in(uint64_t parent, uint64_t id, bool directory, uint64_t view,
			 const struct place *at)
{
	struct node_entry entry = {
		.id = id,
		.view = view,
		.parent = parent,
		.directory = directory,
		.live = view == 0 && at->state == KEY_ACT,
		.at = at,
		.stamp = node_stamp(table, at->directory),
	};
	uint64_t node = 0;

	ck_assert_int_eq(node_enter(table, &entry, &node), 0);
	return node;
}

static uint64_t enter(uint64_t id, bool directory, uint64_t view, const struct place *at)
{
	return enter_in(NODE_ROOT, id, directory, view, at);
}

static uint64_t enter_name(uint64_t id, const struct place *at)
{
	struct node_entry entry = {
		.id = id,
		.live = at->state == KEY_ACT,
		.reference = true,
		.at = at,
		.stamp = node_stamp(table, at->directory),
	};
	uint64_t node = 0;

	ck_assert_int_eq(node_enter(table, &entry, &node), 0);
	return node;
}

static void move(uint64_t id, bool directory, struct place from, struct place to)
{
	struct lifecycle_change change = {
		.id = id,
		.mode = directory ? S_IFDIR : S_IFREG,
		.from = from,
		.to = to,
	};

	node_changed(table, &change);
}

static void move_node(uint64_t id, uint64_t from_view, uint64_t from, uint64_t to_view, uint64_t to)
{
	struct node_spot out_of = { from_view, from }, into = { to_view, to };

	node_move(table, id, &out_of, &into);
}

static struct node get(uint64_t node)
{
	struct node n;

	ck_assert_int_eq(node_get(table, node, &n), 0);
	return n;
}

static bool forget(uint64_t node, uint64_t count)
{
	struct node n;

	return node_forget(table, node, count, &n);
}

static uint64_t nodes(void)
{
	struct node_counts counts;

	node_count(table, &counts);
	return counts.nodes;
}

START_TEST(root_is_known_and_cannot_be_forgotten)
{
	struct node root = get(NODE_ROOT);

	ck_assert_uint_eq(root.id, KEY_ID_ROOT);
	ck_assert(root.directory && root.live);
	forget(NODE_ROOT, 1000);
	ck_assert_uint_eq(get(NODE_ROOT).id, KEY_ID_ROOT);
}
END_TEST

START_TEST(file_has_one_node_live_and_in_any_view)
{
	struct place at = live(1, "f");
	struct place trash = dead(1, "f", 7);
	uint64_t node = enter(20, false, 0, &at);

	move(20, false, at, trash);
	ck_assert_uint_eq(enter(20, false, 1, &trash), node);
	ck_assert_uint_eq(enter(20, false, 99, &trash), node);
	ck_assert_int_eq(get(node).at.state, KEY_DEL);
}
END_TEST

START_TEST(directory_has_a_node_in_each_view)
{
	struct place at = live(1, "d");
	uint64_t in_tree = enter(20, true, 0, &at);
	uint64_t in_root = enter(20, true, 1, &at);
	uint64_t in_other = enter(20, true, 30, &at);

	ck_assert(in_tree != in_root && in_root != in_other && in_tree != in_other);
	ck_assert_uint_eq(enter(20, true, 1, &at), in_root);
	ck_assert_uint_eq(node_find(table, 20, 30), in_other);
	ck_assert_int_eq(get(in_root).kind, NODE_VIEW);
	ck_assert_int_eq(get(in_tree).kind, NODE_ITEM);
}
END_TEST

START_TEST(directory_of_a_view_found_elsewhere_gets_another_node)
{
	struct place at = live(1, "d"), other = live(2, "d"), trash = dead(2, "d", 7);
	uint64_t here = enter_in(100, 20, true, 1, &at), there, moved, in_tree;

	ck_assert_uint_eq(enter_in(100, 20, true, 1, &at), here);
	there = enter_in(101, 20, true, 1, &other);
	ck_assert_uint_ne(there, here);
	ck_assert_uint_eq(enter_in(101, 20, true, 1, &other), there);
	ck_assert_uint_eq(get(here).id, 20); /* for whoever stands in it */
	/* Where the kernel itself moved it, it is known. */
	in_tree = enter(21, true, 0, &other);
	move_node(21, 0, 0, 1, 102);
	moved = enter_in(102, 21, true, 1, &trash);
	ck_assert_uint_eq(moved, in_tree);
	/* In the live tree a directory has one node wherever it is found. */
	in_tree = enter_in(100, 20, true, 0, &at);
	ck_assert_uint_eq(enter_in(101, 20, true, 0, &other), in_tree);
}
END_TEST

/* Another process may have looked it up elsewhere since the look-up that the kernel acts upon. */
START_TEST(kernel_acts_on_the_node_it_has_in_that_parent)
{
	struct place at = live(1, "d"), other = live(2, "d"), third = live(3, "e");
	uint64_t here = enter_in(100, 20, true, 1, &at);
	uint64_t there = enter_in(101, 20, true, 1, &other);
	uint64_t gone = enter_in(100, 21, true, 1, &third);
	uint64_t stays = enter_in(101, 21, true, 1, &third);

	move_node(20, 1, 100, 0, NODE_ROOT);
	ck_assert_int_eq(get(here).kind, NODE_ITEM);
	ck_assert_int_eq(get(there).kind, NODE_VIEW);
	ck_assert_uint_eq(enter(20, true, 0, &at), here);
	node_detach(table, 21, 1, 100);
	ck_assert(get(gone).detached);
	ck_assert(!get(stays).detached);
	/* One that is found in turns here and there needs no third. */
	ck_assert_uint_eq(enter_in(101, 21, true, 1, &third), stays);
	gone = enter_in(100, 21, true, 1, &third);
	ck_assert_uint_eq(enter_in(101, 21, true, 1, &third), stays);
	ck_assert_uint_eq(enter_in(100, 21, true, 1, &third), gone);
}
END_TEST

START_TEST(removed_directory_gets_another_node_when_it_is_back)
{
	struct place at = live(1, "d");
	struct place trash = dead(1, "d", 7);
	uint64_t before = enter(20, true, 0, &at);

	move(20, true, at, trash);
	node_detach(table, 20, 0, NODE_ROOT);
	ck_assert(get(before).detached);
	move(20, true, trash, at);
	ck_assert_uint_ne(enter(20, true, 0, &at), before);
	ck_assert(get(before).detached);
}
END_TEST

START_TEST(moved_directory_keeps_its_node)
{
	struct place at = live(1, "d");
	struct place trash = dead(1, "d", 7);
	uint64_t node = enter(20, true, 0, &at);

	move(20, true, at, trash);
	move_node(20, 0, NODE_ROOT, 1, NODE_ROOT);
	ck_assert_uint_eq(enter(20, true, 1, &trash), node);
	ck_assert_int_eq(get(node).kind, NODE_VIEW);
	move(20, true, trash, at);
	move_node(20, 1, NODE_ROOT, 0, NODE_ROOT);
	ck_assert_uint_eq(enter(20, true, 0, &at), node);
	ck_assert_int_eq(get(node).kind, NODE_ITEM);
}
END_TEST

START_TEST(node_moved_onto_another_takes_its_part)
{
	struct place at = live(1, "d");
	uint64_t stale = enter(20, true, 0, &at);
	uint64_t moved = enter(20, true, 5, &at);

	move_node(20, 5, NODE_ROOT, 0, NODE_ROOT);
	ck_assert_uint_eq(enter(20, true, 0, &at), moved);
	ck_assert_uint_eq(get(stale).id, 20);
}
END_TEST

START_TEST(node_ids_never_come_back)
{
	struct place at = live(1, "f");
	uint64_t node = enter(20, false, 0, &at);

	forget(node, 1);
	struct node unused;
	ck_assert_int_eq(node_get(table, node, &unused), -ESTALE);
	ck_assert_uint_ne(enter(20, false, 0, &at), node);
}
END_TEST

START_TEST(counts_return_to_nothing)
{
	char name[16];
	uint64_t ids[3000];
	struct node_counts counts;

	for (int round = 1; round <= 3; round++)
		for (size_t i = 0; i < 3000; i++) {
			snprintf(name, sizeof(name), "f%zu", i);
			struct place at = live(1, name);
			ids[i] = enter(100 + i, i % 3 == 0, 0, &at);
		}
	node_count(table, &counts);
	ck_assert_uint_eq(counts.nodes, 3001);
	ck_assert_uint_eq(counts.lookups, 9000);
	for (size_t i = 0; i < 3000; i++) {
		forget(ids[i], 1);
		ck_assert_uint_eq(get(ids[i]).id, 100 + i);
		forget(ids[i], 2);
	}
	node_count(table, &counts);
	ck_assert_uint_eq(counts.nodes, 1);
	ck_assert_uint_eq(counts.lookups, 0);
}
END_TEST

START_TEST(answer_read_before_a_change_is_refused)
{
	struct place at = live(1, "f");
	struct node_entry entry = { .id = 20, .live = true, .at = &at, .stamp = node_stamp(table, 1) };
	uint64_t node;

	move(21, false, live(1, "g"), dead(1, "g", 7));
	ck_assert_int_eq(node_enter(table, &entry, &node), -EAGAIN);
	entry.stamp = node_stamp(table, 1);
	ck_assert_int_eq(node_enter(table, &entry, &node), 0);
}
END_TEST

START_TEST(file_open_since_before_its_deletion_stays_writable)
{
	struct place at = live(1, "f");
	struct place trash = dead(1, "f", 7);
	uint64_t node = enter(20, false, 0, &at);

	move(20, false, at, trash);
	enter(20, false, 1, &trash);
	ck_assert(get(node).writable);
	ck_assert(node_busy(table, 20, NULL));
}
END_TEST

START_TEST(file_first_seen_in_a_view_is_not_writable_until_live)
{
	struct place trash = dead(1, "f", 7);
	struct place at = live(1, "f");
	uint64_t node = enter(20, false, 1, &trash);

	ck_assert(!get(node).writable);
	ck_assert(!node_busy(table, 20, NULL));
	move(20, false, trash, at);
	enter(20, false, 0, &at);
	ck_assert(get(node).writable);
}
END_TEST

START_TEST(look_ups_of_a_view_do_not_keep_a_closed_file_writable)
{
	struct place at = live(1, "f");
	struct place trash = dead(1, "f", 7);
	uint64_t node = enter(20, false, 0, &at);

	enter(20, false, 0, &at);
	move(20, false, at, trash);
	enter(20, false, 1, &trash); /* the FORGET of the two above is still under way */
	forget(node, 2);
	ck_assert(!get(node).writable);
	ck_assert(!node_busy(table, 20, NULL));
}
END_TEST

START_TEST(answer_that_nobody_took_says_nothing_of_the_open_file)
{
	struct place at = live(1, "f");
	struct place trash = dead(1, "f", 7);
	uint64_t node = enter(20, false, 0, &at);
	struct node unused;

	move(20, false, at, trash);
	enter(20, false, 1, &trash);
	ck_assert(!node_take_back(table, node, &unused));
	ck_assert(get(node).writable);
	ck_assert(node_busy(table, 20, NULL));
	ck_assert(!forget(node, 1));
	ck_assert_uint_eq(nodes(), 1);
}
END_TEST

START_TEST(file_that_may_be_open_is_busy_until_forgotten)
{
	struct place at = live(1, "f");
	struct place trash = dead(1, "f", 7);
	uint64_t node = enter(20, false, 0, &at);

	move(20, false, at, trash);
	enter(20, false, 1, &trash);
	forget(node, 1); /* of the open file, or of an answer the kernel had no use for */
	ck_assert(!get(node).writable);
	ck_assert(node_busy(table, 20, NULL));
	forget(node, 1);
	ck_assert(!node_busy(table, 20, NULL));
}
END_TEST

START_TEST(temporary_item_is_reported_when_let_go)
{
	struct place at = live(1, "tmp");
	uint64_t node = enter(20, false, 0, &at);
	struct lifecycle_change change = {
		.id = 20,
		.mode = S_IFREG,
		.from = at,
		.to = dead(1, "tmp", 7),
		.temporary = true,
	};
	struct node released;

	node_changed(table, &change);
	ck_assert(node_busy(table, 20, NULL));
	ck_assert(node_forget(table, node, 1, &released));
	ck_assert_uint_eq(released.id, 20);
	ck_assert_uint_eq(released.at.seq, 7);
	ck_assert(!node_busy(table, 20, NULL));
}
END_TEST

START_TEST(destroyed_name_leaves_the_file_its_other_names)
{
	struct place a = live(1, "a");
	struct place b = live(2, "b");
	struct place gone = { 0 };
	struct place at;
	uint64_t node = enter_name(20, &a);

	move(20, false, a, dead(1, "a", 7));
	a = dead(1, "a", 7);
	ck_assert(node_busy(table, 20, &a));
	ck_assert(!node_has_other(table, 20, &a));
	ck_assert_uint_eq(enter_name(20, &b), node);
	ck_assert(!node_busy(table, 20, &a));
	ck_assert(node_has_other(table, 20, &a));
	move(20, false, a, gone);
	ck_assert(node_locate(table, 20, &at));
	ck_assert_str_eq(at.name, "b");
	ck_assert(!get(node).lost);
	move(20, false, b, dead(2, "b", 8));
	move(20, false, dead(2, "b", 8), gone);
	ck_assert(get(node).lost);
	ck_assert(!node_locate(table, 20, &at));
}
END_TEST

START_TEST(live_name_comes_before_a_deleted_one)
{
	struct place trash = dead(1, "a", 7);
	struct place b = live(2, "b");
	struct place at;

	enter_name(20, &trash);
	enter_name(20, &b);
	ck_assert(node_locate(table, 20, &at));
	ck_assert_int_eq(at.state, KEY_ACT);
	move(20, false, trash, live(1, "a"));
	move(20, false, b, dead(2, "b", 8));
	ck_assert(node_locate(table, 20, &at));
	ck_assert_str_eq(at.name, "a");
	move(20, false, live(1, "a"), dead(1, "a", 9));
	move(20, false, dead(2, "b", 8), b);
	ck_assert(node_locate(table, 20, &at));
	ck_assert_int_eq(at.state, KEY_ACT);
	ck_assert_str_eq(at.name, "b");
}
END_TEST

START_TEST(being_live_is_forgotten_when_a_directory_moves)
{
	struct place at = live(1, "d");
	uint64_t node = enter(20, true, 0, &at);

	node_set_live(table, node, node_moves(table));
	ck_assert(get(node).live);
	move(30, true, live(1, "e"), dead(1, "e", 7));
	ck_assert(!get(node).live);
}
END_TEST

START_TEST(being_live_outlasts_the_removal_of_an_empty_directory)
{
	struct place at = live(1, "d"), below = live(20, "e"), trash = dead(20, "e", 7);
	struct lifecycle_change removed = {
		.id = 21, .mode = S_IFDIR, .from = below, .to = trash, .empty = true
	};
	uint64_t node = enter(20, true, 0, &at), inner = enter(21, true, 0, &below);
	uint64_t moves = node_moves(table);

	node_set_live(table, node, moves);
	node_set_live(table, inner, moves);
	node_changed(table, &removed);
	ck_assert(get(node).live);
	ck_assert(!get(inner).live);
	node_set_live(table, inner, moves); /* whoever asked before it went */
	ck_assert(!get(inner).live);
	move(21, true, trash, below);
	ck_assert(!get(node).live);
	ck_assert(!get(inner).live);
}
END_TEST

START_TEST(statistics_keep_the_text_of_their_look_up)
{
	uint64_t first, second;
	char buffer[16];
	size_t copied, size;

	ck_assert_int_eq(node_enter_control(table, NODE_CONTROL_STATS, strdup("one"), 3, &first), 0);
	ck_assert_int_eq(node_enter_control(table, NODE_CONTROL_STATS, strdup("three"), 5, &second), 0);
	ck_assert_uint_ne(first, second);
	ck_assert_int_eq(node_text(table, first, 1, buffer, sizeof(buffer), &copied, &size), 0);
	ck_assert_uint_eq(copied, 2);
	ck_assert_uint_eq(size, 3);
	ck_assert_int_eq(memcmp(buffer, "ne", 2), 0);
	ck_assert_int_eq(node_text(table, second, 9, buffer, sizeof(buffer), &copied, &size), 0);
	ck_assert_uint_eq(copied, 0);
	forget(first, 1);
	forget(second, 1);
	ck_assert_uint_eq(nodes(), 1);
}
END_TEST

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* A tree walk leaves a node of every file: 200 bytes each, with a name of 20. */
START_TEST(nodes_are_small)
{
	size_t before = allocated(), bytes, count = 20000;
	char name[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file-number-%08zu", i);
		struct place at = live(5, name);
		enter(100 + i, false, 0, &at);
	}
	/* The sanitizers' malloc tells nothing. */
	bytes = allocated() - before;
	printf("# %zu bytes a node\n", bytes / count);
	ck_assert_uint_le(bytes / count, 200);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/node");
	TCase *tests = tcase_create("node");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, root_is_known_and_cannot_be_forgotten);
	tcase_add_test(tests, file_has_one_node_live_and_in_any_view);
	tcase_add_test(tests, directory_has_a_node_in_each_view);
	tcase_add_test(tests, directory_of_a_view_found_elsewhere_gets_another_node);
	tcase_add_test(tests, kernel_acts_on_the_node_it_has_in_that_parent);
	tcase_add_test(tests, removed_directory_gets_another_node_when_it_is_back);
	tcase_add_test(tests, moved_directory_keeps_its_node);
	tcase_add_test(tests, node_moved_onto_another_takes_its_part);
	tcase_add_test(tests, node_ids_never_come_back);
	tcase_add_test(tests, counts_return_to_nothing);
	tcase_add_test(tests, answer_read_before_a_change_is_refused);
	tcase_add_test(tests, file_open_since_before_its_deletion_stays_writable);
	tcase_add_test(tests, answer_that_nobody_took_says_nothing_of_the_open_file);
	tcase_add_test(tests, file_that_may_be_open_is_busy_until_forgotten);
	tcase_add_test(tests, file_first_seen_in_a_view_is_not_writable_until_live);
	tcase_add_test(tests, look_ups_of_a_view_do_not_keep_a_closed_file_writable);
	tcase_add_test(tests, temporary_item_is_reported_when_let_go);
	tcase_add_test(tests, destroyed_name_leaves_the_file_its_other_names);
	tcase_add_test(tests, live_name_comes_before_a_deleted_one);
	tcase_add_test(tests, being_live_is_forgotten_when_a_directory_moves);
	tcase_add_test(tests, being_live_outlasts_the_removal_of_an_empty_directory);
	tcase_add_test(tests, nodes_are_small);
	tcase_add_test(tests, statistics_keep_the_text_of_their_look_up);
	suite_add_tcase(suite, tests);
	return test_main(suite);
}
