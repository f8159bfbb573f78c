/*
 * namei.c - the context, look-up, and what changes of one item have in common.
 *
 * A name's item is the file itself until a second name is made; from then on
 * its names are references and the file is its LINK record. Everyone above
 * sees a struct inode, in which the two are one.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/control.h"

int namei_open(struct lifecycle *l, struct namei **ret_namei)
{
	struct namei *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->lifecycle = l;
	n->store = lifecycle_store(l);
	for (size_t i = 0; i < NAMEI_ITEM_LOCKS; i++)
		pthread_mutex_init(&n->item_locks[i], NULL);
	*ret_namei = n;
	return 0;
}

void namei_close(struct namei *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < NAMEI_ITEM_LOCKS; i++)
		pthread_mutex_destroy(&n->item_locks[i]);
	free(n);
}

struct lifecycle *namei_lifecycle(struct namei *n)
{
	return n->lifecycle;
}

struct store *namei_store(struct namei *n)
{
	return n->store;
}

void namei_lock_item(struct namei *n, uint64_t id)
{
	pthread_mutex_lock(&n->item_locks[id & (NAMEI_ITEM_LOCKS - 1)]);
}

void namei_unlock_item(struct namei *n, uint64_t id)
{
	pthread_mutex_unlock(&n->item_locks[id & (NAMEI_ITEM_LOCKS - 1)]);
}

static bool same_lock(uint64_t a, uint64_t b)
{
	return ((a ^ b) & (NAMEI_ITEM_LOCKS - 1)) == 0;
}

void namei_lock_items(struct namei *n, uint64_t a, uint64_t b)
{
	namei_lock_item(n, a);
	if (!same_lock(a, b))
		namei_lock_item(n, b);
}

void namei_unlock_items(struct namei *n, uint64_t a, uint64_t b)
{
	if (!same_lock(a, b))
		namei_unlock_item(n, b);
	namei_unlock_item(n, a);
}

int64_t namei_now_ns(struct namei *n)
{
	return clock_now_ns(store_clock(n->store));
}

#define ROOM_TRIES 3

bool namei_made_room(struct namei *n, int result, unsigned *tries)
{
	return result == -ENOSPC && (*tries)++ < ROOM_TRIES && lifecycle_make_room(n->lifecycle);
}

int namei_error(int result)
{
	return result == -EBADMSG ? -EIO : result;
}

int namei_check_name(const char *name)
{
	size_t size = strlen(name);

	if (size == 0)
		return -ENOENT;
	if (size > KEY_NAME_MAX)
		return -ENAMETOOLONG;
	if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	return 0;
}

bool namei_is_reserved(struct namei *n, uint64_t parent, const char *name)
{
	if (strcmp(name, store_trash_name(n->store)) == 0)
		return true;
	return parent == KEY_ID_ROOT && strcmp(name, CONTROL_DIRECTORY) == 0;
}

void namei_place(struct place *ret_place, uint64_t directory, const char *name)
{
	ret_place->directory = directory;
	ret_place->seq = 0;
	ret_place->state = KEY_ACT;
	strcpy(ret_place->name, name);
}

/* ---- inodes -------------------------------------------------------------- */

void inode_release(struct inode *i)
{
	store_value_release(&i->value);
	store_value_release(&i->link_value);
	memset(&i->value, 0, sizeof(i->value));
	memset(&i->link_value, 0, sizeof(i->link_value));
}

void inode_count_links(struct inode *i)
{
	if (S_ISDIR(i->item.mode))
		i->nlink = i->at.state == KEY_ACT ? i->item.directory.subdirectories + 2 : 1;
	else if (i->item.flags & ITEM_REFERENCE)
		i->nlink = i->item.links_live;
	else
		i->nlink = i->at.state == KEY_ACT;
}

/* The file is what LINK says; the name and its state are the reference's own. */
static void inode_merge_link(struct inode *i, const struct item *link)
{
	struct item *name = &i->item;
	struct deletion deletion = name->deletion;
	uint32_t flags = name->flags & (ITEM_REFERENCE | ITEM_DELETION);
	char text[KEY_NAME_MAX + 1];

	strcpy(text, name->name);
	*name = *link;
	strcpy(name->name, text);
	name->flags |= flags;
	name->deletion = deletion;
	i->link_version = link->version;
}

static int inode_load_once(struct namei *n, const struct place *at, bool attributes_only, struct inode *i)
{
	struct item link;
	int result = record_get_item(n->store, at, attributes_only, &i->value, &i->item);

	if (result)
		return result;
	i->at = *at;
	i->name_version = i->item.version;
	if (i->item.flags & ITEM_REFERENCE) {
		result = record_get_link(n->store, i->item.id, attributes_only, &i->link_value, &link);
		if (result) {
			inode_release(i);
			return result == STORE_ABSENT ? STORE_CONFLICT : result;
		}
		inode_merge_link(i, &link);
	}
	inode_count_links(i);
	return 0;
}

int inode_load(struct namei *n, const struct place *at, bool attributes_only, struct inode *ret_inode)
{
	int result = 0;

	/* A reference without its LINK was destroyed between the two reads, unless it is still there when read again. */
	for (int tries = 0; tries < 4; tries++) {
		memset(&ret_inode->value, 0, sizeof(ret_inode->value));
		memset(&ret_inode->link_value, 0, sizeof(ret_inode->link_value));
		ret_inode->link_version = 0;
		result = inode_load_once(n, at, attributes_only, ret_inode);
		if (result != STORE_CONFLICT)
			return namei_error(result);
	}
	return -EIO;
}

int namei_load(struct namei *n, const struct place *at, bool attributes_only, struct inode *ret_inode)
{
	int result = inode_load(n, at, attributes_only, ret_inode);

	return result == STORE_ABSENT ? -ENOENT : result;
}

int namei_lookup(struct namei *n, uint64_t directory, const char *name, bool attributes_only,
		 struct inode *ret_inode)
{
	struct place at;
	int result = namei_check_name(name);

	if (result)
		return result;
	namei_place(&at, directory, name);
	return namei_load(n, &at, attributes_only, ret_inode);
}

int namei_allocated(struct namei *n, const struct inode *i, uint64_t *ret_bytes)
{
	uint64_t unit = i->item.body ? 4096 : 512;

	if (i->item.flags & ITEM_SPARSE && i->item.body)
		return namei_error(store_body_usage(n->store, i->item.body, ret_bytes));
	/* Never less than the size: a dense file that looks sparse makes cp ask for its holes. */
	*ret_bytes = S_ISREG(i->item.mode) ? (i->item.size + unit - 1) / unit * unit : 0;
	return 0;
}

void inode_make_reference(const struct inode *i, const char *name, struct item *ret_item)
{
	*ret_item = (struct item){
		.id = i->item.id,
		.flags = ITEM_REFERENCE,
		.mode = i->item.mode,
		.uid = i->item.uid,
		.gid = i->item.gid,
		.rdev = i->item.rdev,
		.links_live = 1,
		.links_total = 1,
	};
	strcpy(ret_item->name, name);
}

void inode_put(struct transaction *t, struct namei *n, const struct inode *i)
{
	struct item link;

	if (!(i->item.flags & ITEM_REFERENCE)) {
		transaction_put_item(t, n->store, &i->at, &i->item, i->name_version);
		return;
	}
	link = i->item;
	link.flags &= ~(uint32_t)(ITEM_REFERENCE | ITEM_DELETION);
	memset(&link.deletion, 0, sizeof(link.deletion));
	link.name[0] = '\0';
	transaction_put_link(t, &link, i->link_version);
}
