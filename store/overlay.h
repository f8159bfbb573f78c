/*
 * overlay.h - what changed since a checkpoint, in memory and in key order.
 *
 * A struct overlay is one generation. It holds items by their encoded keys (so
 * that its order is that of the index below), and of each body the chunks that
 * changed. Everything lies in one arena that is freed at once: its bytes,
 * superseded ones included, are the bound of the generation's memory.
 *
 * Red-black trees: of four maps tried, the quickest at the sizes that occur
 * (250 ns to insert or to find among 10,000). A transaction looks each of its
 * items up four times and more (conditions twice, then to change it), so items
 * are found by a hash of the key besides; the tree is for ranges.
 *
 * Nothing here locks. A writer calls overlay_reserve first; what follows within
 * that many bytes cannot fail, so that a transaction is applied whole.
 */
#ifndef STORE_OVERLAY_H
#define STORE_OVERLAY_H

#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/body.h"

struct overlay_item {
	RB_ENTRY(overlay_item) by_key;
	struct overlay_item *next_hashed; /* in its bucket */
	uint64_t version;
	uint8_t *value; /* attributes, then content */
	uint32_t attrs_size;
	uint32_t content_size;
	uint32_t capacity;
	uint16_t key_size;
	uint16_t partition_size;
	uint32_t hash;
	bool deleted; /* hides what is below */
	uint8_t key[];
};

/* Bytes of a chunk that stand above its base. A chunk's extents are sorted and do not overlap. */
struct overlay_extent {
	struct overlay_extent *next;
	uint8_t *bytes; /* NULL: zeros, which are no data */
	uint32_t offset; /* in the chunk */
	uint32_t size;
	uint32_t capacity;
};

/* A place in a segment. In the list of released ones once nothing refers to it, so letting go needs no memory. */
struct overlay_ref {
	struct overlay_ref *next;
	struct body_ref ref;
};

/* What lies under a chunk's extents. */
enum overlay_base {
	OVERLAY_BELOW, /* what the generation or the index below says */
	OVERLAY_HOLE, /* zeros */
	OVERLAY_REF, /* the chunk `ref` names */
};

struct overlay_chunk {
	RB_ENTRY(overlay_chunk) by_place;
	uint64_t body;
	uint64_t index; /* number of the chunk in the body */
	enum overlay_base base;
	uint32_t limit; /* bytes of the base that count; zeros follow */
	bool patched; /* its bytes are not those of one chunk in a segment: a checkpoint has to write it */
	struct overlay_ref *ref; /* OVERLAY_REF */
	struct overlay_extent *extents;
};

/* Chunks [from, to) of a body that are gone, those below included. Sorted, disjoint. */
struct overlay_hole {
	struct overlay_hole *next;
	uint64_t from;
	uint64_t to;
};

struct overlay_body {
	RB_ENTRY(overlay_body) by_id;
	uint64_t id;
	struct overlay_hole *holes;
	bool freed;
};

RB_HEAD(overlay_items, overlay_item);
RB_HEAD(overlay_chunks, overlay_chunk);
RB_HEAD(overlay_bodies, overlay_body);

#define OVERLAY_BUCKETS 8192 /* a generation has some 8,000 items */

struct overlay {
	struct overlay_items items;
	struct overlay_item *hashed[OVERLAY_BUCKETS];
	uint64_t seed; /* of the hash, random: names are others' choice */
	struct overlay_chunks chunks;
	struct overlay_bodies bodies;
	struct overlay_ref *released; /* places that this generation took and let go again */
	struct overlay_block *blocks; /* newest first */
	size_t bytes; /* of all blocks */
	size_t used; /* of them, handed out */
	size_t count; /* entries of the index that it changes: items, groups of chunks, holes */
	size_t chunks_count;
	size_t patched; /* chunks so marked */
	uint64_t last_seq; /* the last transaction in it; 0 = none */
	bool freeing; /* a body was freed */
};

