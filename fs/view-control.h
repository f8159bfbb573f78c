/*
 * view-control.h - what stands for no item. Knows no FUSE.
 *
 * `/.ddbfs`, the directory that no listing names, with `stats` to read and
 * `control` to ask; and in each `.trash` the file CACHEDIR.TAG, by which backup
 * programs know a directory to leave out (https://bford.info/cachedir/). That is
 * found by look-up only, as they do it: listed, it would be in the way of
 * whoever looks for what he deleted. A deleted file of that name goes before it.
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
/* Whether `name` in the directory `parent` is the tag's, if nothing deleted bears it. */
bool view_control_is_tag(const struct node *parent, const char *name);
int view_control_enter_tag(const struct view_control *v, uint64_t *ret_node);
/* Its bytes from `offset` on: how many there are, at the most `size`. */
size_t view_control_read_tag(uint64_t offset, size_t size, const char **ret_bytes);
/* Attributes of any control node. 0 or -ESTALE. */
int view_control_stat(const struct view_control *v, const struct node *node, struct stat *ret_stat);
/* The directory's i-th name, its type as in mode, or NULL. */
const char *view_control_name(size_t i, uint32_t *ret_mode);

#endif
