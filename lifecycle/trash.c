/*
 * trash.c - what a removal is: the item's new state, what stands beside it, and
 * what its directory remembers.
 *
 * A removal becomes part of its caller's transaction: of unlink and rmdir
 * (remove.c), of a rename that replaces (fs/namei), of a restore that replaces
 * (restore.c). Everything that has to be read or written beforehand is done by
 * prepare; add only puts.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define EVICT_AT_ONCE 4 /* versions over the cap destroyed with one replacement */
#define EVICT_LOOK 64 /* rows looked at beyond the cap */

/* ---- prepare ---------------------------------------------------------------- */

/* What a directory brings with it: its guard, and until when what is deleted in it is kept. */
static int prepare_directory(struct lifecycle *l, struct removal *r, bool whole, struct policy *policy)
{
	struct key_range range;
	struct rules rules;
	int result = record_get_guard(l->store, r->victim.id, &r->guard);

	if (result)
		return result == STORE_ABSENT ? -EBADMSG : result;
	key_range_live(r->victim.id, &range);
	result = whole ? 1 : range_is_empty(l->store, &range);
	if (result != 1)
		return result ? result : -ENOTEMPTY;
	result = rules_load(l, r->victim.id, &rules);
	if (result)
		return result;
	if (rules.policy.protect)
		return -EPERM;
	*policy = rules.policy;
	/* Not noted in the directory: what is live below may leave it before it is deleted again. */
	r->until_ns = r->victim.directory.trash_until_ns;
	return whole ? outgoing_until(l, r->victim.id, &r->until_ns) : 0;
}

/*
 * A directory is a temporary name only if nothing was ever deleted in it for
 * anybody to miss; a name of several only while the file keeps a live one.
 */
static bool removal_is_temporary(struct lifecycle *l, const struct removal *r,
				 const struct policy *policy, bool whole)
{
	const struct item *v = &r->victim;

	if (r->deletion.cause != ITEM_REMOVED || policy->temporary_ns == 0 || whole)
		return false;
	if (S_ISDIR(v->mode) && v->directory.trash_until_ns)
		return false;
	if (v->flags & ITEM_REFERENCE && r->link.links_live < 2)
		return false;
	if (!created_by(l, r->actor, v->id, policy->temporary_ns))
		return false;
	/* A mark may stand where what it was for has moved away. */
	return !(S_ISDIR(v->mode) && v->flags & ITEM_SHADOWED) || !shadow_needed(l, v->id, NULL);
}

static void removal_set_times(struct removal *r, const struct policy *policy)
{
	struct deletion *d = &r->deletion;
	bool at_once = r->temporary || (d->cause == ITEM_REPLACED && policy->versions == 0);

	d->expires_ns = at_once ? r->now_ns : time_add(r->now_ns, policy->retention_ns);
	if (S_ISDIR(r->victim.mode))
		d->expires_ns = util_max(d->expires_ns, r->until_ns);
	d->destroy_ns = d->expires_ns;
}

static void removal_set_actor(struct removal *r, const struct actor *actor)
{
	struct deletion *d = &r->deletion;

	d->uid = actor->uid;
	d->gid = actor->gid;
	d->pid = actor->pid;
	memcpy(d->command, actor->command, sizeof(d->command));
}

/* Marks the way up, and reads `parent` again if that changed it. */
static int prepare_shadows(struct lifecycle *l, struct tree_directory *parent)
{
	uint64_t id = parent->id;
	int result;

	if (id == KEY_ID_ROOT || parent->own.flags & ITEM_SHADOWED)
		return 0;
	result = lifecycle_mark_shadows(l, id);
	if (result)
		return result;
	tree_release(parent);
	parent->value = (struct store_value){ 0 };
	return tree_load(l->store, id, parent);
}

static int prepare_place(struct lifecycle *l, struct removal *r, const struct actor *actor,
			 struct tree_directory *parent)
{
	struct open_batch *batch = NULL;
	int result = 0;

