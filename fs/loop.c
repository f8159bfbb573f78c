/*
 * loop.c - leader and followers on one device, the busy poll, and the watcher.
 *
 * The lead is a state of the leading worker: WORKER_IDLE while it looks for a
 * request, WORKER_BUSY while it serves one, WORKER_FOLLOWING once the lead is
 * somebody else's. Only BUSY can be taken, by compare-and-swap, by the worker
 * itself (loop_yield) or by the watcher; a worker that comes back from a
 * request and cannot swap BUSY to IDLE has been relieved.
 */
#include "fs/loop.h"

#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "fs/spin.h"
#include "store/clock.h"
#include "store/util.h"

#define THREADS_MAX 64
#define THREADS_KEPT 2 /* idle ones */
#define IDLE_S 10 /* then surplus threads end */
#define NO_MEMORY_US 10000 /* until a request is asked for again */
#define WATCH_NS (CLOCK_SECOND_NS / 1000)
#define WATCH_IDLE 50 /* ticks without a request until the watcher sleeps */

enum worker_state {
	WORKER_FOLLOWING,
	WORKER_IDLE,
	WORKER_BUSY,
};

struct worker {
	struct loop *loop;
	struct fuse_buf buffer;
	_Atomic int state; /* enum worker_state */
	struct worker *next; /* under loop.lock */
	pthread_t thread;
};

struct loop {
	struct fuse_session *session;
	int fd;
	int stop_fd; /* wakes the leader in poll */
	int end_fd;
	pthread_key_t worker; /* of the calling thread */
	pthread_mutex_t lock; /* guards what follows, up to `ended` */
	pthread_cond_t follow; /* the lead is free, or the end */
	pthread_cond_t watch; /* something happens again */
	pthread_cond_t gone; /* a worker ended */
	struct worker *workers;
	unsigned threads;
	unsigned idle;
	bool led;
	_Atomic bool ended;
	_Atomic bool watching; /* the watcher ticks */
	_Atomic(struct worker *) leader; /* stale once it follows */
	_Atomic uint64_t requests;
	_Atomic uint64_t sleeps;
	_Atomic uint64_t takeovers;
	pthread_t watcher;
	bool watched; /* it was started */
	struct spin spin; /* the leader's own, handed on with the lead */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

/* ---- receiving -------------------------------------------------------------- */

/* fuse_session_receive_buf, tried for SPIN_NS. -EAGAIN if nothing came. */
static int receive_spinning(struct worker *w)
{
	struct loop *l = w->loop;
	int64_t start = now_ns();
	int64_t before = start;
	int result;

	if (!spin_allowed(&l->spin, start))
		return -EAGAIN;
	for (;;) {
		result = fuse_session_receive_buf(l->session, &w->buffer);
		if (result != -EAGAIN && result != -EINTR)
			break;
		int64_t now = now_ns();
		spin_looked(&l->spin, before, now);
		if (now - start > SPIN_NS || atomic_load_explicit(&l->ended, memory_order_relaxed))
			break;
		before = now;
	}
	spin_ended(&l->spin, result > 0);
	return result;
}

static void wake_watcher(struct loop *l)
{
	if (atomic_load_explicit(&l->watching, memory_order_relaxed))
		return;
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->watching, true);
	pthread_cond_signal(&l->watch);
	pthread_mutex_unlock(&l->lock);
}

/* Nothing yet, or no memory to take it: the mount goes on. */
static bool is_passing(int result)
{
	return result == -EAGAIN || result == -EINTR || result == -ENOMEM;
}

/* The next request into the worker's buffer: its size; 0 or negative: no more will come. */
static int receive(struct worker *w)
{
	struct loop *l = w->loop;
	struct pollfd polled[2] = { { .fd = l->fd, .events = POLLIN },
				    { .fd = l->stop_fd, .events = POLLIN } };
	int result = fuse_session_receive_buf(l->session, &w->buffer);

	if (result == -EAGAIN || result == -EINTR)
		result = receive_spinning(w);
	while (is_passing(result) && !atomic_load(&l->ended)) {
		if (result == -ENOMEM)
			usleep(NO_MEMORY_US);
		atomic_fetch_add_explicit(&l->sleeps, 1, memory_order_relaxed);
		poll(polled, 2, -1);
		result = fuse_session_receive_buf(l->session, &w->buffer);
		wake_watcher(l);
	}
	return atomic_load_explicit(&l->ended, memory_order_relaxed) ? 0 : result;
}

