/*
 * segment-stream.c - where the next chunk goes: each stream appends to a segment
 * of its own, in blocks that were allocated ahead.
 */
#include "store/segment-internal.h"

#include <fcntl.h>
#include <stdio.h>

#define AHEAD_FIRST (UINT64_C(1) << 20)
#define AHEAD_STEP (UINT64_C(16) << 20)

/* ---- streams; all under the lock --------------------------------------- */

/*
 * What was allocated ahead goes back. The last chunk may be short, and growing a
 * file to where that chunk's run ends gives nothing back: only the second of the
 * two then cuts.
 */
static void cut_ahead(int fd, uint64_t end)
{
	if (ftruncate(fd, (off_t)end) == 0)
		(void)!ftruncate(fd, (off_t)end);
}

static void stream_end(struct segments *s, struct stream *stream)
{
	struct segment *segment = stream->segment;

	stream->segment = NULL;
	if (!segment)
		return;
	if (stream->allocated > stream->at)
		cut_ahead(segment->fd, stream->at);
	segment->active = false;
	segment->pins--;
}

static struct stream *stream_get(struct segments *s, uint64_t id)
{
	struct stream *oldest = NULL;

	for (unsigned i = 0; i < SEGMENT_STREAMS; i++) {
		struct stream *stream = &s->streams[i];

		if (stream->used && stream->id == id) {
			stream->last_use = ++s->uses;
			return stream;
		}
		if (stream->used && stream->id <= SEGMENT_STREAM_MERGE)
			continue;
		if (!oldest || !stream->used || (oldest->used && stream->last_use < oldest->last_use))
			oldest = stream;
	}
	stream_end(s, oldest);
	*oldest = (struct stream){ .used = true, .id = id, .last_use = ++s->uses };
	return oldest;
}

