/*
 * lmdb-internal.h - what lmdb-index.c (environment, writer) and lmdb-reader.c share.
 */
#ifndef STORE_LMDB_INTERNAL_H
#define STORE_LMDB_INTERNAL_H

#include <lmdb.h>
#include <pthread.h>

#include "store/lmdb-index.h"

struct index_reader {
	struct index_reader *next;
	struct index *index;
	MDB_env *env; /* that it is of */
	MDB_txn *txn;
	MDB_cursor *cursor;
	struct buffer row;
	bool active; /* renewed and not reset */
	bool attributes_only; /* rows are wanted without their contents */
	bool broken; /* a signal came while it read */
};

struct index {
	MDB_env *env; /* by `lock`, once there are readers */
	MDB_env *dead; /* the one before, that LMDB refuses to use any more */
	int dir_fd; /* borrowed */
	uint64_t map_bytes;
	MDB_dbi dbi;
	MDB_txn *write;
	MDB_cursor *write_cursor;
	size_t page_size;
	pthread_mutex_t lock; /* of idle */
	pthread_mutex_t reopening; /* before `lock` */
	struct index_reader *idle;
	unsigned idle_count;
};

/* LMDB's result as this program's: 0, INDEX_ABSENT, negative errno. */
int index_error(int result);

static inline MDB_val index_val(const uint8_t *bytes, size_t size)
{
	return (MDB_val){ .mv_data = (void *)bytes, .mv_size = size };
}

/* LMDB's order of keys: memcmp, the shorter first. */
static inline int index_compare(const MDB_val *a, const uint8_t *key, size_t key_size)
{
	int order = memcmp(a->mv_data, key, util_min(a->mv_size, key_size));

	if (order)
		return order;
	return a->mv_size < key_size ? -1 : a->mv_size > key_size;
}

/* The key of the engine's own item. */
static inline bool index_is_state(const MDB_val *key)
{
	return key->mv_size == INDEX_STATE_KEY_SIZE;
}

void index_reader_free(struct index_reader *reader);
/* After LMDB has refused a transaction with MDB_PANIC: from now on the environment is one that can be read. */
void index_reopen_for_reading(struct index *x);
/* Pages inside of the file that belong to nothing. */
int index_free_pages(struct index *x, uint64_t *ret_pages);

#endif
