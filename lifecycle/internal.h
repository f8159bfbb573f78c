/*
 * internal.h - what the files of lifecycle/ share. Private to them.
 *
 * Order of locks: turn -> lock (lifecycle_lock) -> hooks (the caller's own
 * locks) -> one of the small mutexes below, which are leaves.
 */
#ifndef LIFECYCLE_INTERNAL_H
#define LIFECYCLE_INTERNAL_H

#include <pthread.h>

#include "lifecycle/lifecycle.h"
#include "store/util.h"

#define MINUTE_NS (60 * CLOCK_SECOND_NS)
#define HOUR_NS (60 * MINUTE_NS)
#define DAY_NS (24 * HOUR_NS)
#define BUSY_AGAIN_NS (30 * CLOCK_SECOND_NS) /* what is due but open is looked at again */

/* ---- policy.c: what is in force in a directory ------------------------------ */

enum policy_value {
	POLICY_RETENTION,
	POLICY_VERSIONS,
	POLICY_TEMPORARY,
	POLICY_GRACE,
	POLICY_TRASH_MAX,
	POLICY_TRASH_MAX_ENTRIES,
	POLICY_LOW_SPACE,
	POLICY_PROTECT,
	POLICY_HOLD,
	POLICY_VALUES
};

/* Values set by xattrs, nearest first; bit n of `set` says whether value n is. */
struct policy_values {
	int64_t value[POLICY_VALUES];
	uint64_t setter[POLICY_VALUES]; /* the directory that sets it */
	unsigned set;
};

/* One id, or that there are none, or several. */
struct only_id {
	enum {
		ONLY_NONE,
		ONLY_ONE,
		ONLY_SEVERAL
	} count;
	uint32_t id;
};

/* Who could search every directory from the root to, not including, one. */
struct reach {
	bool others;
	bool groups;
	struct only_id closed_to_others; /* groups of those that others may not search */
	struct only_id closed_to_owners; /* owners of those that neither group nor others may search */
};

enum cap_unit { /* what a cap counts */
	CAP_BYTES,
	CAP_ENTRIES,
	CAP_UNITS
};

/* All that a deletion in a directory needs to know of what is above it. */
struct rules {
	uint64_t directory; /* 0: empty slot of the cache */
	uint64_t generation; /* of the cache, when it was kept */
	uint64_t capped[CAP_UNITS]; /* the nearest directory that sets trash_max, trash_max_entries */
	struct policy policy;
	struct policy_values user, trusted;
	struct reach reach; /* of those above it */
	struct reach below; /* ... and through it: of what is in it */
	bool live; /* neither it nor any directory above it is deleted */
};

#define RULES_CACHE_BITS 10
#define RULES_CACHE_SIZE (1 << RULES_CACHE_BITS)

struct rules_cache {
	pthread_mutex_t mutex;
	uint64_t generation; /* bumped when rights, places or policies change */
	struct rules *slots; /* RULES_CACHE_SIZE, by id */
};

#define POLICY_GRACE_MAX_NS (30 * DAY_NS) /* bounds how far ahead an undo of a purge looks */

/* ret_hint may be NULL. */
int policy_parse_value(const char *xattr, const char *text, size_t size,
		       enum policy_value *ret_which, int64_t *ret_number, const char **ret_hint);
void policy_set_value(struct policy *policy, enum policy_value which, int64_t number);

int rules_init(struct rules_cache *cache);
void rules_release(struct rules_cache *cache);
int rules_load(struct lifecycle *l, uint64_t directory, struct rules *ret_rules);
void rules_settle_policy(struct rules *rules); /* what the values that are set come to */
/* Another one: a directory moved, or rights or policies changed. */
uint64_t rules_generation(struct lifecycle *l);
/* One directory was removed: cheaper than forgetting all. */
void rules_forget(struct lifecycle *l, uint64_t directory);
/* Permission bits of `own` that anybody had through the directories above. */
uint32_t rules_mask(const struct rules *rules, const struct item *own);

/* ---- created.c: who made what, for temporary names -------------------------- */

#define CREATED_SIZE 4096 /* the last that many; a power of two */

struct created {
	pthread_mutex_t mutex;
	struct created_entry {
		uint64_t id;
		uint64_t start;
		int64_t boot_ns;
		uint32_t pid;
	} * entries;
};

