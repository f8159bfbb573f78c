/*
 * test-engine.c - one suite for every engine: what store.h promises.
 */
#include "tests/store/test-engine.h"

#include <stdio.h>

const struct engine_case engines[] = {
	{ "memory, ordered names", false, STORE_NAMES_ORDERED },
	{ "memory, sealed names", false, STORE_NAMES_SEALED },
	{ "local, ordered names", true, STORE_NAMES_ORDERED },
	{ "local, sealed names", true, STORE_NAMES_SEALED },
};
const int engines_count = ARRAY_SIZE(engines);

struct store *store;
struct test_clock now;

static void open_local(void)
{
	struct store_open_options options = { .clock = &now.clock, .map_bytes = 256 << 20 };
	struct store_open_report report;
	char path[4200];
	int result;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	result = store_open(path, &options, &report, &store);
	ck_assert_msg(result == 0, "store_open: %d %s", result, report.text);
}

static void create_local(enum store_names names)
{
	struct store_create_options options = { .names = names, .kdf_level = 3, .journal_bytes = 1 << 20 };
	char path[4200];

	snprintf(path, sizeof(path), "%s/store", test_directory());
	ck_assert_int_eq(store_create(path, &options), 0);
}

void engine_start(int engine)
{
	const struct engine_case *e = &engines[engine];

	test_clock_init(&now);
	if (e->local) {
		create_local(e->names);
		open_local();
	} else {
		ck_assert_int_eq(store_open_memory(&now.clock, e->names, &store), 0);
	}
}

void engine_stop(void)
{
	ck_assert_int_eq(store_close(store), 0);
	store = NULL;
}

bool engine_again(int engine)
{
	if (!engines[engine].local)
		return false;
	engine_stop();
	open_local();
	return true;
}

struct key item_key(uint64_t directory, const char *name)
{
	struct key key;

	key_act(store_codec(store), directory, name, &key);
	return key;
}

struct key meta_key(const char *name)
{
	struct key key;

	key_meta(name, &key);
	return key;
}

struct store_op op_put(struct key key, const char *attrs, const char *content,
		       enum store_condition condition, uint64_t version)
{
	return (struct store_op){
		.kind = STORE_PUT,
		.condition = condition,
		.version = version,
		.key = key,
		.attrs = (const uint8_t *)attrs,
		.attrs_size = strlen(attrs),
		.content = (const uint8_t *)content,
		.content_size = content ? strlen(content) : 0,
	};
}

struct store_op op_delete(struct key key, enum store_condition condition, uint64_t version)
{
	return (struct store_op){
		.kind = STORE_DELETE, .condition = condition, .version = version, .key = key
	};
}

struct store_op op_check(struct key key, enum store_condition condition, uint64_t version)
{
	return (struct store_op){
		.kind = STORE_CHECK, .condition = condition, .version = version, .key = key
	};
}

struct store_op op_add(struct key key, unsigned counter, int64_t delta)
{
	return (struct store_op){ .kind = STORE_ADD, .key = key, .counter = counter, .delta = delta };
}

struct store_op op_empty(struct key_range range, struct key guard)
{
	return (struct store_op){ .kind = STORE_EMPTY, .key = guard, .range = range };
}

struct store_op op_write(uint64_t body, uint64_t offset, const void *bytes, size_t size)
{
	return (struct store_op){
		.kind = STORE_BODY_WRITE, .body = body, .offset = offset, .length = size, .bytes = bytes
	};
}

struct store_op op_zero(uint64_t body, uint64_t offset, uint64_t length)
{
	return (struct store_op){ .kind = STORE_BODY_ZERO, .body = body, .offset = offset, .length = length };
}

struct store_op op_truncate(uint64_t body, uint64_t offset)
{
	return (struct store_op){ .kind = STORE_BODY_TRUNCATE, .body = body, .offset = offset };
}

struct store_op op_free(uint64_t body)
{
	return (struct store_op){ .kind = STORE_BODY_FREE, .body = body };
}

int transact1(struct store_op op)
{
	return store_transact(store, STORE_GROWING, &op, 1, NULL);
}

uint64_t put(struct key key, const char *attrs, const char *content)
{
	struct store_op op = op_put(key, attrs, content, STORE_ANY, 0);
	uint64_t version = 0;

	ck_assert_int_eq(store_transact(store, STORE_GROWING, &op, 1, &version), 0);
	ck_assert_uint_ne(version, 0);
	return version;
}

uint64_t version_of(struct key key)
{
	struct store_value value;
	int result = store_get(store, &key, true, &value);
	uint64_t version;

	if (result == STORE_ABSENT)
		return 0;
	ck_assert_int_eq(result, 0);
	version = value.version;
	store_value_release(&value);
	return version;
}

static bool bytes_are(const uint8_t *bytes, size_t size, const char *text)
{
	return size == strlen(text) && !memcmp(bytes, text, size);
}

bool item_is(struct key key, const char *attrs, const char *content)
{
	struct store_value value;
	bool same;

	if (store_get(store, &key, false, &value))
		return false;
	same = bytes_are(value.attrs, value.attrs_size, attrs) &&
	       (!content || bytes_are(value.content, value.content_size, content));
	store_value_release(&value);
	return same;
}

int64_t counter_of(struct key key, unsigned counter)
{
	int64_t counters[STORE_COUNTERS_MAX];
	struct store_value value;

	ck_assert_int_eq(store_get(store, &key, true, &value), 0);
	ck_assert_int_eq(record_decode_counters(&value, counters), 0);
	store_value_release(&value);
	return counters[counter];
}

int main(void)
{
	Suite *suite = suite_create("store/engine");

	suite_add_tcase(suite, engine_items());
	suite_add_tcase(suite, engine_queries());
	suite_add_tcase(suite, engine_bodies());
	suite_add_tcase(suite, engine_numbers());
	suite_add_tcase(suite, engine_threads());
	suite_add_tcase(suite, engine_reference());
	suite_add_tcase(suite, engine_memory());
	return test_main(suite);
}
