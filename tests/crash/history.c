/*
 * history.c - see history.h.
 */
#include "tests/crash/history.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/crash/files.h"

const enum world_op history_usual[HISTORY_USUAL] = {
	WORLD_CREATE,
	WORLD_WRITE_NEW,
	WORLD_APPEND_SMALL,
	WORLD_APPEND_LARGE,
	WORLD_OVERWRITE_PART,
	WORLD_SYNC,
	WORLD_OVERWRITE_CHUNKS,
	WORLD_PUNCH,
	WORLD_CHECKPOINT,
	WORLD_ATTRIBUTES,
	WORLD_XATTR,
	WORLD_POLICY,
	WORLD_SPECIAL,
	WORLD_LINK,
	WORLD_TRUNCATE_UP,
	WORLD_EXCHANGE,
	WORLD_TRUNCATE,
	WORLD_RESTORE,
	WORLD_RESTORE_OVER,
	WORLD_RM_LINK,
	WORLD_RENAME_OVER,
	WORLD_CHECKPOINT,
	WORLD_RM,
	WORLD_UNDO,
	WORLD_RENAME_INTO,
	WORLD_DISCARD,
	WORLD_UNDO,
	WORLD_RENAME_DIRECTORY,
	WORLD_RM_RF,
	WORLD_CHECKPOINT,
	WORLD_RESTORE_DIRECTORY,
	WORLD_UNDO,
	WORLD_SYNC,
	WORLD_RM_RF,
	WORLD_PURGE,
	WORLD_PURGE_DIRECTORY,
	WORLD_UNDO,
	WORLD_PURGE_DIRECTORY,
	WORLD_EMPTY_NOW,
	WORLD_CHECKPOINT,
	WORLD_WRITE_NEW,
	WORLD_EXPIRE,
};

/* ---- choosing -------------------------------------------------------------------- */

struct chooser {
	const struct history_rhythm *rhythm;
	enum world_op *ops;
	size_t count;
	unsigned changes;
};

static void add(struct chooser *c, enum world_op op)
{
	ck_assert_uint_lt(c->count, HISTORY_OPS_MAX);
	c->ops[c->count++] = op;
}

static bool is_due(const struct chooser *c, unsigned every)
{
	return every && c->changes % every == 0;
}

static void add_change(struct chooser *c, enum world_op op)
{
	/* What is still shown depends on the time, so it must be known which states are behind. */
	if (op == WORLD_EXPIRE)
		add(c, WORLD_SYNC);
	add(c, op);
	c->changes++;
	if (is_due(c, c->rhythm->sync_every))
		add(c, WORLD_SYNC);
	if (is_due(c, c->rhythm->checkpoint_every))
		add(c, WORLD_CHECKPOINT);
	if (is_due(c, c->rhythm->life))
		add(c, WORLD_REOPEN);
}

bool history_is_change(enum world_op op)
{
	return op != WORLD_SYNC && op != WORLD_CHECKPOINT;
}

size_t history_choose_usual(const struct history_rhythm *rhythm, enum world_op *ops)
{
	struct chooser c = { .rhythm = rhythm, .ops = ops };

	for (size_t i = 0; i < HISTORY_USUAL; i++) {
		if (!history_is_change(history_usual[i]))
			continue;
		add_change(&c, WORLD_SOMEWHERE);
		add_change(&c, history_usual[i]);
	}
	return c.count;
}

size_t history_choose_any(const struct history_rhythm *rhythm, unsigned changes, uint64_t *seed,
			  enum world_op *ops)
{
	struct chooser c = { .rhythm = rhythm, .ops = ops };

	while (c.changes < changes) {
		enum world_op op = files_random(seed) % WORLD_SPARSE_DESTROY;

		if (files_random(seed) % 3 == 0)
			add_change(&c, WORLD_SOMEWHERE);
		else if (history_is_change(op) && (op != WORLD_EXPIRE || rhythm->sync_every))
			add_change(&c, op);
	}
	return c.count;
}

/* ---- running ------------------------------------------------------------------------ */

struct runner {
	struct history *h;
	struct world w;
};

static void add_state(struct history *h, struct world *w)
{
	struct buffer text = { 0 };

	world_dump(w, &text);
	if (h->states_count && strcmp(h->states[h->states_count - 1], (char *)text.bytes) == 0) {
		buffer_release(&text);
		return;
	}
	if (h->states_count == h->states_capacity) {
		h->states_capacity = 2 * h->states_capacity + 64;
		h->states = reallocarray(h->states, h->states_capacity, sizeof(*h->states));
		ck_assert_ptr_nonnull(h->states);
	}
	h->states[h->states_count++] = (char *)text.bytes;
}

