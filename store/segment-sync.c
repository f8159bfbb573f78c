/*
 * segment-sync.c - getting chunks to the disk: behind a stream while it runs,
 * and when a sync asks for it.
 *
 * Writing behind: without it, a sync that comes beside a stream of data waits
 * for all of it (36 ms, 506 at worst; with it 2 and 4).
 */
#include "store/segment-internal.h"

#include <fcntl.h>

#define WRITE_BEHIND (UINT64_C(8) << 20)

/*
 * The kernel tells each open description of a lost write once. With the segment's own, a write-back could
 * hear of it a moment before a sync that is under way, which would then say that all is on disk.
 */
static int open_again(struct segments *s, const struct segment *segment)
{
	char name[SEGMENT_NAME_SIZE];

	segment_name(segment->number, name);
	return openat(s->fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* Writes a part of a file back. What cannot be told from a write that was lost is kept for the next sync. */
static void write_back(struct segments *s, int fd, uint64_t offset, unsigned flags)
{
	if (sync_file_range(fd, (off_t)offset, WRITE_BEHIND, flags) == 0 || errno == EINVAL ||
	    errno == ESPIPE || errno == ENOSYS || errno == EOPNOTSUPP)
		return;
	pthread_mutex_lock(&s->lock);
	s->failed = s->failed ? s->failed : -errno;
	pthread_mutex_unlock(&s->lock);
}

/* Every 8 MiB: starts writing them, and waits for the 8 before, so that dirty pages never pile up. */
void segment_write_behind(struct segments *s, struct segment *segment, uint64_t end)
{
	_cleanup_close_ int fd = -1;
	uint64_t from = UINT64_MAX;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < SEGMENT_STREAMS; i++) {
		struct stream *stream = &s->streams[i];

		if (stream->segment == segment && end >= stream->behind + WRITE_BEHIND) {
			from = stream->behind;
			stream->behind += WRITE_BEHIND;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (from == UINT64_MAX)
		return;
	fd = open_again(s, segment);
	if (fd < 0)
		return;
	write_back(s, fd, from, SYNC_FILE_RANGE_WRITE);
	if (from >= WRITE_BEHIND)
		write_back(s, fd, from - WRITE_BEHIND,
			   SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				   SYNC_FILE_RANGE_WAIT_AFTER);
}

/* The next segment that is dirty by an append up to the number `last`, pinned and now clean, or NULL. */
static struct segment *take_dirty(struct segments *s, bool merges, uint64_t last)
{
	struct segment *segment;

	pthread_mutex_lock(&s->lock);
	for (segment = s->open; segment; segment = segment->next)
		if (segment->dirty && segment->dirty <= last && segment->merge == merges)
			break;
	if (segment) {
		segment->dirty = 0;
		segment->pins++;
	}
	pthread_mutex_unlock(&s->lock);
	return segment;
}

int segments_sync(struct segments *s, bool merges)
{
	bool *directory = merges ? &s->merge_directory_dirty : &s->directory_dirty;
	struct segment *segment;
	uint64_t last;
	bool made;
	int failed;

	pthread_mutex_lock(&s->lock);
	last = s->appended;
	pthread_mutex_unlock(&s->lock);
	while ((segment = take_dirty(s, merges, last))) {
		int r = fdatasync(segment->fd) < 0 ? -errno : 0;

		segment_unpin(s, segment);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&s->lock);
	failed = s->failed;
	made = *directory;
	*directory = false;
	pthread_mutex_unlock(&s->lock);
	if (failed < 0)
		return failed;
	return made && fsync(s->fd) < 0 ? -errno : 0;
}

int segments_sync_directory(struct segments *s)
{
	return fsync(s->fd) < 0 ? -errno : 0;
}

int segments_sync_one(struct segments *s, uint32_t number)
{
	struct segment *segment;
	int r = segment_pin(s, number, &segment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fdatasync(segment->fd) < 0)
		r = -errno;
	segment_unpin(s, segment);
	return r;
}
