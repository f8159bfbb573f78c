#include "tools/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

static void signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
}

void interrupt_block(void)
{
	sigset_t set;

	signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int interrupt_open(void)
{
	sigset_t set;
	int fd;

	interrupt_block();
	signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

bool interrupt_seen(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

void interrupt_unblock(void)
{
	sigset_t set;

	signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
