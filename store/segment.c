/*
 * segment.c - streams, descriptors, reading, writing, giving back.
 *
 * One mutex guards streams and descriptors. Chunks are read, written, synced and
 * punched without it; files are made, opened, allocated ahead, cut and unlinked
 * under it: rare beside chunks, each an order of the file system's journal. A
 * segment that is in use is pinned by its count.
 *
 * Writing behind: without it, a sync that comes beside a stream of data waits
 * for all of it (36 ms, 506 at worst; with it 2 and 4).
 */
#include "store/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#define OPEN_MAX_IDLE 64 /* descriptors kept for reading */
#define AHEAD_STEP (UINT64_C(16) << 20)
#define WRITE_BEHIND (UINT64_C(8) << 20)
#define NAME_SIZE 16

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
	int failed; /* negative errno of a write-back: the descriptor tells of it once, and then a sync does not */
};

static void segment_name(uint32_t number, char ret_name[NAME_SIZE])
{
	snprintf(ret_name, NAME_SIZE, "%08x", number);
}

static bool parse_name(const char *name, uint32_t *ret_number)
{
	char *end;

	if (strlen(name) != 8 || strspn(name, "0123456789abcdef") != 8)
		return false;
	*ret_number = (uint32_t)strtoul(name, &end, 16);
	return *ret_number != 0 && *ret_number != UINT32_MAX;
}

/* ---- opening ----------------------------------------------------------- */

int segments_create(int dir_fd)
{
	return mkdirat(dir_fd, SEGMENT_DIRECTORY, 0700) < 0 ? -errno : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int segments_list(struct segments *s, uint32_t from, uint32_t **ret_numbers, size_t *ret_count)
{
	struct buffer b = { 0 };
	struct dirent *entry;
	uint32_t number;
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		int r = -errno;

		util_close_p(&fd);
		return r;
	}
	while ((entry = readdir(dir)))
		if (parse_name(entry->d_name, &number) && number >= from)
			buffer_append(&b, &number, sizeof(number));
	closedir(dir);
	if (b.failed) {
		buffer_release(&b);
		return -ENOMEM;
	}
	if (b.size)
		qsort(b.bytes, b.size / sizeof(number), sizeof(number), compare_numbers);
	*ret_numbers = (uint32_t *)b.bytes;
	*ret_count = b.size / sizeof(number);
	return 0;
}

int segments_open(int dir_fd, bool read_only, uint32_t next, struct segments **ret_segments)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	size_t count;
	struct segments *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->fd = openat(dir_fd, SEGMENT_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->fd < 0) {
		r = errno == ENOENT || errno == ENOTDIR ? -EBADMSG : -errno;
		free(s);
		return r;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->read_only = read_only;
	s->next = util_max(next, UINT32_C(1));
	r = segments_list(s, s->next, &numbers, &count);
	if (r < 0) {
		segments_close(s);
		return r;
	}
	if (count)
		s->next = numbers[count - 1] + 1;
	*ret_segments = s;
	return 0;
}

