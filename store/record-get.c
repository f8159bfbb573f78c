/*
 * record-get.c - whole records out of a store.
 *
 * What is returned has been compared with the key it was found under: a record
 * that stands where it does not belong is damage, whoever put it there.
 */
#include "store/record-kind.h"
#include "store/record.h"

/* Keeps *value if `result` is a success, releases it otherwise. */
static int hand_over(int result, struct store_value *value, struct store_value *ret_value)
{
	if (result)
		store_value_release(value);
	else
		*ret_value = *value;
	return result;
}

static bool item_is_at(const struct item *item, const struct place *at)
{
	return !strcmp(item->name, at->name) && !(item->flags & ITEM_DELETION) == (at->state != KEY_DEL);
}

static int decode_kind(const struct store_value *value, enum record_kind kind, struct item *ret_item)
{
	return record_is(value, kind) ? record_decode_item(value, ret_item) : -EBADMSG;
}

int record_get_item(struct store *s, const struct place *at, bool attributes_only,
		    struct store_value *ret_value, struct item *ret_item)
{
	struct store_value value;
	struct item item;
	struct key key;
	int result;

	key_item(store_codec(s), at, &key);
	result = store_get(s, &key, attributes_only, &value);
	if (result)
		return result;
	result = decode_kind(&value, RECORD_ITEM, &item);
	if (!result && !item_is_at(&item, at))
		result = -EBADMSG;
	if (!result)
		*ret_item = item;
	return hand_over(result, &value, ret_value);
}

int record_get_link(struct store *s, uint64_t id, bool attributes_only,
		    struct store_value *ret_value, struct item *ret_item)
{
	struct store_value value;
	struct item item;
	struct key key;
	int result;

	key_link(id, &key);
	result = store_get(s, &key, attributes_only, &value);
	if (result)
		return result;
	result = decode_kind(&value, RECORD_LINK, &item);
	if (!result && item.id != id)
		result = -EBADMSG;
	if (!result)
		*ret_item = item;
	return hand_over(result, &value, ret_value);
}

int record_get_guard(struct store *s, uint64_t directory, struct guard *ret_guard)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key key;
	int result;

	key_guard(directory, &key);
	result = store_get(s, &key, true, &value);
	return result ? result : record_decode_guard(&value, ret_guard);
}

int record_get_shadow(struct store *s, uint64_t directory, const char *name,
		      struct shadow *ret_shadow, uint64_t *ret_version)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct shadow shadow;
	struct key key;
	int result;

	key_shadow(store_codec(s), directory, name, &key);
	result = store_get(s, &key, true, &value);
	if (result)
		return result;
	result = record_decode_shadow(&value, &shadow);
	if (result)
		return result;
	if (strcmp(shadow.name, name))
		return -EBADMSG;
	*ret_shadow = shadow;
	*ret_version = value.version;
	return 0;
}

int record_get_batch(struct store *s, uint32_t uid, uint64_t seq, struct batch *ret_batch)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct batch batch;
	struct key key;
	int result;

	key_batch(uid, seq, &key);
	result = store_get(s, &key, true, &value);
	if (result)
		return result;
	result = record_decode_batch(&value, &batch);
	if (result)
		return result;
	if (batch.uid != uid || batch.seq != seq)
		return -EBADMSG;
	*ret_batch = batch;
	return 0;
}

int record_get_trash(struct store *s, uint64_t seq, struct trash_row *ret_row, uint64_t *ret_version)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key key;
	int result;

	key_trash(seq, &key);
	result = store_get(s, &key, true, &value);
	if (result)
		return result;
	result = record_decode_trash(store_codec(s), &value, ret_row);
	if (!result)
		*ret_version = value.version;
	return result;
}

int record_get_counters(struct store *s, int64_t ret_counters[STORE_COUNTERS_MAX])
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key key;
	int result;

	key_meta(ITEM_COUNTERS, &key);
	result = store_get(s, &key, true, &value);
	if (result == STORE_ABSENT) {
		memset(ret_counters, 0, STORE_COUNTERS_MAX * sizeof(*ret_counters));
		return 0;
	}
	return result ? result : record_decode_counters(&value, ret_counters);
}

int record_get_xattrs(struct store *s, uint64_t id, struct store_value *ret_value,
		      const uint8_t **ret_list, size_t *ret_size)
{
	struct store_value value;
	struct key key;
	int result;

	key_xattr(id, &key);
	result = store_get(s, &key, false, &value);
	if (result)
		return result;
	if (!record_is(&value, RECORD_XATTRS) || value.attrs_size != RECORD_HEAD_SIZE)
		return hand_over(-EBADMSG, &value, ret_value);
	*ret_list = value.content;
	*ret_size = value.content_size;
	return hand_over(0, &value, ret_value);
}

int record_row_item(struct store *s, const struct store_row *row, struct place *ret_at,
		    struct item *ret_item)
{
	const struct key_codec *c = store_codec(s);
	struct key_parts parts;
	struct place at;
	struct item item;
	int result;

	if (row->damaged)
		return -EBADMSG;
	result = key_parse(c, row->key, row->key_size, &parts);
	if (result < 0)
		return result;
	if (parts.kind != KEY_KIND_ITEM)
		return -EBADMSG;
	result = decode_kind(&row->value, RECORD_ITEM, &item);
	if (result < 0)
		return result;
	if (!key_name_matches(c, &parts, item.name))
		return -EBADMSG;
	at.directory = parts.id;
	at.seq = parts.seq;
	at.state = parts.state;
	memcpy(at.name, item.name, sizeof(at.name));
	if (!item_is_at(&item, &at))
		return -EBADMSG;
	*ret_at = at;
	*ret_item = item;
	return 0;
}
