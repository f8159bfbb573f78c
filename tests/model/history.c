/*
 * history.c - operations from a seed, and as lines of text.
 *
 * A line: NAME WHO PATH NAME PATH NAME NUMBER, all but the first as numbers.
 */
#include "tests/model/history.h"

#include <string.h>

#include "tests/lib/random.h"

static const struct {
	const char *name;
	unsigned weight;
} kinds[OP_KINDS] = {
	[OP_CREATE] = { "create", 15 },	   [OP_MKDIR] = { "mkdir", 11 },
	[OP_WRITE] = { "write", 4 },	   [OP_CHMOD] = { "chmod", 4 },
	[OP_LINK] = { "link", 5 },	   [OP_RENAME] = { "rename", 9 },
	[OP_EXCHANGE] = { "exchange", 2 }, [OP_UNLINK] = { "unlink", 8 },
	[OP_RMDIR] = { "rmdir", 4 },	   [OP_RM_RF] = { "rm-rf", 4 },
	[OP_DISCARD] = { "discard", 5 },   [OP_RESTORE] = { "restore", 8 },
	[OP_ORIGIN] = { "origin", 6 },	   [OP_UNDO] = { "undo", 5 },
	[OP_PURGE] = { "purge", 3 },	   [OP_EMPTY] = { "empty", 1 },
	[OP_POLICY] = { "policy", 2 },	   [OP_PASS] = { "pass", 4 },
	[OP_STEP] = { "step", 1 },	   [OP_ACCEPT] = { "accept", 1 },
	[OP_SWEEP] = { "sweep", 3 },	   [OP_REMOUNT] = { "remount", 1 },
	[OP_KILL] = { "kill", 1 },	   [OP_OPEN] = { "open", 4 },
	[OP_CLOSE] = { "close", 3 },	   [OP_SCRIBBLE] = { "scribble", 2 },
	[OP_CAP] = { "cap", 2 },
};

static uint8_t pick_kind(struct test_random *r)
{
	unsigned total = 0, at;

	for (int i = 0; i < OP_KINDS; i++)
		total += kinds[i].weight;
	at = (unsigned)random_below(r, total);
	for (uint8_t i = 0;; i++) {
		if (at < kinds[i].weight)
			return i;
		at -= kinds[i].weight;
	}
}

/* Two names in three of the first two: much happens to the same things. */
static uint8_t pick_name(struct test_random *r)
{
	return (uint8_t)(random_below(r, 3) ? random_below(r, 2) : random_below(r, MODEL_TEXTS));
}

static void pick_path(struct test_random *r, uint8_t path[HISTORY_DEPTH])
{
	uint64_t depth = random_below(r, HISTORY_DEPTH + 1);

	for (uint64_t i = 0; i < HISTORY_DEPTH; i++)
		path[i] = i < depth ? pick_name(r) : UINT8_MAX;
}

void history_generate(struct history *h, uint64_t seed, int count)
{
	struct test_random r = { .seed = seed, .state = seed };

	h->seed = seed;
	h->count = count;
	for (int i = 0; i < count; i++) {
		struct operation *op = &h->operations[i];

		memset(op, 0, sizeof(*op));
		op->kind = pick_kind(&r);
		op->who = (uint8_t)random_below(&r, 3);
		pick_path(&r, op->path);
		op->name = pick_name(&r);
		pick_path(&r, op->path2);
		op->name2 = pick_name(&r);
		op->number = (uint32_t)random_next(&r);
	}
}

static void print_path(const uint8_t path[HISTORY_DEPTH], uint8_t name, FILE *to)
{
	fputs(" /", to);
	for (int i = 0; i < HISTORY_DEPTH && path[i] != UINT8_MAX; i++)
		fprintf(to, "%u/", path[i]);
	fprintf(to, " %u", name);
}

void history_print_operation(const struct operation *op, FILE *to)
{
	fprintf(to, "%s %u", kinds[op->kind].name, op->who);
	print_path(op->path, op->name, to);
	print_path(op->path2, op->name2, to);
	fprintf(to, " %u\n", op->number);
}

void history_print(const struct history *h, FILE *to)
{
	fprintf(to, "engine %d\nrights %d\n", h->engine, h->rights);
	for (int i = 0; i < h->count; i++)
		history_print_operation(&h->operations[i], to);
}

static bool parse_path(const char *text, uint8_t path[HISTORY_DEPTH])
{
	memset(path, UINT8_MAX, HISTORY_DEPTH);
	if (*text++ != '/')
		return false;
	for (int i = 0; *text; i++) {
		if (i == HISTORY_DEPTH || *text < '0' || *text >= '0' + MODEL_TEXTS || text[1] != '/')
			return false;
		path[i] = (uint8_t)(*text - '0');
		text += 2;
	}
	return true;
}

static bool parse_operation(const char *line, struct operation *op)
{
	char name[16], path[16], path2[16];
	unsigned who, text, text2;

	memset(op, 0, sizeof(*op));
	if (sscanf(line, "%15s %u %15s %u %15s %u %u", name, &who, path, &text, path2, &text2,
		   &op->number) != 7 ||
	    who > 2 || text >= MODEL_TEXTS || text2 >= MODEL_TEXTS || !parse_path(path, op->path) ||
	    !parse_path(path2, op->path2))
		return false;
	op->who = (uint8_t)who;
	op->name = (uint8_t)text;
	op->name2 = (uint8_t)text2;
	while (op->kind < OP_KINDS && strcmp(kinds[op->kind].name, name))
		op->kind++;
	return op->kind < OP_KINDS;
}

int history_parse(struct history *h, FILE *from)
{
	char line[256];
	int number = 0, engine;

	h->seed = 0;
	h->count = 0;
	h->engine = HISTORY_MEMORY;
	h->rights = false;
	while (fgets(line, sizeof(line), from)) {
		number++;
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "engine %d", &engine) == 1 && engine >= 0 && engine <= HISTORY_LOCAL)
			h->engine = (enum history_engine)engine;
		else if (sscanf(line, "rights %d", &engine) == 1)
			h->rights = engine != 0;
		else if (h->count < HISTORY_OPERATIONS && parse_operation(line, &h->operations[h->count]))
			h->count++;
		else
			return number;
	}
	return 0;
}
