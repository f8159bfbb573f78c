/*
 * test-record.c - records: their bytes (FORMAT.md), that there is one encoding
 * of each, that damage never gets through as something it cannot be, and
 * transactions under construction.
 */
#include "store/record.h"

#include <stdio.h>
#include <sys/stat.h>

#include "store/record-kind.h"
#include "tests/lib/test.h"

static const struct key_codec codec;

/* ---- samples ------------------------------------------------------------ */

static struct item file(void)
{
	return (struct item){
		.id = 0x0102,
		.mode = S_IFREG | 0644,
		.uid = 1000,
		.gid = 1001,
		.size = 5,
		.atime = { 1, 999999999 },
		.mtime = { -2, 3 },
		.ctime = { INT64_C(1) << 40, 4 },
		.btime = { 5, 0 },
		.links_live = 1,
		.links_total = 1,
		.name = "report.txt",
		.content = (const uint8_t *)"hello",
		.content_size = 5,
	};
}

static struct item directory(void)
{
	struct item i = file();

	i.mode = S_IFDIR | S_ISVTX | 0755;
	i.flags = ITEM_SHADOWED | ITEM_POLICY | ITEM_ACL;
	i.size = 0;
	i.content = NULL;
	i.content_size = 0;
	i.directory = (struct item_directory){
		.subdirectories = 7,
		.trash_mask = 0750,
		.trash_until_ns = ITEM_FOREVER,
		.saved_batch = 99,
		.saved_mtime = { -1, 5 },
	};
	i.xattrs = (const uint8_t *)"user.a\0\1\0\0\0v";
	i.xattrs_size = 12;
	return i;
}

static struct item deleted(void)
{
	struct item i = file();

	i.flags = ITEM_DELETION;
	i.deletion = (struct deletion){
		.batch = 5,
		.replaced_by = 6,
		.expires_ns = 7,
		.destroy_ns = ITEM_FOREVER,
		.uid = 8,
		.gid = 9,
		.pid = 10,
		.cause = ITEM_REPLACED,
		.flags = DELETION_PURGED,
		.command = "rm",
	};
	return i;
}

static struct item link_record(void)
{
	struct item i = file();

	i.name[0] = 0;
	i.links_live = 2;
	i.links_total = 3;
	return i;
}

static struct guard guard(void)
{
	return (struct guard){ .at = { .directory = 20, .seq = 512, .state = KEY_DEL, .name = "d" } };
}

static struct shadow shadow(void)
{
	return (struct shadow){ .directory = 21, .name = "sub" };
}

static struct trash_row row(void)
{
	struct place at = { .directory = 20, .seq = 512, .state = KEY_DEL, .name = "d" };
	struct trash_row r = { .batch = 256, .uid = 1000, .cause = ITEM_REMOVED };

	key_item(&codec, &at, &r.key);
	return r;
}

static struct batch batch(void)
{
	return (struct batch){
		.seq = 1,
		.last_seq = 2,
		.count = 3,
		.bytes = 4,
		.restored = 9,
		.directory = 5,
		.uid = 6,
		.session = 7,
		.group = 8,
		.undone = true,
		.purge = true,
		.command = "fifteen letters",
	};
}

/* Encoded records of every kind, with what decodes and encodes each again. */
enum sample {
	FILE_ITEM,
	DIRECTORY_ITEM,
	DELETED_ITEM,
	LINK_ITEM,
	GUARD,
	SHADOW,
	TRASH,
	BATCH,
	COUNTERS,
	SAMPLES
};

static int encode_sample(int which, struct buffer *b)
{
	static const int64_t counters[STORE_COUNTERS_MAX] = { 1, -1, INT64_MAX, INT64_MIN };
	struct item items[] = { file(), directory(), deleted(), link_record() };
	struct guard g = guard();
	struct shadow s = shadow();
	struct trash_row t = row();
	struct batch a = batch();
	uint8_t *at;

	switch ((enum sample)which) {
	case FILE_ITEM:
	case DIRECTORY_ITEM:
	case DELETED_ITEM:
		return record_encode_item(&items[which], b);
	case LINK_ITEM:
		return record_encode_link(&items[which], b);
	case GUARD:
		return record_encode_guard(&g, b);
	case SHADOW:
		return record_encode_shadow(&s, b);
	case TRASH:
		return record_encode_trash(&t, b);
	case BATCH:
		return record_encode_batch(&a, b);
	case COUNTERS:
		at = buffer_append(b, NULL, RECORD_COUNTERS_SIZE);
		record_encode_counters(counters, at);
		return 0;
	default:
		return -EINVAL;
	}
}

