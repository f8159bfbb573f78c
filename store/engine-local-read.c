/*
 * engine-local-read.c - items: one, a range of them, the next partition.
 *
 * Every read looks at the overlay and renews its snapshot of the index in one
 * section of `maps`, then reads the index without a lock.
 */
#include "store/engine-local.h"

#define PAGE_ROWS 256 /* where the caller has no wish */
#define PAGE_ROWS_MAX 4096
#define PAGE_BYTES (UINT32_C(1) << 20) /* a page ends when it has so many */
#define OVERLAY_SURPLUS \
	64 /* entries of the overlay copied beyond the limit: tombstones yield no row */

/* ---- one item ---------------------------------------------------------- */

static int value_make(uint64_t version, size_t attrs_size, size_t content_size,
		      bool attributes_only, struct store_value *ret_value)
{
	size_t size = attrs_size + (attributes_only ? 0 : content_size);
	/* One byte more: what is empty is not NULL. */
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		return -ENOMEM;
	*ret_value = (struct store_value){
		.version = version,
		.attrs = bytes,
		.attrs_size = attrs_size,
		.content = attributes_only ? NULL : bytes + attrs_size,
		.content_size = attributes_only ? 0 : content_size,
		.memory = bytes,
	};
	return 0;
}

static int value_from_overlay(const struct overlay_item *item, bool attributes_only,
			      struct store_value *ret_value)
{
	int r;

	if (item->deleted)
		return STORE_ABSENT;
	r = value_make(item->version, item->attrs_size, item->content_size, attributes_only, ret_value);
	if (r == 0 && ret_value->attrs_size + ret_value->content_size)
		memcpy(ret_value->memory, item->value, ret_value->attrs_size + ret_value->content_size);
	return r;
}

static int value_from_index(struct engine_local *e, const struct key *key, const struct buffer *b,
			    bool attributes_only, struct store_value *ret_value)
{
	struct value_head head;
	struct store_value value;
	int r = value_head(b->bytes, b->size, &head);

	if (r == 0)
		r = value_make(head.version, head.attrs_size, head.content_size, attributes_only, &value);
	if (r < 0)
		return r;
	r = value_unseal(e->keys, key->bytes, key->size, b->bytes, b->size, attributes_only, value.memory);
	if (r < 0) {
		free(value.memory);
		return r;
	}
	*ret_value = value;
	return 0;
}

static struct overlay_item *find_in_overlay(struct engine_local *e, const uint8_t *key, size_t key_size)
{
	struct overlay_item *item = overlay_find(e->open, key, key_size);

	return !item && e->sealed ? overlay_find(e->sealed, key, key_size) : item;
}

int local_get(struct engine *engine, const struct key *key, bool attributes_only,
	      struct store_value *ret_value)
{
	struct engine_local *e = local_of(engine);
	_cleanup_(buffer_release) struct buffer b = { 0 };
	struct index_reader *reader;
	struct overlay_item *item;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	item = find_in_overlay(e, key->bytes, key->size);
	r = item ? value_from_overlay(item, attributes_only, ret_value) : index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (!item && r == 0) {
		r = index_get(reader, key->bytes, key->size, 0, &b);
		if (r == 0)
			r = value_from_index(e, key, &b, attributes_only, ret_value);
		else if (r == INDEX_ABSENT)
			r = STORE_ABSENT;
	}
	index_reader_give(e->index, reader);
	return r;
}

/* ---- a range ------------------------------------------------------------ */

/* An entry of the overlay, copied out: its bytes stand in the page's buffer. */
struct copied {
	size_t key_at;
	size_t key_size;
	size_t value_at;
	uint32_t attrs_size;
	uint32_t content_size;
	uint64_t version;
	bool deleted;
};

struct scan {
	struct engine_local *e;
	const struct store_query *query;
	size_t limit;
	struct buffer bytes; /* of all keys and values; everything else refers to it by offset */
	struct buffer copied; /* struct copied, in the order of reading */
	size_t copied_count;
	size_t copied_next;
	bool cut; /* the overlay has more than was copied */
	struct buffer rows; /* struct store_row, with offsets in place of pointers */
	size_t count;
	bool full; /* the limit was reached with something left */
	struct index_reader *reader;
	struct index_row row; /* what the index has next */
	bool row_valid;
};

static int compare_keys(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	int order = memcmp(a, b, util_min(a_size, b_size));

	if (order)
		return order;
	return a_size < b_size ? -1 : a_size > b_size;
}

static bool in_range(const struct store_query *q, const uint8_t *key, size_t key_size)
{
	return compare_keys(key, key_size, q->range.from.bytes, q->range.from.size) >= 0 &&
	       compare_keys(key, key_size, q->range.to.bytes, q->range.to.size) < 0;
}

