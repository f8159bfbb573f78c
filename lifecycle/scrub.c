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
#define NOTE_NS (5 * MINUTE_NS) /* how often the position is written down */
#define RATE (INT64_C(16) << 20) /* bytes a second */
#define RATE_NOW (INT64_C(128) << 20)
#define ROW_BYTES 1024 /* what an item counts as */
#define PAUSE_NS 2000000
#define ROWS 64 /* read at once */
#define BLOCK (256 << 10)
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

static void note(struct lifecycle *l, struct scrub *s)
{
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

/* Asked after each thousand rows of the index, a millisecond's work: leaves as much time to others, and more. */
static bool is_stopped(void *data)
{
	struct scrub *s = data;
	bool stop;

	pthread_mutex_lock(&s->mutex);
	wait_until(s, monotonic_ns() + PAUSE_NS);
	stop = s->stop;
	pthread_mutex_unlock(&s->mutex);
	return stop;
}

/* Counts what was read, and waits until that much may have been. True: stop. */
static bool pace(struct scrub *s, int64_t bytes)
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

static void found(struct lifecycle *l, const char *path, const char *text)
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

static void found_at(struct lifecycle *l, const struct place *at, const char *text)
{
	_cleanup_free_ char *path = NULL;
	struct place shown = *at;

	damaged_show(at, shown.name);
	if (tree_path(l->store, &shown, &path))
		path = NULL;
	found(l, path ? path : shown.name, text);
}

/* ---- reading ------------------------------------------------------------------------- */

/* 0, -EINTR (stopped), -EBADMSG or -EIO (damaged), another negative errno. */
static int read_body(struct lifecycle *l, uint64_t body, uint8_t *block)
{
	uint64_t at = 0;
	int result = 0;

	while (!result) {
		result = store_body_seek(l->store, body, at, true, &at);
		if (result || at >= INT64_MAX)
			break;
		result = store_body_read(l->store, body, at, block, BLOCK);
		at += BLOCK;
		if (!result && pace(&l->scrub, BLOCK))
			result = -EINTR;
	}
	return result;
}

/* It may have gone, or become another, since the row was read. */
static bool is_still_damaged(struct lifecycle *l, const struct key *key)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };

	return damaged_is(store_get(l->store, key, false, &value));
}

static void damaged_row(struct lifecycle *l, const struct store_row *row)
{
	struct key_parts parts;
	struct place at = { 0 };
	struct key key;

	if (key_from_bytes(store_codec(l->store), row->key, row->key_size, &key) ||
	    !is_still_damaged(l, &key))
		return;
	if (key_parse(store_codec(l->store), row->key, row->key_size, &parts) ||
	    parts.kind != KEY_KIND_ITEM) {
		found(l, "(store)", "a record of the store cannot be read");
		return;
	}
	at = (struct place){ .directory = parts.id, .state = parts.state, .seq = parts.seq };
	key_unknown_name(store_codec(l->store), &parts, at.name);
	found_at(l, &at, "the item cannot be read");
}

static int scrub_row(struct lifecycle *l, const struct store_row *row, uint8_t *block)
{
	struct place at = { .state = KEY_ACT };
	struct key_parts parts;
	struct item item;
	char what[48];
	int result;

	if (row->damaged) {
		damaged_row(l, row);
		return 0;
	}
	if (key_parse(store_codec(l->store), row->key, row->key_size, &parts))
		return 0;
	if (parts.kind == KEY_KIND_ITEM)
		result = record_row_item(l->store, row, &at, &item);
	else if (parts.kind == KEY_KIND_LINK)
		result = record_decode_item(&row->value, &item);
	else
		return 0;
	/* A name of several has no content of its own. */
	if (result || item.flags & ITEM_REFERENCE || !item.body)
		return 0;
	result = read_body(l, item.body, block);
	if (result != -EBADMSG && result != -EIO)
		return result;
	snprintf(what, sizeof(what), "(item %" PRIu64 ", of several names)", item.id);
	if (parts.kind == KEY_KIND_LINK)
		found(l, what, "part of its content cannot be read");
	else
		found_at(l, &at, "part of its content cannot be read");
	return 0;
}

/* Rows of one partition at and after `at`, which moves on. */
static int scrub_page(struct lifecycle *l, const struct key_range *range, struct key *at, uint8_t *block)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .range = *range, .limit = ROWS };
	int result;

	query.range.from = *at;
	result = store_query(l->store, &query, &page);
	for (size_t i = 0; i < page.count && !result; i++) {
		result = scrub_row(l, &page.rows[i], block);
		pthread_mutex_lock(&l->scrub.mutex);
		l->scrub.status.items++;
		pthread_mutex_unlock(&l->scrub.mutex);
		if (!result && pace(&l->scrub, ROW_BYTES))
			result = -EINTR;
	}
	if (result)
		return result;
	*at = page.more ? page.next : range->to;
	return 0;
}

/* The partition that a key is in. */
static void partition_of(const struct key *key, struct key_range *ret_range)
{
	ret_range->from = *key;
	ret_range->to = *key;
	ret_range->to.size = key->partition_size;
	/* Above all sort keys: no name or number begins with it. */
	ret_range->to.bytes[ret_range->to.size++] = 0xff;
}

static int scrub_rows(struct lifecycle *l, uint8_t *block)
{
	struct scrub *s = &l->scrub;
	int64_t noted_ns = monotonic_ns();
	struct key_range range;
	struct key at = s->at, key;
	int result = 0;

	while (!result) {
		result = store_scan(l->store, at.size ? &at : NULL, &key);
		if (result == STORE_ABSENT)
			return 0;
		partition_of(&key, &range);
		if (!result)
			result = scrub_page(l, &range, &key, block);
		if (result)
			break;
		at = key;
		pthread_mutex_lock(&s->mutex);
		s->at = at;
		pthread_mutex_unlock(&s->mutex);
		if (monotonic_ns() - noted_ns > NOTE_NS) {
			note(l, s);
			noted_ns = monotonic_ns();
		}
	}
	return result;
}

/* 0, -EINTR, other errno. */
static int pass(struct lifecycle *l, uint8_t *block)
{
	struct scrub *s = &l->scrub;
	const char *wrong = NULL;
	int result = 0;

	/* One that goes on has done it. */
	if (!s->at.size)
		result = store_verify(l->store, is_stopped, s, &wrong);
	if (!result && wrong)
		found(l, "(database)", wrong);
	return result ? result : scrub_rows(l, block);
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
	result = pass(l, block);
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
	note(l, s);
	pthread_mutex_lock(&s->mutex);
}

static void *scrub_main(void *data)
{
	struct lifecycle *l = data;
	struct scrub *s = &l->scrub;
	uint8_t *block = malloc(BLOCK);

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
