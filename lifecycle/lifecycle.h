/*
 * lifecycle.h - every way an item changes state: removed, restored, purged,
 * expired, destroyed; with the policies, batches and clock rules that decide.
 *
 *       create             rm, rmdir, replaced               due
 *     ---------->  ACT#  -------------------->  DEL#  ---------------> destroyed
 *                   ^                            |
 *                   +------- restore, undo ------+
 *
 * Each arrow but the last is one transaction. See README.md here for states,
 * transactions and what a crash leaves.
 *
 * Locking: a change of the tree (everything here but the reads, and every
 * change in fs/namei.c except file data and attributes) runs under
 * lifecycle_lock, one for the whole store: a change costs microseconds, the
 * engine orders commits one by one anyway, and conflicts never happen locally
 * but between a file's data and its name, where store_retry repeats. The
 * functions below take it themselves unless they say otherwise. Long work
 * (undo, sweep, empty) gives it up between its steps.
 *
 * Results as store.h, plus the outcomes below.
 */
#ifndef LIFECYCLE_LIFECYCLE_H
#define LIFECYCLE_LIFECYCLE_H

#include <sys/types.h>

#include "lifecycle/tree.h"
#include "store/store.h"

struct lifecycle;
struct rights;

/*
 * Who does it. `pid` is the thread group's, as is `start` (boot ticks; 0
 * unknown): together they name a process.
 */
struct actor {
	uint32_t uid;
	uint32_t gid;
	uint32_t pid; /* 0: unknown (another pid namespace) */
	uint32_t group; /* process group */
	uint32_t session;
	uint64_t start;
	char command[ITEM_COMMAND_MAX + 1];
	const uint32_t *groups; /* supplementary; borrowed; NULL if not looked up */
	size_t groups_count;
	const struct rights *rights; /* borrowed; NULL: what he does was permitted before it came here */
};

/*
 * Told after the commit, with the lock still held: a node must follow its item.
 * Must not call lifecycle.
 */
struct lifecycle_change {
	uint64_t id;
	uint32_t mode;
	struct place from;
	struct place to; /* to.name[0] == 0: destroyed */
	bool temporary; /* to a DEL place, or staying at one, without an entry: tell when it is released */
	bool empty; /* a live directory that went alone: nothing was live in it */
};

struct lifecycle_hooks {
	void (*changed)(void *data, const struct lifecycle_change *change);
	/*
	 * Whether the kernel still holds a file that was removed while it may have been open; with
	 * `only`, by that of its names and no other. May be NULL: never.
	 */
	bool (*busy)(void *data, uint64_t id, const struct place *only);
	void (*damaged)(void *data, const char *line); /* the scrub found something; from its thread; may be NULL */
	void *data;
};

/*
 * Opens on a formatted store (tree_format); -ENOENT if it is not. Closes open
 * batches left by a crash. `hooks` (copied) may be NULL.
 */
int lifecycle_open(struct store *s, const struct lifecycle_hooks *hooks, struct lifecycle **ret_lifecycle);
void lifecycle_close(struct lifecycle *l); /* closes open batches, stores the clock; takes NULL */
struct store *lifecycle_store(struct lifecycle *l);

void lifecycle_lock(struct lifecycle *l);
void lifecycle_unlock(struct lifecycle *l);

/* How steps of long work (sweeping, emptying, restoring a tree) held that lock since the store was opened. */
struct lifecycle_holds {
	uint64_t steps;
	int64_t longest_ns; /* what others may have waited for one */
	int64_t longest_own_ns; /* ... but for what its thread waited for a processor */
	uint64_t long_steps; /* whose own was more than LIFECYCLE_HOLD_LONG_NS */
};
#define LIFECYCLE_HOLD_LONG_NS 10000000
void lifecycle_holds(struct lifecycle *l, struct lifecycle_holds *ret_holds);

/* ---- removing ---------------------------------------------------------- */

/*
 * unlink(2) (directory = false) or rmdir(2): 0, -ENOENT, -EISDIR, -ENOTDIR,
 * -ENOTEMPTY, -EPERM (protect).
 */
int lifecycle_remove(struct lifecycle *l, const struct actor *actor, uint64_t parent,
		     const char *name, bool directory);
/*
 * What lifecycle_remove can remove although it cannot be read: the live item
 * `shown` in a directory. With sealed names that is its name, or the one a
 * listing gives to a damaged item (lifecycle_damaged_name). 0 and how it shows;
 * STORE_ABSENT: nothing is there, or nothing is wrong with it; negative errno.
 */
