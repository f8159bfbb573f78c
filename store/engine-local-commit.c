/*
 * engine-local-commit.c - acknowledging a transaction.
 *
 * What may take long happens before the commit lock: sealing file data into
 * segments, encoding, reading the index for conditions. Under it: conditions
 * again, as far as they may have changed; room; one record sealed and written;
 * the overlay. An item of 300 bytes holds the lock for 3 us.
 */
#include "store/engine-local.h"

#include <assert.h>
#include <time.h>

/* Positive outcomes of an attempt: something has to happen first. */
enum {
	WAIT_ROTATION = 100, /* the generation or its journal is full */
	WAIT_CHECKPOINT, /* a checkpoint may make room */
};

/* Of the journal, what only deletions may use, and what marks and anchors need. */
#define JOURNAL_RELEASING (UINT64_C(4) << 20)
#define JOURNAL_MARKS (UINT64_C(64) << 10)
/* Segment space that only transactions which release may use for the chunks they cut. */
#define MERGE_RELEASING (UINT64_C(1) << 20)

enum known_state {
	KNOWN_NOT, /* not in the overlay, and not read from the index */
	KNOWN_ABSENT,
	KNOWN_PRESENT,
};

/* What is known of the item that an operation's condition is about. */
struct known {
	enum known_state state;
	bool from_index;
	uint64_t version;
};

#define OPERATIONS_MAX (100 + STORE_COUNTERS_MAX)

struct attempt {
	struct engine_local *e;
	enum store_purpose purpose;
	const struct store_op *ops;
	size_t count;
	struct buffer record; /* the changes, encoded */
	size_t overlay_bytes; /* what applying them may take */
	size_t patches; /* chunks that a checkpoint may have to write for them */
	bool adds; /* there are counters */
	bool frees;
	bool waited; /* for a checkpoint, for lack of space */
	struct index_reader *reader;
	uint64_t drops; /* generations dropped when `known` was read from the index */
	uint64_t empty_seq; /* last transaction when the ranges of EMPTY were looked at */
	uint64_t rotations;
	struct known known[OPERATIONS_MAX];
};

/* ---- encoding ---------------------------------------------------------- */

static void add_change(struct attempt *a, const struct change *change)
{
	change_encode(change, &a->record);
	a->overlay_bytes += change_overlay_bytes(change);
}

/* Seals `count` whole chunks into one place of a segment. */
static int place_chunks(struct attempt *a, uint64_t body, uint64_t index, const uint8_t *bytes,
			size_t count)
{
	struct engine_local *e = a->e;
	uint64_t stream = index >= SEGMENT_OWN_FROM / BODY_CHUNK_SIZE ? body : SEGMENT_STREAM_SHARED;
	_cleanup_free_ uint8_t *cipher = malloc(count * BODY_CHUNK_SIZE);
	_cleanup_free_ struct body_ref *refs = calloc(count, sizeof(*refs));
	uint32_t segment, offset;
	int r;

	if (!cipher || !refs)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		refs[i].length = BODY_CHUNK_SIZE;
		refs[i].units = BODY_UNITS_ALL;
		body_chunk_seal(e->keys, body, index + i, bytes + i * BODY_CHUNK_SIZE,
				cipher + i * BODY_CHUNK_SIZE, &refs[i]);
	}
	r = segments_append(e->segments, stream, cipher, count * BODY_CHUNK_SIZE, &segment, &offset);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		refs[i].segment = segment;
		refs[i].offset = offset + (uint32_t)i * BODY_CHUNK_SIZE;
		add_change(a, &(struct change){ .kind = CHANGE_CHUNK,
						.body = body,
						.index = index + i,
						.ref = refs[i] });
	}
	return 0;
}

