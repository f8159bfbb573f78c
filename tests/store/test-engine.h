/*
 * test-engine.h - what the parts of the engine suite share.
 *
 * Every test of the suite runs once for each row of `engines`; `_i` of Check is
 * its number. A test opens its store with engine_start and ends with
 * engine_stop; engine_again closes and opens it, where there is something to
 * open again.
 */
#ifndef TESTS_STORE_TEST_ENGINE_H
#define TESTS_STORE_TEST_ENGINE_H

#include "store/record.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

struct engine_case {
	const char *name;
	bool local;
	enum store_names names;
};

extern const struct engine_case engines[];
extern const int engines_count;

/* The store of the running test, and its clock. */
extern struct store *store;
extern struct test_clock now;

void engine_start(int engine);
void engine_stop(void);
/* Closes and opens. False, and nothing is done, for a store that does not outlive its closing. */
bool engine_again(int engine);

/* ---- one-line operations ------------------------------------------------ */

struct key item_key(uint64_t directory, const char *name);
struct key meta_key(const char *name);

struct store_op op_put(struct key key, const char *attrs, const char *content,
		       enum store_condition condition, uint64_t version);
struct store_op op_delete(struct key key, enum store_condition condition, uint64_t version);
struct store_op op_check(struct key key, enum store_condition condition, uint64_t version);
struct store_op op_add(struct key key, unsigned counter, int64_t delta);
struct store_op op_empty(struct key_range range, struct key guard);
struct store_op op_write(uint64_t body, uint64_t offset, const void *bytes, size_t size);
struct store_op op_zero(uint64_t body, uint64_t offset, uint64_t length);
struct store_op op_truncate(uint64_t body, uint64_t offset);
struct store_op op_free(uint64_t body);

int transact1(struct store_op op);
/* Succeeds; the version. */
uint64_t put(struct key key, const char *attrs, const char *content);
/* The item's version, 0 if it is absent. */
uint64_t version_of(struct key key);
/* Whether the item has these attributes (and content, unless NULL). */
bool item_is(struct key key, const char *attrs, const char *content);
int64_t counter_of(struct key key, unsigned counter);

/* ---- the parts ---------------------------------------------------------- */

TCase *engine_items(void);
TCase *engine_queries(void);
TCase *engine_bodies(void);
TCase *engine_numbers(void);
TCase *engine_threads(void);
TCase *engine_reference(void);
TCase *engine_memory(void);

#define add_engine_test(tcase, test) tcase_add_loop_test(tcase, test, 0, engines_count)

#endif
