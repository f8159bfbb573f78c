/*
 * within.c - what the deleted directories around a place decide for all in it.
 *
 * It comes from the chain of directories up to the root, and is computed
 * downwards, each directory from its parent's, and kept: a walk through a deep
 * tree in the trash asks at every step. What is kept is only what follows from
 * places and deletions, and holds as long as store_moves stands still; whether
 * it hides anything by now is asked of the clock each time.
 *
 * Two things are not counted or kept. A directory that is removed from the trash
 * because it shows nothing decides nothing any more: what is in it was hidden
 * before, and an `rm -r` in the trash must not pay for the whole path at each step
 * (purge.c). And while a directory is being restored (pinned), time alone may show
 * what is in it or hide it again.
 */
#include "lifecycle/internal.h"

#define WITHIN_BITS 12

struct within_slot {
	uint64_t directory; /* 0: empty */
	uint64_t moves; /* of the store, before this was read */
	struct within within;
};

/* A directory met on the way up. */
struct step_up {
	uint64_t directory;
	bool deleted;
	struct deletion deletion;
};

struct way_up {
	struct step_up *steps;
	size_t count, capacity;
};

int within_init(struct within_cache *cache)
{
	pthread_mutex_init(&cache->mutex, NULL);
	cache->slots = calloc((size_t)1 << WITHIN_BITS, sizeof(*cache->slots));
	return cache->slots ? 0 : -ENOMEM;
}

void within_release(struct within_cache *cache)
{
	pthread_mutex_destroy(&cache->mutex);
	free(cache->slots);
}

static struct within_slot *slot_of(struct within_cache *cache, uint64_t directory)
{
	return &cache->slots[directory * UINT64_C(0x9e3779b97f4a7c15) >> (64 - WITHIN_BITS)];
}

static bool is_kept(struct within_cache *cache, uint64_t directory, uint64_t moves,
		    struct within *ret_within)
{
	const struct within_slot *slot = slot_of(cache, directory);
	bool found;

	pthread_mutex_lock(&cache->mutex);
	found = slot->directory == directory && slot->moves == moves;
	if (found)
		*ret_within = slot->within;
	pthread_mutex_unlock(&cache->mutex);
	return found;
}

/* What was read before a change may be old: then it is kept for nobody. */
static void keep(struct lifecycle *l, uint64_t directory, const struct within *within, uint64_t moves)
{
	struct within_cache *cache = &l->within;

	pthread_mutex_lock(&cache->mutex);
	*slot_of(cache, directory) = (struct within_slot){ directory, moves, *within };
	pthread_mutex_unlock(&cache->mutex);
}

struct within within_enter(const struct within *outer, uint64_t id, const struct deletion *d)
{
	bool joins = outer->inside && d->batch && d->batch == outer->batch;
	bool pinned = d->flags & DELETION_PINNED;
	int64_t kept_until_ns = pinned ? util_max(d->expires_ns, d->destroy_ns) : d->expires_ns;
	struct within w = *outer;

	w.inside = true;
	w.hidden |= (d->flags & (DELETION_DOOMED | DELETION_PURGED)) != 0;
	w.pinned |= pinned;
	if (joins)
		return w;
	w.batch = d->batch;
	w.top = id;
	w.expires_ns = d->expires_ns;
	w.shown_until_ns = util_min(outer->shown_until_ns, d->expires_ns);
	w.kept_until_ns = util_min(outer->kept_until_ns, kept_until_ns);
	return w;
}

bool within_shows(const struct within *w, int64_t now_ns)
{
	return !w->inside || (!w->hidden && w->shown_until_ns > now_ns);
}

static int way_push(struct way_up *way, const struct step_up *step)
{
	size_t capacity = util_max(2 * way->capacity, (size_t)16);
	struct step_up *grown;

	if (way->count == way->capacity) {
		grown = reallocarray(way->steps, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		way->steps = grown;
		way->capacity = capacity;
	}
	way->steps[way->count++] = *step;
	return 0;
}

/* -ENOENT: a directory on the way is gone. */
static int step_load(struct lifecycle *l, uint64_t directory, struct step_up *step, uint64_t *ret_parent)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	struct guard guard;
	int result = record_get_guard(l->store, directory, &guard);

	*step = (struct step_up){ .directory = directory };
	if (!result && guard.at.state == KEY_DEL) {
		result = tree_load(l->store, directory, &d);
		guard = d.guard;
		step->deletion = d.own.deletion;
	}
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	step->deleted = guard.at.state == KEY_DEL;
	*ret_parent = guard.at.directory;
	return 0;
}

/* Upwards until something is known, or to the root. Depth is bounded by memory only, hence no recursion. */
static int way_load(struct lifecycle *l, uint64_t directory, uint64_t moves, struct way_up *way,
		    struct within *ret_above)
{
	struct step_up step;
	int result = 0;

	*ret_above = (struct within){ .expires_ns = ITEM_FOREVER,
				      .shown_until_ns = ITEM_FOREVER,
				      .kept_until_ns = ITEM_FOREVER };
	while (!result && directory != KEY_ID_NONE && !is_kept(&l->within, directory, moves, ret_above)) {
		result = step_load(l, directory, &step, &directory);
		if (!result)
			result = way_push(way, &step);
	}
	return result;
}

int within_load(struct lifecycle *l, uint64_t directory, struct within *ret_within)
{
	uint64_t moves = store_moves(l->store);
	struct way_up way = { 0 };
	struct within w;
	int result;

	result = way_load(l, directory, moves, &way, &w);
	while (!result && way.count) {
		const struct step_up *step = &way.steps[--way.count];

		if (step->deleted)
			w = within_enter(&w, step->directory, &step->deletion);
		if (!w.pinned)
			keep(l, step->directory, &w, moves);
	}
	free(way.steps);
	if (!result)
		*ret_within = w;
	return result;
}

int lifecycle_in_trash(struct lifecycle *l, uint64_t directory, bool *ret_trash)
{
	struct within w;
	int result = within_load(l, directory, &w);

	if (!result)
		*ret_trash = w.inside;
	return result;
}
