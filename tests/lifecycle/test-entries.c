/*
 * test-entries.c - which deleted items show, until when, and under which names.
 * The items are put into the store by hand, so that times can be chosen.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lifecycle/lifecycle.h"
#include "tests/lib/test.h"

static struct test_clock clock_;
static struct store *store;
static struct lifecycle *life;

/* 2026-11-30T16:25:39Z, when the test clock starts. */
#define START_S UINT64_C(1796055939)
#define SECOND_NS UINT64_C(1000000000)
#define LATER (INT64_C(2000000000) * INT64_C(1000000000))

static void setup_names(enum store_names names)
{
	test_clock_init(&clock_);
	ck_assert_int_eq(store_open_memory(&clock_.clock, names, &store), 0);
	ck_assert_int_eq(tree_format(store, 0755, 0, 0), 0);
	ck_assert_int_eq(lifecycle_open(store, NULL, &life), 0);
}

static void setup(void)
{
	setup_names(STORE_NAMES_ORDERED);
}

static void teardown(void)
{
	lifecycle_close(life);
	store_close(store);
}

static struct item new_item(uint32_t mode, uint64_t id)
{
	return (struct item){ .id = id,
			      .mode = mode,
			      .links_live = 1,
			      .links_total = 1,
			      .directory.trash_mask = S_ISDIR(mode) ? 0777 : 0 };
}

static void put(uint64_t directory, enum key_state state, uint64_t seq, const char *name,
		struct item item, const struct deletion *deletion)
{
	struct place at = { .directory = directory, .state = state, .seq = seq };
	struct transaction t = { 0 };
	struct guard guard = { .at = at };
	uint64_t version;

	snprintf(at.name, sizeof(at.name), "%s", name);
	guard.at = at;
	memcpy(item.name, at.name, sizeof(item.name));
	if (deletion) {
		item.flags |= ITEM_DELETION;
		item.deletion = *deletion;
	}
	transaction_put_item(&t, store, &at, &item, 0);
	if (S_ISDIR(item.mode))
		transaction_put_guard(&t, item.id, &guard, 0);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, &version), 0);
	transaction_release(&t);
}

static void put_deleted(uint64_t directory, const char *name, uint64_t id, uint64_t seq, int64_t expires_ns)
{
	struct deletion d = { .expires_ns = expires_ns, .destroy_ns = expires_ns, .cause = ITEM_REMOVED };

	put(directory, KEY_DEL, seq, name, new_item(S_IFREG | 0644, id), &d);
}

static void put_shadow(uint64_t directory, const char *name, uint64_t id)
{
	struct shadow shadow = { .directory = id };
	struct transaction t = { 0 };
	uint64_t version;

	snprintf(shadow.name, sizeof(shadow.name), "%s", name);
	transaction_put_shadow(&t, store, directory, &shadow, 0);
	ck_assert_int_eq(transaction_commit(&t, store, STORE_GROWING, &version), 0);
	transaction_release(&t);
}

/* The id that a shown name leads to, 0 if there is none. */
static uint64_t find(uint64_t directory, const char *shown)
{
	struct entry e = { 0 };
	int r = lifecycle_find(life, directory, shown, &e);
	uint64_t id = e.item.id;

	if (r == -ENOENT)
		return 0;
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(e.shown, shown);
	entry_release(&e);
	return id;
}

struct seen {
	size_t count, stop_after;
	uint64_t id[64];
	char shown[64][ENTRY_NAME_MAX + 1];
	struct key last;
};

static bool see(void *data, const struct entry *entry, const struct key *key)
{
	struct seen *seen = data;

	ck_assert_uint_lt(seen->count, 64);
	seen->id[seen->count] = entry->item.id;
	snprintf(seen->shown[seen->count], ENTRY_NAME_MAX + 1, "%s", entry->shown);
	seen->last = *key;
	seen->count++;
	return seen->stop_after && seen->count >= seen->stop_after;
}

