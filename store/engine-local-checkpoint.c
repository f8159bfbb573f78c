/*
 * engine-local-checkpoint.c - from the overlay into the index.
 *
 * One commit of the index holds everything of a generation, the number of its
 * last transaction, and as FREE items what it lets go. Values are sealed here
 * and not when they are acknowledged: what changes ten times is sealed once.
 */
#include "store/engine-local.h"

/* ---- the engine's own item ----------------------------------------------- */

static const uint8_t *const state_key = (const uint8_t *)INDEX_STATE_KEY;

static int put_value(struct engine_local *e, const uint8_t *key, size_t key_size,
		     const struct value_head *head, const uint8_t *attrs, const uint8_t *content)
{
	buffer_reset(&e->value);
	value_seal(e->keys, key, key_size, head, attrs, content, &e->value);
	if (e->value.failed) {
		buffer_release(&e->value);
		e->value = (struct buffer){ 0 };
		return -ENOMEM;
	}
	return index_put(e->index, key, key_size, e->value.bytes, e->value.size);
}

int local_put_attrs(struct engine_local *e, const uint8_t *key, size_t key_size, uint64_t version,
		    const void *attrs, size_t attrs_size)
{
	struct value_head head = { .version = version, .attrs_size = (uint32_t)attrs_size };

	return put_value(e, key, key_size, &head, attrs, NULL);
}

static bool was_active(const struct engine_local *e, uint32_t segment)
{
	for (size_t i = 0; i < e->ends_count; i++)
		if (e->ends[i].segment == segment)
			return true;
	return false;
}

static void append_end(struct buffer *b, uint32_t segment, uint32_t end, uint32_t *count)
{
	buffer_append_le32(b, segment);
	buffer_append_le32(b, end);
	++*count;
}

/*
 * How far segments belong to the generations that are committed. What lies
 * beyond is a later transaction's, or nobody's after a crash. Segments that a
 * transaction began since the generation was sealed: not at all. The merges'
 * segment: as far as it is written.
 */
static void append_ends(struct engine_local *e, struct buffer *b)
{
	struct segment_end now[SEGMENT_STREAMS];
	size_t count_now = segments_ends(e->segments, now), at = b->size;
	uint32_t count = 0;

	buffer_append_le32(b, 0);
	for (size_t i = 0; i < e->ends_count; i++)
		append_end(b, e->ends[i].segment, e->ends[i].end, &count);
	for (size_t i = 0; i < count_now; i++)
		if (now[i].merge)
			append_end(b, now[i].segment, now[i].end, &count);
		else if (!was_active(e, now[i].segment))
			append_end(b, now[i].segment, 0, &count);
	if (!b->failed)
		util_put_le32(b->bytes + at, count);
}

int local_state_put(struct engine_local *e, uint64_t applied_seq)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };

	buffer_append_le64(&b, applied_seq);
	buffer_append_le32(&b, segments_next(e->segments));
	append_ends(e, &b);
	if (b.failed)
		return -ENOMEM;
	return local_put_attrs(e, state_key, INDEX_STATE_KEY_SIZE, applied_seq, b.bytes, b.size);
}

static int decode_state(const uint8_t *bytes, size_t size, struct local_state *ret_state)
{
	struct reader r = { .bytes = bytes, .size = size };
	struct local_state state = { 0 };

	state.applied_seq = reader_le64(&r);
	state.next_segment = reader_le32(&r);
	state.ends_count = reader_le32(&r);
	if (state.ends_count > ARRAY_SIZE(state.ends))
		return -EBADMSG;
	for (size_t i = 0; i < state.ends_count; i++) {
		state.ends[i].segment = reader_le32(&r);
		state.ends[i].end = reader_le32(&r);
	}
	if (!reader_done(&r))
		return -EBADMSG;
	*ret_state = state;
	return 0;
}

int local_state_read(struct engine_local *e, struct local_state *ret_state)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	_cleanup_free_ uint8_t *plain = NULL;
	struct index_reader *reader;
	struct value_head head;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	r = index_reader_renew(reader);
	if (r == 0)
		r = index_get(reader, state_key, INDEX_STATE_KEY_SIZE, 0, &b);
	index_reader_give(e->index, reader);
	if (r == INDEX_ABSENT)
		return -EBADMSG;
	if (r == 0)
		r = value_head(b.bytes, b.size, &head);
	if (r < 0)
		return r;
	plain = malloc(head.attrs_size + head.content_size + 1);
	if (!plain)
		return -ENOMEM;
	r = value_unseal(e->keys, state_key, INDEX_STATE_KEY_SIZE, b.bytes, b.size, false, plain);
	return r == 0 ? decode_state(plain, head.attrs_size, ret_state) : r;
}

/* ---- the anchor ------------------------------------------------------------ */

