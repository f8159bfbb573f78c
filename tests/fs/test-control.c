/*
 * Control jobs without a mount: what they say, whose rights they act with, and
 * what a path means.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/bytes.h"
#include "fs/control.h"
#include "store/util.h"
#include "tests/lib/tree.h"

static struct test_tree t;
static struct control *control;
static unsigned settled;

static json_t *rows; /* of the last job */
static json_t *last; /* its last line */

static void settle(void *data)
{
	settled++;
}

static void open_tree(int engine, bool read_only)
{
	const struct control_host host = {
		.settle = settle, .store_path = "/store", .mount_point = "/mnt", .read_only = read_only
	};

	test_tree_open(&t, engine);
	ck_assert_int_eq(control_open(t.namei, &host, &control), 0);
	settled = 0;
}

static void close_tree(void)
{
	control_close(control);
	json_decref(rows);
	json_decref(last);
	rows = last = NULL;
	test_tree_close(&t);
}

static void take_line(char *line)
{
	json_t *object = json_loads(line, 0, NULL);
	json_t *row = json_object_get(object, "row");

	ck_assert_msg(object != NULL, "not JSON: %s", line);
	if (row)
		json_array_append(rows, row);
	else if (!json_object_get(object, "progress"))
		last = json_incref(object);
	json_decref(object);
}

static void take_lines(const char *text, size_t size)
{
	_cleanup_free_ char *copy = strndup(text, size);
	char *at = copy, *line;

	while ((line = strsep(&at, "\n")))
		if (*line)
			take_line(line);
	ck_assert_ptr_nonnull(last);
}

/* Runs a request to its end; gives its exit code. */
static int ask(const struct actor *actor, const char *request)
{
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	struct buffer b = { 0 };
	struct actor living = *actor;

	living.pid = (uint32_t)getpid(); /* a job ends with the process that asked */
	json_decref(rows);
	json_decref(last);
	rows = json_array();
	last = NULL;
	m->size = (uint32_t)strlen(request);
	memcpy(m->text, request, m->size);
	do {
		ck_assert_int_eq(control_call(control, &living, m), 0);
		buffer_append(&b, m->text, m->size);
		m->size = 0;
	} while (!m->done);
	take_lines((const char *)b.bytes, b.size);
	buffer_release(&b);
	return (int)json_integer_value(json_object_get(last, "exit"));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "(nothing)";
}

static int64_t number(const char *key)
{
	return json_integer_value(json_object_get(json_object_get(last, "result"), key));
}

/* Whether one of the rows has this value under `key`. */
static bool has_row(const char *key, const char *value)
{
	json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		if (!strcmp(text(row, key), value))
			return true;
	return false;
}

static void chmod_place(const struct place *at, uint32_t mode)
{
	struct attr_change change = { .set = ATTR_MODE, .mode = mode };
	struct inode after;

	ck_assert_int_eq(namei_setattr(t.namei, at, &change, &after), 0);
	inode_release(&after);
}

static void chmod_item(uint64_t parent, const char *name, uint32_t mode)
{
	struct inode before = test_look(&t, parent, name);

	chmod_place(&before.at, mode);
}

static void open_root_to_all(void)
{
	chmod_place(&(struct place){ .directory = KEY_ID_NONE, .state = KEY_ACT }, S_IFDIR | 0777);
}

/* As a user with a group of his own would. */
static void remove_as(const struct actor *actor, uint64_t parent, const char *name)
{
	struct actor a = *actor;

	a.pid += 50;
	a.start += 50;
	ck_assert_int_eq(lifecycle_remove(t.lifecycle, &a, parent, name, false), 0);
}

/* ---- listing -------------------------------------------------------------------- */

START_TEST(a_list_goes_below_and_says_where)
{
	uint64_t d, e;

	open_tree(_i, false);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	e = test_mkdir(&t, d, "e");
	test_file(&t, KEY_ID_ROOT, "top", "1");
	test_file(&t, e, "deep", "12345");
	test_remove(&t, KEY_ID_ROOT, "top");
	test_remove(&t, e, "deep");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 2);
	ck_assert(has_row("path", "/top"));
	ck_assert(has_row("path", "/d/e/deep"));
	ck_assert(has_row("trash_path", "/d/e/.trash/deep"));
	ck_assert(has_row("cause", "removed"));
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/d/e/.trash\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_str_eq(text(json_array_get(rows, 0), "path"), "/d/e/deep");
	ck_assert_str_eq(text(json_array_get(rows, 0), "trash_path"), "/d/e/.trash/deep");
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "size")), 5);
	close_tree();
}
END_TEST

