#include "store/header.h"

#include <assert.h>

static const uint8_t magic[8] = { 'd', 'd', 'b', 'f', 's', '\r', '\n', 0x1a };

enum {
	AT_FORMAT = 8,
	AT_SIZE = 12,
	AT_CHECKSUM = 16,
	ENVELOPE_SIZE = 48,
	FIXED_SIZE = ENVELOPE_SIZE + 96, /* up to the first slot */
	SLOT_PARAMETERS_SIZE = 32,
	SLOT_SIZE = 128,
	WHOLE_MAX = FIXED_SIZE + HEADER_SLOTS_MAX * SLOT_SIZE + SEAL_HASH_SIZE,
};

static const uint8_t zeros[SLOT_SIZE];

static size_t whole_size(size_t slots)
{
	return FIXED_SIZE + slots * SLOT_SIZE + SEAL_HASH_SIZE;
}

bool header_trash_name_valid(const char *name)
{
	size_t size = strlen(name);

	return size > 0 && size <= KEYRING_TRASH_NAME_MAX && !strchr(name, '/') &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, ".ddbfs") != 0;
}

static void encode_slot_parameters(const struct header_slot *slot, uint8_t *to)
{
	memset(to, 0, SLOT_PARAMETERS_SIZE);
	to[0] = (uint8_t)slot->kind;
	util_put_le32(to + 4, slot->passes);
	util_put_le64(to + 8, slot->memory);
	memcpy(to + 16, slot->salt, HEADER_SALT_SIZE);
}

void header_slot_ad(const struct header *header, const struct header_slot *slot,
		    uint8_t ret_ad[HEADER_SLOT_AD_SIZE])
{
	static_assert(HEADER_SLOT_AD_SIZE == 10 + KEYRING_STORE_ID_SIZE + SLOT_PARAMETERS_SIZE, "");

	memcpy(ret_ad, "ddbfs slot", 10);
	memcpy(ret_ad + 10, header->store_id, KEYRING_STORE_ID_SIZE);
	encode_slot_parameters(slot, ret_ad + 10 + KEYRING_STORE_ID_SIZE);
}

/* Of everything before it, the checksum taken as zeros: that one is put in last. */
static void compute_mac(const uint8_t *bytes, size_t size, const struct seal_key *key,
			uint8_t ret[SEAL_HASH_SIZE])
{
	uint8_t copy[WHOLE_MAX];

	memcpy(copy, bytes, size - SEAL_HASH_SIZE);
	memset(copy + AT_CHECKSUM, 0, SEAL_HASH_SIZE);
	seal_mac(key, copy, size - SEAL_HASH_SIZE, ret);
}

/* Of what follows the envelope, keyed by what precedes the checksum in it: all bytes count, none is copied. */
static void compute_checksum(const uint8_t *bytes, size_t size, uint8_t ret[SEAL_HASH_SIZE])
{
	struct seal_key start = { 0 };

	memcpy(start.bytes, bytes, AT_CHECKSUM);
	seal_mac(&start, bytes + ENVELOPE_SIZE, size - ENVELOPE_SIZE, ret);
}

void header_encode(const struct header *header, const struct seal_key *mac_key, struct buffer *b)
{
	size_t size = whole_size(header->slots_count);
	uint8_t bytes[WHOLE_MAX] = { 0 };
	uint8_t *at = bytes + FIXED_SIZE;

	assert(header->slots_count >= 1 && header->slots_count <= HEADER_SLOTS_MAX);
	memcpy(bytes, magic, sizeof(magic));
	util_put_le32(bytes + AT_FORMAT, KEYRING_FORMAT);
	util_put_le32(bytes + AT_SIZE, (uint32_t)size);
	memcpy(bytes + 48, header->store_id, KEYRING_STORE_ID_SIZE);
	util_put_le64(bytes + 64, header->journal_bytes);
	bytes[72] = header->sealed_names;
	bytes[73] = (uint8_t)header->slots_count;
	bytes[74] = (uint8_t)strlen(header->trash_name);
	memcpy(bytes + 80, header->trash_name, strlen(header->trash_name));
	for (size_t i = 0; i < header->slots_count; i++, at += SLOT_SIZE) {
		encode_slot_parameters(&header->slots[i], at);
		memcpy(at + SLOT_PARAMETERS_SIZE, header->slots[i].wrapped, HEADER_WRAPPED_SIZE);
	}
	compute_mac(bytes, size, mac_key, at);
	compute_checksum(bytes, size, bytes + AT_CHECKSUM);
	buffer_append(b, bytes, size);
}

