/*
 * control-list.c - "list": what was deleted in and below a directory.
 *
 * In: path; of filters since_ns (an age), uid, name (a pattern), limit.
 * Rows: path (where it was), trash_path (where it is to be seen), shown_path
 * (where it was, with the name that tells it from others), type, size,
 * expires_at_ns, cause, id; of what was deleted itself, not with its directory:
 * deleted_at_ns, uid, gid, pid, command, batch.
 *
 * Directories wait in a list rather than on the stack, since trees may be deep;
 * rows are taken a page at a time, so that nothing is said while lifecycle is
 * being asked.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

#define PAGE_ROWS 64

/* What is needed of an entry once it is released. */
struct found {
	struct place at;
	struct item item; /* its borrowed pointers are NULL */
	int64_t expires_ns;
	bool shadow;
	char shown[ENTRY_NAME_MAX + 1];
};

struct page {
	struct found rows[PAGE_ROWS];
	size_t count;
	struct key last;
	bool more;
};

/* A directory whose view is to be listed. */
struct pending {
	struct pending *next;
	uint64_t directory;
	char *path; /* where it is, or was before it was deleted */
	char *shown; /* what leads to it now: the same, but for a deleted one */
	char *view; /* its view's path */
};

struct listing {
	struct job *job;
	struct pending *pending;
	struct page *page;
	uint64_t looked_at, said;
	int64_t since_ns; /* deleted before: left out */
	int64_t uid; /* -1: all */
	int64_t limit; /* -1: none */
	char *name; /* NULL: all */
};

/* ---- one row ---------------------------------------------------------------- */

/* A live item of a deleted directory was not deleted itself. */
static const char *cause_name(const struct found *f)
{
	return f->item.flags & ITEM_DELETION ? lifecycle_cause_word(f->item.deletion.cause) : "inside";
}

/* DIRECTORY/NAME, NULL for lack of memory. */
static char *below(const char *directory, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", directory[1] ? directory : "", name) < 0 ? NULL : path;
}

static void set_path(json_t *row, const char *key, const char *directory, const char *name)
{
	_cleanup_free_ char *path = below(directory, name);

	if (path)
		bytes_to_json(row, key, path);
}

/* Who, when, with what. */
static void set_deletion(json_t *row, const struct found *f)
{
	const struct deletion *d = &f->item.deletion;
	char batch[24];

	snprintf(batch, sizeof(batch), "%llu", (unsigned long long)d->batch);
	json_object_update_new(row, json_pack("{sI sI sI sI ss}", "deleted_at_ns", (json_int_t)f->at.seq,
					      "uid", (json_int_t)d->uid, "gid", (json_int_t)d->gid,
					      "pid", (json_int_t)d->pid, "batch", batch));
	bytes_to_json(row, "command", d->command);
}

static void say_row(struct listing *l, const struct pending *in, const struct found *f)
{
	json_t *row = json_pack("{ss sI sI ss sI}", "type", job_type_name(f->item.mode), "size",
				(json_int_t)(S_ISREG(f->item.mode) ? f->item.size : 0),
				"expires_at_ns", (json_int_t)f->expires_ns, "cause", cause_name(f),
				"id", (json_int_t)f->item.id);

	set_path(row, "path", in->path, f->at.name);
	set_path(row, "shown_path", in->shown, f->shown);
	set_path(row, "trash_path", in->view, f->shown);
	if (f->item.flags & ITEM_DELETION)
		set_deletion(row, f);
	job_row(l->job, row);
	l->said++;
}

static bool is_wanted(const struct listing *l, const struct found *f)
{
	if (l->since_ns && (int64_t)f->at.seq < l->since_ns)
		return false;
	if (l->uid >= 0 && (!(f->item.flags & ITEM_DELETION) || f->item.deletion.uid != l->uid))
		return false;
	return !l->name || fnmatch(l->name, f->at.name, 0) == 0;
}

/* ---- pages ------------------------------------------------------------------- */

static bool take_entry(void *data, const struct entry *e, const struct key *key)
{
	struct page *p = data;
	struct found *f = &p->rows[p->count];

	*f = (struct found){ .at = e->at, .item = e->item, .expires_ns = e->expires_ns, .shadow = e->shadow };
	f->item.xattrs = f->item.content = NULL;
	memcpy(f->shown, e->shown, sizeof(f->shown));
	p->last = *key;
	p->more = ++p->count == PAGE_ROWS;
	return p->more;
}

static void pending_free(struct pending *p)
{
	free(p->path);
	free(p->shown);
	free(p->view);
	free(p);
}

/* Takes over the paths, any of which may be NULL for lack of memory. */
static int push(struct listing *l, uint64_t directory, char *path, char *shown, char *view)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (!p) {
		free(path);
		free(shown);
		free(view);
		return -ENOMEM;
	}
	*p = (struct pending){ l->pending, directory, path, shown, view };
	if (!path || !shown || !view) {
		pending_free(p);
		return -ENOMEM;
	}
	l->pending = p;
	return 0;
}

