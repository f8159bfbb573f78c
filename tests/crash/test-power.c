/*
 * test-power.c - the power fails, at any moment, with any part of what was not
 * synced on the disk.
 *
 * A process works on a store while every call that changes its files is logged.
 * From the log, states are built that a disk may have been in: what was synced
 * is there; of the rest everything, nothing, or any part, down to sectors of 512
 * bytes and in any order; names in a directory that was not synced may be
 * missing. Each state is opened. It must hold exactly the first n transactions,
 * n not below the last store_sync that had returned, and be usable; also when the
 * process that recovers it is killed, and the next one.
 *
 *     DDBFS_POWER_STATES   how many (6,000)
 *     DDBFS_POWER_SEED     of the random choices
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/util.h"
#include "tests/crash/files.h"
#include "tests/crash/plan.h"
#include "tests/crash/shim.h"
#include "tests/lib/test.h"

#define FILES_MAX 512
#define SECTOR 512
#define LOG_MAX (UINT64_C(2) << 30)

#define NOTE_SYNCED (UINT64_C(1) << 32) /* added to the number of transactions that are durable */

/* A file as the disk has it, and what was done to it since. */
struct disk_file {
	char path[32];
	bool exists;
	struct buffer bytes;
	const struct shim_record **pending;
	size_t count;
	size_t capacity;
};

static char original[4100], state[4100];
static struct disk_file disk[FILES_MAX];
static size_t disk_count;
static uint64_t seed;
static uint64_t acknowledged, synced;
static unsigned long tried, rewritten, recovered;

/* ---- the disk ------------------------------------------------------------------ */

static struct disk_file *disk_find(const char *path)
{
	for (size_t i = 0; i < disk_count; i++)
		if (!strcmp(disk[i].path, path))
			return &disk[i];
	ck_assert_uint_lt(disk_count, FILES_MAX);
	ck_assert_uint_lt(strlen(path), sizeof(disk[0].path));
	strcpy(disk[disk_count].path, path);
	return &disk[disk_count++];
}

static void read_whole(const char *path, struct buffer *b)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(read(fd, buffer_append(b, NULL, (size_t)st.st_size), (size_t)st.st_size),
			 st.st_size);
	close(fd);
}

/* The store as it was made: all of it was synced. */
static void disk_begin(void)
{
	struct store_files files;

	for (size_t i = 0; i < disk_count; i++) {
		buffer_release(&disk[i].bytes);
		free(disk[i].pending);
	}
	memset(disk, 0, sizeof(disk));
	disk_count = 0;
	files_list(original, &files);
	for (size_t i = 0; i < files.count; i++) {
		struct disk_file *f = disk_find(files.items[i].path);
		char path[4500];

		snprintf(path, sizeof(path), "%s/%s", original, f->path);
		f->exists = true;
		read_whole(path, &f->bytes);
	}
	files_release(&files);
}

static void grow(struct buffer *b, size_t size)
{
	size_t old = b->size;

	if (size <= old)
		return;
	buffer_append(b, NULL, size - old);
	memset(b->bytes + old, 0, size - old);
}

static void apply_bytes(struct buffer *b, uint64_t offset, const uint8_t *bytes, uint64_t size)
{
	grow(b, offset + size);
	memcpy(b->bytes + offset, bytes, size);
}

static bool is_write(const struct shim_record *r)
{
	return r->kind == SHIM_LOG_WRITE || r->kind == SHIM_LOG_WRITE_SYNCED;
}

static void apply(struct buffer *b, const struct shim_record *r)
{
	if (is_write(r)) {
		apply_bytes(b, r->offset, r->bytes, r->size);
	} else if (r->kind == SHIM_LOG_PUNCH) {
		uint64_t end = util_min(r->offset + r->size, (uint64_t)b->size);

		if (r->offset < end)
			memset(b->bytes + r->offset, 0, end - r->offset);
	} else if (r->kind == SHIM_LOG_TRUNCATE) {
		grow(b, r->offset);
		b->size = r->offset;
	}
}