static int encode_write(struct attempt *a, const struct store_op *op)
{
	const uint8_t *bytes = op->bytes;
	uint64_t at = op->offset, end = op->offset + op->length;

	while (at < end) {
		uint64_t size = util_min(BODY_CHUNK_SIZE - at % BODY_CHUNK_SIZE, end - at);
		int r = 0;

		if (size == BODY_CHUNK_SIZE) {
			size_t count = (end - at) / BODY_CHUNK_SIZE;

			size = count * BODY_CHUNK_SIZE;
			r = place_chunks(a, op->body, at / BODY_CHUNK_SIZE, bytes, count);
		} else {
			add_change(a, &(struct change){
					      .kind = CHANGE_PATCH,
					      .body = op->body,
					      .offset = at,
					      .length = size,
					      .bytes = bytes,
				      });
			a->patches++;
		}
		if (r < 0)
			return r;
		at += size;
		bytes += size;
	}
	return 0;
}

static int encode_op(struct attempt *a, const struct store_op *op)
{
	struct change change = {
		.key = op->key.bytes,
		.key_size = op->key.size,
		.partition_size = op->key.partition_size,
		.body = op->body,
		.offset = op->offset,
	};

	switch (op->kind) {
	case STORE_PUT:
		change.kind = CHANGE_PUT;
		change.attrs = op->attrs;
		change.attrs_size = (uint32_t)op->attrs_size;
		change.content = op->content;
		change.content_size = (uint32_t)op->content_size;
		break;
	case STORE_DELETE:
		change.kind = CHANGE_DELETE;
		break;
	case STORE_ADD:
		change.kind = CHANGE_ADD;
		change.counter = op->counter;
		change.delta = op->delta;
		a->adds = true;
		break;
	case STORE_BODY_WRITE:
		return encode_write(a, op);
	case STORE_BODY_ZERO:
		change.kind = CHANGE_ZERO;
		change.length = op->length;
		a->patches += 2;
		break;
	case STORE_BODY_TRUNCATE:
		change.kind = CHANGE_TRUNCATE;
		a->patches += op->offset % BODY_CHUNK_SIZE != 0;
		break;
	case STORE_BODY_FREE:
		change.kind = CHANGE_FREE;
		a->frees = true;
		break;
	case STORE_CHECK:
	case STORE_EMPTY:
		return 0;
	}
	add_change(a, &change);
	return 0;
}

static int encode(struct attempt *a)
{
	int r = 0;

	for (size_t i = 0; i < a->count && r == 0; i++)
		r = encode_op(a, &a->ops[i]);
	return r < 0 ? r : a->record.failed ? -ENOMEM : 0;
}

/* ---- conditions -------------------------------------------------------- */

static bool has_condition(const struct store_op *op)
{
	return op->kind <= STORE_CHECK && op->condition != STORE_ANY;
}

/* Under `maps`. */
static struct known look_in_overlay(struct engine_local *e, const struct key *key)
{
	struct overlay_item *item = overlay_find(e->open, key->bytes, key->size);

	if (!item && e->sealed)
		item = overlay_find(e->sealed, key->bytes, key->size);
	if (!item)
		return (struct known){ .state = KNOWN_NOT };
	return (struct known){
		.state = item->deleted ? KNOWN_ABSENT : KNOWN_PRESENT,
		.version = item->version,
	};
}

static int look_in_index(struct attempt *a, const struct key *key, struct known *ret_known)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct value_head head = { 0 };
	int r = index_get(a->reader, key->bytes, key->size, VALUE_HEAD_SIZE, &b);

	if (r < 0)
		return r;
	/* Only the version, which stands in clear: a damaged item is there, and can be deleted. */
	if (r == 0 && b.size >= VALUE_HEAD_SIZE)
		head.version = util_get_le64(b.bytes + 4);
	*ret_known = (struct known){
		.state = r == 0 ? KNOWN_PRESENT : KNOWN_ABSENT,
		.from_index = true,
		.version = head.version,
	};
	return 0;
}

static int take_reader(struct attempt *a)
{
	return a->reader ? 0 : index_reader_take(a->e->index, &a->reader);
}

/* Reads from the index what the overlay does not know. Renews the snapshot in the section that looks at the overlay. */
static int look_everywhere(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool missing = false;
	int r = take_reader(a);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	for (size_t i = 0; i < a->count; i++) {
		if (!has_condition(&a->ops[i]))
			continue;
		a->known[i] = look_in_overlay(e, &a->ops[i].key);
		missing = missing || a->known[i].state == KNOWN_NOT;
	}
	a->drops = e->drops;
	if (missing)
		r = index_reader_renew(a->reader);
	pthread_mutex_unlock(&e->maps);
	for (size_t i = 0; i < a->count && r == 0; i++)
		if (has_condition(&a->ops[i]) && a->known[i].state == KNOWN_NOT)
			r = look_in_index(a, &a->ops[i].key, &a->known[i]);
	return r;
}

