/*
 * control-undo.c - "batches": what can be undone; "undo": does it.
 *
 * batches: in all; rows as `batch_to_json` makes them, newest first.
 * undo: in batch (its id, a string; without it, the last), taken, only (a pattern), dry_run; a row for
 * each top entry: path, size, and error if it stayed (in_way: the file that stands there); progress; result batch,
 * restored, already, skipped, missing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

/* ---- batches --------------------------------------------------------------------- */

bool job_is_hidden(struct job *j, uint64_t directory)
{
	return j->actor.uid != 0 && directory != KEY_ID_NONE &&
	       access_path(j->control->namei, &j->actor, directory) != 0;
}

char *job_hidden_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *known;

	return asprintf(&known, "/...%s", slash ? slash : "") < 0 ? NULL : known;
}

static void set_directory(struct job *j, json_t *row, uint64_t directory)
{
	_cleanup_free_ char *path = NULL;
	struct guard guard;

	if (record_get_guard(job_store(j), directory, &guard) ||
	    job_is_hidden(j, guard.at.directory) || tree_path(job_store(j), &guard.at, &path))
		return;
	bytes_to_json(row, "directory", path);
}

static json_t *batch_to_json(struct job *j, const struct batch *b)
{
	char id[24];
	json_t *row;

	snprintf(id, sizeof(id), "%llu", (unsigned long long)b->seq);
	row = json_pack("{ss sI sI sI sI sI sI sb sb sb}", "id", id, "deleted_at_ns",
			(json_int_t)b->seq, "count", (json_int_t)b->count, "bytes",
			(json_int_t)b->bytes, "uid", (json_int_t)b->uid, "restored",
			(json_int_t)b->restored, "session", (json_int_t)b->session, "undone",
			b->undone, "purge", b->purge, "open", b->last_seq == 0);

	bytes_to_json(row, "command", b->command);
	set_directory(j, row, b->directory);
	return row;
}

/* Batches are copied first: their paths are looked up when lifecycle is not being asked any more. */
struct batches {
	struct job *job;
	struct batch *items;
	size_t count, capacity;
	uint64_t wanted; /* only this one; 0: all */
	bool failed;
};

static bool take_batch(void *data, const struct batch *b)
{
	struct batches *all = data;

	if (all->wanted && b->seq != all->wanted)
		return false;
	if (all->count == all->capacity) {
		size_t capacity = all->capacity ? all->capacity * 2 : 64;
		struct batch *items = realloc(all->items, capacity * sizeof(*items));

		if (!items) {
			all->failed = true;
			return true;
		}
		all->items = items;
		all->capacity = capacity;
	}
	all->items[all->count++] = *b;
	return all->wanted != 0;
}

void job_batches(struct job *j)
{
	struct batches all = { .job = j };
	bool everybody = job_flag(j, "all");
	int result;

	if (everybody && j->actor.uid != 0) {
		job_error(j, CONTROL_FAILED, NULL, "not permitted; only root sees what others deleted");
		return;
	}
	result = lifecycle_batches(job_lifecycle(j), everybody ? UINT32_MAX : j->actor.uid,
				   take_batch, &all);
	if (all.failed)
		result = -ENOMEM;
	for (size_t i = 0; result >= 0 && i < all.count && !job_throttle(j); i++)
		job_row(j, batch_to_json(j, &all.items[i]));
	if (result < 0)
		job_error_errno(j, NULL, result);
	else
		job_result(j, CONTROL_DONE, json_pack("{sI}", "count", (json_int_t)all.count));
	free(all.items);
}

/* ---- undo ------------------------------------------------------------------------- */

struct undoing {
	struct job *job;
	uint64_t entries;
	uint64_t refused;
	bool dry_run;
	bool hidden; /* where the entry in hand lies is not the actor's to know any more */
};

const char *job_left_words(int result)
{
	switch (result) {
	case -EEXIST:
	case -EISDIR:
	case -ENOTEMPTY:
		return "the name is taken";
	case -ENOTDIR:
		return "its directory is a file now";
	case -ENOENT:
		return "no longer there";
	case -EACCES:
	case -EPERM:
		return "not permitted";
	default:
		return strerror(-result);
	}
}

/* Called with lifecycle's lock held or not: only says. */
static void say_entry(void *data, const char *path, const struct item *item, int result)
{
	_cleanup_free_ char *in_way = NULL, *known = NULL;
	struct undoing *u = data;
	json_t *row =
		json_pack("{sI}", "size", (json_int_t)(item && S_ISREG(item->mode) ? item->size : 0));

	u->entries++;
	u->refused += result == -EACCES || result == -EPERM;
	if (u->hidden)
		known = job_hidden_path(path);
	bytes_to_json(row, "path", !u->hidden ? path : known ? known : "/...");
	if (result)
		json_object_set_new(row, "error", json_string(job_left_words(result)));
	if (result == -ENOTDIR && !u->hidden)
		in_way = job_in_way(u->job, path);
	if (in_way)
		bytes_to_json(row, "in_way", in_way);
	job_row(u->job, row);
}

