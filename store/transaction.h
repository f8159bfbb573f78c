/*
 * transaction.h - a transaction under construction.
 *
 * Collects the operations of one store_transact and owns their bytes, in an
 * arena that transaction_reset keeps: a caller who tries again, or goes on to
 * the next step, allocates nothing. Zeroed is empty. An error while collecting
 * is kept and returned by transaction_commit, so callers need not check each
 * call.
 */
#ifndef STORE_TRANSACTION_H
#define STORE_TRANSACTION_H

#include "store/item.h"
#include "store/store.h"
#include "store/util.h"

struct transaction {
	struct store_op *ops;
	size_t count;
	size_t capacity;
	struct transaction_chunk *memory;
	struct buffer scratch; /* where a record is encoded before it is copied */
	int error;
	bool moves; /* it writes a guard that there is, or a deleted directory: commit counts it (store_moves) */
	int64_t deltas[STORE_COUNTERS_MAX]; /* of META "counters": one op each that is not 0 */
};

void transaction_reset(struct transaction *t); /* forgets the operations */
void transaction_release(struct transaction *t);
/* How many operations a commit would send, all counters being one. */
size_t transaction_count(const struct transaction *t);

/*
 * `expect` of 0: the key must be absent; otherwise the version it must have.
 * The record gets the name of the place; ITEM_DELETION must agree with its
 * state. An item whose content was not read cannot be put: -EINVAL.
 */
void transaction_put_item(struct transaction *t, struct store *s, const struct place *at,
			  const struct item *item, uint64_t expect);
void transaction_put_link(struct transaction *t, const struct item *item, uint64_t expect); /* LINK item->id */
void transaction_put_guard(struct transaction *t, uint64_t directory, const struct guard *guard,
			   uint64_t expect);
void transaction_put_shadow(struct transaction *t, struct store *s, uint64_t directory,
			    const struct shadow *shadow, uint64_t expect);
void transaction_put_trash(struct transaction *t, uint64_t seq, const struct trash_row *row,
			   uint64_t expect);
void transaction_put_due(struct transaction *t, int64_t due_ns, uint64_t seq,
			 const struct trash_row *row, uint64_t expect);
void transaction_put_batch(struct transaction *t, const struct batch *batch, uint64_t expect);
/* XATTR item: `list` as record_xattr_edit makes it. Written with STORE_ANY: its item's version guards it. */
void transaction_put_xattrs(struct transaction *t, uint64_t id, const uint8_t *list, size_t size);
/* Any other value; `key`, `attrs` and `content` are copied. */
void transaction_put(struct transaction *t, const struct key *key, const void *attrs,
		     size_t attrs_size, const void *content, size_t content_size,
		     enum store_condition condition, uint64_t version);
void transaction_delete(struct transaction *t, const struct key *key,
			enum store_condition condition, uint64_t version);
void transaction_delete_item(struct transaction *t, struct store *s, const struct place *at,
			     uint64_t version);
void transaction_check(struct transaction *t, const struct key *key, enum store_condition condition,
		       uint64_t version);
void transaction_empty(struct transaction *t, const struct key_range *range, const struct key *guard);
void transaction_count_add(struct transaction *t, enum item_counter counter, int64_t delta);
/* `bytes` is borrowed until the commit. */
void transaction_body_write(struct transaction *t, uint64_t body, uint64_t offset,
			    const void *bytes, size_t size);
void transaction_body_zero(struct transaction *t, uint64_t body, uint64_t offset, uint64_t length);
void transaction_body_truncate(struct transaction *t, uint64_t body, uint64_t offset);
void transaction_body_free(struct transaction *t, uint64_t body);

/* store_transact of what was collected, plus one ADD for each counter. Results as store_transact. */
int transaction_commit(struct transaction *t, struct store *s, enum store_purpose purpose,
		       uint64_t *ret_version);

#endif
