/*
 * batch.c - what belongs to one deletion as its user sees it: everything that a
 * process group removes without a minute's pause.
 *
 * Open batches are a short list in memory. The record is written with the first
 * entry, in its transaction, and again when the batch is closed; what a crash
 * leaves open is counted from its rows at the next open. Entries carry their
 * batch, so the record only says where to look and what it was.
 */
#include "lifecycle/internal.h"

#define IDLE_NS MINUTE_NS
#define IDLE_OLD_NS CLOCK_SECOND_NS /* once it is ... */
#define OLD_NS HOUR_NS
#define OPEN_MAX 256

static int64_t boot_now(struct lifecycle *l)
{
	return clock_boot_ns(store_clock(l->store));
}

static int64_t batch_idle_at(const struct open_batch *b)
{
	bool old = b->last_boot_ns - b->opened_boot_ns >= OLD_NS;

	return b->last_boot_ns + (old ? IDLE_OLD_NS : IDLE_NS);
}

/* ---- closing ------------------------------------------------------------------ */

static void batch_unlink(struct lifecycle *l, struct open_batch *b)
{
	struct open_batch **at = &l->batches;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
}

static int batch_put_closed(struct lifecycle *l, const struct batch *closed)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct batch record = *closed;
	struct batch stored;
	int result = record_get_batch(l->store, closed->uid, closed->seq, &stored);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	record.restored = stored.restored;
	record.undone = stored.undone;
	transaction_put_batch(&t, &record, stored.version);
	return tree_commit(&t, l->store, STORE_RELEASING, NULL);
}

int batch_close(struct lifecycle *l, struct open_batch *b)
{
	struct store_retry retry = { 0 };
	int result = 0;

	if (b->recorded) {
		do
			result = batch_put_closed(l, &b->record);
		while (store_retry(&retry, &result));
	}
	/* One that could not be closed stays, to be tried again. */
	if (result)
		return result;
	batch_unlink(l, b);
	free(b);
	return 0;
}

int batch_close_id(struct lifecycle *l, uint64_t seq)
{
	for (struct open_batch *b = l->batches; b; b = b->next)
		if (b->record.seq == seq)
			return batch_close(l, b);
	return 0;
}

int batch_close_idle(struct lifecycle *l, bool all, int64_t *ret_next_boot_ns)
{
	int64_t now_ns = boot_now(l);
	int64_t next_ns = ITEM_FOREVER;
	struct open_batch *next;
	int result = 0;

	for (struct open_batch *b = l->batches; b; b = next) {
		next = b->next;
		if (all || batch_idle_at(b) <= now_ns) {
			int closed = batch_close(l, b);

			result = result ? result : closed;
		} else {
			next_ns = util_min(next_ns, batch_idle_at(b));
		}
	}
	*ret_next_boot_ns = next_ns;
	return result;
}

/* ---- joining -------------------------------------------------------------------- */

/* Keeps the list short: the one idle for longest is closed early. */
static int batch_bound(struct lifecycle *l)
{
	struct open_batch *oldest = NULL;
	unsigned count = 0;

	for (struct open_batch *b = l->batches; b; b = b->next) {
		count++;
		if (!oldest || b->last_boot_ns < oldest->last_boot_ns)
			oldest = b;
	}
	return count >= OPEN_MAX ? batch_close(l, oldest) : 0;
}

static int batch_open(struct lifecycle *l, const struct actor *actor, bool purge,
		      uint64_t directory, struct open_batch **ret_batch)
{
	struct open_batch *b;
	uint64_t seq;
	int result = batch_bound(l);

	if (!result)
		result = store_new_seq(l->store, &seq);
	if (result)
		return result;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->record = (struct batch){
		.seq = seq,
		.directory = directory,
		.uid = actor->uid,
		.session = actor->session,
		.group = actor->pid ? actor->group : 0,
		.purge = purge,
	};
	memcpy(b->record.command, actor->command, sizeof(b->record.command));
	b->opened_boot_ns = b->last_boot_ns = boot_now(l);
	b->next = l->batches;
	l->batches = b;
	*ret_batch = b;
	sweeper_expect(l, lifecycle_now_ns(l) + IDLE_NS);
	return 0;
}

int batch_join(struct lifecycle *l, const struct actor *actor, bool purge, uint64_t directory,
	       struct open_batch **ret_batch)
{
	uint32_t group = actor->pid ? actor->group : 0; /* from another pid namespace: by uid alone */
	int result;

