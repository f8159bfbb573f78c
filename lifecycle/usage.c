/*
 * usage.c - what a store, or a directory, holds and why.
 *
 * Of the whole store the live part is known by counters; only the trash is
 * looked through, and of what is live only what lies inside a directory that was
 * moved into the trash whole: the counters take it for live, here it counts as
 * what it is. Of a directory everything below it is looked through.
 *
 * A file with several names weighs in each of them as if shared out evenly: live
 * while any of them is, as the counters have it.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

/* What the deleted directory around an item says of it. Zeroed: there is none. */
struct around {
	bool deleted;
	bool purged;
	uint8_t cause;
	uint64_t batch;
	int64_t due_ns;
};

struct pending {
	uint64_t directory;
	struct around around;
};

struct measuring {
	struct lifecycle *l;
	struct usage *usage;
	int64_t due_before_ns;
	bool whole; /* deleted items are met by their own rows, not on the way down */
	bool (*progress)(void *data, uint64_t done);
	void *data;
	uint64_t done;
	struct pending *todo;
	size_t count, capacity;
};

static int todo_push(struct measuring *m, uint64_t directory, const struct around *around)
{
	size_t capacity;
	struct pending *grown;

	if (m->count == m->capacity) {
		capacity = util_max(2 * m->capacity, (size_t)32);
		grown = reallocarray(m->todo, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		m->todo = grown;
		m->capacity = capacity;
	}
	m->todo[m->count++] = (struct pending){ directory, *around };
	return 0;
}

static void amount_add(struct usage_amount *a, int64_t bytes)
{
	a->items++;
	a->bytes += bytes;
}

/* What a name weighs where it is: live, or in the trash. */
static int weigh(struct lifecycle *l, const struct item *item, bool live, int64_t *ret_bytes)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result;

	*ret_bytes = S_ISREG(item->mode) ? (int64_t)item->size : 0;
	if (!(item->flags & ITEM_REFERENCE))
		return 0;
	*ret_bytes = 0;
	result = record_get_link(l->store, item->id, true, &value, &link);
	if (result || !S_ISREG(link.mode))
		return util_min(result, 0);
	if (live && link.links_live)
		*ret_bytes = (int64_t)(link.size / link.links_live);
	else if (!live && !link.links_live && link.links_total)
		*ret_bytes = (int64_t)(link.size / link.links_total);
	return 0;
}

/* ---- one item --------------------------------------------------------------------------- */

/* What lies in the trash goes by what stands in force where it lies. */
static int add_deleted(struct measuring *m, const struct place *at, const struct around *what,
		       int64_t bytes)
{
	struct usage *u = m->usage;
	struct rules rules;
	int result = rules_load(m->l, at->directory, &rules);

	if (result)
		return result == -ENOENT ? 0 : result;
	amount_add(&u->trash, bytes);
	amount_add(what->purged			? &u->purged :
		   what->cause == ITEM_REPLACED ? &u->replaced :
						  &u->removed,
		   bytes);
	amount_add(rules.policy.hold ? &u->held : &u->reclaimable, bytes);
	if (what->due_ns <= m->due_before_ns && !rules.policy.hold)
		amount_add(&u->due, bytes);
	return 0;
}

/* What was deleted itself. With its directory's batch it is due when that is. */
static struct around deleted_item(const struct item *item, const struct around *around)
{
	const struct deletion *d = &item->deletion;
	bool joined = around->deleted && d->batch && d->batch == around->batch;

	return (struct around){
		.deleted = true,
		.purged = d->flags & DELETION_PURGED || (joined && around->purged),
		.cause = d->cause,
		.batch = d->batch,
		.due_ns = joined ? around->due_ns : d->destroy_ns,
	};
}

static int add_item(struct measuring *m, const struct place *at, const struct item *item,
		    const struct around *around)
{
	struct around here = *around;
	int64_t bytes;
	int result;

	if (at->state == KEY_DEL && item->deletion.cause == ITEM_TEMPORARY)
		return 0;
	if (at->state == KEY_DEL)
		here = deleted_item(item, around);
	result = weigh(m->l, item, at->state == KEY_ACT, &bytes);
	if (!result && !here.deleted)
		amount_add(&m->usage->live, bytes);
	else if (!result)
		result = add_deleted(m, at, &here, bytes);
	if (!result && m->whole && at->state == KEY_ACT) {
		m->usage->live.items--;
		m->usage->live.bytes -= bytes;
	}
	return result || !S_ISDIR(item->mode) ? result : todo_push(m, item->id, &here);
}

