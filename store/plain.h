/*
 * plain.h - small plain files read and written whole: the header, the local
 * key, a user's key file.
 *
 * Nothing but a regular file is read: a FIFO or a terminal in the place of one
 * is never waited for. What is written is a new file, on disk when the call
 * returns, for its owner alone.
 */
#ifndef STORE_PLAIN_H
#define STORE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads all of `path` below `dir_fd`; `flags` may be O_NOFOLLOW. 0, -EINVAL
 * (not a regular file, or a symlink where none may be), -EFBIG (longer than
 * `max`; the first `max` bytes are in `ret_bytes`), other errno.
 */
int plain_read(int dir_fd, const char *path, int flags, size_t max, uint8_t *ret_bytes, size_t *ret_size);
/* Makes `name` anew (0600) and syncs it, not its directory. */
int plain_write(int dir_fd, const char *name, const void *bytes, size_t size);
/* Writes zeros over the first `size` bytes and removes it, durably. Best effort: copy-on-write disks keep old bytes. */
void plain_wipe(int dir_fd, const char *name, size_t size);

#endif
