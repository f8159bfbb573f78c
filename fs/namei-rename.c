/*
 * namei-rename.c - rename(2) and renameat2(2).
 *
 * One transaction moves everything: the names, the guards of directories, the
 * shadows that stand beside them, both parents, and what is replaced into the
 * trash.
 */
#include "fs/namei-rename.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>

static void subject_release(struct subject *s)
{
	store_value_release(&s->value);
	store_value_release(&s->link_value);
	memset(&s->value, 0, sizeof(s->value));
	memset(&s->link_value, 0, sizeof(s->link_value));
	s->present = false;
}

static void rename_reset(struct rename *r)
{
	subject_release(&r->old);
	subject_release(&r->new);
	for (size_t i = 0; i < ARRAY_SIZE(r->parents); i++) {
		tree_release(&r->parents[i]);
		memset(&r->parents[i], 0, sizeof(r->parents[i]));
	}
	transaction_reset(&r->transaction);
	r->removing = r->topology = false;
}

static void rename_release(struct rename *r)
{
	rename_reset(r);
	transaction_release(&r->transaction);
}

/* ---- preparing ------------------------------------------------------------ */

static bool is_shadowed(const struct subject *s)
{
	return subject_is_directory(s) && s->item.flags & ITEM_SHADOWED;
}

/* A directory with trash below needs the marks above its new place too. They may come to stand without need: that is allowed. */
static int mark_shadows(struct rename *r)
{
	int result = 0;

	if (!rename_crosses(r))
		return 0;
	if (is_shadowed(&r->old))
		result = lifecycle_mark_shadows(r->n->lifecycle, r->new.at.directory);
	if (result == 0 && r->exchange && is_shadowed(&r->new))
		result = lifecycle_mark_shadows(r->n->lifecycle, r->old.at.directory);
	return result;
}

static int load_parent(struct rename *r, struct tree_directory *parent, uint64_t id)
{
	int result = tree_load(r->n->store, id, parent);

	if (result)
		return result;
	return tree_is_live(parent) ? lifecycle_check_live(r->n->lifecycle, id) : -ENOENT;
}

static int load_target(struct rename *r)
{
	int result;

	r->to = r->from = &r->parents[0];
	result = load_parent(r, r->to, r->new.at.directory);
	if (result)
		return result;
	if (rename_crosses(r) && subject_is_directory(&r->old) &&
	    r->to->own.directory.subdirectories >= UINT32_MAX - 2)
		return -EMLINK;
	return 0;
}

/* Last, since what marks shadows above the target may write it. */
static int load_source(struct rename *r)
{
	if (!rename_crosses(r))
		return 0;
	r->from = &r->parents[1];
	return load_parent(r, r->from, r->old.at.directory);
}

static int rename_prepare(struct rename *r)
{
	int result = mark_shadows(r);

	if (result == 0)
		result = load_target(r);
	if (result || r->exchange || !r->new.present)
		return result;
	result = lifecycle_removal_prepare(r->n->lifecycle, &r->removal, r->actor, ITEM_REPLACED,
					   r->old.item.id, r->to, &r->new.item);
	r->removing = result == 0;
	return result;
}

/* ---- collecting ----------------------------------------------------------- */

/* `expect` is the version of what bears the name now. */
static void collect_move(struct rename *r, const struct subject *s, const struct place *to,
			 uint64_t expect, struct timespec now)
{
	struct transaction *t = &r->transaction;
	struct item item = s->item;
	struct item link = s->link;
	struct guard guard = { .at = *to };

	strcpy(item.name, to->name);
	if (item.flags & ITEM_REFERENCE) {
		link.ctime = now;
		transaction_put_link(t, &link, s->link.version);
	} else {
		item.ctime = now;
	}
	transaction_put_item(t, r->n->store, to, &item, expect);
	if (S_ISDIR(item.mode))
		transaction_put_guard(t, item.id, &guard, s->guard.version);
}

/* The row SHD#name at a place, for what is there afterwards (NULL: nothing). */
static int collect_shadow(struct rename *r, const struct place *at, const struct subject *before,
			  const struct subject *after)
{
	struct shadow shadow;
	uint64_t version = 0;
	struct key key;
	int result;

	if (!is_shadowed(before) && !(after && is_shadowed(after)))
		return 0;
	result = record_get_shadow(r->n->store, at->directory, at->name, &shadow, &version);
	if (result < 0)
		return result;
	if (after && is_shadowed(after)) {
		shadow.directory = after->item.id;
		strcpy(shadow.name, at->name);
		transaction_put_shadow(&r->transaction, r->n->store, at->directory, &shadow, version);
	} else if (result == 0) {
		key_shadow(store_codec(r->n->store), at->directory, at->name, &key);
		transaction_delete(&r->transaction, &key, STORE_IF_VERSION, version);
	}
	return 0;
}