int lifecycle_damaged(struct lifecycle *l, uint64_t directory, const char *shown,
		      struct place *ret_at, struct item *ret_item);
/* The same of the item at a place, whatever its state. */
int lifecycle_damaged_at(struct lifecycle *l, const struct place *at, struct place *ret_at,
			 struct item *ret_item);
/* Whether a name is of the form that listings give to damaged items whose own is sealed. */
bool lifecycle_is_made_up(struct lifecycle *l, const char *shown);
/* The name under which a damaged row of a directory is listed: its own, or, where that is sealed, one made up. False: none. */
bool lifecycle_damaged_name(struct lifecycle *l, const struct store_row *row,
			    char ret_name[KEY_NAME_MAX + 1]);
/* mv into .trash: as above, but a directory goes with all that is in it. */
int lifecycle_discard(struct lifecycle *l, const struct actor *actor, uint64_t parent, const char *name);

/*
 * For a rename that replaces: prepare (reads policy, marks shadows upwards, may
 * transact; lock held by the caller), add (puts the victim's new state into the
 * caller's transaction and changes `parent->own`, which the caller then puts),
 * and after the commit done(committed). `victim` is as record_get_item returned
 * it, content included, and must outlive done; -ENOTEMPTY is checked for
 * directories. prepare may load `parent` anew (its version moves when a shadow
 * is marked), so read nothing from it before. After a prepare that failed, done
 * is not called.
 *
 * The item at `from` is the caller's: he overwrites or deletes it at
 * victim.version. So is the row SHD#name when victim.flags has ITEM_SHADOWED:
 * he overwrites it if what takes the name is shadowed too, else deletes it.
 */
struct removal {
	const struct actor *actor;
	enum item_cause cause;
	uint64_t replaced_by;
	struct place from, to;
	struct item victim;
	struct item link; /* victim is a reference: its LINK */
	struct store_value link_value;
	struct guard guard; /* victim is a directory: as read */
	struct deletion deletion;
	int64_t now_ns;
	bool temporary;
	void *batch; /* private */
	uint64_t due_batch; /* private: of the row in EXP, if not deletion.batch */
	bool whole; /* private: a directory goes with what is in it */
	int64_t until_ns; /* private: of a directory, until when anything deleted in it, or below, is kept */
};
int lifecycle_removal_prepare(struct lifecycle *l, struct removal *r, const struct actor *actor,
			      enum item_cause cause, uint64_t replaced_by,
			      struct tree_directory *parent, const struct item *victim);
void lifecycle_removal_add(struct lifecycle *l, struct removal *r, struct tree_directory *parent,
			   struct transaction *t);
/* Also releases; calls the hook `changed`. */
void lifecycle_removal_done(struct lifecycle *l, struct removal *r, bool committed);

/* Marks `directory` and all above it as having trash below (SHD). Idempotent; lock held. */
int lifecycle_mark_shadows(struct lifecycle *l, uint64_t directory);

/*
 * Whether a directory and all above it are live: 0; -EROFS: it is in the trash,
 * if only with one above it. For whoever adds a name, under the lock in which he
 * does: a guard says nothing of the directories above.
 */
int lifecycle_check_live(struct lifecycle *l, uint64_t directory);
/* The same for whoever only asks: no lock. 0, -ENOENT (it is gone), negative errno. */
int lifecycle_in_trash(struct lifecycle *l, uint64_t directory, bool *ret_trash);

/*
 * fs/namei.c tells: who made an item (for temporary names), that it was
 * renamed, that rights, places or policies of directories changed.
 */
void lifecycle_note_created(struct lifecycle *l, const struct actor *actor, uint64_t id);
void lifecycle_note_renamed(struct lifecycle *l, uint64_t id);
void lifecycle_note_directory_changed(struct lifecycle *l);
void lifecycle_note_policy_changed(struct lifecycle *l); /* the same, and the sweeper looks at it; lock held */
/* Calls the hook `changed`, if there is one, for what fs/namei.c moved. Lock held. */
void lifecycle_notify_changed(struct lifecycle *l, const struct lifecycle_change *change);
/*
 * The kernel let go of an item that was removed as temporary, or purged, while
 * open: destroy it now if it is due. Lock not held.
 */
void lifecycle_note_released(struct lifecycle *l, uint64_t id, const struct place *at);

/* ---- entries: what the trash shows ------------------------------------- */

