/*
 * access.h - asks what the kernel would ask before rename(2), unlink(2) or
 * reading a directory, for requests that do not come as one (control jobs).
 * Modes, owners, groups, sticky bits, and the trash mask in views. Of a
 * directory with an access ACL only its owner is sure.
 */
#ifndef FS_ACCESS_H
#define FS_ACCESS_H

#include "fs/namei.h"

/* `want` of R_OK, W_OK, X_OK against mode and owner. 0 or -EACCES. uid 0 may do all (X_OK on files needs one x bit). */
int access_mode(const struct actor *actor, uint32_t mode, uint32_t uid, uint32_t gid, int want);
/* Whether the actor may add (`item` NULL) or remove names in a directory: write and search, sticky rule. -EACCES, -EPERM. */
int access_change(const struct actor *actor, const struct item *directory, const struct item *item);
/* Whether the actor may search every directory from the root down to `directory`, with trash masks applied from the first view or deleted directory on. */
int access_path(struct namei *n, const struct actor *actor, uint64_t directory);
/* As below, when it comes to be done: of what it replaces as well. Takes no lock. */
int access_move(struct namei *n, const struct actor *actor, const struct restore_move *move);
/* rename(2) out of the trash of at->directory, to `parent`; unlink(2) in it, or rm -r, which asks in each directory below. With masks. 0, -EACCES, -EPERM. */
int access_restore(struct namei *n, const struct actor *actor, const struct place *at,
		   const struct item *item, uint64_t parent);
int access_purge(struct namei *n, const struct actor *actor, const struct place *at,
		 const struct item *item);

#endif
