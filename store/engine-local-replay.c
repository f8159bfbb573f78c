/*
 * engine-local-replay.c - what a journal holds comes back.
 *
 * The journals say where the log ends (journal-replay.c). Of what is not known
 * to have been synced, a transaction counts only if the file data it names
 * unseals; the log ends before the first that does not, and nothing after it
 * can have been acknowledged as durable. Data that the disk gives an error for
 * says neither, and no log is cut short for it unasked.
 */
#include "store/engine-local.h"

#include <stdio.h>

/* ---- the anchor ------------------------------------------------------------ */

static bool meta_matches(struct engine_local *e, const struct journal_anchor *anchor)
{
	uint8_t meta[INDEX_META_SIZE], hash[32];

	if (index_meta(e->index, anchor->commit, meta) < 0)
		return false;
	seal_hash(meta, sizeof(meta), hash);
	return !memcmp(hash, anchor->meta_hash, sizeof(hash));
}

/*
 * The index is at the anchor's commit, or one further, when the process ended
 * between commit and anchor. *ret_why: it is another index than the journal was
 * written for; NULL: it is not.
 */
static int check_anchor(struct engine_local *e, const struct journal_state *state, const char **ret_why)
{
	struct index_facts facts;
	int r;

	*ret_why = NULL;
	if (!state->anchored)
		return 0;
	r = index_facts(e->index, false, &facts);
	if (r < 0)
		return r;
	if (facts.commit < state->anchor.commit)
		*ret_why = "the database is older than its journal";
	else if (facts.commit > state->anchor.commit + 1)
		*ret_why = "the journal is older than its database";
	else if (!meta_matches(e, &state->anchor) || e->applied_seq < state->anchor.applied_seq)
		*ret_why = "the database's first pages are not those that were written last";
	if (*ret_why)
		return 0;
	e->anchor_owed = facts.commit > state->anchor.commit;
	return 0;
}

/* ---- transactions ----------------------------------------------------------- */

/* Whether the file data that a transaction names is there. 0, 1 if not, -EIO (nobody knows), other errno. */
static int check_chunks(struct engine_local *e, const struct journal_record *record)
{
	struct reader changes = { .bytes = record->bytes, .size = record->size };
	_cleanup_free_ uint8_t *chunk = NULL;
	struct change change;
	int r;

	while ((r = change_next(&changes, &change)) > 0) {
		if (change.kind != CHANGE_CHUNK)
			continue;
		if (!chunk)
			chunk = malloc(BODY_CHUNK_SIZE);
		if (!chunk)
			return -ENOMEM;
		r = local_chunk_read(e, change.body, change.index, &change.ref, chunk);
		if (r == -EIO)
			r = local_chunk_read(e, change.body, change.index, &change.ref, chunk);
		if (r == -EBADMSG)
			return 1;
		if (r < 0)
			return r;
	}
	return r;
}

struct replay {
	struct engine_local *e;
	bool unreadable; /* it ended since file data cannot be read */
};

static int apply(void *data, const struct journal_record *record)
{
	struct replay *replay = data;
	struct engine_local *e = replay->e;
	int r = record->durable ? 0 : check_chunks(e, record);

	replay->unreadable = r == -EIO;
	if (r != 0)
		return r;
	r = local_apply(e, record->bytes, record->size, record->seq);
	if (r == 0)
		e->replayed++;
	return r;
}

/*
 * Whether what the journal holds may be applied: 1, 0 (it was discarded: the
 * index is all there is), STORE_DAMAGED, negative errno.
 */
static int examine(struct engine_local *e, struct store_open_report *report, struct journal_state *state)
{
	bool whole = true;
	const char *why;
	int r = journal_examine(e->journal, e->applied_seq, state);

	if (r == 0 && state->damage) {
		r = local_discard(e, state->damage, report);
		whole = state->cut;
	}
	if (r == 0 && whole)
		r = check_anchor(e, state, &why);
	if (r == 0 && whole && why) {
		r = local_discard(e, why, report);
		whole = false;
	}
	return r == 0 ? whole : r;
}

