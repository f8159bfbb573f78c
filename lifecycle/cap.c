/*
 * cap.c - trash_max and trash_max_entries: whether the trash below a directory
 * may be over its cap.
 *
 * Nothing keeps exact sums by directory: every deletion would have to write all
 * the way up. Instead each cap that was met has a bound in memory, which
 * deletions raise and nothing lowers. Only when the bound passes the cap are the
 * entries below the directory measured, and the oldest go (evict.c); a pass that
 * evicts goes down to nine tenths, so that this is rare.
 *
 * A cap is no value that what is set further down replaces: it holds for all
 * below its directory, so of nested ones each holds.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define CAPS_MAX \
	16384 /* bounds kept, of 64 bytes: the one needed longest ago is forgotten, and measured anew */

/* ---- bounds ------------------------------------------------------------------------ */

void caps_release(struct caps *caps)
{
	free(caps->items);
	*caps = (struct caps){ 0 };
}

/* Where it is, or belongs: they are sorted by directory and unit. */
static size_t cap_position(const struct caps *caps, uint64_t directory, enum cap_unit unit)
{
	size_t from = 0, to = caps->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct cap *cap = &caps->items[middle];

		if (cap->directory < directory || (cap->directory == directory && cap->unit < unit))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct cap *cap_find(const struct caps *caps, uint64_t directory, enum cap_unit unit)
{
	size_t at = cap_position(caps, directory, unit);
	struct cap *cap = caps->items + at;

	return at < caps->count && cap->directory == directory && cap->unit == unit ? cap : NULL;
}

static void cap_remove(struct caps *caps, struct cap *cap)
{
	size_t behind = caps->count - 1 - (size_t)(cap - caps->items);

	memmove(cap, cap + 1, behind * sizeof(*cap));
	caps->count--;
}

static void cap_forget_oldest(struct caps *caps)
{
	struct cap *oldest = caps->items;

	for (size_t i = 1; i < caps->count; i++)
		if (caps->items[i].used < oldest->used)
			oldest = &caps->items[i];
	cap_remove(caps, oldest);
}

/* NULL: there is no memory for it, and the next deletion asks again. */
static struct cap *cap_insert(struct caps *caps, uint64_t directory, enum cap_unit unit)
{
	size_t at;

	if (caps->count == CAPS_MAX)
		cap_forget_oldest(caps);
	if (caps->count == caps->capacity) {
		size_t capacity = util_max(2 * caps->capacity, (size_t)16);
		struct cap *grown = reallocarray(caps->items, capacity, sizeof(*grown));

		if (!grown)
			return NULL;
		caps->items = grown;
		caps->capacity = capacity;
	}
	at = cap_position(caps, directory, unit);
	memmove(caps->items + at + 1, caps->items + at, (caps->count - at) * sizeof(*caps->items));
	caps->count++;
	caps->items[at] = (struct cap){ .directory = directory, .unit = unit };
	return &caps->items[at];
}

static bool cap_is_over(const struct cap *cap)
{
	uint64_t most = util_max((uint64_t)cap->limit, cap->stays);

	return cap->limit > 0 && (!cap->known || cap->amount > most);
}

int64_t cap_limit(const struct policy *policy, enum cap_unit unit)
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
	cap = cap_find(&l->caps, rules->capped[unit], unit);
	if (!cap)
		cap = cap_insert(&l->caps, rules->capped[unit], unit);
	if (!cap)
		return NULL;
	cap->used = ++l->caps.uses;
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

int cap_rules_above(struct lifecycle *l, enum cap_unit unit, struct rules *rules)
{
	uint64_t directory = rules->capped[unit];
	struct guard guard;
	int result;

	if (!directory || directory == KEY_ID_ROOT)
		return 0;
	result = record_get_guard(l->store, directory, &guard);
	if (!result)
		result = rules_load(l, guard.at.directory, rules);
	if (result)
		return result == STORE_ABSENT || result == -ENOENT ? 0 : result;
	return rules->capped[unit] != 0;
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
		while (++nested < NESTED && cap_rules_above(l, unit, &here) == 1);
	}
}

void cap_note_policy_changed(struct lifecycle *l)
{
	for (size_t i = 0; i < l->caps.count; i++)
		l->caps.items[i].stays = 0;
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

int cap_collect_over(struct lifecycle *l, struct cap **ret_over, size_t *ret_count)
{
	struct cap *over = NULL;
	size_t count = 0, any;

	lifecycle_lock(l);
	for (size_t i = 0; i < l->caps.count; i++)
		count += cap_is_over(&l->caps.items[i]);
	any = count;
	if (count)
		over = reallocarray(NULL, count, sizeof(*over));
	count = 0;
	for (size_t i = 0; i < l->caps.count && over; i++)
		if (cap_is_over(&l->caps.items[i]))
			over[count++] = l->caps.items[i];
	lifecycle_unlock(l);
	if (any && !over)
		return -ENOMEM;
	*ret_over = over;
	*ret_count = count;
	return 0;
}

/*
 * What was noted while it was measured is added once more: the bound may be too
 * high, never too low.
 */
void cap_settle(struct lifecycle *l, const struct cap *before, uint64_t amount, bool finished)
{
	struct cap *cap;

	lifecycle_lock(l);
	cap = cap_find(&l->caps, before->directory, before->unit);
	if (cap) {
		cap->amount = amount + (cap->amount - before->amount);
		cap->known = true;
		cap->stays = finished ? amount : 0;
	}
	lifecycle_unlock(l);
}

void cap_drop(struct lifecycle *l, const struct cap *dropped)
{
	struct cap *cap;

	lifecycle_lock(l);
	cap = cap_find(&l->caps, dropped->directory, dropped->unit);
	if (cap)
		cap_remove(&l->caps, cap);
	lifecycle_unlock(l);
}
