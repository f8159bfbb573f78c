/*
 * damage.c - see damage.h.
 */
#include "lifecycle/damage.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lifecycle/tree.h"

#define DIRECTORY_MODE 0700

/* ---- names ---------------------------------------------------------------- */

void damaged_show(const struct place *at, char ret_shown[KEY_NAME_MAX + 1])
{
	if (at->name[0] == '/')
		snprintf(ret_shown, KEY_NAME_MAX + 1, DAMAGED_PREFIX "%.*s", KEY_UNKNOWN_SIZE - 1,
			 at->name + 1);
	else
		memcpy(ret_shown, at->name, sizeof(at->name));
}

bool damaged_unshow(const struct key_codec *c, const char *shown, char ret_name[KEY_NAME_MAX + 1])
{
	size_t prefix = sizeof(DAMAGED_PREFIX) - 1;

	if (!c->sealed_names || strncmp(shown, DAMAGED_PREFIX, prefix) != 0 ||
	    strlen(shown) != prefix + KEY_UNKNOWN_SIZE - 1 ||
	    strspn(shown + prefix, "0123456789abcdef") != KEY_UNKNOWN_SIZE - 1)
		return false;
	/* `shown` may stand where the name goes. */
	memmove(ret_name + 1, shown + prefix, KEY_UNKNOWN_SIZE);
	ret_name[0] = '/';
	return true;
}

/* ---- what it is ------------------------------------------------------------- */

struct guard_search {
	struct store *store;
	const struct key *key;
	struct damaged *found;
};

static bool guard_is_of(struct guard_search *search, const struct store_row *row)
{
	const struct key_codec *codec = store_codec(search->store);
	struct key_parts parts;
	struct guard guard;
	struct key key;

	if (row->damaged || record_decode_guard(&row->value, &guard) ||
	    key_parse(codec, row->key, row->key_size, &parts))
		return false;
	key_item(codec, &guard.at, &key);
	if (key_compare(&key, search->key) != 0)
		return false;
	search->found->directory = parts.id;
	search->found->guard = guard;
	search->found->guard.version = row->value.version;
	search->found->at = guard.at;
	return true;
}

/* A guard says where its directory is; the other way round they all have to be asked. */
static int find_guard(struct store *s, const struct key *key, struct damaged *found)
{
	struct guard_search search = { s, key, found };
	struct store_query query = { .attributes_only = true };
	struct key after;
	bool more = true, done = false;

	key_range_guards(&query.range);
	while (more && !done) {
		struct store_page page = { 0 };
		int result = store_query(s, &query, &page);

		if (result)
			return result;
		for (size_t i = 0; i < page.count && !done; i++)
			done = guard_is_of(&search, &page.rows[i]);
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	return 0;
}

static int describe(struct store *s, const struct key *key, struct damaged *ret)
{
	const struct key_codec *codec = store_codec(s);
	struct damaged d = { .key = *key };
	struct key_parts parts;
	int result = key_parse(codec, key->bytes, key->size, &parts);

	if (result || parts.kind != KEY_KIND_ITEM)
		return result ? result : -EINVAL;
	d.at = (struct place){ .directory = parts.id, .state = parts.state, .seq = parts.seq };
	key_unknown_name(codec, &parts, d.at.name);
	result = find_guard(s, key, &d);
	if (!result)
		*ret = d;
	return result;
}

int damaged_load(struct store *s, const struct key *key, struct damaged *ret)
{
	struct store_row row = { .key = key->bytes, .key_size = key->size };
	struct place at;
	struct item item;
	int result = store_get(s, key, true, &row.value);

	if (!result) {
		result = record_row_item(s, &row, &at, &item);
		store_value_release(&row.value);
	}
	if (!result)
		return STORE_ABSENT;
	return damaged_is(result) ? describe(s, key, ret) : result;
}

int damaged_load_row(struct store *s, const struct store_row *row, struct damaged *ret)
{
	struct key key;
	int result = key_from_bytes(store_codec(s), row->key, row->key_size, &key);

	return result ? result : describe(s, &key, ret);
}

/* ---- directories ------------------------------------------------------------ */

int damaged_recount(struct store *s, struct item *item)
{
	struct store_query query = { .attributes_only = true };
	struct key after;
	bool more = true;

	item->directory.subdirectories = 0;
	key_range_directory(item->id, &query.range);
	while (more) {
		struct store_page page = { 0 };
		int result = store_query(s, &query, &page);

		if (result)
			return result;
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item child;

			if (record_row_item(s, &page.rows[i], &at, &child))
				continue;
			if (at.state == KEY_ACT && S_ISDIR(child.mode))
				item->directory.subdirectories++;
			else if (at.state == KEY_DEL)
				item->directory.trash_until_ns = util_max(
					item->directory.trash_until_ns, child.deletion.expires_ns);
		}
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	return 0;
}

static int owner_of_root(struct store *s, struct item *item)
{
	struct tree_directory root;
	int result = tree_load(s, KEY_ID_ROOT, &root);

	if (result)
		return damaged_is(result) || result == -ENOENT ? 0 : result;
	item->uid = root.own.uid;
	item->gid = root.own.gid;
	tree_release(&root);
	return 0;
}

static int remake_deletion(struct store *s, const struct place *at, int64_t due_ns, struct item *item)
{
	struct trash_row row;
	uint64_t version;
	int result = record_get_trash(s, at->seq, &row, &version);

	if (result && result != STORE_ABSENT && !damaged_is(result))
		return result;
	/* Without its row it belongs to no batch. */
	if (result)
		row = (struct trash_row){ .cause = ITEM_REMOVED };
	item->flags |= ITEM_DELETION;
	item->deletion = (struct deletion){
		.batch = row.batch,
		.uid = row.uid,
		.cause = row.cause,
		.expires_ns = util_max(due_ns, item->directory.trash_until_ns),
		.destroy_ns = util_max(due_ns, item->directory.trash_until_ns),
	};
	return 0;
}

static int remake_shadowed(struct store *s, const struct place *at, struct item *item)
{
	struct shadow shadow;
	uint64_t version;
	int result = record_get_shadow(s, at->directory, at->name, &shadow, &version);

	if (result && result != STORE_ABSENT && !damaged_is(result))
		return result;
	if (!result)
		item->flags |= ITEM_SHADOWED;
	return 0;
}

/* Whatever row names another time is found stale. */
int damaged_put_rows(struct store *s, struct transaction *t, const struct place *at,
		     const struct item *item)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	const struct deletion *d = &item->deletion;
	struct trash_row row = { .batch = d->batch, .uid = d->uid, .cause = d->cause };
	struct key key;
	int result;

	key_item(store_codec(s), at, &row.key);
	result = record_encode_trash(&row, &b);
	if (result)
		return result;
	key_due(d->destroy_ns, at->seq, &key);
	transaction_put(t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	if (d->cause == ITEM_TEMPORARY)
		return 0;
	key_trash(at->seq, &key);
	transaction_put(t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	return 0;
}

/* Where a record stands already, or, `anew`, none does: then with its guard. */
static int put_directory(struct store *s, const struct place *at, const struct item *item, bool anew)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	_cleanup_(buffer_release) struct buffer b = { 0 }, guard_bytes = { 0 };
	struct guard guard = { .at = *at };
	struct key key;
	int result = record_encode_item(item, &b);

	key_item(store_codec(s), at, &key);
	if (!result && at->state == KEY_DEL)
		result = damaged_put_rows(s, &t, at, item);
	if (!result && anew)
		result = record_encode_guard(&guard, &guard_bytes);
	if (result)
		return result;
	transaction_put(&t, &key, b.bytes, b.size, "", 0, anew ? STORE_IF_ABSENT : STORE_IF_PRESENT, 0);
	key_guard(item->id, &key);
	if (anew)
		transaction_put(&t, &key, guard_bytes.bytes, guard_bytes.size, NULL, 0, STORE_ANY, 0);
	return tree_commit(&t, s, STORE_RELEASING, NULL);
}

/* No id that is given out has this bit. */
#define STUB_ID (UINT64_C(1) << 61)

static uint64_t id_of_key(const struct key *key)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < key->size; i++)
		hash = (hash ^ key->bytes[i]) * UINT64_C(0x100000001b3);
	return STUB_ID | (hash & (STUB_ID - 1));
}

