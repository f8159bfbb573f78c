/*
 * journal-internal.h - layout and state that journal.c (writing) and
 * journal-replay.c (reading) share.
 */
#ifndef STORE_JOURNAL_INTERNAL_H
#define STORE_JOURNAL_INTERNAL_H

#include "store/journal.h"

/* Offsets and sizes: FORMAT.md, "Journal". */
#define JOURNAL_BLOCK 4096 /* one of two copies of the header */
#define JOURNAL_START (2 * JOURNAL_BLOCK)
#define JOURNAL_MAGIC "ddbfsjnl"
#define JOURNAL_RECORD_MAGIC UINT32_C(0x6365726a)
#define JOURNAL_HEAD_SIZE 48 /* of a record, up to the nonce */
#define JOURNAL_ALIGN 8
#define JOURNAL_ANCHOR_SIZE (8 + 8 + 32 + 1)
#define JOURNAL_HEADER_SIZE (JOURNAL_ID_SIZE + JOURNAL_ID_SIZE + 8 + 8)
#define JOURNAL_HEADER_AD_SIZE (KEYRING_STORE_ID_SIZE + 12 + 4)
#define JOURNAL_AD_SIZE (KEYRING_STORE_ID_SIZE + JOURNAL_ID_SIZE + JOURNAL_HEAD_SIZE)

/* One use of a file. */
struct journal_use {
	uint8_t id[JOURNAL_ID_SIZE];
	uint8_t previous[JOURNAL_ID_SIZE]; /* the use before, in the other file */
	uint64_t number; /* of uses, counted up */
	uint64_t base_seq; /* the last transaction before it */
};

struct journal_file {
	int fd;
	bool valid; /* `use` was read or written */
	struct journal_use use;
	uint8_t *bytes; /* replay: what was read of it */
	size_t loaded;
	size_t from; /* replay: first record, and end of the log in it */
	size_t to;
};

struct journal {
	const struct keyring *keys;
	struct journal_file files[JOURNAL_FILES];
	uint64_t size; /* of each */
	unsigned current;
	uint64_t at; /* where the next record goes */
	uint8_t chain[SEAL_TAG_SIZE]; /* tag of the last record */
	struct buffer scratch;
};

const struct seal_key *journal_key(const struct journal *j, enum journal_kind kind);
/* Everything that a record's seal covers besides its bytes. */
void journal_record_ad(const struct journal *j, const struct journal_use *use,
		       const uint8_t head[JOURNAL_HEAD_SIZE], uint8_t ret_ad[JOURNAL_AD_SIZE]);
void journal_header_ad(const struct journal *j, unsigned file, uint8_t ret_ad[JOURNAL_HEADER_AD_SIZE]);

#endif
