#include "tools/daemon.h"
#include "tools/credentials.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "fs/fs.h"
#include "store/util.h"
#include "tools/child.h"
#include "tools/interrupt.h"
#include "tools/mounts.h"
#include "tools/print.h"
#include "tools/probe.h"
#include "tools/progress.h"
#include "tools/unmounting.h"

#define WAIT_MS 200
#define STOP_MS 5000

/* What the daemon tells its parent, once: that it is mounted, or why it is not. */
struct report {
	int code;
	char words[WORDS_MAX];
};

struct daemon {
	const struct daemon_plan *plan;
	int pipe; /* to the parent; -1: told, or in the foreground */
	int errors; /* a file in memory that catches what libraries say on standard error; -1: none */
	bool mounted;
	struct report report;
};

/* ---- in the daemon ----------------------------------------------------------- */

static void tell(struct daemon *d)
{
	const struct report report = d->report;

	if (d->pipe < 0)
		return;
	if (write(d->pipe, &report, sizeof(report)) < 0)
		log_line(&d->plan->log, "the process that started this one is gone");
	close(d->pipe);
	d->pipe = -1;
}

static void silence(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	close(null);
}

static void on_mounted(void *data)
{
	struct daemon *d = data;

	d->mounted = true;
	d->report.code = EXIT_DONE;
	if (d->errors >= 0) {
		silence();
		close(d->errors);
		d->errors = -1;
	}
	log_line(&d->plan->log, "mounted %s on %s", d->plan->store, d->plan->mount_point);
	tell(d);
}

static void on_log(void *data, const char *text)
{
	const struct daemon *d = data;

	log_line(&d->plan->log, "%s", text);
}

/* What libfuse and fusermount3 wrote when they could not mount, as one line; else the errno's words. */
static void reason(const struct daemon *d, int result, char *buffer, size_t size)
{
	ssize_t got = d->errors < 0 ? 0 : pread(d->errors, buffer, size - 1, 0);

	if (got <= 0) {
		snprintf(buffer, size, "%s", strerror(-result));
		return;
	}
	while (got > 0 && buffer[got - 1] == '\n')
		got--;
	buffer[got] = '\0';
	for (char *c = buffer; *c; c++)
		if (*c == '\n')
			*c = ';';
}

/* What keeps a store from being written need not keep it from being read, if no more is asked for. */
static int open_for_reading(struct daemon *d, struct store_open_options *options,
			    struct store_open_report *report, struct store **ret_store)
{
	struct store_open_report why = *report, unused;
	int result;

	options->read_only = true;
	result = store_open(d->plan->store, options, &unused, ret_store);
	if (result)
		return STORE_DAMAGED;
	snprintf(report->text, sizeof(report->text), "opened for reading only, as it is: %.300s",
		 why.text);
	return 0;
}

static int open_store(struct daemon *d, struct store **ret_store)
{
	struct store_open_options open_options = { .credentials = d->plan->credentials->store };
	struct store_open_report report = { 0 };
	int result = store_open(d->plan->store, &open_options, &report, ret_store);

	if (result == STORE_DAMAGED && d->plan->options->read_only)
		result = open_for_reading(d, &open_options, &report, ret_store);
	credentials_release(d->plan->credentials);
	if (!result) {
		/* Good to know, and no failure of this one. */
		snprintf(d->report.words, WORDS_MAX, "%s", report.text);
		if (report.text[0])
			log_line(&d->plan->log, "%s", report.text);
		return 0;
	}
	d->report.code = words_open(d->plan->store, result, &report, d->report.words);
	return result;
}

static void close_store(struct daemon *d, struct store *s)
{
	_cleanup_free_ char *quoted = print_quoted(d->plan->store);
	int result = store_close(s);

	if (!result)
		return;
	snprintf(d->report.words, WORDS_MAX,
		 "%s: not everything is in its place on disk: %s; check the disk, then mount again",
		 quoted, strerror(-result));
	log_line(&d->plan->log, "%s", d->report.words);
	d->report.code = EXIT_FAILED;
}

static void run(struct daemon *d, struct store *s)
{
	const struct mount_options *o = d->plan->options;
	const struct fs_options fs = {
		.mount_point = d->plan->mount_point,
		.source = d->plan->store,
		.fuse_options = o->kernel,
		.writeback = o->writeback,
		.acl = o->acl,
		.busy_poll = o->poll,
		.debug = o->debug,
		.sweeper = !o->read_only,
		.scrub = !o->no_scrub,
	};
	const struct fs_events events = { on_mounted, on_log, d };
	_cleanup_free_ char *quoted = print_quoted(fs.mount_point);
	int result = fs_run(s, &fs, &events);
	char why[WORDS_MAX / 2];

	if (!result)
		return;
	reason(d, result, why, sizeof(why));
	if (d->mounted) {
		d->report.code = EXIT_FAILED;
		snprintf(d->report.words, WORDS_MAX, "%s: stopped: %s", quoted, why);
		log_line(&d->plan->log, "%s", d->report.words);
	} else {
		d->report.code = EXIT_MOUNT_POINT;
		snprintf(d->report.words, WORDS_MAX, "%s: cannot mount there: %s", quoted, why);
	}
}