/* ---- workers ----------------------------------------------------------------- */

static void *worker_main(void *data);

/* With the lock held. */
static bool start_worker(struct loop *l)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->loop = l;
	if (l->threads >= THREADS_MAX || pthread_create(&w->thread, NULL, worker_main, w) != 0) {
		free(w);
		return false;
	}
	pthread_detach(w->thread);
	w->next = l->workers;
	l->workers = w;
	l->threads++;
	return true;
}

/* With the lock held: relieves `w` if it is busy and another can lead. */
static bool pass_lead(struct loop *l, struct worker *w)
{
	int busy = WORKER_BUSY;

	if (l->idle == 0 && !start_worker(l))
		return false;
	if (!atomic_compare_exchange_strong(&w->state, &busy, WORKER_FOLLOWING))
		return false;
	l->led = false;
	pthread_cond_signal(&l->follow);
	return true;
}

void loop_yield(struct loop *l)
{
	struct worker *w = pthread_getspecific(l->worker);

	if (!w || atomic_load(&w->state) != WORKER_BUSY)
		return;
	pthread_mutex_lock(&l->lock);
	pass_lead(l, w);
	pthread_mutex_unlock(&l->lock);
}

bool loop_in_request(const struct loop *l)
{
	return pthread_getspecific(l->worker) != NULL;
}

static void end(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->ended, true);
	pthread_cond_broadcast(&l->follow);
	pthread_cond_broadcast(&l->watch);
	pthread_mutex_unlock(&l->lock);
	eventfd_write(l->stop_fd, 1);
	eventfd_write(l->end_fd, 1);
}

/* Serves requests until the lead is gone. */
static void lead(struct worker *w)
{
	struct loop *l = w->loop;

	atomic_store(&l->leader, w);
	atomic_store(&w->state, WORKER_IDLE);
	for (;;) {
		int busy = WORKER_BUSY;

		if (receive(w) <= 0) {
			end(l);
			return;
		}
		atomic_store(&w->state, WORKER_BUSY);
		atomic_fetch_add_explicit(&l->requests, 1, memory_order_relaxed);
		fuse_session_process_buf(l->session, &w->buffer);
		if (!atomic_compare_exchange_strong(&w->state, &busy, WORKER_IDLE))
			return;
	}
}

enum turn {
	TURN_LEAD,
	TURN_WAIT,
	TURN_END,
};

/* With the lock held: waits for the lead, for IDLE_S at the most. */
static enum turn follow(struct loop *l)
{
	struct timespec until;
	int result = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE_S;
	while (l->led && !atomic_load(&l->ended) && result != ETIMEDOUT) {
		l->idle++;
		result = pthread_cond_timedwait(&l->follow, &l->lock, &until);
		l->idle--;
	}
	if (atomic_load(&l->ended))
		return TURN_END;
	if (l->led)
		return l->threads > THREADS_KEPT ? TURN_END : TURN_WAIT;
	l->led = true;
	return TURN_LEAD;
}

static void worker_end(struct worker *w)
{
	struct loop *l = w->loop;
	struct worker **p = &l->workers;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
	if (atomic_load(&l->leader) == w)
		atomic_store(&l->leader, NULL);
	l->threads--;
	pthread_cond_broadcast(&l->gone);
	free(w->buffer.mem);
	free(w);
}

static void *worker_main(void *data)
{
	struct worker *w = data;
	struct loop *l = w->loop;
	enum turn turn;

	pthread_setspecific(l->worker, w);
	pthread_mutex_lock(&l->lock);
	while ((turn = follow(l)) != TURN_END) {
		if (turn == TURN_WAIT)
			continue;
		pthread_mutex_unlock(&l->lock);
		lead(w);
		pthread_mutex_lock(&l->lock);
	}
	worker_end(w);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- the watcher --------------------------------------------------------------- */

/* With the lock held, let go of while it sleeps. */
static void tick(struct loop *l)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += WATCH_NS;
	if (t.tv_nsec >= CLOCK_SECOND_NS) {
		t.tv_nsec -= CLOCK_SECOND_NS;
		t.tv_sec++;
	}
	pthread_cond_timedwait(&l->watch, &l->lock, &t);
}

