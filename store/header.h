/*
 * header.h - the bytes of the store's header file. Private to keyring.c, its
 * tests and its fuzzer. FORMAT.md, "Header and key slots", has the layout.
 *
 * An envelope of magic, format, size and checksum comes first and stays the
 * same in every format to come, so that a newer store, a damaged header and
 * another program's file are told apart before any key is tried. The checksum
 * protects nothing; the MAC at the end does, under a subkey that only the
 * right credential yields.
 */
#ifndef STORE_HEADER_H
#define STORE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/keyring.h"
#include "store/seal.h"
#include "store/store.h"
#include "store/util.h"

#define HEADER_SLOTS_MAX 8
#define HEADER_SALT_SIZE 16
#define HEADER_WRAPPED_SIZE (SEAL_OVERHEAD + SEAL_KEY_SIZE)
#define HEADER_SIZE_MAX 65536 /* of any format */

/* What a header may ask of Argon2id: it must not keep a mount busy for minutes or take all memory. */
#define HEADER_PASSES_MAX 16
#define HEADER_MEMORY_MIN (UINT64_C(8) << 10)
#define HEADER_MEMORY_MAX (UINT64_C(1) << 30)

#define HEADER_JOURNAL_MIN (UINT64_C(1) << 20)
#define HEADER_JOURNAL_MAX (UINT64_C(1) << 30)
#define HEADER_JOURNAL_UNIT 4096 /* journals are whole blocks */

/* Numbers are part of the format. */
enum header_slot_kind {
	HEADER_SLOT_LOCAL = 1, /* the file `key` beside the header */
	HEADER_SLOT_PASSPHRASE = 2,
	HEADER_SLOT_KEY_FILE = 3,
};

struct header_slot {
	enum header_slot_kind kind;
	uint32_t passes; /* Argon2id's, passphrase only, else 0 */
	uint64_t memory; /* bytes, the same */
	uint8_t salt[HEADER_SALT_SIZE];
	uint8_t wrapped[HEADER_WRAPPED_SIZE]; /* the master key, a seal_box */
};

struct header {
	unsigned format; /* as read; header_encode writes today's */
	uint8_t store_id[KEYRING_STORE_ID_SIZE];
	uint64_t journal_bytes;
	bool sealed_names;
	char trash_name[KEYRING_TRASH_NAME_MAX + 1];
	size_t slots_count;
	struct header_slot slots[HEADER_SLOTS_MAX];
};

/* Why a header was refused: its format (0 if it has none) and static words. */
struct header_fault {
	unsigned format;
	const char *text;
};

/* Appends the whole file; `mac_key` is SEAL_HEADER's subkey. */
void header_encode(const struct header *header, const struct seal_key *mac_key, struct buffer *b);
/* 0; STORE_NOT_A_STORE, STORE_TOO_NEW or STORE_DAMAGED with `ret_fault` filled. Takes hostile bytes. */
int header_decode(const uint8_t *bytes, size_t size, struct header *ret_header,
		  struct header_fault *ret_fault);
/* Whether the MAC of a header that header_decode took is right. */
bool header_authentic(const uint8_t *bytes, size_t size, const struct seal_key *mac_key);

/* What the wrapped key is bound to: store, kind, parameters, salt. */
#define HEADER_SLOT_AD_SIZE 58
void header_slot_ad(const struct header *header, const struct header_slot *slot,
		    uint8_t ret_ad[HEADER_SLOT_AD_SIZE]);

/* 1 to KEYRING_TRASH_NAME_MAX bytes without '/', and neither ".", ".." nor ".ddbfs". */
bool header_trash_name_valid(const char *name);

#endif
