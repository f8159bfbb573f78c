/*
 * undo.c - taking back a whole batch.
 *
 * The top entries of the batch are collected first (their sequence numbers
 * only), then checked, then brought back newest first, each as a restore to its
 * origin. Entries carry their batch, so an undo broken off anywhere is simply
 * called again: what is back is counted by the batch's record, what is not is
 * still found.
 *
 * A purge is undone into the trash: its entries are found by their rows in EXP.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define USABLE_ROWS 100000 /* looked at to tell whether anything of a purge is left */

struct undo_top {
	uint64_t seq;
	/* Id of what the batch deleted under the same name later, or left live: this one stays. 0: none. */
	uint64_t newer;
};

struct undoing {
	struct lifecycle *l;
	const struct actor *actor;
	const struct undo_options *o;
	struct undo_result *result;
	struct batch batch;
	struct undo_top *tops;
	size_t count, capacity;
	uint64_t rows; /* entries found, those below tops included */
	uint64_t refused, done;
	int refusal; /* what `allowed`, or the actor's rights, said last */
	int failed;
	/* Whether things in this directory went with a directory: the last one asked for. */
	uint64_t memo_directory;
	bool memo_joined;
	bool memo_inhabited; /* if so: something is live in it */
};

/* ---- which batch ---------------------------------------------------------------------- */

struct batch_choice {
	struct undoing *u;
	const struct batch *candidate;
	uint64_t stays; /* entries of it that are there, and stay on purpose */
	int refusal; /* of what is below the directory, but not the actor's to bring back */
	bool same_session;
	bool found;
	struct batch batch;
	int result;
};

static bool stop_at_first(void *data, uint64_t seq, const struct trash_row *row)
{
	return true;
}

/* Whether an undo of that batch would bring the item back: 1, 0, negative errno. */
static int is_usable(struct undoing *u, const struct batch *batch, const struct place *at,
		     const struct item *item)
{
	const struct deletion *d = &item->deletion;
	struct standing st;
	int result;

	if (batch->purge)
		return d->flags & DELETION_PURGED && !(d->flags & DELETION_DOOMED) &&
		       d->expires_ns > lifecycle_now_ns(u->l);
	/* What an undo left because of a newer one stays. */
	if (d->cause != ITEM_REMOVED || d->replaced_by)
		return 0;
	result = standing_load(u->l, at, item, &st);
	return result ? result : st.visible || st.pinned;
}

/* Looking through a large batch may be broken off as restoring it may. */
static int undo_look(struct undoing *u)
{
	return u->o->progress && u->o->progress(u->o->data, u->done, u->rows) ? -EINTR : 0;
}

/* Of a directory: whether it is below. 1, 0, negative errno. */
static int is_asked_for(struct undoing *u, const struct place *at)
{
	int result = u->o->directory ? undo_look(u) : 1;

	return result ? result : tree_is_below(u->l->store, at->directory, u->o->directory, NULL);
}

static bool usable_row(void *data, uint64_t seq, const struct trash_row *row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct batch_choice *c = data;
	struct undoing *u = c->u;
	struct place at;
	struct item item;
	int result = standing_row_item(u->l, &row->key, true, &at, &value, &item);

	/* What is damaged, or gone meanwhile, does not come back. */
	if (result == STORE_ABSENT)
		return false;
	if (!result)
		result = is_asked_for(u, &at);
	if (result == 1)
		result = is_usable(u, c->candidate, &at, &item);
	/* A batch of others is chosen only by who may bring something of it back. */
	if (result == 1 && u->o->directory && u->o->allowed) {
		c->refusal = u->o->allowed(u->o->data, &at, &item);
		result = !c->refusal;
	}
	c->stays += result == 0 && item.deletion.cause == ITEM_REMOVED && item.deletion.replaced_by;
	c->result = result < 0 && result != -EBADMSG && result != -ENOENT ? result : 0;
	return c->result || result == 1;
}

/*
 * Whether an undo of a batch has something to do: 1, 0, negative errno. If
 * nothing of it can come back any more, but not all of it did, that is something
 * to be told, once, before the batch before it is meant; except of a purge, which
 * is over with its grace.
 */
