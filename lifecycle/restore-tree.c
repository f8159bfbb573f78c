/*
 * restore-tree.c - what a batch deleted below a directory comes back, deepest
 * first, in steps of one transaction each.
 *
 * The directory itself is still in the trash meanwhile, pinned, so that its
 * expiry waits. Of one name the newest deletion of the batch comes back; where a
 * live item bears it already (a part that was restored before), that stays and
 * the deleted one does too. Everything older stays, now in the directory's own
 * trash. A crash leaves some children live in a deleted directory: the same
 * restore goes on from there.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define PIN_NS HOUR_NS
#define PIN_AGAIN_NS (PIN_NS / 2) /* renewed when less is left */
#define CHILD_OPERATIONS 7 /* item twice, TRASH, EXP, LINK or guard, shadow */
#define STEP_OPERATIONS 4 /* guard, own item, batch, counters */
#define RESTORE_ROWS 64

struct level {
	uint64_t id;
	struct place at; /* of the directory's own item, when it is restored in its turn */
	bool shadows; /* live sub-directories are being looked for; then deleted items */
	struct key after; /* rows up to here were dealt with; size 0: none */
	char name[KEY_NAME_MAX + 1]; /* the last name that came back */
};

struct regrowth {
	struct lifecycle *l;
	struct restoring *r;
	uint64_t batch;
	uint32_t batch_uid;
	const struct place *top;
	uint64_t top_id;
	int64_t pinned_until_ns;
	struct level *levels;
	size_t depth, capacity;
	struct step step;
	struct tree_directory directory; /* that the step is in */
	uint64_t count; /* children in the step */
	int64_t now_ns;
	bool careful; /* after a conflict: names are looked up one by one */
};

static int enter(struct regrowth *g, uint64_t id, const struct place *at)
{
	struct level *grown, *level;
	size_t capacity;

	if (g->depth == g->capacity) {
		capacity = util_max(2 * g->capacity, (size_t)8);
		grown = reallocarray(g->levels, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		g->levels = grown;
		g->capacity = capacity;
	}
	level = &g->levels[g->depth++];
	level->id = id;
	level->at = *at;
	level->shadows = true;
	level->after.size = 0;
	level->name[0] = '\0';
	return 0;
}

/* ---- the pin ----------------------------------------------------------------------------- */

static int set_pin(struct regrowth *g, const struct item *top, int64_t until_ns)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct deletion d = top->deletion;

	if (until_ns)
		d.flags |= DELETION_PINNED;
	else
		d.flags &= ~DELETION_PINNED;
	d.destroy_ns = util_max(d.expires_ns, until_ns);
	deletion_change(g->l, &t, g->top, top, &d, d.batch);
	return tree_commit(&t, g->l->store, STORE_RELEASING, NULL);
}

/* The top must still be there, and be kept until this is done. Lock held. */
static int hold_top(struct regrowth *g)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	bool suspect;
	int64_t now_ns = watch_steady_ns(g->l, &suspect);
	struct item top;
	int result;

	if (g->top->state != KEY_DEL)
		return 0;
	result = record_get_item(g->l->store, g->top, false, &value, &top);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (top.id != g->top_id || top.deletion.flags & (DELETION_DOOMED | DELETION_PURGED))
		return -ENOENT;
	if (g->pinned_until_ns - now_ns > PIN_AGAIN_NS)
		return 0;
	result = set_pin(g, &top, time_add(now_ns, PIN_NS));
	if (!result)
		g->pinned_until_ns = time_add(now_ns, PIN_NS);
	return result;
}

/* The top stays in the trash (only a part of it was asked for): its expiry is its own again. */
static int release_top(struct regrowth *g)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item top;
	int result;

	if (!g->pinned_until_ns)
		return 0;
	result = record_get_item(g->l->store, g->top, false, &value, &top);
	if (result)
		return result == STORE_ABSENT ? 0 : result;
	return top.deletion.flags & DELETION_PINNED ? set_pin(g, &top, 0) : 0;
}

