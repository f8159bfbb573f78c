/*
 * node.h - the node table: what the kernel knows of this file system, by the
 * ids it calls things by. Knows no FUSE.
 *
 * A node id is given once and never again. Three kinds of number must not be
 * mixed up: the ITEM's id (its st_ino, the store's), the NODE id (the kernel's
 * handle on it, ours alone), and the VIEW of a directory node (0 for the live
 * tree, else the directory whose `.trash` the path went through).
 *
 * - A file, of whatever type but a directory, has one node for its item, live
 *   or deleted: two would be two page caches.
 * - A directory has one node in the live tree and one in each view, since the
 *   kernel allows a directory one name. Found in a view below another node than
 *   before, it gets one for there as well: the kernel would have to move the name
 *   it has, and answers ESTALE instead while anybody renames.
 * - A directory that the kernel saw removed or replaced is detached: its node
 *   answers ENOENT until it is forgotten, and its item, restored, gets a new one.
 *
 * Nodes know where their item is; lifecycle's hook (node_changed) moves them
 * along after each commit. `node_stamp` tells whether something of a directory
 * changed between a read of the store and the use of what was read.
 *
 * All functions may be called from any thread and never block but on the
 * table's own mutex. No pointer to a node leaves the table.
 */
#ifndef FS_NODE_H
#define FS_NODE_H

#include "lifecycle/lifecycle.h"

struct node_table;

#define NODE_ROOT UINT64_C(1)

enum node_kind {
	NODE_ITEM, /* a file, or a directory as the live tree shows it */
	NODE_VIEW, /* a directory in a view, its root (`.trash`) included */
	NODE_CONTROL_DIRECTORY, /* /.ddbfs */
	NODE_CONTROL_FILE, /* /.ddbfs/control */
	NODE_CONTROL_STATS, /* /.ddbfs/stats, as it read when it was looked up */
	NODE_CONTROL_TAG, /* CACHEDIR.TAG in any .trash */
};

/* A copy of what the table knows of one node. */
struct node {
	uint64_t node;
	uint64_t id; /* of the item; 0 for control nodes */
	uint64_t view; /* NODE_VIEW: the directory whose trash is the root */
	enum node_kind kind;
	bool directory;
	bool detached;
	bool lost; /* the item was destroyed, or its place is not known */
	bool writable; /* the kernel had it when it was live: may still be written, wherever it is now */
	bool live; /* directories: found below the root since the last move of any directory (node_set_live) */
	struct place at;
};

int node_table_new(struct node_table **ret_table);
void node_table_free(struct node_table *t); /* takes NULL */

/* 0, or -ESTALE for an id that was not given out or was forgotten. */
int node_get(struct node_table *t, uint64_t node, struct node *ret_node);

/* Changes of names in `directory` so far (directories may share a counter). */
uint64_t node_stamp(struct node_table *t, uint64_t directory);

struct node_entry {
	uint64_t id;
	uint64_t view; /* directories: the node's view */
	uint64_t parent; /* directories of a view: the node it was found in */
	bool directory;
	bool live; /* files: seen in the live tree */
	bool reference; /* the item has several names: remember them all */
	const struct place *at;
	uint64_t stamp; /* of at->directory, taken before the item was read */
};
/*
 * The node of an item the kernel is about to be told of: counts one look-up.
 * 0; -EAGAIN: names in the directory changed since the stamp, read again; -ENOMEM.
 */
int node_enter(struct node_table *t, const struct node_entry *entry, uint64_t *ret_node);
/* A control node; `text` (malloc'd, of a NODE_CONTROL_STATS) becomes the table's, each look-up a new node. */
int node_enter_control(struct node_table *t, enum node_kind kind, char *text, size_t size,
		       uint64_t *ret_node);
/* Copies from a NODE_CONTROL_STATS' text; -ESTALE. `ret_size` is the whole text's. */
int node_text(struct node_table *t, uint64_t node, uint64_t offset, void *buffer, size_t size,
	      size_t *ret_copied, size_t *ret_size);

/* The kernel forgets `count` look-ups. True: the item was removed as temporary or purged, and nobody holds it now: *ret_node tells lifecycle which. */
bool node_forget(struct node_table *t, uint64_t node, uint64_t count, struct node *ret_node);
/* The answer of one node_enter did not reach the kernel. Returns as node_forget; unlike that, it says nothing of what the kernel still has. */
bool node_take_back(struct node_table *t, uint64_t node, struct node *ret_node);

/*
 * The directory was removed or replaced, as far as the kernel saw, where it had it: in the live
 * tree (0) or a view, and there in the node `parent`. Later look-ups get a fresh one.
 */
void node_detach(struct node_table *t, uint64_t id, uint64_t view, uint64_t parent);
/* Where the kernel has a directory's name. */
struct node_spot {
	uint64_t view; /* 0: in the live tree, where `parent` does not matter */
	uint64_t parent; /* the node */
};
/* The kernel moved a directory's node from the live tree or a view into another of these. */
void node_move(struct node_table *t, uint64_t id, const struct node_spot *from,
	       const struct node_spot *to);
/* The file was seen live (again): it may be written wherever it goes. */
void node_set_writable(struct node_table *t, uint64_t node);
/* The kernel's copy of this file is spoilt: later look-ups get a fresh node. */
void node_set_aside(struct node_table *t, uint64_t node);
/* The item was purged while it may be open: node_forget is to tell. */
void node_set_purged(struct node_table *t, uint64_t id);

/* Moves of directories, with what is in them, between states so far: what makes node.live out of date. */
uint64_t node_moves(struct node_table *t);
/* The directory was found to stand below the root, by guards read after `moves` was taken. */
void node_set_live(struct node_table *t, uint64_t node, uint64_t moves);
/* Whether that was found of the directory `id`, and no directory has moved since. */
bool node_is_live(struct node_table *t, uint64_t id);

/* The node id under which the kernel knows an item in a view (0: the live tree), or 0. Counts nothing. */
uint64_t node_find(struct node_table *t, uint64_t id, uint64_t view);
/* struct file_locator's `locate`; `table` is the struct node_table. */
bool node_locate(void *table, uint64_t id, struct place *ret_place);

/* Whether the kernel knows a file by a name other than the one at `at`. */
bool node_has_other(struct node_table *t, uint64_t id, const struct place *at);

/* Lifecycle's hooks; `table` is the struct node_table. */
void node_changed(void *table, const struct lifecycle_change *change);
bool node_busy(void *table, uint64_t id, const struct place *only);

struct node_counts {
	uint64_t nodes; /* known now, the root included */
	uint64_t lookups; /* counted and not yet forgotten, the root's excepted */
};
void node_count(struct node_table *t, struct node_counts *ret_counts);

#endif
