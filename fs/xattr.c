/*
 * xattr.c - extended attributes, and the policies that are set through them.
 *
 * The list stands in the item up to a kilobyte in sum, above that in an item of
 * its own, which the item's version guards. Errors and limits are Linux's.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <linux/limits.h>
#include <linux/xattr.h>
#include <sys/stat.h>

#include "fs/acl.h"

#define XATTR_INLINE_MAX 1024 /* bytes of the encoded list */
#define XATTR_SUM_MAX ((size_t)1 << 20) /* where the store would take more */
#define XATTR_ITEM_SPARE ((size_t)2048) /* of the store's item size, for key and record */

enum xattr_class {
	XATTR_USER,
	XATTR_TRUSTED,
	XATTR_SECURITY,
	XATTR_ACL,
	XATTR_POLICY, /* user.ddbfs.*, trusted.ddbfs.* */
	XATTR_UNKNOWN,
};

static bool has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static enum xattr_class classify(const char *name)
{
	if (has_prefix(name, POLICY_PREFIX_USER) || has_prefix(name, POLICY_PREFIX_TRUSTED))
		return XATTR_POLICY;
	if (has_prefix(name, XATTR_USER_PREFIX) && name[XATTR_USER_PREFIX_LEN])
		return XATTR_USER;
	if (has_prefix(name, XATTR_TRUSTED_PREFIX) && name[XATTR_TRUSTED_PREFIX_LEN])
		return XATTR_TRUSTED;
	if (has_prefix(name, XATTR_SECURITY_PREFIX) && name[XATTR_SECURITY_PREFIX_LEN])
		return XATTR_SECURITY;
	if (strcmp(name, ACL_ACCESS) == 0 || strcmp(name, ACL_DEFAULT) == 0)
		return XATTR_ACL;
	return XATTR_UNKNOWN;
}

static bool is_bare_prefix(const char *name)
{
	return strcmp(name, XATTR_USER_PREFIX) == 0 || strcmp(name, XATTR_TRUSTED_PREFIX) == 0 ||
	       strcmp(name, XATTR_SECURITY_PREFIX) == 0;
}

static int check_xattr_name(const char *name)
{
	size_t size = strlen(name);

	if (size == 0 || size > XATTR_NAME_MAX)
		return -ERANGE;
	if (is_bare_prefix(name))
		return -EINVAL;
	return classify(name) == XATTR_UNKNOWN ? -EOPNOTSUPP : 0;
}

/* ---- lists ---------------------------------------------------------------- */

int xattr_load(struct namei *n, const struct item *item, struct store_value *apart,
	       const uint8_t **ret_list, size_t *ret_size)
{
	int result;

	if (!(item->flags & ITEM_XATTR_APART)) {
		*ret_list = item->xattrs;
		*ret_size = item->xattrs_size;
		return 0;
	}
	result = record_get_xattrs(n->store, item->id, apart, ret_list, ret_size);
	return result == STORE_ABSENT ? -EIO : namei_error(result);
}

int xattr_find(const uint8_t *list, size_t size, const char *name, const uint8_t **ret_value,
	       size_t *ret_value_size)
{
	size_t at = 0;
	const char *each;
	int result;

	while ((result = record_xattr_next(list, size, &at, &each, ret_value, ret_value_size)) > 0)
		if (strcmp(each, name) == 0)
			return 1;
	return namei_error(result);
}

int edit_xattrs(struct namei *n, struct edit *e, const uint8_t **ret_list, size_t *ret_size)
{
	int result = 0;

	if (!e->xattrs_known)
		result = xattr_load(n, &e->inode.item, &e->xattrs_apart, &e->xattrs_list,
				    &e->xattrs_list_size);
	if (result)
		return result;
	e->xattrs_known = true;
	*ret_list = e->xattrs_list;
	*ret_size = e->xattrs_list_size;
	return 0;
}

