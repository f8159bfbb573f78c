/*
 * model.h - the trash as its documents promise it, in plain memory: a tree of
 * nodes and names, each name live or deleted.
 *
 * Written from DESIGN.md and lifecycle/README.md, not from the code: it knows no
 * keys, rows, transactions or marks, only what a user can see of them. What it
 * cannot know by itself (ids, sequence numbers) it is told after the fact, and
 * from then on insists on.
 *
 * All of it lies in one struct without pointers, so that a history can put it
 * into memory shared with the process that goes on after a kill -9.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_NODES 2048
#define MODEL_NAMES 4096
#define MODEL_BATCHES 1024
#define MODEL_ROOT 1 /* node; 0 is none, of everything */

#define MODEL_SECOND INT64_C(1000000000)
#define MODEL_MINUTE (60 * MODEL_SECOND)
#define MODEL_HOUR (60 * MODEL_MINUTE)
#define MODEL_DAY (24 * MODEL_HOUR)
#define MODEL_FOREVER INT64_MAX

enum model_policy {
	MODEL_RETENTION,
	MODEL_VERSIONS,
	MODEL_TEMPORARY,
	MODEL_GRACE,
	MODEL_HOLD,
	MODEL_PROTECT,
	MODEL_TRASH_MAX, /* bytes; one of these two is set in one place, or nowhere */
	MODEL_TRASH_MAX_ENTRIES,
	MODEL_POLICIES
};

enum model_cause {
	MODEL_REMOVED,
	MODEL_REPLACED,
	MODEL_TEMPORARY_NAME, /* hidden from the start */
	MODEL_EXPIRED, /* of what is doomed: why it goes, in place of why it came */
	MODEL_EVICTED,
};

enum model_end { /* by which counter something was destroyed */
	MODEL_BY_USER,
	MODEL_BY_EXPIRY,
	MODEL_BY_VERSIONS,
	MODEL_BY_EVICTION,
	MODEL_ENDS
};

struct model_node {
	uint64_t id; /* told */
	bool directory;
	uint32_t mode, uid;
	uint32_t token, size; /* content: `size` bytes made from `token` */
	int64_t mtime_ns;
	bool several; /* a file that ever had two names */
	unsigned open; /* descriptors */
	uint32_t made_by; /* process; 0: nobody remembers */
	int64_t made_boot_ns;
	/* directories */
	int first; /* name in it */
	int own; /* its own name; 0: the root's, and of what was destroyed */
	uint32_t mask; /* what its view shows of its mode; of the bits of owner and others */
	int64_t until_ns; /* the latest expiry of anything deleted in it */
	int saved_batch;
	int64_t saved_mtime_ns;
	int64_t policy[MODEL_POLICIES];
	unsigned policies; /* which are set */
};

struct model_name {
	int node; /* 0: free */
	int directory;
	int next; /* in the directory */
	int text; /* index of model_texts */
	bool deleted;
	/* deleted ones */
	uint64_t seq; /* told; their order until then is that of `order` */
	uint64_t order;
	int batch;
	int purge_batch;
	int64_t expires_ns, destroy_ns;
	uint32_t uid;
	uint32_t command;
	enum model_cause cause;
	uint64_t replaced_by; /* id */
	bool purged;
	bool doomed; /* it was to be destroyed, and something open keeps it */
};

struct model_batch {
	uint64_t seq; /* told */
	uint32_t uid, group, session;
	bool purge, open, undone;
	int64_t opened_boot_ns, last_boot_ns;
	int64_t last_ns; /* by the time destruction goes by */
	unsigned count, restored;
	unsigned noted; /* how many there were when one came back while it was open: that outlives a crash */
};

struct model_actor {
	uint32_t uid, group, session, command;
};

#define MODEL_TEXTS 5 /* names that users make; texts above stand for "NAME (restored N)" */
#define MODEL_RENAMED 8 /* of each */

struct model {
	struct model_node nodes[MODEL_NODES];
	struct model_name names[MODEL_NAMES];
	struct model_batch batches[MODEL_BATCHES];
	int nodes_count, names_count, batches_count;
	bool rights; /* users are asked what they may do */
	uint64_t orders;
	uint64_t destroyed[MODEL_ENDS], restored;
	/* The clock, as it is at the operation. */
	int64_t now_ns; /* by which expiry hides */
	int64_t wall_ns; /* the wall clock's, by which files are made and written */
	int64_t steady_ns; /* by which things are destroyed */
	int64_t boot_ns;
	bool suspect;
	uint64_t done; /* items that came back in this operation */
	/* Names that got a sequence number or a batch in this operation, in order. */
	int fresh[MODEL_NAMES];
	int fresh_count;
};

void model_init(struct model *m, bool rights, int64_t now_ns);
const char *model_text(int text);

/* ---- looking ------------------------------------------------------------- */

