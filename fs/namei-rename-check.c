/*
 * namei-rename-check.c - what a rename finds, and whether it may be done.
 *
 * Checks come in the order of the kernel's own: the kernel has made most of
 * them, but on a tree that others may have changed since.
 */
#include "fs/namei-rename.h"

#include <errno.h>

/* ---- reading -------------------------------------------------------------- */

static int subject_read(struct namei *n, struct subject *s)
{
	int result = record_get_item(n->store, &s->at, false, &s->value, &s->item);

	if (result == STORE_ABSENT)
		return 0;
	s->present = result == 0;
	return result;
}

/* What belongs to an item that moves: under the lock nothing destroys it, so what is missing is damage. */
static int subject_read_rest(struct namei *n, struct subject *s)
{
	int result = 0;

	if (s->item.flags & ITEM_REFERENCE)
		result = record_get_link(n->store, s->item.id, false, &s->link_value, &s->link);
	else if (S_ISDIR(s->item.mode))
		result = record_get_guard(n->store, s->item.id, &s->guard);
	return result == STORE_ABSENT ? -EIO : result;
}

int rename_read(struct rename *r)
{
	int result = subject_read(r->n, &r->old);

	if (result == 0)
		result = subject_read(r->n, &r->new);
	if (result)
		return result;
	if (!r->old.present)
		return -ENOENT;
	result = subject_read_rest(r->n, &r->old);
	if (result == 0 && r->exchange && r->new.present)
		result = subject_read_rest(r->n, &r->new);
	return result;
}

/* ---- checking ------------------------------------------------------------- */

/* No directory may come to lie in itself. */
static int check_cycles(struct rename *r)
{
	int result = 0;

	if (!rename_crosses(r))
		return 0;
	if (subject_is_directory(&r->old)) {
		result = tree_is_below(r->n->store, r->new.at.directory, r->old.item.id,
				       &r->topology_version);
		r->topology = true;
	}
	if (result == 0 && r->exchange && subject_is_directory(&r->new)) {
		result = tree_is_below(r->n->store, r->old.at.directory, r->new.item.id,
				       &r->topology_version);
		r->topology = true;
	}
	return result > 0 ? -EINVAL : result;
}

/* protect: nothing in there is replaced, exchanged or leaves. */
static int check_protection(struct rename *r)
{
	struct policy policy;
	int result;

	if (rename_crosses(r) || r->new.present) {
		result = lifecycle_policy(r->n->lifecycle, r->old.at.directory, &policy);
		if (result || policy.protect)
			return result ? result : -EPERM;
	}
	if (rename_crosses(r) && r->new.present) {
		result = lifecycle_policy(r->n->lifecycle, r->new.at.directory, &policy);
		if (result || policy.protect)
			return result ? result : -EPERM;
	}
	return 0;
}

static int check_types(const struct rename *r)
{
	if (r->exchange || !r->new.present)
		return 0;
	if (subject_is_directory(&r->old) && !subject_is_directory(&r->new))
		return -ENOTDIR;
	if (!subject_is_directory(&r->old) && subject_is_directory(&r->new))
		return -EISDIR;
	return 0;
}

int rename_check(struct rename *r)
{
	int result;

	if (r->new.present && !r->replaceable)
		return -EEXIST;
	if (r->exchange && !r->new.present)
		return -ENOENT;
	result = check_cycles(r);
	if (result)
		return result;
	if (r->new.present && r->new.item.id == r->old.item.id)
		return RENAME_NOTHING;
	result = check_types(r);
	return result ? result : check_protection(r);
}
