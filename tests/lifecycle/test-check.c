/*
 * test-check.c - `check` finds nothing in a sound store and names each fault that
 * is planted in one. The store is put together by hand, with every kind of
 * record in it, so that each can be spoilt by itself; names ordered and sealed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lifecycle/lifecycle.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define BODY_SIZE 70000
#define FAULTS_MAX 16

static struct test_clock clock_;
static struct store *store;
static struct transaction t;

/* What stands in the sound store; see build(). */
static struct {
	uint64_t dir, sub, gone_dir; /* /dir, /dir/sub; /dir/gone-dir, deleted */
	uint64_t small, big, linked, gone, old; /* items */
	uint64_t body;
	uint64_t batch, gone_seq, gone_dir_seq;
	int64_t due;
} at;

static struct {
	size_t count;
	char path[FAULTS_MAX][256];
	char text[FAULTS_MAX][512];
} told;

/* ---- putting things into the store --------------------------------------- */

static void commit(void)
{
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, NULL), 0);
	transaction_reset(&t);
}

static uint64_t new_id(void)
{
	uint64_t id;

	ck_assert_int_eq(store_new_id(store, &id), 0);
	return id;
}

static uint64_t new_seq(void)
{
	uint64_t seq;

	ck_assert_int_eq(store_new_seq(store, &seq), 0);
	return seq;
}

static struct place place(uint64_t directory, const char *name, uint64_t seq)
{
	struct place p = { .directory = directory, .seq = seq, .state = seq ? KEY_DEL : KEY_ACT };

	snprintf(p.name, sizeof(p.name), "%s", name);
	return p;
}

static struct item new_item(uint64_t id, uint32_t mode)
{
	return (struct item){
		.id = id,
		.mode = mode,
		.links_live = 1,
		.links_total = 1,
		.directory.trash_mask = S_ISDIR(mode) ? 0777 : 0,
		.content = (const uint8_t *)"",
	};
}

static void put_guard(uint64_t directory, const struct place *where)
{
	struct guard guard = { .at = *where };

	transaction_put_guard(&t, directory, &guard, 0);
}

static void put_live(const struct item *item, uint64_t directory, const char *name)
{
	struct place p = place(directory, name, 0);

	transaction_put_item(&t, store, &p, item, 0);
	if (S_ISDIR(item->mode))
		put_guard(item->id, &p);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	if (S_ISREG(item->mode) && !(item->flags & ITEM_REFERENCE))
		transaction_count_add(&t, COUNTER_LIVE_BYTES, (int64_t)item->size);
}

static void put_row(const struct place *p, const struct deletion *d, int64_t due)
{
	struct trash_row row = { .batch = d->batch, .uid = d->uid, .cause = d->cause };

	key_item(store_codec(store), p, &row.key);
	transaction_put_due(&t, due, p->seq, &row, 0);
	transaction_put_trash(&t, p->seq, &row, 0);
}

static void put_deleted(struct item *item, uint64_t directory, const char *name, uint64_t seq)
{
	struct place p = place(directory, name, seq);

	item->flags |= ITEM_DELETION;
	item->deletion = (struct deletion){
		.batch = at.batch, .expires_ns = at.due, .destroy_ns = at.due, .uid = 7, .cause = ITEM_REMOVED
	};
	transaction_put_item(&t, store, &p, item, 0);
	if (S_ISDIR(item->mode))
		put_guard(item->id, &p);
	put_row(&p, &item->deletion, at.due);
	transaction_count_add(&t, COUNTER_TRASH_ITEMS, 1);
	if (S_ISREG(item->mode) && !(item->flags & ITEM_REFERENCE))
		transaction_count_add(&t, COUNTER_TRASH_BYTES, (int64_t)item->size);
}

static void put_batch(uint64_t last_seq, uint64_t count, uint64_t expect)
{
	struct batch batch = {
		.seq = at.batch, .last_seq = last_seq, .count = count, .uid = 7, .directory = at.dir
	};

	transaction_put_batch(&t, &batch, expect);
}

