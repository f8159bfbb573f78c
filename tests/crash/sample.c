#include "tests/crash/sample.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lifecycle/lifecycle.h"
#include "lifecycle/tree.h"

#define FILES_MAX 64
#define DIRECTORIES 4
#define LARGEST (5 << 20)

const struct sample sample_usual = { .files = 64, .largest = LARGEST };
const struct sample sample_golden = { .files = 24, .largest = 40000, .passphrase = "golden" };

/* Sizes by number: inline, a chunk, several, a segment of its own. */
static const size_t sizes[] = { 0, 1, 100, 700, 1500, 2000, 5000, 32768, 32769, 70000, 200000, 40 };

static size_t size_of(const struct sample *sample, unsigned i)
{
	size_t size = i == 13 ? LARGEST : sizes[i % ARRAY_SIZE(sizes)];

	return size > sample->largest ? 3 : size;
}

/* Every second one was written twice, every eighth deleted. */
static bool is_rewritten(unsigned i)
{
	return i % 2 == 1;
}

static bool is_deleted(unsigned i)
{
	return i % 8 == 6;
}

static void fill(unsigned i, unsigned version, uint8_t *bytes, size_t size)
{
	uint64_t state = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + version;

	for (size_t at = 0; at < size; at++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		bytes[at] = (uint8_t)(state >> 56);
	}
}

static void name_of(unsigned i, char name[32])
{
	snprintf(name, 32, "file-%02u", i);
}

/* ---- making ------------------------------------------------------------------ */

struct maker {
	const struct sample *sample;
	struct store *s;
	struct transaction t;
	uint64_t directories[DIRECTORIES];
	uint64_t ids[FILES_MAX], bodies[FILES_MAX];
	uint8_t *bytes;
};

static void expect(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %d\n", what, result);
	_exit(99);
}

static void commit(struct maker *m)
{
	expect(transaction_commit(&m->t, m->s, STORE_GROWING, NULL), "commit");
	transaction_reset(&m->t);
}

static struct item item_of(struct maker *m, unsigned i, size_t size)
{
	struct item item = {
		.id = m->ids[i], .mode = S_IFREG | 0644, .size = size, .links_live = 1, .links_total = 1
	};

	item.content = (const uint8_t *)"";
	if (m->bodies[i]) {
		item.body = m->bodies[i];
	} else {
		item.content = m->bytes;
		item.content_size = size;
	}
	return item;
}

static void write_body(struct maker *m, unsigned i, size_t size)
{
	size_t most = store_limits(m->s)->write_bytes;

	for (size_t at = 0; at < size; at += most) {
		size_t part = util_min(size - at, most);

		transaction_body_write(&m->t, m->bodies[i], at, m->bytes + at, part);
		if (at + part < size)
			commit(m);
	}
}

static uint64_t version_at(struct maker *m, const struct place *at)
{
	struct store_value value;
	struct item item;
	uint64_t version;

	expect(record_get_item(m->s, at, true, &value, &item), "get");
	version = item.version;
	store_value_release(&value);
	return version;
}

static struct place place_of(struct maker *m, unsigned i)
{
	struct place at = { .directory = m->directories[i % DIRECTORIES], .state = KEY_ACT };

	name_of(i, at.name);
	return at;
}

static void put_file(struct maker *m, unsigned i, unsigned version)
{
	struct place at = place_of(m, i);
	size_t size = size_of(m->sample, i);
	struct item item;

	if (version == 1) {
		expect(store_new_id(m->s, &m->ids[i]), "id");
		if (size > store_limits(m->s)->inline_bytes)
			expect(store_new_id(m->s, &m->bodies[i]), "id");
		transaction_count_add(&m->t, COUNTER_LIVE_ITEMS, 1);
		transaction_count_add(&m->t, COUNTER_LIVE_BYTES, (int64_t)size);
	}
	fill(i, version, m->bytes, size);
	if (m->bodies[i])
		write_body(m, i, size);
	item = item_of(m, i, size);
	transaction_put_item(&m->t, m->s, &at, &item, version == 1 ? 0 : version_at(m, &at));
	commit(m);
}

