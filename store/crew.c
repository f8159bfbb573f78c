/*
 * crew.c - see crew.h.
 *
 * A job lies on its owner's stack. Helpers enter and leave it under the lock, so
 * once it is withdrawn and nobody is inside, nobody can see it any more.
 */
#include "store/crew.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "store/util.h"

#define HELPERS_MAX 3u
#define PIECES_MIN 4 /* below that, waking somebody takes longer */
#define LATE_NS \
	INT64_C(150000) /* several pieces: a helper that takes that long has lost its processor */
#define ALONE_MIN_NS INT64_C(50000000)
#define ALONE_MAX_NS INT64_C(5000000000)

struct job {
	void (*work)(void *data, size_t i);
	void *data;
	size_t count;
	_Atomic size_t next;
};

struct crew {
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t come; /* there is a job, or the end */
	pthread_cond_t left; /* a helper left the job */
	struct job *job; /* to be helped with */
	bool taken; /* somebody has a job: `job`, or one that is being finished */
	unsigned inside; /* helpers at the job */
	unsigned helpers; /* threads that run */
	int64_t alone_ns; /* how long jobs are done alone after helpers were late; 0 = they were not */
	int64_t alone_until_ns;
	bool started;
	bool stop;
	pthread_t threads[HELPERS_MAX];
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void work_on(struct job *job)
{
	size_t i;

	while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->count)
		job->work(job->data, i);
}

static void *help(void *data)
{
	struct crew *c = data;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		struct job *job = c->job;

		if (!job) {
			pthread_cond_wait(&c->come, &c->lock);
			continue;
		}
		c->inside++;
		pthread_mutex_unlock(&c->lock);
		work_on(job);
		pthread_mutex_lock(&c->lock);
		/* Nothing is left of it to begin with. */
		if (c->job == job)
			c->job = NULL;
		if (--c->inside == 0)
			pthread_cond_signal(&c->left);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Under the lock. As many helpers as there are processors besides the owner's; fewer where threads are short. */
static void start_helpers(struct crew *c)
{
	cpu_set_t set;
	unsigned wanted = 0;
	sigset_t all, old;

	c->started = true;
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		wanted = util_min((unsigned)CPU_COUNT(&set) - 1, HELPERS_MAX);
	/* Signals are for whoever runs the store. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	while (c->helpers < wanted && pthread_create(&c->threads[c->helpers], NULL, help, c) == 0) {
		(void)pthread_setname_np(c->threads[c->helpers], "seal");
		c->helpers++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Whether the helpers are at `job` now. */
static bool call_helpers(struct crew *c, struct job *job)
{
	bool called = false;

	pthread_mutex_lock(&c->lock);
	if (!c->started)
		start_helpers(c);
	if (c->helpers && !c->taken && (!c->alone_ns || now_ns() >= c->alone_until_ns)) {
		c->taken = called = true;
		c->job = job;
		if (c->helpers == 1)
			pthread_cond_signal(&c->come);
		else
			pthread_cond_broadcast(&c->come);
	}
	pthread_mutex_unlock(&c->lock);
	return called;
}

/* Under the lock. */
static void wait_for_helpers(struct crew *c)
{
	int64_t start_ns = now_ns(), end_ns;

	while (c->inside)
		pthread_cond_wait(&c->left, &c->lock);
	end_ns = now_ns();
	if (end_ns - start_ns < LATE_NS) {
		c->alone_ns = 0;
		return;
	}
	c->alone_ns = util_max(2 * c->alone_ns, ALONE_MIN_NS);
	c->alone_ns = util_min(c->alone_ns, ALONE_MAX_NS);
	c->alone_until_ns = end_ns + c->alone_ns;
}

static void dismiss_helpers(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	c->job = NULL;
	if (c->inside)
		wait_for_helpers(c);
	c->taken = false;
	pthread_mutex_unlock(&c->lock);
}

void crew_run(struct crew *c, void (*work)(void *data, size_t i), void *data, size_t count)
{
	struct job job = { .work = work, .data = data, .count = count };
	bool called = count >= PIECES_MIN && call_helpers(c, &job);

	work_on(&job);
	if (called)
		dismiss_helpers(c);
}

int crew_new(struct crew **ret_crew)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->come, NULL);
	pthread_cond_init(&c->left, NULL);
	*ret_crew = c;
	return 0;
}

void crew_free(struct crew *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->come);
	pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < c->helpers; i++)
		pthread_join(c->threads[i], NULL);
	pthread_cond_destroy(&c->come);
	pthread_cond_destroy(&c->left);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