/* Decodes as that kind and encodes what came out. */
static int recode_sample(int which, const uint8_t *bytes, size_t size, struct buffer *b)
{
	struct store_value value = { .version = 3, .attrs = bytes, .attrs_size = size };
	int64_t counters[STORE_COUNTERS_MAX];
	struct trash_row t;
	struct shadow s;
	struct batch a;
	struct guard g;
	struct item i;
	int result;

	switch ((enum sample)which) {
	case FILE_ITEM:
	case DIRECTORY_ITEM:
	case DELETED_ITEM:
	case LINK_ITEM:
		result = record_decode_item(&value, &i);
		if (result)
			return result;
		return record_is(&value, RECORD_LINK) ? record_encode_link(&i, b) :
							record_encode_item(&i, b);
	case GUARD:
		result = record_decode_guard(&value, &g);
		return result ? result : record_encode_guard(&g, b);
	case SHADOW:
		result = record_decode_shadow(&value, &s);
		return result ? result : record_encode_shadow(&s, b);
	case TRASH:
		result = record_decode_trash(&codec, &value, &t);
		return result ? result : record_encode_trash(&t, b);
	case BATCH:
		result = record_decode_batch(&value, &a);
		return result ? result : record_encode_batch(&a, b);
	case COUNTERS:
		result = record_decode_counters(&value, counters);
		if (!result)
			record_encode_counters(counters, buffer_append(b, NULL, RECORD_COUNTERS_SIZE));
		return result;
	default:
		return -EINVAL;
	}
}

static struct buffer sample(int which)
{
	struct buffer b = { 0 };

	ck_assert_int_eq(encode_sample(which, &b), 0);
	return b;
}

