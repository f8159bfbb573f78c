/*
 * store-mend.c - META "ids" and "clock" made again when they do not unseal.
 *
 * Both promise that nothing at or above them was given out. What was is read off
 * everything that is there: every id and number in a key, and every id in a
 * record. What is damaged, or gone, may have had higher ones; so the new marks
 * lie far above, which costs nothing.
 */
#include "store/record-kind.h"
#include "store/record.h"
#include "store/store-private.h"

#define IDS_AHEAD (UINT64_C(1) << 32)
#define IDS_MAX (UINT64_C(1) << 60) /* none above it was ever given out */

struct highest {
	uint64_t id, seq;
};

static void note_id(struct highest *h, uint64_t id)
{
	if (id < IDS_MAX)
		h->id = util_max(h->id, id);
}

static void note_key(const struct key_parts *parts, struct highest *h)
{
	switch (parts->kind) {
	case KEY_KIND_ITEM:
		if (parts->state != KEY_ACT)
			h->seq = util_max(h->seq, parts->seq);
		note_id(h, parts->id);
		break;
	case KEY_KIND_SHADOW:
	case KEY_KIND_GUARD:
	case KEY_KIND_LINK:
	case KEY_KIND_XATTR:
	case KEY_KIND_BODY:
	case KEY_KIND_FREE_BODY:
		note_id(h, parts->id);
		break;
	case KEY_KIND_TRASH:
	case KEY_KIND_DUE:
	case KEY_KIND_BATCH:
		h->seq = util_max(h->seq, parts->seq);
		break;
	case KEY_KIND_META:
	case KEY_KIND_FREE_RUN:
		break;
	}
}

static void note_row(struct store *s, const struct store_row *row, struct highest *h)
{
	struct key_parts parts;
	struct item item;
	struct place at;
	int result = -EBADMSG;

	if (key_parse(&s->codec, row->key, row->key_size, &parts))
		return;
	note_key(&parts, h);
	if (!row->damaged && parts.kind == KEY_KIND_ITEM)
		result = record_row_item(s, row, &at, &item);
	else if (!row->damaged && parts.kind == KEY_KIND_LINK)
		result = record_decode_item(&row->value, &item);
	if (result)
		return;
	note_id(h, item.id);
	note_id(h, item.body);
}

static int note_partition(struct store *s, const struct key_range *range, struct highest *h)
{
	struct store_query query = { .range = *range, .attributes_only = true };
	struct key after;
	bool more = true;
	int result = 0;

	while (more && !result) {
		struct store_page page = { 0 };

		result = store_query(s, &query, &page);
		for (size_t i = 0; i < page.count && !result; i++)
			note_row(s, &page.rows[i], h);
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	return result;
}

static int find_highest(struct store *s, struct highest *ret_highest)
{
	struct highest h = { .id = KEY_ID_FIRST };
	struct key_range range;
	struct key_parts parts = { .kind = KEY_KIND_META };
	struct key key;
	int result = store_scan(s, NULL, &key);

	while (!result) {
		key_range_partition(&key, &range);
		if (key_parse(&s->codec, key.bytes, key.size, &parts) == 0)
			note_key(&parts, &h);
		/* Of a body one key says all. */
		if (parts.kind != KEY_KIND_BODY)
			result = note_partition(s, &range, &h);
		if (!result)
			result = store_scan(s, &range.to, &key);
	}
	if (result != STORE_ABSENT)
		return result;
	*ret_highest = h;
	return 0;
}

static int put(struct store *s, const char *name, const uint8_t *bytes, size_t size)
{
	struct store_op op = { .kind = STORE_PUT, .attrs = bytes, .attrs_size = size };

	key_meta(name, &op.key);
	return store_transact(s, STORE_RELEASING, &op, 1, NULL);
}

int store_mend_marks(struct store *s, bool ids, bool clock)
{
	uint8_t ids_bytes[RECORD_IDS_SIZE], clock_bytes[RECORD_CLOCK_SIZE];
	struct record_clock mark = { 0 };
	struct highest h;
	int result = find_highest(s, &h);

	if (result)
		return result;
	if (ids) {
		record_encode_ids(h.id + IDS_AHEAD, ids_bytes);
		result = put(s, RECORD_META_IDS, ids_bytes, sizeof(ids_bytes));
	}
	if (clock && !result) {
		int64_t now_ns = clock_now_ns(s->clock);

		mark.last_seq = util_max(h.seq, now_ns < 0 ? 0 : (uint64_t)now_ns);
		mark.last_seq += (uint64_t)CLOCK_SECOND_NS;
		record_encode_clock(&mark, clock_bytes);
		result = put(s, RECORD_META_CLOCK, clock_bytes, sizeof(clock_bytes));
	}
	return result ? result : store_sync(s);
}
