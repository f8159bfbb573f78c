/*
 * node-record.h - one node as the table keeps it. Private to node.c.
 *
 * A record is kept small (about 100 bytes and the name), because a tree walk
 * leaves one for every file in the kernel's caches. Only files with several
 * names keep more than one place: all that the kernel has asked for, so that a
 * name that is destroyed does not take the open file with it. A live one comes
 * first.
 */
#ifndef FS_NODE_RECORD_H
#define FS_NODE_RECORD_H

#include "fs/node.h"

struct spot { /* a struct place without its 256 bytes */
	uint64_t directory;
	uint64_t seq;
	char *name; /* NULL: none */
	enum key_state state;
};

struct record {
	uint64_t node;
	uint64_t id;
	uint64_t view;
	uint64_t lookups;
	union {
		/* Files: of the look-ups, those from before it was first seen in a view; 0 = not seen there. */
		uint64_t before;
		/* Directories of the live tree: value of table.moves when it was found live, plus 1. */
		uint64_t live_moves;
		/* Directories of a view: the node in which the kernel has its name. */
		uint64_t parent;
	};
	struct spot at;
	union {
		struct spot *others; /* NODE_ITEM */
		char *text; /* NODE_CONTROL_STATS */
	};
	struct record *next_node;
	struct record *next_item;
	uint32_t count; /* of others, or bytes of text */
	uint8_t kind;
	bool directory;
	bool detached;
	bool aside; /* another node takes its part: of the same directory and view, or of a spoilt file */
	bool writable;
	bool in_doubt; /* not writable, but it may be open */
	bool release; /* node_forget reports it */
};

/* -ENOMEM leaves the place as it was. */
int spot_set(struct spot *s, const struct place *at);
void spot_get(const struct spot *s, struct place *ret_place);

void record_free(struct record *r);
/* A file was seen live: it may be written wherever it goes. */
void record_seen_live(struct record *r);
/* The record of an item that is looked up again. 0 or -ENOMEM. */
int record_enter(struct record *r, const struct node_entry *entry);
/* Its item moved, or was destroyed. */
void record_follow(struct record *r, const struct lifecycle_change *change);
/* Whether a file's only known place is this one. */
bool record_is_only_at(const struct record *r, const struct place *at);

#endif
