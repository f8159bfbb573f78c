/*
 * test-local.c - the local engine by what only it has: what survives when its
 * process is killed, what a replay brings back, what is given back to the disk,
 * what it refuses to open.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "store/record.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define MIB (UINT64_C(1) << 20)
#define CHUNK 32768

static char path[4200];

static void make_store(uint64_t journal_bytes)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = journal_bytes };

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
}

static struct store *open_with(const struct store_open_options *options)
{
	struct store_open_report report;
	struct store *s;
	int r = store_open(path, options, &report, &s);

	/* One that was killed while it opened may have a child for another moment. */
	for (unsigned i = 0; i < 100 && r == STORE_IN_USE; i++) {
		usleep(10000);
		r = store_open(path, options, &report, &s);
	}
	ck_assert_msg(r == 0, "store_open: %d %s", r, report.text);
	return s;
}

static struct store *open_store(void)
{
	return open_with(&(struct store_open_options){ .map_bytes = 1 << 30 });
}

static struct key name_key(struct store *s, const char *name)
{
	struct key key;

	key_act(store_codec(s), 20, name, &key);
	return key;
}

static int put_text(struct store *s, const char *name, const char *text)
{
	struct store_op op = {
		.kind = STORE_PUT,
		.key = name_key(s, name),
		.attrs = (const uint8_t *)text,
		.attrs_size = strlen(text),
	};

	return store_transact(s, STORE_GROWING, &op, 1, NULL);
}

static bool text_is(struct store *s, const char *name, const char *text)
{
	struct key key = name_key(s, name);
	struct store_value value;
	bool same;

	if (store_get(s, &key, false, &value))
		return false;
	same = value.attrs_size == strlen(text) && !memcmp(value.attrs, text, value.attrs_size);
	store_value_release(&value);
	return same;
}

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> 56);
	}
}

static int write_body(struct store *s, uint64_t body, uint64_t offset, const void *bytes, size_t size)
{
	struct store_op op = {
		.kind = STORE_BODY_WRITE, .body = body, .offset = offset, .bytes = bytes, .length = size
	};

	return store_transact(s, STORE_GROWING, &op, 1, NULL);
}

static int free_body(struct store *s, uint64_t body)
{
	struct store_op op = { .kind = STORE_BODY_FREE, .body = body };

	return store_transact(s, STORE_RELEASING, &op, 1, NULL);
}

