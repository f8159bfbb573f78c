/*
 * memory-read.c - copies out of the sorted array: items and pages.
 */
#include "store/memory.h"

#define PAGE_ROWS 100
#define PAGE_BYTES (1 << 20)

int memory_copy_out(struct memory_entry *e, bool attributes_only, struct store_value *ret_value)
{
	size_t content_size = attributes_only ? 0 : e->content_size;
	/* One byte more: content that is empty is not NULL. */
	uint8_t *bytes = malloc(e->attrs_size + content_size + 1);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, memory_entry_attrs(e), e->attrs_size + content_size);
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

static struct memory_span span_of(const struct memory_map *m, const struct store_query *q)
{
	struct memory_span s = { memory_lower_bound(m, &q->range.from),
				 memory_lower_bound(m, &q->range.to), q->reverse };

	if (q->after && q->reverse)
		s.end = util_min(s.end, memory_lower_bound(m, q->after));
	else if (q->after)
		s.first = util_max(s.first, memory_upper_bound(m, q->after));
	s.end = util_max(s.first, s.end);
	return s;
}

static struct memory_entry *nth(const struct memory_map *m, const struct memory_span *s, size_t n)
{
	return m->entries[s->reverse ? s->end - 1 - n : s->first + n];
}

static size_t row_size(const struct memory_entry *e, bool attributes_only)
{
	return e->key_size + e->attrs_size + (attributes_only ? 0 : e->content_size) + 1;
}

static uint8_t *fill_row(struct memory_entry *e, bool attributes_only, uint8_t *at, struct store_row *row)
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

static void name_next(const struct memory_entry *e, struct key *next)
{
	next->size = e->key_size;
	next->partition_size = e->partition_size;
	memcpy(next->bytes, e->bytes, e->key_size);
}

/* A limit that is reached ends the page with `more`, also if nothing follows: DynamoDB looks no further either. */
int memory_fill_page(const struct memory_map *m, const struct store_query *q, struct store_page *ret_page)
{
	struct memory_span span = span_of(m, q);
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

int memory_next_key(const struct memory_map *m, const struct key *from, struct key *ret_key)
{
	size_t at = from ? memory_lower_bound(m, from) : 0;

	if (at == m->count)
		return STORE_ABSENT;
	name_next(m->entries[at], ret_key);
	return 0;
}