START_TEST(filters_leave_out)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "old.c", "1");
	test_remove(&t, KEY_ID_ROOT, "old.c");
	test_clock_advance(&t.clock, 3600 * CLOCK_SECOND_NS);
	test_file(&t, KEY_ID_ROOT, "new.c", "1");
	test_file(&t, KEY_ID_ROOT, "new.h", "1");
	test_remove(&t, KEY_ID_ROOT, "new.c");
	test_remove(&t, KEY_ID_ROOT, "new.h");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\",\"since_ns\":60000000000}"), 0);
	ck_assert_uint_eq(json_array_size(rows), 2);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\",\"name\":\"*.c\"}"), 0);
	ck_assert_uint_eq(json_array_size(rows), 2);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\",\"limit\":1}"), 0);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\",\"limit\":0}"), 0);
	ck_assert_uint_eq(json_array_size(rows), 0);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\",\"uid\":1000}"), 0);
	ck_assert_uint_eq(json_array_size(rows), 0);
	close_tree();
}
END_TEST

START_TEST(a_deleted_directory_lists_what_went_with_it)
{
	uint64_t d;

	open_tree(_i, false);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "1");
	test_remove(&t, d, "f");
	test_remove(&t, KEY_ID_ROOT, "d");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_str_eq(text(json_array_get(rows, 0), "type"), "directory");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/.trash/d\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert(has_row("path", "/d/f"));
	ck_assert(has_row("shown_path", "/.trash/d/f"));
	ck_assert(has_row("trash_path", "/.trash/d/f"));
	/* By the path that was, too. */
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/d\"}"), CONTROL_DONE);
	ck_assert(has_row("path", "/d/f"));
	close_tree();
}
END_TEST

/* More than a page, and more than one message holds. */
START_TEST(long_lists_are_whole)
{
	char name[32];

	open_tree(_i, false);
	for (unsigned i = 0; i < 700; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		test_file(&t, KEY_ID_ROOT, name, "");
		test_remove(&t, KEY_ID_ROOT, name);
	}
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 700);
	ck_assert_int_eq(number("count"), 700);
	ck_assert(has_row("path", "/file0"));
	ck_assert(has_row("path", "/file699"));
	close_tree();
}
END_TEST

START_TEST(names_that_are_not_utf8_keep_their_bytes)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "a\xff\n", "1");
	test_remove(&t, KEY_ID_ROOT, "a\xff\n");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
	ck_assert_str_eq(text(json_array_get(rows, 0), "path_hex"), "2f61ff0a");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path_hex\":\"2f61ff0a\"}"), CONTROL_DONE);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "a\xff\n"));
	close_tree();
}
END_TEST

/* ---- restoring --------------------------------------------------------------------- */

START_TEST(a_path_that_was_finds_what_was_deleted)
{
	uint64_t a, b;

	open_tree(_i, false);
	a = test_mkdir(&t, KEY_ID_ROOT, "a");
	b = test_mkdir(&t, a, "b");
	test_file(&t, b, "f", "text");
	test_file(&t, b, "sibling", "text");
	test_remove(&t, b, "f");
	test_clock_advance(&t.clock, 7200 * CLOCK_SECOND_NS);
	test_remove(&t, b, "sibling");
	test_remove(&t, a, "b");
	test_remove(&t, KEY_ID_ROOT, "a");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/a/b/f\"}"), CONTROL_DONE);
	ck_assert_str_eq(text(json_object_get(last, "result"), "restored_path"), "/a/b/f");
	ck_assert_uint_eq(settled, 1);
	a = test_look(&t, KEY_ID_ROOT, "a").item.id;
	ck_assert_uint_eq(test_look(&t, a, "b").item.id, b);
	ck_assert(test_exists(&t, b, "f"));
	ck_assert(!test_exists(&t, b, "sibling"));
	test_consistent(&t);
	close_tree();
}
END_TEST