static bool same_bytes(const struct buffer *a, const struct buffer *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

/* ---- the format --------------------------------------------------------- */

/* These bytes can never change. */
START_TEST(test_a_file_has_the_bytes_of_the_format)
{
	static const char want[] = "\1\1\0\0"
				   "\244\201\0\0"
				   "\350\3\0\0\351\3\0\0\0\0\0\0"
				   "\377\311\232\73\3\0\0\0\4\0\0\0\0\0\0\0"
				   "\1\0\0\0\0\0\0\0\376\377\377\377\377\377\377\377"
				   "\0\0\0\0\0\1\0\0\5\0\0\0\0\0\0\0"
				   "\2\1\0\0\0\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
				   "\0\0\0\0\12report.txt";
	struct buffer b = sample(FILE_ITEM);

	ck_assert_uint_eq(b.size, sizeof(want) - 1);
	ck_assert_mem_eq(b.bytes, want, b.size);
	buffer_release(&b);
}
END_TEST

START_TEST(test_records_have_the_sizes_of_the_format)
{
	static const size_t sizes[SAMPLES] = {
		[FILE_ITEM] = 97 + 10,
		[DIRECTORY_ITEM] = 97 + 10 + 36 + 12,
		[DELETED_ITEM] = 97 + 10 + 61,
		[LINK_ITEM] = 97 + 8,
		[GUARD] = 2 + 1 + 8 + 8 + 1 + 1,
		[SHADOW] = 2 + 8 + 1 + 3,
		[TRASH] = 2 + 1 + 4 + 8 + 2 + 23,
		[BATCH] = 2 + 1 + 48 + 12 + 15,
		[COUNTERS] = 128,
	};

	for (int i = 0; i < SAMPLES; i++) {
		struct buffer b = sample(i);

		ck_assert_uint_eq(b.size, sizes[i]);
		buffer_release(&b);
	}
}
END_TEST

START_TEST(test_an_item_comes_back_as_it_was)
{
	struct buffer b = sample(DELETED_ITEM);
	struct store_value value = {
		.version = 42,
		.attrs = b.bytes,
		.attrs_size = b.size,
		.content = (const uint8_t *)"hello",
		.content_size = 5,
	};
	struct item want = deleted(), got;

	ck_assert_int_eq(record_decode_item(&value, &got), 0);
	ck_assert_uint_eq(got.version, 42);
	ck_assert_uint_eq(got.id, want.id);
	ck_assert_uint_eq(got.flags, want.flags);
	ck_assert_uint_eq(got.mode, want.mode);
	ck_assert_uint_eq(got.uid, want.uid);
	ck_assert_uint_eq(got.gid, want.gid);
	ck_assert_uint_eq(got.size, want.size);
	ck_assert_int_eq(got.mtime.tv_sec, -2);
	ck_assert_int_eq(got.mtime.tv_nsec, 3);
	ck_assert_int_eq(got.atime.tv_nsec, 999999999);
	ck_assert_str_eq(got.name, "report.txt");
	ck_assert_uint_eq(got.deletion.batch, 5);
	ck_assert_uint_eq(got.deletion.replaced_by, 6);
	ck_assert_int_eq(got.deletion.expires_ns, 7);
	ck_assert_int_eq(got.deletion.destroy_ns, ITEM_FOREVER);
	ck_assert_uint_eq(got.deletion.pid, 10);
	ck_assert_uint_eq(got.deletion.cause, ITEM_REPLACED);
	ck_assert_uint_eq(got.deletion.flags, DELETION_PURGED);
	ck_assert_str_eq(got.deletion.command, "rm");
	ck_assert_uint_eq(got.links_live, 1);
	ck_assert_ptr_null(got.xattrs);
	ck_assert_ptr_eq(got.content, value.content);
	ck_assert_uint_eq(got.content_size, 5);
	value.content = NULL;
	ck_assert_int_eq(record_decode_item(&value, &got), 0);
	ck_assert_ptr_null(got.content);
	buffer_release(&b);
}
END_TEST

START_TEST(test_a_directory_comes_back_as_it_was)
{
	struct buffer b = sample(DIRECTORY_ITEM);
	struct store_value value = { .attrs = b.bytes, .attrs_size = b.size };
	struct item got;

	ck_assert_int_eq(record_decode_item(&value, &got), 0);
	ck_assert_uint_eq(got.directory.subdirectories, 7);
	ck_assert_uint_eq(got.directory.trash_mask, 0750);
	ck_assert_int_eq(got.directory.trash_until_ns, ITEM_FOREVER);
	ck_assert_uint_eq(got.directory.saved_batch, 99);
	ck_assert_int_eq(got.directory.saved_mtime.tv_sec, -1);
	ck_assert_uint_eq(got.xattrs_size, 12);
	ck_assert_mem_eq(got.xattrs, "user.a\0\1\0\0\0v", 12);
	buffer_release(&b);
}
END_TEST

START_TEST(test_names_of_all_bytes_and_lengths_come_back)
{
	struct item want = file(), got;
	struct buffer b = { 0 };

	for (size_t size = 1; size <= KEY_NAME_MAX; size++) {
		struct store_value value;

		for (size_t i = 0; i < size; i++)
			want.name[i] = (char)(i + size == '/' || (i + size) % 256 == 0 ? 0xff : i + size);
		for (size_t i = 0; i < size; i++)
			if (want.name[i] == '/')
				want.name[i] = 1;
		want.name[size] = 0;
		buffer_reset(&b);
		ck_assert_int_eq(record_encode_item(&want, &b), 0);
		value = (struct store_value){ .attrs = b.bytes, .attrs_size = b.size };
		ck_assert_int_eq(record_decode_item(&value, &got), 0);
		ck_assert_str_eq(got.name, want.name);
	}
	buffer_release(&b);
}
END_TEST

/* ---- damage ------------------------------------------------------------- */

START_TEST(test_every_record_has_one_encoding)
{
	struct buffer b = sample(_i), again = { 0 };

	ck_assert_int_eq(recode_sample(_i, b.bytes, b.size, &again), 0);
	ck_assert(same_bytes(&b, &again));
	buffer_release(&b);
	buffer_release(&again);
}
END_TEST

START_TEST(test_a_flipped_bit_is_refused_or_is_another_record)
{
	struct buffer b = sample(_i), again = { 0 };
	size_t refused = 0, wrong = 0;

	for (size_t bit = 0; bit < 8 * b.size; bit++) {
		int result;

		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		buffer_reset(&again);
		result = recode_sample(_i, b.bytes, b.size, &again);
		refused += result == -EBADMSG;
		wrong += result != -EBADMSG && (result || !same_bytes(&b, &again));
		b.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_uint_eq(wrong, 0);
	/* At least the format and the kind. */
	ck_assert(_i == COUNTERS || refused >= 15);
	buffer_release(&b);
	buffer_release(&again);
}
END_TEST

START_TEST(test_a_cut_or_longer_record_is_refused)
{
	struct buffer b = sample(_i), again = { 0 };

	for (size_t size = 0; size < b.size; size++) {
		uint8_t *exact = malloc(size ? size : 1); /* of this size, so that a read past it is seen */

		memcpy(exact, b.bytes, size);
		ck_assert_int_eq(recode_sample(_i, exact, size, &again), -EBADMSG);
		free(exact);
	}
	buffer_append_u8(&b, 0);
	ck_assert_int_eq(recode_sample(_i, b.bytes, b.size, &again), -EBADMSG);
	buffer_release(&b);
	buffer_release(&again);
}
END_TEST

START_TEST(test_one_kind_is_not_read_as_another)
{
	for (int a = 0; a < COUNTERS; a++)
		for (int b = 0; b < SAMPLES; b++) {
			struct buffer bytes = sample(a), again = { 0 };

			if (a > LINK_ITEM ? a != b : b > LINK_ITEM)
				ck_assert_int_eq(recode_sample(b, bytes.bytes, bytes.size, &again),
						 -EBADMSG);
			buffer_release(&bytes);
			buffer_release(&again);
		}
}
END_TEST

/* Random bytes behind a good beginning. */
START_TEST(test_noise_is_never_taken_for_more_than_it_is)
{
	struct buffer again = { 0 };
	uint64_t x = 88172645463325252u;
	uint8_t bytes[300];
	size_t wrong = 0;

	for (int round = 0; round < 200000; round++) {
		size_t size = 2 + x % 298;
		int which = (int)((x >> 32) % SAMPLES), result;

		for (size_t i = 0; i < size; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			bytes[i] = round % 3 && x % 3 ? (uint8_t)(x >> 40) : 0;
		}
		bytes[0] = RECORD_FORMAT;
		bytes[1] = (uint8_t)(which < LINK_ITEM ? RECORD_ITEM : which - LINK_ITEM + RECORD_LINK);
		buffer_reset(&again);
		result = recode_sample(which, bytes, size, &again);
		wrong += result != -EBADMSG &&
			 (result || again.size != size || memcmp(again.bytes, bytes, size));
	}
	ck_assert_uint_eq(wrong, 0);
	buffer_release(&again);
}
END_TEST

START_TEST(test_content_must_fit_the_item)
{
	struct item items[] = { file(), directory(), file(), file(), file() };
	struct buffer b = { 0 };
	struct item got;

	items[1].size = 5;
	items[2].body = 7;
	items[3].flags = ITEM_REFERENCE;
	items[4].size = 4;
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		struct store_value value = { .content = (const uint8_t *)"hello", .content_size = 5 };

		buffer_reset(&b);
		ck_assert_int_eq(record_encode_item(&items[i], &b), 0);
		value.attrs = b.bytes;
		value.attrs_size = b.size;
		ck_assert_int_eq(record_decode_item(&value, &got), i ? -EBADMSG : 0);
		value.content_size = 0;
		ck_assert_int_eq(record_decode_item(&value, &got), 0);
	}
	buffer_release(&b);
}
END_TEST

START_TEST(test_what_cannot_be_is_not_encoded)
{
	struct buffer b = { 0 };
	struct item i;
	struct guard g;
	struct shadow s;
	struct batch a;

#define refuse(sample_of, change)                                      \
	do {                                                           \
		i = sample_of;                                         \
		change;                                                \
		ck_assert_int_eq(record_encode_item(&i, &b), -EINVAL); \
	} while (0)

	refuse(file(), i.id = 0);
	refuse(file(), i.id = UINT64_C(1) << 63);
	refuse(file(), i.size = UINT64_C(1) << 63);
	refuse(file(), i.body = UINT64_MAX);
	refuse(file(), i.flags = 1 << 7);
	refuse(file(), i.mode = 0644);
	refuse(file(), i.mode |= 1 << 16);
	refuse(file(), i.mtime.tv_nsec = 1000000000);
	refuse(file(), i.atime.tv_nsec = -1);
	refuse(file(), i.name[0] = 0);
	refuse(file(), i.name[0] = '/');
	refuse(directory(), i.directory.trash_mask = 01000);
	refuse(directory(), i.directory.trash_until_ns = -1);
	refuse(deleted(), i.deletion.cause = 0);
	refuse(deleted(), i.deletion.cause = 6);
	refuse(deleted(), i.deletion.expires_ns = -1);
	refuse(deleted(), i.deletion.flags = 8);
#undef refuse
	i = directory();
	ck_assert_int_eq(record_encode_link(&i, &b), -EINVAL);
	i = link_record();
	i.links_live = 4;
	ck_assert_int_eq(record_encode_link(&i, &b), -EINVAL);
	g = guard();
	g.at.seq = 0;
	ck_assert_int_eq(record_encode_guard(&g, &b), -EINVAL);
	s = shadow();
	s.name[0] = 0;
	ck_assert_int_eq(record_encode_shadow(&s, &b), -EINVAL);
	a = batch();
	a.seq = 0;
	ck_assert_int_eq(record_encode_batch(&a, &b), -EINVAL);
	ck_assert_uint_eq(b.size, 0);
	buffer_release(&b);
}
END_TEST

/* ---- lists of extended attributes --------------------------------------- */

static void set(struct buffer *list, const char *name, const char *value)
{
	struct buffer edited = { 0 };

	ck_assert_int_eq(record_xattr_edit(list->bytes, list->size, name, (const uint8_t *)value,
					   value ? strlen(value) : 0, &edited),
			 0);
	buffer_release(list);
	*list = edited;
}

/* The list as "name=value,name=value," */
static const char *text_of(const struct buffer *list)
{
	static char text[1000];
	size_t at = 0, value_size, used = 0;
	const uint8_t *value;
	const char *name;
	int result;

	text[0] = 0;
	while ((result = record_xattr_next(list->bytes, list->size, &at, &name, &value, &value_size)) > 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s=%.*s,", name,
					 (int)value_size, (const char *)value);
	ck_assert_int_eq(result, 0);
	return text;
}

START_TEST(test_attributes_are_set_replaced_and_removed)
{
	struct buffer list = { 0 };

	set(&list, "user.a", "1");
	set(&list, "user.b", "");
	set(&list, "user.ab", "3");
	ck_assert_str_eq(text_of(&list), "user.a=1,user.b=,user.ab=3,");
	set(&list, "user.a", "longer");
	ck_assert_str_eq(text_of(&list), "user.a=longer,user.b=,user.ab=3,");
	set(&list, "user.b", NULL);
	ck_assert_str_eq(text_of(&list), "user.a=longer,user.ab=3,");
	set(&list, "user.none", NULL);
	set(&list, "user.a", NULL);
	set(&list, "user.ab", NULL);
	ck_assert_uint_eq(list.size, 0);
	buffer_release(&list);
}
END_TEST

START_TEST(test_large_attributes_are_kept)
{
	struct buffer list = { 0 }, edited = { 0 };
	uint8_t *value = calloc(1, 65536), *got;
	size_t at = 0, size;
	const char *name;

	value[65535] = 7;
	ck_assert_int_eq(record_xattr_edit(NULL, 0, "user.large", value, 65536, &list), 0);
	ck_assert_int_eq(
		record_xattr_next(list.bytes, list.size, &at, &name, (const uint8_t **)&got, &size), 1);
	ck_assert_uint_eq(size, 65536);
	ck_assert_uint_eq(got[65535], 7);
	ck_assert_int_eq(record_xattr_edit(list.bytes, list.size, "", value, 1, &edited), -EINVAL);
	buffer_release(&list);
	buffer_release(&edited);
	free(value);
}
END_TEST

START_TEST(test_hostile_lists_are_refused)
{
	static const uint8_t good[] = "user.a\0\3\0\0\0abcuser.b\0\0\0\0\0";
	size_t size = sizeof(good) - 1;
	const uint8_t *value;
	const char *name;
	size_t value_size;

	for (size_t cut = 1; cut < size; cut++) {
		uint8_t *exact = malloc(cut);
		struct buffer edited = { 0 };
		size_t at = 0;
		int result;

		memcpy(exact, good, cut);
		do
			result = record_xattr_next(exact, cut, &at, &name, &value, &value_size);
		while (result > 0);
		ck_assert_int_eq(result, cut == 14 ? 0 : -EBADMSG);
		ck_assert_int_eq(record_xattr_edit(exact, cut, "user.c", good, 1, &edited),
				 cut == 14 ? 0 : -EBADMSG);
		buffer_release(&edited);
		free(exact);
	}
	for (size_t bit = 0; bit < 8 * size; bit++) {
		uint8_t *exact = malloc(size);
		size_t at = 0;

		memcpy(exact, good, size);
		exact[bit / 8] ^= (uint8_t)(1 << bit % 8);
		while (record_xattr_next(exact, size, &at, &name, &value, &value_size) > 0)
			ck_assert(name[0] && value + value_size <= exact + size);
		free(exact);
	}
}
END_TEST

/* ---- reading out of a store, and transactions ---------------------------- */

static struct store *store;
static struct test_clock now;

static void start(void)
{
	test_clock_init(&now);
	ck_assert_int_eq(store_open_memory(&now.clock, STORE_NAMES_SEALED, &store), 0);
}

static void stop(void)
{
	ck_assert_int_eq(store_close(store), 0);
}

static void commit(struct transaction *t)
{
	ck_assert_int_eq(transaction_commit(t, store, STORE_GROWING, NULL), 0);
	transaction_reset(t);
}

START_TEST(test_an_item_gets_the_name_of_its_place)
{
	struct place at = { .directory = 20, .state = KEY_ACT, .name = "renamed" };
	struct transaction t = { 0 };
	struct store_value value;
	struct item i = file();

	start();
	transaction_put_item(&t, store, &at, &i, 0);
	commit(&t);
	ck_assert_int_eq(record_get_item(store, &at, false, &value, &i), 0);
	ck_assert_str_eq(i.name, "renamed");
	ck_assert_uint_eq(i.content_size, 5);
	ck_assert_mem_eq(i.content, "hello", 5);
	ck_assert_uint_eq(i.version, value.version);
	transaction_put_item(&t, store, &at, &i, i.version);
	commit(&t);
	store_value_release(&value);
	transaction_release(&t);
	stop();
}
END_TEST

/* Puts bytes that belong to one place under the key of another. */
START_TEST(test_a_record_in_the_wrong_place_is_damage)
{
	struct place at = { .directory = 20, .state = KEY_ACT, .name = "other" };
	struct transaction t = { 0 };
	struct store_value value;
	struct item i = file(), d = deleted();
	struct buffer b = { 0 };
	struct shadow s;
	struct key key;
	uint64_t version;

	start();
	ck_assert_int_eq(record_encode_item(&i, &b), 0);
	key_item(store_codec(store), &at, &key);
	transaction_put(&t, &key, b.bytes, b.size, "hello", 5, STORE_ANY, 0);
	key_link(77, &key);
	transaction_put(&t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	buffer_reset(&b);
	ck_assert_int_eq(record_encode_item(&d, &b), 0);
	strcpy(at.name, d.name);
	key_item(store_codec(store), &at, &key);
	transaction_put(&t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	s = shadow();
	buffer_reset(&b);
	ck_assert_int_eq(record_encode_shadow(&s, &b), 0);
	key_shadow(store_codec(store), 20, "not sub", &key);
	transaction_put(&t, &key, b.bytes, b.size, NULL, 0, STORE_ANY, 0);
	commit(&t);
	ck_assert_int_eq(record_get_item(store, &at, false, &value, &i), -EBADMSG); /* deleted, in a live place */
	strcpy(at.name, "other");
	ck_assert_int_eq(record_get_item(store, &at, false, &value, &i), -EBADMSG);
	ck_assert_int_eq(record_get_link(store, 77, false, &value, &i), -EBADMSG);
	ck_assert_int_eq(record_get_shadow(store, 20, "not sub", &s, &version), -EBADMSG);
	transaction_release(&t);
	buffer_release(&b);
	stop();
}
END_TEST

START_TEST(test_rows_tell_place_and_item)
{
	struct place at = { .directory = 20, .seq = 512, .state = KEY_DEL, .name = "gone" }, got_at;
	struct store_query query = { 0 };
	struct transaction t = { 0 };
	struct item i = deleted(), got;
	struct store_page page;

	start();
	transaction_put_item(&t, store, &at, &i, 0);
	commit(&t);
	key_range_deleted(20, &query.range);
	ck_assert_int_eq(store_query(store, &query, &page), 0);
	ck_assert_uint_eq(page.count, 1);
	ck_assert_int_eq(record_row_item(store, &page.rows[0], &got_at, &got), 0);
	ck_assert_str_eq(got_at.name, "gone");
	ck_assert_uint_eq(got_at.seq, 512);
	ck_assert_uint_eq(got_at.directory, 20);
	ck_assert_int_eq(got_at.state, KEY_DEL);
	ck_assert_uint_eq(got.deletion.batch, 5);
	page.rows[0].damaged = true;
	ck_assert_int_eq(record_row_item(store, &page.rows[0], &got_at, &got), -EBADMSG);
	store_page_release(&page);
	transaction_release(&t);
	stop();
}
END_TEST

START_TEST(test_all_records_go_through_a_store)
{
	struct trash_row r, got_row;
	struct transaction t = { 0 };
	struct guard g = guard(), got_guard;
	struct shadow s = shadow(), got_shadow;
	struct batch b = batch(), got_batch;
	struct item l = link_record(), got_item;
	int64_t counters[STORE_COUNTERS_MAX];
	struct place at = { .directory = 20, .seq = 512, .state = KEY_DEL, .name = "d" };
	struct store_value value;
	const uint8_t *list;
	uint64_t version;
	size_t size;

	start();
	r = row();
	key_item(store_codec(store), &at, &r.key);
	ck_assert_int_eq(record_get_guard(store, 30, &got_guard), STORE_ABSENT);
	ck_assert_int_eq(record_get_xattrs(store, 30, &value, &list, &size), STORE_ABSENT);
	ck_assert_int_eq(record_get_counters(store, counters), 0);
	ck_assert_int_eq(counters[0], 0);
	transaction_put_guard(&t, 30, &g, 0);
	transaction_put_shadow(&t, store, 20, &s, 0);
	transaction_put_trash(&t, 512, &r, 0);
	transaction_put_due(&t, 1000, 512, &r, 0);
	transaction_put_batch(&t, &b, 0);
	transaction_put_link(&t, &l, 0);
	transaction_put_xattrs(&t, 30, (const uint8_t *)"user.a\0\1\0\0\0v", 12);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 2);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	transaction_count_add(&t, COUNTER_RESTORED, -4);
	ck_assert_uint_eq(transaction_count(&t), 8);
	commit(&t);
	ck_assert_int_eq(record_get_guard(store, 30, &got_guard), 0);
	ck_assert_str_eq(got_guard.at.name, "d");
	ck_assert_uint_ne(got_guard.version, 0);
	ck_assert_int_eq(record_get_shadow(store, 20, "sub", &got_shadow, &version), 0);
	ck_assert_uint_eq(got_shadow.directory, 21);
	ck_assert_uint_eq(version, got_guard.version);
	ck_assert_int_eq(record_get_trash(store, 512, &got_row, &version), 0);
	ck_assert_int_eq(key_compare(&got_row.key, &r.key), 0);
	ck_assert_uint_eq(got_row.key.partition_size, r.key.partition_size);
	ck_assert_int_eq(record_get_batch(store, 6, 1, &got_batch), 0);
	ck_assert_str_eq(got_batch.command, "fifteen letters");
	ck_assert(got_batch.undone && got_batch.purge);
	ck_assert_int_eq(record_get_link(store, 0x0102, false, &value, &got_item), 0);
	ck_assert_uint_eq(got_item.links_live, 2);
	ck_assert_uint_eq(got_item.links_total, 3);
	store_value_release(&value);
	ck_assert_int_eq(record_get_xattrs(store, 30, &value, &list, &size), 0);
	ck_assert_uint_eq(size, 12);
	ck_assert_mem_eq(list, "user.a\0\1\0\0\0v", 12);
	store_value_release(&value);
	ck_assert_int_eq(record_get_counters(store, counters), 0);
	ck_assert_int_eq(counters[COUNTER_LIVE_ITEMS], 3);
	ck_assert_int_eq(counters[COUNTER_RESTORED], -4);
	transaction_release(&t);
	stop();
}
END_TEST

START_TEST(test_an_item_read_without_content_cannot_be_put)
{
	struct place at = { .directory = 20, .state = KEY_ACT, .name = "a" };
	struct transaction t = { 0 };
	struct store_value value;
	struct item i = file();

	start();
	transaction_put_item(&t, store, &at, &i, 0);
	commit(&t);
	ck_assert_int_eq(record_get_item(store, &at, true, &value, &i), 0);
	transaction_put_item(&t, store, &at, &i, i.version);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), -EINVAL);
	transaction_reset(&t);
	store_value_release(&value);
	ck_assert_int_eq(record_get_item(store, &at, false, &value, &i), 0);
	ck_assert_uint_eq(i.content_size, 5);
	store_value_release(&value);
	transaction_release(&t);
	stop();
}
END_TEST

