/*
 * Contents of files: reading, writing, truncating, holes, copying.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/lib/tree.h"

#define ROOT KEY_ID_ROOT
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

static struct test_tree t;
static uint64_t f; /* the file under test */

static void begin(int engine)
{
	test_tree_open(&t, engine);
	f = test_file(&t, ROOT, "f", "");
}

static void end(void)
{
	test_consistent(&t);
	test_tree_close(&t);
}

static uint8_t *pattern(size_t size, unsigned seed)
{
	uint8_t *bytes = malloc(size ? size : 1);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed + i * 31 + i / 251);
	return bytes;
}

static struct inode look(void)
{
	return test_look(&t, ROOT, "f");
}

static int truncate_to(uint64_t size)
{
	struct attr_change change = { .set = ATTR_SIZE, .size = size };

	return file_setattr(t.namei, &t.where, f, &change, NULL);
}

static size_t read_at(uint64_t offset, void *buffer, size_t size)
{
	size_t got;

	ck_assert_int_eq(file_read(t.namei, &t.where, f, offset, buffer, size, &got), 0);
	return got;
}

static void ck_zeros(uint64_t offset, size_t size)
{
	uint8_t *got = malloc(size);

	ck_assert_uint_eq(read_at(offset, got, size), size);
	for (size_t i = 0; i < size; i++)
		if (got[i])
			ck_abort_msg("byte %zu is %u", i, got[i]);
	free(got);
}

static int seek(uint64_t offset, bool data, uint64_t *ret)
{
	return file_seek(t.namei, &t.where, f, offset, data, ret);
}

static uint64_t inline_max(void)
{
	return store_limits(t.store)->inline_bytes;
}

/* ---- reading and writing ----------------------------------------------------- */

START_TEST(written_is_read)
{
	size_t sizes[] = { 1,
			   inline_max() ? inline_max() - 1 : 0,
			   inline_max(),
			   inline_max() + 1,
			   4096,
			   32768,
			   32769,
			   100000,
			   MIB,
			   MIB + 1,
			   3 * MIB + 5 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_free_ uint8_t *bytes = pattern(sizes[i], (unsigned)i);
		char name[16];

		snprintf(name, sizeof(name), "f%zu", i);
		f = test_file(&t, ROOT, name, "");
		ck_assert_int_eq(test_write(&t, f, 0, bytes, sizes[i]), 0);
		test_content(&t, f, bytes, sizes[i]);
		ck_assert_uint_eq(test_look(&t, ROOT, name).item.size, sizes[i]);
	}
}
END_TEST

START_TEST(small_content_is_inline_and_grows_out)
{
	uint64_t limit = inline_max();
	_cleanup_free_ uint8_t *bytes = pattern(limit + 10, 3);

	ck_assert_int_eq(test_write(&t, f, 0, bytes, limit), 0);
	ck_assert_uint_eq(look().item.body, 0);
	ck_assert_int_eq(test_write(&t, f, limit, bytes + limit, 1), 0);
	ck_assert_uint_ne(look().item.body, 0);
	test_content(&t, f, bytes, limit + 1);
	/* It does not come back by getting smaller, only by being emptied. */
	ck_assert_int_eq(truncate_to(5), 0);
	ck_assert_uint_ne(look().item.body, 0);
	test_content(&t, f, bytes, 5);
	ck_assert_int_eq(truncate_to(0), 0);
	ck_assert_uint_eq(look().item.body, 0);
	ck_assert_int_eq(test_write(&t, f, 0, bytes, 3), 0);
	ck_assert_uint_eq(look().item.body, 0);
	test_content(&t, f, bytes, 3);
}
END_TEST

START_TEST(growing_out_keeps_what_was_before_and_behind)
{
	uint64_t limit = inline_max();
	_cleanup_free_ uint8_t *bytes = pattern(limit, 1);
	_cleanup_free_ uint8_t *more = pattern(limit, 9);
	_cleanup_free_ uint8_t *expected = calloc(1, 2 * limit);

	ck_assert_int_eq(test_write(&t, f, 0, bytes, limit), 0);
	ck_assert_int_eq(test_write(&t, f, limit / 2, more, limit), 0);
	memcpy(expected, bytes, limit);
	memcpy(expected + limit / 2, more, limit);
	test_content(&t, f, expected, limit / 2 + limit);
	/* With a gap. */
	ck_assert_int_eq(truncate_to(0), 0);
	ck_assert_int_eq(test_write(&t, f, 0, bytes, 10), 0);
	ck_assert_int_eq(test_write(&t, f, 100000, more, 10), 0);
	ck_zeros(10, 100000 - 10);
	ck_assert(look().item.flags & ITEM_SPARSE);
}
END_TEST