START_TEST(a_taken_name_is_a_conflict_unless_told_otherwise)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "f", "old");
	test_remove(&t, KEY_ID_ROOT, "f");
	test_file(&t, KEY_ID_ROOT, "f", "new");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f\"}"), CONTROL_CONFLICT);
	ck_assert_str_eq(text(last, "path"), "/f");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f\",\"taken\":\"skip\"}"),
			 CONTROL_DONE);
	ck_assert_uint_eq(test_deleted(&t, KEY_ID_ROOT, "f"), 1);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f\",\"taken\":\"rename\"}"),
			 CONTROL_DONE);
	ck_assert_str_eq(text(json_object_get(last, "result"), "restored_path"), "/f (restored)");
	ck_assert(test_exists(&t, KEY_ID_ROOT, "f (restored)"));
	test_remove(&t, KEY_ID_ROOT, "f (restored)");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f (restored)\",\"to\":\"/\","
				      "\"taken\":\"replace\"}"),
			 CONTROL_DONE);
	close_tree();
}
END_TEST

START_TEST(replacing_sends_the_bearer_to_the_trash)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "f", "old");
	test_remove(&t, KEY_ID_ROOT, "f");
	test_file(&t, KEY_ID_ROOT, "f", "new");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f\",\"taken\":\"replace\"}"),
			 CONTROL_DONE);
	test_text(&t, test_look(&t, KEY_ID_ROOT, "f").item.id, "old");
	ck_assert_uint_eq(test_deleted(&t, KEY_ID_ROOT, "f"), 1);
	close_tree();
}
END_TEST

START_TEST(to_a_directory_with_another_name_where_taken)
{
	uint64_t d;

	open_tree(_i, false);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, KEY_ID_ROOT, "f", "text");
	test_file(&t, d, "f", "taken");
	test_file(&t, d, "f (restored)", "taken too");
	test_remove(&t, KEY_ID_ROOT, "f");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/f\",\"to\":\"/d\"}"),
			 CONTROL_CONFLICT);
	ck_assert_int_eq(ask(&t.root,
			     "{\"verb\":\"restore\",\"path\":\"/f\",\"to\":\"/d\",\"taken\":\"rename\"}"),
			 CONTROL_DONE);
	ck_assert_str_eq(text(json_object_get(last, "result"), "restored_path"), "/d/f (restored 2)");
	test_text(&t, test_look(&t, d, "f (restored 2)").item.id, "text");
	close_tree();
}
END_TEST

START_TEST(what_is_in_the_way_is_named)
{
	uint64_t d;

	open_tree(_i, false);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, d, "f", "1");
	test_remove(&t, d, "f");
	test_remove(&t, KEY_ID_ROOT, "d");
	test_file(&t, KEY_ID_ROOT, "d", "a file");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/d/f\"}"), CONTROL_CONFLICT);
	ck_assert_str_eq(text(last, "path"), "/d/f");
	ck_assert_str_eq(text(last, "in_way"), "/d");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/d/f\",\"to\":\"/\"}"),
			 CONTROL_DONE);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "f"));
	close_tree();
}
END_TEST

START_TEST(what_is_not_in_the_trash_is_not_found)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "live", "");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/live\"}"), CONTROL_NOT_FOUND);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/never\"}"), CONTROL_NOT_FOUND);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/live/below\"}"),
			 CONTROL_NOT_FOUND);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"restore\",\"path\":\"/.trash\"}"), CONTROL_USAGE);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/live\"}"), CONTROL_NOT_FOUND);
	close_tree();
}
END_TEST

/* Times that no deletion can bear: in the years when nanoseconds outgrow 63 and 64 bits, and after. */
START_TEST(names_with_impossible_times_are_not_there)
{
	static const char *const years[] = { "2262-04-11T23:47:16.854775808", "2262-04-12T00:00:00",
					     "2296-11-30T16:25:39.1",	      "2554-07-21T23:34:33",
					     "2555-01-01T00:00:00",	      "9999-12-31T23:59:59" };
	char request[128];

	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "f", "");
	test_remove(&t, KEY_ID_ROOT, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(years); i++) {
		snprintf(request, sizeof(request),
			 "{\"verb\":\"restore\",\"path\":\"/.trash/f@%sZ\"}", years[i]);
		ck_assert_int_eq(ask(&t.root, request), CONTROL_NOT_FOUND);
	}
	close_tree();
}
END_TEST

