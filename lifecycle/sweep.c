/*
 * sweep.c - one bounded pass over what is due.
 *
 * EXP is read in the order of time; each row's item is read again in the step
 * that acts on it. What went with a directory waits for the directory: its row
 * moves to the directory's due time, or, if that has come, the directory goes as
 * a whole. What is on hold is looked at again a day later; what is open, or
 * cannot be read, is passed over, so that it keeps nothing else from going.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

#define SWEEP_ROWS 16 /* dealt with under one holding of the lock */
#define HOLD_AGAIN_NS DAY_NS
#define DAMAGED_AGAIN_NS HOUR_NS

struct sweep {
	struct lifecycle *l;
	int64_t now_ns;
	uint64_t budget;
	struct destroyed total;
	struct step step;
	struct destroyed step_total;
	bool busy; /* something due is open, or waits for another row */
	bool damaged; /* something due cannot be read, or what is above it */
	/* What a step of files cannot do, to be destroyed without the lock. */
	bool pending;
	struct place top;
	struct deletion deletion; /* of the top, which is why it goes */
	uint64_t due_batch; /* of its row in EXP */
	enum item_counter cause;
	struct purger {
		uint64_t batch;
		uint32_t uid;
		bool found;
	} purger; /* of the purge that lapsed last */
};

static int delete_stale(struct sweep *w, const struct key *key, uint64_t version)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	int result;

	transaction_delete(&t, key, STORE_IF_VERSION, version);
	result = tree_commit(&t, w->l->store, STORE_RELEASING, NULL);
	/* Another sweep may be about the same rows: what it did is done. */
	if (result == STORE_CONFLICT && store_get(w->l->store, key, true, &value) == STORE_ABSENT)
		return 0;
	return result;
}

static int move_due(struct sweep *w, const struct place *at, uint64_t due_batch, int64_t due_ns)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct deletion d;
	struct item item;
	int result = record_get_item(w->l->store, at, false, &value, &item);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	d = item.deletion;
	d.destroy_ns = due_ns;
	deletion_change(w->l, &t, at, &item, &d, due_batch);
	return tree_commit(&t, w->l->store, STORE_RELEASING, NULL);
}

static bool find_purger(void *data, const struct batch *batch)
{
	struct purger *p = data;

	if (batch->seq == p->batch) {
		p->uid = batch->uid;
		p->found = true;
	}
	return p->found;
}

/*
 * The grace of a purge is over, but by now a hold forbids what it was for: the
 * entry is in the trash again, as if nobody had purged it, and stays as long as
 * the hold. The lock is not held.
 */
static int lapse(struct sweep *w, const struct place *at, uint64_t purge)
{
	struct store_retry retry = { 0 };
	int result = 0;

	/* Who purged is not in the row. */
	if (w->purger.batch != purge) {
		struct purger p = { .batch = purge };

		result = lifecycle_batches(w->l, UINT32_MAX, find_purger, &p);
		if (result)
			return result;
		w->purger = p;
	}
	w->budget -= w->budget > 0;
	do {
		lifecycle_lock_background(w->l);
		result = purge_take_back(w->l, at, time_add(w->now_ns, HOLD_AGAIN_NS),
					 w->purger.uid, w->purger.found ? purge : 0);
		lifecycle_unlock(w->l);
	} while (store_retry(&retry, &result));
	return result == -ENOENT ? 0 : result;
}

/* What cannot be read is check's to name; everything else goes on. */
static bool pass_over(struct sweep *w, int result)
{
	if (result != -EBADMSG && result != -ENOENT)
		return false;
	w->damaged = true;
	return true;
}

/* The marks of directories that the files of a step leave without anything deleted. */
static int prune_marks(struct sweep *w)
{
	const struct step *step = &w->step;
	int result = 0;

	for (size_t i = 0; i < step->changed && !result; i++) {
		if (i && step->changes[i].from.directory == step->changes[i - 1].from.directory)
			continue;
		result = shadow_prune(w->l, step->changes[i].from.directory, &step->changes[i].from);
		/* A mark that stays is only a mark. */
		result = pass_over(w, result) ? 0 : result;
	}
	return result;
}

/* Commits the files collected so far. */
static int flush(struct sweep *w)
{
	int result = w->step.t.count ? step_commit(w->l, &w->step, STORE_RELEASING) : 0;

	if (!result) {
		w->total.items += w->step_total.items;
		w->total.bytes += w->step_total.bytes;
		result = prune_marks(w);
	}
	step_reset(&w->step);
	w->step_total = (struct destroyed){ 0 };
	return result;
}

static int add_file(struct sweep *w, const struct place *at, const struct item *item)
{
	enum item_counter cause = destroy_cause(&item->deletion, w->now_ns);
	int result = destroy_add_file(w->l, &w->step, at, item, cause, &w->step_total);

	if (result == DESTROY_FLUSH) {
		result = flush(w);
		if (!result)
			result = destroy_add_file(w->l, &w->step, at, item, cause, &w->step_total);
	}
	if (result == -EBUSY) {
		w->busy = true;
		return 0;
	}
	if (!result)
		w->budget--;
	return result;
}

