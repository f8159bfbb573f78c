/*
 * batch-list.c - the records of batches: listing them, closing what a crash left
 * open, removing those of which nothing is left.
 */
#include "lifecycle/internal.h"

#define PRUNE_BATCHES 8 /* looked at in one go */
#define PRUNE_ROWS 1000

struct batch_array {
	struct batch *items;
	size_t count, capacity;
};

static int array_push(struct batch_array *a, const struct batch *batch)
{
	struct batch *grown;
	size_t capacity;

	if (a->count == a->capacity) {
		capacity = util_max(2 * a->capacity, (size_t)64);
		grown = reallocarray(a->items, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		a->items = grown;
		a->capacity = capacity;
	}
	a->items[a->count++] = *batch;
	return 0;
}

/* One page of records from `after` on; *ret_more and `after` say how to go on. */
static int read_page(struct lifecycle *l, const struct key_range *range, struct key *after,
		     bool *started, size_t limit, struct batch_array *a, bool *ret_more)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .range = *range, .after = *started ? after : NULL, .limit = limit };
	struct batch batch;
	int result = store_query(l->store, &query, &page);

	for (size_t i = 0; i < page.count && !result; i++)
		if (!page.rows[i].damaged && !record_decode_batch(&page.rows[i].value, &batch))
			result = array_push(a, &batch);
	if (result)
		return result;
	*after = page.next;
	*started = true;
	*ret_more = page.more;
	return 0;
}

static int read_all(struct lifecycle *l, uint32_t uid, struct batch_array *a)
{
	struct key_range range;
	struct key after;
	bool started = false, more = true;
	int result = 0;

	if (uid == UINT32_MAX)
		key_range_batches_all(&range);
	else
		key_range_batches(uid, &range);
	while (more && !result)
		result = read_page(l, &range, &after, &started, 0, a, &more);
	return result;
}

/* ---- listing --------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct batch *)a)->seq, y = ((const struct batch *)b)->seq;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* An open one is known better in memory. */
static void settle_open(struct lifecycle *l, struct batch_array *a)
{
	lifecycle_lock(l);
	for (size_t i = 0; i < a->count; i++) {
		const struct open_batch *b = l->batches;

		while (b && b->record.seq != a->items[i].seq)
			b = b->next;
		if (b && !a->items[i].last_seq) {
			a->items[i].count = b->record.count;
			a->items[i].bytes = b->record.bytes;
		}
	}
	lifecycle_unlock(l);
}

int lifecycle_batches(struct lifecycle *l, uint32_t uid,
		      bool (*row)(void *data, const struct batch *batch), void *data)
{
	struct batch_array a = { 0 };
	int result = read_all(l, uid, &a);

	if (!result) {
		settle_open(l, &a);
		if (a.count)
			qsort(a.items, a.count, sizeof(*a.items), newest_first);
		for (size_t i = 0; i < a.count; i++)
			if (row(data, &a.items[i]))
				break;
	}
	free(a.items);
	return result;
}

/* ---- after a crash ------------------------------------------------------------------ */

struct recount {
	struct lifecycle *l;
	struct batch batch;
	uint64_t last_seq;
};

static bool recount_row(void *data, uint64_t seq, const struct trash_row *row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct recount *r = data;
	struct place at;
	struct item item;

	r->last_seq = util_max(r->last_seq, seq);
	r->batch.count++;
	if (!standing_row_item(r->l, &row->key, true, &at, &value, &item))
		r->batch.bytes += item.size;
	return false;
}

static int close_left_open(struct lifecycle *l, const struct batch *open)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct recount r = { .l = l, .batch = *open };
	int result;

	r.batch.count = r.batch.bytes = 0;
	result = batch_rows(l, open, 0, recount_row, &r);
	if (result < 0)
		return result;
	r.batch.last_seq = util_max(r.last_seq, open->seq);
	/*
	 * Those that came back before the crash were entries too, and when one did it was
	 * noted how many there were; the first came with the record. So one of which
	 * nothing is left is told to be gone, as one that ended cleanly is, and undo does
	 * not take the batch before for it.
	 */
	r.batch.count = util_max(r.batch.count + open->restored, UINT64_C(1));
	r.batch.count = util_max(r.batch.count, open->count);
	transaction_put_batch(&t, &r.batch, open->version);
	result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
	return result;
}

static int recover_once(struct lifecycle *l)
{
	struct batch_array a = { 0 };
	int result = read_all(l, UINT32_MAX, &a);

	for (size_t i = 0; i < a.count && !result; i++)
		if (!a.items[i].last_seq)
			result = close_left_open(l, &a.items[i]);
	free(a.items);
	return result;
}

int batch_recover(struct lifecycle *l)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = recover_once(l);
	while (store_retry(&retry, &result));
	return result;
}

/* ---- pruning --------------------------------------------------------------------------- */

static bool stop_at_first(void *data, uint64_t seq, const struct trash_row *row)
{
	return true;
}

static int prune_batch(struct lifecycle *l, const struct batch *batch)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct key key;
	int result;

	/* For a day it can still be told that all of it is back. */
	if (!batch->last_seq || time_add((int64_t)batch->last_seq, DAY_NS) > store_now_ns(l->store))
		return 0;
	if (batch->purge &&
	    time_add((int64_t)batch->last_seq, POLICY_GRACE_MAX_NS) < store_now_ns(l->store))
		result = 0; /* however it was, its grace is over */
	else
		result = batch_rows(l, batch, PRUNE_ROWS, stop_at_first, NULL);
	if (result)
		return result < 0 ? result : 0;
	key_batch(batch->uid, batch->seq, &key);
	transaction_delete(&t, &key, STORE_IF_VERSION, batch->version);
	lifecycle_lock_background(l);
	result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
	lifecycle_unlock(l);
	return result;
}

/*
 * Looked at without the lock, which thousands of rows would hold up: whatever
 * joins a batch that is closed puts its record, at another version.
 */
static int prune_page(struct lifecycle *l)
{
	struct batch_array a = { 0 };
	struct key_range range;
	struct key from;
	bool started, more = false;
	int result;

	lifecycle_lock(l);
	from = l->prune_from;
	lifecycle_unlock(l);
	started = from.size != 0;
	key_range_batches_all(&range);
	result = read_page(l, &range, &from, &started, PRUNE_BATCHES, &a, &more);
	for (size_t i = 0; i < a.count && !result; i++)
		result = prune_batch(l, &a.items[i]);
	free(a.items);
	if (result)
		return result;
	if (!more)
		from.size = 0;
	lifecycle_lock(l);
	l->prune_from = from;
	lifecycle_unlock(l);
	return 0;
}

int batch_prune(struct lifecycle *l)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = prune_page(l);
	while (store_retry(&retry, &result));
	return result;
}