static int is_worth(struct batch_choice *c, const struct batch *batch)
{
	bool below = c->u->o->directory;
	int result;

	c->candidate = batch;
	c->stays = 0;
	result = batch_rows(c->u->l, batch, below ? 0 : USABLE_ROWS, usable_row, c);
	if (c->result || result)
		return c->result ? c->result : util_min(result, 1);
	return !below && !batch->purge && batch->restored + c->stays < batch->count;
}

static bool choose(void *data, const struct batch *batch)
{
	struct batch_choice *c = data;
	const struct undo_options *o = c->u->o;
	int worth = 1;

	if (o->batch && batch->seq != o->batch)
		return false;
	/* Of a directory: what a part of came back from. */
	if (!o->batch && o->directory && (batch->purge || !batch->restored))
		return false;
	if (!o->batch && !o->directory &&
	    (batch->undone || (c->same_session && batch->session != c->u->actor->session)))
		return false;
	if (!o->batch)
		worth = is_worth(c, batch);
	if (worth <= 0) {
		c->result = worth;
		return worth < 0;
	}
	c->batch = *batch;
	c->found = true;
	return true;
}

static int find_batch(struct undoing *u, uint32_t uid, bool same_session, struct batch_choice *c)
{
	int result;

	*c = (struct batch_choice){ .u = u, .same_session = same_session };
	result = lifecycle_batches(u->l, uid, choose, c);
	return result ? result : c->result;
}

static int choose_batch(struct undoing *u)
{
	struct batch_choice c;
	int result;

	if (u->o->batch || u->o->directory) {
		result = find_batch(u, UINT32_MAX, false, &c);
	} else {
		result = find_batch(u, u->actor->uid, true, &c);
		if (!result && !c.found)
			result = find_batch(u, u->actor->uid, false, &c);
	}
	if (!result && !c.found)
		result = c.refusal ? c.refusal : -ENOENT;
	if (result)
		return result;
	/* What is deleted from now on is another batch. */
	lifecycle_lock(u->l);
	result = batch_close_id(u->l, c.batch.seq);
	if (!result)
		result = record_get_batch(u->l->store, c.batch.uid, c.batch.seq, &u->batch);
	lifecycle_unlock(u->l);
	return result == STORE_ABSENT ? -ENOENT : result;
}

/* ---- what is in it ---------------------------------------------------------------------- */

