/* test-threads.c - many at once: deleters of one tree, restore against sweep, creation against removal. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/fixture.h"

#define DELETERS 8
#define FILES 60
#define RACES 100

struct racer {
	pthread_t thread;
	struct fixture *f;
	pthread_barrier_t *start;
	struct actor actor;
	uint64_t directory;
	struct place at;
	unsigned won, lost;
	int result;
};

static void start(struct racer *racers, unsigned count, struct fixture *f,
		  pthread_barrier_t *barrier, void *(*body)(void *racer))
{
	pthread_barrier_init(barrier, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		racers[i].f = f;
		racers[i].start = barrier;
		racers[i].actor = f->actor;
		racers[i].actor.pid += i;
		racers[i].actor.group += i;
		ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, body, &racers[i]), 0);
	}
}

static void join(struct racer *racers, unsigned count, pthread_barrier_t *barrier)
{
	for (unsigned i = 0; i < count; i++)
		pthread_join(racers[i].thread, NULL);
	pthread_barrier_destroy(barrier);
}

static void *delete_tree(void *data)
{
	struct racer *r = data;
	char name[16];

	pthread_barrier_wait(r->start);
	for (unsigned i = 0; i < FILES; i++) {
		int result;

		snprintf(name, sizeof(name), "f%u", i);
		result = lifecycle_remove(r->f->life, &r->actor, r->directory, name, false);
		r->won += result == 0;
		r->lost += result == -ENOENT;
	}
	r->result = lifecycle_remove(r->f->life, &r->actor, KEY_ID_ROOT, "d", true);
	return NULL;
}

FIXTURE_TEST_ONCE(deleters_of_one_tree_make_one_entry_each)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct racer racers[DELETERS] = { 0 };
	pthread_barrier_t barrier;
	unsigned won = 0, lost = 0, removed = 0;
	char name[16];

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		make_file(f, d, name, name);
	}
	fixture_pass(f, HOUR);
	for (unsigned i = 0; i < DELETERS; i++)
		racers[i].directory = d;
	ck_assert_int_eq(lifecycle_sweeper_start(f->life), 0);
	start(racers, DELETERS, f, &barrier, delete_tree);
	join(racers, DELETERS, &barrier);
	lifecycle_sweeper_stop(f->life);
	for (unsigned i = 0; i < DELETERS; i++) {
		won += racers[i].won;
		lost += racers[i].lost;
		ck_assert(racers[i].result == 0 || racers[i].result == -ENOENT ||
			  racers[i].result == -ENOTEMPTY);
		removed += racers[i].result == 0;
	}
	ck_assert_uint_eq(won, FILES);
	ck_assert_uint_eq(lost, FILES * (DELETERS - 1));
	ck_assert_uint_eq(removed, 1);
	ck_assert_uint_eq(count_deleted(f, d), FILES);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), FILES + 1);
}

static void *restore_one(void *data)
{
	struct racer *r = data;

	pthread_barrier_wait(r->start);
	r->result = lifecycle_restore(r->f->life, &r->actor, &r->at, KEY_ID_ROOT, "back",
				      RESTORE_NOREPLACE, NULL, NULL);
	return NULL;
}

static void *sweep_once(void *data)
{
	struct racer *r = data;
	struct sweep_result swept;

	pthread_barrier_wait(r->start);
	fixture_pass(r->f, 2); /* the instant of expiry */
	r->result = lifecycle_sweep(r->f->life, 1000, &swept);
	return NULL;
}

static void *race_step(void *data)
{
	struct racer *r = data;

	return r->won ? sweep_once(r) : restore_one(r);
}

FIXTURE_TEST_ONCE(restore_and_sweep_race_to_one_outcome)
{
	unsigned restored = 0, destroyed = 0;
	char name[16];

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	for (unsigned i = 0; i < RACES; i++) {
		struct racer racers[2] = { 0 };
		uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
		pthread_barrier_t barrier;
		struct entry e;

		make_file(f, d, "a", "a");
		make_file(f, d, "b", "b");
		fixture_pass(f, 2 * MINUTE);
		act_as(f, 1000, 100 + i, "rm");
		rm_rf(f, KEY_ID_ROOT, "d");
		ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "d", &e), 0);
		racers[0].at = e.at;
		fixture_pass(f, e.expires_ns - lifecycle_now_ns(f->life) - 1);
		entry_release(&e);
		racers[1].won = 1;
		start(racers, 2, f, &barrier, race_step);
		join(racers, 2, &barrier);
		ck_assert_int_eq(racers[1].result, 0);
		if (racers[0].result == 0) {
			restored++;
			assert_text(f, d, "a", "a");
			assert_text(f, d, "b", "b");
			snprintf(name, sizeof(name), "back%u", i);
			ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "back", KEY_ID_ROOT, name), 0);
		} else {
			ck_assert_int_eq(racers[0].result, -ENOENT);
			destroyed++;
			fixture_pass(f, 2 * HOUR); /* a restore that began in time may have pinned it */
			sweep(f, NULL);
			ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
		}
	}
	ck_assert_uint_eq(restored + destroyed, RACES);
}

static void *make_in_directory(void *data)
{
	struct racer *r = data;

	pthread_barrier_wait(r->start);
	if (r->won) {
		r->result = lifecycle_remove(r->f->life, &r->actor, KEY_ID_ROOT, "d", true);
	} else {
		struct place at = { .directory = r->directory, .state = KEY_ACT, .name = "new" };
		struct item item = {
			.id = r->at.seq, .mode = S_IFREG | 0600, .links_live = 1, .links_total = 1
		};
		struct store_retry retry = { 0 };

		do {
			struct transaction t = { 0 };
			struct tree_directory d;

			r->result = tree_load(r->f->store, r->directory, &d);
			if (!r->result && !tree_is_live(&d))
				r->result = -ENOENT;
			if (!r->result) {
				transaction_put_item(&t, r->f->store, &at, &item, 0);
				tree_put_own(&t, r->f->store, &d);
				tree_check_guard(&t, &d);
				transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
				r->result = tree_commit(&t, r->f->store, STORE_GROWING, NULL);
			}
			transaction_release(&t);
			tree_release(&d);
		} while (store_retry(&retry, &r->result));
	}
	return NULL;
}

FIXTURE_TEST_ONCE(create_and_rmdir_never_both_succeed)
{
	for (unsigned i = 0; i < RACES; i++) {
		struct racer racers[2] = { 0 };
		uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
		pthread_barrier_t barrier;

		fixture_pass(f, 2 * MINUTE);
		racers[0].directory = d;
		ck_assert_int_eq(store_new_id(f->store, &racers[0].at.seq), 0);
		racers[1].won = 1;
		start(racers, 2, f, &barrier, make_in_directory);
		join(racers, 2, &barrier);
		ck_assert_int_ne(racers[0].result == 0, racers[1].result == 0);
		if (racers[0].result == 0) {
			ck_assert_int_eq(racers[1].result, -ENOTEMPTY);
			discard(f, KEY_ID_ROOT, "d");
		} else {
			ck_assert_int_eq(racers[0].result, -ENOENT);
		}
	}
}

int main(void)
{
	Suite *suite = suite_create("threads");
	TCase *tcase = tcase_create("threads");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, deleters_of_one_tree_make_one_entry_each);
	tcase_add_test(tcase, restore_and_sweep_race_to_one_outcome);
	tcase_add_test(tcase, create_and_rmdir_never_both_succeed);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
