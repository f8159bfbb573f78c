/*
 * control-history.c - "history": what became of entries that are no longer in
 * the trash.
 *
 * In: path (only what was in or below it, or it); of filters since_ns (an age,
 * of the destruction), uid, name (a pattern), limit. Rows, newest first: path,
 * destroyed_at_ns, why (user, expired, evicted, versions), deleted_at_ns, uid,
 * command, type, size. Others than root are told of what they deleted, and of
 * what was theirs where they could see it.
 */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bytes.h"
#include "fs/control-internal.h"

struct history {
	struct job *job;
	char *below, *name;
	int64_t since_ns, uid, limit;
	int64_t said;
};

static const char *why(enum item_counter cause)
{
	switch (cause) {
	case COUNTER_DESTROYED_EXPIRED:
		return "expired";
	case COUNTER_DESTROYED_EVICTED:
		return "evicted";
	case COUNTER_DESTROYED_VERSIONS:
		return "versions";
	default:
		return "user";
	}
}

static bool is_below(const char *path, const char *directory)
{
	size_t size = strlen(directory);

	if (!directory[1])
		return true;
	return !strncmp(path, directory, size) && (path[size] == '/' || !path[size]);
}

static bool is_wanted(const struct history *h, const struct gone *g)
{
	const char *slash = strrchr(g->path, '/');
	uint32_t uid = h->job->actor.uid;

	if (uid != 0 && uid != g->uid && uid != g->owner)
		return false;
	if (h->since_ns && g->destroyed_ns < h->since_ns)
		return false;
	if ((h->uid >= 0 && g->uid != h->uid) || !is_below(g->path, h->below))
		return false;
	return !h->name || !fnmatch(h->name, slash ? slash + 1 : g->path, 0);
}

static bool say_gone(void *data, const struct gone *g)
{
	struct history *h = data;
	json_t *row;

	if (h->limit >= 0 && h->said >= h->limit)
		return true;
	if (!is_wanted(h, g))
		return false;
	row = json_pack("{sI ss sI sI ss sI}", "destroyed_at_ns", (json_int_t)g->destroyed_ns,
			"why", why(g->cause), "deleted_at_ns", (json_int_t)g->deleted_ns, "uid",
			(json_int_t)g->uid, "type", job_type_name(g->mode), "size", (json_int_t)g->size);
	bytes_to_json(row, "command", g->command);
	bytes_to_json(row, "path", g->path);
	job_row(h->job, row);
	h->said++;
	return job_throttle(h->job);
}

void job_history(struct job *j)
{
	int64_t age = job_number(j, "since_ns");
	const json_t *uid = json_object_get(j->request, "uid"),
		     *limit = json_object_get(j->request, "limit");
	struct history h = {
		.job = j,
		.since_ns = age > 0 ? store_now_ns(job_store(j)) - age : 0,
		.uid = uid ? json_integer_value(uid) : -1,
		.limit = limit ? json_integer_value(limit) : -1,
	};
	int result = job_path(j, "path", &h.below);

	if (!result) {
		result = bytes_from_json(j->request, "name", &h.name);
		result = result == -ENOENT ? 0 : result;
		if (!result)
			result = lifecycle_history(job_lifecycle(j), say_gone, &h);
		if (job_cancelled(j))
			job_error(j, CONTROL_INTERRUPTED, NULL, "interrupted; the list is not complete");
		else if (result)
			job_error_errno(j, NULL, result);
		else
			job_result(j, CONTROL_DONE, json_pack("{sI}", "count", (json_int_t)h.said));
	}
	free(h.below);
	free(h.name);
}