static int stream_begin(struct segments *s, struct stream *stream)
{
	char name[SEGMENT_NAME_SIZE];
	struct segment *segment;
	uint32_t number;
	int fd;

	/* One that is there, by somebody else's doing or after a lack of memory, is passed over. */
	do {
		number = s->next;
		if (number == UINT32_MAX)
			return -ENOSPC;
		segment_name(number, name);
		fd = openat(s->fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			return -errno;
		s->next++;
	} while (fd < 0);
	segment = segment_remember(s, number, fd);
	if (!segment) {
		close(fd);
		return -ENOMEM;
	}
	segment->active = true;
	segment->merge = stream->id == SEGMENT_STREAM_MERGE;
	*(segment->merge ? &s->merge_directory_dirty : &s->directory_dirty) = true;
	segment->pins = 1;
	stream->segment = segment;
	stream->at = stream->allocated = stream->behind = 0;
	return 0;
}

/* Whether the stream turns to a new segment for `size` more. The merges do when room is promised to them, never within a promise. */
static bool is_full(const struct stream *stream, uint64_t size, bool promise)
{
	if (stream->id == SEGMENT_STREAM_MERGE)
		return promise && stream->at >= SEGMENT_SIZE;
	return stream->at + size > SEGMENT_SIZE;
}

/*
 * Where blocks are to reach, for `end` to have them: in steps, since each is an
 * order to the file system that may wait for its journal. What is promised to
 * the merges may lie beyond a segment's size, in steps all the same.
 */
static uint64_t allocate_to(const struct stream *stream, uint64_t end)
{
	uint64_t step = stream->allocated ? AHEAD_STEP : AHEAD_FIRST;
	uint64_t to = util_max(stream->allocated + step, end);

	return end > SEGMENT_SIZE ? to : util_min(to, (uint64_t)SEGMENT_SIZE);
}

/* Blocks for [from, to), or none: a disk that fills up meanwhile may have given some. */
static int allocate_all(int fd, uint64_t from, uint64_t to)
{
	int r = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) < 0 ? -errno : 0;

	/* Where nothing can be allocated ahead, writing will tell. */
	if (r == 0 || r == -EOPNOTSUPP || r == -ENOSYS)
		return 0;
	(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
	return r;
}

/* Blocks for [from, `wanted`), or where the disk cannot give these for [from, `end`): *ret_to tells. */
static int allocate(int fd, uint64_t from, uint64_t wanted, uint64_t end, uint64_t *ret_to)
{
	int r = allocate_all(fd, from, wanted);

	if (r == 0)
		end = wanted;
	else if (wanted > end)
		r = allocate_all(fd, from, end);
	if (r < 0)
		return r;
	*ret_to = end;
	return 0;
}

/* Allocates for the first `end` bytes of the stream's segment. The lock is let go meanwhile: look again. */
static int stream_allocate(struct segments *s, struct stream *stream, uint64_t end)
{
	struct segment *segment = stream->segment;
	uint64_t from = stream->allocated, wanted = allocate_to(stream, end), to;
	int r;

	segment->pins++;
	pthread_mutex_unlock(&s->lock);
	r = allocate(segment->fd, from, wanted, end, &to);
	pthread_mutex_lock(&s->lock);
	segment->pins--;
	/* A stream that has turned to another segment takes back what it had ahead in the old one; so this too. */
	if (r == 0 && stream->segment == segment)
		stream->allocated = util_max(stream->allocated, to);
	else if (r == 0 && !segment->gone)
		cut_ahead(segment->fd, segment->end);
	if (!segment->pins && segment->gone)
		segment_forget(s, segment);
	return r;
}

/* The stream `id`, in whose segment there is room for `size` bytes more, in blocks of its own. */
static int stream_room(struct segments *s, uint64_t id, uint64_t size, bool promise,
		       struct stream **ret_stream)
{
	struct stream *stream;
	int r = 0;

	do {
		stream = stream_get(s, id);
		if (stream->segment && is_full(stream, size, promise))
			stream_end(s, stream);
		if (!stream->segment)
			r = stream_begin(s, stream);
		if (r == 0 && stream->at + size <= stream->allocated) {
			*ret_stream = stream;
			return 0;
		}
		if (r == 0)
			r = stream_allocate(s, stream, stream->at + size);
	} while (r == 0);
	return r;
}

/* ---- appending ---------------------------------------------------------- */

/* Under the lock: a place for `size` bytes; the segment comes pinned. */
static int append_begin(struct segments *s, uint64_t id, uint64_t size,
			struct segment **ret_segment, uint64_t *ret_offset)
{
	struct stream *stream;
	int r = stream_room(s, id, size, false, &stream);

	if (r < 0)
		return r;
	*ret_segment = stream->segment;
	*ret_offset = stream->at;
	stream->at += size;
	stream->segment->end = stream->at;
	stream->segment->appends++;
	stream->segment->pins++;
	return 0;
}

/* Only now it is dirty: a sync that began while it was being written may have missed it. */
static void append_end(struct segments *s, struct segment *segment)
{
	pthread_mutex_lock(&s->lock);
	segment->appends--;
	s->appended++;
	if (!segment->dirty)
		segment->dirty = s->appended;
	pthread_mutex_unlock(&s->lock);
}

int segments_append(struct segments *s, uint64_t id, const uint8_t *bytes, size_t size,
		    uint32_t *ret_segment, uint32_t *ret_offset)
{
	uint64_t run = (size + BODY_ALIGN - 1) / BODY_ALIGN * BODY_ALIGN;
	struct segment *segment;
	uint64_t offset;
	int r;

	pthread_mutex_lock(&s->lock);
	r = append_begin(s, id, run, &segment, &offset);
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	r = util_write_all(segment->fd, bytes, size, offset);
	if (r == 0)
		segment_write_behind(s, segment, offset + run);
	if (r == 0) {
		*ret_segment = segment->number;
		*ret_offset = (uint32_t)offset;
	}
	append_end(s, segment);
	segment_unpin(s, segment);
	return r;
}

int segments_reserve(struct segments *s, uint64_t id, uint64_t bytes)
{
	struct stream *stream;
	int r;

	pthread_mutex_lock(&s->lock);
	r = stream_room(s, id, bytes, true, &stream);
	pthread_mutex_unlock(&s->lock);
	return r;
}

bool segments_rewind(struct segments *s, uint64_t id, uint32_t number, uint32_t offset)
{
	struct stream *stream;
	bool same;

	pthread_mutex_lock(&s->lock);
	stream = stream_get(s, id);
	same = stream->segment && stream->segment->number == number && offset <= stream->at;
	if (same) {
		stream->at = stream->segment->end = offset;
		stream->behind = util_min(stream->behind, stream->at);
	}
	pthread_mutex_unlock(&s->lock);
	return same;
}

bool segments_active(struct segments *s, uint32_t number)
{
	struct segment *segment;
	bool active;

	pthread_mutex_lock(&s->lock);
	segment = segment_find(s, number);
	active = segment && segment->active;
	pthread_mutex_unlock(&s->lock);
	return active;
}

void segments_retire(struct segments *s, uint32_t number)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < SEGMENT_STREAMS; i++)
		if (s->streams[i].segment && s->streams[i].segment->number == number)
			stream_end(s, &s->streams[i]);
	pthread_mutex_unlock(&s->lock);
}

int segments_renew(struct segments *s, uint64_t id, uint64_t bytes)
{
	struct stream *stream, old, failed;
	char name[SEGMENT_NAME_SIZE];
	int r;

	pthread_mutex_lock(&s->lock);
	stream = stream_get(s, id);
	old = *stream;
	stream->segment = NULL;
	r = stream_begin(s, stream);
	/* Under the lock, so that nobody appends to what may be given up again. */
	if (r == 0)
		r = allocate(stream->segment->fd, 0, bytes, bytes, &stream->allocated);
	failed = *stream;
	if (r < 0) {
		*stream = old;
		old = failed;
	}
	if (r < 0 && failed.segment) {
		segment_name(failed.segment->number, name);
		failed.segment->gone = unlinkat(s->fd, name, 0) == 0;
	}
	stream_end(s, &old);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void segments_retire_all(struct segments *s)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < SEGMENT_STREAMS; i++)
		stream_end(s, &s->streams[i]);
	pthread_mutex_unlock(&s->lock);
}

size_t segments_ends(struct segments *s, struct segment_end ret_ends[SEGMENT_STREAMS])
{
	size_t count = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < SEGMENT_STREAMS; i++)
		if (s->streams[i].segment)
			ret_ends[count++] = (struct segment_end){
				.segment = s->streams[i].segment->number,
				.end = (uint32_t)s->streams[i].at,
				.merge = s->streams[i].id == SEGMENT_STREAM_MERGE,
			};
	pthread_mutex_unlock(&s->lock);
	return count;
}

uint32_t segments_next(struct segments *s)
{
	uint32_t next;

	pthread_mutex_lock(&s->lock);
	next = s->next;
	pthread_mutex_unlock(&s->lock);
	return next;
}