START_TEST(overwriting_changes_only_its_range)
{
	size_t size = 200000;
	_cleanup_free_ uint8_t *bytes = pattern(size, 1);
	_cleanup_free_ uint8_t *more = pattern(70000, 5);
	static const struct {
		size_t at, size;
	} writes[] = {
		{ 0, 1 },      { 32767, 2 },	  { 32768, 1 },	  { 65535, 70000 },
		{ 199999, 1 }, { 100000, 32768 }, { 4096, 4096 },
	};

	ck_assert_int_eq(test_write(&t, f, 0, bytes, size), 0);
	for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
		ck_assert_int_eq(test_write(&t, f, writes[i].at, more, writes[i].size), 0);
		memcpy(bytes + writes[i].at, more, writes[i].size);
		test_content(&t, f, bytes, size);
	}
	ck_assert(!(look().item.flags & ITEM_SPARSE));
}
END_TEST

START_TEST(reading_ends_at_the_end)
{
	char buffer[16];

	ck_assert_uint_eq(read_at(0, buffer, sizeof(buffer)), 0);
	ck_assert_int_eq(test_write(&t, f, 0, "0123456789", 10), 0);
	ck_assert_uint_eq(read_at(8, buffer, sizeof(buffer)), 2);
	ck_assert_mem_eq(buffer, "89", 2);
	ck_assert_uint_eq(read_at(10, buffer, sizeof(buffer)), 0);
	ck_assert_uint_eq(read_at(UINT64_C(1) << 40, buffer, sizeof(buffer)), 0);
	ck_assert_uint_eq(read_at(INT64_MAX, buffer, sizeof(buffer)), 0);
	ck_assert_uint_eq(read_at(0, buffer, 0), 0);
}
END_TEST

START_TEST(appending_goes_to_the_end_there_is)
{
	struct inode i;

	for (unsigned k = 1; k <= 300; k++) {
		ck_assert_int_eq(
			file_write(t.namei, &t.where, f, 7, "0123456789", 10, true, false, &i), 0);
		ck_assert_uint_eq(i.item.size, k * 10);
		inode_release(&i);
	}
	ck_assert_uint_eq(look().item.size, 3000);
	for (int k = 0; k < 300; k++) {
		char buffer[10];

		ck_assert_uint_eq(read_at((uint64_t)k * 10, buffer, 10), 10);
		ck_assert_mem_eq(buffer, "0123456789", 10);
	}
}
END_TEST

START_TEST(times_and_privileges_of_a_write)
{
	struct attr_change mode = { .set = ATTR_MODE, .mode = 06777 };
	struct inode i;

	ck_assert_int_eq(file_setattr(t.namei, &t.where, f, &mode, NULL), 0);
	i = look();
	ck_assert_int_eq(namei_setxattr(t.namei, &t.root, &i.at, "security.capability", "cap", 3, 0), 0);
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(file_write(t.namei, &t.where, f, 0, "x", 1, false, false, NULL), 0);
	i = look();
	ck_assert_uint_eq(i.item.mode & 07777, 06777);
	ck_assert_int_eq(i.item.mtime.tv_sec, t.clock.realtime_ns / CLOCK_SECOND_NS);
	ck_assert_int_eq(i.item.ctime.tv_sec, t.clock.realtime_ns / CLOCK_SECOND_NS);
	ck_assert_int_lt(i.item.atime.tv_sec, i.item.mtime.tv_sec);
	ck_assert_int_eq(file_write(t.namei, &t.where, f, 0, "x", 1, false, true, NULL), 0);
	i = look();
	ck_assert_uint_eq(i.item.mode & 07777, 0777);
	{
		struct buffer b = { 0 };

		ck_assert_int_eq(namei_getxattr(t.namei, &i.at, "security.capability", &b), -ENODATA);
		buffer_release(&b);
	}
	/* Nothing written, nothing changed. */
	test_clock_advance(&t.clock, CLOCK_SECOND_NS);
	ck_assert_int_eq(file_write(t.namei, &t.where, f, 0, "", 0, false, true, NULL), 0);
	ck_assert_uint_eq(look().name_version, i.name_version);
}
END_TEST

START_TEST(only_files_have_contents)
{
	uint64_t d = test_mkdir(&t, ROOT, "d");
	uint64_t l = test_make(&t, NULL, ROOT, "l", S_IFLNK | 0777);
	struct attr_change change = { .set = ATTR_SIZE, .size = 5 };
	char c;
	size_t got;

	ck_assert_int_eq(test_write(&t, d, 0, "x", 1), -EISDIR);
	ck_assert_int_eq(test_write(&t, l, 0, "x", 1), -EINVAL);
	ck_assert_int_eq(file_read(t.namei, &t.where, d, 0, &c, 1, &got), -EISDIR);
	ck_assert_int_eq(file_setattr(t.namei, &t.where, d, &change, NULL), -EISDIR);
	ck_assert_int_eq(file_setattr(t.namei, &t.where, l, &change, NULL), -EINVAL);
	ck_assert_int_eq(file_allocate(t.namei, &t.where, d, 0, 0, 5), -EISDIR);
}
END_TEST

