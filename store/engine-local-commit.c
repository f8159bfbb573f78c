/*
 * engine-local-commit.c - acknowledging a transaction.
 *
 * What may take long happens before the commit lock: sealing file data into
 * segments, encoding, reading the index for conditions. Under it: conditions
 * again, as far as they may have changed; room; one record sealed and written;
 * the overlay. An item of 300 bytes holds the lock for 3 us.
 */
#include "store/engine-local-attempt.h"

#include <assert.h>

/* Positive outcomes of an attempt: something has to happen first. */
enum {
	WAIT_ROTATION = 100, /* the generation or its journal is full */
	WAIT_CHECKPOINT, /* a checkpoint may make room */
};

/* Of a generation, in percent: what long work may fill, when a checkpoint is asked for, and what nobody may go beyond. */
#define FULL_YIELD 50
#define FULL_ASK 100
#define FULL_WAIT 125
/* While the generation before waits for the disk to be read: what releases may be what that waits for. */
#define FULL_RELEASING 150

#define WAITS_IN_VAIN 3 /* rotations that bring no room, one after the other */

/* Of the journal, what only deletions may use, and what marks and anchors need. */
#define JOURNAL_RELEASING (UINT64_C(4) << 20)
#define JOURNAL_MARKS (UINT64_C(64) << 10)

static bool is_full(const struct engine_local *e, unsigned percent)
{
	size_t items = (size_t)LOCAL_GENERATION_ITEMS * percent / 100;

	return e->open->bytes > e->generation_bytes * percent / 100 || e->open->count > items ||
	       e->open->patched > items;
}

static int admit_journal(struct attempt *a)
{
	struct journal *j = a->e->journal;
	size_t needed = journal_record_size(a->record.size), capacity = journal_capacity(j);
	size_t kept = util_min(JOURNAL_MARKS, capacity / 16);

	if (a->purpose == STORE_GROWING)
		kept += util_min(JOURNAL_RELEASING, capacity / 8);
	if (needed + kept > capacity)
		return -EFBIG;
	return needed + kept > journal_room(j) ? WAIT_ROTATION : 0;
}

static struct space_pending pending_of(const struct overlay *o)
{
	return (struct space_pending){
		.items = o->count,
		.chunks = o->chunks_count,
		.bytes = o->bytes,
	};
}

static int admit_space(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct space_pending pending[2] = { pending_of(e->open) };
	uint64_t promised = e->open->patched + a->patches;
	int r = 0;

	pending[0].items += a->count;
	pending[0].bytes += a->record.size;
	pthread_mutex_lock(&e->maps);
	if (e->sealed) {
		pending[1] = pending_of(e->sealed);
		promised += e->sealed->patched;
	}
	pthread_mutex_unlock(&e->maps);
	if (!space_admits(&e->space, a->purpose, pending))
		r = -ENOSPC;
	else if (a->patches)
		r = segments_reserve(e->segments, SEGMENT_STREAM_MERGE,
				     promised * BODY_CHUNK_SIZE +
					     (a->purpose == STORE_GROWING ? LOCAL_MERGE_RELEASING : 0));
	if (r != -ENOSPC || a->waited)
		return r;
	/* What is pending takes room until it is committed, and what was freed gives some back. */
	a->waited = true;
	return WAIT_CHECKPOINT;
}

static int admit(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct space_pending open = pending_of(e->open);
	int r = admit_journal(a);

	if (r != 0)
		return r;
	if (is_full(e, e->unreadable && a->purpose != STORE_GROWING ? FULL_RELEASING : FULL_WAIT))
		return WAIT_ROTATION;
	if (is_full(e, FULL_ASK) || space_presses(&e->space, &open))
		local_checkpoint_request(e);
	return admit_space(a);
}

static void note_change(struct engine_local *e, bool frees)
{
	int64_t now_ns = local_now_ns(), none = 0;
	bool wake = false;

	local_note_touch(e);
	atomic_store_explicit(&e->last_ns, now_ns, memory_order_relaxed);
	if (!atomic_load_explicit(&e->unsynced_ns, memory_order_relaxed))
		wake = atomic_compare_exchange_strong(&e->unsynced_ns, &none, now_ns);
	none = 0;
	if (!atomic_load_explicit(&e->first_ns, memory_order_relaxed))
		wake = atomic_compare_exchange_strong(&e->first_ns, &none, now_ns) || wake;
	none = 0;
	if (frees)
		wake = atomic_compare_exchange_strong(&e->freed_ns, &none, now_ns) || wake;
	if (wake)
		local_wake(e);
}