int local_replay(struct engine_local *e, struct store_open_report *report, bool *ret_clean)
{
	struct replay replay = { .e = e };
	struct journal_state state;
	int whole = examine(e, report, &state), r = 0;

	if (whole == -EIO)
		return local_damaged(report, "a journal, or the database, cannot be read from the disk");
	if (whole < 0 || whole == STORE_DAMAGED)
		return whole;
	e->last_seq = e->applied_seq;
	e->durable_seq = e->applied_seq;
	if (whole)
		r = journal_replay(e->journal, e->applied_seq,
				   util_max(state.durable_seq, e->applied_seq), apply, &replay);
	journal_replayed(e->journal);
	/* It may be the end of what reached the disk, or not: what follows is given up only if that was asked for. */
	if (replay.unreadable)
		r = local_discard(e, "file data that the journal names cannot be read from the disk",
				  report);
	if (r == -EBADMSG)
		return local_damaged(
			report, "a journal record does not say what a program of this version writes");
	*ret_clean = state.clean && !report->discarded && e->open->last_seq == 0;
	return r;
}

/* ---- what nothing refers to -------------------------------------------------- */

struct held {
	uint32_t from;
	uint32_t to;
};

static int compare_held(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int add_held(struct buffer *b, uint32_t segment, const struct body_ref *ref)
{
	struct held place = { ref->offset, ref->offset + body_run_size(ref->length) };

	if (ref->segment != segment)
		return 0;
	return buffer_append(b, &place, sizeof(place)) ? 0 : -ENOMEM;
}

/* Where the replayed transactions' chunks lie in a segment. */
static int find_held(struct engine_local *e, uint32_t segment, struct buffer *b)
{
	struct overlay_chunk *chunk;
	int r = 0;

	RB_FOREACH(chunk, overlay_chunks, &e->open->chunks) {
		if (chunk->base == OVERLAY_REF)
			r = add_held(b, segment, &chunk->ref->ref);
		if (r < 0)
			return r;
	}
	for (struct overlay_ref *i = e->open->released; i && r == 0; i = i->next)
		r = add_held(b, segment, &i->ref);
	if (b->size)
		qsort(b->bytes, b->size / sizeof(struct held), sizeof(struct held), compare_held);
	return r;
}

/* Beyond `end`, only what was replayed is anybody's. */
static int reclaim_segment(struct engine_local *e, uint32_t segment, uint64_t end)
{
	_cleanup_(buffer_release) struct buffer places = { 0 };
	const struct held *p;
	uint64_t size;
	int r = segments_size(e->segments, segment, &size);

	if (r == 0)
		r = find_held(e, segment, &places);
	p = (struct held *)places.bytes;
	for (size_t i = 0; i < places.size / sizeof(*p) && r == 0; i++) {
		if (p[i].from > end)
			r = segments_punch(e->segments, segment, end, p[i].from - end);
		end = util_max(end, (uint64_t)p[i].to);
	}
	/* Also what was allocated ahead. */
	return r == 0 ? segments_cut(e->segments, segment, util_min(end, size)) : r;
}

int local_reclaim(struct engine_local *e, const struct local_state *state)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	size_t count;
	int r = segments_list(e->segments, state->next_segment, &numbers, &count);

	/* What is replayed may be in memory only, if it was the process that ended. */
	if (r == 0)
		r = segments_sync_directory(e->segments);

	for (size_t i = 0; i < state->ends_count && r == 0; i++)
		if (state->ends[i].segment < state->next_segment) {
			r = segments_sync_one(e->segments, state->ends[i].segment);
			if (r == 0)
				r = reclaim_segment(e, state->ends[i].segment, state->ends[i].end);
		}
	for (size_t i = 0; i < count && r == 0; i++) {
		r = segments_sync_one(e->segments, numbers[i]);
		if (r == 0)
			r = reclaim_segment(e, numbers[i], 0);
	}
	return r;
}
