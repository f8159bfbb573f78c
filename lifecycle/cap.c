/*
 * cap.c - trash_max and trash_max_entries: when the trash below a directory is
 * over its cap, its oldest entries go, whole.
 *
 * Nothing keeps exact sums by directory: every deletion would have to write all
 * the way up. Instead each cap that was met lately has a bound in memory, which
 * deletions raise and nothing lowers. Only when the bound passes the cap are the
 * entries below the directory measured; a pass that evicts goes down to nine
 * tenths, so that this is rare.
 *
 * A cap is no value that what is set further down replaces: it holds for all
 * below its directory, so of nested ones each holds.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

/* ---- bounds ------------------------------------------------------------------------ */

static struct cap *cap_slot(struct lifecycle *l, uint64_t directory, enum cap_unit unit)
{
	struct cap *oldest = &l->caps[0];

	for (size_t i = 0; i < CAPS; i++) {
		if (l->caps[i].directory == directory && l->caps[i].unit == unit)
			return &l->caps[i];
		if (l->caps[i].used < oldest->used)
			oldest = &l->caps[i];
	}
	*oldest = (struct cap){ .directory = directory, .unit = unit };
	return oldest;
}

static bool cap_is_over(const struct cap *cap)
{
	uint64_t most = util_max((uint64_t)cap->limit, cap->stays);

	return cap->directory && cap->limit > 0 && (!cap->known || cap->amount > most);
}

static int64_t cap_limit(const struct policy *policy, enum cap_unit unit)
{
	return unit == CAP_BYTES ? policy->trash_max : policy->trash_max_entries;
}

/* The cap of a unit that is in force where the rules are, or NULL. Lock held. */
static struct cap *cap_in_force(struct lifecycle *l, const struct rules *rules, enum cap_unit unit)
{
	int64_t limit = cap_limit(&rules->policy, unit);
	struct cap *cap;

	if (!limit || !rules->capped[unit])
		return NULL;
	cap = cap_slot(l, rules->capped[unit], unit);
	cap->used = ++l->cap_uses;
	cap->limit = limit;
	return cap;
}

static void note_one(struct lifecycle *l, const struct rules *rules, enum cap_unit unit,
		     uint64_t amount, bool unknown)
{
	struct cap *cap = cap_in_force(l, rules, unit);

	if (!cap)
		return;
	cap->amount += amount;
	if (unknown)
		cap->known = false;
	if (cap_is_over(cap))
		sweeper_expect(l, lifecycle_now_ns(l));
}

/* On to the rules above the directory that sets the cap. False: there are none. */
static bool rules_above(struct lifecycle *l, enum cap_unit unit, struct rules *rules)
{
	uint64_t directory = rules->capped[unit];
	struct guard guard;

	return directory && directory != KEY_ID_ROOT && !record_get_guard(l->store, directory, &guard) &&
	       !rules_load(l, guard.at.directory, rules);
}

#define NESTED 8 /* caps around an entry that are looked after */

void cap_note(struct lifecycle *l, const struct rules *rules, const struct item *item, bool whole)
{
	uint64_t amounts[CAP_UNITS] = {
		[CAP_BYTES] = S_ISREG(item->mode) ? item->size : 0, [CAP_ENTRIES] = 1
	};

	for (unsigned i = 0; i < CAP_UNITS; i++) {
		enum cap_unit unit = (enum cap_unit)i;
		struct rules here = *rules;
		unsigned nested = 0;

		/* A cap holds for all below its directory, whatever is set further down. */
		do
			note_one(l, &here, unit, amounts[unit],
				 whole && S_ISDIR(item->mode) && unit == CAP_BYTES);
		while (++nested < NESTED && rules_above(l, unit, &here));
	}
}

void cap_note_policy_changed(struct lifecycle *l)
{
	for (size_t i = 0; i < CAPS; i++)
		l->caps[i].stays = 0;
}

