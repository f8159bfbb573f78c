/*
 * history.h - a list of operations, made from a seed or read from a file, and
 * carried out on a store and on the model at once.
 *
 * An operation names directories by a path from the root that is followed as far
 * as it leads, and entries of the trash by a number that is taken modulo what
 * there is: so any list of operations means something, and what is left of one
 * when the minimiser takes some away still does.
 */
#ifndef TESTS_MODEL_HISTORY_H
#define TESTS_MODEL_HISTORY_H

#include <stdio.h>

#include "tests/model/model.h"

#define HISTORY_OPERATIONS 4096
#define HISTORY_DEPTH \
	3 /* of the directory that an operation is in; what it makes lies one deeper */

enum operation_kind {
	OP_CREATE,
	OP_MKDIR,
	OP_WRITE,
	OP_CHMOD,
	OP_LINK,
	OP_RENAME,
	OP_EXCHANGE,
	OP_UNLINK,
	OP_RMDIR,
	OP_RM_RF,
	OP_DISCARD, /* mv into .trash */
	OP_RESTORE, /* mv out of .trash, of a part too */
	OP_ORIGIN, /* ddbfs trash restore */
	OP_UNDO,
	OP_PURGE, /* rm in .trash */
	OP_EMPTY,
	OP_OPEN,
	OP_CLOSE,
	OP_SCRIBBLE, /* write through a descriptor */
	OP_POLICY,
	OP_CAP, /* trash_max, trash_max_entries, also on the root */
	OP_PASS, /* time goes by */
	OP_STEP, /* the wall clock jumps */
	OP_ACCEPT, /* ddbfs clock accept */
	OP_SWEEP,
	OP_REMOUNT,
	OP_KILL, /* kill -9 of the process */
	OP_KINDS
};

struct operation {
	uint8_t kind;
	uint8_t who; /* of three deleters of two users */
	uint8_t path[HISTORY_DEPTH], name;
	uint8_t path2[HISTORY_DEPTH], name2;
	uint32_t number;
};

enum history_engine {
	HISTORY_MEMORY, /* plain names */
	HISTORY_MEMORY_SEALED,
	HISTORY_LOCAL,
};

struct history {
	uint64_t seed; /* 0: from a file */
	enum history_engine engine;
	bool rights; /* users may do what modes let them */
	struct operation operations[HISTORY_OPERATIONS];
	int count;
};

void history_generate(struct history *h, uint64_t seed, int count);
void history_print(const struct history *h, FILE *to);
void history_print_operation(const struct operation *op, FILE *to);
int history_parse(struct history *h, FILE *from); /* 0 or the number of the line that is wrong */

/* All that outlives the process that carries out a history: in shared memory. */
struct run {
	struct history history;
	struct model model;
	int at; /* the next operation */
	uint64_t operations; /* that did something */
	uint64_t succeeded[OP_KINDS];
	uint64_t refused; /* for want of rights */
	bool killed; /* the process ended as OP_KILL wants it */
	bool opened; /* the store was made */
	char path[256]; /* of the local store */
	int64_t realtime_ns, boottime_ns;
	int64_t ahead_ns; /* wall clock ahead of what the boot clock bears out */
	int64_t forgotten_ns; /* what was believed since the store last wrote down where both clocks stood */
	int64_t stepped_ns; /* by the last step, not yet taken back */
	int64_t suspect_boot_ns, behind_boot_ns;
	bool suspect, behind;
	char failure[1024];
};

/* Carries out what is left. Exits the process: 0, 1 (run->failure says why), or by SIGKILL with run->killed. */
void history_run(struct run *run) __attribute__((noreturn));

#endif
