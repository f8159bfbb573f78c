/*
 * control-internal.h - private to control*.c: jobs, what they say, and the
 * paths they are asked about.
 */
#ifndef FS_CONTROL_INTERNAL_H
#define FS_CONTROL_INTERNAL_H

#include <jansson.h>
#include <pthread.h>

#include "fs/control.h"
#include "fs/namei.h"

struct control {
	struct namei *namei;
	struct control_host host;
	pthread_mutex_t lock; /* guards all of the list and of the jobs but what is said to be the job's own */
	struct job *jobs;
	uint64_t last_job;
};

struct job {
	struct control *control;
	uint64_t id;
	struct actor actor; /* a copy, its groups too; what he restores, `rights` are asked of */
	struct rights rights;
	json_t *request; /* the job's own */
	pthread_t thread;
	pthread_cond_t changed; /* output, room for it, or the end */
	char *output; /* what was not yet fetched: `size` bytes from `at` on */
	size_t at, size, capacity;
	unsigned callers; /* calls that wait for output now */
	int64_t asked_ns; /* when somebody last asked after it, by the monotonic clock */
	bool cancelled;
	bool ended; /* nothing more will be said */
	struct job *next;
};

static inline struct lifecycle *job_lifecycle(const struct job *j)
{
	return namei_lifecycle(j->control->namei);
}

static inline struct store *job_store(const struct job *j)
{
	return namei_store(j->control->namei);
}

int64_t job_clock_ns(void); /* monotonic */
/* With the lock held: waits for `changed`, until then at the latest. */
void job_wait_until(struct job *j, int64_t deadline_ns);
/* With the lock held: whether nobody will ask after the job any more. */
bool job_is_abandoned(const struct job *j);

/* ---- what a job says; none of these blocks ------------------------------ */

void job_row(struct job *j, json_t *row); /* taken over */
/* Whether the job shall stop. */
bool job_progress(struct job *j, uint64_t done, uint64_t total);
bool job_cancelled(struct job *j);
/* The last line, whole; taken over. */
void job_last(struct job *j, json_t *line);
/* The last line. `result` is taken over. */
void job_result(struct job *j, int exit, json_t *result);
/* The last line: why it failed. `path` (may be NULL) is what it is about. */
void job_error(struct job *j, int exit, const char *path, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with the words for a negative errno. */
void job_error_errno(struct job *j, const char *path, int result);

/* Waits until most of the output was fetched. Never with a lock of lifecycle's. True: the job shall stop. */
bool job_throttle(struct job *j);

/* True, and said, if the mount is read-only. */
bool job_refused_read_only(struct job *j);
/* The kernel knows what the job changed. */
void job_settle(struct job *j);

/* ---- paths --------------------------------------------------------------- */

enum target_kind {
	TARGET_DIRECTORY, /* a live directory */
	TARGET_VIEW, /* the .trash of a live directory, or a shadow in it */
	TARGET_FILE, /* a live item that is no directory */
	TARGET_ENTRY, /* something in a view that is no shadow */
};

struct target {
	enum target_kind kind;
	uint64_t directory; /* id: of DIRECTORY, VIEW, and of an ENTRY that is a directory (else 0) */
	struct entry entry; /* ENTRY */
};
void target_release(struct target *t);

/*
 * Finds what an absolute path means to the job's actor, who must be able to
 * search all directories on the way. Names that are not (or no longer) there
 * are looked for in the trash of their directory; with `deleted`, the last name
 * there first. 0, -ENOENT, -ENOTDIR, -EACCES, other negative errno.
 */
int target_find(struct job *j, const char *path, bool deleted, struct target *ret_target);

/* The request's KEY as a path. 0; or said, and a negative errno. */
int job_path(struct job *j, const char *key, char **ret_path);
/* Both steps; 0, or said and a negative errno. *ret_path may be NULL-initialised and is the caller's to free in any case. */
int job_target(struct job *j, const char *key, bool deleted, char **ret_path, struct target *ret_target);

/* The first name on the way to where something was that is no directory any more. malloc'd; NULL: none. Takes no lock. */
char *job_in_way(struct job *j, const char *path);

/* Whether the actor may read the view of a directory: mode and mask, and all above. 0, -EACCES, other negative errno. */
int job_may_list(struct job *j, uint64_t directory);

/* ---- verbs; each ends with a result or an error ------------------------------ */

void job_apply(struct job *j);
void job_batches(struct job *j);
void job_clock_accept(struct job *j);
void job_df(struct job *j);
void job_empty(struct job *j);
void job_history(struct job *j);
void job_list(struct job *j);
void job_policy(struct job *j);
void job_restore(struct job *j);
void job_status(struct job *j);
void job_sweep(struct job *j);
void job_scrub(struct job *j);
void job_undo(struct job *j);

/* The request's boolean or integer KEY; false or 0 if it is not there. */
bool job_flag(const struct job *j, const char *key);
int64_t job_number(const struct job *j, const char *key);

/* Why an entry stays in the trash. */
const char *job_left_words(int result);
/* Whether the actor may not know, by now, what is in a directory: others may have moved it since. */
bool job_is_hidden(struct job *j, uint64_t directory);
/* What is told of the path of such a thing; malloc'd, NULL: no memory. */
char *job_hidden_path(const char *path);
/* What the request's "taken" says; by itself: refuse. */
enum undo_taken job_undo_taken(const struct job *j);
const char *job_type_name(uint32_t mode); /* "file", "directory", ... */
/* {"items": n, "bytes": n} */
json_t *job_amount(int64_t items, int64_t bytes);
/* {"used", "free", "total", "reserve"}; NULL if the store cannot say. */
json_t *job_space(struct job *j);
/* When the next thing is due, from the EXP rows; ITEM_FOREVER: nothing. */
int64_t job_next_due(struct job *j);

#endif
