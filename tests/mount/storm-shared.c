/*
 * storm-shared.c - names that all processes fight for: files, directories and
 * what is in their trash, renamed over each other, linked and removed. What a
 * step answers may be any of a few errnos; a file that can be read is whole.
 * EROFS is among them since a directory of a path may just have been deleted.
 */
#include "tests/mount/storm.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

/* One of the names: the length of a path with one directory more fits too. */
static void any_name(struct worker *w, char path[64])
{
	int n = snprintf(path, 64, "d%d/shared%d", (int)random_below(&w->random, STORM_DIRECTORIES),
			 (int)random_below(&w->random, STORM_SHARED));

	if (random_once_in(&w->random, 6))
		snprintf(path + n, (size_t)(64 - n), "/inner%d", (int)random_below(&w->random, 3));
}

/* A whole file takes the name at once, whatever had it. */
static void publish(struct worker *w, const char *path)
{
	char own[64];
	uint32_t size = storm_size(w);
	int fd;

	snprintf(own, sizeof(own), "d%d/new%d", (int)random_below(&w->random, STORM_DIRECTORIES),
		 w->number);
	storm_fill(w->buffer, w->number, ++w->tags, size);
	fd = open(own, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0 || write(fd, w->buffer, size) != (ssize_t)size)
		storm_failed(w, "create", own, errno);
	close(fd);
	if (rename(own, path) == 0)
		return;
	STORM_ALLOW(w, "publish", path, -1, EISDIR, ENOENT, ENOTDIR, EROFS);
	if (unlink(own))
		storm_failed(w, "unlink of its own", own, errno);
}

static void create(struct worker *w, const char *path)
{
	uint32_t size = storm_size(w);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	STORM_ALLOW(w, "create", path, fd, EEXIST, ENOENT, ENOTDIR, EROFS);
	if (fd < 0)
		return;
	storm_fill(w->buffer, w->number, ++w->tags, size);
	if (write(fd, w->buffer, size) != (ssize_t)size)
		storm_failed(w, "write to what it created", path, errno);
	close(fd);
}

static void read_whole(struct worker *w, const char *path)
{
	int fd = open(path, O_RDONLY), worker;
	struct stat st;
	uint32_t tag;
	ssize_t n;

	STORM_ALLOW(w, "open", path, fd, ENOENT, ENOTDIR);
	if (fd < 0)
		return;
	if (fstat(fd, &st))
		storm_failed(w, "fstat", path, errno);
	else if (S_ISREG(st.st_mode)) {
		n = pread(fd, w->buffer, STORM_LARGEST, 0);
		/* Who created it in place may not have written yet. */
		if (n < 0 || (n > 0 && !storm_whole(w->buffer, (size_t)n, &worker, &tag)))
			storm_failed(w, "the content of", path, n < 0 ? errno : 0);
	}
	close(fd);
}

static void move(struct worker *w, const char *path)
{
	static const unsigned flags[] = { 0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE };
	char to[64];

	any_name(w, to);
	STORM_ALLOW(w, "rename", path,
		    renameat2(AT_FDCWD, path, AT_FDCWD, to,
			      flags[random_below(&w->random, ARRAY_SIZE(flags))]),
		    ENOENT, EEXIST, EISDIR, ENOTDIR, ENOTEMPTY, EINVAL, EROFS);
}

static void attribute(struct worker *w, const char *path)
{
	char value[32];
	ssize_t n;

	if (random_once_in(&w->random, 2)) {
		STORM_ALLOW(w, "setxattr", path, setxattr(path, "user.storm", "xyzxyz", 6, 0),
			    ENOENT, ENOTDIR, EROFS);
		return;
	}
	n = getxattr(path, "user.storm", value, sizeof(value));
	STORM_ALLOW(w, "getxattr", path, n, ENOENT, ENOTDIR, ENODATA);
	if (n >= 0 && (n != 6 || memcmp(value, "xyzxyz", 6)))
		storm_failed(w, "the attribute of", path, 0);
}

/* The trash of a directory that others move about, by its shadow and by its own path. */
static void look_into_trash(struct worker *w, const char *path)
{
	const char *name = strchr(path, '/') + 1;
	char in_trash[128];
	struct stat st;
	int fd;

	snprintf(in_trash, sizeof(in_trash), "%.*s/.trash/%s%s", (int)(name - path - 1), path, name,
		 random_once_in(&w->random, 2) ? "/inner1" : "");
	STORM_ALLOW(w, "lstat", in_trash, lstat(in_trash, &st), ENOENT, ENOTDIR);
	snprintf(in_trash, sizeof(in_trash), "%s/.trash/inner%d", path,
		 (int)random_below(&w->random, 3));
	STORM_ALLOW(w, "lstat", in_trash, lstat(in_trash, &st), ENOENT, ENOTDIR);
	fd = open(in_trash, O_RDONLY);
	STORM_ALLOW(w, "open", in_trash, fd, ENOENT, ENOTDIR);
	if (fd >= 0)
		close(fd);
}

/* Into the trash by name, or out of it again. */
static void through_trash(struct worker *w, const char *path)
{
	char in_trash[128];
	const char *name = strrchr(path, '/') + 1;

	snprintf(in_trash, sizeof(in_trash), "%.*s/.trash/%s", (int)(name - path - 1), path, name);
	if (random_once_in(&w->random, 2))
		STORM_ALLOW(w, "delete by mv", path, rename(path, in_trash), ENOENT, ENOTDIR,
			    EISDIR, EROFS);
	else
		STORM_ALLOW(w, "restore", in_trash, rename(in_trash, path), ENOENT, ENOTDIR, EISDIR,
			    ENOTEMPTY, EEXIST, EROFS, EINVAL);
}

static void link_to(struct worker *w, const char *path)
{
	char to[64];

	any_name(w, to);
	STORM_ALLOW(w, "link", path, link(path, to), ENOENT, EEXIST, EPERM, ENOTDIR, EROFS);
}

static void remove_name(struct worker *w, const char *path)
{
	STORM_ALLOW(w, "unlink", path, unlink(path), ENOENT, EISDIR, ENOTDIR, EROFS);
}

static void make_directory(struct worker *w, const char *path)
{
	STORM_ALLOW(w, "mkdir", path, mkdir(path, 0755), EEXIST, ENOENT, ENOTDIR, EROFS);
}

static void remove_directory(struct worker *w, const char *path)
{
	STORM_ALLOW(w, "rmdir", path, rmdir(path), ENOENT, ENOTDIR, ENOTEMPTY, EROFS);
}

const char *shared_step(struct worker *w)
{
	static const struct {
		const char *name;
		void (*run)(struct worker *w, const char *path);
		unsigned weight;
	} steps[] = {
		{ "publish", publish, 3 },
		{ "create", create, 2 },
		{ "read", read_whole, 5 },
		{ "rename", move, 5 },
		{ "link", link_to, 2 },
		{ "unlink", remove_name, 3 },
		{ "mkdir", make_directory, 3 },
		{ "rmdir", remove_directory, 2 },
		{ "attribute", attribute, 2 },
		{ "look into the trash", look_into_trash, 5 },
		{ "through the trash", through_trash, 1 },
	};
	uint64_t at = random_below(&w->random, 33);
	char path[64];
	size_t i = 0;

	for (; at >= steps[i].weight; i++)
		at -= steps[i].weight;
	any_name(w, path);
	steps[i].run(w, path);
	return steps[i].name;
}
