/*
 * lmdb-reader.c - reading the index, from any thread.
 *
 * Pages are mapped, and touching them may raise a signal: everything is found,
 * compared and copied in guarded sections (guard.h). Room is made before each,
 * since they may not allocate.
 */
#include "store/guard.h"
#include "store/lmdb-internal.h"
#include "store/value.h"

#define IDLE_READERS_MAX 16
#define FREE_DBI 0 /* LMDB's own database of free pages */

static void reader_end(struct index_reader *reader)
{
	if (reader->cursor)
		mdb_cursor_close(reader->cursor);
	mdb_txn_abort(reader->txn);
	reader->cursor = NULL;
	reader->txn = NULL;
}

void index_reader_free(struct index_reader *reader)
{
	reader_end(reader);
	buffer_release(&reader->row);
	free(reader);
}

static MDB_env *environment(struct index *x)
{
	MDB_env *env;

	pthread_mutex_lock(&x->lock);
	env = x->env;
	pthread_mutex_unlock(&x->lock);
	return env;
}

/* Between the commit that breaks the environment and its replacement, whoever comes to read replaces it. */
static int reader_begin(struct index_reader *reader)
{
	struct index *x = reader->index;
	int r;

	reader->env = environment(x);
	r = mdb_txn_begin(reader->env, NULL, MDB_RDONLY, &reader->txn);
	if (r == MDB_PANIC) {
		index_reopen_for_reading(x);
		reader->env = environment(x);
		r = mdb_txn_begin(reader->env, NULL, MDB_RDONLY, &reader->txn);
	}
	if (!r)
		r = mdb_cursor_open(reader->txn, x->dbi, &reader->cursor);
	if (r)
		reader_end(reader);
	return r;
}

static int reader_new(struct index *x, struct index_reader **ret_reader)
{
	struct index_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->index = x;
	r = reader_begin(reader);
	if (r) {
		free(reader);
		return index_error(r);
	}
	mdb_txn_reset(reader->txn);
	*ret_reader = reader;
	return 0;
}

int index_reader_take(struct index *x, struct index_reader **ret_reader)
{
	struct index_reader *reader;

	pthread_mutex_lock(&x->lock);
	reader = x->idle;
	if (reader) {
		x->idle = reader->next;
		x->idle_count--;
	}
	pthread_mutex_unlock(&x->lock);
	if (!reader)
		return reader_new(x, ret_reader);
	*ret_reader = reader;
	return 0;
}

void index_reader_rest(struct index_reader *reader)
{
	if (reader->active)
		mdb_txn_reset(reader->txn);
	reader->active = false;
}

int index_reader_renew(struct index_reader *reader)
{
	int r;

	index_reader_rest(reader);
	r = reader->txn ? mdb_txn_renew(reader->txn) : MDB_PANIC;
	if (r == MDB_PANIC) {
		reader_end(reader);
		r = reader_begin(reader);
	}
	r = index_error(r);
	reader->active = r == 0;
	return r > 0 ? -EIO : r;
}

int index_reader_entries(struct index_reader *reader, uint64_t *ret_entries)
{
	MDB_stat stat;
	int r = index_error(mdb_stat(reader->txn, mdb_cursor_dbi(reader->cursor), &stat));

	if (r != 0)
		return r > 0 ? -EIO : r;
	*ret_entries = stat.ms_entries;
	return 0;
}

void index_reader_give(struct index *x, struct index_reader *reader)
{
	if (!reader)
		return;
	index_reader_rest(reader);
	reader->attributes_only = false;
	pthread_mutex_lock(&x->lock);
	if (!reader->broken && reader->env == x->env && x->idle_count < IDLE_READERS_MAX) {
		reader->next = x->idle;
		x->idle = reader;
		x->idle_count++;
		reader = NULL;
	}
	pthread_mutex_unlock(&x->lock);
	if (reader)
		index_reader_free(reader);
}

/* Room first, since the guarded copy may not allocate. */
static uint8_t *make_room(struct buffer *b, size_t size)
{
	buffer_reset(b);
	return buffer_append(b, NULL, size ? size : 1);
}

/*
 * Guarded, in two steps each: find, then copy. Variables that live across the
 * jump are not changed between it and the landing, or not used after it.
 */
static int guarded_find(struct index_reader *reader, MDB_cursor *cursor, MDB_cursor_op op,
			MDB_val *key, MDB_val *value)
{
	sigjmp_buf jump;
	int r;

	if (GUARD_ENTER(jump)) {
		reader->broken = true;
		return -EIO;
	}
	r = index_error(mdb_cursor_get(cursor, key, value, op));
	guard_leave();
	return r;
}

static int guarded_get(struct index_reader *reader, MDB_dbi dbi, MDB_val *key, MDB_val *value)
{
	sigjmp_buf jump;
	int r;

	if (GUARD_ENTER(jump)) {
		reader->broken = true;
		return -EIO;
	}
	r = index_error(mdb_get(reader->txn, dbi, key, value));
	guard_leave();
	return r;
}

static int guarded_copy(struct index_reader *reader, uint8_t *to, const void *from, size_t size)
{
	sigjmp_buf jump;

	if (GUARD_ENTER(jump)) {
		reader->broken = true;
		return -EIO;
	}
	memcpy(to, from, size);
	guard_leave();
	return 0;
}

int index_get(struct index_reader *reader, const uint8_t *key, size_t key_size, size_t head_max,
	      struct buffer *b)
{
	MDB_val k = index_val(key, key_size), v;
	size_t size;
	uint8_t *room;
	int r = guarded_get(reader, mdb_cursor_dbi(reader->cursor), &k, &v);