/* ---- all of them -------------------------------------------------------------------------- */

static bool is_passed(int result)
{
	return result == -EBADMSG || result == -ENOENT; /* damaged, or gone meanwhile */
}

static int tell(struct measuring *m, uint64_t count)
{
	m->done += count;
	return m->progress && m->progress(m->data, m->done) ? -EINTR : 0;
}

static int add_row(struct measuring *m, const struct store_row *row, const struct around *around)
{
	struct key_parts parts;
	struct place at;
	struct item item;
	int result;

	if (key_parse(store_codec(m->l->store), row->key, row->key_size, &parts) ||
	    parts.kind != KEY_KIND_ITEM || (m->whole && parts.state == KEY_DEL) ||
	    record_row_item(m->l->store, row, &at, &item))
		return 0;
	result = add_item(m, &at, &item, around);
	return is_passed(result) ? 0 : result;
}

static int walk_range(struct measuring *m, const struct key_range *range,
		      int (*row)(struct measuring *m, const struct store_row *row,
				 const struct around *around),
		      const struct around *around)
{
	struct store_query query = { .range = *range, .attributes_only = true };
	struct key next;
	bool more = true;
	int result = 0;

	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(m->l->store, &query, &page);
		if (result)
			return result;
		for (size_t i = 0; i < page.count && !result; i++)
			result = row(m, &page.rows[i], around);
		if (!result)
			result = tell(m, page.count);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}

static int walk_todo(struct measuring *m)
{
	int result = 0;

	while (m->count && !result) {
		struct pending p = m->todo[--m->count];
		struct key_range range;

		key_range_directory(p.directory, &range);
		result = walk_range(m, &range, add_row, &p.around);
	}
	return result;
}

/* ---- the whole store ------------------------------------------------------------------------ */

static int add_trash_item(struct measuring *m, const struct place *at, const struct item *item)
{
	struct around around = { 0 };
	struct standing st;
	int result = standing_load(m->l, at, item, &st);

	if (result)
		return result;
	if (!place_equal(&st.top, at))
		around = (struct around){ .deleted = true,
					  .purged = st.deletion.flags & DELETION_PURGED,
					  .batch = item->deletion.batch,
					  .due_ns = st.deletion.destroy_ns };
	result = add_item(m, at, item, &around);
	return result ? result : walk_todo(m);
}

static int add_trash_row(struct measuring *m, const struct store_row *row, const struct around *around)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row trash;
	struct place at;
	struct item item;
	int result;

	if (row->damaged || record_decode_trash(store_codec(m->l->store), &row->value, &trash))
		return 0;
	result = standing_row_item(m->l, &trash.key, true, &at, &value, &item);
	if (!result)
		result = add_trash_item(m, &at, &item);
	return result == STORE_ABSENT || is_passed(result) ? 0 : result;
}

static int measure_store(struct measuring *m)
{
	int64_t counters[STORE_COUNTERS_MAX] = { 0 };
	struct key_range range;
	int result = record_get_counters(m->l->store, counters);

	if (result)
		return result;
	m->whole = true;
	m->usage->live =
		(struct usage_amount){ counters[COUNTER_LIVE_ITEMS], counters[COUNTER_LIVE_BYTES] };
	key_range_trash(0, INT64_MAX, &range);
	return walk_range(m, &range, add_trash_row, NULL);
}

int lifecycle_usage(struct lifecycle *l, uint64_t directory, int64_t due_before_ns,
		    bool (*progress)(void *data, uint64_t done), void *data, struct usage *ret_usage)
{
	struct usage usage = { 0 };
	struct measuring m = {
		.l = l, .usage = &usage, .due_before_ns = due_before_ns, .progress = progress, .data = data
	};
	struct around live = { 0 };
	int result;

	if (directory == KEY_ID_ROOT) {
		result = measure_store(&m);
	} else {
		result = lifecycle_check_live(l, directory);
		if (!result)
			result = todo_push(&m, directory, &live);
		if (!result)
			result = walk_todo(&m);
	}
	free(m.todo);
	if (!result)
		*ret_usage = usage;
	return result;
}
