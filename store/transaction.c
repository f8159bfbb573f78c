/*
 * transaction.c - collecting the operations of one store_transact.
 *
 * The arena is a list of chunks; bytes in it never move, since operations point
 * to them. Resetting keeps the largest chunk, which after the first few rounds
 * holds a whole transaction.
 */
#include "store/transaction.h"

#include <assert.h>
#include <sys/stat.h>

#include "store/record-kind.h"
#include "store/record.h"
#include "store/store-private.h"

#define CHUNK_SIZE 4096
#define OPS_MIN 16

struct transaction_chunk {
	struct transaction_chunk *next;
	size_t used;
	size_t size;
	uint8_t bytes[];
};

void transaction_reset(struct transaction *t)
{
	struct transaction_chunk *rest = t->memory ? t->memory->next : NULL;

	/* New chunks come first and are at least as large as those before. */
	while (rest) {
		struct transaction_chunk *next = rest->next;

		free(rest);
		rest = next;
	}
	if (t->memory) {
		t->memory->next = NULL;
		t->memory->used = 0;
	}
	t->count = 0;
	t->error = 0;
	t->moves = false;
	memset(t->deltas, 0, sizeof(t->deltas));
}

void transaction_release(struct transaction *t)
{
	if (!t)
		return;
	transaction_reset(t);
	free(t->memory);
	free(t->ops);
	buffer_release(&t->scratch);
	*t = (struct transaction){ 0 };
}

static bool has_deltas(const struct transaction *t)
{
	for (size_t i = 0; i < STORE_COUNTERS_MAX; i++)
		if (t->deltas[i])
			return true;
	return false;
}

size_t transaction_count(const struct transaction *t)
{
	return t->count + has_deltas(t);
}

static void fail(struct transaction *t, int error)
{
	if (!t->error)
		t->error = error;
}

static uint8_t *allocate(struct transaction *t, size_t size)
{
	struct transaction_chunk *c = t->memory;
	size_t chunk_size;
	uint8_t *at;

	if (!c || size > c->size - c->used) {
		chunk_size = util_max(c ? 2 * c->size : (size_t)CHUNK_SIZE, size);
		c = malloc(sizeof(*c) + chunk_size);
		if (!c)
			return NULL;
		*c = (struct transaction_chunk){ .next = t->memory, .size = chunk_size };
		t->memory = c;
	}
	at = c->bytes + c->used;
	c->used += size;
	return at;
}

/* A copy that lives as long as the transaction; NULL for nothing, and with the error kept when memory ends. */
static const uint8_t *keep(struct transaction *t, const void *bytes, size_t size)
{
	uint8_t *at;

	if (!size)
		return NULL;
	at = allocate(t, size);
	if (at)
		memcpy(at, bytes, size);
	else
		fail(t, -ENOMEM);
	return at;
}

static struct store_op *add_op(struct transaction *t, enum store_op_kind kind)
{
	struct store_op *op, *ops;
	size_t capacity;

	if (t->error)
		return NULL;
	if (t->count == t->capacity) {
		capacity = util_max(2 * t->capacity, (size_t)OPS_MIN);
		ops = reallocarray(t->ops, capacity, sizeof(*ops));
		if (!ops) {
			fail(t, -ENOMEM);
			return NULL;
		}
		t->ops = ops;
		t->capacity = capacity;
	}
	op = &t->ops[t->count++];
	/* The keys make an op large; those that its kind has no use for stay unset. */
	op->kind = kind;
	op->condition = STORE_ANY;
	op->version = 0;
	op->key.size = 0;
	op->attrs = op->content = NULL;
	op->attrs_size = op->content_size = 0;
	return op;
}

static void set_key(struct key *to, const struct key *from)
{
	to->size = from->size;
	to->partition_size = from->partition_size;
	memcpy(to->bytes, from->bytes, from->size);
}

