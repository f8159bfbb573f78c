/*
 * ACLs: what they do to modes, and what modes do to them.
 */
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/acl.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT

static struct test_tree t;

struct acl {
	uint8_t bytes[100];
	size_t size;
};

static void add(struct acl *a, uint16_t tag, uint16_t perm, uint32_t id)
{
	if (!a->size) {
		util_put_le32(a->bytes, POSIX_ACL_XATTR_VERSION);
		a->size = 4;
	}
	util_put_le16(a->bytes + a->size, tag);
	util_put_le16(a->bytes + a->size + 2, perm);
	util_put_le32(a->bytes + a->size + 4, id);
	a->size += 8;
}

static struct acl minimal(uint16_t user, uint16_t group, uint16_t other)
{
	struct acl a = { .size = 0 };

	add(&a, ACL_USER_OBJ, user, ACL_UNDEFINED_ID);
	add(&a, ACL_GROUP_OBJ, group, ACL_UNDEFINED_ID);
	add(&a, ACL_OTHER, other, ACL_UNDEFINED_ID);
	return a;
}

/* With one named user, and therefore a mask. */
static struct acl extended(uint16_t user, uint16_t named, uint16_t group, uint16_t mask, uint16_t other)
{
	struct acl a = { .size = 0 };

	add(&a, ACL_USER_OBJ, user, ACL_UNDEFINED_ID);
	add(&a, ACL_USER, named, 1000);
	add(&a, ACL_GROUP_OBJ, group, ACL_UNDEFINED_ID);
	add(&a, ACL_MASK, mask, ACL_UNDEFINED_ID);
	add(&a, ACL_OTHER, other, ACL_UNDEFINED_ID);
	return a;
}

static int set(const char *file, const char *name, const struct acl *a)
{
	struct inode i = test_look(&t, ROOT, file);

	return namei_setxattr(t.namei, &t.root, &i.at, name, a->bytes, a->size, 0);
}

static void ck_acl(uint64_t parent, const char *file, const char *name, const struct acl *a)
{
	struct inode i = test_look(&t, parent, file);
	struct buffer b = { 0 };
	int result = namei_getxattr(t.namei, &i.at, name, &b);

	if (a) {
		ck_assert_int_eq(result, 0);
		ck_assert_uint_eq(b.size, a->size);
		ck_assert_mem_eq(b.bytes, a->bytes, a->size);
	} else {
		ck_assert_int_eq(result, -ENODATA);
	}
	buffer_release(&b);
}

static uint32_t mode_of(uint64_t parent, const char *file)
{
	return test_look(&t, parent, file).item.mode & 07777;
}

static void begin(void)
{
	test_tree_open(&t, TEST_MEMORY);
	test_file(&t, ROOT, "f", "");
	test_mkdir(&t, ROOT, "d");
}

static void end(void)
{
	test_consistent(&t);
	test_tree_close(&t);
}

START_TEST(nonsense_is_refused)
{
	struct acl a = extended(7, 7, 7, 7, 7);

	for (size_t size = 0; size < a.size; size++)
		ck_assert_int_eq(acl_check(a.bytes, size), -EINVAL);
	ck_assert_int_eq(acl_check(a.bytes, a.size), 0);
	for (size_t bit = 0; bit < 8 * a.size; bit++) {
		struct acl b = a;
		int result;

		/* Any flip but of an id or a permission leaves none. */
		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		result = acl_check(b.bytes, b.size);
		if (bit < 32 || (bit - 32) % 64 < 16)
			ck_assert_msg(result == -EINVAL, "bit %zu", bit);
	}
	a = (struct acl){ .size = 0 };
	add(&a, ACL_USER_OBJ, 7, 0);
	add(&a, ACL_USER, 7, 5);
	add(&a, ACL_GROUP_OBJ, 7, 0);
	add(&a, ACL_OTHER, 7, 0);
	ck_assert_int_eq(acl_check(a.bytes, a.size), -EINVAL);
	ck_assert_int_eq(set("f", ACL_ACCESS, &a), -EINVAL);
}
END_TEST

START_TEST(mode_follows_an_acl)
{
	struct acl a = extended(7, 6, 4, 5, 1);

	ck_assert_int_eq(set("f", ACL_ACCESS, &a), 0);
	ck_assert_uint_eq(mode_of(ROOT, "f"), 0751);
	ck_acl(ROOT, "f", ACL_ACCESS, &a);
	/* One that says no more than a mode is none. */
	a = minimal(6, 4, 0);
	ck_assert_int_eq(set("f", ACL_ACCESS, &a), 0);
	ck_assert_uint_eq(mode_of(ROOT, "f"), 0640);
	ck_acl(ROOT, "f", ACL_ACCESS, NULL);
	ck_assert_int_eq(set("f", ACL_DEFAULT, &a), -EACCES);
}
END_TEST

