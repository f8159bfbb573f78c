/*
 * restore-origin.c - bringing an entry back to where it was, with the directories
 * that lead there.
 *
 * A missing directory comes back as it was recorded, under its own id, but
 * without what else was in it. After an rm -r that is so by itself: its children
 * are deleted each on their own. A directory that was moved into the trash as a
 * whole still has live ones: before it comes back, its deletion is handed down
 * to them, so that they stay in the trash, in the same batch and as long.
 *
 * Where a live directory bears a missing one's name, that is where the path
 * leads now, and the entry goes there.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define HEIR_OPERATIONS 7 /* item twice, TRASH, EXP, LINK or guard, shadow */
#define STEP_OPERATIONS 4 /* own item, guard, batch, counters */
#define HEIR_ROWS 32

/* ---- handing a deletion down ----------------------------------------------------------- */

struct bequest {
	struct lifecycle *l;
	const char *except; /* the name that leads to what is restored */
	struct deletion deletion; /* of the nearest deleted directory */
	uint32_t mask; /* of all views that led to the directory */
	struct tree_directory directory;
	struct step step;
	uint64_t last_seq;
	uint64_t count, bytes;
	int64_t now_ns;
};

static int heir_directory(struct bequest *b, const struct item *item, const struct place *from,
			  const struct place *to)
{
	struct guard guard;
	uint64_t version;
	int result = record_get_guard(b->l->store, item->id, &guard);

	if (result)
		return result == STORE_ABSENT ? -EBADMSG : result;
	version = guard.version;
	guard.at = *to;
	transaction_put_guard(&b->step.t, item->id, &guard, version);
	b->directory.own.directory.subdirectories -= b->directory.own.directory.subdirectories > 0;
	return item->flags & ITEM_SHADOWED ? shadow_delete(b->l, &b->step.t, from) : 0;
}

static int heir_link(struct bequest *b, uint64_t id, int64_t *ret_bytes)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result = record_get_link(b->l->store, id, false, &value, &link);

	if (result)
		return result == STORE_ABSENT ? -EBADMSG : result;
	*ret_bytes = S_ISREG(link.mode) && link.links_live == 1 ? (int64_t)link.size : 0;
	link.links_live--;
	transaction_put_link(&b->step.t, &link, link.version);
	b->step.bytes += item_bytes(&link);
	return 0;
}

static int add_heir(struct bequest *b, const struct place *from, const struct item *item)
{
	struct transaction *t = &b->step.t;
	struct place to = *from;
	struct item heir = *item;
	int64_t bytes = S_ISREG(item->mode) ? (int64_t)item->size : 0;
	int result = store_new_seq(b->l->store, &to.seq);

	to.state = KEY_DEL;
	heir.deletion = b->deletion;
	heir.flags = (heir.flags | ITEM_DELETION) & ~(uint32_t)ITEM_SHADOWED;
	if (result)
		return result;
	transaction_put_item(t, b->l->store, &to, &heir, 0);
	transaction_delete_item(t, b->l->store, from, item->version);
	deletion_put_rows(b->l, t, &to, &heir.deletion, heir.deletion.batch);
	if (S_ISDIR(item->mode))
		result = heir_directory(b, item, from, &to);
	else if (item->flags & ITEM_REFERENCE)
		result = heir_link(b, item->id, &bytes);
	transaction_count_add(t, COUNTER_LIVE_ITEMS, -1);
	transaction_count_add(t, COUNTER_TRASH_ITEMS, 1);
	transaction_count_add(t, COUNTER_LIVE_BYTES, -bytes);
	transaction_count_add(t, COUNTER_TRASH_BYTES, bytes);
	b->step.bytes += item_bytes(item);
	step_moved(&b->step, item, from, &to);
	b->last_seq = to.seq;
	b->count++;
	b->bytes += (uint64_t)bytes;
	return result;
}

static int bequeath_rows(struct bequest *b, const struct store_page *page)
{
	int result = 0;

	for (size_t i = 0; i < page->count && !result; i++) {
		struct place at;
		struct item item;

		if (record_row_item(b->l->store, &page->rows[i], &at, &item) ||
		    !strcmp(at.name, b->except))
			continue;
		if (!step_has_room(b->l, &b->step, HEIR_OPERATIONS + STEP_OPERATIONS, item_bytes(&item)))
			break;
		/* Another name of a file that the step has already: in the next one. */
		if (item.flags & ITEM_REFERENCE && step_has_item(&b->step, item.id))
			continue;
		result = add_heir(b, &at, &item);
	}
	return result;
}