/* The live name in a directory, or 0. */
int model_find(const struct model *m, int directory, int text);
bool model_is_live_directory(const struct model *m, int node); /* and all above it */
bool model_is_below(const struct model *m, int node, int ancestor);
int64_t model_policy(const struct model *m, int directory, enum model_policy which);
bool model_any_policy(const struct model *m, enum model_policy which); /* set anywhere */
bool model_holds(const struct model *m, int directory); /* is in force for what is in it */
bool model_is_held(const struct model *m, int name);
bool model_has_deleted_below(const struct model *m, int directory);
int model_links(const struct model *m, int node, bool live_only);

struct model_standing {
	bool deleted, visible;
	int top; /* name of the entry it went with: itself, or a deleted directory */
	int64_t expires_ns;
};
struct model_standing model_stand(const struct model *m, int name);

struct model_counters {
	int64_t live_items, live_bytes, trash_items, trash_bytes;
};
struct model_counters model_count(const struct model *m);

/* ---- the live tree: 0 or negative errno ------------------------------------ */

int model_create(struct model *m, const struct model_actor *a, int directory, int text,
		 bool is_directory, int *ret_name);
int model_link(struct model *m, int name, int directory, int text);
int model_rename(struct model *m, const struct model_actor *a, int from, int from_text, int to,
		 int to_text, bool noreplace, bool exchange);
/* unlink, rmdir; `whole`: mv into the trash. */
int model_remove(struct model *m, const struct model_actor *a, int directory, int text,
		 bool as_directory, bool whole);

/* ---- the trash ---------------------------------------------------------------- */

#define MODEL_NOREPLACE 1
#define MODEL_RENAME 2
#define MODEL_PARENTS 4

int model_restore(struct model *m, const struct model_actor *a, int name, int directory, int text,
		  unsigned flags);
int model_restore_origin(struct model *m, const struct model_actor *a, int name, unsigned flags);
int model_purge(struct model *m, const struct model_actor *a, int name, bool recursive,
		int64_t grace_ns); /* < 0: the policy's */
struct model_emptied {
	uint64_t entries, refused;
};
void model_empty(struct model *m, const struct model_actor *a, int directory, bool now,
		 struct model_emptied *ret);
void model_sweep(struct model *m);
void model_enforce_caps(struct model *m);
void model_released(struct model *m, int node); /* its last descriptor was closed */

enum model_taken {
	MODEL_REFUSE,
	MODEL_SKIP,
	MODEL_RENAMES,
	MODEL_REPLACES
};
struct model_undone {
	uint64_t restored, skipped, missing, refused;
};
/* The batch that undo takes by itself, 0: none; -1: that depends on what the store still remembers. */
int model_last_batch(const struct model *m, const struct model_actor *a);
bool model_batch_is_known(const struct model *m,
			  int batch); /* of a purge the record goes when the longest grace is over */
bool model_batch_has_rows(const struct model *m, int batch);
int model_undo(struct model *m, const struct model_actor *a, int batch, enum model_taken taken,
	       bool dry, struct model_undone *ret);

/* ---- rights: 0, -EACCES, -EPERM; 0 where they are not asked for -------------------- */

int model_may_change(const struct model *m, uint32_t uid, int directory, int name); /* live; add (name 0) or remove */
int model_may_write(const struct model *m, uint32_t uid, int name);
int model_may_take(const struct model *m, uint32_t uid, int name); /* out of a view */
int model_may_move(const struct model *m, uint32_t uid, int name, int parent, int victim);
int model_may_purge(const struct model *m, uint32_t uid, int name);
void model_narrow(struct model *m, int directory, uint32_t mask); /* something was deleted in it */

/* ---- the process ----------------------------------------------------------------- */

void model_recount_open(struct model *m); /* killed: what is left is what an open batch will be known to have had */
void model_forget_process(struct model *m); /* closed, or killed: batches end, nobody remembers who made what */

/* ---- between the files of the model ------------------------------------------------ */

/* Calls for each name in the directory, whatever its state; it may unlink that name. */
#define model_each(m, directory, n)                         \
	for (int n = (m)->nodes[directory].first, next_##n; \
	     n && (next_##n = (m)->names[n].next, 1); n = next_##n)
int model_name_new(struct model *m, int node, int directory, int text);
void model_name_drop(struct model *m, int name);
void model_move(struct model *m, int name, int directory, int text); /* into the live tree there */
void model_touch(struct model *m, int directory); /* a name was made or moved in it */
int model_batch_join(struct model *m, const struct model_actor *a, bool purge);
int64_t model_add(int64_t ns, int64_t duration_ns);
/* With all in it; what is open stays, and what holds it, hidden. False: something stayed. */
bool model_destroy(struct model *m, int name, enum model_end end);
enum model_end model_end_of(const struct model *m, int name); /* when it is due */
int model_oldest_after(const struct model *m, uint64_t order, uint64_t end); /* deleted name, or 0 */
/*
 * The removal of a name as part of anything. -EPERM, -ENOTEMPTY; `try_only`
 * changes nothing.
 */
int model_trash(struct model *m, const struct model_actor *a, int name, enum model_cause cause,
		uint64_t replaced_by, bool whole, bool try_only);
void model_trashed(struct model *m, int name); /* after the commit: versions, what is kept for no time */

#endif
