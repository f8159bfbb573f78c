/*
 * fs.h - runs a mount. No FUSE types.
 */
#ifndef FS_FS_H
#define FS_FS_H

#include <stdbool.h>

#include "store/store.h"

struct fs_options {
	const char *mount_point; /* absolute */
	const char *source; /* what /proc/mounts shows as the device: the store's path */
	const char *fuse_options; /* "-o" text for the kernel and libfuse ("allow_other,ro"), or NULL */
	bool writeback; /* kernel's writeback cache */
	bool acl; /* POSIX ACLs */
	bool busy_poll; /* spin on the device for tens of microseconds after a request */
	bool debug; /* libfuse's own trace on standard error */
	bool sweeper;
	bool scrub; /* with the sweeper only */
};

/* Called once, from fs_run, when the mount answers. */
struct fs_events {
	void (*mounted)(void *data);
	void (*log)(void *data, const char *text); /* one line for the administrator */
	void *data;
};

/*
 * Mounts and serves until it is unmounted or told to stop (SIGTERM, SIGINT,
 * SIGHUP: unmounts lazily if busy). The store stays the caller's to close. 0;
 * a negative errno when it could not mount or the store failed while it ran.
 */
int fs_run(struct store *store, const struct fs_options *options, const struct fs_events *events);

#endif
