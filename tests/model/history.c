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

static void pick_operation(struct test_random *r, struct operation *op)
{
	memset(op, 0, sizeof(*op));
	op->kind = pick_kind(r);
	op->who = (uint8_t)random_below(r, 3);
	pick_path(r, op->path);
	op->name = pick_name(r);
	pick_path(r, op->path2);
	op->name2 = pick_name(r);
	op->number = (uint32_t)random_next(r);
}

/* ---- what chance alone brings about too seldom -------------------------------------- */

#define SCENES_ONE_IN 150 /* operations that begin one */
#define CLOSE 02000 /* numbers of chmod: to all others ... */
#define OPEN 02001 /* ... or open to all */
#define ALL_COUNTS 720720 /* divisible by 1 to 16: one less is the last entry, of so many */

#define ONE_VERSION 5 /* number of policy: versions=1 */

struct scene_step {
	uint8_t kind, who;
	uint8_t depth; /* 0: in the directory that D is in, 1: in D, 2: in its first name */
	uint8_t name; /* 0: D, 1 and 2: two names */
	uint32_t number;
};

struct scene {
	const struct scene_step *steps;
	int count;
};

/*
 * Somebody deletes a name in a directory D while it is closed, opens D up, and a
 * tree goes from there; then somebody else tries to have of that tree: it is the
 * view of D that must stop him, and nothing else would.
 */
static const struct scene_step opened_up_later[] = {
	{ OP_MKDIR, 0, 0, 0, 0 },    { OP_MKDIR, 0, 1, 1, 0 },	   { OP_CREATE, 0, 2, 1, 0 },
	{ OP_CREATE, 1, 1, 2, 0 },   { OP_CHMOD, 0, 0, 0, CLOSE }, { OP_UNLINK, 0, 1, 2, 0 },
	{ OP_CHMOD, 0, 0, 0, OPEN }, { OP_CHMOD, 0, 1, 1, OPEN },  { OP_DISCARD, 1, 1, 1, 0 },
	{ OP_RESTORE, 2, 0, 0, 0 },  { OP_ORIGIN, 2, 0, 0, 0 },	   { OP_PURGE, 2, 0, 0, 0 },
};

/* Where one version is kept, a name is removed, made again, and replaced: what was removed is no version. */
static const struct scene_step removed_then_replaced[] = {
	{ OP_MKDIR, 0, 0, 0, 0 },  { OP_POLICY, 0, 1, 0, ONE_VERSION }, { OP_CREATE, 0, 1, 1, 0 },
	{ OP_UNLINK, 1, 1, 1, 0 }, { OP_CREATE, 0, 1, 1, 0 },		{ OP_CREATE, 0, 1, 2, 0 },
	{ OP_RENAME, 0, 1, 2, 1 },
};

static const struct scene scenes[] = {
	{ opened_up_later, sizeof(opened_up_later) / sizeof(opened_up_later[0]) },
	{ removed_then_replaced, sizeof(removed_then_replaced) / sizeof(removed_then_replaced[0]) },
};
#define SCENE_MAX 12 /* steps of the longest */

static int add_scene(struct test_random *r, struct operation *operations)
{
	const struct scene *scene = &scenes[random_below(r, 2)];
	const uint8_t names[] = { pick_name(r), 0, 1 };
	bool nested = random_below(r, 2);
	uint8_t outer = pick_name(r);

	for (int i = 0; i < scene->count; i++) {
		const struct scene_step *step = &scene->steps[i];
		struct operation *op = &operations[i];
		uint8_t at = 0;

		pick_operation(r, op);
		op->kind = step->kind;
		op->who = step->who;
		memset(op->path, UINT8_MAX, sizeof(op->path));
		if (nested)
			op->path[at++] = outer;
		for (uint8_t k = 0; k < step->depth; k++)
			op->path[at++] = names[k];
		op->name = names[step->name];
		if (step->number)
			op->number = step->number;
		if (op->kind == OP_RENAME) {
			memcpy(op->path2, op->path, sizeof(op->path2));
			op->name2 = names[1];
		}
		/* One of the last entries: what went just now. */
		if (op->who == 2)
			op->number =
				op->number % 5000 * ALL_COUNTS + ALL_COUNTS - 1 - random_below(r, 2);
	}
	return scene->count;
}

void history_generate(struct history *h, uint64_t seed, int count)
{
	struct test_random r = { .seed = seed, .state = seed };
	int i = 0;

	h->seed = seed;
	h->count = count;
	while (i < count) {
		if (count - i >= SCENE_MAX && !random_below(&r, SCENES_ONE_IN)) {
			i += add_scene(&r, &h->operations[i]);
		} else {
			pick_operation(&r, &h->operations[i++]);
		}
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