static int bequeath_commit(struct bequest *b)
{
	struct item_directory *d = &b->directory.own.directory;
	struct rules rules;
	int result = batch_add_entries(b->l, &b->step.t, &b->deletion, b->last_seq, b->count, b->bytes);

	if (result)
		return result;
	d->trash_until_ns = util_max(d->trash_until_ns, b->deletion.expires_ns);
	/* Its own view will show to nobody what the views above did not, nor the directories above. */
	d->trash_mask &= b->mask;
	d->trash_mask &= rules_load(b->l, b->directory.id, &rules) ?
				 0700 :
				 rules_mask(&rules, &b->directory.own);
	if (b->deletion.batch && d->saved_batch != b->deletion.batch) {
		d->saved_batch = b->deletion.batch;
		d->saved_mtime = b->directory.own.mtime;
	}
	tree_put_own(&b->step.t, b->l->store, &b->directory);
	tree_check_guard(&b->step.t, &b->directory);
	return step_commit(b->l, &b->step, STORE_RELEASING);
}

/* One step, from one page. 1: there was something, and may be more; 0: done. */
static int bequeath_page(struct bequest *b, const struct key *after, struct key *ret_next, bool *ret_more)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = HEIR_ROWS, .after = after };
	int result;

	step_reset(&b->step);
	b->count = b->bytes = 0;
	key_range_live(b->directory.id, &query.range);
	result = store_query(b->l->store, &query, &page);
	if (result)
		return result;
	*ret_more = page.more;
	*ret_next = page.next;
	result = bequeath_rows(b, &page);
	if (!result && b->count)
		result = bequeath_commit(b);
	return result ? result : b->count > 0;
}

/* A page is read again until nothing but `except` is left in it. Lock held. */
static int bequeath_once(struct bequest *b, uint64_t directory, struct key *after, bool *started,
			 bool *ret_more)
{
	struct key next;
	bool page_more;
	int result = tree_load(b->l->store, directory, &b->directory);

	if (result)
		return result;
	result = bequeath_page(b, *started ? after : NULL, &next, &page_more);
	tree_release(&b->directory);
	if (result)
		return util_min(result, result == STORE_CONFLICT ? STORE_CONFLICT : 0);
	*after = next;
	*started = true;
	*ret_more = page_more;
	return 0;
}

/* Everything live in a directory but `except` becomes deleted as `deletion` says. */
static int bequeath(struct lifecycle *l, uint64_t directory, const char *except,
		    const struct deletion *deletion, uint32_t mask)
{
	struct bequest b = { .l = l, .except = except, .deletion = *deletion, .mask = mask };
	struct store_retry retry = { 0 };
	struct key after;
	bool started = false, more = true;
	int result;

	/* What took the directory's name took none of theirs. */
	b.deletion.replaced_by = 0;
	lifecycle_lock(l);
	/* An open batch counts in memory what belongs to it. */
	result = batch_close_id(l, deletion->batch);
	if (!result)
		result = lifecycle_mark_shadows(l, directory);
	lifecycle_unlock(l);
	while (more && !result) {
		lifecycle_lock_background(l);
		result = bequeath_once(&b, directory, &after, &started, &more);
		lifecycle_unlock(l);
		if (store_retry(&retry, &result))
			result = 0;
	}
	step_release(&b.step);
	if (result)
		return result;
	/* There may have been nothing but the way. */
	lifecycle_lock(l);
	result = shadow_prune(l, directory, NULL);
	lifecycle_unlock(l);
	return result;
}

/* ---- the way down ------------------------------------------------------------------------ */

/* The directories that lead to a place, outermost first. */
struct way {
	uint64_t *ids;
	size_t count;
	size_t first; /* the first that is deleted; `count` if none is */
};

