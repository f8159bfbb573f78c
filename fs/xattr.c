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
	if (has_prefix(name, XATTR_SYSTEM_PREFIX "posix_acl_"))
		return XATTR_ACL;
	return XATTR_UNKNOWN;
}

static int check_xattr_name(const char *name)
{
	size_t size = strlen(name);

	if (size == 0 || size > XATTR_NAME_MAX)
		return -ERANGE;
	return classify(name) == XATTR_UNKNOWN ? -EOPNOTSUPP : 0;
}

/* ---- lists ---------------------------------------------------------------- */

int xattr_load(struct namei *n, const struct inode *i, struct store_value *apart, const uint8_t **ret_list,
	       size_t *ret_size)
{
	int result;

	if (!(i->item.flags & ITEM_XATTR_APART)) {
		*ret_list = i->item.xattrs;
		*ret_size = i->item.xattrs_size;
		return 0;
	}
	result = record_get_xattrs(n->store, i->item.id, apart, ret_list, ret_size);
	return result == STORE_ABSENT ? -EIO : namei_error(result);
}

int xattr_find(const uint8_t *list, size_t size, const char *name, const uint8_t **ret_value, size_t *ret_value_size)
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
		result = xattr_load(n, &e->inode, &e->xattrs_apart, &e->xattrs_list, &e->xattrs_list_size);
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

static bool has_policy(const struct buffer *list)
{
	size_t at = 0, value_size;
	const uint8_t *value;
	const char *name;

	while (record_xattr_next(list->bytes, list->size, &at, &name, &value, &value_size) > 0)
		if (classify(name) == XATTR_POLICY)
			return true;
	return false;
}

static void place_list(struct edit *e)
{
	struct item *item = &e->inode.item;
	bool apart = e->xattrs.size > XATTR_INLINE_MAX;
	struct key key;

	if (apart) {
		transaction_put_xattrs(&e->transaction, item->id, e->xattrs.bytes, e->xattrs.size);
	} else if (item->flags & ITEM_XATTR_APART) {
		key_xattr(item->id, &key);
		transaction_delete(&e->transaction, &key, STORE_ANY, 0);
	}
	item->xattrs = apart ? NULL : e->xattrs.bytes;
	item->xattrs_size = apart ? 0 : e->xattrs.size;
	item->flags &= ~(uint32_t)(ITEM_XATTR_APART | ITEM_POLICY);
	if (apart)
		item->flags |= ITEM_XATTR_APART;
	if (S_ISDIR(item->mode) && has_policy(&e->xattrs))
		item->flags |= ITEM_POLICY;
}

int edit_set_xattr(struct namei *n, struct edit *e, const char *name, const void *value, size_t size)
{
	const uint8_t *list;
	size_t list_size;
	int result = edit_xattrs(n, e, &list, &list_size);

	if (result)
		return result;
	buffer_reset(&e->xattrs);
	/* An empty value is one: only NULL removes. */
	result = record_xattr_edit(list, list_size, name, value, size, &e->xattrs);
	if (result == 0 && value)
		result = check_sum(n, &e->xattrs);
	if (result)
		return namei_error(result);
	place_list(e);
	return 0;
}

/* ---- reading -------------------------------------------------------------- */

static int copy_value(struct namei *n, const struct inode *i, const char *name, struct buffer *ret_value)
{
	_cleanup_(store_value_release) struct store_value apart = { 0 };
	const uint8_t *list, *value;
	size_t size, value_size;
	int result = xattr_load(n, i, &apart, &list, &size);

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
		result = xattr_load(target->n, &i, &apart, &list, &size);
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
	if (uid != 0 && (uid != item->uid || has_prefix(c->name, XATTR_TRUSTED_PREFIX)))
		return -EPERM;
	if (!c->value)
		return 0;
	return lifecycle_policy_parse(c->name, c->value, c->size, &ignored, &hint);
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
		return S_ISLNK(item->mode) ? -EOPNOTSUPP : 0;
	default:
		return 0;
	}
}

static int xattr_step(struct namei *n, struct edit *e, void *data)
{
	const struct xattr_change *c = data;
	const uint8_t *list, *value;
	size_t size, value_size;
	int result = check_change(c, &e->inode.item);

	if (result == 0)
		result = edit_xattrs(n, e, &list, &size);
	if (result)
		return result;
	result = xattr_find(list, size, c->name, &value, &value_size);
	if (result < 0)
		return result;
	if (result && c->flags & XATTR_CREATE)
		return -EEXIST;
	if (!result && (c->flags & XATTR_REPLACE || !c->value))
		return -ENODATA;
	result = edit_set_xattr(n, e, c->name, c->value, c->size);
	e->inode.item.ctime = tree_time(namei_now_ns(n));
	return result;
}

static int change_xattr(struct target *target, struct xattr_change *c)
{
	int result = check_xattr_name(c->name);

	if (result == 0)
		result = target_lock(target, false);
	if (result)
		return result;
	result = edit_run(target, xattr_step, c, NULL);
	if (result == 0 && classify(c->name) == XATTR_POLICY)
		lifecycle_note_directory_changed(target->n->lifecycle);
	target_unlock(target);
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

int namei_setxattr(struct namei *n, const struct actor *actor, const struct place *at, const char *name,
		   const void *value, size_t size, int flags)
{
	struct xattr_change c = { actor, name, value, size, flags };
	struct target target;

	target_at(&target, n, at);
	return set_xattr(&target, &c);
}

int file_setxattr(struct namei *n, const struct actor *actor, const struct file_locator *where, uint64_t id,
		  const char *name, const void *value, size_t size, int flags)
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

int file_removexattr(struct namei *n, const struct actor *actor, const struct file_locator *where, uint64_t id,
		     const char *name)
{
	struct xattr_change c = { .actor = actor, .name = name };
	struct target target;

	target_located(&target, n, where, id);
	return change_xattr(&target, &c);
}
