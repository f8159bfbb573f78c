/*
 * control-path.c - what a path in a request means.
 *
 * A path may lead through .trash, as the kernel would walk it; or it is the
 * path that something had before it was deleted, and then each name that is no
 * longer there is looked for in the trash of its directory. The actor's rights
 * are asked at each step before the name is looked for, so that nobody learns
 * what he could not have seen.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

/* Where the walk has come. */
struct walk {
	struct job *job;
	uint64_t directory; /* 0: at something that is no directory */
	bool view; /* names are looked for as views show them */
	bool deleted; /* the last name: in the trash first */
	struct target found; /* its kind and entry: of the last name; `directory` is not used */
};

void target_release(struct target *t)
{
	entry_release(&t->entry);
	*t = (struct target){ 0 };
}

static void arrive(struct walk *w, enum target_kind kind, uint64_t directory, bool view)
{
	entry_release(&w->found.entry);
	memset(&w->found.entry, 0, sizeof(w->found.entry));
	w->found.kind = kind;
	w->directory = directory;
	w->view = view;
}

/* May the actor search this directory as a view shows it? */
static int check_view(struct job *j, uint64_t directory, int want)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	int result = tree_load(job_store(j), directory, &d);

	if (result)
		return result;
	result = access_mode(&j->actor,
			     tree_plain_mode(&d.own) & (~(uint32_t)0777 | d.own.directory.trash_mask),
			     d.own.uid, d.own.gid, want);
	return result ? result : access_path(j->control->namei, &j->actor, directory);
}

int job_may_list(struct job *j, uint64_t directory)
{
	return check_view(j, directory, R_OK | X_OK);
}

/* A name as the view of w->directory shows it. */
static int step_view(struct walk *w, const char *name)
{
	struct entry e = { 0 };
	int result = check_view(w->job, w->directory, X_OK);

	if (result)
		return result;
	result = strlen(name) > ENTRY_NAME_MAX ?
			 -ENOENT :
			 lifecycle_find(job_lifecycle(w->job), w->directory, name, &e);
	if (result)
		return result;
	if (e.shadow) {
		arrive(w, TARGET_VIEW, e.item.id, true);
		entry_release(&e);
		return 0;
	}
	arrive(w, TARGET_ENTRY, S_ISDIR(e.item.mode) ? e.item.id : 0, true);
	w->found.entry = e;
	return 0;
}

/* A name in the live directory w->directory. */
static int step_live(struct walk *w, const char *name)
{
	struct inode i = { 0 };
	int result = access_path(w->job->control->namei, &w->job->actor, w->directory);

	if (result)
		return result;
	if (strlen(name) > KEY_NAME_MAX)
		return -ENOENT;
	result = namei_lookup(w->job->control->namei, w->directory, name, true, &i);
	if (result)
		return result;
	if (S_ISDIR(i.item.mode))
		arrive(w, TARGET_DIRECTORY, i.item.id, false);
	else
		arrive(w, TARGET_FILE, 0, false);
	inode_release(&i);
	return 0;
}

static int step(struct walk *w, const char *name, bool last)
{
	int result;

	if (!w->directory)
		return -ENOTDIR;
	if (w->view)
		return step_view(w, name);
	if (!strcmp(name, store_trash_name(job_store(w->job)))) {
		arrive(w, TARGET_VIEW, w->directory, true);
		return 0;
	}
	result = last && w->deleted ? step_view(w, name) : -ENOENT;
	/* A shadow is of a directory that lives. */
	if (result == 0 && w->found.kind == TARGET_VIEW)
		arrive(w, TARGET_DIRECTORY, w->directory, false);
	if (result != -ENOENT)
		return result;
	result = step_live(w, name);
	/* Gone, or a file now where the path goes on: what was there before is in the trash. */
	if (result == -ENOENT && !(last && w->deleted))
		return step_view(w, name);
	if (result == 0 && !last && w->found.kind == TARGET_FILE)
		return -ENOTDIR;
	return result;
}

/* As step; where a file stands in the way, the directory of that name that was deleted is meant. */
static int step_around(struct walk *w, const char *name, bool last)
{
	uint64_t directory = w->directory;
	bool view = w->view;
	int result = step(w, name, last);

	if (result != -ENOTDIR || !directory || view)
		return result;
	w->directory = directory;
	result = step_view(w, name);
	return result == -ENOENT ? -ENOTDIR : result;
}

int target_find(struct job *j, const char *path, bool deleted, struct target *ret_target)
{
	struct walk w = { .job = j, .directory = KEY_ID_ROOT, .deleted = deleted };
	_cleanup_free_ char *copy = strdup(path);
	char *at = copy, *name, *following;
	int result = copy ? 0 : -ENOMEM;

	w.found.kind = TARGET_DIRECTORY;
	name = copy ? strsep(&at, "/") : NULL;
	for (; result == 0 && name; name = following) {
		following = strsep(&at, "/");
		while (following && !*following)
			following = strsep(&at, "/");
		if (*name)
			result = step_around(&w, name, !following);
	}
	if (result) {
		target_release(&w.found);
		return result;
	}
	w.found.directory = w.directory;
	*ret_target = w.found;
	return 0;
}

char *job_in_way(struct job *j, const char *path)
{
	_cleanup_free_ char *copy = strdup(path);
	uint64_t directory = KEY_ID_ROOT;
	char *slash;

	for (char *name = copy; name && (slash = strchr(name + 1, '/')); name = slash) {
		struct inode i = { 0 };
		bool file;

		*slash = '\0';
		if (namei_lookup(j->control->namei, directory, name + 1, true, &i))
			return NULL;
		file = !S_ISDIR(i.item.mode);
		directory = i.item.id;
		inode_release(&i);
		if (file)
			return util_steal(copy);
		*slash = '/';
	}
	return NULL;
}

int job_path(struct job *j, const char *key, char **ret_path)
{
	int result = bytes_from_json(j->request, key, ret_path);

	if (result == 0 && **ret_path == '/')
		return 0;
	if (result == 0)
		result = -EINVAL;
	job_error(j, CONTROL_USAGE, NULL, "\"%s\" of the request: %s", key,
		  result == -ENOENT ? "missing" : "not an absolute path");
	return result;
}

int job_target(struct job *j, const char *key, bool deleted, char **ret_path, struct target *ret_target)
{
	int result = job_path(j, key, ret_path);

	if (result)
		return result;
	result = target_find(j, *ret_path, deleted, ret_target);
	if (result)
		job_error_errno(j, *ret_path, result);
	return result;
}