/* ---- a step --------------------------------------------------------------------------------- */

static int step_begin(struct regrowth *g, uint64_t directory)
{
	int result = hold_top(g);

	if (!result)
		result = tree_load(g->l->store, directory, &g->directory);
	if (result)
		return result;
	step_reset(&g->step);
	g->count = 0;
	g->now_ns = lifecycle_now_ns(g->l);
	return 0;
}

static void step_drop(struct regrowth *g)
{
	tree_release(&g->directory);
	g->directory.value = (struct store_value){ 0 };
	step_reset(&g->step);
}

static int step_end(struct regrowth *g, bool own_changed)
{
	struct transaction *t = &g->step.t;
	int result = 0;

	if (g->count) {
		tree_check_guard(t, &g->directory);
		if (own_changed)
			tree_put_own(t, g->l->store, &g->directory);
		result = batch_add_restored(g->l, t, g->batch_uid, g->batch, g->count);
		if (!result)
			result = step_commit(g->l, &g->step, STORE_RELEASING);
	}
	step_drop(g);
	return result;
}

static int add_link(struct regrowth *g, uint64_t id, int64_t *ret_trash_bytes)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result = record_get_link(g->l->store, id, false, &value, &link);

	if (result)
		return result == STORE_ABSENT ? -EBADMSG : result;
	*ret_trash_bytes = S_ISREG(link.mode) && !link.links_live ? (int64_t)link.size : 0;
	link.links_live++;
	link.ctime = tree_time(g->now_ns);
	g->step.bytes += item_bytes(&link);
	transaction_put_link(&g->step.t, &link, link.version);
	return 0;
}

/* Puts a child back beside its directory's other live items. */
static int add_child(struct regrowth *g, const struct place *at, const struct item *item, unsigned flags)
{
	struct transaction *t = &g->step.t;
	struct place to = { .directory = at->directory, .state = KEY_ACT };
	struct item back = *item;
	int64_t bytes = S_ISREG(item->mode) ? (int64_t)item->size : 0;
	int result = item->flags & ITEM_REFERENCE ? add_link(g, item->id, &bytes) : 0;

	if (result)
		return result;
	memcpy(to.name, at->name, sizeof(to.name));
	restore_revive(&back, at->seq, g->now_ns);
	back.flags |= flags;
	transaction_put_item(t, g->l->store, &to, &back, 0);
	transaction_delete_item(t, g->l->store, at, item->version);
	deletion_delete_rows(t, at, &item->deletion);
	transaction_count_add(t, COUNTER_LIVE_ITEMS, 1);
	transaction_count_add(t, COUNTER_TRASH_ITEMS, -1);
	transaction_count_add(t, COUNTER_RESTORED, 1);
	transaction_count_add(t, COUNTER_LIVE_BYTES, bytes);
	transaction_count_add(t, COUNTER_TRASH_BYTES, -bytes);
	g->step.bytes += item_bytes(item);
	step_moved(&g->step, item, at, &to);
	g->batch_uid = item->deletion.uid;
	g->count++;
	return 0;
}

/*
 * ---- directories that are done
 * -----------------------------------------------------------------
 */

static int restore_directory_once(struct regrowth *g, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct guard guard = { .at = { .directory = at->directory, .state = KEY_ACT } };
	struct shadow shadow = { 0 };
	struct item item;
	uint64_t version;
	int shadowed, result = step_begin(g, at->directory);

	if (result)
		return result;
	result = record_get_item(g->l->store, at, false, &value, &item);
	shadowed = result ? result : shadow_needed(g->l, item.id, NULL);
	if (shadowed >= 0 && !result) {
		shadow.directory = item.id;
		memcpy(shadow.name, at->name, sizeof(shadow.name));
		memcpy(guard.at.name, at->name, sizeof(guard.at.name));
		result = record_get_guard(g->l->store, item.id, &guard);
	}
	if (result || shadowed < 0) {
		step_drop(g);
		return result == STORE_ABSENT ? -ENOENT : result ? result : shadowed;
	}
	version = guard.version;
	guard.at = (struct place){ .directory = at->directory, .state = KEY_ACT };
	memcpy(guard.at.name, at->name, sizeof(guard.at.name));
	result = add_child(g, at, &item, shadowed ? ITEM_SHADOWED : 0);
	transaction_put_guard(&g->step.t, item.id, &guard, version);
	if (shadowed)
		transaction_put_shadow(&g->step.t, g->l->store, at->directory, &shadow, 0);
	g->directory.own.directory.subdirectories++;
	return result ? result : step_end(g, true);
}

