/*
 * repair-records.c - what can be made again from what is whole: records that
 * only say again what others say, and counts.
 *
 * None adjusts a counter: those are counted again when everything else is in
 * its place.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lifecycle/internal.h"
#include "lifecycle/repair.h"

#define OTHERS_MODE 077

/* ---- damaged items ---------------------------------------------------------------- */

/* What it says can be read, but not what it holds: the second box. A directory has nothing in it. */
static int repair_content(struct repair *r, const struct key *key)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct store_row row = { .key = key->bytes, .key_size = key->size };
	struct place at;
	struct item item;
	int result = repair_reread(r, key);

	/* Whole by now, or nobody knows. */
	if (!damaged_is(result))
		return result;
	result = store_get(r->store, key, true, &row.value);
	if (!result)
		result = record_row_item(r->store, &row, &at, &item);
	if (!result && S_ISDIR(item.mode)) {
		item.content = (const uint8_t *)"";
		transaction_put_item(&t, r->store, &at, &item, item.version);
		result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	} else if (!result) {
		repair_tell_at(r, &at, "removed: its content could not be read, which was all of it");
		result = repair_delete(r, key);
	}
	store_value_release(&row.value);
	return result;
}

int repair_damaged(struct repair *r, const struct key *key)
{
	struct damaged d;
	int result = damaged_load(r->store, key, &d);

	if (result == STORE_ABSENT)
		return repair_content(r, key);
	if (result)
		return result;
	if (d.directory) {
		result = damaged_remake_directory(r->store, d.directory, &d.guard,
						  store_now_ns(r->store) + RETENTION_LOST_NS);
		if (!result)
			repair_tell_at(r, &d.at,
				       "the directory got a new record: owner and mode are those of a private "
				       "one, its extended attributes are lost");
		return result;
	}
	repair_tell_at(r, &d.at, "removed: nothing of its record could be read");
	return repair_delete(r, key);
}

static int remove_name(struct repair *r, const struct place *at, const struct item *item)
{
	struct key key;

	if (!(item->flags & ITEM_REFERENCE))
		return 0;
	key_item(store_codec(r->store), at, &key);
	repair_tell_at(r, at, "removed: the attributes of the file, which had several names, are lost");
	return repair_delete(r, &key);
}

int repair_names(struct repair *r, uint64_t id)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct item link;
	struct key key;
	int result = record_get_link(r->store, id, false, &value, &link);

	if (result != STORE_ABSENT && !damaged_is(result))
		return result;
	result = repair_all_names(r, id, remove_name);
	key_link(id, &key);
	return result ? result : repair_delete(r, &key);
}

/* ---- guards ------------------------------------------------------------------------ */

static int put_guard(struct repair *r, const struct place *at, const struct item *item)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct guard guard = { .at = *at };
	struct key key;
	int result = S_ISDIR(item->mode) ? record_encode_guard(&guard, &b) : -EBADMSG;

	if (result)
		return result;
	key_guard(item->id, &key);
	repair_tell_at(r, at, "its guard was made again");
	return repair_put(r, &key, &b);
}

int repair_guard(struct repair *r, uint64_t id)
{
	size_t i = marks_find(&r->check->directories, id);
	struct guard guard;
	int result = record_get_guard(r->store, id, &guard);

	if (result != STORE_ABSENT && !damaged_is(result))
		return result;
	if (i < r->check->directories.count && r->check->directories.items[i].id == id)
		return repair_each_name(r, r->check->directories.items[i].directory, id, put_guard);
	return repair_directory(r, id);
}

/* ---- rows and shadows ----------------------------------------------------------------- */

int repair_rows(struct repair *r, const struct place *at)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct item item;
	int result = record_get_item(r->store, at, true, &value, &item);

	if (result || at->state != KEY_DEL)
		return result;
	result = damaged_put_rows(r->store, &t, at, &item);
	if (!result)
		result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	if (!result)
		repair_tell_at(r, at, "its rows in the trash were made again");
	return result;
}

/* *ret_parent 0: nothing above it needs to be looked at. */
static int mark_one(struct repair *r, uint64_t id, uint64_t *ret_parent)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct shadow shadow = { .directory = id };
	struct tree_directory d;
	struct key key;
	int result = tree_load(r->store, id, &d);

	*ret_parent = KEY_ID_NONE;
	if (result)
		return result;
	if (id != KEY_ID_ROOT && tree_is_live(&d)) {
		memcpy(shadow.name, d.guard.at.name, sizeof(shadow.name));
		d.own.flags |= ITEM_SHADOWED;
		tree_put_own(&t, r->store, &d);
		key_shadow(store_codec(r->store), d.guard.at.directory, shadow.name, &key);
		result = record_encode_shadow(&shadow, &b);
		transaction_put(&t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
		if (!result)
			result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
		*ret_parent = d.guard.at.directory;
	}
	tree_release(&d);
	return result;
}