static void build_directories(void)
{
	struct item dir = new_item(at.dir = new_id(), S_IFDIR | 0755);
	struct item sub = new_item(at.sub = new_id(), S_IFDIR | 0755);
	struct shadow shadow = { .directory = at.dir, .name = "dir" };
	struct place root_at = { .directory = KEY_ID_NONE, .state = KEY_ACT };
	struct store_value value;
	struct item root;

	ck_assert_int_eq(record_get_item(store, &root_at, false, &value, &root), 0);
	root.directory.subdirectories = 1;
	transaction_put_item(&t, store, &root_at, &root, root.version);
	dir.flags = ITEM_SHADOWED;
	dir.directory.subdirectories = 1;
	put_live(&dir, KEY_ID_ROOT, "dir");
	put_live(&sub, at.dir, "sub");
	transaction_put_shadow(&t, store, KEY_ID_ROOT, &shadow, 0);
	commit();
	store_value_release(&value);
}

static void build_files(void)
{
	static uint8_t bytes[BODY_SIZE];
	struct item small = new_item(at.small = new_id(), S_IFREG | 0644);
	struct item big = new_item(at.big = new_id(), S_IFREG | 0644);
	struct item link = new_item(at.linked = new_id(), S_IFREG | 0644);
	struct item reference = link;
	struct buffer xattrs = { 0 };

	small.size = small.content_size = 5;
	small.content = (const uint8_t *)"small";
	small.flags = ITEM_XATTR_APART;
	ck_assert_int_eq(record_xattr_edit(NULL, 0, "user.a", (const uint8_t *)"b", 1, &xattrs), 0);
	transaction_put_xattrs(&t, at.small, xattrs.bytes, xattrs.size);
	put_live(&small, at.dir, "small");

	memset(bytes, 'b', sizeof(bytes));
	big.size = BODY_SIZE;
	big.body = at.body = new_id();
	transaction_body_write(&t, at.body, 0, bytes, BODY_SIZE / 2);
	transaction_body_write(&t, at.body, BODY_SIZE / 2, bytes, BODY_SIZE / 2);
	put_live(&big, at.dir, "big");

	reference.flags = ITEM_REFERENCE;
	link.size = link.content_size = 4;
	link.content = (const uint8_t *)"link";
	link.links_live = link.links_total = 2;
	transaction_put_link(&t, &link, 0);
	put_live(&reference, at.dir, "one");
	put_live(&reference, KEY_ID_ROOT, "two");
	transaction_count_add(&t, COUNTER_LIVE_BYTES, 4);
	commit();
	buffer_release(&xattrs);
}

static void build_deleted(void)
{
	struct item gone, gone_dir, old;

	at.due = clock_.realtime_ns + 3600 * CLOCK_SECOND_NS;
	at.batch = new_seq();
	at.gone_seq = new_seq();
	at.gone_dir_seq = new_seq();
	gone = new_item(at.gone = new_id(), S_IFREG | 0600);
	gone_dir = new_item(at.gone_dir = new_id(), S_IFDIR | 0700);
	old = new_item(at.old = new_id(), S_IFREG | 0600);
	gone.size = gone.content_size = 3;
	gone.content = (const uint8_t *)"old";
	put_deleted(&gone, at.dir, "gone", at.gone_seq);
	put_deleted(&gone_dir, at.dir, "gone-dir", at.gone_dir_seq);
	put_live(&old, at.gone_dir, "still-here");
	put_batch(at.gone_dir_seq, 2, 0);
	commit();
}

static void setup_names(enum store_names names)
{
	test_clock_init(&clock_);
	memset(&told, 0, sizeof(told));
	ck_assert_int_eq(store_open_memory(&clock_.clock, names, &store), 0);
	ck_assert_int_eq(tree_format(store, 0755, 0, 0), 0);
	build_directories();
	build_files();
	build_deleted();
}

static void setup(void)
{
	setup_names(STORE_NAMES_ORDERED);
}

static void setup_sealed(void)
{
	setup_names(STORE_NAMES_SEALED);
}

static void teardown(void)
{
	transaction_release(&t);
	store_close(store);
}

/* ---- checking --------------------------------------------------------------- */

static void hear(void *data, const char *path, const char *text)
{
	if (told.count < FAULTS_MAX) {
		snprintf(told.path[told.count], sizeof(told.path[0]), "%s", path);
		snprintf(told.text[told.count], sizeof(told.text[0]), "%s", text);
	}
	told.count++;
}

static struct check_result check_it(void)
{
	struct check_result result = { 0 };

	told.count = 0;
	ck_assert_int_eq(lifecycle_check(store, hear, NULL, NULL, &result), 0);
	ck_assert_uint_eq(result.problems, told.count);
	return result;
}