/* Whether a live item bears the name of a deleted one: 1, 0, negative errno. */
static int name_is_live(struct regrowth *g, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place live = { .directory = at->directory, .state = KEY_ACT };
	struct item item;
	int result;

	memcpy(live.name, at->name, sizeof(live.name));
	result = record_get_item(g->l->store, &live, true, &value, &item);
	if (result == STORE_ABSENT)
		return 0;
	return result == 0 || result == -EBADMSG ? 1 : result;
}

static int restore_directory(struct regrowth *g, const struct place *at)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		lifecycle_lock_background(g->l);
		result = name_is_live(g, at);
		if (result == 1)
			result = -EEXIST;
		if (!result)
			result = restore_directory_once(g, at);
		lifecycle_unlock(g->l);
	} while (store_retry(&retry, &result));
	/* It stays, with its name taken; or somebody else was quicker. */
	if (result == -EEXIST || result == -ENOENT)
		return 0;
	return result ? result : restore_tell(g->r, 1);
}

/*
 * ---- the rows of a directory
 * ---------------------------------------------------------------------
 */

#define ROW_DESCEND 3
#define ROW_FLUSH 2

static bool comes_back(const struct regrowth *g, const struct level *level, const struct item *item)
{
	const struct deletion *d = &item->deletion;

	return d->batch == g->batch && d->cause == ITEM_REMOVED &&
	       !(d->flags & (DELETION_PURGED | DELETION_DOOMED)) && strcmp(item->name, level->name);
}

/* 0, ROW_DESCEND (into *ret_id at *ret_at), ROW_FLUSH, negative errno. */
static int take_row(struct regrowth *g, struct level *level, const struct store_row *row,
		    uint64_t *ret_id, struct place *ret_at)
{
	struct shadow shadow;
	struct item item;
	int result;

	if (level->shadows) {
		if (row->damaged || record_decode_shadow(&row->value, &shadow))
			return 0;
		*ret_at = (struct place){ .directory = level->id, .state = KEY_ACT };
		*ret_id = shadow.directory;
		return ROW_DESCEND;
	}
	/* What is damaged stays where it is, for check to name. */
	result = record_row_item(g->l->store, row, ret_at, &item);
	if (result || !comes_back(g, level, &item))
		return 0;
	if (g->careful || S_ISDIR(item.mode)) {
		result = name_is_live(g, ret_at);
		if (result)
			return result < 0 ? result : 0;
	}
	if (S_ISDIR(item.mode)) {
		*ret_id = item.id;
		result = ROW_DESCEND;
	} else {
		if (!step_has_room(g->l, &g->step, CHILD_OPERATIONS + STEP_OPERATIONS, item_bytes(&item)) ||
		    (item.flags & ITEM_REFERENCE && step_has_item(&g->step, item.id)))
			return ROW_FLUSH;
		result = add_child(g, ret_at, &item, 0);
	}
	if (result >= 0)
		memcpy(level->name, item.name, sizeof(level->name));
	return result;
}

/*
 * Collects and commits one step from a page. Lock held. *ret_id: a directory to
 * go into next, or 0.
 */