int created_init(struct created *c);
void created_release(struct created *c);
/* Whether the actor made the item at most `within_ns` ago. */
bool created_by(struct lifecycle *l, const struct actor *actor, uint64_t id, int64_t within_ns);

/* ---- batch.c: open batches ---------------------------------------------------- */

struct open_batch {
	struct open_batch *next;
	struct batch record; /* as it would be closed now */
	int64_t opened_boot_ns;
	int64_t last_boot_ns;
	bool recorded; /* its record stands in the store */
};

/* The batch that a deletion (or purge) by the actor belongs to. Lock held. 0, negative errno. */
int batch_join(struct lifecycle *l, const struct actor *actor, bool purge, uint64_t directory,
	       struct open_batch **ret_batch);
/* Puts the record of a batch whose first entry is in `t`. */
void batch_add(struct transaction *t, const struct open_batch *b);
/* After the commit. */
void batch_count(struct lifecycle *l, struct open_batch *b, uint64_t seq, uint64_t bytes);
int batch_close(struct lifecycle *l, struct open_batch *b);
/* Closes one by its id, if it is open. */
int batch_close_id(struct lifecycle *l, uint64_t seq);
/*
 * Closes those idle for long enough, or all. *ret_next_boot_ns: when the next
 * is due, ITEM_FOREVER if none is open.
 */
int batch_close_idle(struct lifecycle *l, bool all, int64_t *ret_next_boot_ns);
/* Closes what a crash left open. */
int batch_recover(struct lifecycle *l);
/* Removes records of which no entry is left, a few at a time. The lock is not held. */
int batch_prune(struct lifecycle *l);
/* Adds to `t` that `count` entries of a batch came back. 0, negative errno. */
int batch_add_restored(struct lifecycle *l, struct transaction *t, uint32_t uid, uint64_t seq,
		       uint64_t count);

/*
 * Adds to `t` that a deletion was handed down to `count` more entries, which are
 * of its batch and within its range then. The batch must not be open.
 */
int batch_add_entries(struct lifecycle *l, struct transaction *t, const struct deletion *d,
		      uint64_t last_seq, uint64_t count, uint64_t bytes);

/*
 * Calls `row` for the rows that belong to a batch: of TRASH, newest first, or, of
 * a purge, of EXP. At most `bound` rows are looked at, 0 = all. 1: stopped by
 * `row`, which returned true; 0: there are no more; BATCH_BOUND: the bound was met.
 */
#define BATCH_BOUND 2
int batch_rows(struct lifecycle *l, const struct batch *batch, uint64_t bound,
	       bool (*row)(void *data, uint64_t seq, const struct trash_row *row), void *data);

/* ---- time.c: the rules of the clock ------------------------------------------- */

#define WATCH_BOOT_ID_SIZE 16

struct watch {
	pthread_mutex_t mutex;
	int64_t real_ns, boot_ns; /* where both clocks last agreed; by mutex, as all below */
	bool anchored; /* they agreed in this boot; else real_ns is what the wall clock must first reach */
	bool suspect; /* the wall clock is ahead of what the boot clock bears out */
	int64_t suspect_real_ns, suspect_boot_ns; /* since when it has run steadily, if suspect */
	bool behind;
	int64_t behind_boot_ns; /* since when it has been behind */
	uint8_t boot_id[WATCH_BOOT_ID_SIZE];
};

int watch_open(struct lifecycle *l);
int watch_store(struct lifecycle *l);
void watch_release(struct watch *w);
/* The time that destruction goes by; *ret_suspect: nothing is to be destroyed. */
int64_t watch_steady_ns(struct lifecycle *l, bool *ret_suspect);
int64_t time_add(int64_t ns, int64_t duration_ns); /* saturates at ITEM_FOREVER */

/* ---- step.c: one transaction, and what the hooks are told after it ------------- */

struct step {
	struct transaction t;
	struct lifecycle_change *changes;
	size_t changed;
	size_t capacity;
	size_t bytes; /* about what the transaction holds */
	bool entries; /* the files that it destroys are entries, each to be remembered */
};

void step_reset(struct step *step);
void step_release(struct step *step);
/* Whether `operations` more, with about `bytes`, still fit. */
bool step_has_room(struct lifecycle *l, const struct step *step, size_t operations, size_t bytes);
/* `to` NULL: destroyed. */
void step_moved(struct step *step, const struct item *item, const struct place *from,
		const struct place *to);
