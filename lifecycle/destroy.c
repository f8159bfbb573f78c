/*
 * destroy.c - the end of an item: bottom-up, in bounded steps.
 *
 * A file goes in one transaction, its body joining the engine's FREE list in the
 * same; never its content first. A directory is first marked DOOMED, so that
 * nothing of it is ever seen again, then emptied from below, a step at a time;
 * its own item, which holds the row in EXP, goes last: whatever a crash leaves,
 * the sweeper meets that row again and goes on.
 *
 * What is still open is passed over and stays until it is let go.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

#define DESTROY_OPERATIONS 7 /* of one item, at the most */
#define DESTROY_ROWS 64 /* read in one step */

enum item_counter destroy_cause(const struct deletion *d, int64_t now_ns)
{
	if (d->flags & DELETION_PURGED)
		return COUNTER_DESTROYED_USER;
	if (!(d->flags & DELETION_DOOMED))
		return COUNTER_DESTROYED_EXPIRED;
	switch (d->cause) {
	case ITEM_REPLACED:
		return COUNTER_DESTROYED_VERSIONS;
	case ITEM_EXPIRED:
		return COUNTER_DESTROYED_EXPIRED;
	case ITEM_EVICTED:
		return COUNTER_DESTROYED_EVICTED;
	default:
		return d->expires_ns > now_ns ? COUNTER_DESTROYED_USER : COUNTER_DESTROYED_EXPIRED;
	}
}

uint8_t destroy_doomed_cause(enum item_counter cause)
{
	switch (cause) {
	case COUNTER_DESTROYED_VERSIONS:
		return ITEM_REPLACED;
	case COUNTER_DESTROYED_EXPIRED:
		return ITEM_EXPIRED;
	case COUNTER_DESTROYED_EVICTED:
		return ITEM_EVICTED;
	default:
		return ITEM_REMOVED;
	}
}

/* ---- hold ------------------------------------------------------------------------ */

struct hold_search {
	struct lifecycle *l;
	int result;
};

static enum walk hold_visit(void *data, const struct place *at, const struct item *item)
{
	struct hold_search *search = data;
	struct rules rules;

	if (!S_ISDIR(item->mode) || !(item->flags & ITEM_POLICY))
		return WALK_ON;
	search->result = rules_load(search->l, item->id, &rules);
	if (!search->result)
		search->result = rules.policy.hold;
	return search->result ? WALK_STOP : WALK_ON;
}

/* What was purged was on no hold then, with all in it, and nothing is set on what lies in the trash. */
static enum walk hold_visit_below(void *data, const struct place *at, const struct item *item)
{
	if (at->state == KEY_DEL && item->deletion.flags & DELETION_PURGED)
		return WALK_PAST;
	return hold_visit(data, at, item);
}

int destroy_is_held(struct lifecycle *l, const struct place *at, const struct item *item)
{
	struct hold_search search = { .l = l };
	struct rules rules;
	int result = rules_load(l, at->directory, &rules);

	if (result || rules.policy.hold)
		return result ? result : 1;
	if (!S_ISDIR(item->mode))
		return 0;
	if (hold_visit(&search, at, item) == WALK_STOP)
		return search.result;
	result = walk_below(l, item->id, hold_visit_below, &search);
	return result < 0 ? result : search.result;
}

/* ---- files ------------------------------------------------------------------------- */

static void add_count(struct transaction *t, const struct place *at, const struct item *item,
		      enum item_counter cause)
{
	if (at->state == KEY_ACT)
		transaction_count_add(t, COUNTER_LIVE_ITEMS, -1);
	else if (item->deletion.cause == ITEM_TEMPORARY)
		return;
	else
		transaction_count_add(t, COUNTER_TRASH_ITEMS, -1);
	transaction_count_add(t, cause, 1);
}

static void add_content(struct transaction *t, const struct item *file)
{
	struct key key;

	if (file->body)
		transaction_body_free(t, file->body);
	if (file->flags & ITEM_XATTR_APART) {
		key_xattr(file->id, &key);
		transaction_delete(t, &key, STORE_ANY, 0);
	}
}