/* From an unopened store to an unmounted one. The process's exit code. */
static int serve(struct daemon *d)
{
	struct store_status status;
	struct store *s;

	credentials_protect();
	/* The store's threads inherit this: fs_run alone is to see the signals, and no one while the store is closed. */
	interrupt_block();
	openlog("ddbfs", LOG_PID, LOG_DAEMON);
	if (open_store(d, &s)) {
		tell(d);
		return d->report.code;
	}
	store_status(s, &status);
	if (!status.memory_locked)
		log_line(&d->plan->log, "keys could reach swap: the limit of locked memory is too low");
	run(d, s);
	close_store(d, s);
	if (d->mounted)
		log_line(&d->plan->log, "unmounted %s", d->plan->mount_point);
	tell(d);
	return d->report.code;
}

/* A pipe or terminal that the caller left open would stay open as long as the mount does. */
static void close_others(const struct daemon *d)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != d->pipe && fd != d->plan->log.fd && fd != dirfd(directory))
			close(fd);
	}
	if (directory)
		closedir(directory);
}

/* Leaves the caller's terminal, session, directory and descriptors. */
static void detach(struct daemon *d)
{
	close_others(d);
	d->errors = memfd_create("errors", MFD_CLOEXEC);
	setsid();
	if (chdir("/") < 0)
		log_line(&d->plan->log, "/: %s", strerror(errno));
	silence();
	if (d->errors >= 0)
		dup2(d->errors, STDERR_FILENO);
}

/* ---- in the parent ------------------------------------------------------------- */

/* The daemon says it is mounted; see for oneself, but do not hang with it. */
static int verify(const struct daemon_plan *plan, struct report *r)
{
	_cleanup_free_ char *quoted = print_quoted(plan->mount_point);
	struct mount m = { 0 };
	pid_t pid;
	enum probe probe = probe_mount(plan->mount_point, &pid);
	bool right = mounts_find(plan->mount_point, &m) == 1 && !strcmp(m.type, MOUNTS_TYPE);

	mount_release(&m);
	if (right && probe != PROBE_DEAD && probe != PROBE_HANGS)
		return EXIT_DONE;
	snprintf(r->words, WORDS_MAX, "%s: the mount does not answer: %s", quoted,
		 !right		     ? "something else is there" :
		 probe == PROBE_DEAD ? "its daemon died" :
				       "its daemon hangs");
	return EXIT_MOUNT_POINT;
}

/* The daemon ended without a word. */
static int died(pid_t pid, struct report *r)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		snprintf(r->words, WORDS_MAX,
			 "the daemon was ended by signal %d (%s) before it mounted anything",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(r->words, WORDS_MAX, "the daemon ended before it mounted anything");
	return EXIT_FAILED;
}

/* It sees SIGTERM once it has opened the store, which may take its time; what it does until then may end anywhere. */
static int stop(const struct daemon_plan *plan, pid_t pid, struct report *r)
{
	_cleanup_free_ char *quoted = print_quoted(plan->mount_point);
	struct mount m = { 0 };
	bool left;

	kill(pid, SIGTERM);
	if (!child_ends(pid, STOP_MS, NULL)) {
		kill(pid, SIGKILL);
		child_ends(pid, STOP_MS, NULL);
	}
	/* One that was killed leaves a dead mount, if it had come so far. */
	left = mounts_find(plan->mount_point, &m) == 1 && !strcmp(m.type, MOUNTS_TYPE) &&
	       !strcmp(m.source, plan->store);
	mount_release(&m);
	if (left && unmounting_detach(plan->mount_point, true) < 0)
		snprintf(r->words, WORDS_MAX,
			 "interrupted; a dead mount is left at %s, which 'ddbfs umount' cleans up",
			 quoted);
	else
		snprintf(r->words, WORDS_MAX, "interrupted; nothing is mounted");
	return EXIT_INTERRUPTED;
}

/* Waits for the report. */
static int await(const struct daemon_plan *plan, pid_t pid, int pipe, int interrupt, struct report *r)
{
	struct pollfd p = { .fd = pipe, .events = POLLIN };
	struct progress progress;
	bool stopped = false;

	progress_begin(&progress, "opening the store");
	while (poll(&p, 1, WAIT_MS) <= 0 && !(stopped = interrupt_seen(interrupt)))
		progress_tick(&progress);
	progress_clear(&progress);
	if (stopped)
		return stop(plan, pid, r);
	if (read(pipe, r, sizeof(*r)) != sizeof(*r))
		return died(pid, r);
	r->words[WORDS_MAX - 1] = '\0';
	return r->code == EXIT_DONE ? verify(plan, r) : r->code;
}

int daemon_start(const struct daemon_plan *plan, char ret_words[WORDS_MAX])
{
	struct daemon d = { .plan = plan, .errors = -1 };
	_cleanup_close_ int interrupt = interrupt_open();
	struct report r = { 0 };
	int pipes[2], code;
	pid_t pid;

	fflush(NULL);
	if (pipe2(pipes, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		snprintf(ret_words, WORDS_MAX, "cannot start the daemon: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (pid == 0) {
		d.pipe = pipes[1];
		detach(&d);
		_exit(serve(&d));
	}
	close(pipes[1]);
	code = await(plan, pid, pipes[0], interrupt, &r);
	close(pipes[0]);
	interrupt_unblock();
	memcpy(ret_words, r.words, WORDS_MAX);
	return code;
}

int daemon_foreground(const struct daemon_plan *plan, char ret_words[WORDS_MAX])
{
	struct daemon d = { .plan = plan, .pipe = -1, .errors = -1 };
	int code;

	if (chdir("/") < 0)
		return EXIT_FAILED;
	code = serve(&d);
	/* It may be asked for a passphrase next, where ^C must help. */
	interrupt_unblock();
	memcpy(ret_words, d.report.words, WORDS_MAX);
	return code;
}
