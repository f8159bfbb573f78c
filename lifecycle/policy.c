/*
 * policy.c - what is in force in a directory: policies, and who could reach it.
 *
 * Both come from the chain of directories up to the root, so both are computed
 * downwards, each directory from its parent's result, and kept in one cache.
 * Whatever changes the rights, the place or the policies of a directory bumps
 * the generation, which empties the cache; removing one directory only forgets
 * that one, since nothing live is below it (an `rm -rf` must not pay for the
 * whole path at each step).
 *
 * user.ddbfs.* is the directory owner's, trusted.ddbfs.* is root's: the least
 * protection that owners below cannot undercut.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

static const struct policy policy_default = {
	.retention_ns = 30 * DAY_NS,
	.versions = 16,
	.temporary_ns = 60 * CLOCK_SECOND_NS,
	.grace_ns = 10 * MINUTE_NS,
};

int rules_init(struct rules_cache *cache)
{
	pthread_mutex_init(&cache->mutex, NULL);
	cache->slots = calloc(RULES_CACHE_SIZE, sizeof(*cache->slots));
	return cache->slots ? 0 : -ENOMEM;
}

void rules_release(struct rules_cache *cache)
{
	pthread_mutex_destroy(&cache->mutex);
	free(cache->slots);
}

static struct rules *rules_slot(struct rules_cache *cache, uint64_t directory)
{
	return &cache->slots[directory * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RULES_CACHE_BITS)];
}

static bool rules_cached(struct rules_cache *cache, uint64_t directory, struct rules *ret_rules)
{
	const struct rules *slot = rules_slot(cache, directory);
	bool found;

	pthread_mutex_lock(&cache->mutex);
	found = slot->directory == directory && slot->generation == cache->generation;
	if (found)
		*ret_rules = *slot;
	pthread_mutex_unlock(&cache->mutex);
	return found;
}

/* What was read before a bump may be old: it is not kept. */
static void rules_keep(struct rules_cache *cache, const struct rules *rules, uint64_t generation)
{
	pthread_mutex_lock(&cache->mutex);
	if (cache->generation == generation) {
		*rules_slot(cache, rules->directory) = *rules;
		rules_slot(cache, rules->directory)->generation = generation;
	}
	pthread_mutex_unlock(&cache->mutex);
}

void lifecycle_note_directory_changed(struct lifecycle *l)
{
	pthread_mutex_lock(&l->rules.mutex);
	l->rules.generation++;
	pthread_mutex_unlock(&l->rules.mutex);
}

void lifecycle_note_policy_changed(struct lifecycle *l)
{
	lifecycle_note_directory_changed(l);
	cap_note_policy_changed(l);
	sweeper_expect(l, lifecycle_now_ns(l));
}

uint64_t rules_generation(struct lifecycle *l)
{
	uint64_t generation;

	pthread_mutex_lock(&l->rules.mutex);
	generation = l->rules.generation;
	pthread_mutex_unlock(&l->rules.mutex);
	return generation;
}

void rules_forget(struct lifecycle *l, uint64_t directory)
{
	struct rules *slot = rules_slot(&l->rules, directory);

	pthread_mutex_lock(&l->rules.mutex);
	if (slot->directory == directory)
		slot->directory = 0;
	pthread_mutex_unlock(&l->rules.mutex);
}

/* ---- policies ---------------------------------------------------------------- */

static void values_set(struct policy_values *values, enum policy_value which, int64_t number,
		       uint64_t directory)
{
	values->value[which] = number;
	values->setter[which] = directory;
	values->set |= 1u << which;
}

/*
 * A value that does not parse was set by a later version, or is damaged: what
 * is inherited stays in force.
 */
static int values_from_list(struct rules *rules, const uint8_t *list, size_t size)
{
	enum policy_value which;
	const uint8_t *value;
	size_t at = 0, value_size;
	int64_t number;
	const char *name;
	int result;

	while ((result = record_xattr_next(list, size, &at, &name, &value, &value_size)) > 0)
		if (lifecycle_policy_name(name) &&
		    !policy_parse_value(name, (const char *)value, value_size, &which, &number, NULL)) {
			values_set(name[0] == 'u' ? &rules->user : &rules->trusted, which, number,
				   rules->directory);
			if (which == POLICY_TRASH_MAX)
				rules->capped[CAP_BYTES] = rules->directory;
			if (which == POLICY_TRASH_MAX_ENTRIES)
				rules->capped[CAP_ENTRIES] = rules->directory;
		}
	return result;
}

static int values_from_item(struct lifecycle *l, struct rules *rules, const struct item *own)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	const uint8_t *list = own->xattrs;
	size_t size = own->xattrs_size;
	int result;

	if (!(own->flags & ITEM_POLICY))
		return 0;
	if (own->flags & ITEM_XATTR_APART) {
		result = record_get_xattrs(l->store, own->id, &value, &list, &size);
		if (result)
			return result == STORE_ABSENT ? 0 : result;
	}
	return values_from_list(rules, list, size);
}

/* Of two values the one that protects more. */
static int64_t more_protecting(enum policy_value which, int64_t a, int64_t b)
{
	switch (which) {
	case POLICY_TEMPORARY:
	case POLICY_LOW_SPACE: /* 0 is off */
		return util_min(a, b);
	case POLICY_TRASH_MAX: /* 0 is no limit */
	case POLICY_TRASH_MAX_ENTRIES:
		return a && b ? util_max(a, b) : 0;
	default:
		return util_max(a, b);
	}
}

