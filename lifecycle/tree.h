/*
 * tree.h - directories as transactions see them: the parts that every change
 * of the tree shares, used by lifecycle/ and by fs/namei.c.
 *
 * A directory's own item stands in its parent's partition; its guard (DIR id)
 * says where, and changes only when that place does. Whoever adds a name to a
 * directory checks the guard; whoever removes the directory changes it.
 */
#ifndef LIFECYCLE_TREE_H
#define LIFECYCLE_TREE_H

#include "store/record.h"

struct tree_directory {
	uint64_t id;
	struct guard guard; /* guard.at: where the own item is */
	struct item own;
	struct store_value value; /* what `own` borrows from */
};

/*
 * Reads guard and own item. 0, -ENOENT (never was, or destroyed), negative
 * errno. Deleted directories load too: see own.flags.
 */
int tree_load(struct store *s, uint64_t directory, struct tree_directory *ret_directory);
void tree_release(struct tree_directory *d);
static inline bool tree_is_live(const struct tree_directory *d)
{
	return d->guard.at.state == KEY_ACT;
}

/*
 * The mode as far as it says who may: with an access ACL, which may give less to
 * anybody but the owner, that is the owner's part.
 */
uint32_t tree_plain_mode(const struct item *own);

/* Puts the own item as it now stands in `d->own`, at the version read, but for its deletion, which is as read. */
void tree_put_own(struct transaction *t, struct store *s, const struct tree_directory *d);
/* The guard must be as read: nobody removed or renamed the directory meanwhile. */
void tree_check_guard(struct transaction *t, const struct tree_directory *d);
/* A name was added or removed: mtime and ctime := now. */
void tree_touch(struct tree_directory *d, int64_t now_ns);
struct timespec tree_time(int64_t ns);
/* A directory's trash mask after its group changed: the new group may what others might as well. */
uint32_t tree_mask_regrouped(uint32_t trash_mask);
/* After its user changed: the new one may what both the group and others might. Before the group's. */
uint32_t tree_mask_given(uint32_t trash_mask);

/*
 * Makes the root of a new store (own item, guard, counters). 0, or -EEXIST.
 * `mode` without the type.
 */
int tree_format(struct store *s, uint32_t mode, uint32_t uid, uint32_t gid);

/*
 * Whether `directory` is `ancestor` or lies below it, walking guards. 1, 0 or
 * negative errno; *ret_version is that of META "topology", to be put with
 * tree_put_topology in the same transaction by whoever moves a directory.
 */
#define TREE_TOPOLOGY "topology" /* in META */
#define TREE_DEPTH_MAX 1000000 /* more levels than this are a circle of damaged guards */
/* The heads of lifecycle's own records in META: a format, and kinds apart from those of store/. */
#define TREE_RECORD_FORMAT 1
#define TREE_RECORD_TOPOLOGY 32
#define TREE_RECORD_WATCH 33
#define TREE_RECORD_SCRUB 34
#define TREE_RECORD_GONE 35
int tree_is_below(struct store *s, uint64_t directory, uint64_t ancestor, uint64_t *ret_version);
void tree_put_topology(struct transaction *t, uint64_t version);

/*
 * The path of a place from the root ("/a/b"), through deleted directories too.
 * `ret_path` is malloc'd. 0, -ENAMETOOLONG over 1 MiB, negative errno.
 */
int tree_path(struct store *s, const struct place *at, char **ret_path);

/*
 * transaction_commit, also when its answer is lost (-EIO although it was done):
 * then the first item put is read again, and if it is there as it was put, at
 * another version than before, the transaction took effect and this returns 0.
 * So whatever identifies the change (a seq, a time) should be in what is put.
 */
int tree_commit(struct transaction *t, struct store *s, enum store_purpose purpose, uint64_t *ret_version);

#endif
