/*
 * Extended attributes and the policies set through them.
 */
#include <errno.h>
#include <linux/xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT

static struct test_tree t;
static struct place f, d; /* a file and a directory */

static void begin(int engine)
{
	test_tree_open(&t, engine);
	test_file(&t, ROOT, "f", "content");
	test_mkdir(&t, ROOT, "d");
	f = test_look(&t, ROOT, "f").at;
	d = test_look(&t, ROOT, "d").at;
}

static void end(void)
{
	test_consistent(&t);
	test_tree_close(&t);
}

static int set_as(const struct actor *actor, const struct place *at, const char *name,
		  const char *value, int flags)
{
	return namei_setxattr(t.namei, actor, at, name, value, strlen(value), flags);
}

static int set(const struct place *at, const char *name, const char *value)
{
	return set_as(&t.root, at, name, value, 0);
}

static void ck_value(const struct place *at, const char *name, const void *value, size_t size)
{
	struct buffer b = { 0 };

	ck_assert_int_eq(namei_getxattr(t.namei, at, name, &b), 0);
	ck_assert_uint_eq(b.size, size);
	if (size)
		ck_assert_mem_eq(b.bytes, value, size);
	buffer_release(&b);
}

static void ck_text(const struct place *at, const char *name, const char *value)
{
	ck_value(at, name, value, strlen(value));
}

static int get(const struct place *at, const char *name)
{
	struct buffer b = { 0 };
	int result = namei_getxattr(t.namei, at, name, &b);

	buffer_release(&b);
	return result;
}

/* `names` as one string, each followed by a comma. */
static void ck_list(const struct place *at, bool trusted, const char *names)
{
	struct buffer b = { 0 };

	ck_assert_int_eq(namei_listxattr(t.namei, at, trusted, &b), 0);
	for (size_t i = 0; i < b.size; i++)
		if (b.bytes[i] == '\0')
			b.bytes[i] = ',';
	buffer_append_u8(&b, 0);
	ck_assert_str_eq((char *)b.bytes, names);
	buffer_release(&b);
}

START_TEST(set_is_got_listed_and_removed)
{
	ck_assert_int_eq(get(&f, "user.a"), -ENODATA);
	ck_list(&f, true, "");
	ck_assert_int_eq(set(&f, "user.a", "1"), 0);
	ck_assert_int_eq(set(&f, "user.b", "two"), 0);
	ck_assert_int_eq(set(&f, "user.empty", ""), 0);
	ck_assert_int_eq(set(&f, "trusted.t", "t"), 0);
	ck_assert_int_eq(set(&f, "security.s", "s"), 0);
	ck_text(&f, "user.a", "1");
	ck_text(&f, "user.b", "two");
	ck_text(&f, "user.empty", "");
	ck_text(&f, "trusted.t", "t");
	ck_list(&f, true, "user.a,user.b,user.empty,trusted.t,security.s,");
	ck_list(&f, false, "user.a,user.b,user.empty,security.s,");
	ck_assert_int_eq(set(&f, "user.a", "replaced"), 0);
	ck_text(&f, "user.a", "replaced");
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &f, "user.b"), 0);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &f, "user.b"), -ENODATA);
	ck_assert_int_eq(get(&f, "user.b"), -ENODATA);
	ck_text(&f, "security.s", "s");
	test_text(&t, test_look(&t, ROOT, "f").item.id, "content");
}
END_TEST

START_TEST(values_are_bytes)
{
	uint8_t bytes[256];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &f, "user.bytes", bytes, sizeof(bytes), 0), 0);
	ck_value(&f, "user.bytes", bytes, sizeof(bytes));
}
END_TEST

START_TEST(flags_say_whether_it_may_be_there)
{
	ck_assert_int_eq(set_as(&t.root, &f, "user.a", "1", XATTR_REPLACE), -ENODATA);
	ck_assert_int_eq(set_as(&t.root, &f, "user.a", "1", XATTR_CREATE), 0);
	ck_assert_int_eq(set_as(&t.root, &f, "user.a", "2", XATTR_CREATE), -EEXIST);
	ck_assert_int_eq(set_as(&t.root, &f, "user.a", "3", XATTR_REPLACE), 0);
	ck_assert_int_eq(set_as(&t.root, &f, "user.a", "3", 8), -EINVAL);
	ck_text(&f, "user.a", "3");
}
END_TEST

START_TEST(only_ctime_moves)
{
	struct inode before = test_look(&t, ROOT, "f"), after;

	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(set(&f, "user.a", "1"), 0);
	after = test_look(&t, ROOT, "f");
	ck_assert_int_eq(after.item.ctime.tv_sec, before.item.ctime.tv_sec + 1);
	ck_assert_int_eq(after.item.mtime.tv_sec, before.item.mtime.tv_sec);
}
END_TEST

