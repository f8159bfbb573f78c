/*
 * store.c - what every engine can rely on: arguments are checked here, once,
 * before they reach it. Limits are those the engine publishes.
 */
#include "store/store.h"

#include <time.h>

#include "store/store-private.h"
#include "store/util.h"

#define RETRIES_MAX 64
#define RETRIES_AT_ONCE 3
#define RETRY_PAUSE_NS 20000
#define RETRY_PAUSE_MAX_NS 10000000

void store_value_release(struct store_value *v)
{
	if (!v)
		return;
	free(v->memory);
	*v = (struct store_value){ 0 };
}

void store_page_release(struct store_page *page)
{
	if (!page)
		return;
	free(page->memory);
	*page = (struct store_page){ 0 };
}

/* ---- keys and ranges ---------------------------------------------------- */

static bool partition_is_good(const struct key *key)
{
	return key->partition_size && key->partition_size <= key->size && key->size <= KEY_MAX;
}

/* Of an item: with a sort key. */
static bool key_is_good(const struct key *key)
{
	return partition_is_good(key) && key->partition_size < key->size;
}

static bool range_is_good(const struct key_range *range)
{
	return partition_is_good(&range->from) && partition_is_good(&range->to) &&
	       range->from.partition_size == range->to.partition_size &&
	       !memcmp(range->from.bytes, range->to.bytes, range->from.partition_size) &&
	       key_compare(&range->from, &range->to) <= 0;
}

int store_get(struct store *s, const struct key *key, bool attributes_only, struct store_value *ret_value)
{
	if (!key_is_good(key))
		return -EINVAL;
	__atomic_fetch_add(&s->gets, 1, __ATOMIC_RELAXED);
	return s->engine->ops->get(s->engine, key, attributes_only, ret_value);
}

int store_query(struct store *s, const struct store_query *query, struct store_page *ret_page)
{
	int result;

	if (!range_is_good(&query->range) || (query->after && !partition_is_good(query->after)))
		return -EINVAL;
	result = s->engine->ops->query(s->engine, query, ret_page);
	__atomic_fetch_add(&s->queries, 1, __ATOMIC_RELAXED);
	if (!result)
		__atomic_fetch_add(&s->rows, ret_page->count, __ATOMIC_RELAXED);
	return result;
}

/* ---- transactions ------------------------------------------------------- */

/* Adds to *total what the operation counts, or says why it cannot be done. */
static int check_put(const struct store_limits *limits, const struct store_op *op, size_t *total)
{
	size_t size;

	if ((op->attrs_size && !op->attrs) || (op->content_size && !op->content))
		return -EINVAL;
	if (op->attrs_size > limits->item_bytes || op->content_size > limits->item_bytes)
		return -EFBIG;
	size = op->key.size + op->attrs_size + op->content_size;
	if (size > limits->item_bytes)
		return -EFBIG;
	*total += size;
	return 0;
}

static bool condition_is_good(const struct store_op *op)
{
	switch (op->condition) {
	case STORE_ANY:
		return op->kind != STORE_CHECK;
	case STORE_IF_ABSENT:
		return op->kind != STORE_DELETE;
	case STORE_IF_PRESENT:
		return true;
	case STORE_IF_VERSION:
		return op->version != 0;
	}
	return false;
}

static int check_keyed(const struct store_limits *limits, const struct store_op *op, size_t *total)
{
	if (!key_is_good(&op->key) || key_is_private(&op->key) || !condition_is_good(op))
		return -EINVAL;
	if (op->kind == STORE_PUT)
		return check_put(limits, op, total);
	*total += op->key.size;
	return 0;
}

static int check_body(const struct store_limits *limits, const struct store_op *op, size_t *total)
{
	uint64_t end;

	if (!op->body || op->body > INT64_MAX)
		return -EINVAL;
	if (op->kind == STORE_BODY_FREE)
		return 0;
	if (op->kind == STORE_BODY_TRUNCATE)
		return op->offset > INT64_MAX ? -EINVAL : 0;
	if (!op->length || __builtin_add_overflow(op->offset, op->length, &end) || end > INT64_MAX)
		return -EINVAL;
	if (op->kind == STORE_BODY_ZERO)
		return 0;
	if (!op->bytes)
		return -EINVAL;
	if (op->length > limits->write_bytes)
		return -EFBIG;
	*total += op->length;
	return 0;
}

