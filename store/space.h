/*
 * space.h - room for the index, kept ahead, so that a full disk is met by the
 * operation that would fill it and never by a checkpoint.
 *
 * Blocks are allocated behind the index's file. Part of them is the reserve:
 * what two small checkpoints take, and for every live item what deleting it
 * will cost (an item in the trash is larger than a live one: 450 B more were
 * measured). Growth is refused when it would touch the reserve; deletion,
 * restore and destruction may use it.
 *
 * Guarded by the engine's commit lock, except as noted.
 */
#ifndef STORE_SPACE_H
#define STORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/lmdb-index.h"
#include "store/store.h"

#define SPACE_PER_ITEM 512
#define SPACE_CHECKPOINTS (UINT64_C(16) << 20)

struct space {
	int fd; /* of the index's file */
	uint64_t allocated; /* bytes from its start that have a place on disk */
	uint64_t used; /* by the index, as of its last commit */
	uint64_t inside; /* of them, free pages */
	uint64_t entries;
	uint64_t map;
	bool unsupported; /* the file system does not allocate ahead: promises are estimates */
};

/* What a generation will cost the index: changed items, chunks that may each let a run go, bytes in memory. */
struct space_pending {
	size_t items;
	size_t chunks;
	size_t bytes;
};

void space_init(struct space *s, int fd);
/* After a commit of the index: takes its facts and allocates ahead as far as the disk lets it. */
void space_refresh(struct space *s, const struct index_facts *facts);
/* Whether the pages of the index that are free inside are worth being counted for the next refresh. */
bool space_tight(const struct space *s);
uint64_t space_reserve(const struct space *s);
/* Whether a transaction may be taken on top of what is pending in both generations. */
bool space_admits(const struct space *s, enum store_purpose purpose,
		  const struct space_pending pending[2]);
/* Whether the open generation should be committed soon, lest it outgrow what there is. */
bool space_presses(const struct space *s, const struct space_pending *open);

#endif
