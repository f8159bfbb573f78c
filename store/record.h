/*
 * record.h - typed contents to bytes and back. FORMAT.md has the layouts.
 *
 * Every decoder takes bytes that may be hostile: 0, or -EBADMSG and nothing
 * written; none asserts on them. Encoders append to a buffer and report
 * -ENOMEM. A record begins with its format number and its kind; unknown ones
 * are refused.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "store/item.h"
#include "store/store.h"
#include "store/util.h"

int record_encode_item(const struct item *item, struct buffer *b);
/*
 * Decodes the attributes; `item->xattrs` and, if the value has it,
 * `item->content` then point into the value. The caller compares names and
 * states with the key (record_item_at does).
 */
int record_decode_item(const struct store_value *value, struct item *ret_item);

int record_encode_guard(const struct guard *guard, struct buffer *b);
int record_decode_guard(const struct store_value *value, struct guard *ret_guard);
int record_encode_shadow(const struct shadow *shadow, struct buffer *b);
int record_decode_shadow(const struct store_value *value, struct shadow *ret_shadow);
int record_encode_trash(const struct trash_row *row, struct buffer *b);
int record_decode_trash(const struct key_codec *c, const struct store_value *value, struct trash_row *ret_row);
int record_encode_batch(const struct batch *batch, struct buffer *b);
int record_decode_batch(const struct store_value *value, struct batch *ret_batch);
/* Counter items are written by STORE_ADD alone. An absent one is all zeros. */
int record_decode_counters(const struct store_value *value, int64_t ret_counters[STORE_COUNTERS_MAX]);

/*
 * xattr lists: name (NUL-terminated) and value, in order of being set. `next`
 * starts with *at = 0 and returns 1 while there is one, 0 at the end, -EBADMSG.
 */
int record_xattr_next(const uint8_t *list, size_t size, size_t *at, const char **ret_name, const uint8_t **ret_value,
		      size_t *ret_value_size);
/* Copies `list` into `b` with `name` set to `value`, or without it if `value` is NULL. */
int record_xattr_edit(const uint8_t *list, size_t size, const char *name, const uint8_t *value, size_t value_size,
		      struct buffer *b);

/* ---- reading whole records out of a store ----------------------------- */

/*
 * Reads the item at a place and checks that name and state match. `value` owns
 * the memory that the item borrows. 0, STORE_ABSENT, negative errno. References
 * are returned as they are: see record_get_link.
 */
int record_get_item(struct store *s, const struct place *at, bool attributes_only, struct store_value *ret_value,
		    struct item *ret_item);
int record_get_link(struct store *s, uint64_t id, bool attributes_only, struct store_value *ret_value,
		    struct item *ret_item);
int record_get_guard(struct store *s, uint64_t directory, struct guard *ret_guard);
int record_get_shadow(struct store *s, uint64_t directory, const char *name, struct shadow *ret_shadow,
		      uint64_t *ret_version);
int record_get_batch(struct store *s, uint32_t uid, uint64_t seq, struct batch *ret_batch);
int record_get_trash(struct store *s, uint64_t seq, struct trash_row *ret_row, uint64_t *ret_version);
int record_get_counters(struct store *s, int64_t ret_counters[STORE_COUNTERS_MAX]);

/* Decodes a row of a directory's partition: its place and item. 0, -EBADMSG (also when the row is marked damaged). */
int record_row_item(struct store *s, const struct store_row *row, struct place *ret_at, struct item *ret_item);

/* ---- transactions under construction ---------------------------------- */

/*
 * Collects the operations of one transaction and owns their bytes. Zeroed is
 * empty. An error while collecting is kept and returned by transaction_commit,
 * so callers need not check each call.
 */
struct transaction {
	struct store_op *ops;
	size_t count;
	size_t capacity;
	struct transaction_chunk *memory;
	int error;
	int64_t deltas[STORE_COUNTERS_MAX]; /* of META "counters": one op each that is not 0 */
};

void transaction_reset(struct transaction *t); /* forgets the operations */
void transaction_release(struct transaction *t);
/* How many operations a commit would send. */
size_t transaction_count(const struct transaction *t);

/* `expect` of 0: the key must be absent; otherwise the version it must have. */
void transaction_put_item(struct transaction *t, struct store *s, const struct place *at, const struct item *item,
			  uint64_t expect);
void transaction_put_link(struct transaction *t, const struct item *item, uint64_t expect); /* LINK item->id */
void transaction_put_guard(struct transaction *t, uint64_t directory, const struct guard *guard, uint64_t expect);
void transaction_put_shadow(struct transaction *t, struct store *s, uint64_t directory, const struct shadow *shadow,
			    uint64_t expect);
void transaction_put_trash(struct transaction *t, uint64_t seq, const struct trash_row *row, uint64_t expect);
void transaction_put_due(struct transaction *t, int64_t due_ns, uint64_t seq, const struct trash_row *row,
			 uint64_t expect);
void transaction_put_batch(struct transaction *t, const struct batch *batch, uint64_t expect);
/* XATTR item: `list` as record_xattr_edit makes it. Written with STORE_ANY: its item's version guards it. */
void transaction_put_xattrs(struct transaction *t, uint64_t id, const uint8_t *list, size_t size);
/* Any other value; `key`, `attrs` and `content` are copied. */
void transaction_put(struct transaction *t, const struct key *key, const void *attrs, size_t attrs_size,
		     const void *content, size_t content_size, enum store_condition condition, uint64_t version);
void transaction_delete(struct transaction *t, const struct key *key, enum store_condition condition,
			uint64_t version);
void transaction_delete_item(struct transaction *t, struct store *s, const struct place *at, uint64_t version);
void transaction_check(struct transaction *t, const struct key *key, enum store_condition condition,
		       uint64_t version);
void transaction_empty(struct transaction *t, const struct key_range *range, const struct key *guard);
void transaction_count_add(struct transaction *t, enum item_counter counter, int64_t delta);
/* `bytes` is borrowed until the commit. */
void transaction_body_write(struct transaction *t, uint64_t body, uint64_t offset, const void *bytes, size_t size);
void transaction_body_zero(struct transaction *t, uint64_t body, uint64_t offset, uint64_t length);
void transaction_body_truncate(struct transaction *t, uint64_t body, uint64_t offset);
void transaction_body_free(struct transaction *t, uint64_t body);

/* store_transact of what was collected, plus one ADD for each counter. Results as store_transact. */
int transaction_commit(struct transaction *t, struct store *s, enum store_purpose purpose, uint64_t *ret_version);

#endif
