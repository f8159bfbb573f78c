/*
 * test-key.c - keys: their bytes (FORMAT.md), their order, and that parsing
 * takes what building makes and nothing else.
 */
#include "store/key.h"

#include <stdio.h>

#include "store/util.h"
#include "tests/lib/test.h"

static const struct key_codec ordered;
static const struct key_codec sealed = { true, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

static const struct key_codec *const codecs[] = { &ordered, &sealed };

static struct key item(const struct key_codec *c, uint64_t directory, enum key_state state,
		       const char *name, uint64_t seq)
{
	struct place at = { .directory = directory, .seq = seq, .state = state };
	struct key key;

	snprintf(at.name, sizeof(at.name), "%s", name);
	key_item(c, &at, &key);
	return key;
}

/* One key of every kind. */
#define KINDS 14
static void build_all(const struct key_codec *c, struct key keys[KINDS])
{
	size_t n = 0;

	keys[n++] = item(c, 258, KEY_ACT, "report.txt", 0);
	keys[n++] = item(c, 258, KEY_ARC, "report.txt", 5);
	keys[n++] = item(c, 258, KEY_DEL, "report.txt", 0x0102030405060708);
	key_shadow(c, 258, "sub", &keys[n++]);
	key_guard(258, &keys[n++]);
	key_link(259, &keys[n++]);
	key_xattr(260, &keys[n++]);
	key_trash(77, &keys[n++]);
	key_due(1000, 77, &keys[n++]);
	key_batch(65534, 78, &keys[n++]);
	key_meta("counters", &keys[n++]);
	key_body(300, 2, &keys[n++]);
	key_free_body(300, &keys[n++]);
	key_free_run(4, 65536, &keys[n++]);
	ck_assert_uint_eq(n, KINDS);
}

static bool is(const struct key *key, const char *bytes, size_t size, size_t partition_size)
{
	return key->size == size && key->partition_size == partition_size &&
	       !memcmp(key->bytes, bytes, size);
}

#define is_text(key, text, partition) is(key, text, sizeof(text) - 1, partition)

/* The format: these bytes can never change. */
START_TEST(test_keys_have_the_bytes_of_the_format)
{
	struct key k[KINDS];

	build_all(&ordered, k);
	ck_assert(is_text(&k[0],
			  "D\0\0\0\0\0\0\1\2"
			  "ACT#report.txt",
			  9));
	ck_assert(is_text(&k[1],
			  "D\0\0\0\0\0\0\1\2"
			  "ARC#report.txt/\0\0\0\0\0\0\0\5",
			  9));
	ck_assert(is_text(&k[2],
			  "D\0\0\0\0\0\0\1\2"
			  "DEL#report.txt/\1\2\3\4\5\6\7\10",
			  9));
	ck_assert(is_text(&k[3],
			  "D\0\0\0\0\0\0\1\2"
			  "SHD#sub",
			  9));
	ck_assert(is_text(&k[4], "G\0\0\0\0\0\0\1\2", 1));
	ck_assert(is_text(&k[5], "L\0\0\0\0\0\0\1\3", 1));
	ck_assert(is_text(&k[6], "X\0\0\0\0\0\0\1\4", 1));
	ck_assert(is_text(&k[7], "T\0\0\0\0\0\0\0\0\115", 2));
	ck_assert(is_text(&k[8], "E\0\0\0\0\0\0\0\3\350\0\0\0\0\0\0\0\115", 2));
	ck_assert(is_text(&k[9], "B\0\0\377\376\0\0\0\0\0\0\0\116", 1));
	ck_assert(is_text(&k[10], "Mcounters", 1));
	ck_assert(is_text(&k[11], "C\0\0\0\0\0\0\1\54\0\0\0\0\0\0\0\2", 9));
	ck_assert(is_text(&k[12], "Fb\0\0\0\0\0\0\1\54", 1));
	ck_assert(is_text(&k[13], "Fr\0\0\0\0\0\0\0\4\0\0\0\0\0\1\0\0", 1));
}
END_TEST

START_TEST(test_sealed_names_are_tokens)
{
	struct key a = item(&sealed, 20, KEY_DEL, "report.txt", 7),
		   b = item(&sealed, 20, KEY_DEL, "report.txt", 7);
	struct key other = item(&sealed, 20, KEY_DEL, "report.txu", 7);
	struct key_codec other_store = sealed;

	ck_assert_uint_eq(a.size, 9 + 4 + 16 + 1 + 8);
	ck_assert_mem_eq(a.bytes + 9, "DEL#", 4);
	ck_assert_uint_eq(a.bytes[9 + 4 + 16], '/');
	ck_assert_int_eq(key_compare(&a, &b), 0);
	ck_assert_int_ne(key_compare(&a, &other), 0);
	ck_assert_ptr_null(memmem(a.bytes, a.size, "report", 6));
	other_store.token_key[0] ^= 1;
	b = item(&other_store, 20, KEY_DEL, "report.txt", 7);
	ck_assert_int_ne(key_compare(&a, &b), 0);
}
END_TEST

START_TEST(test_parsing_undoes_building)
{
	const struct key_codec *c = codecs[_i];
	struct key keys[KINDS], again;
	struct key_parts p;

	build_all(c, keys);
	for (size_t i = 0; i < KINDS; i++) {
		ck_assert_int_eq(key_from_bytes(c, keys[i].bytes, keys[i].size, &again), 0);
		ck_assert_int_eq(key_compare(&again, &keys[i]), 0);
		ck_assert_uint_eq(again.partition_size, keys[i].partition_size);
	}
	ck_assert_int_eq(key_parse(c, keys[2].bytes, keys[2].size, &p), 0);
	ck_assert_int_eq(p.kind, KEY_KIND_ITEM);
	ck_assert_int_eq(p.state, KEY_DEL);
	ck_assert_uint_eq(p.id, 258);
	ck_assert_uint_eq(p.seq, 0x0102030405060708);
	ck_assert(key_name_matches(c, &p, "report.txt"));
	ck_assert(!key_name_matches(c, &p, "report.tx"));
	ck_assert(!key_name_matches(c, &p, "report.txtt"));
	ck_assert(!key_name_matches(c, &p, ""));
	ck_assert_int_eq(key_parse(c, keys[8].bytes, keys[8].size, &p), 0);
	ck_assert_int_eq(p.kind, KEY_KIND_DUE);
	ck_assert_int_eq(p.due_ns, 1000);
	ck_assert_uint_eq(p.seq, 77);
	ck_assert_int_eq(key_parse(c, keys[9].bytes, keys[9].size, &p), 0);
	ck_assert_uint_eq(p.uid, 65534);
	ck_assert_int_eq(key_parse(c, keys[13].bytes, keys[13].size, &p), 0);
	ck_assert_int_eq(p.kind, KEY_KIND_FREE_RUN);
	ck_assert_uint_eq(p.id, 4);
	ck_assert_uint_eq(p.seq, 65536);
}
END_TEST

/* Building again from what was parsed gives the same bytes: there is one way to write a key. */
static bool rebuild(const struct key_codec *c, const struct key_parts *p, struct key *ret_key)
{
	struct place at = { .directory = p->id, .seq = p->seq, .state = p->state };
	char name[KEY_NAME_MAX + 1] = { 0 };

	if (p->name && !(c->sealed_names && p->kind != KEY_KIND_META))
		memcpy(name, p->name, p->name_size);
	switch (p->kind) {
	case KEY_KIND_ITEM:
		memcpy(at.name, name, sizeof(name));
		key_item(&ordered, &at, ret_key);
		return !c->sealed_names;
	case KEY_KIND_SHADOW:
		key_shadow(&ordered, p->id, name, ret_key);
		return !c->sealed_names;
	case KEY_KIND_GUARD:
		key_guard(p->id, ret_key);
		return true;
	case KEY_KIND_LINK:
		key_link(p->id, ret_key);
		return true;
	case KEY_KIND_XATTR:
		key_xattr(p->id, ret_key);
		return true;
	case KEY_KIND_TRASH:
		key_trash(p->seq, ret_key);
		return true;
	case KEY_KIND_DUE:
		key_due(p->due_ns, p->seq, ret_key);
		return true;
	case KEY_KIND_BATCH:
		key_batch(p->uid, p->seq, ret_key);
		return true;
	case KEY_KIND_META:
		key_meta(name, ret_key);
		return true;
	case KEY_KIND_BODY:
		key_body(p->id, p->seq, ret_key);
		return true;
	case KEY_KIND_FREE_BODY:
		key_free_body(p->id, ret_key);
		return true;
	case KEY_KIND_FREE_RUN:
		key_free_run(p->id, p->seq, ret_key);
		return true;
	}
	return false;
}

START_TEST(test_no_body_has_so_many_groups)
{
	struct key_parts parts;
	struct key key;

	key_body(9, (UINT64_C(1) << 43) - 1, &key);
	ck_assert_int_eq(key_parse(&ordered, key.bytes, key.size, &parts), 0);
	key_body(9, UINT64_C(1) << 43, &key);
	ck_assert_int_eq(key_parse(&ordered, key.bytes, key.size, &parts), -EBADMSG);
}
END_TEST

/* Every flip of one bit and every length: refused, or another key that builds to just these bytes. */
START_TEST(test_damaged_keys_are_refused_or_are_other_keys)
{
	struct key keys[KINDS], damaged, again;
	struct key_parts parts;
	size_t refused = 0, taken = 0, wrong = 0;

	build_all(&ordered, keys);
	for (size_t i = 0; i < KINDS; i++)
		for (size_t bit = 0; bit < 8 * (size_t)keys[i].size; bit++) {
			damaged = keys[i];
			damaged.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (key_parse(&ordered, damaged.bytes, damaged.size, &parts) < 0) {
				refused++;
				continue;
			}
			taken++;
			wrong += !rebuild(&ordered, &parts, &again) || key_compare(&again, &damaged);
		}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(refused, 100);
	ck_assert_uint_gt(taken, 100);
}
END_TEST

START_TEST(test_cut_and_longer_keys_are_refused)
{
	const struct key_codec *c = codecs[_i];
	struct key keys[KINDS], again;
	struct key_parts parts;

	build_all(c, keys);
	for (size_t i = 0; i < KINDS; i++) {
		bool named = c == &ordered && (i == 0 || i == 3);

		for (size_t size = 0; size < keys[i].size; size++) {
			uint8_t *exact = malloc(size ? size : 1); /* of this size, so that a read past it is seen */
			int result;

			memcpy(exact, keys[i].bytes, size);
			result = key_parse(c, exact, size, &parts);
			/* A part of a name at the end of a key is a name. */
			if (!result)
				ck_assert(i == 10 || named);
			free(exact);
		}
		again = keys[i];
		again.bytes[again.size++] = 1;
		if (i != 10 && !named)
			ck_assert_int_eq(key_parse(c, again.bytes, again.size, &parts), -EBADMSG);
	}
}
END_TEST

START_TEST(test_hostile_keys_are_refused)
{
	static const struct {
		const char *bytes;
		size_t size;
	} bad[] = {
#define BAD(text) { text, sizeof(text) - 1 }
		BAD(""),
		BAD("D"),
		BAD("Z\0\0\0\0\0\0\0\1"),
		BAD("D\200\0\0\0\0\0\0\1ACT#x"), /* 2^63 */
		BAD("D\0\0\0\0\0\0\0\1ACT#"),
		BAD("D\0\0\0\0\0\0\0\1ACT#a/b"),
		BAD("D\0\0\0\0\0\0\0\1ACT#a\0b"),
		BAD("D\0\0\0\0\0\0\0\1act#x"),
		BAD("D\0\0\0\0\0\0\0\0DEL#/\0\0\0\0\0\0\0\1"),
		BAD("D\0\0\0\0\0\0\0\1DEL#x/\200\0\0\0\0\0\0\1"),
		BAD("D\0\0\0\0\0\0\0\1DEL#x#\0\0\0\0\0\0\0\1"),
		BAD("D\0\0\0\0\0\0\0\1SHD#"),
		BAD("G\200\0\0\0\0\0\0\1"),
		BAD("T\1\0\0\0\0\0\0\0\1"), /* no such shard */
		BAD("E\0\200\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1"),
		BAD("M"),
		BAD("Ma b"),
		BAD("Ma\177"),
		BAD("Fx\0\0\0\0\0\0\0\1"),
		BAD("Fb\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1"),
#undef BAD
	};
	uint8_t large[9 + 4 + 256];
	struct key_parts parts;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(key_parse(&ordered, (const uint8_t *)bad[i].bytes, bad[i].size,
					&parts) == -EBADMSG,
			      "%zu", i);
	memcpy(large, "D\0\0\0\0\0\0\0\1ACT#", 13);
	memset(large + 13, 'n', 256);
	ck_assert_int_eq(key_parse(&ordered, large, 13 + 255, &parts), 0);
	ck_assert_int_eq(key_parse(&ordered, large, 13 + 256, &parts), -EBADMSG);
	ck_assert_int_eq(key_parse(&sealed, large, 13 + 16, &parts), 0);
	ck_assert_int_eq(key_parse(&sealed, large, 13 + 15, &parts), -EBADMSG);
	ck_assert_int_eq(key_parse(&sealed, large, 13 + 17, &parts), -EBADMSG);
}
END_TEST

START_TEST(test_the_root_has_no_name)
{
	const struct key_codec *c = codecs[_i];
	struct key key = item(c, KEY_ID_NONE, KEY_ACT, "", 0);
	struct key_parts parts;

	ck_assert_int_eq(key_parse(c, key.bytes, key.size, &parts), 0);
	ck_assert_uint_eq(parts.id, KEY_ID_NONE);
	ck_assert(key_name_matches(c, &parts, ""));
}
END_TEST

/* ---- order and ranges --------------------------------------------------- */

static bool within(const struct key_range *r, const struct key *key)
{
	return key_compare(&r->from, key) <= 0 && key_compare(key, &r->to) < 0;
}

START_TEST(test_numbers_in_keys_sort_as_numbers)
{
	static const uint64_t seqs[] = {
		0, 1, 255, 256, 65535, UINT64_C(1) << 32, UINT64_C(1) << 62, INT64_MAX
	};
	struct key a, b;

	for (size_t i = 1; i < ARRAY_SIZE(seqs); i++) {
		key_trash(seqs[i - 1], &a);
		key_trash(seqs[i], &b);
		ck_assert_int_lt(key_compare(&a, &b), 0);
		key_due((int64_t)seqs[i - 1], INT64_MAX, &a);
		key_due((int64_t)seqs[i], 0, &b);
		ck_assert_int_lt(key_compare(&a, &b), 0);
		a = item(&ordered, seqs[i - 1], KEY_DEL, "zzz", 9);
		b = item(&ordered, seqs[i], KEY_ACT, "a", 0);
		ck_assert_int_lt(key_compare(&a, &b), 0);
	}
}
END_TEST

/* No name, whatever its bytes, falls out of the range of its state or into another. */
START_TEST(test_ranges_hold_every_name_of_their_state)
{
	const struct key_codec *c = codecs[_i];
	struct key_range live, deleted, shadows, directory, other;
	char name[KEY_NAME_MAX + 1] = { 0 };

	key_range_live(20, &live);
	key_range_deleted(20, &deleted);
	key_range_shadows(20, &shadows);
	key_range_directory(20, &directory);
	key_range_directory(21, &other);
	for (int byte = 1; byte < 256; byte++) {
		struct key a, d, s;

		if (byte == '/')
			continue;
		for (size_t size = 1; size <= KEY_NAME_MAX; size += 127) {
			memset(name, byte, size);
			name[size] = 0;
			a = item(c, 20, KEY_ACT, name, 0);
			d = item(c, 20, KEY_DEL, name, INT64_MAX);
			key_shadow(c, 20, name, &s);
			ck_assert(within(&live, &a) && !within(&live, &d) && !within(&live, &s));
			ck_assert(!within(&deleted, &a) && within(&deleted, &d) && !within(&deleted, &s));
			ck_assert(!within(&shadows, &a) && !within(&shadows, &d) && within(&shadows, &s));
			ck_assert(within(&directory, &a) && within(&directory, &d) &&
				  within(&directory, &s));
			ck_assert(!within(&other, &a) && !within(&other, &d) && !within(&other, &s));
		}
	}
}
END_TEST

START_TEST(test_deletions_of_a_name_stand_together)
{
	static const char *const others[] = { "a!", "a0", "aa", "a\1", "A", "b", "a.", "a@" };
	const struct key_codec *c = codecs[_i];
	struct key_range range;
	struct key key;

	key_range_deleted_name(c, 20, "a", &range);
	key = item(c, 20, KEY_DEL, "a", 1);
	ck_assert(within(&range, &key));
	key = item(c, 20, KEY_DEL, "a", INT64_MAX);
	ck_assert(within(&range, &key));
	key = item(c, 20, KEY_ACT, "a", 0);
	ck_assert(!within(&range, &key));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		key = item(c, 20, KEY_DEL, others[i], 1);
		ck_assert(!within(&range, &key));
	}
}
END_TEST

