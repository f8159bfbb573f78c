/*
 * purge.c - removing from the trash by hand: hidden at once, destroyed after a
 * grace, so that even this can be undone.
 *
 * The row in EXP of a purged entry names the batch of the purge (that in TRASH
 * still the batch of the deletion): what a purge took is found there again.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

/* A directory and its guard may each have to be made again. */
#define PURGE_TRIES 4

struct purge {
	const struct actor *actor;
	const struct place *at;
	bool recursive;
	int64_t grace_ns;
	uint64_t moves; /* of the store, before it was asked what it shows */
	struct open_batch *batch;
	int64_t destroy_ns; /* once it is done */
	struct place to;
};

static bool stop_at_first(void *data, const struct entry *entry, const struct key *key)
{
	*(bool *)data = true;
	return true;
}

static int check_shows_nothing(struct lifecycle *l, uint64_t directory)
{
	bool shows = false;
	int result = lifecycle_list(l, directory, NULL, stop_at_first, &shows);

	return result ? result : shows ? -ENOTEMPTY : 0;
}

/* A directory that shows nothing decides nothing for what is in it: see within.c. */
static int purge_commit(struct lifecycle *l, const struct purge *p, struct transaction *t)
{
	if (!p->recursive && store_moves(l->store) == p->moves)
		t->moves = false;
	return tree_commit(t, l->store, STORE_RELEASING, NULL);
}

static int purge_deleted(struct lifecycle *l, struct purge *p, const struct item *item)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct deletion d = item->deletion;

	d.flags |= DELETION_PURGED;
	d.flags &= ~DELETION_PINNED;
	d.destroy_ns = p->destroy_ns;
	deletion_change(l, &t, p->at, item, &d, p->batch->record.seq);
	batch_add(&t, p->batch);
	p->to = *p->at;
	return purge_commit(l, p, &t);
}

/*
 * What is still live inside a discarded directory becomes an entry of that
 * directory's batch first.
 */
static int purge_live_in(struct lifecycle *l, struct purge *p, struct removal *r,
			 struct tree_directory *parent)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct lifecycle_change change = {
		.id = r->victim.id, .mode = r->victim.mode, .from = r->from, .to = r->to
	};
	int result = 0;

	removal_add(l, r, parent, &t, true);
	transaction_delete_item(&t, l->store, &r->from, r->victim.version);
	if (r->victim.flags & ITEM_SHADOWED)
		result = shadow_delete(l, &t, &r->from);
	tree_put_own(&t, l->store, parent);
	batch_add(&t, p->batch);
	if (!result)
		result = batch_add_entries(l, &t, &r->deletion, r->to.seq, 1,
					   S_ISREG(r->victim.mode) ? r->victim.size : 0);
	if (!result)
		result = purge_commit(l, p, &t);
	if (!result && l->hooks.changed)
		l->hooks.changed(l->hooks.data, &change);
	p->to = r->to;
	return result;
}

static int purge_live(struct lifecycle *l, struct purge *p, const struct item *item,
		      const struct standing *st)
{
	struct removal r = {
		.actor = p->actor, .cause = ITEM_REMOVED, .from = *p->at, .to = *p->at, .victim = *item
	};
	struct tree_directory parent;
	int result;

	r.deletion = st->deletion;
	r.deletion.cause = ITEM_REMOVED;
	r.deletion.flags = DELETION_PURGED;
	r.deletion.replaced_by = 0;
	r.deletion.destroy_ns = p->destroy_ns;
	r.due_batch = p->batch->record.seq;
	r.now_ns = lifecycle_now_ns(l);
	r.to.state = KEY_DEL;
	/* An open batch counts in memory what belongs to it. */
	result = batch_close_id(l, st->deletion.batch);
	if (result)
		return result;
	if (S_ISDIR(item->mode))
		result = record_get_guard(l->store, item->id, &r.guard);
	else if (item->flags & ITEM_REFERENCE)
		result = record_get_link(l->store, item->id, false, &r.link_value, &r.link);
	if (!result)
		result = lifecycle_mark_shadows(l, p->at->directory);
	if (!result)
		result = store_new_seq(l->store, &r.to.seq);
	if (!result)
		result = tree_load(l->store, p->at->directory, &parent);
	if (!result) {
		result = purge_live_in(l, p, &r, &parent);
		tree_release(&parent);
	}
	store_value_release(&r.link_value);
	return result == STORE_ABSENT ? STORE_CONFLICT : result;
}

