/*
 * Random reads, writes, truncations, punches and copies of one file against a
 * model in memory, about the sizes where something changes: the inline limit,
 * chunks, groups of chunks, 4 GiB. A failure names seed and step:
 * DDBFS_TEST_SEED=<seed> repeats it.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/random.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define STEPS 300
#define SEEDS 4 /* of each engine */

/* What may be other than zeros lies in two windows. */
#define LOW_SIZE (2 * MIB + 300 * KIB)
#define HIGH_START (4 * GIB - 200 * KIB)
#define HIGH_SIZE (400 * KIB)

static struct test_tree t;
static uint64_t f;
static struct test_random rnd;
static unsigned step;

static struct {
	uint8_t low[LOW_SIZE];
	uint8_t high[HIGH_SIZE];
	uint64_t size;
} model;

#define CK(condition, ...)                                                                             \
	do {                                                                                           \
		if (!(condition)) {                                                                    \
			fprintf(stderr, "# seed %llu, step %u: ", (unsigned long long)rnd.seed, step); \
			fprintf(stderr, __VA_ARGS__);                                                  \
			fprintf(stderr, "\n");                                                         \
			ck_abort_msg("seed %llu, step %u", (unsigned long long)rnd.seed, step);        \
		}                                                                                      \
	} while (0)

/* ---- the model ------------------------------------------------------------------ */

/* The model's bytes at an offset, and how many of them follow; NULL where all is zeros. */
static uint8_t *model_at(uint64_t offset, uint64_t *ret_run)
{
	if (offset < LOW_SIZE) {
		*ret_run = LOW_SIZE - offset;
		return model.low + offset;
	}
	if (offset < HIGH_START) {
		*ret_run = HIGH_START - offset;
		return NULL;
	}
	if (offset < HIGH_START + HIGH_SIZE) {
		*ret_run = HIGH_START + HIGH_SIZE - offset;
		return model.high + (offset - HIGH_START);
	}
	*ret_run = UINT64_MAX - offset;
	return NULL;
}

static void model_zero(uint64_t offset, uint64_t end)
{
	uint64_t run;

	for (; offset < end; offset += run) {
		uint8_t *at = model_at(offset, &run);

		run = util_min(run, end - offset);
		if (at)
			memset(at, 0, run);
	}
}

static void model_write(uint64_t offset, const uint8_t *bytes, uint64_t size)
{
	uint64_t run;
	uint8_t *at = model_at(offset, &run);

	ck_assert(at && run >= size);
	memcpy(at, bytes, size);
	model.size = util_max(model.size, offset + size);
}

static void model_truncate(uint64_t size)
{
	if (size < model.size)
		model_zero(size, model.size);
	model.size = size;
}

/* ---- comparing ------------------------------------------------------------------- */

static void check_range(uint64_t offset, uint64_t size)
{
	_cleanup_free_ uint8_t *got = malloc(size + 1);
	uint64_t expected = offset < model.size ? util_min(size, model.size - offset) : 0, run;
	size_t count;
	int result = file_read(t.namei, &t.where, f, offset, got, size, &count);

	CK(result == 0, "read %llu+%llu: %d", (unsigned long long)offset, (unsigned long long)size,
	   result);
	CK(count == expected, "read %llu+%llu gave %zu", (unsigned long long)offset,
	   (unsigned long long)size, count);
	for (uint64_t done = 0; done < expected; done += run) {
		uint8_t *at = model_at(offset + done, &run);

		run = util_min(run, expected - done);
		for (uint64_t i = 0; i < run; i++)
			CK(got[done + i] == (at ? at[i] : 0), "byte %llu is %u, not %u",
			   (unsigned long long)(offset + done + i), got[done + i], at ? at[i] : 0);
	}
}

static void check_attributes(void)
{
	struct inode i = test_look(&t, ROOT, "f");

	CK(i.item.size == model.size, "size %llu, not %llu", (unsigned long long)i.item.size,
	   (unsigned long long)model.size);
}

