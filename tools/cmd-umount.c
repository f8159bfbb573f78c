/*
 * cmd-umount.c - takes a mount away and returns when all is on disk: when its
 * daemon has ended, which it does after the store is closed and unlocked.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/store.h"
#include "store/util.h"
#include "tools/cmd.h"
#include "tools/interrupt.h"
#include "tools/mounts.h"
#include "tools/print.h"
#include "tools/probe.h"
#include "tools/progress.h"
#include "tools/unmounting.h"

#define WAIT_MS 200
#define RELEASE_TRIES 10
#define EXIT_CODE_TRIES 5 /* of 10 ms: until its parent has waited for it, which some never do */

/*
 * How the process of a pidfd ended, from Linux 6.15 on; Debian 12's headers do
 * not know it yet. Layout and numbers: linux/pidfd.h.
 */
struct pidfd_exit {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_EXIT_MASK (UINT64_C(1) << 3)
#define PIDFD_EXIT_CALL _IOWR(0xff, 11, struct pidfd_exit)

/* The daemon's wait status; 0 if the kernel does not say. */
static int exit_status(int pidfd)
{
	for (unsigned i = 0; i < EXIT_CODE_TRIES; i++) {
		struct pidfd_exit e = { .mask = PIDFD_EXIT_MASK };

		if (ioctl(pidfd, PIDFD_EXIT_CALL, &e) < 0 && errno != ESRCH)
			return 0;
		if (e.mask & PIDFD_EXIT_MASK)
			return e.exit_code;
		usleep(10000);
	}
	return 0;
}

/* Until the daemon has ended. */
static int await_end(const struct arguments *a, int pidfd, pid_t pid)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	_cleanup_close_ int interrupt = interrupt_open();
	struct progress progress;
	bool stopped = false;

	progress_begin(&progress, "writing everything to disk");
	while (poll(&p, 1, WAIT_MS) <= 0 && !(stopped = interrupt_seen(interrupt)))
		progress_tick(&progress);
	progress_clear(&progress);
	if (stopped)
		return cmd_fail(a, EXIT_INTERRUPTED,
				"interrupted; it is unmounted, and its daemon %d still writes to disk",
				(int)pid);
	if (exit_status(pidfd))
		return cmd_fail(a, EXIT_FAILED,
				"it is unmounted, but not everything is in its place on disk; the system's log says why");
	return EXIT_DONE;
}

static int fail_busy(const struct arguments *a, const char *quoted, const char *point)
{
	_cleanup_free_ char *inner = NULL, *user = NULL;
	struct mount m = { 0 };

	if (mounts_inside(point, &m) == 1) {
		inner = print_quoted(m.point);
		mount_release(&m);
		return cmd_fail(a, EXIT_FAILED, "%s: busy: %s is mounted in it; unmount that first",
				quoted, inner);
	}
	user = unmounting_user(point);
	return cmd_fail(a, EXIT_FAILED, "%s: busy%s%s; end what uses it, or give --lazy", quoted,
			user ? ": used by process " : "", user ? user : "");
}

static int fail_detach(const struct arguments *a, const char *point, int error)
{
	_cleanup_free_ char *quoted = print_quoted(point);

	switch (error) {
	case -EBUSY:
		return fail_busy(a, quoted, point);
	case -EPERM:
		return cmd_fail(a, EXIT_FAILED,
				"%s: only the user who mounted it or root may unmount it", quoted);
	case -ENOENT:
		return cmd_fail(a, EXIT_FAILED, "fusermount3: not found; install the package fuse3");
	default:
		return cmd_fail(a, EXIT_FAILED, "%s: %s", quoted, strerror(-error));
	}
}

/* Who holds the store's lock: for root, whom another user's daemon does not answer. 0: not known. */
static pid_t holder(const char *store)
{
	int pid;

	return store_holder(store, &pid) == 1 ? pid : 0;
}

