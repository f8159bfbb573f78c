/*
 * control-restore.c - "restore": brings one deleted item back.
 *
 * In: path; to (a live directory; without it, to where it was); taken: refuse,
 * skip, rename, replace or swap. Progress. Result: path, restored_path, items,
 * skipped, swapped.
 *
 * A live directory of which a part came back before: the rest of it comes back
 * too, as by an undo of nothing but what lies below it. Rows then tell what
 * stays: path, error. Result: left, besides.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

struct restoration {
	struct job *job;
	const char *path; /* as it was asked for */
	const char *taken;
	struct place at;
	const struct item *item;
	uint64_t done;
	char *result_path;
};

static bool show_progress(void *data, uint64_t done)
{
	struct restoration *r = data;

	r->done = done;
	return job_progress(r->job, done, 0);
}

/* ---- rights -------------------------------------------------------------------- */

/*
 * To its origin: like a rename within the directory it lies in. Where that, or
 * one above it, is deleted too, it is brought back as well: which asks for the
 * same right to each of them.
 */
static int check_origin(struct restoration *r)
{
	struct namei *n = r->job->control->namei;
	int result = access_restore(n, &r->job->actor, &r->at, r->item, r->at.directory);
	uint64_t directory = r->at.directory;

	while (result == 0 && directory != KEY_ID_ROOT) {
		_cleanup_(tree_release) struct tree_directory d = { 0 };

		result = tree_load(job_store(r->job), directory, &d);
		if (result == 0 && !tree_is_live(&d))
			result = access_restore(n, &r->job->actor, &d.guard.at, &d.own,
						d.guard.at.directory);
		directory = d.guard.at.directory;
	}
	return result;
}

/* ---- restoring ----------------------------------------------------------------- */

/* What to do where the name is taken, as lifecycle has it. */
static unsigned taken_flags(const struct restoration *r)
{
	if (!strcmp(r->taken, "rename"))
		return RESTORE_RENAME;
	if (!strcmp(r->taken, "swap"))
		return RESTORE_SWAP;
	return strcmp(r->taken, "replace") ? RESTORE_NOREPLACE : 0;
}

/* Into a directory the user chose. */
static int restore_to(struct restoration *r, uint64_t parent)
{
	unsigned flags = taken_flags(r);
	char name[KEY_NAME_MAX + 1];

	strcpy(name, r->at.name);
	if (namei_is_reserved(r->job->control->namei, parent, name)) {
		if (!(flags & RESTORE_RENAME))
			return -EEXIST;
		strcat(name, " (restored)"); /* such names are short */
	}
	return lifecycle_restore_as(job_lifecycle(r->job), &r->job->actor, &r->at, parent, name,
				    flags, show_progress, r, &r->result_path);
}

static int restore_origin(struct restoration *r)
{
	/* What is swapped stands in a live directory. */
	unsigned parents = strcmp(r->taken, "swap") ? RESTORE_PARENTS : 0;

	return lifecycle_restore_origin(job_lifecycle(r->job), &r->job->actor, &r->at,
					taken_flags(r) | parents, show_progress, r, &r->result_path);
}

/* ---- the answer ---------------------------------------------------------------- */

static void say_restored(struct restoration *r, bool skipped)
{
	json_t *result = json_pack("{sI sb sb}", "items",
				   (json_int_t)(skipped ? 0 : util_max(r->done, UINT64_C(1))),
				   "skipped", skipped, "swapped", !strcmp(r->taken, "swap"));

	bytes_to_json(result, "path", r->path);
	bytes_to_json(result, "restored_path", r->result_path ? r->result_path : r->path);
	job_result(r->job, CONTROL_DONE, result);
}

static void say_in_way(struct restoration *r)
{
	static const char words[] =
		"what was its directory is a file now; move that away, or give --to DIR";
	_cleanup_free_ char *origin = NULL, *in_way = NULL;
	json_t *line = json_pack("{ss si}", "error", words, "exit", CONTROL_CONFLICT);

	bytes_to_json(line, "path", r->path);
	if (tree_path(job_store(r->job), &r->at, &origin) == 0)
		in_way = job_in_way(r->job, origin);
	if (in_way)
		bytes_to_json(line, "in_way", in_way);
	job_last(r->job, line);
}

