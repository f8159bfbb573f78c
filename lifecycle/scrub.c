/*
 * scrub.c - see scrub.h.
 */
#include "lifecycle/scrub.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

#define META_SCRUB "scrub"
#define RECORD_SIZE (2 + 8 + 8 + 8)
#define PERIOD_NS (7 * DAY_NS) /* from the end of one pass to the start of the next */
#define FIRST_NS MINUTE_NS /* after the mount */
#define AGAIN_NS HOUR_NS /* whether a pass is due; after one that failed */
#define RATE (INT64_C(16) << 20) /* bytes a second */
#define RATE_NOW (INT64_C(128) << 20)
#define PAUSE_NS 2000000
#define IOPRIO_IDLE (3 << 13)

int scrub_init(struct scrub *s)
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

void scrub_release(struct scrub *s)
{
	for (size_t i = 0; i < SCRUB_FOUND; i++)
		free(s->found[i]);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->mutex);
}

/* ---- over mounts ---------------------------------------------------------------- */

static void load(struct lifecycle *l, struct scrub *s)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	const uint8_t *p;
	struct key key;

	key_meta(META_SCRUB, &key);
	if (store_get(l->store, &key, true, &value) || value.attrs_size < RECORD_SIZE ||
	    value.attrs[0] != TREE_RECORD_FORMAT || value.attrs[1] != TREE_RECORD_SCRUB)
		return; /* it begins anew */
	p = value.attrs + 2;
	s->status.finished_ns = (int64_t)util_get_le64(p);
	s->status.last_found = util_get_le64(p + 8);
	s->status.found = util_get_le64(p + 16);
	/* Not a key itself, but where the next one is looked for. */
	s->at.size = (uint16_t)util_min(value.attrs_size - RECORD_SIZE, (size_t)KEY_MAX);
	s->at.partition_size = s->at.size;
	memcpy(s->at.bytes, value.attrs + RECORD_SIZE, s->at.size);
}

void scrub_note(struct lifecycle *l)
{
	struct scrub *s = &l->scrub;
	_cleanup_(transaction_release) struct transaction t = { 0 };
	uint8_t record[RECORD_SIZE + KEY_MAX] = { TREE_RECORD_FORMAT, TREE_RECORD_SCRUB };
	size_t size = RECORD_SIZE;
	struct key key;

	pthread_mutex_lock(&s->mutex);
	util_put_le64(record + 2, (uint64_t)s->status.finished_ns);
	util_put_le64(record + 10, s->status.last_found);
	util_put_le64(record + 18, s->status.found);
	memcpy(record + size, s->at.bytes, s->at.size);
	size += s->at.size;
	pthread_mutex_unlock(&s->mutex);
	key_meta(META_SCRUB, &key);
	transaction_put(&t, &key, record, size, NULL, 0, STORE_ANY, 0);
	/* Without it the next mount begins further back. */
	(void)transaction_commit(&t, l->store, STORE_RELEASING, NULL);
}

/* ---- pace ------------------------------------------------------------------------- */

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * CLOCK_SECOND_NS + now.tv_nsec;
}

/* Mutex held: until a time, or told to stop or to hurry. */
static void wait_until(struct scrub *s, int64_t until_ns)
{
	struct timespec until = { until_ns / CLOCK_SECOND_NS, until_ns % CLOCK_SECOND_NS };
	bool now = s->now;

	while (!s->stop && s->now == now)
		if (pthread_cond_timedwait(&s->wake, &s->mutex, &until) == ETIMEDOUT)
			return;
}

bool scrub_is_stopped(void *data, bool held)
{
	struct scrub *s = data;
	bool stop;

	pthread_mutex_lock(&s->mutex);
	if (!held)
		wait_until(s, monotonic_ns() + PAUSE_NS);
	stop = s->stop;
	pthread_mutex_unlock(&s->mutex);
	return stop;
}

bool scrub_pace(struct scrub *s, int64_t bytes)
{
	int64_t now_ns = monotonic_ns();
	bool stop;

	pthread_mutex_lock(&s->mutex);
	s->status.bytes += (uint64_t)bytes;
	s->paced_ns = util_max(s->paced_ns, now_ns - CLOCK_SECOND_NS / 10) +
		      bytes * (CLOCK_SECOND_NS / 1000) / ((s->now ? RATE_NOW : RATE) / 1000);
	if (s->paced_ns > now_ns)
		wait_until(s, s->paced_ns);
	stop = s->stop;
	pthread_mutex_unlock(&s->mutex);
	return stop;
}

/* ---- what is found ----------------------------------------------------------------- */

