/*
 * engine-local-query.c - a range of items: overlay and index merged.
 *
 * A bounded number of the overlay's entries is copied, tombstones too, in the
 * section of `maps` that renews the snapshot of the index: no more than can
 * become rows. Where the overlay has more than was copied, the page ends with the
 * last of them.
 */
#include "store/engine-local.h"

#define PAGE_ROWS 256 /* where the caller has no wish */
#define PAGE_ROWS_MAX 4096
#define PAGE_BYTES (UINT32_C(1) << 20) /* a page ends when it has so many */
#define OVERLAY_SURPLUS \
	64 /* entries of the overlay copied beyond the limit: tombstones yield no row */

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
	size_t copied_rows; /* of these, what is no tombstone */
	size_t copied_next;
	bool cut; /* the overlay has more than was copied */
	struct buffer rows; /* struct store_row, with offsets in place of pointers */
	size_t count;
	bool full; /* the limit was reached with something left */
	struct index_reader *reader;
	struct index_row row; /* what the index has next */
	bool row_valid;
};

static bool in_range(const struct store_query *q, const uint8_t *key, size_t key_size)
{
	return overlay_compare(key, key_size, q->range.from.bytes, q->range.from.size) >= 0 &&
	       overlay_compare(key, key_size, q->range.to.bytes, q->range.to.size) < 0;
}

/* Where reading starts. */
static const struct key *start_of(const struct store_query *q, bool *ret_inclusive)
{
	const struct key *edge = q->reverse ? &q->range.to : &q->range.from;
	int order = q->after ?
			    overlay_compare(q->after->bytes, q->after->size, edge->bytes, edge->size) :
			    0;

	/* `after` counts where it lies inside the range. */
	if (q->after && (q->reverse ? order < 0 : order >= 0)) {
		*ret_inclusive = false;
		return q->after;
	}
	*ret_inclusive = !q->reverse;
	return edge;
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
	s->copied_rows += !item->deleted;
}

/* Enough for a page: it cannot reach beyond as many rows as it may have. */
static bool copied_enough(const struct scan *s)
{
	return s->copied_rows >= s->limit || s->copied_count >= s->limit + OVERLAY_SURPLUS ||
	       s->bytes.size >= PAGE_BYTES;
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

	while ((item = overlay_first(upper, lower, reverse)) && in_range(q, item->key, item->key_size)) {
		bool same = upper && lower &&
			    !overlay_compare(upper->key, upper->key_size, lower->key, lower->key_size);

		if (copied_enough(s)) {
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
	order = overlay_compare(s->row.key, s->row.key_size, s->bytes.bytes + c->key_at, c->key_size);
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
	if (query->attributes_only)
		index_reader_attributes_only(s.reader);
	local_note_touch(e);
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