static struct store_op *add_keyed(struct transaction *t, enum store_op_kind kind, const struct key *key,
				  enum store_condition condition, uint64_t version)
{
	struct store_op *op = add_op(t, kind);

	if (!op)
		return NULL;
	set_key(&op->key, key);
	op->condition = condition;
	op->version = version;
	return op;
}

void transaction_put(struct transaction *t, const struct key *key, const void *attrs,
		     size_t attrs_size, const void *content, size_t content_size,
		     enum store_condition condition, uint64_t version)
{
	struct store_op *op = add_keyed(t, STORE_PUT, key, condition, version);

	if (!op)
		return;
	op->attrs = keep(t, attrs, attrs_size);
	op->attrs_size = attrs_size;
	op->content = keep(t, content, content_size);
	op->content_size = content_size;
}

/* Puts what was encoded into the scratch buffer, if that went well. */
static void put_record(struct transaction *t, int result, const struct key *key,
		       const void *content, size_t content_size, uint64_t expect)
{
	if (result < 0) {
		fail(t, result);
		return;
	}
	transaction_put(t, key, t->scratch.bytes, t->scratch.size, content, content_size,
			expect ? STORE_IF_VERSION : STORE_IF_ABSENT, expect);
}

static struct buffer *scratch(struct transaction *t)
{
	buffer_reset(&t->scratch);
	return &t->scratch;
}

/* Putting an item of which only the attributes were read would lose its content. */
static bool content_is_known(const struct item *item)
{
	if (item->content || item->body || !item->size || item->flags & ITEM_REFERENCE)
		return true;
	return !S_ISREG(item->mode) && !S_ISLNK(item->mode);
}

void transaction_put_item(struct transaction *t, struct store *s, const struct place *at,
			  const struct item *item, uint64_t expect)
{
	struct key key;
	int result;

	if (!content_is_known(item) || !record_content_is_good(item) ||
	    !(item->flags & ITEM_DELETION) != (at->state != KEY_DEL)) {
		fail(t, -EINVAL);
		return;
	}
	key_item(store_codec(s), at, &key);
	result = record_encode_item_as(RECORD_ITEM, item, at->name, scratch(t));
	put_record(t, result, &key, item->content, item->content_size, expect);
	t->moves |= at->state == KEY_DEL && S_ISDIR(item->mode);
}

void transaction_put_link(struct transaction *t, const struct item *item, uint64_t expect)
{
	struct key key;

	if (!content_is_known(item) || !record_content_is_good(item)) {
		fail(t, -EINVAL);
		return;
	}
	key_link(item->id, &key);
	put_record(t, record_encode_link(item, scratch(t)), &key, item->content, item->content_size,
		   expect);
}

void transaction_put_guard(struct transaction *t, uint64_t directory, const struct guard *guard,
			   uint64_t expect)
{
	struct key key;

	key_guard(directory, &key);
	put_record(t, record_encode_guard(guard, scratch(t)), &key, NULL, 0, expect);
	t->moves |= expect != 0;
}

void transaction_put_shadow(struct transaction *t, struct store *s, uint64_t directory,
			    const struct shadow *shadow, uint64_t expect)
{
	struct key key;

	key_shadow(store_codec(s), directory, shadow->name, &key);
	put_record(t, record_encode_shadow(shadow, scratch(t)), &key, NULL, 0, expect);
}

void transaction_put_trash(struct transaction *t, uint64_t seq, const struct trash_row *row, uint64_t expect)
{
	struct key key;

	key_trash(seq, &key);
	put_record(t, record_encode_trash(row, scratch(t)), &key, NULL, 0, expect);
}

void transaction_put_due(struct transaction *t, int64_t due_ns, uint64_t seq,
			 const struct trash_row *row, uint64_t expect)
{
	struct key key;

	key_due(due_ns, seq, &key);
	put_record(t, record_encode_trash(row, scratch(t)), &key, NULL, 0, expect);
}