static int tops_push(struct undoing *u, uint64_t seq, uint64_t newer)
{
	struct undo_top *grown;
	size_t capacity;

	if (u->count == u->capacity) {
		capacity = util_max(2 * u->capacity, (size_t)64);
		grown = reallocarray(u->tops, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		u->tops = grown;
		u->capacity = capacity;
	}
	u->tops[u->count++] = (struct undo_top){ seq, newer };
	return 0;
}

static int is_joined(struct undoing *u, const struct place *at, const struct item *item, bool *ret_joined)
{
	struct key_range range;
	int result;

	if (u->memo_directory != at->directory) {
		result = standing_joined(u->l, at, item, &u->memo_joined);
		if (result)
			return result;
		u->memo_directory = at->directory;
		key_range_live(at->directory, &range);
		result = u->memo_joined ? range_is_empty(u->l->store, &range) : 1;
		if (result < 0)
			return result;
		u->memo_inhabited = !result;
	}
	*ret_joined = u->memo_joined;
	return 0;
}

/*
 * The id of what the batch deleted under the same name after that, or 0. Once an
 * undo has begun the entry says so itself: see leave_older.
 */
static int find_newer(struct undoing *u, const struct place *at, const struct item *item, uint64_t *ret_id)
{
	struct store_query query = { .attributes_only = true };
	struct store_page page = { 0 };
	struct place newer_at;
	struct item newer;
	struct key after, next;
	bool more = true;
	int result = 0;

	*ret_id = item->deletion.cause == ITEM_REMOVED ? item->deletion.replaced_by : 0;
	key_range_deleted_name(store_codec(u->l->store), at->directory, at->name, &query.range);
	key_item(store_codec(u->l->store), at, &after);
	query.after = &after;
	while (more && !result && !*ret_id) {
		result = store_query(u->l->store, &query, &page);
		if (result)
			break;
		for (size_t i = 0; i < page.count; i++)
			if (!record_row_item(u->l->store, &page.rows[i], &newer_at, &newer) &&
			    newer.deletion.batch == u->batch.seq && newer.deletion.cause == ITEM_REMOVED)
				*ret_id = newer.id;
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}

/*
 * The id of what is live under the same name in the deleted directory that the
 * item went with, or 0: that comes back with the directory, and the item stays.
 */
static int find_resident(struct undoing *u, const struct place *at, const struct item *item,
			 uint64_t *ret_id)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place live = { .directory = at->directory, .state = KEY_ACT };
	struct item resident;
	int result;

	*ret_id = 0;
	if (!u->memo_inhabited || item->deletion.cause != ITEM_REMOVED || item->deletion.replaced_by)
		return 0;
	memcpy(live.name, at->name, sizeof(live.name));
	result = record_get_item(u->l->store, &live, true, &value, &resident);
	if (!result)
		*ret_id = resident.id;
	return result == STORE_ABSENT || result == -EBADMSG ? 0 : result;
}

static bool collect_row(void *data, uint64_t seq, const struct trash_row *row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct undoing *u = data;
	struct place at;
	struct item item;
	bool skip = false;
	uint64_t newer = 0;
	int result = standing_row_item(u->l, &row->key, true, &at, &value, &item);

	if (result == STORE_ABSENT || result == -EBADMSG)
		return false;
	u->rows++;
	if (!result)
		result = undo_look(u);
	if (!result && u->o->only)
		skip = fnmatch(u->o->only, item.name, 0) != 0;
	if (!result && !skip && u->o->directory) {
		result = tree_is_below(u->l->store, at.directory, u->o->directory, NULL);
		skip = result == 0;
		result = util_min(result, 0);
	}
	if (!result && !skip && !u->batch.purge) {
		result = is_joined(u, &at, &item, &skip);
		if (!result && !skip)
			result = find_newer(u, &at, &item, &newer);
		else if (!result)
			result = find_resident(u, &at, &item, &newer);
		skip = skip && !newer;
	}
	if (result == -EBADMSG || result == -ENOENT) {
		u->rows--; /* missing, as what is above it cannot be read */
		return false;
	}
	if (!result && !skip)
		result = tops_push(u, seq, newer);
	u->failed = result;
	return result != 0;
}

static int collect(struct undoing *u)
{
	int result = batch_rows(u->l, &u->batch, 0, collect_row, u);

	return result < 0 ? result : u->failed;
}

/* ---- one entry --------------------------------------------------------------------------- */

struct top_item {
	struct place at;
	struct store_value value;
	struct item item;
};

/* STORE_ABSENT: it is not there any more. */
static int load_top(struct undoing *u, uint64_t seq, struct top_item *ret_top)
{
	struct trash_row row;
	uint64_t version;
	int result = record_get_trash(u->l->store, seq, &row, &version);

	return result ? result :
			standing_row_item(u->l, &row.key, true, &ret_top->at, &ret_top->value,
					  &ret_top->item);
}

/* Where a view shows it: in the trash of the last live directory on the way. */
static int path_in_view(struct lifecycle *l, const struct place *at, char **ret_path)
{
	_cleanup_free_ char *path = NULL;
	uint64_t directory = at->directory;
	size_t depth = 1, deleted = 1; /* names; of them, from the first deleted one on */
	char *shown;
	const char *cut;
	int result;

	result = tree_path(l->store, at, &path);
	if (result)
		return result;
	for (; directory != KEY_ID_ROOT; depth++) {
		struct guard guard;

		result = record_get_guard(l->store, directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		if (guard.at.state == KEY_DEL)
			deleted = depth + 1;
		directory = guard.at.directory;
	}
	for (cut = path + strlen(path); deleted && cut > path; deleted -= *cut == '/')
		cut--;
	if (asprintf(&shown, "%.*s/%s%s", (int)(cut - path), path, store_trash_name(l->store), cut) < 0)
		return -ENOMEM;
	*ret_path = shown;
	return 0;
}

static void tell(struct undoing *u, const struct place *at, const struct item *item, int result)
{
	_cleanup_free_ char *path = NULL;

	if (!u->o->entry ||
	    (u->batch.purge ? path_in_view(u->l, at, &path) : tree_path(u->l->store, at, &path)))
		return;
	u->o->entry(u->o->data, path, item, result);
}

/* -ENOENT: expired, purged. */
static int check_shown(struct undoing *u, const struct top_item *top)
{
	struct standing st;
	int result = standing_load(u->l, &top->at, &top->item, &st);

	return result || st.visible || st.pinned ? result : -ENOENT;
}

/* -EEXIST: what it would come back to is taken. */
static int check_name(struct undoing *u, const struct top_item *top)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place live = { .directory = top->at.directory, .state = KEY_ACT };
	struct item item;
	int result;

	if (u->o->taken != UNDO_REFUSE && u->o->taken != UNDO_SKIP)
		return 0;
	memcpy(live.name, top->at.name, sizeof(live.name));
	result = record_get_item(u->l->store, &live, true, &value, &item);
	return result == STORE_ABSENT ? 0 : result == 0 || result == -EBADMSG ? -EEXIST : result;
}

static bool is_conflict(int result)
{
	return result == -EEXIST || result == -ENOTDIR || result == -EISDIR || result == -ENOTEMPTY;
}

/* Accounts for an entry that does not come back. 0, or an error that ends all. */
static int leave_top(struct undoing *u, const struct top_item *top, int result)
{
	if (result == -EACCES || result == -EPERM) {
		u->refused++;
		u->refusal = result;
	}
	if (is_conflict(result) || result == -EACCES || result == -EPERM || result == -EROFS)
		u->result->skipped++;
	else if (result == -ENOENT)
		u->result->missing++;
	else
		return result;
	tell(u, &top->at, &top->item, result);
	return 0;
}

static bool undo_progress(void *data, uint64_t done)
{
	struct undoing *u = data;

	return u->o->progress && u->o->progress(u->o->data, u->done + done, u->rows);
}

static unsigned restore_flags(const struct undoing *u)
{
	switch (u->o->taken) {
	case UNDO_RENAME:
		return RESTORE_PARENTS | RESTORE_RENAME;
	case UNDO_REPLACE:
		return RESTORE_PARENTS;
	default:
		return RESTORE_PARENTS | RESTORE_NOREPLACE;
	}
}

static int undo_removal(struct undoing *u, const struct top_item *top)
{
	struct restoring r = {
		.actor = u->actor,
		.flags = restore_flags(u),
		.progress = undo_progress,
		.data = u,
	};
	int result = restore_to_origin(u->l, &r, &top->at, NULL);

	u->done += r.done;
	u->result->restored += r.done;
	if (!result || (result == -EINTR && r.to.name[0]))
		tell(u, &r.to, &top->item, 0);
	return result;
}

static int undo_purge(struct undoing *u, const struct top_item *top)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		lifecycle_lock_background(u->l);
		result = purge_take_back(u->l, &top->at, 0, u->batch.uid, u->batch.seq);
		lifecycle_unlock(u->l);
	} while (store_retry(&retry, &result));
	if (result)
		return result;
	u->result->restored++;
	tell(u, &top->at, &top->item, 0);
	u->done++;
	return undo_progress(u, 0) ? -EINTR : 0;
}

