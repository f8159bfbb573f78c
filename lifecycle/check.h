/*
 * check.h - what the files of `check` share. Private to them.
 *
 * The store is walked once, partition by partition. What can be compared by
 * looking the other side up (a deleted item and its rows, a directory and its
 * guard) is compared there and then; what needs all sides (names against
 * links, bodies against their owners, counters) is kept as marks of 24 bytes
 * and compared when the walk is over. A million items cost about 50 MiB.
 */
#ifndef LIFECYCLE_CHECK_H
#define LIFECYCLE_CHECK_H

#include "lifecycle/lifecycle.h"
#include "lifecycle/tree.h"
#include "store/util.h"

enum mark_flag {
	MARK_LIVE = 1 << 0, /* a name in state ACT */
	MARK_REFERENCE = 1 << 1, /* one of several names */
	MARK_DIRECTORY = 1 << 2,
	MARK_REACHED = 1 << 3, /* directories: a walk upwards ended at the root */
	MARK_WALKED = 1 << 4, /* directories: on the present walk */
};

/* One thing seen. What the fields mean is said where an array of them is declared. */
struct mark {
	uint64_t id;
	uint64_t directory;
	uint32_t number;
	uint32_t flags;
};

/* Sorted by id, then directory, once marks_sort has been called. */
struct marks {
	struct mark *items;
	size_t count, capacity;
};

int marks_add(struct marks *m, const struct mark *mark);
void marks_sort(struct marks *m);
/* Index of the first with that id or a greater one. */
size_t marks_find(const struct marks *m, uint64_t id);
void marks_release(struct marks *m);

struct check {
	struct store *store;
	void (*problem)(void *data, const char *path, const char *text);
	void (*aside)(void *data, const char *path,
		      const char *text); /* NULL: as a problem, but not counted as one */
	bool (*progress)(void *data, uint64_t done);
	void *data;
	struct check_result result;
	bool failed; /* no memory for a fix */
	uint64_t done; /* rows, and MiB of bodies */
	uint64_t next_id, last_seq; /* as store_marks */
	int64_t counters[STORE_COUNTERS_MAX]; /* the recount */
	struct fixes *fixes; /* NULL: nothing is to be done about what is found */
	uint64_t last_asked; /* the directory last asked about by check_is_aside */
	bool last_aside;
	uint64_t link; /* the LINK in hand: what a place without a name means */
	uint8_t *block; /* CHECK_BLOCK bytes for reading bodies */

	struct marks names; /* each name but the root's: item, directory it is in */
	struct marks directories; /* each directory: itself, its parent; number: sub-directories it says it has */
	struct marks subdirectories; /* each partition walked: directory; number: live sub-directories found */
	struct marks xattrs; /* each item or LINK whose xattrs stand apart */
	struct marks bodies; /* each item or LINK with a body: body; directory: the owner's id */
	struct marks partitions; /* each body that has chunks */
	struct marks freed; /* each body on the FREE list */
	struct marks entries; /* each TRASH row: batch; directory: seq */
	struct marks purged; /* each EXP row of a purge: batch; directory: seq */
};

#define CHECK_BLOCK (1 << 20)

/* Tells a fault of what is at a place, or of the LINK in hand by the name it has in that directory. */
__attribute__((format(printf, 3, 4))) void check_problem(struct check *c, const struct place *at,
							 const char *format, ...);
/* The same of what has no place, but a name of its own ("body 17"). */
__attribute__((format(printf, 3, 4))) void check_problem_of(struct check *c, const char *what,
							    const char *format, ...);
/* The same of the item `id` that has a name in `directory`: the name is looked for there. */
__attribute__((format(printf, 4, 5))) void check_problem_item(struct check *c, uint64_t directory,
							      uint64_t id, const char *format, ...);
/* Damage in what was set aside for it: told, but no problem any more. */
__attribute__((format(printf, 3, 4))) void check_set_aside(struct check *c, const struct place *at,
							   const char *format, ...);
/* Whether a directory is one that damaged items were set aside in. */
bool check_is_aside(struct check *c, uint64_t directory);
/* Notes what could be done about the problem just told: repair.h. 0 or -ENOMEM. */
struct fix;
struct fixes;
void check_fix(struct check *c, const struct fix *fix);
/* The same where reading ended with `result`: what the disk gave no answer for is counted and left alone. */
void check_fix_read(struct check *c, int result, const struct fix *fix);
/* "missing", "damaged", or that the disk gave no answer. */
const char *check_words(int result);
/* check-path.c: the path that shows an item in the trash, malloc'd. CHECK_PATH_LIVE: it is not there. */
#define CHECK_PATH_LIVE 1
int check_trash_path(struct store *s, const struct place *at, char **ret_path);
/* The whole walk; 0 or negative errno. */
int check_run(struct check *c);
int check_init(struct check *c);
void check_release(struct check *c);
/* Counts one thing done. 0, or -EINTR. */
int check_step(struct check *c);
/* Calls `row` for each row of a range, whole values included. */
int check_range(struct check *c, const struct key_range *range,
		int (*row)(struct check *c, const struct store_row *row, void *data), void *data);
/* Whether a failure is one item's (told as a problem) and not the end of the check. */
static inline bool check_is_damage(int result)
{
	return result == -EBADMSG || result == -EIO;
}

/* check-tree.c: partitions of directories, guards, links, xattrs. */
int check_partition(struct check *c, uint64_t directory);
int check_guards(struct check *c);
int check_links(struct check *c); /* sorts and compares `names` */
int check_xattrs(struct check *c);
int check_shape(struct check *c); /* sub-directory counts, circles */

/* check-trash.c: rows beside deleted items, batches, counters. */
int check_deleted(struct check *c, const struct place *at, const struct item *item);
int check_trash_rows(struct check *c);
int check_due_rows(struct check *c);
int check_batches(struct check *c);
int check_counters(struct check *c);

/* check-body.c */
/* Reads all of a body. `at` names its owner. */
int check_body(struct check *c, const struct place *at, const struct item *item);
/* Reads a body again, from `offset` on. 0, or what came of it. */
int check_reread_body(struct check *c, uint64_t body, uint64_t offset);
int check_free(struct check *c);
int check_bodies(struct check *c); /* orphans, and bodies with two owners */

#endif