/* tree_commit, then the hooks. Lock held. */
/*
 * Whether the step moves an item of that id: a file has one LINK, which stands
 * once in a transaction.
 */
bool step_has_item(const struct step *step, uint64_t id);
int step_commit(struct lifecycle *l, struct step *step, enum store_purpose purpose);
size_t item_bytes(const struct item *item);

/* ---- rows: what stands beside a deleted item ----------------------------------- */

void deletion_row(struct lifecycle *l, const struct place *at, const struct deletion *d,
		  struct trash_row *ret_row);
/*
 * Puts TRASH (unless it is temporary) and EXP, which names the batch of the
 * purge if it was purged.
 */
void deletion_put_rows(struct lifecycle *l, struct transaction *t, const struct place *at,
		       const struct deletion *d, uint64_t due_batch);
void deletion_delete_rows(struct transaction *t, const struct place *at, const struct deletion *d);
/* Puts the item with `d` in the place of its deletion and moves its EXP row. */
void deletion_change(struct lifecycle *l, struct transaction *t, const struct place *at,
		     const struct item *item, const struct deletion *d, uint64_t due_batch);

/* ---- within.c: what the deleted directories around a place decide for all in it ------ */

struct within {
	bool inside; /* there are any */
	bool hidden; /* one is purged or doomed */
	bool pinned; /* one is being restored */
	uint64_t batch; /* of the nearest */
	uint64_t top; /* id of the outermost that went with it in that batch: the entry */
	int64_t expires_ns; /* when that does */
	int64_t shown_until_ns; /* the first time that one of them expires ... */
	int64_t kept_until_ns; /* ... a restore's pin taken into account */
};

struct within_cache {
	pthread_mutex_t mutex;
	struct within_slot *slots; /* by id */
};

int within_init(struct within_cache *cache);
void within_release(struct within_cache *cache);
/* Of what is in `directory`, which may be deleted itself. 0, -ENOENT (it, or one above it, is gone), negative errno. */
int within_load(struct lifecycle *l, uint64_t directory, struct within *ret_within);
/* Of what is in, or is, something deleted in there: with its directory's batch it stays as long as that does. */
struct within within_enter(const struct within *outer, uint64_t id, const struct deletion *d);
bool within_shows(const struct within *w, int64_t now_ns);

/* ---- standing.c: where an item stands in what was deleted ----------------------- */

struct standing {
	bool deleted; /* itself, or a directory above it */
	bool visible; /* nothing that holds it is expired, purged or doomed */
	bool pinned; /* its top is being restored */
	int64_t expires_ns;
	struct place top; /* the entry it went with: itself, or a deleted directory */
	uint64_t top_id;
	struct deletion deletion; /* of top */
};

/* `item` is what is at `at`. -ENOENT: a directory above it is gone. */
int standing_load(struct lifecycle *l, const struct place *at, const struct item *item,
		  struct standing *ret);
/* Whether a deleted item went with a directory, so that it is no top entry: looks no further up than the next deleted one. */
int standing_joined(struct lifecycle *l, const struct place *at, const struct item *item,
		    bool *ret_joined);
/* The place and item that a row of TRASH or EXP names. 0, STORE_ABSENT, negative errno. */
int standing_row_item(struct lifecycle *l, const struct key *key, bool attributes_only,
		      struct place *ret_at, struct store_value *ret_value, struct item *ret_item);

/* ---- trash.c ------------------------------------------------------------------- */

/* As lifecycle_removal_prepare; `whole`: a directory goes with what is in it. */
int removal_prepare(struct lifecycle *l, struct removal *r, const struct actor *actor,
		    enum item_cause cause, uint64_t replaced_by, struct tree_directory *parent,
		    const struct item *victim, bool whole);
void removal_add(struct lifecycle *l, struct removal *r, struct tree_directory *parent,
		 struct transaction *t, bool whole);
/* Deletes SHD#name of a directory that leaves its place, if it stands. */
int shadow_delete(struct lifecycle *l, struct transaction *t, const struct place *at);
/*
 * Marks as being destroyed: never visible again, due now. Lock held. 0,
 * STORE_CONFLICT, negative errno.
 */
int deletion_doom(struct lifecycle *l, const struct place *at, const struct item *item,
		  enum item_counter cause);

