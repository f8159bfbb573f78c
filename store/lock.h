/*
 * lock.h - one process at a time has a store.
 *
 * An flock(2) on the file `lock` in the store's directory, which also holds the
 * number of the process that has it. The kernel lets go when that process ends,
 * however it ends: there are no stale locks.
 */
#ifndef STORE_LOCK_H
#define STORE_LOCK_H

#include <stdbool.h>
#include <sys/types.h>

#define LOCK_FILE "lock"

/*
 * Never waits. 0 and a descriptor whose closing lets go, -EBUSY and the holder
 * (0 if it is not known), -ENOENT (no lock file; not with `create`), other
 * errno. Writes nothing but, with `create`, an empty file that was not there.
 */
int lock_take(int dir_fd, bool create, int *ret_fd, pid_t *ret_holder);
/* Writes who has it. */
int lock_sign(int fd);

#endif