/* ---- undo ---------------------------------------------------------------------------- */

START_TEST(undo_brings_the_last_batch_back)
{
	char request[128];

	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "a", "1");
	test_file(&t, KEY_ID_ROOT, "b", "22");
	test_remove(&t, KEY_ID_ROOT, "a");
	test_remove(&t, KEY_ID_ROOT, "b");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"batches\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(rows, 0), "count")), 2);
	ck_assert_str_eq(text(json_array_get(rows, 0), "directory"), "/");
	snprintf(request, sizeof(request), "{\"verb\":\"undo\",\"batch\":\"%s\",\"dry_run\":true}",
		 text(json_array_get(rows, 0), "id"));
	ck_assert_int_eq(ask(&t.root, request), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 2);
	ck_assert(!test_exists(&t, KEY_ID_ROOT, "a"));
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"undo\"}"), CONTROL_DONE);
	ck_assert_int_eq(number("restored"), 2);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "a"));
	ck_assert(test_exists(&t, KEY_ID_ROOT, "b"));
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"undo\"}"), CONTROL_NOT_FOUND);
	test_consistent(&t);
	close_tree();
}
END_TEST

START_TEST(undo_with_a_taken_name_moves_nothing)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "a", "1");
	test_file(&t, KEY_ID_ROOT, "b", "1");
	test_remove(&t, KEY_ID_ROOT, "a");
	test_remove(&t, KEY_ID_ROOT, "b");
	test_file(&t, KEY_ID_ROOT, "a", "new");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"undo\"}"), CONTROL_CONFLICT);
	ck_assert(!test_exists(&t, KEY_ID_ROOT, "b"));
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"undo\",\"taken\":\"skip\"}"), CONTROL_DONE);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "b"));
	ck_assert_int_eq(number("skipped"), 1);
	close_tree();
}
END_TEST

/* ---- rights ---------------------------------------------------------------------------- */

/* The user's file in his private directory; whoever opens it up later publishes nothing. */
START_TEST(nobody_learns_or_moves_what_he_could_not_see)
{
	uint64_t d;

	open_tree(_i, false);
	open_root_to_all();
	d = test_make(&t, &t.user, KEY_ID_ROOT, "private", S_IFDIR | 0700);
	test_make(&t, &t.user, d, "secret", S_IFREG | 0644);
	remove_as(&t.user, d, "secret");
	for (int opened = 0; opened < 2; opened++) {
		ck_assert_int_eq(ask(&t.other, "{\"verb\":\"list\",\"path\":\"/private\"}"),
				 CONTROL_FAILED);
		ck_assert_int_eq(ask(&t.other, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
		ck_assert_uint_eq(json_array_size(rows), 0);
		ck_assert_int_eq(ask(&t.other, "{\"verb\":\"restore\",\"path\":\"/private/secret\"}"),
				 CONTROL_FAILED);
		ck_assert_int_eq(ask(&t.other, "{\"verb\":\"restore\",\"path\":\"/private/nothing\"}"),
				 CONTROL_FAILED);
		ck_assert_int_eq(ask(&t.other, "{\"verb\":\"empty\",\"path\":\"/private\"}"),
				 CONTROL_PARTLY);
		ck_assert_int_eq(number("refused"), 1);
		ck_assert_uint_eq(test_deleted(&t, d, "secret"), 1);
		chmod_item(KEY_ID_ROOT, "private", S_IFDIR | 0777);
	}
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"list\",\"path\":\"/private\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"restore\",\"path\":\"/private/secret\"}"),
			 CONTROL_DONE);
	ck_assert(test_exists(&t, d, "secret"));
	close_tree();
}
END_TEST