RB_PROTOTYPE(overlay_items, overlay_item, by_key, overlay_item_compare)
RB_PROTOTYPE(overlay_chunks, overlay_chunk, by_place, overlay_chunk_compare)
RB_PROTOTYPE(overlay_bodies, overlay_body, by_id, overlay_body_compare)

struct overlay *overlay_new(void); /* NULL: no memory */
void overlay_free(struct overlay *o); /* takes NULL */

/* Makes sure that `size` more bytes of entries fit. 0 or -ENOMEM. */
int overlay_reserve(struct overlay *o, size_t size);
/* What one entry may take beyond its key, value or patch; for adding up what to reserve. */
#define OVERLAY_ENTRY_BYTES 256
#define OVERLAY_PATCH_BYTES (BODY_CHUNK_SIZE + 2 * OVERLAY_ENTRY_BYTES)

/* What of a chunk's base shows through its extents, and what they add; units as in body.h. */
struct overlay_units {
	uint8_t kept; /* units of the base that hold data where it had some */
	uint8_t added; /* units with data above it */
	uint32_t end; /* of the data above it */
};
/* As far as the first `limit` bytes go. */
struct overlay_units overlay_chunk_units(const struct overlay_chunk *chunk, uint32_t limit);

/* ---- items ------------------------------------------------------------- */

struct overlay_item *overlay_find(struct overlay *o, const uint8_t *key, size_t key_size);
/*
 * The first item at or after `key` (`reverse`: the last at or before it), the
 * key itself only if `inclusive`.
 */
struct overlay_item *overlay_seek(struct overlay *o, const uint8_t *key, size_t key_size,
				  bool inclusive, bool reverse);
struct overlay_item *overlay_step(struct overlay_item *item, bool reverse);
/* Of two generations' items the one that is read first; the upper one's where both have the key. Takes NULL. */
struct overlay_item *overlay_first(struct overlay_item *upper, struct overlay_item *lower, bool reverse);
/* The order of keys, here and in the index: memcmp, then length. */
int overlay_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);
void overlay_put(struct overlay *o, const uint8_t *key, size_t key_size, size_t partition_size,
		 uint64_t version, const uint8_t *attrs, size_t attrs_size, const uint8_t *content,
		 size_t content_size);
void overlay_delete(struct overlay *o, const uint8_t *key, size_t key_size, size_t partition_size,
		    uint64_t version);

/* ---- bodies ------------------------------------------------------------ */

struct overlay_body *overlay_body_find(struct overlay *o, uint64_t body);
struct overlay_chunk *overlay_chunk_find(struct overlay *o, uint64_t body, uint64_t index);
/* The first changed chunk of `body` at or after `index`, or NULL. */
struct overlay_chunk *overlay_chunk_seek(struct overlay *o, uint64_t body, uint64_t index);
struct overlay_chunk *overlay_chunk_step(struct overlay_chunk *chunk); /* the next one of the same body, or NULL */
/* Whether chunk `index` lies in a hole of the body, and where the hole ends. */
bool overlay_body_hole(const struct overlay_body *body, uint64_t index, uint64_t *ret_to);

/* `size` bytes at `offset`, within one chunk. */
void overlay_patch(struct overlay *o, uint64_t body, uint64_t offset, const uint8_t *bytes, size_t size);
/* A whole new chunk. */
void overlay_chunk_put(struct overlay *o, uint64_t body, uint64_t index, const struct body_ref *ref);
/* Zeros at [offset, offset + length), across chunks. */
void overlay_zero(struct overlay *o, uint64_t body, uint64_t offset, uint64_t length);
void overlay_truncate(struct overlay *o, uint64_t body, uint64_t offset);
void overlay_body_free(struct overlay *o, uint64_t body);
/* A place in a segment that nothing refers to: its transaction did not come about. */
void overlay_release(struct overlay *o, const struct body_ref *ref);

#endif