START_TEST(offsets_reach_to_the_last_one)
{
	uint64_t last = INT64_MAX;
	char c;

	ck_assert_int_eq(test_write(&t, f, last, "x", 1), -EFBIG);
	ck_assert_int_eq(test_write(&t, f, last + 1, "x", 1), -EFBIG);
	ck_assert_int_eq(test_write(&t, f, UINT64_MAX, "xy", 2), -EFBIG);
	ck_assert_int_eq(test_write(&t, f, last - 1, "x", 1), 0);
	ck_assert_uint_eq(look().item.size, last);
	ck_assert_uint_eq(read_at(last - 1, &c, 1), 1);
	ck_assert_int_eq(c, 'x');
	ck_assert_int_eq(truncate_to(last + 1), -EFBIG);
	ck_assert_int_eq(truncate_to(5), 0);
	ck_assert_int_eq(truncate_to(last), 0);
	ck_zeros(last - 100, 100);
	ck_assert_int_eq(truncate_to(0), 0);
}
END_TEST

START_TEST(big_offsets_cost_no_space)
{
	uint64_t bytes;
	struct inode i;

	ck_assert_int_eq(test_write(&t, f, 0, "head", 4), 0);
	ck_assert_int_eq(test_write(&t, f, 4 * GIB - 2, "tail", 4), 0);
	ck_zeros(4, 5000);
	ck_zeros(2 * GIB, 5000);
	ck_zeros(4 * GIB - 5002, 5000);
	i = look();
	ck_assert_uint_eq(i.item.size, 4 * GIB + 2);
	ck_assert_int_eq(namei_allocated(t.namei, &i, &bytes), 0);
	ck_assert_uint_le(bytes, MIB);
	ck_assert_uint_ge(bytes, 8);
}
END_TEST

/* ---- truncating --------------------------------------------------------------- */

START_TEST(cut_and_grown_again_reads_zeros)
{
	size_t sizes[] = { 0,	  1,	 100,	inline_max(), inline_max() + 1,
			   32768, 40000, 99999, 100000,	      MIB + 7 };
	_cleanup_free_ uint8_t *bytes = pattern(MIB + 8, 2);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			_cleanup_free_ uint8_t *expected = calloc(1, MIB + 8);

			if (sizes[k] > sizes[i])
				continue;
			memcpy(expected, bytes, sizes[k]);
			ck_assert_int_eq(truncate_to(0), 0);
			ck_assert_int_eq(test_write(&t, f, 0, bytes, sizes[i]), 0);
			ck_assert_int_eq(truncate_to(sizes[k]), 0);
			test_content(&t, f, bytes, sizes[k]);
			ck_assert_int_eq(truncate_to(MIB + 8), 0);
			test_content(&t, f, expected, MIB + 8);
		}
}
END_TEST

START_TEST(truncating_moves_mtime_unless_told)
{
	struct attr_change change = { .set = ATTR_SIZE | ATTR_MTIME, .size = 2, .mtime = { 5, 6 } };

	ck_assert_int_eq(test_write(&t, f, 0, "abc", 3), 0);
	test_clock_advance(&t.clock, 10 * CLOCK_SECOND_NS);
	ck_assert_int_eq(truncate_to(3), 0);
	ck_assert_int_eq(look().item.mtime.tv_sec, t.clock.realtime_ns / CLOCK_SECOND_NS);
	ck_assert_int_eq(file_setattr(t.namei, &t.where, f, &change, NULL), 0);
	ck_assert_int_eq(look().item.mtime.tv_sec, 5);
	ck_assert_int_eq(look().item.mtime.tv_nsec, 6);
	test_text(&t, f, "ab");
}
END_TEST

/* ---- holes -------------------------------------------------------------------- */

START_TEST(dense_files_have_no_holes)
{
	_cleanup_free_ uint8_t *bytes = pattern(200000, 2);
	uint64_t at, used;
	struct inode i;

	for (size_t size = 1; size <= 200000; size = size == 1 ? 200000 : size + 1) {
		ck_assert_int_eq(test_write(&t, f, 0, bytes, size), 0);
		ck_assert_int_eq(seek(0, true, &at), 0);
		ck_assert_uint_eq(at, 0);
		ck_assert_int_eq(seek(0, false, &at), 0);
		ck_assert_uint_eq(at, size);
		ck_assert_int_eq(seek(size - 1, true, &at), 0);
		ck_assert_uint_eq(at, size - 1);
		ck_assert_int_eq(seek(size, true, &at), -ENXIO);
		ck_assert_int_eq(seek(size, false, &at), -ENXIO);
		i = look();
		ck_assert_int_eq(namei_allocated(t.namei, &i, &used), 0);
		ck_assert_uint_ge(used, size);
	}
}
END_TEST

