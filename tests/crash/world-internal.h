/*
 * world-internal.h - a world by its paths, for what can be done to it. Paths
 * are relative to the root. All return what the system call would.
 */
#ifndef TESTS_CRASH_WORLD_INTERNAL_H
#define TESTS_CRASH_WORLD_INTERNAL_H

#include "tests/crash/world.h"

/* Where one item is: what a locator needs. */
struct world_spot {
	uint64_t id;
	struct place at;
};

struct file_locator world_locator(struct world_spot *spot);
int world_find(struct world *w, const char *path, struct world_spot *ret_spot);
int world_parent(struct world *w, const char *path, uint64_t *ret_directory, const char **ret_name);
int world_look(struct world *w, const char *path, struct inode *ret_inode);

int world_create(struct world *w, const char *path, uint32_t mode);
/* Bytes that follow from offset and size. */
int world_write(struct world *w, const char *path, uint64_t offset, size_t size, bool append);
int world_rename(struct world *w, const char *from, const char *to, unsigned flags);
int world_link(struct world *w, const char *from, const char *to);
int world_remove(struct world *w, const char *path);

#endif