void cap_expect(struct lifecycle *l, const struct rules *rules)
{
	for (unsigned unit = 0; unit < CAP_UNITS; unit++) {
		struct cap *cap = cap_in_force(l, rules, (enum cap_unit)unit);

		if (cap && cap->directory == rules->directory)
			cap->known = false;
	}
	sweeper_expect(l, lifecycle_now_ns(l));
}

static bool cap_at(struct lifecycle *l, size_t slot, struct cap *ret_cap)
{
	bool over;

	lifecycle_lock(l);
	over = cap_is_over(&l->caps[slot]);
	*ret_cap = l->caps[slot];
	lifecycle_unlock(l);
	return over;
}

/*
 * What was noted while it was measured is added once more: the bound may be too
 * high, never too low.
 */
static void cap_settle(struct lifecycle *l, const struct cap *before, uint64_t amount, bool finished)
{
	lifecycle_lock(l);
	for (size_t i = 0; i < CAPS; i++) {
		struct cap *cap = &l->caps[i];

		if (cap->directory != before->directory || cap->unit != before->unit)
			continue;
		cap->amount = amount + (cap->amount - before->amount);
		cap->known = true;
		cap->stays = finished ? amount : 0;
	}
	lifecycle_unlock(l);
}

static void cap_drop(struct lifecycle *l, const struct cap *dropped)
{
	lifecycle_lock(l);
	for (size_t i = 0; i < CAPS; i++)
		if (l->caps[i].directory == dropped->directory && l->caps[i].unit == dropped->unit)
			l->caps[i] = (struct cap){ 0 };
	lifecycle_unlock(l);
}

/* ---- the entries below a directory ---------------------------------------------------- */

struct capped {
	struct lifecycle *l;
	uint64_t directory;
	enum cap_unit unit;
	bool purged; /* those that are purged, instead of all others */
	uint64_t amount; /* of all that is counted */
	uint64_t target; /* evict while there is more; UINT64_MAX: only measure */
	uint64_t *budget;
	struct destroyed *total;
};

/* Whether the row is a top entry below the directory: 1, 0, negative errno. */
static int is_counted(struct capped *c, const struct place *at, const struct item *item)
{
	struct standing st;
	int result = standing_load(c->l, at, item, &st);

	/* What is purged is on its way out, what is pinned on its way back. */
	if (result || !place_equal(&st.top, at) || st.pinned || item->deletion.flags & DELETION_DOOMED ||
	    !(item->deletion.flags & DELETION_PURGED) == c->purged)
		return result == -ENOENT ? 0 : result;
	if (c->directory == KEY_ID_ROOT)
		return 1;
	result = tree_is_below(c->l->store, at->directory, c->directory, NULL);
	return result == -ENOENT ? 0 : result;
}

/* Names of one file in several entries weigh once: with the first of them. */
static int weigh(struct capped *c, const struct item *item, uint64_t *ret_amount)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result;

	if (c->unit == CAP_ENTRIES) {
		*ret_amount = 1;
		return 0;
	}
	if (!(item->flags & ITEM_REFERENCE))
		return measure_entry(c->l, item, ret_amount);
	result = record_get_link(c->l->store, item->id, true, &value, &link);
	*ret_amount = !result && !link.links_live ? link.size / link.links_total : 0;
	return util_min(result, 0);
}

static int evict(struct capped *c, const struct place *at, const struct deletion *d, uint64_t amount)
{
	enum item_counter cause = c->purged ? COUNTER_DESTROYED_USER : COUNTER_DESTROYED_EVICTED;
	int result = destroy_entry(c->l, at, d, cause, c->budget, c->total);

	if (!result)
		c->amount -= util_min(amount, c->amount);
	/* What is on hold, open or damaged stays, and the next one goes. */
	return result == -EPERM || result == -EBUSY || result == -EBADMSG || result == -ENOENT ? 0 : result;
}