static int purge_once(struct lifecycle *l, struct purge *p)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct policy policy;
	struct standing st;
	struct item item;
	bool suspect;
	int result = record_get_item(l->store, p->at, false, &value, &item);

	if (!result)
		result = standing_load(l, p->at, &item, &st);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (!st.deleted || !st.visible)
		return -ENOENT;
	result = lifecycle_policy(l, p->at->directory, &policy);
	if (!result)
		result = batch_join(l, p->actor, true, p->at->directory, &p->batch);
	if (result)
		return result;
	p->destroy_ns = time_add(watch_steady_ns(l, &suspect),
				 p->grace_ns < 0 ? policy.grace_ns : p->grace_ns);
	result = p->at->state == KEY_DEL ? purge_deleted(l, p, &item) : purge_live(l, p, &item, &st);
	if (result)
		return result;
	l->room.no_purged = false;
	/*
	 * It ends when its last purge was, however long ago that was deleted: undo looks from
	 * there.
	 */
	batch_count(l, p->batch, util_max((uint64_t)lifecycle_now_ns(l), p->batch->record.seq),
		    S_ISREG(item.mode) ? item.size : 0);
	sweeper_expect(l, p->destroy_ns);
	return 0;
}

/*
 * What may take long is asked before the lock: nothing comes into a deleted
 * directory afterwards.
 */
static int check_purge(struct lifecycle *l, const struct place *at, bool recursive)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item item;
	int result = record_get_item(l->store, at, true, &value, &item);

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (S_ISDIR(item.mode) && !recursive)
		result = check_shows_nothing(l, item.id);
	if (!result)
		result = destroy_is_held(l, at, &item);
	return result > 0 ? -EPERM : result;
}

static int purge_readable(struct lifecycle *l, const struct actor *actor, const struct place *at,
			  bool recursive, int64_t grace_ns)
{
	struct purge p = { .actor = actor,
			   .at = at,
			   .recursive = recursive,
			   .grace_ns = grace_ns,
			   .moves = store_moves(l->store) };
	struct store_retry retry = { 0 };
	struct deletion decided = { .flags = DELETION_PURGED };
	struct destroyed total = { 0 };
	uint64_t budget = UINT64_MAX;
	bool suspect;
	int result = check_purge(l, at, recursive);

	if (result)
		return result;
	lifecycle_lock(l);
	do
		result = purge_once(l, &p);
	while (store_retry(&retry, &result));
	lifecycle_unlock(l);
	if (result || p.destroy_ns > watch_steady_ns(l, &suspect))
		return result;
	/* Without a grace it goes now; what is open, when it is let go. */
	decided.destroy_ns = p.destroy_ns;
	result = destroy_entry(l, &p.to, &decided, COUNTER_DESTROYED_USER, &budget, &total);
	return result == -EBUSY ? 0 : result;
}

int purge_entry(struct lifecycle *l, const struct actor *actor, const struct place *at,
		bool recursive, int64_t grace_ns)
{
	int result = REMOVE_AGAIN;

	for (int tries = 0; result == REMOVE_AGAIN && tries < PURGE_TRIES; tries++) {
		result = purge_readable(l, actor, at, recursive, grace_ns);
		/* Nothing of it can come back: it needs no grace. */
		if (damaged_is(result))
			result = purge_damaged(l, at);
	}
	return result == REMOVE_AGAIN ? -EBADMSG : result;
}

int purge_take_back(struct lifecycle *l, const struct place *at, int64_t held_until_ns,
		    uint32_t uid, uint64_t batch)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct deletion d;
	struct rules rules;
	struct item item;
	int result = record_get_item(l->store, at, false, &value, &item);
	bool expired;

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	d = item.deletion;
	expired = d.expires_ns <= lifecycle_now_ns(l);
	if (!(d.flags & DELETION_PURGED) || d.flags & DELETION_DOOMED || (expired && !held_until_ns))
		return -ENOENT;
	d.flags &= ~DELETION_PURGED;
	d.destroy_ns = expired ? held_until_ns : d.expires_ns;
	deletion_change(l, &t, at, &item, &d, d.batch);
	result = batch_add_restored(l, &t, uid, batch, 1);
	if (!result)
		result = tree_commit(&t, l->store, STORE_RELEASING, NULL);
	/* It counts again. */
	if (!result && !rules_load(l, at->directory, &rules))
		cap_note(l, &rules, &item, true);
	return result;
}

int lifecycle_purge(struct lifecycle *l, const struct actor *actor, const struct place *at, bool recursive)
{
	return purge_entry(l, actor, at, recursive, -1);
}