	if (!r->temporary)
		result = prepare_shadows(l, parent);
	if (!result && r->deletion.cause == ITEM_REMOVED && !r->temporary)
		result = batch_join(l, actor, false, parent->id, &batch);
	r->to = r->from;
	r->to.state = KEY_DEL;
	if (!result)
		result = store_new_seq(l->store, &r->to.seq);
	if (result)
		return result;
	r->batch = batch;
	r->deletion.batch = batch ? batch->record.seq : 0;
	return 0;
}

int removal_prepare(struct lifecycle *l, struct removal *r, const struct actor *actor,
		    enum item_cause cause, uint64_t replaced_by, struct tree_directory *parent,
		    const struct item *victim, bool whole)
{
	struct policy policy;
	struct rules rules;
	bool suspect;
	int result = rules_load(l, parent->id, &rules);

	if (result)
		return result;
	if (!rules.live)
		return -EROFS;
	if (rules.policy.protect)
		return -EPERM;
	policy = rules.policy;
	*r = (struct removal){ .actor = actor, .cause = cause, .replaced_by = replaced_by, .victim = *victim };
	r->deletion = (struct deletion){ .cause = cause, .replaced_by = replaced_by };
	r->whole = whole;
	r->from = (struct place){ .directory = parent->id, .state = KEY_ACT };
	memcpy(r->from.name, victim->name, sizeof(r->from.name));
	/* Before any number is drawn: a wall clock that jumped must not get into it. */
	watch_steady_ns(l, &suspect);
	r->now_ns = lifecycle_now_ns(l);
	if (S_ISDIR(victim->mode))
		result = prepare_directory(l, r, whole, &policy);
	else if (victim->flags & ITEM_REFERENCE)
		result = record_get_link(l->store, victim->id, false, &r->link_value, &r->link);
	if (!result) {
		r->temporary = removal_is_temporary(l, r, &policy, whole);
		r->deletion.cause = r->temporary ? ITEM_TEMPORARY : r->deletion.cause;
		removal_set_times(r, &policy);
		removal_set_actor(r, actor);
		result = prepare_place(l, r, actor, parent);
	}
	if (result)
		store_value_release(&r->link_value);
	return result == STORE_ABSENT ? STORE_CONFLICT : result;
}

int lifecycle_removal_prepare(struct lifecycle *l, struct removal *r, const struct actor *actor,
			      enum item_cause cause, uint64_t replaced_by,
			      struct tree_directory *parent, const struct item *victim)
{
	return removal_prepare(l, r, actor, cause, replaced_by, parent, victim, false);
}

/* ---- add ---------------------------------------------------------------------- */

/* The directory that the name leaves. */
static void add_to_parent(struct lifecycle *l, struct removal *r, struct tree_directory *parent)
{
	struct item_directory *d = &parent->own.directory;
	struct rules rules;

	if (!r->temporary) {
		if (r->deletion.batch && d->saved_batch != r->deletion.batch) {
			d->saved_batch = r->deletion.batch;
			d->saved_mtime = parent->own.mtime;
		}
		d->trash_until_ns = util_max(d->trash_until_ns, r->deletion.expires_ns);
		outgoing_note(l, parent->id, r->deletion.expires_ns);
		/* Loaded by prepare, under the same lock; if not to be had, nobody may. */
		d->trash_mask &=
			rules_load(l, parent->id, &rules) ? 0700 : rules_mask(&rules, &parent->own);
	}
	if (S_ISDIR(r->victim.mode) && d->subdirectories)
		d->subdirectories--;
	tree_touch(parent, r->now_ns);
}

static void add_counts(const struct removal *r, struct transaction *t)
{
	const struct item *file = r->victim.flags & ITEM_REFERENCE ? &r->link : &r->victim;
	bool last = !(r->victim.flags & ITEM_REFERENCE) || r->link.links_live == 1;

	transaction_count_add(t, COUNTER_LIVE_ITEMS, -1);
	if (!r->temporary)
		transaction_count_add(t, COUNTER_TRASH_ITEMS, 1);
	if (!S_ISREG(file->mode) || !last)
		return;
	transaction_count_add(t, COUNTER_LIVE_BYTES, -(int64_t)file->size);
	transaction_count_add(t, COUNTER_TRASH_BYTES, (int64_t)file->size);
}

