/*
 * files.h - a store as its files: copied, listed, compared, damaged. For tests
 * that do to a store what only disks do.
 */
#ifndef TESTS_CRASH_FILES_H
#define TESTS_CRASH_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file below a directory, and its blocks of 512 bytes that are not all zeros. */
struct store_file {
	char path[256]; /* relative */
	uint64_t size;
	uint32_t *blocks;
	size_t blocks_count;
};

struct store_files {
	struct store_file *items; /* sorted by path */
	size_t count;
};

/* All of these end the test when something goes wrong. */
void files_list(const char *directory, struct store_files *ret_files);
void files_release(struct store_files *f);
const struct store_file *files_find(const struct store_files *f, const char *path);
/* Copies a directory that has files and directories only, holes as holes. `to` is made, or emptied first. */
void files_copy(const char *from, const char *to);
/* One file of a directory over that of another. */
void files_copy_one(const char *from, const char *to, const char *name);
/* Everything below `directory`, and itself, is removed. */
void files_remove(const char *directory);
/* Hash of all names, sizes and bytes, but of locks. */
uint64_t files_hash(const char *directory);
bool files_is_lock(const char *path);
void files_flip(const char *directory, const char *path, uint64_t offset, unsigned bit);
void files_truncate(const char *directory, const char *path, uint64_t size);
/* Replaces a file by one with these bytes. */
void files_replace(const char *directory, const char *path, const void *bytes, size_t size);

/* The same numbers on every machine. */
static inline uint64_t files_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

#endif
