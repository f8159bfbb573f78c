/*
 * test-local-threads.c - many threads on one local store whose generations are
 * small, so that overlay, sealed overlay and index change places all the time.
 * Readers must never see a transaction half, a stale item, or other bytes.
 *
 * Meant to be run under ThreadSanitizer too. DDBFS_THREADS_MS: how long (1500).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "store/record.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define WRITERS 3
#define READERS 3
#define PAIRS 200
#define BODY_SIZE (5 * 32768)

static char path[4200];
static struct store *store;
static atomic_bool stop;
static _Atomic uint64_t done[WRITERS]; /* transactions that each writer has had acknowledged */
static atomic_uint failures;

/* Checks in threads cannot end the test: they are counted, the first few printed. */
#define expect(condition)                                                         \
	do {                                                                      \
		if (!(condition) && atomic_fetch_add(&failures, 1) < 5)           \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
	} while (0)

static struct key pair_key(unsigned writer, unsigned side, unsigned n)
{
	char name[32];
	struct key key;

	snprintf(name, sizeof(name), "w%u-%03u-%u", writer, n, side);
	key_act(store_codec(store), 30 + writer, name, &key);
	return key;
}

static void fill(uint8_t *bytes, size_t size, uint64_t n)
{
	for (size_t i = 0; i + 8 <= size; i += 8)
		util_put_le64(bytes + i, n);
}

/* Both sides of a pair, and all of the writer's body, bear the transaction's number. */
static void *write_pairs(void *data)
{
	unsigned writer = (unsigned)(uintptr_t)data;
	uint8_t *bytes = malloc(BODY_SIZE);

	for (uint64_t n = 1; !stop; n++) {
		struct store_op ops[4] = { 0 };
		size_t count = 0;

		for (unsigned side = 0; side < 2; side++)
			ops[count++] = (struct store_op){
				.kind = n % 7 == 3 ? STORE_DELETE : STORE_PUT,
				.key = pair_key(writer, side, (unsigned)(n % PAIRS)),
				.attrs = (uint8_t *)&n,
				.attrs_size = sizeof(n),
			};
		ops[count] = (struct store_op){ .kind = STORE_ADD, .counter = writer, .delta = 1 };
		key_meta("n", &ops[count++].key);
		if (n % 5 == 0) {
			fill(bytes, BODY_SIZE, n);
			/* Alternating: through a segment, and in pieces through the journal. */
			ops[count++] = (struct store_op){
				.kind = STORE_BODY_WRITE,
				.body = 100 + writer,
				.offset = n % 10 ? 0 : 32,
				.length = BODY_SIZE - (n % 10 ? 0 : 64),
				.bytes = bytes,
			};
		}
		expect(store_transact(store, STORE_GROWING, ops, count, NULL) == 0);
		done[writer] = n;
	}
	free(bytes);
	return NULL;
}

static uint64_t number_of(const struct store_value *value)
{
	uint64_t n = 0;

	if (value->attrs_size == sizeof(n))
		memcpy(&n, value->attrs, sizeof(n));
	return n;
}

/* One page of a writer's directory: sides of a pair are neighbours and must be equal, or both be absent. */
static void read_page(unsigned writer, bool reverse)
{
	struct store_query query = { .limit = 64, .reverse = reverse };
	struct store_page page;

	key_range_live(30 + writer, &query.range);
	if (store_query(store, &query, &page) != 0) {
		expect(!"query failed");
		return;
	}
	for (size_t i = 0; i + 1 < page.count; i++) {
		const struct store_row *a = &page.rows[i], *b = &page.rows[i + 1];
		bool pair = a->key_size == b->key_size && !memcmp(a->key, b->key, a->key_size - 1);

		expect(!a->damaged);
		if (pair)
			expect(number_of(&a->value) == number_of(&b->value) &&
			       a->value.version == b->value.version);
		/* A side alone: only at the page's edges. */
		if (!pair && i && i + 2 < page.count) {
			const struct store_row *before = &page.rows[i - 1];

			expect(!memcmp(before->key, a->key, a->key_size - 1));
		}
	}
	store_page_release(&page);
}

