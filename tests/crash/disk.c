/*
 * disk.c - see disk.h.
 */
#include "tests/crash/disk.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/crash/files.h"

#define SECTOR 512

static struct disk_file *find(struct disk *d, const char *path)
{
	for (size_t i = 0; i < d->count; i++)
		if (!strcmp(d->files[i].path, path))
			return &d->files[i];
	ck_assert_uint_lt(d->count, DISK_FILES_MAX);
	ck_assert_uint_lt(strlen(path), sizeof(d->files[0].path));
	strcpy(d->files[d->count].path, path);
	return &d->files[d->count++];
}

static void read_whole(const char *path, struct buffer *b)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(read(fd, buffer_append(b, NULL, (size_t)st.st_size), (size_t)st.st_size),
			 st.st_size);
	close(fd);
}

void disk_release(struct disk *d)
{
	for (size_t i = 0; i < d->count; i++) {
		buffer_release(&d->files[i].bytes);
		free(d->files[i].pending);
	}
	memset(d, 0, sizeof(*d));
}

void disk_begin(struct disk *d, const char *directory)
{
	struct store_files files;

	disk_release(d);
	files_list(directory, &files);
	for (size_t i = 0; i < files.count; i++) {
		struct disk_file *f = find(d, files.items[i].path);
		char path[4500];

		snprintf(path, sizeof(path), "%s/%s", directory, f->path);
		f->exists = true;
		read_whole(path, &f->bytes);
	}
	files_release(&files);
}

static void grow(struct buffer *b, size_t size)
{
	size_t old = b->size;

	if (size <= old)
		return;
	buffer_append(b, NULL, size - old);
	memset(b->bytes + old, 0, size - old);
}

static void apply_bytes(struct buffer *b, uint64_t offset, const uint8_t *bytes, uint64_t size)
{
	grow(b, offset + size);
	memcpy(b->bytes + offset, bytes, size);
}

static bool is_write(const struct shim_record *r)
{
	return r->kind == SHIM_LOG_WRITE || r->kind == SHIM_LOG_WRITE_SYNCED;
}

static void apply(struct buffer *b, const struct shim_record *r)
{
	if (is_write(r)) {
		apply_bytes(b, r->offset, r->bytes, r->size);
	} else if (r->kind == SHIM_LOG_PUNCH) {
		uint64_t end = util_min(r->offset + r->size, (uint64_t)b->size);

		if (r->offset < end)
			memset(b->bytes + r->offset, 0, end - r->offset);
	} else if (r->kind == SHIM_LOG_TRUNCATE) {
		grow(b, r->offset);
		b->size = r->offset;
	}
}

static bool is_of_directory(const struct shim_record *r)
{
	return r->kind == SHIM_LOG_CREATE || r->kind == SHIM_LOG_REMOVE;
}

static bool is_in(const char *path, const char *directory)
{
	const char *slash = strrchr(path, '/');
	size_t size = slash ? (size_t)(slash - path) : 0;

	return strlen(directory) == size && !memcmp(path, directory, size);
}

/* What was pending when a sync began, and is of its kind, is on the disk. */
static void make_durable(struct disk *d, struct disk_file *f, const struct shim_record *sync)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		const struct shim_record *r = f->pending[i];

		if (is_of_directory(r) != (sync->kind == SHIM_LOG_SYNC_DIRECTORY) ||
		    !shim_log_before(r, sync))
			f->pending[kept++] = r;
		else if (is_of_directory(r))
			f->exists = r->kind == SHIM_LOG_CREATE;
		else
			apply(&f->bytes, r);
	}
	d->durable += f->count - kept;
	f->count = kept;
}

void disk_step(struct disk *d, const struct shim_record *r)
{
	struct disk_file *f;

	if (r->kind == SHIM_LOG_SYNC_DIRECTORY) {
		for (size_t i = 0; i < d->count; i++)
			if (is_in(d->files[i].path, shim_log_path(r)))
				make_durable(d, &d->files[i], r);
		return;
	}
	f = find(d, shim_log_path(r));
	if (r->kind == SHIM_LOG_SYNC) {
		make_durable(d, f, r);
		return;
	}
	/* Durable by itself, whatever became of what came before; what is pending was written earlier. */
	if (r->kind == SHIM_LOG_WRITE_SYNCED) {
		apply(&f->bytes, r);
		d->durable++;
	}
	if (f->count == f->capacity) {
		f->capacity = 2 * f->capacity + 64;
		f->pending = reallocarray(f->pending, f->capacity, sizeof(*f->pending));
	}
	f->pending[f->count++] = r;
}

/* ---- states ---------------------------------------------------------------------- */

static bool chosen(uint64_t *seed, unsigned percent)
{
	return files_random(seed) % 100 < percent;
}

static void apply_torn(struct buffer *b, const struct shim_record *r, uint64_t *seed, unsigned percent)
{
	for (uint64_t at = 0; at < r->size;) {
		uint64_t size = util_min(SECTOR - (r->offset + at) % SECTOR, r->size - at);

		if (chosen(seed, percent))
			apply_bytes(b, r->offset + at, r->bytes + at, size);
		at += size;
	}
}

static void write_file(const char *to, const struct disk_file *f, const struct buffer *b)
{
	char path[4500];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", to, f->path);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, b->bytes, b->size, 0), (ssize_t)b->size);
	close(fd);
}

static void build_file(const struct disk_file *f, const char *to, enum disk_variant variant,
		       uint64_t *seed, unsigned percent)
{
	struct buffer b = { 0 };
	bool exists = f->exists;

	buffer_append(&b, f->bytes.bytes, f->bytes.size);
	for (size_t i = 0; i < f->count; i++) {
		const struct shim_record *r = f->pending[i];
		bool take = r->kind == SHIM_LOG_WRITE_SYNCED || variant == DISK_ALL ||
			    (variant != DISK_NONE && chosen(seed, percent));

		if (is_of_directory(r))
			exists = take ? r->kind == SHIM_LOG_CREATE : exists;
		else if (take && variant == DISK_TORN && r->kind == SHIM_LOG_WRITE)
			apply_torn(&b, r, seed, percent);
		else if (take)
			apply(&b, r);
	}
	if (exists)
		write_file(to, f, &b);
	buffer_release(&b);
}

void disk_build(const struct disk *d, const char *to, enum disk_variant variant, uint64_t *seed)
{
	static const unsigned percents[] = { 10, 50, 90, 97 };
	char path[4500];

	files_remove(to);
	ck_assert_int_eq(mkdir(to, 0700), 0);
	snprintf(path, sizeof(path), "%s/segments", to);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (size_t i = 0; i < d->count; i++)
		build_file(&d->files[i], to, variant, seed,
			   percents[files_random(seed) % ARRAY_SIZE(percents)]);
}