void segments_close(struct segments *s)
{
	if (!s)
		return;
	while (s->open) {
		struct segment *next = s->open->next;

		close(s->open->fd);
		free(s->open);
		s->open = next;
	}
	close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- descriptors; all under the lock ----------------------------------- */

static void forget(struct segments *s, struct segment *segment)
{
	struct segment **link = &s->open;

	while (*link != segment)
		link = &(*link)->next;
	*link = segment->next;
	s->open_count--;
	close(segment->fd);
	free(segment);
}

/* Closes the one that was not used for the longest time. */
static void make_room(struct segments *s)
{
	struct segment *oldest = NULL;

	if (s->open_count < OPEN_MAX_IDLE)
		return;
	for (struct segment *i = s->open; i; i = i->next)
		if (!i->pins && !i->dirty)
			oldest = i;
	if (oldest)
		forget(s, oldest);
}

static struct segment *remember(struct segments *s, uint32_t number, int fd)
{
	struct segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		return NULL;
	make_room(s);
	segment->number = number;
	segment->fd = fd;
	segment->next = s->open;
	s->open = segment;
	s->open_count++;
	return segment;
}

static struct segment *find_open(struct segments *s, uint32_t number)
{
	for (struct segment **link = &s->open; *link; link = &(*link)->next) {
		struct segment *segment = *link;

		if (segment->number != number)
			continue;
		*link = segment->next;
		segment->next = s->open;
		s->open = segment;
		return segment;
	}
	return NULL;
}

static void unpin(struct segments *s, struct segment *segment)
{
	pthread_mutex_lock(&s->lock);
	if (--segment->pins == 0 && segment->gone)
		forget(s, segment);
	pthread_mutex_unlock(&s->lock);
}

/* A symlink or FIFO in the place of a segment is none: it is neither followed nor waited for. */
static int open_file(struct segments *s, const char *name)
{
	int fd = openat(s->fd, name,
			(s->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -ENOENT : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -ENOENT;
}

/* A pinned segment that exists. */
static int pin(struct segments *s, uint32_t number, struct segment **ret_segment)
{
	char name[NAME_SIZE];
	struct segment *segment;
	int fd, r = 0;

	segment_name(number, name);
	pthread_mutex_lock(&s->lock);
	segment = find_open(s, number);
	if (!segment) {
		fd = open_file(s, name);
		if (fd < 0)
			r = fd;
		else if (!(segment = remember(s, number, fd))) {
			close(fd);
			r = -ENOMEM;
		}
	}
	if (segment && segment->gone)
		r = -ENOENT;
	else if (segment)
		segment->pins++;
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	*ret_segment = segment;
	return 0;
}

/* ---- streams; all under the lock --------------------------------------- */

static void stream_end(struct segments *s, struct stream *stream)
{
	struct segment *segment = stream->segment;

	stream->segment = NULL;
	if (!segment)
		return;
	/* What was allocated ahead goes back. */
	if (stream->allocated > stream->at)
		(void)!ftruncate(segment->fd, (off_t)stream->at);
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
	char name[NAME_SIZE];
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
	segment = remember(s, number, fd);
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

/* Allocation is asked for in steps; where the disk cannot give a step, for what is needed. */
static int stream_allocate(struct segments *s, struct stream *stream, uint64_t end)
{
	uint64_t step = stream->allocated ? AHEAD_STEP : UINT64_C(1) << 20;
	uint64_t ahead = util_min(stream->allocated + step, (uint64_t)SEGMENT_SIZE);
	uint64_t to = util_max(end, ahead);
	int fd = stream->segment->fd;

	if (end <= stream->allocated)
		return 0;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)stream->allocated,
		      (off_t)(to - stream->allocated)) < 0) {
		to = end;
		if (errno == EOPNOTSUPP || errno == ENOSYS)
			return 0; /* writing will tell */
		if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)stream->allocated,
			      (off_t)(to - stream->allocated)) < 0)
			return -errno;
	}
	stream->allocated = to;
	return 0;
}

