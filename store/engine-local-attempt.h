/*
 * engine-local-attempt.h - one transaction on its way, for the files that take
 * it there: engine-local-encode.c, -conditions.c, -apply.c and -commit.c.
 */
#ifndef STORE_ENGINE_LOCAL_ATTEMPT_H
#define STORE_ENGINE_LOCAL_ATTEMPT_H

#include "store/engine-local.h"

enum known_state {
	KNOWN_NOT, /* not in the overlay, and not read from the index */
	KNOWN_ABSENT,
	KNOWN_PRESENT,
};

/* What is known of the item that an operation's condition is about. */
struct known {
	enum known_state state;
	bool from_index;
	uint64_t version;
};

#define OPERATIONS_MAX (100 + STORE_COUNTERS_MAX)

struct attempt {
	struct engine_local *e;
	enum store_purpose purpose;
	const struct store_op *ops;
	size_t count;
	struct buffer record; /* the changes, encoded */
	size_t overlay_bytes; /* what applying them may take */
	size_t patches; /* chunks that a checkpoint may have to write for them */
	bool adds; /* there are counters */
	bool frees;
	bool waited; /* for a checkpoint, for lack of space */
	struct index_reader *reader;
	uint64_t drops; /* generations dropped when `known` was read from the index */
	uint64_t empty_seq; /* last transaction when the ranges of EMPTY were looked at ... */
	uint64_t empty_drops; /* ... and generations dropped by then */
	uint64_t rotations;
	struct known known[OPERATIONS_MAX];
};

/* ---- engine-local-encode.c ---------------------------------------------- */

/* Fills the record; puts whole chunks into segments. 0, -ENOSPC, -ENOMEM, -EIO. */
int attempt_encode(struct attempt *a);
/* What was put into segments for a transaction that did not come about is nobody's. */
void attempt_release_chunks(struct attempt *a);

/* ---- engine-local-conditions.c ------------------------------------------ */

/* Looks at every item that a condition is about, and at every range, without the commit lock. 0, STORE_CONFLICT, negative errno. */
int attempt_look(struct attempt *a);
/* Under the commit lock: again, as far as it may have changed. The same. */
int attempt_look_again(struct attempt *a);

/* ---- engine-local-apply.c ----------------------------------------------- */

/*
 * Makes the open generation have every counter item that the changes add to,
 * with the value it has now, so that adding cannot fail. Under the commit lock;
 * memory was reserved. 0, -EBADMSG (an item is no counter item), -EIO, -ENOMEM.
 */
int apply_prepare(struct engine_local *e, struct index_reader *reader, const struct buffer *record);
/* Under `maps` too; memory was reserved, and apply_prepare called. */
void apply_changes(struct overlay *o, const uint8_t *bytes, size_t size, uint64_t seq);

#endif
