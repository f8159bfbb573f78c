/*
 * access.c - the kernel's permission checks, made again for requests that do not
 * come through it.
 *
 * In a view a directory shows its mode less what its trash mask took away, and
 * so do all directories below it; the last live directory on the way is passed
 * twice, as itself and as its view, of which the view asks for more.
 */
#include "fs/access.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESS_DEPTH_MAX 1000000 /* more levels are a circle of damaged guards */

static bool in_group(const struct actor *actor, uint32_t gid)
{
	if (actor->gid == gid)
		return true;
	for (size_t i = 0; i < actor->groups_count; i++)
		if (actor->groups[i] == gid)
			return true;
	return false;
}

int access_mode(const struct actor *actor, uint32_t mode, uint32_t uid, uint32_t gid, int want)
{
	uint32_t granted = mode;

	if (actor->uid == 0) {
		if (want & X_OK && !S_ISDIR(mode) && !(mode & 0111))
			return -EACCES;
		return 0;
	}
	/* Only the first class that fits counts, as in the kernel. */
	if (actor->uid == uid)
		granted >>= 6;
	else if (in_group(actor, gid))
		granted >>= 3;
	return (uint32_t)want & ~granted & 07 ? -EACCES : 0;
}

static int check_sticky(const struct actor *actor, const struct item *directory, const struct item *item)
{
	if (!(directory->mode & S_ISVTX) || actor->uid == 0)
		return 0;
	return actor->uid == item->uid || actor->uid == directory->uid ? 0 : -EPERM;
}

/* A reference says nothing of its file's owner: its LINK does. */
static int check_sticky_name(struct namei *n, const struct actor *actor,
			     const struct item *directory, const struct item *item)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	int result;

	if (!(item->flags & ITEM_REFERENCE))
		return check_sticky(actor, directory, item);
	result = record_get_link(namei_store(n), item->id, true, &value, &link);
	if (result)
		return result == STORE_ABSENT ? -EBADMSG : result;
	return check_sticky(actor, directory, &link);
}

static int check_item(const struct actor *actor, const struct item *item, uint32_t mask, int want)
{
	return access_mode(actor, tree_plain_mode(item) & (~(uint32_t)0777 | mask), item->uid,
			   item->gid, want);
}

int access_change(const struct actor *actor, const struct item *directory, const struct item *item)
{
	int result = check_item(actor, directory, 0777, W_OK | X_OK);

	return result || !item ? result : check_sticky(actor, directory, item);
}

/* What is known of a path, walked upwards because guards point that way. */
struct path_walk {
	int plain; /* of all directories so far, as they are ... */
	int masked; /* ... and as a view shows them */
	int in_view; /* of those that turned out to be passed in a view */
	bool below_deleted; /* the directory before was deleted: this one is passed as a view too */
};

static void walk_directory(struct path_walk *w, const struct actor *actor, const struct tree_directory *d)
{
	int plain = check_item(actor, &d->own, 0777, X_OK);
	int masked = check_item(actor, &d->own, d->own.directory.trash_mask, X_OK);

	w->plain = w->plain ? w->plain : plain;
	w->masked = w->masked ? w->masked : masked;
	if (!tree_is_live(d) || w->below_deleted)
		w->in_view = w->masked;
	w->below_deleted = !tree_is_live(d);
}

int access_path(struct namei *n, const struct actor *actor, uint64_t directory)
{
	struct path_walk walk = { 0 };

	if (actor->uid == 0)
		return 0;
	for (unsigned depth = 0; directory != KEY_ID_NONE; depth++) {
		_cleanup_(tree_release) struct tree_directory d = { 0 };
		int result = depth < ACCESS_DEPTH_MAX ? tree_load(namei_store(n), directory, &d) : -EIO;

		if (result)
			return result;
		walk_directory(&walk, actor, &d);
		directory = d.guard.at.directory;
	}
	return walk.in_view ? walk.in_view : walk.plain;
}

/* To take an item's name out of the view of `directory`. */
static int check_view(struct namei *n, const struct actor *actor, uint64_t directory,
		      const struct item *item)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	int result = tree_load(namei_store(n), directory, &d);

	if (result == 0)
		result = check_item(actor, &d.own, d.own.directory.trash_mask, W_OK | X_OK);
	if (result == 0)
		result = check_sticky_name(n, actor, &d.own, item);
	return result ? result : access_path(n, actor, directory);
}