static void before_transaction(void *data, uint64_t n)
{
	struct runner *r = data;

	/* Not what opening does: nothing of it is seen. */
	if (r->w.namei)
		add_state(r->h, &r->w);
}

static void prepare(const struct history *h, struct world *w)
{
	world_begin(w);
	if (h->sparse)
		world_make_sparse(w, h->sparse);
}

void history_run(struct history *h)
{
	struct runner r = { .h = h };

	ck_assert_uint_le(h->count, HISTORY_OPS_MAX);
	world_init(&r.w);
	ck_assert_int_eq(world_open_memory(&r.w), 0);
	prepare(h, &r.w);
	/* As the store on the disk, which is closed in between. */
	ck_assert_int_eq(world_reopen_upper(&r.w), 0);
	test_clock_advance(&r.w.clock, 100 * CLOCK_SECOND_NS);
	h->begins_ns = r.w.clock.boottime_ns;
	store_memory_inject(r.w.store,
			    &(struct store_faults){ .before = before_transaction, .data = &r });
	add_state(h, &r.w);
	for (size_t i = 0; i < h->count; i++) {
		h->ends[i] = h->states_count - 1;
		world_step(&r.w, h->ops[i]);
		h->results[i] = world_do(&r.w, h->ops[i]);
		add_state(h, &r.w);
	}
	h->ends[h->count] = h->states_count - 1;
	store_memory_inject(r.w.store, &(struct store_faults){ 0 });
	ck_assert_int_eq(world_check(&r.w), 0);
	ck_assert_int_eq(world_close(&r.w), 0);
}

void history_release(struct history *h)
{
	for (size_t i = 0; i < h->states_count; i++)
		free(h->states[i]);
	free(h->states);
	h->states = NULL;
	h->states_count = h->states_capacity = 0;
}

void history_begin(const struct history *h, struct world *w)
{
	world_init(w);
	test_clock_advance(&w->clock, h->begins_ns - w->clock.boottime_ns);
}

void history_begin_after(const struct history *h, struct world *w, size_t done)
{
	history_begin(h, w);
	for (size_t i = 0; i < done; i++)
		world_step(w, h->ops[i]);
	if (done < h->count && h->ops[done] == WORLD_EXPIRE)
		world_step(w, WORLD_EXPIRE);
}

void history_make_store(const struct history *h, const char *path)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	int status = 1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct store_open_report why;
		struct world w;

		world_init(&w);
		if (store_create(path, &options) ||
		    store_open(path, &(struct store_open_options){ .clock = &w.clock.clock }, &why,
			       &w.store))
			_exit(1);
		prepare(h, &w);
		_exit(world_close(&w) ? 2 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

/* ---- comparing ------------------------------------------------------------------ */

/* Where two texts part, from the beginning of that line. */
static size_t first_difference(const char *a, const char *b)
{
	size_t line = 0, i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '\n')
			line = i + 1;
	return a[i] == b[i] ? SIZE_MAX : line;
}

static void print_lines(const char *was, const char *expected, size_t at)
{
	printf("# was %.*s\n# not %.*s\n", (int)strcspn(was + at, "\n"), was + at,
	       (int)strcspn(expected + at, "\n"), expected + at);
	fflush(stdout);
}

void history_print_difference(const char *was, const char *expected)
{
	size_t at = first_difference(was, expected);

	if (at != SIZE_MAX)
		print_lines(was, expected, at);
}

static void print_difference(const struct history *h, const char *text, size_t from, size_t to)
{
	size_t best = from, most = 0;

	for (size_t i = from; i <= to; i++) {
		size_t at = first_difference(h->states[i], text);

		if (at >= most) {
			best = i;
			most = at;
		}
	}
	printf("# not one of the states %zu to %zu; of state %zu differs\n", from, to, best);
	print_lines(text, h->states[best], most);
}

bool history_has(const struct history *h, const char *text, size_t from, size_t until)
{
	size_t last = h->ends[util_min(until, h->count)];

	for (size_t i = h->ends[from]; i <= last; i++)
		if (strcmp(h->states[i], text) == 0)
			return true;
	print_difference(h, text, h->ends[from], last);
	return false;
}
