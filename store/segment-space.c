/*
 * segment-space.c - giving back: runs are punched, segments that hold nothing
 * any more unlinked.
 */
#include "store/segment-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int remove_file(struct segments *s, struct segment *segment)
{
	char name[SEGMENT_NAME_SIZE];
	int r;

	segment_name(segment->number, name);
	pthread_mutex_lock(&s->lock);
	r = unlinkat(s->fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (r == 0) {
		segment->gone = true;
		segment->dirty = 0;
		s->merge_directory_dirty = true;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* How much of it may hold chunks: also what an append that is under way has not written yet. */
static uint64_t whole_size(struct segments *s, struct segment *segment)
{
	struct stat st;
	uint64_t end;

	pthread_mutex_lock(&s->lock);
	end = segment->end;
	pthread_mutex_unlock(&s->lock);
	return fstat(segment->fd, &st) < 0 ? UINT64_MAX : util_max(end, (uint64_t)st.st_size);
}

/* A segment without blocks holds no chunk, unless one is on its way; no others begin, since it is not active. */
static bool is_empty(struct segments *s, struct segment *segment)
{
	struct stat st;
	bool idle;

	pthread_mutex_lock(&s->lock);
	idle = !segment->appends;
	pthread_mutex_unlock(&s->lock);
	return idle && fstat(segment->fd, &st) == 0 && st.st_blocks == 0;
}

int segments_punch(struct segments *s, uint32_t number, uint64_t offset, uint64_t size)
{
	struct segment *segment;
	int r = segment_pin(s, number, &segment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (segments_active(s, number)) {
		r = -EBUSY;
	} else if (offset == 0 && size >= whole_size(s, segment)) {
		r = remove_file(s, segment);
	} else if (fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			     (off_t)size) < 0) {
		/* A file system that cannot punch gives space back with the last chunk of a segment only, if at all. */
		r = errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	} else if (is_empty(s, segment)) {
		r = remove_file(s, segment);
	}
	segment_unpin(s, segment);
	return r;
}

int segments_size(struct segments *s, uint32_t number, uint64_t *ret_size)
{
	struct segment *segment;
	struct stat st;
	int r = segment_pin(s, number, &segment);

	if (r == -ENOENT)
		*ret_size = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fstat(segment->fd, &st) < 0)
		r = -errno;
	else
		*ret_size = (uint64_t)st.st_size;
	segment_unpin(s, segment);
	return r;
}

/* A file system that knows no holes has data everywhere. */
static int count_data(int fd, uint64_t from, uint64_t to, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	while (from < to) {
		off_t data = lseek(fd, (off_t)from, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		hole = data < 0 ? data : lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		if ((uint64_t)data < to)
			bytes += util_min((uint64_t)hole, to) - (uint64_t)data;
		from = (uint64_t)hole;
	}
	*ret_bytes = bytes;
	return 0;
}

int segments_data(struct segments *s, uint32_t number, uint64_t from, uint64_t to, uint64_t *ret_bytes)
{
	struct segment *segment;
	int r = segment_pin(s, number, &segment);

	if (r == -ENOENT)
		*ret_bytes = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = count_data(segment->fd, from, to, ret_bytes);
	segment_unpin(s, segment);
	return r;
}

int segments_cut(struct segments *s, uint32_t number, uint64_t end)
{
	struct segment *segment;
	int r = segment_pin(s, number, &segment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (ftruncate(segment->fd, (off_t)end) < 0)
		r = -errno;
	else if (end == 0)
		r = remove_file(s, segment);
	segment_unpin(s, segment);
	return r;
}
