/*
 * disk.h - what a disk may hold when the power fails: from the log of calls
 * that changed the files of a store (shim.h), states are built in which what
 * was synced is there, and of the rest everything, nothing, or any part, down
 * to sectors of 512 bytes and in any order. Names in a directory that was not
 * synced may be missing.
 */
#ifndef TESTS_CRASH_DISK_H
#define TESTS_CRASH_DISK_H

#include "store/util.h"
#include "tests/crash/shim.h"

#define DISK_FILES_MAX 512

/* A file as the disk has it, and what was done to it since. */
struct disk_file {
	char path[32];
	bool exists;
	struct buffer bytes;
	const struct shim_record **pending;
	size_t count;
	size_t capacity;
};

struct disk {
	struct disk_file files[DISK_FILES_MAX];
	size_t count;
	uint64_t durable; /* calls whose effect came to stay, so far: while it stands still, so does DISK_NONE */
};

enum disk_variant {
	DISK_ALL, /* as if only the process had ended */
	DISK_NONE, /* nothing but what was synced */
	DISK_SOME, /* of each file some calls */
	DISK_TORN, /* and of each write some sectors */
	DISK_VARIANTS,
};

/* The files below `directory`, all synced. `d` is zeroed or was begun before. All functions end the test when they fail. */
void disk_begin(struct disk *d, const char *directory);
void disk_release(struct disk *d);
/* A record of the log other than SHIM_LOG_NOTE. */
void disk_step(struct disk *d, const struct shim_record *r);
/* Makes the directory `to` anew, with the files of one state. `seed` is for files_random. */
void disk_build(const struct disk *d, const char *to, enum disk_variant variant, uint64_t *seed);

#endif
