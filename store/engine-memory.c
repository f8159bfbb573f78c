/*
 * engine-memory.c - the reference engine: a sorted array in memory.
 *
 * It has the strictest limits of all engines to come (DynamoDB's, and LMDB's
 * 511 bytes for a whole key), gives short pages, and fails on request, so that
 * what runs on it runs everywhere. Simple before fast: one lock, an array of
 * pointers moved by memmove.
 *
 * A transaction checks its conditions, then gets all the memory it will need,
 * then changes the array without a way to fail. Bodies stand in the same array
 * under their BODY keys, in groups of 64 KiB of which each unit of 4 KiB is
 * data or a hole; the bytes of a hole are zeros.
 */
#include <assert.h>
#include <pthread.h>

#include "store/engine.h"
#include "store/record.h"
#include "store/util.h"

#define LIMIT_OPERATIONS 100
#define LIMIT_TRANSACTION_BYTES (4 << 20)
#define LIMIT_ITEM_BYTES (400 << 10)
#define LIMIT_INLINE_BYTES 1536
#define LIMIT_WRITE_BYTES (128 << 10)
#define LIMIT_PARTITION_KEY 2048
#define LIMIT_SORT_KEY 1024

#define PAGE_ROWS 100
#define PAGE_BYTES (1 << 20)

#define UNIT 4096
#define GROUP_UNITS 16
#define GROUP ((uint64_t)UNIT * GROUP_UNITS)

#define SPACE_TOTAL (UINT64_C(1) << 40)

struct entry {
	uint64_t version;
	size_t attrs_size;
	size_t content_size;
	uint16_t units; /* of a body's group: which are data; bit 0 is the first */
	uint16_t key_size;
	uint16_t partition_size;
	uint8_t bytes[]; /* key, attrs, content */
};