START_TEST(an_acl_follows_chmod)
{
	struct acl a = extended(7, 6, 4, 5, 1), after = extended(6, 6, 4, 2, 0);
	struct attr_change change = { .set = ATTR_MODE, .mode = 0620 };
	struct inode i;

	ck_assert_int_eq(set("f", ACL_ACCESS, &a), 0);
	i = test_look(&t, ROOT, "f");
	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &change, NULL), 0);
	ck_acl(ROOT, "f", ACL_ACCESS, &after);
	ck_assert_uint_eq(mode_of(ROOT, "f"), 0620);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &i.at, ACL_ACCESS), 0);
	ck_assert_int_eq(namei_removexattr(t.namei, &t.root, &i.at, ACL_ACCESS), 0);
	ck_acl(ROOT, "f", ACL_ACCESS, NULL);
}
END_TEST

START_TEST(capability_and_acl_go_their_ways_in_one_change)
{
	struct acl a = extended(7, 6, 4, 5, 1), after = extended(7, 6, 4, 5, 5);
	struct attr_change change = { .set = ATTR_MODE | ATTR_UID, .mode = 0755, .uid = 5 };
	struct inode i = test_look(&t, ROOT, "f");
	struct buffer b = { 0 };

	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &i.at, "security.capability", "c", 1, 0), 0);
	ck_assert_int_eq(set("f", ACL_ACCESS, &a), 0);
	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &change, NULL), 0);
	ck_acl(ROOT, "f", ACL_ACCESS, &after);
	ck_assert_int_eq(namei_getxattr(t.namei, &i.at, "security.capability", &b), -ENODATA);
	buffer_release(&b);
}
END_TEST

static void create(uint64_t parent, const char *name, uint32_t mode, uint32_t umask)
{
	struct namei_new what = { .mode = mode, .umask = umask, .target = "x" };
	struct inode i;

	ck_assert_int_eq(namei_create(t.namei, &t.user, parent, name, &what, &i), 0);
	inode_release(&i);
}

START_TEST(umask_counts_without_a_default)
{
	uint64_t d = test_look(&t, ROOT, "d").item.id;

	create(d, "f", S_IFREG | 0666, 027);
	create(d, "l", S_IFLNK | 0777, 077);
	ck_assert_uint_eq(mode_of(d, "f"), 0640);
	ck_assert_uint_eq(mode_of(d, "l"), 0777);
}
END_TEST

START_TEST(a_default_is_handed_down)
{
	struct acl a = extended(7, 7, 5, 7, 0), file = extended(6, 7, 5, 6, 0),
		   sub = extended(7, 7, 5, 5, 0);
	uint64_t d = test_look(&t, ROOT, "d").item.id;

	ck_assert_int_eq(set("d", ACL_DEFAULT, &a), 0);
	create(d, "f", S_IFREG | 0666, 077);
	ck_acl(d, "f", ACL_ACCESS, &file);
	ck_acl(d, "f", ACL_DEFAULT, NULL);
	ck_assert_uint_eq(mode_of(d, "f"), 0660);
	create(d, "s", S_IFDIR | 0755, 022);
	ck_acl(d, "s", ACL_ACCESS, &sub);
	ck_acl(d, "s", ACL_DEFAULT, &a);
	ck_assert_uint_eq(mode_of(d, "s"), 0750);
	create(d, "l", S_IFLNK | 0777, 0);
	ck_acl(d, "l", ACL_ACCESS, NULL);
	a = minimal(7, 5, 0);
	ck_assert_int_eq(set("d", ACL_DEFAULT, &a), 0);
	create(d, "g", S_IFREG | 0666, 0);
	ck_acl(d, "g", ACL_ACCESS, NULL);
	ck_assert_uint_eq(mode_of(d, "g"), 0640);
}
END_TEST

START_TEST(setting_an_acl_costs_strangers_the_group_bit)
{
	struct acl a = extended(7, 6, 4, 5, 1);
	struct attr_change change = {
		.set = ATTR_MODE | ATTR_UID | ATTR_GID, .mode = 02755, .uid = 1000, .gid = 5
	};
	struct inode i = test_look(&t, ROOT, "f");

	ck_assert_int_eq(namei_setattr(t.namei, &i.at, &change, NULL), 0);
	ck_assert_int_eq(namei_setxattr(t.namei, &t.user, &i.at, ACL_ACCESS, a.bytes, a.size, 0), 0);
	ck_assert_uint_eq(mode_of(ROOT, "f"), 0751);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/acl");
	TCase *c = tcase_create("acl");

	tcase_add_checked_fixture(c, begin, end);
	tcase_add_test(c, nonsense_is_refused);
	tcase_add_test(c, mode_follows_an_acl);
	tcase_add_test(c, an_acl_follows_chmod);
	tcase_add_test(c, capability_and_acl_go_their_ways_in_one_change);
	tcase_add_test(c, umask_counts_without_a_default);
	tcase_add_test(c, a_default_is_handed_down);
	tcase_add_test(c, setting_an_acl_costs_strangers_the_group_bit);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	return test_main(s);
}