static int check_op(const struct store_limits *limits, const struct store_op *op, size_t *total)
{
	switch (op->kind) {
	case STORE_PUT:
	case STORE_DELETE:
	case STORE_CHECK:
		return check_keyed(limits, op, total);
	case STORE_EMPTY:
		return key_is_good(&op->key) && range_is_good(&op->range) ? 0 : -EINVAL;
	case STORE_ADD:
		if (!key_is_good(&op->key) || key_is_private(&op->key) || op->counter >= STORE_COUNTERS_MAX)
			return -EINVAL;
		*total += op->key.size + 8;
		return 0;
	case STORE_BODY_WRITE:
	case STORE_BODY_ZERO:
	case STORE_BODY_TRUNCATE:
	case STORE_BODY_FREE:
		return check_body(limits, op, total);
	}
	return -EINVAL;
}

static bool names_an_item(const struct store_op *op)
{
	return op->kind == STORE_PUT || op->kind == STORE_DELETE || op->kind == STORE_CHECK ||
	       op->kind == STORE_ADD;
}

/* The guard of a STORE_EMPTY must be put or deleted in the same transaction, see store.h. */
static bool guard_is_written(const struct store_op *ops, size_t count, const struct key *guard)
{
	for (size_t i = 0; i < count; i++)
		if ((ops[i].kind == STORE_PUT || ops[i].kind == STORE_DELETE) &&
		    !key_compare(&ops[i].key, guard))
			return true;
	return false;
}

static int order_of_keys(const void *a, const void *b)
{
	const struct store_op *const *x = a, *const *y = b;

	return key_compare(&(*x)->key, &(*y)->key);
}

/* `named` has all operations that name an item. Counts those that are not the second ADD of one item. */
static int check_keys(const struct store_op **named, size_t count, size_t *ret_distinct)
{
	size_t distinct = count ? 1 : 0;

	qsort(named, count, sizeof(*named), order_of_keys);
	for (size_t i = 1; i < count; i++) {
		if (key_compare(&named[i - 1]->key, &named[i]->key))
			distinct++;
		else if (named[i - 1]->kind != STORE_ADD || named[i]->kind != STORE_ADD)
			return -EINVAL;
	}
	*ret_distinct = distinct;
	return 0;
}

#define NAMED_ON_STACK 128

