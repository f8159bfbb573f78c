/*
 * room.c - when the disk below is full, or nearly: what of the trash goes then.
 *
 * Two rules. What was purged is on its way out and waits only so that the purge
 * can be undone: when a write finds no space, it goes at once. And where the
 * root sets low_space, the oldest entries go as long as less than that is free,
 * looked at by the sweeper each second and by a write that finds no space.
 * Without that rule nothing unexpired is ever destroyed for want of space.
 *
 * What is destroyed gives its space back in the background, so the store is
 * brought up to date before anything is measured: what is on its way back must
 * not be made up for twice.
 *
 * One thread makes room at a time, by a flag: it waits for checkpoints, so it
 * holds no lock meanwhile. A write that finds it so waits for what it makes; the
 * sweeper leaves it alone and comes back.
 */
#include "lifecycle/internal.h"

#define LOOK_NS CLOCK_SECOND_NS
#define PURGED_ENOUGH (UINT64_C(64) << 20) /* bytes that go at once, of what was purged */
#define WRITE_BUDGET 10000 /* items that one write waits for */

void room_init(struct room *r)
{
	pthread_mutex_init(&r->mutex, NULL);
	pthread_cond_init(&r->ended, NULL);
}

void room_release(struct room *r)
{
	pthread_cond_destroy(&r->ended);
	pthread_mutex_destroy(&r->mutex);
}

/* False: somebody else is at it. */
static bool try_begin(struct room *r)
{
	bool begun;

	pthread_mutex_lock(&r->mutex);
	begun = !r->busy;
	r->busy = true;
	pthread_mutex_unlock(&r->mutex);
	return begun;
}

/* False: somebody else made room while this one waited. */
static bool begin(struct room *r)
{
	uint64_t before;
	bool begun;

	pthread_mutex_lock(&r->mutex);
	before = r->made;
	while (r->busy && r->made == before)
		pthread_cond_wait(&r->ended, &r->mutex);
	begun = r->made == before;
	r->busy = r->busy || begun;
	pthread_mutex_unlock(&r->mutex);
	return begun;
}

static void end(struct room *r, bool made)
{
	pthread_mutex_lock(&r->mutex);
	r->busy = false;
	r->made += made;
	pthread_cond_broadcast(&r->ended);
	pthread_mutex_unlock(&r->mutex);
}

/* How many bytes are missing to what the rule wants, and an eighth, so that this is rare. */
static int missing(struct lifecycle *l, uint64_t limit, uint64_t *ret_missing)
{
	struct store_space space;
	int result = store_space(l->store, &space);

	if (!result)
		*ret_missing = space.free_bytes < limit ? limit - space.free_bytes + limit / 8 : 0;
	return result;
}

static int destroy_purged(struct lifecycle *l, uint64_t bytes, uint64_t *budget, struct destroyed *total)
{
	uint64_t before = total->items;
	bool none;
	int result;

	lifecycle_lock(l);
	none = l->room.no_purged;
	/* A purge from now on says that there is one. */
	l->room.no_purged = true;
	lifecycle_unlock(l);
	if (none)
		return 0;
	result = evict_oldest(l, bytes, true, budget, total);
	if (result || total->items != before) {
		lifecycle_lock(l);
		l->room.no_purged = false;
		lifecycle_unlock(l);
	}
	return result;
}

/* Destroys about `bytes`: first what was purged, then, under the rule, the oldest. */
static int make(struct lifecycle *l, uint64_t limit, uint64_t bytes, uint64_t *budget,
		struct destroyed *total)
{
	uint64_t before = total->bytes;
	int result = destroy_purged(l, bytes, budget, total);

	if (!result && limit && total->bytes - before < bytes && *budget)
		result = evict_oldest(l, bytes - (total->bytes - before), false, budget, total);
	return result ? result : store_checkpoint(l->store);
}

static int low_space(struct lifecycle *l, uint64_t *ret_limit)
{
	struct policy policy;
	int result = lifecycle_policy(l, KEY_ID_ROOT, &policy);

	if (!result)
		*ret_limit = (uint64_t)policy.low_space;
	return result;
}

int room_keep(struct lifecycle *l, uint64_t *budget, struct destroyed *total, int64_t *ret_again_ns)
{
	uint64_t limit, bytes, before = total->items;
	int result = low_space(l, &limit);

	*ret_again_ns = ITEM_FOREVER;
	if (result || !limit)
		return result;
	*ret_again_ns = LOOK_NS;
	if (!try_begin(&l->room))
		return 0;
	result = missing(l, limit, &bytes);
	if (!result && bytes)
		result = store_checkpoint(l->store);
	if (!result && bytes)
		result = missing(l, limit, &bytes);
	if (!result && bytes)
		result = make(l, limit, bytes, budget, total);
	end(&l->room, total->items != before);
	return result;
}

/* Whether there was nothing to be had a moment ago, and nothing was purged since. */
static bool was_in_vain(struct lifecycle *l, int64_t now_ns)
{
	bool none;

	if (!l->room.in_vain_boot_ns || now_ns - l->room.in_vain_boot_ns >= LOOK_NS)
		return false;
	lifecycle_lock(l);
	none = l->room.no_purged;
	lifecycle_unlock(l);
	return none;
}

/* By whoever has begun. True: something went. */
static bool make_for_write(struct lifecycle *l)
{
	int64_t now_ns = clock_boot_ns(store_clock(l->store));
	struct destroyed total = { 0 };
	uint64_t limit, bytes, budget = WRITE_BUDGET;

	if (was_in_vain(l, now_ns))
		return false;
	if (low_space(l, &limit) || missing(l, limit, &bytes))
		return false;
	/* No space, whatever is free: then less than the rule wants is meant. */
	if (!bytes)
		bytes = limit ? limit / 8 + 1 : PURGED_ENOUGH;
	make(l, limit, bytes, &budget, &total);
	l->room.in_vain_boot_ns = total.items ? 0 : now_ns;
	return total.items;
}

bool lifecycle_make_room(struct lifecycle *l)
{
	bool suspect, made;

	watch_steady_ns(l, &suspect);
	if (suspect)
		return false;
	if (!begin(&l->room))
		return true;
	made = make_for_write(l);
	end(&l->room, made);
	return made;
}