static bool show_progress(void *data, uint64_t done, uint64_t total)
{
	struct undoing *u = data;

	return job_progress(u->job, done, total);
}

static int may_restore(void *data, const struct place *at, const struct item *item)
{
	struct undoing *u = data;

	u->hidden = job_is_hidden(u->job, at->directory);
	return access_restore(u->job->control->namei, &u->job->actor, at, item, at->directory);
}

enum undo_taken job_undo_taken(const struct job *j)
{
	static const char *const names[] = {
		[UNDO_REFUSE] = "refuse", [UNDO_SKIP] = "skip", [UNDO_RENAME] = "rename", [UNDO_REPLACE] = "replace"
	};
	const char *taken = json_string_value(json_object_get(j->request, "taken"));

	for (unsigned i = 0; taken && i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], taken))
			return (enum undo_taken)i;
	return UNDO_REFUSE;
}

static int undo_exit(const struct undoing *u, const struct undo_result *r)
{
	return r->missing || u->refused ? CONTROL_PARTLY : CONTROL_DONE;
}

static void say_undone(struct undoing *u, const struct undo_result *r)
{
	json_t *result = json_pack("{sI sI sI sI sI}", "restored", (json_int_t)r->restored, "already",
				   (json_int_t)r->already, "skipped", (json_int_t)r->skipped, "missing",
				   (json_int_t)r->missing, "refused", (json_int_t)u->refused);

	json_object_set_new(result, "batch", batch_to_json(u->job, &r->batch));
	job_result(u->job, undo_exit(u, r), result);
}

static void say_failed(struct undoing *u, int result, const struct undo_options *o, uint64_t restored)
{
	switch (result) {
	case -ENOENT:
		if (o->batch)
			job_error(u->job, CONTROL_NOT_FOUND, NULL,
				  "%llu: no such batch of yours; 'ddbfs undo --list' lists them",
				  (unsigned long long)o->batch);
		else
			job_error(u->job, CONTROL_NOT_FOUND, NULL, "nothing to undo");
		break;
	case -EEXIST:
	case -EISDIR:
	case -ENOTEMPTY:
		job_error(u->job, CONTROL_CONFLICT, NULL,
			  "a name is taken, so nothing was moved; give --rename, --replace or --skip");
		break;
	case -EINTR:
		job_error(u->job, CONTROL_INTERRUPTED, NULL,
			  "interrupted after %llu items; they stay, the same command brings the rest",
			  (unsigned long long)restored);
		break;
	default:
		job_error_errno(u->job, NULL, result);
	}
}

/* Others' batches are root's to undo; who may restore what is asked entry by entry. */
static int check_batch(struct job *j, uint64_t batch)
{
	struct batches found = { .job = j, .wanted = batch };
	int result = lifecycle_batches(job_lifecycle(j), j->actor.uid == 0 ? UINT32_MAX : j->actor.uid,
				       take_batch, &found);

	free(found.items);
	if (result >= 0 && !found.count)
		result = -ENOENT;
	return util_min(result, 0);
}

void job_undo(struct job *j)
{
	_cleanup_free_ char *only = NULL;
	const char *batch = json_string_value(json_object_get(j->request, "batch"));
	struct undoing u = { .job = j, .dry_run = job_flag(j, "dry_run") };
	struct undo_result r = { 0 };
	struct undo_options o = {
		.batch = batch ? strtoull(batch, NULL, 10) : 0,
		.taken = job_undo_taken(j),
		.dry_run = u.dry_run,
		.allowed = may_restore,
		.entry = say_entry,
		.progress = show_progress,
		.data = &u,
	};
	int result = bytes_from_json(j->request, "only", &only);

	if ((result && result != -ENOENT) || (!o.dry_run && job_refused_read_only(j)))
		return result == -EINVAL ?
			       job_error(j, CONTROL_USAGE, NULL, "\"only\" of the request: not a text") :
			       (void)0;
	o.only = only;
	result = o.batch ? check_batch(j, o.batch) : 0;
	if (result == 0)
		result = lifecycle_undo(job_lifecycle(j), &j->actor, &o, &r);
	job_settle(j);
	if (result < 0)
		say_failed(&u, result, &o, r.restored);
	else if (only && !u.entries)
		job_error(j, CONTROL_NOT_FOUND, NULL,
			  "no entry of the batch has such a name; nothing was moved");
	else
		say_undone(&u, &r);
}
