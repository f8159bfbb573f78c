/*
 * fuzz-key.c - keys as they come from a damaged database: with ordered names
 * and with sealed ones. What parses is exactly what is built.
 */
#include <string.h>

#include "store/key.h"
#include "tests/fuzz/fuzz.h"

static void check_parts(const struct key_parts *parts, const uint8_t *bytes, size_t size)
{
	FUZZ_EXPECT(parts->name_size <= KEY_NAME_MAX);
	if (parts->name_size)
		FUZZ_EXPECT(parts->name >= bytes && parts->name + parts->name_size <= bytes + size);
}

/* The key of an item can be rebuilt from its place, if the name is plain. */
static void check_item(const struct key_codec *codec, const struct key_parts *parts,
		       const uint8_t *bytes, size_t size)
{
	struct place at = { .directory = parts->id, .seq = parts->seq, .state = parts->state };
	struct key key;

	memcpy(at.name, parts->name, parts->name_size);
	if (codec->sealed_names || (!parts->name_size && parts->id != KEY_ID_NONE))
		return;
	FUZZ_EXPECT(key_name_matches(codec, parts, at.name));
	key_item(codec, &at, &key);
	FUZZ_EXPECT(key.size == size && memcmp(key.bytes, bytes, size) == 0);
}

static void check_with(const struct key_codec *codec, const uint8_t *bytes, size_t size)
{
	struct key_parts parts;
	struct key key;
	int result = key_parse(codec, bytes, size, &parts);

	FUZZ_EXPECT((result == 0) == (key_from_bytes(codec, bytes, size, &key) == 0));
	if (result != 0)
		return;
	FUZZ_EXPECT(key.size == size && memcmp(key.bytes, bytes, size) == 0);
	FUZZ_EXPECT(key.partition_size > 0 && key.partition_size <= size);
	check_parts(&parts, bytes, size);
	if (parts.kind == KEY_KIND_ITEM)
		check_item(codec, &parts, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct key_codec ordered = { .sealed_names = false },
			 sealed = { .sealed_names = true, .token_key = { 1 } };

	check_with(&ordered, bytes, size);
	check_with(&sealed, bytes, size);
	return 0;
}