static void add_directory(const struct removal *r, struct transaction *t, bool whole)
{
	struct guard guard = { .at = r->to };
	struct key_range range;
	struct key key;

	transaction_put_guard(t, r->victim.id, &guard, r->guard.version);
	if (whole)
		return;
	key_guard(r->victim.id, &key);
	key_range_live(r->victim.id, &range);
	transaction_empty(t, &range, &key);
}

void removal_add(struct lifecycle *l, struct removal *r, struct tree_directory *parent,
		 struct transaction *t, bool whole)
{
	struct item moved = r->victim;
	struct item link = r->link;

	add_counts(r, t);
	moved.deletion = r->deletion;
	moved.flags = (moved.flags | ITEM_DELETION) & ~(uint32_t)ITEM_SHADOWED;
	moved.ctime = tree_time(r->now_ns);
	transaction_put_item(t, l->store, &r->to, &moved, 0);
	if (moved.flags & ITEM_REFERENCE) {
		link.links_live--;
		link.ctime = moved.ctime;
		transaction_put_link(t, &link, r->link.version);
	}
	if (S_ISDIR(moved.mode))
		add_directory(r, t, whole);
	deletion_put_rows(l, t, &r->to, &r->deletion, r->due_batch ? r->due_batch : r->deletion.batch);
	if (r->batch)
		batch_add(t, r->batch);
	add_to_parent(l, r, parent);
}

void lifecycle_removal_add(struct lifecycle *l, struct removal *r, struct tree_directory *parent,
			   struct transaction *t)
{
	removal_add(l, r, parent, t, false);
}

/* ---- done ---------------------------------------------------------------------- */

int deletion_doom(struct lifecycle *l, const struct place *at, const struct item *item,
		  enum item_counter cause)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct deletion d = item->deletion;
	bool suspect;

	d.flags |= DELETION_DOOMED;
	d.flags &= ~DELETION_PINNED;
	d.cause = d.cause == ITEM_TEMPORARY ? d.cause : destroy_doomed_cause(cause);
	d.destroy_ns = util_min(d.destroy_ns, watch_steady_ns(l, &suspect));
	deletion_change(l, &t, at, item, &d, d.batch);
	return tree_commit(&t, l->store, STORE_RELEASING, NULL);
}

/* A version over the cap goes now, or, while somebody reads it, as soon as he closes it. */
int evict_version(struct lifecycle *l, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct destroyed total = { 0 };
	struct lifecycle_change change;
	struct item item;
	int result = destroy_file(l, at, COUNTER_DESTROYED_VERSIONS, &total);

	if (result != -EBUSY)
		return result;
	result = record_get_item(l->store, at, false, &value, &item);
	if (!result)
		result = deletion_doom(l, at, &item, COUNTER_DESTROYED_VERSIONS);
	if (result)
		return result;
	/* It stays where it is, without an entry from now on. */
	change = (struct lifecycle_change){
		.id = item.id, .mode = item.mode, .from = *at, .to = *at, .temporary = true
	};
	lifecycle_notify_changed(l, &change);
	sweeper_expect(l, lifecycle_now_ns(l));
	return 0;
}

/*
 * A replaced directory is no version: what was deleted in it is kept as long as
 * any removal.
 */
static bool is_version(const struct item *item)
{
	return item->deletion.cause == ITEM_REPLACED && !item->deletion.flags && !S_ISDIR(item->mode);
}

/* The places of versions of a name beyond the newest `cap`, newest of them first. */
static int versions_over_cap(struct lifecycle *l, const struct place *newest, uint32_t cap,
			     struct place *ret_over, size_t *ret_count)
{
	struct store_query query = { .limit = util_min(cap, 1000u) + EVICT_LOOK,
				     .reverse = true,
				     .attributes_only = true };
	_cleanup_(store_page_release) struct store_page page = { 0 };
	uint32_t kept = 0;
	struct place at;
	struct item item;
	int result;

