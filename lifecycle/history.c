/*
 * history.c - what became of what is no longer in the trash.
 *
 * Each entry that is destroyed leaves a record in the transaction that ends it:
 * where it was, who deleted it when, and why it went. The last HISTORY_MAX are
 * kept, in settings used in turn, so that neither a million expiries nor a full
 * disk make them a burden: a slot once used is only written over. Versions and
 * evictions are entries like any other; what went inside a directory is in that
 * one's record.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define META_PREFIX "gone."
#define FIXED_SIZE 62 /* all before the path */
#define PATH_KEPT 1024 /* bytes of a path that are kept: the last */

/* ---- records ----------------------------------------------------------------------- */

/* The end of a long one. It must not look like a whole one, which begins with a slash. */
static const char *path_kept(const char *path)
{
	size_t length = strlen(path);

	if (length <= PATH_KEPT)
		return path;
	path += length - PATH_KEPT;
	return path + (*path == '/');
}

static void encode(const struct gone *g, uint64_t number, struct buffer *b)
{
	const char *path = path_kept(g->path);
	size_t length = strlen(path);
	uint8_t *p = buffer_append(b, NULL, FIXED_SIZE + length);

	if (!p)
		return;
	memset(p, 0, FIXED_SIZE);
	p[0] = TREE_RECORD_FORMAT;
	p[1] = TREE_RECORD_GONE;
	p[2] = (uint8_t)g->cause;
	util_put_le64(p + 3, number);
	util_put_le64(p + 11, (uint64_t)g->destroyed_ns);
	util_put_le64(p + 19, (uint64_t)g->deleted_ns);
	util_put_le64(p + 27, g->size);
	util_put_le32(p + 35, g->mode);
	util_put_le32(p + 39, g->owner);
	util_put_le32(p + 43, g->uid);
	memcpy(p + 47, g->command, strlen(g->command));
	memcpy(p + FIXED_SIZE, path, length);
}

/* Bytes that are no such record: false. */
static bool decode(const struct store_value *value, struct gone *ret_gone, uint64_t *ret_number,
		   char ret_path[PATH_KEPT + 1])
{
	const uint8_t *p = value->attrs;
	size_t length = value->attrs_size - FIXED_SIZE;

	if (value->attrs_size < FIXED_SIZE || length > PATH_KEPT || p[0] != TREE_RECORD_FORMAT ||
	    p[1] != TREE_RECORD_GONE || p[2] >= STORE_COUNTERS_MAX)
		return false;
	*ret_number = util_get_le64(p + 3);
	*ret_gone = (struct gone){
		.cause = (enum item_counter)p[2],
		.destroyed_ns = (int64_t)util_get_le64(p + 11),
		.deleted_ns = (int64_t)util_get_le64(p + 19),
		.size = util_get_le64(p + 27),
		.mode = util_get_le32(p + 35),
		.owner = util_get_le32(p + 39),
		.uid = util_get_le32(p + 43),
		.path = ret_path,
	};
	memcpy(ret_gone->command, p + 47, ITEM_COMMAND_MAX);
	memcpy(ret_path, p + FIXED_SIZE, length);
	ret_path[length] = '\0';
	return true;
}

static void slot_key(uint64_t number, struct key *ret_key)
{
	char name[32];

	snprintf(name, sizeof(name), META_PREFIX "%04" PRIu64, number % HISTORY_MAX);
	key_meta(name, ret_key);
}

/* ---- reading ------------------------------------------------------------------------ */

struct numbered {
	uint64_t number;
	struct gone gone;
	char path[PATH_KEPT + 1];
};

