/*
 * lock.c - see lock.h.
 */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include "store/util.h"

static pid_t read_holder(int fd)
{
	char text[16];
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		return 0;
	text[size] = 0;
	return (pid_t)util_max(0L, strtol(text, NULL, 10));
}

int lock_take(int dir_fd, bool create, int *ret_fd, pid_t *ret_holder)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	_cleanup_close_ int fd = openat(dir_fd, LOCK_FILE, O_RDWR | flags | (create ? O_CREAT : 0), 0600);

	/* Whoever may only read the store can still hold it. */
	if (fd < 0 && (errno == EROFS || errno == EACCES))
		fd = openat(dir_fd, LOCK_FILE, O_RDONLY | flags);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		*ret_holder = read_holder(fd);
		return -EBUSY;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Always as many bytes, in place: the block that holds them is never given up, so that a full disk does not matter. */
int lock_sign(int fd)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%-14ld\n", (long)getpid());

	if (pwrite(fd, text, (size_t)size, 0) == size)
		return 0;
	/* Only the first time is there a block to be had: who holds the store is then not known, but it is held. */
	return errno == ENOSPC || errno == EDQUOT ? 0 : -EIO;
}