static int write_record(struct attempt *a)
{
	struct engine_local *e = a->e;
	uint64_t seq = e->last_seq + 1;
	int r = overlay_reserve(e->open, a->overlay_bytes);

	if (r == 0 && a->adds)
		r = apply_prepare(e, a->reader, &a->record);
	if (r < 0)
		return r;
	r = journal_append(e->journal, JOURNAL_CHANGES, seq, e->durable_seq, a->record.bytes,
			   a->record.size);
	if (r == -EROFS)
		return local_fail(e, -EIO, "a journal record could neither be written nor taken back");
	if (r < 0)
		return r;
	e->journal_dirty[journal_current(e->journal)] = true;
	e->last_seq = seq;
	pthread_mutex_lock(&e->maps);
	apply_changes(e->open, a->record.bytes, a->record.size, seq);
	pthread_mutex_unlock(&e->maps);
	note_change(e, a->frees);
	return 0;
}

static int try(struct attempt *a, uint64_t *ret_version)
{
	struct engine_local *e = a->e;
	int r = attempt_look(a);

	if (r != 0)
		return r;
	a->rotations = local_rotations(e);
	pthread_mutex_lock(&e->commit);
	r = e->error ? -EROFS : attempt_look_again(a);
	if (r == 0 && a->record.size)
		r = admit(a);
	if (r == 0 && a->record.size)
		r = write_record(a);
	if (r == 0)
		*ret_version = e->last_seq;
	pthread_mutex_unlock(&e->commit);
	return r;
}

static int wait_for_room(struct attempt *a, int for_what)
{
	struct engine_local *e = a->e;
	int64_t start_ns = local_now_ns(), waited_ns, longest_ns = e->longest_wait_ns;
	int r = for_what == WAIT_ROTATION ? local_rotation_wait(e, a->rotations) :
					    local_checkpoint_wait(e, true);

	e->waits++;
	waited_ns = local_now_ns() - start_ns;
	while (waited_ns > longest_ns &&
	       !atomic_compare_exchange_weak(&e->longest_wait_ns, &longest_ns, waited_ns))
		;
	return r;
}

/* Whether long work has filled the open generation, its journal, or the room on the disk, as far as it may. */
static bool is_filled(struct engine_local *e)
{
	struct space_pending twice;
	bool filled;

	pthread_mutex_lock(&e->commit);
	twice = pending_of(e->open);
	twice.items *= 2;
	twice.chunks *= 2;
	twice.bytes *= 2;
	filled = is_full(e, FULL_YIELD) || space_presses(&e->space, &twice) ||
		 journal_room(e->journal) < journal_capacity(e->journal) / 2;
	pthread_mutex_unlock(&e->commit);
	return filled;
}

void local_yield(struct engine *engine)
{
	struct engine_local *e = local_of(engine);
	int r = 0;

	/* A checkpoint that fails is for the transaction to find out. */
	while (r == 0 && !e->error && !e->read_only) {
		uint64_t rotations = local_rotations(e);

		if (!is_filled(e))
			break;
		r = local_rotation_wait(e, rotations);
		/* There was nothing in it: what takes the room does not go by waiting. */
		if (local_rotations(e) == rotations)
			break;
	}
}

int local_transact(struct engine *engine, enum store_purpose purpose, const struct store_op *ops,
		   size_t count, uint64_t *ret_version)
{
	struct engine_local *e = local_of(engine);
	struct attempt a = { .e = e, .purpose = purpose, .ops = ops, .count = count };
	unsigned in_vain = 0;
	int r;

	assert(count <= OPERATIONS_MAX);
	if (e->error || e->read_only)
		return -EROFS;
	r = attempt_encode(&a);
	if (r == -ENOSPC && local_checkpoint_wait(e, true) == 0) {
		/* What was freed may not have been given back yet. */
		attempt_release_chunks(&a);
		buffer_reset(&a.record);
		a.overlay_bytes = a.patches = 0;
		r = attempt_encode(&a);
	}
	while (r == 0) {
		r = try(&a, ret_version);
		if (r == 0)
			break;
		if (a.reader)
			index_reader_rest(a.reader);
		if (r != WAIT_ROTATION && r != WAIT_CHECKPOINT)
			break;
		r = wait_for_room(&a, r);
		in_vain = local_rotations(e) == a.rotations ? in_vain + 1 : 0;
		if (r == 0 && in_vain == WAITS_IN_VAIN)
			r = -ENOSPC;
	}
	if (r != 0)
		attempt_release_chunks(&a);
	index_reader_give(e->index, a.reader);
	buffer_release(&a.record);
	return r;
}
