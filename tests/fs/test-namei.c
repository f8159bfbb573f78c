/*
 * Names and attributes of the live tree, without a mount.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/lib/tree.h"

static struct test_tree t;

static int create(const struct actor *actor, uint64_t parent, const char *name, uint32_t mode)
{
	struct namei_new what = { .mode = mode, .target = "x" };
	struct inode i;
	int result = namei_create(t.namei, actor, parent, name, &what, &i);

	if (result == 0)
		inode_release(&i);
	return result;
}

static struct inode set(uint64_t parent, const char *name, struct attr_change change)
{
	struct inode before = test_look(&t, parent, name), after;

	ck_assert_int_eq(namei_setattr(t.namei, &before.at, &change, &after), 0);
	inode_release(&after);
	return after;
}

static void ck_time(struct timespec ts, int64_t ns)
{
	ck_assert_int_eq(ts.tv_sec, ns / CLOCK_SECOND_NS);
	ck_assert_int_eq(ts.tv_nsec, ns % CLOCK_SECOND_NS);
}

/* ---- create ---------------------------------------------------------------- */

START_TEST(create_gives_what_was_asked_for)
{
	struct namei_new what = { .mode = S_IFREG | 0640 };
	struct inode made, found;

	test_tree_open(&t, _i);
	ck_assert_int_eq(namei_create(t.namei, &t.user, KEY_ID_ROOT, "f", &what, &made), 0);
	found = test_look(&t, KEY_ID_ROOT, "f");
	ck_assert_uint_eq(found.item.id, made.item.id);
	ck_assert_uint_eq(found.name_version, made.name_version);
	ck_assert_uint_eq(found.item.mode, S_IFREG | 0640);
	ck_assert_uint_eq(found.item.uid, 1000);
	ck_assert_uint_eq(found.item.gid, 1000);
	ck_assert_uint_eq(found.nlink, 1);
	ck_assert_uint_eq(found.item.size, 0);
	ck_time(found.item.atime, t.clock.realtime_ns);
	ck_time(found.item.mtime, t.clock.realtime_ns);
	ck_time(found.item.ctime, t.clock.realtime_ns);
	ck_time(found.item.btime, t.clock.realtime_ns);
	inode_release(&made);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(create_moves_the_times_of_its_directory)
{
	uint64_t d;
	struct inode i;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_clock_advance(&t.clock, 5 * CLOCK_SECOND_NS + 7);
	test_file(&t, d, "f", "x");
	i = test_look(&t, KEY_ID_ROOT, "d");
	ck_time(i.item.mtime, t.clock.realtime_ns);
	ck_time(i.item.ctime, t.clock.realtime_ns);
	ck_time(i.item.atime, t.clock.realtime_ns - 5 * CLOCK_SECOND_NS - 7);
	test_tree_close(&t);
}
END_TEST

START_TEST(create_refuses_names)
{
	char name[300];
	uint64_t d;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	ck_assert_int_eq(create(&t.root, d, name, S_IFREG), -ENAMETOOLONG);
	name[255] = '\0';
	ck_assert_int_eq(create(&t.root, d, name, S_IFREG), 0);
	ck_assert_int_eq(create(&t.root, d, name, S_IFREG), -EEXIST);
	ck_assert_int_eq(create(&t.root, d, name, S_IFDIR), -EEXIST);
	ck_assert_int_eq(create(&t.root, d, ".trash", S_IFREG), -EEXIST);
	ck_assert_int_eq(create(&t.root, KEY_ID_ROOT, ".trash", S_IFDIR), -EEXIST);
	ck_assert_int_eq(create(&t.root, KEY_ID_ROOT, ".ddbfs", S_IFDIR), -EEXIST);
	ck_assert_int_eq(create(&t.root, d, ".ddbfs", S_IFDIR), 0);
	ck_assert_int_eq(create(&t.root, d, "", S_IFREG), -ENOENT);
	ck_assert_int_eq(create(&t.root, d, "a/b", S_IFREG), -EINVAL);
	ck_assert_int_eq(create(&t.root, d + 1000, "f", S_IFREG), -ENOENT);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(create_takes_names_that_look_like_keys)
{
	static const char *const names[] = { "DEL#1", "ACT#x", "name@2026-01-01T00:00:00Z",
					     "\n",    "-n",    "\xff\xfe",
					     " ",     "..." };

	test_tree_open(&t, _i);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		test_file(&t, KEY_ID_ROOT, names[i], names[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct inode f = test_look(&t, KEY_ID_ROOT, names[i]);

		ck_assert_str_eq(f.item.name, names[i]);
		test_text(&t, f.item.id, names[i]);
	}
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(create_fails_in_removed_directory)
{
	uint64_t d;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_remove(&t, KEY_ID_ROOT, "d");
	ck_assert_int_eq(create(&t.root, d, "f", S_IFREG | 0644), -ENOENT);
	ck_assert_int_eq(create(&t.root, d, "s", S_IFDIR | 0755), -ENOENT);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

/* Its own guard says live, since only the item of the one above moved. */
START_TEST(nothing_comes_in_below_a_discarded_directory)
{
	uint64_t d, below;
	struct inode f;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	below = test_mkdir(&t, d, "below");
	test_file(&t, below, "in", "x");
	test_file(&t, KEY_ID_ROOT, "out", "y");
	ck_assert_int_eq(create(&t.user, below, "before", S_IFREG | 0644), 0);
	ck_assert_int_eq(lifecycle_discard(t.lifecycle, &t.remover, KEY_ID_ROOT, "d"), 0);
	ck_assert_int_eq(create(&t.user, below, "f", S_IFREG | 0644), -EROFS);
	ck_assert_int_eq(create(&t.user, below, "s", S_IFDIR | 0755), -EROFS);
	f = test_look(&t, KEY_ID_ROOT, "out");
	ck_assert_int_eq(namei_link(t.namei, &t.user, &f.at, below, "l", NULL), -EROFS);
	ck_assert_int_eq(test_rename(&t, KEY_ID_ROOT, "out", below, "moved", 0), -EROFS);
	ck_assert_int_eq(test_rename(&t, below, "in", KEY_ID_ROOT, "moved", 0), -EROFS);
	ck_assert_int_eq(test_rename(&t, below, "in", below, "moved", 0), -EROFS);
	test_text(&t, f.item.id, "y");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(mkdir_counts_links)
{
	uint64_t d;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "d").nlink, 2);
	test_mkdir(&t, d, "a");
	test_mkdir(&t, d, "b");
	test_file(&t, d, "f", "");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "d").nlink, 4);
	test_remove(&t, d, "a");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "d").nlink, 3);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(setgid_directory_hands_down_its_group)
{
	uint64_t d;
	struct inode i;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	set(KEY_ID_ROOT, "d",
	    (struct attr_change){ .set = ATTR_MODE | ATTR_GID, .mode = 02777, .gid = 77 });
	test_make(&t, &t.user, d, "f", S_IFREG | 0644);
	test_make(&t, &t.user, d, "s", S_IFDIR | 0755);
	i = test_look(&t, d, "f");
	ck_assert_uint_eq(i.item.gid, 77);
	ck_assert_uint_eq(i.item.mode, S_IFREG | 0644);
	i = test_look(&t, d, "s");
	ck_assert_uint_eq(i.item.gid, 77);
	ck_assert_uint_eq(i.item.mode, S_IFDIR | 02755);
	test_tree_close(&t);
}
END_TEST

START_TEST(special_files_keep_their_type_and_device)
{
	struct namei_new what = { .mode = S_IFCHR | 0600, .rdev = (uint32_t)makedev(1, 3) };
	struct inode i;

	test_tree_open(&t, _i);
	ck_assert_int_eq(namei_create(t.namei, &t.root, KEY_ID_ROOT, "null", &what, &i), 0);
	inode_release(&i);
	what.mode = S_IFIFO | 0600;
	ck_assert_int_eq(namei_create(t.namei, &t.root, KEY_ID_ROOT, "fifo", &what, &i), 0);
	inode_release(&i);
	test_make(&t, NULL, KEY_ID_ROOT, "sock", S_IFSOCK | 0755);
	i = test_look(&t, KEY_ID_ROOT, "null");
	ck_assert_uint_eq(i.item.mode, S_IFCHR | 0600);
	ck_assert_uint_eq(i.item.rdev, makedev(1, 3));
	i = test_look(&t, KEY_ID_ROOT, "fifo");
	ck_assert_uint_eq(i.item.mode, S_IFIFO | 0600);
	ck_assert_uint_eq(i.item.rdev, 0);
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "sock").item.mode, S_IFSOCK | 0755);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(symlink_keeps_its_target)
{
	char target[4200];
	struct namei_new what = { .mode = S_IFLNK | 0777, .target = target };
	struct inode i;

	test_tree_open(&t, _i);
	memset(target, 't', sizeof(target));
	target[4096] = '\0';
	ck_assert_int_eq(namei_create(t.namei, &t.root, KEY_ID_ROOT, "l", &what, &i), -ENAMETOOLONG);
	target[4095] = '\0';
	ck_assert_int_eq(namei_create(t.namei, &t.root, KEY_ID_ROOT, "l", &what, &i), 0);
	inode_release(&i);
	ck_assert_int_eq(namei_lookup(t.namei, KEY_ID_ROOT, "l", false, &i), 0);
	ck_assert_uint_eq(i.item.size, 4095);
	ck_assert_uint_eq(i.item.content_size, 4095);
	ck_assert_mem_eq(i.item.content, target, 4095);
	inode_release(&i);
	target[0] = '\0';
	ck_assert_int_eq(namei_create(t.namei, &t.root, KEY_ID_ROOT, "e", &what, &i), -ENOENT);
	/* chown and utimes of the link itself keep its target. */
	set(KEY_ID_ROOT, "l", (struct attr_change){ .set = ATTR_UID, .uid = 5 });
	ck_assert_int_eq(namei_lookup(t.namei, KEY_ID_ROOT, "l", false, &i), 0);
	ck_assert_uint_eq(i.item.content_size, 4095);
	ck_assert_uint_eq(i.item.uid, 5);
	inode_release(&i);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

/* ---- link ------------------------------------------------------------------ */

START_TEST(link_makes_one_file_of_two_names)
{
	uint64_t d, f;
	struct inode a, b;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	f = test_file(&t, KEY_ID_ROOT, "a", "text");
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	test_link(&t, KEY_ID_ROOT, "a", d, "b");
	a = test_look(&t, KEY_ID_ROOT, "a");
	b = test_look(&t, d, "b");
	ck_assert_uint_eq(a.item.id, f);
	ck_assert_uint_eq(b.item.id, f);
	ck_assert_uint_eq(a.nlink, 2);
	ck_assert_uint_eq(b.nlink, 2);
	ck_assert_uint_eq(b.item.size, 4);
	ck_time(a.item.ctime, t.clock.realtime_ns);
	ck_time(a.item.mtime, t.clock.realtime_ns - CLOCK_SECOND_NS);
	test_link(&t, d, "b", d, "c");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "a").nlink, 3);
	test_consistent(&t);

	/* A change through one is seen through all. */
	ck_assert_int_eq(test_write(&t, f, 4, "!", 1), 0);
	set(KEY_ID_ROOT, "a", (struct attr_change){ .set = ATTR_MODE, .mode = 0600 });
	b = test_look(&t, d, "c");
	ck_assert_uint_eq(b.item.mode, S_IFREG | 0600);
	test_text(&t, f, "text!");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(link_counts_down_with_its_names)
{
	uint64_t f;

	test_tree_open(&t, _i);
	f = test_file(&t, KEY_ID_ROOT, "a", "text");
	test_link(&t, KEY_ID_ROOT, "a", KEY_ID_ROOT, "b");
	test_link(&t, KEY_ID_ROOT, "a", KEY_ID_ROOT, "c");
	test_remove(&t, KEY_ID_ROOT, "a");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "b").nlink, 2);
	test_consistent(&t);
	test_remove(&t, KEY_ID_ROOT, "c");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "b").nlink, 1);
	test_text(&t, f, "text");
	test_remove(&t, KEY_ID_ROOT, "b");
	test_consistent(&t);
	/* Open, it could still be written. */
	ck_assert_int_eq(test_write(&t, f, 0, "longer than before", 18), 0);
	test_text(&t, f, "longer than before");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(link_by_a_deleted_name_while_another_lives)
{
	struct inode a, out;
	struct place deleted;

	test_tree_open(&t, _i);
	test_file(&t, KEY_ID_ROOT, "a", "x");
	a = test_look(&t, KEY_ID_ROOT, "a");
	test_link(&t, KEY_ID_ROOT, "a", KEY_ID_ROOT, "b");
	test_remove(&t, KEY_ID_ROOT, "a");
	ck_assert(t.where.locate(t.where.data, a.item.id, &deleted));
	ck_assert_int_eq(namei_link(t.namei, &t.root, &deleted, KEY_ID_ROOT, "a", &out), 0);
	ck_assert_uint_eq(out.nlink, 2);
	inode_release(&out);
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "b").nlink, 2);
	test_remove(&t, KEY_ID_ROOT, "b");
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "a").nlink, 1);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(link_refuses)
{
	uint64_t d;
	struct inode i, out;
	struct place deleted;

	test_tree_open(&t, _i);
	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	test_file(&t, KEY_ID_ROOT, "f", "");
	i = test_look(&t, KEY_ID_ROOT, "d");
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, KEY_ID_ROOT, "e", &out), -EPERM);
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, KEY_ID_ROOT, "f", &out), -EEXIST);
	i = test_look(&t, KEY_ID_ROOT, "f");
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, KEY_ID_ROOT, "d", &out), -EEXIST);
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, d, ".trash", &out), -EEXIST);
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, d + 99, "x", &out), -ENOENT);
	test_remove(&t, KEY_ID_ROOT, "f");
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, d, "x", &out), -ENOENT);
	ck_assert(t.where.locate(t.where.data, i.item.id, &deleted));
	ck_assert_int_eq(namei_link(t.namei, &t.root, &deleted, d, "x", &out), -EROFS);
	test_remove(&t, KEY_ID_ROOT, "d");
	test_file(&t, KEY_ID_ROOT, "g", "");
	i = test_look(&t, KEY_ID_ROOT, "g");
	ck_assert_int_eq(namei_link(t.namei, &t.root, &i.at, d, "x", &out), -ENOENT);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

