/*
 * store.h - the partitioned item store: get, query, transact, bodies, sync.
 *
 * No cursors, no open transactions, no pointers into storage: whatever is
 * returned was copied out, so the layers above run alike on the local engine,
 * on the one in memory, and later on DynamoDB. Callers read, decide, write with
 * conditions, and on STORE_CONFLICT read again (store_retry).
 *
 * Results: 0 is success, a negative errno a failure, a positive value one of
 * the outcomes below. Every function may be called from any thread.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/clock.h"
#include "store/key.h"

struct store;

enum store_outcome {
	STORE_ABSENT = 1, /* get: no such item */
	STORE_CONFLICT = 2, /* transact: a condition did not hold; nothing was done */
};

/*
 * What an item holds: two boxes, so that a listing opens only the first. The
 * version is the number of the transaction that wrote the item; a key never
 * sees one version twice, whatever happens to it in between.
 */
struct store_value {
	uint64_t version;
	const uint8_t *attrs;
	size_t attrs_size;
	const uint8_t *content; /* NULL when only attributes were asked for */
	size_t content_size;
	void *memory; /* owns both; store_value_release frees it */
};

void store_value_release(struct store_value *v); /* takes NULL and zeroed */

/*
 * Reads one item. 0, STORE_ABSENT, -EBADMSG (the item is damaged: never
 * reported as absent), -EIO, -ENOMEM. May block on disk, never on a writer.
 */
int store_get(struct store *s, const struct key *key, bool attributes_only, struct store_value *ret_value);

struct store_query {
	struct key_range range;
	const struct key *after; /* NULL, or: exclusive start in the direction of reading */
	size_t limit; /* rows at the most, 0 = the engine's choice */
	bool reverse;
	bool attributes_only;
};

struct store_row {
	const uint8_t *key;
	size_t key_size;
	struct store_value value; /* its memory belongs to the page */
	bool damaged; /* the value cannot be trusted and is empty; the key is true */
};

/* A page may be short. With `more`, the next one starts `after` next; it may turn out empty. */
struct store_page {
	struct store_row *rows;
	size_t count;
	bool more;
	struct key next;
	void *memory;
};

int store_query(struct store *s, const struct store_query *query, struct store_page *ret_page);
void store_page_release(struct store_page *page); /* takes NULL and zeroed */

enum store_op_kind {
	STORE_PUT,
	STORE_DELETE,
	STORE_CHECK, /* writes nothing; its condition must hold */
	STORE_EMPTY, /* holds if `range` has no item at commit; `key` is the guard, see below */
	STORE_ADD, /* counter `counter` of item `key` += delta; unconditional, commutes */
	STORE_BODY_WRITE, /* `bytes` at `offset` of `body` */
	STORE_BODY_ZERO, /* the range reads as zeros from now on and is given back where it can be */
	STORE_BODY_TRUNCATE, /* all from `offset` on is gone and reads as zeros */
	STORE_BODY_FREE, /* the body is destroyed, its id never used again; its space comes back in the background */
};

enum store_condition {
	STORE_ANY, /* never for namespace items */
	STORE_IF_ABSENT,
	STORE_IF_PRESENT,
	STORE_IF_VERSION,
};

/*
 * STORE_EMPTY is sound only if whoever adds an item in `range` does a
 * STORE_CHECK or put of the guard in the same transaction, and whoever uses
 * STORE_EMPTY puts or deletes the guard in its own. The guard's op is given
 * apart; `key` names it for engines that need it. Like all conditions it is
 * about the state before the transaction.
 */
struct store_op {
	enum store_op_kind kind;
	enum store_condition condition;
	uint64_t version; /* STORE_IF_VERSION */
	struct key key;
	const uint8_t *attrs; /* STORE_PUT; borrowed until the call returns */
	size_t attrs_size;
	const uint8_t *content;
	size_t content_size;
	struct key_range range; /* STORE_EMPTY */
	unsigned counter; /* STORE_ADD: 0 to STORE_COUNTERS_MAX - 1 */
	int64_t delta;
	uint64_t body; /* STORE_BODY_* */
	uint64_t offset;
	uint64_t length; /* STORE_BODY_WRITE, STORE_BODY_ZERO */
	const void *bytes; /* STORE_BODY_WRITE; borrowed */
};

