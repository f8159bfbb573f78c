/*
 * attr.c - chmod, chown, utimensat and truncate as one change.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <sys/stat.h>

#include "fs/acl.h"

/* Linux clears set-id bits on every chown of what is not a directory, root's included. */
static bool kills_privileges(const struct attr_change *change, const struct item *item)
{
	if (S_ISDIR(item->mode))
		return false;
	return change->set & (ATTR_KILL_SUID | ATTR_UID | ATTR_GID);
}

static void set_owner(const struct attr_change *change, struct item *item)
{
	if (change->set & ATTR_UID && S_ISDIR(item->mode) && change->uid != item->uid)
		item->directory.trash_mask = tree_mask_given(item->directory.trash_mask);
	if (change->set & ATTR_UID)
		item->uid = change->uid;
	if (change->set & ATTR_GID && S_ISDIR(item->mode) && change->gid != item->gid)
		item->directory.trash_mask = tree_mask_regrouped(item->directory.trash_mask);
	if (change->set & ATTR_GID)
		item->gid = change->gid;
	if (change->set & ATTR_MODE)
		item->mode = (item->mode & S_IFMT) | (change->mode & 07777);
}

static void set_times(struct namei *n, const struct attr_change *change, struct item *item)
{
	struct timespec now = tree_time(namei_now_ns(n));

	if (change->set & ATTR_ATIME)
		item->atime = change->atime;
	if (change->set & ATTR_MTIME)
		item->mtime = change->mtime;
	else if (change->set & ATTR_SIZE)
		item->mtime = now;
	/* Whoever sets it means it: that it is what it was before a deletion says no longer that nothing happened since. */
	if (change->set & ATTR_MTIME && S_ISDIR(item->mode))
		item->directory.saved_batch = 0;
	item->ctime = change->set & ATTR_CTIME ? change->ctime : now;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_rights(const struct item *a, const struct item *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

static bool same_attributes(const struct item *a, const struct item *b)
{
	return same_rights(a, b) && a->size == b->size && same_time(&a->atime, &b->atime) &&
	       same_time(&a->mtime, &b->mtime);
}

/* The kernel repeats times it already has (after an unlink, with the writeback cache): no write for those. */
static bool changes_nothing(const struct attr_change *change, const struct item *before,
			    const struct item *after)
{
	if (!same_attributes(before, after))
		return false;
	if (change->set & ATTR_CTIME)
		return same_time(&before->ctime, &after->ctime);
	return (change->set & ~(unsigned)ATTR_KILL_SUID) == 0;
}

/* chmod of a file with an ACL changes that too. */
static int change_acl(struct namei *n, struct edit *e)
{
	_cleanup_(buffer_release) struct buffer acl = { 0 };
	const uint8_t *list, *value;
	size_t size, value_size;
	int result;

	if (e->inode.item.xattrs_size == 0 && !(e->inode.item.flags & ITEM_XATTR_APART))
		return 0;
	result = edit_xattrs(n, e, &list, &size);
	if (result)
		return result;
	result = xattr_find(list, size, ACL_ACCESS, &value, &value_size);
	if (result <= 0 || acl_check(value, value_size) != 0)
		return result < 0 ? result : 0;
	acl_chmod(value, value_size, e->inode.item.mode, &acl);
	return acl.failed ? -ENOMEM : edit_set_xattr(n, e, ACL_ACCESS, acl.bytes, acl.size);
}

struct setattr {
	const struct attr_change *change;
	bool rights; /* mode or owner became others */
};

static int setattr_step(struct namei *n, struct edit *e, void *data)
{
	struct setattr *s = data;
	const struct attr_change *change = s->change;
	struct item *item = &e->inode.item;
	struct item before = *item;
	int result = 0;

	if (change->set & ATTR_SIZE)
		result = edit_resize(n, e, change->size);
	if (result == 0 && kills_privileges(change, item))
		result = edit_kill_privileges(n, e);
	if (result)
		return result;
	set_owner(change, item);
	if (change->set & ATTR_MODE)
		result = change_acl(n, e);
	if (result)
		return result;
	set_times(n, change, item);
	s->rights = !same_rights(&before, item);
	e->releasing = item->size <= before.size && !e->xattrs_changed;
	if (e->xattrs_changed || !changes_nothing(change, &before, item))
		return 0;
	*item = before; /* its ctime, which is answered */
	return EDIT_UNCHANGED;
}

static int setattr_once(struct target *target, const struct attr_change *change, struct inode *ret_inode)
{
	struct setattr s = { .change = change };
	int result = target_lock(target, false);

	if (result)
		return result;
	result = edit_run(target, setattr_step, &s, ret_inode);
	if (target->tree && s.rights)
		lifecycle_note_directory_changed(target->n->lifecycle);
	target_unlock(target);
	return result;
}

static int setattr(struct target *target, const struct attr_change *change, struct inode *ret_inode)
{
	unsigned tries = 0;
	int result;

	do
		result = setattr_once(target, change, ret_inode);
	while (namei_made_room(target->n, result, &tries));
	return result;
}

int namei_setattr(struct namei *n, const struct place *at, const struct attr_change *change,
		  struct inode *ret_inode)
{
	struct target target;

	target_at(&target, n, at);
	return setattr(&target, change, ret_inode);
}

int file_setattr(struct namei *n, const struct file_locator *where, uint64_t id,
		 const struct attr_change *change, struct inode *ret_inode)
{
	struct target target;

	target_located(&target, n, where, id);
	return setattr(&target, change, ret_inode);
}