/* ---- attributes ------------------------------------------------------------ */

START_TEST(setattr_sets_what_it_is_told)
{
	struct timespec atime = { -5, 999999999 }, mtime = { INT64_C(1) << 40, 1 };
	struct inode i;

	test_tree_open(&t, _i);
	test_file(&t, KEY_ID_ROOT, "f", "content");
	test_clock_advance(&t.clock, 9);
	i = set(KEY_ID_ROOT, "f",
		(struct attr_change){ .set = ATTR_ATIME | ATTR_MTIME, .atime = atime, .mtime = mtime });
	ck_assert_int_eq(i.item.atime.tv_sec, -5);
	i = test_look(&t, KEY_ID_ROOT, "f");
	ck_assert_int_eq(i.item.atime.tv_sec, -5);
	ck_assert_int_eq(i.item.atime.tv_nsec, 999999999);
	ck_assert_int_eq(i.item.mtime.tv_sec, INT64_C(1) << 40);
	ck_assert_int_eq(i.item.mtime.tv_nsec, 1);
	ck_time(i.item.ctime, t.clock.realtime_ns);
	set(KEY_ID_ROOT, "f",
	    (struct attr_change){ .set = ATTR_MODE | ATTR_UID, .mode = 07711, .uid = 3 });
	i = test_look(&t, KEY_ID_ROOT, "f");
	ck_assert_uint_eq(i.item.mode, S_IFREG | 07711);
	ck_assert_uint_eq(i.item.uid, 3);
	ck_assert_uint_eq(i.item.gid, 0);
	test_text(&t, i.item.id, "content");
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

START_TEST(chown_clears_set_id_bits)
{
	test_tree_open(&t, _i);
	test_file(&t, KEY_ID_ROOT, "f", "");
	test_mkdir(&t, KEY_ID_ROOT, "d");
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_MODE, .mode = 06755 });
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_UID, .uid = 0 });
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "f").item.mode, S_IFREG | 0755);
	/* Set-group-id without execution by the group is no privilege. */
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_MODE, .mode = 06745 });
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_GID, .gid = 8 });
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "f").item.mode, S_IFREG | 02745);
	set(KEY_ID_ROOT, "d", (struct attr_change){ .set = ATTR_MODE, .mode = 06755 });
	set(KEY_ID_ROOT, "d", (struct attr_change){ .set = ATTR_UID | ATTR_GID, .uid = 7, .gid = 7 });
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "d").item.mode, S_IFDIR | 06755);
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_MODE, .mode = 06755 });
	set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_SIZE | ATTR_KILL_SUID, .size = 5 });
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "f").item.mode, S_IFREG | 0755);
	test_tree_close(&t);
}
END_TEST

