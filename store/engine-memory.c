/*
 * engine-memory.c - the reference engine: a sorted array in memory.
 *
 * It has the strictest limits of all engines to come (DynamoDB's, and LMDB's
 * 511 bytes for a whole key), gives short pages, and fails on request, so that
 * what runs on it runs everywhere. Simple before fast: one lock, an array of
 * pointers moved by memmove.
 *
 * A transaction checks its conditions, then gets all the memory it will need,
 * then changes the array without a way to fail.
 */
#include <pthread.h>

#include "store/memory.h"
#include "store/record.h"
#include "store/util.h"

#define LIMIT_OPERATIONS 100
#define LIMIT_TRANSACTION_BYTES (4 << 20)
#define LIMIT_ITEM_BYTES (400 << 10)
#define LIMIT_INLINE_BYTES 1536
#define LIMIT_WRITE_BYTES (128 << 10)
#define LIMIT_PARTITION_KEY 2048
#define LIMIT_SORT_KEY 1024

#define SPACE_TOTAL (UINT64_C(1) << 40)

struct memory {
	struct engine engine;
	pthread_mutex_t lock;
	struct memory_map map; /* by `lock`, as all below */
	uint64_t version; /* of the last transaction */
	struct store_faults faults;
	uint64_t transactions; /* since faults were asked for */
	bool in_before; /* `before_thread` is inside faults.before */
	pthread_t before_thread;
};

static struct memory *memory_of(struct engine *e)
{
	return (struct memory *)e;
}

/* ---- reading ------------------------------------------------------------ */

/* Lock held, as below: what the test wants instead. */
static int spoilt_item(const struct memory *m, const uint8_t *key, size_t key_size, bool attributes_only)
{
	return m->faults.read ? m->faults.read(m->faults.data, key, key_size, attributes_only, 0, 0) : 0;
}

static int spoilt_body(const struct memory *m, uint64_t body, uint64_t offset)
{
	return m->faults.read ? m->faults.read(m->faults.data, NULL, 0, false, body, offset) : 0;
}

static int spoil_page(const struct memory *m, bool attributes_only, struct store_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		struct store_row *row = &page->rows[i];
		int result = spoilt_item(m, row->key, row->key_size, attributes_only);

		if (result && result != -EBADMSG)
			return result;
		row->damaged |= result != 0;
	}
	return 0;
}

static int memory_get(struct engine *engine, const struct key *key, bool attributes_only,
		      struct store_value *ret_value)
{
	struct memory *m = memory_of(engine);
	struct memory_entry *e;
	int result;

	pthread_mutex_lock(&m->lock);
	e = memory_find(&m->map, key);
	result = spoilt_item(m, key->bytes, key->size, attributes_only);
	if (!result)
		result = e ? memory_copy_out(e, attributes_only, ret_value) : STORE_ABSENT;
	pthread_mutex_unlock(&m->lock);
	return result;
}

static int memory_query(struct engine *engine, const struct store_query *query, struct store_page *ret_page)
{
	struct memory *m = memory_of(engine);
	struct store_page page = { 0 };
	int result;

	pthread_mutex_lock(&m->lock);
	result = memory_fill_page(&m->map, query, &page);
	if (!result)
		result = spoil_page(m, query->attributes_only, &page);
	pthread_mutex_unlock(&m->lock);
	if (result)
		store_page_release(&page);
	else
		*ret_page = page;
	return result;
}

static int memory_scan(struct engine *engine, const struct key *from, struct key *ret_key)
{
	struct memory *m = memory_of(engine);
	int result;

	pthread_mutex_lock(&m->lock);
	result = memory_next_key(&m->map, from, ret_key);
	/* What does not unseal has a key all the same. */
	if (!result)
		result = spoilt_item(m, ret_key->bytes, ret_key->size, true);
	if (result == -EBADMSG)
		result = 0;
	pthread_mutex_unlock(&m->lock);
	return result;
}

static int memory_body_read(struct engine *engine, uint64_t body, uint64_t offset, void *buffer,
			    size_t size)
{
	struct memory *m = memory_of(engine);
	int result;

	pthread_mutex_lock(&m->lock);
	result = spoilt_body(m, body, offset);
	if (!result)
		memory_body_copy(&m->map, body, offset, buffer, size);
	pthread_mutex_unlock(&m->lock);
	return result;
}

static int memory_body_seek(struct engine *engine, uint64_t body, uint64_t offset, bool data,
			    uint64_t *ret_offset)
{
	struct memory *m = memory_of(engine);
	int result;

	pthread_mutex_lock(&m->lock);
	result = spoilt_body(m, body, offset);
	if (!result)
		*ret_offset = data ? memory_body_data(&m->map, body, offset) :
				     memory_body_hole(&m->map, body, offset);
	pthread_mutex_unlock(&m->lock);
	return result;
}

