/*
 * apply.c - making what was deleted before a policy changed follow it.
 *
 * A policy counts for what is deleted from then on. Asked to, this goes through
 * what is in the trash below a directory, oldest first up to one sequence number
 * drawn at the start, and gives every item the expiry that it would have if what
 * is in force now had been when it was deleted. An item is always older than the
 * directory it was in when that was deleted, so what lies in a directory is
 * dealt with before it: it is due no sooner than all that is in it. (What was
 * handed down is younger, and raises its directory when its turn comes.)
 *
 * Each item is one transaction, and nothing is destroyed here but versions over
 * their cap: what has become due is hidden by its expiry and left to the sweeper.
 * What is expired already, purged, being restored or on hold stays as it is.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

struct applying {
	struct lifecycle *l;
	const struct apply_options *o;
	struct apply_result *result;
	int64_t now_ns;
	uint64_t looked_at;
};

/* ---- what it should be ------------------------------------------------------------------- */

/* A value that is to be set on the directory counts where nothing nearer is set. */
static int apply_override(struct applying *a, struct rules *rules, enum policy_value which, int64_t number)
{
	uint64_t setter = rules->user.setter[which];
	int result;

	if (number < 0)
		return 0;
	if (rules->user.set & 1u << which && setter != a->o->directory) {
		result = tree_is_below(a->l->store, a->o->directory, setter, NULL);
		if (result != 1)
			return result;
	}
	rules->user.value[which] = number;
	rules->user.set |= 1u << which;
	return 0;
}

/* What is in force in a directory, or would be. */
static int rules_to_apply(struct applying *a, uint64_t directory, struct rules *ret_rules)
{
	int result = rules_load(a->l, directory, ret_rules);

	if (!result)
		result = apply_override(a, ret_rules, POLICY_RETENTION, a->o->retention_ns);
	if (!result)
		result = apply_override(a, ret_rules, POLICY_VERSIONS, a->o->versions);
	if (!result)
		rules_settle_policy(ret_rules);
	return result;
}

/* Of the item alone; `directory` is the one whose policy counts for it. */
static int own_expiry(struct applying *a, const struct place *at, const struct item *item, int64_t *ret_ns)
{
	struct rules rules;
	int result = rules_to_apply(a, S_ISDIR(item->mode) ? item->id : at->directory, &rules);

	if (!result)
		*ret_ns = item->deletion.cause == ITEM_REPLACED && !rules.policy.versions ?
				  (int64_t)at->seq :
				  time_add((int64_t)at->seq, rules.policy.retention_ns);
	return result;
}

struct latest {
	struct applying *a;
	bool planned; /* by what would be, since nothing was changed; else by what is */
	int64_t until_ns;
	int failed;
};

static enum walk latest_visit(void *data, const struct place *at, const struct item *item)
{
	struct latest *latest = data;
	int64_t expires_ns = item->deletion.expires_ns;

	if (at->state != KEY_DEL)
		return WALK_ON;
	if (item->deletion.cause == ITEM_TEMPORARY)
		return WALK_PAST;
	if (latest->planned && !(item->deletion.flags & (DELETION_PURGED | DELETION_DOOMED)))
		latest->failed = own_expiry(latest->a, at, item, &expires_ns);
	if (latest->failed)
		return WALK_STOP;
	latest->until_ns = util_max(latest->until_ns, expires_ns);
	return latest->planned ? WALK_ON : WALK_PAST;
}

/* The latest expiry of what was deleted in or below a directory. */
static int until_of(struct applying *a, uint64_t directory, int64_t *ret_ns)
{
	struct latest latest = { .a = a, .planned = a->o->dry_run };
	int result = walk_below(a->l, directory, latest_visit, &latest);

	if (result < 0 || latest.failed)
		return result < 0 ? result : latest.failed;
	*ret_ns = latest.until_ns;
	return 0;
}

static int new_expiry(struct applying *a, const struct place *at, const struct item *item, int64_t *ret_ns)
{
	int64_t until_ns = 0;
	int result = own_expiry(a, at, item, ret_ns);

	if (!result && S_ISDIR(item->mode))
		result = until_of(a, item->id, &until_ns);
	*ret_ns = util_max(*ret_ns, until_ns);
	return result;
}

/* ---- one item ------------------------------------------------------------------------------ */

static bool is_to_change(struct applying *a, const struct item *item, const struct standing *st)
{
	unsigned flags = DELETION_PURGED | DELETION_DOOMED | DELETION_PINNED;

	return !(item->deletion.flags & flags) && st->visible && !st->pinned &&
	       item->deletion.expires_ns > a->now_ns;
}

/* The directory it lies in is due no sooner. */
static int raise_parent(struct applying *a, struct transaction *t, uint64_t directory, int64_t until_ns)
{
	struct tree_directory d;
	int result = tree_load(a->l->store, directory, &d);

	if (result)
		return result;
	if (d.own.directory.trash_until_ns < until_ns) {
		d.own.directory.trash_until_ns = until_ns;
		outgoing_note(a->l, directory, until_ns);
		tree_put_own(t, a->l->store, &d);
		tree_check_guard(t, &d);
	}
	tree_release(&d);
	return 0;
}