START_TEST(setattr_without_change_writes_nothing)
{
	struct inode i, same;
	struct attr_change change;

	test_tree_open(&t, _i);
	test_file(&t, KEY_ID_ROOT, "f", "x");
	i = test_look(&t, KEY_ID_ROOT, "f");
	test_clock_advance(&t.clock, 5);
	change = (struct attr_change){ .set = ATTR_MTIME | ATTR_CTIME,
				       .mtime = i.item.mtime,
				       .ctime = i.item.ctime };
	same = set(KEY_ID_ROOT, "f", change);
	ck_assert_uint_eq(same.name_version, i.name_version);
	same = set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_KILL_SUID });
	ck_assert_uint_eq(same.name_version, i.name_version);
	ck_assert(memcmp(&same.item.ctime, &i.item.ctime, sizeof(i.item.ctime)) == 0);
	/* chmod to the mode it has is a change: of ctime. */
	same = set(KEY_ID_ROOT, "f", (struct attr_change){ .set = ATTR_MODE, .mode = i.item.mode });
	ck_assert_uint_ne(same.name_version, i.name_version);
	ck_time(same.item.ctime, t.clock.realtime_ns);
	test_tree_close(&t);
}
END_TEST

START_TEST(setattr_reaches_root_and_deleted)
{
	struct place root = { .directory = KEY_ID_NONE, .state = KEY_ACT };
	struct attr_change change = { .set = ATTR_MODE, .mode = 0700 };
	struct place deleted;
	struct inode i;
	uint64_t f;

	test_tree_open(&t, _i);
	ck_assert_int_eq(namei_setattr(t.namei, &root, &change, &i), 0);
	ck_assert_uint_eq(i.item.mode, S_IFDIR | 0700);
	inode_release(&i);
	f = test_file(&t, KEY_ID_ROOT, "f", "x");
	test_remove(&t, KEY_ID_ROOT, "f");
	ck_assert(t.where.locate(t.where.data, f, &deleted));
	ck_assert_int_eq(deleted.state, KEY_DEL);
	ck_assert_int_eq(namei_setattr(t.namei, &deleted, &change, &i), 0);
	ck_assert_uint_eq(i.item.mode, S_IFREG | 0700);
	ck_assert_uint_eq(i.nlink, 0);
	inode_release(&i);
	test_consistent(&t);
	deleted.seq++;
	ck_assert_int_eq(namei_setattr(t.namei, &deleted, &change, &i), -ENOENT);
	test_tree_close(&t);
}
END_TEST