START_TEST(groups_count)
{
	static const uint32_t groups[] = { 7, 1000 };
	struct actor member;
	uint64_t d;

	open_tree(_i, false);
	member = t.other;
	d = test_make(&t, &t.user, KEY_ID_ROOT, "shared", S_IFDIR | 0770);
	test_make(&t, &t.user, d, "f", S_IFREG | 0640);
	remove_as(&t.user, d, "f");
	ck_assert_int_eq(ask(&member, "{\"verb\":\"restore\",\"path\":\"/shared/f\"}"), CONTROL_FAILED);
	member.groups = groups;
	member.groups_count = 2;
	ck_assert_int_eq(ask(&member, "{\"verb\":\"restore\",\"path\":\"/shared/f\"}"), CONTROL_DONE);
	close_tree();
}
END_TEST

START_TEST(others_batches_are_not_ones_own)
{
	char request[64];

	open_tree(_i, false);
	open_root_to_all();
	test_make(&t, &t.user, KEY_ID_ROOT, "f", S_IFREG | 0644);
	remove_as(&t.user, KEY_ID_ROOT, "f");
	ck_assert_int_eq(ask(&t.other, "{\"verb\":\"batches\",\"all\":true}"), CONTROL_FAILED);
	ck_assert_int_eq(ask(&t.other, "{\"verb\":\"batches\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 0);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"batches\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	snprintf(request, sizeof(request), "{\"verb\":\"undo\",\"batch\":\"%s\"}",
		 text(json_array_get(rows, 0), "id"));
	ck_assert_int_eq(ask(&t.other, request), CONTROL_NOT_FOUND);
	ck_assert_int_eq(ask(&t.root, request), CONTROL_DONE);
	ck_assert(test_exists(&t, KEY_ID_ROOT, "f"));
	close_tree();
}
END_TEST

START_TEST(a_read_only_mount_changes_nothing)
{
	static const char *const changing[] = {
		"{\"verb\":\"restore\",\"path\":\"/f\"}",
		"{\"verb\":\"undo\"}",
		"{\"verb\":\"empty\",\"path\":\"/\",\"now\":true}",
		"{\"verb\":\"sweep\"}",
		"{\"verb\":\"clock-accept\"}",
	};

	open_tree(_i, true);
	test_file(&t, KEY_ID_ROOT, "f", "1");
	test_remove(&t, KEY_ID_ROOT, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(changing); i++)
		ck_assert_int_eq(ask(&t.root, changing[i]), CONTROL_FAILED);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"/\"}"), CONTROL_DONE);
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"undo\",\"dry_run\":true}"), CONTROL_DONE);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"empty\",\"path\":\"/\",\"dry_run\":true}"),
			 CONTROL_DONE);
	ck_assert_int_eq(number("entries"), 1);
	close_tree();
}
END_TEST

/* ---- the rest ------------------------------------------------------------------------------ */

START_TEST(emptying_and_sweeping_destroy)
{
	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "a", "12345");
	test_file(&t, KEY_ID_ROOT, "b", "1");
	test_remove(&t, KEY_ID_ROOT, "a");
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"empty\",\"path\":\"/\",\"now\":true}"), CONTROL_DONE);
	ck_assert_int_eq(number("entries"), 1);
	ck_assert_int_eq(number("bytes"), 5);
	ck_assert_uint_eq(test_deleted(&t, KEY_ID_ROOT, "a"), 0);
	test_remove(&t, KEY_ID_ROOT, "b");
	ck_assert_int_eq(
		ask(&t.root, "{\"verb\":\"empty\",\"path\":\"/\",\"older_than_ns\":3600000000000}"), 0);
	ck_assert_int_eq(number("entries"), 0);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"sweep\"}"), CONTROL_DONE);
	ck_assert_int_eq(number("destroyed"), 0);
	ck_assert_int_gt(number("next_due_ns"), t.clock.realtime_ns);
	test_clock_advance(&t.clock, INT64_C(31) * 86400 * CLOCK_SECOND_NS);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"sweep\"}"), CONTROL_DONE);
	ck_assert_int_eq(number("destroyed"), 1);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"sweep\"}"), CONTROL_FAILED);
	test_consistent(&t);
	close_tree();
}
END_TEST