static int memory_body_usage(struct engine *engine, uint64_t body, uint64_t *ret_bytes)
{
	struct memory *m = memory_of(engine);

	pthread_mutex_lock(&m->lock);
	*ret_bytes = memory_body_bytes(&m->map, body);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* ---- transactions ------------------------------------------------------- */

static bool is_body_op(const struct store_op *op)
{
	return op->kind >= STORE_BODY_WRITE;
}

static bool condition_holds(const struct memory_entry *e, const struct store_op *op)
{
	switch (op->condition) {
	case STORE_ANY:
		return true;
	case STORE_IF_ABSENT:
		return !e;
	case STORE_IF_PRESENT:
		return e;
	case STORE_IF_VERSION:
		return e && e->version == op->version;
	}
	return false;
}

static int check_condition(const struct memory *m, const struct store_op *op)
{
	struct memory_entry *e;
	size_t at;

	if (is_body_op(op))
		return 0;
	if (op->kind == STORE_EMPTY) {
		at = memory_lower_bound(&m->map, &op->range.from);
		return at < m->map.count && memory_entry_order(m->map.entries[at], &op->range.to) < 0 ?
			       STORE_CONFLICT :
			       0;
	}
	e = memory_find(&m->map, &op->key);
	if (op->kind == STORE_ADD)
		return e && (e->attrs_size != RECORD_COUNTERS_SIZE || e->content_size) ? -EBADMSG : 0;
	return condition_holds(e, op) ? 0 : STORE_CONFLICT;
}

/* What `op` will put, made before anything is changed. NULL also if it puts nothing. */
static int prepare_op(struct memory *m, const struct store_op *op, struct memory_entry **ret_fresh)
{
	static const int64_t zeros[STORE_COUNTERS_MAX];
	uint8_t counters[RECORD_COUNTERS_SIZE];
	struct memory_entry *e;

	switch (op->kind) {
	case STORE_PUT:
		e = memory_entry_new(&op->key, op->attrs, op->attrs_size, op->content_size);
		if (e && op->content_size)
			memcpy(memory_entry_content(e), op->content, op->content_size);
		break;
	case STORE_ADD:
		record_encode_counters(zeros, counters);
		e = memory_entry_new(&op->key, counters, sizeof(counters), 0);
		break;
	case STORE_BODY_WRITE:
		return memory_body_prepare(&m->map, op->body, op->offset, op->length);
	default:
		return 0;
	}
	*ret_fresh = e;
	return e ? 0 : -ENOMEM;
}

static void add_counter(struct memory *m, const struct store_op *op, struct memory_entry **fresh)
{
	struct memory_entry *e = memory_find(&m->map, &op->key);
	uint8_t *at;

	if (!e) {
		e = util_steal(*fresh);
		memory_insert(&m->map, &op->key, e);
	}
	at = memory_entry_attrs(e) + 8 * op->counter;
	util_put_le64(at, util_get_le64(at) + (uint64_t)op->delta);
	e->version = m->version;
}

static void apply_op(struct memory *m, const struct store_op *op, struct memory_entry **fresh)
{
	switch (op->kind) {
	case STORE_PUT:
		(*fresh)->version = m->version;
		memory_insert(&m->map, &op->key, util_steal(*fresh));
		break;
	case STORE_DELETE:
		memory_remove(&m->map, &op->key);
		break;
	case STORE_ADD:
		add_counter(m, op, fresh);
		break;
	case STORE_BODY_WRITE:
		memory_body_write(&m->map, op->body, op->offset, op->length, op->bytes);
		break;
	case STORE_BODY_ZERO:
		memory_body_zero(&m->map, op->body, op->offset, op->offset + op->length);
		break;
	case STORE_BODY_TRUNCATE:
		memory_body_zero(&m->map, op->body, op->offset, UINT64_C(1) << 63);
		break;
	case STORE_BODY_FREE:
		memory_body_zero(&m->map, op->body, 0, UINT64_C(1) << 63);
		break;
	case STORE_CHECK:
	case STORE_EMPTY:
		break;
	}
}

static int transact_prepared(struct memory *m, const struct store_op *ops, size_t count,
			     struct memory_entry **fresh, uint64_t *ret_version)
{
	int result = 0;

	for (size_t i = 0; !result && i < count; i++)
		result = prepare_op(m, &ops[i], &fresh[i]);
	if (!result)
		result = memory_reserve(&m->map, count);
	if (!result) {
		m->version++;
		for (size_t i = 0; i < count; i++)
			apply_op(m, &ops[i], &fresh[i]);
		*ret_version = m->version;
	}
	for (size_t i = 0; i < count; i++)
		if (is_body_op(&ops[i]))
			memory_body_tidy(&m->map, ops[i].body);
	return result;
}

static int transact(struct memory *m, const struct store_op *ops, size_t count, uint64_t *ret_version)
{
	struct memory_entry **fresh;
	int result;

	for (size_t i = 0; i < count; i++) {
		result = check_condition(m, &ops[i]);
		if (result)
			return result;
	}
	fresh = calloc(count, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	result = transact_prepared(m, ops, count, fresh, ret_version);
	for (size_t i = 0; i < count; i++)
		free(fresh[i]);
	free(fresh);
	return result;
}

/* ---- faults ------------------------------------------------------------- */

/* The number of this transaction; 0 for one that faults.before does itself. Calls before. */
static uint64_t count_transaction(struct memory *m)
{
	struct store_faults faults;
	uint64_t n;

	pthread_mutex_lock(&m->lock);
	if (m->in_before && pthread_equal(m->before_thread, pthread_self())) {
		pthread_mutex_unlock(&m->lock);
		return 0;
	}
	n = ++m->transactions;
	faults = m->faults;
	m->in_before = faults.before;
	m->before_thread = pthread_self();
	pthread_mutex_unlock(&m->lock);
	if (!faults.before)
		return n;
	faults.before(faults.data, n);
	pthread_mutex_lock(&m->lock);
	m->in_before = false;
	pthread_mutex_unlock(&m->lock);
	return n;
}

static int injected(const struct store_faults *f, uint64_t n, enum store_purpose purpose)
{
	if (n == f->conflict_at)
		return STORE_CONFLICT;
	if (n == f->error_at)
		return -EIO;
	if (n == f->no_space_at && purpose == STORE_GROWING)
		return -ENOSPC;
	return 0;
}

static bool keys_fit(const struct store_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct key *key = &ops[i].key;

		if (is_body_op(&ops[i]))
			continue;
		if (key->partition_size > LIMIT_PARTITION_KEY ||
		    key->size - key->partition_size > LIMIT_SORT_KEY)
			return false;
	}
	return true;
}

static int memory_transact(struct engine *engine, enum store_purpose purpose,
			   const struct store_op *ops, size_t count, uint64_t *ret_version)
{
	struct memory *m = memory_of(engine);
	uint64_t n = count_transaction(m);
	int result;

	if (!keys_fit(ops, count))
		return -EFBIG;
	pthread_mutex_lock(&m->lock);
	result = n ? injected(&m->faults, n, purpose) : 0;
	if (!result)
		result = transact(m, ops, count, ret_version);
	if (!result && n && n == m->faults.lost_answer_at)
		result = -EIO;
	pthread_mutex_unlock(&m->lock);
	return result;
}

void engine_memory_inject(struct engine *e, const struct store_faults *faults)
{
	struct memory *m = memory_of(e);

	pthread_mutex_lock(&m->lock);
	m->faults = *faults;
	m->transactions = 0;
	pthread_mutex_unlock(&m->lock);
}

/* ---- the rest ----------------------------------------------------------- */

static int memory_nothing_to_do(struct engine *engine)
{
	return 0;
}

static int memory_space(struct engine *engine, struct store_space *ret_space)
{
	struct memory *m = memory_of(engine);

	pthread_mutex_lock(&m->lock);
	*ret_space = (struct store_space){
		.total_bytes = SPACE_TOTAL,
		.free_bytes = SPACE_TOTAL - util_min(m->map.bytes, SPACE_TOTAL),
		.used_bytes = m->map.bytes,
	};
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static void memory_status(struct engine *engine, struct store_status *ret_status)
{
	*ret_status = (struct store_status){ 0 };
}

static int memory_close(struct engine *engine)
{
	struct memory *m = memory_of(engine);

	memory_map_release(&m->map);
	pthread_mutex_destroy(&m->lock);
	free(m);
	return 0;
}

static const struct engine_ops memory_ops = {
	.close = memory_close,
	.get = memory_get,
	.query = memory_query,
	.transact = memory_transact,
	.body_read = memory_body_read,
	.body_seek = memory_body_seek,
	.body_usage = memory_body_usage,
	.scan = memory_scan,
	.sync = memory_nothing_to_do,
	.checkpoint = memory_nothing_to_do,
	.space = memory_space,
	.status = memory_status,
};

int engine_memory_open(struct engine **ret_engine)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->engine.ops = &memory_ops;
	m->engine.limits = (struct store_limits){
		.operations = LIMIT_OPERATIONS,
		.transaction_bytes = LIMIT_TRANSACTION_BYTES,
		.item_bytes = LIMIT_ITEM_BYTES,
		.inline_bytes = LIMIT_INLINE_BYTES,
		.write_bytes = LIMIT_WRITE_BYTES,
	};
	pthread_mutex_init(&m->lock, NULL);
	*ret_engine = &m->engine;
	return 0;
}