START_TEST(test_whole_partitions_are_ranges)
{
	struct key_range r;
	struct key key;

#define expect_all(range_call, key_call_low, key_call_high) \
	do {                                                \
		range_call;                                 \
		key_call_low;                               \
		ck_assert(within(&r, &key));                \
		key_call_high;                              \
		ck_assert(within(&r, &key));                \
		key_act(&ordered, 20, "x", &key);           \
		ck_assert(!within(&r, &key));               \
	} while (0)

	expect_all(key_range_guards(&r), key_guard(0, &key), key_guard(INT64_MAX, &key));
	expect_all(key_range_links(&r), key_link(0, &key), key_link(INT64_MAX, &key));
	expect_all(key_range_xattrs(&r), key_xattr(0, &key), key_xattr(INT64_MAX, &key));
	expect_all(key_range_meta(&r), key_meta("!", &key), key_meta("~~~~", &key));
	expect_all(key_range_body(9, &r), key_body(9, 0, &key), key_body(9, INT64_MAX, &key));
	expect_all(key_range_free(&r), key_free_body(0, &key), key_free_run(INT64_MAX, INT64_MAX, &key));
	expect_all(key_range_batches(7, &r), key_batch(7, 0, &key), key_batch(7, INT64_MAX, &key));
	expect_all(key_range_batches_all(&r), key_batch(0, 0, &key),
		   key_batch(UINT32_MAX, INT64_MAX, &key));
	expect_all(key_range_trash(0, UINT64_MAX, &r), key_trash(0, &key), key_trash(INT64_MAX, &key));
	expect_all(key_range_due(INT64_MAX, &r), key_due(0, 0, &key),
		   key_due(INT64_MAX, INT64_MAX, &key));
#undef expect_all
	key_range_batches(7, &r);
	key_batch(6, INT64_MAX, &key);
	ck_assert(!within(&r, &key));
	key_batch(8, 0, &key);
	ck_assert(!within(&r, &key));
	key_range_body(9, &r);
	key_body(10, 0, &key);
	ck_assert(!within(&r, &key));
}
END_TEST

