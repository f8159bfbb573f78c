/*
 * memory-map.c - a sorted array of entries, moved by memmove.
 */
#include <assert.h>

#include "store/memory.h"

int memory_entry_order(const struct memory_entry *e, const struct key *key)
{
	int result = memcmp(e->bytes, key->bytes, util_min(e->key_size, key->size));

	return result ? result : (int)e->key_size - (int)key->size;
}

size_t memory_lower_bound(const struct memory_map *m, const struct key *key)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memory_entry_order(m->entries[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t memory_upper_bound(const struct memory_map *m, const struct key *key)
{
	size_t at = memory_lower_bound(m, key);

	return at < m->count && !memory_entry_order(m->entries[at], key) ? at + 1 : at;
}

struct memory_entry *memory_find(const struct memory_map *m, const struct key *key)
{
	size_t at = memory_lower_bound(m, key);

	return at < m->count && !memory_entry_order(m->entries[at], key) ? m->entries[at] : NULL;
}

static size_t entry_size(const struct memory_entry *e)
{
	return e->key_size + e->attrs_size + e->content_size;
}

struct memory_entry *memory_entry_new(const struct key *key, const void *attrs, size_t attrs_size,
				      size_t content_size)
{
	struct memory_entry *e = calloc(1, sizeof(*e) + key->size + attrs_size + content_size);

	if (!e)
		return NULL;
	e->key_size = key->size;
	e->partition_size = key->partition_size;
	e->attrs_size = attrs_size;
	e->content_size = content_size;
	memcpy(e->bytes, key->bytes, key->size);
	if (attrs_size)
		memcpy(memory_entry_attrs(e), attrs, attrs_size);
	return e;
}

int memory_reserve(struct memory_map *m, size_t more)
{
	size_t capacity = util_max(2 * m->capacity, m->count + more);
	struct memory_entry **entries;

	if (m->count + more <= m->capacity)
		return 0;
	entries = reallocarray(m->entries, capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	m->entries = entries;
	m->capacity = capacity;
	return 0;
}

void memory_remove_at(struct memory_map *m, size_t at)
{
	m->bytes -= entry_size(m->entries[at]);
	free(m->entries[at]);
	m->count--;
	memmove(m->entries + at, m->entries + at + 1, (m->count - at) * sizeof(*m->entries));
}

void memory_insert(struct memory_map *m, const struct key *key, struct memory_entry *e)
{
	size_t at = memory_lower_bound(m, key);

	m->bytes += entry_size(e);
	if (at < m->count && !memory_entry_order(m->entries[at], key)) {
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

void memory_remove(struct memory_map *m, const struct key *key)
{
	size_t at = memory_lower_bound(m, key);

	if (at < m->count && !memory_entry_order(m->entries[at], key))
		memory_remove_at(m, at);
}

void memory_map_release(struct memory_map *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->entries[i]);
	free(m->entries);
	*m = (struct memory_map){ 0 };
}