static int take_rows(struct regrowth *g, struct level *level, const struct store_page *page,
		     uint64_t *ret_id, struct place *ret_at)
{
	int taken = 0, result = step_begin(g, level->id);

	*ret_id = 0;
	if (result)
		return result;
	for (size_t i = 0; i < page->count && !taken; i++) {
		taken = take_row(g, level, &page->rows[i], ret_id, ret_at);
		if (taken < 0 || taken == ROW_FLUSH)
			break;
		if (key_from_bytes(store_codec(g->l->store), page->rows[i].key,
				   page->rows[i].key_size, &level->after))
			taken = -EBADMSG;
	}
	if (taken < 0) {
		step_drop(g);
		return taken;
	}
	return step_end(g, false);
}

static int read_rows(struct regrowth *g, const struct level *level, struct store_page *page)
{
	struct store_query query = { .limit = RESTORE_ROWS, .reverse = !level->shadows };

	query.after = level->after.size ? &level->after : NULL;
	if (level->shadows)
		key_range_shadows(level->id, &query.range);
	else
		key_range_deleted(level->id, &query.range);
	return store_query(g->l->store, &query, page);
}

/* All below a directory is back: now the directory itself, or, if it is live, its mark may go. */
static int leave(struct regrowth *g, const struct level *level)
{
	int result;

	if (level->at.state == KEY_DEL)
		return restore_directory(g, &level->at);
	lifecycle_lock_background(g->l);
	result = shadow_prune(g->l, level->id, NULL);
	lifecycle_unlock(g->l);
	return result;
}

/*
 * Goes on in the innermost directory: a step, or one level down, or up. 0,
 * STORE_CONFLICT, negative errno.
 */
static int grow(struct regrowth *g)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct level *level = &g->levels[g->depth - 1];
	struct level before = *level;
	struct place at;
	uint64_t id, count;
	int result = read_rows(g, level, &page);

	if (result)
		return result;
	if (!page.count) {
		if (page.more) {
			level->after = page.next;
		} else if (level->shadows) {
			level->shadows = false;
			level->after.size = 0;
		} else {
			g->depth--;
			return g->depth ? leave(g, &before) : 0;
		}
		return 0;
	}
	lifecycle_lock_background(g->l);
	result = take_rows(g, level, &page, &id, &at);
	count = g->count;
	lifecycle_unlock(g->l);
	if (result) {
		*level = before;
		return result;
	}
	if (count)
		result = restore_tell(g->r, count);
	if (!result && id)
		result = enter(g, id, &at);
	return result;
}

static int grow_all(struct regrowth *g)
{
	struct store_retry retry = { 0 };
	int result = 0;

	while (g->depth) {
		result = grow(g);
		g->careful = result == STORE_CONFLICT;
		if (result && !store_retry(&retry, &result))
			return result;
		if (!g->careful)
			retry.tries = 0;
	}
	return 0;
}

/* Whether there is anything to come back: an empty or wholly live directory needs no pin. */
static int nothing_below(struct lifecycle *l, uint64_t directory)
{
	int result = shadow_needed(l, directory, NULL);

	return result < 0 ? result : !result;
}

int restore_tree(struct lifecycle *l, struct restoring *r, uint64_t directory, uint64_t batch,
		 const struct place *top)
{
	struct regrowth g = { .l = l, .r = r, .batch = batch, .top = top };
	struct store_retry retry = { 0 };
	struct place own = { .state = KEY_ACT }; /* the caller restores the directory itself */
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item item;
	int released, result = nothing_below(l, directory);

	if (result)
		return util_min(result, 0);
	if (top->state == KEY_DEL) {
		result = record_get_item(l->store, top, true, &value, &item);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		g.top_id = item.id;
	}
	result = enter(&g, directory, &own);
	if (!result)
		result = grow_all(&g);
	/* A restore broken off keeps its pin: it may go on. */
	if (!result && g.top_id != directory) {
		do {
			lifecycle_lock(l);
			released = release_top(&g);
			lifecycle_unlock(l);
		} while (store_retry(&retry, &released));
		result = released;
	}
	step_release(&g.step);
	free(g.levels);
	return result;
}