/* No damage of the disk does these; which of two is the true one cannot be told. */
static bool is_beyond_mending(const char *words)
{
	static const char *const beyond[] = { "in two states",	 "in two places", "two items",
					      "never given out", "store's clock", "inside itself" };

	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
		if (strstr(words, beyond[i]))
			return true;
	return false;
}

static void ignore(void *data, const char *path, const char *text)
{
}

/* Whatever is named can be mended or set aside, and a check then finds nothing. */
static void assert_mended(const char *words)
{
	struct quarantine_hooks hooks = { .problem = ignore, .action = ignore };
	struct check_result before, after;

	ck_assert_int_eq(lifecycle_quarantine(store, &hooks, &before, &after), 0);
	ck_assert_uint_gt(before.problems, 0);
	check_it();
	if (is_beyond_mending(words)) {
		ck_assert_uint_gt(told.count, 0);
		return;
	}
	for (size_t i = 0; i < told.count && i < FAULTS_MAX; i++)
		fprintf(stderr, "# left: %s: %s\n", told.path[i], told.text[i]);
	ck_assert_uint_eq(told.count, 0);
	ck_assert_uint_eq(after.problems, 0);
}

/* Exactly one fault, with these words in its path and text. */
static void assert_told(const char *path, const char *words)
{
	check_it();
	for (size_t i = 0; i < told.count && i < FAULTS_MAX && told.count != 1; i++)
		fprintf(stderr, "# %s: %s\n", told.path[i], told.text[i]);
	ck_assert_uint_eq(told.count, 1);
	ck_assert_msg(strstr(told.path[0], path), "'%s' is not in path '%s' (%s)", path,
		      told.path[0], told.text[0]);
	ck_assert_msg(strstr(told.text[0], words), "'%s' is not in '%s'", words, told.text[0]);
	assert_mended(words);
}

/* The same, among others that follow from it. */
static void assert_named_among(const char *path, const char *words)
{
	check_it();
	for (size_t i = 0; i < told.count && i < FAULTS_MAX; i++)
		if (strstr(told.path[i], path) && strstr(told.text[i], words))
			return;
	for (size_t i = 0; i < told.count && i < FAULTS_MAX; i++)
		fprintf(stderr, "# %s: %s\n", told.path[i], told.text[i]);
	ck_abort_msg("nobody said '%s' of %s", words, path);
}

static void assert_told_among(const char *path, const char *words)
{
	assert_named_among(path, words);
	assert_mended(words);
}

static void delete_key(const struct key *key)
{
	transaction_delete(&t, key, STORE_IF_PRESENT, 0);
}

static void load(const struct place *p, struct store_value *value, struct item *item)
{
	ck_assert_int_eq(record_get_item(store, p, false, value, item), 0);
}

START_TEST(sound_store_has_no_faults)
{
	struct check_result result = check_it();

	ck_assert_uint_eq(told.count, 0);
	/* dir, sub, small, big, one, two, gone, gone-dir, still-here */
	ck_assert_uint_eq(result.items, 9);
	ck_assert_uint_eq(result.bodies, 1);
	ck_assert_uint_eq(result.bytes, BODY_SIZE);
}
END_TEST

static bool stop(void *data, uint64_t done)
{
	return true;
}

START_TEST(progress_can_stop_it)
{
	struct check_result result;

	for (int i = 0; i < 1100; i++) {
		char name[16];
		struct item item = new_item(new_id(), S_IFREG | 0644);

		snprintf(name, sizeof(name), "f%d", i);
		put_live(&item, at.sub, name);
		commit();
	}
	ck_assert_int_eq(lifecycle_check(store, hear, stop, NULL, &result), -EINTR);
	check_it();
	ck_assert_uint_eq(told.count, 0);
}
END_TEST

/* ---- the ten, but for the chunk that is swapped (tests/crash) --------------- */

START_TEST(orphan_body_is_named)
{
	transaction_body_write(&t, new_id(), 0, "orphan", 6);
	commit();
	assert_told("(body)", "orphan body");
}
END_TEST

START_TEST(missing_link_reference_is_named)
{
	struct place one = place(at.dir, "one", 0);
	struct store_value value;
	struct item item;

	load(&one, &value, &item);
	transaction_delete_item(&t, store, &one, item.version);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, -1);
	commit();
	store_value_release(&value);
	assert_told("/two", "missing link reference: the file has 2 names, 1 were found");
}
END_TEST

