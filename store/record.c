/*
 * record.c - records to bytes and back, all but items, which record-item.c has.
 * FORMAT.md, "Records", has the tables.
 *
 * There is one encoding of a record: whatever a decoder takes, the encoder
 * turns into the same bytes again. The rules of what a record may hold are
 * therefore written once for both directions (the *_is_good functions).
 */
#include "store/record.h"

#include "store/record-kind.h"

#define BATCH_UNDONE (1 << 0)
#define BATCH_PURGE (1 << 1)

/* ---- parts that several records have ------------------------------------ */

static void put_head(struct buffer *b, enum record_kind kind)
{
	buffer_append_u8(b, RECORD_FORMAT);
	buffer_append_u8(b, (uint8_t)kind);
}

static struct reader open_record(const struct store_value *value, enum record_kind kind)
{
	struct reader r = { .bytes = value->attrs, .size = value->attrs_size };

	if (reader_u8(&r) != RECORD_FORMAT || reader_u8(&r) != kind)
		r.failed = true;
	return r;
}

bool record_is(const struct store_value *value, enum record_kind kind)
{
	return value->attrs_size >= RECORD_HEAD_SIZE && value->attrs[0] == RECORD_FORMAT &&
	       value->attrs[1] == kind;
}

static uint64_t take_number(struct reader *r)
{
	uint64_t v = reader_le64(r);

	if (v > RECORD_NUMBER_MAX)
		r->failed = true;
	return v;
}

bool record_name_is_good(const char *name, size_t size)
{
	return size <= KEY_NAME_MAX && !memchr(name, '/', size) && !memchr(name, 0, size);
}

/* Names carry their size in one byte, which holds KEY_NAME_MAX. */
static void put_name(struct buffer *b, const char *name)
{
	size_t size = strlen(name);

	buffer_append_u8(b, (uint8_t)size);
	buffer_append(b, name, size);
}

static void take_name(struct reader *r, char ret_name[KEY_NAME_MAX + 1])
{
	size_t size = reader_u8(r);
	const char *name = (const char *)reader_take(r, size);

	if (!name || !record_name_is_good(name, size)) {
		r->failed = true;
		return;
	}
	memcpy(ret_name, name, size);
	ret_name[size] = 0;
}

void record_put_command(uint8_t *p, const char *command)
{
	size_t size = strnlen(command, ITEM_COMMAND_MAX);

	memcpy(p, command, size);
	memset(p + size, 0, ITEM_COMMAND_MAX - size);
}

bool record_get_command(const uint8_t *p, char ret_command[ITEM_COMMAND_MAX + 1])
{
	size_t size = strnlen((const char *)p, ITEM_COMMAND_MAX);

	for (size_t i = size; i < ITEM_COMMAND_MAX; i++)
		if (p[i])
			return false;
	memcpy(ret_command, p, size);
	memset(ret_command + size, 0, ITEM_COMMAND_MAX + 1 - size);
	return true;
}

/* ---- guards and shadows ------------------------------------------------- */

static bool place_is_good(const struct place *at)
{
	if (at->directory > RECORD_NUMBER_MAX || at->seq > RECORD_NUMBER_MAX || at->state > KEY_DEL)
		return false;
	if (!at->name[0] && (at->directory != KEY_ID_NONE || at->state != KEY_ACT))
		return false;
	return (at->state == KEY_ACT) == !at->seq;
}

