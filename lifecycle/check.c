/*
 * check.c - the walk over a whole store, and how a fault is told.
 */
#include "lifecycle/check.h"
#include "lifecycle/repair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- marks -------------------------------------------------------------- */

int marks_add(struct marks *m, const struct mark *mark)
{
	struct mark *grown;
	size_t capacity;

	if (m->count == m->capacity) {
		capacity = util_max(m->capacity + m->capacity / 2, (size_t)256);
		grown = reallocarray(m->items, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		m->items = grown;
		m->capacity = capacity;
	}
	m->items[m->count++] = *mark;
	return 0;
}

static int order_of_marks(const void *a, const void *b)
{
	const struct mark *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->directory < y->directory ? -1 : x->directory > y->directory;
}

void marks_sort(struct marks *m)
{
	if (m->count)
		qsort(m->items, m->count, sizeof(*m->items), order_of_marks);
}

size_t marks_find(const struct marks *m, uint64_t id)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void marks_release(struct marks *m)
{
	free(m->items);
	*m = (struct marks){ 0 };
}

/* ---- telling ------------------------------------------------------------ */

#define TEXT_MAX 512

/* What a fault is of. */
struct subject {
	char *path; /* NULL: no memory */
	char *origin; /* of what is in the trash: the path it had, as text; else NULL */
};

static struct subject subject_of(struct check *c, const struct place *at);

static void subject_release(struct subject *s)
{
	free(s->path);
	free(s->origin);
}

__attribute__((format(printf, 3, 0))) static void tell(struct check *c, const struct subject *s,
						       const char *format, va_list arguments)
{
	char text[TEXT_MAX];
	int used;

	c->result.problems++;
	if (!c->problem)
		return;
	used = vsnprintf(text, sizeof(text), format, arguments);
	if (s->origin && used >= 0 && (size_t)used < sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, "; deleted from %s", s->origin);
	c->problem(c->data, s->path ? s->path : "(no memory to say where)", text);
}

void check_set_aside(struct check *c, const struct place *at, const char *format, ...)
{
	_cleanup_(subject_release) struct subject subject = subject_of(c, at);
	const char *path = subject.path;
	void (*aside)(void *, const char *, const char *) = c->aside ? c->aside : c->problem;
	char text[TEXT_MAX];
	va_list arguments;

	c->result.set_aside++;
	if (!aside)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	aside(c->data, path ? path : at->name, text);
}

bool check_is_aside(struct check *c, uint64_t directory)
{
	if (directory != c->last_asked) {
		c->last_aside = repair_is_aside(c->store, directory) == 1;
		c->last_asked = directory;
	}
	return c->last_aside;
}

void check_fix(struct check *c, const struct fix *fix)
{
	struct fixes *f = c->fixes;

	if (!f)
		return;
	if (f->count == f->capacity) {
		size_t capacity = util_max(2 * f->capacity, (size_t)64);
		struct fix *grown = reallocarray(f->items, capacity, sizeof(*grown));

		if (!grown) {
			c->failed = true;
			return;
		}
		f->items = grown;
		f->capacity = capacity;
	}
	f->items[f->count++] = *fix;
}

void check_fix_read(struct check *c, int result, const struct fix *fix)
{
	if (result == -EIO)
		c->result.unreadable++;
	else
		check_fix(c, fix);
}

const char *check_words(int result)
{
	return result == STORE_ABSENT ? "missing" :
	       result == -EIO	      ? "unreadable (an error of the disk)" :
					"damaged";
}

struct search {
	uint64_t id;
	struct place at;
	bool found;
};

static int search_row(struct check *c, const struct store_row *row, void *data)
{
	struct search *search = data;
	struct place at;
	struct item item;

	if (!search->found && record_row_item(c->store, row, &at, &item) == 0 && item.id == search->id) {
		search->at = at;
		search->found = true;
	}
	return 0;
}

/* Faults are rare: a name is looked for only now, instead of being kept for every item. */
static struct subject subject_of_item(struct check *c, uint64_t directory, uint64_t id)
{
	struct search search = { .id = id };
	struct subject subject = { 0 };
	struct key_range range;

	key_range_directory(directory, &range);
	if (check_range(c, &range, search_row, &search) == 0 && search.found)
		return subject_of(c, &search.at);
	if (asprintf(&subject.path, "(item %" PRIu64 ")", id) < 0)
		subject.path = NULL;
	return subject;
}

/* It becomes part of a text, not of a path: what no terminal should see is left out. */
static void make_plain(char *text)
{
	for (; *text; text++)
		*text = *text < ' ' || *text > '~' ? '?' : *text;
}

/* A path also for what no longer hangs in the tree. */
static struct subject subject_of(struct check *c, const struct place *at)
{
	struct subject subject = { 0 };
	char *path;

	if (!at->name[0] && c->link)
		return subject_of_item(c, at->directory, c->link);
	if (tree_path(c->store, at, &path)) {
		if (asprintf(&path, "(directory %" PRIu64 ")/%s", at->directory, at->name) < 0)
			path = NULL;
		subject.path = path;
	} else if (check_trash_path(c->store, at, &subject.path)) {
		subject.path = path;
	} else {
		make_plain(path);
		subject.origin = path;
	}
	return subject;
}

void check_problem(struct check *c, const struct place *at, const char *format, ...)
{
	_cleanup_(subject_release) struct subject subject = subject_of(c, at);
	va_list arguments;

	va_start(arguments, format);
	tell(c, &subject, format, arguments);
	va_end(arguments);
}

void check_problem_of(struct check *c, const char *what, const char *format, ...)
{
	_cleanup_(subject_release) struct subject subject = { .path = strdup(what) };
	va_list arguments;

	va_start(arguments, format);
	tell(c, &subject, format, arguments);
	va_end(arguments);
}

void check_problem_item(struct check *c, uint64_t directory, uint64_t id, const char *format, ...)
{
	_cleanup_(subject_release) struct subject subject = subject_of_item(c, directory, id);
	va_list arguments;

	va_start(arguments, format);
	tell(c, &subject, format, arguments);
	va_end(arguments);
}

/* ---- walking ------------------------------------------------------------ */

#define PROGRESS_EVERY 1024

int check_step(struct check *c)
{
	if (++c->done % PROGRESS_EVERY == 0 && c->progress && c->progress(c->data, c->done))
		return -EINTR;
	return 0;
}

int check_range(struct check *c, const struct key_range *range,
		int (*row)(struct check *c, const struct store_row *row, void *data), void *data)
{
	struct store_query query = { .range = *range };
	struct key after;
	bool more = true;
	int result = 0;

	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(c->store, &query, &page);
		if (result)
			break;
		for (size_t i = 0; i < page.count && !result; i++)
			result = row(c, &page.rows[i], data);
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	return result;
}

/* Partitions that are walked as they are met; *ret_range is the whole of the one that `key` is in. */
static int walk_partition(struct check *c, const struct key *key, struct key_range *ret_range)
{
	struct key_parts parts;
	int result = key_parse(store_codec(c->store), key->bytes, key->size, &parts);

	if (result)
		return result;
	switch (parts.kind) {
	case KEY_KIND_ITEM:
	case KEY_KIND_SHADOW:
		key_range_directory(parts.id, ret_range);
		return check_partition(c, parts.id);
	case KEY_KIND_BODY:
		key_range_body(parts.id, ret_range);
		return marks_add(&c->partitions, &(struct mark){ .id = parts.id });
	case KEY_KIND_GUARD:
		key_range_guards(ret_range);
		return 0;
	case KEY_KIND_LINK:
		key_range_links(ret_range);
		return 0;
	case KEY_KIND_XATTR:
		key_range_xattrs(ret_range);
		return 0;
	case KEY_KIND_TRASH:
		key_range_trash(0, UINT64_MAX, ret_range);
		return 0;
	case KEY_KIND_DUE:
		key_range_due(ITEM_FOREVER, ret_range);
		return 0;
	case KEY_KIND_BATCH:
		key_range_batches_all(ret_range);
		return 0;
	case KEY_KIND_META:
		key_range_meta(ret_range);
		return 0;
	case KEY_KIND_FREE_BODY:
	case KEY_KIND_FREE_RUN:
		key_range_free(ret_range);
		return 0;
	}
	return -EBADMSG;
}

/* The smallest key above `key`. */
static int step_over(struct key *key)
{
	if (key->size == KEY_MAX)
		return -EBADMSG;
	key->bytes[key->size++] = 0;
	return 0;
}

static int walk(struct check *c)
{
	struct key_range range;
	struct key key;
	int result = store_scan(c->store, NULL, &key);

	while (!result) {
		result = walk_partition(c, &key, &range);
		if (result == -EBADMSG) {
			check_problem_of(c, "(key)", "a key that no version of ddbfs writes");
			range.to = key;
			result = step_over(&range.to);
		}
		if (!result)
			result = store_scan(c->store, &range.to, &key);
	}
	return result == STORE_ABSENT ? 0 : result;
}

int check_run(struct check *c)
{
	static int (*const parts[])(struct check *) = {
		walk,	     check_guards,     check_links,    check_xattrs,
		check_shape, check_trash_rows, check_due_rows, check_batches,
		check_free,  check_bodies,     check_counters,
	};
	int result = store_marks(c->store, &c->next_id, &c->last_seq);

	if (check_is_damage(result)) {
		check_problem_of(c, "(store)", "the record of ids or of the clock cannot be read");
		c->next_id = c->last_seq = INT64_MAX;
		result = 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !result; i++)
		result = parts[i](c);
	return result ? result : c->failed ? -ENOMEM : 0;
}

int check_init(struct check *c)
{
	c->block = malloc(CHECK_BLOCK);
	return c->block ? 0 : -ENOMEM;
}

void check_release(struct check *c)
{
	marks_release(&c->names);
	marks_release(&c->directories);
	marks_release(&c->subdirectories);
	marks_release(&c->xattrs);
	marks_release(&c->bodies);
	marks_release(&c->partitions);
	marks_release(&c->freed);
	marks_release(&c->entries);
	marks_release(&c->purged);
	free(c->block);
}

int lifecycle_check_told(struct store *s, const struct quarantine_hooks *hooks,
			 struct check_result *ret_result)
{
	struct check c = {
		.store = s,
		.problem = hooks->problem,
		.aside = hooks->aside,
		.progress = hooks->progress,
		.data = hooks->data,
	};
	int result = check_init(&c);

	if (!result)
		result = check_run(&c);
	check_release(&c);
	if (!result)
		result = store_unused(s, false, &c.result.unused_bytes);
	if (!result)
		*ret_result = c.result;
	return result;
}

int lifecycle_check(struct store *s, void (*problem)(void *data, const char *path, const char *text),
		    bool (*progress)(void *data, uint64_t done), void *data,
		    struct check_result *ret_result)
{
	struct quarantine_hooks hooks = { .problem = problem, .progress = progress, .data = data };

	return lifecycle_check_told(s, &hooks, ret_result);
}