static bool is_of_directory(const struct shim_record *r)
{
	return r->kind == SHIM_LOG_CREATE || r->kind == SHIM_LOG_REMOVE;
}

static bool is_in(const char *path, const char *directory)
{
	const char *slash = strrchr(path, '/');
	size_t size = slash ? (size_t)(slash - path) : 0;

	return strlen(directory) == size && !memcmp(path, directory, size);
}

/* What was pending when a sync began, and is of its kind, is on the disk. */
static void make_durable(struct disk_file *f, const struct shim_record *sync)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		const struct shim_record *r = f->pending[i];

		if (is_of_directory(r) != (sync->kind == SHIM_LOG_SYNC_DIRECTORY) ||
		    !shim_log_before(r, sync))
			f->pending[kept++] = r;
		else if (is_of_directory(r))
			f->exists = r->kind == SHIM_LOG_CREATE;
		else
			apply(&f->bytes, r);
	}
	f->count = kept;
}

static void disk_step(const struct shim_record *r)
{
	struct disk_file *f;

	if (r->kind == SHIM_LOG_NOTE) {
		if (r->offset >= NOTE_SYNCED)
			synced = r->offset - NOTE_SYNCED;
		else
			acknowledged = r->offset;
		return;
	}
	if (r->kind == SHIM_LOG_SYNC_DIRECTORY) {
		for (size_t i = 0; i < disk_count; i++)
			if (is_in(disk[i].path, shim_log_path(r)))
				make_durable(&disk[i], r);
		return;
	}
	f = disk_find(shim_log_path(r));
	if (r->kind == SHIM_LOG_SYNC) {
		make_durable(f, r);
		return;
	}
	/* Durable by itself, whatever became of what came before; what is pending was written earlier. */
	if (r->kind == SHIM_LOG_WRITE_SYNCED)
		apply(&f->bytes, r);
	if (f->count == f->capacity) {
		f->capacity = 2 * f->capacity + 64;
		f->pending = reallocarray(f->pending, f->capacity, sizeof(*f->pending));
	}
	f->pending[f->count++] = r;
}

/* ---- the work ----------------------------------------------------------------- */

struct history {
	uint64_t transactions;
	uint64_t sync_every;
	uint64_t checkpoint_every;
	uint64_t generation_bytes;
	unsigned lives; /* how often the process ends without closing and another goes on; 0 = 1 */
	bool close;
};

/* One that was killed while it opened may have a child that holds the lock for another moment. */
static int open_patiently(const char *path, const struct store_open_options *options,
			  struct store_open_report *report, struct store **ret_store)
{
	int r = store_open(path, options, report, ret_store);

	for (unsigned i = 0; i < 1000 && r == STORE_IN_USE; i++) {
		usleep(2000);
		r = store_open(path, options, report, ret_store);
	}
	return r;
}

static struct store *open_or_die(const char *path, const struct store_open_options *options)
{
	struct store_open_report report = { 0 };
	struct store *s;
	int r = open_patiently(path, options, &report, &s);

	ck_assert_msg(r == 0, "store_open: %d %s (state %lu, seed %lu)", r, report.text, tried, seed);
	return s;
}

static int work(const struct history *h)
{
	struct store *s;
	uint64_t n, end;

	shim_watch(original);
	s = open_or_die(original,
			&(struct store_open_options){ .generation_bytes = h->generation_bytes });
	if (plan_count(s, &n))
		return 5;
	for (end = n + h->transactions; n < end; n++) {
		if (plan_do(s, n))
			return 1;
		shim_note(n + 1);
		if (h->sync_every && n % h->sync_every == h->sync_every - 1) {
			if (store_sync(s))
				return 2;
			shim_note(NOTE_SYNCED + n + 1);
		}
		if (h->checkpoint_every && n % h->checkpoint_every == h->checkpoint_every - 1) {
			if (store_checkpoint(s))
				return 3;
			shim_note(NOTE_SYNCED + n + 1);
		}
	}
	if (h->close) {
		if (store_close(s))
			return 4;
		shim_note(NOTE_SYNCED + end);
	}
	return 0;
}