/* What was acknowledged before the read began is what is read, or something later. */
static void read_pair(unsigned writer, unsigned n)
{
	uint64_t before = done[writer], last = before >= n ? before - (before - n) % PAIRS : 0;
	struct key key = pair_key(writer, 0, n % PAIRS);
	struct store_value value;
	int r = store_get(store, &key, true, &value);

	expect(r == 0 || r == STORE_ABSENT);
	if (r == 0) {
		expect(number_of(&value) % PAIRS == n % PAIRS);
		expect(!last || number_of(&value) >= last || last % 7 == 3);
		store_value_release(&value);
	} else if (last && last % 7 != 3) {
		/* Then a later one deleted it. */
		expect(done[writer] + 1 >= last + PAIRS);
	}
}

static void read_body(unsigned writer, uint8_t *bytes)
{
	uint64_t n;

	expect(store_body_read(store, 100 + writer, 64, bytes, BODY_SIZE - 128) == 0);
	n = util_get_le64(bytes);
	for (size_t i = 0; i + 8 <= BODY_SIZE - 128; i += 8)
		if (util_get_le64(bytes + i) != n) {
			expect(!"a body is seen half written");
			break;
		}
}

static void *read_all(void *data)
{
	unsigned seed = (unsigned)(uintptr_t)data;
	uint8_t *bytes = malloc(BODY_SIZE);

	while (!stop) {
		unsigned writer = seed % WRITERS;

		seed = seed * 1103515245 + 12345;
		read_page(writer, seed >> 16 & 1);
		for (unsigned i = 0; i < 20; i++)
			read_pair(writer, (seed >> 8) + i * 37);
		read_body(writer, bytes);
	}
	free(bytes);
	return NULL;
}

static void *sync_and_checkpoint(void *data)
{
	struct store_status status;
	struct store_space space;

	for (unsigned i = 0; !stop; i++) {
		expect(store_sync(store) == 0);
		if (i % 4 == 0)
			expect(store_checkpoint(store) == 0);
		store_status(store, &status);
		expect(store_space(store, &space) == 0);
	}
	return NULL;
}

static void pause_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

START_TEST(test_nothing_is_seen_half_or_stale)
{
	const char *ms = getenv("DDBFS_THREADS_MS");
	struct store_create_options create = { .kdf_level = 3, .journal_bytes = 2 << 20 };
	struct store_open_options options = { .generation_bytes = 600 << 10, .map_bytes = 1 << 30 };
	pthread_t threads[WRITERS + READERS + 1];
	struct store_open_report report;
	struct store_status status;
	size_t count = 0;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &create), 0);
	ck_assert_int_eq(store_open(path, &options, &report, &store), 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&threads[count++], NULL, write_pairs, (void *)i);
	for (uintptr_t i = 0; i < READERS; i++)
		pthread_create(&threads[count++], NULL, read_all, (void *)(i + 1));
	pthread_create(&threads[count++], NULL, sync_and_checkpoint, NULL);
	pause_ms(ms ? atol(ms) : 1500);
	stop = true;
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	store_status(store, &status);
	printf("# %lu transactions, %lu checkpoints, %lu syncs\n", done[0] + done[1] + done[2],
	       status.checkpoints, status.syncs);
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_gt(status.checkpoints, 3);
	for (unsigned i = 0; i < WRITERS; i++) {
		int64_t counters[STORE_COUNTERS_MAX];
		struct store_value value;
		struct key key;

		key_meta("n", &key);
		ck_assert_int_eq(store_get(store, &key, true, &value), 0);
		ck_assert_int_eq(record_decode_counters(&value, counters), 0);
		store_value_release(&value);
		ck_assert_uint_eq((uint64_t)counters[i], done[i]);
	}
	ck_assert_int_eq(store_close(store), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/local-threads");
	TCase *t = tcase_create("threads");

	tcase_set_timeout(t, 280);
	tcase_add_test(t, test_nothing_is_seen_half_or_stale);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