/* Destroys a version over the cap, or, while it is open, dooms it. Lock held. As destroy_file. */
int evict_version(struct lifecycle *l, const struct place *at);
/* Whether at least `cap` versions of the name are newer than that at `at`: 1, 0, negative errno. */
int versions_are_newer(struct lifecycle *l, const struct place *at, uint32_t cap);

/* ---- outgoing.c: what a directory that is to go whole has to know ------------------ */

struct outgoing {
	struct outgoing *next; /* by lock, as all below */
	uint64_t directory;
	uint64_t generation; /* of the rules, when it was asked for: since then nothing moved */
	int64_t until_ns;
	bool listed, asked;
};

/* Around a removal that takes what bears the name with all in it; the lock is not held. */
void outgoing_begin(struct lifecycle *l, struct outgoing *o, uint64_t parent, const char *name);
void outgoing_end(struct lifecycle *l, struct outgoing *o);
/* The latest expiry of anything deleted in or below a live directory. Lock held. */
int outgoing_until(struct lifecycle *l, uint64_t directory, int64_t *ret_until_ns);
/* Something was deleted in a directory, and is kept until then. Lock held. */
void outgoing_note(struct lifecycle *l, uint64_t directory, int64_t until_ns);

struct ids {
	uint64_t *items;
	size_t count, capacity;
};
int ids_push(struct ids *ids, uint64_t id);

/* ---- remove-damaged.c ------------------------------------------------------------- */

/*
 * A removal met something that cannot be read. REMOVE_AGAIN: it was made again,
 * try once more; 0: what was to be removed is destroyed; STORE_CONFLICT;
 * -EBADMSG: what is damaged lies elsewhere; other errno. Lock held.
 */
#define REMOVE_AGAIN 4
int remove_damaged(struct lifecycle *l, uint64_t directory, const char *shown, bool as_directory);
/*
 * The same for an entry of the trash, or something live in a deleted directory;
 * the lock is not held. -EPERM: on hold.
 */
int purge_damaged(struct lifecycle *l, const struct place *at);
/*
 * The end of an entry that cannot be read, of which `key` is the item's, and
 * `due` that of its row in EXP. STORE_CONFLICT: it is a directory, which can be
 * read again and is due as it was. Lock held. 0, STORE_ABSENT, -EPERM (on hold),
 * other errno.
 */
int destroy_damaged(struct lifecycle *l, const struct key *key, const struct key *due, int64_t due_ns);
/* How long a deleted directory is kept whose record, and with it its expiry, was lost. */
#define RETENTION_LOST_NS (30 * DAY_NS)

/* ---- shadow.c -------------------------------------------------------------------- */

/*
 * Removes the mark of a directory, and of those above it, in which nothing
 * deleted is left. Lock held. `gone`: NULL, or what has just left the trash.
 */
int shadow_prune(struct lifecycle *l, uint64_t directory, const struct place *gone);
/*
 * Whether a directory's partition has deleted items or shadows: 1, 0, negative
 * errno. Whoever empties it piece by piece in the order of keys leaves a growing
 * number of tombstones at its beginning: behind `gone` (may be NULL) is looked first.
 */
int shadow_needed(struct lifecycle *l, uint64_t directory, const struct place *gone);
/* Whether a range has no row: 1, 0, negative errno. */
int range_is_empty(struct store *s, const struct key_range *range);

/* ---- walk.c ---------------------------------------------------------------------- */

enum walk {
	WALK_ON,
	WALK_PAST,
	WALK_STOP
};
/*
 * Shows `visit` every item below a directory, whatever its state, parents before
 * children; WALK_PAST: not what is in it. The item has no content. No lock is
 * needed: what changes meanwhile may be missed or seen twice. 0, 1 (stopped),
 * negative errno.
 */
int walk_below(struct lifecycle *l, uint64_t directory,
	       enum walk (*visit)(void *data, const struct place *at, const struct item *item),
	       void *data);

/* ---- destroy.c -------------------------------------------------------------------- */

struct destroyed {
	uint64_t items, bytes;
};

/*
 * Destroys what stands at a place, all below it included, in steps: it takes the
 * lock for each (as background work), so it must not be held. *budget counts
 * down by items; at 0 it stops and returns 1: call again. -EBUSY: something in
 * it is still open, or its deletion is no longer as `decided`, which is what
 * called for this: its purge was undone, its restore begun. -EPERM: it, or a
 * directory in it, is on hold. STORE_ABSENT is no outcome: what is gone is done.
 */