/* Where reading starts. */
static const struct key *start_of(const struct store_query *q, bool *ret_inclusive)
{
	const struct key *edge = q->reverse ? &q->range.to : &q->range.from;
	int order = q->after ? compare_keys(q->after->bytes, q->after->size, edge->bytes, edge->size) : 0;

	/* `after` counts where it lies inside the range. */
	if (q->after && (q->reverse ? order < 0 : order >= 0)) {
		*ret_inclusive = false;
		return q->after;
	}
	*ret_inclusive = !q->reverse;
	return edge;
}

/* The one that is read first; the upper generation's where both have the key. */
static struct overlay_item *first_of(struct overlay_item *upper, struct overlay_item *lower, bool reverse)
{
	int order;

	if (!upper || !lower)
		return upper ? upper : lower;
	order = compare_keys(upper->key, upper->key_size, lower->key, lower->key_size);
	if (order == 0)
		return upper;
	return (order < 0) == !reverse ? upper : lower;
}

static void copy_item(struct scan *s, const struct overlay_item *item)
{
	size_t value_size = item->attrs_size + (s->query->attributes_only ? 0 : item->content_size);
	struct copied copied = {
		.key_at = s->bytes.size,
		.key_size = item->key_size,
		.value_at = s->bytes.size + item->key_size,
		.attrs_size = item->attrs_size,
		.content_size = item->content_size,
		.version = item->version,
		.deleted = item->deleted,
	};

	buffer_append(&s->bytes, item->key, item->key_size);
	buffer_append(&s->bytes, item->value, value_size);
	buffer_append(&s->copied, &copied, sizeof(copied));
	s->copied_count++;
}

/* Under `maps`: the first entries of both generations, merged. */
static void copy_overlay(struct scan *s)
{
	struct engine_local *e = s->e;
	const struct store_query *q = s->query;
	bool inclusive, reverse = q->reverse;
	const struct key *start = start_of(q, &inclusive);
	struct overlay_item *upper = overlay_seek(e->open, start->bytes, start->size, inclusive, reverse);
	struct overlay_item *lower =
		e->sealed ? overlay_seek(e->sealed, start->bytes, start->size, inclusive, reverse) : NULL;
	struct overlay_item *item;

	while ((item = first_of(upper, lower, reverse)) && in_range(q, item->key, item->key_size)) {
		bool same = upper && lower &&
			    !compare_keys(upper->key, upper->key_size, lower->key, lower->key_size);

		if (s->copied_count >= s->limit + OVERLAY_SURPLUS || s->bytes.size >= PAGE_BYTES) {
			s->cut = true;
			return;
		}
		copy_item(s, item);
		if (item == lower || same)
			lower = overlay_step(lower, reverse);
		if (item == upper)
			upper = overlay_step(upper, reverse);
	}
}

static void add_row(struct scan *s, size_t key_at, size_t key_size, size_t value_at,
		    const struct value_head *head, bool damaged)
{
	struct store_row row = {
		.key = (const uint8_t *)key_at,
		.key_size = key_size,
		.value = {
			.version = head->version,
			.attrs = (const uint8_t *)value_at,
			.attrs_size = head->attrs_size,
			.content_size = head->content_size,
		},
		.damaged = damaged,
	};

	buffer_append(&s->rows, &row, sizeof(row));
	s->count++;
}

static void row_from_overlay(struct scan *s, const struct copied *c)
{
	struct value_head head = {
		.version = c->version,
		.attrs_size = c->attrs_size,
		.content_size = c->content_size,
	};

	if (!c->deleted)
		add_row(s, c->key_at, c->key_size, c->value_at, &head, false);
}

static void row_from_index(struct scan *s)
{
	const struct index_row *row = &s->row;
	struct value_head head = { 0 };
	size_t key_at = s->bytes.size;
	bool damaged = value_head(row->value, row->value_size, &head) < 0;
	size_t value_size = head.attrs_size + (s->query->attributes_only ? 0 : head.content_size);
	uint8_t *value;

	buffer_append(&s->bytes, row->key, row->key_size);
	value = buffer_append(&s->bytes, NULL, value_size);
	if (!damaged && value)
		damaged = value_unseal(s->e->keys, row->key, row->key_size, row->value,
				       row->value_size, s->query->attributes_only, value) < 0;
	if (damaged)
		head = (struct value_head){ 0 };
	add_row(s, key_at, row->key_size, key_at + row->key_size, &head, damaged);
}

