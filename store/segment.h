/*
 * segment.h - the files that hold chunks: ciphertext at 4 KiB-aligned places,
 * written once, read by reference, given back by punching holes or unlinking.
 *
 * Chunks go to streams, each with a segment of its own that it appends to: one
 * for small bodies, one for each large body that is being written (so that
 * destroying it is an unlink and two long writes do not interleave), one for
 * the checkpoint's merges. A segment is appended to in the life of one process
 * only; after that it just loses chunks. Numbers of segments are never reused.
 *
 * All functions are safe for threads. Locks nothing of the engine's.
 */
#ifndef STORE_SEGMENT_H
#define STORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/body.h"
#include "store/util.h"

#define SEGMENT_SIZE (UINT32_C(256) << 20) /* a stream turns to a new segment from there on */
#define SEGMENT_DIRECTORY "segments"
#define SEGMENT_OWN_FROM (UINT64_C(4) << 20) /* bytes of a body beyond this go to its own stream */

/* Streams that belong to no body. Bodies' ids begin above. */
#define SEGMENT_STREAM_SHARED UINT64_C(0)
#define SEGMENT_STREAM_MERGE UINT64_C(1)

struct segments;

int segments_create(int dir_fd);
/* `next` is the lowest number that may be given to a new segment; higher ones that exist raise it. */
int segments_open(int dir_fd, bool read_only, uint32_t next, struct segments **ret_segments);
void segments_close(struct segments *s); /* takes NULL */

/*
 * Writes `size` bytes (whole chunks, each at its place, the last may be short)
 * at a new place of `stream`. 0, -ENOSPC, other errno; after an error nothing is
 * left. Not synced.
 */
int segments_append(struct segments *s, uint64_t stream, const uint8_t *bytes, size_t size,
		    uint32_t *ret_segment, uint32_t *ret_offset);
/*
 * Makes sure that `bytes` more fit into `stream` whatever happens to the disk,
 * in a new segment if the present one is long enough. 0, -ENOSPC, other errno.
 */
int segments_reserve(struct segments *s, uint64_t stream, uint64_t bytes);

/*
 * Takes back all that `stream` appended from `offset` of `segment` on, if it still
 * appends there: nothing may refer to it, and nobody else append to the stream.
 */
bool segments_rewind(struct segments *s, uint64_t stream, uint32_t segment, uint32_t offset);

/* `size` bytes at a place. 0, -ENOENT (no such segment), -ENODATA (it is shorter), other errno. */
int segments_read(struct segments *s, uint32_t segment, uint32_t offset, void *buffer, size_t size);
/* Tells the kernel that they will be read soon. */
void segments_advise(struct segments *s, uint32_t segment, uint32_t offset, size_t size);

/*
 * Syncs what was appended before the call, and the directory if segments were
 * made: the transactions', or the `merges`. 0 or negative errno: stop writing for
 * good, since a write that was lost is told of once; also by a write-back before. One caller at a time for each of the two: who finds a segment clean that
 * another is still syncing would say too early that it is on disk.
 */
int segments_sync(struct segments *s, bool merges);
/* The same for one segment of an earlier life. One that is not there has nothing to sync. */
int segments_sync_one(struct segments *s, uint32_t segment);
/* That segments of an earlier life are there. */
int segments_sync_directory(struct segments *s);

/* Whether a stream appends to it. */
bool segments_active(struct segments *s, uint32_t segment);
/* The stream that appends to it goes to a new one with its next chunk. */
void segments_retire(struct segments *s, uint32_t segment);
/* The stream goes to a new one now, in which `bytes` fit whatever happens. 0, or a negative errno and it stays. */
int segments_renew(struct segments *s, uint64_t stream, uint64_t bytes);
void segments_retire_all(struct segments *s);
/*
 * Gives a run back to the disk; the segment, when nothing else is or will be in
 * it. 0, -EBUSY (active), other errno: it stays. Repeating is harmless.
 */
int segments_punch(struct segments *s, uint32_t segment, uint64_t offset, uint64_t size);
/* How long a segment is; 0 if it is not there. */
int segments_size(struct segments *s, uint32_t segment, uint64_t *ret_size);
/* How many bytes of [from, to) of a segment have a place on the disk. 0 or negative errno. */
int segments_data(struct segments *s, uint32_t segment, uint64_t from, uint64_t to, uint64_t *ret_bytes);
/* All from `end` on is given back. Of segments that are not active. */
int segments_cut(struct segments *s, uint32_t segment, uint64_t end);

/* Active segments and how far they are written; what follows them after a crash is nobody's. */
struct segment_end {
	uint32_t segment;
	uint32_t end;
	bool merge; /* of the checkpoint's stream */
};
#define SEGMENT_STREAMS 16
/* Returns how many. */
size_t segments_ends(struct segments *s, struct segment_end ret_ends[SEGMENT_STREAMS]);
uint32_t segments_next(struct segments *s);
/* The numbers of all files, ascending, at or above `from`. 0 or negative errno; the caller frees. */
int segments_list(struct segments *s, uint32_t from, uint32_t **ret_numbers, size_t *ret_count);

#endif
