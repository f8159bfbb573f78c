/*
 * test-recount.c - L9 and S5: whatever is done to a tree and its trash, in any
 * order, `check` finds nothing wrong afterwards: rows, guards, links, shadows,
 * batches and counters are what a recount says.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "tests/lib/random.h"
#include "tests/lib/tree.h"

#define HISTORIES 6
#define OPERATIONS 1500
#define CHECK_EVERY 25
#define CRASH_AFTER 10000
#define DIRECTORIES_MAX 64
#define NAMES 6

struct history {
	struct test_tree tree;
	struct test_random random;
	uint64_t directories[DIRECTORIES_MAX]; /* ever made */
	size_t directories_count;
	const char *last; /* operation */
};

/* What may be refused is refused with these; all else is a fault. */
static void may_fail(struct history *h, int result)
{
	static const int refusals[] = { 0,	 -ENOENT, -EEXIST, -ENOTDIR, -EISDIR,  -ENOTEMPTY,
					-EINVAL, -EPERM,  -EROFS,  -EXDEV,   -ENODATA, -EBUSY };

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (result == refusals[i])
			return;
	ck_abort_msg("%s: %d, seed %llu", h->last, result, (unsigned long long)h->random.seed);
}

static uint64_t any_directory(struct history *h)
{
	return h->directories[random_below(&h->random, h->directories_count)];
}

static const char *any_name(struct history *h)
{
	static const char *const names[NAMES] = { "a", "b", "c", "d", "e", "a@2026-11-30T16:25:39Z" };

	return names[random_below(&h->random, NAMES)];
}

static const struct actor *any_actor(struct history *h)
{
	return random_once_in(&h->random, 3) ? &h->tree.root : &h->tree.remover;
}

/* ---- operations ----------------------------------------------------------------- */

static void do_create(struct history *h)
{
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFREG | 0600, S_IFDIR | 0755,
					  S_IFDIR | 0700, S_IFLNK | 0777, S_IFIFO | 0644 };
	struct namei_new what = { .mode = modes[random_below(&h->random, ARRAY_SIZE(modes))],
				  .target = "target" };
	struct inode i;
	int result;

	if (S_ISDIR(what.mode) && h->directories_count == DIRECTORIES_MAX)
		what.mode = S_IFREG | 0644;
	result = namei_create(h->tree.namei, &h->tree.root, any_directory(h), any_name(h), &what, &i);
	may_fail(h, result);
	if (result)
		return;
	test_learn(&h->tree, i.item.id, &i.at);
	lifecycle_note_created(h->tree.lifecycle, &h->tree.root, i.item.id);
	if (S_ISDIR(what.mode))
		h->directories[h->directories_count++] = i.item.id;
	inode_release(&i);
}

static bool any_inode(struct history *h, struct inode *ret_inode)
{
	int result = namei_lookup(h->tree.namei, any_directory(h), any_name(h), false, ret_inode);

	may_fail(h, result);
	if (result == 0)
		test_learn(&h->tree, ret_inode->item.id, &ret_inode->at);
	return result == 0;
}

static void do_write(struct history *h)
{
	static uint8_t bytes[70000];
	struct inode i;

	if (!any_inode(h, &i))
		return;
	if (S_ISREG(i.item.mode))
		may_fail(h, test_write(&h->tree, i.item.id, random_below(&h->random, 100000), bytes,
				       1 + random_below(&h->random, random_once_in(&h->random, 3) ?
									    sizeof(bytes) :
									    900)));
	inode_release(&i);
}

static void do_truncate(struct history *h)
{
	struct attr_change change = { .set = ATTR_SIZE, .size = random_below(&h->random, 80000) };
	struct inode i, after;
	int result;

	if (!any_inode(h, &i))
		return;
	if (S_ISREG(i.item.mode)) {
		result = namei_setattr(h->tree.namei, &i.at, &change, &after);
		may_fail(h, result);
		if (result == 0)
			inode_release(&after);
	}
	inode_release(&i);
}

static void do_link(struct history *h)
{
	struct inode i, after;
	int result;

	if (!any_inode(h, &i))
		return;
	result = namei_link(h->tree.namei, &h->tree.root, &i.at, any_directory(h), any_name(h), &after);
	may_fail(h, result);
	if (result == 0)
		inode_release(&after);
	inode_release(&i);
}