START_TEST(setattr_follows_a_file_that_moved)
{
	struct attr_change change = { .set = ATTR_MODE, .mode = 0611 };
	struct inode i;
	uint64_t f;

	test_tree_open(&t, _i);
	f = test_file(&t, KEY_ID_ROOT, "f", "x");
	ck_assert_int_eq(test_rename(&t, KEY_ID_ROOT, "f", KEY_ID_ROOT, "g", 0), 0);
	test_file(&t, KEY_ID_ROOT, "f", "another");
	ck_assert_int_eq(file_setattr(t.namei, &t.where, f, &change, &i), 0);
	ck_assert_str_eq(i.item.name, "g");
	inode_release(&i);
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "g").item.mode, S_IFREG | 0611);
	ck_assert_uint_eq(test_look(&t, KEY_ID_ROOT, "f").item.mode, S_IFREG | 0644);
	ck_assert_int_eq(file_setattr(t.namei, &t.where, f + 1000, &change, &i), -ESTALE);
	test_tree_close(&t);
}
END_TEST

/* ---- faults ------------------------------------------------------------------ */

/* Calls what is below at each n-th transaction; true when n was beyond all of them. */
static void make_all(void)
{
	uint64_t d, f;

	d = test_mkdir(&t, KEY_ID_ROOT, "d");
	f = test_file(&t, d, "f", "inline");
	test_link(&t, d, "f", KEY_ID_ROOT, "g");
	ck_assert_int_eq(test_write(&t, f, 100000, "far", 3), 0);
	test_make(&t, NULL, d, "l", S_IFLNK | 0777);
	ck_assert_int_eq(test_rename(&t, d, "f", KEY_ID_ROOT, "h", 0), 0);
	ck_assert_int_eq(test_rename(&t, KEY_ID_ROOT, "g", d, "l", 0), 0);
	set(KEY_ID_ROOT, "d", (struct attr_change){ .set = ATTR_MODE, .mode = 0700 });
	test_consistent(&t);
}