/* What changed since it was looked at is no longer as it was to be. Lock held. */
static int change_once(struct applying *a, const struct place *at, uint64_t version, int64_t expires_ns)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct deletion d;
	struct item item;
	int result = record_get_item(a->l->store, at, false, &value, &item);

	if (result)
		return result == STORE_ABSENT ? 0 : result;
	if (item.version != version)
		return 0;
	d = item.deletion;
	d.expires_ns = d.destroy_ns = expires_ns;
	if (S_ISDIR(item.mode))
		item.directory.trash_until_ns = util_min(item.directory.trash_until_ns, d.expires_ns);
	deletion_change(a->l, &t, at, &item, &d, d.batch);
	result = raise_parent(a, &t, at->directory, d.expires_ns);
	if (!result)
		result = tree_commit(&t, a->l->store, STORE_RELEASING, NULL);
	if (!result)
		sweeper_expect(a->l, d.destroy_ns);
	return result;
}

static int change(struct applying *a, const struct place *at, uint64_t version, int64_t expires_ns)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		lifecycle_lock_background(a->l);
		result = change_once(a, at, version, expires_ns);
		lifecycle_unlock(a->l);
	} while (store_retry(&retry, &result));
	return result;
}

/* Whether newer versions of the name fill the cap: 1, 0, negative errno. */
static int is_over_cap(struct applying *a, const struct place *at, const struct item *item)
{
	struct rules rules;
	int result;

	if (item->deletion.cause != ITEM_REPLACED || S_ISDIR(item->mode))
		return 0;
	result = rules_to_apply(a, at->directory, &rules);
	if (result || !rules.policy.versions)
		return result;
	return versions_are_newer(a->l, at, rules.policy.versions);
}

static int evict(struct applying *a, const struct place *at)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		lifecycle_lock_background(a->l);
		result = evict_version(a->l, at);
		lifecycle_unlock(a->l);
	} while (store_retry(&retry, &result));
	return result;
}

/* Only what is a top entry is counted: it is what its user sees. */
static void count(struct applying *a, const struct item *item, int64_t expires_ns, uint64_t bytes,
		  bool version)
{
	struct apply_result *r = a->result;

	r->changed++;
	if (version || expires_ns <= a->now_ns) {
		r->gone++;
		r->gone_bytes += bytes;
	} else if (expires_ns < item->deletion.expires_ns) {
		r->sooner++;
	} else {
		r->later++;
	}
}

/* What goes sooner for it is taken from its owner: that asks for the right to remove it. */
static int ask(struct applying *a, const struct place *at, const struct item *item)
{
	int result = a->o->allowed ? a->o->allowed(a->o->data, at, item) : 0;

	if (!result)
		result = destroy_is_held(a->l, at, item) == 1 ? -EPERM : 0;
	return result;
}

static int apply_item(struct applying *a, const struct place *at, const struct item *item)
{
	struct standing st;
	uint64_t bytes = 0;
	int64_t expires_ns = 0;
	int version = 0, result = standing_load(a->l, at, item, &st);
	bool top = !result && place_equal(&st.top, at);

	if (!result && top && st.visible)
		a->result->entries++;
	if (result || !is_to_change(a, item, &st) || (a->o->dry_run && !top))
		return result;
	result = new_expiry(a, at, item, &expires_ns);
	if (!result)
		version = is_over_cap(a, at, item);
	if (result || version < 0 || (!version && expires_ns == item->deletion.expires_ns))
		return result ? result : util_min(version, 0);
	result = version || expires_ns < item->deletion.expires_ns ? ask(a, at, item) : 0;
	if (result == -EPERM || result == -EACCES) {
		a->result->refused += top;
		return 0;
	}
	if (!result && top)
		result = measure_entry(a->l, item, &bytes);
	if (!result && !a->o->dry_run)
		result = version ? evict(a, at) : change(a, at, item->version, expires_ns);
	if (!result && top)
		count(a, item, expires_ns, bytes, version);
	return result;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int apply_row(struct applying *a, const struct store_row *store_row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row row;
	struct place at;
	struct item item;
	int result;

	if (store_row->damaged || record_decode_trash(store_codec(a->l->store), &store_row->value, &row))
		return 0;
	result = standing_row_item(a->l, &row.key, true, &at, &value, &item);
	if (!result)
		result = a->o->directory == KEY_ID_ROOT ?
				 1 :
				 tree_is_below(a->l->store, at.directory, a->o->directory, NULL);
	if (result == 1)
		result = apply_item(a, &at, &item);
	/* Damaged ones are check's to deal with; others went meanwhile. */
	return result == STORE_ABSENT || result == -EBADMSG || result == -ENOENT ? 0 : result;
}

static int apply_all(struct applying *a, uint64_t end)
{
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true;
	int result = 0;

	key_range_trash(0, end, &query.range);
	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(a->l->store, &query, &page);
		if (result)
			break;
		for (size_t i = 0; i < page.count && !result; i++) {
			result = apply_row(a, &page.rows[i]);
			a->looked_at++;
			if (!result && a->o->progress && a->o->progress(a->o->data, a->looked_at))
				result = -EINTR;
		}
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}

int lifecycle_apply(struct lifecycle *l, const struct apply_options *options,
		    struct apply_result *ret_result)
{
	struct applying a = { .l = l, .o = options, .result = ret_result, .now_ns = lifecycle_now_ns(l) };
	struct rules rules;
	uint64_t end;
	bool suspect;
	int result;

	*ret_result = (struct apply_result){ 0 };
	/* While the clock is not believed, nobody can say what is due. */
	watch_steady_ns(l, &suspect);
	if (suspect)
		return -EAGAIN;
	result = rules_load(l, options->directory, &rules);
	if (!result)
		result = rules.live ? store_new_seq(l->store, &end) : -EROFS;
	if (!result)
		result = apply_all(&a, end);
	if (!result && !options->dry_run) {
		lifecycle_lock(l);
		cap_expect(l, &rules);
		lifecycle_unlock(l);
	}
	return result;
}