/* Lists in steps of `step` rows; checks that each name shown leads back to its entry. */
static void list(uint64_t directory, size_t step, struct seen *seen)
{
	struct seen page;
	const struct key *after = NULL;
	struct key next;

	memset(seen, 0, sizeof(*seen));
	do {
		memset(&page, 0, sizeof(page));
		page.stop_after = step;
		ck_assert_int_eq(lifecycle_list(life, directory, after, see, &page), 0);
		for (size_t i = 0; i < page.count; i++) {
			seen->id[seen->count] = page.id[i];
			memcpy(seen->shown[seen->count++], page.shown[i], sizeof(page.shown[i]));
		}
		next = page.last;
		after = &next;
	} while (page.count);
	for (size_t i = 0; i < seen->count; i++)
		ck_assert_uint_eq(find(directory, seen->shown[i]), seen->id[i]);
}

static bool shows(const struct seen *seen, const char *name, uint64_t id)
{
	size_t times = 0;
	bool right = false;

	for (size_t i = 0; i < seen->count; i++)
		if (!strcmp(seen->shown[i], name)) {
			times++;
			right = seen->id[i] == id;
		}
	return times == 1 && right;
}

START_TEST(the_newest_deletion_bears_the_name_and_older_ones_their_time)
{
	struct seen seen;

	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "f", 101, (START_S + 1) * SECOND_NS + 41000256, LATER);
	put_deleted(KEY_ID_ROOT, "f", 102, (START_S + 1) * SECOND_NS + 42000256, LATER);
	put_deleted(KEY_ID_ROOT, "g", 103, START_S * SECOND_NS + 512, LATER);
	for (size_t step = 1; step < 6; step++) {
		list(KEY_ID_ROOT, step, &seen);
		ck_assert_uint_eq(seen.count, 4);
		ck_assert(shows(&seen, "f", 102));
		ck_assert(shows(&seen, "f@2026-11-30T16:25:40.041Z", 101));
		ck_assert(shows(&seen, "f@2026-11-30T16:25:39Z", 100));
		ck_assert(shows(&seen, "g", 103));
	}
}
END_TEST

START_TEST(the_full_fraction_always_works_and_a_short_one_while_unambiguous)
{
	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS + 256, LATER);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39Z"), 100);
	put_deleted(KEY_ID_ROOT, "f", 101, START_S * SECOND_NS + 512, LATER);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39Z"), 0);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39.000Z"), 0);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39.000000256Z"), 100);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39.000000512Z"), 101);
}
END_TEST

START_TEST(only_one_spelling_of_a_time_is_a_time)
{
	static const char *const wrong[] = {
		"f@2026-11-30T16:25:39",   "f@2026-11-30 16:25:39Z",
		"f@2026-11-30T16:25:39.Z", "f@2026-11-30T16:25:9Z",
		"f@02026-11-30T16:25:39Z", "f@2026-11-31T16:25:39Z",
		"f@2026-11-30T16:25:39ZZ", "f@2026-11-30T16:25:39.0000002560Z",
		"@2026-11-30T16:25:39Z",   "f@",
		"f@1969-12-31T23:59:59Z",  "f@9999-12-31T23:59:59Z",
	};

	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS + 256, LATER);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(find(KEY_ID_ROOT, wrong[i]) == 0, "%s", wrong[i]);
}
END_TEST

START_TEST(a_deleted_name_that_looks_like_a_time_bears_its_literal_name_first)
{
	struct seen seen;

	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "f", 101, (START_S + 5) * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "f@2026-11-30T16:25:39Z", 102, (START_S + 6) * SECOND_NS, LATER);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f@2026-11-30T16:25:39Z"), 102);
	list(KEY_ID_ROOT, 2, &seen);
	ck_assert_uint_eq(seen.count, 3);
	ck_assert(shows(&seen, "f@2026-11-30T16:25:39.000000000Z", 100));
}
END_TEST

START_TEST(names_of_255_bytes_deleted_twice_are_both_reachable)
{
	char name[KEY_NAME_MAX + 1];
	struct seen seen;

	memset(name, 0xff, KEY_NAME_MAX);
	name[KEY_NAME_MAX] = 0;
	put_deleted(KEY_ID_ROOT, name, 100, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, name, 101, START_S * SECOND_NS + 256, LATER);
	list(KEY_ID_ROOT, 0, &seen);
	ck_assert_uint_eq(seen.count, 2);
	ck_assert(shows(&seen, name, 101));
}
END_TEST

