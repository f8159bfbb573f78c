/*
 * body.h - a body is an array of chunks of 32 KiB; this is how the local engine
 * names a chunk, seals it, and groups references into items.
 *
 * A chunk is sealed once and written once into a segment, as ciphertext of the
 * same length; nonce and tag stand in the reference, so whoever has the
 * reference cannot be given other bytes. Changing a chunk makes a new one.
 * 32 KiB: a random read of 4 KiB unseals 31 us instead of 118 at 128 KiB, and
 * long reads and writes are as fast with either.
 */
#ifndef STORE_BODY_H
#define STORE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/keyring.h"
#include "store/seal.h"

#define BODY_CHUNK_SIZE UINT32_C(32768)
#define BODY_ALIGN UINT32_C(4096) /* runs in segments start at multiples of it */
#define BODY_UNIT UINT32_C(4096) /* of holes: a chunk stores those of its units that hold data */
#define BODY_UNITS (BODY_CHUNK_SIZE / BODY_UNIT)
#define BODY_GROUP 32 /* references in one BODY item */
#define BODY_REF_SIZE 53 /* encoded */
#define BODY_GROUP_MAX (4 + BODY_GROUP * BODY_REF_SIZE) /* encoded */

/*
 * Where a chunk is. `length` of 0: there is none, it reads as zeros. Units that
 * are holes are not stored: what is stored are the others, one behind the
 * other, the last of them as far as it goes.
 */
struct body_ref {
	uint32_t segment;
	uint32_t offset;
	uint32_t length; /* of what is stored, sealed or not */
	uint8_t units; /* which units hold data; bit 0 is the first */
	uint8_t nonce[SEAL_NONCE_SIZE];
	uint8_t tag[SEAL_TAG_SIZE];
};

/* References of the chunks [32 * group, 32 * group + 32) of a body: a BODY item. */
struct body_group {
	struct body_ref refs[BODY_GROUP];
};

void body_ref_encode(const struct body_ref *ref, uint8_t bytes[BODY_REF_SIZE]);
/* 0, or -EBADMSG: no chunk can be there. */
int body_ref_decode(const uint8_t bytes[BODY_REF_SIZE], struct body_ref *ret_ref);

/* Returns the size, 0 if the group names no chunk. */
size_t body_group_encode(const struct body_group *group, uint8_t bytes[BODY_GROUP_MAX]);
int body_group_decode(const uint8_t *bytes, size_t size, struct body_group *ret_group);

/* Bytes that a run takes in its segment. */
static inline uint32_t body_run_size(uint32_t length)
{
	return (length + BODY_ALIGN - 1) / BODY_ALIGN * BODY_ALIGN;
}

#define BODY_UNITS_ALL 0xff

/* Whether what is stored is the chunk from its beginning, without a hole in between. */
static inline bool body_units_plain(uint8_t units)
{
	return !(units & (units + 1));
}

/* Units that bytes [from, to) touch. */
uint8_t body_units_touched(uint32_t from, uint32_t to);
/* Units that lie in [from, to) whole. */
uint8_t body_units_covered(uint32_t from, uint32_t to);
/* Bytes from the chunk's beginning to the end of its data. */
uint32_t body_ref_end(const struct body_ref *ref);
/* From what is stored to the whole chunk, in place, zeros where there is nothing. */
void body_expand(const struct body_ref *ref, uint8_t chunk[BODY_CHUNK_SIZE]);
/* The other way: moves the units together. `end`: of the data. Returns the length to be stored. */
uint32_t body_compact(uint8_t units, uint32_t end, uint8_t chunk[BODY_CHUNK_SIZE]);

bool body_ref_equal(const struct body_ref *a, const struct body_ref *b);

/* Seals `ref->length` bytes; sets nonce and tag of `ref`. In place is allowed. */
void body_chunk_seal(const struct keyring *keys, uint64_t body, uint64_t index, const void *plain,
		     uint8_t *ret_cipher, struct body_ref *ref);
/* 0 or -EBADMSG. In place is allowed. */
int body_chunk_unseal(const struct keyring *keys, uint64_t body, uint64_t index,
		      const struct body_ref *ref, const void *cipher, uint8_t *ret_plain);

#endif