/* The entry that a due item is destroyed with: itself, unless it went with a directory. */
static int due_top(struct lifecycle *l, const struct place *at, const struct item *item,
		   struct standing *ret_top)
{
	bool alone = item->deletion.flags & (DELETION_PURGED | DELETION_DOOMED) ||
		     item->deletion.cause == ITEM_TEMPORARY;
	int result = alone ? -ENOENT : standing_load(l, at, item, ret_top);

	if (result != -ENOENT)
		return result;
	ret_top->top = *at;
	ret_top->deletion = item->deletion;
	return 0;
}

static int sweep_item(struct sweep *w, const struct place *at, const struct item *item, uint64_t due_batch)
{
	struct standing st;
	int result = due_top(w->l, at, item, &st);
	bool itself;

	if (result)
		return result;
	itself = place_equal(&st.top, at);
	if (!itself && st.deletion.destroy_ns > w->now_ns && !(st.deletion.flags & DELETION_DOOMED))
		return move_due(w, at, due_batch, st.deletion.destroy_ns);
	if (itself && !S_ISDIR(item->mode)) {
		result = destroy_is_held(w->l, at, item);
		if (result == 1 && !(item->deletion.flags & DELETION_PURGED))
			return move_due(w, at, due_batch, time_add(w->now_ns, HOLD_AGAIN_NS));
		if (result <= 0)
			return result ? result : add_file(w, at, item);
	}
	/* Which purge it was stands in the top's own row, which is due too. */
	if (!itself && st.deletion.flags & DELETION_PURGED && !(st.deletion.flags & DELETION_DOOMED)) {
		w->busy = true;
		return 0;
	}
	w->pending = true;
	w->top = st.top;
	w->deletion = st.deletion;
	w->due_batch = itself ? due_batch : st.deletion.batch;
	w->cause = destroy_cause(&st.deletion, w->now_ns);
	return 0;
}

/* One row of EXP; lock held. 0, STORE_CONFLICT (what was read is old), negative errno. */
static int sweep_row(struct sweep *w, const struct store_row *row, const struct key *key)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key_parts parts;
	struct trash_row due;
	struct place at;
	struct item item;
	int result = key_parse(store_codec(w->l->store), row->key, row->key_size, &parts);

	if (result || row->damaged || record_decode_trash(store_codec(w->l->store), &row->value, &due))
		return 0;
	result = standing_row_item(w->l, &due.key, true, &at, &value, &item);
	if (result == STORE_ABSENT ||
	    (!result && (at.seq != parts.seq || item.deletion.destroy_ns != parts.due_ns)))
		return delete_stale(w, key, row->value.version);
	if (!result)
		result = sweep_item(w, &at, &item, due.batch);
	else if (damaged_is(result))
		result = destroy_damaged(w->l, &due.key, key, parts.due_ns);
	if (result == STORE_ABSENT || result == -EPERM) {
		w->damaged = true;
		return 0;
	}
	return pass_over(w, result) ? 0 : result;
}

/* Destroys what is pending. Held ones are put off; what is open waits. */
static int sweep_top(struct sweep *w)
{
	struct place top = w->top;
	int result = destroy_entry(w->l, &top, &w->deletion, w->cause, &w->budget, &w->total);

	w->pending = false;
	if (result == -EBUSY) {
		w->busy = true;
		return 0;
	}
	if (result == -EPERM && w->deletion.flags & DELETION_PURGED) {
		result = lapse(w, &top, w->due_batch);
	} else if (result == -EPERM) {
		lifecycle_lock_background(w->l);
		result = move_due(w, &top, w->due_batch, time_add(w->now_ns, HOLD_AGAIN_NS));
		lifecycle_unlock(w->l);
	}
	return result > 0 || pass_over(w, result) ? 0 : result;
}

/* What rows name is read before the lock is taken: what has to come from the disk holds nobody up. */
static void read_ahead(struct sweep *w, const struct store_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct store_value value = { 0 };
		struct trash_row due;

		if (!rows[i].damaged &&
		    !record_decode_trash(store_codec(w->l->store), &rows[i].value, &due) &&
		    !store_get(w->l->store, &due.key, true, &value))
			store_value_release(&value);
	}
}

/* Deals with rows from `*at` on, until the page or the step ends or something is pending. */
static int sweep_rows(struct sweep *w, const struct store_page *page, size_t *at, struct key *after)
{
	size_t end = util_min(page->count, *at + SWEEP_ROWS);
	size_t first = *at;
	int result = 0, flushed;

	read_ahead(w, page->rows + *at, end - *at);
	lifecycle_lock_background(w->l);
	for (; *at < end && !result && !w->pending && w->budget &&
	       (*at == first || !lifecycle_hold_is_over(w->l));
	     ++*at) {
		result = key_from_bytes(store_codec(w->l->store), page->rows[*at].key,
					page->rows[*at].key_size, after);
		if (!result)
			result = sweep_row(w, &page->rows[*at], after);
	}
	flushed = flush(w);
	lifecycle_unlock(w->l);
	if (!result || result == STORE_CONFLICT)
		result = flushed ? flushed : result;
	return result;
}

