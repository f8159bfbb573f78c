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

struct create {
	struct namei *n;
	const struct actor *actor;
	const struct namei_new *what;
	struct place at;
	struct tree_directory parent;
	struct transaction transaction;
	struct item item;
};

static void create_reset(struct create *c)
{
	tree_release(&c->parent);
	memset(&c->parent, 0, sizeof(c->parent));
	transaction_reset(&c->transaction);
}

static void create_release(struct create *c)
{
	create_reset(c);
	transaction_release(&c->transaction);
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
	if (S_ISDIR(c->what->mode) && c->parent.own.directory.subdirectories >= UINT32_MAX - 2)
		return -EMLINK;
	create_make_item(c, id, now_ns);
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
	ret_inode->name_version = version;
	ret_inode->link_version = 0;
	inode_count_links(ret_inode);
}

static int create_run(struct create *c, struct inode *ret_inode)
{
	struct store_retry retry = { 0 };
	uint64_t id, version;
	int result = store_new_id(c->n->store, &id);

	if (result)
		return result;
	lifecycle_lock(c->n->lifecycle);
	do
		result = create_once(c, id, &version);
	while (store_retry(&retry, &result));
	if (result == 0)
		lifecycle_note_created(c->n->lifecycle, c->actor, id);
	lifecycle_unlock(c->n->lifecycle);
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