/* First byte from `offset` on that is not zero, or the size. */
static uint64_t model_data(uint64_t offset)
{
	uint64_t run;

	for (; offset < model.size; offset += run) {
		uint8_t *at = model_at(offset, &run);

		run = util_min(run, model.size - offset);
		for (uint64_t i = 0; at && i < run; i++)
			if (at[i])
				return offset + i;
	}
	return model.size;
}

/* Walks data and holes from `offset` on: they alternate to the end, and no hole hides a byte. */
static void check_map(uint64_t offset)
{
	unsigned turns = 0;

	while (offset < model.size && turns++ < 2000) {
		uint64_t data, hole;
		int result = file_seek(t.namei, &t.where, f, offset, true, &data);

		CK(result == 0 || result == -ENXIO, "SEEK_DATA %llu: %d",
		   (unsigned long long)offset, result);
		if (result)
			data = model.size;
		CK(model_data(offset) >= data, "hole %llu to %llu has data at %llu",
		   (unsigned long long)offset, (unsigned long long)data,
		   (unsigned long long)model_data(offset));
		if (data == model.size)
			return;
		result = file_seek(t.namei, &t.where, f, data, false, &hole);
		CK(result == 0 && hole > data && hole <= model.size, "SEEK_HOLE %llu: %d, %llu",
		   (unsigned long long)data, result, (unsigned long long)hole);
		offset = hole;
	}
}

/* ---- choosing --------------------------------------------------------------------- */

static uint64_t near(uint64_t about, uint64_t spread)
{
	uint64_t at = about + random_below(&rnd, 2 * spread + 1);

	return at < spread ? 0 : at - spread;
}

static uint64_t choose_boundary(void)
{
	static const uint64_t about[] = { 0,	    4096,      32 * KIB, 64 * KIB,
					  96 * KIB, 128 * KIB, MIB,	 2 * MIB };
	uint64_t n = random_below(&rnd, ARRAY_SIZE(about) + 4);

	if (n < ARRAY_SIZE(about))
		return about[n];
	if (n == ARRAY_SIZE(about))
		return store_limits(t.store)->inline_bytes;
	if (n == ARRAY_SIZE(about) + 1)
		return util_min(model.size, LOW_SIZE);
	return random_below(&rnd, n == ARRAY_SIZE(about) + 2 ? 8 * KIB : LOW_SIZE);
}

/* In a window, with room for `size` behind it. */
static uint64_t choose_offset(uint64_t size)
{
	if (random_once_in(&rnd, 10))
		return util_min(HIGH_START + HIGH_SIZE - size, near(4 * GIB, 70 * KIB));
	return util_min(LOW_SIZE - size, near(choose_boundary(), 3));
}

static uint64_t choose_size(uint64_t most)
{
	static const uint64_t about[] = { 1, 10, 100, 1500, 4096, 32 * KIB, 64 * KIB, 130 * KIB };
	uint64_t size = near(about[random_below(&rnd, ARRAY_SIZE(about))], 3);

	if (random_once_in(&rnd, 30))
		size = MIB + random_below(&rnd, MIB);
	size = util_min(size, most);
	return size ? size : 1;
}

/* ---- steps -------------------------------------------------------------------------- */

static void around(uint64_t offset, uint64_t size)
{
	uint64_t start = offset < 5000 ? 0 : offset - 5000;

	check_range(start, offset + size + 5000 - start);
}