static void run_history(const struct history *h)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	files_remove(original);
	ck_assert_int_eq(store_create(original, &options), 0);
	disk_begin();
	shim_log_start(LOG_MAX);
	for (unsigned life = 0; life < util_max(h->lives, 1u); life++) {
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			shim_exit(work(h));
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(status == 0, "the work ended with %x", status);
	}
}

/* ---- states ---------------------------------------------------------------------- */

enum variant {
	VARIANT_ALL, /* as if only the process had ended */
	VARIANT_NONE,
	VARIANT_SOME, /* of each file some calls */
	VARIANT_TORN, /* and of each write some sectors */
	VARIANTS,
};

static bool chosen(unsigned percent)
{
	return files_random(&seed) % 100 < percent;
}

static void apply_torn(struct buffer *b, const struct shim_record *r, unsigned percent)
{
	for (uint64_t at = 0; at < r->size;) {
		uint64_t size = util_min(SECTOR - (r->offset + at) % SECTOR, r->size - at);

		if (chosen(percent))
			apply_bytes(b, r->offset + at, r->bytes + at, size);
		at += size;
	}
}

static void write_state_file(const struct disk_file *f, const struct buffer *b)
{
	char path[sizeof(state) + 70000];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", state, f->path);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, b->bytes, b->size, 0), (ssize_t)b->size);
	close(fd);
}

static void build_file(const struct disk_file *f, enum variant variant, unsigned percent)
{
	struct buffer b = { 0 };
	bool exists = f->exists;

	buffer_append(&b, f->bytes.bytes, f->bytes.size);
	for (size_t i = 0; i < f->count; i++) {
		const struct shim_record *r = f->pending[i];
		bool take = r->kind == SHIM_LOG_WRITE_SYNCED || variant == VARIANT_ALL ||
			    (variant != VARIANT_NONE && chosen(percent));

		if (is_of_directory(r))
			exists = take ? r->kind == SHIM_LOG_CREATE : exists;
		else if (take && variant == VARIANT_TORN && r->kind == SHIM_LOG_WRITE)
			apply_torn(&b, r, percent);
		else if (take)
			apply(&b, r);
	}
	if (exists)
		write_state_file(f, &b);
	buffer_release(&b);
}

static void build_state(enum variant variant)
{
	static const unsigned percents[] = { 10, 50, 90, 97 };
	char path[4500];

	files_remove(state);
	ck_assert_int_eq(mkdir(state, 0700), 0);
	snprintf(path, sizeof(path), "%s/segments", state);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	for (size_t i = 0; i < disk_count; i++)
		build_file(&disk[i], variant, percents[files_random(&seed) % ARRAY_SIZE(percents)]);
}

static uint64_t check(struct store *s)
{
	char text[200] = "";
	uint64_t n;
	int r = plan_count(s, &n);

	ck_assert_msg(r == 0, "the counter cannot be read: %d (state %lu)", r, tried);
	ck_assert_msg(n >= synced && n <= acknowledged + 1,
		      "%lu transactions, %lu synced, %lu acknowledged (state %lu)", n, synced,
		      acknowledged, tried);
	r = plan_check(s, n, text, sizeof(text));
	ck_assert_msg(r == 0, "of %lu transactions: %s (state %lu)", n, text, tried);
	return n;
}

/* It goes on from there, and holds after that too. */
static void check_use(void)
{
	struct store *s = open_or_die(state, &(struct store_open_options){ 0 });
	uint64_t n = check(s), end = n + 3;

	for (; n < end; n++)
		ck_assert_int_eq(plan_do(s, n), 0);
	ck_assert_int_eq(store_close(s), 0);
	acknowledged = util_max(acknowledged, end);
	s = open_or_die(state, &(struct store_open_options){ .read_only = true });
	ck_assert_uint_eq(check(s), end);
	ck_assert_int_eq(store_close(s), 0);
	rewritten++;
}

