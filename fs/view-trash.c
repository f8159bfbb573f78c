/*
 * view-trash.c - see view-trash.h.
 *
 * The kernel checks rights against the modes that are shown; so a view's
 * directory keeps its write bits (moving out and removing need them), and what
 * may not be done to anyone's trash is refused here.
 */
#include "fs/view-trash.h"

#include <linux/fs.h>
#include <sys/stat.h>

#include "store/util.h"

#define WRITE_BITS 0222
#define MODE_BITS 0777
#define STEPS_UP 4 /* read before what is kept of longer ways is asked */

/* ---- where things are ------------------------------------------------------- */

/*
 * Walks guards from a directory to the root or one that is known to be live, or to the first deleted
 * one. Below a live one what the node table knows outlasts removals, so the first steps ask it.
 */
static int ask_guards(const struct view *v, uint64_t directory, bool *ret_trash)
{
	for (int steps = 0; directory != KEY_ID_ROOT && !node_is_live(v->nodes, directory); steps++) {
		struct guard guard;
		int result;

		if (steps == STEPS_UP)
			return lifecycle_in_trash(namei_lifecycle(v->namei), directory, ret_trash);
		result = record_get_guard(namei_store(v->namei), directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		if (guard.at.state != KEY_ACT) {
			*ret_trash = true;
			return 0;
		}
		directory = guard.at.directory;
	}
	*ret_trash = false;
	return 0;
}

int view_is_trash(const struct view *v, const struct node *directory, bool *ret_trash)
{
	uint64_t moves = node_moves(v->nodes);
	int result;

	if (directory->kind == NODE_VIEW || directory->live) {
		*ret_trash = directory->kind == NODE_VIEW;
		return 0;
	}
	result = ask_guards(v, directory->id, ret_trash);
	if (result == 0 && !*ret_trash)
		node_set_live(v->nodes, directory->node, moves);
	return result;
}

int view_is_writable(const struct view *v, const struct node *file, bool *ret_writable)
{
	bool trash = true;
	int result = 0;

	if (!file->writable && !file->lost && file->at.state == KEY_ACT) {
		result = ask_guards(v, file->at.directory, &trash);
		if (result == 0 && !trash)
			node_set_writable(v->nodes, file->node);
	}
	*ret_writable = file->writable || !trash;
	return result;
}

/* ---- what they look like ------------------------------------------------------ */

void view_mask(struct inode *inode, bool writable)
{
	struct item *item = &inode->item;

	if (S_ISDIR(item->mode)) {
		/* Views show no ACLs: one may deny what the mode would then give. */
		item->mode = tree_plain_mode(item) & (~(uint32_t)MODE_BITS | item->directory.trash_mask);
		inode->nlink = 1; /* its sub-directories are not counted: tools then do not rely on it */
	} else if (!writable) {
		item->mode &= ~(uint32_t)WRITE_BITS;
	}
}

static void make_mirror(struct inode *inode)
{
	inode->item.id |= VIEW_MIRROR;
}

int view_directory(const struct view *v, uint64_t directory, struct inode *ret_inode)
{
	struct store *s = namei_store(v->namei);
	struct tree_directory d = { 0 };
	bool trash = true;
	int result = tree_load(s, directory, &d);

	if (result == 0 && tree_is_live(&d))
		result = ask_guards(v, directory, &trash);
	if (result) {
		tree_release(&d);
		return result;
	}
	*ret_inode = (struct inode){
		.at = d.guard.at,
		.item = d.own,
		.name_version = d.own.version,
		.value = d.value,
	};
	view_mask(ret_inode, false);
	if (!trash)
		make_mirror(ret_inode);
	return 0;
}

static uint32_t links_of(const struct entry *e)
{
	if (e->item.flags & ITEM_REFERENCE)
		return e->item.links_live;
	return e->at.state == KEY_ACT;
}

/* Takes the entry's memory. */
static void inode_of_entry(struct entry *e, struct inode *ret_inode)
{
	*ret_inode =
		(struct inode){ .at = e->at, .item = e->item, .nlink = links_of(e), .value = e->value };
	memset(&e->value, 0, sizeof(e->value));
	if (S_ISDIR(e->item.mode))
		view_mask(ret_inode, false);
	if (e->shadow)
		make_mirror(ret_inode);
}

static int find(const struct view *v, uint64_t directory, const char *name, struct entry *ret_entry)
{
	size_t size = strlen(name);

	if (size == 0)
		return -ENOENT;
	if (size > ENTRY_NAME_MAX)
		return -ENAMETOOLONG;
	if (strcmp(name, store_trash_name(namei_store(v->namei))) == 0)
		return -ENOENT;
	return lifecycle_find(namei_lifecycle(v->namei), directory, name, ret_entry);
}

int view_lookup(const struct view *v, uint64_t directory, const char *name, struct inode *ret_inode)
{
	struct entry e = { 0 };
	int result = find(v, directory, name, &e);

	if (result == 0)
		inode_of_entry(&e, ret_inode);
	return result;
}

int view_list(const struct view *v, uint64_t directory, const struct key *after,
	      bool (*row)(void *data, const struct entry *entry, const struct key *key), void *data)
{
	return lifecycle_list(namei_lifecycle(v->namei), directory, after, row, data);
}

/* ---- moving ---------------------------------------------------------------------- */

static void describe(const struct item *item, struct view_moved *ret_moved)
{
	*ret_moved = (struct view_moved){
		.id = item->id,
		.directory = S_ISDIR(item->mode),
		.reference = item->flags & ITEM_REFERENCE,
	};
}

/* The id of a live directory that is about to be replaced, or 0. */
static int replaced_directory(const struct view *v, uint64_t parent, const char *name, uint64_t *ret_id)
{
	struct inode inode = { 0 };
	int result = namei_lookup(v->namei, parent, name, true, &inode);

	*ret_id = result == 0 && S_ISDIR(inode.item.mode) ? inode.item.id : 0;
	if (result == 0)
		inode_release(&inode);
	return result == -ENOENT ? 0 : result;
}

static struct node_spot spot_in(const struct node *directory)
{
	return (struct node_spot){ directory->view, directory->node };
}

static int restore(const struct view *v, const struct actor *actor, const struct entry *e,
		   const struct node *from, const struct node *to, const char *name, unsigned flags)
{
	struct node_spot out_of = spot_in(from), into = { 0, to->node };
	uint64_t replaced;
	int result = replaced_directory(v, to->id, name, &replaced);

	if (result)
		return result;
	result = lifecycle_restore(namei_lifecycle(v->namei), actor, &e->at, to->id, name,
				   flags & RENAME_NOREPLACE ? RESTORE_NOREPLACE : 0, NULL, NULL);
	if (result)
		return result;
	if (replaced)
		node_detach(v->nodes, replaced, 0, to->node);
	if (S_ISDIR(e->item.mode))
		node_move(v->nodes, e->item.id, &out_of, &into);
	return 0;
}

int view_move_out(const struct view *v, const struct actor *actor, const struct node *from,
		  const char *from_name, const struct node *to, const char *to_name, unsigned flags,
		  struct view_moved *ret_moved)
{
	struct entry e = { 0 };
	int result;

	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EINVAL;
	if (namei_is_reserved(v->namei, to->id, to_name))
		return -EBUSY;
	result = find(v, from->id, from_name, &e);
	if (result)
		return result;
	if (e.shadow)
		result = -EROFS;
	else
		result = restore(v, actor, &e, from, to, to_name, flags);
	if (result == 0)
		describe(&e.item, ret_moved);
	entry_release(&e);
	return result;
}

/* The node that the kernel takes for replaced: an older deletion of the same name, which in fact stays. */
static uint64_t covered_directory(const struct view *v, const struct node *to, const char *name)
{
	struct entry e = { 0 };
	uint64_t id = 0;

	if (find(v, to->id, name, &e) == 0) {
		if (S_ISDIR(e.item.mode))
			id = e.item.id;
		entry_release(&e);
	}
	return id;
}

int view_move_in(const struct view *v, const struct actor *actor, const struct node *from,
		 const char *from_name, const struct node *to, const char *to_name, unsigned flags,
		 struct view_moved *ret_moved)
{
	struct node_spot out_of = { 0, from->node }, into = spot_in(to);
	struct inode inode = { 0 };
	uint64_t covered;
	int result;

	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EINVAL;
	if (namei_is_reserved(v->namei, from->id, from_name))
		return -EBUSY;
	if (to->kind != NODE_VIEW || to->id != from->id || strcmp(from_name, to_name) != 0)
		return -EROFS;
	result = namei_lookup(v->namei, from->id, from_name, true, &inode);
	if (result)
		return result;
	covered = covered_directory(v, to, to_name);
	result = lifecycle_discard(namei_lifecycle(v->namei), actor, from->id, from_name);
	if (result == 0) {
		describe(&inode.item, ret_moved);
		if (covered)
			node_detach(v->nodes, covered, to->view, to->node);
		if (ret_moved->directory)
			node_move(v->nodes, ret_moved->id, &out_of, &into);
	}
	inode_release(&inode);
	return result;
}

/* ---- removing ---------------------------------------------------------------------- */

static bool stop_at_first(void *data, const struct entry *entry, const struct key *key)
{
	*(bool *)data = true;
	return true;
}

/* A mirror goes when nothing deleted is left to be seen in it: it was never there. */
static int remove_mirror(const struct view *v, uint64_t directory)
{
	bool any = false;
	int result = lifecycle_list(namei_lifecycle(v->namei), directory, NULL, stop_at_first, &any);

	return result ? result : any ? -ENOTEMPTY : 0;
}

static int remove_entry(const struct view *v, const struct actor *actor, const struct node *from,
			const struct entry *e, bool directory)
{
	bool is_directory = S_ISDIR(e->item.mode);
	int result;

	if (is_directory != directory)
		return is_directory ? -EISDIR : -ENOTDIR;
	if (e->shadow)
		result = remove_mirror(v, e->item.id);
	else
		result = lifecycle_purge(namei_lifecycle(v->namei), actor, &e->at, false);
	if (result)
		return result;
	if (is_directory)
		node_detach(v->nodes, e->item.id, from->view, from->node);
	else
		node_set_purged(v->nodes, e->item.id);
	return 0;
}

int view_remove(const struct view *v, const struct actor *actor, const struct node *from,
		const char *name, bool directory)
{
	struct entry e = { 0 };
	int result = find(v, from->id, name, &e);

	if (result)
		return result;
	result = remove_entry(v, actor, from, &e, directory);
	entry_release(&e);
	return result;
}

/* ---- facts -------------------------------------------------------------------------- */

static bool is_fact(const char *name)
{
	for (size_t i = 0; lifecycle_fact_names[i]; i++)
		if (strcmp(name, lifecycle_fact_names[i]) == 0)
			return true;
	return false;
}

/* The node stands for all names of a file, of which some may be where the caller must not look. */
static bool tells_where(const char *name)
{
	return strcmp(name, POLICY_PREFIX_USER "origin") == 0 ||
	       strcmp(name, POLICY_PREFIX_USER "key") == 0;
}

/* A file that is live under another name is not deleted, and has no facts. */
static bool has_fact(const struct inode *inode, const char *name)
{
	if (!(inode->item.flags & ITEM_REFERENCE))
		return true;
	return inode->nlink == 0 && (inode->item.links_total == 1 || !tells_where(name));
}

ssize_t view_fact(const struct view *v, const struct node *node, const char *name, char *buffer,
		  size_t size)
{
	struct inode inode = { 0 };
	struct entry e;
	bool visible;
	ssize_t length;
	int result;

	if (!is_fact(name) || node->lost || node->at.state != KEY_DEL)
		return -ENODATA;
	result = namei_load(v->namei, &node->at, true, &inode);
	if (result)
		return result;
	if (!has_fact(&inode, name)) {
		inode_release(&inode);
		return -ENODATA;
	}
	e = (struct entry){ .at = node->at, .item = inode.item };
	result = lifecycle_visibility(namei_lifecycle(v->namei), &node->at, &e.expires_ns, &visible);
	length = result ? result : lifecycle_fact(namei_lifecycle(v->namei), &e, name, buffer, size);
	inode_release(&inode);
	return length;
}
