#include "tests/mount/exercise.h"

#include <string.h>

#define HIGH_END (EXERCISE_HIGH_START + EXERCISE_HIGH_SIZE)

uint8_t *model_at(struct exercise_model *m, uint64_t offset, uint64_t *ret_run)
{
	if (offset < EXERCISE_LOW_SIZE) {
		*ret_run = EXERCISE_LOW_SIZE - offset;
		return m->low + offset;
	}
	if (offset < EXERCISE_HIGH_START) {
		*ret_run = EXERCISE_HIGH_START - offset;
		return NULL;
	}
	if (offset < HIGH_END) {
		*ret_run = HIGH_END - offset;
		return m->high + (offset - EXERCISE_HIGH_START);
	}
	*ret_run = UINT64_MAX - offset;
	return NULL;
}

/* The flag of the unit at an offset, or NULL outside of the windows. */
static uint8_t *unit_at(struct exercise_model *m, uint64_t offset)
{
	if (offset < EXERCISE_LOW_SIZE)
		return &m->low_units[offset / EXERCISE_UNIT];
	if (offset >= EXERCISE_HIGH_START && offset < HIGH_END)
		return &m->high_units[(offset - EXERCISE_HIGH_START) / EXERCISE_UNIT];
	return NULL;
}

void model_read(struct exercise_model *m, uint64_t offset, uint8_t *bytes, size_t size)
{
	uint64_t run;

	for (size_t done = 0; done < size; done += run) {
		const uint8_t *at = model_at(m, offset + done, &run);

		run = util_min(run, size - done);
		if (at)
			memcpy(bytes + done, at, run);
		else
			memset(bytes + done, 0, run);
	}
}

bool model_equals(struct exercise_model *m, uint64_t offset, const uint8_t *bytes, size_t size)
{
	uint8_t *expected = malloc(size + 1);
	bool equal;

	model_read(m, offset, expected, size);
	equal = memcmp(expected, bytes, size) == 0;
	free(expected);
	return equal;
}

/* What was inline is data when it moves into a body, zeros too. */
static void set_size(struct exercise_model *m, uint64_t size)
{
	if (size == 0)
		m->body = 0;
	else if (size > EXERCISE_INLINE && !m->body) {
		m->body = 1;
		m->low_units[0] |= m->size > 0;
	}
	m->size = size;
}

void model_write(struct exercise_model *m, uint64_t offset, const uint8_t *bytes, size_t size)
{
	uint64_t run, end = offset + size;

	for (size_t done = 0; done < size; done += run) {
		uint8_t *at = model_at(m, offset + done, &run);

		run = util_min(run, size - done);
		memcpy(at, bytes + done, run);
	}
	for (uint64_t u = offset / EXERCISE_UNIT * EXERCISE_UNIT; u < end; u += EXERCISE_UNIT)
		*unit_at(m, u) = 1;
	set_size(m, util_max(m->size, end));
}

void model_zero(struct exercise_model *m, uint64_t offset, uint64_t end)
{
	uint64_t run;

	for (uint64_t at = offset; at < end; at += run) {
		uint8_t *bytes = model_at(m, at, &run);

		run = util_min(run, end - at);
		if (bytes)
			memset(bytes, 0, run);
	}
	for (uint64_t u = model_next_unit(offset ? offset - 1 : UINT64_MAX);
	     u + EXERCISE_UNIT <= end && u < HIGH_END; u = model_next_unit(u))
		*unit_at(m, u) = 0;
}

void model_resize(struct exercise_model *m, uint64_t size)
{
	uint64_t end = util_min(HIGH_END, (m->size + EXERCISE_UNIT - 1) / EXERCISE_UNIT * EXERCISE_UNIT);

	if (size < m->size)
		model_zero(m, size, end);
	set_size(m, size);
}

bool model_unit_has_data(struct exercise_model *m, uint64_t offset)
{
	uint64_t run, unit = offset / EXERCISE_UNIT * EXERCISE_UNIT;
	const uint8_t *at = model_at(m, unit, &run);

	for (uint64_t i = 0; at && i < EXERCISE_UNIT; i++)
		if (at[i])
			return true;
	return false;
}

bool model_unit_is_written(struct exercise_model *m, uint64_t offset)
{
	const uint8_t *unit = unit_at(m, offset);

	return unit && *unit;
}

uint64_t model_next_unit(uint64_t offset)
{
	uint64_t next = offset == UINT64_MAX ? 0 : (offset / EXERCISE_UNIT + 1) * EXERCISE_UNIT;

	if (next >= HIGH_END)
		return UINT64_MAX;
	return next < EXERCISE_LOW_SIZE ? next : util_max(next, EXERCISE_HIGH_START);
}

/* ---- ranges ------------------------------------------------------------------------ */

static const struct {
	uint64_t start, end;
	uint64_t boundaries[6];
} scales[SCALES] = {
	[SCALE_INLINE] = { 0, 5000, { 0, 1024, 1536, 4096, 512, 3 } },
	[SCALE_CHUNK] = { 0, 200 << 10, { 32768, 65536, 4096, 98304, 131072, 28672 } },
	[SCALE_GROUP] = { 0, EXERCISE_LOW_SIZE, { 1 << 20, 2 << 20, 1015808, 1081344, 0, 32768 } },
	[SCALE_HIGH] = { EXERCISE_HIGH_START,
			 HIGH_END,
			 { UINT64_C(1) << 32, (UINT64_C(1) << 32) - 4096, (UINT64_C(1) << 32) - 32768,
			   (UINT64_C(1) << 32) + 32768, (UINT64_C(1) << 32) + 4096, EXERCISE_HIGH_START } },
};

static uint64_t model_offset(struct test_random *r, enum exercise_scale scale)
{
	uint64_t start = scales[scale].start, end = scales[scale].end - 1, at;

	if (random_once_in(r, 2))
		return start + random_below(r, end - start);
	at = scales[scale].boundaries[random_below(r, 6)] + random_below(r, 5);
	at = at < 2 ? 0 : at - 2;
	at = util_max(at, start);
	return util_min(at, end);
}

void model_range(struct test_random *r, enum exercise_scale scale, uint64_t *ret_offset, uint64_t *ret_size)
{
	uint64_t a = model_offset(r, scale), b = model_offset(r, scale), start = util_min(a, b);
	uint64_t size = util_max(a, b) - start;

	if (random_once_in(r, 3))
		size = random_below(r, 9000);
	size = util_min(size, (uint64_t)EXERCISE_LARGEST);
	size = util_min(size, scales[scale].end - start);
	*ret_offset = start;
	*ret_size = util_max(size, UINT64_C(1));
}