START_TEST(wrong_link_count_is_named)
{
	struct store_value value;
	struct item link;

	ck_assert_int_eq(record_get_link(store, at.linked, false, &value, &link), 0);
	link.links_live = 1;
	transaction_put_link(&t, &link, link.version);
	commit();
	store_value_release(&value);
	assert_told("/two", "wrong link count: 2 names of which 1 live, found 2 of which 2 live");
}
END_TEST

START_TEST(stale_due_row_is_named)
{
	struct place gone = place(at.dir, "gone", at.gone_seq);
	struct deletion d = { .batch = at.batch, .uid = 7, .cause = ITEM_REMOVED };
	struct trash_row row = { .batch = d.batch, .uid = d.uid, .cause = d.cause };

	key_item(store_codec(store), &gone, &row.key);
	transaction_put_due(&t, at.due + 1, at.gone_seq, &row, 0);
	commit();
	assert_told("/dir/.trash/gone", "stale EXP row");
}
END_TEST

START_TEST(missing_shadow_is_named)
{
	struct key key;

	key_shadow(store_codec(store), KEY_ID_ROOT, "dir", &key);
	delete_key(&key);
	commit();
	assert_told("/dir", "missing shadow");
}
END_TEST

START_TEST(wrong_batch_range_is_named)
{
	struct batch batch;

	ck_assert_int_eq(record_get_batch(store, 7, at.batch, &batch), 0);
	put_batch(at.gone_seq, 2, batch.version);
	commit();
	assert_told("(batch", "wrong batch range: an entry of it was deleted after it ended");
}
END_TEST

START_TEST(counter_off_by_one_is_named)
{
	transaction_count_add(&t, COUNTER_TRASH_ITEMS, 1);
	commit();
	assert_told("(counters)", "deleted items says 3, a recount 2");
}
END_TEST

START_TEST(guard_without_item_is_named)
{
	struct place nowhere = place(at.dir, "nowhere", 0);

	put_guard(new_id(), &nowhere);
	commit();
	assert_told("/dir/nowhere", "guard without item");
}
END_TEST

START_TEST(item_in_two_states_is_named)
{
	struct place small = place(at.dir, "small", 0);
	struct store_value value;
	struct batch batch;
	struct item item;

	load(&small, &value, &item);
	ck_assert_int_eq(record_get_batch(store, 7, at.batch, &batch), 0);
	put_deleted(&item, at.dir, "small", at.gone_seq + 1);
	put_batch(at.gone_dir_seq, 3, batch.version);
	commit();
	store_value_release(&value);
	assert_told("/dir/small", "in two states: live and deleted");
}
END_TEST

/* ---- and others --------------------------------------------------------------- */

START_TEST(item_in_two_places_is_named)
{
	struct place small = place(at.dir, "small", 0);
	struct store_value value;
	struct item item;

	load(&small, &value, &item);
	put_live(&item, KEY_ID_ROOT, "also-small");
	commit();
	store_value_release(&value);
	assert_told("small", "in two places");
}
END_TEST

START_TEST(missing_rows_are_named)
{
	struct key key;

	key_trash(at.gone_seq, &key);
	delete_key(&key);
	commit();
	assert_told("/dir/.trash/gone",
		    "missing TRASH row (what was deleted when); deleted from /dir/gone");
	key_due(at.due, at.gone_dir_seq, &key);
	delete_key(&key);
	commit();
	assert_told_among("/dir/.trash/gone-dir", "missing EXP row");
}
END_TEST

START_TEST(rows_without_item_are_named)
{
	struct place gone = place(at.dir, "gone", at.gone_seq);
	struct store_value value;
	struct item item;

	load(&gone, &value, &item);
	transaction_delete_item(&t, store, &gone, item.version);
	transaction_count_add(&t, COUNTER_TRASH_ITEMS, -1);
	transaction_count_add(&t, COUNTER_TRASH_BYTES, -3);
	commit();
	store_value_release(&value);
	check_it();
	ck_assert_uint_eq(told.count, 2);
	assert_named_among("/dir/", "stale TRASH row");
	assert_told_among("/dir/", "stale EXP row");
}
END_TEST