void scrub_found(struct lifecycle *l, const char *path, const char *text)
{
	struct scrub *s = &l->scrub;
	char *line = NULL;

	if (asprintf(&line, "%s: %s", path, text) < 0)
		line = NULL;
	pthread_mutex_lock(&s->mutex);
	if (s->status.found < SCRUB_FOUND && line) {
		free(s->found[s->status.found]);
		s->found[s->status.found] = strdup(line);
	}
	s->status.found++;
	pthread_mutex_unlock(&s->mutex);
	if (line && l->hooks.damaged)
		l->hooks.damaged(l->hooks.data, line);
	free(line);
}

void scrub_found_at(struct lifecycle *l, const struct place *at, const char *text)
{
	_cleanup_free_ char *path = NULL;
	struct place shown = *at;

	damaged_show(at, shown.name);
	if (tree_path(l->store, &shown, &path))
		path = NULL;
	scrub_found(l, path ? path : shown.name, text);
}

/* ---- the thread ---------------------------------------------------------------------- */

/*
 * Of the disk's time it takes what is left over. Not of the processor's: requests
 * would wait for the short locks it holds while it waits for its turn; what it
 * takes there is bounded by its pace.
 */
static void be_idle(void)
{
	syscall(SYS_ioprio_set, 1, 0, IOPRIO_IDLE);
}

static bool is_due(struct lifecycle *l, const struct scrub *s)
{
	int64_t now_ns = store_now_ns(l->store);

	return s->now || s->at.size || s->status.finished_ns == 0 ||
	       now_ns - s->status.finished_ns >= PERIOD_NS;
}

/* Mutex held; let go while it reads. */
static void run(struct lifecycle *l, struct scrub *s, uint8_t *block)
{
	int result;

	if (!s->at.size)
		s->status.found = 0;
	s->status.active = true;
	s->status.items = s->status.bytes = 0;
	s->paced_ns = 0;
	pthread_mutex_unlock(&s->mutex);
	result = scrub_pass(l, block);
	pthread_mutex_lock(&s->mutex);
	s->status.active = false;
	/* One that failed goes on when it is looked at again. */
	s->now = s->now && result == -EINTR;
	if (!result) {
		s->at.size = 0;
		s->status.finished_ns = store_now_ns(l->store);
		s->status.last_found = s->status.found;
	}
	pthread_mutex_unlock(&s->mutex);
	scrub_note(l);
	pthread_mutex_lock(&s->mutex);
}

static void *scrub_main(void *data)
{
	struct lifecycle *l = data;
	struct scrub *s = &l->scrub;
	uint8_t *block = malloc(SCRUB_BLOCK);

	be_idle();
	pthread_mutex_lock(&s->mutex);
	if (!s->now)
		wait_until(s, monotonic_ns() + FIRST_NS);
	while (!s->stop && block) {
		if (is_due(l, s))
			run(l, s, block);
		if (!s->stop && !s->now)
			wait_until(s, monotonic_ns() + AGAIN_NS);
	}
	pthread_mutex_unlock(&s->mutex);
	free(block);
	return NULL;
}

int lifecycle_scrub_start(struct lifecycle *l)
{
	struct scrub *s = &l->scrub;
	int result;

	load(l, s);
	s->stop = false;
	s->running = true;
	result = pthread_create(&s->thread, NULL, scrub_main, l);
	if (result)
		s->running = false;
	s->status.enabled = s->running;
	return -result;
}

void lifecycle_scrub_stop(struct lifecycle *l)
{
	struct scrub *s = &l->scrub;

	if (!s->running)
		return;
	pthread_mutex_lock(&s->mutex);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
	pthread_join(s->thread, NULL);
	s->running = false;
}

int lifecycle_scrub_now(struct lifecycle *l)
{
	struct scrub *s = &l->scrub;

	if (!s->running)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&s->mutex);
	/* One that is under way ends sooner; one that waits begins from the start. */
	if (!s->status.active)
		s->at.size = 0;
	s->now = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
	return 0;
}

void lifecycle_scrub_status(struct lifecycle *l, struct scrub_status *ret_status)
{
	pthread_mutex_lock(&l->scrub.mutex);
	*ret_status = l->scrub.status;
	pthread_mutex_unlock(&l->scrub.mutex);
}

void lifecycle_scrub_found(struct lifecycle *l, void (*each)(void *data, const char *line), void *data)
{
	struct scrub *s = &l->scrub;

	pthread_mutex_lock(&s->mutex);
	for (size_t i = 0; i < util_min(s->status.found, (uint64_t)SCRUB_FOUND); i++)
		if (s->found[i])
			each(data, s->found[i]);
	pthread_mutex_unlock(&s->mutex);
}