/* Whatever unit the engine has: no data is called a hole, and what is called data or hole alternates to the end. */
static void ck_map(uint64_t data_from, uint64_t data_to, uint64_t size)
{
	uint64_t at, hole;

	ck_assert_int_eq(seek(0, true, &at), 0);
	ck_assert_uint_le(at, data_from);
	ck_assert_uint_ge(at + 64 * KIB, data_from);
	ck_assert_int_eq(seek(data_from, true, &at), 0);
	ck_assert_uint_eq(at, data_from);
	ck_assert_int_eq(seek(data_from, false, &hole), 0);
	ck_assert_uint_ge(hole, util_min(data_to, size));
	ck_assert_uint_le(hole, util_min(data_to + 64 * KIB, size));
}

START_TEST(holes_are_found)
{
	_cleanup_free_ uint8_t *bytes = pattern(10000, 2);
	uint64_t at;

	ck_assert_int_eq(test_write(&t, f, 3 * MIB, bytes, 10000), 0);
	ck_assert_int_eq(truncate_to(9 * MIB), 0);
	ck_map(3 * MIB, 3 * MIB + 10000, 9 * MIB);
	ck_assert_int_eq(seek(4 * MIB, true, &at), -ENXIO);
	ck_assert_int_eq(seek(4 * MIB, false, &at), 0);
	ck_assert_uint_eq(at, 4 * MIB);
	ck_assert_int_eq(seek(9 * MIB - 1, false, &at), 0);
	ck_assert_uint_eq(at, 9 * MIB - 1);
	ck_assert_int_eq(seek(9 * MIB, false, &at), -ENXIO);
	/* Also in what was not yet put in its place, and in what was. */
	ck_assert_int_eq(store_checkpoint(t.store), 0);
	ck_map(3 * MIB, 3 * MIB + 10000, 9 * MIB);
	ck_assert_int_eq(test_write(&t, f, 6 * MIB, bytes, 10000), 0);
	ck_assert_int_eq(seek(4 * MIB, true, &at), 0);
	ck_assert_uint_le(at, 6 * MIB);
	ck_assert_uint_ge(at, 6 * MIB - 64 * KIB);
}
END_TEST

START_TEST(all_hole)
{
	uint64_t at, used;
	struct inode i;

	ck_assert_int_eq(truncate_to(10 * MIB), 0);
	ck_assert_int_eq(seek(0, true, &at), -ENXIO);
	ck_assert_int_eq(seek(0, false, &at), 0);
	ck_assert_uint_eq(at, 0);
	i = look();
	ck_assert_int_eq(namei_allocated(t.namei, &i, &used), 0);
	ck_assert_uint_eq(used, 0);
	ck_zeros(MIB - 5, 100);
}
END_TEST

/* ---- fallocate ----------------------------------------------------------------- */

static int allocate(int mode, uint64_t offset, uint64_t length)
{
	return file_allocate(t.namei, &t.where, f, mode, offset, length);
}

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

START_TEST(allocating_grows_or_not)
{
	ck_assert_int_eq(test_write(&t, f, 0, "abc", 3), 0);
	ck_assert_int_eq(allocate(FALLOC_FL_KEEP_SIZE, 0, 100000), 0);
	test_text(&t, f, "abc");
	ck_assert_int_eq(allocate(0, 0, 2), 0);
	test_text(&t, f, "abc");
	ck_assert_int_eq(allocate(0, 10, 90), 0);
	ck_assert_uint_eq(look().item.size, 100);
	ck_zeros(3, 97);
	ck_assert_int_eq(allocate(0, 0, 100000), 0);
	ck_assert_uint_eq(look().item.size, 100000);
	ck_zeros(3, 99997);
}
END_TEST

START_TEST(punching_and_zeroing)
{
	size_t size = 3 * MIB;
	_cleanup_free_ uint8_t *bytes = pattern(size, 4);
	static const struct {
		uint64_t at, length;
	} ranges[] = {
		{ 0, 1 },	    { 5, 10 },	    { 32768, 32768 },
		{ 100000, 200000 }, { MIB - 1, 2 }, { 2 * MIB, 2 * MIB },
	};

	for (int zero = 0; zero < 2; zero++) {
		ck_assert_int_eq(test_write(&t, f, 0, bytes, size), 0);
		for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
			ck_assert_int_eq(allocate(zero ? FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE : PUNCH,
						  ranges[i].at, ranges[i].length),
					 0);
			memset(bytes + ranges[i].at, 0, util_min(ranges[i].length, size - ranges[i].at));
			test_content(&t, f, bytes, size);
		}
	}
}
END_TEST