/* One name less of a file with several. With the last one the file goes. */
static void add_link(struct transaction *t, const struct place *at, const struct item *link)
{
	bool live = at->state == KEY_ACT;
	struct item less = *link;
	int64_t size = S_ISREG(link->mode) ? (int64_t)link->size : 0;
	struct key key;

	less.links_total--;
	less.links_live -= live;
	if (less.links_total) {
		transaction_put_link(t, &less, link->version);
		if (live && !less.links_live) {
			transaction_count_add(t, COUNTER_LIVE_BYTES, -size);
			transaction_count_add(t, COUNTER_TRASH_BYTES, size);
		}
		return;
	}
	key_link(link->id, &key);
	transaction_delete(t, &key, STORE_IF_VERSION, link->version);
	transaction_count_add(t, live ? COUNTER_LIVE_BYTES : COUNTER_TRASH_BYTES, -size);
	add_content(t, link);
}

static void add_name(struct step *step, struct lifecycle *l, const struct place *at,
		     const struct item *item, enum item_counter cause)
{
	transaction_delete_item(&step->t, l->store, at, item->version);
	if (at->state == KEY_DEL)
		deletion_delete_rows(&step->t, at, &item->deletion);
	add_count(&step->t, at, item, cause);
	step_moved(step, item, at, NULL);
}

int destroy_add_file(struct lifecycle *l, struct step *step, const struct place *at,
		     const struct item *item, enum item_counter cause, struct destroyed *total)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	bool reference = item->flags & ITEM_REFERENCE;
	struct item link = { 0 };
	int64_t size;
	int result;

	if (!step_has_room(l, step, DESTROY_OPERATIONS, HISTORY_BYTES) ||
	    (reference && step_has_item(step, item->id)))
		return DESTROY_FLUSH;
	if (reference) {
		result = record_get_link(l->store, item->id, false, &value, &link);
		/* What all its names name is lost: of this one nothing but the name is left. */
		reference = !result;
		if (result == STORE_ABSENT || damaged_is(result)) {
			add_name(step, l, at, item, cause);
			total->items++;
			return 0;
		}
		if (result)
			return result;
	}
	/*
	 * An open file must not vanish under its user. Other live names keep it as it is, if the
	 * kernel has asked for one of them: from the file's id none of them can be found.
	 */
	if (lifecycle_is_busy(l, item->id, reference && link.links_live ? at : NULL))
		return -EBUSY;
	add_name(step, l, at, item, cause);
	if (step->entries) {
		history_add(l, &step->t, at, item, reference ? &link : item, cause);
		step->bytes += HISTORY_BYTES;
	}
	if (reference) {
		step->bytes += item_bytes(&link);
		add_link(&step->t, at, &link);
	} else {
		size = S_ISREG(item->mode) ? (int64_t)item->size : 0;
		transaction_count_add(&step->t,
				      at->state == KEY_ACT ? COUNTER_LIVE_BYTES : COUNTER_TRASH_BYTES,
				      -size);
		add_content(&step->t, item);
	}
	total->items++;
	total->bytes += !reference || link.links_total == 1 ? (reference ? link.size : item->size) : 0;
	return 0;
}

/* Whether an entry is still to go, for the reason it was to. Once begun it is ended. */
static bool is_as_decided(const struct item *item, const struct deletion *decided)
{
	const struct deletion *d = &item->deletion;
	unsigned flags = DELETION_PURGED | DELETION_PINNED;

	if (!decided || d->flags & DELETION_DOOMED)
		return true;
	return d->destroy_ns == decided->destroy_ns && !((d->flags ^ decided->flags) & flags);
}

static int destroy_file_once(struct lifecycle *l, const struct place *at, const struct deletion *decided,
			     enum item_counter cause, struct step *step, struct destroyed *total)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item item;
	int result = record_get_item(l->store, at, true, &value, &item);

	if (result)
		return result;
	if (S_ISDIR(item.mode))
		return -EISDIR;
	if (!is_as_decided(&item, decided))
		return -EBUSY;
	result = destroy_is_held(l, at, &item);
	if (result)
		return result < 0 ? result : -EPERM;
	step_reset(step);
	result = destroy_add_file(l, step, at, &item, cause, total);
	return result ? result : step_commit(l, step, STORE_RELEASING);
}

