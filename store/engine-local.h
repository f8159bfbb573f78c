/*
 * engine-local.h - the state of the local engine, for the files engine-local*.c.
 *
 * A change goes: segment data, journal record, overlay; then it is
 * acknowledged. A thread of the engine moves generations of the overlay into
 * the index. README.md tells the whole of it.
 *
 * Locks, in this order:
 *     commit   one transaction at a time: journal, last_seq, contents of `open`
 *     maps     which generations there are, and their contents for readers
 *     control  what the thread is asked for and what it did
 *     group    the group sync: who leads, how far
 * A reader copies from the generations and renews its snapshot of the index in
 * ONE section of `maps`; a generation is dropped in another, after its commit.
 * So nothing is seen half, and nothing needs counting.
 */
#ifndef STORE_ENGINE_LOCAL_H
#define STORE_ENGINE_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/change.h"
#include "store/crew.h"
#include "store/engine.h"
#include "store/journal.h"
#include "store/lmdb-index.h"
#include "store/overlay.h"
#include "store/segment.h"
#include "store/space.h"
#include "store/value.h"

#define LOCAL_GENERATION_BYTES (UINT64_C(24) << 20)
#define LOCAL_GENERATION_ITEMS \
	8000 /* entries of the index, and as many chunks that are to be merged */
/* Of the merges' segment, what only transactions that release may use for the chunks they cut. */
#define LOCAL_MERGE_RELEASING (UINT64_C(1) << 20)

/* What the thread is to do; by `control`. */
struct local_control {
	bool stop;
	bool requested; /* a checkpoint, now */
	bool drain; /* ... and all that was freed given back */
	uint64_t requests; /* counted, so that a waiter knows its own is done */
	uint64_t finished; /* requests up to this one */
	uint64_t rotations; /* counted: the open generation is a new one */
	uint64_t failures; /* counted: checkpoints that did not come about */
	int result; /* of the last checkpoint */
};

struct engine_local {
	struct engine engine;
	const struct keyring *keys;
	struct key_codec codec;
	int dir_fd;
	bool read_only; /* opened so */
	bool discard; /* store_open_options.discard_journal */
	uint64_t generation_bytes;

	struct index *index;
	struct segments *segments;
	struct crew *crew; /* seals and unseals */

	pthread_mutex_t commit;
	struct journal *journal; /* by `commit` */
	uint64_t last_seq; /* by `commit` */
	bool journal_dirty[JOURNAL_FILES]; /* by `commit`: appended to since the last sync began */
	struct space space; /* by `commit` */

	pthread_mutex_t maps;
	struct overlay *open; /* pointers by `maps`; contents changed under both, read under either */
	struct overlay *sealed; /* never changed; NULL while none is being committed */
	uint64_t drops; /* by `maps`: generations that were dropped */

	pthread_mutex_t control_lock;
	pthread_cond_t wake; /* the thread */
	pthread_cond_t done; /* whoever waits for it */
	struct local_control control;
	/* When things happened that the thread answers to, by the monotonic clock; 0 = not. */
	_Atomic int64_t unsynced_ns; /* first change since the last sync began */
	_Atomic int64_t first_ns; /* first change of the open generation */
	_Atomic int64_t last_ns; /* last change */
	_Atomic int64_t freed_ns; /* first FREE of the open generation */
	_Atomic int64_t forget_ns; /* FREE items are to be removed, runs to be given back */
	_Atomic int64_t failed_ns; /* the last checkpoint failed */
	_Atomic int64_t touched_ns; /* first look-up or change since pages of the index were unmapped */
	_Atomic int64_t rested_ns; /* they were unmapped; freed memory is still to go back */
	pthread_t thread;
	bool thread_runs;

	pthread_mutex_t group_lock;
	pthread_cond_t group_done;
	bool group_leads; /* somebody syncs; by `group`, as all below */
	_Atomic uint64_t durable_seq;

#define LOCAL_READING 16
	_Atomic uint64_t reading[LOCAL_READING]; /* where the last reads ended, by body */