#define ENTRY_NAME_MAX 300 /* bytes of a shown name: a name, '@' and a time */

/* One name in a view. A shadow (a live sub-directory with trash below) has no deletion. */
struct entry {
	struct place at; /* of a shadow: the live directory's */
	struct item item; /* attributes; borrows from `value`; LINK merged in */
	struct store_value value;
	bool shadow;
	bool damaged; /* its record, or its LINK, cannot be read: `item` is made up (damage.h), it can only be removed */
	int64_t expires_ns; /* the effective one: with its directory, if it went with it */
	char shown[ENTRY_NAME_MAX + 1];
};
void entry_release(struct entry *e);

/*
 * What a view of `directory` lists. In the trash of a live directory: its
 * deleted items and its shadows. In a deleted directory (or a live one inside a
 * deleted one): its ACT# items and its deleted ones. The newest deletion bears
 * the name; older ones are `name@2026-11-30T16:25:39Z`, with a fraction of
 * 1 to 9 digits where a second holds several, always accepted with all 9.
 * Expired, purged, doomed and temporary ones are not there.
 */
int lifecycle_find(struct lifecycle *l, uint64_t directory, const char *shown,
		   struct entry *ret_entry); /* 0, -ENOENT */
/*
 * Lists from `after` (NULL = the start; else a key from an earlier call). Stops
 * when `row` returns true.
 */
int lifecycle_list(struct lifecycle *l, uint64_t directory, const struct key *after,
		   bool (*row)(void *data, const struct entry *entry, const struct key *key),
		   void *data);
/*
 * Effective expiry of a deleted place, with its directory where it went with
 * it; and whether it is visible now.
 */
int lifecycle_visibility(struct lifecycle *l, const struct place *at, int64_t *ret_expires_ns,
			 bool *ret_visible);

/* ---- restoring --------------------------------------------------------- */

/* One item about to come back, as its step read it. */
struct restore_move {
	const struct place *from;
	const struct item *item; /* attributes at least; of a reference, not the file's */
	const struct tree_directory *parent; /* receives it; in the trash itself while a way is planned */
	const struct item *victim; /* what it replaces; NULL: nothing */
};

/*
 * What an actor may, where nobody has asked yet: a restore finds out only step by
 * step which directories it moves, and where to. Asked of each entry and of each
 * directory that comes back to lead to one, before anything moves, and again in
 * the step that moves it; not of what comes back within a directory. Lock held
 * or not: must not call what takes it.
 */
struct rights {
	/* 0, or a negative errno, which ends the restore. */
	int (*restore)(void *data, const struct restore_move *move);
	void *data;
};

enum restore_flag {
	RESTORE_NOREPLACE = 1 << 0, /* an existing name: -EEXIST */
	/* An existing name: restored as "name (restored)", "name (restored 2)" ... */
	RESTORE_RENAME = 1 << 1,
	/* To the origin: brings missing parents back, empty, with their ids and attributes. */
	RESTORE_PARENTS = 1 << 2,
	/*
	 * Only what a rename replaced, and only where what replaced it still stands: that goes to
	 * the trash in the same transaction (a directory with all in it), replaced in its turn, so
	 * that a second swap undoes the first. -ESTALE: something else bears the name, or nothing.
	 */
	RESTORE_SWAP = 1 << 3,
};

/*
 * mv out of a view: the deleted item at `at` becomes `name` in `parent`. What
 * bears that name goes to the trash as rename(2) would have it (-EISDIR,
 * -ENOTDIR, -ENOTEMPTY). A directory comes with its batch, deepest first, in
 * steps, itself last. An ACT# item inside a deleted directory moves out too.
 * 0, -ENOENT (no longer there, or expired), -EEXIST, -ENOTDIR. May be long:
 * `progress` (may be NULL) is told the count of items done; true stops (-EINTR;
 * what was restored stays, the same call continues).
 */
int lifecycle_restore(struct lifecycle *l, const struct actor *actor, const struct place *at,
		      uint64_t parent, const char *name, unsigned flags,
		      bool (*progress)(void *data, uint64_t done), void *data);
/* The same; *ret_path (malloc'd) is the path it has now. */
int lifecycle_restore_as(struct lifecycle *l, const struct actor *actor, const struct place *at,
			 uint64_t parent, const char *name, unsigned flags,
			 bool (*progress)(void *data, uint64_t done), void *data, char **ret_path);

