/*
 * change.h - the changes of one transaction as bytes: what a journal record
 * holds. FORMAT.md, "Journal", has the layouts.
 *
 * A transaction is encoded once and then applied to the overlay from these
 * bytes, in service and in replay alike, so that a replay cannot differ from
 * what was acknowledged.
 */
#ifndef STORE_CHANGE_H
#define STORE_CHANGE_H

#include "store/body.h"
#include "store/overlay.h"
#include "store/store.h"
#include "store/util.h"

/* Numbers are part of the format. */
enum change_kind {
	CHANGE_PUT = 1,
	CHANGE_DELETE = 2,
	CHANGE_ADD = 3,
	CHANGE_PATCH = 4, /* bytes within one chunk */
	CHANGE_CHUNK = 5, /* a whole new chunk, already in its segment */
	CHANGE_ZERO = 6,
	CHANGE_TRUNCATE = 7,
	CHANGE_FREE = 8,
};

/* Pointers go into the record. */
struct change {
	enum change_kind kind;
	const uint8_t *key; /* PUT, DELETE, ADD */
	uint16_t key_size;
	uint16_t partition_size;
	const uint8_t *attrs; /* PUT */
	uint32_t attrs_size;
	const uint8_t *content;
	uint32_t content_size;
	unsigned counter; /* ADD */
	int64_t delta;
	uint64_t body; /* PATCH and on */
	uint64_t offset;
	uint64_t length; /* PATCH, ZERO */
	const uint8_t *bytes; /* PATCH */
	uint64_t index; /* CHUNK */
	struct body_ref ref;
};

void change_encode(const struct change *change, struct buffer *b);
/* 1 and the next change, 0 at the end, -EBADMSG: no record says this. */
int change_next(struct reader *r, struct change *ret_change);
/* Upper bound of what applying it takes from the overlay's arena. */
size_t change_overlay_bytes(const struct change *change);
/* Upper bound of its encoding. */
size_t change_size(const struct change *change);

#endif