START_TEST(limits_are_those_of_linux)
{
	static char value[65537];
	char name[300];

	memset(value, 'v', sizeof(value));
	memset(name, 'n', sizeof(name));
	memcpy(name, "user.", 5);
	name[256] = '\0';
	ck_assert_int_eq(set(&f, name, "x"), -ERANGE);
	name[255] = '\0';
	ck_assert_int_eq(set(&f, name, "x"), 0);
	ck_text(&f, name, "x");
	ck_assert_int_eq(set(&f, "", "x"), -ERANGE);
	ck_assert_int_eq(set(&f, "user.", "x"), -EINVAL);
	ck_assert_int_eq(set(&f, "trusted.", "x"), -EINVAL);
	ck_assert_int_eq(set(&f, "security.", "x"), -EINVAL);
	ck_assert_int_eq(set(&f, "nonsense", "x"), -EOPNOTSUPP);
	ck_assert_int_eq(set(&f, "system.other", "x"), -EOPNOTSUPP);
	ck_assert_int_eq(get(&f, "system.other"), -EOPNOTSUPP);
	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &f, "user.big", value, 65537, 0), -E2BIG);
	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &f, "user.big", value, 65536, 0), 0);
	ck_value(&f, "user.big", value, 65536);
}
END_TEST

START_TEST(too_many_are_refused_and_the_rest_stays)
{
	static char value[65536];
	char name[32];
	int result = 0;
	unsigned n = 0;

	memset(value, 'v', sizeof(value));
	for (; n < 100 && result == 0; n++) {
		snprintf(name, sizeof(name), "user.v%u", n);
		result = namei_setxattr(t.namei, &t.root, &f, name, value, sizeof(value), 0);
	}
	ck_assert_int_eq(result, -ENOSPC);
	ck_assert_uint_gt(n, 4);
	ck_value(&f, "user.v0", value, sizeof(value));
	ck_assert_int_eq(get(&f, name), -ENODATA);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &f, "user.v0"), 0);
	ck_assert_int_eq(set(&f, name, "fits"), 0);
}
END_TEST

START_TEST(names_fit_a_list)
{
	char name[256];
	int result = 0;
	unsigned n = 0;
	struct buffer b = { 0 };

	for (; n < 400 && result == 0; n++) {
		snprintf(name, sizeof(name), "user.%0249u", n);
		result = set(&f, name, "");
	}
	ck_assert_int_eq(result, -ENOSPC);
	ck_assert_uint_eq(n, 65536 / 255 + 1);
	ck_assert_int_eq(namei_listxattr(t.namei, &f, true, &b), 0);
	ck_assert_uint_le(b.size, 65536);
	buffer_release(&b);
}
END_TEST

START_TEST(many_stand_apart_and_come_back)
{
	char value[1001];

	memset(value, 'v', 1000);
	value[1000] = '\0';
	ck_assert_int_eq(set(&f, "user.a", value), 0);
	ck_assert(!(test_look(&t, ROOT, "f").item.flags & ITEM_XATTR_APART));
	ck_assert_int_eq(set(&f, "user.b", value), 0);
	ck_assert(test_look(&t, ROOT, "f").item.flags & ITEM_XATTR_APART);
	ck_text(&f, "user.a", value);
	ck_text(&f, "user.b", value);
	/* Through a second name, a rename and a deletion. */
	test_link(&t, ROOT, "f", ROOT, "g");
	ck_text(&(struct place){ .directory = ROOT, .name = "g" }, "user.b", value);
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "h", 0), 0);
	ck_assert_int_eq(set(&(struct place){ .directory = ROOT, .name = "h" }, "user.c", "c"), 0);
	ck_text(&(struct place){ .directory = ROOT, .name = "g" }, "user.c", "c");
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root,
					   &(struct place){ .directory = ROOT, .name = "g" }, "user.a"),
			 0);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root,
					   &(struct place){ .directory = ROOT, .name = "g" }, "user.b"),
			 0);
	ck_assert(!(test_look(&t, ROOT, "g").item.flags & ITEM_XATTR_APART));
	ck_list(&(struct place){ .directory = ROOT, .name = "g" }, true, "user.c,");
}
END_TEST

START_TEST(writing_the_file_keeps_them)
{
	char value[1001];
	uint64_t id = test_look(&t, ROOT, "f").item.id;

	memset(value, 'v', 1000);
	value[1000] = '\0';
	ck_assert_int_eq(set(&f, "user.a", value), 0);
	ck_assert_int_eq(test_write(&t, id, 3, value, 1000), 0);
	ck_text(&f, "user.a", value);
	ck_assert_int_eq(set(&f, "user.b", value), 0);
	ck_assert_int_eq(set(&f, "security.capability", "cap"), 0);
	ck_assert_int_eq(file_write(t.namei, &t.where, id, 0, value, 1000, true, true, NULL), 0);
	ck_list(&f, true, "user.a,user.b,");
	ck_text(&f, "user.b", value);
}
END_TEST