/* It is opened, and the process ends at call `at` that changes a file; or soon after opening if there are fewer. */
static void recover_and_end(uint64_t at)
{
	struct store_open_report report = { 0 };
	struct store *s;
	uint64_t n;

	/* A log of its own, which nobody reads. */
	shim_log_start(LOG_MAX);
	shim_watch(state);
	shim_arm(&(struct shim_fault){ .at = at, .calls = (2u << SHIM_REMOVE) - 1, .half = at % 2 });
	if (open_patiently(state, &(struct store_open_options){ 0 }, &report, &s)) {
		printf("# %s\n", report.text);
		fflush(stdout);
		_exit(1);
	}
	if (plan_count(s, &n) || (at % 3 == 0 && (plan_do(s, n) || store_sync(s))))
		_exit(2);
	_exit(0);
}

/* The recovery is cut too, twice, and has lost nothing and not locked itself out. */
static void check_recovery(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 1 + files_random(&seed) % 60;
		int status;
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			recover_and_end(at);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) == 0,
			      "recovery ended with %x (state %lu, seed %lu)", status, tried, seed);
		acknowledged++;
		recovered++;
	}
	check_use();
}

static void check_state(enum variant variant)
{
	uint64_t known = acknowledged;
	struct store *s;

	tried++;
	build_state(variant);
	s = open_or_die(state, &(struct store_open_options){ .read_only = true });
	check(s);
	ck_assert_int_eq(store_close(s), 0);
	if (tried % 6 == 0)
		check_use();
	else if (tried % 6 == 3 || tried % 6 == 5)
		check_recovery();
	acknowledged = known;
}

static void check_history(const struct history *h, unsigned long states)
{
	const struct shim_record *r = NULL;
	unsigned long records = 0, at = 0, first = tried;

	run_history(h);
	while ((r = shim_log_next(r)))
		records++;
	acknowledged = synced = 0;
	while ((r = shim_log_next(r))) {
		disk_step(r);
		at++;
		/* Evenly over the history. */
		while (tried - first < states * at / records)
			check_state(tried % VARIANTS);
	}
}

static void test_history(const struct history *h)
{
	const char *number = getenv("DDBFS_POWER_STATES"), *start = getenv("DDBFS_POWER_SEED");
	unsigned long states = (number ? strtoul(number, NULL, 0) : 6000) / 6;

	seed = (start ? strtoul(start, NULL, 0) : 20261130) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(state, sizeof(state), "%s/state", test_directory());
	check_history(h, states);
	printf("# %lu states, %lu of them worked on, %lu recoveries cut\n", tried, rewritten, recovered);
}

START_TEST(test_without_checkpoints)
{
	test_history(&(struct history){ .transactions = 60, .sync_every = 7 });
}
END_TEST

START_TEST(test_without_a_sync)
{
	test_history(&(struct history){ .transactions = 60 });
}
END_TEST

START_TEST(test_with_checkpoints)
{
	test_history(&(struct history){
		.transactions = 100, .sync_every = 9, .checkpoint_every = 23, .close = true });
}
END_TEST

START_TEST(test_with_small_generations)
{
	test_history(&(struct history){
		.transactions = 200, .sync_every = 17, .generation_bytes = 300 << 10 });
}
END_TEST

START_TEST(test_a_sync_after_each)
{
	test_history(&(struct history){ .transactions = 80,
					.sync_every = 1,
					.checkpoint_every = 30,
					.generation_bytes = 300 << 10,
					.close = true });
}
END_TEST

/* The power fails while what a killed process left is being replayed, or after it. */
START_TEST(test_lives_one_after_the_other)
{
	test_history(&(struct history){
		.transactions = 14, .sync_every = 9, .lives = 8, .generation_bytes = 400 << 10 });
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/power");
	TCase *t = tcase_create("power");

	tcase_set_timeout(t, 1200);
	tcase_add_test(t, test_without_checkpoints);
	tcase_add_test(t, test_without_a_sync);
	tcase_add_test(t, test_with_checkpoints);
	tcase_add_test(t, test_with_small_generations);
	tcase_add_test(t, test_a_sync_after_each);
	tcase_add_test(t, test_lives_one_after_the_other);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