	*ret_count = 0;
	key_range_deleted_name(store_codec(l->store), newest->directory, newest->name, &query.range);
	result = store_query(l->store, &query, &page);
	for (size_t i = 0; i < page.count && !result && *ret_count < EVICT_AT_ONCE; i++) {
		if (record_row_item(l->store, &page.rows[i], &at, &item) || !is_version(&item))
			continue;
		if (++kept > cap)
			ret_over[(*ret_count)++] = at;
	}
	return result;
}

int versions_are_newer(struct lifecycle *l, const struct place *at, uint32_t cap)
{
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct store_query query = { .limit = util_min(cap, 1000u) + EVICT_LOOK, .attributes_only = true };
	uint32_t newer = 0;
	struct place other;
	struct item item;
	struct key after;
	int result;

	key_range_deleted_name(store_codec(l->store), at->directory, at->name, &query.range);
	key_item(store_codec(l->store), at, &after);
	query.after = &after;
	result = store_query(l->store, &query, &page);
	for (size_t i = 0; i < page.count && !result; i++)
		newer += !record_row_item(l->store, &page.rows[i], &other, &item) && is_version(&item);
	return result ? result : newer >= cap;
}

static void evict_versions(struct lifecycle *l, const struct removal *r)
{
	struct place over[EVICT_AT_ONCE];
	struct policy policy;
	bool suspect;
	size_t count;

	watch_steady_ns(l, &suspect);
	if (suspect)
		return;
	/* What fails here is made up for by the next replacement, or by its expiry. */
	if (lifecycle_policy(l, r->to.directory, &policy) || !policy.versions || policy.hold)
		return;
	if (versions_over_cap(l, &r->to, policy.versions, over, &count))
		return;
	for (size_t i = 0; i < count; i++) {
		struct store_retry retry = { 0 };
		int result;

		do
			result = evict_version(l, &over[i]);
		while (store_retry(&retry, &result));
	}
}

/*
 * What is kept for no time at all. If it is open it stays until
 * lifecycle_note_released. Returns when to look again.
 */
static int64_t destroy_at_once(struct lifecycle *l, const struct removal *r)
{
	struct destroyed total = { 0 };
	bool suspect;
	int64_t now_ns = watch_steady_ns(l, &suspect);
	int result;

	if (r->deletion.destroy_ns > now_ns || suspect)
		return r->deletion.destroy_ns;
	result = destroy_file(l, &r->to, destroy_cause(&r->deletion, r->now_ns), &total);
	if (!result)
		return ITEM_FOREVER;
	return result == -EBUSY ? time_add(now_ns, BUSY_AGAIN_NS) : now_ns;
}

static void removal_tell(struct lifecycle *l, const struct removal *r)
{
	struct lifecycle_change change = {
		.id = r->victim.id,
		.mode = r->victim.mode,
		.from = r->from,
		.to = r->to,
		.temporary = r->temporary || r->deletion.expires_ns <= r->now_ns,
		.empty = S_ISDIR(r->victim.mode) && !r->whole,
	};

	lifecycle_notify_changed(l, &change);
}

void lifecycle_removal_done(struct lifecycle *l, struct removal *r, bool committed)
{
	struct rules rules;

	if (committed) {
		if (r->batch)
			batch_count(l, r->batch, r->to.seq, S_ISREG(r->victim.mode) ? r->victim.size : 0);
		if (S_ISDIR(r->victim.mode))
			rules_forget(l, r->victim.id);
		lifecycle_note_renamed(l, r->victim.id);
		removal_tell(l, r);
		if (r->cause == ITEM_REPLACED)
			evict_versions(l, r);
		if (!rules_load(l, r->to.directory, &rules))
			cap_note(l, &rules,
				 r->victim.flags & ITEM_REFERENCE ? &r->link : &r->victim, r->whole);
		sweeper_expect(l, destroy_at_once(l, r));
	}
	store_value_release(&r->link_value);
}