START_TEST(missing_link_is_named)
{
	struct key key;

	key_link(at.linked, &key);
	delete_key(&key);
	transaction_count_add(&t, COUNTER_LIVE_BYTES, -4);
	commit();
	assert_told("/two", "missing link");
}
END_TEST

START_TEST(link_without_names_is_named)
{
	struct item link = new_item(new_id(), S_IFIFO | 0644);

	link.links_live = link.links_total = 2;
	transaction_put_link(&t, &link, 0);
	commit();
	assert_told("(link)", "no name refers to it");
}
END_TEST

START_TEST(stale_shadow_is_named)
{
	struct shadow shadow = { .directory = 4000, .name = "never" };

	transaction_put_shadow(&t, store, at.dir, &shadow, 0);
	commit();
	assert_told("/dir/never", "stale shadow");
}
END_TEST

START_TEST(unmarked_deletion_is_named)
{
	struct item lost = new_item(new_id(), S_IFREG | 0644);
	struct batch batch;

	ck_assert_int_eq(record_get_batch(store, 7, at.batch, &batch), 0);
	put_deleted(&lost, at.sub, "lost", at.gone_seq + 1);
	put_batch(at.gone_dir_seq, 3, batch.version);
	commit();
	assert_told("/dir/sub", "missing shadow: something was deleted in or below");
}
END_TEST

START_TEST(moved_directory_without_guard_is_named)
{
	struct key key;

	key_guard(at.sub, &key);
	delete_key(&key);
	commit();
	assert_told("/dir/sub", "has no guard");
}
END_TEST

START_TEST(wrong_subdirectory_count_is_named)
{
	struct place sub = place(at.dir, "sub", 0);
	struct store_value value;
	struct item item;

	load(&sub, &value, &item);
	item.directory.subdirectories = 2;
	transaction_put_item(&t, store, &sub, &item, item.version);
	commit();
	store_value_release(&value);
	assert_told("/dir/sub", "counts 2 sub-directories, 0 were found");
}
END_TEST

START_TEST(lost_directory_is_named)
{
	struct place gone_dir = place(at.dir, "gone-dir", at.gone_dir_seq);
	struct store_value value;
	struct item item;
	struct key key;

	load(&gone_dir, &value, &item);
	transaction_delete_item(&t, store, &gone_dir, item.version);
	key_guard(at.gone_dir, &key);
	delete_key(&key);
	key_trash(at.gone_dir_seq, &key);
	delete_key(&key);
	key_due(at.due, at.gone_dir_seq, &key);
	delete_key(&key);
	transaction_count_add(&t, COUNTER_TRASH_ITEMS, -1);
	commit();
	store_value_release(&value);
	assert_told("(directory", "items in a directory that is not there");
}
END_TEST

/* Two directories, each inside the other: every guard has its item, and no path leads there. */
START_TEST(circle_is_named)
{
	uint64_t a = new_id(), b = new_id();
	struct item x = new_item(a, S_IFDIR | 0755), y = new_item(b, S_IFDIR | 0755);

	x.directory.subdirectories = y.directory.subdirectories = 1;
	put_live(&x, b, "x");
	put_live(&y, a, "y");
	commit();
	assert_told_among("", "lies inside itself");
}
END_TEST

START_TEST(missing_xattrs_are_named)
{
	struct key key;

	key_xattr(at.small, &key);
	delete_key(&key);
	commit();
	assert_told("/dir/small", "extended attributes, kept apart, are missing");
}
END_TEST

START_TEST(xattrs_without_item_are_named)
{
	transaction_put_xattrs(&t, 4000, NULL, 0);
	commit();
	assert_told("(extended attributes)", "item 4000, which is not there");
}
END_TEST

START_TEST(body_of_two_items_is_named)
{
	struct item thief = new_item(new_id(), S_IFREG | 0644);

	thief.size = BODY_SIZE;
	thief.body = at.body;
	put_live(&thief, KEY_ID_ROOT, "thief");
	commit();
	assert_told("/", "belongs to two items");
}
END_TEST

START_TEST(data_behind_the_end_is_named)
{
	transaction_body_write(&t, at.body, 2000000, "tail", 4);
	commit();
	assert_told("/dir/big", "behind the end");
}
END_TEST

START_TEST(ids_never_given_out_are_named)
{
	struct item item = new_item(UINT64_C(1) << 60, S_IFREG | 0644);

	put_live(&item, at.dir, "future");
	commit();
	assert_told("/dir/future", "never given out");
}
END_TEST