/* Under the commit lock: what was read from the index still holds, unless the overlay knows better or a generation was dropped. */
static int look_again(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool stale = false;

	pthread_mutex_lock(&e->maps);
	for (size_t i = 0; i < a->count; i++) {
		struct known known;

		if (!has_condition(&a->ops[i]))
			continue;
		known = look_in_overlay(e, &a->ops[i].key);
		if (known.state != KNOWN_NOT)
			a->known[i] = known;
		else if (!a->known[i].from_index || a->drops != e->drops)
			stale = true;
	}
	pthread_mutex_unlock(&e->maps);
	return stale ? look_everywhere(a) : 0;
}

static bool condition_holds(const struct store_op *op, const struct known *known)
{
	switch (op->condition) {
	case STORE_ANY:
		return true;
	case STORE_IF_ABSENT:
		return known->state == KNOWN_ABSENT;
	case STORE_IF_PRESENT:
		return known->state == KNOWN_PRESENT;
	case STORE_IF_VERSION:
		return known->state == KNOWN_PRESENT && known->version == op->version;
	}
	return false;
}

static int check_conditions(const struct attempt *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (has_condition(&a->ops[i]) && !condition_holds(&a->ops[i], &a->known[i]))
			return STORE_CONFLICT;
	return 0;
}

/* Whether the range has an item, by a query. */
static int look_at_range(struct engine_local *e, const struct key_range *range)
{
	struct key after;
	struct store_query query = { .range = *range, .limit = 1, .attributes_only = true };
	struct store_page page;
	bool more, found;

	do {
		int r = local_query(&e->engine, &query, &page);

		if (r < 0)
			return r;
		found = page.count > 0;
		more = page.more && !found;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	} while (more);
	return found ? STORE_CONFLICT : 0;
}