static void do_rename(struct history *h)
{
	unsigned flags = random_once_in(&h->random, 5) ? RENAME_EXCHANGE : 0;

	may_fail(h, test_rename(&h->tree, any_directory(h), any_name(h), any_directory(h),
				any_name(h), flags));
}

static void do_remove(struct history *h)
{
	may_fail(h, lifecycle_remove(h->tree.lifecycle, any_actor(h), any_directory(h), any_name(h),
				     random_once_in(&h->random, 2)));
}

static void do_discard(struct history *h)
{
	may_fail(h, lifecycle_discard(h->tree.lifecycle, any_actor(h), any_directory(h), any_name(h)));
}

static void do_xattr(struct history *h)
{
	static uint8_t bytes[4000];
	char name[32];
	struct inode i;

	if (!any_inode(h, &i))
		return;
	snprintf(name, sizeof(name), "user.x%u", (unsigned)random_below(&h->random, 3));
	if (random_once_in(&h->random, 4))
		may_fail(h, namei_removexattr(h->tree.namei, &h->tree.root, &i.at, name));
	else
		may_fail(h, namei_setxattr(h->tree.namei, &h->tree.root, &i.at, name, bytes,
					   random_below(&h->random, sizeof(bytes)), 0));
	inode_release(&i);
}

struct pick {
	struct history *h;
	struct place at;
	unsigned seen;
};

static bool pick_entry(void *data, const struct entry *entry, const struct key *key)
{
	struct pick *pick = data;

	if (!entry->shadow && random_once_in(&pick->h->random, ++pick->seen))
		pick->at = entry->at;
	return false;
}

static bool any_entry(struct history *h, struct place *ret_at)
{
	struct pick pick = { .h = h };

	may_fail(h, lifecycle_list(h->tree.lifecycle, any_directory(h), NULL, pick_entry, &pick));
	*ret_at = pick.at;
	return pick.seen != 0;
}

static void do_restore(struct history *h)
{
	unsigned flags = (unsigned)random_below(&h->random, 3);
	struct place at;

	if (any_entry(h, &at))
		may_fail(h, lifecycle_restore(h->tree.lifecycle, any_actor(h), &at,
					      any_directory(h), any_name(h), flags, NULL, NULL));
}

static void do_restore_origin(struct history *h)
{
	unsigned flags = (unsigned)random_below(&h->random, 3) |
			 (random_once_in(&h->random, 2) ? RESTORE_PARENTS : 0);
	struct place at;

	if (any_entry(h, &at))
		may_fail(h, lifecycle_restore_origin(h->tree.lifecycle, any_actor(h), &at, flags,
						     NULL, NULL, NULL));
}

static void do_purge(struct history *h)
{
	struct place at;

	if (any_entry(h, &at))
		may_fail(h, lifecycle_purge(h->tree.lifecycle, any_actor(h), &at,
					    random_once_in(&h->random, 2)));
}

static void do_undo(struct history *h)
{
	struct undo_options options = { .taken = (enum undo_taken)random_below(&h->random, 4) };
	struct undo_result result;

	may_fail(h, lifecycle_undo(h->tree.lifecycle, any_actor(h), &options, &result));
}

static void do_empty(struct history *h)
{
	struct empty_options options = { .directory = any_directory(h),
					 .now = random_once_in(&h->random, 2) };
	struct empty_result result;

	may_fail(h, lifecycle_empty(h->tree.lifecycle, any_actor(h), &options, &result));
}

static void do_sweep(struct history *h)
{
	struct sweep_result result;

	may_fail(h, lifecycle_sweep(h->tree.lifecycle, 1 + random_below(&h->random, 20), &result));
}

static void do_wait(struct history *h)
{
	static const int64_t seconds[] = { 1, 30, 90, 700, 3600, 86400, 31 * 86400 };

	test_clock_advance(&h->tree.clock,
			   seconds[random_below(&h->random, ARRAY_SIZE(seconds))] * CLOCK_SECOND_NS);
}

static void do_reopen(struct history *h)
{
	test_tree_reopen(&h->tree);
}

static const struct {
	const char *name;
	void (*run)(struct history *h);
	unsigned weight;
} operations[] = {
	{ "create", do_create, 30 },	{ "write", do_write, 12 },
	{ "truncate", do_truncate, 4 }, { "link", do_link, 8 },
	{ "rename", do_rename, 12 },	{ "remove", do_remove, 20 },
	{ "discard", do_discard, 3 },	{ "xattr", do_xattr, 6 },
	{ "restore", do_restore, 8 },	{ "origin", do_restore_origin, 6 },
	{ "purge", do_purge, 5 },	{ "undo", do_undo, 4 },
	{ "empty", do_empty, 1 },	{ "sweep", do_sweep, 4 },
	{ "wait", do_wait, 4 },		{ "reopen", do_reopen, 1 },
};

