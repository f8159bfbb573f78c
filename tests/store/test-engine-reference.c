/*
 * test-engine-reference.c - thousands of random operations on an engine and on
 * a store in memory with other timing of checkpoints and openings: what each
 * answers must be the same.
 */
#include "tests/store/test-engine.h"

#include <stdio.h>

#define DIRECTORIES 3
#define NAMES 24
#define BODIES 3
#define BODY_SIZE 400000

static uint64_t random_state;
static uint64_t bodies[BODIES]; /* ids in use: one that was freed is not used again */

static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* The same transaction for two stores: versions are each store's own, so each looks its own up. */
struct step {
	struct store_op ops[8];
	bool at_version[8]; /* the version is filled in for each store */
	bool wrong_version[8];
	size_t count;
	char text[8][64];
	uint8_t bytes[60000];
};

static struct key draw_key(struct store *s)
{
	char name[16];
	struct key key;

	snprintf(name, sizeof(name), "n%02d", (int)draw(NAMES));
	key_act(store_codec(s), 20 + draw(DIRECTORIES), name, &key);
	return key;
}

static bool key_is_taken(const struct step *step, const struct key *key)
{
	for (size_t i = 0; i < step->count; i++)
		if (step->ops[i].kind <= STORE_ADD && !key_compare(&step->ops[i].key, key))
			return true;
	return false;
}

static struct store_op draw_item_op(struct step *step, struct store *s)
{
	size_t n = step->count;
	struct key key = draw_key(s);
	enum store_condition condition = (enum store_condition)draw(4);

	step->wrong_version[n] = draw(10) == 0;
	snprintf(step->text[n], sizeof(step->text[n]), "%llx", (unsigned long long)draw(UINT64_MAX));
	switch (draw(3)) {
	case 0:
		return op_put(key, step->text[n], step->text[n], condition, 0);
	case 1:
		return op_delete(key, condition == STORE_IF_ABSENT ? STORE_ANY : condition, 0);
	default:
		return op_check(key, condition == STORE_ANY ? STORE_IF_PRESENT : condition, 0);
	}
}

static bool frees(const struct step *step, uint64_t body)
{
	for (size_t i = 0; i < step->count; i++)
		if (step->ops[i].kind == STORE_BODY_FREE && step->ops[i].body == body)
			return true;
	return false;
}

static struct store_op draw_body_op(struct step *step)
{
	uint64_t body = bodies[draw(BODIES)], offset = draw(BODY_SIZE),
		 size = 1 + draw(sizeof(step->bytes) - 1);

	switch (draw(6)) {
	case 0:
		return op_zero(body, offset, size * 3);
	case 1:
		return op_truncate(body, offset);
	case 2:
		return draw(4) ? op_write(body, offset, step->bytes, 100) : op_free(body);
	default:
		return op_write(body, offset, step->bytes, draw(2) ? size : 1 + size % 5000);
	}
}

static void draw_step(struct step *step, struct store *s)
{
	size_t wanted = 1 + draw(4);

	step->count = 0;
	memset(step->wrong_version, 0, sizeof(step->wrong_version));
	for (size_t i = 0; i < sizeof(step->bytes); i += 8)
		util_put_le64(step->bytes + i, draw(UINT64_MAX));
	while (step->count < wanted) {
		struct store_op op = draw(3) ? draw_item_op(step, s) : draw_body_op(step);

		if (op.kind <= STORE_ADD ? key_is_taken(step, &op.key) : frees(step, op.body))
			continue;
		step->ops[step->count++] = op;
	}
	if (draw(3) == 0) {
		struct key key;

		key_meta("n", &key);
		step->ops[step->count++] = op_add(key, (unsigned)draw(4), (int64_t)draw(100) - 50);
	}
}

static int take_step(struct step *step, struct store *s)
{
	for (size_t i = 0; i < step->count; i++) {
		struct store_op *op = &step->ops[i];
		struct store_value value = { 0 };

		if (op->kind > STORE_CHECK || op->condition != STORE_IF_VERSION)
			continue;
		store_get(s, &op->key, true, &value);
		op->version = step->wrong_version[i] || !value.version ? value.version + 1 :
									 value.version;
		store_value_release(&value);
	}
	return store_transact(s, STORE_GROWING, step->ops, step->count, NULL);
}