START_TEST(punching_gives_space_back)
{
	_cleanup_free_ uint8_t *bytes = pattern(2 * MIB, 4);
	uint64_t before, after, at;
	struct inode i;

	ck_assert_int_eq(test_write(&t, f, 0, bytes, 2 * MIB), 0);
	ck_assert_int_eq(allocate(PUNCH, 0, 4096), 0);
	i = look();
	ck_assert_int_eq(namei_allocated(t.namei, &i, &before), 0);
	ck_assert_int_eq(allocate(PUNCH, MIB / 2, MIB), 0);
	i = look();
	ck_assert_int_eq(namei_allocated(t.namei, &i, &after), 0);
	ck_assert_uint_le(after + MIB - 128 * KIB, before);
	ck_assert_int_eq(seek(MIB, false, &at), 0);
	ck_assert_uint_eq(at, MIB);
	ck_assert_int_eq(seek(MIB, true, &at), 0);
	ck_assert_uint_le(at, MIB + MIB / 2);
}
END_TEST

START_TEST(small_files_are_punched_too)
{
	ck_assert_int_eq(test_write(&t, f, 0, "0123456789", 10), 0);
	ck_assert_int_eq(allocate(PUNCH, 2, 3), 0);
	test_content(&t, f,
		     "01\0\0\0"
		     "56789",
		     10);
	ck_assert_int_eq(allocate(PUNCH, 8, 300), 0);
	test_content(&t, f,
		     "01\0\0\0"
		     "567\0\0",
		     10);
	ck_assert_int_eq(allocate(PUNCH, 10, 300), 0);
	ck_assert_int_eq(allocate(FALLOC_FL_ZERO_RANGE, 9, 3), 0);
	test_content(&t, f,
		     "01\0\0\0"
		     "567\0\0\0\0",
		     12);
	/* Zeroed and lengthened at once, by more than the memory that zeroing took. */
	ck_assert_int_eq(allocate(FALLOC_FL_ZERO_RANGE, 1, 900), 0);
	ck_assert_uint_eq(look().item.size, 901);
	ck_zeros(1, 900);
	ck_assert_int_eq(allocate(FALLOC_FL_ZERO_RANGE, 0, 100000), 0);
	ck_assert_uint_eq(look().item.size, 100000);
	ck_zeros(0, 100000);
}
END_TEST