START_TEST(deletion_in_the_future_is_named)
{
	struct item item = new_item(new_id(), S_IFREG | 0644);
	struct batch batch;

	ck_assert_int_eq(record_get_batch(store, 7, at.batch, &batch), 0);
	put_deleted(&item, at.dir, "future", INT64_MAX / 2);
	put_batch(INT64_MAX / 2, 3, batch.version);
	commit();
	assert_told("/dir/.trash/future", "later than the store's clock");
}
END_TEST

START_TEST(wrong_batch_count_is_named)
{
	struct batch batch;

	ck_assert_int_eq(record_get_batch(store, 7, at.batch, &batch), 0);
	put_batch(at.gone_dir_seq, 1, batch.version);
	commit();
	assert_told("(batch", "wrong batch count: it says 1 entries, 2 are there");
}
END_TEST

START_TEST(batch_without_record_is_named)
{
	struct key key;

	key_batch(7, at.batch, &key);
	delete_key(&key);
	commit();
	assert_told("(batch)", "has no record");
}
END_TEST

START_TEST(garbage_instead_of_records_is_named)
{
	struct key key;

	key_act(store_codec(store), at.dir, "small", &key);
	transaction_put(&t, &key, "garbage", 7, NULL, 0, STORE_ANY, 0);
	commit();
	assert_told_among("/dir", "damaged");
	key_guard(at.sub, &key);
	transaction_put(&t, &key, "garbage", 7, NULL, 0, STORE_ANY, 0);
	commit();
	assert_told_among("/dir/sub", "guard of the directory is damaged");
	key_trash(at.gone_seq, &key);
	transaction_put(&t, &key, "garbage", 7, NULL, 0, STORE_ANY, 0);
	commit();
	assert_told_among("(trash)", "TRASH row");
	key_link(at.linked, &key);
	transaction_put(&t, &key, "garbage", 7, NULL, 0, STORE_ANY, 0);
	commit();
	assert_told_among("/two", "several names are damaged");
}
END_TEST

static void add_tests(Suite *suite, const char *name, void (*fixture)(void))
{
	TCase *c = tcase_create(name);

	tcase_add_checked_fixture(c, fixture, teardown);
	tcase_set_timeout(c, 30);
	tcase_add_test(c, sound_store_has_no_faults);
	tcase_add_test(c, progress_can_stop_it);
	tcase_add_test(c, orphan_body_is_named);
	tcase_add_test(c, missing_link_reference_is_named);
	tcase_add_test(c, wrong_link_count_is_named);
	tcase_add_test(c, stale_due_row_is_named);
	tcase_add_test(c, missing_shadow_is_named);
	tcase_add_test(c, wrong_batch_range_is_named);
	tcase_add_test(c, counter_off_by_one_is_named);
	tcase_add_test(c, guard_without_item_is_named);
	tcase_add_test(c, item_in_two_states_is_named);
	tcase_add_test(c, item_in_two_places_is_named);
	tcase_add_test(c, missing_rows_are_named);
	tcase_add_test(c, rows_without_item_are_named);
	tcase_add_test(c, missing_link_is_named);
	tcase_add_test(c, link_without_names_is_named);
	tcase_add_test(c, stale_shadow_is_named);
	tcase_add_test(c, unmarked_deletion_is_named);
	tcase_add_test(c, moved_directory_without_guard_is_named);
	tcase_add_test(c, wrong_subdirectory_count_is_named);
	tcase_add_test(c, lost_directory_is_named);
	tcase_add_test(c, circle_is_named);
	tcase_add_test(c, missing_xattrs_are_named);
	tcase_add_test(c, xattrs_without_item_are_named);
	tcase_add_test(c, body_of_two_items_is_named);
	tcase_add_test(c, data_behind_the_end_is_named);
	tcase_add_test(c, ids_never_given_out_are_named);
	tcase_add_test(c, deletion_in_the_future_is_named);
	tcase_add_test(c, wrong_batch_count_is_named);
	tcase_add_test(c, batch_without_record_is_named);
	tcase_add_test(c, garbage_instead_of_records_is_named);
	suite_add_tcase(suite, c);
}

int main(void)
{
	Suite *suite = suite_create("check");

	add_tests(suite, "ordered", setup);
	add_tests(suite, "sealed", setup_sealed);
	return test_main(suite);
}
