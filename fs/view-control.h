/*
 * view-control.h - `/.ddbfs`: the directory that no listing names, with `stats`
 * to read and `control` to ask. Knows no FUSE.
 *
 * Files are never opened in the daemon, so `stats` cannot be written anew at
 * each open. Each look-up gives it a fresh node that keeps the text of that
 * moment, with its true size, for as long as the kernel holds on to it.
 */
#ifndef FS_VIEW_CONTROL_H
#define FS_VIEW_CONTROL_H

#include <sys/stat.h>

#include "fs/control.h"
#include "fs/node.h"

struct view_control {
	struct node_table *nodes;
	struct control *control;
	uint32_t uid; /* who mounted */
	uint32_t gid;
	int64_t mounted_ns;
};

/* Counts a look-up of `/.ddbfs` itself (name NULL) or of a name in it. 0, -ENOENT, -ENOMEM. */
int view_control_lookup(const struct view_control *v, const char *name, uint64_t *ret_node);
/* Attributes of any control node. 0 or -ESTALE. */
int view_control_stat(const struct view_control *v, const struct node *node, struct stat *ret_stat);
/* The directory's i-th name, its type as in mode, or NULL. */
const char *view_control_name(size_t i, uint32_t *ret_mode);

#endif
