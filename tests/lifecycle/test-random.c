/*
 * test-random.c - random histories of everything lifecycle does, `check` after
 * each: counters, rows, marks, links and guards must agree whatever came before.
 *
 * A history that fails prints its seed: see random.h.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/random.h"
#include "tests/lifecycle/fixture.h"

#define HISTORIES 30
#define OPERATIONS 300
#define DIRECTORIES 12
#define SEEN_MAX 20000 /* deletions in one history */
#define NAMES 5

/* What is known of a file, whatever happens to it. */
struct life {
	uint64_t id;
	char text[64];
};

/* A deletion of any name, by its seq. */
struct entry_seen {
	uint64_t seq;
	int64_t expires_ns; /* 0: it made no entry */
};

struct history {
	struct fixture *f;
	struct test_random random;
	bool faults; /* something fails every now and then */
	bool patient; /* nobody purges, caps or shortens anything: only time destroys */
	struct life *lives; /* of every file made, by id */
	size_t lives_count;
	struct entry_seen *seen;
	size_t seen_count;
	uint64_t directories[DIRECTORIES]; /* live, deleted or destroyed */
	size_t count;
};

static uint32_t pick(struct history *h, uint32_t below)
{
	return (uint32_t)(random_below(&h->random, below));
}

static uint64_t any_directory(struct history *h)
{
	return h->directories[pick(h, (uint32_t)h->count)];
}

/* A live one that lies in live ones, or 0. */
static uint64_t live_directory(struct history *h)
{
	uint64_t id = any_directory(h), at = id;
	struct guard guard;

	while (at != KEY_ID_NONE) {
		if (record_get_guard(h->f->store, at, &guard) || guard.at.state != KEY_ACT)
			return 0;
		at = guard.at.directory;
	}
	return id;
}

static const char *any_name(struct history *h)
{
	static const char *const names[NAMES] = { "a", "b", "c", "d@2026-11-30T16:25:39Z", "DEL#e" };

	return names[pick(h, NAMES)];
}

static void random_actor(struct history *h)
{
	uint32_t group = 100 + pick(h, 4);

	act_as(h->f, 1000 + pick(h, 2), group, "random");
	h->f->actor.session = pick(h, 2);
}

static void remember(struct history *h, uint64_t id, const char *text)
{
	struct life *life;

	if (!h->patient)
		return;
	ck_assert_uint_lt(h->lives_count, OPERATIONS);
	life = &h->lives[h->lives_count++];
	life->id = id;
	snprintf(life->text, sizeof(life->text), "%s", text);
}

static void make_something(struct history *h)
{
	uint64_t d = live_directory(h);
	const char *name = any_name(h);
	char text[64];

	if (!d || is_live(h->f, d, name))
		return;
	snprintf(text, sizeof(text), "%.*s", (int)pick(h, 44),
		 "the quick brown fox jumps over the lazy dog");
	switch (pick(h, 4)) {
	case 0:
		if (h->count < DIRECTORIES)
			h->directories[h->count++] = make_directory(h->f, d, name);
		else
			h->directories[1 + pick(h, DIRECTORIES - 1)] = make_directory(h->f, d, name);
		return;
	case 1:
		make_big_file(h->f, d, name, 1 + pick(h, 9000));
		return;
	default:
		remember(h, make_file(h->f, d, name, text), text);
	}
}

static bool any_live_file(struct history *h, uint64_t *ret_directory, const char **ret_name)
{
	*ret_directory = live_directory(h);
	*ret_name = any_name(h);
	return *ret_directory && is_live(h->f, *ret_directory, *ret_name) &&
	       !S_ISDIR(live_item(h->f, *ret_directory, *ret_name).mode);
}

static void link_something(struct history *h)
{
	uint64_t from, to = live_directory(h);
	const char *name, *to_name = any_name(h);

	if (any_live_file(h, &from, &name) && to && !is_live(h->f, to, to_name))
		make_link(h->f, from, name, to, to_name);
}

static void rename_something(struct history *h)
{
	uint64_t from, to = live_directory(h);
	const char *name, *to_name = any_name(h);

	if (!any_live_file(h, &from, &name) || !to || (from == to && !strcmp(name, to_name)))
		return;
	if (is_live(h->f, to, to_name) &&
	    (S_ISDIR(live_item(h->f, to, to_name).mode) ||
	     live_item(h->f, to, to_name).id == live_item(h->f, from, name).id))
		return;
	ck_assert_int_eq(rename_item(h->f, from, name, to, to_name), 0);
}

static void remove_something(struct history *h)
{
	uint64_t d = live_directory(h);
	const char *name = any_name(h);

	if (!d || !is_live(h->f, d, name))
		return;
	switch (pick(h, 3)) {
	case 0:
		discard(h->f, d, name);
		break;
	default:
		rm_rf(h->f, d, name);
	}
}

