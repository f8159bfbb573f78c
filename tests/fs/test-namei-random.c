/*
 * Random histories of names (create, link, rename in all its kinds, unlink,
 * rmdir) against a tree of pointers. After each step the whole tree is compared,
 * and now and then every counter. A failure names seed and step:
 * DDBFS_TEST_SEED=<seed> repeats it.
 */
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/random.h"
#include "tests/lib/tree.h"

#define STEPS 400
#define SEEDS 6 /* of each engine */
#define NODES 2048
#define NAMES 5
#define DEPTH_MAX 5

static const char *const names[NAMES] = { "a", "b", "c", "DEL#a", "a@2026-01-01T00:00:00Z" };

struct node {
	uint64_t id;
	uint32_t mode;
	unsigned nlink; /* of what is no directory */
	bool dead; /* a removed directory */
	struct node *parent; /* of a directory */
	struct node *entries[NAMES];
};

static struct test_tree t;
static struct test_random rnd;
static unsigned step;
static struct node nodes[NODES];
static size_t nodes_count;
static const char *doing;

#define CK(condition, ...)                                                                          \
	do {                                                                                        \
		if (!(condition)) {                                                                 \
			fprintf(stderr, "# seed %llu, step %u, %s: ", (unsigned long long)rnd.seed, \
				step, doing);                                                       \
			fprintf(stderr, __VA_ARGS__);                                               \
			fprintf(stderr, "\n");                                                      \
			ck_abort_msg("seed %llu, step %u, %s", (unsigned long long)rnd.seed, step,  \
				     doing);                                                        \
		}                                                                                   \
	} while (0)

static bool is_directory(const struct node *n)
{
	return n && S_ISDIR(n->mode);
}

static bool is_empty(const struct node *d)
{
	for (size_t i = 0; i < NAMES; i++)
		if (d->entries[i])
			return false;
	return true;
}

static bool is_below(const struct node *d, const struct node *ancestor)
{
	for (; d; d = d->parent)
		if (d == ancestor)
			return true;
	return false;
}

static unsigned depth_of(const struct node *d)
{
	unsigned depth = 0;

	for (; d->parent; d = d->parent)
		depth++;
	return depth;
}

static struct node *random_directory(bool dead)
{
	for (;;) {
		struct node *n = &nodes[random_below(&rnd, nodes_count)];

		if (is_directory(n) && n->dead == dead)
			return n;
		if (dead && random_once_in(&rnd, 50))
			return NULL;
	}
}

/* Several processes, so that some names are temporary. */
static const struct actor *random_actor(void)
{
	return random_once_in(&rnd, 3) ? &t.root : &t.remover;
}

/* ---- comparing --------------------------------------------------------------------- */

static unsigned subdirectories(const struct node *d)
{
	unsigned count = 0;

	for (size_t i = 0; i < NAMES; i++)
		count += is_directory(d->entries[i]);
	return count;
}

static void compare(const struct node *d)
{
	for (size_t i = 0; i < NAMES; i++) {
		const struct node *n = d->entries[i];
		struct inode found;
		struct place at;
		int result = namei_lookup(t.namei, d->id, names[i], true, &found);

		if (!n) {
			CK(result == -ENOENT, "%s is there: %d", names[i], result);
			continue;
		}
		CK(result == 0, "%s is not there: %d", names[i], result);
		CK(found.item.id == n->id, "%s is %llu, not %llu", names[i],
		   (unsigned long long)found.item.id, (unsigned long long)n->id);
		CK(found.item.mode == n->mode, "%s has mode %o", names[i], found.item.mode);
		CK(found.nlink == (is_directory(n) ? subdirectories(n) + 2 : n->nlink),
		   "%s has %u links", names[i], found.nlink);
		inode_release(&found);
		/* A name that was destroyed at once: of the others only the node table keeps account. */
		if (found.item.flags & ITEM_REFERENCE && !t.where.locate(&t, n->id, &at))
			test_learn(&t, n->id, &found.at);
		/* Whoever has it open finds it where it is now. */
		CK(t.where.locate(&t, n->id, &at) && namei_load(t.namei, &at, true, &found) == 0,
		   "%s is lost", names[i]);
		CK(found.item.id == n->id, "%s is taken for another", names[i]);
		inode_release(&found);
		if (is_directory(n))
			compare(n);
	}
}

