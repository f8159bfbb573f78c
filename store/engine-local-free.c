/*
 * engine-local-free.c - giving space back.
 *
 * What a commit lets go, it lists as FREE items, neighbours joined. After it the
 * runs are given back to the disk, and the next commit removes their items.
 * Each step may be repeated: places are never used twice. A body that was freed
 * is a FREE item itself until its references were walked, some in each commit.
 *
 * Runs in a segment that is being appended to wait, unless there are many or
 * all are asked for: punching would hold its writers up.
 */
#include "store/engine-local.h"

#define GROUPS_A_COMMIT 1024 /* BODY items of freed bodies walked in one commit */
#define PUNCH_RUNS 4096 /* given back in one round */
#define PUNCH_AT_LEAST 256 /* of them before a checkpoint that is asked for */
#define PUNCH_JOIN (UINT64_C(64) << 20) /* neighbours are punched together up to this */
#define ACTIVE_MAX \
	(UINT64_C(4) << 20) /* bytes that may wait in a segment that is being appended to */
#define FREE_RUN_SIZE 4

static int append_run(struct buffer *b, const struct body_run *run)
{
	if (buffer_append(b, run, sizeof(*run)))
		return 0;
	b->failed = false;
	return -ENOMEM;
}

int local_release(struct engine_local *e, const struct body_ref *ref)
{
	struct body_run run = { ref->segment, ref->offset, body_run_size(ref->length) };

	return append_run(&e->released, &run);
}

/* ---- in the transaction ---------------------------------------------------- */

