/*
 * control-empty.c - "empty": destroys what is in the trash in and below a
 * directory; "sweep": what is due; "clock-accept".
 *
 * empty: in path, older_than_ns (an age), now, dry_run; progress; result
 * entries, bytes, refused. sweep: progress; result destroyed, bytes,
 * next_due_ns, paused. clock-accept: result was_suspect.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/access.h"
#include "fs/control-internal.h"
#include "store/util.h"

#define SWEEP_BUDGET 256 /* items of one pass, between which the job may be stopped */

static int may_purge(void *data, const struct place *at, const struct item *item)
{
	struct job *j = data;

	if (j->actor.uid == 0)
		return 0;
	return access_purge(j->control->namei, &j->actor, at, item);
}

static bool show_progress(void *data, uint64_t done)
{
	return job_progress(data, done, 0);
}

static void finish_empty(struct job *j, const char *path, int result, const struct empty_result *r)
{
	job_settle(j);
	if (result == -EINTR)
		job_error(j, CONTROL_INTERRUPTED, path,
			  "interrupted after %llu entries; the rest is still in the trash",
			  (unsigned long long)r->entries);
	else if (result < 0)
		job_error_errno(j, path, result);
	else
		job_result(j, r->refused ? CONTROL_PARTLY : CONTROL_DONE,
			   json_pack("{sI sI sI}", "entries", (json_int_t)r->entries, "bytes",
				     (json_int_t)r->bytes, "refused", (json_int_t)r->refused));
}

void job_empty(struct job *j)
{
	_cleanup_(target_release) struct target t = { 0 };
	_cleanup_free_ char *path = NULL;
	struct empty_result r = { 0 };
	struct empty_options o = {
		.now = job_flag(j, "now"),
		.dry_run = job_flag(j, "dry_run"),
		.allowed = may_purge,
		.progress = show_progress,
		.data = j,
	};
	int64_t age = job_number(j, "older_than_ns");
	int result;

	if ((!o.dry_run && job_refused_read_only(j)) || job_target(j, "path", false, &path, &t))
		return;
	if (t.kind != TARGET_DIRECTORY && t.kind != TARGET_VIEW) {
		job_error(j, CONTROL_USAGE, path,
			  "neither a directory nor its trash; a single entry can be removed with rm");
		return;
	}
	o.directory = t.directory;
	if (age > 0)
		o.deleted_before_ns = util_max(store_now_ns(job_store(j)) - age, INT64_C(1));
	result = lifecycle_empty(job_lifecycle(j), &j->actor, &o, &r);
	finish_empty(j, path, result, &r);
}

/* ---- sweeping -------------------------------------------------------------------- */

/* What concerns the whole store is for root and for who mounted it. */
static bool is_refused(struct job *j)
{
	if (j->actor.uid == 0 || j->actor.uid == geteuid())
		return job_refused_read_only(j);
	job_error(j, CONTROL_FAILED, NULL, "not permitted; only root and the user who mounted it can");
	return true;
}

/* It begins; status says how it goes. */
void job_scrub(struct job *j)
{
	int result;

	if (is_refused(j))
		return;
	result = lifecycle_scrub_now(job_lifecycle(j));
	if (result == -EOPNOTSUPP)
		job_error(j, CONTROL_FAILED, NULL,
			  "this mount does not scrub (-o noscrub); unmount it and use 'ddbfs check'");
	else if (result)
		job_error_errno(j, NULL, result);
	else
		job_result(j, CONTROL_DONE, json_pack("{sb}", "begun", true));
}

/* Passes until nothing is due any more. */
static int sweep(struct job *j, struct sweep_result *total)
{
	int result;

	do {
		struct sweep_result r = { 0 };

		result = lifecycle_sweep(job_lifecycle(j), SWEEP_BUDGET, &r);
		total->destroyed += r.destroyed;
		total->bytes += r.bytes;
		total->next_due_ns = r.next_due_ns;
		total->paused = r.paused;
		total->more = r.more;
		if (result == 0 && job_progress(j, total->destroyed, 0))
			result = -EINTR;
	} while (result == 0 && total->more);
	return result;
}

void job_sweep(struct job *j)
{
	struct sweep_result r = { 0 };
	int result;

	if (is_refused(j))
		return;
	result = sweep(j, &r);
	job_settle(j);
	if (result == 0)
		result = store_checkpoint(job_store(j));
	if (result == -EINTR)
		job_error(j, CONTROL_INTERRUPTED, NULL,
			  "interrupted after %llu items; the daemon goes on by itself",
			  (unsigned long long)r.destroyed);
	else if (result < 0)
		job_error_errno(j, NULL, result);
	else
		job_result(j, CONTROL_DONE,
			   json_pack("{sI sI sI sb}", "destroyed", (json_int_t)r.destroyed, "bytes",
				     (json_int_t)r.bytes, "next_due_ns", (json_int_t)r.next_due_ns,
				     "paused", r.paused));
}

void job_clock_accept(struct job *j)
{
	int64_t jump_ns = 0;
	bool suspect;
	int result;

	if (is_refused(j))
		return;
	suspect = lifecycle_clock_suspect(job_lifecycle(j), &jump_ns);
	result = lifecycle_clock_accept(job_lifecycle(j));
	if (result < 0)
		job_error_errno(j, NULL, result);
	else
		job_result(j, CONTROL_DONE, json_pack("{sb}", "was_suspect", suspect));
}