/* ---- steps -------------------------------------------------------------------------- */

static void step_create(void)
{
	struct node *d = random_directory(random_once_in(&rnd, 20));
	size_t i = random_below(&rnd, NAMES);
	uint32_t mode = random_once_in(&rnd, 3) ? S_IFDIR | 0755 :
			random_once_in(&rnd, 4) ? S_IFLNK | 0777 :
						  S_IFREG | 0644;
	struct namei_new what = { .mode = mode, .target = "t" };
	struct inode made;
	int expected, result;

	if (!d || nodes_count == NODES || (S_ISDIR(mode) && depth_of(d) >= DEPTH_MAX))
		return;
	doing = "create";
	expected = d->dead ? -ENOENT : d->entries[i] ? -EEXIST : 0;
	result = namei_create(t.namei, random_actor(), d->id, names[i], &what, &made);
	CK(result == expected, "%d, not %d", result, expected);
	if (result)
		return;
	nodes[nodes_count] = (struct node){
		.id = made.item.id, .mode = mode, .nlink = 1, .parent = S_ISDIR(mode) ? d : NULL
	};
	d->entries[i] = &nodes[nodes_count++];
	test_learn(&t, made.item.id, &made.at);
	inode_release(&made);
}

static void step_link(void)
{
	struct node *from = random_directory(false),
		    *to = random_directory(random_once_in(&rnd, 20)), *n;
	size_t i = random_below(&rnd, NAMES), k = random_below(&rnd, NAMES);
	struct place at;
	struct inode made;
	int expected, result;

	if (!to || !from->entries[i])
		return;
	doing = "link";
	n = from->entries[i];
	expected = to->dead ? -ENOENT : to->entries[k] ? -EEXIST : is_directory(n) ? -EPERM : 0;
	at = (struct place){ .directory = from->id, .state = KEY_ACT };
	strcpy(at.name, names[i]);
	result = namei_link(t.namei, &t.root, &at, to->id, names[k], &made);
	CK(result == expected, "%d, not %d", result, expected);
	if (result)
		return;
	CK(made.nlink == n->nlink + 1 && made.item.id == n->id, "%u links", made.nlink);
	inode_release(&made);
	to->entries[k] = n;
	n->nlink++;
}

static void model_drop(struct node *n)
{
	if (is_directory(n))
		n->dead = true;
	else
		n->nlink--;
}

static int expect_rename(const struct node *from, const struct node *n, const struct node *to,
			 const struct node *old, unsigned flags)
{
	if (!n)
		return -ENOENT;
	if (flags == RENAME_NOREPLACE && old)
		return -EEXIST;
	if (flags == RENAME_EXCHANGE && !old)
		return -ENOENT;
	if (from != to && is_directory(n) && is_below(to, n))
		return -EINVAL;
	if (flags == RENAME_EXCHANGE && from != to && is_directory(old) && is_below(from, old))
		return -EINVAL;
	if (n == old)
		return 0;
	if (flags == RENAME_EXCHANGE || !old)
		return 0;
	if (is_directory(n) != is_directory(old))
		return is_directory(n) ? -ENOTDIR : -EISDIR;
	return is_directory(old) && !is_empty(old) ? -ENOTEMPTY : 0;
}

