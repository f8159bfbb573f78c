/*
 * fail-sync.c - to be preloaded into a daemon: as long as the file named by
 * $FAIL_SYNC exists, no sync of a regular file succeeds. For failed-sync.sh.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_or_fail(int fd, const char *name)
{
	/* Through an integer: ISO C knows no cast from an object to a function. */
	int (*next)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, name);
	const char *sign = getenv("FAIL_SYNC");
	struct stat st;

	if (sign && access(sign, F_OK) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		errno = EIO;
		return -1;
	}
	return next(fd);
}

int fsync(int fd)
{
	return sync_or_fail(fd, "fsync");
}

int fdatasync(int fd)
{
	return sync_or_fail(fd, "fdatasync");
}
