/*
 * guard.c - the handler behind guard.h. The second and last mutable static
 * state in the store: signal dispositions belong to the process.
 */
#include "store/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static _Thread_local sigjmp_buf *volatile guard_jump;
static _Thread_local volatile bool guard_is_fatal;
static struct sigaction guard_previous[2]; /* SIGBUS, SIGSEGV; written once, before the handler can run */
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;

static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *previous = &guard_previous[number == SIGSEGV];

	if (previous->sa_flags & SA_SIGINFO) {
		previous->sa_sigaction(number, info, context);
	} else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
		previous->sa_handler(number);
	} else {
		/* The instruction is tried again and then meets the default action. */
		signal(number, SIG_DFL);
	}
}

static void handle(int number, siginfo_t *info, void *context)
{
	static const char words[] = "ddbfs: the database is damaged or its disk failed; stopping\n";

	if (guard_jump)
		siglongjmp(*guard_jump, 1);
	if (guard_is_fatal) {
		(void)!write(STDERR_FILENO, words, sizeof(words) - 1);
		_exit(1);
	}
	pass_on(number, info, context);
}

static void install(void)
{
	/* The handler leaves by a jump that restores no mask, so the signals must not be blocked while it runs. */
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, &guard_previous[0]);
	sigaction(SIGSEGV, &action, &guard_previous[1]);
}

void guard_install(void)
{
	pthread_once(&guard_once, install);
}

void guard_enter(sigjmp_buf *jump)
{
	guard_jump = jump;
}

void guard_leave(void)
{
	guard_jump = NULL;
}

void guard_fatal(bool fatal)
{
	guard_is_fatal = fatal;
}
