/*
 * body.c - references and seals of chunks; see body.h and FORMAT.md.
 */
#include "store/body.h"

#include "store/util.h"

void body_ref_encode(const struct body_ref *ref, uint8_t bytes[BODY_REF_SIZE])
{
	util_put_le32(bytes, ref->segment);
	util_put_le32(bytes + 4, ref->offset);
	util_put_le32(bytes + 8, ref->length);
	bytes[12] = ref->units;
	memcpy(bytes + 13, ref->nonce, SEAL_NONCE_SIZE);
	memcpy(bytes + 13 + SEAL_NONCE_SIZE, ref->tag, SEAL_TAG_SIZE);
}

int body_ref_decode(const uint8_t bytes[BODY_REF_SIZE], struct body_ref *ret_ref)
{
	struct body_ref ref = {
		.segment = util_get_le32(bytes),
		.offset = util_get_le32(bytes + 4),
		.length = util_get_le32(bytes + 8),
		.units = bytes[12],
	};
	uint32_t units = (uint32_t)__builtin_popcount(ref.units);

	if (!ref.segment || !units || ref.offset % BODY_ALIGN || ref.length > units * BODY_UNIT ||
	    ref.length <= (units - 1) * BODY_UNIT)
		return -EBADMSG;
	memcpy(ref.nonce, bytes + 13, SEAL_NONCE_SIZE);
	memcpy(ref.tag, bytes + 13 + SEAL_NONCE_SIZE, SEAL_TAG_SIZE);
	*ret_ref = ref;
	return 0;
}

size_t body_group_encode(const struct body_group *group, uint8_t bytes[BODY_GROUP_MAX])
{
	uint32_t present = 0;
	size_t size = 4;

	for (unsigned i = 0; i < BODY_GROUP; i++) {
		if (!group->refs[i].length)
			continue;
		present |= UINT32_C(1) << i;
		body_ref_encode(&group->refs[i], bytes + size);
		size += BODY_REF_SIZE;
	}
	util_put_le32(bytes, present);
	return present ? size : 0;
}

int body_group_decode(const uint8_t *bytes, size_t size, struct body_group *ret_group)
{
	struct body_group group;
	size_t at = 4;
	uint32_t present;

	if (size < 4)
		return -EBADMSG;
	present = util_get_le32(bytes);
	if (!present || size != 4 + (size_t)__builtin_popcount(present) * BODY_REF_SIZE)
		return -EBADMSG;
	for (unsigned i = 0; i < BODY_GROUP; i++) {
		group.refs[i] = (struct body_ref){ 0 };
		if (!(present >> i & 1))
			continue;
		if (body_ref_decode(bytes + at, &group.refs[i]) < 0)
			return -EBADMSG;
		at += BODY_REF_SIZE;
	}
	*ret_group = group;
	return 0;
}

static uint8_t units_between(uint32_t first, uint32_t end)
{
	return first < end ? (uint8_t)(((1u << (end - first)) - 1) << first) : 0;
}

uint8_t body_units_touched(uint32_t from, uint32_t to)
{
	return units_between(from / BODY_UNIT, (to + BODY_UNIT - 1) / BODY_UNIT);
}

uint8_t body_units_covered(uint32_t from, uint32_t to)
{
	return units_between((from + BODY_UNIT - 1) / BODY_UNIT, to / BODY_UNIT);
}

/* Units are not 0. */
static uint32_t last_unit(uint8_t units)
{
	return 31 - (uint32_t)__builtin_clz(units);
}

uint32_t body_ref_end(const struct body_ref *ref)
{
	uint32_t units = (uint32_t)__builtin_popcount(ref->units);

	if (!units)
		return 0;
	return last_unit(ref->units) * BODY_UNIT + (ref->length - (units - 1) * BODY_UNIT);
}

void body_expand(const struct body_ref *ref, uint8_t chunk[BODY_CHUNK_SIZE])
{
	uint32_t stored = (uint32_t)__builtin_popcount(ref->units);
	uint32_t left = ref->length;

	/* From the last to the first: none is overwritten before it was moved. */
	for (uint32_t unit = BODY_UNITS; unit-- > 0;) {
		uint8_t *to = chunk + unit * BODY_UNIT;
		uint32_t from, size;

		if (!(ref->units >> unit & 1))
			continue;
		from = --stored * BODY_UNIT;
		size = left - from;
		left = from;
		memmove(to, chunk + from, size);
		memset(to + size, 0, BODY_UNIT - size);
	}
	for (uint32_t unit = 0; unit < BODY_UNITS; unit++)
		if (!(ref->units >> unit & 1))
			memset(chunk + unit * BODY_UNIT, 0, BODY_UNIT);
}

uint32_t body_compact(uint8_t units, uint32_t end, uint8_t chunk[BODY_CHUNK_SIZE])
{
	uint32_t at = 0;

	for (uint32_t unit = 0; unit < BODY_UNITS; unit++) {
		uint32_t from = unit * BODY_UNIT;
		uint32_t size = util_min(BODY_UNIT, end > from ? end - from : 0);

		if (!(units >> unit & 1))
			continue;
		if (at != from)
			memmove(chunk + at, chunk + from, size);
		at += size;
	}
	return at;
}

bool body_ref_equal(const struct body_ref *a, const struct body_ref *b)
{
	return a->segment == b->segment && a->offset == b->offset && a->length == b->length &&
	       !memcmp(a->tag, b->tag, SEAL_TAG_SIZE);
}

#define CHUNK_AD_SIZE (KEYRING_STORE_ID_SIZE + 8 + 8 + 4 + 1)

/* Store, body, number of the chunk, length, units. */
static void chunk_ad(const struct keyring *keys, uint64_t body, uint64_t index,
		     const struct body_ref *ref, uint8_t ret_ad[CHUNK_AD_SIZE])
{
	memcpy(ret_ad, keys->store_id, KEYRING_STORE_ID_SIZE);
	util_put_le64(ret_ad + KEYRING_STORE_ID_SIZE, body);
	util_put_le64(ret_ad + KEYRING_STORE_ID_SIZE + 8, index);
	util_put_le32(ret_ad + KEYRING_STORE_ID_SIZE + 16, ref->length);
	ret_ad[KEYRING_STORE_ID_SIZE + 20] = ref->units;
}

void body_chunk_seal(const struct keyring *keys, uint64_t body, uint64_t index, const void *plain,
		     uint8_t *ret_cipher, struct body_ref *ref)
{
	uint8_t ad[CHUNK_AD_SIZE];

	chunk_ad(keys, body, index, ref, ad);
	seal_nonce(ref->nonce);
	seal_chunk(&keys->keys[SEAL_CHUNK], ref->nonce, ad, sizeof(ad), plain, ref->length,
		   ret_cipher, ref->tag);
}

int body_chunk_unseal(const struct keyring *keys, uint64_t body, uint64_t index,
		      const struct body_ref *ref, const void *cipher, uint8_t *ret_plain)
{
	uint8_t ad[CHUNK_AD_SIZE];

	chunk_ad(keys, body, index, ref, ad);
	return seal_unchunk(&keys->keys[SEAL_CHUNK], ref->nonce, ref->tag, ad, sizeof(ad), cipher,
			    ref->length, ret_plain);
}