int damaged_stand_in(struct store *s, const struct damaged *d, struct item *ret_item)
{
	struct item item = {
		.id = d->directory ? d->directory : id_of_key(&d->key),
		.mode = d->directory ? S_IFDIR | DIRECTORY_MODE : S_IFREG,
		.size = d->directory ? 0 : 1,
		.links_live = 1,
		.links_total = 1,
	};
	int result = owner_of_root(s, &item);

	if (result)
		return result;
	memcpy(item.name, d->at.name, sizeof(item.name));
	if (d->at.state == KEY_DEL)
		item.flags |= ITEM_DELETION;
	*ret_item = item;
	return 0;
}

/* A directory of which nothing but id and name is known. */
static int make_record(struct store *s, uint64_t id, const char *name, struct item *ret_item)
{
	struct timespec now = tree_time(store_now_ns(s));
	struct item item = {
		.id = id,
		.mode = S_IFDIR | DIRECTORY_MODE,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.links_live = 1,
		.links_total = 1,
		.content = (const uint8_t *)"",
	};
	int result = damaged_recount(s, &item);

	if (!result && id != KEY_ID_ROOT)
		result = owner_of_root(s, &item);
	memcpy(item.name, name, strlen(name) + 1);
	if (!result)
		*ret_item = item;
	return result;
}

int damaged_remake_directory(struct store *s, uint64_t id, const struct guard *guard, int64_t due_ns)
{
	struct item item;
	int result = make_record(s, id, guard->at.name, &item);

	if (!result && guard->at.state == KEY_DEL)
		result = remake_deletion(s, &guard->at, due_ns, &item);
	else if (!result && id != KEY_ID_ROOT)
		result = remake_shadowed(s, &guard->at, &item);
	if (result)
		return result;
	return put_directory(s, &guard->at, &item, false);
}

int damaged_adopt_directory(struct store *s, uint64_t id, const struct place *at)
{
	struct item item;
	int result = make_record(s, id, at->name, &item);

	return result ? result : put_directory(s, at, &item, true);
}

/* ---- everything else ---------------------------------------------------------- */

int damaged_add_removal(struct store *s, struct transaction *t, const struct key *key)
{
	_cleanup_(store_value_release) struct store_value row = { 0 };
	struct key_parts parts;
	struct key trash;
	int result = key_parse(store_codec(s), key->bytes, key->size, &parts);

	if (result)
		return result;
	transaction_delete(t, key, STORE_IF_PRESENT, 0);
	if (parts.state == KEY_ACT) {
		transaction_count_add(t, COUNTER_LIVE_ITEMS, -1);
		return 0;
	}
	/* Its row in EXP is found stale when it is due; a temporary one has none in TRASH. */
	key_trash(parts.seq, &trash);
	result = store_get(s, &trash, true, &row);
	if (result == STORE_ABSENT)
		return 0;
	if (result && !damaged_is(result))
		return result;
	transaction_delete(t, &trash, STORE_ANY, 0);
	transaction_count_add(t, COUNTER_TRASH_ITEMS, -1);
	return 0;
}