static bool decode_slot(const uint8_t *from, struct header_slot *ret_slot)
{
	struct header_slot slot = {
		.kind = from[0],
		.passes = util_get_le32(from + 4),
		.memory = util_get_le64(from + 8),
	};
	size_t end = SLOT_PARAMETERS_SIZE + HEADER_WRAPPED_SIZE;

	if (memcmp(from + 1, zeros, 3) != 0 || memcmp(from + end, zeros, SLOT_SIZE - end) != 0)
		return false;
	if (slot.kind == HEADER_SLOT_PASSPHRASE) {
		if (slot.passes < 1 || slot.passes > HEADER_PASSES_MAX ||
		    slot.memory < HEADER_MEMORY_MIN || slot.memory > HEADER_MEMORY_MAX)
			return false;
	} else if ((slot.kind != HEADER_SLOT_LOCAL && slot.kind != HEADER_SLOT_KEY_FILE) ||
		   slot.passes || slot.memory) {
		return false;
	}
	memcpy(slot.salt, from + 16, HEADER_SALT_SIZE);
	memcpy(slot.wrapped, from + SLOT_PARAMETERS_SIZE, HEADER_WRAPPED_SIZE);
	*ret_slot = slot;
	return true;
}

static bool decode_trash_name(const uint8_t *bytes, struct header *header)
{
	size_t size = bytes[74];

	if (size > KEYRING_TRASH_NAME_MAX ||
	    memcmp(bytes + 80 + size, zeros, KEYRING_TRASH_NAME_MAX - size) != 0)
		return false;
	memcpy(header->trash_name, bytes + 80, size);
	return strlen(header->trash_name) == size && header_trash_name_valid(header->trash_name);
}

/* The envelope is sound; what it holds may still be nonsense that somebody gave a checksum. */
static bool decode_body(const uint8_t *bytes, size_t size, struct header *ret_header)
{
	struct header header = { 0 };

	if (size < whole_size(1))
		return false;
	memcpy(header.store_id, bytes + 48, KEYRING_STORE_ID_SIZE);
	header.journal_bytes = util_get_le64(bytes + 64);
	header.sealed_names = bytes[72] == 1;
	header.slots_count = bytes[73];
	if (bytes[72] > 1 || memcmp(bytes + 75, zeros, 5) != 0 || !decode_trash_name(bytes, &header))
		return false;
	if (header.journal_bytes < HEADER_JOURNAL_MIN || header.journal_bytes > HEADER_JOURNAL_MAX ||
	    header.journal_bytes % HEADER_JOURNAL_UNIT != 0)
		return false;
	if (header.slots_count < 1 || header.slots_count > HEADER_SLOTS_MAX ||
	    size != whole_size(header.slots_count))
		return false;
	for (size_t i = 0; i < header.slots_count; i++)
		if (!decode_slot(bytes + FIXED_SIZE + i * SLOT_SIZE, &header.slots[i]))
			return false;
	*ret_header = header;
	return true;
}

static bool checksum_holds(const uint8_t *bytes, size_t size)
{
	uint8_t checksum[SEAL_HASH_SIZE];

	compute_checksum(bytes, size, checksum);
	return memcmp(checksum, bytes + AT_CHECKSUM, sizeof(checksum)) == 0;
}

static int fault(struct header_fault *ret_fault, int result, unsigned format, const char *text)
{
	*ret_fault = (struct header_fault){ format, text };
	return result;
}

int header_decode(const uint8_t *bytes, size_t size, struct header *ret_header,
		  struct header_fault *ret_fault)
{
	unsigned format;

	if (size == 0)
		return fault(ret_fault, STORE_NOT_A_STORE, 0, "is empty");
	if (memcmp(bytes, magic, util_min(size, sizeof(magic))) != 0)
		return fault(ret_fault, STORE_NOT_A_STORE, 0, "does not begin as a ddbfs header does");
	if (size < ENVELOPE_SIZE)
		return fault(ret_fault, STORE_DAMAGED, 0, "is cut off");
	format = util_get_le32(bytes + AT_FORMAT);
	if (util_get_le32(bytes + AT_SIZE) != size || size > HEADER_SIZE_MAX)
		return fault(ret_fault, STORE_DAMAGED, format, "has another size than it says");
	if (!checksum_holds(bytes, size))
		return fault(ret_fault, STORE_DAMAGED, format, "does not match its checksum");
	if (format > KEYRING_FORMAT)
		return fault(ret_fault, STORE_TOO_NEW, format, "was made by a later version");
	if (format < KEYRING_FORMAT_OLDEST || !decode_body(bytes, size, ret_header))
		return fault(ret_fault, STORE_DAMAGED, format, "holds values that no version writes");
	ret_header->format = format;
	return 0;
}

bool header_authentic(const uint8_t *bytes, size_t size, const struct seal_key *mac_key)
{
	uint8_t mac[SEAL_HASH_SIZE];

	if (size < SEAL_HASH_SIZE || size > WHOLE_MAX)
		return false;
	compute_mac(bytes, size, mac_key, mac);
	return seal_equal(mac, bytes + size - SEAL_HASH_SIZE, sizeof(mac));
}