#define STORE_COUNTERS_MAX 16 /* counters of one counter item, each an int64_t */

/*
 * What a transaction is for decides what it may use when space is short: a
 * STORE_RELEASING one (deletion, restore, destruction) may use the reserve that
 * every item paid for when it was created.
 */
enum store_purpose {
	STORE_GROWING,
	STORE_RELEASING,
};

/*
 * All of `ops` or nothing, at one moment. A key stands in at most one op
 * (ADD and BODY ops excepted). 0 and the version given to every item put,
 * STORE_CONFLICT, -ENOSPC, -EFBIG (limits), -EINVAL (malformed), -EROFS (the
 * store stopped writing, see store_status), -EIO, -ENOMEM. When it returns 0
 * the change survives the death of this process; store_sync makes it survive
 * power loss. May block while the engine makes room, never on readers.
 */
int store_transact(struct store *s, enum store_purpose purpose, const struct store_op *ops,
		   size_t count, uint64_t *ret_version);

/*
 * How many transactions so far may have put a directory to another place or changed a deletion of
 * one (see transaction.h), each counted when it is done: whoever remembers what follows from
 * either keeps this number with it, as it was before he read.
 */
uint64_t store_moves(const struct store *s);

/*
 * Before each step of long work: returns when less than half of what may wait
 * for a checkpoint does, so that whoever else writes does not wait until this
 * work's changes, of which there may be a million, are in their place. Blocks
 * for a checkpoint at the most.
 *
 * What the caller owes: it holds no lock, nor anything that a thread waits for
 * which others need; and a step is short, some hundred operations, as nothing
 * stops it once begun. What it gets is no reservation: the step itself, and what
 * others write at the same time, come on top of the half, so the other half is
 * there for them as a rule, not by promise. Where it was not, a transaction waits
 * as it does for any other writer's.
 */
void store_yield(struct store *s);

/*
 * Reads `size` bytes at `offset`; what was never written is zeros, also past
 * the end: the file's size is the caller's to know. 0, -EBADMSG (damaged or
 * missing chunk), -EIO, -ENOMEM.
 */
int store_body_read(struct store *s, uint64_t body, uint64_t offset, void *buffer, size_t size);
/* Offset of the next byte at or after `offset` that is data (or hole); UINT64_MAX if there is none. */
int store_body_seek(struct store *s, uint64_t body, uint64_t offset, bool data, uint64_t *ret_offset);
/* Bytes the body occupies, in units of what the engine allocates. */
int store_body_usage(struct store *s, uint64_t body, uint64_t *ret_bytes);

/*
 * The smallest key of any partition at or after `from` (NULL = the first one):
 * what `check` walks the whole store by. 0 or STORE_ABSENT. Bodies and what
 * waits to be given back are partitions too.
 */
int store_scan(struct store *s, const struct key *from, struct key *ret_key);

/*
 * Verifies the structure of what is on disk while the store is in use: that no
 * key of it hides another. *ret_wrong: NULL, or what is wrong (static words).
 * `stop` is asked now and then; it may wait where `held` is false: then nothing
 * is held. 0, -EINTR (stopped), negative errno. Changes and reads go on.
 */
int store_verify(struct store *s, bool (*stop)(void *data, bool held), void *data, const char **ret_wrong);

/*
 * How many bytes on the disk belong to nothing: a crash or damage may leave such.
 * `give_back`: they are given back to the disk. 0 where a record that would have to
 * say what it needs cannot be read. The store is quiet. 0 or negative errno.
 */
int store_unused(struct store *s, bool give_back, uint64_t *ret_bytes);

/* Returns when everything acknowledged before the call survives power loss. 0, -EIO (and from then on). Blocks. */
int store_sync(struct store *s);
/* Brings all that is pending to its final place and gives freed space back now. For umount, tests, `sweep`. Blocks. */
int store_checkpoint(struct store *s);