static void delete_file(struct maker *m, unsigned i)
{
	struct place from = place_of(m, i), to = from;
	int64_t due = store_now_ns(m->s) + 3600 * CLOCK_SECOND_NS;
	struct trash_row row = { .uid = 0, .cause = ITEM_REMOVED };
	struct store_value value;
	struct item item;

	expect(record_get_item(m->s, &from, false, &value, &item), "get");
	expect(store_new_seq(m->s, &to.seq), "seq");
	to.state = KEY_DEL;
	transaction_delete_item(&m->t, m->s, &from, item.version);
	item.flags |= ITEM_DELETION;
	item.deletion = (struct deletion){ .expires_ns = due, .destroy_ns = due, .cause = ITEM_REMOVED };
	transaction_put_item(&m->t, m->s, &to, &item, 0);
	key_item(store_codec(m->s), &to, &row.key);
	transaction_put_trash(&m->t, to.seq, &row, 0);
	transaction_put_due(&m->t, due, to.seq, &row, 0);
	transaction_count_add(&m->t, COUNTER_LIVE_ITEMS, -1);
	transaction_count_add(&m->t, COUNTER_LIVE_BYTES, -(int64_t)item.size);
	transaction_count_add(&m->t, COUNTER_TRASH_ITEMS, 1);
	transaction_count_add(&m->t, COUNTER_TRASH_BYTES, (int64_t)item.size);
	commit(m);
	store_value_release(&value);
}

/* With the shadow that the deletions to come will need. */
static void put_directory(struct maker *m, unsigned n)
{
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT };
	struct item item = {
		.mode = S_IFDIR | 0755, .flags = ITEM_SHADOWED, .links_live = 1, .links_total = 1
	};
	struct guard guard;
	struct shadow shadow;

	expect(store_new_id(m->s, &m->directories[n]), "id");
	snprintf(at.name, sizeof(at.name), "dir-%u", n);
	item.id = m->directories[n];
	item.directory.trash_mask = 0777;
	item.content = (const uint8_t *)"";
	guard = (struct guard){ .at = at };
	shadow = (struct shadow){ .directory = item.id };
	memcpy(shadow.name, at.name, sizeof(shadow.name));
	transaction_put_item(&m->t, m->s, &at, &item, 0);
	transaction_put_guard(&m->t, item.id, &guard, 0);
	transaction_put_shadow(&m->t, m->s, KEY_ID_ROOT, &shadow, 0);
	transaction_count_add(&m->t, COUNTER_LIVE_ITEMS, 1);
	commit(m);
}

static void count_directories(struct maker *m)
{
	struct tree_directory root;

	expect(tree_load(m->s, KEY_ID_ROOT, &root), "root");
	root.own.directory.subdirectories = DIRECTORIES;
	tree_put_own(&m->t, m->s, &root);
	commit(m);
	tree_release(&root);
}

static void make(const struct sample *sample, const char *path, enum sample_end end)
{
	struct store_create_options options = { .credentials.passphrase = sample->passphrase,
						.kdf_level = 3,
						.journal_bytes = 1 << 20 };
	struct store_open_report report;
	struct maker m = { .sample = sample, .bytes = malloc(LARGEST) };

	expect(store_create(path, &options), "create");
	expect(sample_open(sample, path, false, &report, &m.s), "open");
	expect(tree_format(m.s, 0755, 0, 0), "format");
	for (unsigned n = 0; n < DIRECTORIES; n++)
		put_directory(&m, n);
	count_directories(&m);
	for (unsigned i = 0; i < sample->files; i++)
		put_file(&m, i, 1);
	expect(store_checkpoint(m.s), "checkpoint");
	for (unsigned i = 0; i < sample->files; i++) {
		if (is_rewritten(i))
			put_file(&m, i, 2);
		if (is_deleted(i))
			delete_file(&m, i);
		if (i == sample->files / 2)
			expect(store_checkpoint(m.s), "checkpoint");
	}
	expect(store_sync(m.s), "sync");
	if (end == SAMPLE_KILLED)
		_exit(0);
	transaction_release(&m.t);
	free(m.bytes);
	expect(store_close(m.s), "close");
	_exit(0);
}

