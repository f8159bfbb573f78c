/*
 * test-mend.c - what mends a damaged store is itself interrupted: killed at, or
 * refused, the n-th call that changes a file, for every n.
 *
 * `check --quarantine`, the removal of damaged items, and opening with
 * `--discard-journal` are done to a store in which records, contents, counters
 * or journals are damaged. After each interruption all that was sound is as it
 * was, byte for byte and with its times; and the same command, once more,
 * finishes with what it gives when nobody interrupts it. No journal is gone of
 * which there is no copy.
 *
 *     DDBFS_MEND_STEP   every so many-th n only (1)
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/crash/files.h"
#include "tests/crash/history.h"
#include "tests/crash/shim.h"

#define ALL ((1u << SHIM_MEMORY) - 1) /* that change files */
#define JOURNAL_MIN 1000 /* bytes that records have at least */
#define PAGE 4096 /* of LMDB */
#define PAGE_LEAF 2 /* flag of its header, at byte 10 */

struct report {
	atomic_bool fired;
	atomic_int result;
};

/* A world without ordinals, and without times too. */
struct text {
	char *exact, *loose;
};

struct job {
	const char *name;
	void (*damage)(void); /* makes `damaged` of `original` */
	int (*mend)(void); /* opens, mends, closes: 0, or why it is not done */
	bool journals; /* which must not be lost */
};

static const enum world_op journal_ops[] = { WORLD_APPEND_LARGE, WORLD_OVERWRITE_PART, WORLD_XATTR,
					     WORLD_RM_RF,	 WORLD_RESTORE,	       WORLD_SYNC,
					     WORLD_WRITE_NEW,	 WORLD_LINK,	       WORLD_SYNC };
static struct history history = { .ops = journal_ops, .count = ARRAY_SIZE(journal_ops) };
static char original[4100], damaged[4100], path[4100];
static const struct job *job;
static struct report *report;
static struct text before, hurt, mended; /* the damage; mended undisturbed */
/* In the original: what is damaged can be asked for no longer. */
static uint64_t directory_d, directory_sub;

static uint64_t step(void)
{
	const char *value = getenv("DDBFS_MEND_STEP");

	return value ? util_max(strtoull(value, NULL, 0), 1ull) : 1;
}

static void ignore(void *data, const char *where, const char *text)
{
}

/* ---- text ------------------------------------------------------------------------------ */

