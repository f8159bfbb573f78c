/*
 * namei-create.c - mknod, mkdir, symlink and open(O_CREAT).
 *
 * The name is not looked up first: the kernel has just done so, and the
 * condition of the put decides. Whoever adds a name checks the parent's guard,
 * which an rmdir changes: of the two one fails.
 */
#include "fs/namei-internal.h"

#include <errno.h>
#include <linux/limits.h>
#include <sys/stat.h>

#include "fs/acl.h"

struct create {
	struct namei *n;
	const struct actor *actor;
	const struct namei_new *what;
	struct place at;
	struct tree_directory parent;
	struct transaction transaction;
	struct item item;
	struct buffer xattrs; /* ACLs that are handed down */
};

static void create_reset(struct create *c)
{
	tree_release(&c->parent);
	memset(&c->parent, 0, sizeof(c->parent));
	transaction_reset(&c->transaction);
	buffer_reset(&c->xattrs);
}

static void create_release(struct create *c)
{
	create_reset(c);
	transaction_release(&c->transaction);
	buffer_release(&c->xattrs);
}

static void create_make_item(struct create *c, uint64_t id, int64_t now_ns)
{
	const struct item *parent = &c->parent.own;
	struct timespec now = tree_time(now_ns);

	c->item = (struct item){
		.id = id,
		.mode = c->what->mode,
		.uid = c->actor->uid,
		.gid = parent->mode & S_ISGID ? parent->gid : c->actor->gid,
		.rdev = S_ISCHR(c->what->mode) || S_ISBLK(c->what->mode) ? c->what->rdev : 0,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.links_live = 1,
		.links_total = 1,
	};
	strcpy(c->item.name, c->at.name);
	if (S_ISDIR(c->item.mode)) {
		c->item.directory.trash_mask = 0777;
		c->item.mode |= parent->mode & S_ISGID;
	} else if (S_ISLNK(c->item.mode)) {
		c->item.content = (const uint8_t *)c->what->target;
		c->item.content_size = c->item.size = strlen(c->what->target);
	}
}

/* 1 and the parent's default ACL, 0 if it has none. `apart` owns it where the parent's item does not. */
static int find_default_acl(struct create *c, struct store_value *apart, const uint8_t **ret_value,
			    size_t *ret_size)
{
	const struct item *parent = &c->parent.own;
	const uint8_t *list;
	size_t size;
	int result;

	if (S_ISLNK(c->item.mode) || (parent->xattrs_size == 0 && !(parent->flags & ITEM_XATTR_APART)))
		return 0;
	result = xattr_load(c->n, parent, apart, &list, &size);
	if (result == 0)
		result = xattr_find(list, size, ACL_DEFAULT, ret_value, ret_size);
	return result > 0 && acl_check(*ret_value, *ret_size) != 0 ? 0 : result;
}

/* What the umask or, in its stead, the parent's default ACL leave of the mode; and the ACLs that come of it. */
static int create_limit_mode(struct create *c)
{
	_cleanup_(store_value_release) struct store_value apart = { 0 };
	_cleanup_(buffer_release) struct buffer acl = { 0 };
	_cleanup_(buffer_release) struct buffer list = { 0 };
	const uint8_t *inherited;
	size_t size;
	int result = find_default_acl(c, &apart, &inherited, &size);

	if (result <= 0) {
		c->item.mode &= S_ISLNK(c->item.mode) ? ~UINT32_C(0) : ~(c->what->umask & 0777);
		return result;
	}
	result = 0;
	if (!acl_create(inherited, size, &c->item.mode, &acl))
		result = acl.failed ?
				 -ENOMEM :
				 record_xattr_edit(NULL, 0, ACL_ACCESS, acl.bytes, acl.size, &list);
	if (result == 0 && S_ISDIR(c->item.mode))
		result = record_xattr_edit(list.bytes, list.size, ACL_DEFAULT, inherited, size,
					   &c->xattrs);
	else if (result == 0)
		buffer_append(&c->xattrs, list.bytes, list.size);
	if (result == 0 && c->xattrs.failed)
		result = -ENOMEM;
	if (result == 0)
		xattr_place(&c->transaction, &c->item, &c->xattrs);
	return result;
}