/* No key in two operations, ADD excepted, whose counters of one item are one operation; and not too many. */
static int check_count(const struct store_limits *limits, const struct store_op *ops, size_t count)
{
	const struct store_op *on_stack[NAMED_ON_STACK], **named = on_stack;
	_cleanup_free_ const struct store_op **on_heap = NULL;
	size_t names = 0, distinct;
	int result;

	if (count > limits->operations + STORE_COUNTERS_MAX)
		return -EFBIG;
	if (count > NAMED_ON_STACK) {
		named = on_heap = reallocarray(NULL, count, sizeof(*on_heap));
		if (!on_heap)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		if (names_an_item(&ops[i]))
			named[names++] = &ops[i];
	result = check_keys(named, names, &distinct);
	if (result)
		return result;
	return count - names + distinct > limits->operations ? -EFBIG : 0;
}

static int check_transaction(const struct store_limits *limits, const struct store_op *ops, size_t count)
{
	size_t total = 0;
	int result;

	if (!count)
		return -EINVAL;
	result = check_count(limits, ops, count);
	for (size_t i = 0; !result && i < count; i++) {
		result = check_op(limits, &ops[i], &total);
		if (!result && ops[i].kind == STORE_EMPTY && !guard_is_written(ops, count, &ops[i].key))
			result = -EINVAL;
	}
	if (result)
		return result;
	return total > limits->transaction_bytes ? -EFBIG : 0;
}

void store_yield(struct store *s)
{
	if (s->engine->ops->yield)
		s->engine->ops->yield(s->engine);
}

int store_transact(struct store *s, enum store_purpose purpose, const struct store_op *ops,
		   size_t count, uint64_t *ret_version)
{
	uint64_t version;
	int result;

	result = check_transaction(&s->engine->limits, ops, count);
	if (result)
		return result;
	result = s->engine->ops->transact(s->engine, purpose, ops, count, &version);
	if (!result && ret_version)
		*ret_version = version;
	return result;
}

void store_count_move(struct store *s)
{
	__atomic_fetch_add(&s->moves, 1, __ATOMIC_RELEASE);
}

uint64_t store_moves(const struct store *s)
{
	return __atomic_load_n(&s->moves, __ATOMIC_ACQUIRE);
}

static void pause_before(unsigned tries)
{
	unsigned doublings = util_min(tries - RETRIES_AT_ONCE - 1, 9u);
	struct timespec pause = { .tv_nsec = util_min(RETRY_PAUSE_NS << doublings, RETRY_PAUSE_MAX_NS) };

	nanosleep(&pause, NULL);
}

bool store_retry(struct store_retry *r, int *result)
{
	if (*result != STORE_CONFLICT)
		return false;
	if (++r->tries >= RETRIES_MAX) {
		*result = -EAGAIN;
		return false;
	}
	if (r->tries > RETRIES_AT_ONCE)
		pause_before(r->tries);
	return true;
}

/* ---- bodies, and what is passed on as it is ----------------------------- */

int store_body_read(struct store *s, uint64_t body, uint64_t offset, void *buffer, size_t size)
{
	uint64_t end;

	if (!body || body > INT64_MAX || __builtin_add_overflow(offset, size, &end) || end > INT64_MAX)
		return -EINVAL;
	return size ? s->engine->ops->body_read(s->engine, body, offset, buffer, size) : 0;
}

int store_body_seek(struct store *s, uint64_t body, uint64_t offset, bool data, uint64_t *ret_offset)
{
	if (!body || body > INT64_MAX || offset > INT64_MAX)
		return -EINVAL;
	return s->engine->ops->body_seek(s->engine, body, offset, data, ret_offset);
}

int store_body_usage(struct store *s, uint64_t body, uint64_t *ret_bytes)
{
	if (!body || body > INT64_MAX)
		return -EINVAL;
	return s->engine->ops->body_usage(s->engine, body, ret_bytes);
}

int store_scan(struct store *s, const struct key *from, struct key *ret_key)
{
	if (from && !partition_is_good(from))
		return -EINVAL;
	return s->engine->ops->scan(s->engine, from, ret_key);
}

int store_unused(struct store *s, bool give_back, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	return s->engine->ops->unused ? s->engine->ops->unused(s->engine, give_back, ret_bytes) : 0;
}

int store_verify(struct store *s, bool (*stop)(void *data, bool held), void *data, const char **ret_wrong)
{
	*ret_wrong = NULL;
	return s->engine->ops->verify ? s->engine->ops->verify(s->engine, stop, data, ret_wrong) : 0;
}

int store_sync(struct store *s)
{
	return s->engine->ops->sync(s->engine);
}

int store_checkpoint(struct store *s)
{
	return s->engine->ops->checkpoint(s->engine);
}

int store_space(struct store *s, struct store_space *ret_space)
{
	return s->engine->ops->space(s->engine, ret_space);
}

void store_status(struct store *s, struct store_status *ret_status)
{
	s->engine->ops->status(s->engine, ret_status);
	ret_status->memory_locked = s->keyring.memory_locked;
	ret_status->gets = __atomic_load_n(&s->gets, __ATOMIC_RELAXED);
	ret_status->queries = __atomic_load_n(&s->queries, __ATOMIC_RELAXED);
	ret_status->rows = __atomic_load_n(&s->rows, __ATOMIC_RELAXED);
}

const struct store_limits *store_limits(const struct store *s)
{
	return &s->engine->limits;
}

const struct key_codec *store_codec(const struct store *s)
{
	return &s->codec;
}

const uint8_t *store_id(const struct store *s)
{
	return s->keyring.store_id;
}

const struct clock *store_clock(const struct store *s)
{
	return s->clock;
}

const char *store_trash_name(const struct store *s)
{
	return s->keyring.trash_name;
}