static int destroy_decided(struct lifecycle *l, const struct place *at, const struct deletion *decided,
			   enum item_counter cause, struct destroyed *total)
{
	_cleanup_(step_release) struct step step = { .entries = true };
	struct store_retry retry = { 0 };
	struct destroyed one;
	int result;

	do {
		one = (struct destroyed){ 0 };
		result = destroy_file_once(l, at, decided, cause, &step, &one);
	} while (store_retry(&retry, &result));
	if (!result) {
		total->items += one.items;
		total->bytes += one.bytes;
	}
	return result;
}

int destroy_file(struct lifecycle *l, const struct place *at, enum item_counter cause,
		 struct destroyed *total)
{
	return destroy_decided(l, at, NULL, cause, total);
}

/* ---- directories --------------------------------------------------------------------- */

/* A directory being emptied. */
struct level {
	uint64_t id;
	struct key after; /* rows up to here were dealt with; size 0: none */
	bool blocked; /* something in it stays */
};

struct emptying {
	struct lifecycle *l;
	enum item_counter cause;
	uint64_t *budget;
	struct destroyed *total;
	struct level *levels;
	size_t depth, capacity;
	struct step step;
};

static int emptying_enter(struct emptying *e, uint64_t id)
{
	struct level *grown;
	size_t capacity;

	if (e->depth == e->capacity) {
		capacity = util_max(2 * e->capacity, (size_t)8);
		grown = reallocarray(e->levels, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		e->levels = grown;
		e->capacity = capacity;
	}
	e->levels[e->depth].id = id;
	e->levels[e->depth].after.size = 0;
	e->levels[e->depth++].blocked = false;
	return 0;
}

static int add_shadow_row(struct emptying *e, const struct store_row *row)
{
	struct key key;
	int result = key_from_bytes(store_codec(e->l->store), row->key, row->key_size, &key);

	if (!result)
		transaction_delete(&e->step.t, &key, row->damaged ? STORE_IF_PRESENT : STORE_IF_VERSION,
				   row->value.version);
	return result;
}

#define ROW_DESCEND 3

/* What cannot be read goes by its key. Its directory is on its way out: nobody misses what else it said. */
static int empty_damaged(struct emptying *e, const struct store_row *row,
			 struct destroyed *step_total, uint64_t *ret_child)
{
	struct damaged d;
	int result = damaged_load_row(e->l->store, row, &d);

	if (result)
		return result;
	if (d.directory) {
		*ret_child = d.directory;
		return ROW_DESCEND;
	}
	result = damaged_add_removal(e->l->store, &e->step.t, &d.key);
	transaction_count_add(&e->step.t, e->cause, 1);
	step_total->items++;
	return result;
}

/* 0, DESTROY_FLUSH (the row is not dealt with), ROW_DESCEND, negative errno. */
static int empty_row(struct emptying *e, struct level *level, const struct store_row *row,
		     struct destroyed *step_total, uint64_t *ret_child)
{
	struct key_parts parts;
	struct place at;
	struct item item;
	int result = key_parse(store_codec(e->l->store), row->key, row->key_size, &parts);

	if (result)
		return result;
	if (!step_has_room(e->l, &e->step, DESTROY_OPERATIONS, 0))
		return DESTROY_FLUSH;
	if (parts.kind == KEY_KIND_SHADOW)
		return add_shadow_row(e, row);
	result = record_row_item(e->l->store, row, &at, &item);
	if (!result && S_ISDIR(item.mode)) {
		*ret_child = item.id;
		return ROW_DESCEND;
	}
	if (damaged_is(result))
		result = empty_damaged(e, row, step_total, ret_child);
	else if (!result)
		result = destroy_add_file(e->l, &e->step, &at, &item, e->cause, step_total);
	if (result == -EBUSY || damaged_is(result)) {
		/* What is open stays; what cannot even be told from its key is for check to deal with. */
		level->blocked = true;
		return 0;
	}
	return result;
}

/* Collects a step from a page of rows. *ret_after: up to where. */
static int empty_rows(struct emptying *e, struct level *level, const struct store_page *page,
		      struct destroyed *step_total, struct key *ret_after, uint64_t *ret_child)
{
	int result = 0;

	*ret_child = 0;
	for (size_t i = 0; i < page->count; i++) {
		result = empty_row(e, level, &page->rows[i], step_total, ret_child);
		if (result == DESTROY_FLUSH || result < 0)
			break;
		if (key_from_bytes(store_codec(e->l->store), page->rows[i].key,
				   page->rows[i].key_size, ret_after))
			return -EBADMSG;
		if (result == ROW_DESCEND || step_total->items >= *e->budget ||
		    lifecycle_hold_is_over(e->l))
			break;
	}
	return result < 0 ? result : 0;
}

static void final_add(struct emptying *e, const struct tree_directory *d)
{
	struct transaction *t = &e->step.t;
	struct key_range range;
	struct key key;

	add_name(&e->step, e->l, &d->guard.at, &d->own, e->cause);
	add_content(t, &d->own);
	key_guard(d->id, &key);
	transaction_delete(t, &key, STORE_IF_VERSION, d->guard.version);
	key_range_directory(d->id, &range);
	transaction_empty(t, &range, &key);
}

/* A live directory inside a doomed one: its parent counts it. */
static int final_add_parent(struct emptying *e, const struct tree_directory *d)
{
	struct tree_directory parent;
	int result = tree_load(e->l->store, d->guard.at.directory, &parent);

	if (result)
		return result;
	if (parent.own.directory.subdirectories)
		parent.own.directory.subdirectories--;
	tree_put_own(&e->step.t, e->l->store, &parent);
	tree_release(&parent);
	return d->own.flags & ITEM_SHADOWED ? shadow_delete(e->l, &e->step.t, &d->guard.at) : 0;
}

/* A directory whose own record cannot be read, empty now. */
static int empty_final_damaged(struct emptying *e, uint64_t id)
{
	struct key_range range;
	struct guard guard;
	struct key key;
	int result = record_get_guard(e->l->store, id, &guard);

	if (result)
		return result;
	step_reset(&e->step);
	key_item(store_codec(e->l->store), &guard.at, &key);
	result = damaged_add_removal(e->l->store, &e->step.t, &key);
	key_guard(id, &key);
	transaction_delete(&e->step.t, &key, STORE_IF_VERSION, guard.version);
	key_range_directory(id, &range);
	transaction_empty(&e->step.t, &range, &key);
	if (!result)
		result = step_commit(e->l, &e->step, STORE_RELEASING);
	if (result)
		return result;
	rules_forget(e->l, id);
	e->total->items++;
	*e->budget -= *e->budget > 0;
	return 0;
}

/* The directory itself, empty now. STORE_CONFLICT: it is not. */
static int empty_final(struct emptying *e, uint64_t id)
{
	struct tree_directory d;
	int result = tree_load(e->l->store, id, &d);

	if (damaged_is(result))
		return empty_final_damaged(e, id);
	if (result)
		return result == -ENOENT ? 0 : result;
	step_reset(&e->step);
	final_add(e, &d);
	if (e->depth == 1)
		history_add(e->l, &e->step.t, &d.guard.at, &d.own, &d.own, e->cause);
	if (d.guard.at.state == KEY_ACT)
		result = final_add_parent(e, &d);
	if (!result)
		result = step_commit(e->l, &e->step, STORE_RELEASING);
	tree_release(&d);
	if (!result) {
		rules_forget(e->l, id);
		e->total->items++;
		*e->budget -= *e->budget > 0;
	}
	return result;
}

static int empty_leave(struct emptying *e)
{
	struct level *level = &e->levels[e->depth - 1];
	int result;

	if (level->blocked) {
		e->depth--;
		if (e->depth)
			e->levels[e->depth - 1].blocked = true;
		return 0;
	}
	result = empty_final(e, level->id);
	if (!result)
		e->depth--;
	else if (result == STORE_CONFLICT)
		level->after.size = 0; /* something came in meanwhile: once more from the start */
	return result;
}

/* One step in the innermost directory. 0, STORE_CONFLICT (repeat), negative errno. Lock held. */
static int empty_step(struct emptying *e)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct level *level = &e->levels[e->depth - 1];
	struct store_query query = { .limit = DESTROY_ROWS, .attributes_only = true };
	struct destroyed step_total = { 0 };
	bool blocked = level->blocked;
	struct key after = level->after;
	uint64_t child;
	int result;

	query.after = level->after.size ? &level->after : NULL;
	key_range_directory(level->id, &query.range);
	result = store_query(e->l->store, &query, &page);
	if (result)
		return result;
	if (!page.count && !page.more)
		return empty_leave(e);
	if (!page.count) {
		level->after = page.next;
		return 0;
	}
	step_reset(&e->step);
	result = empty_rows(e, level, &page, &step_total, &after, &child);
	if (!result && e->step.t.count)
		result = step_commit(e->l, &e->step, STORE_RELEASING);
	if (result) {
		level->blocked = blocked;
		return result;
	}
	level->after = after;
	e->total->items += step_total.items;
	e->total->bytes += step_total.bytes;
	*e->budget -= util_min(step_total.items, *e->budget);
	return child ? emptying_enter(e, child) : 0;
}

