/*
 * control-df.c - "df": what the store, or a directory, holds and why, and what
 * comes free.
 *
 * In: path (a live directory; without it, or with the root: the whole store).
 * Progress; result live, trash, removed, replaced, purged, reclaimable, held,
 * due_day (each items and bytes), space (of the whole store only).
 */
#include <errno.h>

#include "fs/control-internal.h"

#define DAY_NS (86400 * CLOCK_SECOND_NS)

static bool show_progress(void *data, uint64_t done)
{
	return job_progress(data, done, 0);
}

/* Sums tell of what lies below, also where others may not look: they are its owner's to ask for. */
static int check_owner(struct job *j, uint64_t directory)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	int result;

	if (j->actor.uid == 0 || directory == KEY_ID_ROOT)
		return 0;
	result = tree_load(job_store(j), directory, &d);
	return result || d.own.uid == j->actor.uid ? result : -EACCES;
}

static int find_directory(struct job *j, char **ret_path, uint64_t *ret_directory)
{
	_cleanup_(target_release) struct target t = { 0 };
	int result;

	*ret_directory = KEY_ID_ROOT;
	if (!json_object_get(j->request, "path") && !json_object_get(j->request, "path_hex"))
		return 0;
	result = job_target(j, "path", false, ret_path, &t);
	if (result)
		return result;
	if (t.kind != TARGET_DIRECTORY) {
		job_error(j, CONTROL_USAGE, *ret_path, "not a directory outside of the trash; give one");
		return -EINVAL;
	}
	*ret_directory = t.directory;
	return 0;
}

static json_t *usage_to_json(const struct usage *u)
{
	const struct {
		const char *key;
		const struct usage_amount *amount;
	} amounts[] = {
		{ "live", &u->live },	    { "trash", &u->trash },
		{ "removed", &u->removed }, { "replaced", &u->replaced },
		{ "purged", &u->purged },   { "reclaimable", &u->reclaimable },
		{ "held", &u->held },	    { "due_day", &u->due },
	};
	json_t *result = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(amounts); i++)
		json_object_set_new(result, amounts[i].key,
				    job_amount(amounts[i].amount->items, amounts[i].amount->bytes));
	return result;
}

void job_df(struct job *j)
{
	int64_t tomorrow_ns = store_now_ns(job_store(j)) + DAY_NS;
	_cleanup_free_ char *path = NULL;
	uint64_t directory;
	struct usage usage;
	json_t *result;
	int error;

	if (find_directory(j, &path, &directory))
		return;
	error = check_owner(j, directory);
	if (error == -EACCES) {
		job_error(j, CONTROL_FAILED, path, "not permitted; only its owner or root can");
		return;
	}
	if (!error)
		error = lifecycle_usage(job_lifecycle(j), directory, tomorrow_ns, show_progress, j,
					&usage);
	if (error == -EINTR) {
		job_error(j, CONTROL_INTERRUPTED, path, "interrupted");
	} else if (error) {
		job_error_errno(j, path, error);
	} else {
		result = usage_to_json(&usage);
		if (directory == KEY_ID_ROOT)
			json_object_set_new(result, "space", job_space(j));
		job_result(j, CONTROL_DONE, result);
	}
}