	for (struct open_batch *b = l->batches; b; b = b->next) {
		if (b->record.uid != actor->uid || b->record.group != group || b->record.purge != purge)
			continue;
		if (batch_idle_at(b) > boot_now(l)) {
			*ret_batch = b;
			return 0;
		}
		result = batch_close(l, b);
		if (result)
			return result;
		break;
	}
	return batch_open(l, actor, purge, directory, ret_batch);
}

void batch_add(struct transaction *t, const struct open_batch *b)
{
	struct batch opened = b->record;

	if (b->recorded)
		return;
	opened.last_seq = opened.count = opened.bytes = 0;
	transaction_put_batch(t, &opened, 0);
}

void batch_count(struct lifecycle *l, struct open_batch *b, uint64_t seq, uint64_t bytes)
{
	b->recorded = true;
	b->record.last_seq = util_max(b->record.last_seq, seq);
	b->record.count++;
	b->record.bytes += bytes;
	b->last_boot_ns = boot_now(l);
}

int batch_add_restored(struct lifecycle *l, struct transaction *t, uint32_t uid, uint64_t seq,
		       uint64_t count)
{
	struct batch batch;
	int result;

	if (!seq || !count)
		return 0;
	result = record_get_batch(l->store, uid, seq, &batch);
	if (result)
		return result == STORE_ABSENT ? 0 : result;
	batch.restored += count;
	/* After a crash no more is known of an open one than its record and what is left. */
	for (const struct open_batch *b = l->batches; b && !batch.last_seq; b = b->next)
		if (b->record.seq == seq)
			batch.count = b->record.count;
	transaction_put_batch(t, &batch, batch.version);
	return 0;
}

int batch_add_entries(struct lifecycle *l, struct transaction *t, const struct deletion *d,
		      uint64_t last_seq, uint64_t count, uint64_t bytes)
{
	struct batch batch;
	int result;

	if (!d->batch)
		return 0;
	result = record_get_batch(l->store, d->uid, d->batch, &batch);
	if (result)
		return result == STORE_ABSENT ? 0 : result;
	batch.last_seq = util_max(batch.last_seq, last_seq);
	batch.count += count;
	batch.bytes += bytes;
	transaction_put_batch(t, &batch, batch.version);
	return 0;
}

/* ---- entries of a batch ----------------------------------------------------------- */

struct row_scan {
	struct lifecycle *l;
	const struct batch *batch;
	uint64_t bound, seen;
	bool (*row)(void *data, uint64_t seq, const struct trash_row *row);
	void *data;
};

static int row_scan_page(struct row_scan *scan, const struct store_page *page)
{
	const struct key_codec *codec = store_codec(scan->l->store);
	struct key_parts parts;
	struct trash_row row;

	for (size_t i = 0; i < page->count; i++) {
		/*
		 * A damaged row is check's to name; it must not keep the others from coming back.
		 */
		if (page->rows[i].damaged ||
		    key_parse(codec, page->rows[i].key, page->rows[i].key_size, &parts) ||
		    record_decode_trash(codec, &page->rows[i].value, &row) ||
		    row.batch != scan->batch->seq)
			continue;
		if (scan->row(scan->data, parts.seq, &row))
			return 1;
	}
	scan->seen += page->count;
	return scan->bound && scan->seen >= scan->bound ? BATCH_BOUND : 0;
}

/* A purged entry's row in EXP stands at the purge's time and its grace. */
static void batch_range(const struct batch *batch, struct key_range *ret_range)
{
	uint64_t last = batch->last_seq ? batch->last_seq : INT64_MAX - 1;

	if (!batch->purge) {
		key_range_trash(batch->seq, last + 1, ret_range);
		return;
	}
	key_range_due(time_add((int64_t)last, POLICY_GRACE_MAX_NS), ret_range);
	key_due((int64_t)batch->seq, 0, &ret_range->from);
}

int batch_rows(struct lifecycle *l, const struct batch *batch, uint64_t bound,
	       bool (*row)(void *data, uint64_t seq, const struct trash_row *row), void *data)
{
	struct row_scan scan = { l, batch, bound, 0, row, data };
	struct store_query query = { .reverse = !batch->purge };
	struct store_page page = { 0 };
	struct key next;
	bool more = true;
	int result = 0;

	batch_range(batch, &query.range);
	while (more && !result) {
		result = store_query(l->store, &query, &page);
		if (result)
			return result;
		result = row_scan_page(&scan, &page);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}
