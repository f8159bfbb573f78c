/*
 * The n-th allocation or the n-th write of an operation fails, for every n of
 * every operation: it says so and nothing has changed, so that the same call
 * succeeds later. Linked with --wrap for the allocating functions.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT
#define MOST 400 /* allocations of one operation */

static struct test_tree t;
static unsigned countdown; /* 0: not armed */

static bool fails(void)
{
	return countdown && --countdown == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, count, size);
}

/* ---- operations ------------------------------------------------------------------ */

static uint64_t f, d;
static char big[70000];

static int create(void)
{
	return namei_create(t.namei, &t.user, d, "new",
			    &(struct namei_new){ .mode = S_IFREG | 0644 }, NULL);
}

static int make_directory(void)
{
	return namei_create(t.namei, &t.user, d, "dir",
			    &(struct namei_new){ .mode = S_IFDIR | 0755 }, NULL);
}

static int look_up(void)
{
	struct inode i;
	int result = namei_lookup(t.namei, ROOT, "f", false, &i);

	if (result == 0)
		inode_release(&i);
	return result;
}

static int write_small(void)
{
	return test_write(&t, f, 0, "small", 5);
}

static int write_big(void)
{
	return test_write(&t, f, 0, big, sizeof(big));
}

static int read_big(void)
{
	static char buffer[sizeof(big)];
	size_t got;

	return file_read(t.namei, &t.where, f, 0, buffer, sizeof(buffer), &got);
}

static int shorten(void)
{
	return file_setattr(t.namei, &t.where, f,
			    &(struct attr_change){ .set = ATTR_SIZE, .size = 33000 }, NULL);
}

static int set_xattr(void)
{
	return file_setxattr(t.namei, &t.root, &t.where, f, "user.a", big, 2000, 0);
}

static int get_xattr(void)
{
	struct buffer b = { 0 };
	int result = file_getxattr(t.namei, &t.where, f, "user.a", &b);

	buffer_release(&b);
	return result;
}

static int link_twice(void)
{
	return file_link(t.namei, &t.root, &t.where, f, d, "linked", NULL);
}

static int move(void)
{
	return test_rename(&t, d, "new", ROOT, "moved", 0);
}

static int replace(void)
{
	return test_rename(&t, d, "linked", ROOT, "moved", 0);
}

static int exchange(void)
{
	return test_rename(&t, d, "dir", ROOT, "f", RENAME_EXCHANGE);
}

static int unlink_one(void)
{
	return lifecycle_remove(t.lifecycle, &t.remover, d, "dir", false);
}

static int remove_directory(void)
{
	return lifecycle_remove(t.lifecycle, &t.remover, ROOT, "f", true);
}

static const struct {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "create", create },
	{ "mkdir", make_directory },
	{ "look up", look_up },
	{ "write inline", write_small },
	{ "write a body", write_big },
	{ "read a body", read_big },
	{ "truncate", shorten },
	{ "set an xattr apart", set_xattr },
	{ "get it", get_xattr },
	{ "link", link_twice },
	{ "rename", move },
	{ "rename over a file", replace },
	{ "exchange", exchange },
	{ "unlink", unlink_one },
	{ "rmdir", remove_directory },
};

static void arm_memory(uint64_t n)
{
	countdown = (unsigned)n;
}

static void arm_error(uint64_t n)
{
	store_memory_inject(t.store, &(struct store_faults){ .error_at = n });
}

static void arm_space(uint64_t n)
{
	store_memory_inject(t.store, &(struct store_faults){ .no_space_at = n });
}

static const struct {
	const char *name;
	void (*arm)(uint64_t n); /* 0: disarms */
	int error;
} faults[] = {
	{ "memory", arm_memory, -ENOMEM },
	{ "write", arm_error, -EIO },
	{ "space", arm_space, -ENOSPC },
};

static void exhaust(size_t operation, size_t fault)
{
	for (unsigned n = 1; n < MOST; n++) {
		int result;

		faults[fault].arm(n);
		result = operations[operation].run();
		faults[fault].arm(0);
		ck_assert_msg(result == 0 || result == faults[fault].error, "%s, %s failing at %u: %d",
			      operations[operation].name, faults[fault].name, n, result);
		test_consistent(&t);
		if (result == 0)
			return;
	}
	ck_abort_msg("%s fails without end", operations[operation].name);
}

START_TEST(what_fails_changes_nothing)
{
	test_tree_open(&t, TEST_MEMORY);
	d = test_mkdir(&t, ROOT, "d");
	f = test_file(&t, ROOT, "f", "text");
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		exhaust(i, (size_t)_i);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/faults");
	TCase *c = tcase_create("faults");

	tcase_add_loop_test(c, what_fails_changes_nothing, 0, ARRAY_SIZE(faults));
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	return test_main(s);
}