/* A fresh id for an item, directory or body. Never given twice, also after a crash. */
int store_new_id(struct store *s, uint64_t *ret_id);
/* A fresh sequence number: the store's clock in nanoseconds, strictly increasing, over mounts too. */
int store_new_seq(struct store *s, uint64_t *ret_seq);
/* The store's clock: never behind the greatest seq given out, never running backwards. Nanoseconds since 1970. */
int64_t store_now_ns(struct store *s);
/*
 * While held, the store's clock goes by the boot clock from `real_ns` at
 * `boot_ns` on: a jump of the wall clock that nobody confirmed yet must not
 * enter the sequence numbers, which could never come back from it.
 */
void store_hold_clock(struct store *s, bool hold, int64_t real_ns, int64_t boot_ns);

/*
 * The marks below which all that was ever given out lies: no id is at or above
 * *ret_next_id, no sequence number above *ret_last_seq. For `check`.
 */
int store_marks(struct store *s, uint64_t *ret_next_id, uint64_t *ret_last_seq);

struct store_limits {
	size_t operations; /* in one transaction */
	size_t transaction_bytes;
	size_t item_bytes; /* key and both boxes */
	size_t inline_bytes; /* content up to this belongs in the item, more in a body */
	size_t write_bytes; /* in one STORE_BODY_WRITE */
};

const struct store_limits *store_limits(const struct store *s);
const struct key_codec *store_codec(const struct store *s);
const uint8_t *store_id(const struct store *s); /* 16 bytes */
const struct clock *store_clock(const struct store *s);

struct store_space {
	uint64_t total_bytes; /* of the file system below */
	uint64_t free_bytes; /* what ordinary writes may still use, the reserve taken off */
	uint64_t used_bytes; /* of the file system below, by whoever uses it */
	uint64_t reserve_bytes;
};

int store_space(struct store *s, struct store_space *ret_space);

struct store_status {
	bool read_only; /* after a failed sync: nothing is written any more */
	int error; /* negative errno that caused it, or 0 */
	const char *problem; /* static words for it, or NULL */
	uint64_t checkpoints, syncs, journal_bytes, overlay_bytes, replayed;
	uint64_t waits; /* transactions that waited for a checkpoint to make room */
	int64_t longest_wait_ns; /* ... and how long at the most */
	uint64_t free_pending; /* runs and bodies waiting to be given back */
	uint64_t gets, queries, rows; /* reads of items since it was opened, and what the queries returned */
	bool memory_locked;
};

void store_status(struct store *s, struct store_status *ret_status);

/*
 * A loop around "read, decide, transact" for STORE_CONFLICT: 
 *     struct store_retry r = { 0 };
 *     do result = attempt(); while (store_retry(&r, &result));
 * After its bound (64 tries, with growing pauses from the 4th) it turns the
 * conflict into -EAGAIN.
 */
struct store_retry {
	unsigned tries;
};
bool store_retry(struct store_retry *r, int *result);

/* ---- making, opening, closing ---------------------------------------- */

enum store_names {
	STORE_NAMES_DEFAULT, /* sealed with a passphrase or key file, ordered without */
	STORE_NAMES_ORDERED,
	STORE_NAMES_SEALED,
};

/* What unwraps the master key. All NULL: the key that lies in the store's own directory. */
struct store_credentials {
	const char *passphrase;
	const char *key_file; /* path; its bytes are the key */
};

#define STORE_TRASH_NAME_MAX 64 /* bytes */

struct store_create_options {
	struct store_credentials credentials;
	enum store_names names;
	unsigned kdf_level; /* 0 = libsodium's MODERATE, 1 = INTERACTIVE, 2 = SENSITIVE, 3 = least (tests) */
	uint64_t journal_bytes; /* of each of the two journals, 0 = 32 MiB; not below 1 MiB */
	const char *trash_name; /* NULL = ".trash" */
};

/*
 * Makes a store in the directory `path`, which may exist if it is empty.
 * 0, -EEXIST (a store is there), -ENOTEMPTY (something else is), -EINVAL, other errno.
 * A crash in the middle leaves a directory that store_open says is no store.
 */