static void say_not_swapped(struct restoration *r)
{
	if (r->item->flags & ITEM_DELETION && r->item->deletion.cause == ITEM_REPLACED)
		job_error(r->job, CONTROL_CONFLICT, r->path,
			  "what replaced it no longer bears the name; restore it with --replace or --rename");
	else
		job_error(r->job, CONTROL_CONFLICT, r->path,
			  "was not replaced by a rename; restore it without --swap");
}

static void say_failed(struct restoration *r, int result)
{
	switch (result) {
	case -EEXIST:
		job_error(r->job, CONTROL_CONFLICT, r->path,
			  "its name is taken; give --rename, --replace, --skip or --to DIR");
		break;
	case -ESTALE:
		say_not_swapped(r);
		break;
	case -ENOTDIR:
		say_in_way(r);
		break;
	case -EISDIR:
	case -ENOTEMPTY:
		job_error(r->job, CONTROL_CONFLICT, r->path,
			  "a directory bears its name and is not replaced; give --rename or --to DIR");
		break;
	case -ENOENT:
		job_error(r->job, CONTROL_NOT_FOUND, r->path,
			  "no longer in the trash: it expired, or is back already");
		break;
	case -EINTR:
		job_error(r->job, CONTROL_INTERRUPTED, r->path,
			  "interrupted after %llu items; nothing is lost, the same command goes on from there",
			  (unsigned long long)r->done);
		break;
	default:
		job_error_errno(r->job, r->path, result);
	}
}

static void finish(struct restoration *r, int result)
{
	job_settle(r->job);
	if (result == 0)
		say_restored(r, false);
	else if (result == -EEXIST && !strcmp(r->taken, "skip"))
		say_restored(r, true);
	else
		say_failed(r, result);
	free(r->result_path);
}

/* *ret_parent is 0 without a "to". 0, or said and a negative errno. */
static int find_parent(struct job *j, char **ret_to, uint64_t *ret_parent)
{
	_cleanup_(target_release) struct target to = { 0 };
	int result;

	*ret_parent = 0;
	if (!json_object_get(j->request, "to") && !json_object_get(j->request, "to_hex"))
		return 0;
	result = job_target(j, "to", false, ret_to, &to);
	if (result)
		return result;
	if (to.kind != TARGET_DIRECTORY) {
		job_error(j, CONTROL_USAGE, *ret_to, "not a directory outside of the trash; give one");
		return -EINVAL;
	}
	*ret_parent = to.directory;
	return 0;
}

static void restore(struct job *j, const char *path, const struct target *t, uint64_t parent)
{
	const char *taken = json_string_value(json_object_get(j->request, "taken"));
	struct restoration r = {
		.job = j,
		.path = path,
		.taken = taken ? taken : "refuse",
		.at = t->entry.at,
		.item = &t->entry.item,
	};
	int result = parent ? access_restore(j->control->namei, &j->actor, &r.at, r.item, parent) :
			      check_origin(&r);

	if (result)
		job_error_errno(j, path, result);
	else
		finish(&r, parent ? restore_to(&r, parent) : restore_origin(&r));
}

/* ---- the rest of a directory ----------------------------------------------------- */

struct rest {
	struct job *job;
	const char *path;
	uint64_t directory;
	uint64_t left, refused;
	bool hidden; /* where the entry in hand lies is not the actor's to know any more */
};

static int may_come_back(void *data, const struct place *at, const struct item *item)
{
	struct rest *r = data;

	r->hidden = job_is_hidden(r->job, at->directory);
	return access_restore(r->job->control->namei, &r->job->actor, at, item, at->directory);
}

/* What others may not see is counted, and not named. */
static void say_left(void *data, const char *path, const struct item *item, int result)
{
	_cleanup_free_ char *known = NULL;
	struct rest *r = data;
	json_t *row;

	if (!result)
		return;
	r->left++;
	if (result == -EACCES || result == -EPERM) {
		r->refused++;
		return;
	}
	known = r->hidden ? job_hidden_path(path) : NULL;
	row = json_pack("{ss}", "error", job_left_words(result));
	bytes_to_json(row, "path", !r->hidden ? path : known ? known : "/...");
	job_row(r->job, row);
}