/* Names as listxattr(2) gives them must fit its limit, values an item of the store. */
static int check_sum(struct namei *n, const struct buffer *list)
{
	size_t max = util_min(XATTR_SUM_MAX, store_limits(n->store)->item_bytes - XATTR_ITEM_SPARE);
	size_t at = 0, names = 0, value_size;
	const uint8_t *value;
	const char *name;

	while (record_xattr_next(list->bytes, list->size, &at, &name, &value, &value_size) > 0)
		names += strlen(name) + 1;
	return names > XATTR_LIST_MAX || list->size > max ? -ENOSPC : 0;
}

/* What a directory's xattrs say that is asked on every way through it. */
static uint32_t directory_flags(const struct buffer *list)
{
	size_t at = 0, value_size;
	uint32_t flags = 0;
	const uint8_t *value;
	const char *name;

	while (record_xattr_next(list->bytes, list->size, &at, &name, &value, &value_size) > 0) {
		if (classify(name) == XATTR_POLICY)
			flags |= ITEM_POLICY;
		if (strcmp(name, ACL_ACCESS) == 0)
			flags |= ITEM_ACL;
	}
	return flags;
}

void xattr_place(struct transaction *t, struct item *item, const struct buffer *list)
{
	bool apart = list->size > XATTR_INLINE_MAX;
	struct key key;

	if (apart) {
		transaction_put_xattrs(t, item->id, list->bytes, list->size);
	} else if (item->flags & ITEM_XATTR_APART) {
		key_xattr(item->id, &key);
		transaction_delete(t, &key, STORE_ANY, 0);
	}
	item->xattrs = apart ? NULL : list->bytes;
	item->xattrs_size = apart ? 0 : list->size;
	item->flags &= ~(uint32_t)(ITEM_XATTR_APART | ITEM_POLICY | ITEM_ACL);
	if (apart)
		item->flags |= ITEM_XATTR_APART;
	if (S_ISDIR(item->mode))
		item->flags |= directory_flags(list);
}

void edit_place_xattrs(struct edit *e)
{
	if (e->xattrs_changed)
		xattr_place(&e->transaction, &e->inode.item, &e->xattrs);
}

int edit_set_xattr(struct namei *n, struct edit *e, const char *name, const void *value, size_t size)
{
	_cleanup_(buffer_release) struct buffer edited = { 0 };
	struct buffer before;
	const uint8_t *list;
	size_t list_size;
	int result = edit_xattrs(n, e, &list, &list_size);

	if (result)
		return result;
	/* An empty value is one: only NULL removes. */
	result = record_xattr_edit(list, list_size, name, value, size, &edited);
	if (result == 0 && value)
		result = check_sum(n, &edited);
	if (result)
		return namei_error(result);
	before = e->xattrs;
	e->xattrs = edited;
	edited = before;
	e->xattrs_list = e->xattrs.bytes;
	e->xattrs_list_size = e->xattrs.size;
	e->xattrs_changed = true;
	return 0;
}

/* ---- reading -------------------------------------------------------------- */

static int copy_value(struct namei *n, const struct inode *i, const char *name, struct buffer *ret_value)
{
	_cleanup_(store_value_release) struct store_value apart = { 0 };
	const uint8_t *list, *value;
	size_t size, value_size;
	int result = xattr_load(n, &i->item, &apart, &list, &size);

	if (result)
		return result;
	result = xattr_find(list, size, name, &value, &value_size);
	if (result < 0)
		return result;
	if (result == 0)
		return -ENODATA;
	buffer_append(ret_value, value, value_size);
	return ret_value->failed ? -ENOMEM : 0;
}

static int get_xattr(struct target *target, const char *name, struct buffer *ret_value)
{
	_cleanup_(inode_release) struct inode i = { 0 };
	int result = check_xattr_name(name);

	if (result == 0)
		result = target_look(target, &i);
	if (result)
		return result;
	if (i.item.xattrs_size == 0 && !(i.item.flags & ITEM_XATTR_APART))
		return -ENODATA;
	return copy_value(target->n, &i, name, ret_value);
}