/* A place for `size` bytes; the segment comes pinned. */
static int stream_take(struct segments *s, uint64_t id, uint64_t size, struct segment **ret_segment,
		       uint64_t *ret_offset)
{
	struct stream *stream = stream_get(s, id);
	int r = 0;

	if (stream->segment && stream->at + size > SEGMENT_SIZE && id != SEGMENT_STREAM_MERGE)
		stream_end(s, stream);
	if (!stream->segment)
		r = stream_begin(s, stream);
	if (r == 0)
		r = stream_allocate(s, stream, stream->at + size);
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

/* ---- writing ----------------------------------------------------------- */

static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t n = pwrite(fd, bytes, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
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
static void write_behind(struct segments *s, struct segment *segment, uint64_t end)
{
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
	write_back(s, segment->fd, from, SYNC_FILE_RANGE_WRITE);
	if (from >= WRITE_BEHIND)
		write_back(s, segment->fd, from - WRITE_BEHIND,
			   SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				   SYNC_FILE_RANGE_WAIT_AFTER);
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

int segments_append(struct segments *s, uint64_t stream, const uint8_t *bytes, size_t size,
		    uint32_t *ret_segment, uint32_t *ret_offset)
{
	uint64_t run = (size + BODY_ALIGN - 1) / BODY_ALIGN * BODY_ALIGN;
	struct segment *segment;
	uint64_t offset;
	int r;

	pthread_mutex_lock(&s->lock);
	r = stream_take(s, stream, run, &segment, &offset);
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		return r;
	r = write_all(segment->fd, bytes, size, offset);
	if (r == 0)
		write_behind(s, segment, offset + run);
	*ret_segment = segment->number;
	*ret_offset = (uint32_t)offset;
	append_end(s, segment);
	unpin(s, segment);
	return r;
}

int segments_reserve(struct segments *s, uint64_t id, uint64_t bytes)
{
	struct stream *stream;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	stream = stream_get(s, id);
	if (stream->segment && stream->at >= SEGMENT_SIZE)
		stream_end(s, stream);
	if (!stream->segment)
		r = stream_begin(s, stream);
	if (r == 0)
		r = stream_allocate(s, stream, stream->at + bytes);
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

		unpin(s, segment);
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
	int r = pin(s, number, &segment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fdatasync(segment->fd) < 0)
		r = -errno;
	unpin(s, segment);
	return r;
}

/* ---- reading ----------------------------------------------------------- */

int segments_read(struct segments *s, uint32_t number, uint32_t offset, void *buffer, size_t size)
{
	struct segment *segment;
	uint8_t *to = buffer;
	int r = pin(s, number, &segment);

	if (r < 0)
		return r;
	while (size && r == 0) {
		ssize_t n = pread(segment->fd, to, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -ENODATA;
			break;
		}
		to += n;
		size -= (size_t)n;
		offset += (uint32_t)n;
	}
	unpin(s, segment);
	return r;
}

void segments_advise(struct segments *s, uint32_t number, uint32_t offset, size_t size)
{
	struct segment *segment;

	if (pin(s, number, &segment) < 0)
		return;
	(void)posix_fadvise(segment->fd, offset, (off_t)size, POSIX_FADV_WILLNEED);
	unpin(s, segment);
}

/* ---- giving back ------------------------------------------------------- */

bool segments_active(struct segments *s, uint32_t number)
{
	struct segment *segment;
	bool active;

	pthread_mutex_lock(&s->lock);
	segment = find_open(s, number);
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
	char name[NAME_SIZE];
	int r;

	pthread_mutex_lock(&s->lock);
	stream = stream_get(s, id);
	old = *stream;
	stream->segment = NULL;
	r = stream_begin(s, stream);
	if (r == 0)
		r = stream_allocate(s, stream, bytes);
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

static int remove_file(struct segments *s, struct segment *segment)
{
	char name[NAME_SIZE];
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
	int r = pin(s, number, &segment);

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
	unpin(s, segment);
	return r;
}

int segments_size(struct segments *s, uint32_t number, uint64_t *ret_size)
{
	struct segment *segment;
	struct stat st;
	int r = pin(s, number, &segment);

	if (r == -ENOENT)
		*ret_size = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (fstat(segment->fd, &st) < 0)
		r = -errno;
	else
		*ret_size = (uint64_t)st.st_size;
	unpin(s, segment);
	return r;
}

int segments_cut(struct segments *s, uint32_t number, uint64_t end)
{
	struct segment *segment;
	int r = pin(s, number, &segment);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (ftruncate(segment->fd, (off_t)end) < 0)
		r = -errno;
	else if (end == 0)
		r = remove_file(s, segment);
	unpin(s, segment);
	return r;
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