/* ---- all of them --------------------------------------------------------------------------- */

enum pass {
	PASS_CHECK,
	PASS_DRY,
	PASS_RESTORE
};

static int pass_top(struct undoing *u, enum pass pass, const struct top_item *top)
{
	int result = u->batch.purge ? 0 : check_shown(u, top);

	/* What is gone for everybody is nobody's to be refused. */
	if (!result && u->o->allowed)
		result = u->o->allowed(u->o->data, &top->at, &top->item);
	if (!result && !u->batch.purge)
		result = check_name(u, top);
	if (pass == PASS_CHECK)
		return result == -EEXIST ? -EEXIST : 0;
	if (!result && pass == PASS_DRY) {
		u->result->restored++;
		tell(u, &top->at, &top->item, 0);
	} else if (!result) {
		result = u->batch.purge ? undo_purge(u, top) : undo_removal(u, top);
	}
	return result ? leave_top(u, top, result) : 0;
}

static int leave_once(struct undoing *u, const struct undo_top *undo_top)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct top_item top = { 0 };
	struct deletion d;
	bool may;
	int result = load_top(u, undo_top->seq, &top);

	if (result)
		return result == STORE_ABSENT || result == -EBADMSG ? 0 : result;
	d = top.item.deletion;
	may = !u->o->allowed || !u->o->allowed(u->o->data, &top.at, &top.item);
	/* What was purged stays anyway, and its row in EXP is the purge's. */
	if (may && d.cause == ITEM_REMOVED && !d.replaced_by && !(d.flags & DELETION_PURGED)) {
		store_value_release(&top.value);
		/* With its content, which is put again. */
		result = record_get_item(u->l->store, &top.at, false, &top.value, &top.item);
		d.replaced_by = undo_top->newer;
		if (!result) {
			deletion_change(u->l, &t, &top.at, &top.item, &d, d.batch);
			result = tree_commit(&t, u->l->store, STORE_RELEASING, NULL);
		}
	}
	store_value_release(&top.value);
	return result == STORE_ABSENT ? 0 : result;
}