int local_anchor(struct engine_local *e, bool clean)
{
	struct journal_anchor anchor = { .applied_seq = e->applied_seq, .clean = clean };
	uint8_t meta[INDEX_META_SIZE];
	struct index_facts facts;
	int r = index_facts(e->index, false, &facts);

	if (r == 0)
		r = index_meta(e->index, facts.commit, meta);
	if (r < 0)
		return r;
	anchor.commit = facts.commit;
	seal_hash(meta, sizeof(meta), anchor.meta_hash);
	pthread_mutex_lock(&e->commit);
	r = journal_append_anchor(e->journal, e->last_seq, e->durable_seq, &anchor);
	e->journal_dirty[journal_current(e->journal)] = true;
	pthread_mutex_unlock(&e->commit);
	if (r == -EROFS)
		return local_fail(e, -EIO, "a journal record could neither be written nor taken back");
	if (r == 0) {
		e->anchor_unsynced = true;
		e->anchor_owed = false;
	}
	return r;
}

/* What was appended to the journals is on disk, anchors too. */
static int sync_journals(struct engine_local *e)
{
	int r = 0;

	for (unsigned i = 0; i < JOURNAL_FILES && r == 0; i++)
		r = journal_sync(e->journal, i);
	if (r < 0)
		return local_fail_journal(e, r);
	e->anchor_unsynced = false;
	return 0;
}

/* ---- a generation ---------------------------------------------------------- */

/* Seals the open generation and begins another, with the other journal. 0, 1 if there is nothing to seal, negative errno. */
static int rotate(struct engine_local *e)
{
	struct overlay *fresh = overlay_new();
	struct segment_end ends[SEGMENT_STREAMS];
	size_t count;
	bool turn;
	int r = 0;

	if (!fresh)
		return -ENOMEM;
	pthread_mutex_lock(&e->commit);
	/* Anchors alone may fill a journal too. */
	turn = e->open->last_seq || journal_room(e->journal) < journal_capacity(e->journal) / 2;
	if (!turn && !e->open->released)
		r = 1;
	if (r == 0 && turn)
		r = journal_turn(e->journal, e->last_seq);
	if (r == 0) {
		/* The header too must be on disk before the next turn. */
		e->journal_dirty[journal_current(e->journal)] = true;
		e->anchor_unsynced = true;
		count = segments_ends(e->segments, ends);
		e->ends_count = 0;
		for (size_t i = 0; i < count; i++)
			if (!ends[i].merge)
				e->ends[e->ends_count++] = ends[i];
		e->first_ns = e->freed_ns = 0;
		pthread_mutex_lock(&e->maps);
		e->sealed = e->open;
		e->open = fresh;
		pthread_mutex_unlock(&e->maps);
	}
	pthread_mutex_unlock(&e->commit);
	if (r != 0) {
		overlay_free(fresh);
		return r;
	}
	pthread_mutex_lock(&e->control_lock);
	e->control.rotations++;
	pthread_cond_broadcast(&e->done);
	pthread_mutex_unlock(&e->control_lock);
	return 0;
}

static void drop_sealed(struct engine_local *e)
{
	struct overlay *done;

	pthread_mutex_lock(&e->maps);
	done = e->sealed;
	e->sealed = NULL;
	e->drops++;
	pthread_mutex_unlock(&e->maps);
	overlay_free(done);
}

static int write_items(struct engine_local *e, struct overlay *o)
{
	struct overlay_item *item;
	int r = 0;

	RB_FOREACH(item, overlay_items, &o->items) {
		struct value_head head = {
			.version = item->version,
			.attrs_size = item->attrs_size,
			.content_size = item->content_size,
		};

		if (item->deleted)
			r = index_delete(e->index, item->key, item->key_size);
		else
			r = put_value(e, item->key, item->key_size, &head, item->value,
				      item->value + item->attrs_size);
		if (r < 0)
			break;
	}
	return r;
}

static int release_all(struct engine_local *e, const struct overlay_ref *list)
{
	int r = 0;

	for (; list && r == 0; list = list->next)
		r = local_release(e, &list->ref);
	return r;
}

/* Everything that one commit is to hold. `o` may be NULL. */
static int write_all(struct engine_local *e, struct overlay *o)
{
	int r = 0;

	if (o)
		r = write_items(e, o);
	if (o && r == 0)
		r = local_merge(e, o);
	if (o && r == 0)
		r = release_all(e, o->released);
	if (o && o->freeing)
		e->free_bodies = true;
	if (r == 0)
		r = local_free_write(e);
	if (r == 0)
		r = local_state_put(e, o && o->last_seq ? o->last_seq : e->applied_seq);
	return r;
}

static void refresh_space(struct engine_local *e)
{
	struct index_facts facts;
	bool tight;

	if (index_facts(e->index, false, &facts) < 0)
		return;
	pthread_mutex_lock(&e->commit);
	space_refresh(&e->space, &facts);
	tight = space_tight(&e->space);
	pthread_mutex_unlock(&e->commit);
	if (!tight || index_facts(e->index, true, &facts) < 0)
		return;
	pthread_mutex_lock(&e->commit);
	space_refresh(&e->space, &facts);
	pthread_mutex_unlock(&e->commit);
}