int destroy_entry(struct lifecycle *l, const struct place *at, const struct deletion *decided,
		  enum item_counter cause, uint64_t *budget, struct destroyed *total);
/* A single file, with the lock held. 0, STORE_ABSENT, -EBUSY, -EISDIR, -EPERM, negative errno. */
int destroy_file(struct lifecycle *l, const struct place *at, enum item_counter cause,
		 struct destroyed *total);
/*
 * Adds the destruction of a file to a step. 0; -EBUSY; DESTROY_FLUSH: commit
 * what the step has first (no room, or another name of the same file is in it).
 */
#define DESTROY_FLUSH 2
int destroy_add_file(struct lifecycle *l, struct step *step, const struct place *at,
		     const struct item *item, enum item_counter cause, struct destroyed *total);
/* By which counter a due entry goes. */
enum item_counter destroy_cause(const struct deletion *d, int64_t now_ns);
/* ... which one that is DOOMED says in place of why it was deleted, so that whoever ends it after a crash knows. */
uint8_t destroy_doomed_cause(enum item_counter cause);
/* Whether hold is in force for an item, or for a directory below it: 1, 0, negative errno. */
int destroy_is_held(struct lifecycle *l, const struct place *at, const struct item *item);

bool place_equal(const struct place *a, const struct place *b);

/* ---- entries.c: one entry; for entry-list.c -------------------------------------------- */

struct damaged;

/* Whether an item shows where `around` is in force; *ret_expires_ns is set in any case. */
bool entry_visible(struct lifecycle *l, const struct within *around, const struct item *item,
		   enum key_state state, int64_t *ret_expires_ns);
/* Fills `e` from a place if it shows. 0, STORE_ABSENT (not there or hidden), negative errno. */
int entry_load(struct lifecycle *l, const struct within *around, const struct place *at,
	       const char *shown, struct entry *e);
/* Makes the entry one that can only be removed. 0, STORE_ABSENT (hidden), negative errno. */
int entry_damaged(struct lifecycle *l, const struct within *around, const struct damaged *d,
		  const char *shown, struct entry *e);
/* A reference shows its file's attributes; what is its own (place, deletion) stays. */
int entry_merge_link(struct lifecycle *l, struct entry *e);
/* A name whose LINK cannot be read keeps its own id, type and place. */
void entry_link_damaged(struct entry *e);
/* The live sub-directory below which something was deleted. 0, STORE_ABSENT, negative errno. */
int entry_find_shadow(struct lifecycle *l, uint64_t directory, const char *name, struct entry *e);
/*
 * Whether a listing shows something under exactly this name already: a deleted
 * item, or a live one inside a deleted directory.
 */
int entry_name_taken(struct lifecycle *l, const struct within *around, uint64_t directory,
		     const char *name, bool *ret_taken);

/* ---- entry-name.c: names with a time ------------------------------------------------- */

/* "name@2026-11-30T16:25:39.041Z" with `digits` (0 to 9) of fraction. */
void entry_name_format(const char *name, uint64_t seq, unsigned digits,
		       char ret_shown[ENTRY_NAME_MAX + 1]);
/* Splits such a name. The seqs it can mean are [*ret_from, *ret_to). */
bool entry_name_parse(const char *shown, char ret_name[KEY_NAME_MAX + 1], uint64_t *ret_from,
		      uint64_t *ret_to);
/* The shortest fraction that tells `seq` from its neighbours (0 = none) of the same name. */
unsigned entry_name_digits(uint64_t seq, uint64_t newer, uint64_t older);

/* ---- history.c ---------------------------------------------------------------------- */

#define HISTORY_BYTES 1200 /* that one record adds to a transaction, at the most */

/* Before long work, the lock not held: finds the number of the last record, for which all are read. */
void history_prepare(struct lifecycle *l);
/*
 * Adds to `t`, which destroys it, what became of an entry; `file` is the item,
 * or a reference's LINK. One operation. Lock held.
 */
void history_add(struct lifecycle *l, struct transaction *t, const struct place *at,
		 const struct item *item, const struct item *file, enum item_counter cause);

/* ---- purge.c ---------------------------------------------------------------------- */