static void do_any(struct history *h)
{
	unsigned total = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		total += operations[i].weight;
	at = (unsigned)random_below(&h->random, total);
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		if (at < operations[i].weight) {
			h->last = operations[i].name;
			operations[i].run(h);
			return;
		}
		at -= operations[i].weight;
	}
}

/* ---- checking ----------------------------------------------------------------------- */

static void tell(void *data, const char *path, const char *text)
{
	struct history *h = data;

	fprintf(stderr, "# seed %llu after %s: %s: %s\n", (unsigned long long)h->random.seed,
		h->last, path, text);
}

static const char *crashed_path(const char *directory)
{
	static char path[4200];

	snprintf(path, sizeof(path), "%s/crashed", directory);
	return path;
}

static void check_now(struct history *h, unsigned operation)
{
	struct check_result result;

	ck_assert_int_eq(lifecycle_check(h->tree.store, tell, NULL, h, &result), 0);
	ck_assert_msg(result.problems == 0, "%llu problems after operation %u, seed %llu",
		      (unsigned long long)result.problems, operation,
		      (unsigned long long)h->random.seed);
}

static void run_history(enum test_engine engine, uint64_t number)
{
	struct history *h = calloc(1, sizeof(*h));
	unsigned count = random_rounds(OPERATIONS);

	ck_assert_ptr_nonnull(h);
	random_init(&h->random, number);
	test_tree_open(&h->tree, engine);
	h->directories[h->directories_count++] = KEY_ID_ROOT;
	for (unsigned i = 0; i < count; i++) {
		do_any(h);
		if (i % CHECK_EVERY == 0)
			check_now(h, i);
	}
	check_now(h, count);
	test_tree_close(&h->tree);
	free(h);
}

START_TEST(random_history_in_memory)
{
	run_history(TEST_MEMORY, (uint64_t)_i);
}
END_TEST

START_TEST(random_history_with_sealed_names)
{
	run_history(TEST_MEMORY_SEALED, 100 + (uint64_t)_i);
}
END_TEST

START_TEST(random_history_on_the_local_engine)
{
	run_history(TEST_LOCAL, 200 + (uint64_t)_i);
}
END_TEST

/* S5: 10,000 operations, and the process ends without a word. */
START_TEST(after_a_crash)
{
	struct history *h = calloc(1, sizeof(*h));
	struct store_open_options options = { .credentials.passphrase = "p",
					      .map_bytes = UINT64_C(256) << 20 };
	struct store_open_report why = { 0 };
	/* Kept apart: the child's own is made in the same memory. */
	_cleanup_free_ char *directory = strdup(test_directory());
	int status;
	pid_t pid;

	ck_assert_ptr_nonnull(h);
	ck_assert_ptr_nonnull(directory);
	random_init(&h->random, 300);
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* A directory of the child's own would go with it. */
		ck_assert_int_eq(setenv("DDBFS_TEST_TMP", directory, 1), 0);
		test_tree_open(&h->tree, TEST_LOCAL);
		ck_assert_int_eq(symlink(h->tree.path, crashed_path(directory)), 0);
		h->directories[h->directories_count++] = KEY_ID_ROOT;
		for (unsigned i = 0; i < CRASH_AFTER; i++)
			do_any(h);
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
	test_clock_init(&h->tree.clock);
	ck_assert_msg(store_open(crashed_path(directory), &options, &why, &h->tree.store) == 0,
		      "%s", why.text);
	h->last = "crash";
	check_now(h, CRASH_AFTER);
	ck_assert_int_eq(store_close(h->tree.store), 0);
	free(h);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recount");
	TCase *c = tcase_create("recount");

	tcase_set_timeout(c, 120);
	tcase_add_loop_test(c, random_history_in_memory, 0, HISTORIES);
	tcase_add_loop_test(c, random_history_with_sealed_names, 0, HISTORIES / 2);
	tcase_add_loop_test(c, random_history_on_the_local_engine, 0, HISTORIES / 2);
	tcase_add_test(c, after_a_crash);
	suite_add_tcase(suite, c);
	return test_main(suite);
}