static int compare_runs(const void *a, const void *b)
{
	const struct body_run *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int put_run(struct engine_local *e, const struct body_run *run)
{
	uint8_t length[FREE_RUN_SIZE];
	struct key key;

	util_put_le32(length, run->length);
	key_free_run(run->segment, run->offset, &key);
	e->free_runs = true;
	return local_put_attrs(e, key.bytes, key.size, 1, length, sizeof(length));
}

static int put_runs(struct engine_local *e)
{
	size_t count = e->released.size / sizeof(struct body_run);
	struct body_run *runs = (struct body_run *)e->released.bytes;
	int r = 0;

	if (count)
		qsort(runs, count, sizeof(*runs), compare_runs);
	for (size_t i = 0; i < count && r == 0;) {
		struct body_run run = runs[i++];

		while (i < count && runs[i].segment == run.segment &&
		       runs[i].offset <= run.offset + run.length) {
			uint32_t end = runs[i].offset + runs[i].length;

			run.length = util_max(run.offset + run.length, end) - run.offset;
			i++;
		}
		r = put_run(e, &run);
	}
	return r;
}

static int forget_runs(struct engine_local *e)
{
	size_t count = e->punched.size / sizeof(struct key);
	const struct key *keys = (struct key *)e->punched.bytes;
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = index_delete(e->index, keys[i].bytes, keys[i].size);
	return r;
}

/* Lets go what a BODY item names. A damaged one names nothing that could be found. */
static int release_group(struct engine_local *e, const struct index_row *row)
{
	uint8_t plain[BODY_GROUP_MAX];
	struct body_group group;
	struct value_head head;
	int r = 0;

	if (value_head(row->value, row->value_size, &head) < 0 || head.attrs_size > sizeof(plain) ||
	    head.content_size ||
	    value_unseal(e->keys, row->key, row->key_size, row->value, row->value_size, true, plain) < 0 ||
	    body_group_decode(plain, head.attrs_size, &group) < 0)
		return 0;
	for (unsigned i = 0; i < BODY_GROUP && r == 0; i++)
		if (group.refs[i].length)
			r = local_release(e, &group.refs[i]);
	return r;
}

/* Walks at most *budget groups of a body. 0 if some are left, 1 if none is. */
static int walk_body(struct engine_local *e, uint64_t body, unsigned *budget)
{
	struct key_range range;
	struct index_row row;
	struct key key;
	int r;

	key_range_body(body, &range);
	for (;;) {
		r = index_write_seek(e->index, range.from.bytes, range.from.size, true, &row);
		if (r < 0)
			return r;
		if (r > 0 || row.key_size > KEY_MAX ||
		    memcmp(row.key, range.to.bytes, util_min(row.key_size, (size_t)range.to.size)) >= 0)
			return 1;
		if (!*budget)
			return 0;
		--*budget;
		r = release_group(e, &row);
		if (r < 0)
			return r;
		key.size = (uint16_t)row.key_size;
		memcpy(key.bytes, row.key, row.key_size);
		r = index_delete(e->index, key.bytes, key.size);
		if (r < 0)
			return r;
	}
}

static int walk_bodies(struct engine_local *e)
{
	unsigned budget = GROUPS_A_COMMIT;
	struct key_range range;
	struct key_parts parts;
	struct index_row row;
	struct key key;
	int r;

	key_range_free(&range);
	for (;;) {
		r = index_write_seek(e->index, range.from.bytes, range.from.size, true, &row);
		if (r < 0)
			return r;
		if (r > 0 || key_parse(&e->codec, row.key, row.key_size, &parts) < 0 ||
		    parts.kind != KEY_KIND_FREE_BODY) {
			e->free_bodies = false;
			return 0;
		}
		key.size = (uint16_t)row.key_size;
		memcpy(key.bytes, row.key, row.key_size);
		r = walk_body(e, parts.id, &budget);
		if (r <= 0)
			return r;
		r = index_delete(e->index, key.bytes, key.size);
		if (r < 0)
			return r;
	}
}

int local_free_write(struct engine_local *e)
{
	int r = 0;

	if (e->lost.size && !buffer_append(&e->released, e->lost.bytes, e->lost.size))
		r = -ENOMEM;
	if (r == 0)
		r = forget_runs(e);
	if (r == 0 && e->free_bodies)
		r = walk_bodies(e);
	return r == 0 ? put_runs(e) : r;
}

void local_free_committed(struct engine_local *e)
{
	buffer_reset(&e->punched);
	buffer_reset(&e->released);
	buffer_reset(&e->merged);
	buffer_reset(&e->lost);
	/* Runs are looked at after this commit anyway. */
	if (e->free_bodies)
		e->forget_ns = local_now_ns();
}

/*
 * What the failed commit wrote into segments is nobody's. The stream takes it
 * back, or each try would take new room from a disk that is full; where it has
 * turned to another segment, the next commit lists it. Not where the commit may
 * have come about all the same.
 */
void local_free_aborted(struct engine_local *e, bool passes)
{
	const struct body_run *first = (struct body_run *)e->merged.bytes;

	buffer_reset(&e->released);
	if (passes && e->merged.size &&
	    segments_rewind(e->segments, SEGMENT_STREAM_MERGE, first->segment, first->offset))
		buffer_reset(&e->merged);
	if (e->merged.size && !buffer_append(&e->lost, e->merged.bytes, e->merged.size))
		e->lost.failed = false;
	buffer_reset(&e->merged);
	e->free_bodies = true;
}

/* ---- after it -------------------------------------------------------------- */

/* FREE runs read in one round, and those of them that lie in active segments. */
struct round {
	struct buffer runs; /* struct body_run */
	size_t count;
	bool more;
};

static int note_punched(struct engine_local *e, const struct body_run *runs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct key key;

		key_free_run(runs[i].segment, runs[i].offset, &key);
		if (!buffer_append(&e->punched, &key, sizeof(key))) {
			e->punched.failed = false;
			return -ENOMEM;
		}
	}
	return 0;
}

static int read_run(struct engine_local *e, const struct index_row *row,
		    const struct key_parts *parts, struct round *round)
{
	uint8_t plain[FREE_RUN_SIZE];
	struct value_head head;
	struct body_run run = { .segment = (uint32_t)parts->id, .offset = (uint32_t)parts->seq };

	/* A damaged one is left for a check to name, and to take what it named back: how long the run is, only it knew. */
	if (value_head(row->value, row->value_size, &head) < 0 ||
	    head.attrs_size != FREE_RUN_SIZE || head.content_size ||
	    value_unseal(e->keys, row->key, row->key_size, row->value, row->value_size, true, plain) < 0)
		return e->forget_damaged ? note_punched(e, &run, 1) : 0;
	run.length = util_get_le32(plain);
	round->count++;
	return append_run(&round->runs, &run);
}