/* By its own .trash, not by the shadow, whose name a deleted item may bear. */
static int push_shadow(struct listing *l, const struct pending *in, const struct found *f)
{
	char *path = below(in->path, f->at.name);
	char *view = path ? below(path, store_trash_name(job_store(l->job))) : NULL;

	return push(l, f->item.id, path, path ? strdup(path) : NULL, view);
}

/* 0, 1 to stop, negative errno. */
static int list_page(struct listing *l, const struct pending *in)
{
	struct page *p = l->page;

	for (size_t i = 0; i < p->count; i++) {
		const struct found *f = &p->rows[i];
		int result = 0;

		if (f->shadow)
			result = push_shadow(l, in, f);
		else if (is_wanted(l, f))
			say_row(l, in, f);
		if (result)
			return result;
		if (l->limit >= 0 && l->said >= (uint64_t)l->limit)
			return 1;
	}
	l->looked_at += p->count;
	return job_throttle(l->job) || job_progress(l->job, l->looked_at, 0);
}

static int list_directory(struct listing *l, const struct pending *in)
{
	struct key after;
	int result = job_may_list(l->job, in->directory);

	if (result)
		return result;
	do {
		bool first = !l->page->more;

		after = l->page->last;
		l->page->count = 0;
		l->page->more = false;
		result = lifecycle_list(job_lifecycle(l->job), in->directory, first ? NULL : &after,
					take_entry, l->page);
		if (result >= 0)
			result = list_page(l, in);
	} while (result == 0 && l->page->more);
	l->page->more = false;
	return result;
}

/* What the actor may not see below the first directory, or what was destroyed meanwhile, is left out, as in the tree. */
static int list_all(struct listing *l)
{
	int result = 0;

	for (bool first = true; result == 0 && l->pending; first = false) {
		struct pending *p = l->pending;

		l->pending = p->next;
		result = list_directory(l, p);
		if (!first && (result == -EACCES || result == -ENOENT))
			result = 0;
		pending_free(p);
	}
	return result;
}

/* ---- the request --------------------------------------------------------------- */

static int set_filters(struct listing *l)
{
	int64_t age = job_number(l->job, "since_ns");
	const json_t *uid = json_object_get(l->job->request, "uid"),
		     *limit = json_object_get(l->job->request, "limit");
	int result = bytes_from_json(l->job->request, "name", &l->name);

	l->since_ns = age > 0 ? store_now_ns(job_store(l->job)) - age : 0;
	l->uid = uid ? json_integer_value(uid) : -1;
	l->limit = limit ? json_integer_value(limit) : -1;
	return result == -ENOENT ? 0 : result;
}

/* `given` leads through .trash where it names a view or something in one, else the view is the directory's .trash. */
static int push_first(struct listing *l, const char *given, const struct target *t)
{
	const char *trash = store_trash_name(job_store(l->job));
	struct guard guard;
	char *path = NULL;
	int result = record_get_guard(job_store(l->job), t->directory, &guard);

	if (result == 0)
		result = tree_path(job_store(l->job), &guard.at, &path);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	return push(l, t->directory, path, strdup(t->kind == TARGET_ENTRY ? given : path),
		    t->kind == TARGET_DIRECTORY ? below(path, trash) : strdup(given));
}

static int list(struct listing *l, const char *path, const struct target *t)
{
	int result = set_filters(l);

	l->page = calloc(1, sizeof(*l->page));
	if (!l->page)
		return -ENOMEM;
	if (result == 0)
		result = push_first(l, path, t);
	return result || l->limit == 0 ? result : list_all(l);
}

static void listing_release(struct listing *l)
{
	struct pending *next;

	for (struct pending *p = l->pending; p; p = next) {
		next = p->next;
		pending_free(p);
	}
	free(l->page);
	free(l->name);
}

void job_list(struct job *j)
{
	_cleanup_(target_release) struct target t = { 0 };
	_cleanup_free_ char *path = NULL;
	struct listing l = { .job = j };
	int result;

	if (job_target(j, "path", false, &path, &t))
		return;
	if (!t.directory) {
		job_error(j, CONTROL_NOT_FOUND, path,
			  "not a directory; give the directory it was deleted in");
		return;
	}
	result = list(&l, path, &t);
	if (job_cancelled(j))
		job_error(j, CONTROL_INTERRUPTED, NULL, "interrupted; the list is not complete");
	else if (result < 0)
		job_error_errno(j, path, result);
	else
		job_result(j, CONTROL_DONE, json_pack("{sI}", "count", (json_int_t)l.said));
	listing_release(&l);
}
