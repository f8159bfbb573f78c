/*
 * engine-local-conditions.c - whether a transaction's conditions hold.
 *
 * They are looked at before the commit lock is taken, since that may read the
 * disk, and again under it: there only in the overlay, unless a generation was
 * dropped in between. A range that was empty can only have grown by what the
 * overlay got since.
 */
#include "store/engine-local-attempt.h"

static bool has_condition(const struct store_op *op)
{
	return op->kind <= STORE_CHECK && op->condition != STORE_ANY;
}

/* Under `maps`. */
static struct known look_in_overlay(struct engine_local *e, const struct key *key)
{
	struct overlay_item *item = overlay_find(e->open, key->bytes, key->size);

	if (!item && e->sealed)
		item = overlay_find(e->sealed, key->bytes, key->size);
	if (!item)
		return (struct known){ .state = KNOWN_NOT };
	return (struct known){
		.state = item->deleted ? KNOWN_ABSENT : KNOWN_PRESENT,
		.version = item->version,
	};
}

static int look_in_index(struct attempt *a, const struct key *key, struct known *ret_known)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct value_head head = { 0 };
	int r = index_get(a->reader, key->bytes, key->size, VALUE_HEAD_SIZE, &b);

	if (r < 0)
		return r;
	/* Only the version, which stands in clear: a damaged item is there, and can be deleted. */
	if (r == 0 && b.size >= VALUE_HEAD_SIZE)
		head.version = util_get_le64(b.bytes + 4);
	*ret_known = (struct known){
		.state = r == 0 ? KNOWN_PRESENT : KNOWN_ABSENT,
		.from_index = true,
		.version = head.version,
	};
	return 0;
}

static int take_reader(struct attempt *a)
{
	return a->reader ? 0 : index_reader_take(a->e->index, &a->reader);
}

/* Reads from the index what the overlay does not know. Renews the snapshot in the section that looks at the overlay. */
static int look_everywhere(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool missing = false;
	int r = take_reader(a);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	for (size_t i = 0; i < a->count; i++) {
		if (!has_condition(&a->ops[i]))
			continue;
		a->known[i] = look_in_overlay(e, &a->ops[i].key);
		missing = missing || a->known[i].state == KNOWN_NOT;
	}
	a->drops = e->drops;
	if (missing)
		r = index_reader_renew(a->reader);
	pthread_mutex_unlock(&e->maps);
	for (size_t i = 0; i < a->count && r == 0; i++)
		if (has_condition(&a->ops[i]) && a->known[i].state == KNOWN_NOT)
			r = look_in_index(a, &a->ops[i].key, &a->known[i]);
	return r;
}

/* Under the commit lock: what was read from the index still holds, unless the overlay knows better or a generation was dropped. */
static int refresh(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool stale = false;

	pthread_mutex_lock(&e->maps);
	for (size_t i = 0; i < a->count; i++) {
		struct known known;

		if (!has_condition(&a->ops[i]))
			continue;
		known = look_in_overlay(e, &a->ops[i].key);
		if (known.state != KNOWN_NOT)
			a->known[i] = known;
		else if (!a->known[i].from_index || a->drops != e->drops)
			stale = true;
	}
	pthread_mutex_unlock(&e->maps);
	return stale ? look_everywhere(a) : 0;
}

static bool condition_holds(const struct store_op *op, const struct known *known)
{
	switch (op->condition) {
	case STORE_ANY:
		return true;
	case STORE_IF_ABSENT:
		return known->state == KNOWN_ABSENT;
	case STORE_IF_PRESENT:
		return known->state == KNOWN_PRESENT;
	case STORE_IF_VERSION:
		return known->state == KNOWN_PRESENT && known->version == op->version;
	}
	return false;
}

static int check_conditions(const struct attempt *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (has_condition(&a->ops[i]) && !condition_holds(&a->ops[i], &a->known[i]))
			return STORE_CONFLICT;
	return 0;
}

/* Whether the range has an item, by a query. */
static int look_at_range(struct engine_local *e, const struct key_range *range)
{
	struct key after;
	struct store_query query = { .range = *range, .limit = 1, .attributes_only = true };
	struct store_page page;
	bool more, found;

	do {
		int r = local_query(&e->engine, &query, &page);

		if (r < 0)
			return r;
		found = page.count > 0;
		more = page.more && !found;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	} while (more);
	return found ? STORE_CONFLICT : 0;
}

static int look_at_each_range(struct attempt *a)
{
	for (size_t i = 0; i < a->count; i++) {
		int r = a->ops[i].kind == STORE_EMPTY ? look_at_range(a->e, &a->ops[i].range) : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

static int look_at_ranges(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool any = false;

	for (size_t i = 0; i < a->count; i++)
		any = any || a->ops[i].kind == STORE_EMPTY;
	if (!any)
		return 0;
	pthread_mutex_lock(&e->commit);
	a->empty_seq = e->last_seq;
	pthread_mutex_lock(&e->maps);
	a->empty_drops = e->drops;
	pthread_mutex_unlock(&e->maps);
	pthread_mutex_unlock(&e->commit);
	return look_at_each_range(a);
}

/* Under both locks: whether a generation has an item in the range that came after transaction `seq`. */
static bool range_grew(struct overlay *o, const struct key_range *range, uint64_t seq)
{
	struct overlay_item *item = overlay_seek(o, range->from.bytes, range->from.size, true, false);

	for (; item; item = overlay_step(item, false)) {
		int order = memcmp(item->key, range->to.bytes, util_min(item->key_size, range->to.size));

		if (order > 0 || (order == 0 && item->key_size >= range->to.size))
			return false;
		if (!item->deleted && item->version > seq)
			return true;
	}
	return false;
}

static int check_ranges(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool dropped, grew = false;

	if (a->empty_seq == e->last_seq)
		return 0;
	pthread_mutex_lock(&e->maps);
	/* What came meanwhile may be in the index already. */
	dropped = a->empty_drops != e->drops;
	for (size_t i = 0; i < a->count && !grew; i++) {
		if (a->ops[i].kind != STORE_EMPTY)
			continue;
		grew = range_grew(e->open, &a->ops[i].range, a->empty_seq) ||
		       (e->sealed && range_grew(e->sealed, &a->ops[i].range, a->empty_seq));
	}
	pthread_mutex_unlock(&e->maps);
	if (dropped && !grew)
		return look_at_each_range(a);
	return grew ? STORE_CONFLICT : 0;
}

int attempt_look(struct attempt *a)
{
	int r = look_everywhere(a);

	if (r == 0)
		r = check_conditions(a);
	return r == 0 ? look_at_ranges(a) : r;
}

int attempt_look_again(struct attempt *a)
{
	int r = refresh(a);

	if (r == 0)
		r = check_conditions(a);
	return r == 0 ? check_ranges(a) : r;
}
