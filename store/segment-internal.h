/*
 * segment-internal.h - what the files segment*.c share: segments that are open,
 * streams, and the lock over both.
 *
 *     segment.c          the directory, descriptors, reading
 *     segment-stream.c   streams: where the next chunk goes; appending
 *     segment-sync.c     writing behind, syncing
 *     segment-space.c    giving back
 *
 * One mutex guards streams and descriptors. Chunks are read, written, synced and
 * punched without it, and blocks allocated ahead; files are made, opened, cut and
 * unlinked under it: rare beside chunks, each an order of the file system's
 * journal. A segment that is in use is pinned by its count.
 */
#ifndef STORE_SEGMENT_INTERNAL_H
#define STORE_SEGMENT_INTERNAL_H

#include <pthread.h>

#include "store/segment.h"

#define SEGMENT_NAME_SIZE 16

struct segment {
	struct segment *next; /* all that are open, last used first */
	uint32_t number;
	int fd;
	unsigned pins;
	unsigned appends; /* under way */
	uint64_t end; /* bytes handed out for appending; 0 for one of an earlier life */
	uint64_t dirty; /* number of the first append that no sync began after, 0 = none */
	bool active;
	bool merge; /* of the checkpoint's stream */
	bool gone; /* unlinked */
};

struct stream {
	bool used;
	uint64_t id;
	uint64_t last_use;
	struct segment *segment; /* pinned; NULL until the first chunk */
	uint64_t at;
	uint64_t allocated; /* bytes from the start that have a place on disk */
	uint64_t behind; /* bytes given to the disk */
};

struct segments {
	int fd; /* the directory */
	bool read_only;
	pthread_mutex_t lock; /* of all below */
	struct segment *open;
	unsigned open_count;
	struct stream streams[SEGMENT_STREAMS];
	uint64_t uses;
	uint64_t appended; /* counted: appends that are done */
	uint32_t next;
	/* Segments were made: for transactions, for merges. Apart, since each is synced by somebody else. */
	bool directory_dirty;
	bool merge_directory_dirty;
	int failed; /* negative errno of a write-back */
};

void segment_name(uint32_t number, char ret_name[SEGMENT_NAME_SIZE]);

/* ---- segment.c: descriptors -------------------------------------------- */

/* A pinned segment that exists. 0, -ENOENT, other errno. */
int segment_pin(struct segments *s, uint32_t number, struct segment **ret_segment);
void segment_unpin(struct segments *s, struct segment *segment);
/* Under the lock: the segment if it is open, or NULL. */
struct segment *segment_find(struct segments *s, uint32_t number);
/* Under the lock: an open segment with this descriptor. NULL: no memory. */
struct segment *segment_remember(struct segments *s, uint32_t number, int fd);
/* Under the lock: closes one that is not pinned. */
void segment_forget(struct segments *s, struct segment *segment);

/* ---- segment-sync.c ------------------------------------------------------ */

/* Called after an append that ended at `end` of the segment: keeps dirty pages from piling up. */
void segment_write_behind(struct segments *s, struct segment *segment, uint64_t end);

#endif
