/*
 * tree.h - a formatted store with lifecycle and namei on it, and short ways to
 * build and look at a tree. Each function that returns no result fails the test
 * when what it does fails.
 */
#ifndef TESTS_LIB_TREE_H
#define TESTS_LIB_TREE_H

#include <pthread.h>

#include "fs/file.h"
#include "fs/namei.h"
#include "tests/lib/test.h"

/* For loop tests: tcase_add_loop_test(tc, f, 0, TEST_ENGINES), engine = _i. */
enum test_engine {
	TEST_MEMORY,
	TEST_MEMORY_SEALED, /* names as tokens */
	TEST_LOCAL,
	TEST_ENGINES,
};

struct test_tree {
	struct test_clock clock;
	enum test_engine engine;
	char path[256]; /* of the local store */
	struct store *store;
	struct lifecycle *lifecycle;
	struct namei *namei;
	struct file_locator where; /* knows what test_look, test_make and the hook told it */
	struct actor root, user, other; /* uids 0, 1000 and 1001 with gids alike */
	struct actor remover; /* root in another process: what it removes is no temporary name */
	struct test_known {
		uint64_t id;
		struct place at;
		bool gone;
	} * known;
	size_t known_count, known_capacity;
	pthread_mutex_t known_lock;
	unsigned changes; /* how often the hook was called */
	struct lifecycle_change last_change;
};

void test_tree_open(struct test_tree *t, enum test_engine engine);
void test_tree_close(struct test_tree *t);
/* Closes and opens what is below the namei again; a store in memory would be lost, so that only checkpoints. */
void test_tree_reopen(struct test_tree *t);
/* Faults of the store in memory from now on (NULL: none; not for the local one); the blocks of ids and seqs are drawn beforehand. */
void test_faults(struct test_tree *t, const struct store_faults *faults);
void test_learn(struct test_tree *t, uint64_t id, const struct place *at);

/* Makes an item as `actor` (NULL = root) and returns its id. */
uint64_t test_make(struct test_tree *t, const struct actor *actor, uint64_t parent,
		   const char *name, uint32_t mode);
uint64_t test_mkdir(struct test_tree *t, uint64_t parent, const char *name);
uint64_t test_file(struct test_tree *t, uint64_t parent, const char *name, const char *text);
/* The item a name has, attributes only, without memory to release (no xattrs). */
struct inode test_look(struct test_tree *t, uint64_t parent, const char *name);
bool test_exists(struct test_tree *t, uint64_t parent, const char *name);
void test_link(struct test_tree *t, uint64_t parent, const char *name, uint64_t to_parent,
	       const char *to_name);
int test_rename(struct test_tree *t, uint64_t parent, const char *name, uint64_t to_parent,
		const char *to_name, unsigned flags);
void test_remove(struct test_tree *t, uint64_t parent, const char *name); /* unlink or rmdir, as remover */
int test_write(struct test_tree *t, uint64_t id, uint64_t offset, const void *bytes, size_t size);
/* Compares the whole content. */
void test_content(struct test_tree *t, uint64_t id, const void *bytes, size_t size);
void test_text(struct test_tree *t, uint64_t id, const char *text);
/* How many entries of the trash of a directory have a name. */
unsigned test_deleted(struct test_tree *t, uint64_t parent, const char *name);

/* Walks the live tree and all that is deleted: guards, link counts, sub-directory counts, shadows and counters must be what they say. */
void test_consistent(struct test_tree *t);

#endif
