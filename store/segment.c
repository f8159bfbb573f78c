/*
 * segment.c - the directory of segments, their descriptors, reading.
 */
#include "store/segment-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define OPEN_MAX_IDLE 64 /* descriptors kept for reading */

void segment_name(uint32_t number, char ret_name[SEGMENT_NAME_SIZE])
{
	snprintf(ret_name, SEGMENT_NAME_SIZE, "%08x", number);
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

void segment_forget(struct segments *s, struct segment *segment)
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
		segment_forget(s, oldest);
}

struct segment *segment_remember(struct segments *s, uint32_t number, int fd)
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

struct segment *segment_find(struct segments *s, uint32_t number)
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

void segment_unpin(struct segments *s, struct segment *segment)
{
	pthread_mutex_lock(&s->lock);
	if (--segment->pins == 0 && segment->gone)
		segment_forget(s, segment);
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
int segment_pin(struct segments *s, uint32_t number, struct segment **ret_segment)
{
	char name[SEGMENT_NAME_SIZE];
	struct segment *segment;
	int fd, r = 0;

	segment_name(number, name);
	pthread_mutex_lock(&s->lock);
	segment = segment_find(s, number);
	if (!segment) {
		fd = open_file(s, name);
		if (fd < 0)
			r = fd;
		else if (!(segment = segment_remember(s, number, fd))) {
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

/* ---- reading ----------------------------------------------------------- */

int segments_read(struct segments *s, uint32_t number, uint32_t offset, void *buffer, size_t size)
{
	struct segment *segment;
	uint8_t *to = buffer;
	int r = segment_pin(s, number, &segment);

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
	segment_unpin(s, segment);
	return r;
}

void segments_advise(struct segments *s, uint32_t number, uint32_t offset, size_t size)
{
	struct segment *segment;

	if (segment_pin(s, number, &segment) < 0)
		return;
	(void)posix_fadvise(segment->fd, offset, (off_t)size, POSIX_FADV_WILLNEED);
	segment_unpin(s, segment);
}