/* As lifecycle_purge, with a grace of its own; < 0: that of the policy. The lock is not held. */
int purge_entry(struct lifecycle *l, const struct actor *actor, const struct place *at,
		bool recursive, int64_t grace_ns);
/*
 * A purged entry is in the trash again, as if nobody had purged it; one of the
 * entries of the purge's batch (0: it is not known) has come back. What expired
 * meanwhile is kept until held_until_ns; 0: it is -ENOENT, as what is not purged.
 * One attempt, with the lock held: 0, STORE_CONFLICT, negative errno.
 */
int purge_take_back(struct lifecycle *l, const struct place *at, int64_t held_until_ns,
		    uint32_t uid, uint64_t batch);

/* ---- restore.c, restore-tree.c, restore-origin.c ------------------------------------ */

struct restoring {
	const struct actor *actor;
	unsigned flags;
	bool (*progress)(void *data, uint64_t done);
	void *data;
	uint64_t done; /* items that came back */
	struct place to; /* where the last one is now */
};

/* As lifecycle_restore and lifecycle_restore_origin; the lock is not held. */
int restore_entry(struct lifecycle *l, struct restoring *r, const struct place *at, uint64_t parent,
		  const char *name);
int restore_to_origin(struct lifecycle *l, struct restoring *r, const struct place *at, char **ret_path);
/*
 * The item alone, with the lock held: a directory without what was deleted in
 * it. Retries by itself.
 */
int restore_one(struct lifecycle *l, struct restoring *r, const struct place *at, uint64_t parent,
		const char *name);
/* Makes the item that was deleted under `seq` a live one, with the times it had. */
void restore_revive(struct item *item, uint64_t seq, int64_t now_ns);
/*
 * Gives a directory that comes back from the deletion `by` (a batch, or a number of
 * its own) the time it had before, and notes that this is it.
 */
void restore_settle_time(struct item *directory, uint64_t by);
/*
 * Everything of `batch` that was deleted below `directory` comes back to where
 * it was; `top` is what is being restored.
 */
int restore_tree(struct lifecycle *l, struct restoring *r, uint64_t directory, uint64_t batch,
		 const struct place *top);
int restore_tell(struct restoring *r, uint64_t count); /* 0 or -EINTR */
/* What the actor's rights say to a move: 0, negative errno. */
int restore_ask(const struct restoring *r, const struct restore_move *move);
/*
 * Whether an item could come back as `name` in `parent`, which may still be in
 * the trash itself, as things stand now. 0, negative errno.
 */
int restore_check(struct lifecycle *l, const struct restoring *r, const struct place *at,
		  const struct item *item, uint64_t parent, const char *name);

/* ---- cap.c: trash_max, trash_max_entries ---------------------------------------------- */

/* What is known of the trash below a directory that sets one. */
struct cap {
	uint64_t directory;
	enum cap_unit unit;
	int64_t limit; /* as last seen */
	uint64_t amount; /* no less than what is there ... */
	bool known; /* ... if this is set */
	uint64_t stays; /* what was left when all that may go went: no need to look again at no more than that */
	uint64_t used; /* when it was last needed */
};

struct caps {
	struct cap *items; /* by directory and unit */
	size_t count, capacity;
	uint64_t uses;
};

void caps_release(struct caps *caps);
int64_t cap_limit(const struct policy *policy, enum cap_unit unit);
/* Something of that size went to the trash where `rules` are in force. Lock held. */
void cap_note(struct lifecycle *l, const struct rules *rules, const struct item *item, bool whole);
/* What stayed may go now: a hold may have ended. Lock held. */
void cap_note_policy_changed(struct lifecycle *l);
/* A cap that stands on the directory itself is to be measured, whatever was deleted since. Lock held. */
void cap_expect(struct lifecycle *l, const struct rules *rules);
/*
 * From the rules that say which directory sets a cap to those above that
 * directory. 1; 0: no cap of that unit is set there, and *rules is of no use;
 * negative errno.
 */
int cap_rules_above(struct lifecycle *l, enum cap_unit unit, struct rules *rules);
/* Copies of those that may be over; the caller frees. NULL: there are none. The lock is not held, nor for the next two. */
int cap_collect_over(struct lifecycle *l, struct cap **ret_over, size_t *ret_count);
/* It was measured since the copy was made; `finished`: and all went that may. */
void cap_settle(struct lifecycle *l, const struct cap *before, uint64_t amount, bool finished);
void cap_drop(struct lifecycle *l, const struct cap *dropped);

