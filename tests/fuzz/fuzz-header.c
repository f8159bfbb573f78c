/*
 * fuzz-header.c - the header file of a store. Odd sizes of input are taken as
 * they are; even ones are given a right checksum first, since few mutations
 * would otherwise get past it.
 */
#include <string.h>

#include "store/header.h"
#include "tests/fuzz/fuzz.h"

#define AT_FORMAT 8

static void set_checksum(uint8_t *bytes, size_t size)
{
	struct seal_key start = { 0 };

	memcpy(start.bytes, bytes, 16);
	seal_mac(&start, bytes + 48, size - 48, bytes + 16);
}

static void check_decoded(const struct header *header, const uint8_t *bytes)
{
	FUZZ_EXPECT(header->format >= KEYRING_FORMAT_OLDEST && header->format <= KEYRING_FORMAT);
	FUZZ_EXPECT(header->format == util_get_le32(bytes + AT_FORMAT));
	FUZZ_EXPECT(header->slots_count >= 1 && header->slots_count <= HEADER_SLOTS_MAX);
	FUZZ_EXPECT(header_trash_name_valid(header->trash_name));
	for (size_t i = 0; i < header->slots_count; i++) {
		FUZZ_EXPECT(header->slots[i].passes <= HEADER_PASSES_MAX);
		FUZZ_EXPECT(header->slots[i].memory <= HEADER_MEMORY_MAX);
	}
}

/* What was decoded is written as the same bytes in the newest format, but for checksum and MAC. */
static void check_encoded(const struct header *header, const uint8_t *bytes, size_t size)
{
	struct seal_key key = { .bytes = { 0xfe, 0xed } }; /* no input was made with it */
	struct header again;
	struct header_fault fault;
	struct buffer b = { 0 };

	header_encode(header, &key, &b);
	FUZZ_EXPECT(!b.failed && b.size == size);
	FUZZ_EXPECT(memcmp(b.bytes, bytes, AT_FORMAT) == 0);
	FUZZ_EXPECT(util_get_le32(b.bytes + AT_FORMAT) == KEYRING_FORMAT);
	FUZZ_EXPECT(memcmp(b.bytes + AT_FORMAT + 4, bytes + AT_FORMAT + 4, 4) == 0);
	FUZZ_EXPECT(memcmp(b.bytes + 48, bytes + 48, size - 48 - SEAL_HASH_SIZE) == 0);
	FUZZ_EXPECT(header_decode(b.bytes, b.size, &again, &fault) == 0);
	FUZZ_EXPECT(again.format == KEYRING_FORMAT);
	FUZZ_EXPECT(header_authentic(b.bytes, b.size, &key));
	FUZZ_EXPECT(!header_authentic(bytes, size, &key));
	buffer_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct header header;
	struct header_fault fault = { 0 };
	uint8_t *bytes;
	int result;

	if (seal_init() < 0 || size > HEADER_SIZE_MAX)
		return 0;
	bytes = malloc(size ? size : 1);
	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, input, size);
	if (size % 2 == 0 && size > 48) {
		util_put_le32(bytes + 12, (uint32_t)size);
		set_checksum(bytes, size);
	}
	result = header_decode(bytes, size, &header, &fault);
	if (result == 0) {
		check_decoded(&header, bytes);
		check_encoded(&header, bytes, size);
	} else {
		FUZZ_EXPECT(result == STORE_NOT_A_STORE || result == STORE_TOO_NEW ||
			    result == STORE_DAMAGED);
		FUZZ_EXPECT(fault.text && fault.text[0]);
	}
	free(bytes);
	return 0;
}
