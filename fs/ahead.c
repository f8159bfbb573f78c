/*
 * ahead.c - see ahead.h.
 */
#include "fs/ahead.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "store/util.h"

#define AHEAD_KIB "512"

void ahead_raise(int fd)
{
	char path[64];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", major(st.st_dev),
		 minor(st.st_dev));
	_cleanup_close_ int setting = open(path, O_WRONLY | O_CLOEXEC);
	if (setting >= 0)
		(void)!write(setting, AHEAD_KIB, sizeof(AHEAD_KIB) - 1);
}
