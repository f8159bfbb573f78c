/*
 * exercise.h - the model that a file is compared with, and what draws the next
 * range from it. Private to the exercise program.
 *
 * What may be other than zeros lies in two windows: the first megabytes, where
 * contents change their form (inline, chunks, groups of chunks), and about
 * 4 GiB. Of each unit of 4 KiB the model knows whether it was ever written since
 * it was last a hole: SEEK_DATA and SEEK_HOLE must find every byte that is not
 * zero, and must not call data what never was.
 */
#ifndef TESTS_MOUNT_EXERCISE_H
#define TESTS_MOUNT_EXERCISE_H

#include "store/util.h"
#include "tests/lib/random.h"

#define EXERCISE_UNIT UINT64_C(4096)
#define EXERCISE_LOW_SIZE (UINT64_C(2348) << 10)
#define EXERCISE_HIGH_START ((UINT64_C(4) << 30) - (200 << 10))
#define EXERCISE_HIGH_SIZE (UINT64_C(400) << 10)
#define EXERCISE_LARGEST (300 << 10) /* of one operation */
#define EXERCISE_INLINE 1536 /* the largest file that may have no body */

struct exercise_model {
	uint64_t size;
	uint64_t body; /* 1: it was larger than an inline one since it was last empty */
	uint8_t low[EXERCISE_LOW_SIZE];
	uint8_t high[EXERCISE_HIGH_SIZE];
	uint8_t low_units[EXERCISE_LOW_SIZE / EXERCISE_UNIT]; /* 1: written */
	uint8_t high_units[EXERCISE_HIGH_SIZE / EXERCISE_UNIT];
};

/* The model's bytes at an offset, and how many of them follow; NULL where all is zeros. */
uint8_t *model_at(struct exercise_model *m, uint64_t offset, uint64_t *ret_run);
/* Whether the file's bytes from `offset` on are these. */
bool model_equals(struct exercise_model *m, uint64_t offset, const uint8_t *bytes, size_t size);
void model_read(struct exercise_model *m, uint64_t offset, uint8_t *bytes, size_t size);
void model_write(struct exercise_model *m, uint64_t offset, const uint8_t *bytes, size_t size);
/* Reads as zeros from now on; units that lie in it whole are holes. Does not move the size. */
void model_zero(struct exercise_model *m, uint64_t offset, uint64_t end);
void model_resize(struct exercise_model *m, uint64_t size);
/* Whether a byte of the unit is not zero; whether it may be called data. */
bool model_unit_has_data(struct exercise_model *m, uint64_t offset);
bool model_unit_is_written(struct exercise_model *m, uint64_t offset);
/* Where the next unit after `offset` begins that is in a window, or UINT64_MAX. */
uint64_t model_next_unit(uint64_t offset);

/* Where the next operations play: below 5,000 bytes, about the first chunks, all of the low window, about 4 GiB. */
enum exercise_scale {
	SCALE_INLINE,
	SCALE_CHUNK,
	SCALE_GROUP,
	SCALE_HIGH,
	SCALES
};
/* A range of at most EXERCISE_LARGEST bytes, often at a boundary; never empty. */
void model_range(struct test_random *r, enum exercise_scale scale, uint64_t *ret_offset,
		 uint64_t *ret_size);

#endif
