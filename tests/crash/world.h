/*
 * world.h - a small file system on a store, what can be done to it, and all
 * that can be seen of it as one text.
 *
 * Names, contents, the trash and its facts, xattrs, policies, link counts and
 * times are in the text; what two runs of one history need not share (item ids,
 * numbers of batches, the mount's number in times) is replaced by the order of
 * first appearance, or rounded away. So a store that was interrupted can be
 * compared with one on the engine in memory that was not.
 */
#ifndef TESTS_CRASH_WORLD_H
#define TESTS_CRASH_WORLD_H

#include "fs/file.h"
#include "fs/namei.h"
#include "store/util.h"
#include "tests/lib/test.h"

struct world {
	struct test_clock clock;
	struct store *store;
	struct lifecycle *lifecycle;
	struct namei *namei;
	struct actor maker; /* root */
	struct actor remover; /* root in another process: what it removes is no temporary name */
	bool damaged; /* what cannot be read is shown as that, and does not end the test */
};

/* A new clock; nothing is open. */
void world_init(struct world *w);
/* Opens what world_make made, at the time the world has. The result of store_open or of what is above it. */
int world_open(struct world *w, const char *path, const struct store_open_options *options,
	       struct store_open_report *ret_report);
int world_open_memory(struct world *w);
int world_close(struct world *w);
/* What is above the store ends and begins anew: batches of deletions are closed. */
int world_reopen_upper(struct world *w);

/*
 * A tree to begin with: files inline and in bodies, links, directories, and
 * trash of all kinds. Formats the store. Ends the test if it fails.
 */
void world_begin(struct world *w);

/* What can be done. Each is one request of a user or several; all begin 100 seconds after the one before. */
enum world_op {
	WORLD_CREATE,
	WORLD_WRITE_NEW,
	WORLD_APPEND_SMALL, /* which moves from the item to a body */
	WORLD_APPEND_LARGE,
	WORLD_OVERWRITE_PART,
	WORLD_OVERWRITE_CHUNKS,
	WORLD_TRUNCATE,
	WORLD_TRUNCATE_TO_NOTHING,
	WORLD_TRUNCATE_UP,
	WORLD_PUNCH,
	WORLD_RENAME,
	WORLD_RENAME_DIRECTORY,
	WORLD_RENAME_OVER,
	WORLD_RENAME_INTO,
	WORLD_EXCHANGE,
	WORLD_LINK,
	WORLD_RM,
	WORLD_RM_LINK,
	WORLD_RM_RF,
	WORLD_DISCARD,
	WORLD_RESTORE,
	WORLD_RESTORE_DIRECTORY,
	WORLD_RESTORE_OVER,
	WORLD_UNDO,
	WORLD_PURGE,
	WORLD_PURGE_DIRECTORY,
	WORLD_EMPTY_NOW,
	WORLD_POLICY,
	WORLD_XATTR,
	WORLD_ATTRIBUTES,
	WORLD_SPECIAL, /* a directory, a symlink, a FIFO */
	WORLD_EXPIRE, /* a month passes, and the sweeper comes by */
	WORLD_SYNC,
	WORLD_CHECKPOINT,
	/* Of the large sparse file, see world_make_sparse. */
	WORLD_SPARSE_DESTROY,
	WORLD_SPARSE_TRUNCATE,
	WORLD_SPARSE_REPLACE,
	/* For long histories. */
	WORLD_SOMEWHERE, /* a file of its own is written, cut, zeroed or removed, at places the time decides */
	WORLD_REOPEN, /* the process ends, and another goes on */
	WORLD_OPS,
};

const char *world_op_name(enum world_op op);
/* Time passes. To be called once before world_do, which may be repeated. */
void world_step(struct world *w, enum world_op op);
/* 0, or the errno that a user would see: -ENOENT for what an earlier one took away. */
int world_do(struct world *w, enum world_op op);

/* "/sparse": 2 GiB, of which `chunks` pieces of 32 KiB are written, evenly. */
#define WORLD_SPARSE_SIZE (UINT64_C(2) << 30)
void world_make_sparse(struct world *w, unsigned chunks);

/* All of it; ends the test if something cannot be read. */
void world_dump(struct world *w, struct buffer *ret_text);
/* lifecycle_check. 0, or the number of problems, told on standard output; negative errno. */
int world_check(struct world *w);

#endif