	/* The thread's own, or open's before it runs. */
	uint64_t applied_seq;
	struct segment_end ends[SEGMENT_STREAMS]; /* streams when the last generation was sealed, the merges' apart */
	size_t ends_count;
	bool anchor_owed; /* the last commit has no anchor yet */
	bool anchor_unsynced; /* the anchor of the last commit, or the header of the current journal, is not on disk */
	struct buffer value; /* scratch */
	struct buffer merged; /* struct body_run: written by the checkpoint that is under way */
	struct buffer released; /* struct body_run: let go by it */
	struct buffer lost; /* struct body_run: written by one that failed */
	struct buffer punched; /* struct key: FREE items whose runs were given back */
	bool free_bodies; /* there may be FREE bodies to walk */
	bool free_runs; /* there may be FREE runs to give back */
	_Atomic bool forget_damaged; /* FREE runs that do not unseal are to be forgotten */

	_Atomic int error; /* negative errno that stopped writing, or 0 */
	const char *_Atomic problem;
	_Atomic bool unreadable; /* the last checkpoint failed, since file data under a change cannot be read */
	_Atomic bool unpunched; /* the last space that was freed could not be given back */
	_Atomic uint64_t checkpoints, syncs, replayed, free_pending, waits;
	_Atomic int64_t longest_wait_ns; /* of a transaction, for room */
};

/* A checkpoint cannot be made before the disk reads what lies under a change: to be tried again. */
#define LOCAL_UNREADABLE (-ENODATA)

/* A run in a segment that nothing refers to any more. */
struct body_run {
	uint32_t segment;
	uint32_t offset;
	uint32_t length; /* in the segment: a multiple of BODY_ALIGN */
};

static inline struct engine_local *local_of(struct engine *e)
{
	return (struct engine_local *)e;
}

int64_t local_now_ns(void);
/* Stops writing for good; the first one counts. `words` are static. Returns -EIO. */
int local_fail(struct engine_local *e, int error, const char *words);
/* The same for what journal_sync returned. */
int local_fail_journal(struct engine_local *e, int error);

/* ---- engine-local-commit.c --------------------------------------------- */

int local_transact(struct engine *engine, enum store_purpose purpose, const struct store_op *ops,
		   size_t count, uint64_t *ret_version);
void local_yield(struct engine *engine);
/*
 * Applies the changes of transaction `seq` to the open generation. For replay;
 * no other thread may be there. 0, -EBADMSG, -ENOMEM, -EIO.
 */
int local_apply(struct engine_local *e, const uint8_t *bytes, size_t size, uint64_t seq);

/* ---- engine-local-read.c, -query.c, -scan.c ------------------------------ */

int local_get(struct engine *engine, const struct key *key, bool attributes_only,
	      struct store_value *ret_value);
int local_query(struct engine *engine, const struct store_query *query, struct store_page *ret_page);
int local_scan(struct engine *engine, const struct key *from, struct key *ret_key);
/* Under `maps`: the item as the generations have it, a deleted one too, or NULL. */
struct overlay_item *local_find(struct engine_local *e, const uint8_t *key, size_t key_size);

/* ---- engine-local-body.c ----------------------------------------------- */

int local_body_read(struct engine *engine, uint64_t body, uint64_t offset, void *buffer, size_t size);
int local_body_seek(struct engine *engine, uint64_t body, uint64_t offset, bool data,
		    uint64_t *ret_offset);
int local_body_usage(struct engine *engine, uint64_t body, uint64_t *ret_bytes);
/* A whole chunk by its reference: ref->length bytes. 0, -EBADMSG (no such bytes), -EIO, -ENOMEM. */
int local_chunk_read(struct engine_local *e, uint64_t body, uint64_t index,
		     const struct body_ref *ref, uint8_t *ret_bytes);

/* ---- engine-local-sync.c ----------------------------------------------- */

int local_sync(struct engine *engine);
/* Returns when everything up to `seq` survives power loss. */
int local_sync_to(struct engine_local *e, uint64_t seq);
int local_checkpoint(struct engine *engine);
/* Asks for a checkpoint without waiting; waits for the next one to end. Neither with a lock held. */
void local_checkpoint_request(struct engine_local *e);
int local_checkpoint_wait(struct engine_local *e, bool drain);
/* Whether somebody asked for a checkpoint since the last one began. */
bool local_checkpoint_asked(struct engine_local *e);
/* Waits until the open generation is another than when `seen` was read, or a checkpoint failed, or had nothing to do. */
uint64_t local_rotations(struct engine_local *e);
int local_rotation_wait(struct engine_local *e, uint64_t seen);
/* The thread is to look at the times again. */
void local_wake(struct engine_local *e);
int local_thread_start(struct engine_local *e);
void local_thread_stop(struct engine_local *e);