static int look_at_ranges(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool any = false;

	for (size_t i = 0; i < a->count; i++)
		any = any || a->ops[i].kind == STORE_EMPTY;
	if (!any)
		return 0;
	pthread_mutex_lock(&e->commit);
	a->empty_seq = e->last_seq;
	pthread_mutex_unlock(&e->commit);
	for (size_t i = 0; i < a->count; i++) {
		int r = a->ops[i].kind == STORE_EMPTY ? look_at_range(e, &a->ops[i].range) : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

/* Under both locks: whether a generation has an item in the range that came after transaction `seq`. */
static bool range_grew(struct overlay *o, const struct key_range *range, uint64_t seq)
{
	struct overlay_item *item = overlay_seek(o, range->from.bytes, range->from.size, true, false);

	for (; item; item = overlay_step(item, false)) {
		int order = memcmp(item->key, range->to.bytes, util_min(item->key_size, range->to.size));

		if (order > 0 || (order == 0 && item->key_size >= range->to.size))
			return false;
		if (!item->deleted && item->version > seq)
			return true;
	}
	return false;
}

static int check_ranges(struct attempt *a)
{
	struct engine_local *e = a->e;
	bool grew = false;

	if (a->empty_seq == e->last_seq)
		return 0;
	pthread_mutex_lock(&e->maps);
	for (size_t i = 0; i < a->count && !grew; i++) {
		if (a->ops[i].kind != STORE_EMPTY)
			continue;
		grew = range_grew(e->open, &a->ops[i].range, a->empty_seq) ||
		       (e->sealed && range_grew(e->sealed, &a->ops[i].range, a->empty_seq));
	}
	pthread_mutex_unlock(&e->maps);
	return grew ? STORE_CONFLICT : 0;
}

/* ---- counters ---------------------------------------------------------- */

#define COUNTERS_SIZE (8 * STORE_COUNTERS_MAX)

/*
 * What the index says of a counter item: zeros when there is none, or none that
 * can be read, which a recount will find. -EBADMSG if it is some other item.
 */
static int counters_from_index(struct engine_local *e, struct index_reader *reader,
			       const struct change *change, uint8_t ret_counters[COUNTERS_SIZE],
			       uint64_t *ret_version)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	uint8_t counters[COUNTERS_SIZE];
	struct value_head head;
	int r = index_get(reader, change->key, change->key_size, 0, &b);

	if (r != 0)
		return r < 0 ? r : 0;
	r = value_head(b.bytes, b.size, &head);
	if (r == 0 && (head.attrs_size != COUNTERS_SIZE || head.content_size))
		return -EBADMSG;
	if (r == 0)
		r = value_unseal(e->keys, change->key, change->key_size, b.bytes, b.size, true, counters);
	if (r < 0) {
		e->problem = "a counter was damaged and starts from zero: run `ddbfs check`";
		return 0;
	}
	memcpy(ret_counters, counters, COUNTERS_SIZE);
	*ret_version = head.version;
	return 0;
}

static bool is_counters(const struct overlay_item *item)
{
	return item->attrs_size == COUNTERS_SIZE && !item->content_size;
}

/* Makes the open generation have the item, with the value it has now. Under `commit`; memory was reserved. */
static int counters_touch(struct engine_local *e, struct index_reader *reader, const struct change *change)
{
	uint8_t counters[COUNTERS_SIZE] = { 0 };
	struct overlay_item *item;
	uint64_t version = 0;
	bool here;
	int r = 0;

	pthread_mutex_lock(&e->maps);
	item = overlay_find(e->open, change->key, change->key_size);
	here = item && !item->deleted;
	if (!item && e->sealed)
		item = overlay_find(e->sealed, change->key, change->key_size);
	if (item && !item->deleted) {
		r = is_counters(item) ? 0 : -EBADMSG;
		if (r == 0)
			memcpy(counters, item->value, COUNTERS_SIZE);
		version = item->version;
	}
	if (!item)
		r = index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (!item && r == 0)
		r = counters_from_index(e, reader, change, counters, &version);
	if (r < 0 || here)
		return r;
	pthread_mutex_lock(&e->maps);
	overlay_put(e->open, change->key, change->key_size, change->partition_size, version,
		    counters, COUNTERS_SIZE, NULL, 0);
	pthread_mutex_unlock(&e->maps);
	return 0;
}

static int touch_all_counters(struct engine_local *e, struct index_reader *reader,
			      const struct buffer *record)
{
	struct reader changes = { .bytes = record->bytes, .size = record->size };
	struct change change;
	int r;

	while ((r = change_next(&changes, &change)) > 0) {
		if (change.kind != CHANGE_ADD)
			continue;
		r = counters_touch(e, reader, &change);
		if (r < 0)
			break;
	}
	return r;
}

/* ---- applying ---------------------------------------------------------- */

static void apply_add(struct overlay *o, const struct change *change, uint64_t seq)
{
	struct overlay_item *item = overlay_find(o, change->key, change->key_size);
	uint8_t *counter;

	/* It was touched before. */
	assert(item && is_counters(item));
	counter = item->value + 8 * change->counter;
	util_put_le64(counter, util_get_le64(counter) + (uint64_t)change->delta);
	item->version = seq;
}

static void apply_free(struct overlay *o, uint64_t body, uint64_t seq)
{
	struct key key;

	overlay_body_free(o, body);
	key_free_body(body, &key);
	overlay_put(o, key.bytes, key.size, key.partition_size, seq, NULL, 0, NULL, 0);
}

static void apply_change(struct overlay *o, const struct change *c, uint64_t seq)
{
	switch (c->kind) {
	case CHANGE_PUT:
		overlay_put(o, c->key, c->key_size, c->partition_size, seq, c->attrs, c->attrs_size,
			    c->content, c->content_size);
		break;
	case CHANGE_DELETE:
		overlay_delete(o, c->key, c->key_size, c->partition_size, seq);
		break;
	case CHANGE_ADD:
		apply_add(o, c, seq);
		break;
	case CHANGE_PATCH:
		overlay_patch(o, c->body, c->offset, c->bytes, c->length);
		break;
	case CHANGE_CHUNK:
		overlay_chunk_put(o, c->body, c->index, &c->ref);
		break;
	case CHANGE_ZERO:
		overlay_zero(o, c->body, c->offset, c->length);
		break;
	case CHANGE_TRUNCATE:
		overlay_truncate(o, c->body, c->offset);
		break;
	case CHANGE_FREE:
		apply_free(o, c->body, seq);
		break;
	}
}

/* Under `maps`; memory was reserved and every change decoded before. */
static void apply_all(struct overlay *o, const uint8_t *bytes, size_t size, uint64_t seq)
{
	struct reader changes = { .bytes = bytes, .size = size };
	struct change change;

	while (change_next(&changes, &change) > 0)
		apply_change(o, &change, seq);
	if (!o->first_seq)
		o->first_seq = seq;
	o->last_seq = seq;
}

int local_apply(struct engine_local *e, const uint8_t *bytes, size_t size, uint64_t seq)
{
	struct reader changes = { .bytes = bytes, .size = size };
	struct buffer record = { .bytes = (uint8_t *)bytes, .size = size };
	struct index_reader *reader;
	struct change change;
	size_t needed = 0;
	int r;

	while ((r = change_next(&changes, &change)) > 0)
		needed += change_overlay_bytes(&change);
	if (r == 0)
		r = overlay_reserve(e->open, needed);
	if (r == 0)
		r = index_reader_take(e->index, &reader);
	if (r < 0)
		return r;
	r = touch_all_counters(e, reader, &record);
	index_reader_give(e->index, reader);
	if (r < 0)
		return r;
	apply_all(e->open, bytes, size, seq);
	e->last_seq = seq;
	return 0;
}

/* ---- committing; all under the commit lock ----------------------------- */

static bool is_full(const struct engine_local *e, unsigned percent)
{
	return e->open->bytes > e->generation_bytes * percent / 100 ||
	       e->open->count > (size_t)LOCAL_GENERATION_ITEMS * percent / 100;
}

static int admit_journal(struct attempt *a)
{
	struct journal *j = a->e->journal;
	size_t needed = journal_record_size(a->record.size), capacity = journal_capacity(j);
	size_t kept = util_min(JOURNAL_MARKS, capacity / 16);

	if (a->purpose == STORE_GROWING)
		kept += util_min(JOURNAL_RELEASING, capacity / 8);
	if (needed + kept > capacity)
		return -EFBIG;
	return needed + kept > journal_room(j) ? WAIT_ROTATION : 0;
}

static int admit_space(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct space_pending pending[2] = {
		{ .items = e->open->count + a->count, .bytes = e->open->bytes + a->record.size },
	};
	uint64_t promised = e->open->patched + a->patches;
	int r = 0;

	pthread_mutex_lock(&e->maps);
	if (e->sealed) {
		pending[1] = (struct space_pending){ .items = e->sealed->count,
						     .bytes = e->sealed->bytes };
		promised += e->sealed->patched;
	}
	pthread_mutex_unlock(&e->maps);
	if (!space_admits(&e->space, a->purpose, pending))
		r = -ENOSPC;
	else if (a->patches)
		r = segments_reserve(e->segments, SEGMENT_STREAM_MERGE,
				     promised * BODY_CHUNK_SIZE +
					     (a->purpose == STORE_GROWING ? MERGE_RELEASING : 0));
	if (r != -ENOSPC || a->waited)
		return r;
	/* What is pending takes room until it is committed, and what was freed gives some back. */
	a->waited = true;
	return WAIT_CHECKPOINT;
}

static int admit(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct space_pending open = { .items = e->open->count, .bytes = e->open->bytes };
	int r = admit_journal(a);

	if (r != 0)
		return r;
	if (is_full(e, 125))
		return WAIT_ROTATION;
	if (is_full(e, 100) || space_presses(&e->space, &open))
		local_checkpoint_request(e);
	return admit_space(a);
}

static void note_change(struct engine_local *e, bool frees)
{
	int64_t now_ns = local_now_ns(), none = 0;
	bool wake = false;

	atomic_store_explicit(&e->last_ns, now_ns, memory_order_relaxed);
	if (!atomic_load_explicit(&e->unsynced_ns, memory_order_relaxed))
		wake = atomic_compare_exchange_strong(&e->unsynced_ns, &none, now_ns);
	none = 0;
	if (!atomic_load_explicit(&e->first_ns, memory_order_relaxed))
		wake = atomic_compare_exchange_strong(&e->first_ns, &none, now_ns) || wake;
	none = 0;
	if (frees)
		wake = atomic_compare_exchange_strong(&e->freed_ns, &none, now_ns) || wake;
	if (wake)
		local_wake(e);
}

static int write_record(struct attempt *a)
{
	struct engine_local *e = a->e;
	uint64_t seq = e->last_seq + 1;
	int r = overlay_reserve(e->open, a->overlay_bytes);

	if (r == 0 && a->adds)
		r = touch_all_counters(e, a->reader, &a->record);
	if (r < 0)
		return r;
	r = journal_append(e->journal, JOURNAL_CHANGES, seq, e->durable_seq, a->record.bytes,
			   a->record.size);
	if (r == -EROFS)
		return local_fail(e, -EIO, "a journal record could neither be written nor taken back");
	if (r < 0)
		return r;
	e->journal_dirty[journal_current(e->journal)] = true;
	e->last_seq = seq;
	pthread_mutex_lock(&e->maps);
	apply_all(e->open, a->record.bytes, a->record.size, seq);
	pthread_mutex_unlock(&e->maps);
	note_change(e, a->frees);
	return 0;
}

static int try(struct attempt *a, uint64_t *ret_version)
{
	struct engine_local *e = a->e;
	int r = look_everywhere(a);

	if (r == 0)
		r = check_conditions(a);
	if (r == 0)
		r = look_at_ranges(a);
	if (r != 0)
		return r;
	a->rotations = local_rotations(e);
	pthread_mutex_lock(&e->commit);
	r = e->error ? -EROFS : look_again(a);
	if (r == 0)
		r = check_conditions(a);
	if (r == 0)
		r = check_ranges(a);
	if (r == 0 && a->record.size)
		r = admit(a);
	if (r == 0 && a->record.size)
		r = write_record(a);
	if (r == 0)
		*ret_version = e->last_seq;
	pthread_mutex_unlock(&e->commit);
	return r;
}

/* What was put into segments for a transaction that did not come about is nobody's. */
static void release_chunks(struct attempt *a)
{
	struct engine_local *e = a->e;
	struct reader changes = { .bytes = a->record.bytes, .size = a->record.size };
	struct change change;

	while (change_next(&changes, &change) > 0) {
		if (change.kind != CHANGE_CHUNK)
			continue;
		pthread_mutex_lock(&e->commit);
		if (overlay_reserve(e->open, OVERLAY_ENTRY_BYTES) == 0)
			overlay_release(e->open, &change.ref);
		pthread_mutex_unlock(&e->commit);
	}
}

int local_transact(struct engine *engine, enum store_purpose purpose, const struct store_op *ops,
		   size_t count, uint64_t *ret_version)
{
	struct engine_local *e = local_of(engine);
	struct attempt a = { .e = e, .purpose = purpose, .ops = ops, .count = count };
	int r;

	assert(count <= OPERATIONS_MAX);
	if (e->error || e->read_only)
		return -EROFS;
	r = encode(&a);
	if (r == -ENOSPC && local_checkpoint_wait(e, true) == 0) {
		/* What was freed may not have been given back yet. */
		release_chunks(&a);
		buffer_reset(&a.record);
		a.overlay_bytes = a.patches = 0;
		r = encode(&a);
	}
	while (r == 0) {
		r = try(&a, ret_version);
		if (r == 0)
			break;
		if (a.reader)
			index_reader_rest(a.reader);
		if (r == WAIT_ROTATION)
			r = local_rotation_wait(e, a.rotations);
		else if (r == WAIT_CHECKPOINT)
			r = local_checkpoint_wait(e, true);
		else
			break;
	}
	if (r != 0)
		release_chunks(&a);
	index_reader_give(e->index, a.reader);
	buffer_release(&a.record);
	return r;
}
