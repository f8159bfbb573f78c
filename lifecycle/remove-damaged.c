/*
 * remove-damaged.c - removing what cannot be read.
 *
 * An item that is damaged can be listed and removed like any other, and hurts
 * nothing beside it. What can be made again is made again first, by the removal
 * that needs it: a directory's record or guard. What cannot is destroyed and not
 * kept in the trash: nothing of it could be brought back.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

static void place_of(struct lifecycle *l, uint64_t directory, const char *shown, struct place *ret_at)
{
	*ret_at = (struct place){ .directory = directory, .state = KEY_ACT };
	if (!damaged_unshow(store_codec(l->store), shown, ret_at->name))
		memcpy(ret_at->name, shown, strlen(shown) + 1);
}

/* A user may have made a file called so; then it is that one, whatever state it is in. */
static int find_place(struct lifecycle *l, uint64_t directory, const char *shown, struct place *ret_at)
{
	struct store_value value = { 0 };
	struct place at = { .directory = directory, .state = KEY_ACT };
	struct key key;
	int result;

	memcpy(at.name, shown, strlen(shown) + 1);
	key_item(store_codec(l->store), &at, &key);
	result = store_get(l->store, &key, true, &value);
	store_value_release(&value);
	if (result == STORE_ABSENT)
		place_of(l, directory, shown, &at);
	else if (result && !damaged_is(result))
		return result;
	*ret_at = at;
	return 0;
}

bool lifecycle_damaged_name(struct lifecycle *l, const struct store_row *row,
			    char ret_name[KEY_NAME_MAX + 1])
{
	const struct key_codec *codec = store_codec(l->store);
	struct key_parts parts;
	struct place at;

	if (key_parse(codec, row->key, row->key_size, &parts) || parts.kind != KEY_KIND_ITEM ||
	    !parts.name_size)
		return false;
	key_unknown_name(codec, &parts, at.name);
	damaged_show(&at, ret_name);
	return true;
}

bool lifecycle_is_made_up(struct lifecycle *l, const char *shown)
{
	char name[KEY_NAME_MAX + 1];

	return damaged_unshow(store_codec(l->store), shown, name);
}

int lifecycle_damaged_at(struct lifecycle *l, const struct place *at, struct place *ret_at,
			 struct item *ret_item)
{
	_cleanup_(store_value_release) struct store_value value = { 0 }, link_value = { 0 };
	struct damaged d;
	struct item item, link;
	struct key key;
	int result;

	key_item(store_codec(l->store), at, &key);
	result = damaged_load(l->store, &key, &d);
	if (!result) {
		result = damaged_stand_in(l->store, &d, ret_item);
		*ret_at = d.at;
		return result;
	}
	if (result != STORE_ABSENT)
		return result;
	/* A name that can be read, of a file that cannot. */
	result = record_get_item(l->store, at, true, &value, &item);
	if (result || !(item.flags & ITEM_REFERENCE))
		return result < 0 && !damaged_is(result) ? result : STORE_ABSENT;
	result = record_get_link(l->store, item.id, true, &link_value, &link);
	if (!result || (result != STORE_ABSENT && !damaged_is(result)))
		return result ? result : STORE_ABSENT;
	item.mode &= (uint32_t)S_IFMT;
	item.size = 1;
	item.xattrs = item.content = NULL;
	item.xattrs_size = item.content_size = 0;
	*ret_item = item;
	*ret_at = *at;
	return 0;
}

int lifecycle_damaged(struct lifecycle *l, uint64_t directory, const char *shown,
		      struct place *ret_at, struct item *ret_item)
{
	struct place at;
	int result = find_place(l, directory, shown, &at);

	return result ? result : lifecycle_damaged_at(l, &at, ret_at, ret_item);
}

/* ---- making again ---------------------------------------------------------------- */

/* 0: there is nothing wrong with the directory's record; REMOVE_AGAIN: it was made again; -EBADMSG: it cannot be here. */
static int mend_directory(struct lifecycle *l, uint64_t id)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct guard guard;
	struct item own;
	int result = record_get_guard(l->store, id, &guard);

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	result = record_get_item(l->store, &guard.at, false, &value, &own);
	if (!damaged_is(result))
		return result == STORE_ABSENT ? -EBADMSG : result;
	rules_forget(l, id);
	result = damaged_remake_directory(l->store, id, &guard, lifecycle_now_ns(l) + RETENTION_LOST_NS);
	return result ? result : REMOVE_AGAIN;
}

/* The guard of a directory that stands at a place: REMOVE_AGAIN, or an errno. */
static int mend_guard(struct lifecycle *l, const struct place *at, uint64_t id)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct guard guard;
	struct key key;
	int result = record_get_guard(l->store, id, &guard);

	if (!result || (result != STORE_ABSENT && !damaged_is(result)))
		return result ? result : -EBADMSG;
	guard = (struct guard){ .at = *at };
	result = record_encode_guard(&guard, &b);
	if (result)
		return result;
	key_guard(id, &key);
	transaction_put(&t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
	return result ? result : REMOVE_AGAIN;
}

/* ---- destroying --------------------------------------------------------------------- */

/* What leaves a live directory changes its times. */
static int commit_in(struct lifecycle *l, struct step *step, const struct place *at)
{
	struct tree_directory parent;
	int result = tree_load(l->store, at->directory, &parent);

	if (result)
		return result;
	if (at->state == KEY_ACT && tree_is_live(&parent)) {
		tree_touch(&parent, lifecycle_now_ns(l));
		tree_put_own(&step->t, l->store, &parent);
	}
	result = step_commit(l, step, STORE_RELEASING);
	tree_release(&parent);
	return result;
}