START_TEST(expired_purged_doomed_and_temporary_ones_do_not_show)
{
	struct deletion d = { .expires_ns = LATER, .destroy_ns = LATER, .cause = ITEM_REMOVED };
	struct seen seen;

	put_deleted(KEY_ID_ROOT, "old", 100, START_S * SECOND_NS, (int64_t)((START_S + 10) * SECOND_NS));
	d.flags = DELETION_PURGED;
	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS, "purged", new_item(S_IFREG | 0644, 101), &d);
	d.flags = DELETION_DOOMED;
	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS, "doomed", new_item(S_IFREG | 0644, 102), &d);
	d.flags = 0;
	d.cause = ITEM_TEMPORARY;
	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS, "temporary", new_item(S_IFREG | 0644, 103), &d);
	list(KEY_ID_ROOT, 0, &seen);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "old"), 100);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "purged"), 0);
	test_clock_advance(&clock_, 10 * CLOCK_SECOND_NS);
	list(KEY_ID_ROOT, 0, &seen);
	ck_assert_uint_eq(seen.count, 0);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "old"), 0);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "old@2026-11-30T16:25:39Z"), 0);
}
END_TEST

START_TEST(an_expired_newer_one_gives_the_name_back)
{
	struct seen seen;

	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "f", 101, (START_S + 1) * SECOND_NS,
		    (int64_t)((START_S + 2) * SECOND_NS));
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f"), 101);
	test_clock_advance(&clock_, 5 * CLOCK_SECOND_NS);
	list(KEY_ID_ROOT, 0, &seen);
	ck_assert_uint_eq(seen.count, 1);
	ck_assert_uint_eq(find(KEY_ID_ROOT, "f"), 100);
}
END_TEST

START_TEST(what_went_with_a_directory_lives_as_long_as_the_directory)
{
	struct deletion with = { .batch = 7, .expires_ns = LATER, .destroy_ns = LATER, .cause = ITEM_REMOVED };
	struct deletion before = with;
	struct place at = { .directory = 50, .state = KEY_DEL, .seq = 3 };
	int64_t expires_ns;
	bool visible;

	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS, "d", new_item(S_IFDIR | 0755, 50), &with);
	with.expires_ns = (int64_t)((START_S + 1) * SECOND_NS);
	put(50, KEY_DEL, 3, "f", new_item(S_IFREG | 0644, 100), &with);
	before.batch = 6;
	before.expires_ns = (int64_t)((START_S + 2) * SECOND_NS);
	put(50, KEY_DEL, 2, "g", new_item(S_IFREG | 0644, 101), &before);
	test_clock_advance(&clock_, 5 * CLOCK_SECOND_NS);
	ck_assert_uint_eq(find(50, "f"), 100);
	ck_assert_uint_eq(find(50, "g"), 0);
	strcpy(at.name, "f");
	ck_assert_int_eq(lifecycle_visibility(life, &at, &expires_ns, &visible), 0);
	ck_assert(visible);
	ck_assert_int_eq(expires_ns, LATER);
}
END_TEST

START_TEST(a_deleted_directory_shows_live_items_under_their_names_and_deleted_ones_beside)
{
	struct deletion d = { .batch = 7, .expires_ns = LATER, .destroy_ns = LATER, .cause = ITEM_REMOVED };
	struct seen seen;

	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS, "d", new_item(S_IFDIR | 0755, 50), &d);
	put(50, KEY_ACT, 0, "f", new_item(S_IFREG | 0644, 100), NULL);
	put(50, KEY_ACT, 0, "a", new_item(S_IFREG | 0644, 101), NULL);
	put_deleted(50, "f", 102, START_S * SECOND_NS, LATER);
	put_deleted(50, "z", 103, START_S * SECOND_NS, LATER);
	for (size_t step = 1; step < 6; step++) {
		list(50, step, &seen);
		ck_assert_uint_eq(seen.count, 4);
		ck_assert(shows(&seen, "f", 100));
		ck_assert(shows(&seen, "a", 101));
		ck_assert(shows(&seen, "f@2026-11-30T16:25:39Z", 102));
		ck_assert(shows(&seen, "z", 103));
	}
}
END_TEST

