/*
 * memory-body.c - bodies in the sorted array, see memory.h.
 */
#include "store/memory.h"

#define UNIT 4096
#define GROUP_UNITS 16
#define GROUP ((uint64_t)UNIT * GROUP_UNITS)

static struct memory_entry *find_group(const struct memory_map *m, uint64_t body, uint64_t number)
{
	struct key key;

	key_body(body, number, &key);
	return memory_find(m, &key);
}

/* Which units of its group `from` up to, not including, `to` touches, or (`whole`) covers. */
static uint16_t units_of(uint64_t from, uint64_t to, bool whole)
{
	uint64_t first = whole ? (from + UNIT - 1) / UNIT : from / UNIT;
	uint64_t end = whole ? to / UNIT : (to + UNIT - 1) / UNIT;

	if (first >= end)
		return 0;
	return (uint16_t)(((1u << (end - first)) - 1) << first);
}

static void write_group(struct memory_entry *e, uint64_t from, uint64_t to, const uint8_t *bytes)
{
	memcpy(memory_entry_content(e) + from, bytes, to - from);
	e->units |= units_of(from, to, false);
}

static void zero_group(struct memory_entry *e, uint64_t from, uint64_t to)
{
	memset(memory_entry_content(e) + from, 0, to - from);
	e->units &= (uint16_t)~units_of(from, to, true);
}

void memory_body_write(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t length,
		       const uint8_t *bytes)
{
	while (length) {
		uint64_t within = offset % GROUP, part = util_min(length, GROUP - within);

		write_group(find_group(m, body, offset / GROUP), within, within + part, bytes);
		offset += part;
		bytes += part;
		length -= part;
	}
}

/* The indexes of a body's groups that a range of bytes touches. */
static struct memory_span groups_of(const struct memory_map *m, uint64_t body, uint64_t offset,
				    uint64_t end)
{
	struct key from, to;

	key_body(body, offset / GROUP, &from);
	key_body(body, (end - 1) / GROUP, &to);
	return (struct memory_span){ memory_lower_bound(m, &from), memory_upper_bound(m, &to), false };
}

static uint64_t group_number(const struct memory_entry *e)
{
	return util_get_be64(e->bytes + e->key_size - 8);
}

void memory_body_zero(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t end)
{
	struct memory_span s = groups_of(m, body, offset, end);

	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;

		zero_group(m->entries[i], util_max(offset, start) - start,
			   util_min(end, start + GROUP) - start);
	}
}

int memory_body_prepare(struct memory_map *m, uint64_t body, uint64_t offset, uint64_t length)
{
	struct memory_entry *e;
	struct key key;

	for (uint64_t n = offset / GROUP; n <= (offset + length - 1) / GROUP; n++) {
		key_body(body, n, &key);
		if (memory_find(m, &key))
			continue;
		e = memory_reserve(m, 1) ? NULL : memory_entry_new(&key, NULL, 0, GROUP);
		if (!e)
			return -ENOMEM;
		memory_insert(m, &key, e);
	}
	return 0;
}

void memory_body_tidy(struct memory_map *m, uint64_t body)
{
	struct memory_span s = groups_of(m, body, 0, INT64_MAX);

	for (size_t i = s.end; i > s.first; i--)
		if (!m->entries[i - 1]->units)
			memory_remove_at(m, i - 1);
}

void memory_body_copy(const struct memory_map *m, uint64_t body, uint64_t offset, void *buffer, size_t size)
{
	uint64_t end = offset + size;
	struct memory_span s = groups_of(m, body, offset, end);

	memset(buffer, 0, size);
	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;
		uint64_t from = util_max(offset, start), to = util_min(end, start + GROUP);

		memcpy((uint8_t *)buffer + (from - offset),
		       memory_entry_content(m->entries[i]) + (from - start), to - from);
	}
}

static bool unit_is_data(const struct memory_entry *e, uint64_t offset)
{
	return e->units >> (offset % GROUP / UNIT) & 1;
}

uint64_t memory_body_data(const struct memory_map *m, uint64_t body, uint64_t offset)
{
	struct memory_span s = groups_of(m, body, offset, INT64_MAX);

	for (size_t i = s.first; i < s.end; i++) {
		uint64_t start = group_number(m->entries[i]) * GROUP;

		for (uint64_t at = util_max(start, offset); at < start + GROUP; at = (at / UNIT + 1) * UNIT)
			if (unit_is_data(m->entries[i], at))
				return at;
	}
	return UINT64_MAX;
}

uint64_t memory_body_hole(const struct memory_map *m, uint64_t body, uint64_t offset)
{
	struct memory_entry *e = find_group(m, body, offset / GROUP);

	while (e && unit_is_data(e, offset)) {
		offset = (offset / UNIT + 1) * UNIT;
		if (offset % GROUP == 0)
			e = find_group(m, body, offset / GROUP);
	}
	return offset;
}

uint64_t memory_body_bytes(const struct memory_map *m, uint64_t body)
{
	struct memory_span s = groups_of(m, body, 0, INT64_MAX);
	uint64_t units = 0;

	for (size_t i = s.first; i < s.end; i++)
		units += (uint64_t)__builtin_popcount(m->entries[i]->units);
	return units * UNIT;
}