static int64_t policy_number(const struct policy *p, enum policy_value which)
{
	switch (which) {
	case POLICY_RETENTION:
		return p->retention_ns;
	case POLICY_VERSIONS:
		return p->versions;
	case POLICY_TEMPORARY:
		return p->temporary_ns;
	case POLICY_GRACE:
		return p->grace_ns;
	case POLICY_TRASH_MAX:
		return p->trash_max;
	case POLICY_TRASH_MAX_ENTRIES:
		return p->trash_max_entries;
	case POLICY_LOW_SPACE:
		return p->low_space;
	case POLICY_PROTECT:
		return p->protect;
	default:
		return p->hold;
	}
}

void rules_settle_policy(struct rules *rules)
{
	struct policy *p = &rules->policy;

	*p = policy_default;
	for (int i = 0; i < POLICY_VALUES; i++) {
		enum policy_value which = (enum policy_value)i;

		if (rules->user.set & 1u << i)
			policy_set_value(p, which, rules->user.value[i]);
		if (rules->trusted.set & 1u << i)
			policy_set_value(p, which,
					 more_protecting(which, policy_number(p, which),
							 rules->trusted.value[i]));
	}
	p->hold = p->hold || p->protect;
}

/* ---- who could reach a directory ------------------------------------------------ */

static void only_add(struct only_id *only, uint32_t id)
{
	if (only->count == ONLY_NONE)
		*only = (struct only_id){ ONLY_ONE, id };
	else if (only->id != id)
		only->count = ONLY_SEVERAL;
}

static bool only_is(const struct only_id *only, uint32_t id)
{
	return only->count == ONLY_NONE || (only->count == ONLY_ONE && only->id == id);
}

/*
 * Goes on below a directory. Group memberships are not known, so groups pass
 * only where any member does.
 */
static void reach_through(struct reach *reach, const struct item *own)
{
	uint32_t mode = tree_plain_mode(own);

	if (!(mode & S_IXOTH)) {
		reach->others = false;
		only_add(&reach->closed_to_others, own->gid);
		if (!(mode & S_IXGRP))
			only_add(&reach->closed_to_owners, own->uid);
	}
	if (!(mode & S_IXGRP))
		reach->groups = false;
}

uint32_t rules_mask(const struct rules *rules, const struct item *own)
{
	const struct reach *reach = &rules->reach;
	uint32_t mask = 0;

	/*
	 * The owner may change the mode of his own directory at any time: only what is above can
	 * keep him out.
	 */
	if (only_is(&reach->closed_to_owners, own->uid))
		mask |= 0700;
	if (reach->groups && only_is(&reach->closed_to_others, own->gid))
		mask |= tree_plain_mode(own) & 070;
	if (reach->others)
		mask |= tree_plain_mode(own) & 07;
	return mask;
}

/* ---- the chain -------------------------------------------------------------------- */

/* A directory on the way up. */
struct link_up {
	struct tree_directory d;
	struct link_up *below;
};

static void chain_free(struct link_up *chain)
{
	while (chain) {
		struct link_up *below = chain->below;

		tree_release(&chain->d);
		free(chain);
		chain = below;
	}
}

/* Reads upwards until a cached directory or the root; the chain starts at its upper end. */
static int chain_load(struct lifecycle *l, uint64_t directory, struct link_up **chain,
		      struct rules *ret_above)
{
	*ret_above = (struct rules){ .live = true, .below = { .others = true, .groups = true } };
	while (directory != KEY_ID_NONE && !rules_cached(&l->rules, directory, ret_above)) {
		struct link_up *link = calloc(1, sizeof(*link));
		int result;

		if (!link)
			return -ENOMEM;
		result = tree_load(l->store, directory, &link->d);
		if (result) {
			free(link);
			return result;
		}
		link->below = *chain;
		*chain = link;
		directory = link->d.guard.at.directory;
	}
	return 0;
}

/* From the rules of a parent to those of a directory in it. */
static int rules_descend(struct lifecycle *l, struct rules *rules, const struct tree_directory *d)
{
	rules->directory = d->id;
	rules->live = rules->live && tree_is_live(d);
	rules->reach = rules->below;
	reach_through(&rules->below, &d->own);
	return values_from_item(l, rules, &d->own);
}

int rules_load(struct lifecycle *l, uint64_t directory, struct rules *ret_rules)
{
	struct link_up *chain = NULL;
	struct rules rules;
	uint64_t generation;
	int result;

	pthread_mutex_lock(&l->rules.mutex);
	generation = l->rules.generation;
	pthread_mutex_unlock(&l->rules.mutex);
	result = chain_load(l, directory, &chain, &rules);
	for (struct link_up *link = chain; link && !result; link = link->below) {
		result = rules_descend(l, &rules, &link->d);
		if (!result) {
			rules_settle_policy(&rules);
			rules_keep(&l->rules, &rules, generation);
		}
	}
	chain_free(chain);
	if (!result)
		*ret_rules = rules;
	return result;
}

int lifecycle_check_live(struct lifecycle *l, uint64_t directory)
{
	struct rules rules;
	int result = rules_load(l, directory, &rules);

	return result || rules.live ? result : -EROFS;
}

int lifecycle_policy(struct lifecycle *l, uint64_t directory, struct policy *ret_policy)
{
	struct rules rules;
	int result = rules_load(l, directory, &rules);

	if (!result)
		*ret_policy = rules.policy;
	return result;
}