START_TEST(shadows_show_unless_a_deleted_item_has_the_name)
{
	struct seen seen;

	put(KEY_ID_ROOT, KEY_ACT, 0, "s", new_item(S_IFDIR | 0755, 50), NULL);
	put(KEY_ID_ROOT, KEY_ACT, 0, "t", new_item(S_IFDIR | 0755, 51), NULL);
	put_shadow(KEY_ID_ROOT, "s", 50);
	put_shadow(KEY_ID_ROOT, "t", 51);
	put_deleted(KEY_ID_ROOT, "t", 100, START_S * SECOND_NS, LATER);
	for (size_t step = 1; step < 4; step++) {
		list(KEY_ID_ROOT, step, &seen);
		ck_assert_uint_eq(seen.count, 2);
		ck_assert(shows(&seen, "s", 50));
		ck_assert(shows(&seen, "t", 100));
	}
}
END_TEST

START_TEST(sealed_names_list_alike)
{
	struct seen seen;

	teardown();
	setup_names(STORE_NAMES_SEALED);
	put_deleted(KEY_ID_ROOT, "f", 100, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "f", 101, (START_S + 1) * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "g", 102, START_S * SECOND_NS, LATER);
	put_deleted(KEY_ID_ROOT, "h", 103, START_S * SECOND_NS, LATER);
	for (size_t step = 1; step < 6; step++) {
		list(KEY_ID_ROOT, step, &seen);
		ck_assert_uint_eq(seen.count, 4);
		ck_assert(shows(&seen, "f", 101));
		ck_assert(shows(&seen, "f@2026-11-30T16:25:39Z", 100));
	}
}
END_TEST

START_TEST(facts_say_who_when_whence_why_and_until_when)
{
	struct deletion d = { .batch = 7,
			      .expires_ns = ITEM_FOREVER,
			      .destroy_ns = ITEM_FOREVER,
			      .uid = 1000,
			      .gid = 100,
			      .pid = 42,
			      .cause = ITEM_REMOVED,
			      .command = "rm" };
	static const char *const expected[] = {
		"2026-11-30T16:25:39.000000256Z",
		"never",
		"uid=1000 gid=100 pid=42 command=rm",
		"/f",
		"7",
		"removed",
		"1/DEL#f/1796055939000000256",
	};
	struct entry e;
	char text[512];

	put(KEY_ID_ROOT, KEY_DEL, START_S * SECOND_NS + 256, "f", new_item(S_IFREG | 0644, 100), &d);
	ck_assert_int_eq(lifecycle_find(life, KEY_ID_ROOT, "f", &e), 0);
	for (size_t i = 0; lifecycle_fact_names[i]; i++) {
		ssize_t length = lifecycle_fact(life, &e, lifecycle_fact_names[i], text, sizeof(text));

		ck_assert_int_eq(length, (ssize_t)strlen(expected[i]));
		ck_assert_str_eq(text, expected[i]);
	}
	ck_assert_int_eq(lifecycle_fact(life, &e, "user.ddbfs.nonsense", text, sizeof(text)), -ENODATA);
	ck_assert_int_eq(lifecycle_fact(life, &e, "user.other", text, sizeof(text)), -ENODATA);
	ck_assert_int_eq(lifecycle_fact(life, &e, "user.ddbfs.deleted_by", text, 4), -ERANGE);
	entry_release(&e);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("entries");
	TCase *names = tcase_create("names"), *visible = tcase_create("visibility");

	tcase_add_checked_fixture(names, setup, teardown);
	tcase_add_test(names, the_newest_deletion_bears_the_name_and_older_ones_their_time);
	tcase_add_test(names, the_full_fraction_always_works_and_a_short_one_while_unambiguous);
	tcase_add_test(names, only_one_spelling_of_a_time_is_a_time);
	tcase_add_test(names, a_deleted_name_that_looks_like_a_time_bears_its_literal_name_first);
	tcase_add_test(names, names_of_255_bytes_deleted_twice_are_both_reachable);
	tcase_add_test(names, sealed_names_list_alike);
	tcase_add_test(names, facts_say_who_when_whence_why_and_until_when);
	suite_add_tcase(suite, names);
	tcase_add_checked_fixture(visible, setup, teardown);
	tcase_add_test(visible, expired_purged_doomed_and_temporary_ones_do_not_show);
	tcase_add_test(visible, an_expired_newer_one_gives_the_name_back);
	tcase_add_test(visible, what_went_with_a_directory_lives_as_long_as_the_directory);
	tcase_add_test(visible,
		       a_deleted_directory_shows_live_items_under_their_names_and_deleted_ones_beside);
	tcase_add_test(visible, shadows_show_unless_a_deleted_item_has_the_name);
	suite_add_tcase(suite, visible);
	return test_main(suite);
}