/* Lack of something. */
static bool passes(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -ENOMEM || error == -EMFILE ||
	       error == LOCAL_UNREADABLE;
}

/*
 * Commits `o` (may be NULL). Before it the journals are on disk: what the index
 * is about to hold must not be newer than its journal, and the anchor of the
 * commit before must be there, since only one commit may be ahead of an anchor.
 * The transactions' segments were synced with them by the group; what was merged
 * is synced here.
 */
static int commit(struct engine_local *e, struct overlay *o)
{
	int r = 0;

	if (o && o->last_seq)
		r = local_sync_to(e, o->last_seq);
	if (r == 0 && e->anchor_unsynced)
		r = sync_journals(e);
	if (r == 0)
		r = index_write_begin(e->index);
	if (r < 0)
		return r;
	r = write_all(e, o);
	if (r == 0 && segments_sync(e->segments, true) < 0)
		r = local_fail(e, -EIO, "file data could not be synced to the disk");
	if (r < 0) {
		index_write_abort(e->index);
	} else {
		e->anchor_owed = true;
		r = index_write_commit(e->index);
	}
	e->unreadable = r == LOCAL_UNREADABLE;
	if (r < 0) {
		local_free_aborted(e, passes(r));
		return r;
	}
	if (o && o->last_seq)
		e->applied_seq = o->last_seq;
	e->checkpoints++;
	e->forget_ns = 0;
	local_free_committed(e);
	return 0;
}

/*
 * Lack of something passes: the generation is still there, and is tried again.
 * Anything else, a failed sync above all, would come back or is not known to
 * have left the file as it was.
 */
static int commit_failed(struct engine_local *e, int r)
{
	if (passes(r))
		return r == LOCAL_UNREADABLE ? -EIO : r;
	return local_fail(e, r,
			  r == -EBADMSG ? "the database is damaged" :
					  "the database could not be written or synced");
}

/* Commits and drops the sealed generation, or commits what else there is. */
static int commit_sealed(struct engine_local *e)
{
	int r = commit(e, e->sealed);

	if (r < 0)
		return commit_failed(e, r);
	if (e->sealed)
		drop_sealed(e);
	r = local_anchor(e, false);
	refresh_space(e);
	return r;
}

int local_checkpoint_run(struct engine_local *e)
{
	/* What did not come about the last time goes first. */
	int r = e->anchor_owed ? local_anchor(e, false) : 0;

	if (r == 0 && e->sealed)
		r = commit_sealed(e);
	if (r == 0)
		r = rotate(e);
	if (r < 0 || (r == 1 && !e->forget_ns && !e->free_bodies))
		return r < 0 ? r : 0;
	return commit_sealed(e);
}

static int commit_replayed(struct engine_local *e)
{
	struct overlay *fresh = overlay_new();
	int r;

	if (!fresh)
		return -ENOMEM;
	e->sealed = e->open;
	e->open = fresh;
	r = commit(e, e->sealed);
	if (r == 0)
		drop_sealed(e);
	return r;
}

/* A new use of a journal that begins with the anchor of the index as it is, on disk. */
static int turn_and_anchor(struct engine_local *e)
{
	int r = journal_turn(e->journal, e->last_seq);

	if (r == 0)
		r = local_anchor(e, false);
	return r == 0 ? sync_journals(e) : r;
}

/*
 * When the last process ended between a commit and its anchor, the anchor must be
 * there before the next commit. It goes into a new use of the file that the log
 * does not need: the records to be replayed are all in the other one, since no
 * journal is turned to while an anchor is owed.
 */
int local_checkpoint_replayed(struct engine_local *e)
{
	bool both = e->applied_seq < journal_base_seq(e->journal) &&
		    journal_base_seq(e->journal) <= e->last_seq;
	bool turned = false;
	int r = 0;

	if (e->anchor_owed && e->open->last_seq && !both) {
		r = turn_and_anchor(e);
		turned = true;
	}
	if (r == 0 && e->open->last_seq)
		r = commit_replayed(e);
	if (r == 0 && turned)
		r = local_anchor(e, false);
	else if (r == 0)
		r = turn_and_anchor(e);
	/* A discarded journal of another database: the next opening would take it for the log's older part. */
	if (r == 0 && journal_has_later(e->journal))
		r = turn_and_anchor(e);
	if (r == 0)
		r = sync_journals(e);
	refresh_space(e);
	return r;
}

int local_checkpoint_last(struct engine_local *e)
{
	int r = local_checkpoint_run(e);

	if (r == 0)
		r = local_free_drain(e);
	if (r < 0)
		return r;
	segments_retire_all(e->segments);
	r = local_anchor(e, true);
	return r == 0 ? sync_journals(e) : r;
}