/* With the lock held: relieves a leader that is still at the request it served a tick ago. */
static void relieve(struct loop *l)
{
	struct worker *w = atomic_load(&l->leader);

	if (w && atomic_load(&w->state) == WORKER_BUSY && pass_lead(l, w))
		atomic_fetch_add(&l->takeovers, 1);
}

static void *watcher_main(void *data)
{
	struct loop *l = data;
	uint64_t before = 0;
	unsigned still = 0;

	pthread_mutex_lock(&l->lock);
	while (!atomic_load(&l->ended)) {
		if (still >= WATCH_IDLE) {
			atomic_store(&l->watching, false);
			while (!atomic_load(&l->watching) && !atomic_load(&l->ended))
				pthread_cond_wait(&l->watch, &l->lock);
			still = 0;
		}
		tick(l);
		uint64_t requests = atomic_load(&l->requests);
		if (requests == before) {
			still++;
			relieve(l);
		} else {
			still = 0;
		}
		before = requests;
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- starting and stopping ------------------------------------------------------- */

void loop_free(struct loop *l)
{
	if (!l)
		return;
	pthread_key_delete(l->worker);
	pthread_cond_destroy(&l->follow);
	pthread_cond_destroy(&l->watch);
	pthread_cond_destroy(&l->gone);
	pthread_mutex_destroy(&l->lock);
	if (l->stop_fd >= 0)
		close(l->stop_fd);
	if (l->end_fd >= 0)
		close(l->end_fd);
	free(l);
}

static void init_locks(struct loop *l)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->follow, &monotonic);
	pthread_cond_init(&l->watch, &monotonic);
	pthread_cond_init(&l->gone, NULL);
	pthread_condattr_destroy(&monotonic);
}

int loop_new(struct fuse_session *session, bool busy_poll, struct loop **ret_loop)
{
	struct loop *l = calloc(1, sizeof(*l));
	int result;

	if (!l)
		return -ENOMEM;
	if (pthread_key_create(&l->worker, NULL) != 0) {
		free(l);
		return -EAGAIN;
	}
	init_locks(l);
	l->session = session;
	l->fd = fuse_session_fd(session);
	l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	spin_init(&l->spin, busy_poll);
	if (l->stop_fd < 0 || l->end_fd < 0 ||
	    fcntl(l->fd, F_SETFL, fcntl(l->fd, F_GETFL) | O_NONBLOCK) < 0) {
		result = -errno;
		loop_free(l);
		return result;
	}
	*ret_loop = l;
	return 0;
}

int loop_start(struct loop *l)
{
	bool started = true;
	int result = pthread_create(&l->watcher, NULL, watcher_main, l);

	if (result)
		return -result;
	l->watched = true;
	pthread_mutex_lock(&l->lock);
	for (int i = 0; i < THREADS_KEPT && started; i++)
		started = start_worker(l);
	pthread_mutex_unlock(&l->lock);
	if (!started)
		loop_stop(l);
	return started ? 0 : -EAGAIN;
}

int loop_end_fd(const struct loop *l)
{
	return l->end_fd;
}

void loop_stop(struct loop *l)
{
	end(l);
	if (l->watched)
		pthread_join(l->watcher, NULL);
	l->watched = false;
	pthread_mutex_lock(&l->lock);
	while (l->threads > 0)
		pthread_cond_wait(&l->gone, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

void loop_count(struct loop *l, struct loop_counts *ret_counts)
{
	pthread_mutex_lock(&l->lock);
	*ret_counts = (struct loop_counts){
		.requests = atomic_load(&l->requests),
		.sleeps = atomic_load(&l->sleeps),
		.takeovers = atomic_load(&l->takeovers),
		.threads = l->threads,
	};
	pthread_mutex_unlock(&l->lock);
}