START_TEST(status_policy_and_df_add_up)
{
	json_t *result;

	open_tree(_i, false);
	test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, KEY_ID_ROOT, "a", "12345");
	test_file(&t, KEY_ID_ROOT, "b", "123");
	test_remove(&t, KEY_ID_ROOT, "b");
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"status\"}"), CONTROL_DONE);
	result = json_object_get(last, "result");
	ck_assert_str_eq(text(result, "store"), "/store");
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(result, "live"), "items")), 2);
	ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(result, "live"), "bytes")), 5);
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(result, "trash"), "bytes")), 3);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"policy\",\"path\":\"/d\"}"), CONTROL_DONE);
	ck_assert_int_eq(number("retention_ns"), INT64_C(30) * 86400 * CLOCK_SECOND_NS);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"policy\",\"path\":\"/a\"}"), CONTROL_NOT_FOUND);
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"df\"}"), CONTROL_DONE);
	result = json_object_get(last, "result");
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(result, "removed"), "bytes")), 3);
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(result, "due_day"), "items")), 0);
	close_tree();
}
END_TEST

START_TEST(stats_are_an_exposition)
{
	_cleanup_free_ char *stats = NULL;
	size_t size;

	open_tree(_i, false);
	test_file(&t, KEY_ID_ROOT, "a", "12345");
	ck_assert_int_eq(control_stats(control, &stats, &size), 0);
	ck_assert_uint_eq(strlen(stats), size);
	ck_assert_ptr_nonnull(strstr(stats, "\nddbfs_live_items 1\n"));
	ck_assert_ptr_nonnull(strstr(stats, "\nddbfs_live_bytes 5\n"));
	ck_assert_ptr_nonnull(strstr(stats, "\nddbfs_destroyed_total{cause=\"expired\"} 0\n"));
	close_tree();
}
END_TEST

/* ---- the protocol ------------------------------------------------------------------------------ */

START_TEST(nonsense_is_refused)
{
	static const char *const words[] = { "", "{", "[]", "5", "\xff", "{\"verb\":\"status\"} x" };
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));

	open_tree(_i, false);
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		memset(m, 0, sizeof(*m));
		m->size = (uint32_t)strlen(words[i]);
		memcpy(m->text, words[i], m->size);
		ck_assert_int_eq(control_call(control, &t.root, m), -EINVAL);
	}
	m->size = CONTROL_TEXT_MAX + 1;
	ck_assert_int_eq(control_call(control, &t.root, m), -EINVAL);
	ck_assert_int_eq(ask(&t.root, "{}"), CONTROL_FAILED);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"frobnicate\"}"), CONTROL_FAILED);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":5}"), CONTROL_FAILED);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\"}"), CONTROL_USAGE);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":\"relative\"}"), CONTROL_USAGE);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path\":7}"), CONTROL_USAGE);
	ck_assert_int_eq(ask(&t.root, "{\"verb\":\"list\",\"path_hex\":\"2f0\"}"), CONTROL_USAGE);
	close_tree();
}
END_TEST

START_TEST(a_job_answers_its_owner_alone)
{
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	static const char request[] = "{\"verb\":\"list\",\"path\":\"/\"}";
	uint64_t job;
	char name[32];

	open_tree(_i, false);
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		test_file(&t, KEY_ID_ROOT, name, "");
		test_remove(&t, KEY_ID_ROOT, name);
	}
	m->size = sizeof(request) - 1;
	memcpy(m->text, request, m->size);
	ck_assert_int_eq(control_call(control, &t.root, m), 0);
	ck_assert(!m->done);
	job = m->job;
	m->size = 0;
	ck_assert_int_eq(control_call(control, &t.user, m), -ENOENT);
	m->job = job + 1;
	ck_assert_int_eq(control_call(control, &t.root, m), -ENOENT);
	m->job = job;
	ck_assert_int_eq(control_call(control, &t.root, m), 0);
	close_tree(); /* with the job not fetched to its end */
}
END_TEST