START_TEST(test_state_and_deletion_must_agree)
{
	struct place act = { .directory = 20, .state = KEY_ACT, .name = "a" };
	struct place del = { .directory = 20, .state = KEY_DEL, .seq = 1, .name = "a" };
	struct item live = file(), gone = deleted();
	struct transaction t = { 0 };

	start();
	transaction_put_item(&t, store, &act, &gone, 0);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), -EINVAL);
	transaction_reset(&t);
	transaction_put_item(&t, store, &del, &live, 0);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), -EINVAL);
	transaction_release(&t);
	stop();
}
END_TEST

/* The caller's memory may change between collecting and committing. */
START_TEST(test_a_transaction_owns_its_bytes)
{
	struct transaction t = { 0 };
	struct store_value value;
	char attrs[100], name[8];
	struct key key;

	start();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 90; i++) {
			snprintf(name, sizeof(name), "f%d", i);
			memset(attrs, 'a' + i % 26, sizeof(attrs));
			key_act(store_codec(store), 20, name, &key);
			transaction_put(&t, &key, attrs, sizeof(attrs), attrs, (size_t)i, STORE_ANY, 0);
			memset(&key, 0, sizeof(key));
			memset(attrs, 0, sizeof(attrs));
		}
		commit(&t);
	}
	for (int i = 0; i < 90; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		key_act(store_codec(store), 20, name, &key);
		ck_assert_int_eq(store_get(store, &key, false, &value), 0);
		ck_assert_uint_eq(value.attrs_size, sizeof(attrs));
		ck_assert_uint_eq(value.attrs[99], 'a' + i % 26);
		ck_assert_uint_eq(value.content_size, i);
		store_value_release(&value);
	}
	transaction_release(&t);
	stop();
}
END_TEST

