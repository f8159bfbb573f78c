/*
 * mount.c - fs_run: puts a mount together, waits for its end, takes it apart.
 *
 * Taking apart goes from the outside in. Requests are served until the notifier
 * has ended, since the kernel may hold it up until one is answered; jobs, which
 * wait for the notifier and whom requests ask, come last.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "fs/ahead.h"
#include "fs/session.h"

#define LINGER_MS 3000 /* after a lazy unmount: for programs to close what they have open */

extern char **environ;

/* ---- hooks of the layers below ------------------------------------------------------------- */

static void notify_live_name(struct fs *fs, const struct place *at)
{
	if (at->state != KEY_ACT || at->name[0] == '\0')
		return;
	notify_entry(fs->notifier, at->directory, 0, at->name);
	notify_attributes(fs->notifier, at->directory);
}

/* A rename that restores a directory brings back names of files that the kernel knows by others: their link counts are news to it. */
static bool is_news(struct fs *fs, const struct lifecycle_change *change)
{
	return !S_ISDIR(change->mode) && change->from.state != change->to.state &&
	       change->to.name[0] != '\0' && node_has_other(fs->nodes, change->id, &change->to);
}

/*
 * Destroyed out of the trash: no live name goes, and what the kernel does not know is no news to it. Of a million
 * entries the notifier would be woken for each, and its thread put before the sweeper's, which holds the lock.
 */
static bool is_unheard_of(struct fs *fs, const struct lifecycle_change *change)
{
	return change->from.state == KEY_DEL && change->to.name[0] == '\0' &&
	       !node_find(fs->nodes, change->id, 0);
}

/*
 * Nodes follow every change. The kernel is told of those it did not ask for
 * itself; names in the trash it never keeps.
 */
static void on_changed(void *data, const struct lifecycle_change *change)
{
	struct fs *fs = data;

	node_changed(fs->nodes, change);
	if (!fs->notifier || !fs->loop)
		return;
	if (loop_in_request(fs->loop)) {
		if (is_news(fs, change))
			notify_attributes(fs->notifier, change->id);
		return;
	}
	if (is_unheard_of(fs, change))
		return;
	notify_live_name(fs, &change->from);
	notify_live_name(fs, &change->to);
	notify_attributes(fs->notifier, change->id);
}

static bool is_busy(void *data, uint64_t id, const struct place *only)
{
	struct fs *fs = data;

	return node_busy(fs->nodes, id, only);
}

static void settle(void *data)
{
	struct fs *fs = data;

	notify_settle(fs->notifier);
}

static void mount_stats(void *data, char **ret_text, size_t *ret_size)
{
	struct fs *fs = data;
	struct node_counts nodes;
	struct loop_counts loop = { 0 };
	int size;

	node_count(fs->nodes, &nodes);
	loop_count(fs->loop, &loop);
	size = asprintf(ret_text,
			"ddbfs_mount_nodes %llu\n"
			"ddbfs_mount_lookups %llu\n"
			"ddbfs_mount_handles %u\n"
			"ddbfs_mount_requests_total %llu\n"
			"ddbfs_mount_sleeps_total %llu\n"
			"ddbfs_mount_takeovers_total %llu\n"
			"ddbfs_mount_threads %u\n"
			"ddbfs_mount_notifications_total %llu\n",
			(unsigned long long)nodes.nodes, (unsigned long long)nodes.lookups,
			atomic_load(&fs->handles), (unsigned long long)loop.requests,
			(unsigned long long)loop.sleeps, (unsigned long long)loop.takeovers,
			loop.threads, (unsigned long long)notify_count(fs->notifier));
	if (size < 0)
		*ret_text = NULL;
	*ret_size = size < 0 ? 0 : (size_t)size;
}

/* ---- options -------------------------------------------------------------------------------- */

static bool has_option(const char *options, const char *wanted)
{
	size_t length = strlen(wanted);

	for (const char *p = options; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, wanted, length) == 0 && (p[length] == '\0' || p[length] == ','))
			return true;
	}
	return false;
}

/*
 * Whether nobody gets in but root, to whom the kernel's checks of mode and owner grant everything. Then it
 * is not made to check (default_permissions): for that it must know mode and owner of a directory, and
 * asks for them again after each change of a name in it, a round trip for every unlink(2) and two for some
 * renames. What is left to check, execution of files that nobody may execute, it does itself, and
 * access(2) asks us.
 */
static bool is_roots_alone(const struct fs_options *options)
{
	return getuid() == 0 && geteuid() == 0 && !options->acl &&
	       !has_option(options->fuse_options, "allow_other") &&
	       !has_option(options->fuse_options, "allow_root");
}