static int expect(struct history *h, int result, const int *allowed)
{
	if (result == 0 || (result == -EIO && h->faults))
		return 0;
	for (; *allowed; allowed++)
		if (result == *allowed)
			return result;
	ck_abort_msg("unexpected result %d", result);
}

static bool take_place(void *data, const struct entry *entry, const struct key *key)
{
	struct place *at = data;

	if (entry->shadow)
		return false;
	*at = entry->at;
	/* Mostly the first, sometimes a later one. */
	return entry->at.seq % 3 != 0;
}

static bool any_entry(struct history *h, struct place *ret_at)
{
	memset(ret_at, 0, sizeof(*ret_at));
	return !lifecycle_list(h->f->life, any_directory(h), NULL, take_place, ret_at) &&
	       ret_at->directory;
}

static void restore_something(struct history *h)
{
	static const int allowed[] = { -ENOENT,	   -EEXIST, -ENOTDIR, -EISDIR,
				       -ENOTEMPTY, -EINVAL, -EPERM,   0 };
	static const unsigned flags[] = { 0, RESTORE_NOREPLACE, RESTORE_RENAME };
	struct lifecycle *l = h->f->life;
	unsigned flag = flags[pick(h, 3)];
	uint64_t to = any_directory(h);
	struct place at;
	char *path = NULL;

	if (!any_entry(h, &at))
		return;
	if (pick(h, 2)) {
		expect(h, lifecycle_restore(l, &h->f->actor, &at, to, any_name(h), flag, NULL, NULL),
		       allowed);
	} else {
		expect(h,
		       lifecycle_restore_origin(l, &h->f->actor, &at,
						flag | (pick(h, 2) ? RESTORE_PARENTS : 0), NULL,
						NULL, &path),
		       allowed);
		free(path);
	}
}

static void undo_something(struct history *h)
{
	static const int allowed[] = { -ENOENT, -EEXIST, 0 };
	struct undo_options options = { .taken = (enum undo_taken)pick(h, 4),
					.dry_run = pick(h, 6) == 0 };
	struct undo_result result;

	expect(h, lifecycle_undo(h->f->life, &h->f->actor, &options, &result), allowed);
}

static void purge_something(struct history *h)
{
	static const int allowed[] = { -ENOENT, -ENOTEMPTY, -EPERM, 0 };
	struct empty_options options = { .directory = any_directory(h), .now = pick(h, 2) };
	struct empty_result emptied;
	struct place at;

	if (pick(h, 8) == 0) {
		expect(h, lifecycle_empty(h->f->life, &h->f->actor, &options, &emptied), allowed);
		return;
	}
	if (any_entry(h, &at))
		expect(h, lifecycle_purge(h->f->life, &h->f->actor, &at, pick(h, 2)), allowed);
}

static void let_time_pass(struct history *h)
{
	static const int64_t times[] = { SECOND, 2 * MINUTE, HOUR, DAY, 12 * DAY };
	struct sweep_result swept;

	fixture_pass(h->f, times[pick(h, 5)]);
	if (pick(h, 2))
		expect(h, lifecycle_sweep(h->f->life, 1 + pick(h, 10), &swept), (const int[]){ 0 });
	if (pick(h, 12) == 0)
		fixture_crash(h->f);
	else if (pick(h, 12) == 0)
		fixture_reopen(h->f);
}

static void change_policy(struct history *h)
{
	static const char *const values[][2] = {
		{ "user.ddbfs.retention", "1h" },      { "user.ddbfs.retention", "0" },
		{ "user.ddbfs.retention", "60d" },     { "user.ddbfs.retention", NULL },
		{ "user.ddbfs.hold", "yes" },	       { "user.ddbfs.hold", NULL },
		{ "user.ddbfs.versions", "1" },	       { "user.ddbfs.versions", "0" },
		{ "user.ddbfs.grace", "0" },	       { "user.ddbfs.temporary", "0" },
		{ "user.ddbfs.retention", "forever" },
	};
	uint64_t d = live_directory(h);
	size_t i = pick(h, sizeof(values) / sizeof(values[0]));

	if (d)
		set_policy(h->f, d, values[i][0], values[i][1]);
}

