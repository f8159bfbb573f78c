/*
 * storm.h - many processes in a few directories, with what must hold while they
 * work. Private to the storm program.
 *
 * Each process has names of its own in directories that all share, and keeps a
 * model of them: after each step the name, the inode, the count of links, the
 * content and an attribute must be what the model says, and a listing must have
 * exactly these, once each (storm-own.c). Beside them are names that all fight
 * for (storm-shared.c): there any outcome is right that some order of the steps
 * allows, contents are whole or empty, and ESTALE, EIO and hangs never are.
 */
#ifndef TESTS_MOUNT_STORM_H
#define TESTS_MOUNT_STORM_H

#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/random.h"

#define STORM_DIRECTORIES 4
#define STORM_KEPT 40 /* names in each directory that nobody touches */
#define STORM_SHARED 12 /* names in each directory that all fight for */
#define STORM_SLOTS 24 /* names of each process */
#define STORM_OPEN 4 /* removed files that each process holds open */
#define STORM_LARGEST 90000
#define STORM_ANSWER_NS INT64_C(30000000000)
#define STORM_EXPIRY_NS INT64_C(60000000000) /* at the most, until what was deleted is destroyed */

struct object {
	int names; /* 0: not in use */
	bool directory;
	uint64_t ino;
	uint32_t tag;
	uint32_t size;
	uint32_t attribute; /* user.storm; 0: none */
};

struct slot {
	struct object *object; /* NULL: there is no such name */
	int where; /* the directory it is in */
};

struct removed {
	int fd; /* -1: none */
	struct object object;
};

struct worker {
	struct test_random random;
	int number;
	uint32_t tags;
	struct object objects[STORM_SLOTS];
	struct slot slots[STORM_SLOTS];
	struct removed removed[STORM_OPEN];
	char *buffer; /* STORM_LARGEST bytes */
	struct shared_state *shared;
};

/* What all processes count together. */
struct shared_state {
	uint64_t steps;
	uint64_t failures;
	int64_t slowest_ns;
	char slowest[64];
	uint64_t adopted; /* own names that came back out of the trash */
};

/* Prints what went wrong, with the errno of `error`, and counts it. */
void storm_failed(struct worker *w, const char *what, const char *path, int error)
	__attribute__((nonnull(1, 2, 3)));
/* Holds for a system call's result: success, or one of the errnos (a list that 0 ends). */
void storm_allow(struct worker *w, const char *what, const char *path, int result, const int *allowed);
#define STORM_ALLOW(w, what, path, result, ...) \
	storm_allow(w, what, path, (int)(result), (const int[]){ __VA_ARGS__, 0 })

/* A file's whole bytes: who wrote it, its tag and size are in its first line. */
void storm_fill(char *buffer, int worker, uint32_t tag, uint32_t size);
/* Whether `size` bytes are what storm_fill made; the tag. */
bool storm_whole(const char *buffer, size_t size, int *ret_worker, uint32_t *ret_tag);
/* Of a new file: enough for the line, mostly small. */
uint32_t storm_size(struct worker *w);

/* One step among the process's own names; its name, for the slowest. */
const char *own_step(struct worker *w);
/* One among those that all fight for. */
const char *shared_step(struct worker *w);
/* Everything once more, at the end. */
void own_check_all(struct worker *w);
void own_init(struct worker *w);

#endif
