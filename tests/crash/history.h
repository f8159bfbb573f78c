/*
 * history.h - a history of a world (world.h) and every state that it goes
 * through, one after each transaction, found by running it on the engine in
 * memory. A store that was interrupted must be in one of them: not before the
 * last operation that had been acknowledged (or, without power, synced), and
 * not beyond the one that was under way.
 */
#ifndef TESTS_CRASH_HISTORY_H
#define TESTS_CRASH_HISTORY_H

#include "tests/crash/world.h"

#define HISTORY_OPS_MAX 256
#define HISTORY_USUAL 42
/* All that users do, with checkpoints in between. */
extern const enum world_op history_usual[HISTORY_USUAL];

/* What comes after so many operations that change something; 0: never. */
struct history_rhythm {
	unsigned sync_every, checkpoint_every;
	unsigned life; /* the process ends without closing, and another goes on */
};

/* Neither a sync nor a checkpoint: after those nothing can be lost. */
bool history_is_change(enum world_op op);
/* The usual ones, each with a change somewhere before it. How many there are in `ops`, of HISTORY_OPS_MAX. */
size_t history_choose_usual(const struct history_rhythm *rhythm, enum world_op *ops);
/* `changes` ones by chance. */
size_t history_choose_any(const struct history_rhythm *rhythm, unsigned changes, uint64_t *seed,
			  enum world_op *ops);

struct history {
	const enum world_op *ops;
	size_t count;
	unsigned sparse; /* chunks of the large file; 0: there is none */
	int64_t begins_ns; /* boot clock of the world */
	int results[HISTORY_OPS_MAX];
	size_t ends[HISTORY_OPS_MAX + 1]; /* index of the state after the first n operations */
	char **states;
	size_t states_count, states_capacity;
};

/* Runs it. `h` has ops, count and sparse. */
void history_run(struct history *h);
void history_release(struct history *h);
/* Makes a store at `path` in which the history can begin, in a process of its own. */
void history_make_store(const struct history *h, const char *path);
/* A world with the time at which a history that was run begins. */
void history_begin(const struct history *h, struct world *w);
/* The same when `done` operations are behind, or the next one is under way, if it is one whose time makes the difference. */
void history_begin_after(const struct history *h, struct world *w, size_t done);
/*
 * Whether `text` is a state of the history from `from` operations done to the
 * end of operation number `until`. If not, the first line that differs is
 * printed.
 */
bool history_has(const struct history *h, const char *text, size_t from, size_t until);
/* Prints the first line in which they differ, if they do. */
void history_print_difference(const char *was, const char *expected);

#endif
