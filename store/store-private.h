/*
 * store-private.h - what a store is made of, for the files store*.c.
 *
 * Both locks guard a few numbers and are never held across a transaction: an
 * engine may call back into another client (fault injection does).
 */
#ifndef STORE_STORE_PRIVATE_H
#define STORE_STORE_PRIVATE_H

#include <pthread.h>

#include "store/engine.h"

struct store_ids {
	pthread_mutex_t lock;
	uint64_t next; /* by `lock`, as all below */
	uint64_t end; /* of the block in hand */
};

struct store_seqs {
	pthread_mutex_t lock;
	uint64_t last; /* greatest given out, in this mount or before; by `lock`, as all below */
	uint64_t bound; /* META "clock" promises that none above it was given out */
	uint8_t mount;
	bool held; /* the wall clock is not followed: see store_hold_clock */
	int64_t held_real_ns, held_boot_ns;
};

struct store {
	struct engine *engine;
	const struct clock *clock;
	int lock_fd; /* -1 in memory */
	struct keyring keyring; /* of a store in memory: id, names, token key */
	struct key_codec codec;
	struct store_ids ids;
	struct store_seqs seqs;
	uint64_t moves; /* store_moves; atomic */
	uint64_t gets, queries, rows; /* asked of the engine so far; atomic */
};

/* A store without an engine; freed by store_free, which wipes the keyring. The keyring is filled in place. */
struct store *store_new(const struct clock *clock);
void store_free(struct store *s);
/* With keyring and engine in place: keys can be built. */
void store_start(struct store *s);

/* store.c: what transaction_commit adds to store_moves. */
void store_count_move(struct store *s);

/* store-seq.c */
void store_seqs_init(struct store *s);
void store_seqs_release(struct store *s);
int store_seqs_claim(struct store *s); /* reads the high-water mark and takes the next mount number */
int store_seqs_read(struct store *s); /* only reads it: the store is open for reading */
int store_seqs_settle(struct store *s); /* at close: the mark is exact again */

/* store-marks.c: whether each of the two can be read: 0 or negative errno. */
void store_marks_state(struct store *s, int *ret_ids, int *ret_clock);

/* store-mend.c: what does not unseal is made again, above all that was ever given out. 0 or negative errno. */
int store_mend_marks(struct store *s, bool ids, bool clock);

#endif