/* Puts the cursor's next row into s->row, if it is in the range. */
static int take_index_row(struct scan *s, int r)
{
	s->row_valid = r == 0 && in_range(s->query, s->row.key, s->row.key_size);
	return r < 0 ? r : 0;
}

static int first_index_row(struct scan *s)
{
	bool inclusive;
	const struct key *start = start_of(s->query, &inclusive);

	return take_index_row(s, index_seek(s->reader, start->bytes, start->size, inclusive,
					    s->query->reverse, &s->row));
}

static int next_index_row(struct scan *s)
{
	return take_index_row(s, index_step(s->reader, s->query->reverse, &s->row));
}

static const struct copied *next_copied(const struct scan *s)
{
	return s->copied_next < s->copied_count ? (struct copied *)s->copied.bytes + s->copied_next :
						  NULL;
}

/* Which of both comes first: negative the index, positive the overlay, 0 both. */
static int order_of(const struct scan *s, const struct copied *c)
{
	int order;

	if (!c)
		return -1;
	if (!s->row_valid)
		return 1;
	order = compare_keys(s->row.key, s->row.key_size, s->bytes.bytes + c->key_at, c->key_size);
	return s->query->reverse ? -order : order;
}

/* Merges until the limit, the end, or the last copied entry where more were not copied. */
static int merge(struct scan *s)
{
	int r = first_index_row(s);

	while (r == 0) {
		const struct copied *c = next_copied(s);
		int order = order_of(s, c);

		if (!c && (s->cut || !s->row_valid))
			break;
		if (s->count >= s->limit || s->bytes.size >= 2 * PAGE_BYTES) {
			s->full = true;
			break;
		}
		if (order < 0)
			row_from_index(s);
		else
			row_from_overlay(s, c);
		if (order >= 0)
			s->copied_next++;
		if (order <= 0)
			r = next_index_row(s);
		if (s->bytes.failed || s->rows.failed)
			r = -ENOMEM;
	}
	return r;
}

static void set_next(struct scan *s, struct store_page *page)
{
	size_t at, size;

	if (s->full) {
		const struct store_row *last = (struct store_row *)s->rows.bytes + s->count - 1;

		at = (size_t)last->key;
		size = last->key_size;
		/* Tombstones behind it were read as well. */
	} else {
		const struct copied *last = (struct copied *)s->copied.bytes + s->copied_count - 1;

		at = last->key_at;
		size = last->key_size;
	}
	page->more = true;
	page->next.size = (uint16_t)size;
	page->next.partition_size = s->query->range.from.partition_size;
	memcpy(page->next.bytes, s->bytes.bytes + at, size);
}

/* One block of memory: rows, then bytes; offsets become pointers. */
static int make_page(struct scan *s, struct store_page *ret_page)
{
	struct store_page page = { .count = s->count };
	size_t rows_size = s->count * sizeof(struct store_row);
	uint8_t *bytes;

	if (s->full || s->cut)
		set_next(s, &page);
	if (s->count) {
		page.memory = realloc(s->rows.bytes, rows_size + s->bytes.size + 1);
		if (!page.memory)
			return -ENOMEM;
		s->rows = (struct buffer){ 0 };
		bytes = (uint8_t *)page.memory + rows_size;
		memcpy(bytes, s->bytes.bytes, s->bytes.size);
		page.rows = page.memory;
		for (size_t i = 0; i < page.count; i++) {
			struct store_row *row = &page.rows[i];

			row->key = bytes + (size_t)row->key;
			row->value.attrs = bytes + (size_t)row->value.attrs;
			row->value.content = s->query->attributes_only ?
						     NULL :
						     row->value.attrs + row->value.attrs_size;
			if (s->query->attributes_only)
				row->value.content_size = 0;
		}
	}
	*ret_page = page;
	return 0;
}

int local_query(struct engine *engine, const struct store_query *query, struct store_page *ret_page)
{
	struct engine_local *e = local_of(engine);
	struct scan s = {
		.e = e,
		.query = query,
		.limit = query->limit ? util_min(query->limit, (size_t)PAGE_ROWS_MAX) : PAGE_ROWS,
	};
	int r = index_reader_take(e->index, &s.reader);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	copy_overlay(&s);
	r = index_reader_renew(s.reader);
	pthread_mutex_unlock(&e->maps);
	if (r == 0 && (s.bytes.failed || s.copied.failed))
		r = -ENOMEM;
	if (r == 0)
		r = merge(&s);
	if (r == 0)
		r = make_page(&s, ret_page);
	index_reader_give(e->index, s.reader);
	buffer_release(&s.bytes);
	buffer_release(&s.copied);
	buffer_release(&s.rows);
	return r;
}