/* Blocks that the store's segments occupy, in bytes; and how many there are. */
static uint64_t segment_bytes(unsigned *ret_count)
{
	char command[4400], line[64] = "";
	unsigned long long kib = 0;
	unsigned count = 0;
	FILE *f;

	snprintf(command, sizeof(command), "cd %s/segments && ls | wc -l; du -sk . | cut -f1", path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	if (fgets(line, sizeof(line), f))
		count = (unsigned)strtoul(line, NULL, 10);
	if (fgets(line, sizeof(line), f))
		kib = strtoull(line, NULL, 10);
	pclose(f);
	if (ret_count)
		*ret_count = count;
	return kib * 1024;
}

/* Runs `work` in a process that then ends as if it were killed. */
static void in_killed_process(void (*work)(struct store *s), const struct store_open_options *options)
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		work(open_with(options));
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- killed while it works ----------------------------------------------------- */

#define NAMES 40
#define BODIES 4
#define BODY_SIZE (6 * CHUNK)

/* What transaction number n does: an item, a counter, some bytes, now and then a body freed and begun anew. */
struct plan {
	char name[16];
	char text[32];
	uint64_t body;
	uint64_t offset;
	size_t size;
	uint64_t freed; /* body, or 0 */
};

static uint64_t body_of(uint64_t n)
{
	/* Each slot has a new body every 60 transactions. */
	return 100 + n % BODIES + n / 60 * BODIES;
}

static struct plan plan_of(uint64_t n)
{
	static const size_t sizes[] = { 100, 5000, CHUNK, 3 * CHUNK, 40000, 4096, 1, 70000 };
	struct plan p = { .body = body_of(n), .size = sizes[n % ARRAY_SIZE(sizes)] };

	snprintf(p.name, sizeof(p.name), "n%u", (unsigned)(n % NAMES));
	snprintf(p.text, sizeof(p.text), "text %llu", (unsigned long long)n);
	p.offset = n * 7919 % (BODY_SIZE - p.size);
	if (n % 3 == 0)
		p.offset = p.offset / CHUNK * CHUNK;
	if (n >= 60 && n % 60 < BODIES)
		p.freed = body_of(n - 60);
	return p;
}

static int do_plan(struct store *s, uint64_t n)
{
	static uint8_t bytes[BODY_SIZE];
	struct plan p = plan_of(n);
	struct store_op ops[4] = {
		{ .kind = STORE_PUT,
		  .key = name_key(s, p.name),
		  .attrs = (uint8_t *)p.text,
		  .attrs_size = strlen(p.text) },
		{ .kind = STORE_ADD, .counter = 3, .delta = 1 },
		{ .kind = STORE_BODY_WRITE, .body = p.body, .offset = p.offset, .length = p.size, .bytes = bytes },
		{ .kind = STORE_BODY_FREE, .body = p.freed },
	};

	fill(bytes, p.size, n);
	key_meta("n", &ops[1].key);
	return store_transact(s, STORE_GROWING, ops, p.freed ? 4 : 3, NULL);
}

static uint64_t count_of(struct store *s)
{
	int64_t counters[STORE_COUNTERS_MAX];
	struct store_value value;
	struct key key;

	key_meta("n", &key);
	if (store_get(s, &key, true, &value))
		return 0;
	ck_assert_int_eq(record_decode_counters(&value, counters), 0);
	store_value_release(&value);
	return (uint64_t)counters[3];
}

/* The store holds exactly transactions 0 to n - 1. */
static void expect_plans(struct store *s, uint64_t n)
{
	static uint8_t model[BODY_SIZE], bytes[BODY_SIZE];

	for (uint64_t i = n > NAMES ? n - NAMES : 0; i < n; i++)
		ck_assert_msg(text_is(s, plan_of(i).name, plan_of(i).text), "item of %lu of %lu", i, n);
	for (unsigned slot = 0; slot < BODIES && n; slot++) {
		uint64_t last = (n - 1) / BODIES * BODIES + slot, body;

		if (last >= n && last < BODIES)
			continue;
		body = body_of(last >= n ? last - BODIES : last);
		memset(model, 0, sizeof(model));
		for (uint64_t i = 0; i < n; i++)
			if (plan_of(i).body == body)
				fill(model + plan_of(i).offset, plan_of(i).size, i);
		ck_assert_int_eq(store_body_read(s, body, 0, bytes, sizeof(bytes)), 0);
		ck_assert_msg(!memcmp(model, bytes, sizeof(bytes)), "body %lu of %lu", body, n);
	}
}

static void *checkpoint_often(void *data)
{
	for (;;) {
		store_checkpoint(data);
		usleep(3000);
	}
	return NULL;
}

/* In the child: goes on from where the store is until it is killed. */
static void work_until_killed(_Atomic uint64_t *acknowledged, bool checkpoints)
{
	struct store *s = open_with(&(struct store_open_options){ .generation_bytes = 300 << 10 });
	uint64_t n = count_of(s);
	pthread_t thread;

	*acknowledged = n;
	if (checkpoints)
		pthread_create(&thread, NULL, checkpoint_often, s);
	for (;; n++) {
		if (do_plan(s, n))
			_exit(1);
		*acknowledged = n + 1;
	}
}

START_TEST(test_what_was_acknowledged_survives_a_kill)
{
	_Atomic uint64_t *acknowledged = mmap(NULL, sizeof(*acknowledged), PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned rounds = getenv("DDBFS_KILL_ROUNDS") ? (unsigned)atoi(getenv("DDBFS_KILL_ROUNDS")) : 25;

	make_store(1 << 20);
	for (unsigned i = 0; i < rounds; i++) {
		struct store *s;
		uint64_t n;
		int status;
		pid_t pid = fork();

		if (pid == 0)
			work_until_killed(acknowledged, i % 2);
		usleep(15000 + i * 3777 % 60000);
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFSIGNALED(status), "the writer failed by itself");
		s = open_store();
		n = count_of(s);
		ck_assert_uint_ge(n, *acknowledged);
		ck_assert_uint_le(n, *acknowledged + 1);
		expect_plans(s, n);
		ck_assert_int_eq(store_close(s), 0);
		if (getenv("DDBFS_KILL_ROUNDS"))
			printf("# round %u: %lu transactions\n", i, n);
	}
	munmap(acknowledged, sizeof(*acknowledged));
}
END_TEST

/* ---- replay ---------------------------------------------------------------------- */

static uint8_t pattern[8 * 1024 * 1024];

static void write_some(struct store *s)
{
	ck_assert_int_eq(put_text(s, "a", "one"), 0);
	ck_assert_int_eq(put_text(s, "b", "two"), 0);
	ck_assert_int_eq(write_body(s, 100, 10, pattern, MIB), 0);
}

START_TEST(test_a_replay_is_replayed_once)
{
	struct store_status status;
	struct store *s;

	fill(pattern, sizeof(pattern), 1);
	make_store(1 << 20);
	in_killed_process(write_some, &(struct store_open_options){ 0 });
	s = open_store();
	store_status(s, &status);
	/* Opening and working each put something of the store's own in as well. */
	ck_assert_uint_ge(status.replayed, 3);
	ck_assert(text_is(s, "b", "two"));
	ck_assert_int_eq(store_close(s), 0);
	s = open_store();
	store_status(s, &status);
	ck_assert_uint_eq(status.replayed, 0);
	ck_assert(text_is(s, "a", "one"));
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* A hash of everything but the lock. */
static uint64_t hash_of_store(void)
{
	char command[4500], line[256] = "";
	uint64_t hash = 0;
	FILE *f;

	snprintf(command, sizeof(command),
		 "cd %s && find . -type f ! -name lock ! -name lock.mdb -printf '%%p %%s %%T@ ' -exec cksum {} ';' | sort",
		 path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		for (const char *c = line; *c; c++)
			hash = (hash ^ (uint8_t)*c) * 1099511628211u;
	pclose(f);
	return hash;
}

START_TEST(test_reading_only_sees_the_replay_and_writes_nothing)
{
	static uint8_t bytes[1 << 20];
	struct store_status status;
	uint64_t before;
	struct store *s;

	fill(pattern, sizeof(pattern), 1);
	make_store(1 << 20);
	in_killed_process(write_some, &(struct store_open_options){ 0 });
	before = hash_of_store();
	s = open_with(&(struct store_open_options){ .read_only = true });
	ck_assert(text_is(s, "a", "one"));
	ck_assert_int_eq(store_body_read(s, 100, 10, bytes, sizeof(bytes)), 0);
	ck_assert_mem_eq(bytes, pattern, sizeof(bytes));
	ck_assert_int_eq(put_text(s, "a", "three"), -EROFS);
	store_status(s, &status);
	ck_assert_uint_eq(status.journal_bytes, 0);
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_uint_eq(before, hash_of_store());
}
END_TEST

static void fill_generations(struct store *s)
{
	char name[16];

	/* Ten times the journal, many generations. */
	for (unsigned i = 0; i < 2500; i++) {
		snprintf(name, sizeof(name), "n%u", i % 300);
		ck_assert_int_eq(write_body(s, 200 + i % 5, i * 4096, pattern, 4096), 0);
		ck_assert_int_eq(put_text(s, name, name), 0);
	}
}

START_TEST(test_generations_come_and_go)
{
	static uint8_t bytes[4096];
	struct store_status status;
	struct store *s;

	fill(pattern, sizeof(pattern), 7);
	make_store(1 << 20);
	in_killed_process(fill_generations,
			  &(struct store_open_options){ .generation_bytes = 512 << 10 });
	s = open_store();
	store_status(s, &status);
	ck_assert_uint_gt(status.replayed, 0);
	for (unsigned i = 0; i < 2500; i++) {
		ck_assert_int_eq(store_body_read(s, 200 + i % 5, i * 4096, bytes, 4096), 0);
		ck_assert_mem_eq(bytes, pattern, 4096);
	}
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

static int delete_name(struct store *s, const char *name)
{
	struct store_op op = { .kind = STORE_DELETE,
			       .condition = STORE_IF_PRESENT,
			       .key = name_key(s, name) };

	return store_transact(s, STORE_RELEASING, &op, 1, NULL);
}

/* However much there is to do, whoever lets others go first never fills what they need. */
START_TEST(test_long_work_that_yields_keeps_nobody_waiting)
{
	struct store_status before, after;
	struct store *s;
	char name[32];

	make_store(1 << 20);
	s = open_store();
	for (unsigned i = 0; i < 40000; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(put_text(s, name, name), 0);
	}
	store_status(s, &before);
	for (unsigned i = 0; i < 40000; i++) {
		if (i % 20 == 0) {
			store_yield(s);
			store_status(s, &after);
			/* Half of the journal is for others, less what its marks take. */
			ck_assert_uint_le(after.journal_bytes, (512 + 64) << 10);
		}
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(delete_name(s, name), 0);
	}
	store_status(s, &after);
	ck_assert_uint_ge(after.checkpoints - before.checkpoints, 40000 / 8000);
	ck_assert_uint_eq(after.waits - before.waits, 0);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* ---- space ------------------------------------------------------------------------- */

START_TEST(test_holes_fill_a_generation)
{
	struct store_status before, after;
	struct store *s;

	make_store(32 << 20);
	s = open_store();
	store_status(s, &before);
	for (uint64_t n = 0; n < 12000; n++) {
		struct store_op op = { .kind = STORE_BODY_ZERO,
				       .body = 100,
				       .offset = 200 * n * CHUNK,
				       .length = 100 * CHUNK };

		ck_assert_int_eq(store_transact(s, STORE_RELEASING, &op, 1, NULL), 0);
	}
	/* A full generation was sealed; its commit may still be under way. */
	for (unsigned tries = 0; tries < 600; tries++) {
		store_status(s, &after);
		if (after.checkpoints > before.checkpoints)
			break;
		usleep(100000);
	}
	ck_assert_uint_gt(after.checkpoints, before.checkpoints);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* What is written all over a big file belongs to few items of the index: a generation holds its 24 MiB of it. */
START_TEST(test_small_writes_fill_a_generation_by_their_bytes)
{
	struct store_status before, after;
	struct store *s;

	fill(pattern, sizeof(pattern), 11);
	make_store(32 << 20);
	s = open_store();
	store_status(s, &before);
	for (uint64_t n = 0; n < 4000; n++)
		ck_assert_int_eq(write_body(s, 100, n * 1237 % 4096 * CHUNK, pattern + n, 4096), 0);
	store_status(s, &after);
	ck_assert_uint_le(after.checkpoints, before.checkpoints + 1);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* Neighbouring writes take the memory of their bytes, about. */
START_TEST(test_small_writes_take_no_more_memory_than_their_bytes)
{
	struct store_status status;
	struct store *s;

	fill(pattern, sizeof(pattern), 12);
	make_store(32 << 20);
	s = open_store();
	for (uint64_t n = 0; n < 1024; n++)
		ck_assert_int_eq(write_body(s, 100, n * 4096, pattern + n, 4096), 0);
	store_status(s, &status);
	ck_assert_uint_eq(status.checkpoints, 0);
	ck_assert_uint_le(status.overlay_bytes, 5 * MIB);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

/* Kilobytes of the index that this process has mapped in. */
static long index_resident_kb(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool inside = false;
	char line[512], permission;
	long kb = 0, n;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x-%*x %c", &permission) == 1)
			inside = strstr(line, "/data.mdb") != NULL;
		else if (inside && sscanf(line, "Rss: %ld", &n) == 1)
			kb += n;
	}
	fclose(f);
	return kb;
}

static uint8_t *map_privately(const char *name)
{
	char file[4300];
	uint8_t *map;
	int fd;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	fd = open(file, O_RDONLY);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ck_assert(map != MAP_FAILED);
	close(fd);
	return map;
}

START_TEST(test_memory_is_given_back_when_nothing_is_read)
{
	char name[16], text[1024];
	uint8_t *private;
	struct store *s;
	unsigned tries;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	make_store(32 << 20);
	s = open_store();
	private = map_privately("data.mdb");
	private[4000] = 77;
	for (unsigned n = 0; n < 3000; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		ck_assert_int_eq(put_text(s, name, text), 0);
	}
	ck_assert_int_eq(store_checkpoint(s), 0);
	for (unsigned n = 0; n < 3000; n++) {
		snprintf(name, sizeof(name), "f%u", n);
		ck_assert(text_is(s, name, text));
	}
	ck_assert_int_gt(index_resident_kb(), 3000);
	for (tries = 0; tries < 600 && index_resident_kb() > 300; tries++)
		usleep(100000);
	ck_assert_int_lt(tries, 600);
	ck_assert(text_is(s, "f7", text));
	/* A mapping that only looks like the index's (numbers of files repeat on other file systems) keeps what was changed in it. */
	ck_assert_uint_eq(private[4000], 77);
	munmap(private, 4096);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

static void write_large(struct store *s, uint64_t body, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += MIB)
		ck_assert_int_eq(write_body(s, body, at, pattern + at % (4 * MIB), MIB), 0);
}

START_TEST(test_freed_bodies_go_back_to_the_disk)
{
	uint64_t full, left;
	struct store_status status;
	struct store *s;
	unsigned count;

	fill(pattern, sizeof(pattern), 3);
	make_store(4 << 20);
	s = open_store();
	write_large(s, 100, 40 * MIB);
	write_large(s, 101, 3 * MIB);
	write_large(s, 102, 3 * MIB);
	ck_assert_int_eq(store_checkpoint(s), 0);
	full = segment_bytes(NULL);
	ck_assert_uint_ge(full, 46 * MIB);
	ck_assert_int_eq(free_body(s, 100), 0);
	ck_assert_int_eq(free_body(s, 101), 0);
	ck_assert_int_eq(store_checkpoint(s), 0);
	store_status(s, &status);
	ck_assert_uint_eq(status.free_pending, 0);
	ck_assert_uint_lt(segment_bytes(NULL), 12 * MIB);
	ck_assert_int_eq(free_body(s, 102), 0);
	ck_assert_int_eq(store_close(s), 0);
	left = segment_bytes(&count);
	ck_assert_msg(left < MIB && count == 0, "%lu bytes in %u segments are left", left, count);
}
END_TEST

START_TEST(test_what_is_written_over_goes_back)
{
	struct store *s;

	fill(pattern, sizeof(pattern), 3);
	make_store(4 << 20);
	s = open_store();
	for (unsigned i = 0; i < 10; i++) {
		write_large(s, 100, 8 * MIB);
		ck_assert_int_eq(store_checkpoint(s), 0);
	}
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_uint_lt(segment_bytes(NULL), 10 * MIB);
}
END_TEST

/* A transaction that is refused leaves nothing in the segments. */
START_TEST(test_a_conflict_leaves_no_chunks)
{
	struct store *s;
	unsigned count;

	fill(pattern, sizeof(pattern), 3);
	make_store(4 << 20);
	s = open_store();
	for (unsigned i = 0; i < 20; i++) {
		struct store_op ops[2] = {
			{ .kind = STORE_BODY_WRITE, .body = 100, .offset = 0, .length = MIB, .bytes = pattern },
			{ .kind = STORE_CHECK, .condition = STORE_IF_PRESENT, .key = name_key(s, "nothing") },
		};

		ck_assert_int_eq(store_transact(s, STORE_GROWING, ops, 2, NULL), STORE_CONFLICT);
	}
	ck_assert_int_eq(store_close(s), 0);
	segment_bytes(&count);
	ck_assert_uint_eq(count, 0);
}
END_TEST

static void write_and_sync(struct store *s)
{
	ck_assert_int_eq(write_body(s, 100, 0, pattern, MIB), 0);
	ck_assert_int_eq(store_sync(s), 0);
	/* These are nobody's when the process ends: written for transactions that did not come about. */
	for (unsigned i = 0; i < 4; i++) {
		struct store_op ops[2] = {
			{ .kind = STORE_BODY_WRITE, .body = 101, .offset = 0, .length = MIB, .bytes = pattern },
			{ .kind = STORE_CHECK, .condition = STORE_IF_PRESENT, .key = name_key(s, "nothing") },
		};

		ck_assert_int_eq(store_transact(s, STORE_GROWING, ops, 2, NULL), STORE_CONFLICT);
	}
	ck_assert_int_eq(write_body(s, 102, 0, pattern, MIB), 0);
}

START_TEST(test_a_crash_leaves_no_chunks_of_nobody)
{
	static uint8_t bytes[1 << 20];
	struct store *s;

	fill(pattern, sizeof(pattern), 3);
	make_store(4 << 20);
	in_killed_process(write_and_sync, &(struct store_open_options){ 0 });
	ck_assert_uint_ge(segment_bytes(NULL), 6 * MIB);
	s = open_store();
	for (unsigned i = 0; i < 3; i += 2) {
		ck_assert_int_eq(store_body_read(s, 100 + i, 0, bytes, sizeof(bytes)), 0);
		ck_assert_mem_eq(bytes, pattern, sizeof(bytes));
	}
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_uint_lt(segment_bytes(NULL), 3 * MIB);
}
END_TEST

/* ---- what it refuses ------------------------------------------------------------------ */

/* In the directory of the store. */
static void run(const char *words)
{
	char command[4500];

	snprintf(command, sizeof(command), "cd %s && %s", path, words);
	ck_assert_int_eq(system(command), 0);
}

static void expect_refusal(const char *words)
{
	struct store_open_report report = { 0 };
	uint64_t before = hash_of_store();
	struct store *s;
	int r = store_open(path, &(struct store_open_options){ 0 }, &report, &s);

	ck_assert_int_eq(r, STORE_DAMAGED);
	ck_assert_msg(strstr(report.text, words), "%s", report.text);
	ck_assert_uint_eq(before, hash_of_store());
}

static void change_and_close(unsigned n)
{
	struct store *s = open_store();
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(put_text(s, "a", text), 0);
		ck_assert_int_eq(store_checkpoint(s), 0);
	}
	ck_assert_int_eq(store_close(s), 0);
}

START_TEST(test_an_older_database_is_refused)
{
	make_store(1 << 20);
	change_and_close(1);
	run("cp data.mdb ../old.mdb");
	change_and_close(3);
	run("cp ../old.mdb data.mdb");
	expect_refusal("older than its journal");
}
END_TEST

static void put_and_sync(struct store *s)
{
	ck_assert_int_eq(put_text(s, "b", "new"), 0);
	ck_assert_int_eq(store_sync(s), 0);
}

/* Neither journal counts any more, not even the one that no change was written to since. */
START_TEST(test_a_discarded_journal_does_not_come_back)
{
	struct store *s;

	make_store(1 << 20);
	change_and_close(1);
	run("cp data.mdb ../old.mdb");
	change_and_close(3);
	run("cp ../old.mdb data.mdb");
	in_killed_process(put_and_sync, &(struct store_open_options){ .discard_journal = true });
	s = open_store();
	ck_assert(text_is(s, "b", "new"));
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_what_was_discarded_is_told_whatever_else_there_is_to_tell)
{
	struct store_open_report report = { 0 };
	struct store *s;

	make_store(1 << 20);
	change_and_close(1);
	run("cp data.mdb ../old.mdb");
	change_and_close(3);
	run("cp ../old.mdb data.mdb && echo 'a sync failed' > stopped");
	ck_assert_int_eq(store_open(path, &(struct store_open_options){ .discard_journal = true },
				    &report, &s),
			 0);
	ck_assert(report.discarded);
	ck_assert_msg(strstr(report.text, "discarded-1"), "%s", report.text);
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(store_open(path, &(struct store_open_options){ 0 }, &report, &s), 0);
	ck_assert_msg(strstr(report.text, "a sync failed"), "%s", report.text);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

START_TEST(test_older_journals_are_refused)
{
	make_store(1 << 20);
	change_and_close(1);
	run("mkdir ../old && cp journal.* ../old/");
	change_and_close(3);
	run("cp ../old/journal.* .");
	expect_refusal("journal");
}
END_TEST

static void sync_and_go_on(struct store *s)
{
	char name[16];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ck_assert_int_eq(put_text(s, name, name), 0);
		if (i == 19)
			ck_assert_int_eq(store_sync(s), 0);
	}
}

/* Finds the `n`-th record of the newest journal that has any beyond its anchor, by its magic; flips a bit in its seal. */
static void flip_record(unsigned n)
{
	static uint8_t bytes[1 << 20];
	char name[4300];
	int fd = -1, best = -1;
	unsigned most = 0;

	for (int file = 0; file < 2; file++) {
		unsigned count = 0;

		snprintf(name, sizeof(name), "%s/journal.%d", path, file);
		fd = open(name, O_RDONLY);
		ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
		close(fd);
		for (size_t at = 8192; at + 8 < sizeof(bytes); at += 8)
			count += !memcmp(bytes + at, "jrec", 4);
		if (count > most) {
			most = count;
			best = file;
		}
	}
	snprintf(name, sizeof(name), "%s/journal.%d", path, best);
	fd = open(name, O_RDWR);
	ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (size_t at = 8192; at + 8 < sizeof(bytes); at += 8) {
		if (memcmp(bytes + at, "jrec", 4) || n--)
			continue;
		bytes[at + 60] ^= 4;
		ck_assert_int_eq(pwrite(fd, bytes + at + 60, 1, (off_t)at + 60), 1);
		close(fd);
		return;
	}
	ck_abort_msg("there are not so many records");
}

START_TEST(test_damage_to_what_was_durable_is_refused)
{
	make_store(1 << 20);
	in_killed_process(sync_and_go_on, &(struct store_open_options){ 0 });
	flip_record(12);
	expect_refusal("damaged");
}
END_TEST

/* Whatever follows: pages that were not synced reach the disk in any order. */
START_TEST(test_a_bad_record_that_was_not_durable_ends_the_log)
{
	struct store *s;
	char name[16];
	unsigned there = 0;

	make_store(1 << 20);
	in_killed_process(sync_and_go_on, &(struct store_open_options){ 0 });
	flip_record(34);
	s = open_store();
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		if (text_is(s, name, name)) {
			ck_assert_uint_eq(there, i);
			there++;
		}
	}
	ck_assert_uint_ge(there, 20);
	ck_assert_uint_lt(there, 40);
	ck_assert_int_eq(store_close(s), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store/local");
	TCase *t = tcase_create("local");

	tcase_set_timeout(t, 100);
	tcase_add_test(t, test_what_was_acknowledged_survives_a_kill);
	tcase_add_test(t, test_a_replay_is_replayed_once);
	tcase_add_test(t, test_reading_only_sees_the_replay_and_writes_nothing);
	tcase_add_test(t, test_generations_come_and_go);
	tcase_add_test(t, test_long_work_that_yields_keeps_nobody_waiting);
	tcase_add_test(t, test_holes_fill_a_generation);
	tcase_add_test(t, test_memory_is_given_back_when_nothing_is_read);
	tcase_add_test(t, test_small_writes_fill_a_generation_by_their_bytes);
	tcase_add_test(t, test_small_writes_take_no_more_memory_than_their_bytes);
	tcase_add_test(t, test_freed_bodies_go_back_to_the_disk);
	tcase_add_test(t, test_what_is_written_over_goes_back);
	tcase_add_test(t, test_a_conflict_leaves_no_chunks);
	tcase_add_test(t, test_a_crash_leaves_no_chunks_of_nobody);
	tcase_add_test(t, test_an_older_database_is_refused);
	tcase_add_test(t, test_a_discarded_journal_does_not_come_back);
	tcase_add_test(t, test_what_was_discarded_is_told_whatever_else_there_is_to_tell);
	tcase_add_test(t, test_older_journals_are_refused);
	tcase_add_test(t, test_damage_to_what_was_durable_is_refused);
	tcase_add_test(t, test_a_bad_record_that_was_not_durable_ends_the_log);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