/* Calls `row` for every record there is, in the order of slots. */
static int each_record(struct lifecycle *l, bool (*row)(void *data, const struct numbered *record),
		       void *data)
{
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true, stop = false;
	int result = 0;

	slot_key(0, &query.range.from);
	slot_key(HISTORY_MAX - 1, &query.range.to);
	/* One more than the last. */
	query.range.to.bytes[query.range.to.size - 1]++;
	while (more && !stop && !result) {
		struct store_page page = { 0 };

		result = store_query(l->store, &query, &page);
		if (result)
			break;
		for (size_t i = 0; i < page.count && !stop; i++) {
			struct numbered record;

			if (!page.rows[i].damaged &&
			    decode(&page.rows[i].value, &record.gone, &record.number, record.path))
				stop = row(data, &record);
		}
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}

struct collected {
	struct numbered *items;
	size_t count, capacity;
	bool failed;
};

static bool collect(void *data, const struct numbered *record)
{
	struct collected *c = data;
	struct numbered *grown;

	if (c->count == c->capacity) {
		c->capacity = util_max(2 * c->capacity, (size_t)64);
		grown = reallocarray(c->items, c->capacity, sizeof(*grown));
		if (!grown) {
			c->failed = true;
			return true;
		}
		c->items = grown;
	}
	c->items[c->count] = *record;
	c->items[c->count].gone.path = NULL; /* it moves */
	c->count++;
	return false;
}

static int newest_first(const void *a, const void *b)
{
	const struct numbered *one = a, *other = b;

	return one->number < other->number ? 1 : one->number > other->number ? -1 : 0;
}

int lifecycle_history(struct lifecycle *l, bool (*row)(void *data, const struct gone *gone), void *data)
{
	struct collected c = { 0 };
	int result = each_record(l, collect, &c);

	if (!result && c.failed)
		result = -ENOMEM;
	if (!result && c.count)
		qsort(c.items, c.count, sizeof(*c.items), newest_first);
	for (size_t i = 0; i < c.count && !result; i++) {
		c.items[i].gone.path = c.items[i].path;
		if (row(data, &c.items[i].gone))
			break;
	}
	free(c.items);
	return result;
}

/* ---- writing -------------------------------------------------------------------------- */

static bool take_highest(void *data, const struct numbered *record)
{
	uint64_t *highest = data;

	*highest = util_max(*highest, record->number);
	return false;
}

void history_prepare(struct lifecycle *l)
{
	uint64_t highest = 0;

	if (l->history_known)
		return;
	/* What cannot be read gives its slots up, here as there. */
	each_record(l, take_highest, &highest);
	lifecycle_lock(l);
	l->history_number = util_max(l->history_number, highest);
	l->history_known = true;
	lifecycle_unlock(l);
}

/* Lock held. What cannot be read gives its slots up. */
static uint64_t next_number(struct lifecycle *l)
{
	if (!l->history_number && !l->history_known)
		each_record(l, take_highest, &l->history_number);
	return ++l->history_number;
}

/*
 * Whether the owner of what was deleted could list its directory, then and since: else its record would tell
 * him of names that are none of his business, such as where somebody keeps a link to his file.
 */
static bool owner_could_see(struct lifecycle *l, uint64_t directory, uint32_t owner)
{
	_cleanup_(tree_release) struct tree_directory d = { 0 };
	struct rules rules;
	uint32_t bits;

	if (tree_load(l->store, directory, &d) || rules_load(l, directory, &rules))
		return false;
	bits = d.own.directory.trash_mask & rules_mask(&rules, &d.own) & tree_plain_mode(&d.own);
	if (owner == d.own.uid)
		bits >>= 6;
	return (bits & 05) == 05;
}

void history_add(struct lifecycle *l, struct transaction *t, const struct place *at,
		 const struct item *item, const struct item *file, enum item_counter cause)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	_cleanup_free_ char *path = NULL;
	struct gone gone = {
		.cause = cause,
		.destroyed_ns = lifecycle_now_ns(l),
		.deleted_ns = (int64_t)at->seq,
		.size = S_ISREG(file->mode) ? file->size : 0,
		.mode = file->mode,
		.uid = item->deletion.uid,
	};
	struct key key;

	/* Temporary names are no entries: nobody ever saw them in the trash. */
	if (at->state != KEY_DEL || item->deletion.cause == ITEM_TEMPORARY)
		return;
	gone.owner = owner_could_see(l, at->directory, file->uid) ? file->uid : 0;
	gone.path = tree_path(l->store, at, &path) ? at->name : path;
	memcpy(gone.command, item->deletion.command, sizeof(gone.command));
	encode(&gone, next_number(l), &b);
	/* Without memory for its record it goes all the same. */
	if (b.failed)
		return;
	slot_key(l->history_number, &key);
	transaction_put(t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
}