int namei_getxattr(struct namei *n, const struct place *at, const char *name, struct buffer *ret_value)
{
	struct target target;

	target_at(&target, n, at);
	return get_xattr(&target, name, ret_value);
}

int file_getxattr(struct namei *n, const struct file_locator *where, uint64_t id, const char *name,
		  struct buffer *ret_value)
{
	struct target target;

	target_located(&target, n, where, id);
	return get_xattr(&target, name, ret_value);
}

static int list_xattrs(struct target *target, bool trusted, struct buffer *ret_names)
{
	_cleanup_(inode_release) struct inode i = { 0 };
	_cleanup_(store_value_release) struct store_value apart = { 0 };
	const uint8_t *list, *value;
	size_t size, value_size, position = 0;
	const char *name;
	int result = target_look(target, &i);

	if (result == 0)
		result = xattr_load(target->n, &i.item, &apart, &list, &size);
	if (result)
		return result;
	while ((result = record_xattr_next(list, size, &position, &name, &value, &value_size)) > 0) {
		enum xattr_class class = classify(name);

		if (class == XATTR_POLICY || (class == XATTR_TRUSTED && !trusted))
			continue;
		buffer_append(ret_names, name, strlen(name) + 1);
	}
	if (ret_names->failed)
		return -ENOMEM;
	return namei_error(result);
}

int namei_listxattr(struct namei *n, const struct place *at, bool trusted, struct buffer *ret_names)
{
	struct target target;

	target_at(&target, n, at);
	return list_xattrs(&target, trusted, ret_names);
}

int file_listxattr(struct namei *n, const struct file_locator *where, uint64_t id, bool trusted,
		   struct buffer *ret_names)
{
	struct target target;

	target_located(&target, n, where, id);
	return list_xattrs(&target, trusted, ret_names);
}

/* ---- writing -------------------------------------------------------------- */

struct xattr_change {
	const struct actor *actor;
	const char *name;
	const void *value; /* NULL: remove */
	size_t size;
	int flags;
};

/* Policies are the owner's, the trusted ones root's. */
static int check_policy(const struct xattr_change *c, const struct item *item)
{
	struct policy ignored;
	const char *hint;
	uint32_t uid = c->actor->uid;

	if (!lifecycle_policy_name(c->name) || !S_ISDIR(item->mode))
		return -EINVAL;
	/* One disk, one rule. */
	if (c->value && item->id != KEY_ID_ROOT && lifecycle_policy_is_stores(c->name))
		return -EINVAL;
	if (uid != 0 && (uid != item->uid || has_prefix(c->name, XATTR_TRUSTED_PREFIX)))
		return -EPERM;
	if (!c->value)
		return 0;
	return lifecycle_policy_parse(c->name, c->value, c->size, &ignored, &hint);
}

static int check_acl(const struct xattr_change *c, const struct item *item)
{
	if (S_ISLNK(item->mode))
		return -EOPNOTSUPP;
	if (!c->value)
		return 0;
	if (strcmp(c->name, ACL_DEFAULT) == 0 && !S_ISDIR(item->mode))
		return -EACCES;
	return acl_check(c->value, c->size);
}

static int check_change(const struct xattr_change *c, const struct item *item)
{
	switch (classify(c->name)) {
	case XATTR_POLICY:
		return check_policy(c, item);
	case XATTR_USER:
		return S_ISREG(item->mode) || S_ISDIR(item->mode) ? 0 : -EPERM;
	case XATTR_TRUSTED:
		return c->actor->uid == 0 ? 0 : -EPERM;
	case XATTR_ACL:
		return check_acl(c, item);
	default:
		return 0;
	}
}

static bool in_group(const struct actor *actor, uint32_t gid)
{
	if (actor->uid == 0 || actor->gid == gid)
		return true;
	for (size_t i = 0; i < actor->groups_count; i++)
		if (actor->groups[i] == gid)
			return true;
	return false;
}