/*
 * Restores to where it was. *ret_path (malloc'd; `ret_path` may be NULL) is the
 * path it has now. -ENOENT: also when its directory is in the trash and
 * RESTORE_PARENTS is not given. -ENOTDIR: a parent is a file now; *ret_path is
 * then that one's path, or NULL.
 */
int lifecycle_restore_origin(struct lifecycle *l, const struct actor *actor, const struct place *at,
			     unsigned flags, bool (*progress)(void *data, uint64_t done),
			     void *data, char **ret_path);

/* ---- batches and undo -------------------------------------------------- */

/*
 * Newest first; of one uid, or of all (uid = UINT32_MAX). Open ones are given
 * with the counts they have so far.
 */
int lifecycle_batches(struct lifecycle *l, uint32_t uid,
		      bool (*row)(void *data, const struct batch *batch), void *data);

enum undo_taken { /* what to do when a name is taken */
	UNDO_REFUSE, /* nothing moves at all */
	UNDO_SKIP,
	UNDO_RENAME,
	UNDO_REPLACE,
};

struct undo_options {
	/*
	 * 0 = the caller's last of which not all is back: of his session first. A purge
	 * counts only while something of it can come back.
	 */
	uint64_t batch;
	/*
	 * Only what was deleted in or below this directory; without a batch: of the last
	 * deletion, whoever's, of which a part is back already and more may come back by
	 * `allowed`; if only that forbids it, its answer. 0 = everywhere.
	 */
	uint64_t directory;
	enum undo_taken taken;
	const char *only; /* fnmatch(3) on names of top entries, or NULL */
	bool dry_run;
	/*
	 * Whether the caller may restore this top entry into the directory it lies in; asked
	 * before anything moves. 0 or negative errno. NULL = all.
	 */
	int (*allowed)(void *data, const struct place *at, const struct item *item);
	/* Each top entry as it is dealt with: path, item, result (0 or -errno). May be NULL. */
	void (*entry)(void *data, const char *path, const struct item *item, int result);
	bool (*progress)(void *data, uint64_t done, uint64_t total);
	void *data;
};

struct undo_result {
	struct batch batch;
	uint64_t restored; /* items, children included */
	uint64_t already; /* were back before */
	uint64_t skipped; /* name taken */
	uint64_t missing; /* expired or destroyed */
};

/*
 * 0; -ENOENT: nothing to undo; -EEXIST: a name is taken and nothing moved. What
 * `allowed` refuses is left and told to `entry`; -EACCES or -EPERM if that was
 * all.
 */
int lifecycle_undo(struct lifecycle *l, const struct actor *actor,
		   const struct undo_options *options, struct undo_result *ret_result);

/* ---- purging, emptying, sweeping --------------------------------------- */

/*
 * rm or rmdir inside a view: hidden at once, destroyed after its grace. A
 * directory goes with all in it (`recursive`) or must show nothing
 * (-ENOTEMPTY). -EPERM (hold).
 */
int lifecycle_purge(struct lifecycle *l, const struct actor *actor, const struct place *at,
		    bool recursive);

struct empty_options {
	uint64_t directory; /* trash in and below it; KEY_ID_ROOT = all */
	int64_t deleted_before_ns; /* 0 = all there is now */
	bool now; /* wait for no grace: destroy */
	bool dry_run;
	/* Whether the caller may purge this entry, with all that goes with it: asked of each top entry. NULL = all. */
	int (*allowed)(void *data, const struct place *at, const struct item *item);
	bool (*progress)(void *data, uint64_t done);
	void *data;
};
struct empty_result {
	uint64_t entries, bytes, refused;
};
/* The target is fixed at the start: what is deleted while it runs survives. */
int lifecycle_empty(struct lifecycle *l, const struct actor *actor,
		    const struct empty_options *options, struct empty_result *ret_result);

struct sweep_result {
	uint64_t destroyed;
	uint64_t bytes;
	int64_t next_due_ns; /* ITEM_FOREVER: nothing is waiting */
	bool more; /* the budget ended first */
	bool paused; /* the clock jumped and nobody confirmed it: nothing is destroyed */
};
/*
 * One bounded pass: at most `budget` items. No sleep, no thread: tests call it
 * with a fake clock.
 */
int lifecycle_sweep(struct lifecycle *l, uint64_t budget, struct sweep_result *ret_result);

/*
 * For a write that found no space: destroys what may go then (what was purged;
 * by the low-space rule the oldest of the trash). True: some went, try again. No
 * lock held; may take seconds.
 */