/* The caller's come last: `suid`, `dev`, `default_permissions` and the like overrule our defaults. */
static int make_arguments(const struct fs_options *options, struct fuse_args *args)
{
	const char *ours = is_roots_alone(options) ? "subtype=ddbfs,nosuid,nodev" :
						     "subtype=ddbfs,nosuid,nodev,default_permissions";
	_cleanup_free_ char *source = NULL;
	_cleanup_free_ char *text = NULL;
	bool failed = fuse_opt_add_arg(args, "ddbfs") != 0;

	if (asprintf(&source, "fsname=%s", options->source) < 0) {
		source = NULL;
		return -ENOMEM;
	}
	failed = failed || fuse_opt_add_opt(&text, ours) != 0 ||
		 fuse_opt_add_opt_escaped(&text, source) != 0 ||
		 (options->fuse_options && options->fuse_options[0] &&
		  fuse_opt_add_opt(&text, options->fuse_options) != 0) ||
		 fuse_opt_add_arg(args, "-o") != 0 || fuse_opt_add_arg(args, text) != 0 ||
		 (options->debug && fuse_opt_add_arg(args, "-d") != 0);
	return failed ? -ENOMEM : 0;
}

/* ---- unmounting ------------------------------------------------------------------------------- */

/* As an ordinary user: by the helper that may. */
static int run_fusermount(const char *mount_point, bool lazy)
{
	const char *const arguments[] = { "fusermount3",      "-u",	   "-q",
					  lazy ? "-z" : "--", mount_point, NULL };
	int status;
	pid_t pid;
	int result = posix_spawnp(&pid, arguments[0], NULL, NULL, (char *const *)arguments, environ);

	if (result)
		return -result;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

static int unmount_now(const char *mount_point, bool lazy)
{
	if (umount2(mount_point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	return errno == EPERM ? run_fusermount(mount_point, lazy) : -errno;
}

/* What the writeback cache holds, while requests are still served. */
static void flush_kernel(const char *mount_point)
{
	_cleanup_close_ int fd = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		syncfs(fd);
}

/* Told to stop. Whoever still uses a busy mount is given a moment, then cut off. */
static void unmount(struct fs *fs)
{
	const char *mount_point = fs->options->mount_point;
	struct pollfd ended = { .fd = loop_end_fd(fs->loop), .events = POLLIN };

	fs->unmounted = unmount_now(mount_point, false) == 0;
	if (fs->unmounted)
		return;
	if (fs->options->writeback)
		flush_kernel(mount_point);
	fs->unmounted = unmount_now(mount_point, true) == 0;
	if (fs->unmounted)
		poll(&ended, 1, LINGER_MS);
}

/*
 * Once it is unmounted, the mount point may be another's: libfuse, which
 * unmounts by path unless the device is broken, is given a broken one. That
 * also cuts off whoever is left after a lazy unmount.
 */
static void sever(struct fs *fs)
{
	int ends[2];

	if (!fs->unmounted || pipe2(ends, O_CLOEXEC) != 0)
		return;
	close(ends[0]);
	dup3(ends[1], fuse_session_fd(fs->session), O_CLOEXEC);
	close(ends[1]);
}

/* ---- running ------------------------------------------------------------------------------------ */

/*
 * The first answer of the mount, INIT done. Then opens a file: the kernel gives
 * up OPEN, and with it the RELEASE of every file that is created, only when it
 * has been answered ENOSYS once.
 */
static int wait_for_mount(struct fs *fs)
{
	_cleanup_free_ char *path = NULL;
	struct statvfs st;

	if (statvfs(fs->options->mount_point, &st) != 0)
		return -errno;
	if (asprintf(&path, "%s/" CONTROL_DIRECTORY "/" CONTROL_FILE, fs->options->mount_point) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ahead_raise(fd);
	return 0;
}

static void wait_for_end(struct fs *fs, int signal_fd)
{
	struct pollfd polled[2] = { { .fd = loop_end_fd(fs->loop), .events = POLLIN },
				    { .fd = signal_fd, .events = POLLIN } };

	while (poll(polled, 2, -1) < 0 && errno == EINTR)
		continue;
	if (!(polled[0].revents & POLLIN))
		unmount(fs);
}

static int serve(struct fs *fs, int signal_fd)
{
	bool sweep = fs->options->sweeper && !has_option(fs->options->fuse_options, "ro");
	int result = loop_start(fs->loop);

	if (result) {
		notify_stop(fs->notifier);
		return result;
	}
	if (sweep)
		result = lifecycle_sweeper_start(fs->lifecycle);
	if (result == 0 && sweep && fs->options->scrub)
		result = lifecycle_scrub_start(fs->lifecycle);
	if (result == 0)
		result = wait_for_mount(fs);
	if (result == 0) {
		if (fs->events->mounted)
			fs->events->mounted(fs->events->data);
		wait_for_end(fs, signal_fd);
	} else {
		unmount(fs);
	}
	lifecycle_scrub_stop(fs->lifecycle);
	if (sweep)
		lifecycle_sweeper_stop(fs->lifecycle);
	notify_stop(fs->notifier);
	loop_stop(fs->loop);
	return result;
}

static int start_control(struct fs *fs)
{
	struct control_host host = {
		.settle = settle,
		.stats = mount_stats,
		.data = fs,
		.store_path = fs->options->source,
		.mount_point = fs->options->mount_point,
		.read_only = has_option(fs->options->fuse_options, "ro"),
	};

	return control_open(fs->namei, &host, &fs->control);
}

/* With the session mounted. */
static int run_mounted(struct fs *fs, int signal_fd)
{
	struct loop *l = NULL;
	int result = fuse_session_custom_io(fs->session, &session_io, fuse_session_fd(fs->session));

	if (result == 0)
		result = loop_new(fs->session, fs->options->busy_poll, &l);
	fs->loop = l;
	if (result == 0)
		result = notify_start(fs->session, fs->nodes, &fs->notifier);
	if (result == 0)
		result = start_control(fs);
	if (result == 0)
		result = serve(fs, signal_fd);
	else if (fs->notifier)
		notify_stop(fs->notifier);
	return result;
}

static int run_session(struct fs *fs, int signal_fd)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int result = make_arguments(fs->options, &args);

	if (result == 0) {
		fs->session = fuse_session_new(&args, &session_ops, sizeof(session_ops), fs);
		result = fs->session ? 0 : -EINVAL;
	}
	fuse_opt_free_args(&args);
	if (result)
		return result;
	errno = 0;
	if (fuse_session_mount(fs->session, fs->options->mount_point) == 0) {
		result = run_mounted(fs, signal_fd);
		sever(fs);
		fuse_session_unmount(fs->session);
	} else {
		result = errno ? -errno : -EIO;
	}
	fuse_session_destroy(fs->session);
	return result;
}

/* ---- opening and closing ---------------------------------------------------------------------------- */

static void on_damaged(void *data, const char *line)
{
	_cleanup_free_ char *text = NULL;
	struct fs *fs = data;

	if (fs->events->log && asprintf(&text, "damaged: %s; see 'ddbfs status'", line) >= 0)
		fs->events->log(fs->events->data, text);
}

static int open_layers(struct fs *fs)
{
	struct lifecycle_hooks hooks = {
		.changed = on_changed, .busy = is_busy, .damaged = on_damaged, .data = fs
	};
	int result = node_table_new(&fs->nodes);

	if (result == 0)
		result = actor_cache_new(&fs->actors);
	if (result == 0)
		result = lifecycle_open(fs->store, &hooks, &fs->lifecycle);
	if (result == 0)
		result = namei_open(fs->lifecycle, &fs->namei);
	fs->locator = (struct file_locator){ node_locate, fs->nodes };
	return result;
}

static void close_layers(struct fs *fs)
{
	control_close(fs->control);
	namei_close(fs->namei);
	lifecycle_close(fs->lifecycle);
	notify_free(fs->notifier);
	loop_free(fs->loop);
	actor_cache_free(fs->actors);
	node_table_free(fs->nodes);
}

/* The store stopped writing while it was mounted: what was not synced may be lost, whatever the unmount said. */
static int store_result(struct store *store)
{
	struct store_status status;

	store_status(store, &status);
	return status.error;
}

/* They were obeyed; let loose on the caller, they would end him before he closes the store. */
static void drain_signals(int signal_fd)
{
	struct signalfd_siginfo info;

	while (signal_fd >= 0 && read(signal_fd, &info, sizeof(info)) > 0)
		continue;
}

int fs_run(struct store *store, const struct fs_options *options, const struct fs_events *events)
{
	struct fs fs = {
		.options = options,
		.events = events,
		.store = store,
		.uid = geteuid(),
		.gid = getegid(),
		.mounted_ns = clock_now_ns(store_clock(store)),
		.failure_told = ATOMIC_FLAG_INIT,
	};
	sigset_t stop, before;
	int result;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stop, &before);
	_cleanup_close_ int signal_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	result = signal_fd < 0 ? -errno : open_layers(&fs);
	if (result == 0)
		result = run_session(&fs, signal_fd);
	close_layers(&fs);
	drain_signals(signal_fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result ? result : store_result(store);
}