START_TEST(a_conflict_at_any_write_is_overcome)
{
	test_tree_open(&t, TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .conflict_at = (uint64_t)_i });
	make_all();
	test_faults(&t, NULL);
	test_tree_close(&t);
}
END_TEST

START_TEST(a_lost_answer_at_any_write_is_overcome)
{
	test_tree_open(&t, TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .lost_answer_at = (uint64_t)_i });
	make_all();
	test_faults(&t, NULL);
	test_tree_close(&t);
}
END_TEST

/* Another client's create in the directory that every step of make_all uses. */
static void create_beside(void *data, uint64_t n)
{
	static bool busy;
	char name[32];
	struct tree_directory root;
	struct transaction transaction = { 0 };
	struct item item = { .mode = S_IFREG | 0600, .links_live = 1, .links_total = 1 };
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT };
	uint64_t version;

	if (busy)
		return;
	busy = true;
	snprintf(name, sizeof(name), "beside%u", (unsigned)n);
	strcpy(at.name, name);
	strcpy(item.name, name);
	ck_assert_int_eq(store_new_id(t.store, &item.id), 0);
	ck_assert_int_eq(tree_load(t.store, KEY_ID_ROOT, &root), 0);
	transaction_put_item(&transaction, t.store, &at, &item, 0);
	tree_put_own(&transaction, t.store, &root);
	tree_check_guard(&transaction, &root);
	transaction_count_add(&transaction, COUNTER_LIVE_ITEMS, 1);
	ck_assert_int_eq(transaction_commit(&transaction, t.store, STORE_GROWING, &version), 0);
	transaction_release(&transaction);
	tree_release(&root);
	busy = false;
}