void transaction_put_batch(struct transaction *t, const struct batch *batch, uint64_t expect)
{
	struct key key;

	key_batch(batch->uid, batch->seq, &key);
	put_record(t, record_encode_batch(batch, scratch(t)), &key, NULL, 0, expect);
}

void transaction_put_xattrs(struct transaction *t, uint64_t id, const uint8_t *list, size_t size)
{
	static const uint8_t head[RECORD_HEAD_SIZE] = { RECORD_FORMAT, RECORD_XATTRS };
	struct key key;

	key_xattr(id, &key);
	transaction_put(t, &key, head, sizeof(head), list, size, STORE_ANY, 0);
}

void transaction_delete(struct transaction *t, const struct key *key,
			enum store_condition condition, uint64_t version)
{
	add_keyed(t, STORE_DELETE, key, condition, version);
	t->moves |= key_is_guard(key);
}

void transaction_delete_item(struct transaction *t, struct store *s, const struct place *at,
			     uint64_t version)
{
	struct key key;

	key_item(store_codec(s), at, &key);
	transaction_delete(t, &key, STORE_IF_VERSION, version);
}

void transaction_check(struct transaction *t, const struct key *key, enum store_condition condition,
		       uint64_t version)
{
	add_keyed(t, STORE_CHECK, key, condition, version);
}

void transaction_empty(struct transaction *t, const struct key_range *range, const struct key *guard)
{
	struct store_op *op = add_keyed(t, STORE_EMPTY, guard, STORE_ANY, 0);

	if (!op)
		return;
	set_key(&op->range.from, &range->from);
	set_key(&op->range.to, &range->to);
}

void transaction_count_add(struct transaction *t, enum item_counter counter, int64_t delta)
{
	assert((size_t)counter < STORE_COUNTERS_MAX);
	t->deltas[counter] += delta;
}

static struct store_op *add_body(struct transaction *t, enum store_op_kind kind, uint64_t body,
				 uint64_t offset, uint64_t length)
{
	struct store_op *op = add_op(t, kind);

	if (!op)
		return NULL;
	op->body = body;
	op->offset = offset;
	op->length = length;
	op->bytes = NULL;
	return op;
}

void transaction_body_write(struct transaction *t, uint64_t body, uint64_t offset,
			    const void *bytes, size_t size)
{
	struct store_op *op = add_body(t, STORE_BODY_WRITE, body, offset, size);

	if (op)
		op->bytes = bytes;
}

void transaction_body_zero(struct transaction *t, uint64_t body, uint64_t offset, uint64_t length)
{
	add_body(t, STORE_BODY_ZERO, body, offset, length);
}

void transaction_body_truncate(struct transaction *t, uint64_t body, uint64_t offset)
{
	add_body(t, STORE_BODY_TRUNCATE, body, offset, 0);
}

void transaction_body_free(struct transaction *t, uint64_t body)
{
	add_body(t, STORE_BODY_FREE, body, 0, 0);
}

static void add_counters(struct transaction *t)
{
	struct store_op *op;
	struct key key;

	key_meta(ITEM_COUNTERS, &key);
	for (unsigned i = 0; i < STORE_COUNTERS_MAX; i++) {
		if (!t->deltas[i])
			continue;
		op = add_keyed(t, STORE_ADD, &key, STORE_ANY, 0);
		if (!op)
			return;
		op->counter = i;
		op->delta = t->deltas[i];
	}
}

int transaction_commit(struct transaction *t, struct store *s, enum store_purpose purpose,
		       uint64_t *ret_version)
{
	size_t count = t->count;
	int result;

	add_counters(t);
	result = t->error ? t->error : store_transact(s, purpose, t->ops, t->count, ret_version);
	/* One that failed may have been done all the same. */
	if (t->moves && result != STORE_CONFLICT)
		store_count_move(s);
	/* What was collected stays as it was: the same transaction may be tried again. */
	t->count = count;
	return result;
}
