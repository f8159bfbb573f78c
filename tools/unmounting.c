#include "tools/unmounting.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/interrupt.h"
#include "tools/mounts.h"
#include "tools/print.h"

#define FUSERMOUNT "fusermount3"
#define EXIT_NO_PROGRAM 127

/* Runs fusermount3, whose words are replaced by ours. Its exit code, or a negative errno. */
static int run_fusermount(const char *options, const char *point)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		if (null >= 0)
			dup2(null, STDERR_FILENO);
		interrupt_unblock();
		execlp(FUSERMOUNT, FUSERMOUNT, options, "--", point, (char *)NULL);
		_exit(EXIT_NO_PROGRAM);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

/* It gives no reason that a program could read. Busy is the likely one if the mount is the caller's. */
static int detach_as_user(const char *point, bool lazy)
{
	struct mount m = { 0 };
	int result = run_fusermount(lazy ? "-uz" : "-u", point);

	if (result <= 0)
		return result;
	if (result == EXIT_NO_PROGRAM)
		return -ENOENT;
	if (mounts_find(point, &m) != 1)
		return -EINVAL;
	mount_release(&m);
	return access(point, X_OK) < 0 && errno == EACCES ? -EPERM : -EBUSY;
}

int unmounting_detach(const char *point, bool lazy)
{
	if (geteuid() != 0)
		return detach_as_user(point, lazy);
	return umount2(point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) < 0 ? -errno : 0;
}

int unmounting_force(const char *point)
{
	if (geteuid() != 0)
		return detach_as_user(point, true);
	/* Breaks the connection even where the mount is busy; then the name can go. */
	if (umount2(point, UMOUNT_NOFOLLOW | MNT_FORCE) == 0)
		return 0;
	return umount2(point, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}

/* ---- who keeps it busy ----------------------------------------------------------- */

static bool link_is_below(int directory, const char *name, const char *point)
{
	char target[PATH_MAX];
	ssize_t size = readlinkat(directory, name, target, sizeof(target) - 1);

	if (size <= 0)
		return false;
	target[size] = '\0';
	return mounts_is_below(target, point);
}

static bool fds_are_below(int process, const char *point)
{
	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory)))
		found = link_is_below(dirfd(directory), entry->d_name, point);
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	return found;
}

static bool uses(int process, const char *point)
{
	return link_is_below(process, "cwd", point) || link_is_below(process, "root", point) ||
	       link_is_below(process, "exe", point) || fds_are_below(process, point);
}

static char *describe(int process, const char *pid)
{
	_cleanup_free_ char *quoted = NULL;
	char command[64] = "";
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, command, sizeof(command) - 1);

	if (fd >= 0)
		close(fd);
	command[size > 0 ? (size_t)size - 1 : 0] = '\0';
	quoted = print_quoted(command);
	return print_format("%s (%s)", pid, quoted);
}

char *unmounting_user(const char *point)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	char *user = NULL;

	while (all && !user && (entry = readdir(all))) {
		int process;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		process = openat(dirfd(all), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (process < 0)
			continue;
		if (uses(process, point))
			user = describe(process, entry->d_name);
		close(process);
	}
	if (all)
		closedir(all);
	return user;
}
