/*
 * repair.c - see repair.h: the rounds of check and repair, and what its parts
 * share.
 */
#include "lifecycle/repair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* What a fix leaves to be counted or removed is found by the next round; it is not more than this deep. */
#define ROUNDS 6
#define TEXT_MAX 512
#define LOG_MAX (512 << 10)

void repair_tell(struct repair *r, const char *path, const char *format, ...)
{
	char text[TEXT_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	r->done++;
	if (r->hooks->action)
		r->hooks->action(r->hooks->data, path, text);
	if (r->log.size > LOG_MAX)
		return;
	buffer_append(&r->log, path, strlen(path));
	buffer_append(&r->log, ": ", 2);
	buffer_append(&r->log, text, strlen(text));
	buffer_append_u8(&r->log, '\n');
}

void repair_tell_at(struct repair *r, const struct place *at, const char *text)
{
	_cleanup_free_ char *path = NULL;
	struct place shown = *at;

	damaged_show(at, shown.name);
	if (tree_path(r->store, &shown, &path))
		path = NULL;
	repair_tell(r, path ? path : shown.name, "%s", text);
}

struct name_visit {
	struct repair *repair;
	uint64_t id;
	int (*visit)(struct repair *r, const struct place *at, const struct item *item);
};

static int visit_row(struct check *c, const struct store_row *row, void *data)
{
	struct name_visit *v = data;
	struct place at;
	struct item item;

	if (record_row_item(c->store, row, &at, &item) || item.id != v->id)
		return 0;
	return v->visit(v->repair, &at, &item);
}

int repair_each_name(struct repair *r, uint64_t directory, uint64_t id,
		     int (*visit)(struct repair *r, const struct place *at, const struct item *item))
{
	struct name_visit v = { r, id, visit };
	struct key_range range;

	key_range_directory(directory, &range);
	return check_range(r->check, &range, visit_row, &v);
}

int repair_all_names(struct repair *r, uint64_t id,
		     int (*visit)(struct repair *r, const struct place *at, const struct item *item))
{
	const struct marks *names = &r->check->names;
	uint64_t last = UINT64_MAX;
	int result = 0;

	for (size_t i = marks_find(names, id);
	     i < names->count && names->items[i].id == id && !result; i++)
		if (names->items[i].directory != last) {
			last = names->items[i].directory;
			result = repair_each_name(r, last, id, visit);
		}
	return result;
}

int repair_reread(struct repair *r, const struct key *key)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };

	return store_get(r->store, key, false, &value);
}

int repair_delete(struct repair *r, const struct key *key)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };

	transaction_delete(&t, key, STORE_ANY, 0);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

int repair_put(struct repair *r, const struct key *key, const struct buffer *attrs)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };

	transaction_put(&t, key, attrs->bytes, attrs->size, NULL, 0, STORE_ANY, 0);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

/* ---- one fix ------------------------------------------------------------------ */

static int delete_row(struct repair *r, const struct fix *fix)
{
	int result = repair_reread(r, &fix->key);

	if (result == -EBADMSG || (!result && !fix->damaged))
		return repair_delete(r, &fix->key);
	return result;
}

static int delete_counters(struct repair *r)
{
	int64_t counters[STORE_COUNTERS_MAX];
	struct key key;
	int result = record_get_counters(r->store, counters);

	if (!damaged_is(result))
		return result;
	key_meta(ITEM_COUNTERS, &key);
	return repair_delete(r, &key);
}

static int truncate_body(struct repair *r, const struct fix *fix)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };

	transaction_body_truncate(&t, fix->id, fix->size);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

static int add_counter(struct repair *r, const struct fix *fix)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };

	transaction_count_add(&t, (enum item_counter)fix->counter, fix->delta);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

