#include "tools/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/child.h"
#include "tools/interrupt.h"
#include "tools/print.h"

#define KILLED_MS 1000
#define ENDING_MS 10
#define ASKS 'a'
#define BEAT 'b'

struct watch {
	const struct arguments *arguments;
	pid_t child;
	int beats; /* a pipe from the child; -1 when its end is closed: the child is ending, or has ended */
	int interrupt;
	unsigned signals;
	int64_t due_ms; /* when to give up; INT64_MAX: never */
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The path that was given, if one was; undo takes numbers too. */
static char *about(const struct arguments *a)
{
	for (unsigned i = 0; i < a->count; i++)
		if (a->operands[i][strspn(a->operands[i], "0123456789")])
			return print_quoted(a->operands[i]);
	return print_format("the working directory");
}

/* The child is told to end; one that cannot is init's. */
static void __attribute__((noreturn)) give_up(const struct watch *w)
{
	_cleanup_free_ char *quoted = about(w->arguments);

	kill(w->child, SIGKILL);
	child_ends(w->child, KILLED_MS, NULL);
	if (w->signals)
		_exit(cmd_fail(w->arguments, EXIT_INTERRUPTED,
			       "%s: interrupted, without an answer of the daemon: what it does for this stops between two steps; 'ddbfs status' says whether it answers",
			       quoted));
	_exit(cmd_fail(w->arguments, EXIT_FAILED,
		       "%s: the daemon does not answer within %d s: try again later, or give it up with 'ddbfs umount --force-unmount'",
		       quoted, WATCH_FIRST_SECONDS));
}

/* Ends as the child ended, also by a signal: a shell tells the two apart. */
static void __attribute__((noreturn)) end_alike(int status)
{
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
	ssize_t size = read(w->beats, bytes, sizeof(bytes));

	if (size == 0) {
		close(w->beats);
		w->beats = -1;
	}
	if (size <= 0 || w->signals > 1)
		return;
	w->due_ms = w->signals		    ? now_ms() + WATCH_GRACE_SECONDS * 1000 :
		    bytes[size - 1] == BEAT ? INT64_MAX :
					      now_ms() + WATCH_FIRST_SECONDS * 1000;
}

/* Looks before it gives up: who was stopped by ^Z finds the time over and the beats there. */
static void __attribute__((noreturn)) watch(struct watch *w)
{
	int status;

	w->due_ms = now_ms() + WATCH_FIRST_SECONDS * 1000;
	for (;;) {
		struct pollfd p[] = { { .fd = w->beats, .events = POLLIN },
				      { .fd = w->interrupt, .events = POLLIN } };
		int64_t left = w->due_ms == INT64_MAX ? INT_MAX :
							util_max(w->due_ms - now_ms(), (int64_t)0);
		int ready;

		/* Its files are closed one after the other, and one of them may be a daemon's that hangs. */
		if (w->beats < 0 && child_ends(w->child, 0, &status))
			end_alike(status);
		ready = poll(p, ARRAY_SIZE(p),
			     (int)(w->beats < 0 ? util_min(left, (int64_t)ENDING_MS) : left));
		if (ready > 0 && p[0].revents)
			take_beats(w);
		if (ready > 0 && p[1].revents)
			pass_on(w);
		if (ready == 0 && !left)
			give_up(w);
	}
}

/* Without its watcher nobody would end it: it ends as if asked to. */
static void follow(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		raise(SIGTERM);
}

void watch_begin(struct arguments *a)
{
	struct watch w = { .arguments = a };
	pid_t parent = getpid();
	int pipes[2];

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
	a->beat = pipes[1];
}

static void tell(const struct arguments *a, char what)
{
	/* A full pipe says as much as one byte more. */
	if (a->beat >= 0 && write(a->beat, &what, 1) < 0)
		return;
}

void watch_ask(const struct arguments *a)
{
	tell(a, ASKS);
}

void watch_beat(const struct arguments *a)
{
	tell(a, BEAT);
}
