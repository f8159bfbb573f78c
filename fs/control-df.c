/*
 * control-df.c - "df": what the trash holds and why, added up over all that is
 * in it.
 *
 * Progress; result live, trash, removed, replaced, purged, due_day, space.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fs/control-internal.h"

#define DAY_NS (86400 * CLOCK_SECOND_NS)

struct sum {
	int64_t items, bytes;
};

static void sum_add(struct sum *s, uint64_t bytes)
{
	s->items++;
	s->bytes += (int64_t)bytes;
}

struct usage {
	struct job *job;
	struct sum removed, replaced, purged, due_day;
	int64_t tomorrow_ns;
	uint64_t looked_at;
};

/* A file with several names counts its bytes once, in the totals; here, where its names are, none. */
static void add_item(struct usage *u, const struct item *item)
{
	const struct deletion *d = &item->deletion;
	uint64_t bytes = S_ISREG(item->mode) && !(item->flags & ITEM_REFERENCE) ? item->size : 0;

	if (d->cause == ITEM_TEMPORARY)
		return;
	if (d->flags & DELETION_PURGED)
		sum_add(&u->purged, bytes);
	else if (d->cause == ITEM_REPLACED)
		sum_add(&u->replaced, bytes);
	else
		sum_add(&u->removed, bytes);
	if (d->destroy_ns <= u->tomorrow_ns)
		sum_add(&u->due_day, bytes);
}

/* One row of TRASH: the item it names, if that is still there and not damaged. */
static void add_row(struct usage *u, const struct store_row *row)
{
	struct store *s = job_store(u->job);
	struct store_value value = { 0 };
	struct trash_row trash;
	struct item item;

	if (row->damaged || record_decode_trash(store_codec(s), &row->value, &trash))
		return;
	if (store_get(s, &trash.key, true, &value) == 0 && record_decode_item(&value, &item) == 0)
		add_item(u, &item);
	store_value_release(&value);
}

static int add_up(struct usage *u)
{
	struct store_query q = { 0 };
	struct store_page page = { .more = true };
	struct key after;
	int result = 0;

	key_range_trash(0, UINT64_MAX, &q.range);
	while (page.more) {
		store_page_release(&page);
		result = store_query(job_store(u->job), &q, &page);
		if (result)
			return result;
		for (size_t i = 0; i < page.count; i++)
			add_row(u, &page.rows[i]);
		u->looked_at += page.count;
		after = page.next;
		q.after = &after;
		if (job_progress(u->job, u->looked_at, 0)) {
			result = -EINTR;
			break;
		}
	}
	store_page_release(&page);
	return result;
}

void job_df(struct job *j)
{
	struct usage u = { .job = j, .tomorrow_ns = store_now_ns(job_store(j)) + DAY_NS };
	int64_t c[STORE_COUNTERS_MAX] = { 0 };
	json_t *result;
	int error = record_get_counters(job_store(j), c);

	if (!error)
		error = add_up(&u);
	if (error == -EINTR) {
		job_error(j, CONTROL_INTERRUPTED, NULL, "interrupted");
		return;
	}
	if (error) {
		job_error_errno(j, NULL, error);
		return;
	}
	result = json_pack("{so so so so so so so*}", "live",
			   job_amount(c[COUNTER_LIVE_ITEMS], c[COUNTER_LIVE_BYTES]), "trash",
			   job_amount(c[COUNTER_TRASH_ITEMS], c[COUNTER_TRASH_BYTES]), "removed",
			   job_amount(u.removed.items, u.removed.bytes), "replaced",
			   job_amount(u.replaced.items, u.replaced.bytes), "purged",
			   job_amount(u.purged.items, u.purged.bytes), "due_day",
			   job_amount(u.due_day.items, u.due_day.bytes), "space", job_space(j));
	job_result(j, CONTROL_DONE, result);
}