/*
 * Before anything comes back, what is to stay is told what took its name: an undo
 * that is broken off and called again finds the newer one no longer in the trash.
 */
static int leave_older(struct undoing *u)
{
	int result = 0;

	for (size_t i = 0; i < u->count && !result; i++) {
		struct store_retry retry = { 0 };

		if (!u->tops[i].newer)
			continue;
		do {
			lifecycle_lock_background(u->l);
			result = leave_once(u, &u->tops[i]);
			lifecycle_unlock(u->l);
		} while (store_retry(&retry, &result));
	}
	return result;
}

static int pass_all(struct undoing *u, enum pass pass)
{
	bool taken = false;
	int result = 0;

	for (size_t i = 0; i < u->count && !result; i++) {
		struct top_item top = { 0 };

		if (u->tops[i].newer)
			continue;
		result = pass == PASS_RESTORE ? 0 : undo_look(u);
		if (result)
			break;
		result = load_top(u, u->tops[i].seq, &top);
		if (!result)
			result = pass_top(u, pass, &top);
		else if (result == STORE_ABSENT || result == -EBADMSG)
			result = 0;
		if (result == -EEXIST) {
			taken = true;
			tell(u, &top.at, &top.item, -EEXIST);
			result = 0;
		}
		store_value_release(&top.value);
	}
	return result ? result : taken ? -EEXIST : 0;
}

static int mark_undone(struct undoing *u)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct batch batch;
	int result = record_get_batch(u->l->store, u->batch.uid, u->batch.seq, &batch);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	batch.undone = true;
	transaction_put_batch(&t, &batch, batch.version);
	return tree_commit(&t, u->l->store, STORE_RELEASING, NULL);
}

/* With a pattern, or below a directory: the rest of the batch can still be undone. */
static int finish(struct undoing *u)
{
	struct store_retry retry = { 0 };
	int result = 0;

	if (u->refused && !u->result->restored)
		return u->refusal;
	if (u->o->only || u->o->directory) {
		result = batch_rows(u->l, &u->batch, 0, stop_at_first, NULL);
		if (result)
			return util_min(result, 0);
	}
	do {
		lifecycle_lock(u->l);
		result = mark_undone(u);
		lifecycle_unlock(u->l);
	} while (store_retry(&retry, &result));
	/* All is back, and counted. Told that it failed, who calls again would undo the batch before this one. */
	return u->result->restored && !u->refused ? 0 : result;
}

static int undo_batch(struct undoing *u)
{
	struct undo_result *r = u->result;
	int result = collect(u);

	if (result)
		return result;
	r->already = u->batch.restored;
	if (!u->o->only && !u->o->directory && u->batch.count > u->batch.restored + u->rows)
		r->missing = u->batch.count - u->batch.restored - u->rows;
	if (u->o->taken == UNDO_REFUSE && !u->batch.purge) {
		result = pass_all(u, PASS_CHECK);
		if (result)
			return result;
	}
	result = u->o->dry_run ? 0 : leave_older(u);
	if (result)
		return result;
	result = pass_all(u, u->o->dry_run ? PASS_DRY : PASS_RESTORE);
	return result || u->o->dry_run ? result : finish(u);
}

int lifecycle_undo(struct lifecycle *l, const struct actor *actor,
		   const struct undo_options *options, struct undo_result *ret_result)
{
	struct undoing u = { .l = l, .actor = actor, .o = options, .result = ret_result };
	int result;

	*ret_result = (struct undo_result){ 0 };
	result = choose_batch(&u);
	if (!result) {
		ret_result->batch = u.batch;
		result = undo_batch(&u);
	}
	free(u.tops);
	return result;
}