	if (r != 0)
		return r;
	size = head_max ? util_min(head_max, v.mv_size) : v.mv_size;
	if (size > VALUE_SIZE_MAX)
		return -EBADMSG;
	room = make_room(b, size);
	if (!room)
		return -ENOMEM;
	b->size = size;
	return guarded_copy(reader, room, v.mv_data, size);
}

void index_reader_attributes_only(struct index_reader *reader)
{
	reader->attributes_only = true;
}

/* Of the value: the head first, which says how much more is wanted. What it says may be damaged, but is read only once. */
static int copy_value(struct index_reader *reader, uint8_t *to, const MDB_val *value)
{
	const uint8_t *from = value->mv_data;
	size_t at = 0, end = value->mv_size;
	struct value_head head;
	int r = 0;

	if (reader->attributes_only && end >= VALUE_HEAD_SIZE) {
		at = VALUE_HEAD_SIZE;
		r = guarded_copy(reader, to, from, at);
		if (r == 0 && value_head(to, end, &head) == 0)
			end = value_attrs_end(&head);
	}
	return r == 0 ? guarded_copy(reader, to + at, from + at, end - at) : r;
}

static int take_row(struct index_reader *reader, const MDB_val *key, const MDB_val *value,
		    struct index_row *ret_row)
{
	uint8_t *room;
	int r;

	if (key->mv_size > KEY_MAX || value->mv_size > VALUE_SIZE_MAX)
		return -EBADMSG;
	room = make_room(&reader->row, key->mv_size + value->mv_size);
	if (!room)
		return -ENOMEM;
	r = guarded_copy(reader, room, key->mv_data, key->mv_size);
	if (r == 0)
		r = copy_value(reader, room + key->mv_size, value);
	if (r < 0)
		return r;
	*ret_row = (struct index_row){
		.key = room,
		.key_size = key->mv_size,
		.value = room + key->mv_size,
		.value_size = value->mv_size,
	};
	return 0;
}

static int guarded_compare(struct index_reader *reader, const MDB_val *a, const uint8_t *key,
			   size_t key_size, int *ret_order)
{
	sigjmp_buf jump;

	if (GUARD_ENTER(jump)) {
		reader->broken = true;
		return -EIO;
	}
	*ret_order = index_compare(a, key, key_size);
	guard_leave();
	return 0;
}

int index_seek(struct index_reader *reader, const uint8_t *key, size_t key_size, bool inclusive,
	       bool reverse, struct index_row *ret_row)
{
	MDB_val k = index_val(key, key_size), v;
	int order, r;

	if (mdb_cursor_renew(reader->txn, reader->cursor) != 0)
		return -EIO;
	r = guarded_find(reader, reader->cursor, MDB_SET_RANGE, &k, &v);
	if (r == INDEX_ABSENT && reverse)
		r = guarded_find(reader, reader->cursor, MDB_LAST, &k, &v);
	if (r != 0)
		return r;
	r = guarded_compare(reader, &k, key, key_size, &order);
	if (r < 0)
		return r;
	if (reverse ? order > 0 : order < 0)
		r = guarded_find(reader, reader->cursor, reverse ? MDB_PREV : MDB_NEXT, &k, &v);
	else if (order == 0 && !inclusive)
		r = guarded_find(reader, reader->cursor, reverse ? MDB_PREV : MDB_NEXT, &k, &v);
	if (r != 0)
		return r;
	return index_is_state(&k) ? (reverse ? INDEX_ABSENT : index_step(reader, false, ret_row)) :
				    take_row(reader, &k, &v, ret_row);
}

int index_step(struct index_reader *reader, bool reverse, struct index_row *ret_row)
{
	MDB_val k, v;
	int r = guarded_find(reader, reader->cursor, reverse ? MDB_PREV : MDB_NEXT, &k, &v);

	if (r != 0)
		return r;
	return index_is_state(&k) ? INDEX_ABSENT : take_row(reader, &k, &v, ret_row);
}

int index_count(struct index_reader *reader, bool first, uint64_t most, uint64_t *ret_count)
{
	uint64_t count = 0;
	MDB_val key, value;
	int r = first && mdb_cursor_renew(reader->txn, reader->cursor) != 0 ? -EIO : 0;

	while (r == 0 && count < most) {
		r = guarded_find(reader, reader->cursor, first && !count ? MDB_FIRST : MDB_NEXT,
				 &key, &value);
		count += r == 0;
	}
	if (r < 0)
		return r;
	*ret_count = count;
	return 0;
}

int index_free_pages(struct index *x, uint64_t *ret_pages)
{
	struct index_reader *reader;
	MDB_cursor *cursor;
	MDB_val key, value;
	uint64_t pages = 0;
	int r = index_reader_take(x, &reader);

	if (r < 0)
		return r;
	r = index_reader_renew(reader);
	if (r == 0)
		r = index_error(mdb_cursor_open(reader->txn, FREE_DBI, &cursor));
	if (r == 0) {
		/* Each record begins with the number of pages in it. */
		while ((r = guarded_find(reader, cursor, MDB_NEXT, &key, &value)) == 0)
			pages += *(size_t *)value.mv_data;
		mdb_cursor_close(cursor);
	}
	index_reader_give(x, reader);
	if (r < 0)
		return r;
	*ret_pages = pages;
	return 0;
}
