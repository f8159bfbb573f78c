/*
 * journal.h - the two journal files of the local engine.
 *
 * They were written with zeros when the store was made and are used in turn,
 * one generation of the overlay each, at explicit offsets: no file is made or
 * removed in service, no append runs out of space, and syncing blocks that are
 * used again is the cheapest sync there is. One record a transaction, sealed
 * whole and bound to store, use of the file, number and the record before.
 * FORMAT.md, "Journal", has the bytes; README.md the rules of replay.
 *
 * Appending is serialised by the caller; so is everything here but
 * journal_sync.
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/keyring.h"
#include "store/util.h"

#define JOURNAL_FILES 2
#define JOURNAL_ID_SIZE 16
#define JOURNAL_BYTES_DEFAULT (UINT64_C(32) << 20)

struct journal;

/* Numbers are part of the format. */
enum journal_kind {
	JOURNAL_CHANGES = 1, /* a transaction: changes as change.h encodes them */
	JOURNAL_MARK = 2, /* says only how far the log is durable */
	JOURNAL_ANCHOR = 3, /* the state of the index */
};

/* Binds a commit of the index: which transactions it holds, and which commit it is. */
struct journal_anchor {
	uint64_t applied_seq;
	uint64_t commit; /* LMDB's transaction id */
	uint8_t meta_hash[32]; /* of that commit's meta page */
	bool clean; /* the store was closed after it */
};

int journal_create(int dir_fd, const struct keyring *keys);
/* 0, -EBADMSG (a file is missing or has not its size), other errno. Reads no record. */
int journal_open(int dir_fd, const struct keyring *keys, bool read_only, struct journal **ret_journal);
void journal_close(struct journal *j); /* takes NULL */

/* The file that records go to, and the other one. */
unsigned journal_current(const struct journal *j);
/* The transaction before the first of the current file. */
uint64_t journal_base_seq(const struct journal *j);
/* Whether the other file has a use that begins after the current one: none of this log. */
bool journal_has_later(const struct journal *j);
/*
 * Begins a new use, whose first record will be base_seq + 1: of the other file; or,
 * where the log was cut before the current one begins, of that. 0 or negative errno.
 */
int journal_turn(struct journal *j, uint64_t base_seq);
/* Bytes of records that still fit into the current file. */
size_t journal_room(const struct journal *j);
size_t journal_capacity(const struct journal *j);
/* What a record of `size` bytes takes. */
size_t journal_record_size(size_t size);
/*
 * 0, or a negative errno and nothing was appended. After -EROFS the file is in a
 * state that no further record may follow.
 */
int journal_append(struct journal *j, enum journal_kind kind, uint64_t seq, uint64_t durable_seq,
		   const void *bytes, size_t size);
int journal_append_anchor(struct journal *j, uint64_t seq, uint64_t durable_seq,
			  const struct journal_anchor *anchor);
/* 0, -ENOENT (the file is no longer in any directory), other errno. */
int journal_sync(struct journal *j, unsigned file);

/* ---- replay ------------------------------------------------------------ */

struct journal_record {
	uint64_t seq;
	const uint8_t *bytes; /* changes; borrowed until the callback returns */
	size_t size;
	bool durable; /* it is known to have been synced */
};

/* What a look at both files found; the callback of journal_replay comes later. */
struct journal_state {
	uint64_t durable_seq; /* the highest that any record tells of */
	uint64_t end_seq; /* the last transaction of the log; nothing follows or what follows never counted */
	bool anchored; /* `anchor` is the newest */
	struct journal_anchor anchor;
	bool clean; /* the anchor is the last thing in the log and says so */
	bool cut; /* with `damage`: what precedes the log's end can be believed */
	const char *damage; /* why the log must not be believed, static words, or NULL */
};

/*
 * Follows the log from `applied_seq` (what the index holds) and finds where it
 * ends. 0 with `ret_state` filled, also when it found damage; negative errno.
 */
int journal_examine(struct journal *j, uint64_t applied_seq, struct journal_state *ret_state);
/*
 * After journal_examine: calls `apply` for each transaction above `applied_seq`
 * up to the log's end. A positive result of `apply` ends the log before that
 * record (only for records not `durable`), a negative one is returned.
 */
int journal_replay(struct journal *j, uint64_t applied_seq, uint64_t durable_seq,
		   int (*apply)(void *data, const struct journal_record *record), void *data);
/* Gives the memory of both back. The next thing to append needs a journal_turn: a replayed file is never appended to. */
void journal_replayed(struct journal *j);

#endif
