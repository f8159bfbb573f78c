/*
 * evict.c - the oldest entries go: where the trash is over a cap, or where space
 * is needed.
 *
 * All caps that may be over are measured in one walk through the trash; then for
 * each that is, the narrowest first, since what goes for it may be enough for
 * those around it, its oldest entries go down to nine tenths.
 *
 * What root set further down by trusted.ddbfs.trash_max is a floor: for a cap
 * around it nothing goes from there that would leave less than that, and where
 * root set 0, which is no limit, nothing at all.
 */
#include "lifecycle/internal.h"

/* ---- entries, oldest first ----------------------------------------------------------- */

struct entry_walk {
	struct lifecycle *l;
	bool purged; /* those that are purged, instead of all others */
	/* 0, 1 (stop), negative errno; -EBADMSG: the entry is passed over. */
	int (*visit)(void *data, const struct place *at, const struct item *item);
	void *data;
};

/* Whether the row is a top entry that counts: 1, 0, negative errno. */
static int is_counted(const struct entry_walk *w, const struct place *at, const struct item *item)
{
	struct standing st;
	int result = standing_load(w->l, at, item, &st);

	if (result)
		return result == -ENOENT ? 0 : result;
	/* What is purged is on its way out, what is pinned on its way back. */
	return place_equal(&st.top, at) && !st.pinned && !(item->deletion.flags & DELETION_DOOMED) &&
	       !(item->deletion.flags & DELETION_PURGED) != w->purged;
}

static int walk_row(const struct entry_walk *w, const struct store_row *store_row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct trash_row row;
	struct place at;
	struct item item;
	int result;

	if (store_row->damaged || record_decode_trash(store_codec(w->l->store), &store_row->value, &row))
		return 0;
	result = standing_row_item(w->l, &row.key, true, &at, &value, &item);
	if (!result)
		result = is_counted(w, &at, &item);
	else if (result == STORE_ABSENT)
		result = 0;
	if (result == 1)
		result = w->visit(w->data, &at, &item);
	/* What cannot be read weighs nothing. */
	return result == -EBADMSG ? 0 : result;
}

static int walk_entries(const struct entry_walk *w)
{
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true;
	int result = 0;

	key_range_trash(0, INT64_MAX, &query.range);
	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(w->l->store, &query, &page);
		if (result)
			return result;
		for (size_t i = 0; i < page.count && !result; i++)
			result = walk_row(w, &page.rows[i]);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return util_min(result, 0);
}

/* Names of one file in several entries weigh once: with the first of them. */
static int weigh(struct lifecycle *l, const struct item *item, uint64_t *ret_bytes)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result;

	if (!(item->flags & ITEM_REFERENCE))
		return measure_entry(l, item, ret_bytes);
	result = record_get_link(l->store, item->id, true, &value, &link);
	*ret_bytes = !result && !link.links_live ? link.size / link.links_total : 0;
	return util_min(result, 0);
}

/* 0: it went; 1: it is on hold, open or damaged, and stays. */
static int destroy_one(struct lifecycle *l, const struct place *at, const struct item *item,
		       enum item_counter cause, uint64_t *budget, struct destroyed *total)
{
	int result = destroy_entry(l, at, &item->deletion, cause, budget, total);

	/* Its end was begun, and the budget is used up. */
	if (result == 1)
		return 1;
	return result == -EPERM || result == -EBUSY || result == -EBADMSG || result == -ENOENT ? 1 : result;
}

/* ---- for space --------------------------------------------------------------------------- */

struct making_room {
	struct lifecycle *l;
	enum item_counter cause;
	uint64_t bytes; /* still to go */
	uint64_t *budget;
	struct destroyed *total;
};

static int room_visit(void *data, const struct place *at, const struct item *item)
{
	struct making_room *m = data;
	uint64_t bytes;
	int result = weigh(m->l, item, &bytes);

	if (!result)
		result = destroy_one(m->l, at, item, m->cause, m->budget, m->total);
	if (!result)
		m->bytes -= util_min(bytes, m->bytes);
	return result < 0 ? result : !m->bytes || !*m->budget;
}

int evict_oldest(struct lifecycle *l, uint64_t bytes, bool purged, uint64_t *budget,
		 struct destroyed *total)
{
	struct making_room m = { .l = l,
				 .cause = purged ? COUNTER_DESTROYED_USER : COUNTER_DESTROYED_EVICTED,
				 .bytes = bytes,
				 .budget = budget,
				 .total = total };
	struct entry_walk walk = { .l = l, .purged = purged, .visit = room_visit, .data = &m };

	return bytes && *budget ? walk_entries(&walk) : 0;
}

/* ---- sums by directory ------------------------------------------------------------------------ */

/* What the trash below a directory comes to: of a cap that may be over, or a floor below one. */
struct sum {
	uint64_t directory;
	enum cap_unit unit;
	bool capped;
	uint64_t amount;
};