static void collect_parents(struct rename *r, int64_t now_ns)
{
	uint32_t old = subject_is_directory(&r->old);
	uint32_t new = r->exchange &&subject_is_directory(&r->new);

	if (rename_crosses(r)) {
		r->from->own.directory.subdirectories += new - old;
		r->to->own.directory.subdirectories += old - new;
		tree_touch(r->from, now_ns);
		tree_put_own(&r->transaction, r->n->store, r->from);
		if (r->exchange)
			tree_check_guard(&r->transaction, r->from);
	}
	tree_touch(r->to, now_ns);
	tree_put_own(&r->transaction, r->n->store, r->to);
	tree_check_guard(&r->transaction, r->to);
	if (r->topology)
		tree_put_topology(&r->transaction, r->topology_version);
}

static int rename_collect(struct rename *r, int64_t now_ns)
{
	struct timespec now = tree_time(now_ns);
	uint64_t new_version = r->new.present ? r->new.item.version : 0;
	int result;

	if (r->removing)
		lifecycle_removal_add(r->n->lifecycle, &r->removal, r->to, &r->transaction);
	collect_move(r, &r->old, &r->new.at, new_version, now);
	if (r->exchange)
		collect_move(r, &r->new, &r->old.at, r->old.item.version, now);
	else
		transaction_delete_item(&r->transaction, r->n->store, &r->old.at, r->old.item.version);
	result = collect_shadow(r, &r->new.at, &r->new, &r->old);
	if (result == 0)
		result = collect_shadow(r, &r->old.at, &r->old, r->exchange ? &r->new : NULL);
	collect_parents(r, now_ns);
	return result;
}

/* ---- telling -------------------------------------------------------------- */

static void tell_moved(struct rename *r, const struct subject *s, const struct place *to)
{
	struct lifecycle_change change = { .id = s->item.id, .mode = s->item.mode, .from = s->at, .to = *to };

	lifecycle_note_renamed(r->n->lifecycle, s->item.id);
	lifecycle_notify_changed(r->n->lifecycle, &change);
}

static void rename_tell(struct rename *r)
{
	tell_moved(r, &r->old, &r->new.at);
	if (r->exchange)
		tell_moved(r, &r->new, &r->old.at);
	if (subject_is_directory(&r->old) || subject_is_directory(&r->new))
		lifecycle_note_directory_changed(r->n->lifecycle);
}

static int rename_commit(struct rename *r)
{
	uint64_t version;
	int result = load_source(r);

	if (result == 0)
		result = rename_collect(r, namei_now_ns(r->n));
	/* A rename stores nothing new: on a full disk it goes as a removal does. */
	if (result == 0)
		result = tree_commit(&r->transaction, r->n->store, STORE_RELEASING, &version);
	if (r->removing)
		lifecycle_removal_done(r->n->lifecycle, &r->removal, result == 0);
	if (result == 0)
		rename_tell(r);
	return result;
}

static int rename_once(struct rename *r, struct namei_renamed *ret_renamed)
{
	int result;

	rename_reset(r);
	result = rename_read(r);
	if (result == 0)
		result = rename_check(r);
	if (result == RENAME_NOTHING) {
		*ret_renamed = (struct namei_renamed){ 0 };
		return 0;
	}
	if (result == 0)
		result = rename_prepare(r);
	if (result == 0)
		result = rename_commit(r);
	if (result == 0)
		*ret_renamed =
			(struct namei_renamed){ r->old.item.id, r->new.present ? r->new.item.id : 0 };
	return result;
}

static int check_arguments(struct namei *n, uint64_t old_parent, const char *old_name,
			   uint64_t new_parent, const char *new_name, unsigned flags)
{
	int result;

	if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE) ||
	    flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	result = namei_check_name(old_name);
	if (result == 0)
		result = namei_check_name(new_name);
	if (result)
		return result;
	if (namei_is_reserved(n, old_parent, old_name))
		return -EBUSY;
	if (namei_is_reserved(n, new_parent, new_name))
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	return 0;
}

/* A file that is written all the time would win each time: after a few conflicts its writers wait. */
static int rename_repeatedly(struct rename *r, struct namei_renamed *ret_renamed)
{
	struct store_retry retry = { 0 };
	uint64_t old = 0, new = 0;
	bool calmed = false;
	int result;

	do {
		if (retry.tries >= NAMEI_CALM_AFTER && !calmed) {
			old = r->old.item.id;
			new = r->new.item.id;
			namei_lock_items(r->n, old, new);
			calmed = true;
		}
		result = rename_once(r, ret_renamed);
	} while (store_retry(&retry, &result));
	if (calmed)
		namei_unlock_items(r->n, old, new);
	return result;
}

int namei_rename(struct namei *n, const struct actor *actor, uint64_t old_parent,
		 const char *old_name, uint64_t new_parent, const char *new_name, unsigned flags,
		 struct namei_renamed *ret_renamed)
{
	_cleanup_(rename_release) struct rename r = {
		.n = n,
		.actor = actor,
		.exchange = flags & RENAME_EXCHANGE,
		.replaceable = !(flags & RENAME_NOREPLACE),
	};
	int result = check_arguments(n, old_parent, old_name, new_parent, new_name, flags);

	if (result)
		return result;
	namei_place(&r.old.at, old_parent, old_name);
	namei_place(&r.new.at, new_parent, new_name);
	lifecycle_lock(n->lifecycle);
	result = rename_repeatedly(&r, ret_renamed);
	lifecycle_unlock(n->lifecycle);
	return namei_error(result);
}