START_TEST(allocating_refuses)
{
	ck_assert_int_eq(allocate(0, 0, 0), -EINVAL);
	ck_assert_int_eq(allocate(0, INT64_MAX, 1), -EFBIG);
	ck_assert_int_eq(allocate(0, 1, INT64_MAX), -EFBIG);
	ck_assert_int_eq(allocate(FALLOC_FL_PUNCH_HOLE, 0, 1), -EOPNOTSUPP);
	ck_assert_int_eq(allocate(FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP);
	ck_assert_int_eq(allocate(FALLOC_FL_INSERT_RANGE, 0, 4096), -EOPNOTSUPP);
	ck_assert_int_eq(allocate(0, 0, UINT64_C(1) << 60), -ENOSPC);
	ck_assert_int_eq(allocate(FALLOC_FL_KEEP_SIZE, 0, UINT64_C(1) << 60), -ENOSPC);
	ck_assert_uint_eq(look().item.size, 0);
}
END_TEST

/* ---- copying -------------------------------------------------------------------- */

static size_t copy(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset, size_t size)
{
	size_t total = 0, copied;

	do {
		ck_assert_int_eq(file_copy(t.namei, &t.where, from, from_offset + total, &t.where,
					   to, to_offset + total, size - total, &copied),
				 0);
		total += copied;
	} while (copied && total < size);
	return total;
}

START_TEST(copying_between_and_within)
{
	size_t size = 5 * MIB + 123, got;
	_cleanup_free_ uint8_t *bytes = pattern(size, 4);
	_cleanup_free_ uint8_t *expected = calloc(1, size + 1000);
	uint64_t g = test_file(&t, ROOT, "g", "");

	ck_assert_int_eq(test_write(&t, f, 0, bytes, size), 0);
	ck_assert_uint_eq(copy(f, 0, g, 1000, 2 * size), size);
	memcpy(expected + 1000, bytes, size);
	test_content(&t, g, expected, size + 1000);
	ck_assert_uint_eq(copy(f, size, g, 0, 100), 0);
	ck_assert_uint_eq(copy(f, 5, f, 100000, 99995), 99995);
	memcpy(bytes + 100000, bytes + 5, 99995);
	test_content(&t, f, bytes, size);
	ck_assert_int_eq(file_copy(t.namei, &t.where, f, 0, &t.where, f, 50, 100, &got), -EINVAL);
	ck_assert_int_eq(file_copy(t.namei, &t.where, f, 0, &t.where, g, INT64_MAX, 100, &got), -EFBIG);
}
END_TEST

/* ---- where it is ------------------------------------------------------------------ */

START_TEST(a_deleted_file_stays_writable)
{
	_cleanup_free_ uint8_t *bytes = pattern(100000, 4);

	ck_assert_int_eq(test_write(&t, f, 0, "before", 6), 0);
	test_remove(&t, ROOT, "f");
	ck_assert_int_eq(test_write(&t, f, 6, " after", 6), 0);
	test_text(&t, f, "before after");
	ck_assert_int_eq(test_write(&t, f, 0, bytes, 100000), 0);
	test_content(&t, f, bytes, 100000);
	ck_assert_int_eq(truncate_to(10), 0);
	test_content(&t, f, bytes, 10);
	test_consistent(&t);
	/* For the end's look at the tree. */
	f = test_file(&t, ROOT, "f", "");
}
END_TEST

START_TEST(a_destroyed_file_is_stale)
{
	struct empty_options options = { .directory = ROOT, .now = true };
	struct empty_result result;
	char c;
	size_t got;
	uint64_t at;

	ck_assert_int_eq(test_write(&t, f, 0, "x", 1), 0);
	test_remove(&t, ROOT, "f");
	ck_assert_int_eq(lifecycle_empty(t.lifecycle, &t.root, &options, &result), 0);
	ck_assert_uint_eq(result.entries, 1);
	ck_assert_int_eq(test_write(&t, f, 0, "x", 1), -ESTALE);
	ck_assert_int_eq(file_read(t.namei, &t.where, f, 0, &c, 1, &got), -ESTALE);
	ck_assert_int_eq(truncate_to(1), -ESTALE);
	ck_assert_int_eq(seek(0, true, &at), -ESTALE);
	ck_assert_int_eq(allocate(0, 0, 1), -ESTALE);
}
END_TEST

/* A locator that is behind: it names the place another file has by now, then none at all, then the right one. */
static bool locate_late(void *data, uint64_t id, struct place *ret_place)
{
	unsigned *calls = data;

	if (!t.where.locate(t.where.data, id, ret_place))
		return false;
	if (*calls < 4)
		strcpy(ret_place->name, *calls % 2 ? "nothing" : "other");
	++*calls;
	return true;
}

static bool locate_wrong(void *data, uint64_t id, struct place *ret_place)
{
	*ret_place = (struct place){ .directory = ROOT, .state = KEY_ACT, .name = "other" };
	return true;
}

START_TEST(a_late_locator_does_not_lead_to_another_file)
{
	struct attr_change change = { .set = ATTR_MODE, .mode = 0611 };
	uint64_t other = test_file(&t, ROOT, "other", "other");
	unsigned calls = 0;
	struct file_locator late = { locate_late, &calls };
	char buffer[10];
	size_t got;

	ck_assert_int_eq(file_write(t.namei, &late, f, 0, "mine", 4, false, false, NULL), 0);
	calls = 0;
	ck_assert_int_eq(file_read(t.namei, &late, f, 0, buffer, 10, &got), 0);
	ck_assert_uint_eq(got, 4);
	ck_assert_mem_eq(buffer, "mine", 4);
	calls = 0;
	ck_assert_int_eq(file_setattr(t.namei, &late, f, &change, NULL), 0);
	calls = 0;
	ck_assert_int_eq(file_setxattr(t.namei, &t.root, &late, f, "user.a", "1", 1, 0), 0);
	calls = 0;
	ck_assert_int_eq(file_link(t.namei, &t.root, &late, f, ROOT, "linked", NULL), 0);
	test_text(&t, other, "other");
	ck_assert_uint_eq(test_look(&t, ROOT, "other").item.mode, S_IFREG | 0644);
	ck_assert_uint_eq(test_look(&t, ROOT, "other").nlink, 1);
	ck_assert_uint_eq(test_look(&t, ROOT, "linked").item.id, f);
	ck_assert_uint_eq(look().item.mode, S_IFREG | 0611);
	/* One that never finds it. */
	ck_assert_int_eq(file_write(t.namei, &(struct file_locator){ locate_wrong, NULL }, f, 0,
				    "x", 1, false, false, NULL),
			 -ESTALE);
}
END_TEST

struct race {
	_Atomic bool stop;
	_Atomic unsigned moves;
};

static void *move_about(void *data)
{
	struct race *race = data;

	while (!race->stop) {
		ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "g", 0), 0);
		ck_assert_int_eq(test_rename(&t, ROOT, "g", ROOT, "f", 0), 0);
		race->moves++;
	}
	return NULL;
}

START_TEST(writers_and_a_renamer_lose_nothing)
{
	struct race race = { 0 };
	unsigned writes = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, move_about, &race), 0);
	while (writes < 1000 || race.moves < 100) {
		ck_assert_int_eq(
			file_write(t.namei, &t.where, f, 0, "0123456789", 10, true, false, NULL), 0);
		writes++;
	}
	race.stop = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(look().item.size, 10 * writes);
}
END_TEST

