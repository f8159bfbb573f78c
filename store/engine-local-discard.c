/*
 * engine-local-discard.c - opening a store whose journal cannot be believed.
 *
 * Such a store is refused: what was promised is not there, and no program can
 * know what it was. The user may decide to go on with the loss. Then what the
 * journal holds up to the damage is replayed, if the database is the one that it
 * was written for, and the journals as they were are kept beside, in a directory
 * that no later run touches.
 */
#include "store/engine-local.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define COPY_BLOCK (1 << 20)

static bool all_zero(const uint8_t *bytes, size_t size)
{
	return !size || (!bytes[0] && !memcmp(bytes, bytes + 1, size - 1));
}

/* Holes stay holes. */
static int copy_bytes(int from, int to)
{
	_cleanup_free_ uint8_t *block = malloc(COPY_BLOCK);
	off_t at = 0;
	ssize_t n;

	if (!block)
		return -ENOMEM;
	while ((n = pread(from, block, COPY_BLOCK, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		/* A sector that cannot be read has nothing to keep. */
		if (n < 0 && errno == EIO) {
			at += 4096;
			continue;
		}
		if (n < 0)
			return -errno;
		if (!all_zero(block, (size_t)n)) {
			int r = util_write_all(to, block, (size_t)n, at);

			if (r < 0)
				return r;
		}
		at += n;
	}
	if (ftruncate(to, at) < 0 || fsync(to) < 0)
		return -errno;
	return 0;
}

static int copy_file(int from_dir, int to_dir, const char *name)
{
	_cleanup_close_ int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	_cleanup_close_ int to = -1;
	struct stat st;

	/* Missing, or something else that was never ours. */
	if (from < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	if (fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return to < 0 ? -errno : copy_bytes(from, to);
}

/* A name that is not taken. */
static int make_directory(int dir_fd, char *name, size_t size)
{
	for (unsigned i = 1; i < 10000; i++) {
		snprintf(name, size, "discarded-%u", i);
		if (mkdirat(dir_fd, name, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int local_discard(struct engine_local *e, const char *why, struct store_open_report *report)
{
	_cleanup_close_ int to_dir = -1;
	char directory[32], name[16];
	int r;

	if (!e->discard || e->read_only) {
		snprintf(report->text, sizeof(report->text),
			 "%s; nothing was changed: restore the store from a backup, or copy it and give up what "
			 "the journal held with `ddbfs check --discard-journal`",
			 why);
		return STORE_DAMAGED;
	}
	/* Once is enough, whatever else is wrong with it. */
	if (report->discarded)
		return 0;
	r = make_directory(e->dir_fd, directory, sizeof(directory));
	if (r < 0)
		return r;
	to_dir = openat(e->dir_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to_dir < 0)
		return -errno;
	for (unsigned i = 0; i < JOURNAL_FILES && r == 0; i++) {
		snprintf(name, sizeof(name), "journal.%u", i);
		r = copy_file(e->dir_fd, to_dir, name);
	}
	if (r == 0 && (fsync(to_dir) < 0 || fsync(e->dir_fd) < 0))
		r = -errno;
	if (r < 0)
		return r;
	report->discarded = true;
	snprintf(report->text, sizeof(report->text),
		 "%s: what came after was discarded; the journals as they were are kept in %s", why,
		 directory);
	return 0;
}