static int capped_row(struct capped *c, const struct store_row *store_row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row row;
	struct place at;
	struct item item;
	uint64_t amount;
	int result;

	if (store_row->damaged || record_decode_trash(store_codec(c->l->store), &store_row->value, &row))
		return 0;
	result = standing_row_item(c->l, &row.key, true, &at, &value, &item);
	if (result)
		return result == STORE_ABSENT || result == -EBADMSG ? 0 : result;
	result = is_counted(c, &at, &item);
	if (result == 1)
		result = weigh(c, &item, &amount);
	else if (!result)
		return 0;
	/* What cannot be read weighs nothing. */
	if (result)
		return result == -EBADMSG ? 0 : result;
	if (c->target == UINT64_MAX) {
		c->amount += amount;
		return 0;
	}
	return evict(c, &at, &item.deletion, amount);
}

static bool capped_done(const struct capped *c)
{
	return c->target != UINT64_MAX && (c->amount <= c->target || !*c->budget);
}

/* Oldest first. */
static int capped_walk(struct capped *c)
{
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true;
	int result = 0;

	key_range_trash(0, INT64_MAX, &query.range);
	while (more && !result && !capped_done(c)) {
		struct store_page page = { 0 };

		result = store_query(c->l->store, &query, &page);
		if (result)
			return result;
		for (size_t i = 0; i < page.count && !result && !capped_done(c); i++)
			result = capped_row(c, &page.rows[i]);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return util_min(result, 0);
}

static int cap_enforce_one(struct lifecycle *l, const struct cap *cap, uint64_t *budget,
			   struct destroyed *total)
{
	struct capped c = { .l = l,
			    .directory = cap->directory,
			    .unit = cap->unit,
			    .target = UINT64_MAX,
			    .budget = budget,
			    .total = total };
	struct rules rules;
	uint64_t limit;
	int result = rules_load(l, cap->directory, &rules);

	/* The policy is no longer set there, or the directory is gone. */
	if (result || rules.capped[cap->unit] != cap->directory || !cap_limit(&rules.policy, cap->unit)) {
		cap_drop(l, cap);
		return result == -ENOENT ? 0 : result;
	}
	limit = (uint64_t)cap_limit(&rules.policy, cap->unit);
	result = capped_walk(&c);
	if (!result && c.amount > limit) {
		c.target = limit - limit / 10;
		result = capped_walk(&c);
	}
	if (!result)
		cap_settle(l, cap, c.amount, *budget);
	return result;
}

/* A cap that is over, and how many directories are above its own. */
struct over {
	struct cap cap;
	unsigned depth;
};

static unsigned depth_of(struct lifecycle *l, uint64_t directory)
{
	unsigned depth = 0;
	struct guard guard;

	while (directory != KEY_ID_ROOT && depth < TREE_DEPTH_MAX &&
	       !record_get_guard(l->store, directory, &guard)) {
		directory = guard.at.directory;
		depth++;
	}
	return depth;
}

static int deepest_first(const void *a, const void *b)
{
	const struct over *one = a, *other = b;

	return one->depth < other->depth ? 1 : one->depth > other->depth ? -1 : 0;
}

int cap_enforce(struct lifecycle *l, uint64_t *budget, struct destroyed *total)
{
	struct over over[CAPS];
	size_t count = 0;
	int result = 0;

	/* The narrowest first: what goes for it may be enough for those around it. */
	for (size_t i = 0; i < CAPS; i++)
		if (cap_at(l, i, &over[count].cap)) {
			over[count].depth = depth_of(l, over[count].cap.directory);
			count++;
		}
	qsort(over, count, sizeof(*over), deepest_first);
	/*
	 * Each is looked at once: one that stays over (on hold, open) waits for the next deletion.
	 */
	for (size_t i = 0; i < count && *budget && !result; i++)
		result = cap_enforce_one(l, &over[i].cap, budget, total);
	return result;
}

int cap_evict_oldest(struct lifecycle *l, uint64_t bytes, bool purged, uint64_t *budget,
		     struct destroyed *total)
{
	struct capped c = { .l = l,
			    .directory = KEY_ID_ROOT,
			    .unit = CAP_BYTES,
			    .purged = purged,
			    .amount = bytes,
			    .budget = budget,
			    .total = total };

	return capped_walk(&c);
}