struct chase {
	_Atomic bool stop;
	_Atomic unsigned asked, moves;
};

static void *move_when_asked(void *data)
{
	struct chase *chase = data;

	while (!chase->stop) {
		if (chase->moves == chase->asked) {
			usleep(50);
			continue;
		}
		ck_assert_int_eq(chase->moves % 2 ? test_rename(&t, ROOT, "g", ROOT, "f", 0) :
						    test_rename(&t, ROOT, "f", ROOT, "g", 0),
				 0);
		chase->moves++;
	}
	return NULL;
}

/* Answers where the file is, but only when it has moved on; unless nothing can be moved. */
static bool locate_behind(void *data, uint64_t id, struct place *ret_place)
{
	struct chase *chase = data;

	if (!t.where.locate(t.where.data, id, ret_place))
		return false;
	chase->asked++;
	for (int k = 0; k < 100 && chase->moves != chase->asked; k++)
		usleep(1000);
	return true;
}

START_TEST(a_file_that_never_stands_still_is_found)
{
	struct chase chase = { 0 };
	struct file_locator late = { locate_behind, &chase };
	struct attr_change change = { .set = ATTR_MODE, .mode = 0600 };
	char buffer[4];
	size_t got = 0;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, move_when_asked, &chase), 0);
	ck_assert_int_eq(file_write(t.namei, &late, f, 0, "here", 4, false, false, NULL), 0);
	ck_assert_int_eq(file_read(t.namei, &late, f, 0, buffer, 4, &got), 0);
	ck_assert_uint_eq(got, 4);
	ck_assert_mem_eq(buffer, "here", 4);
	ck_assert_int_eq(file_setattr(t.namei, &late, f, &change, NULL), 0);
	chase.stop = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(look().item.mode, S_IFREG | 0600);
}
END_TEST

static void *append_many(void *data)
{
	for (int k = 0; k < 500; k++)
		ck_assert_int_eq(file_write(t.namei, &t.where, f, 0, data, 8, true, false, NULL), 0);
	return NULL;
}

START_TEST(appends_from_threads_do_not_overlap)
{
	char lines[4][9] = { "aaaaaaa\n", "bbbbbbb\n", "ccccccc\n", "ddddddd\n" };
	unsigned seen[4] = { 0 };
	pthread_t threads[4];

	for (int k = 0; k < 4; k++)
		ck_assert_int_eq(pthread_create(&threads[k], NULL, append_many, lines[k]), 0);
	for (int k = 0; k < 4; k++)
		ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
	ck_assert_uint_eq(look().item.size, 4 * 500 * 8);
	for (uint64_t at = 0; at < 4 * 500 * 8; at += 8) {
		char line[8];

		ck_assert_uint_eq(read_at(at, line, 8), 8);
		ck_assert(line[0] >= 'a' && line[0] <= 'd');
		ck_assert_mem_eq(line, lines[line[0] - 'a'], 8);
		seen[line[0] - 'a']++;
	}
	for (int k = 0; k < 4; k++)
		ck_assert_uint_eq(seen[k], 500);
}
END_TEST

START_TEST(contents_survive_reopening)
{
	_cleanup_free_ uint8_t *bytes = pattern(300000, 4);
	uint64_t small = test_file(&t, ROOT, "small", "inline"), at;

	ck_assert_int_eq(test_write(&t, f, 0, bytes, 300000), 0);
	ck_assert_int_eq(test_write(&t, f, 5 * MIB, bytes, 10), 0);
	test_tree_reopen(&t);
	test_text(&t, small, "inline");
	ck_assert_uint_eq(look().item.size, 5 * MIB + 10);
	ck_zeros(300000, 5 * MIB - 300000);
	ck_assert_int_eq(seek(MIB, false, &at), 0);
	ck_assert_uint_eq(at, MIB);
}
END_TEST

/* ---- faults ------------------------------------------------------------------------ */

static void write_all(void)
{
	_cleanup_free_ uint8_t *bytes = pattern(100000, 4);

	ck_assert_int_eq(test_write(&t, f, 0, "small", 5), 0);
	ck_assert_int_eq(test_write(&t, f, 0, bytes, 100000), 0);
	ck_assert_int_eq(file_write(t.namei, &t.where, f, 0, bytes, 1000, true, true, NULL), 0);
	ck_assert_int_eq(allocate(PUNCH, 0, 50000), 0);
	memset(bytes, 0, 50000);
	ck_assert_int_eq(truncate_to(90000), 0);
	test_content(&t, f, bytes, 90000);
	ck_assert_int_eq(truncate_to(0), 0);
}

START_TEST(a_conflict_at_any_write_is_overcome)
{
	begin(TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .conflict_at = (uint64_t)_i });
	write_all();
	test_faults(&t, NULL);
	end();
}
END_TEST

