/*
 * plan.c - see plan.h.
 */
#include "tests/crash/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/record.h"
#include "store/util.h"

#define CHUNK 32768
#define NAMES 25
#define BODIES 3
#define BODY_SIZE (6 * CHUNK)
#define BODY_LIFE 60 /* transactions until a slot's body is freed for a new one */
#define DIRECTORY 20

enum extra {
	EXTRA_NONE,
	EXTRA_FREE,
	EXTRA_TRUNCATE,
	EXTRA_ZERO,
	EXTRA_DELETE,
};

struct step {
	char name[16];
	char text[200];
	uint64_t body;
	uint64_t offset;
	size_t size;
	enum extra extra;
	uint64_t extra_body;
	uint64_t extra_offset;
	uint64_t extra_size;
	char extra_name[16];
};

static uint64_t body_of(uint64_t n)
{
	return 100 + n % BODIES + n / BODY_LIFE * BODIES;
}

static void step_extra(uint64_t n, struct step *s)
{
	s->extra_body = s->body;
	s->extra_offset = n * 104729 % BODY_SIZE;
	s->extra_size = 1 + n * 31337 % (BODY_SIZE - s->extra_offset);
	snprintf(s->extra_name, sizeof(s->extra_name), "n%u", (unsigned)((n + 7) % NAMES));
	if (n >= BODY_LIFE && n % BODY_LIFE < BODIES) {
		s->extra = EXTRA_FREE;
		s->extra_body = body_of(n - BODY_LIFE);
	} else if (n % 11 == 5) {
		s->extra = EXTRA_TRUNCATE;
	} else if (n % 13 == 6) {
		s->extra = EXTRA_ZERO;
	} else if (n % 6 == 4) {
		s->extra = EXTRA_DELETE;
	}
}

static struct step step_of(uint64_t n)
{
	static const size_t sizes[] = { 100, 5000, CHUNK, 3 * CHUNK, 40000, 4096, 1, 70000 };
	struct step s = { .body = body_of(n), .size = sizes[n % ARRAY_SIZE(sizes)] };
	int size = snprintf(s.text, sizeof(s.text), "text %llu ", (unsigned long long)n);

	snprintf(s.name, sizeof(s.name), "n%u", (unsigned)(n % NAMES));
	for (size_t i = (size_t)size; i < 20 + n * 17 % 170; i++)
		s.text[i] = (char)('a' + i % 26);
	s.offset = n * 7919 % (BODY_SIZE - s.size);
	if (n % 3 == 0)
		s.offset = s.offset / CHUNK * CHUNK;
	step_extra(n, &s);
	return s;
}

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	seed = seed * 2 + 1;
	for (size_t i = 0; i < size; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> (i % 8 * 8));
	}
}

static struct key name_key(struct store *s, const char *name)
{
	struct key key;

	key_act(store_codec(s), DIRECTORY, name, &key);
	return key;
}

int plan_do(struct store *s, uint64_t n)
{
	uint8_t *bytes = malloc(BODY_SIZE);
	struct step step = step_of(n);
	struct store_op ops[4] = {
		{ .kind = STORE_PUT, .attrs = (uint8_t *)step.text, .attrs_size = strlen(step.text) },
		{ .kind = STORE_ADD, .counter = 3, .delta = 1 },
		{ .kind = STORE_BODY_WRITE,
		  .body = step.body,
		  .offset = step.offset,
		  .length = step.size,
		  .bytes = bytes },
		{ .body = step.extra_body, .offset = step.extra_offset, .length = step.extra_size },
	};
	int r;

	if (!bytes)
		return -ENOMEM;
	fill(bytes, step.size, n);
	ops[0].key = name_key(s, step.name);
	key_meta("plan", &ops[1].key);
	switch (step.extra) {
	case EXTRA_NONE:
		break;
	case EXTRA_FREE:
		ops[3].kind = STORE_BODY_FREE;
		break;
	case EXTRA_TRUNCATE:
		ops[3].kind = STORE_BODY_TRUNCATE;
		break;
	case EXTRA_ZERO:
		ops[3].kind = STORE_BODY_ZERO;
		break;
	case EXTRA_DELETE:
		ops[3] = (struct store_op){ .kind = STORE_DELETE, .key = name_key(s, step.extra_name) };
		break;
	}
	r = store_transact(s, STORE_GROWING, ops, step.extra ? 4 : 3, NULL);
	free(bytes);
	return r;
}