static int empty_all(struct emptying *e, bool *ret_blocked)
{
	struct store_retry retry = { 0 };
	bool blocked = false;
	int result = 0;

	while (e->depth && *e->budget) {
		blocked = e->levels[0].blocked;
		lifecycle_lock_background(e->l);
		result = empty_step(e);
		lifecycle_unlock(e->l);
		if (result && !store_retry(&retry, &result))
			return result;
		if (!result)
			retry.tries = 0;
	}
	*ret_blocked = blocked;
	return e->depth ? 1 : 0;
}

/* Nothing of it is to be seen again, from the first thing that goes. */
static int doom_top(struct lifecycle *l, const struct place *at, uint64_t id,
		    const struct deletion *decided, enum item_counter cause)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		_cleanup_(store_value_release) struct store_value value = { 0 };
		struct item item;

		lifecycle_lock_background(l);
		result = record_get_item(l->store, at, false, &value, &item);
		if (!result && item.id != id)
			result = STORE_ABSENT;
		else if (!result && !is_as_decided(&item, decided))
			result = -EBUSY;
		else if (!result && at->state == KEY_DEL && !(item.deletion.flags & DELETION_DOOMED))
			result = deletion_doom(l, at, &item, cause);
		lifecycle_unlock(l);
		if (result == STORE_ABSENT)
			return -ENOENT;
	} while (store_retry(&retry, &result));
	return result;
}