int record_encode_guard(const struct guard *guard, struct buffer *b)
{
	if (!place_is_good(&guard->at) || !record_name_is_good(guard->at.name, strlen(guard->at.name)))
		return -EINVAL;
	put_head(b, RECORD_GUARD);
	buffer_append_u8(b, (uint8_t)guard->at.state);
	buffer_append_le64(b, guard->at.directory);
	buffer_append_le64(b, guard->at.seq);
	put_name(b, guard->at.name);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_guard(const struct store_value *value, struct guard *ret_guard)
{
	struct reader r = open_record(value, RECORD_GUARD);
	struct guard g = { .version = value->version };
	uint8_t state = reader_u8(&r);

	if (state > KEY_DEL)
		return -EBADMSG;
	g.at.state = (enum key_state)state;
	g.at.directory = take_number(&r);
	g.at.seq = take_number(&r);
	take_name(&r, g.at.name);
	if (!reader_done(&r) || !place_is_good(&g.at))
		return -EBADMSG;
	*ret_guard = g;
	return 0;
}

int record_encode_shadow(const struct shadow *shadow, struct buffer *b)
{
	size_t size = strlen(shadow->name);

	if (!shadow->directory || shadow->directory > RECORD_NUMBER_MAX || !size ||
	    !record_name_is_good(shadow->name, size))
		return -EINVAL;
	put_head(b, RECORD_SHADOW);
	buffer_append_le64(b, shadow->directory);
	put_name(b, shadow->name);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_shadow(const struct store_value *value, struct shadow *ret_shadow)
{
	struct reader r = open_record(value, RECORD_SHADOW);
	struct shadow s = { 0 };

	s.directory = take_number(&r);
	take_name(&r, s.name);
	if (!reader_done(&r) || !s.directory || !s.name[0])
		return -EBADMSG;
	*ret_shadow = s;
	return 0;
}

/* ---- rows of the trash -------------------------------------------------- */

int record_encode_trash(const struct trash_row *row, struct buffer *b)
{
	if (row->batch > RECORD_NUMBER_MAX || row->cause < ITEM_REMOVED ||
	    row->cause > ITEM_TEMPORARY || !row->key.size || row->key.size > KEY_MAX)
		return -EINVAL;
	put_head(b, RECORD_TRASH);
	buffer_append_u8(b, row->cause);
	buffer_append_le32(b, row->uid);
	buffer_append_le64(b, row->batch);
	buffer_append_le16(b, row->key.size);
	buffer_append(b, row->key.bytes, row->key.size);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_trash(const struct key_codec *c, const struct store_value *value,
			struct trash_row *ret_row)
{
	struct reader r = open_record(value, RECORD_TRASH);
	uint8_t cause = reader_u8(&r);
	uint32_t uid = reader_le32(&r);
	uint64_t batch = take_number(&r);
	size_t key_size = reader_le16(&r);
	const uint8_t *key = reader_take(&r, key_size);
	struct key_parts parts;

	if (!reader_done(&r) || cause < ITEM_REMOVED || cause > ITEM_TEMPORARY)
		return -EBADMSG;
	if (key_parse(c, key, key_size, &parts) < 0 || parts.kind != KEY_KIND_ITEM || parts.state != KEY_DEL)
		return -EBADMSG;
	ret_row->cause = cause;
	ret_row->uid = uid;
	ret_row->batch = batch;
	return key_from_bytes(c, key, key_size, &ret_row->key);
}

/* ---- batches ------------------------------------------------------------ */

static bool batch_is_good(const struct batch *batch)
{
	return batch->seq && batch->seq <= RECORD_NUMBER_MAX && batch->last_seq <= RECORD_NUMBER_MAX &&
	       batch->count <= RECORD_NUMBER_MAX && batch->bytes <= RECORD_NUMBER_MAX &&
	       batch->restored <= RECORD_NUMBER_MAX && batch->directory <= RECORD_NUMBER_MAX;
}

int record_encode_batch(const struct batch *batch, struct buffer *b)
{
	uint8_t *command;

	if (!batch_is_good(batch))
		return -EINVAL;
	put_head(b, RECORD_BATCH);
	buffer_append_u8(b, (batch->undone ? BATCH_UNDONE : 0) | (batch->purge ? BATCH_PURGE : 0));
	buffer_append_le64(b, batch->seq);
	buffer_append_le64(b, batch->last_seq);
	buffer_append_le64(b, batch->count);
	buffer_append_le64(b, batch->bytes);
	buffer_append_le64(b, batch->restored);
	buffer_append_le64(b, batch->directory);
	buffer_append_le32(b, batch->uid);
	buffer_append_le32(b, batch->session);
	buffer_append_le32(b, batch->group);
	command = buffer_append(b, NULL, ITEM_COMMAND_MAX);
	if (!command)
		return -ENOMEM;
	record_put_command(command, batch->command);
	return 0;
}

int record_decode_batch(const struct store_value *value, struct batch *ret_batch)
{
	struct reader r = open_record(value, RECORD_BATCH);
	struct batch batch = { .version = value->version };
	uint8_t flags = reader_u8(&r);
	const uint8_t *command;

	batch.undone = flags & BATCH_UNDONE;
	batch.purge = flags & BATCH_PURGE;
	batch.seq = reader_le64(&r);
	batch.last_seq = reader_le64(&r);
	batch.count = reader_le64(&r);
	batch.bytes = reader_le64(&r);
	batch.restored = reader_le64(&r);
	batch.directory = reader_le64(&r);
	batch.uid = reader_le32(&r);
	batch.session = reader_le32(&r);
	batch.group = reader_le32(&r);
	command = reader_take(&r, ITEM_COMMAND_MAX);
	if (!reader_done(&r) || flags & ~(BATCH_UNDONE | BATCH_PURGE) ||
	    !record_get_command(command, batch.command) || !batch_is_good(&batch))
		return -EBADMSG;
	*ret_batch = batch;
	return 0;
}

/* ---- counters and the store's own settings ------------------------------ */

void record_encode_counters(const int64_t counters[STORE_COUNTERS_MAX],
			    uint8_t ret_bytes[RECORD_COUNTERS_SIZE])
{
	for (size_t i = 0; i < STORE_COUNTERS_MAX; i++)
		util_put_le64(ret_bytes + 8 * i, (uint64_t)counters[i]);
}

int record_decode_counters(const struct store_value *value, int64_t ret_counters[STORE_COUNTERS_MAX])
{
	if (value->attrs_size != RECORD_COUNTERS_SIZE || value->content_size)
		return -EBADMSG;
	for (size_t i = 0; i < STORE_COUNTERS_MAX; i++)
		ret_counters[i] = (int64_t)util_get_le64(value->attrs + 8 * i);
	return 0;
}

void record_encode_ids(uint64_t next, uint8_t ret_bytes[RECORD_IDS_SIZE])
{
	ret_bytes[0] = RECORD_FORMAT;
	ret_bytes[1] = RECORD_IDS;
	util_put_le64(ret_bytes + RECORD_HEAD_SIZE, next);
}

int record_decode_ids(const struct store_value *value, uint64_t *ret_next)
{
	struct reader r = open_record(value, RECORD_IDS);
	uint64_t next = take_number(&r);

	if (!reader_done(&r) || next < KEY_ID_FIRST)
		return -EBADMSG;
	*ret_next = next;
	return 0;
}

void record_encode_clock(const struct record_clock *clock, uint8_t ret_bytes[RECORD_CLOCK_SIZE])
{
	ret_bytes[0] = RECORD_FORMAT;
	ret_bytes[1] = RECORD_CLOCK;
	ret_bytes[2] = clock->mount;
	util_put_le64(ret_bytes + 3, clock->last_seq);
}

int record_decode_clock(const struct store_value *value, struct record_clock *ret_clock)
{
	struct reader r = open_record(value, RECORD_CLOCK);
	uint8_t mount = reader_u8(&r);
	uint64_t last_seq = take_number(&r);

	if (!reader_done(&r))
		return -EBADMSG;
	ret_clock->mount = mount;
	ret_clock->last_seq = last_seq;
	return 0;
}