static int apply(struct repair *r, const struct fix *fix)
{
	switch (fix->kind) {
	case FIX_DELETE:
		return delete_row(r, fix);
	case FIX_DAMAGED:
		return repair_damaged(r, &fix->key);
	case FIX_ASIDE:
		return repair_aside(r, fix);
	case FIX_NAMES:
		return repair_names(r, fix->id);
	case FIX_LINK:
		return repair_link(r, fix->id);
	case FIX_BODY:
		return repair_body(r, fix->id);
	case FIX_TRUNCATE:
		return truncate_body(r, fix);
	case FIX_DIRECTORY:
		return repair_directory(r, fix->id);
	case FIX_GUARD:
		return repair_guard(r, fix->id);
	case FIX_ROWS:
		return repair_rows(r, &fix->at);
	case FIX_SHADOW:
		return repair_shadow(r, fix->id);
	case FIX_SUBDIRECTORIES:
		return repair_subdirectories(r, fix->id);
	case FIX_LINKS:
		return repair_links(r, fix);
	case FIX_XATTRS:
		return repair_xattrs(r, fix);
	case FIX_BATCH:
		return repair_batch(r, fix);
	case FIX_COUNTERS:
		return delete_counters(r);
	case FIX_COUNTER:
		return add_counter(r, fix);
	case FIX_FREE:
		return 0; /* in give_back, all at once */
	}
	return 0;
}

/* What cannot be done for damage elsewhere, or for what changed by another fix, is met again in the next round. */
static bool is_for_later(int result)
{
	return result > 0 || check_is_damage(result) || result == -ENOENT;
}

static int apply_all(struct repair *r, const struct fixes *fixes)
{
	for (size_t i = 0; i < fixes->count; i++) {
		int result = apply(r, &fixes->items[i]);

		if (result && !is_for_later(result))
			return result;
		result = check_step(r->check);
		if (result)
			return result;
	}
	return 0;
}

/* What belongs to nothing, in damaged records of freed space too. */
static int give_back(struct repair *r)
{
	uint64_t bytes;
	int result = store_unused(r->store, true, &bytes);

	if (!result)
		r->given_back += bytes;
	return result;
}

/* ---- rounds --------------------------------------------------------------------- */

/* 1: something was found that can be mended, and was tried. */
static int round_once(struct repair *r, bool first, struct check_result *ret_result)
{
	const struct quarantine_hooks *hooks = r->hooks;
	struct fixes fixes = { 0 };
	struct check c = {
		.store = r->store,
		.problem = first ? hooks->problem : NULL,
		.aside = first ? hooks->aside : NULL,
		.progress = hooks->progress,
		.data = hooks->data,
		.fixes = &fixes,
	};
	int result = check_init(&c);

	r->check = &c;
	if (!result)
		result = check_run(&c);
	if (!result) {
		*ret_result = c.result;
		result = apply_all(r, &fixes);
		for (size_t i = 0; i < fixes.count && !result; i++)
			if (fixes.items[i].kind == FIX_FREE) {
				result = give_back(r);
				break;
			}
	}
	if (!result)
		result = fixes.count > 0;
	check_release(&c);
	free(fixes.items);
	return result;
}

int lifecycle_quarantine(struct store *s, const struct quarantine_hooks *hooks,
			 struct check_result *ret_before, struct check_result *ret_after)
{
	struct repair r = { .store = s, .hooks = hooks };
	struct check_result before = { 0 }, after = { 0 };
	int result = 1;

	for (unsigned round = 0; round < ROUNDS && result == 1; round++) {
		result = round_once(&r, round == 0, &after);
		if (round == 0)
			before = after;
	}
	if (result >= 0)
		result = give_back(&r);
	before.unused_bytes = r.given_back;
	/* What was done so far is written down also when it could not be ended. */
	if (r.done) {
		int written = repair_write_log(&r);

		result = result < 0 ? result : written < 0 ? written : result;
	}
	buffer_release(&r.log);
	if (result < 0)
		return result;
	*ret_before = before;
	*ret_after = after;
	return 0;
}
