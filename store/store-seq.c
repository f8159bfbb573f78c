/*
 * store-seq.c - ids, sequence numbers, and the store's clock.
 *
 * Ids come from blocks of 4,096, each taken by one conditional write of META
 * "ids". What a crash leaves of a block is never given out.
 *
 * A sequence number is a time in nanoseconds whose lowest 8 bits are the number
 * of the mount: max(clock, last + 1 step). META "clock" holds a bound that is
 * moved ahead of what is given out, by a second at a time, so that no clock
 * that stands still, steps back or starts at 1970 makes a number twice or lets
 * one go backwards, over crashes and mounts too. After a crash the store's
 * clock is therefore ahead by a second at the most; a clean end writes the
 * exact mark.
 */
#include "store/record-kind.h"
#include "store/record.h"
#include "store/store-private.h"

#define ID_BLOCK 4096

#define SEQ_STEP UINT64_C(256)
#define SEQ_AHEAD ((uint64_t)CLOCK_SECOND_NS)

void store_seqs_init(struct store *s)
{
	pthread_mutex_init(&s->ids.lock, NULL);
	pthread_mutex_init(&s->seqs.lock, NULL);
}

void store_seqs_release(struct store *s)
{
	pthread_mutex_destroy(&s->ids.lock);
	pthread_mutex_destroy(&s->seqs.lock);
}

static int write_setting(struct store *s, const struct key *key, const uint8_t *bytes, size_t size,
			 uint64_t expect, enum store_purpose purpose)
{
	struct store_op op = {
		.kind = STORE_PUT,
		.condition = expect ? STORE_IF_VERSION : STORE_IF_ABSENT,
		.version = expect,
		.key = *key,
		.attrs = bytes,
		.attrs_size = size,
	};

	return store_transact(s, purpose, &op, 1, NULL);
}

/* ---- ids ---------------------------------------------------------------- */

static int take_block(struct store *s, uint64_t *ret_first)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	uint64_t first = KEY_ID_FIRST;
	uint8_t bytes[RECORD_IDS_SIZE];
	struct key key;
	int result;

	key_meta(RECORD_META_IDS, &key);
	result = store_get(s, &key, true, &value);
	if (result == 0)
		result = record_decode_ids(&value, &first);
	if (result < 0)
		return result;
	if (first > INT64_MAX - ID_BLOCK)
		return -ENOSPC;
	record_encode_ids(first + ID_BLOCK, bytes);
	result = write_setting(s, &key, bytes, sizeof(bytes), value.version, STORE_GROWING);
	if (!result)
		*ret_first = first;
	return result;
}

static bool next_id(struct store_ids *ids, uint64_t *ret_id)
{
	bool got;

	pthread_mutex_lock(&ids->lock);
	got = ids->next < ids->end;
	if (got)
		*ret_id = ids->next++;
	pthread_mutex_unlock(&ids->lock);
	return got;
}

int store_new_id(struct store *s, uint64_t *ret_id)
{
	struct store_retry retry = { 0 };
	uint64_t first = 0;
	int result;

	while (!next_id(&s->ids, ret_id)) {
		do
			result = take_block(s, &first);
		while (store_retry(&retry, &result));
		if (result < 0)
			return result;
		/* Should another thread have been as quick, one of the blocks goes unused. */
		pthread_mutex_lock(&s->ids.lock);
		s->ids.next = first;
		s->ids.end = first + ID_BLOCK;
		pthread_mutex_unlock(&s->ids.lock);
	}
	return 0;
}

/* ---- sequence numbers --------------------------------------------------- */

static int read_mark(struct store *s, struct record_clock *ret_mark, uint64_t *ret_version)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key key;
	int result;

	key_meta(RECORD_META_CLOCK, &key);
	result = store_get(s, &key, true, &value);
	if (result == STORE_ABSENT) {
		*ret_mark = (struct record_clock){ 0 };
		*ret_version = 0;
		return 0;
	}
	if (result)
		return result;
	*ret_version = value.version;
	return record_decode_clock(&value, ret_mark);
}

static int write_mark(struct store *s, const struct record_clock *mark, uint64_t expect)
{
	uint8_t bytes[RECORD_CLOCK_SIZE];
	struct key key;

	key_meta(RECORD_META_CLOCK, &key);
	record_encode_clock(mark, bytes);
	/* Deleting needs a sequence number, and must not fail for lack of space. */
	return write_setting(s, &key, bytes, sizeof(bytes), expect, STORE_RELEASING);
}

/* The newest deletion: a store whose META was restored from elsewhere is still not taken back in time. */
static int read_last_trash(struct store *s, uint64_t *ret_seq)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = 1, .reverse = true, .attributes_only = true };
	struct key_parts parts;
	int result;

	*ret_seq = 0;
	key_range_trash(0, UINT64_MAX, &query.range);
	result = store_query(s, &query, &page);
	if (result || !page.count)
		return result;
	result = key_parse(&s->codec, page.rows[0].key, page.rows[0].key_size, &parts);
	if (!result)
		*ret_seq = parts.seq;
	return result;
}

