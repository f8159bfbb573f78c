/*
 * clock.h - where the time comes from, so that tests can supply it.
 *
 * `realtime_ns` is the wall clock, nanoseconds since 1970. `boottime_ns` runs
 * steadily, also through suspend, from an arbitrary start; it bears out, or
 * does not, a jump of the wall clock. Neither blocks.
 */
#ifndef STORE_CLOCK_H
#define STORE_CLOCK_H

#include <stdint.h>

#define CLOCK_SECOND_NS INT64_C(1000000000)

struct clock {
	int64_t (*realtime_ns)(void *data);
	int64_t (*boottime_ns)(void *data);
	void *data;
};

/* The machine's own clocks. Static, never freed. */
const struct clock *clock_system(void);

static inline int64_t clock_now_ns(const struct clock *c)
{
	return c->realtime_ns(c->data);
}

static inline int64_t clock_boot_ns(const struct clock *c)
{
	return c->boottime_ns(c->data);
}

#endif
