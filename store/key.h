/*
 * key.h - the one place that builds and parses keys.
 *
 * A key is a partition key followed by a sort key, one string of bytes whose
 * memcmp order is the order of every engine. Partition keys are self-delimiting
 * (a tag byte and fields of fixed size), so no partition is a prefix of another.
 * FORMAT.md has the bytes. The state is the first thing in an item's sort key;
 * '/' ends the name in it, since no name can contain one.
 *
 * With sealed names the name part is a 16-byte keyed token (SipHash-2-4-128 of
 * the name under a subkey); the states stay outside it. Only this file knows
 * the difference.
 */
#ifndef STORE_KEY_H
#define STORE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_MAX 511 /* bytes; LMDB 0.9's limit for a whole key */
#define KEY_NAME_MAX 255 /* bytes of a name, as Linux' NAME_MAX */
#define KEY_TOKEN_SIZE 16

struct key {
	uint16_t size; /* of all bytes */
	uint16_t partition_size; /* of the partition key, the first of them */
	uint8_t bytes[KEY_MAX];
};

/* Keys from `from` up to, not including, `to`; one partition. */
struct key_range {
	struct key from;
	struct key to;
};

struct key_codec {
	bool sealed_names;
	uint8_t token_key[KEY_TOKEN_SIZE];
};

/* The state of an item, the prefix of its sort key. */
enum key_state {
	KEY_ACT, /* live */
	KEY_ARC, /* archived; written by no operation yet */
	KEY_DEL, /* deleted */
};

/* Where an item is: everything its key says. `seq` is 0 for KEY_ACT. */
struct place {
	uint64_t directory; /* partition */
	uint64_t seq;
	enum key_state state;
	char name[KEY_NAME_MAX + 1];
};

/* Ids with a fixed meaning. Ids of directories, files and bodies are one sequence. */
#define KEY_ID_NONE UINT64_C(0) /* partition that holds the root's own item, under the name "" */
#define KEY_ID_ROOT UINT64_C(1)
#define KEY_ID_FIRST UINT64_C(16) /* the first that is given out */

/* Names must be 1 to KEY_NAME_MAX bytes without '/' (the root's "" excepted): asserted. */
void key_item(const struct key_codec *c, const struct place *at, struct key *ret_key);
void key_act(const struct key_codec *c, uint64_t directory, const char *name, struct key *ret_key);
void key_shadow(const struct key_codec *c, uint64_t directory, const char *name, struct key *ret_key);
void key_guard(uint64_t directory, struct key *ret_key);
void key_link(uint64_t item, struct key *ret_key);
void key_xattr(uint64_t item, struct key *ret_key);
void key_trash(uint64_t seq, struct key *ret_key);
void key_due(int64_t due_ns, uint64_t seq, struct key *ret_key); /* due_ns >= 0 */
void key_batch(uint32_t uid, uint64_t seq, struct key *ret_key);
void key_meta(const char *name, struct key *ret_key);
/* Private to engines. */
void key_body(uint64_t body, uint64_t group, struct key *ret_key);
void key_free_body(uint64_t body, struct key *ret_key);
void key_free_run(uint64_t segment, uint64_t offset, struct key *ret_key);

void key_range_live(uint64_t directory, struct key_range *ret_range); /* ACT# */
void key_range_deleted(uint64_t directory, struct key_range *ret_range); /* DEL# */
void key_range_deleted_name(const struct key_codec *c, uint64_t directory, const char *name,
			    struct key_range *ret_range); /* DEL#name/ : oldest first */
void key_range_shadows(uint64_t directory, struct key_range *ret_range); /* SHD# */
void key_range_directory(uint64_t directory, struct key_range *ret_range); /* all of the partition */
void key_range_guards(struct key_range *ret_range);
void key_range_links(struct key_range *ret_range);
void key_range_xattrs(struct key_range *ret_range);
void key_range_trash(uint64_t from_seq, uint64_t to_seq, struct key_range *ret_range); /* [from, to) */
void key_range_due(int64_t until_ns, struct key_range *ret_range); /* due <= until */
void key_range_batches(uint32_t uid, struct key_range *ret_range); /* of one uid, oldest first */
void key_range_batches_all(struct key_range *ret_range);
void key_range_meta(struct key_range *ret_range);
void key_range_body(uint64_t body, struct key_range *ret_range);
void key_range_free(struct key_range *ret_range);
/* From a key to the end of the partition that it is in. */
void key_range_partition(const struct key *key, struct key_range *ret_range);

enum key_kind {
	KEY_KIND_ITEM,
	KEY_KIND_SHADOW,
	KEY_KIND_GUARD,
	KEY_KIND_LINK,
	KEY_KIND_XATTR,
	KEY_KIND_TRASH,
	KEY_KIND_DUE,
	KEY_KIND_BATCH,
	KEY_KIND_META,
	KEY_KIND_BODY,
	KEY_KIND_FREE_BODY,
	KEY_KIND_FREE_RUN,
};

/* What the bytes of a key say. `name` points into the key: a plain name or a token. */
struct key_parts {
	enum key_kind kind;
	enum key_state state; /* ITEM */
	uint64_t id; /* directory, item, body or segment */
	uint64_t seq; /* ITEM deleted or archived, TRASH, DUE, BATCH; group of BODY, offset of FREE_RUN */
	int64_t due_ns; /* DUE */
	uint32_t uid; /* BATCH */
	const uint8_t *name; /* ITEM, SHADOW, META */
	size_t name_size;
};

/* 0, or -EBADMSG: bytes that no function here builds. */
int key_parse(const struct key_codec *c, const uint8_t *bytes, size_t size, struct key_parts *ret_parts);
/*
 * The name by which a place finds the key again when the item, and with sealed
 * names the name in it, cannot be read: the plain one, or "/" and the token in
 * 32 hexadecimal digits, which key_item and key_shadow take for a token with
 * sealed names. No name of a user begins with '/'.
 */
#define KEY_UNKNOWN_SIZE (1 + 2 * KEY_TOKEN_SIZE)
void key_unknown_name(const struct key_codec *c, const struct key_parts *parts,
		      char ret_name[KEY_NAME_MAX + 1]);
/* Whether the name part of a parsed ITEM or SHADOW key is that of `name`. */
bool key_name_matches(const struct key_codec *c, const struct key_parts *parts, const char *name);
/* Rebuilds a struct key (partition_size included) from bytes that key_parse takes. 0 or -EBADMSG. */
int key_from_bytes(const struct key_codec *c, const uint8_t *bytes, size_t size, struct key *ret_key);

/* Whether the key is one of those that engines alone write: BODY and FREE. */
bool key_is_private(const struct key *key);
bool key_is_guard(const struct key *key);

int key_compare(const struct key *a, const struct key *b);

/*
 * A place in words, as snprintf: "<directory>/DEL#name/<seq>" in plain names
 * whatever the codec, for people to read. Returns the length it wants.
 */
int key_text(const struct place *at, char *buffer, size_t size);

#endif