static void expect_same_rows(const struct store_page *a, const struct store_page *b, size_t at_a,
			     size_t at_b)
{
	const struct store_row *x = &a->rows[at_a], *y = &b->rows[at_b];

	ck_assert_uint_eq(x->key_size, y->key_size);
	ck_assert_mem_eq(x->key, y->key, x->key_size);
	ck_assert_uint_eq(x->value.attrs_size, y->value.attrs_size);
	ck_assert_mem_eq(x->value.attrs, y->value.attrs, x->value.attrs_size);
	ck_assert_uint_eq(x->value.content_size, y->value.content_size);
	ck_assert_mem_eq(x->value.content, y->value.content, x->value.content_size);
}

static void expect_same_directory(struct store *reference, uint64_t directory)
{
	struct store_query query = { .limit = NAMES };
	struct store_page a, b;

	key_range_live(directory, &query.range);
	query.reverse = draw(2);
	ck_assert_int_eq(store_query(reference, &query, &a), 0);
	ck_assert_int_eq(store_query(store, &query, &b), 0);
	ck_assert_uint_eq(a.count, b.count);
	for (size_t i = 0; i < a.count; i++)
		expect_same_rows(&a, &b, i, i);
	store_page_release(&a);
	store_page_release(&b);
}

static void expect_same_body(struct store *reference, uint64_t body)
{
	static uint8_t a[BODY_SIZE * 2], b[BODY_SIZE * 2];
	uint64_t offset = draw(1000), others = 0;

	ck_assert_int_eq(store_body_read(reference, body, offset, a, sizeof(a)), 0);
	ck_assert_int_eq(store_body_read(store, body, offset, b, sizeof(b)), 0);
	ck_assert(!memcmp(a, b, sizeof(a)));
	/* Where the engine says hole, there must be zeros. */
	for (uint64_t hole = 0, data = 0; data < sizeof(b);) {
		ck_assert_int_eq(store_body_seek(store, body, data, false, &hole), 0);
		ck_assert_uint_ge(hole, data);
		ck_assert_int_eq(store_body_seek(store, body, hole, true, &data), 0);
		ck_assert_uint_ge(data, hole);
		for (uint64_t i = util_max(hole, offset); i < util_min(data, sizeof(b)); i++)
			others += b[i - offset] != 0;
	}
	ck_assert_uint_eq(others, 0);
}

static void expect_same(struct store *reference)
{
	int64_t a[STORE_COUNTERS_MAX], b[STORE_COUNTERS_MAX];
	struct store_value value;
	struct key key;

	for (uint64_t i = 0; i < DIRECTORIES; i++)
		expect_same_directory(reference, 20 + i);
	for (uint64_t i = 0; i < BODIES; i++)
		expect_same_body(reference, bodies[i]);
	key_meta("n", &key);
	if (store_get(reference, &key, true, &value))
		return;
	ck_assert_int_eq(record_decode_counters(&value, a), 0);
	store_value_release(&value);
	ck_assert_int_eq(store_get(store, &key, true, &value), 0);
	ck_assert_int_eq(record_decode_counters(&value, b), 0);
	store_value_release(&value);
	ck_assert_mem_eq(a, b, sizeof(a));
}

static void run_random(int engine, uint64_t seed, int steps)
{
	struct step *step = malloc(sizeof(*step));
	struct store *reference;
	int result;

	for (size_t i = 0; i < BODIES; i++)
		bodies[i] = 90 + i;
	random_state = seed;
	engine_start(engine);
	ck_assert_int_eq(store_open_memory(&now.clock, STORE_NAMES_ORDERED, &reference), 0);
	for (int i = 0; i < steps; i++) {
		draw_step(step, reference);
		result = take_step(step, reference);
		ck_assert_int_eq(result, take_step(step, store));
		for (size_t b = 0; b < BODIES && !result; b++)
			bodies[b] += frees(step, bodies[b]) ? BODIES : 0;
		if (draw(60) == 0)
			ck_assert_int_eq(store_checkpoint(store), 0);
		if (draw(150) == 0)
			engine_again(engine);
		if (draw(40) == 0)
			expect_same(reference);
	}
	expect_same(reference);
	ck_assert_int_eq(store_close(reference), 0);
	engine_stop();
	free(step);
}

START_TEST(test_random_operations_agree_with_the_reference)
{
	if (engines[_i].names == STORE_NAMES_SEALED)
		return; /* keys are compared: the names of both must be ordered */
	for (uint64_t seed = 1; seed <= 1; seed++)
		run_random(_i, seed * 0x9e3779b97f4a7c15, 1500);
}
END_TEST

TCase *engine_reference(void)
{
	TCase *t = tcase_create("reference");

	tcase_set_timeout(t, 200);
	add_engine_test(t, test_random_operations_agree_with_the_reference);
	return t;
}
