/*
 * fixture.h - a store in memory, a clock that stands, and a tree made by plain
 * transactions: what the tests of lifecycle/ start from.
 *
 * Each test body runs many times: once undisturbed, then with every fault the
 * store in memory has (a conflict, another client's change, an answer that was
 * lost) at its first, second, ... last transaction, with plain and with sealed
 * names. After each run `check` must find nothing.
 */
#ifndef TESTS_LIFECYCLE_FIXTURE_H
#define TESTS_LIFECYCLE_FIXTURE_H

#include <sys/stat.h>

#include "lifecycle/lifecycle.h"
#include "tests/lib/test.h"

#define SECOND CLOCK_SECOND_NS
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

#define FIXTURE_CHANGES 4096

enum fixture_fault {
	FAULT_NONE,
	FAULT_CONFLICT,
	FAULT_LOST_ANSWER,
	FAULT_OTHER_CLIENT,
	FAULT_KINDS, /* under those above every body passes */
	FAULT_ERROR, /* not done, and said so: what is made good later may be missing */
};

struct fixture {
	struct test_clock clock;
	struct store *store;
	struct lifecycle *life;
	struct actor actor; /* whoever acts next */
	enum fixture_fault fault;
	uint64_t fault_at;
	uint64_t transactions; /* seen so far */
	uint64_t disturb; /* directory that the other client writes in; 0: the root */
	uint64_t busy[8]; /* ids that are open; 0: none */
	bool known_elsewhere; /* by other names too, where there are some */
	bool keep_problems; /* the body leaves faults on purpose */
	/* Told of each change besides; may read the store. */
	void (*watch)(void *data, const struct lifecycle_change *change);
	void *watch_data;
	struct lifecycle_change changes[FIXTURE_CHANGES]; /* in a ring */
	size_t changed;
};

/* Adds a test whose body runs under every fault; `_once` runs it undisturbed only. */
typedef void fixture_body(struct fixture *f);
void fixture_run(fixture_body *body);
void fixture_run_once(fixture_body *body);
#define FIXTURE_TEST(name)                          \
	static void name##_body(struct fixture *f); \
	START_TEST(name)                            \
	{                                           \
		fixture_run(name##_body);           \
	}                                           \
	END_TEST                                    \
	static void name##_body(struct fixture *f)
#define FIXTURE_TEST_ONCE(name)                     \
	static void name##_body(struct fixture *f); \
	START_TEST(name)                            \
	{                                           \
		fixture_run_once(name##_body);      \
	}                                           \
	END_TEST                                    \
	static void name##_body(struct fixture *f)

/* A result of -EIO is a lost answer that the caller was told of: he asks again, as a user would. */
#define FIXTURE_TRY(f, expression)                            \
	({                                                    \
		int try_ = (expression);                      \
		if (try_ == -EIO && (f)->fault != FAULT_NONE) \
			try_ = (expression);                  \
		try_;                                         \
	})
#define ck_ok(f, expression) ck_assert_int_eq(FIXTURE_TRY(f, expression), 0)

/* From now on: that fault, at the n-th transaction counted from here. */
void fixture_arm(struct fixture *f, enum fixture_fault fault, uint64_t at);
void fixture_reopen(struct fixture *f); /* closes and opens lifecycle */
void fixture_crash(struct fixture *f); /* opens lifecycle anew, as if the old one had died */
void fixture_pass(struct fixture *f, int64_t ns); /* time goes by */

/* ---- making ------------------------------------------------------------- */

uint64_t make_file(struct fixture *f, uint64_t directory, const char *name, const char *text);
uint64_t make_big_file(struct fixture *f, uint64_t directory, const char *name, size_t size); /* with a body */
uint64_t make_directory(struct fixture *f, uint64_t parent, const char *name);
uint64_t make_directory_as(struct fixture *f, uint64_t parent, const char *name, uint32_t mode,
			   uint32_t uid);
void make_files(struct fixture *f, uint64_t directory, unsigned count); /* f0, f1, ...: each with its name in it */
/* A further name; the first call for a file turns its item into a LINK. */
void make_link(struct fixture *f, uint64_t directory, const char *name, uint64_t to_directory,
	       const char *to_name);
void set_mode(struct fixture *f, uint64_t directory, uint32_t mode);
void set_mtime(struct fixture *f, uint64_t directory, int64_t seconds);
void set_policy(struct fixture *f, uint64_t directory, const char *name, const char *value);
/* Renames within the live tree; what bears the name is replaced (its removal is lifecycle's). */
int rename_item(struct fixture *f, uint64_t from, const char *from_name, uint64_t to, const char *to_name);

/* ---- acting --------------------------------------------------------------- */

void act_as(struct fixture *f, uint32_t uid, uint32_t group, const char *command);
void rm(struct fixture *f, uint64_t directory, const char *name);
void rm_rf(struct fixture *f, uint64_t parent, const char *name); /* as rm -rf does it */
void discard(struct fixture *f, uint64_t parent, const char *name);
void restore(struct fixture *f, uint64_t from, const char *shown, uint64_t to, const char *name);
int try_restore(struct fixture *f, uint64_t from, const char *shown, uint64_t to, const char *name,
		unsigned flags);
void sweep(struct fixture *f, struct sweep_result *ret_result); /* until there is no more; `ret_result` may be NULL */

/* ---- looking --------------------------------------------------------------- */

bool is_live(struct fixture *f, uint64_t directory, const char *name);
bool is_shown(struct fixture *f, uint64_t directory, const char *shown);
struct place shown_place(struct fixture *f, uint64_t directory, const char *shown);
unsigned count_shown(struct fixture *f, uint64_t directory);
unsigned count_deleted(struct fixture *f, uint64_t directory); /* DEL# rows, hidden ones too */
struct item live_item(struct fixture *f, uint64_t directory, const char *name); /* borrows nothing */
void assert_text(struct fixture *f, uint64_t directory, const char *name, const char *text);
/* The store's clock moves on by a few nanoseconds with each number drawn. */
#define assert_about(ns, expected) \
	ck_assert_int_lt(llabs((long long)((ns) - (expected))), MINUTE / 1000)
int64_t counter(struct fixture *f, enum item_counter which);
struct batch last_batch(struct fixture *f);
unsigned count_batches(struct fixture *f);

#endif