/* ---- evict.c: the oldest go -------------------------------------------------------------- */

/*
 * Evicts the oldest entries of what is over its cap. The lock is not held.
 * *budget as destroy_entry's.
 */
int evict_over_caps(struct lifecycle *l, uint64_t *budget, struct destroyed *total);
/*
 * Destroys entries, oldest first, until they held `bytes` together or *budget
 * is used up: only those purged, or only the others. Of what is on hold, open
 * or damaged, nothing. The lock is not held.
 */
int evict_oldest(struct lifecycle *l, uint64_t bytes, bool purged, uint64_t *budget,
		 struct destroyed *total);
/* Bytes that an entry holds, with all that went with it. */
int measure_entry(struct lifecycle *l, const struct item *item, uint64_t *ret_bytes);

/* ---- room.c: when the disk is full, or nearly ------------------------------------------- */

struct room {
	pthread_mutex_t mutex; /* a leaf: not held while room is made */
	pthread_cond_t ended;
	bool busy; /* somebody makes room; by mutex */
	uint64_t made; /* how often something went; by mutex */
	bool no_purged; /* none was found, and nothing was purged since; by lock */
	int64_t in_vain_boot_ns; /* when nothing was to be had, last, or 0; whoever is busy's */
};

void room_init(struct room *r);
void room_release(struct room *r);
/*
 * The low-space rule, if it is set: one bounded step. *ret_again_ns: after how
 * long to look again, ITEM_FOREVER if it is off.
 */
int room_keep(struct lifecycle *l, uint64_t *budget, struct destroyed *total, int64_t *ret_again_ns);

/* ---- sweeper.c ---------------------------------------------------------------------- */

struct sweeper {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop, kicked;
	int64_t next_ns; /* when it will look again */
};

int sweeper_init(struct sweeper *s);
void sweeper_release(struct sweeper *s);
/*
 * Something is due at that time, or a batch was opened: look again if that is
 * sooner than planned.
 */
void sweeper_expect(struct lifecycle *l, int64_t due_ns);

/* ---- lifecycle.c --------------------------------------------------------------------- */

#include "lifecycle/scrub.h"

/* How background steps hold the lock: see hold.c. All of it by that lock. */
struct hold {
	int64_t since_ns; /* the one that holds it now has it, 0: no background step does */
	int64_t waited_ns; /* what its thread had waited for a processor by then */
	pthread_t thread; /* whose `schedstat` is open */
	int schedstat; /* -1: none */
	struct lifecycle_holds seen;
};

void hold_init(struct hold *h);
void hold_release(struct hold *h);
void hold_begin(struct hold *h); /* a background step has the lock */
void hold_end(struct hold *h); /* whoever has it gives it up */
bool hold_is_over(const struct hold *h); /* enough for one step */

struct lifecycle {
	struct store *store;
	struct lifecycle_hooks hooks;
	pthread_mutex_t turn; /* held while waiting for `lock`; background work holds it longer */
	pthread_mutex_t background; /* one background step waits at a time */
	pthread_mutex_t lock;
	struct hold hold; /* by lock */
	struct outgoing *outgoing; /* by lock */
	struct rules_cache rules;
	struct within_cache within;
	struct created created;
	struct open_batch *batches; /* by lock */
	struct key prune_from; /* by lock: where batch_prune goes on */
	struct caps caps; /* by lock */
	struct room room;
	uint64_t history_number; /* of the last record, 0: not known yet; by lock */
	_Atomic bool history_known; /* it need not be looked for */
	struct watch watch;
	struct sweeper sweeper;
	struct scrub scrub;
};

/*
 * As lifecycle_lock, for steps of long work: whoever else waits goes first, and
 * the store is given time for what was done before. Ended by lifecycle_unlock.
 */
void lifecycle_lock_background(struct lifecycle *l);
/* Whether the step that holds the lock has had its time, and is to end with what it did. Lock held. */
bool lifecycle_hold_is_over(const struct lifecycle *l);
void lifecycle_free(struct lifecycle *l); /* without writing anything: what a crash does */
bool lifecycle_is_busy(struct lifecycle *l, uint64_t id, const struct place *only);

#endif
