/*
 * outgoing.c - until when what is deleted below a live directory is kept, for
 * when that directory goes to the trash with all that is in it.
 *
 * Every directory below in which something was deleted has to be asked, and
 * there may be thousands, so they are asked before the lock is taken. Meanwhile
 * whatever raises the answer is noted: each deletion below. What moves there or
 * comes back there is not known by that; then the directories are asked again,
 * and after a few times with the lock held. So the answer is never too early,
 * and nothing is written before the one transaction that needs it.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define TRIES 8

/* The latest expiry of anything deleted in or below a live directory. */
static int subtree_until(struct lifecycle *l, uint64_t directory, int64_t *ret_until_ns)
{
	struct ids ids = { 0 };
	int64_t until_ns = 0;
	int result = ids_push(&ids, directory);

	while (ids.count && !result) {
		struct store_query query = { .attributes_only = true };
		struct store_page page = { 0 };
		struct tree_directory d;
		struct key next;
		bool more = true;

		directory = ids.items[--ids.count];
		result = tree_load(l->store, directory, &d);
		if (result == -ENOENT) {
			result = 0; /* a stale mark */
			continue;
		}
		if (result)
			break;
		until_ns = util_max(until_ns, d.own.directory.trash_until_ns);
		tree_release(&d);
		key_range_shadows(directory, &query.range);
		while (more && !result) {
			struct shadow shadow;

			result = store_query(l->store, &query, &page);
			if (result)
				break;
			for (size_t i = 0; i < page.count && !result; i++)
				if (!page.rows[i].damaged &&
				    !record_decode_shadow(&page.rows[i].value, &shadow))
					result = ids_push(&ids, shadow.directory);
			more = page.more;
			next = page.next;
			query.after = &next;
			store_page_release(&page);
		}
	}
	free(ids.items);
	if (!result)
		*ret_until_ns = until_ns;
	return result;
}

static struct outgoing *outgoing_find(struct lifecycle *l, uint64_t directory)
{
	struct outgoing *o = l->outgoing;

	while (o && !(o->directory == directory && o->asked))
		o = o->next;
	return o;
}

int outgoing_until(struct lifecycle *l, uint64_t directory, int64_t *ret_until_ns)
{
	const struct outgoing *o = outgoing_find(l, directory);

	if (!o || o->generation != rules_generation(l))
		return subtree_until(l, directory, ret_until_ns);
	*ret_until_ns = o->until_ns;
	return 0;
}

void outgoing_note(struct lifecycle *l, uint64_t directory, int64_t until_ns)
{
	for (struct outgoing *o = l->outgoing; o; o = o->next)
		/* What cannot be told is taken to be below. */
		if (until_ns > o->until_ns && tree_is_below(l->store, directory, o->directory, NULL))
			o->until_ns = until_ns;
}

/* Whether it is a directory for which there is something to ask. */
static bool resolve(struct lifecycle *l, uint64_t parent, const char *name, uint64_t *ret_directory)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place at = { .directory = parent, .state = KEY_ACT };
	struct item item;

	if (strlen(name) > KEY_NAME_MAX)
		return false;
	memcpy(at.name, name, strlen(name) + 1);
	if (record_get_item(l->store, &at, true, &value, &item))
		return false;
	*ret_directory = item.id;
	return S_ISDIR(item.mode) && item.flags & ITEM_SHADOWED;
}

/* True: the answer holds. */
static bool ask(struct lifecycle *l, struct outgoing *o)
{
	int64_t until_ns = 0;
	bool holds;

	lifecycle_lock(l);
	o->asked = false;
	o->until_ns = 0;
	o->generation = rules_generation(l);
	lifecycle_unlock(l);
	/* What cannot be read is met again, and told, by the removal. */
	if (subtree_until(l, o->directory, &until_ns))
		return true;
	lifecycle_lock(l);
	o->until_ns = util_max(o->until_ns, until_ns);
	o->asked = true;
	holds = o->generation == rules_generation(l);
	lifecycle_unlock(l);
	return holds;
}

void outgoing_begin(struct lifecycle *l, struct outgoing *o, uint64_t parent, const char *name)
{
	*o = (struct outgoing){ 0 };
	if (!resolve(l, parent, name, &o->directory))
		return;
	lifecycle_lock(l);
	o->next = l->outgoing;
	l->outgoing = o;
	o->listed = true;
	lifecycle_unlock(l);
	for (unsigned tries = 0; tries < TRIES && !ask(l, o); tries++)
		;
}

void outgoing_end(struct lifecycle *l, struct outgoing *o)
{
	struct outgoing **at = &l->outgoing;

	if (!o->listed)
		return;
	lifecycle_lock(l);
	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	lifecycle_unlock(l);
}
