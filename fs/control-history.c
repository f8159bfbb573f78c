/*
 * control-history.c - "history": what became of entries that are no longer in
 * the trash.
 *
 * In: path (only what was in or below it, or it); of filters since_ns (an age,
 * of the destruction), uid, name (a pattern), limit. Rows, newest first: path,
 * destroyed_at_ns, why (user, expired, evicted, versions), deleted_at_ns, uid,
 * command, type, size. Others than root are told of what they deleted, and of
 * what was theirs. The path of what was theirs they are told as it was recorded
 * if they could walk and list it when it was destroyed, also when it is gone.
 * Of everything else by what they could walk today: a record is of the time of
 * the destruction, and directories may have other names by then than their user
 * was ever allowed to read. What they may not search, and the beginning of a
 * path that was too long to be recorded whole, is "..." in `path`, and `hidden`
 * is true.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

struct history {
	struct job *job;
	char *below, *name;
	int64_t since_ns, uid, limit;
	int64_t said;
	char *parent; /* the directory asked about last ... */
	size_t open; /* ... and as many bytes of its path as the actor may know */
};

/* ---- what the actor may know of a path --------------------------------------------- */

/* Whether the first `size` bytes of a path lead to something, and the actor may search all above it. */
static bool may_walk(struct job *j, const char *path, size_t size)
{
	_cleanup_(target_release) struct target t = { 0 };
	_cleanup_free_ char *part = strndup(path, size);

	if (!part || target_find(j, part, false, &t))
		return false;
	return !t.directory || !access_path(j->control->namei, &j->actor, t.directory);
}

/* How much of a directory's path he may know: all of it, or up to some '/'. */
static size_t known_part(struct job *j, const char *path, size_t size)
{
	size_t known = 0;

	for (size_t end = 1; known < size; end++) {
		if (end < size && path[end] != '/')
			continue;
		if (!may_walk(j, path, end))
			break;
		known = end;
	}
	return known;
}

/* Root, and the owner of what was destroyed, if he could see it then: the record says so. */
static bool may_know_all(const struct history *h, const struct gone *g)
{
	uint32_t uid = h->job->actor.uid;

	return uid == 0 || uid == g->owner;
}

/* Of a path that was cut, or of which only the name is known, its end: from the first whole name on. */
static char *end_of_path(const struct history *h, const struct gone *g)
{
	const char *slash = may_know_all(h, g) ? strchr(g->path, '/') : strrchr(g->path, '/');
	char *told;

	return asprintf(&told, ".../%s", slash ? slash + 1 : g->path) < 0 ? NULL : told;
}

/* The path as he may be told it; malloc'd. *ret_hidden: it has gaps. */
static char *known_path(struct history *h, const struct gone *g, bool *ret_hidden)
{
	const char *slash = strrchr(g->path, '/');
	size_t size = slash ? (size_t)(slash - g->path) : 0;
	char *told;

	*ret_hidden = g->path[0] != '/';
	if (*ret_hidden)
		return end_of_path(h, g);
	if (may_know_all(h, g) || !size)
		return strdup(g->path);
	if (!h->parent || strlen(h->parent) != size || memcmp(h->parent, g->path, size) != 0) {
		free(h->parent);
		h->parent = strndup(g->path, size);
		h->open = h->parent ? known_part(h->job, g->path, size) : 0;
	}
	if (h->open == size)
		return strdup(g->path);
	*ret_hidden = true;
	return asprintf(&told, "%.*s/.../%s", (int)h->open, g->path, slash + 1) < 0 ? NULL : told;
}

/* ---- rows -------------------------------------------------------------------------- */

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

	if (!strcmp(directory, "/"))
		return true;
	return !strncmp(path, directory, size) && (path[size] == '/' || !path[size]);
}

static bool is_wanted(const struct history *h, const struct gone *g)
{
	uint32_t uid = h->job->actor.uid;

	if (uid != 0 && uid != g->uid && uid != g->owner)
		return false;
	if (h->since_ns && g->destroyed_ns < h->since_ns)
		return false;
	return h->uid < 0 || g->uid == h->uid;
}

/* Whether the end of a path, which is all that is known of it, can be of one below the directory. */
static bool may_be_below(const char *end, const char *directory)
{
	for (; *directory; directory++)
		if (is_below(end, directory))
			return true;
	return false;
}

/* What is asked for by path and name is looked for in what he may know. */
static bool is_there(const struct history *h, const struct gone *g, const char *path)
{
	bool cut = g->path[0] != '/' && may_know_all(h, g);

	return (is_below(path, h->below) || (cut && may_be_below(g->path, h->below))) &&
	       (!h->name || !fnmatch(h->name, strrchr(path, '/') + 1, 0));
}

static bool say_gone(void *data, const struct gone *g)
{
	struct history *h = data;
	_cleanup_free_ char *path = NULL;
	bool hidden;
	json_t *row;

	if (h->limit >= 0 && h->said >= h->limit)
		return true;
	if (!is_wanted(h, g))
		return false;
	path = known_path(h, g, &hidden);
	if (!path || !is_there(h, g, path))
		return false;
	row = json_pack("{sI ss sI sI ss sI}", "destroyed_at_ns", (json_int_t)g->destroyed_ns,
			"why", why(g->cause), "deleted_at_ns", (json_int_t)g->deleted_ns, "uid",
			(json_int_t)g->uid, "type", job_type_name(g->mode), "size", (json_int_t)g->size);
	bytes_to_json(row, "command", g->command);
	bytes_to_json(row, "path", path);
	if (hidden)
		json_object_set_new(row, "hidden", json_true());
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
	free(h.parent);
	free(h.below);
	free(h.name);
}
