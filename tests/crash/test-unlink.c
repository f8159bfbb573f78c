/*
 * test-unlink.c - L4 and S4.
 *
 * L4: a conflict, a lost answer, a full disk or a full map while a file is
 * unlinked, or when that is committed: after the retry it is in the trash, once.
 *
 * S4: a listing that stays open while very many items are deleted holds nothing
 * back: the database grows by what the entries take, as it does without one.
 *
 *     DDBFS_LISTING_ITEMS   how many (100,000)
 */
#include <stdio.h>
#include <sys/stat.h>

#include "tests/crash/files.h"
#include "tests/crash/shim.h"
#include "tests/crash/world-internal.h"

#define FILES 40

static char path[4100];

static void must(int r, const char *what)
{
	ck_assert_msg(r == 0, "%s: %d", what, r);
}

struct tally {
	const char *name;
	unsigned count;
};

static bool count_entry(void *data, const struct entry *e, const struct key *key)
{
	struct tally *tally = data;

	tally->count += !e->shadow && strcmp(e->item.name, tally->name) == 0;
	return false;
}

static void expect_once(struct world *w, const char *name, uint64_t n)
{
	struct tally tally = { .name = name };
	struct inode i = { 0 };

	must(lifecycle_list(w->lifecycle, KEY_ID_ROOT, NULL, count_entry, &tally), "list");
	ck_assert_msg(tally.count == 1, "%s is %u times in the trash (%lu)", name, tally.count, n);
	ck_assert_int_eq(world_look(w, name, &i), -ENOENT);
}

/* ---- L4: conflicts and lost answers ------------------------------------------------ */

static struct store_faults conflict_at(uint64_t n)
{
	return (struct store_faults){ .conflict_at = n };
}

static struct store_faults lost_answer_at(uint64_t n)
{
	return (struct store_faults){ .lost_answer_at = n };
}

static struct store_faults error_at(uint64_t n)
{
	return (struct store_faults){ .error_at = n };
}

static struct store_faults (*const answers[])(uint64_t n) = { conflict_at, lost_answer_at, error_at };

START_TEST(test_answers)
{
	struct world w;
	uint64_t drawn;

	for (uint64_t n = 1; n <= 6; n++) {
		struct store_faults faults = answers[_i](n);
		int r;

		world_init(&w);
		must(world_open_memory(&w), "open");
		world_begin(&w);
		/* The blocks that numbers come from are not meant. */
		must(store_new_seq(w.store, &drawn), "seq");
		store_memory_inject(w.store, &faults);
		r = world_remove(&w, "b");
		store_memory_inject(w.store, &(struct store_faults){ 0 });
		ck_assert_msg(r == 0 || r == -EIO, "unlink: %d", r);
		if (r)
			must(world_remove(&w, "b"), "unlink again");
		expect_once(&w, "b", n);
		ck_assert_int_eq(world_check(&w), 0);
		must(world_close(&w), "close");
	}
}
END_TEST

/* ---- L4: a full disk, a full map ------------------------------------------------------ */

static void make(struct world *w, uint64_t map_bytes)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store_open_options open = { .clock = &w->clock.clock, .map_bytes = map_bytes };
	struct store_open_report why = { 0 };

	snprintf(path, sizeof(path), "%s/store", test_directory());
	files_remove(path);
	world_init(w);
	must(store_create(path, &options), "create");
	must(store_open(path, &open, &why, &w->store), why.text);
	world_begin(w);
}

static void reopen(struct world *w)
{
	struct store_open_report why = { 0 };
	struct store_status status;

	store_status(w->store, &status);
	ck_assert_int_eq(world_close(w), status.read_only ? -EIO : 0);
	must(world_open(w, path, &(struct store_open_options){ 0 }, &why), why.text);
}

static const struct {
	enum shim_call call;
	bool stays;
} shortages[] = {
	{ SHIM_WRITE, false },
	{ SHIM_ALLOCATE, false },
	{ SHIM_ALLOCATE, true }, /* until the disk has room again */
};

/* The n-th call that may lack space lacks it, for every n. */
START_TEST(test_full_disk)
{
	unsigned stopped = 0;
	bool fired = true;
	uint64_t n;

	for (n = 1; fired; n++) {
		struct world w;
		int r;

		make(&w, 0);
		shim_watch(path);
		shim_skip_syncs();
		must(store_checkpoint(w.store), "checkpoint");
		shim_arm(&(struct shim_fault){ .at = n,
					       .calls = 1u << shortages[_i].call,
					       .error = ENOSPC,
					       .stays = shortages[_i].stays });
		/* What is about to be unlinked was just written to: that takes room of its own. */
		r = world_write(&w, "b", 33000, 100, false);
		ck_assert_msg(r == 0 || r == -ENOSPC, "write: %d (%lu)", r, n);
		r = world_remove(&w, "b");
		if (r == 0)
			(void)store_checkpoint(w.store);
		fired = shim_fired();
		shim_arm(&(struct shim_fault){ 0 });
		if (r)
			r = world_remove(&w, "b");
		must(r, "unlink again");
		/*
		 * LMDB does without a page of its own that it could not write, but not without the one that says where all
		 * are: there is one in each of two commits, that of the deletion and that which forgets what was given back.
		 */
		stopped += store_checkpoint(w.store) == -EIO;
		expect_once(&w, "b", n);
		reopen(&w);
		expect_once(&w, "b", n);
		ck_assert_int_eq(world_check(&w), 0);
		must(world_close(&w), "close");
	}
	printf("# no space%s: met by %lu calls of the kind %s\n",
	       shortages[_i].stays ? " from then on" : "", n - 2, shim_call_name(shortages[_i].call));
	ck_assert_uint_le(stopped, 2);
	ck_assert_uint_gt(n - 2, shortages[_i].call == SHIM_WRITE ? 2 : 0);
}
END_TEST