static int way_collect(struct lifecycle *l, uint64_t directory, struct way *ret_way)
{
	struct ids ids = { 0 };
	size_t deleted = 0; /* how many from the innermost up to the outermost deleted one */
	int result = 0;

	while (directory != KEY_ID_NONE && !result) {
		struct guard guard;

		result = record_get_guard(l->store, directory, &guard);
		if (!result)
			result = ids_push(&ids, directory);
		if (!result && guard.at.state == KEY_DEL)
			deleted = ids.count;
		directory = guard.at.directory;
	}
	if (result) {
		free(ids.items);
		return result == STORE_ABSENT ? -ENOENT : result;
	}
	for (size_t i = 0; i < ids.count / 2; i++) {
		uint64_t id = ids.items[i];

		ids.items[i] = ids.items[ids.count - 1 - i];
		ids.items[ids.count - 1 - i] = id;
	}
	*ret_way = (struct way){ ids.items, ids.count, ids.count - deleted };
	return 0;
}

/* A live directory inside a deleted one comes back with it, as if deleted by the same hand. */
static int way_settle(struct lifecycle *l, uint64_t directory, uint64_t by)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		_cleanup_(transaction_release) struct transaction t = { 0 };
		_cleanup_(tree_release) struct tree_directory d = { 0 };

		lifecycle_lock_background(l);
		result = tree_load(l->store, directory, &d);
		if (!result) {
			restore_settle_time(&d.own, by);
			tree_put_own(&t, l->store, &d);
			result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
		}
		lifecycle_unlock(l);
	} while (store_retry(&retry, &result));
	return result;
}

/*
 * Hands down the deletions on the way, outermost first; live directories inside
 * a deleted one inherit its.
 */
static int way_bequeath(struct lifecycle *l, const struct way *way, const char *last_name)
{
	struct deletion deletion = { 0 };
	struct tree_directory d;
	uint64_t by = 0; /* what way_settle is told of the nearest deleted directory */
	uint32_t mask = 0777;
	bool live;
	int result = 0;

	if (way->first) {
		result = tree_load(l->store, way->ids[way->first - 1], &d);
		if (result)
			return result;
		mask = d.own.directory.trash_mask;
		tree_release(&d);
	}
	for (size_t i = way->first; i < way->count && !result; i++) {
		struct guard below;
		const char *except = last_name;

		result = tree_load(l->store, way->ids[i], &d);
		if (result)
			break;
		live = tree_is_live(&d);
		if (!live) {
			deletion = d.own.deletion;
			by = deletion.batch ? deletion.batch : d.guard.at.seq;
		}
		mask &= d.own.directory.trash_mask;
		tree_release(&d);
		if (i + 1 < way->count) {
			result = record_get_guard(l->store, way->ids[i + 1], &below);
			except = below.at.state == KEY_ACT ? below.at.name : "";
		}
		if (!result)
			result = bequeath(l, way->ids[i], except, &deletion, mask);
		if (!result && live)
			result = way_settle(l, way->ids[i], by);
	}
	return result == STORE_ABSENT ? -ENOENT : result;
}

/*
 * The directory `id` under its name in `parent`: back in its place, or whatever
 * live one has that.
 */
static int way_step(struct lifecycle *l, const struct restoring *r, uint64_t id, uint64_t parent,
		    uint64_t *ret_id, struct place *ret_where)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct restoring quiet = { .actor = r->actor, .flags = RESTORE_NOREPLACE };
	struct guard guard;
	struct item item;
	int result = record_get_guard(l->store, id, &guard);

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	*ret_where = (struct place){ .directory = parent, .state = KEY_ACT };
	memcpy(ret_where->name, guard.at.name, sizeof(guard.at.name));
	result = record_get_item(l->store, ret_where, true, &value, &item);
	if (!result) {
		*ret_id = item.id;
		return S_ISDIR(item.mode) ? 0 : -ENOTDIR;
	}
	if (result != STORE_ABSENT)
		return result;
	*ret_id = id;
	return restore_one(l, &quiet, &guard.at, parent, guard.at.name);
}