/* ---- engine-local-checkpoint.c; all of the thread, or of open and close while it does not run ---- */

/* Moves the open generation into the index, if it has anything; commits what else there is to. 0 or negative errno. */
int local_checkpoint_run(struct engine_local *e);
/* At open, after a replay: commits it, turns to a fresh journal, and has an anchor in it on disk. 0, LOCAL_UNREADABLE, other errno. */
int local_checkpoint_replayed(struct engine_local *e);
/* At close: everything, and an anchor that says so. */
int local_checkpoint_last(struct engine_local *e);
/* Appends the anchor of the index's present state. `clean`: the store is being closed. */
int local_anchor(struct engine_local *e, bool clean);
/* Seals and puts a value of one box into the transaction being written. */
int local_put_attrs(struct engine_local *e, const uint8_t *key, size_t key_size, uint64_t version,
		    const void *attrs, size_t attrs_size);

/* What the engine keeps in the index for itself. */
struct local_state {
	uint64_t applied_seq;
	uint32_t next_segment;
	struct segment_end ends[2 * SEGMENT_STREAMS];
	size_t ends_count;
};

/* 0, -EBADMSG, other errno. */
int local_state_read(struct engine_local *e, struct local_state *ret_state);
int local_state_put(struct engine_local *e, uint64_t applied_seq);

/* ---- engine-local-rest.c ------------------------------------------------ */

/* Something is read or changed: the thread is to give memory back after it. */
void local_touch(struct engine_local *e);
static inline void local_note_touch(struct engine_local *e)
{
	if (!atomic_load_explicit(&e->touched_ns, memory_order_relaxed))
		local_touch(e);
}
/* Of the thread: one step of giving memory back. */
void local_rest(struct engine_local *e);

/* ---- engine-local-replay.c ------------------------------------------------ */

/* Reads the journals into the open generation. 0, STORE_DAMAGED with `report` filled, negative errno. */
int local_replay(struct engine_local *e, struct store_open_report *report, bool *ret_clean);
/* Gives back what a crash left in segments and nothing refers to. Before the replay is committed. */
int local_reclaim(struct engine_local *e, const struct local_state *state);

/* ---- engine-local-discard.c ------------------------------------------------ */

/*
 * The journal cannot be believed, for the reason `why` (static words):
 * STORE_DAMAGED with `report` filled, or, if that was asked for, 0: go on without
 * what follows. Then copies of the journals are on disk. Negative errno.
 */
int local_discard(struct engine_local *e, const char *why, struct store_open_report *report);
/* Fills `report` for damage that nothing here can do anything about. STORE_DAMAGED. */
int local_damaged(struct store_open_report *report, const char *what);

/* ---- engine-local-verify.c ------------------------------------------------ */

struct local_verdict {
	bool damaged; /* the structure: items may be missing */
	uint64_t unreadable; /* items whose seal does not hold */
	char text[128];
};

/* Reads the whole index in a child process, since a damaged one may kill who reads it. 0 or negative errno. */
int local_verify(int dir_fd, const struct keyring *keys, uint64_t map_bytes,
		 struct local_verdict *ret_verdict);

/* ---- engine-local-scrub.c ------------------------------------------------- */

int local_verify_running(struct engine *engine, bool (*stop)(void *data, bool held), void *data,
			 const char **ret_wrong);

/* ---- engine-local-unused.c ------------------------------------------------ */

int local_unused(struct engine *engine, bool give_back, uint64_t *ret_bytes);

/* ---- engine-local-merge.c ------------------------------------------------ */

/* Writes the changed chunks of a generation and their BODY items into the transaction. 0, LOCAL_UNREADABLE, other errno. */
int local_merge(struct engine_local *e, struct overlay *o);

/* ---- engine-local-free.c ------------------------------------------------ */

/* Notes a run of the commit under way as let go. */
int local_release(struct engine_local *e, const struct body_ref *ref);
/* In the transaction: FREE items for what was let go, none for what was given back, some of the bodies that were freed. */
int local_free_write(struct engine_local *e);
/* After a commit, or after one that failed. */
void local_free_committed(struct engine_local *e);
void local_free_aborted(struct engine_local *e, bool passes);
/* Gives runs back that FREE names. `all`: also those in segments that are being appended to. */
int local_free_punch(struct engine_local *e, bool all);
/* Punches and commits until nothing is left to be given back, or an error. */
int local_free_drain(struct engine_local *e);

#endif
