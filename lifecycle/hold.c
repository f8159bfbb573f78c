/*
 * hold.c - how long steps of long work hold the tree's lock.
 *
 * Others wait for the time on the wall. Where more threads want to run than there
 * are processors, most of that is the scheduler's: a step of 0.3 ms was seen to hold
 * the lock for 290 ms, of which its thread had waited all the rest for a processor.
 * The kernel counts such waits (schedstat, in proc(5)); without them what is left is
 * the step's own: its work, its disk, and whom it waited for.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lifecycle/internal.h"

#define HOLD_NS 2000000 /* no new row after so long */

/* Nothing that is kept depends on it, so it is not the injectable clock. */
static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

/* What the thread that opened `fd` waited for a processor so far, or negative errno. */
static int64_t read_waited(int fd)
{
	char text[96];
	int64_t waited_ns;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return sscanf(text, "%*d %" SCNd64, &waited_ns) == 1 && waited_ns >= 0 ? waited_ns : -EINVAL;
}

/* Of the calling thread; 0 where the kernel does not tell. */
static int64_t waited_for_processor(struct hold *h)
{
	int64_t waited_ns = -ENOENT;

	if (h->schedstat >= 0 && pthread_equal(h->thread, pthread_self()))
		waited_ns = read_waited(h->schedstat);
	/* Another thread, or one that bears the name of one that ended. */
	if (waited_ns < 0) {
		util_close_p(&h->schedstat);
		h->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		h->thread = pthread_self();
		if (h->schedstat >= 0)
			waited_ns = read_waited(h->schedstat);
	}
	return util_max(waited_ns, INT64_C(0));
}

void hold_init(struct hold *h)
{
	*h = (struct hold){ .schedstat = -1 };
}

void hold_release(struct hold *h)
{
	util_close_p(&h->schedstat);
}

void hold_begin(struct hold *h)
{
	h->waited_ns = waited_for_processor(h);
	h->since_ns = monotonic_ns();
}

void hold_end(struct hold *h)
{
	int64_t held_ns, own_ns;

	if (!h->since_ns)
		return;
	held_ns = monotonic_ns() - h->since_ns;
	own_ns = util_max(held_ns - (waited_for_processor(h) - h->waited_ns), INT64_C(0));
	h->since_ns = 0;
	h->seen.steps++;
	h->seen.longest_ns = util_max(h->seen.longest_ns, held_ns);
	h->seen.longest_own_ns = util_max(h->seen.longest_own_ns, own_ns);
	h->seen.long_steps += own_ns > LIFECYCLE_HOLD_LONG_NS;
}

bool hold_is_over(const struct hold *h)
{
	return h->since_ns && monotonic_ns() - h->since_ns >= HOLD_NS;
}