struct memory {
	struct engine engine;
	pthread_mutex_t lock;
	struct entry **entries; /* in the order of their keys; by `lock`, as all below */
	size_t count;
	size_t capacity;
	uint64_t bytes;
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

/* ---- the sorted array --------------------------------------------------- */

static int order(const struct entry *e, const struct key *key)
{
	int result = memcmp(e->bytes, key->bytes, util_min(e->key_size, key->size));

	return result ? result : (int)e->key_size - (int)key->size;
}

/* Index of the first entry that is not below `key`. */
static size_t lower_bound(const struct memory *m, const struct key *key)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (order(m->entries[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Index of the first entry that is above `key`. */
static size_t upper_bound(const struct memory *m, const struct key *key)
{
	size_t at = lower_bound(m, key);

	return at < m->count && !order(m->entries[at], key) ? at + 1 : at;
}

static struct entry *find(const struct memory *m, const struct key *key)
{
	size_t at = lower_bound(m, key);

	return at < m->count && !order(m->entries[at], key) ? m->entries[at] : NULL;
}

static size_t entry_size(const struct entry *e)
{
	return e->key_size + e->attrs_size + e->content_size;
}

static uint8_t *entry_attrs(struct entry *e)
{
	return e->bytes + e->key_size;
}

static uint8_t *entry_content(struct entry *e)
{
	return e->bytes + e->key_size + e->attrs_size;
}

/* Its content is zeros. */
static struct entry *entry_new(const struct key *key, const void *attrs, size_t attrs_size, size_t content_size)
{
	struct entry *e = calloc(1, sizeof(*e) + key->size + attrs_size + content_size);

	if (!e)
		return NULL;
	e->key_size = key->size;
	e->partition_size = key->partition_size;
	e->attrs_size = attrs_size;
	e->content_size = content_size;
	memcpy(e->bytes, key->bytes, key->size);
	if (attrs_size)
		memcpy(entry_attrs(e), attrs, attrs_size);
	return e;
}

static int reserve(struct memory *m, size_t more)
{
	size_t capacity = util_max(2 * m->capacity, m->count + more);
	struct entry **entries;

	if (m->count + more <= m->capacity)
		return 0;
	entries = reallocarray(m->entries, capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	m->entries = entries;
	m->capacity = capacity;
	return 0;
}

static void remove_at(struct memory *m, size_t at)
{
	m->bytes -= entry_size(m->entries[at]);
	free(m->entries[at]);
	m->count--;
	memmove(m->entries + at, m->entries + at + 1, (m->count - at) * sizeof(*m->entries));
}

/* Takes `e`, in the place of what had its key. There is room. */
static void insert(struct memory *m, const struct key *key, struct entry *e)
{
	size_t at = lower_bound(m, key);

	m->bytes += entry_size(e);
	if (at < m->count && !order(m->entries[at], key)) {
		m->bytes -= entry_size(m->entries[at]);
		free(m->entries[at]);
		m->entries[at] = e;
		return;
	}
	assert(m->count < m->capacity);
	memmove(m->entries + at + 1, m->entries + at, (m->count - at) * sizeof(*m->entries));
	m->entries[at] = e;
	m->count++;
}

/* ---- reading items ------------------------------------------------------ */

static int copy_out(struct entry *e, bool attributes_only, struct store_value *ret_value)
{
	size_t content_size = attributes_only ? 0 : e->content_size;
	/* One byte more: content that is empty is not NULL. */
	uint8_t *bytes = malloc(e->attrs_size + content_size + 1);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, entry_attrs(e), e->attrs_size + content_size);
	*ret_value = (struct store_value){
		.version = e->version,
		.attrs = bytes,
		.attrs_size = e->attrs_size,
		.content = attributes_only ? NULL : bytes + e->attrs_size,
		.content_size = content_size,
		.memory = bytes,
	};
	return 0;
}

static int memory_get(struct engine *engine, const struct key *key, bool attributes_only,
		      struct store_value *ret_value)
{
	struct memory *m = memory_of(engine);
	struct entry *e;
	int result;

	pthread_mutex_lock(&m->lock);
	e = find(m, key);
	result = e ? copy_out(e, attributes_only, ret_value) : STORE_ABSENT;
	pthread_mutex_unlock(&m->lock);
	return result;
}

/* Entries from `first` up to, not including, `end`, in the direction of reading. */
struct span {
	size_t first;
	size_t end;
	bool reverse;
};

static struct span span_of(const struct memory *m, const struct store_query *q)
{
	struct span s = { lower_bound(m, &q->range.from), lower_bound(m, &q->range.to), q->reverse };

	if (q->after && q->reverse)
		s.end = util_min(s.end, lower_bound(m, q->after));
	else if (q->after)
		s.first = util_max(s.first, upper_bound(m, q->after));
	s.end = util_max(s.first, s.end);
	return s;
}

static struct entry *nth(const struct memory *m, const struct span *s, size_t n)
{
	return m->entries[s->reverse ? s->end - 1 - n : s->first + n];
}

static size_t row_size(const struct entry *e, bool attributes_only)
{
	return e->key_size + e->attrs_size + (attributes_only ? 0 : e->content_size) + 1;
}

static uint8_t *fill_row(struct entry *e, bool attributes_only, uint8_t *at, struct store_row *row)
{
	size_t size = row_size(e, attributes_only);

	memcpy(at, e->bytes, size - 1);
	*row = (struct store_row){
		.key = at,
		.key_size = e->key_size,
		.value.version = e->version,
		.value.attrs = at + e->key_size,
		.value.attrs_size = e->attrs_size,
		.value.content = attributes_only ? NULL : at + e->key_size + e->attrs_size,
		.value.content_size = attributes_only ? 0 : e->content_size,
	};
	return at + size;
}

static void name_next(const struct entry *e, struct key *next)
{
	next->size = e->key_size;
	next->partition_size = e->partition_size;
	memcpy(next->bytes, e->bytes, e->key_size);
}

/* A limit that is reached ends the page with `more`, also if nothing follows: DynamoDB looks no further either. */
static int fill_page(struct memory *m, const struct store_query *q, struct store_page *ret_page)
{
	struct span span = span_of(m, q);
	size_t left = span.end - span.first, bytes = 0, count = 0;
	size_t limit = util_min(q->limit ? q->limit : PAGE_ROWS, (size_t)PAGE_ROWS);
	struct store_row *rows;
	uint8_t *at;

	while (count < util_min(left, limit) && bytes < PAGE_BYTES)
		bytes += row_size(nth(m, &span, count++), q->attributes_only);
	rows = malloc(count * sizeof(*rows) + bytes + 1);
	if (!rows)
		return -ENOMEM;
	at = (uint8_t *)(rows + count);
	for (size_t i = 0; i < count; i++)
		at = fill_row(nth(m, &span, i), q->attributes_only, at, &rows[i]);
	ret_page->rows = rows;
	ret_page->memory = rows;
	ret_page->count = count;
	ret_page->more = count && (count == limit || bytes >= PAGE_BYTES);
	if (ret_page->more)
		name_next(nth(m, &span, count - 1), &ret_page->next);
	return 0;
}

static int memory_query(struct engine *engine, const struct store_query *query, struct store_page *ret_page)
{
	struct memory *m = memory_of(engine);
	int result;

	pthread_mutex_lock(&m->lock);
	result = fill_page(m, query, ret_page);
	pthread_mutex_unlock(&m->lock);
	return result;
}

static int memory_scan(struct engine *engine, const struct key *from, struct key *ret_key)
{
	struct memory *m = memory_of(engine);
	size_t at;
	int result = STORE_ABSENT;

	pthread_mutex_lock(&m->lock);
	at = from ? lower_bound(m, from) : 0;
	if (at < m->count) {
		name_next(m->entries[at], ret_key);
		result = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return result;
}

/* ---- bodies ------------------------------------------------------------- */

static struct entry *find_group(const struct memory *m, uint64_t body, uint64_t number)
{
	struct key key;

	key_body(body, number, &key);
	return find(m, &key);
}

/* Which units of its group `from` up to, not including, `to` touches, or (`whole`) covers. */
static uint16_t units_of(uint64_t from, uint64_t to, bool whole)
{
	uint64_t first = whole ? (from + UNIT - 1) / UNIT : from / UNIT;
	uint64_t end = whole ? to / UNIT : (to + UNIT - 1) / UNIT;

	if (first >= end)
		return 0;
	return (uint16_t)(((1u << (end - first)) - 1) << first);
}

static void write_group(struct entry *e, uint64_t from, uint64_t to, const uint8_t *bytes)
{
	memcpy(entry_content(e) + from, bytes, to - from);
	e->units |= units_of(from, to, false);
}

static void zero_group(struct entry *e, uint64_t from, uint64_t to)
{
	memset(entry_content(e) + from, 0, to - from);
	e->units &= (uint16_t)~units_of(from, to, true);
}

/* Calls `change` for the part that each group has in the range; groups that are not there are passed over. */
static void body_write(struct memory *m, uint64_t body, uint64_t offset, uint64_t length, const uint8_t *bytes)
{
	while (length) {
		uint64_t within = offset % GROUP, part = util_min(length, GROUP - within);

		write_group(find_group(m, body, offset / GROUP), within, within + part, bytes);
		offset += part;
		bytes += part;
		length -= part;
	}
}

/* The indexes of a body's groups that a range of bytes touches. */
static struct span groups_of(const struct memory *m, uint64_t body, uint64_t offset, uint64_t end)
{
	struct key from, to;

	key_body(body, offset / GROUP, &from);
	key_body(body, (end - 1) / GROUP, &to);
	return (struct span){ lower_bound(m, &from), upper_bound(m, &to), false };
}

static uint64_t group_number(const struct entry *e)
{
	return util_get_be64(e->bytes + e->key_size - 8);
}

static void body_zero(struct memory *m, uint64_t body, uint64_t offset, uint64_t end)
{
	struct span s = groups_of(m, body, offset, end);

	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;

		zero_group(m->entries[i], util_max(offset, start) - start, util_min(end, start + GROUP) - start);
	}
}

/* Cutting a unit takes all that is behind the cut; what is before it stays data. */
static void body_truncate(struct memory *m, uint64_t body, uint64_t offset)
{
	body_zero(m, body, offset, UINT64_C(1) << 63);
}

static int make_groups(struct memory *m, uint64_t body, uint64_t offset, uint64_t length)
{
	struct entry *e;
	struct key key;

	for (uint64_t n = offset / GROUP; n <= (offset + length - 1) / GROUP; n++) {
		key_body(body, n, &key);
		if (find(m, &key))
			continue;
		e = reserve(m, 1) ? NULL : entry_new(&key, NULL, 0, GROUP);
		if (!e)
			return -ENOMEM;
		insert(m, &key, e);
	}
	return 0;
}

/* Groups without data: what was freed, and what a transaction made ready that was not done. */
static void drop_empty_groups(struct memory *m, uint64_t body)
{
	struct span s = groups_of(m, body, 0, INT64_MAX);

	for (size_t i = s.end; i > s.first; i--)
		if (!m->entries[i - 1]->units)
			remove_at(m, i - 1);
}

static int memory_body_read(struct engine *engine, uint64_t body, uint64_t offset, void *buffer, size_t size)
{
	struct memory *m = memory_of(engine);
	uint64_t end = offset + size;
	struct span s;

	memset(buffer, 0, size);
	pthread_mutex_lock(&m->lock);
	s = groups_of(m, body, offset, end);
	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;
		uint64_t from = util_max(offset, start), to = util_min(end, start + GROUP);

		memcpy((uint8_t *)buffer + (from - offset), entry_content(m->entries[i]) + (from - start), to - from);
	}
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static bool unit_is_data(const struct entry *e, uint64_t offset)
{
	return e->units >> (offset % GROUP / UNIT) & 1;
}

static uint64_t seek_data(const struct memory *m, uint64_t body, uint64_t offset)
{
	struct span s = groups_of(m, body, offset, INT64_MAX);

	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;

		for (uint64_t at = util_max(start, offset); at < start + GROUP; at = (at / UNIT + 1) * UNIT)
			if (unit_is_data(m->entries[i], at))
				return at;
	}
	return UINT64_MAX;
}

static uint64_t seek_hole(const struct memory *m, uint64_t body, uint64_t offset)
{
	struct entry *e = find_group(m, body, offset / GROUP);

	while (e && unit_is_data(e, offset)) {
		offset = (offset / UNIT + 1) * UNIT;
		if (offset % GROUP == 0)
			e = find_group(m, body, offset / GROUP);
	}
	return offset;
}

static int memory_body_seek(struct engine *engine, uint64_t body, uint64_t offset, bool data, uint64_t *ret_offset)
{
	struct memory *m = memory_of(engine);

	pthread_mutex_lock(&m->lock);
	*ret_offset = data ? seek_data(m, body, offset) : seek_hole(m, body, offset);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

static int memory_body_usage(struct engine *engine, uint64_t body, uint64_t *ret_bytes)
{
	struct memory *m = memory_of(engine);
	uint64_t units = 0;
	struct span s;

	pthread_mutex_lock(&m->lock);
	s = groups_of(m, body, 0, INT64_MAX);
	for (size_t i = s.first; i < s.end; i++)
		units += (uint64_t)__builtin_popcount(m->entries[i]->units);
	pthread_mutex_unlock(&m->lock);
	*ret_bytes = units * UNIT;
	return 0;
}

/* ---- transactions ------------------------------------------------------- */

static bool is_body_op(const struct store_op *op)
{
	return op->kind >= STORE_BODY_WRITE;
}

static bool condition_holds(const struct entry *e, const struct store_op *op)
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
	struct entry *e;
	size_t at;

	if (is_body_op(op))
		return 0;
	if (op->kind == STORE_EMPTY) {
		at = lower_bound(m, &op->range.from);
		return at < m->count && order(m->entries[at], &op->range.to) < 0 ? STORE_CONFLICT : 0;
	}
	e = find(m, &op->key);
	if (op->kind == STORE_ADD)
		return e && (e->attrs_size != RECORD_COUNTERS_SIZE || e->content_size) ? -EBADMSG : 0;
	return condition_holds(e, op) ? 0 : STORE_CONFLICT;
}

/* What `op` will put, made before anything is changed. NULL also if it puts nothing. */
static int prepare_op(struct memory *m, const struct store_op *op, struct entry **ret_fresh)
{
	static const int64_t zeros[STORE_COUNTERS_MAX];
	uint8_t counters[RECORD_COUNTERS_SIZE];
	struct entry *e;

	switch (op->kind) {
	case STORE_PUT:
		e = entry_new(&op->key, op->attrs, op->attrs_size, op->content_size);
		if (e && op->content_size)
			memcpy(entry_content(e), op->content, op->content_size);
		break;
	case STORE_ADD:
		record_encode_counters(zeros, counters);
		e = entry_new(&op->key, counters, sizeof(counters), 0);
		break;
	case STORE_BODY_WRITE:
		return make_groups(m, op->body, op->offset, op->length);
	default:
		return 0;
	}
	*ret_fresh = e;
	return e ? 0 : -ENOMEM;
}

static void add_counter(struct memory *m, const struct store_op *op, struct entry **fresh)
{
	struct entry *e = find(m, &op->key);
	uint8_t *at;

	if (!e) {
		e = util_steal(*fresh);
		insert(m, &op->key, e);
	}
	at = entry_attrs(e) + 8 * op->counter;
	util_put_le64(at, util_get_le64(at) + (uint64_t)op->delta);
	e->version = m->version;
}

static void delete_item(struct memory *m, const struct key *key)
{
	size_t at = lower_bound(m, key);

	if (at < m->count && !order(m->entries[at], key))
		remove_at(m, at);
}

static void apply_op(struct memory *m, const struct store_op *op, struct entry **fresh)
{
	switch (op->kind) {
	case STORE_PUT:
		(*fresh)->version = m->version;
		insert(m, &op->key, util_steal(*fresh));
		break;
	case STORE_DELETE:
		delete_item(m, &op->key);
		break;
	case STORE_ADD:
		add_counter(m, op, fresh);
		break;
	case STORE_BODY_WRITE:
		body_write(m, op->body, op->offset, op->length, op->bytes);
		break;
	case STORE_BODY_ZERO:
		body_zero(m, op->body, op->offset, op->offset + op->length);
		break;
	case STORE_BODY_TRUNCATE:
		body_truncate(m, op->body, op->offset);
		break;
	case STORE_BODY_FREE:
		body_truncate(m, op->body, 0);
		break;
	case STORE_CHECK:
	case STORE_EMPTY:
		break;
	}
}

static int transact_prepared(struct memory *m, const struct store_op *ops, size_t count, struct entry **fresh,
			     uint64_t *ret_version)
{
	int result = 0;

	for (size_t i = 0; !result && i < count; i++)
		result = prepare_op(m, &ops[i], &fresh[i]);
	if (!result)
		result = reserve(m, count);
	if (!result) {
		m->version++;
		for (size_t i = 0; i < count; i++)
			apply_op(m, &ops[i], &fresh[i]);
		*ret_version = m->version;
	}
	for (size_t i = 0; i < count; i++)
		if (is_body_op(&ops[i]))
			drop_empty_groups(m, ops[i].body);
	return result;
}

static int transact(struct memory *m, const struct store_op *ops, size_t count, uint64_t *ret_version)
{
	struct entry **fresh;
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
		if (key->partition_size > LIMIT_PARTITION_KEY || key->size - key->partition_size > LIMIT_SORT_KEY)
			return false;
	}
	return true;
}

static int memory_transact(struct engine *engine, enum store_purpose purpose, const struct store_op *ops, size_t count,
			   uint64_t *ret_version)
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
		.free_bytes = SPACE_TOTAL - util_min(m->bytes, SPACE_TOTAL),
		.used_bytes = m->bytes,
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

	for (size_t i = 0; i < m->count; i++)
		free(m->entries[i]);
	free(m->entries);
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