static int read_runs(struct engine_local *e, struct round *round)
{
	struct index_reader *reader;
	struct key_range range;
	struct key_parts parts;
	struct index_row row;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	key_range_free(&range);
	r = index_reader_renew(reader);
	if (r == 0)
		r = index_seek(reader, range.from.bytes, range.from.size, true, false, &row);
	while (r == 0 && key_parse(&e->codec, row.key, row.key_size, &parts) == 0 &&
	       (parts.kind == KEY_KIND_FREE_RUN || parts.kind == KEY_KIND_FREE_BODY)) {
		round->more = round->count == PUNCH_RUNS;
		if (round->more)
			break;
		if (parts.kind == KEY_KIND_FREE_RUN)
			r = read_run(e, &row, &parts, round);
		if (r == 0)
			r = index_step(reader, false, &row);
	}
	index_reader_give(e->index, reader);
	return r < 0 ? r : 0;
}

/* How many runs from the first on are neighbours in one segment, and how long they are together. */
static size_t neighbours(const struct body_run *runs, size_t count, uint64_t *ret_length)
{
	uint64_t end = (uint64_t)runs[0].offset + runs[0].length;
	size_t n = 1;

	while (n < count && runs[n].segment == runs[0].segment && runs[n].offset == end &&
	       end - runs[0].offset < PUNCH_JOIN) {
		end += runs[n].length;
		n++;
	}
	*ret_length = end - runs[0].offset;
	return n;
}

static bool is_of_merges(struct engine_local *e, uint32_t segment)
{
	struct segment_end ends[SEGMENT_STREAMS];
	size_t count = segments_ends(e->segments, ends);

	for (size_t i = 0; i < count; i++)
		if (ends[i].segment == segment)
			return ends[i].merge;
	return false;
}

/* In the merges' segment the open generation has its room: the new one has it before that is given up, or stays. */
static void retire(struct engine_local *e, uint32_t segment)
{
	if (!is_of_merges(e, segment)) {
		segments_retire(e->segments, segment);
		return;
	}
	pthread_mutex_lock(&e->commit);
	if (e->open->patched)
		(void)segments_renew(e->segments, SEGMENT_STREAM_MERGE,
				     e->open->patched * BODY_CHUNK_SIZE + LOCAL_MERGE_RELEASING);
	else
		segments_retire(e->segments, segment);
	pthread_mutex_unlock(&e->commit);
}

/* A segment that is being appended to is given up for a new one when enough of it, or all that is asked for, is dead. */
static void retire_segments(struct engine_local *e, const struct body_run *runs, size_t count, bool all)
{
	for (size_t i = 0; i < count;) {
		uint32_t segment = runs[i].segment;
		uint64_t bytes = 0;

		for (; i < count && runs[i].segment == segment; i++)
			bytes += runs[i].length;
		if ((all || bytes > ACTIVE_MAX) && segments_active(e->segments, segment))
			retire(e, segment);
	}
}

int local_free_punch(struct engine_local *e, bool all)
{
	_cleanup_(buffer_release) struct buffer owned = { 0 };
	struct round round = { 0 };
	const struct body_run *runs;
	uint64_t waiting = 0;
	int r, error = 0;

	/* What was given back is listed until the next commit. */
	if ((!e->free_runs && !e->forget_damaged) || e->punched.size)
		return 0;
	r = read_runs(e, &round);
	owned = round.runs;
	if (r < 0)
		return r;
	runs = (struct body_run *)owned.bytes;
	retire_segments(e, runs, round.count, all);
	/* One that fails is tried again the next time; the others do not wait for it. Nor does who wants a checkpoint, within bounds. */
	for (size_t i = 0; i < round.count;) {
		uint64_t length;
		size_t n = neighbours(runs + i, round.count - i, &length);

		if (!all && !round.more && i >= PUNCH_AT_LEAST && local_checkpoint_asked(e)) {
			waiting += round.count - i;
			break;
		}
		r = segments_punch(e->segments, runs[i].segment, runs[i].offset, length);
		if (r == 0)
			r = note_punched(e, runs + i, n);
		if (r < 0)
			waiting += n;
		if (r < 0 && r != -EBUSY && !error)
			error = r;
		i += n;
	}
	e->free_runs = round.more || waiting;
	e->free_pending = waiting + (round.more ? 1 : 0);
	if (e->punched.size || e->free_bodies)
		e->forget_ns = local_now_ns();
	/* Everything is in its place all the same: nobody who waited for that has to hear of it. */
	e->unpunched = error != 0;
	return 0;
}

int local_free_drain(struct engine_local *e)
{
	int r = local_free_punch(e, true);

	while (r == 0 && (e->punched.size || e->free_bodies)) {
		e->forget_ns = local_now_ns();
		r = local_checkpoint_run(e);
		if (r == 0)
			r = local_free_punch(e, true);
	}
	return r;
}
