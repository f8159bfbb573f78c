/*
 * repair-aside.c - the directory that damaged items are moved to, and what is
 * moved there.
 *
 * It is a directory of the tree like any other, made in the root when it is
 * first needed and known by an extended attribute that no user can set: what is
 * damaged in it is no problem to later checks. What is in it is read, copied
 * and removed as anywhere; a byte that is damaged stays an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "lifecycle/internal.h"
#include "lifecycle/repair.h"

#define ASIDE_MARK POLICY_PREFIX_TRUSTED "quarantine"
#define ASIDE_TRIES 100
#define NAME_TRIES 100000
#define UNIT UINT64_C(4096) /* of what a body holds and what not */

/* ---- the directory ---------------------------------------------------------------------- */

static bool has_mark(const struct item *item)
{
	const uint8_t *value;
	const char *name;
	size_t at = 0, size;

	if (!S_ISDIR(item->mode) || item->flags & ITEM_XATTR_APART)
		return false;
	while (record_xattr_next(item->xattrs, item->xattrs_size, &at, &name, &value, &size) > 0)
		if (strcmp(name, ASIDE_MARK) == 0)
			return true;
	return false;
}

int repair_is_aside(struct store *s, uint64_t directory)
{
	struct tree_directory d;
	int result = tree_load(s, directory, &d);

	if (result)
		return result;
	result = has_mark(&d.own);
	tree_release(&d);
	return result;
}

static int make_aside(struct repair *r, const char *name)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(buffer_release) struct buffer xattrs = { 0 };
	struct timespec now = tree_time(store_now_ns(r->store));
	struct guard guard = { .at = { .directory = KEY_ID_ROOT, .state = KEY_ACT } };
	struct item item = {
		.mode = S_IFDIR | 0700,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.directory = { .trash_mask = 0777 },
		.links_live = 1,
		.links_total = 1,
		.content = (const uint8_t *)"",
	};
	struct tree_directory root;
	int result = store_new_id(r->store, &item.id);

	if (!result)
		result = record_xattr_edit(NULL, 0, ASIDE_MARK, (const uint8_t *)"1", 1, &xattrs);
	if (!result)
		result = tree_load(r->store, KEY_ID_ROOT, &root);
	if (result)
		return result;
	snprintf(guard.at.name, sizeof(guard.at.name), "%s", name);
	item.uid = root.own.uid;
	item.gid = root.own.gid;
	item.xattrs = xattrs.bytes;
	item.xattrs_size = xattrs.size;
	root.own.directory.subdirectories++;
	tree_touch(&root, store_now_ns(r->store));
	transaction_put_item(&t, r->store, &guard.at, &item, 0);
	transaction_put_guard(&t, item.id, &guard, 0);
	tree_put_own(&t, r->store, &root);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	tree_release(&root);
	if (!result)
		r->aside = item.id;
	return result;
}

/* A user may have something of that name. */
static int find_aside(struct repair *r)
{
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT };

	for (unsigned i = 1; i < ASIDE_TRIES && !r->aside; i++) {
		_cleanup_(store_value_release) struct store_value value = { 0 };
		struct item item;
		int result;

		snprintf(at.name, sizeof(at.name), i == 1 ? QUARANTINE_NAME : QUARANTINE_NAME ".%u", i);
		snprintf(r->aside_name, sizeof(r->aside_name), "%s", at.name);
		result = record_get_item(r->store, &at, true, &value, &item);
		if (result == STORE_ABSENT)
			return make_aside(r, at.name);
		if (result && !damaged_is(result))
			return result;
		if (!result && has_mark(&item))
			r->aside = item.id;
	}
	return r->aside ? 0 : -EEXIST;
}

/* A free place in it: `name`, or "name.2" and so on; a name that is too long for that becomes the item's number. */
static int find_place(struct repair *r, const char *name, uint64_t id, struct place *ret_at)
{
	struct place at = { .state = KEY_ACT };
	int result = find_aside(r);

	at.directory = r->aside;
	for (unsigned i = 1; i < NAME_TRIES && !result; i++) {
		struct store_value value = { 0 };
		struct key key;

		if (i == 1)
			snprintf(at.name, sizeof(at.name), "%s", name);
		else if (snprintf(at.name, sizeof(at.name), "%s.%u", name, i) > KEY_NAME_MAX)
			snprintf(at.name, sizeof(at.name), "item-%" PRIu64 ".%u", id, i);
		key_item(store_codec(r->store), &at, &key);
		result = store_get(r->store, &key, true, &value);
		store_value_release(&value);
		if (result == STORE_ABSENT) {
			*ret_at = at;
			return 0;
		}
		result = damaged_is(result) ? 0 : result;
	}
	return result ? result : -EEXIST;
}

/* ---- what is moved there ------------------------------------------------------------------ */

static int move_name(struct repair *r, const struct place *at, const struct item *row)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(transaction_release) struct transaction t = { 0 };
	char text[KEY_NAME_MAX + 64];
	struct item item;
	struct place to;
	int result = record_get_item(r->store, at, false, &value, &item);

	if (!result)
		result = find_place(r, at->name, row->id, &to);
	/* One that is there already by another of its names. */
	if (result || at->directory == r->aside)
		return result;
	transaction_delete_item(&t, r->store, at, item.version);
	item.flags &= ~(uint32_t)ITEM_DELETION;
	item.deletion = (struct deletion){ 0 };
	transaction_put_item(&t, r->store, &to, &item, 0);
	result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	if (result)
		return result;
	snprintf(text, sizeof(text), "moved to /%s/%s: part of its content cannot be read",
		 r->aside_name, to.name);
	repair_tell_at(r, at, text);
	return 0;
}