static int sweep_page(struct sweep *w, struct key *after, bool *started, bool *ret_more)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = 4 * SWEEP_ROWS, .after = *started ? after : NULL };
	size_t at = 0;
	int result;

	key_range_due(w->now_ns, &query.range);
	result = store_query(w->l->store, &query, &page);
	if (result)
		return result;
	*ret_more = page.more;
	*started = true;
	if (!page.count)
		*after = page.next;
	if (page.count)
		history_prepare(w->l);
	while (at < page.count && !result && w->budget) {
		result = sweep_rows(w, &page, &at, after);
		/*
		 * A row met in a directory that is gone by now will be found stale, or not at all.
		 */
		if (!result && w->pending)
			result = sweep_top(w);
	}
	return result;
}

/* ---- when to look again ------------------------------------------------------------ */

static int next_due(struct lifecycle *l, int64_t after_ns, int64_t *ret_due_ns)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = 1, .attributes_only = true };
	struct key_parts parts;
	int result;

	*ret_due_ns = ITEM_FOREVER;
	key_range_due(ITEM_FOREVER, &query.range);
	if (after_ns < ITEM_FOREVER)
		key_due(after_ns + 1, 0, &query.range.from);
	result = store_query(l->store, &query, &page);
	if (result || !page.count)
		return result;
	result = key_parse(store_codec(l->store), page.rows[0].key, page.rows[0].key_size, &parts);
	if (!result)
		*ret_due_ns = parts.due_ns;
	return result;
}

static int sweep_due(struct sweep *w)
{
	struct store_retry retry = { 0 };
	uint64_t left = w->budget;
	struct key after;
	bool started = false, more = true;
	int result = 0;

	while (more && !result && w->budget) {
		result = sweep_page(w, &after, &started, &more);
		/* The rows are read anew, from the start: what is dealt with is gone. */
		if (store_retry(&retry, &result)) {
			started = false;
			more = true;
			result = 0;
		} else if (!result && w->budget != left) {
			/* Only what was dealt with counts: rows that stay are read again after each conflict. */
			left = w->budget;
			retry.tries = 0;
		}
	}
	return result;
}

int lifecycle_sweep(struct lifecycle *l, uint64_t budget, struct sweep_result *ret_result)
{
	struct sweep w = { .l = l, .budget = budget, .step.entries = true };
	struct sweep_result r = { 0 };
	int64_t again_ns = ITEM_FOREVER;
	int result = 0;

	w.now_ns = watch_steady_ns(l, &r.paused);
	if (!r.paused)
		result = sweep_due(&w);
	if (!result && !r.paused)
		result = evict_over_caps(l, &w.budget, &w.total);
	if (!result && !r.paused)
		result = room_keep(l, &w.budget, &w.total, &again_ns);
	step_release(&w.step);
	r.destroyed = w.total.items;
	r.bytes = w.total.bytes;
	r.more = !w.budget;
	if (!result && r.destroyed)
		result = batch_prune(l);
	if (!result)
		result = next_due(l, r.paused ? 0 : w.now_ns, &r.next_due_ns);
	if (w.busy)
		r.next_due_ns = util_min(r.next_due_ns, time_add(w.now_ns, BUSY_AGAIN_NS));
	if (w.damaged)
		r.next_due_ns = util_min(r.next_due_ns, time_add(w.now_ns, DAMAGED_AGAIN_NS));
	r.next_due_ns = util_min(r.next_due_ns, time_add(w.now_ns, again_ns));
	if (r.more)
		r.next_due_ns = w.now_ns;
	if (!result)
		*ret_result = r;
	return result;
}

/* ---- what was let go ------------------------------------------------------------------ */

static int release_once(struct lifecycle *l, uint64_t id, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct destroyed total = { 0 };
	struct standing st;
	struct item item;
	bool suspect;
	int64_t now_ns = watch_steady_ns(l, &suspect);
	int result = record_get_item(l->store, at, true, &value, &item);

	if (result || item.id != id || S_ISDIR(item.mode) || suspect || item.deletion.destroy_ns > now_ns)
		return result < 0 ? result : 0;
	result = due_top(l, at, &item, &st);
	/* What went with a directory waits for it. */
	if (result || !place_equal(&st.top, at))
		return result;
	return destroy_file(l, at, destroy_cause(&item.deletion, now_ns), &total);
}

void lifecycle_note_released(struct lifecycle *l, uint64_t id, const struct place *at)
{
	if (at->state != KEY_DEL)
		return;
	lifecycle_lock(l);
	/* Whatever keeps it from going now, the sweeper tries again. */
	release_once(l, id, at);
	lifecycle_unlock(l);
}
