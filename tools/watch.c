#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/interrupt.h"
#include "tools/print.h"

#define KILLED_MS 1000
#define REAPED_MS 10

struct watch {
	const struct arguments *arguments;
	const char *path;
	pid_t child;
	int beats; /* a pipe from the child; closed when it has ended */
	int interrupt;
	unsigned signals;
	bool answered;
	int64_t due_ms; /* when to give up; INT64_MAX: never */
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The child is told to end; one that cannot is init's. */
static void __attribute__((noreturn)) give_up(const struct watch *w)
{
	struct pollfd p = { .fd = w->beats };
	_cleanup_free_ char *quoted = print_quoted(w->path ? w->path : "the working directory");

	kill(w->child, SIGKILL);
	poll(&p, 1, KILLED_MS);
	waitpid(w->child, NULL, WNOHANG);
	if (w->signals)
		_exit(cmd_fail(w->arguments, EXIT_INTERRUPTED,
			       "%s: interrupted, without an answer of the daemon: what it does for this stops between two steps; 'ddbfs status' says whether it answers",
			       quoted));
	_exit(cmd_fail(w->arguments, EXIT_FAILED,
		       "%s: the daemon does not answer within %d s: try again later, or give it up with 'ddbfs umount --force-unmount'",
		       quoted, WATCH_FIRST_SECONDS));
}

/* Its files are closed one after the other, and closing one of a daemon that hangs may take for ever. */
static bool is_reaped(const struct watch *w, int *ret_status)
{
	for (int ms = 0; ms < KILLED_MS; ms += REAPED_MS) {
		if (waitpid(w->child, ret_status, WNOHANG) > 0)
			return true;
		poll(NULL, 0, REAPED_MS);
	}
	return false;
}

/* Ends as the child ended, also by a signal: a shell tells the two apart. */
static void __attribute__((noreturn)) end_alike(const struct watch *w)
{
	int status = 0;

	if (w->signals && !is_reaped(w, &status))
		give_up(w);
	while (!w->signals && waitpid(w->child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	interrupt_unblock();
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	_exit(EXIT_FAILED);
}

/* From a terminal the child has it too; that does no harm. A second one is impatience. */
static void pass_on(struct watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->interrupt, &info, sizeof(info)) != sizeof(info))
		return;
	kill(w->child, (int)info.ssi_signo);
	w->due_ms = w->signals++ ? now_ms() : util_min(w->due_ms, now_ms() + WATCH_GRACE_SECONDS * 1000);
}

static void take_beats(struct watch *w)
{
	char bytes[256];

	if (read(w->beats, bytes, sizeof(bytes)) <= 0)
		return;
	w->answered = true;
	if (w->signals < 2)
		w->due_ms = w->signals ? now_ms() + WATCH_GRACE_SECONDS * 1000 : INT64_MAX;
}

static void __attribute__((noreturn)) watch(struct watch *w)
{
	w->due_ms = now_ms() + WATCH_FIRST_SECONDS * 1000;
	for (;;) {
		struct pollfd p[] = { { .fd = w->beats, .events = POLLIN },
				      { .fd = w->interrupt, .events = POLLIN } };
		int64_t left = w->due_ms == INT64_MAX ? -1 : util_max(w->due_ms - now_ms(), INT64_C(0));

		if (!left)
			give_up(w);
		if (poll(p, ARRAY_SIZE(p), (int)left) < 0)
			continue;
		if (p[0].revents & POLLIN)
			take_beats(w);
		else if (p[0].revents)
			end_alike(w);
		if (p[1].revents)
			pass_on(w);
	}
}

/* Without its watcher nobody would end it: it ends as if asked to. */
static void follow(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		raise(SIGTERM);
}

void watch_begin(const struct arguments *a, const char *path, int *ret_beat)
{
	struct watch w = { .arguments = a, .path = path };
	pid_t parent = getpid();
	int pipes[2];

	*ret_beat = -1;
	fflush(NULL);
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	w.beats = pipes[0];
	w.interrupt = interrupt_open();
	w.child = w.interrupt < 0 ? -1 : fork();
	if (w.child > 0) {
		close(pipes[1]);
		watch(&w);
	}
	interrupt_unblock();
	close(pipes[0]);
	if (w.interrupt >= 0)
		close(w.interrupt);
	if (w.child < 0) {
		close(pipes[1]);
		return;
	}
	follow(parent);
	*ret_beat = pipes[1];
}

void watch_beat(int beat)
{
	/* A full pipe says as much as one byte more. */
	if (beat >= 0 && write(beat, "", 1) < 0)
		return;
}