static unsigned beside_every;

static void create_beside_sometimes(void *data, uint64_t n)
{
	if (n % beside_every == 0)
		create_beside(data, n);
}

START_TEST(another_clients_changes_are_met)
{
	test_tree_open(&t, TEST_MEMORY);
	beside_every = (unsigned)_i;
	test_faults(&t, &(struct store_faults){ .before = create_beside_sometimes });
	make_all();
	test_faults(&t, NULL);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/namei");
	TCase *c = tcase_create("create"), *l = tcase_create("link"),
	      *a = tcase_create("attributes"), *f = tcase_create("faults");

	tcase_add_loop_test(c, create_gives_what_was_asked_for, 0, TEST_ENGINES);
	tcase_add_loop_test(c, create_moves_the_times_of_its_directory, 0, TEST_ENGINES);
	tcase_add_loop_test(c, create_refuses_names, 0, TEST_ENGINES);
	tcase_add_loop_test(c, create_takes_names_that_look_like_keys, 0, TEST_ENGINES);
	tcase_add_loop_test(c, create_fails_in_removed_directory, 0, TEST_ENGINES);
	tcase_add_loop_test(c, nothing_comes_in_below_a_discarded_directory, 0, TEST_ENGINES);
	tcase_add_loop_test(c, mkdir_counts_links, 0, TEST_ENGINES);
	tcase_add_loop_test(c, setgid_directory_hands_down_its_group, 0, TEST_ENGINES);
	tcase_add_loop_test(c, special_files_keep_their_type_and_device, 0, TEST_ENGINES);
	tcase_add_loop_test(c, symlink_keeps_its_target, 0, TEST_ENGINES);
	tcase_add_loop_test(l, link_makes_one_file_of_two_names, 0, TEST_ENGINES);
	tcase_add_loop_test(l, link_counts_down_with_its_names, 0, TEST_ENGINES);
	tcase_add_loop_test(l, link_by_a_deleted_name_while_another_lives, 0, TEST_ENGINES);
	tcase_add_loop_test(l, link_refuses, 0, TEST_ENGINES);
	tcase_add_loop_test(a, setattr_sets_what_it_is_told, 0, TEST_ENGINES);
	tcase_add_loop_test(a, chown_clears_set_id_bits, 0, TEST_ENGINES);
	tcase_add_loop_test(a, setattr_without_change_writes_nothing, 0, TEST_ENGINES);
	tcase_add_loop_test(a, setattr_reaches_root_and_deleted, 0, TEST_ENGINES);
	tcase_add_loop_test(a, setattr_follows_a_file_that_moved, 0, TEST_ENGINES);
	tcase_add_loop_test(f, a_conflict_at_any_write_is_overcome, 1, 20);
	tcase_add_loop_test(f, a_lost_answer_at_any_write_is_overcome, 1, 20);
	tcase_add_loop_test(f, another_clients_changes_are_met, 2, 8);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	tcase_set_timeout(l, 60);
	suite_add_tcase(s, l);
	tcase_set_timeout(a, 60);
	suite_add_tcase(s, a);
	tcase_set_timeout(f, 60);
	suite_add_tcase(s, f);
	return test_main(s);
}