static void step_rename(void)
{
	static const unsigned kinds[] = { 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	struct node *from = random_directory(false),
		    *to = random_once_in(&rnd, 3) ? from : random_directory(false);
	size_t i = random_below(&rnd, NAMES), k = random_below(&rnd, NAMES);
	unsigned flags = kinds[random_below(&rnd, ARRAY_SIZE(kinds))];
	struct node *n = from->entries[i], *old = to->entries[k];
	struct namei_renamed renamed;
	int expected = expect_rename(from, n, to, old, flags), result;

	doing = flags == RENAME_EXCHANGE ? "exchange" :
		flags			 ? "rename without replacing" :
					   "rename";
	result = namei_rename(t.namei, random_actor(), from->id, names[i], to->id, names[k], flags,
			      &renamed);
	CK(result == expected, "%s to %s: %d, not %d", names[i], names[k], result, expected);
	if (result || n == old)
		return;
	CK(renamed.moved == n->id && renamed.other == (old ? old->id : 0), "told otherwise");
	to->entries[k] = n;
	from->entries[i] = flags == RENAME_EXCHANGE ? old : NULL;
	if (is_directory(n))
		n->parent = to;
	if (flags == RENAME_EXCHANGE && is_directory(old))
		old->parent = from;
	else if (flags != RENAME_EXCHANGE && old)
		model_drop(old);
}

static void step_remove(void)
{
	struct node *d = random_directory(false), *n;
	size_t i = random_below(&rnd, NAMES);
	bool directory = random_once_in(&rnd, 2);
	int expected = 0, result;

	doing = directory ? "rmdir" : "unlink";
	n = d->entries[i];
	if (!n)
		expected = -ENOENT;
	else if (is_directory(n) != directory)
		expected = directory ? -ENOTDIR : -EISDIR;
	else if (directory && !is_empty(n))
		expected = -ENOTEMPTY;
	result = lifecycle_remove(t.lifecycle, random_actor(), d->id, names[i], directory);
	CK(result == expected, "%s: %d, not %d", names[i], result, expected);
	if (result)
		return;
	d->entries[i] = NULL;
	model_drop(n);
}

static void step_write(void)
{
	struct node *n = &nodes[random_below(&rnd, nodes_count)];
	static const char bytes[5000];
	uint64_t size = random_below(&rnd, sizeof(bytes));
	int result;

	if (!S_ISREG(n->mode))
		return;
	doing = "write";
	/* Also to files that have no name any more, unless that was destroyed. */
	result = test_write(&t, n->id, random_below(&rnd, 100), bytes, size);
	CK(result == 0 || (result == -ESTALE && n->nlink == 0), "%d", result);
}

static void run_step(void)
{
	uint64_t kind = random_below(&rnd, 100);

	if (t.engine != TEST_LOCAL && random_once_in(&rnd, 10))
		test_faults(&t, &(struct store_faults){ .conflict_at = 1 + random_below(&rnd, 3) });
	if (kind < 30)
		step_create();
	else if (kind < 40)
		step_link();
	else if (kind < 75)
		step_rename();
	else if (kind < 90)
		step_remove();
	else if (kind < 98)
		step_write();
	else
		test_tree_reopen(&t);
	test_clock_advance(&t.clock, (int64_t)random_below(&rnd, CLOCK_SECOND_NS));
}

START_TEST(tree_is_what_the_model_says)
{
	unsigned steps = random_rounds(STEPS);

	random_init(&rnd, (uint64_t)_i / TEST_ENGINES);
	test_tree_open(&t, (enum test_engine)(_i % TEST_ENGINES));
	nodes[0] = (struct node){ .id = KEY_ID_ROOT, .mode = S_IFDIR | 0755 };
	nodes_count = 1;
	doing = "begin";
	for (step = 0; step < steps; step++) {
		run_step();
		compare(&nodes[0]);
		if (step % 20 == 0) {
			test_faults(&t, NULL);
			test_consistent(&t);
		}
	}
	test_faults(&t, NULL);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/namei-random");
	TCase *c = tcase_create("model");

	tcase_add_loop_test(c, tree_is_what_the_model_says, 0, SEEDS * TEST_ENGINES);
	tcase_set_timeout(c, 120);
	suite_add_tcase(s, c);
	return test_main(s);
}
