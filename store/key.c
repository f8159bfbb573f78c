/*
 * key.c - builds and parses keys. FORMAT.md, "Keys", has the byte tables.
 *
 * Numbers in keys are big-endian, so that memcmp orders them. Every id, seq and
 * time is below 2^63: the first byte of a number is never above 0x7f, and a
 * single 0xff after a partition key (or a prefix) is above all that follows it.
 * Parsing accepts exactly what building makes, nothing else.
 */
#include "store/key.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/seal.h"
#include "store/util.h"

#define TAG_DIRECTORY 'D'
#define TAG_GUARD 'G'
#define TAG_LINK 'L'
#define TAG_XATTR 'X'
#define TAG_TRASH 'T'
#define TAG_DUE 'E'
#define TAG_BATCH 'B'
#define TAG_META 'M'
#define TAG_BODY 'C'
/* Groups of 32 chunks of 32 KiB that a body of 2^63 - 1 bytes has. */
#define GROUP_MAX ((UINT64_C(1) << 43) - 1)
#define TAG_FREE 'F'

/* TRASH and EXP are written by every deletion: a shard in the partition key keeps them from being hot on a remote
 * engine. Locally there is one. */
#define SHARD 0

#define FREE_BODY 'b'
#define FREE_RUN 'r'

#define PREFIX_SIZE 4
#define PREFIX_SHADOW "SHD#"
#define ABOVE_ALL 0xff
#define NUMBER_MAX INT64_MAX

static const char state_prefixes[][PREFIX_SIZE + 1] = {
	[KEY_ACT] = "ACT#",
	[KEY_ARC] = "ARC#",
	[KEY_DEL] = "DEL#",
};

/* ---- building ----------------------------------------------------------- */

static inline void start(struct key *key, uint8_t tag)
{
	key->bytes[0] = tag;
	key->size = 1;
	key->partition_size = 1;
}

static inline void add_u8(struct key *key, uint8_t v)
{
	key->bytes[key->size++] = v;
}

static inline void add_number(struct key *key, uint64_t v)
{
	util_put_be64(key->bytes + key->size, v);
	key->size += 8;
}

static inline void add_bytes(struct key *key, const void *bytes, size_t size)
{
	memcpy(key->bytes + key->size, bytes, size);
	key->size += size;
}

static inline void end_partition(struct key *key)
{
	key->partition_size = key->size;
}

static void start_directory(struct key *key, uint64_t directory)
{
	assert(directory <= NUMBER_MAX);
	start(key, TAG_DIRECTORY);
	add_number(key, directory);
	end_partition(key);
}