/* The mode follows the ACL; one that says no more than the mode is not kept. */
static void follow_acl(struct xattr_change *c, struct item *item)
{
	if (!in_group(c->actor, item->gid))
		item->mode &= ~(uint32_t)S_ISGID;
	if (acl_to_mode(c->value, c->size, &item->mode))
		c->value = NULL;
}

static int xattr_step(struct namei *n, struct edit *e, void *data)
{
	/* A copy: the step may be repeated on another item. */
	struct xattr_change c = *(const struct xattr_change *)data;
	bool acl = classify(c.name) == XATTR_ACL;
	const uint8_t *list, *value;
	size_t size, value_size;
	int found, result = check_change(&c, &e->inode.item);

	if (result == 0)
		result = edit_xattrs(n, e, &list, &size);
	if (result)
		return result;
	found = xattr_find(list, size, c.name, &value, &value_size);
	if (found < 0)
		return found;
	if (found && c.flags & XATTR_CREATE)
		return -EEXIST;
	if (!found && (c.flags & XATTR_REPLACE || !c.value))
		return acl && !c.flags ? EDIT_UNCHANGED : -ENODATA;
	if (c.value && strcmp(c.name, ACL_ACCESS) == 0)
		follow_acl(&c, &e->inode.item);
	if (c.value || found)
		result = edit_set_xattr(n, e, c.name, c.value, c.size);
	e->inode.item.ctime = tree_time(namei_now_ns(n));
	return result;
}

/* What directories have in force, and who may enter them, is remembered elsewhere. */
static bool is_remembered(const char *name)
{
	return classify(name) == XATTR_POLICY || classify(name) == XATTR_ACL;
}

static int change_xattr_once(struct target *target, struct xattr_change *c)
{
	int result = target_lock(target, false);

	if (result)
		return result;
	result = edit_run(target, xattr_step, c, NULL);
	if (result == 0 && classify(c->name) == XATTR_POLICY)
		lifecycle_note_policy_changed(target->n->lifecycle);
	else if (result == 0 && target->tree && is_remembered(c->name))
		lifecycle_note_directory_changed(target->n->lifecycle);
	target_unlock(target);
	return result;
}

static int change_xattr(struct target *target, struct xattr_change *c)
{
	unsigned tries = 0;
	int result = check_xattr_name(c->name);

	if (result)
		return result;
	do
		result = change_xattr_once(target, c);
	while (namei_made_room(target->n, result, &tries));
	return result;
}

static int set_xattr(struct target *target, struct xattr_change *c)
{
	if (c->flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return -EINVAL;
	if (c->size > XATTR_SIZE_MAX)
		return -E2BIG;
	if (!c->value)
		c->value = "";
	return change_xattr(target, c);
}

int namei_setxattr(struct namei *n, const struct actor *actor, const struct place *at,
		   const char *name, const void *value, size_t size, int flags)
{
	struct xattr_change c = { actor, name, value, size, flags };
	struct target target;

	target_at(&target, n, at);
	return set_xattr(&target, &c);
}

int file_setxattr(struct namei *n, const struct actor *actor, const struct file_locator *where,
		  uint64_t id, const char *name, const void *value, size_t size, int flags)
{
	struct xattr_change c = { actor, name, value, size, flags };
	struct target target;

	target_located(&target, n, where, id);
	return set_xattr(&target, &c);
}

int namei_removexattr(struct namei *n, const struct actor *actor, const struct place *at, const char *name)
{
	struct xattr_change c = { .actor = actor, .name = name };
	struct target target;

	target_at(&target, n, at);
	return change_xattr(&target, &c);
}

int file_removexattr(struct namei *n, const struct actor *actor, const struct file_locator *where,
		     uint64_t id, const char *name)
{
	struct xattr_change c = { .actor = actor, .name = name };
	struct target target;

	target_located(&target, n, where, id);
	return change_xattr(&target, &c);
}