START_TEST(test_the_same_transaction_can_be_tried_again)
{
	struct store_faults faults = { .conflict_at = 1 };
	struct transaction t = { 0 };
	struct key key;
	int64_t counters[STORE_COUNTERS_MAX];

	start();
	key_act(store_codec(store), 20, "a", &key);
	transaction_put(&t, &key, "x", 1, NULL, 0, STORE_IF_ABSENT, 0);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	store_memory_inject(store, &faults);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), STORE_CONFLICT);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), 0);
	ck_assert_int_eq(record_get_counters(store, counters), 0);
	ck_assert_int_eq(counters[COUNTER_LIVE_ITEMS], 1);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), STORE_CONFLICT);
	transaction_release(&t);
	transaction_release(&t);
	transaction_release(NULL);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/record");
	TCase *t = tcase_create("record");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_file_has_the_bytes_of_the_format);
	tcase_add_test(t, test_records_have_the_sizes_of_the_format);
	tcase_add_test(t, test_an_item_comes_back_as_it_was);
	tcase_add_test(t, test_a_directory_comes_back_as_it_was);
	tcase_add_test(t, test_names_of_all_bytes_and_lengths_come_back);
	tcase_add_loop_test(t, test_every_record_has_one_encoding, 0, SAMPLES);
	tcase_add_loop_test(t, test_a_flipped_bit_is_refused_or_is_another_record, 0, SAMPLES);
	tcase_add_loop_test(t, test_a_cut_or_longer_record_is_refused, 0, SAMPLES);
	tcase_add_test(t, test_one_kind_is_not_read_as_another);
	tcase_add_test(t, test_noise_is_never_taken_for_more_than_it_is);
	tcase_add_test(t, test_content_must_fit_the_item);
	tcase_add_test(t, test_what_cannot_be_is_not_encoded);
	tcase_add_test(t, test_attributes_are_set_replaced_and_removed);
	tcase_add_test(t, test_large_attributes_are_kept);
	tcase_add_test(t, test_hostile_lists_are_refused);
	tcase_add_test(t, test_an_item_gets_the_name_of_its_place);
	tcase_add_test(t, test_a_record_in_the_wrong_place_is_damage);
	tcase_add_test(t, test_rows_tell_place_and_item);
	tcase_add_test(t, test_all_records_go_through_a_store);
	tcase_add_test(t, test_an_item_read_without_content_cannot_be_put);
	tcase_add_test(t, test_state_and_deletion_must_agree);
	tcase_add_test(t, test_a_transaction_owns_its_bytes);
	tcase_add_test(t, test_the_same_transaction_can_be_tried_again);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
