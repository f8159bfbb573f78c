/*
 * memory.h - the parts of the engine in memory: a sorted array of entries, and
 * bodies in it. Private to engine-memory.c, memory-*.c.
 *
 * Bodies stand in the same array as items, under their BODY keys, in groups of
 * 64 KiB of which each unit of 4 KiB is data or a hole; the bytes of a hole are
 * zeros. Nothing here locks: the caller holds the engine's lock.
 */
#ifndef STORE_MEMORY_H
#define STORE_MEMORY_H

#include "store/engine.h"
#include "store/util.h"

struct memory_entry {
	uint64_t version;
	size_t attrs_size;
	size_t content_size;
	uint16_t units; /* of a body's group: which are data; bit 0 is the first */
	uint16_t key_size;
	uint16_t partition_size;
	uint8_t bytes[]; /* key, attrs, content */
};

struct memory_map {
	struct memory_entry **entries; /* in the order of their keys */
	size_t count;
	size_t capacity;
	uint64_t bytes;
};

/* Entries from `first` up to, not including, `end`, in the direction of reading. */
struct memory_span {
	size_t first;
	size_t end;
	bool reverse;
};

/* Its content is zeros. */
struct memory_entry *memory_entry_new(const struct key *key, const void *attrs, size_t attrs_size,
				      size_t content_size);
int memory_entry_order(const struct memory_entry *e, const struct key *key);

static inline uint8_t *memory_entry_attrs(struct memory_entry *e)
{
	return e->bytes + e->key_size;
}

static inline uint8_t *memory_entry_content(struct memory_entry *e)
{
	return e->bytes + e->key_size + e->attrs_size;
}

void memory_map_release(struct memory_map *m);
/* Index of the first entry that is not below `key`, or that is above it. */
size_t memory_lower_bound(const struct memory_map *m, const struct key *key);
size_t memory_upper_bound(const struct memory_map *m, const struct key *key);
struct memory_entry *memory_find(const struct memory_map *m, const struct key *key);
int memory_reserve(struct memory_map *m, size_t more); /* 0 or -ENOMEM */
/* Takes `e`, in the place of what had its key. There must be room. */
void memory_insert(struct memory_map *m, const struct key *key, struct memory_entry *e);
void memory_remove_at(struct memory_map *m, size_t at);
void memory_remove(struct memory_map *m, const struct key *key); /* if it is there */

/* memory-read.c */
int memory_copy_out(struct memory_entry *e, bool attributes_only, struct store_value *ret_value);
int memory_fill_page(const struct memory_map *m, const struct store_query *q, struct store_page *ret_page);
int memory_next_key(const struct memory_map *m, const struct key *from, struct key *ret_key);

/*
 * memory-body.c. A write needs memory_body_prepare before; preparing and then
 * not writing, or zeroing, leaves groups without data, which
 * memory_body_tidy removes.
 */
int memory_body_prepare(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t length);
void memory_body_write(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t length,
		       const uint8_t *bytes);
void memory_body_zero(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t end);
void memory_body_tidy(struct memory_map *m, uint64_t body);
void memory_body_copy(const struct memory_map *m, uint64_t body, uint64_t offset, void *buffer,
		      size_t size);
uint64_t memory_body_data(const struct memory_map *m, uint64_t body, uint64_t offset); /* UINT64_MAX: none */
uint64_t memory_body_hole(const struct memory_map *m, uint64_t body, uint64_t offset);
uint64_t memory_body_bytes(const struct memory_map *m, uint64_t body);

#endif