/* The disk may have got over it, or may not have been what was wrong. */
int repair_aside(struct repair *r, const struct fix *fix)
{
	int result = check_reread_body(r->check, fix->body, fix->size);

	return check_is_damage(result) ? repair_all_names(r, fix->id, move_name) : result;
}

static int put_found(struct repair *r, struct item *item, const char *name, const struct key *instead)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct place to;
	int result = find_place(r, name, item->id, &to);

	if (result)
		return result;
	transaction_put_item(&t, r->store, &to, item, 0);
	if (instead)
		transaction_delete(&t, instead, STORE_ANY, 0);
	result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	if (!result)
		repair_tell(r, to.name, "a file that had lost its name is now in /%s", r->aside_name);
	return result;
}

int repair_link(struct repair *r, uint64_t id)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	char name[32];
	struct item item;
	struct key key;
	int result = record_get_link(r->store, id, false, &value, &item);

	if (result)
		return result;
	item.links_live = item.links_total = 1;
	snprintf(name, sizeof(name), "item-%" PRIu64, id);
	key_link(id, &key);
	return put_found(r, &item, name, &key);
}

/* Whether nothing is in a body from `offset` on, nor anything that cannot be read: 1, 0, or an errno where nobody knows. */
static int is_past_end(struct store *s, uint64_t body, uint64_t offset)
{
	uint64_t data;
	int result = store_body_seek(s, body, offset, true, &data);

	return result ? damaged_is(result) ? 0 : result : data >= INT64_MAX;
}

/*
 * Where the last of a body ends, be it a part that can be read or one that is
 * damaged. 0: it is empty. By halves: what is damaged hides what lies behind it.
 */
static int find_end(struct store *s, uint64_t body, uint64_t *ret_end)
{
	uint64_t low = 0, high = INT64_MAX / UNIT; /* in units: not past the end below `low`; past it from `high` on */

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int result = is_past_end(s, body, middle * UNIT);

		if (result < 0)
			return result;
		if (result)
			high = middle;
		else
			low = middle + 1;
	}
	*ret_end = low * UNIT;
	return 0;
}

static int free_body(struct repair *r, uint64_t body)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };

	transaction_body_free(&t, body);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

static int owner(struct repair *r, struct item *item)
{
	struct tree_directory root;
	int result = tree_load(r->store, KEY_ID_ROOT, &root);

	if (result)
		return result;
	item->uid = root.own.uid;
	item->gid = root.own.gid;
	tree_release(&root);
	return 0;
}

static int new_file(struct repair *r, struct item *ret_item)
{
	struct timespec now = tree_time(store_now_ns(r->store));
	struct item item = {
		.mode = S_IFREG | 0600,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.links_live = 1,
		.links_total = 1,
		.content = (const uint8_t *)"",
	};
	int result = store_new_id(r->store, &item.id);

	if (!result)
		result = owner(r, &item);
	if (!result)
		*ret_item = item;
	return result;
}

int repair_body(struct repair *r, uint64_t body)
{
	char name[32];
	struct item item;
	uint64_t end;
	int result = find_end(r->store, body, &end);

	if (!result && !end)
		return free_body(r, body);
	if (!result)
		result = new_file(r, &item);
	if (result)
		return result;
	item.body = body;
	item.size = end;
	item.flags = ITEM_SPARSE;
	snprintf(name, sizeof(name), "body-%" PRIu64, body);
	return put_found(r, &item, name, NULL);
}

int repair_directory(struct repair *r, uint64_t id)
{
	struct key_range range;
	struct place to;
	struct key key;
	char name[32];
	int result;

	key_range_directory(id, &range);
	result = range_is_empty(r->store, &range);
	if (result < 0)
		return result;
	key_guard(id, &key);
	if (result)
		return repair_delete(r, &key);
	snprintf(name, sizeof(name), "directory-%" PRIu64, id);
	result = find_place(r, name, id, &to);
	if (!result)
		result = damaged_adopt_directory(r->store, id, &to);
	if (!result)
		repair_tell(r, to.name, "a directory that had lost its record is now in /%s",
			    r->aside_name);
	return result;
}

/* ---- the log ------------------------------------------------------------------------------ */

int repair_write_log(struct repair *r)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	time_t now = (time_t)(store_now_ns(r->store) / CLOCK_SECOND_NS);
	char name[64];
	struct item item;
	struct place to;
	struct tm tm;
	int result = r->log.failed ? -ENOMEM : new_file(r, &item);

	if (!result)
		result = store_new_id(r->store, &item.body);
	strftime(name, sizeof(name), "quarantine-%Y-%m-%dT%H:%M:%SZ.log", gmtime_r(&now, &tm));
	if (!result)
		result = find_place(r, name, item.id, &to);
	if (result)
		return result;
	item.size = r->log.size;
	transaction_put_item(&t, r->store, &to, &item, 0);
	transaction_body_write(&t, item.body, 0, r->log.bytes, r->log.size);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	transaction_count_add(&t, COUNTER_LIVE_BYTES, (int64_t)item.size);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}