int plan_count(struct store *s, uint64_t *ret_count)
{
	int64_t counters[STORE_COUNTERS_MAX];
	struct store_value value;
	struct key key;
	int r;

	key_meta("plan", &key);
	r = store_get(s, &key, true, &value);
	*ret_count = 0;
	if (r != 0)
		return r == STORE_ABSENT ? 0 : r;
	r = record_decode_counters(&value, counters);
	store_value_release(&value);
	*ret_count = (uint64_t)counters[3];
	return r;
}

/* ---- the model --------------------------------------------------------------- */

static const char *expected_text(uint64_t n, const char *name, char text[200])
{
	const char *found = NULL;

	for (uint64_t i = 0; i < n; i++) {
		struct step step = step_of(i);

		if (!strcmp(step.name, name)) {
			memcpy(text, step.text, sizeof(step.text));
			found = text;
		}
		if (step.extra == EXTRA_DELETE && !strcmp(step.extra_name, name))
			found = NULL;
	}
	return found;
}

static int check_item(struct store *s, uint64_t n, const char *name, char *ret_text, size_t text_size)
{
	char text[200];
	const char *expected = expected_text(n, name, text);
	struct key key = name_key(s, name);
	struct store_value value = { 0 };
	int r = store_get(s, &key, true, &value);
	bool same;

	if (r < 0 || (r == STORE_ABSENT) != !expected) {
		snprintf(ret_text, text_size, "item %s: %d where %s was expected", name, r,
			 expected ? "one" : "none");
		return -EBADMSG;
	}
	if (!expected)
		return 0;
	same = value.attrs_size == strlen(expected) && !memcmp(value.attrs, expected, value.attrs_size);
	if (!same)
		snprintf(ret_text, text_size, "item %s is '%.*s' where '%s' was expected", name,
			 (int)value.attrs_size, value.attrs, expected);
	store_value_release(&value);
	return same ? 0 : -EBADMSG;
}

static void model_body(uint8_t *model, uint64_t n, uint64_t body)
{
	memset(model, 0, BODY_SIZE);
	for (uint64_t i = 0; i < n; i++) {
		struct step step = step_of(i);

		if (step.body == body)
			fill(model + step.offset, step.size, i);
		if (step.extra_body != body)
			continue;
		if (step.extra == EXTRA_TRUNCATE)
			memset(model + step.extra_offset, 0, BODY_SIZE - step.extra_offset);
		else if (step.extra == EXTRA_ZERO)
			memset(model + step.extra_offset, 0, step.extra_size);
	}
}

static int check_body(struct store *s, uint64_t n, uint64_t body, char *ret_text, size_t text_size)
{
	uint8_t *model = malloc(2 * BODY_SIZE), *bytes = model + BODY_SIZE;
	int r;

	if (!model)
		return -ENOMEM;
	model_body(model, n, body);
	r = store_body_read(s, body, 0, bytes, BODY_SIZE);
	if (r < 0)
		snprintf(ret_text, text_size, "body %llu: %d", (unsigned long long)body, r);
	for (size_t i = 0; i < BODY_SIZE && r == 0; i++) {
		if (model[i] == bytes[i])
			continue;
		snprintf(ret_text, text_size, "body %llu differs at %zu", (unsigned long long)body, i);
		r = -EBADMSG;
	}
	free(model);
	return r;
}

int plan_check(struct store *s, uint64_t n, char *ret_text, size_t text_size)
{
	char name[16];
	int r = 0;

	for (unsigned i = 0; i < NAMES && r == 0; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		r = check_item(s, n, name, ret_text, text_size);
	}
	for (uint64_t i = n > BODIES ? n - BODIES : 0; i < n && r == 0; i++)
		r = check_body(s, n, body_of(i), ret_text, text_size);
	return r;
}