static bool show_rest(void *data, uint64_t done, uint64_t total)
{
	struct rest *r = data;

	return job_progress(r->job, done, total);
}

static void say_rest(struct rest *r, const struct undo_result *undone)
{
	_cleanup_free_ char *restored = NULL;
	struct guard guard;
	json_t *result = json_pack("{sI sb sb sI}", "items", (json_int_t)undone->restored,
				   "skipped", !undone->restored && r->left, "swapped", false,
				   "left", (json_int_t)r->left);

	/* The path asked for may lead through a view; what came back is in the live tree. */
	if (record_get_guard(job_store(r->job), r->directory, &guard) ||
	    tree_path(job_store(r->job), &guard.at, &restored))
		restored = NULL;
	bytes_to_json(result, "path", r->path);
	bytes_to_json(result, "restored_path", restored ? restored : r->path);
	job_result(r->job, r->refused || undone->missing ? CONTROL_PARTLY : CONTROL_DONE, result);
}

static void say_rest_failed(struct rest *r, const struct undo_result *undone, int result)
{
	switch (result) {
	case -ENOENT:
		job_error(r->job, CONTROL_NOT_FOUND, r->path,
			  "not deleted; 'ddbfs trash list' says what is");
		break;
	case -EEXIST:
	case -EISDIR:
	case -ENOTEMPTY:
		job_error(r->job, CONTROL_CONFLICT, r->path,
			  "a name in it is taken, so nothing was moved; give --rename, --replace or --skip");
		break;
	case -EINTR:
		job_error(r->job, CONTROL_INTERRUPTED, r->path,
			  "interrupted after %llu items; nothing is lost, the same command goes on from there",
			  (unsigned long long)undone->restored);
		break;
	default:
		job_error_errno(r->job, r->path, result);
	}
}

static void restore_rest(struct job *j, const char *path, uint64_t directory)
{
	const char *taken = json_string_value(json_object_get(j->request, "taken"));
	struct rest r = { .job = j, .path = path, .directory = directory };
	struct undo_result undone = { 0 };
	struct undo_options o = {
		.directory = directory,
		.taken = job_undo_taken(j),
		.allowed = may_come_back,
		.entry = say_left,
		.progress = show_rest,
		.data = &r,
	};
	int result;

	if (taken && !strcmp(taken, "swap")) {
		job_error(j, CONTROL_CONFLICT, path,
			  "was not replaced by a rename; restore it without --swap");
		return;
	}
	result = lifecycle_undo(job_lifecycle(j), &j->actor, &o, &undone);
	job_settle(j);
	if (result)
		say_rest_failed(&r, &undone, result);
	else
		say_rest(&r, &undone);
}

/* Whether the path ends in .trash: a view that leads there is a live directory's. */
static bool names_trash(const struct job *j, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && !strcmp(slash + 1, store_trash_name(job_store(j)));
}

void job_restore(struct job *j)
{
	_cleanup_(target_release) struct target t = { 0 };
	_cleanup_free_ char *path = NULL, *to = NULL;
	uint64_t parent;

	if (job_refused_read_only(j) || job_target(j, "path", true, &path, &t))
		return;
	if (t.kind == TARGET_VIEW && names_trash(j, path))
		job_error(j, CONTROL_USAGE, path, "a trash itself; name what is in it");
	else if ((t.kind == TARGET_VIEW || t.kind == TARGET_DIRECTORY) &&
		 !json_object_get(j->request, "to") && !json_object_get(j->request, "to_hex"))
		restore_rest(j, path, t.directory);
	else if (t.kind != TARGET_ENTRY)
		job_error(j, CONTROL_NOT_FOUND, path, "not deleted; 'ddbfs trash list' says what is");
	else if (!find_parent(j, &to, &parent))
		restore(j, path, &t, parent);
}