/* Of an unreadable record nothing is known; what belonged to it is found by `check`. */
static int destroy_unreadable(struct lifecycle *l, const struct damaged *d)
{
	_cleanup_(step_release) struct step step = { 0 };
	int result = damaged_add_removal(l->store, &step.t, &d->key);

	return result ? result : commit_in(l, &step, &d->at);
}

/*
 * A file whose attributes can be read, but not its content, which is in the
 * item; or one of its names, when what all of them name is lost.
 */
static int destroy_readable(struct lifecycle *l, const struct place *at, const struct item *item)
{
	_cleanup_(step_release) struct step step = { 0 };
	bool reference = item->flags & ITEM_REFERENCE;
	bool live = at->state == KEY_ACT;
	struct key key;

	transaction_delete_item(&step.t, l->store, at, item->version);
	if (!live)
		deletion_delete_rows(&step.t, at, &item->deletion);
	if (live || item->deletion.cause != ITEM_TEMPORARY)
		transaction_count_add(&step.t, live ? COUNTER_LIVE_ITEMS : COUNTER_TRASH_ITEMS, -1);
	if (!reference && S_ISREG(item->mode))
		transaction_count_add(&step.t, live ? COUNTER_LIVE_BYTES : COUNTER_TRASH_BYTES,
				      -(int64_t)item->size);
	if (!reference && item->body)
		transaction_body_free(&step.t, item->body);
	if (!reference && item->flags & ITEM_XATTR_APART) {
		key_xattr(item->id, &key);
		transaction_delete(&step.t, &key, STORE_ANY, 0);
	}
	transaction_count_add(&step.t, COUNTER_DESTROYED_USER, 1);
	step_moved(&step, item, at, NULL);
	return commit_in(l, &step, at);
}

/* ---- the removal -------------------------------------------------------------------- */

static int remove_readable(struct lifecycle *l, const struct place *at, bool as_directory)
{
	_cleanup_(store_value_release) struct store_value value = { 0 }, again = { 0 };
	struct item item, link;
	int result = record_get_item(l->store, at, true, &value, &item);

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (S_ISDIR(item.mode)) {
		result = mend_directory(l, item.id);
		if (!result)
			return -EBADMSG;
		return damaged_is(result) || result == -ENOENT ? mend_guard(l, at, item.id) : result;
	}
	if (as_directory)
		return -ENOTDIR;
	result = item.flags & ITEM_REFERENCE ?
			 record_get_link(l->store, item.id, false, &again, &link) :
			 record_get_item(l->store, at, false, &again, &link);
	if (result == STORE_ABSENT || damaged_is(result))
		return destroy_readable(l, at, &item);
	return result ? result : -EBADMSG;
}

int remove_damaged(struct lifecycle *l, uint64_t directory, const char *shown, bool as_directory)
{
	struct damaged d;
	struct policy policy;
	struct place at;
	struct key key;
	int result = mend_directory(l, directory);

	if (!result)
		result = find_place(l, directory, shown, &at);
	if (!result)
		result = lifecycle_policy(l, directory, &policy);
	if (result)
		return result;
	if (policy.protect)
		return -EPERM;
	key_item(store_codec(l->store), &at, &key);
	result = damaged_load(l->store, &key, &d);
	if (result == STORE_ABSENT)
		return remove_readable(l, &at, as_directory);
	if (result)
		return result;
	if (d.directory)
		return mend_directory(l, d.directory);
	return as_directory ? -ENOTDIR : destroy_unreadable(l, &d);
}

/* ---- in the trash ----------------------------------------------------------------------- */

static int purge_once(struct lifecycle *l, const struct place *at)
{
	struct damaged d;
	struct key key;
	int result;

	key_item(store_codec(l->store), at, &key);
	result = damaged_load(l->store, &key, &d);
	if (result == STORE_ABSENT)
		return remove_readable(l, at, false);
	if (result)
		return result;
	return d.directory ? mend_directory(l, d.directory) : destroy_unreadable(l, &d);
}

int purge_damaged(struct lifecycle *l, const struct place *at)
{
	struct store_retry retry = { 0 };
	struct rules rules;
	int result = rules_load(l, at->directory, &rules);

	if (result || rules.policy.hold)
		return result ? result : -EPERM;
	lifecycle_lock(l);
	do
		result = purge_once(l, at);
	while (store_retry(&retry, &result));
	lifecycle_unlock(l);
	return result;
}

int destroy_damaged(struct lifecycle *l, const struct key *key, const struct key *due, int64_t due_ns)
{
	_cleanup_(step_release) struct step step = { 0 };
	struct rules rules;
	struct damaged d;
	int result = damaged_load(l->store, key, &d);

	if (!result)
		result = rules_load(l, d.at.directory, &rules);
	if (result || rules.policy.hold)
		return result ? result : -EPERM;
	if (d.directory) {
		result = damaged_remake_directory(l->store, d.directory, &d.guard, due_ns);
		return result ? result : STORE_CONFLICT;
	}
	result = damaged_add_removal(l->store, &step.t, key);
	transaction_delete(&step.t, due, STORE_ANY, 0);
	transaction_count_add(&step.t, COUNTER_DESTROYED_EXPIRED, 1);
	return result ? result : step_commit(l, &step, STORE_RELEASING);
}