START_TEST(a_lost_answer_at_any_write_is_overcome)
{
	begin(TEST_MEMORY);
	test_faults(&t, &(struct store_faults){ .lost_answer_at = (uint64_t)_i });
	write_all();
	test_faults(&t, NULL);
	end();
}
END_TEST

START_TEST(no_space_changes_nothing)
{
	_cleanup_free_ uint8_t *bytes = pattern(100000, 4);

	begin(TEST_MEMORY);
	ck_assert_int_eq(test_write(&t, f, 0, bytes, 50000), 0);
	test_faults(&t, &(struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(test_write(&t, f, 10, bytes, 100000), -ENOSPC);
	test_content(&t, f, bytes, 50000);
	ck_assert_uint_eq(look().item.size, 50000);
	/* What gives space back works, and what takes none. */
	test_faults(&t, &(struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(file_setattr(t.namei, &t.where, f,
				      &(struct attr_change){ .set = ATTR_MODE, .mode = 0600 }, NULL),
			 0);
	test_faults(&t, &(struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(test_rename(&t, ROOT, "f", ROOT, "g", 0), 0);
	ck_assert_int_eq(test_rename(&t, ROOT, "g", ROOT, "f", 0), 0);
	test_faults(&t, &(struct store_faults){ .no_space_at = 1 });
	ck_assert_int_eq(truncate_to(10), 0);
	test_content(&t, f, bytes, 10);
	end();
}
END_TEST

/* A deleted file that waits only for the purge of it to be undone. */
static void purge_something(void)
{
	struct entry e;

	test_file(&t, ROOT, "purged", "text");
	test_clock_advance(&t.clock, 3600 * CLOCK_SECOND_NS);
	test_remove(&t, ROOT, "purged");
	ck_assert_int_eq(lifecycle_find(t.lifecycle, ROOT, "purged", &e), 0);
	ck_assert_int_eq(lifecycle_purge(t.lifecycle, &t.root, &e.at, false), 0);
	entry_release(&e);
}

START_TEST(whatever_grows_a_file_makes_room)
{
	begin(TEST_MEMORY);
	for (unsigned i = 0; i < 3; i++) {
		purge_something();
		test_faults(&t, &(struct store_faults){ .no_space_at = 1 });
		ck_assert_int_eq(i == 0 ? test_write(&t, f, 0, "text", 4) :
				 i == 1 ? truncate_to(100000) :
					  allocate(0, 0, 200000),
				 0);
		test_faults(&t, NULL);
	}
	ck_assert_uint_eq(look().item.size, 200000);
	end();
}
END_TEST

static void begin_memory(void)
{
	begin(TEST_MEMORY);
}

static void begin_sealed(void)
{
	begin(TEST_MEMORY_SEALED);
}

static void begin_local(void)
{
	begin(TEST_LOCAL);
}

static void add_engine(Suite *s, const char *name, void (*setup)(void))
{
	const TTest *tests[] = {
		written_is_read,
		small_content_is_inline_and_grows_out,
		growing_out_keeps_what_was_before_and_behind,
		overwriting_changes_only_its_range,
		reading_ends_at_the_end,
		appending_goes_to_the_end_there_is,
		times_and_privileges_of_a_write,
		only_files_have_contents,
		offsets_reach_to_the_last_one,
		big_offsets_cost_no_space,
		cut_and_grown_again_reads_zeros,
		truncating_moves_mtime_unless_told,
		dense_files_have_no_holes,
		holes_are_found,
		all_hole,
		allocating_grows_or_not,
		punching_and_zeroing,
		punching_gives_space_back,
		small_files_are_punched_too,
		allocating_refuses,
		copying_between_and_within,
		a_deleted_file_stays_writable,
		a_destroyed_file_is_stale,
		a_late_locator_does_not_lead_to_another_file,
		writers_and_a_renamer_lose_nothing,
		a_file_that_never_stands_still_is_found,
		appends_from_threads_do_not_overlap,
		contents_survive_reopening,
	};
	TCase *c = tcase_create(name);

	tcase_add_checked_fixture(c, setup, end);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(c, tests[i]);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
}

int main(void)
{
	Suite *s = suite_create("fs/file");
	TCase *c = tcase_create("faults");

	add_engine(s, "memory", begin_memory);
	add_engine(s, "sealed names", begin_sealed);
	add_engine(s, "local", begin_local);
	tcase_add_loop_test(c, a_conflict_at_any_write_is_overcome, 1, 8);
	tcase_add_loop_test(c, a_lost_answer_at_any_write_is_overcome, 1, 8);
	tcase_add_test(c, no_space_changes_nothing);
	tcase_add_test(c, whatever_grows_a_file_makes_room);
	tcase_set_timeout(c, 60);
	suite_add_tcase(s, c);
	return test_main(s);
}
