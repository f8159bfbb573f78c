/*
 * remove.c - unlink(2), rmdir(2), and mv into the trash: each one transaction.
 */
#include <sys/stat.h>

#include "lifecycle/damage.h"
#include "lifecycle/internal.h"

/* The directory, what is in it and that one's guard may each have to be made again. */
#define REMOVE_TRIES 4

enum remove_kind {
	REMOVE_FILE,
	REMOVE_DIRECTORY,
	REMOVE_WHOLE
};

static int check_kind(enum remove_kind kind, const struct item *item)
{
	if (kind == REMOVE_FILE && S_ISDIR(item->mode))
		return -EISDIR;
	if (kind == REMOVE_DIRECTORY && !S_ISDIR(item->mode))
		return -ENOTDIR;
	return 0;
}

static int remove_commit(struct lifecycle *l, struct removal *r, struct tree_directory *parent, bool whole)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	int result = 0;

	removal_add(l, r, parent, &t, whole);
	transaction_delete_item(&t, l->store, &r->from, r->victim.version);
	if (r->victim.flags & ITEM_SHADOWED)
		result = shadow_delete(l, &t, &r->from);
	tree_put_own(&t, l->store, parent);
	return result ? result : tree_commit(&t, l->store, STORE_RELEASING, NULL);
}

static int remove_from(struct lifecycle *l, const struct actor *actor,
		       struct tree_directory *parent, const char *name, enum remove_kind kind)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place at = { .directory = parent->id, .state = KEY_ACT };
	bool whole = kind == REMOVE_WHOLE;
	struct removal r;
	struct item item;
	int result;

	if (!tree_is_live(parent))
		return -ENOENT;
	memcpy(at.name, name, strlen(name) + 1);
	result = record_get_item(l->store, &at, false, &value, &item);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	result = check_kind(kind, &item);
	if (!result)
		result = removal_prepare(l, &r, actor, ITEM_REMOVED, 0, parent, &item, whole);
	if (result)
		return result;
	result = remove_commit(l, &r, parent, whole && S_ISDIR(item.mode));
	lifecycle_removal_done(l, &r, result == 0);
	/* All that is below it is no longer live. */
	if (!result && whole)
		lifecycle_note_directory_changed(l);
	return result;
}

static int remove_once(struct lifecycle *l, const struct actor *actor, uint64_t directory,
		       const char *name, enum remove_kind kind)
{
	struct tree_directory parent;
	int result = tree_load(l->store, directory, &parent);

	if (result)
		return result;
	result = remove_from(l, actor, &parent, name, kind);
	tree_release(&parent);
	return result;
}

/* Also what cannot be read, or lies in a directory that cannot: see remove-damaged.c. */
static int remove_or_mend(struct lifecycle *l, const struct actor *actor, uint64_t directory,
			  const char *name, enum remove_kind kind)
{
	char made_up[KEY_NAME_MAX + 1];
	int result = REMOVE_AGAIN;

	for (int tries = 0; result == REMOVE_AGAIN && tries < REMOVE_TRIES; tries++) {
		result = remove_once(l, actor, directory, name, kind);
		if (damaged_is(result) ||
		    (result == -ENOENT && damaged_unshow(store_codec(l->store), name, made_up)))
			result = remove_damaged(l, directory, name, kind == REMOVE_DIRECTORY);
	}
	return result == REMOVE_AGAIN ? -EBADMSG : result;
}

static int remove_name(struct lifecycle *l, const struct actor *actor, uint64_t directory,
		       const char *name, enum remove_kind kind)
{
	struct store_retry retry = { 0 };
	size_t size = strlen(name);
	int result;

	if (!size || size > KEY_NAME_MAX || strchr(name, '/'))
		return size > KEY_NAME_MAX ? -ENAMETOOLONG : -ENOENT;
	lifecycle_lock(l);
	do
		result = remove_or_mend(l, actor, directory, name, kind);
	while (store_retry(&retry, &result));
	lifecycle_unlock(l);
	return result;
}

int lifecycle_remove(struct lifecycle *l, const struct actor *actor, uint64_t parent,
		     const char *name, bool directory)
{
	return remove_name(l, actor, parent, name, directory ? REMOVE_DIRECTORY : REMOVE_FILE);
}

int lifecycle_discard(struct lifecycle *l, const struct actor *actor, uint64_t parent, const char *name)
{
	struct outgoing out;
	int result;

	outgoing_begin(l, &out, parent, name);
	result = remove_name(l, actor, parent, name, REMOVE_WHOLE);
	outgoing_end(l, &out);
	return result;
}
