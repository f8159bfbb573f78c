/*
 * mounts.h - which ddbfs mount a path is in, and what it is called inside.
 *
 * What was deleted has no path any more, so a path is taken as far as it
 * exists; the rest is names. Nothing here touches a mount but by path look-up,
 * and mounts_find not even that: it works on mounts that hang.
 */
#ifndef TOOLS_MOUNTS_H
#define TOOLS_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#define MOUNTS_TYPE "fuse.ddbfs"

struct mount {
	char *point; /* where it is mounted */
	char *root; /* what of the file system is mounted there: "/" but for bind mounts */
	char *source; /* the store's path */
	char *type;
	dev_t device;
};
void mount_release(struct mount *m); /* takes NULL and zeroed */

/* The topmost mount at exactly `point`. 1 found, 0 none, negative errno. */
int mounts_find(const char *point, struct mount *ret_mount);
/* A mount of whatever kind below `point`, the last one made. 1 found, 0 none, negative errno. */
int mounts_inside(const char *point, struct mount *ret_mount);
/* Calls `row` for each mount of ddbfs until it returns true. 0 or a negative errno. */
int mounts_each(bool (*row)(void *data, const struct mount *mount), void *data);

/*
 * Makes `path` absolute without symbolic links, as far as it exists; with
 * `follow`, the last name too. -EINVAL: ".." after a name that does not exist.
 * -ENOTCONN: a dead mount on the way. *ret_path is malloc'd.
 */
int mounts_resolve(const char *path, bool follow, char **ret_path);

/*
 * The ddbfs mount that a resolved path is in, and the path from the file
 * system's root ("/a/b", "/"). 1 found, 0 it is in none, negative errno.
 */
int mounts_locate(const char *resolved, struct mount *ret_mount, char **ret_inner);

/* Whether `path` is `directory` or lies below it. Both resolved. */
bool mounts_is_below(const char *path, const char *directory);

#endif