static uint8_t *random_bytes(uint64_t size)
{
	uint8_t *bytes = malloc(size);
	uint64_t x = random_next(&rnd);

	ck_assert_ptr_nonnull(bytes);
	for (uint64_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((x + i * 131 + (i >> 8) * 17) | 1);
	return bytes;
}

static void step_write(void)
{
	bool append = model.size < LOW_SIZE - 300 * KIB && random_once_in(&rnd, 5);
	uint64_t size = choose_size(append ? 200 * KIB : HIGH_SIZE / 2);
	uint64_t offset = append ? model.size : choose_offset(size);
	_cleanup_free_ uint8_t *bytes = random_bytes(size);
	int result = file_write(t.namei, &t.where, f, append ? 3 : offset, bytes, size, append,
				false, NULL);

	CK(result == 0, "write %llu+%llu: %d", (unsigned long long)offset, (unsigned long long)size,
	   result);
	model_write(offset, bytes, size);
	around(offset, size);
}

static void step_truncate(void)
{
	uint64_t size = random_once_in(&rnd, 8) ? 0 : choose_offset(0);
	struct attr_change change = { .set = ATTR_SIZE };
	int result;

	if (random_once_in(&rnd, 8))
		size = random_below(&rnd, 6 * GIB);
	change.size = size;
	result = file_setattr(t.namei, &t.where, f, &change, NULL);
	CK(result == 0, "truncate %llu: %d", (unsigned long long)size, result);
	model_truncate(size);
	around(size, 0);
}

static void step_allocate(void)
{
	static const int modes[] = { 0,
				     FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE };
	int mode = modes[random_below(&rnd, ARRAY_SIZE(modes))];
	uint64_t size = choose_size(HIGH_SIZE / 2), offset = choose_offset(size);
	int result;

	if (mode & FALLOC_FL_PUNCH_HOLE && random_once_in(&rnd, 6))
		size = 5 * GIB;
	result = file_allocate(t.namei, &t.where, f, mode, offset, size);
	CK(result == 0, "allocate %d %llu+%llu: %d", mode, (unsigned long long)offset,
	   (unsigned long long)size, result);
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		model_zero(offset, util_min(offset + size, model.size));
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		model.size = util_max(model.size, offset + size);
	around(offset, util_min(size, 300 * KIB));
}

static void step_copy(void)
{
	uint64_t size = choose_size(HIGH_SIZE / 2), from = choose_offset(size),
		 to = choose_offset(size), run;
	uint64_t there = from < model.size ? util_min(size, model.size - from) : 0;
	size_t copied;
	int result;

	if (from < to ? to - from < size : from - to < size)
		return;
	result = file_copy(t.namei, &t.where, f, from, &t.where, f, to, size, &copied);
	CK(result == 0 && copied == there, "copy %llu+%llu to %llu: %d, %zu", (unsigned long long)from,
	   (unsigned long long)size, (unsigned long long)to, result, copied);
	if (copied)
		model_write(to, model_at(from, &run), copied);
	around(to, size);
}

static void step_rename(void)
{
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "g", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "g", ROOT, "f", 0), 0);
}

static void run_step(void)
{
	uint64_t kind = random_below(&rnd, 100);

	if (kind < 45)
		step_write();
	else if (kind < 60)
		step_truncate();
	else if (kind < 78)
		step_allocate();
	else if (kind < 86)
		step_copy();
	else if (kind < 88)
		step_rename();
	else if (kind < 91)
		ck_assert_int_eq(store_checkpoint(t.store), 0);
	else if (kind < 93)
		test_tree_reopen(&t);
	else if (kind < 96)
		check_map(choose_offset(1));
	else
		check_range(choose_offset(1), choose_size(HIGH_SIZE));
	check_attributes();
}

START_TEST(content_is_what_the_model_says)
{
	unsigned steps = random_rounds(STEPS);

	random_init(&rnd, (uint64_t)_i / TEST_ENGINES);
	memset(&model, 0, sizeof(model));
	test_tree_open(&t, (enum test_engine)(_i % TEST_ENGINES));
	f = test_file(&t, ROOT, "f", "");
	for (step = 0; step < steps; step++)
		run_step();
	check_range(0, LOW_SIZE + 10);
	check_range(HIGH_START, HIGH_SIZE + 10);
	check_map(0);
	test_consistent(&t);
	test_tree_close(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fs/file-random");
	TCase *c = tcase_create("model");

	tcase_add_loop_test(c, content_is_what_the_model_says, 0, SEEDS * TEST_ENGINES);
	tcase_set_timeout(c, 120);
	suite_add_tcase(s, c);
	return test_main(s);
}