/* Its daemon answers, or is given the time to. */
static int unmount_living(const struct arguments *a, const char *point, pid_t pid)
{
	bool lazy = arguments_has(a, OPTION_LAZY);
	_cleanup_close_ int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	int result = unmounting_detach(point, lazy);

	if (result < 0)
		return fail_detach(a, point, result);
	if (lazy)
		return EXIT_DONE;
	if (pidfd < 0) {
		cmd_warn(a, "it is unmounted; when its daemon has written everything cannot be seen from here");
		return EXIT_DONE;
	}
	return await_end(a, pidfd, pid);
}

/* A daemon whose connection is broken off ends, unless something keeps it, as a SIGSTOP. 0: it has. */
static pid_t await_release(const char *store)
{
	pid_t pid = holder(store);

	for (unsigned i = 0; pid && i < RELEASE_TRIES; i++) {
		poll(NULL, 0, WAIT_MS);
		pid = holder(store);
	}
	return pid;
}

/* Its daemon is dead, or hangs and is given up. */
static int unmount_dead(const struct arguments *a, const struct mount *m, bool hangs)
{
	_cleanup_free_ char *quoted = print_quoted(m->point);
	int result = hangs ? unmounting_force(m->point) : unmounting_detach(m->point, true);
	pid_t pid;

	if (result < 0)
		return fail_detach(a, m->point, result);
	pid = hangs ? await_release(m->source) : 0;
	if (pid)
		return cmd_fail(a, EXIT_FAILED,
				"%s: the mount was cleaned up, but its daemon %d does not end and holds the store; kill it",
				quoted, (int)pid);
	cmd_warn(a, "%s: its daemon was dead or hung; the mount was cleaned up, and what was acknowledged is in the store",
		 quoted);
	return EXIT_DONE;
}

static int unmount(const struct arguments *a, const struct mount *m)
{
	_cleanup_free_ char *quoted = print_quoted(m->point);
	bool force = arguments_has(a, OPTION_FORCE_UNMOUNT), lazy = arguments_has(a, OPTION_LAZY);
	pid_t pid;
	enum probe probe = probe_mount(m->point, &pid);

	if (probe == PROBE_HANGS && !force && !lazy)
		return cmd_fail(a, EXIT_FAILED,
				"%s: its daemon does not answer; give --force-unmount to break it off",
				quoted);
	if (probe == PROBE_DEAD || (probe == PROBE_HANGS && force))
		return unmount_dead(a, m, probe == PROBE_HANGS);
	return unmount_living(a, m->point, pid ? pid : holder(m->source));
}

/* The mount that `given` names. It is not touched: it may hang. */
static int find(const struct arguments *a, const char *given, struct mount *ret_mount)
{
	_cleanup_free_ char *path = NULL, *inner = NULL, *quoted = print_quoted(given);
	struct mount m = { 0 };
	bool follow = false;
	int found;

	do {
		free(path);
		path = NULL;
		found = mounts_resolve(given, follow, &path);
		if (!found)
			found = mounts_find(path, &m);
		follow = !follow;
	} while (found == 0 && follow);
	if (found < 0)
		return cmd_fail(a, EXIT_NOT_FOUND, "%s: %s", quoted, strerror(-found));
	if (found == 1 && !strcmp(m.type, MOUNTS_TYPE)) {
		*ret_mount = m;
		return EXIT_DONE;
	}
	mount_release(&m);
	if (mounts_locate(path, &m, &inner) == 1) {
		_cleanup_free_ char *point = print_quoted(m.point);

		mount_release(&m);
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not a mount point itself, it is inside %s; unmount that",
				quoted, point);
	}
	return cmd_fail(a, EXIT_NOT_FOUND,
			"%s: no ddbfs is mounted there; 'ddbfs status' lists those that are", quoted);
}

int cmd_umount(const struct arguments *a)
{
	struct mount m = { 0 };
	int code = find(a, a->operands[0], &m);

	if (code == EXIT_DONE)
		code = unmount(a, &m);
	mount_release(&m);
	return code;
}
