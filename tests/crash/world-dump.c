/*
 * world-dump.c - see world.h: a world as text.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/world-internal.h"

#define PIECE (1 << 16)
#define NUMBERS_MAX 256

/* Numbers that differ from run to run, by the order in which they turn up. */
struct ordinals {
	uint64_t numbers[NUMBERS_MAX];
	unsigned count;
};

struct dump {
	struct world *w;
	struct buffer *text;
	struct ordinals ids, batches;
	char path[1024];
	int result; /* of a listing's row */
};

static unsigned ordinal(struct ordinals *o, uint64_t number)
{
	for (unsigned i = 0; i < o->count; i++)
		if (o->numbers[i] == number)
			return i;
	ck_assert_uint_lt(o->count, NUMBERS_MAX);
	o->numbers[o->count] = number;
	return o->count++;
}

__attribute__((format(printf, 2, 3))) static void say(struct dump *d, const char *format, ...)
{
	char text[3000];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	buffer_append(d->text, text, util_min((size_t)n, sizeof(text) - 1));
}

/* Whether it could be read. */
static bool expect(struct dump *d, int r, const char *what)
{
	if (d->w->damaged && (r == -EBADMSG || r == -EIO)) {
		say(d, " %s: damaged", what);
		return false;
	}
	ck_assert_msg(r == 0, "%s: %s: %d", d->path, what, r);
	return true;
}

/* The mount's number stands in the lowest bits of some times. */
static int64_t milliseconds(int64_t ns)
{
	return ns == ITEM_FOREVER ? -1 : ns / 1000000;
}

static int64_t of_timespec(struct timespec t)
{
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

/* ---- one item ------------------------------------------------------------------------ */

/* FNV-1a, by words of eight. */
static uint64_t hash(uint64_t state, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, bytes + i, util_min((size_t)8, size - i));
		state = (state ^ word) * UINT64_C(0x100000001b3);
		state ^= state >> 29;
	}
	return state;
}

/* Holes are passed over: which zeros are holes is the engine's business. */
static uint64_t hash_content(struct dump *d, uint64_t id, const struct place *at, uint64_t size)
{
	static uint8_t bytes[PIECE], zeros[PIECE];
	struct world_spot spot = { .id = id, .at = *at };
	struct file_locator where = world_locator(&spot);
	uint64_t state = UINT64_C(0xcbf29ce484222325), offset = 0;
	size_t got;

	while (offset < size) {
		int r = file_seek(d->w->namei, &where, id, offset, true, &offset);

		if (r == -ENXIO || !expect(d, r, "seek"))
			break;
		offset = offset / PIECE * PIECE;
		memset(bytes, 0, sizeof(bytes));
		if (!expect(d, file_read(d->w->namei, &where, id, offset, bytes, PIECE, &got), "read"))
			break;
		ck_assert_uint_eq(got, util_min(size - offset, (uint64_t)PIECE));
		if (memcmp(bytes, zeros, PIECE) != 0) {
			state = hash(state, (uint8_t *)&offset, sizeof(offset));
			state = hash(state, bytes, PIECE);
		}
		offset += PIECE;
	}
	return state;
}

static void dump_xattrs(struct dump *d, const struct place *at)
{
	_cleanup_(buffer_release) struct buffer names = { 0 };

	(void)expect(d, namei_listxattr(d->w->namei, at, true, &names), "listxattr");
	for (size_t i = 0; i < names.size; i += strlen((char *)names.bytes + i) + 1) {
		_cleanup_(buffer_release) struct buffer value = { 0 };
		const char *name = (char *)names.bytes + i;

		(void)expect(d, namei_getxattr(d->w->namei, at, name, &value), name);
		say(d, " %s=%zu:%016" PRIx64, name, value.size, hash(0, value.bytes, value.size));
	}
}

static void dump_item(struct dump *d, const struct place *at)
{
	struct inode i = { 0 };
	const struct item *item = &i.item;

	if (!expect(d, namei_load(d->w->namei, at, false, &i), d->path)) {
		say(d, "\n");
		return;
	}
	say(d, "%s: %o %u:%u item %u links %u size %" PRIu64, d->path, item->mode, item->uid,
	    item->gid, ordinal(&d->ids, item->id), i.nlink, S_ISDIR(item->mode) ? 0 : item->size);
	say(d, " times %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, of_timespec(item->atime),
	    of_timespec(item->mtime), of_timespec(item->ctime), of_timespec(item->btime));
	if (S_ISREG(item->mode))
		say(d, " content %016" PRIx64, hash_content(d, item->id, at, item->size));
	else if (S_ISLNK(item->mode))
		say(d, " to %.*s", (int)item->content_size, (const char *)item->content);
	dump_xattrs(d, at);
	say(d, "\n");
	inode_release(&i);
}