START_TEST(test_full_map)
{
	char name[16], filler[32];
	struct world w;
	int r = 0;

	make(&w, 40 << 20);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		must(world_create(&w, name, S_IFREG | 0644), name);
	}
	for (unsigned i = 0; r == 0; i++) {
		snprintf(filler, sizeof(filler), "d/filler %u", i);
		r = world_create(&w, filler, S_IFREG | 0644);
		if (r == 0)
			r = world_write(&w, filler, 0, 1400, false);
	}
	ck_assert_int_eq(r, -ENOSPC);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		must(world_remove(&w, name), name);
		if (i % 8 == 0)
			must(store_checkpoint(w.store), "checkpoint");
	}
	reopen(&w);
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		expect_once(&w, name, i);
	}
	ck_assert_int_eq(world_check(&w), 0);
	must(world_close(&w), "close");
}
END_TEST

/* ---- S4: a listing that stays open ----------------------------------------------------- */

static uint64_t database_bytes(void)
{
	char name[4200];
	struct stat st;

	snprintf(name, sizeof(name), "%s/data.mdb", path);
	ck_assert_int_eq(stat(name, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The next names of a listing, as readdir(3) asks for them: after the key of the last. */
static size_t list_on(struct world *w, uint64_t directory, struct key *after, bool begin)
{
	struct store_query query = { .limit = 100, .attributes_only = true };
	struct store_page page;
	size_t count;

	key_range_live(directory, &query.range);
	if (!begin)
		query.after = after;
	must(store_query(w->store, &query, &page), "query");
	count = page.count;
	*after = page.next;
	store_page_release(&page);
	return count;
}

/* By how much the database grows while `items` files of a directory are deleted. */
static uint64_t growth(unsigned items, bool beside_a_listing)
{
	struct namei_new what = { .mode = S_IFREG | 0644 };
	struct inode d = { 0 };
	uint64_t before;
	char name[16];
	struct world w;
	struct key at;

	make(&w, 0);
	must(world_look(&w, "d", &d), "look up");
	for (unsigned i = 0; i < items; i++) {
		snprintf(name, sizeof(name), "item %u", i);
		must(namei_create(w.namei, &w.maker, d.item.id, name, &what, NULL), name);
	}
	must(store_checkpoint(w.store), "checkpoint");
	before = database_bytes();
	if (beside_a_listing)
		ck_assert_uint_eq(list_on(&w, d.item.id, &at, true), 100);
	for (unsigned i = 0; i < items; i++) {
		snprintf(name, sizeof(name), "item %u", i);
		must(lifecycle_remove(w.lifecycle, &w.remover, d.item.id, name, false), name);
		if (beside_a_listing && i % (items / 10) == 0)
			(void)list_on(&w, d.item.id, &at, false);
	}
	must(store_checkpoint(w.store), "checkpoint");
	inode_release(&d);
	before = database_bytes() - before;
	must(world_close(&w), "close");
	return before;
}

START_TEST(test_a_listing_that_stays_open)
{
	const char *number = getenv("DDBFS_LISTING_ITEMS");
	unsigned items = number ? (unsigned)strtoul(number, NULL, 0) : 100000;
	uint64_t usual = growth(items, false), beside = growth(items, true);

	printf("# %u items deleted: the database grew by %lu MiB, beside an open listing by %lu MiB\n",
	       items, usual >> 20, beside >> 20);
	/* Its rows, what is reserved for them, and pages that are half full; and what checkpoints free is used again. */
	ck_assert_uint_lt(beside, (uint64_t)items * 2500 + (16 << 20));
	ck_assert_uint_lt(beside, usual + usual / 10 + (8 << 20));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/unlink");
	TCase *unlink = tcase_create("L4"), *listing = tcase_create("S4");

	tcase_set_timeout(unlink, 300);
	tcase_add_loop_test(unlink, test_answers, 0, (int)ARRAY_SIZE(answers));
	tcase_add_loop_test(unlink, test_full_disk, 0, (int)ARRAY_SIZE(shortages));
	tcase_add_test(unlink, test_full_map);
	suite_add_tcase(suite, unlink);
	tcase_set_timeout(listing, 300);
	tcase_add_test(listing, test_a_listing_that_stays_open);
	suite_add_tcase(suite, listing);
	return test_main(suite);
}
