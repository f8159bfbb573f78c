/*
 * unmounting.h - takes mounts away: umount2(2) as root, fusermount3 otherwise.
 */
#ifndef TOOLS_UNMOUNTING_H
#define TOOLS_UNMOUNTING_H

#include <stdbool.h>
#include <sys/types.h>

/* 0, -EBUSY, -EPERM, -ENOENT (no fusermount3), other errno. `lazy`: out of the tree now, ended with its last user. */
int unmounting_detach(const char *point, bool lazy);
/* For a mount that is dead or hangs: what waits for its daemon gets an error. */
int unmounting_force(const char *point);
/* A process that keeps the mount busy, as "PID (command)". malloc'd; NULL: none found. */
char *unmounting_user(const char *point);

#endif