static void start_sharded(struct key *key, uint8_t tag)
{
	start(key, tag);
	add_u8(key, SHARD);
	end_partition(key);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "/" and the token in hexadecimal digits: the place of an item whose name is not known. */
static bool add_token(struct key *key, const char *name, size_t size)
{
	uint8_t token[KEY_TOKEN_SIZE];

	if (size != KEY_UNKNOWN_SIZE || name[0] != '/')
		return false;
	for (size_t i = 0; i < KEY_TOKEN_SIZE; i++) {
		int high = hex_digit(name[1 + 2 * i]), low = hex_digit(name[2 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		token[i] = (uint8_t)(high << 4 | low);
	}
	add_bytes(key, token, sizeof(token));
	return true;
}

static void add_name(const struct key_codec *c, struct key *key, const char *name, bool may_be_empty)
{
	size_t size = strlen(name);

	if (c->sealed_names && add_token(key, name, size))
		return;
	assert(size <= KEY_NAME_MAX && (size || may_be_empty) && !memchr(name, '/', size));
	if (c->sealed_names) {
		seal_token(c->token_key, name, size, key->bytes + key->size);
		key->size += KEY_TOKEN_SIZE;
	} else {
		add_bytes(key, name, size);
	}
}

void key_item(const struct key_codec *c, const struct place *at, struct key *ret_key)
{
	assert(at->state <= KEY_DEL && at->seq <= NUMBER_MAX);
	start_directory(ret_key, at->directory);
	add_bytes(ret_key, state_prefixes[at->state], PREFIX_SIZE);
	add_name(c, ret_key, at->name, at->directory == KEY_ID_NONE && at->state == KEY_ACT);
	if (at->state == KEY_ACT)
		return;
	add_u8(ret_key, '/');
	add_number(ret_key, at->seq);
}

void key_act(const struct key_codec *c, uint64_t directory, const char *name, struct key *ret_key)
{
	start_directory(ret_key, directory);
	add_bytes(ret_key, state_prefixes[KEY_ACT], PREFIX_SIZE);
	add_name(c, ret_key, name, directory == KEY_ID_NONE);
}

void key_shadow(const struct key_codec *c, uint64_t directory, const char *name, struct key *ret_key)
{
	start_directory(ret_key, directory);
	add_bytes(ret_key, PREFIX_SHADOW, PREFIX_SIZE);
	add_name(c, ret_key, name, false);
}

static void numbered(uint8_t tag, uint64_t number, struct key *ret_key)
{
	assert(number <= NUMBER_MAX);
	start(ret_key, tag);
	add_number(ret_key, number);
}

void key_guard(uint64_t directory, struct key *ret_key)
{
	numbered(TAG_GUARD, directory, ret_key);
}

void key_link(uint64_t item, struct key *ret_key)
{
	numbered(TAG_LINK, item, ret_key);
}

void key_xattr(uint64_t item, struct key *ret_key)
{
	numbered(TAG_XATTR, item, ret_key);
}

void key_trash(uint64_t seq, struct key *ret_key)
{
	assert(seq <= NUMBER_MAX);
	start_sharded(ret_key, TAG_TRASH);
	add_number(ret_key, seq);
}

void key_due(int64_t due_ns, uint64_t seq, struct key *ret_key)
{
	assert(due_ns >= 0 && seq <= NUMBER_MAX);
	start_sharded(ret_key, TAG_DUE);
	add_number(ret_key, (uint64_t)due_ns);
	add_number(ret_key, seq);
}

static void start_batch(uint32_t uid, struct key *ret_key)
{
	start(ret_key, TAG_BATCH);
	util_put_be32(ret_key->bytes + ret_key->size, uid);
	ret_key->size += 4;
}

void key_batch(uint32_t uid, uint64_t seq, struct key *ret_key)
{
	assert(seq <= NUMBER_MAX);
	start_batch(uid, ret_key);
	add_number(ret_key, seq);
}

/* Names of settings are the program's own: 1 to KEY_NAME_MAX bytes of printable ASCII. */
static bool meta_name_is_good(const uint8_t *name, size_t size)
{
	if (!size || size > KEY_NAME_MAX)
		return false;
	for (size_t i = 0; i < size; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	return true;
}

void key_meta(const char *name, struct key *ret_key)
{
	size_t size = strlen(name);

	assert(meta_name_is_good((const uint8_t *)name, size));
	start(ret_key, TAG_META);
	add_bytes(ret_key, name, size);
}

static void start_body(uint64_t body, struct key *ret_key)
{
	assert(body <= NUMBER_MAX);
	start(ret_key, TAG_BODY);
	add_number(ret_key, body);
	end_partition(ret_key);
}

void key_body(uint64_t body, uint64_t group, struct key *ret_key)
{
	assert(group <= NUMBER_MAX);
	start_body(body, ret_key);
	add_number(ret_key, group);
}

void key_free_body(uint64_t body, struct key *ret_key)
{
	assert(body <= NUMBER_MAX);
	start(ret_key, TAG_FREE);
	add_u8(ret_key, FREE_BODY);
	add_number(ret_key, body);
}

void key_free_run(uint64_t segment, uint64_t offset, struct key *ret_key)
{
	assert(segment <= NUMBER_MAX && offset <= NUMBER_MAX);
	start(ret_key, TAG_FREE);
	add_u8(ret_key, FREE_RUN);
	add_number(ret_key, segment);
	add_number(ret_key, offset);
}

void key_unknown_name(const struct key_codec *c, const struct key_parts *parts,
		      char ret_name[KEY_NAME_MAX + 1])
{
	size_t size = util_min(parts->name_size, (size_t)KEY_NAME_MAX);

	if (c->sealed_names && size == KEY_TOKEN_SIZE) {
		ret_name[0] = '/';
		for (size_t i = 0; i < size; i++)
			snprintf(ret_name + 1 + 2 * i, 3, "%02x", parts->name[i]);
		return;
	}
	memcpy(ret_name, parts->name, size);
	ret_name[size] = '\0';
}

/* ---- ranges ------------------------------------------------------------- */

/* Copies a short key without the unset rest of its bytes. */
static void copy(struct key *to, const struct key *from)
{
	to->size = from->size;
	to->partition_size = from->partition_size;
	memcpy(to->bytes, from->bytes, from->size);
}

/* All keys that begin with what stands in `from`. */
static void close_prefix(struct key_range *range)
{
	copy(&range->to, &range->from);
	add_u8(&range->to, ABOVE_ALL);
}

/* In a directory, names may hold any byte but '/': the byte after a prefix's '#' or '/' ends the range. */
static void close_text(struct key_range *range)
{
	copy(&range->to, &range->from);
	range->to.bytes[range->to.size - 1]++;
}

static void directory_prefix(uint64_t directory, const char *prefix, struct key_range *ret_range)
{
	start_directory(&ret_range->from, directory);
	add_bytes(&ret_range->from, prefix, PREFIX_SIZE);
	close_text(ret_range);
}

void key_range_live(uint64_t directory, struct key_range *ret_range)
{
	directory_prefix(directory, state_prefixes[KEY_ACT], ret_range);
}

void key_range_deleted(uint64_t directory, struct key_range *ret_range)
{
	directory_prefix(directory, state_prefixes[KEY_DEL], ret_range);
}

void key_range_deleted_name(const struct key_codec *c, uint64_t directory, const char *name,
			    struct key_range *ret_range)
{
	struct key *from = &ret_range->from;

	start_directory(from, directory);
	add_bytes(from, state_prefixes[KEY_DEL], PREFIX_SIZE);
	add_name(c, from, name, false);
	add_u8(from, '/');
	close_text(ret_range);
}

void key_range_shadows(uint64_t directory, struct key_range *ret_range)
{
	directory_prefix(directory, PREFIX_SHADOW, ret_range);
}

void key_range_directory(uint64_t directory, struct key_range *ret_range)
{
	start_directory(&ret_range->from, directory);
	close_prefix(ret_range);
}

static void whole(uint8_t tag, struct key_range *ret_range)
{
	start(&ret_range->from, tag);
	close_prefix(ret_range);
}

void key_range_guards(struct key_range *ret_range)
{
	whole(TAG_GUARD, ret_range);
}

void key_range_links(struct key_range *ret_range)
{
	whole(TAG_LINK, ret_range);
}

void key_range_xattrs(struct key_range *ret_range)
{
	whole(TAG_XATTR, ret_range);
}

void key_range_trash(uint64_t from_seq, uint64_t to_seq, struct key_range *ret_range)
{
	start_sharded(&ret_range->from, TAG_TRASH);
	copy(&ret_range->to, &ret_range->from);
	add_number(&ret_range->from, from_seq);
	add_number(&ret_range->to, util_max(from_seq, to_seq));
}

void key_range_due(int64_t until_ns, struct key_range *ret_range)
{
	uint64_t end = until_ns < 0 ? 0 : (uint64_t)until_ns + 1;

	start_sharded(&ret_range->from, TAG_DUE);
	copy(&ret_range->to, &ret_range->from);
	add_number(&ret_range->from, 0);
	add_number(&ret_range->to, end);
}

void key_range_batches(uint32_t uid, struct key_range *ret_range)
{
	start_batch(uid, &ret_range->from);
	close_prefix(ret_range);
}

void key_range_batches_all(struct key_range *ret_range)
{
	start_batch(0, &ret_range->from);
	start_batch(UINT32_MAX, &ret_range->to);
	add_u8(&ret_range->to, ABOVE_ALL);
}

void key_range_meta(struct key_range *ret_range)
{
	whole(TAG_META, ret_range);
}

void key_range_body(uint64_t body, struct key_range *ret_range)
{
	start_body(body, &ret_range->from);
	close_prefix(ret_range);
}

void key_range_free(struct key_range *ret_range)
{
	whole(TAG_FREE, ret_range);
}

void key_range_partition(const struct key *key, struct key_range *ret_range)
{
	ret_range->from = *key;
	ret_range->to = *key;
	ret_range->to.size = key->partition_size;
	/* Above all sort keys: no name or number begins with it. */
	ret_range->to.bytes[ret_range->to.size++] = 0xff;
}

/* ---- parsing ------------------------------------------------------------ */

static uint64_t take_number(struct reader *r)
{
	const uint8_t *p = reader_take(r, 8);
	uint64_t v = p ? util_get_be64(p) : 0;

	if (v > NUMBER_MAX)
		r->failed = true;
	return v;
}

static void expect_u8(struct reader *r, uint8_t v)
{
	if (reader_u8(r) != v)
		r->failed = true;
}

/* What is left after `tail` bytes at the end are set aside. */
static void take_name(const struct key_codec *c, struct reader *r, size_t tail, bool may_be_empty,
		      struct key_parts *parts)
{
	size_t left = r->size - r->at;

	if (r->failed || left < tail) {
		r->failed = true;
		return;
	}
	parts->name_size = left - tail;
	parts->name = reader_take(r, parts->name_size);
	if (c->sealed_names)
		r->failed |= parts->name_size != KEY_TOKEN_SIZE;
	else
		r->failed |= parts->name_size > KEY_NAME_MAX || (!parts->name_size && !may_be_empty) ||
			     memchr(parts->name, '/', parts->name_size) ||
			     memchr(parts->name, 0, parts->name_size);
}

static void parse_item(const struct key_codec *c, struct reader *r, struct key_parts *parts)
{
	parts->kind = KEY_KIND_ITEM;
	if (parts->state == KEY_ACT) {
		take_name(c, r, 0, parts->id == KEY_ID_NONE, parts);
		return;
	}
	take_name(c, r, 1 + 8, false, parts);
	expect_u8(r, '/');
	parts->seq = take_number(r);
}

static void parse_directory(const struct key_codec *c, struct reader *r, struct key_parts *parts)
{
	const uint8_t *prefix;

	parts->id = take_number(r);
	prefix = reader_take(r, PREFIX_SIZE);
	if (!prefix)
		return;
	if (!memcmp(prefix, PREFIX_SHADOW, PREFIX_SIZE)) {
		parts->kind = KEY_KIND_SHADOW;
		take_name(c, r, 0, false, parts);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(state_prefixes); i++) {
		if (memcmp(prefix, state_prefixes[i], PREFIX_SIZE))
			continue;
		parts->state = (enum key_state)i;
		parse_item(c, r, parts);
		return;
	}
	r->failed = true;
}

static void parse_batch(struct reader *r, struct key_parts *parts)
{
	const uint8_t *uid = reader_take(r, 4);

	parts->kind = KEY_KIND_BATCH;
	parts->uid = uid ? util_get_be32(uid) : 0;
	parts->seq = take_number(r);
}

static void parse_meta(struct reader *r, struct key_parts *parts)
{
	parts->kind = KEY_KIND_META;
	parts->name_size = r->size - r->at;
	parts->name = reader_take(r, parts->name_size);
	if (!meta_name_is_good(parts->name, parts->name_size))
		r->failed = true;
}

static void parse_free(struct reader *r, struct key_parts *parts)
{
	uint8_t what = reader_u8(r);

	parts->id = take_number(r);
	if (what == FREE_BODY) {
		parts->kind = KEY_KIND_FREE_BODY;
	} else if (what == FREE_RUN) {
		parts->kind = KEY_KIND_FREE_RUN;
		parts->seq = take_number(r);
	} else {
		r->failed = true;
	}
}

static void parse_numbered(struct reader *r, enum key_kind kind, struct key_parts *parts)
{
	parts->kind = kind;
	parts->id = take_number(r);
}

static void parse_sharded(struct reader *r, enum key_kind kind, struct key_parts *parts)
{
	parts->kind = kind;
	expect_u8(r, SHARD);
	if (kind == KEY_KIND_DUE)
		parts->due_ns = (int64_t)take_number(r);
	parts->seq = take_number(r);
}

/* The size of the partition key that begins with `tag`; 0 for no tag of ours. */
static size_t partition_size(uint8_t tag)
{
	switch (tag) {
	case TAG_DIRECTORY:
	case TAG_BODY:
		return 1 + 8;
	case TAG_TRASH:
	case TAG_DUE:
		return 1 + 1;
	case TAG_GUARD:
	case TAG_LINK:
	case TAG_XATTR:
	case TAG_BATCH:
	case TAG_META:
	case TAG_FREE:
		return 1;
	default:
		return 0;
	}
}

static void parse_tagged(const struct key_codec *c, struct reader *r, struct key_parts *parts)
{
	switch (reader_u8(r)) {
	case TAG_DIRECTORY:
		parse_directory(c, r, parts);
		break;
	case TAG_GUARD:
		parse_numbered(r, KEY_KIND_GUARD, parts);
		break;
	case TAG_LINK:
		parse_numbered(r, KEY_KIND_LINK, parts);
		break;
	case TAG_XATTR:
		parse_numbered(r, KEY_KIND_XATTR, parts);
		break;
	case TAG_TRASH:
		parse_sharded(r, KEY_KIND_TRASH, parts);
		break;
	case TAG_DUE:
		parse_sharded(r, KEY_KIND_DUE, parts);
		break;
	case TAG_BATCH:
		parse_batch(r, parts);
		break;
	case TAG_META:
		parse_meta(r, parts);
		break;
	case TAG_BODY:
		parse_numbered(r, KEY_KIND_BODY, parts);
		parts->seq = take_number(r);
		r->failed |= parts->seq > GROUP_MAX;
		break;
	case TAG_FREE:
		parse_free(r, parts);
		break;
	default:
		r->failed = true;
	}
}

int key_parse(const struct key_codec *c, const uint8_t *bytes, size_t size, struct key_parts *ret_parts)
{
	struct reader r = { .bytes = bytes, .size = size };
	struct key_parts parts = { 0 };

	if (size > KEY_MAX)
		return -EBADMSG;
	parse_tagged(c, &r, &parts);
	if (!reader_done(&r))
		return -EBADMSG;
	*ret_parts = parts;
	return 0;
}

bool key_name_matches(const struct key_codec *c, const struct key_parts *parts, const char *name)
{
	uint8_t token[KEY_TOKEN_SIZE];
	size_t size = strlen(name);

	if (c->sealed_names) {
		seal_token(c->token_key, name, size, token);
		return parts->name_size == sizeof(token) && !memcmp(parts->name, token, sizeof(token));
	}
	return parts->name_size == size && !memcmp(parts->name, name, size);
}

int key_from_bytes(const struct key_codec *c, const uint8_t *bytes, size_t size, struct key *ret_key)
{
	struct key_parts parts;
	int result = key_parse(c, bytes, size, &parts);

	if (result < 0)
		return result;
	ret_key->size = (uint16_t)size;
	ret_key->partition_size = (uint16_t)partition_size(bytes[0]);
	memcpy(ret_key->bytes, bytes, size);
	return 0;
}

bool key_is_private(const struct key *key)
{
	return key->bytes[0] == TAG_BODY || key->bytes[0] == TAG_FREE;
}

bool key_is_guard(const struct key *key)
{
	return key->bytes[0] == TAG_GUARD;
}

int key_compare(const struct key *a, const struct key *b)
{
	int order = memcmp(a->bytes, b->bytes, util_min(a->size, b->size));

	return order ? order : (int)a->size - (int)b->size;
}

int key_text(const struct place *at, char *buffer, size_t size)
{
	if (at->state == KEY_ACT)
		return snprintf(buffer, size, "%" PRIu64 "/%s%s", at->directory,
				state_prefixes[at->state], at->name);
	return snprintf(buffer, size, "%" PRIu64 "/%s%s/%" PRIu64, at->directory,
			state_prefixes[at->state], at->name, at->seq);
}