int store_create(const char *path, const struct store_create_options *options);

enum store_open_error {
	STORE_NOT_A_STORE = 10, /* nothing there, or something else */
	STORE_IN_USE = 11, /* `holder_pid` of the report has it */
	STORE_WRONG_KEY = 12,
	STORE_TOO_NEW = 13, /* made by a later version: format in the report */
	STORE_DAMAGED = 26, /* `text` says what and where */
};

struct store_open_options {
	struct store_credentials credentials;
	const struct clock *clock; /* NULL = the system's */
	bool read_only; /* for check: no lock is taken away, nothing is written; needs a store nobody has open */
	bool discard_journal; /* a journal that cannot be believed does not keep the store from being opened: see the report */
	bool mend; /* numbers that do not unseal (ids, clock) are made again, not refused: see the report */
	bool verify; /* verify the whole structure, whatever its size */
	uint64_t map_bytes; /* LMDB map, 0 = 1 TiB; small ones are for tests */
	uint64_t generation_bytes; /* bound of one overlay generation, 0 = 24 MiB; small ones are for tests */
};

/*
 * Why an open did not succeed, in words for the user. Of one that did: why the
 * store stopped writing when it was last used, or "".
 */
struct store_open_report {
	int holder_pid;
	unsigned format;
	bool mended; /* the numbers of ids or clock were made again */
	bool discarded; /* the store was opened without what its journal held; `text` says why, and where a copy is */
	char text[384];
};

/*
 * 0 and a store to be closed with store_close; one of store_open_error; or a
 * negative errno. Starts the engine's thread: call it after any fork. `report`
 * may be NULL. Nothing is written unless the key is right.
 */
int store_open(const char *path, const struct store_open_options *options,
	       struct store_open_report *ret_report, struct store **ret_store);

/* Everything to disk, then closed. 0, or the error that kept something from its place (the store opens again). */
int store_close(struct store *s);

/*
 * Whether a store could be made with these: 0, or a negative errno with
 * `ret_report` saying what is wrong with which of them (missing, unreadable,
 * empty, too short or too long, not a plain file). For messages before
 * store_create and store_change_key, which refuse the same.
 */
int store_check_credentials(const struct store_credentials *credentials,
			    struct store_open_report *ret_report);

/*
 * Adds a slot for the new credentials, of which one must be given; removes all
 * others if `replace`. 0; one of store_open_error; -E2BIG if all slots are taken;
 * or another negative errno. `ret_report` may be NULL. `new_credentials` NULL:
 * changes nothing, but says whether the old ones open it.
 */
int store_change_key(const char *path, const struct store_credentials *old_credentials,
		     const struct store_credentials *new_credentials, bool replace,
		     struct store_open_report *ret_report);

/*
 * Whether some process has the store open: 1 and its number (0: not known), 0,
 * negative errno.
 */
int store_holder(const char *path, int *ret_pid);

const char *store_trash_name(const struct store *s); /* ".trash", or as the store was made */

/* A store in memory, with the strictest limits of all engines. For tests, and as the reference. */
int store_open_memory(const struct clock *clock, enum store_names names, struct store **ret_store);

/*
 * Faults of the store in memory, counted in transactions from the call on: at
 * the n-th (from 1), once. 0 = none.
 */
struct store_faults {
	uint64_t conflict_at; /* STORE_CONFLICT, although nothing changed */
	uint64_t lost_answer_at; /* done, but answered with -EIO as if it had failed */
	uint64_t error_at; /* not done, -EIO */
	uint64_t no_space_at; /* not done, -ENOSPC, for growing ones */
	void (*before)(void *data, uint64_t n); /* another client's change: may itself transact (not counted) */
	/*
	 * What reading answers instead, from the call on: of an item or a row, or (`key` NULL) of a body
	 * from `offset` on. 0: as it is; -EBADMSG: damaged; another errno. Must not call the store.
	 */
	int (*read)(void *data, const uint8_t *key, size_t key_size, bool attributes_only,
		    uint64_t body, uint64_t offset);
	void *data;
};
void store_memory_inject(struct store *s, const struct store_faults *faults);

#endif
