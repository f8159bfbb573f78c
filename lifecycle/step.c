/*
 * step.c - one transaction of a change of state, what the hooks are told after
 * it, and the rows that stand beside each deleted item.
 *
 * Invariant: every item in state DEL has one row in EXP, at its destroy_ns, and,
 * unless it is temporary, one in TRASH, at its seq; both are written and removed
 * in the transaction that writes or removes the item. `forever` is a due time
 * like any other: it never comes.
 */
#include "lifecycle/internal.h"

#define STEP_COUNTERS 1 /* operations that the counters take */

void step_reset(struct step *step)
{
	transaction_reset(&step->t);
	step->changed = 0;
	step->bytes = 0;
}

void step_release(struct step *step)
{
	transaction_release(&step->t);
	free(step->changes);
	*step = (struct step){ 0 };
}

bool step_has_room(struct lifecycle *l, const struct step *step, size_t operations, size_t bytes)
{
	const struct store_limits *limits = store_limits(l->store);

	return step->t.count + STEP_COUNTERS + operations <= limits->operations &&
	       step->bytes + bytes <= limits->transaction_bytes / 2;
}

size_t item_bytes(const struct item *item)
{
	return item->content_size + item->xattrs_size + 4 * (KEY_NAME_MAX + 256);
}

static struct lifecycle_change *step_change(struct step *step)
{
	struct lifecycle_change *grown;
	size_t capacity;

	if (step->changed == step->capacity) {
		capacity = util_max(2 * step->capacity, (size_t)4);
		grown = reallocarray(step->changes, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		step->changes = grown;
		step->capacity = capacity;
	}
	return &step->changes[step->changed++];
}

void step_moved(struct step *step, const struct item *item, const struct place *from,
		const struct place *to)
{
	struct lifecycle_change *change = step_change(step);

	if (!change) {
		step->t.error = step->t.error ? step->t.error : -ENOMEM;
		return;
	}
	*change = (struct lifecycle_change){ .id = item->id, .mode = item->mode, .from = *from };
	if (to)
		change->to = *to;
	change->temporary = to && to->state == KEY_DEL && item->deletion.cause == ITEM_TEMPORARY;
}

bool step_has_item(const struct step *step, uint64_t id)
{
	for (size_t i = 0; i < step->changed; i++)
		if (step->changes[i].id == id)
			return true;
	return false;
}

int step_commit(struct lifecycle *l, struct step *step, enum store_purpose purpose)
{
	int result = tree_commit(&step->t, l->store, purpose, NULL);

	if (result || !l->hooks.changed)
		return result;
	for (size_t i = 0; i < step->changed; i++)
		l->hooks.changed(l->hooks.data, &step->changes[i]);
	return 0;
}

void deletion_row(struct lifecycle *l, const struct place *at, const struct deletion *d,
		  struct trash_row *ret_row)
{
	*ret_row = (struct trash_row){ .batch = d->batch, .uid = d->uid, .cause = d->cause };
	key_item(store_codec(l->store), at, &ret_row->key);
}

void deletion_put_rows(struct lifecycle *l, struct transaction *t, const struct place *at,
		       const struct deletion *d, uint64_t due_batch)
{
	struct trash_row row;

	deletion_row(l, at, d, &row);
	if (d->cause != ITEM_TEMPORARY)
		transaction_put_trash(t, at->seq, &row, 0);
	row.batch = due_batch;
	transaction_put_due(t, d->destroy_ns, at->seq, &row, 0);
}

void deletion_delete_rows(struct transaction *t, const struct place *at, const struct deletion *d)
{
	struct key key;

	if (d->cause != ITEM_TEMPORARY) {
		key_trash(at->seq, &key);
		transaction_delete(t, &key, STORE_ANY, 0);
	}
	key_due(d->destroy_ns, at->seq, &key);
	transaction_delete(t, &key, STORE_ANY, 0);
}

/* A row is guarded by its item, which the same transaction puts at its version. */
static void put_row(struct transaction *t, const struct key *key, const struct trash_row *row)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	int result = record_encode_trash(row, &b);

	if (result) {
		t->error = t->error ? t->error : result;
		return;
	}
	transaction_put(t, key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
}

void deletion_change(struct lifecycle *l, struct transaction *t, const struct place *at,
		     const struct item *item, const struct deletion *d, uint64_t due_batch)
{
	struct item changed = *item;
	struct trash_row row;
	struct key key;

	changed.deletion = *d;
	transaction_put_item(t, l->store, at, &changed, item->version);
	if (d->destroy_ns != item->deletion.destroy_ns) {
		key_due(item->deletion.destroy_ns, at->seq, &key);
		transaction_delete(t, &key, STORE_ANY, 0);
	}
	deletion_row(l, at, d, &row);
	if (d->cause != item->deletion.cause) {
		key_trash(at->seq, &key);
		put_row(t, &key, &row);
	}
	row.batch = due_batch;
	key_due(d->destroy_ns, at->seq, &key);
	put_row(t, &key, &row);
}