/* What was given out in earlier mounts. */
static int read_past(struct store *s, struct record_clock *ret_mark, uint64_t *ret_version)
{
	uint64_t last_trash;
	int result;

	result = read_last_trash(s, &last_trash);
	if (!result)
		result = read_mark(s, ret_mark, ret_version);
	if (!result)
		ret_mark->last_seq = util_max(ret_mark->last_seq, last_trash);
	return result;
}

static void set_past(struct store *s, const struct record_clock *mark)
{
	s->seqs.mount = mark->mount;
	s->seqs.last = s->seqs.bound = mark->last_seq;
}

int store_seqs_read(struct store *s)
{
	struct record_clock mark;
	uint64_t version;
	int result = read_past(s, &mark, &version);

	if (!result)
		set_past(s, &mark);
	return result;
}

static int claim(struct store *s)
{
	struct record_clock mark;
	uint64_t version;
	int result;

	result = read_past(s, &mark, &version);
	if (result)
		return result;
	mark.mount++;
	result = write_mark(s, &mark, version);
	if (!result)
		set_past(s, &mark);
	return result;
}

int store_seqs_claim(struct store *s)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = claim(s);
	while (store_retry(&retry, &result));
	return result;
}

static int move_bound(struct store *s, uint64_t bound)
{
	struct record_clock mark;
	uint64_t version;
	int result;

	result = read_mark(s, &mark, &version);
	if (result)
		return result;
	mark.mount = s->seqs.mount;
	mark.last_seq = util_max(mark.last_seq, bound);
	return write_mark(s, &mark, version);
}

/* Lock held. */
static int64_t seqs_clock_ns(struct store *s)
{
	const struct store_seqs *q = &s->seqs;

	return q->held ? q->held_real_ns + (clock_boot_ns(s->clock) - q->held_boot_ns) :
			 clock_now_ns(s->clock);
}

void store_hold_clock(struct store *s, bool hold, int64_t real_ns, int64_t boot_ns)
{
	pthread_mutex_lock(&s->seqs.lock);
	s->seqs.held = hold;
	s->seqs.held_real_ns = real_ns;
	s->seqs.held_boot_ns = boot_ns;
	pthread_mutex_unlock(&s->seqs.lock);
}

/* The next one, or false and what the bound must not be below. */
static bool next_seq(struct store *s, uint64_t *ret_seq, uint64_t *ret_need)
{
	struct store_seqs *q = &s->seqs;
	uint64_t seq, after;
	int64_t now_ns;
	bool got;

	pthread_mutex_lock(&q->lock);
	now_ns = seqs_clock_ns(s);
	after = (q->last & ~(SEQ_STEP - 1)) + SEQ_STEP;
	seq = util_max(now_ns < 0 ? 0 : (uint64_t)now_ns & ~(SEQ_STEP - 1), after) | q->mount;
	got = seq <= q->bound;
	if (got)
		q->last = seq;
	pthread_mutex_unlock(&q->lock);
	*(got ? ret_seq : ret_need) = seq;
	return got;
}

int store_new_seq(struct store *s, uint64_t *ret_seq)
{
	struct store_retry retry = { 0 };
	uint64_t need = 0;
	int result;

	while (!next_seq(s, ret_seq, &need)) {
		if (need > INT64_MAX - SEQ_AHEAD)
			return -EOVERFLOW;
		do
			result = move_bound(s, need + SEQ_AHEAD);
		while (store_retry(&retry, &result));
		if (result < 0)
			return result;
		pthread_mutex_lock(&s->seqs.lock);
		s->seqs.bound = util_max(s->seqs.bound, need + SEQ_AHEAD);
		pthread_mutex_unlock(&s->seqs.lock);
	}
	return 0;
}

static int settle(struct store *s)
{
	struct record_clock mark;
	uint64_t version;
	int result;

	result = read_mark(s, &mark, &version);
	if (result)
		return result;
	mark.last_seq = s->seqs.last;
	return write_mark(s, &mark, version);
}

int store_seqs_settle(struct store *s)
{
	struct store_retry retry = { 0 };
	int result;

	if (s->seqs.last == s->seqs.bound)
		return 0;
	do
		result = settle(s);
	while (store_retry(&retry, &result));
	return result;
}

int64_t store_now_ns(struct store *s)
{
	uint64_t last;
	int64_t now_ns;

	pthread_mutex_lock(&s->seqs.lock);
	now_ns = seqs_clock_ns(s);
	last = s->seqs.last;
	pthread_mutex_unlock(&s->seqs.lock);
	return util_max(now_ns, (int64_t)last);
}