static bool skips_number(const char *at)
{
	static const char *const words[] = { " item ", " batch ", " replaced by " };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strncmp(at, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

/* The line without ordinals and, if `loose`, without times; logs of what was done are left out. */
static void append_line(struct buffer *b, const char *line, size_t size, bool loose)
{
	if (strncmp(line, "/lost+found/quarantine-", 23) == 0)
		return;
	for (size_t i = 0; i < size;) {
		size_t digits = strspn(line + i, "0123456789");

		if (skips_number(line + i)) {
			i += 1 + strcspn(line + i + 1, " \n");
			i += strcspn(line + i, "0123456789\n");
			i += strspn(line + i, "0123456789");
		} else if (digits) {
			if (!loose || digits < 10)
				buffer_append(b, line + i, digits);
			i += digits;
		} else {
			buffer_append(b, line + i++, 1);
		}
	}
}

static char *scrub(const char *text, bool loose)
{
	struct buffer b = { 0 };

	for (const char *line = text; *line;) {
		size_t size = strcspn(line, "\n") + 1;

		append_line(&b, line, size, loose);
		line += size;
	}
	buffer_append(&b, "", 1);
	ck_assert(!b.failed);
	return (char *)b.bytes;
}

static void text_release(struct text *t)
{
	free(t->exact);
	free(t->loose);
	*t = (struct text){ 0 };
}

static bool has_line(const char *text, const char *line, size_t size)
{
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
		if (strncmp(at, line, size) == 0)
			return true;
	return false;
}

/* Each line of `was` that is there after an undisturbed run is sound. Returns how many there are. */
static unsigned expect_sound_lines(const struct text *was, const char *now, const char *what, uint64_t n)
{
	unsigned count = 0;

	for (const char *line = was->exact; *line; line += strcspn(line, "\n") + 1) {
		size_t size = strcspn(line, "\n") + 1;

		if (!has_line(mended.exact, line, size))
			continue;
		ck_assert_msg(has_line(now, line, size), "%s, %s at call %lu: lost is %.*s",
			      job->name, what, n, (int)size - 1, line);
		count++;
	}
	return count;
}

/* ---- opening ------------------------------------------------------------------------------ */

static void begin(struct world *w)
{
	history_begin_after(&history, w, job->journals ? history.count : 0);
	w->damaged = true;
}

/* One that was killed while it opened may have a child that holds the lock for another moment. */
static void await_lock(void)
{
	int pid;

	for (unsigned i = 0; i < 1000 && store_holder(path, &pid) == 1; i++)
		usleep(1000);
}

static struct text read_text(void)
{
	struct store_open_report why = { 0 };
	struct buffer text = { 0 };
	struct text scrubbed;
	struct world w;
	int r;

	begin(&w);
	await_lock();
	r = world_open(&w, path, &(struct store_open_options){ 0 }, &why);
	ck_assert_msg(r == 0, "%s: it does not open: %d %s", job->name, r, why.text);
	world_dump(&w, &text);
	ck_assert_int_eq(world_close(&w), 0);
	scrubbed = (struct text){ scrub((char *)text.bytes, false), scrub((char *)text.bytes, true) };
	buffer_release(&text);
	return scrubbed;
}

/* ---- what mends ---------------------------------------------------------------------------- */

static int quarantine(void)
{
	struct quarantine_hooks hooks = { .problem = ignore, .aside = ignore, .action = ignore };
	struct store_open_report why;
	struct check_result found, left;
	struct world w;
	int r, closed;

	begin(&w);
	r = store_open(path, &(struct store_open_options){ .clock = &w.clock.clock }, &why, &w.store);
	if (r != 0)
		return r;
	r = lifecycle_quarantine(w.store, &hooks, &found, &left);
	if (r == 0 && left.problems)
		r = 1000 + (int)left.problems;
	closed = store_close(w.store);
	return r ? r : closed;
}

static int remove_one(struct world *w, uint64_t directory, const char *name, bool is_directory)
{
	int r = lifecycle_remove(w->lifecycle, &w->remover, directory, name, is_directory);

	return r == -ENOENT ? 0 : r;
}

/* Of a directory that is damaged what is in it goes first, as rm -rf does it. */
static int remove_damaged(void)
{
	struct store_open_report why;
	struct world w;
	int r, closed;

	begin(&w);
	r = world_open(&w, path, &(struct store_open_options){ 0 }, &why);
	if (r != 0)
		return r;
	r = remove_one(&w, directory_d, "x", false);
	if (r == 0)
		r = remove_one(&w, KEY_ID_ROOT, "b", false);
	if (r == 0)
		r = remove_one(&w, directory_sub, "z", false);
	if (r == 0)
		r = remove_one(&w, directory_d, "sub", true);
	closed = world_close(&w);
	return r ? r : closed;
}

static int discard_journal(void)
{
	struct store_open_options options = { .discard_journal = true };
	struct store_open_report why;
	struct world w;
	int r;

	begin(&w);
	options.clock = &w.clock.clock;
	r = store_open(path, &options, &why, &w.store);
	return r ? r : store_close(w.store);
}

/* ---- damage ----------------------------------------------------------------------------------- */

static void read_file(const char *directory, const char *name, struct buffer *ret_bytes)
{
	char file[4400];
	struct stat st;
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", directory, name);
	f = fopen(file, "re");
	ck_assert(f && fstat(fileno(f), &st) == 0);
	ck_assert_uint_eq(fread(buffer_append(ret_bytes, NULL, (size_t)st.st_size), 1,
				(size_t)st.st_size, f),
			  (size_t)st.st_size);
	fclose(f);
}

/* A byte of the value that stands behind the key, wherever the database has it. */
static void damage_record(const struct key *key)
{
	_cleanup_(buffer_release) struct buffer b = { 0 };
	const uint8_t *at;
	unsigned found = 0;

	read_file(damaged, "data.mdb", &b);
	for (at = b.bytes;
	     (at = memmem(at, (size_t)(b.bytes + b.size - at), key->bytes, key->size)); at++) {
		size_t offset = (size_t)(at - b.bytes);

		if (!(b.bytes[offset / PAGE * PAGE + 10] & PAGE_LEAF))
			continue;
		files_flip(damaged, "data.mdb", offset + key->size + 9, 0);
		found++;
	}
	ck_assert_uint_gt(found, 0);
}

static void damage_item(struct world *w, uint64_t directory, const char *name)
{
	struct place at = { .directory = directory, .state = KEY_ACT };
	struct key key;

	strcpy(at.name, name);
	key_item(store_codec(w->store), &at, &key);
	damage_record(&key);
}

static void is_content_of_b(void *data, const char *where, const char *text)
{
	if (strcmp(where, "/b") == 0 && strstr(text, "content is damaged"))
		*(bool *)data = true;
}

static bool hits_b(void)
{
	struct store_open_options options = { .read_only = true };
	struct store_open_report why = { 0 };
	struct check_result result;
	struct world w;
	bool hit = false;

	begin(&w);
	options.clock = &w.clock.clock;
	ck_assert_int_eq(store_open(damaged, &options, &why, &w.store), 0);
	ck_assert_int_eq(lifecycle_check(w.store, is_content_of_b, NULL, &hit, &result), 0);
	ck_assert_int_eq(store_close(w.store), 0);
	return hit && result.problems == 1;
}

/* Where its chunks are is the engine's business: places are tried. */
static void damage_content_of_b(void)
{
	struct store_files files;
	bool hit = false;

	files_list(damaged, &files);
	for (size_t i = 0; i < files.count && !hit; i++) {
		const struct store_file *f = &files.items[i];

		for (size_t at = 0; at < f->blocks_count && !hit; at += 32) {
			if (strncmp(f->path, "segments/", 9) != 0)
				break;
			files_flip(damaged, f->path, f->blocks[at] * UINT64_C(512), 0);
			hit = hits_b();
			if (!hit)
				files_flip(damaged, f->path, f->blocks[at] * UINT64_C(512), 0);
		}
	}
	files_release(&files);
	ck_assert(hit);
}

/* A file, a directory, a part of a content. */
static void damage_names(void)
{
	struct store_open_report why = { 0 };
	struct inode i = { 0 };
	struct world w;

	begin(&w);
	ck_assert_int_eq(world_open(&w, original, &(struct store_open_options){ 0 }, &why), 0);
	ck_assert_int_eq(namei_lookup(w.namei, KEY_ID_ROOT, "d", true, &i), 0);
	directory_d = i.item.id;
	inode_release(&i);
	ck_assert_int_eq(namei_lookup(w.namei, directory_d, "sub", true, &i), 0);
	directory_sub = i.item.id;
	inode_release(&i);
	ck_assert_int_eq(world_close(&w), 0);
	files_copy(original, damaged);
	damage_content_of_b();
	ck_assert_int_eq(store_open_memory(&w.clock.clock, STORE_NAMES_ORDERED, &w.store), 0);
	damage_item(&w, directory_d, "x");
	damage_item(&w, directory_d, "sub");
	ck_assert_int_eq(store_close(w.store), 0);
}

/* And what only `check` can count again, or set aside. */
static void damage_more(void)
{
	struct key key;

	damage_names();
	key_meta(ITEM_COUNTERS, &key);
	damage_record(&key);
	key_guard(directory_d, &key);
	damage_record(&key);
}

/* The history happens to `damaged`, from a copy of the original, and ends without closing. */
static void live(bool checkpoint)
{
	int status;
	pid_t pid;

	files_copy(original, damaged);
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct store_open_report why;
		struct world w;

		history_begin(&history, &w);
		if (world_open(&w, damaged, &(struct store_open_options){ 0 }, &why))
			_exit(1);
		for (size_t i = 0; i < history.count; i++) {
			world_step(&w, history.ops[i]);
			if (world_do(&w, history.ops[i]) != history.results[i])
				_exit(2);
			if (checkpoint && i == 3 && store_checkpoint(w.store))
				_exit(3);
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* How many bytes of one the history wrote; the one in the middle is damaged, if that is where the records are. */
static size_t damage_journal(const char *name)
{
	_cleanup_(buffer_release) struct buffer old = { 0 }, new = { 0 };
	size_t count = 0, half;

	read_file(original, name, &old);
	read_file(damaged, name, &new);
	ck_assert_uint_eq(old.size, new.size);
	for (size_t i = 0; i < old.size; i++)
		count += old.bytes[i] != new.bytes[i];
	half = count >= JOURNAL_MIN ? count / 2 : 0;
	for (size_t i = 0; i < old.size && half; i++)
		if (old.bytes[i] != new.bytes[i] && --half == 0)
			files_flip(damaged, name, i, 0);
	return count;
}

static void damage_a_synced_record(void)
{
	size_t first, second;

	live(false);
	first = damage_journal("journal.0");
	second = damage_journal("journal.1");
	ck_assert_uint_ge(util_max(first, second), JOURNAL_MIN);
}

static void bring_back_an_older_database(void)
{
	live(true);
	files_copy_one(original, damaged, "data.mdb");
}

/* ---- interruptions ------------------------------------------------------------------------------ */

/* 0, or the signal that ended it. */
static int run(const struct shim_fault *fault)
{
	int status;
	pid_t pid;

	files_copy(damaged, path);
	memset(report, 0, sizeof(*report));
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		shim_arm(fault);
		report->result = job->mend();
		report->fired = shim_fired();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static bool same_file(const char *a, const char *b, const char *name)
{
	_cleanup_(buffer_release) struct buffer x = { 0 }, y = { 0 };
	char copy[4400];

	snprintf(copy, sizeof(copy), "%s/%s", b, name);
	if (access(copy, F_OK) != 0)
		return false;
	read_file(a, name, &x);
	read_file(b, name, &y);
	return x.size == y.size && memcmp(x.bytes, y.bytes, x.size) == 0;
}

/* As they were: in their place, or else beside it. */
static void expect_journals(const char *what, uint64_t n)
{
	bool kept = same_file(damaged, path, "journal.0") && same_file(damaged, path, "journal.1");
	char copies[4200];

	for (unsigned i = 1; i < 5 && !kept; i++) {
		snprintf(copies, sizeof(copies), "%s/discarded-%u", path, i);
		kept = same_file(damaged, copies, "journal.0") &&
		       same_file(damaged, copies, "journal.1");
	}
	ck_assert_msg(kept, "%s, %s at call %lu: the journals are gone", job->name, what, n);
}

/* Mended so far, or not: what was sound is. A store whose journal is not given up yet does not open. */
static void expect_nothing_lost(const char *what, uint64_t n)
{
	struct text now;

	if (job->journals) {
		expect_journals(what, n);
		return;
	}
	now = read_text();
	ck_assert_uint_gt(expect_sound_lines(&hurt, now.exact, what, n), 10);
	text_release(&now);
}

static void check(const char *what, uint64_t n)
{
	struct text now;
	int r;

	await_lock();
	expect_nothing_lost(what, n);
	r = job->mend();
	ck_assert_msg(r == 0, "%s, %s at call %lu: the next one does not finish: %d", job->name,
		      what, n, r);
	now = read_text();
	expect_sound_lines(&before, now.exact, what, n);
	history_print_difference(now.loose, mended.loose);
	ck_assert_msg(strcmp(now.loose, mended.loose) == 0,
		      "%s, %s at call %lu: the next one ends elsewhere", job->name, what, n);
	text_release(&now);
	if (job->journals)
		expect_journals(what, n);
}

/* There is something to mend: `check` finds faults, or the store is refused. */
static void expect_damage(void)
{
	struct store_open_options options = { .read_only = true };
	struct store_open_report why = { 0 };
	struct world w;
	int r;

	begin(&w);
	options.clock = &w.clock.clock;
	r = store_open(damaged, &options, &why, &w.store);
	ck_assert_int_eq(r, job->journals ? STORE_DAMAGED : 0);
	if (r)
		return;
	ck_assert_int_ge(world_check(&w), 3);
	ck_assert_int_eq(store_close(w.store), 0);
}

/* What it is like undisturbed. */
static void find_mended(void)
{
	expect_damage();
	files_copy(original, path);
	before = read_text();
	files_copy(damaged, path);
	if (!job->journals)
		hurt = read_text();
	files_copy(damaged, path);
	ck_assert_int_eq(job->mend(), 0);
	mended = read_text();
}

static const struct job jobs[] = {
	{ "check --quarantine", damage_more, quarantine, false },
	{ "removing what is damaged", damage_names, remove_damaged, false },
	{ "--discard-journal, of a damaged record", damage_a_synced_record, discard_journal, true },
	{ "--discard-journal, of another time", bring_back_an_older_database, discard_journal, true },
};

static void setup(const struct job *j)
{
	job = j;
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(damaged, sizeof(damaged), "%s/damaged", test_directory());
	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(mkdir(path, 0700), 0);
	shim_watch(path);
	shim_skip_syncs();
	history_run(&history);
	history_make_store(&history, original);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	j->damage();
	find_mended();
}

static void release(void)
{
	text_release(&before);
	text_release(&hurt);
	text_release(&mended);
	history_release(&history);
}

START_TEST(test_killed_at_every_call)
{
	uint64_t n, runs = 0;

	setup(&jobs[_i]);
	for (n = 1; run(&(struct shim_fault){ .at = n, .calls = ALL, .half = n % 2 }); n += step()) {
		check("kill", n);
		runs++;
	}
	ck_assert_int_eq(report->result, 0);
	printf("# %s: killed at %lu calls\n", job->name, runs);
	ck_assert_uint_gt(runs * step(), 10);
	release();
}
END_TEST

static const struct {
	enum shim_call call;
	int error;
} faults[] = {
	{ SHIM_WRITE, EIO },	{ SHIM_WRITE, ENOSPC },	   { SHIM_SYNC, EIO },
	{ SHIM_SYNC, ENOSPC },	{ SHIM_ALLOCATE, ENOSPC }, { SHIM_ALLOCATE, EIO },
	{ SHIM_TRUNCATE, EIO }, { SHIM_TRUNCATE, ENOSPC }, { SHIM_CREATE, ENOSPC },
	{ SHIM_CREATE, EIO },	{ SHIM_REMOVE, EIO },
};

/* Returns how many calls of a kind there are. */
static uint64_t sweep(enum shim_call call, int error)
{
	uint64_t runs = 0;
	char what[64];

	snprintf(what, sizeof(what), "%s %s", strerrorname_np(error), shim_call_name(call));
	for (uint64_t n = 1;; n += step()) {
		struct shim_fault fault = { .at = n, .calls = 1u << call, .error = error, .half = n % 2 };

		ck_assert_int_eq(run(&fault), 0);
		if (!report->fired)
			return runs;
		/* A sync that fails ends all writing. */
		ck_assert_msg(call != SHIM_SYNC || report->result != 0,
			      "%s, %s at call %lu: not told", job->name, what, n);
		check(what, n);
		runs++;
	}
}

START_TEST(test_every_call_fails)
{
	uint64_t runs = 0;

	setup(&jobs[_i]);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		runs += sweep(faults[i].call, faults[i].error);
	printf("# %s: %lu calls failed\n", job->name, runs);
	ck_assert_uint_gt(runs * step(), 20);
	release();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/mend");
	TCase *t = tcase_create("mend");

	tcase_set_timeout(t, 600);
	tcase_add_loop_test(t, test_killed_at_every_call, 0, (int)ARRAY_SIZE(jobs));
	tcase_add_loop_test(t, test_every_call_fails, 0, (int)ARRAY_SIZE(jobs));
	suite_add_tcase(suite, t);
	return test_main(suite);
}