static int way_walk(struct lifecycle *l, const struct restoring *r, const struct way *way,
		    uint64_t *ret_parent, char **ret_path)
{
	uint64_t parent = way->first ? way->ids[way->first - 1] : KEY_ID_ROOT;
	struct place where;
	int result = 0;

	for (size_t i = way->first; i < way->count && !result; i++) {
		lifecycle_lock(l);
		result = way_step(l, r, way->ids[i], parent, &parent, &where);
		lifecycle_unlock(l);
	}
	if (result == -ENOTDIR && ret_path)
		tree_path(l->store, &where, ret_path);
	*ret_parent = parent;
	return result;
}

/* Whether the entry may come back at all: nothing is to move for one that may not. */
static int check_entry(struct lifecycle *l, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct standing st;
	struct item item;
	int result = record_get_item(l->store, at, true, &value, &item);

	if (!result)
		result = standing_load(l, at, &item, &st);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	return st.deleted && (st.visible || st.pinned) ? 0 : -ENOENT;
}

/*
 * One directory of the way, as way_step will find it: *parent is where the way
 * has led so far, then where it leads next.
 */
static int check_way_step(struct lifecycle *l, const struct restoring *r, uint64_t id,
			  uint64_t *parent, struct place *ret_where)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	struct restoring quiet = { .actor = r->actor, .flags = RESTORE_NOREPLACE };
	struct item item;
	int result = tree_load(l->store, id, &d);

	if (result)
		return result;
	*ret_where = (struct place){ .directory = *parent, .state = KEY_ACT };
	memcpy(ret_where->name, d.guard.at.name, sizeof(ret_where->name));
	result = record_get_item(l->store, ret_where, true, &value, &item);
	if (result == STORE_ABSENT) {
		result = restore_check(l, &quiet, &d.guard.at, &d.own, *parent, d.guard.at.name);
		*parent = id;
		return result;
	}
	*parent = result ? *parent : item.id;
	return result || S_ISDIR(item.mode) ? result : -ENOTDIR;
}

/*
 * Before anything is handed down: stops at a file in the way, and at what the
 * actor may not bring back, the entry at the end of the way included.
 */
static int check_way(struct lifecycle *l, const struct restoring *r, const struct way *way,
		     const struct place *at, char **ret_path)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	uint64_t parent = way->first ? way->ids[way->first - 1] : KEY_ID_ROOT;
	struct place where;
	struct item item;
	int result = 0;

	for (size_t i = way->first; i < way->count && !result; i++)
		result = check_way_step(l, r, way->ids[i], &parent, &where);
	if (result == -ENOTDIR && ret_path)
		tree_path(l->store, &where, ret_path);
	/* A live item comes back with the directory it is in. */
	if (result || (at->state == KEY_ACT && parent == at->directory))
		return result;
	result = record_get_item(l->store, at, true, &value, &item);
	if (!result)
		result = restore_check(l, r, at, &item, parent, at->name);
	return result == STORE_ABSENT ? -ENOENT : result;
}

int restore_to_origin(struct lifecycle *l, struct restoring *r, const struct place *at, char **ret_path)
{
	struct way way = { 0 };
	uint64_t parent = at->directory;
	int result = check_entry(l, at);

	if (!result)
		result = way_collect(l, at->directory, &way);
	if (!result && way.first < way.count) {
		result = r->flags & RESTORE_PARENTS ? check_way(l, r, &way, at, ret_path) : -ENOENT;
		if (!result)
			result = way_bequeath(l, &way, at->state == KEY_ACT ? at->name : "");
		if (!result)
			result = way_walk(l, r, &way, &parent, ret_path);
	}
	free(way.ids);
	/* A live item inside a directory that came back is where it was. */
	if (!result && at->state == KEY_ACT && parent == at->directory) {
		r->to = *at;
		return restore_tell(r, 1);
	}
	return result ? result : restore_entry(l, r, at, parent, at->name);
}

int lifecycle_restore_origin(struct lifecycle *l, const struct actor *actor, const struct place *at,
			     unsigned flags, bool (*progress)(void *data, uint64_t done),
			     void *data, char **ret_path)
{
	struct restoring r = { .actor = actor, .flags = flags, .progress = progress, .data = data };
	int result;

	if (ret_path)
		*ret_path = NULL;
	result = restore_to_origin(l, &r, at, ret_path);
	if (result == -EINTR && r.to.name[0])
		result = 0;
	return result || !ret_path ? result : tree_path(l->store, &r.to, ret_path);
}