/* Directories whose contents are still to be looked at. */
struct contents {
	uint64_t *ids;
	size_t count, capacity;
};

static int contents_push(struct contents *c, uint64_t id)
{
	size_t capacity = c->capacity ? 2 * c->capacity : 16;
	uint64_t *grown;

	if (c->count == c->capacity) {
		grown = reallocarray(c->ids, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->ids = grown;
		c->capacity = capacity;
	}
	c->ids[c->count++] = id;
	return 0;
}

/* What nobody sees any more goes without asking. */
static bool is_gone(const struct item *item)
{
	return item->flags & ITEM_DELETION &&
	       (item->deletion.flags & (DELETION_PURGED | DELETION_DOOMED) ||
		item->deletion.cause == ITEM_TEMPORARY);
}

static int check_row(struct namei *n, const struct actor *actor, const struct tree_directory *d,
		     const struct store_row *row, struct contents *c)
{
	struct place at;
	struct item item;
	int result;

	/* A mark of what is below, or damaged, which is check's to name. */
	if (record_row_item(namei_store(n), row, &at, &item) || is_gone(&item))
		return 0;
	result = check_item(actor, &d->own, d->own.directory.trash_mask, W_OK | X_OK);
	if (result == 0)
		result = check_sticky_name(n, actor, &d->own, &item);
	return result == 0 && S_ISDIR(item.mode) ? contents_push(c, item.id) : result;
}

static int check_directory(struct namei *n, const struct actor *actor, uint64_t id, struct contents *c)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true;
	int result = tree_load(namei_store(n), id, &d);

	if (result)
		return result == -ENOENT ? 0 : result;
	key_range_directory(id, &query.range);
	while (more && result == 0) {
		_cleanup_(store_page_release) struct store_page page = { 0 };

		result = store_query(namei_store(n), &query, &page);
		for (size_t i = 0; i < page.count && result == 0; i++)
			result = check_row(n, actor, &d, &page.rows[i], c);
		more = page.more;
		next = page.next;
		query.after = &next;
	}
	return result;
}

/* A tree goes as rm -r would take it: name by name, out of each of its directories. */
static int check_contents(struct namei *n, const struct actor *actor, uint64_t directory)
{
	struct contents c = { 0 };
	int result = contents_push(&c, directory);

	while (c.count && result == 0)
		result = check_directory(n, actor, c.ids[--c.count], &c);
	free(c.ids);
	return result;
}

int access_purge(struct namei *n, const struct actor *actor, const struct place *at,
		 const struct item *item)
{
	int result = check_view(n, actor, at->directory, item);

	if (result || !S_ISDIR(item->mode) || actor->uid == 0)
		return result;
	return check_contents(n, actor, item->id);
}

/* To put a name into `directory`, in place of `victim` if there is one. */
static int check_receiving(struct namei *n, const struct actor *actor,
			   const struct tree_directory *directory, const struct item *victim)
{
	int result = access_change(actor, &directory->own, NULL);

	if (result == 0 && victim)
		result = check_sticky_name(n, actor, &directory->own, victim);
	return result ? result : access_path(n, actor, directory->id);
}

int access_move(struct namei *n, const struct actor *actor, const struct restore_move *move)
{
	const struct item *item = move->item;
	int result = check_view(n, actor, move->from->directory, item);

	if (result == 0)
		result = check_receiving(n, actor, move->parent, move->victim);
	if (result)
		return result;
	/* A directory that changes its parent is itself written: its "..". */
	if (S_ISDIR(item->mode) && move->parent->id != move->from->directory)
		return check_item(actor, item, item->directory.trash_mask, W_OK);
	return 0;
}

int access_restore(struct namei *n, const struct actor *actor, const struct place *at,
		   const struct item *item, uint64_t parent)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	struct restore_move move = { .from = at, .item = item, .parent = &d };
	int result = tree_load(namei_store(n), parent, &d);

	return result ? result : access_move(n, actor, &move);
}
