#include "store/plain.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "store/util.h"

int plain_read(int dir_fd, const char *path, int flags, size_t max, uint8_t *ret_bytes, size_t *ret_size)
{
	_cleanup_close_ int fd =
		openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
	struct stat st;
	size_t size = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ELOOP && (flags & O_NOFOLLOW) ? -EINVAL : -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	while (size < max && n != 0) {
		n = read(fd, ret_bytes + size, max - size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			size += (size_t)n;
	}
	if (size == max && read(fd, &(char){ 0 }, 1) != 0)
		return -EFBIG;
	*ret_size = size;
	return 0;
}

int plain_write(int dir_fd, const char *name, const void *bytes, size_t size)
{
	_cleanup_close_ int fd = -1;
	ssize_t n;

	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	for (size_t at = 0; at < size; at += (size_t)n) {
		do
			n = write(fd, (const uint8_t *)bytes + at, size - at);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return -errno;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

void plain_wipe(int dir_fd, const char *name, size_t size)
{
	static const uint8_t zeros[64];
	_cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && pwrite(fd, zeros, util_min(size, sizeof(zeros)), 0) > 0)
		fsync(fd);
	if (unlinkat(dir_fd, name, 0) == 0)
		fsync(dir_fd);
}