START_TEST(test_due_until_includes_the_moment)
{
	struct key_range r;
	struct key key;

	key_range_due(1000, &r);
	key_due(1000, INT64_MAX, &key);
	ck_assert(within(&r, &key));
	key_due(1001, 0, &key);
	ck_assert(!within(&r, &key));
	key_range_due(-1, &r);
	key_due(0, 0, &key);
	ck_assert(!within(&r, &key));
}
END_TEST

START_TEST(test_a_range_of_the_trash_ends_before_its_end)
{
	struct key_range r;
	struct key key;

	key_range_trash(10, 20, &r);
	key_trash(10, &key);
	ck_assert(within(&r, &key));
	key_trash(19, &key);
	ck_assert(within(&r, &key));
	key_trash(20, &key);
	ck_assert(!within(&r, &key));
	key_trash(9, &key);
	ck_assert(!within(&r, &key));
	key_range_trash(20, 10, &r);
	ck_assert_int_eq(key_compare(&r.from, &r.to), 0);
}
END_TEST

START_TEST(test_only_bodies_and_free_space_are_private)
{
	struct key keys[KINDS];

	build_all(&ordered, keys);
	for (size_t i = 0; i < KINDS; i++)
		ck_assert_int_eq(key_is_private(&keys[i]), i >= 11);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/key");
	TCase *t = tcase_create("key");

	tcase_add_test(t, test_keys_have_the_bytes_of_the_format);
	tcase_add_test(t, test_sealed_names_are_tokens);
	tcase_add_loop_test(t, test_parsing_undoes_building, 0, 2);
	tcase_add_test(t, test_no_body_has_so_many_groups);
	tcase_add_test(t, test_damaged_keys_are_refused_or_are_other_keys);
	tcase_add_loop_test(t, test_cut_and_longer_keys_are_refused, 0, 2);
	tcase_add_test(t, test_hostile_keys_are_refused);
	tcase_add_loop_test(t, test_the_root_has_no_name, 0, 2);
	tcase_add_test(t, test_numbers_in_keys_sort_as_numbers);
	tcase_add_loop_test(t, test_ranges_hold_every_name_of_their_state, 0, 2);
	tcase_add_loop_test(t, test_deletions_of_a_name_stand_together, 0, 2);
	tcase_add_test(t, test_whole_partitions_are_ranges);
	tcase_add_test(t, test_due_until_includes_the_moment);
	tcase_add_test(t, test_a_range_of_the_trash_ends_before_its_end);
	tcase_add_test(t, test_only_bodies_and_free_space_are_private);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
