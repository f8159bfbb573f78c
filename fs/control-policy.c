/*
 * control-policy.c - "policy": what is in force; "apply": makes what was deleted
 * before follow it.
 *
 * policy: in path; result the policies. apply: in path, dry_run and, for that,
 * retention_ns and versions, as if they were set; progress; result entries,
 * changed, gone, gone_bytes, sooner, later, refused.
 */
#include <errno.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"

static int find_directory(struct job *j, char **ret_path, uint64_t *ret_directory)
{
	_cleanup_(target_release) struct target t = { 0 };

	if (job_target(j, "path", false, ret_path, &t))
		return -ENOENT;
	if (t.kind != TARGET_DIRECTORY) {
		job_error(j, CONTROL_NOT_FOUND, *ret_path, "not a directory outside of the trash");
		return -ENOTDIR;
	}
	*ret_directory = t.directory;
	return 0;
}

void job_policy(struct job *j)
{
	_cleanup_free_ char *path = NULL;
	uint64_t directory;
	struct policy p;
	json_t *result;
	int error;

	if (find_directory(j, &path, &directory))
		return;
	error = lifecycle_policy(job_lifecycle(j), directory, &p);
	if (error) {
		job_error_errno(j, path, error);
		return;
	}
	result = json_pack("{sI sI sI sI sI sI sI sb sb}", "retention_ns",
			   (json_int_t)p.retention_ns, "versions", (json_int_t)p.versions,
			   "temporary_ns", (json_int_t)p.temporary_ns, "grace_ns",
			   (json_int_t)p.grace_ns, "trash_max", (json_int_t)p.trash_max,
			   "trash_max_entries", (json_int_t)p.trash_max_entries, "low_space",
			   (json_int_t)p.low_space, "protect", p.protect, "hold", p.hold);
	bytes_to_json(result, "path", path);
	job_result(j, CONTROL_DONE, result);
}

/* ---- apply ---------------------------------------------------------------------------- */

static int may_go_sooner(void *data, const struct place *at, const struct item *item)
{
	struct job *j = data;

	return access_purge(j->control->namei, &j->actor, at, item);
}

static bool show_progress(void *data, uint64_t done)
{
	return job_progress(data, done, 0);
}

/* As for the policy itself. */
static int check_owner(struct job *j, const char *path, uint64_t directory)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	int result = tree_load(job_store(j), directory, &d);

	if (result)
		job_error_errno(j, path, result);
	else if (j->actor.uid != 0 && j->actor.uid != d.own.uid)
		job_error(j, CONTROL_FAILED, path,
			  "not permitted; only the directory's owner or root may apply its policy");
	else
		return 0;
	return -EPERM;
}

static void say_failed(struct job *j, const char *path, int result, const struct apply_result *r)
{
	if (result == -EINTR)
		job_error(j, CONTROL_INTERRUPTED, path,
			  "interrupted after %llu entries; the same command goes on",
			  (unsigned long long)r->entries);
	else if (result == -EAGAIN)
		job_error(j, CONTROL_FAILED, path,
			  "the clock jumped, so nothing is hurried; confirm it with 'ddbfs clock accept' first");
	else
		job_error_errno(j, path, result);
}

static int64_t number_or_none(const struct job *j, const char *key)
{
	const json_t *value = json_object_get(j->request, key);

	return value ? json_integer_value(value) : -1;
}

void job_apply(struct job *j)
{
	_cleanup_free_ char *path = NULL;
	struct apply_result r;
	struct apply_options o = {
		.dry_run = job_flag(j, "dry_run"),
		.retention_ns = number_or_none(j, "retention_ns"),
		.versions = number_or_none(j, "versions"),
		.allowed = may_go_sooner,
		.progress = show_progress,
		.data = j,
	};
	int result;

	if ((!o.dry_run && job_refused_read_only(j)) || find_directory(j, &path, &o.directory) ||
	    check_owner(j, path, o.directory))
		return;
	if (!o.dry_run && (o.retention_ns >= 0 || o.versions >= 0)) {
		job_error(j, CONTROL_USAGE, path, "values of the request: for a dry run only");
		return;
	}
	result = lifecycle_apply(job_lifecycle(j), &o, &r);
	job_settle(j);
	if (result)
		say_failed(j, path, result, &r);
	else
		job_result(j, r.refused ? CONTROL_PARTLY : CONTROL_DONE,
			   json_pack("{sI sI sI sI sI sI sI}", "entries", (json_int_t)r.entries, "changed",
				     (json_int_t)r.changed, "gone", (json_int_t)r.gone, "gone_bytes",
				     (json_int_t)r.gone_bytes, "sooner", (json_int_t)r.sooner,
				     "later", (json_int_t)r.later, "refused", (json_int_t)r.refused));
}