/* ---- the next key of any partition -------------------------------------- */

static void key_set(struct engine_local *e, const uint8_t *bytes, size_t size, struct key *ret_key)
{
	if (key_from_bytes(&e->codec, bytes, size, ret_key) == 0)
		return;
	/* A key that no function builds is damage; it is shown as it is, for `check` to name. */
	ret_key->size = (uint16_t)util_min(size, (size_t)KEY_MAX);
	ret_key->partition_size = ret_key->size;
	memcpy(ret_key->bytes, bytes, ret_key->size);
}

/* The first item of a generation at or after `from` that is not deleted. Under `maps`. */
static struct overlay_item *next_live(struct engine_local *e, const uint8_t *from, size_t from_size)
{
	struct overlay_item *upper = overlay_seek(e->open, from, from_size, true, false);
	struct overlay_item *lower =
		e->sealed ? overlay_seek(e->sealed, from, from_size, true, false) : NULL;
	struct overlay_item *item;

	while ((item = first_of(upper, lower, false))) {
		bool same = upper && lower &&
			    !compare_keys(upper->key, upper->key_size, lower->key, lower->key_size);

		if (!item->deleted)
			return item;
		if (item == lower || same)
			lower = overlay_step(lower, false);
		if (item == upper)
			upper = overlay_step(upper, false);
	}
	return NULL;
}

/* The first group, at or after `from`, of a body that has a changed chunk. Under `maps`. */
static bool next_body(struct engine_local *e, const struct key *from, struct key *ret_key)
{
	struct overlay *generations[] = { e->open, e->sealed };
	bool found = false;

	for (unsigned i = 0; i < ARRAY_SIZE(generations); i++) {
		struct overlay_chunk *chunk;

		if (!generations[i])
			continue;
		RB_FOREACH(chunk, overlay_chunks, &generations[i]->chunks) {
			struct overlay_body *open_body = overlay_body_find(e->open, chunk->body);
			struct key key;

			if (chunk->base == OVERLAY_HOLE && !chunk->extents)
				continue;
			if (open_body && open_body->freed)
				continue;
			key_body(chunk->body, chunk->index / BODY_GROUP, &key);
			if (from && key_compare(&key, from) < 0)
				continue;
			if (!found || key_compare(&key, ret_key) < 0)
				*ret_key = key;
			found = true;
			break;
		}
	}
	return found;
}

/* Whether the index's key is hidden: deleted in the overlay, or of a body that was freed. */
static bool is_hidden(struct engine_local *e, const uint8_t *key, size_t key_size)
{
	struct overlay_item *item;
	struct key_parts parts;
	bool hidden;

	pthread_mutex_lock(&e->maps);
	item = find_in_overlay(e, key, key_size);
	hidden = item && item->deleted;
	if (!hidden && key_parse(&e->codec, key, key_size, &parts) == 0 && parts.kind == KEY_KIND_BODY) {
		struct overlay_body *open = overlay_body_find(e->open, parts.id);
		struct overlay_body *sealed = e->sealed ? overlay_body_find(e->sealed, parts.id) : NULL;

		hidden = (open && open->freed) || (sealed && sealed->freed);
	}
	pthread_mutex_unlock(&e->maps);
	return hidden;
}

int local_scan(struct engine *engine, const struct key *from, struct key *ret_key)
{
	static const struct key lowest = { .size = 1, .partition_size = 1 };
	struct engine_local *e = local_of(engine);
	const struct key *start = from ? from : &lowest;
	struct index_reader *reader;
	struct overlay_item *item;
	struct index_row row;
	struct key best, body;
	bool found = false, body_found;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	pthread_mutex_lock(&e->maps);
	item = next_live(e, start->bytes, start->size);
	if (item) {
		key_set(e, item->key, item->key_size, &best);
		found = true;
	}
	body_found = next_body(e, from, &body);
	r = index_reader_renew(reader);
	pthread_mutex_unlock(&e->maps);
	if (body_found && (!found || key_compare(&body, &best) < 0)) {
		best = body;
		found = true;
	}
	if (r == 0)
		r = index_seek(reader, start->bytes, start->size, true, false, &row);
	while (r == 0 && is_hidden(e, row.key, row.key_size))
		r = index_step(reader, false, &row);
	if (r == 0 && (!found || compare_keys(row.key, row.key_size, best.bytes, best.size) < 0)) {
		key_set(e, row.key, row.key_size, &best);
		found = true;
	}
	index_reader_give(e->index, reader);
	if (r < 0)
		return r;
	if (!found)
		return STORE_ABSENT;
	*ret_key = best;
	return 0;
}