/* ---- directories --------------------------------------------------------------------- */

static size_t enter(struct dump *d, const char *name)
{
	size_t size = strlen(d->path);

	ck_assert_uint_lt(size + strlen(name) + 2, sizeof(d->path));
	sprintf(d->path + size, "/%s", name);
	return size;
}

static void dump_facts(struct dump *d, const struct entry *e)
{
	const struct deletion *deletion = &e->item.deletion;
	char text[300];

	say(d, "%s: deleted %" PRId64 " until %" PRId64 " in batch %u", d->path,
	    milliseconds((int64_t)e->at.seq), milliseconds(e->expires_ns),
	    ordinal(&d->batches, deletion->batch));
	for (size_t i = 0; lifecycle_fact_names[i]; i++) {
		const char *name = lifecycle_fact_names[i];

		/* Those have numbers in them. */
		if (strstr(name, "_at") || strstr(name, ".batch") || strstr(name, ".key"))
			continue;
		ck_assert_int_gt(lifecycle_fact(d->w->lifecycle, e, name, text, sizeof(text)), 0);
		say(d, " %s", text);
	}
	say(d, " replaced by %u\n", deletion->replaced_by ? ordinal(&d->ids, deletion->replaced_by) : 0);
}

static void dump_view(struct dump *d, uint64_t directory);

static bool dump_entry(void *data, const struct entry *e, const struct key *key)
{
	struct dump *d = data;
	size_t size = enter(d, e->shown);

	if (e->shadow) {
		say(d, "%s: something was deleted below\n", d->path);
	} else if (e->damaged && d->w->damaged) {
		say(d, "%s: damaged\n", d->path);
	} else {
		dump_item(d, &e->at);
		if (e->at.state == KEY_DEL)
			dump_facts(d, e);
		if (S_ISDIR(e->item.mode))
			dump_view(d, e->item.id);
	}
	d->path[size] = 0;
	return false;
}

static void dump_view(struct dump *d, uint64_t directory)
{
	(void)expect(d, lifecycle_list(d->w->lifecycle, directory, NULL, dump_entry, d), "list");
}

static void dump_policy(struct dump *d, uint64_t directory)
{
	struct policy p;

	if (!expect(d, lifecycle_policy(d->w->lifecycle, directory, &p), "policy"))
		return;
	say(d, "%s: retention %" PRId64 " versions %u temporary %" PRId64 " grace %" PRId64 " %d %d\n",
	    d->path, p.retention_ns, p.versions, p.temporary_ns, p.grace_ns, p.protect, p.hold);
}

static void dump_live(struct dump *d, uint64_t directory)
{
	struct store_query query = { .attributes_only = true };
	struct store_page page = { .more = true };
	struct key after;
	size_t size;

	dump_policy(d, directory);
	key_range_live(directory, &query.range);
	while (page.more) {
		if (!expect(d, store_query(d->w->store, &query, &page), "query"))
			return;
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item item;

			if (!expect(d, record_row_item(d->w->store, &page.rows[i], &at, &item), "a row")) {
				say(d, "\n");
				continue;
			}
			size = enter(d, at.name);
			dump_item(d, &at);
			if (S_ISDIR(item.mode))
				dump_live(d, item.id);
			d->path[size] = 0;
		}
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	}
	size = enter(d, ".trash");
	dump_view(d, directory);
	d->path[size] = 0;
}

void world_dump(struct world *w, struct buffer *ret_text)
{
	struct dump d = { .w = w, .text = ret_text };
	struct place root = { .directory = KEY_ID_NONE, .state = KEY_ACT };

	dump_item(&d, &root);
	dump_live(&d, KEY_ID_ROOT);
	buffer_append(ret_text, "", 1);
	ck_assert(!ret_text->failed);
}

/* ---- check ---------------------------------------------------------------------------- */

static void print_problem(void *data, const char *path, const char *text)
{
	printf("# check: %s: %s\n", path, text);
	fflush(stdout);
}

int world_check(struct world *w)
{
	struct check_result result;
	int r = lifecycle_check(w->store, print_problem, NULL, NULL, &result);

	return r ? r : (int)result.problems;
}