static int destroy_directory(struct lifecycle *l, const struct place *at, uint64_t id,
			     const struct deletion *decided, enum item_counter cause,
			     uint64_t *budget, struct destroyed *total)
{
	struct emptying e = { .l = l, .cause = cause, .budget = budget, .total = total };
	bool blocked = false;
	int result = doom_top(l, at, id, decided, cause);

	if (result)
		return result == -ENOENT ? 0 : result;
	result = emptying_enter(&e, id);
	if (!result)
		result = empty_all(&e, &blocked);
	step_release(&e.step);
	free(e.levels);
	return result ? result : blocked ? -EBUSY : 0;
}

int destroy_entry(struct lifecycle *l, const struct place *at, const struct deletion *decided,
		  enum item_counter cause, uint64_t *budget, struct destroyed *total)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item item;
	int result = record_get_item(l->store, at, true, &value, &item);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	history_prepare(l);
	if (S_ISDIR(item.mode)) {
		/* Once begun it is ended. */
		result = item.deletion.flags & DELETION_DOOMED ? 0 : destroy_is_held(l, at, &item);
		if (result)
			return result < 0 ? result : -EPERM;
		result = destroy_directory(l, at, item.id, decided, cause, budget, total);
	} else {
		lifecycle_lock_background(l);
		result = destroy_decided(l, at, decided, cause, total);
		lifecycle_unlock(l);
		result = result == STORE_ABSENT ? 0 : result;
		*budget -= *budget > 0;
	}
	if (result)
		return result;
	lifecycle_lock_background(l);
	result = shadow_prune(l, at->directory, at);
	lifecycle_unlock(l);
	return result;
}