static void step(struct history *h)
{
	random_actor(h);
	switch (pick(h, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		make_something(h);
		break;
	case 5:
		link_something(h);
		break;
	case 6:
		rename_something(h);
		break;
	case 7:
	case 8:
	case 9:
		remove_something(h);
		break;
	case 10:
	case 11:
		restore_something(h);
		break;
	case 12:
		undo_something(h);
		break;
	case 13:
		if (!h->patient)
			purge_something(h);
		break;
	case 14:
		let_time_pass(h);
		break;
	default:
		if (!h->patient && pick(h, 4) == 0)
			change_policy(h);
	}
}

static void assert_sound(struct history *h, unsigned n);

static void arm_something(struct history *h)
{
	static const enum fixture_fault kinds[] = { FAULT_CONFLICT, FAULT_LOST_ANSWER,
						    FAULT_OTHER_CLIENT, FAULT_ERROR };

	fixture_arm(h->f, kinds[pick(h, 4)], 1 + pick(h, 12));
	h->f->disturb = live_directory(h);
}

static void run_history(struct fixture *f, uint64_t seed, bool faults)
{
	struct history h = { .f = f, .directories = { KEY_ID_ROOT }, .count = 1, .faults = faults };

	random_init(&h.random, seed);
	for (unsigned i = 0; i < OPERATIONS; i++) {
		if (faults)
			arm_something(&h);
		step(&h);
		if (i % 10 == 9)
			assert_sound(&h, i);
	}
}

static void tell_problem(void *data, const char *path, const char *text)
{
	fprintf(stderr, "# %s: %s\n", path, text);
}

static void assert_sound(struct history *h, unsigned n)
{
	struct check_result checked;

	ck_assert_int_eq(lifecycle_check(h->f->store, tell_problem, NULL, NULL, &checked), 0);
	ck_assert_msg(checked.problems == 0, "seed %lu: %lu problems after operation %u",
		      (unsigned long)h->random.seed, (unsigned long)checked.problems, n);
}

static uint64_t seed_of_run;

/* ---- what must not be lost ------------------------------------------------------- */

static struct life *find_life(struct history *h, uint64_t id)
{
	for (size_t i = 0; i < h->lives_count; i++)
		if (h->lives[i].id == id)
			return &h->lives[i];
	return NULL;
}

/* Nothing that made an entry is destroyed before it expires. */
static void watch_deaths(void *data, const struct lifecycle_change *change)
{
	struct history *h = data;
	struct store_value value = { 0 };
	struct item item;

	if (change->to.state == KEY_DEL && change->to.name[0]) {
		ck_assert_uint_lt(h->seen_count, SEEN_MAX);
		ck_assert_int_eq(record_get_item(h->f->store, &change->to, true, &value, &item), 0);
		h->seen[h->seen_count].seq = change->to.seq;
		h->seen[h->seen_count++].expires_ns = change->temporary ? 0 : item.deletion.expires_ns;
		store_value_release(&value);
	}
	for (size_t i = 0; i < h->seen_count && !change->to.name[0]; i++)
		if (h->seen[i].seq == change->from.seq)
			ck_assert_msg(h->seen[i].expires_ns <= lifecycle_now_ns(h->f->life),
				      "seed %lu: destroyed early", (unsigned long)h->random.seed);
}

/* Wherever a file is, it has the bytes it was made with. */
static void assert_contents(struct history *h)
{
	for (size_t d = 0; d < h->count; d++) {
		struct store_query query = { 0 };
		struct store_page page = { 0 };

		key_range_directory(h->directories[d], &query.range);
		ck_assert_int_eq(store_query(h->f->store, &query, &page), 0);
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item item;
			struct life *life;

			if (record_row_item(h->f->store, &page.rows[i], &at, &item) ||
			    item.flags & ITEM_REFERENCE)
				continue;
			life = find_life(h, item.id);
			if (!life)
				continue;
			ck_assert_uint_eq(item.content_size, strlen(life->text));
			ck_assert(!item.content_size ||
				  !memcmp(item.content, life->text, item.content_size));
		}
		store_page_release(&page);
	}
}

static void patient_history(struct fixture *f)
{
	struct history h = { .f = f, .directories = { KEY_ID_ROOT }, .count = 1, .patient = true };

	h.lives = calloc(OPERATIONS, sizeof(*h.lives));
	h.seen = calloc(SEEN_MAX, sizeof(*h.seen));
	f->watch = watch_deaths;
	f->watch_data = &h;
	random_init(&h.random, seed_of_run);
	for (unsigned i = 0; i < OPERATIONS; i++) {
		step(&h);
		if (i % 10 == 9)
			assert_contents(&h);
	}
	f->watch = NULL;
	free(h.lives);
	free(h.seen);
}

static void one_history(struct fixture *f)
{
	run_history(f, seed_of_run, false);
}

static void one_faulty_history(struct fixture *f)
{
	run_history(f, seed_of_run, true);
}

START_TEST(random_histories_leave_a_sound_store)
{
	for (seed_of_run = 0; seed_of_run < random_rounds(HISTORIES); seed_of_run++)
		fixture_run_once(one_history);
}
END_TEST

START_TEST(only_time_destroys_what_nobody_purges)
{
	for (seed_of_run = 0; seed_of_run < random_rounds(HISTORIES); seed_of_run++)
		fixture_run_once(patient_history);
}
END_TEST

START_TEST(random_histories_with_faults_leave_a_sound_store)
{
	for (seed_of_run = 0; seed_of_run < random_rounds(HISTORIES); seed_of_run++)
		fixture_run_once(one_faulty_history);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("random");
	TCase *tcase = tcase_create("random");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, random_histories_leave_a_sound_store);
	tcase_add_test(tcase, only_time_destroys_what_nobody_purges);
	tcase_add_test(tcase, random_histories_with_faults_leave_a_sound_store);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
