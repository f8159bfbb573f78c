/*
 * lmdb-index.h - the index of the local engine: sealed values under encoded
 * keys in one LMDB environment. The only user of <lmdb.h>.
 *
 * Reading is for any thread. A reader is a read transaction that was reset; it
 * is renewed for one call and reset again, so none outlives it. All that a
 * reader returns was copied out: pages are mapped, and touching them may raise
 * a signal, which becomes -EIO here (guard.h).
 *
 * Writing is for one thread, from begin to commit (LMDB keeps its lock by
 * thread). Nothing here seals: values are bytes.
 *
 * The key of a single zero byte is the engine's own state; readers do not see it.
 */
#ifndef STORE_LMDB_INDEX_H
#define STORE_LMDB_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/key.h"
#include "store/util.h"

#define INDEX_MAP_DEFAULT (UINT64_C(1) << 40)
#define INDEX_MAP_NEW (UINT64_C(1) << 20) /* while it is made: address space can be short */
#define INDEX_STATE_KEY "" /* the zero byte of it */
#define INDEX_STATE_KEY_SIZE 1
#define INDEX_META_SIZE 152 /* bytes of a meta page that mean something */

enum index_outcome {
	INDEX_ABSENT = 1,
};

struct index;
struct index_reader;

/* An empty environment below `dir_fd`; it has no state yet. */
int index_create(int dir_fd);
/* Whether the file looks like an environment that was used, without touching it. 0 and its size, -EBADMSG, other errno. */
int index_probe(int dir_fd, uint64_t *ret_size);
/* 0, -EBADMSG (it is not an environment), other errno. `map_bytes` of 0: INDEX_MAP_DEFAULT. Probe first: LMDB makes what is missing. */
int index_open(int dir_fd, bool read_only, uint64_t map_bytes, struct index **ret_index);
void index_close(struct index *x); /* takes NULL; no reader may be out */

/* ---- reading ----------------------------------------------------------- */

int index_reader_take(struct index *x, struct index_reader **ret_reader);
/* Sees what is committed now. No I/O: may be called under the overlay's lock. 0 or negative errno. */
int index_reader_renew(struct index_reader *reader);
/* Holds no snapshot any more, until it is renewed. */
void index_reader_rest(struct index_reader *reader);
/* How many items its snapshot says it has, the engine's own among them. */
int index_reader_entries(struct index_reader *reader, uint64_t *ret_entries);
void index_reader_give(struct index *x, struct index_reader *reader); /* takes NULL */

/* The first `head_max` bytes of the value are enough where it is not 0. `b` is emptied first. 0, INDEX_ABSENT, negative errno. */
int index_get(struct index_reader *reader, const uint8_t *key, size_t key_size, size_t head_max,
	      struct buffer *b);

/*
 * What a cursor stands on: copied into a buffer of the reader, good until it moves.
 * Where attributes alone were asked for, no more of the value is there than
 * value_unseal needs for them; value_size is that of all of it.
 */
struct index_row {
	const uint8_t *key;
	const uint8_t *value;
	size_t key_size;
	size_t value_size;
};

/* Until the reader is given back. */
void index_reader_attributes_only(struct index_reader *reader);

/* To the first key at or after `key` (`reverse`: the last one at or before), itself only if `inclusive`. 0, INDEX_ABSENT, negative errno. */
int index_seek(struct index_reader *reader, const uint8_t *key, size_t key_size, bool inclusive,
	       bool reverse, struct index_row *ret_row);
int index_step(struct index_reader *reader, bool reverse, struct index_row *ret_row);
/*
 * Steps over as many items as its snapshot has, from the first on or from where
 * the last call ended, at most `most`. *ret_count: over how many; less than
 * `most` at the end. Copies nothing. 0 or negative errno.
 */
int index_count(struct index_reader *reader, bool first, uint64_t most, uint64_t *ret_count);

/* ---- writing ----------------------------------------------------------- */

int index_write_begin(struct index *x);
int index_write_get(struct index *x, const uint8_t *key, size_t key_size, struct buffer *b);
/* As index_seek, in the transaction being written; the pointers are good until the next write. */
int index_write_seek(struct index *x, const uint8_t *key, size_t key_size, bool inclusive,
		     struct index_row *ret_row);
int index_put(struct index *x, const uint8_t *key, size_t key_size, const uint8_t *value,
	      size_t value_size);
int index_delete(struct index *x, const uint8_t *key, size_t key_size); /* 0 also when absent */
void index_write_abort(struct index *x);
/* Synced when it returns 0. */
int index_write_commit(struct index *x);

/* ---- facts ------------------------------------------------------------- */

struct index_facts {
	uint64_t commit; /* number of the last commit */
	uint64_t entries;
	uint64_t used_bytes; /* of the file, free pages inside included */
	uint64_t free_bytes; /* pages inside that the next commits may use; only if asked for */
	uint64_t map_bytes;
	size_t page_size;
};

int index_facts(struct index *x, bool count_free, struct index_facts *ret_facts);
/* The meaning bytes of the meta page that commit number `commit` wrote, as they are on disk. */
int index_meta(struct index *x, uint64_t commit, uint8_t ret_meta[INDEX_META_SIZE]);
/* Unmaps what was read, which stays in the page cache. Beside readers and the writer, who map it again. Best effort. */
void index_unmap_pages(struct index *x);
int index_fd(struct index *x);

#endif