bool lifecycle_make_room(struct lifecycle *l);

/* The thread that sleeps until something is due, closes idle batches, and calls lifecycle_sweep. */
int lifecycle_sweeper_start(struct lifecycle *l);
void lifecycle_sweeper_stop(struct lifecycle *l);
/* The user confirmed the clock. */
int lifecycle_clock_accept(struct lifecycle *l);
bool lifecycle_clock_suspect(struct lifecycle *l, int64_t *ret_jump_ns);
/*
 * The time that expiry hides by: the wall clock, also while it is suspect, but
 * never behind the store's.
 */
int64_t lifecycle_now_ns(struct lifecycle *l);

/* ---- policy ------------------------------------------------------------ */

#define POLICY_PREFIX_USER "user.ddbfs."
#define POLICY_PREFIX_TRUSTED "trusted.ddbfs."
#define POLICY_NAMES \
	"retention, versions, temporary, grace, trash_max, trash_max_entries, low_space, protect, hold"

struct policy {
	int64_t retention_ns; /* 30 days; 0 at once; ITEM_FOREVER */
	uint32_t versions; /* 16; replaced ones of one name kept */
	int64_t temporary_ns; /* 60 s; 0 = off */
	int64_t grace_ns; /* 10 min */
	int64_t trash_max; /* bytes of trash below who sets it, 0 = no limit; the oldest go first */
	int64_t trash_max_entries; /* the same, counting what a listing shows */
	/*
	 * Where less than so many bytes are free on the disk below, the oldest of the trash goes;
	 * 0 = off. The root's is the store's; elsewhere it says nothing.
	 */
	int64_t low_space;
	bool protect;
	bool hold;
};
/* What is in force in a directory: each value from the nearest ancestor that sets it. Cached. */
int lifecycle_policy(struct lifecycle *l, uint64_t directory, struct policy *ret_policy);
/*
 * Whether `xattr` has one of the policies' prefixes, under which there is
 * nothing else to set; then whether `value` is valid for it: 0, -EINVAL with a
 * hint (static text).
 */
bool lifecycle_policy_name(const char *xattr);
/* Whether it is the whole store's, to be set on the root alone. */
bool lifecycle_policy_is_stores(const char *xattr);
int lifecycle_policy_parse(const char *xattr, const char *value, size_t size, struct policy *policy,
			   const char **ret_hint);

struct apply_options {
	uint64_t directory; /* live */
	bool dry_run;
	/* For a dry run: as if that were set on the directory (user.); -1: as it is. */
	int64_t retention_ns;
	int64_t versions;
	/* Whether the caller may have this item go sooner. NULL = all. */
	int (*allowed)(void *data, const struct place *at, const struct item *item);
	bool (*progress)(void *data, uint64_t done);
	void *data;
};
struct apply_result { /* top entries */
	uint64_t entries; /* there are */
	uint64_t changed; /* = gone + sooner + later */
	uint64_t gone, gone_bytes; /* expired by it, or versions over the cap */
	uint64_t sooner, later;
	uint64_t refused; /* would go sooner: others', or held */
};
/*
 * Gives what was deleted below a directory until now the expiry that the
 * policies now in force would have given it, versions their cap, and has caps on
 * the directory looked at. -EAGAIN: the clock is suspect; -EINTR: what was done
 * stays, the same call goes on; -EROFS: in the trash.
 */
int lifecycle_apply(struct lifecycle *l, const struct apply_options *options,
		    struct apply_result *ret_result);

/* ---- usage -------------------------------------------------------------- */

struct usage_amount {
	int64_t items, bytes;
};
struct usage {
	struct usage_amount live;
	struct usage_amount trash; /* = removed + replaced + purged = reclaimable + held */
	struct usage_amount removed, replaced;
	struct usage_amount purged; /* by hand, in their grace */
	struct usage_amount reclaimable; /* emptying it would give back */
	struct usage_amount held;
	struct usage_amount due; /* what goes by itself until the time asked for */
};
/*
 * What is in and below a live directory, KEY_ID_ROOT: the whole store. Everything
 * counts as what it is to its user: what lies in a deleted directory as deleted.
 * Long; takes no lock, so that what changes meanwhile may be missed or counted
 * twice. 0, -EINTR (`progress`, which may be NULL, returned true), -EROFS (in
 * the trash), negative errno.
 */
