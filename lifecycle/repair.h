/*
 * repair.h - what `check --quarantine` does about what `check` finds. Private
 * to lifecycle/.
 *
 * Finding and mending are apart: a check notes what could be done about each
 * problem (check_fix), and changes nothing; when its walk is over the fixes are
 * applied one by one, each in a transaction of its own that reads again what it
 * changes, and the store is checked anew. So an interrupted run leaves a store
 * that is better, never worse.
 *
 * What is lost is only what is damaged: bytes that were read and do not unseal,
 * and do not when they are read again. What the disk gives no answer for (-EIO)
 * may be read another time: it is told, and left as it is; but a file part of
 * whose content cannot be read twice moves, whole, like one that is damaged.
 *
 * What can be made again from what is whole is made again in its place: guards,
 * rows of the trash, shadows, counts. What cannot, but can still be read in
 * part, moves to the directory set aside for it; what cannot be read at all is
 * removed. All of it is told, and written into a file beside what was moved.
 */
#ifndef LIFECYCLE_REPAIR_H
#define LIFECYCLE_REPAIR_H

#include "lifecycle/check.h"
#include "lifecycle/damage.h"

enum fix_kind {
	FIX_DELETE, /* `key`: names what is not there, or (`damaged`) does not unseal and will be made again */
	FIX_DAMAGED, /* `key`, of an item: a directory's record is made again, anything else removed */
	FIX_ASIDE, /* the item `id` that has a name at `at`, or in at.directory, whose `body` cannot be read from `size` on: moves with all its names */
	FIX_NAMES, /* the names of `id`, whose LINK is lost, are removed */
	FIX_LINK, /* the LINK `id`, which has no name, gets one */
	FIX_BODY, /* the body `id`, which no item has, becomes a file */
	FIX_TRUNCATE, /* the body `id` holds data behind `size` */
	FIX_DIRECTORY, /* the directory `id` has no item: it gets one if anything is in it, else its guard goes */
	FIX_GUARD, /* the guard of directory `id` is made again, from where its item is */
	FIX_ROWS, /* the rows of the deleted item at `at` */
	FIX_SHADOW, /* of the live directory `id`, and those above it */
	FIX_SUBDIRECTORIES, /* the directory `id` counts again */
	FIX_LINKS, /* the LINK `id` has `names` names, of which `live` live */
	FIX_XATTRS, /* the item at `at`, or the LINK `id`, loses its extended attributes */
	FIX_BATCH, /* the record of batch `id` of `uid` is made again from what names it */
	FIX_COUNTERS, /* the counters do not unseal: all go, and are counted anew */
	FIX_COUNTER, /* `counter` changes by `delta` */
	FIX_FREE, /* a record of freed space does not unseal: what it named is found by what is not in use */
};

struct fix {
	enum fix_kind kind;
	struct place at;
	struct key key;
	uint64_t id;
	uint64_t body;
	uint64_t size;
	bool damaged;
	uint32_t names, live, uid;
	unsigned counter;
	int64_t delta;
};

struct fixes {
	struct fix *items;
	size_t count, capacity;
};

struct repair {
	const struct quarantine_hooks *hooks;
	struct check *check; /* whose walk is over; its marks are sorted */
	struct store *store;
	uint64_t aside; /* the directory set aside, 0: none yet */
	char aside_name[32];
	struct buffer log; /* what was done, in lines */
	uint64_t done;
	uint64_t given_back; /* bytes that belonged to nothing */
};

/*
 * The functions below return 0 (also when there is nothing to do any more), a
 * store's outcome or -EBADMSG, -EIO or -ENOENT for what the next round will meet
 * again, or another negative errno that ends the repair.
 */
/* Says what was done with what is at a place, or has a name of its own. */
__attribute__((format(printf, 3, 4))) void repair_tell(struct repair *r, const char *path,
						       const char *format, ...);
void repair_tell_at(struct repair *r, const struct place *at, const char *text);
/* Calls `visit` for each item whose id is `id` in the partition of `directory`; it owns nothing of it. */
int repair_each_name(struct repair *r, uint64_t directory, uint64_t id,
		     int (*visit)(struct repair *r, const struct place *at, const struct item *item));
/* The same in every directory where the check met a name of it. */
int repair_all_names(struct repair *r, uint64_t id,
		     int (*visit)(struct repair *r, const struct place *at, const struct item *item));
/* Reads an item again: -EBADMSG: it is damaged; 0: not any more; STORE_ABSENT; other errno: nobody knows. */
int repair_reread(struct repair *r, const struct key *key);
/* Deletes under any condition, or puts so. */
int repair_delete(struct repair *r, const struct key *key);
int repair_put(struct repair *r, const struct key *key, const struct buffer *attrs);

/* repair-aside.c */
int repair_aside(struct repair *r, const struct fix *fix);
int repair_link(struct repair *r, uint64_t id);
int repair_body(struct repair *r, uint64_t body);
int repair_directory(struct repair *r, uint64_t id);
/* Writes the log beside what was moved. */
int repair_write_log(struct repair *r);
/* Whether a directory is one that damaged items were set aside in. 1, 0, negative errno. */
int repair_is_aside(struct store *s, uint64_t directory);

/* repair-records.c */
int repair_damaged(struct repair *r, const struct key *key);
int repair_names(struct repair *r, uint64_t id);
int repair_guard(struct repair *r, uint64_t id);
int repair_rows(struct repair *r, const struct place *at);
int repair_shadow(struct repair *r, uint64_t id);
int repair_subdirectories(struct repair *r, uint64_t id);
int repair_links(struct repair *r, const struct fix *fix);
int repair_xattrs(struct repair *r, const struct fix *fix);
int repair_batch(struct repair *r, const struct fix *fix);

#endif