int repair_shadow(struct repair *r, uint64_t id)
{
	int result = 0;

	while (id != KEY_ID_NONE && !result)
		result = mark_one(r, id, &id);
	return result;
}

/* ---- counts ------------------------------------------------------------------------------ */

int repair_subdirectories(struct repair *r, uint64_t id)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct tree_directory d;
	int result = tree_load(r->store, id, &d);

	if (result)
		return result;
	result = damaged_recount(r->store, &d.own);
	if (!result) {
		tree_put_own(&t, r->store, &d);
		result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	}
	tree_release(&d);
	return result;
}

int repair_links(struct repair *r, const struct fix *fix)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct item link;
	int result = record_get_link(r->store, fix->id, false, &value, &link);

	if (result)
		return result;
	link.links_total = fix->names;
	link.links_live = fix->live;
	transaction_put_link(&t, &link, link.version);
	return tree_commit(&t, r->store, STORE_RELEASING, NULL);
}

/* ---- extended attributes ------------------------------------------------------------------ */

/* An ACL may have been among them, which gave less than the mode seems to: nobody but the owner gets in without it. */
static void drop_xattrs(struct item *item)
{
	item->flags &= ~(uint32_t)(ITEM_XATTR_APART | ITEM_POLICY | ITEM_ACL);
	item->mode &= ~(uint32_t)OTHERS_MODE;
	item->xattrs = NULL;
	item->xattrs_size = 0;
}

/* Whether they are lost: 1, 0, or an errno where nobody knows. */
static int xattrs_are_lost(struct store *s, const struct item *item)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	const uint8_t *list = item->xattrs, *bytes;
	size_t size = item->xattrs_size, at = 0, bytes_size;
	const char *name;
	int result = 0;

	if (item->flags & ITEM_XATTR_APART)
		result = record_get_xattrs(s, item->id, &value, &list, &size);
	if (result)
		return result == STORE_ABSENT || damaged_is(result) ? 1 : result;
	while ((result = record_xattr_next(list, size, &at, &name, &bytes, &bytes_size)) > 0)
		;
	return result < 0;
}

int repair_xattrs(struct repair *r, const struct fix *fix)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct item item;
	struct key key;
	int result = fix->id ? record_get_link(r->store, fix->id, false, &value, &item) :
			       record_get_item(r->store, &fix->at, false, &value, &item);

	if (!result)
		result = xattrs_are_lost(r->store, &item);
	if (result <= 0)
		return result;
	drop_xattrs(&item);
	if (fix->id)
		transaction_put_link(&t, &item, item.version);
	else
		transaction_put_item(&t, r->store, &fix->at, &item, item.version);
	key_xattr(item.id, &key);
	transaction_delete(&t, &key, STORE_ANY, 0);
	result = tree_commit(&t, r->store, STORE_RELEASING, NULL);
	if (!result && !fix->id)
		repair_tell_at(r, &fix->at,
			       "its extended attributes are lost; closed to all but its owner");
	else if (!result)
		repair_tell(r, "(file with several names)",
			    "the extended attributes of item %" PRIu64
			    " are lost; closed to all but its owner",
			    fix->id);
	return result;
}

/* ---- batches ---------------------------------------------------------------------------------- */

static size_t rows_of(const struct marks *rows, uint64_t batch, uint64_t *last_seq)
{
	size_t count = 0;

	for (size_t i = marks_find(rows, batch); i < rows->count && rows->items[i].id == batch; i++) {
		*last_seq = util_max(*last_seq, rows->items[i].directory);
		count++;
	}
	return count;
}

int repair_batch(struct repair *r, const struct fix *fix)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	uint64_t last_seq = fix->id, unused = 0, count;
	struct batch batch;
	struct key key;
	int result = record_get_batch(r->store, fix->uid, fix->id, &batch);

	if (result && result != STORE_ABSENT && !damaged_is(result))
		return result;
	count = rows_of(&r->check->entries, fix->id, &last_seq);
	if (result) {
		batch = (struct batch){ .seq = fix->id, .uid = fix->uid, .directory = KEY_ID_ROOT };
		batch.purge = !count && rows_of(&r->check->purged, fix->id, &unused);
	}
	if (batch.purge)
		count = rows_of(&r->check->purged, fix->id, &unused);
	key_batch(fix->uid, fix->id, &key);
	if (!count)
		return repair_delete(r, &key);
	batch.last_seq = util_max(batch.last_seq, last_seq);
	batch.count = util_max(batch.count, count + batch.restored);
	result = record_encode_batch(&batch, &b);
	if (!result)
		result = repair_put(r, &key, &b);
	if (!result)
		repair_tell(r, "(batch)", "the record of batch %" PRIu64 " was made again", fix->id);
	return result;
}