/* A directory around an entry that sets trash_max, or trash_max_entries. */
struct setter {
	struct sum *sum; /* NULL: it is in no sum */
	uint64_t directory;
	bool floor; /* root does, and means at least `least`; 0: all of it */
	uint64_t least;
};

struct setters {
	struct setter *items; /* nearest first */
	size_t count, capacity;
};

struct enforcing {
	struct lifecycle *l;
	struct sum *sums;
	size_t count, capacity;
	struct setters around[CAP_UNITS]; /* the entry that is looked at */
	uint64_t weight[CAP_UNITS]; /* of it */
	/* While one cap is enforced: */
	const struct sum *over;
	uint64_t target;
	uint64_t *budget;
	struct destroyed *total;
};

static size_t sum_position(const struct enforcing *e, uint64_t directory, enum cap_unit unit)
{
	size_t from = 0, to = e->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct sum *sum = &e->sums[middle];

		if (sum->directory < directory || (sum->directory == directory && sum->unit < unit))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct sum *sum_find(const struct enforcing *e, uint64_t directory, enum cap_unit unit)
{
	size_t at = sum_position(e, directory, unit);

	return at < e->count && e->sums[at].directory == directory && e->sums[at].unit == unit ?
		       &e->sums[at] :
		       NULL;
}

static int sum_add(struct enforcing *e, uint64_t directory, enum cap_unit unit, bool capped)
{
	size_t at = sum_position(e, directory, unit);

	if (e->count == e->capacity) {
		size_t capacity = util_max(2 * e->capacity, (size_t)16);
		struct sum *grown = reallocarray(e->sums, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		e->sums = grown;
		e->capacity = capacity;
	}
	memmove(e->sums + at + 1, e->sums + at, (e->count - at) * sizeof(*e->sums));
	e->sums[at] = (struct sum){ .directory = directory, .unit = unit, .capped = capped };
	e->count++;
	return 0;
}

/* ---- where an entry counts ---------------------------------------------------------------- */

static int setters_push(struct setters *all, const struct rules *rules, enum cap_unit unit)
{
	enum policy_value which = unit == CAP_BYTES ? POLICY_TRASH_MAX : POLICY_TRASH_MAX_ENTRIES;
	uint64_t directory = rules->capped[unit];

	if (all->count == all->capacity) {
		size_t capacity = util_max(2 * all->capacity, (size_t)8);
		struct setter *grown = reallocarray(all->items, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		all->items = grown;
		all->capacity = capacity;
	}
	all->items[all->count++] = (struct setter){
		.directory = directory,
		.floor = rules->trusted.set & 1u << which && rules->trusted.setter[which] == directory,
		.least = (uint64_t)rules->trusted.value[which],
	};
	return 0;
}

static int setters_load(struct enforcing *e, uint64_t directory, enum cap_unit unit)
{
	struct setters *all = &e->around[unit];
	struct rules rules;
	int result = rules_load(e->l, directory, &rules);
	int more = !result && rules.capped[unit];

	all->count = 0;
	while (!result && more == 1) {
		result = setters_push(all, &rules, unit);
		if (!result)
			more = cap_rules_above(e->l, unit, &rules);
	}
	return result ? result : util_min(more, 0);
}

/* Finds the sums. False: no cap that is looked at is around it. */
static bool setters_resolve(struct enforcing *e, enum cap_unit unit)
{
	struct setters *all = &e->around[unit];
	bool any = false;

	for (size_t i = 0; i < all->count; i++) {
		all->items[i].sum = sum_find(e, all->items[i].directory, unit);
		any = any || (all->items[i].sum && all->items[i].sum->capped);
	}
	return any;
}

/* The floors around an entry are summed up from now on. */
static int add_floors(struct enforcing *e, enum cap_unit unit)
{
	struct setters *all = &e->around[unit];
	int result = 0;

	for (size_t i = 0; i < all->count && !result; i++)
		if (all->items[i].floor && !all->items[i].sum)
			result = sum_add(e, all->items[i].directory, unit, false);
	if (!result)
		setters_resolve(e, unit);
	return result;
}

/* What is around an entry, and what it weighs there. 1, 0 (nothing that is looked at), negative errno. */
static int place_entry(struct enforcing *e, const struct place *at, const struct item *item)
{
	bool any = false;

	for (unsigned i = 0; i < CAP_UNITS; i++) {
		enum cap_unit unit = (enum cap_unit)i;
		int result = setters_load(e, at->directory, unit);

		if (result)
			return result == -ENOENT ? 0 : result;
		e->weight[unit] = unit == CAP_ENTRIES;
		if (!setters_resolve(e, unit)) {
			e->around[unit].count = 0;
			continue;
		}
		any = true;
		result = add_floors(e, unit);
		if (!result && unit == CAP_BYTES)
			result = weigh(e->l, item, &e->weight[unit]);
		if (result)
			return result;
	}
	return any;
}

static int measure_visit(void *data, const struct place *at, const struct item *item)
{
	struct enforcing *e = data;
	int result = place_entry(e, at, item);

	for (unsigned unit = 0; unit < CAP_UNITS && result == 1; unit++)
		for (size_t i = 0; i < e->around[unit].count; i++)
			if (e->around[unit].items[i].sum)
				e->around[unit].items[i].sum->amount += e->weight[unit];
	return util_min(result, 0);
}

/* ---- one cap ----------------------------------------------------------------------------- */

/* Whether an entry may go for the cap: it lies below its directory, and no floor in between is met. */
static bool may_go(const struct enforcing *e)
{
	const struct setters *all = &e->around[e->over->unit];
	uint64_t weight = e->weight[e->over->unit];

	for (size_t i = 0; i < all->count; i++) {
		const struct setter *s = &all->items[i];

		if (s->sum == e->over)
			return true;
		if (s->floor && (!s->least || s->sum->amount < s->least + weight))
			return false;
	}
	return false;
}

static void subtract(struct enforcing *e)
{
	for (unsigned unit = 0; unit < CAP_UNITS; unit++)
		for (size_t i = 0; i < e->around[unit].count; i++) {
			struct sum *sum = e->around[unit].items[i].sum;

			if (sum)
				sum->amount -= util_min(e->weight[unit], sum->amount);
		}
}

static int evict_visit(void *data, const struct place *at, const struct item *item)
{
	struct enforcing *e = data;
	uint64_t directory = e->over->directory;
	enum cap_unit unit = e->over->unit;
	int result = place_entry(e, at, item);

	/* A floor that was first met now may have moved the sums. */
	e->over = sum_find(e, directory, unit);
	if (result != 1 || !may_go(e))
		return util_min(result, 0);
	result = destroy_one(e->l, at, item, COUNTER_DESTROYED_EVICTED, e->budget, e->total);
	if (!result)
		subtract(e);
	return result < 0 ? result : e->over->amount <= e->target || !*e->budget;
}

static int evict_for(struct enforcing *e, const struct cap *cap)
{
	struct entry_walk walk = { .l = e->l, .visit = evict_visit, .data = e };

	e->over = sum_find(e, cap->directory, cap->unit);
	e->target = (uint64_t)cap->limit - (uint64_t)cap->limit / 10;
	return e->over->amount > (uint64_t)cap->limit && *e->budget ? walk_entries(&walk) : 0;
}

/* ---- all caps ------------------------------------------------------------------------------ */

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

/* 1: it is still set, and is to be measured; 0: it is dropped, or was; negative errno. */
static int refresh(struct lifecycle *l, struct cap *cap)
{
	struct rules rules;
	int result = rules_load(l, cap->directory, &rules);

	/* The policy is no longer set there, or the directory is gone. */
	if (result || rules.capped[cap->unit] != cap->directory || !cap_limit(&rules.policy, cap->unit)) {
		cap_drop(l, cap);
		return result == -ENOENT ? 0 : result;
	}
	cap->limit = cap_limit(&rules.policy, cap->unit);
	return 1;
}

/* Those of `caps` that are still set, narrowest first, each with a sum. */
static int order(struct enforcing *e, const struct cap *caps, size_t count, struct over *over,
		 size_t *ret_count)
{
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct cap cap = caps[i];
		int result = refresh(e->l, &cap);

		if (result < 0)
			return result;
		if (!result)
			continue;
		result = sum_add(e, cap.directory, cap.unit, true);
		if (result)
			return result;
		over[(*ret_count)++] = (struct over){ cap, depth_of(e->l, cap.directory) };
	}
	qsort(over, *ret_count, sizeof(*over), deepest_first);
	return 0;
}

static int enforce_all(struct enforcing *e, const struct over *over, size_t count)
{
	struct entry_walk walk = { .l = e->l, .visit = measure_visit, .data = e };
	int result = count ? walk_entries(&walk) : 0;

	for (size_t i = 0; i < count && !result; i++)
		result = evict_for(e, &over[i].cap);
	/* Each is looked at once: what stays over (on hold, open, a floor) waits for the next deletion. */
	for (size_t i = 0; i < count && !result; i++)
		cap_settle(e->l, &over[i].cap,
			   sum_find(e, over[i].cap.directory, over[i].cap.unit)->amount, *e->budget);
	return result;
}

int evict_over_caps(struct lifecycle *l, uint64_t *budget, struct destroyed *total)
{
	struct enforcing e = { .l = l, .budget = budget, .total = total };
	_cleanup_free_ struct cap *caps = NULL;
	_cleanup_free_ struct over *over = NULL;
	size_t count;
	int result = *budget ? cap_collect_over(l, &caps, &count) : 0;

	if (result || !caps)
		return result;
	over = reallocarray(NULL, count, sizeof(*over));
	result = over ? order(&e, caps, count, over, &count) : -ENOMEM;
	if (!result)
		result = enforce_all(&e, over, count);
	free(e.sums);
	for (unsigned unit = 0; unit < CAP_UNITS; unit++)
		free(e.around[unit].items);
	return result;
}