START_TEST(user_attributes_are_of_files_and_directories)
{
	struct place l, p;

	test_make(&t, NULL, ROOT, "l", S_IFLNK | 0777);
	test_make(&t, NULL, ROOT, "p", S_IFIFO | 0666);
	l = test_look(&t, ROOT, "l").at;
	p = test_look(&t, ROOT, "p").at;
	ck_assert_int_eq(set(&l, "user.a", "1"), -EPERM);
	ck_assert_int_eq(set(&p, "user.a", "1"), -EPERM);
	ck_assert_int_eq(get(&l, "user.a"), -ENODATA);
	ck_assert_int_eq(set(&d, "user.a", "1"), 0);
	ck_assert_int_eq(set(&l, "trusted.a", "1"), 0);
	ck_assert_int_eq(set(&p, "security.a", "1"), 0);
	ck_assert_int_eq(set_as(&t.user, &f, "trusted.a", "1", 0), -EPERM);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.user, &l, "trusted.a"), -EPERM);
}
END_TEST

START_TEST(policies_are_checked_and_hidden)
{
	static const char *const wrong[] = {
		"", "x", "-1", "30x", "1795000000000", "99999999999999999999d"
	};
	struct policy policy;

	ck_assert_int_eq(set(&d, "user.ddbfs.retention", "1h"), 0);
	ck_assert(test_look(&t, ROOT, "d").item.flags & ITEM_POLICY);
	ck_text(&d, "user.ddbfs.retention", "1h");
	ck_list(&d, true, "");
	ck_assert_int_eq(lifecycle_policy(t.lifecycle, test_look(&t, ROOT, "d").item.id, &policy), 0);
	ck_assert_int_eq(policy.retention_ns, 3600 * CLOCK_SECOND_NS);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		ck_assert_msg(set(&d, "user.ddbfs.retention", wrong[i]) == -EINVAL, "%s", wrong[i]);
	ck_assert_int_eq(set(&d, "user.ddbfs.nonsense", "1"), -EINVAL);
	ck_assert_int_eq(set(&d, "user.ddbfs.deleted_at", "1"), -EINVAL);
	ck_assert_int_eq(set(&d, "user.ddbfs.", "1"), -EINVAL);
	ck_assert_int_eq(set(&f, "user.ddbfs.retention", "1h"), -EINVAL);
	ck_assert_int_eq(get(&d, "user.ddbfs.versions"), -ENODATA);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &d, "user.ddbfs.retention"), 0);
	ck_assert(!(test_look(&t, ROOT, "d").item.flags & ITEM_POLICY));
	ck_assert_int_eq(lifecycle_policy(t.lifecycle, test_look(&t, ROOT, "d").item.id, &policy), 0);
	ck_assert_int_eq(policy.retention_ns, 30 * 86400 * CLOCK_SECOND_NS);
}
END_TEST

START_TEST(policies_are_the_owners)
{
	struct attr_change owner = { .set = ATTR_UID, .uid = 1000 };

	ck_assert_int_eq(namei_setattr(t.namei, &d, &owner, NULL), 0);
	ck_assert_int_eq(set_as(&t.user, &d, "user.ddbfs.retention", "1h", 0), 0);
	ck_assert_int_eq(set_as(&t.other, &d, "user.ddbfs.retention", "2h", 0), -EPERM);
	ck_assert_int_eq(set_as(&t.user, &d, "trusted.ddbfs.retention", "2h", 0), -EPERM);
	ck_assert_int_eq(set_as(&t.root, &d, "trusted.ddbfs.retention", "2h", 0), 0);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.other, &d, "user.ddbfs.retention"), -EPERM);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.user, &d, "user.ddbfs.retention"), 0);
}
END_TEST

static void begin_memory(void)
{
	begin(TEST_MEMORY);
}

static void begin_sealed(void)
{
	begin(TEST_MEMORY_SEALED);
}

static void begin_local(void)
{
	begin(TEST_LOCAL);
}

static void add_engine(Suite *s, const char *name, void (*setup)(void))
{
	const TTest *tests[] = {
		set_is_got_listed_and_removed,
		values_are_bytes,
		flags_say_whether_it_may_be_there,
		only_ctime_moves,
		limits_are_those_of_linux,
		too_many_are_refused_and_the_rest_stays,
		names_fit_a_list,
		many_stand_apart_and_come_back,
		writing_the_file_keeps_them,
		user_attributes_are_of_files_and_directories,
		policies_are_checked_and_hidden,
		policies_are_the_owners,
	};
	TCase *c = tcase_create(name);

	tcase_add_checked_fixture(c, setup, end);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(c, tests[i]);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
}

int main(void)
{
	Suite *s = suite_create("fs/xattr");

	add_engine(s, "memory", begin_memory);
	add_engine(s, "sealed names", begin_sealed);
	add_engine(s, "local", begin_local);
	return test_main(s);
}
