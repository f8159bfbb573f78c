/*
 * sweeper.c - the thread that sleeps until something is due.
 *
 * It wakes for the next row of EXP, for the end of an idle batch, and when a
 * change makes something due sooner than it had planned; with nothing waiting it
 * sleeps without end. The work itself is lifecycle_sweep's, in passes small
 * enough to be stopped between.
 */
#include <time.h>

#include "lifecycle/internal.h"

#define SWEEP_BUDGET 1000
#define SLEEP_MAX_NS HOUR_NS /* a suspended machine, or a set clock, is noticed by then */
#define PAUSED_AGAIN_NS (10 * MINUTE_NS)
#define FAILED_AGAIN_NS MINUTE_NS

int sweeper_init(struct sweeper *s)
{
	pthread_condattr_t attributes;
	int result;

	pthread_mutex_init(&s->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	result = pthread_cond_init(&s->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	return -result;
}

void sweeper_release(struct sweeper *s)
{
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->mutex);
}

void sweeper_expect(struct lifecycle *l, int64_t due_ns)
{
	struct sweeper *s = &l->sweeper;

	pthread_mutex_lock(&s->mutex);
	if (s->running && due_ns < s->next_ns) {
		s->kicked = true;
		s->next_ns = due_ns;
		pthread_cond_signal(&s->wake);
	}
	pthread_mutex_unlock(&s->mutex);
}

/* Everything that is to be done now. Returns how long to sleep after it. */
static int64_t sweeper_work(struct lifecycle *l)
{
	struct sweep_result swept = { 0 };
	int64_t boot_next_ns, due_in_ns, sleep_ns = ITEM_FOREVER;
	int result;

	lifecycle_lock_background(l);
	batch_close_idle(l, false, &boot_next_ns);
	lifecycle_unlock(l);
	if (boot_next_ns != ITEM_FOREVER)
		sleep_ns = boot_next_ns - clock_boot_ns(store_clock(l->store));
	result = lifecycle_sweep(l, SWEEP_BUDGET, &swept);
	if (result)
		return util_min(sleep_ns, FAILED_AGAIN_NS);
	if (swept.more)
		return 0;
	if (swept.paused)
		return util_min(sleep_ns, PAUSED_AGAIN_NS);
	if (swept.next_due_ns != ITEM_FOREVER) {
		due_in_ns = util_min(swept.next_due_ns - lifecycle_now_ns(l), SLEEP_MAX_NS);
		sleep_ns = util_min(sleep_ns, due_in_ns);
	}
	return util_max(sleep_ns, INT64_C(0));
}

/* Mutex held. */
static void sweeper_sleep(struct sweeper *s, int64_t sleep_ns)
{
	struct timespec until;
	int64_t ns;

	if (sleep_ns == ITEM_FOREVER) {
		while (!s->stop && !s->kicked)
			pthread_cond_wait(&s->wake, &s->mutex);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	/* Never quite at once: a time that is just past must not make a busy loop. */
	ns = until.tv_nsec + util_max(sleep_ns, INT64_C(1000000));
	until.tv_sec += ns / CLOCK_SECOND_NS;
	until.tv_nsec = ns % CLOCK_SECOND_NS;
	while (!s->stop && !s->kicked)
		if (pthread_cond_timedwait(&s->wake, &s->mutex, &until) == ETIMEDOUT)
			return;
}

static void *sweeper_main(void *data)
{
	struct lifecycle *l = data;
	struct sweeper *s = &l->sweeper;
	int64_t sleep_ns;

	pthread_mutex_lock(&s->mutex);
	while (!s->stop) {
		/* What comes up while it works is looked at again. */
		s->kicked = false;
		s->next_ns = ITEM_FOREVER;
		pthread_mutex_unlock(&s->mutex);
		sleep_ns = sweeper_work(l);
		pthread_mutex_lock(&s->mutex);
		if (sleep_ns != ITEM_FOREVER)
			s->next_ns = util_min(s->next_ns, time_add(lifecycle_now_ns(l), sleep_ns));
		sweeper_sleep(s, sleep_ns);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

int lifecycle_sweeper_start(struct lifecycle *l)
{
	struct sweeper *s = &l->sweeper;
	int result;

	s->stop = false;
	s->next_ns = ITEM_FOREVER;
	s->running = true;
	result = pthread_create(&s->thread, NULL, sweeper_main, l);
	if (result)
		s->running = false;
	return -result;
}

void lifecycle_sweeper_stop(struct lifecycle *l)
{
	struct sweeper *s = &l->sweeper;

	if (!s->running)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
	pthread_join(s->thread, NULL);
	s->running = false;
}
