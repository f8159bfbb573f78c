/*
 * empty.c - emptying the trash: every top entry below a directory is purged.
 *
 * The target is fixed by one sequence number drawn at the start: what is deleted
 * while this runs is younger, and stays. Entries are met oldest first, each in
 * steps of its own, so nobody waits for the whole.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

struct emptier {
	struct lifecycle *l;
	const struct actor *actor;
	const struct empty_options *options;
	struct empty_result *result;
};

/* ---- size ------------------------------------------------------------------------ */

struct measure {
	uint64_t batch;
	uint64_t bytes;
};

/* What is older than the directory's own deletion is an entry of its own, and counted there. */
static enum walk measure_visit(void *data, const struct place *at, const struct item *item)
{
	struct measure *m = data;

	if (at->state == KEY_DEL && (!m->batch || item->deletion.batch != m->batch))
		return WALK_PAST;
	m->bytes += S_ISREG(item->mode) ? item->size : 0;
	return WALK_ON;
}

int measure_entry(struct lifecycle *l, const struct item *item, uint64_t *ret_bytes)
{
	struct measure m = { .batch = item->deletion.batch,
			     .bytes = S_ISREG(item->mode) ? item->size : 0 };
	int result = S_ISDIR(item->mode) ? walk_below(l, item->id, measure_visit, &m) : 0;

	if (!result)
		*ret_bytes = m.bytes;
	return result;
}

/* ---- one entry --------------------------------------------------------------------- */

/* Whether a row is a top entry to be dealt with: 1, 0, negative errno. */
static int is_wanted(struct emptier *e, const struct place *at, const struct item *item)
{
	struct standing st;
	int result = standing_load(e->l, at, item, &st);

	if (result)
		return result == -ENOENT ? 0 : result;
	if (!place_equal(&st.top, at))
		return 0;
	/* With `now` those that wait for the end of their grace go too. */
	if (!st.visible && !(e->options->now && item->deletion.flags & DELETION_PURGED))
		return 0;
	if (e->options->directory == KEY_ID_ROOT)
		return 1;
	result = tree_is_below(e->l->store, at->directory, e->options->directory, NULL);
	return result == -ENOENT ? 0 : result;
}

static int empty_now(struct emptier *e, const struct place *at, const struct item *item)
{
	struct destroyed total = { 0 };
	uint64_t budget = UINT64_MAX;
	int result;

	if (!(item->deletion.flags & DELETION_PURGED))
		return purge_entry(e->l, e->actor, at, true, 0);
	result = destroy_entry(e->l, at, &item->deletion, COUNTER_DESTROYED_USER, &budget, &total);
	return result == -EBUSY ? 0 : result;
}

static int empty_entry(struct emptier *e, const struct place *at, const struct item *item)
{
	const struct empty_options *o = e->options;
	uint64_t bytes = 0;
	int result = o->allowed ? o->allowed(o->data, at, item) : 0;

	if (!result)
		result = measure_entry(e->l, item, &bytes);
	if (!result && o->dry_run)
		result = destroy_is_held(e->l, at, item) == 1 ? -EPERM : 0;
	else if (!result)
		result = o->now ? empty_now(e, at, item) : purge_entry(e->l, e->actor, at, true, -1);
	if (result == -ENOENT)
		return 0; /* somebody was quicker */
	if (result == -EPERM || result == -EACCES) {
		e->result->refused++;
		return 0;
	}
	if (result)
		return result;
	e->result->entries++;
	e->result->bytes += bytes;
	return o->progress && o->progress(o->data, e->result->entries) ? -EINTR : 0;
}

/* What cannot be read goes by what its key says. */
static int empty_damaged(struct emptier *e, const struct key *key)
{
	struct damaged d;
	struct item item;
	int result = damaged_load(e->l->store, key, &d);

	if (!result)
		result = damaged_stand_in(e->l->store, &d, &item);
	if (result)
		return result == STORE_ABSENT ? 0 : result;
	if (e->options->directory != KEY_ID_ROOT) {
		result = tree_is_below(e->l->store, d.at.directory, e->options->directory, NULL);
		if (result != 1)
			return result == -ENOENT ? 0 : result;
	}
	return empty_entry(e, &d.at, &item);
}

static int empty_row(struct emptier *e, const struct store_row *store_row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row row;
	struct place at;
	struct item item;
	int result;

	/* Damaged ones are check's to deal with. */
	if (store_row->damaged || record_decode_trash(store_codec(e->l->store), &store_row->value, &row))
		return 0;
	result = standing_row_item(e->l, &row.key, true, &at, &value, &item);
	if (damaged_is(result)) {
		result = empty_damaged(e, &row.key);
		return damaged_is(result) ? 0 : result;
	}
	if (result)
		return result == STORE_ABSENT ? 0 : result;
	result = is_wanted(e, &at, &item);
	if (result == 1)
		result = empty_entry(e, &at, &item);
	return result == -EBADMSG ? 0 : result;
}

int lifecycle_empty(struct lifecycle *l, const struct actor *actor,
		    const struct empty_options *options, struct empty_result *ret_result)
{
	struct emptier e = { l, actor, options, ret_result };
	struct store_query query = { .attributes_only = true };
	uint64_t end;
	struct key next;
	bool more = true;
	int result;

	*ret_result = (struct empty_result){ 0 };
	result = store_new_seq(l->store, &end);
	if (result)
		return result;
	if (options->deleted_before_ns > 0)
		end = util_min(end, (uint64_t)options->deleted_before_ns);
	key_range_trash(0, end, &query.range);
	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(l->store, &query, &page);
		if (result)
			break;
		for (size_t i = 0; i < page.count && !result; i++)
			result = empty_row(&e, &page.rows[i]);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}
