/*
 * engine-local-window.h - what a number of neighbouring chunks is made of: from
 * both generations and the index, at one moment.
 */
#ifndef STORE_ENGINE_LOCAL_WINDOW_H
#define STORE_ENGINE_LOCAL_WINDOW_H

#include "store/engine-local.h"

#define LOCAL_WINDOW 32 /* chunks looked up at once */

/* What one chunk is made of: a base, and pieces above it. */
struct view {
	bool below; /* the base is what the index says */
	struct body_ref ref; /* the base; length 0: zeros */
	uint32_t limit; /* bytes of the base that count */
	uint8_t kept; /* units of the base that are not zeroed */
	uint8_t added; /* units with data above it */
	size_t pieces; /* index of its first in window.pieces */
	size_t pieces_count;
};

struct piece {
	uint32_t offset; /* in the chunk */
	uint32_t size;
	bool zeros;
	size_t bytes_at; /* in window.bytes */
};

struct window {
	struct engine_local *e;
	uint64_t body;
	uint64_t first; /* number of the first chunk */
	size_t count;
	struct view views[LOCAL_WINDOW];
	struct buffer pieces; /* struct piece */
	size_t pieces_count;
	struct buffer bytes; /* of the pieces; not filled where only places are wanted */
	bool places_only;
	bool ahead; /* reading goes on behind the window */
	struct index_reader *reader;
};

/*
 * Fills the views of the `count` chunks from `first` on, in one section of
 * `maps` and then from the index. 0 or negative errno. Again, for a newer look.
 */
int local_window_look(struct window *w);
void local_window_release(struct window *w);

#endif
