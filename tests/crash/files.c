#include "tests/crash/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 512
#define BUFFER (1 << 16)

static void die(const char *what)
{
	perror(what);
	abort();
}

static void join(char *path, size_t size, const char *directory, const char *name)
{
	if ((size_t)snprintf(path, size, "%s/%s", directory, name) >= size)
		abort();
}

static int open_file(const char *directory, const char *name, int flags)
{
	char path[4352];
	int fd;

	join(path, sizeof(path), directory, name);
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	return fd;
}

/* Offset of the next byte at or after `offset` that may be data, or -1. */
static off_t next_data(int fd, off_t offset)
{
	off_t at = lseek(fd, offset, SEEK_DATA);

	if (at < 0 && errno != ENXIO)
		die("SEEK_DATA");
	return at;
}

/* ---- walking; nftw has no argument for its callback ----------------------- */

static struct {
	struct store_files *files;
	size_t root_size;
	const char *to;
} walk;

static bool all_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static void add_block(struct store_file *f, uint64_t offset)
{
	if (f->blocks_count % 1024 == 0)
		f->blocks = realloc(f->blocks, (f->blocks_count + 1024) * sizeof(*f->blocks));
	if (!f->blocks)
		abort();
	f->blocks[f->blocks_count++] = (uint32_t)(offset / BLOCK);
}

static void find_blocks(const char *path, struct store_file *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t block[BLOCK];
	off_t at = 0;

	if (fd < 0)
		die(path);
	while ((at = next_data(fd, at / BLOCK * BLOCK)) >= 0) {
		ssize_t n;

		at = at / BLOCK * BLOCK;
		n = pread(fd, block, sizeof(block), at);
		if (n <= 0)
			break;
		if (!all_zero(block, (size_t)n))
			add_block(f, (uint64_t)at);
		at += BLOCK;
	}
	close(fd);
}

static int list_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct store_files *files = walk.files;
	struct store_file *f;

	if (type != FTW_F)
		return 0;
	files->items = realloc(files->items, (files->count + 1) * sizeof(*files->items));
	if (!files->items)
		abort();
	f = &files->items[files->count++];
	*f = (struct store_file){ .size = (uint64_t)st->st_size };
	snprintf(f->path, sizeof(f->path), "%s", path + walk.root_size + 1);
	find_blocks(path, f);
	return 0;
}

static int order_of_paths(const void *a, const void *b)
{
	return strcmp(((const struct store_file *)a)->path, ((const struct store_file *)b)->path);
}

void files_list(const char *directory, struct store_files *ret_files)
{
	*ret_files = (struct store_files){ 0 };
	walk.files = ret_files;
	walk.root_size = strlen(directory);
	if (nftw(directory, list_one, 16, FTW_PHYS) != 0)
		die(directory);
	if (ret_files->count)
		qsort(ret_files->items, ret_files->count, sizeof(*ret_files->items), order_of_paths);
}

void files_release(struct store_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->items[i].blocks);
	free(f->items);
	*f = (struct store_files){ 0 };
}

const struct store_file *files_find(const struct store_files *f, const char *path)
{
	for (size_t i = 0; i < f->count; i++)
		if (strcmp(f->items[i].path, path) == 0)
			return &f->items[i];
	return NULL;
}

/* ---- copying --------------------------------------------------------------- */

static void copy_data(int from, int to, uint64_t size)
{
	static uint8_t buffer[BUFFER];
	off_t at = 0;

	while ((at = next_data(from, at)) >= 0) {
		off_t end = lseek(from, at, SEEK_HOLE);

		while (at < end) {
			size_t part = end - at < BUFFER ? (size_t)(end - at) : BUFFER;
			ssize_t n = pread(from, buffer, part, at);

			if (n <= 0 || pwrite(to, buffer, (size_t)n, at) != n)
				die("copy");
			at += n;
		}
	}
	if (ftruncate(to, (off_t)size) < 0)
		die("ftruncate");
}

static void copy_path(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) < 0)
		die(from);
	copy_data(in, out, (uint64_t)st.st_size);
	close(in);
	close(out);
}

static int copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char to[4352];

	join(to, sizeof(to), walk.to, path + walk.root_size);
	if (type != FTW_D)
		copy_path(path, to);
	else if (mkdir(to, 0700) < 0 && errno != EEXIST)
		die(to);
	return 0;
}

void files_copy_one(const char *from, const char *to, const char *name)
{
	char source[4352], target[4352];

	join(source, sizeof(source), from, name);
	join(target, sizeof(target), to, name);
	copy_path(source, target);
}

void files_copy(const char *from, const char *to)
{
	files_remove(to);
	walk.root_size = strlen(from);
	walk.to = to;
	if (nftw(from, copy_one, 16, FTW_PHYS) != 0)
		die(from);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void files_remove(const char *directory)
{
	if (nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
		die(directory);
}

/* ---- comparing -------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

bool files_is_lock(const char *path)
{
	return strcmp(path, "lock") == 0 || strcmp(path, "lock.mdb") == 0;
}

uint64_t files_hash(const char *directory)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct store_files files;
	uint8_t block[BLOCK];

	files_list(directory, &files);
	for (size_t i = 0; i < files.count; i++) {
		const struct store_file *f = &files.items[i];
		int fd;

		if (files_is_lock(f->path))
			continue;
		fd = open_file(directory, f->path, O_RDONLY);
		hash = hash_bytes(hash, f->path, strlen(f->path) + 1);
		hash = hash_bytes(hash, &f->size, sizeof(f->size));
		for (size_t b = 0; b < f->blocks_count; b++) {
			ssize_t n = pread(fd, block, sizeof(block), (off_t)f->blocks[b] * BLOCK);

			hash = hash_bytes(hash, &f->blocks[b], sizeof(f->blocks[b]));
			hash = hash_bytes(hash, block, n > 0 ? (size_t)n : 0);
		}
		close(fd);
	}
	files_release(&files);
	return hash;
}

/* ---- damaging ---------------------------------------------------------------- */

void files_flip(const char *directory, const char *path, uint64_t offset, unsigned bit)
{
	int fd = open_file(directory, path, O_RDWR);
	uint8_t byte;

	if (pread(fd, &byte, 1, (off_t)offset) != 1)
		die(path);
	byte ^= (uint8_t)(1 << bit);
	if (pwrite(fd, &byte, 1, (off_t)offset) != 1)
		die(path);
	close(fd);
}

void files_truncate(const char *directory, const char *path, uint64_t size)
{
	int fd = open_file(directory, path, O_RDWR);

	if (ftruncate(fd, (off_t)size) < 0)
		die(path);
	close(fd);
}

void files_replace(const char *directory, const char *path, const void *bytes, size_t size)
{
	int fd = open_file(directory, path, O_WRONLY | O_CREAT | O_TRUNC);

	if (write(fd, bytes, size) != (ssize_t)size)
		die(path);
	close(fd);
}