static void change(const struct sample *sample, const char *path)
{
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT, .name = "later" };
	struct item item = { .mode = S_IFREG | 0600,
			     .links_live = 1,
			     .links_total = 1,
			     .content = (const uint8_t *)"" };
	struct store_open_report report;
	struct maker m = { 0 };

	expect(sample_open(sample, path, false, &report, &m.s), "open");
	expect(store_new_id(m.s, &item.id), "id");
	transaction_put_item(&m.t, m.s, &at, &item, 0);
	transaction_count_add(&m.t, COUNTER_LIVE_ITEMS, 1);
	commit(&m);
	expect(store_checkpoint(m.s), "checkpoint");
	expect(store_close(m.s), "close");
	_exit(0);
}

static void await(pid_t pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "the sample store could not be made or changed (status %#x)\n", status);
		abort();
	}
}

void sample_make(const struct sample *sample, const char *path, enum sample_end end)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		make(sample, path, end);
	await(pid);
}

void sample_change(const struct sample *sample, const char *path)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		change(sample, path);
	await(pid);
}

int sample_open(const struct sample *sample, const char *path, bool read_only,
		struct store_open_report *ret_report, struct store **ret_store)
{
	struct store_open_options options = { .credentials.passphrase = sample->passphrase,
					      .read_only = read_only };

	return store_open(path, &options, ret_report, ret_store);
}

/* ---- verifying ---------------------------------------------------------------- */

static bool is_error(int result)
{
	return result == -EBADMSG || result == -EIO;
}

__attribute__((format(printf, 2, 3))) static void wrong(struct sample_result *r, const char *format, ...)
{
	va_list arguments;

	if (r->wrong[0])
		return;
	va_start(arguments, format);
	vsnprintf(r->wrong, sizeof(r->wrong), format, arguments);
	va_end(arguments);
}

/* 0: its bytes are what they were; 1: they gave an error; -1: they are others. */
static int compare_content(const struct sample *sample, struct store *s, unsigned i,
			   const struct item *item)
{
	size_t size = size_of(sample, i);
	uint8_t *expected, *got;
	int result = 0;

	if (item->size != size || item->mode != (S_IFREG | 0644))
		return -1;
	expected = malloc(size + 1);
	got = calloc(1, size + 1);
	if (!expected || !got)
		abort();
	fill(i, is_rewritten(i) ? 2 : 1, expected, size);
	if (item->body)
		result = store_body_read(s, item->body, 0, got, size);
	else if (item->content_size)
		memcpy(got, item->content, item->content_size);
	if (result == 0)
		result = memcmp(expected, got, size) ? -1 : 0;
	else
		result = is_error(result) ? 1 : -1;
	free(expected);
	free(got);
	return result;
}

static void verify_item(const struct sample *sample, struct store *s, unsigned i,
			const struct item *item, struct sample_result *r)
{
	int result = compare_content(sample, s, i, item);

	if (result == 0)
		r->same++;
	else if (result > 0)
		r->damaged++;
	else
		wrong(r, "file %u has other bytes", i);
}

/* The one deletion of a name. */
static int get_deleted(struct store *s, uint64_t directory, const char *name,
		       struct store_page *page, struct item *ret_item)
{
	struct store_query query = { .limit = 0 };
	struct place at;
	int result;

	key_range_deleted_name(store_codec(s), directory, name, &query.range);
	result = store_query(s, &query, page);
	if (result != 0)
		return result;
	return page->count ? record_row_item(s, &page->rows[0], &at, ret_item) : STORE_ABSENT;
}

static void verify_deleted(const struct sample *sample, struct store *s, uint64_t directory,
			   unsigned i, const char *name, struct sample_result *r)
{
	struct store_page page = { 0 };
	struct item item;
	int result = get_deleted(s, directory, name, &page, &item);

	if (result == 0)
		verify_item(sample, s, i, &item, r);
	else if (is_error(result))
		r->damaged++;
	else
		wrong(r, "deleted file %u: %d", i, result);
	store_page_release(&page);
}

static void verify_file(const struct sample *sample, struct store *s, uint64_t directory,
			unsigned i, struct sample_result *r)
{
	struct place at = { .directory = directory, .state = KEY_ACT };
	struct store_value value;
	struct item item;
	int result;

	name_of(i, at.name);
	result = record_get_item(s, &at, false, &value, &item);
	if (result == 0) {
		if (is_deleted(i))
			wrong(r, "file %u is back from the dead", i);
		else
			verify_item(sample, s, i, &item, r);
		store_value_release(&value);
	} else if (is_error(result)) {
		r->damaged++;
	} else if (result != STORE_ABSENT) {
		wrong(r, "file %u: %d", i, result);
	} else if (is_deleted(i)) {
		verify_deleted(sample, s, directory, i, at.name, r);
	} else {
		wrong(r, "file %u has vanished", i);
	}
}