int lifecycle_usage(struct lifecycle *l, uint64_t directory, int64_t due_before_ns,
		    bool (*progress)(void *data, uint64_t done), void *data, struct usage *ret_usage);

/* ---- history ------------------------------------------------------------ */

#define HISTORY_MAX 4096 /* entries that were destroyed last and are remembered */

struct gone {
	enum item_counter cause; /* COUNTER_DESTROYED_... */
	int64_t destroyed_ns, deleted_ns;
	uint64_t size; /* of a file */
	uint32_t mode;
	uint32_t owner; /* of the item, if he could see it where it was; else root */
	uint32_t uid; /* who deleted it */
	char command[ITEM_COMMAND_MAX + 1];
	const char *path; /* where it was deleted; of a long one the end, without its first '/' */
};
/* Newest first, until `row` returns true. Takes no lock. */
int lifecycle_history(struct lifecycle *l, bool (*row)(void *data, const struct gone *gone), void *data);

/* ---- facts -------------------------------------------------------------- */

/*
 * Read-only xattrs of an entry: deleted_at, expires_at, deleted_by, origin,
 * batch, cause, key, each with POLICY_PREFIX_USER.
 */
extern const char *const lifecycle_fact_names[]; /* NULL-terminated, full names */
const char *lifecycle_cause_word(uint8_t cause); /* "removed", "replaced", ..., "damaged": static */
/* Text without NUL. Its length, -ENODATA (no such fact), negative errno. */
ssize_t lifecycle_fact(struct lifecycle *l, const struct entry *entry, const char *name,
		       char *buffer, size_t size);

/* ---- check -------------------------------------------------------------- */

/* ---- scrub: all is read now and then, in the background ------------------- */

struct scrub_status {
	bool enabled, active;
	uint64_t items, bytes; /* read in this pass, since the mount */
	uint64_t found; /* damaged, in this pass */
	uint64_t last_found; /* in the last that came to its end ... */
	int64_t finished_ns; /* ... and when that was; 0: none did */
};

/*
 * A thread that reads everything once a week, at 16 MiB a second, and goes on
 * where it was when the store was closed. Needs a store that can be written.
 */
int lifecycle_scrub_start(struct lifecycle *l);
void lifecycle_scrub_stop(struct lifecycle *l);
/* A pass now, at 128 MiB a second. -EOPNOTSUPP: there is no such thread. */
int lifecycle_scrub_now(struct lifecycle *l);
void lifecycle_scrub_status(struct lifecycle *l, struct scrub_status *ret_status);
/* The first of what this mount found, a line each; not to call back into the scrub. */
void lifecycle_scrub_found(struct lifecycle *l, void (*each)(void *data, const char *line), void *data);

struct check_result {
	uint64_t items, bodies, bytes, problems;
	uint64_t set_aside; /* damaged, but where lifecycle_quarantine put it */
	uint64_t unreadable; /* of the problems: those that were errors of the disk, which may pass */
	uint64_t unused_bytes; /* on the disk, that belong to nothing; no problem */
};
/*
 * Reads everything, verifies every seal and reference, recounts every counter.
 * `problem` is told each fault in words with its path. 0 (also with problems),
 * or a negative errno that kept it from going on. The store is quiet.
 */
int lifecycle_check(struct store *s, void (*problem)(void *data, const char *path, const char *text),
		    bool (*progress)(void *data, uint64_t done), void *data,
		    struct check_result *ret_result);

/*
 * Checks, and does about what is wrong what can be done (repair.h): what can be
 * made again is made again in its place, what is damaged goes to the directory
 * "lost+found" in the root, of which only the root's owner sees the inside.
 * `action` is told each thing done, with where it was. Repeated until nothing
 * more can be done; *ret_before is what the first check found, *ret_after what
 * is left. `aside` of the hooks: damage that is already set aside.
 */
#define QUARANTINE_NAME "lost+found"
struct quarantine_hooks {
	void (*problem)(void *data, const char *path, const char *text); /* as the first check finds it */
	void (*aside)(void *data, const char *path, const char *text);
	void (*action)(void *data, const char *path, const char *text);
	bool (*progress)(void *data, uint64_t done); /* true: stop */
	void *data;
};
int lifecycle_quarantine(struct store *s, const struct quarantine_hooks *hooks,
			 struct check_result *ret_before, struct check_result *ret_after);
/* lifecycle_check with the same hooks; `action` is not called. */
int lifecycle_check_told(struct store *s, const struct quarantine_hooks *hooks,
			 struct check_result *ret_result);

#endif