/* A listing that waits for its reader must not wait for a dead one. */
START_TEST(a_job_ends_with_the_process_that_asked)
{
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	static const char request[] = "{\"verb\":\"list\",\"path\":\"/\"}";
	struct actor dead;
	int64_t begun;
	pid_t pid = fork();
	char name[32];

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	open_tree(_i, false);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		test_file(&t, KEY_ID_ROOT, name, "");
		test_remove(&t, KEY_ID_ROOT, name);
	}
	dead = t.root;
	dead.pid = (uint32_t)pid;
	m->size = sizeof(request) - 1;
	memcpy(m->text, request, m->size);
	ck_assert_int_eq(control_call(control, &dead, m), 0);
	begun = clock_boot_ns(clock_system());
	while (!m->done) {
		m->size = 0;
		ck_assert_int_eq(control_call(control, &dead, m), 0);
	}
	ck_assert_int_lt(clock_boot_ns(clock_system()) - begun, 30 * CLOCK_SECOND_NS);
	ck_assert_ptr_nonnull(strstr(m->text, "\"exit\":130"));
	close_tree();
}
END_TEST

START_TEST(too_many_jobs_are_refused)
{
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	static const char request[] = "{\"verb\":\"list\",\"path\":\"/\"}";
	char name[32];
	int result = 0;
	unsigned i;

	open_tree(_i, false);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		test_file(&t, KEY_ID_ROOT, name, "");
		test_remove(&t, KEY_ID_ROOT, name);
	}
	for (i = 0; i < 20 && !result; i++) {
		m->job = 0;
		m->size = sizeof(request) - 1;
		memcpy(m->text, request, m->size);
		result = control_call(control, &t.root, m);
	}
	ck_assert_int_eq(result, -EAGAIN);
	/* Another user is not concerned. */
	ck_assert_int_eq(ask(&t.user, "{\"verb\":\"status\"}"), CONTROL_DONE);
	close_tree();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/control");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 60);
	tcase_add_loop_test(all, a_list_goes_below_and_says_where, 0, TEST_ENGINES);
	tcase_add_loop_test(all, filters_leave_out, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_deleted_directory_lists_what_went_with_it, 0, TEST_ENGINES);
	tcase_add_loop_test(all, long_lists_are_whole, 0, TEST_ENGINES);
	tcase_add_loop_test(all, names_that_are_not_utf8_keep_their_bytes, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_path_that_was_finds_what_was_deleted, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_taken_name_is_a_conflict_unless_told_otherwise, 0, TEST_ENGINES);
	tcase_add_loop_test(all, replacing_sends_the_bearer_to_the_trash, 0, TEST_ENGINES);
	tcase_add_loop_test(all, to_a_directory_with_another_name_where_taken, 0, TEST_ENGINES);
	tcase_add_loop_test(all, what_is_in_the_way_is_named, 0, TEST_ENGINES);
	tcase_add_loop_test(all, what_is_not_in_the_trash_is_not_found, 0, TEST_ENGINES);
	tcase_add_loop_test(all, names_with_impossible_times_are_not_there, 0, TEST_ENGINES);
	tcase_add_loop_test(all, undo_brings_the_last_batch_back, 0, TEST_ENGINES);
	tcase_add_loop_test(all, undo_with_a_taken_name_moves_nothing, 0, TEST_ENGINES);
	tcase_add_loop_test(all, nobody_learns_or_moves_what_he_could_not_see, 0, TEST_ENGINES);
	tcase_add_loop_test(all, groups_count, 0, TEST_ENGINES);
	tcase_add_loop_test(all, others_batches_are_not_ones_own, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_read_only_mount_changes_nothing, 0, TEST_ENGINES);
	tcase_add_loop_test(all, emptying_and_sweeping_destroy, 0, TEST_ENGINES);
	tcase_add_loop_test(all, status_policy_and_df_add_up, 0, TEST_ENGINES);
	tcase_add_loop_test(all, stats_are_an_exposition, 0, TEST_ENGINES);
	tcase_add_loop_test(all, nonsense_is_refused, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_job_answers_its_owner_alone, 0, TEST_ENGINES);
	tcase_add_loop_test(all, a_job_ends_with_the_process_that_asked, 0, TEST_ENGINES);
	tcase_add_loop_test(all, too_many_jobs_are_refused, 0, TEST_ENGINES);
	suite_add_tcase(suite, all);
	return test_main(suite);
}