static void create_collect(struct create *c, int64_t now_ns)
{
	struct transaction *t = &c->transaction;
	struct guard guard = { .at = c->at };

	transaction_put_item(t, c->n->store, &c->at, &c->item, 0);
	if (S_ISDIR(c->item.mode)) {
		transaction_put_guard(t, c->item.id, &guard, 0);
		c->parent.own.directory.subdirectories++;
	}
	tree_touch(&c->parent, now_ns);
	tree_put_own(t, c->n->store, &c->parent);
	tree_check_guard(t, &c->parent);
	transaction_count_add(t, COUNTER_LIVE_ITEMS, 1);
}

/* A conflict is either the name or the parent: only the name is the caller's to hear. */
static int create_conflict(struct create *c)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item item;
	int result = record_get_item(c->n->store, &c->at, true, &value, &item);

	if (result == 0)
		return -EEXIST;
	return result == STORE_ABSENT ? STORE_CONFLICT : result;
}

static int create_once(struct create *c, uint64_t id, uint64_t *ret_version)
{
	int64_t now_ns = namei_now_ns(c->n);
	int result;

	create_reset(c);
	result = tree_load(c->n->store, c->at.directory, &c->parent);
	if (result)
		return result;
	if (!tree_is_live(&c->parent))
		return -ENOENT;
	result = lifecycle_check_live(c->n->lifecycle, c->at.directory);
	if (result)
		return result;
	if (S_ISDIR(c->what->mode) && c->parent.own.directory.subdirectories >= UINT32_MAX - 2)
		return -EMLINK;
	create_make_item(c, id, now_ns);
	result = create_limit_mode(c);
	if (result)
		return result;
	create_collect(c, now_ns);
	result = tree_commit(&c->transaction, c->n->store, STORE_GROWING, ret_version);
	return result == STORE_CONFLICT ? create_conflict(c) : result;
}

static void create_give(const struct create *c, uint64_t version, struct inode *ret_inode)
{
	memset(&ret_inode->value, 0, sizeof(ret_inode->value));
	memset(&ret_inode->link_value, 0, sizeof(ret_inode->link_value));
	ret_inode->at = c->at;
	ret_inode->item = c->item;
	ret_inode->item.version = version;
	ret_inode->item.content = NULL;
	ret_inode->item.content_size = 0;
	ret_inode->item.xattrs = NULL;
	ret_inode->item.xattrs_size = 0;
	ret_inode->name_version = version;
	ret_inode->link_version = 0;
	inode_count_links(ret_inode);
}

static int create_run(struct create *c, struct inode *ret_inode)
{
	uint64_t id, version;
	unsigned tries = 0;
	int result = store_new_id(c->n->store, &id);

	if (result)
		return result;
	do {
		struct store_retry retry = { 0 };

		lifecycle_lock(c->n->lifecycle);
		do
			result = create_once(c, id, &version);
		while (store_retry(&retry, &result));
		if (result == 0)
			lifecycle_note_created(c->n->lifecycle, c->actor, id);
		lifecycle_unlock(c->n->lifecycle);
	} while (namei_made_room(c->n, result, &tries));
	if (result == 0 && ret_inode)
		create_give(c, version, ret_inode);
	return namei_error(result);
}

static int check_target(const struct namei_new *what)
{
	size_t size;

	if (!S_ISLNK(what->mode))
		return 0;
	size = strlen(what->target);
	if (size == 0)
		return -ENOENT;
	return size >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int namei_create(struct namei *n, const struct actor *actor, uint64_t parent, const char *name,
		 const struct namei_new *what, struct inode *ret_inode)
{
	_cleanup_(create_release) struct create c = { .n = n, .actor = actor, .what = what };
	int result = namei_check_name(name);

	if (result == 0 && namei_is_reserved(n, parent, name))
		result = -EEXIST;
	if (result == 0)
		result = check_target(what);
	if (result)
		return result;
	namei_place(&c.at, parent, name);
	return create_run(&c, ret_inode);
}