static unsigned live_in(const struct sample *sample, unsigned n)
{
	unsigned count = 0;

	for (unsigned i = n; i < sample->files; i += DIRECTORIES)
		count += !is_deleted(i);
	return count;
}

/* A listing shows as many names, damaged ones too, or says that it cannot. */
static void verify_listing(const struct sample *sample, struct store *s, uint64_t directory,
			   unsigned n, struct sample_result *r)
{
	struct store_query query = { .attributes_only = true };
	struct key after;
	unsigned count = 0;
	bool more = true;

	key_range_live(directory, &query.range);
	while (more) {
		struct store_page page;
		int result = store_query(s, &query, &page);

		if (result != 0) {
			if (!is_error(result))
				wrong(r, "listing directory %u: %d", n, result);
			r->damaged++;
			return;
		}
		count += (unsigned)page.count;
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	if (count == live_in(sample, n))
		r->same++;
	else
		wrong(r, "directory %u lists %u names", n, count);
}

static void verify_directory(const struct sample *sample, struct store *s, unsigned n,
			     struct sample_result *r)
{
	struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT };
	struct store_value value;
	struct item item;
	int result;

	snprintf(at.name, sizeof(at.name), "dir-%u", n);
	result = record_get_item(s, &at, true, &value, &item);
	if (result != 0) {
		if (!is_error(result))
			wrong(r, "directory %u: %d", n, result);
		r->damaged++;
		return;
	}
	store_value_release(&value);
	verify_listing(sample, s, item.id, n, r);
	for (unsigned i = n; i < sample->files; i += DIRECTORIES)
		verify_file(sample, s, item.id, i, r);
}

void sample_verify(const struct sample *sample, struct store *s, struct sample_result *ret_result)
{
	*ret_result = (struct sample_result){ 0 };
	for (unsigned n = 0; n < DIRECTORIES; n++)
		verify_directory(sample, s, n, ret_result);
}

/* ---- removing ----------------------------------------------------------------- */

static bool is_damaged(const struct sample *sample, struct store *s, const struct place *at, unsigned i)
{
	struct store_value value;
	struct item item;
	int result = record_get_item(s, at, false, &value, &item);

	if (result)
		return is_error(result);
	result = compare_content(sample, s, i, &item);
	store_value_release(&value);
	return result > 0;
}

static bool remove_one(struct lifecycle *l, const struct place *at, struct sample_result *r)
{
	static const struct actor actor = { .command = "test" };
	struct store_value value;
	struct item item;
	int result = lifecycle_remove(l, &actor, at->directory, at->name, false);

	if (result)
		wrong(r, "%s is damaged and cannot be removed: %d", at->name, result);
	else if (record_get_item(lifecycle_store(l), at, true, &value, &item) != STORE_ABSENT)
		wrong(r, "%s was removed and is still there", at->name);
	return result == 0;
}

unsigned sample_remove_damaged(const struct sample *sample, struct store *s, char *ret_wrong)
{
	struct sample_result r = { 0 };
	struct lifecycle *l;
	unsigned count = 0;

	*ret_wrong = '\0';
	/* It is not mounted then. */
	if (lifecycle_open(s, NULL, &l))
		return 0;
	for (unsigned i = 0; i < sample->files; i++) {
		struct place at = { .directory = KEY_ID_ROOT, .state = KEY_ACT };
		struct store_value value;
		struct item item;

		snprintf(at.name, sizeof(at.name), "dir-%u", i % DIRECTORIES);
		if (is_deleted(i) || record_get_item(s, &at, true, &value, &item))
			continue;
		store_value_release(&value);
		at.directory = item.id;
		name_of(i, at.name);
		if (is_damaged(sample, s, &at, i))
			count += remove_one(l, &at, &r);
	}
	lifecycle_close(l);
	memcpy(ret_wrong, r.wrong, sizeof(r.wrong));
	return count;
}

unsigned sample_names(const struct sample *sample)
{
	return sample->files + DIRECTORIES;
}
