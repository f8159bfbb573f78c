/*
 * cmd-status.c - what a mount is and how it fares. Without a path and outside
 * of any mount: the mounts there are.
 */
#include <string.h>

#include "fs/bytes.h"
#include "store/item.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/table.h"

static int64_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void say_path(const char *label, const json_t *object, const char *key)
{
	_cleanup_free_ char *path = NULL, *quoted = NULL;

	if (bytes_from_json(object, key, &path))
		return;
	quoted = print_quoted(path);
	printf("%-13s%s\n", label, quoted);
}

static void say_amount(const char *label, const json_t *object)
{
	char size[PRINT_SIZE_MAX];
	int64_t items = integer(object, "items");

	printf("%-13s%lld %s, %s\n", label, (long long)items,
	       print_plural((uint64_t)items, "item", "items"),
	       print_size((uint64_t)integer(object, "bytes"), size));
}

static void say_space(const json_t *space)
{
	char used[PRINT_SIZE_MAX], left[PRINT_SIZE_MAX], total[PRINT_SIZE_MAX];

	printf("%-13s%s used by the store, %s free of %s\n", "space",
	       print_size((uint64_t)integer(space, "used"), used),
	       print_size((uint64_t)integer(space, "free"), left),
	       print_size((uint64_t)integer(space, "total"), total));
}

static void say_due(const json_t *result)
{
	int64_t next = integer(result, "next_due_ns");
	char when[PRINT_TIME_MAX];

	printf("%-13s%s\n", "next expiry", next == ITEM_FOREVER ? "none" : print_time(next, when));
}

/* What needs somebody's attention. */
static void say_troubles(const json_t *result)
{
	const json_t *engine = json_object_get(result, "engine"),
		     *clock = json_object_get(result, "clock");
	const char *problem = json_string_value(json_object_get(engine, "problem"));
	char jump[PRINT_TIME_MAX];
	int64_t jump_ns = integer(clock, "jump_ns");

	if (json_is_true(json_object_get(engine, "read_only")))
		printf("%-13snothing is written any more: %s; unmount, look at the disk, mount again\n",
		       "READ-ONLY", problem ? problem : "a write to the disk failed");
	if (json_is_true(json_object_get(clock, "suspect")))
		printf("%-13sthe clock jumped by %s%s: nothing is destroyed until 'ddbfs clock accept' or a steady day\n",
		       "CLOCK", jump_ns < 0 ? "-" : "",
		       print_duration(jump_ns < 0 ? -jump_ns : jump_ns, jump));
	if (json_is_false(json_object_get(engine, "memory_locked")))
		printf("%-13snot locked: keys could reach swap (raise the limit of locked memory)\n",
		       "memory");
}

static void say_scrub(const json_t *scrub)
{
	int64_t finished_ns = integer(scrub, "finished_ns");
	char when[PRINT_TIME_MAX], size[PRINT_SIZE_MAX];
	const json_t *row;
	size_t i;

	if (json_is_true(json_object_get(scrub, "active")))
		printf("%-13sreading everything: %lld items, %s so far, %lld damaged\n", "scrub",
		       (long long)integer(scrub, "items"),
		       print_size((uint64_t)integer(scrub, "bytes"), size),
		       (long long)integer(scrub, "found"));
	else if (json_is_false(json_object_get(scrub, "enabled")))
		printf("%-13soff\n", "scrub");
	else if (finished_ns)
		printf("%-13sended %s, %lld damaged\n", "scrub", print_time(finished_ns, when),
		       (long long)integer(scrub, "last_found"));
	else
		printf("%-13snot yet\n", "scrub");
	json_array_foreach(json_object_get(scrub, "findings"), i, row) {
		_cleanup_free_ char *bytes = NULL, *quoted = NULL;

		if (bytes_from_json(row, "found", &bytes) == 0)
			quoted = print_quoted(bytes);
		printf("%-13s%s\n", "DAMAGED", quoted ? quoted : "?");
	}
	if (integer(scrub, "found") || integer(scrub, "last_found"))
		printf("%-13sunmount, then 'ddbfs check' names it all, and --quarantine sets it aside\n",
		       "");
}

static void say_result(const json_t *result)
{
	char keep[PRINT_TIME_MAX];

	say_path("store", result, "store");
	say_path("mounted on", result, "mount_point");
	printf("%-13s%lld, ddbfs %s\n", "daemon", (long long)integer(result, "pid"),
	       json_string_value(json_object_get(result, "version")));
	say_amount("live", json_object_get(result, "live"));
	say_amount("trash", json_object_get(result, "trash"));
	printf("%-13s%s\n", "kept for", print_duration(integer(result, "retention_ns"), keep));
	say_due(result);
	say_space(json_object_get(result, "space"));
	say_scrub(json_object_get(result, "scrub"));
	say_troubles(result);
}

/* ---- all mounts ------------------------------------------------------------------ */

struct mounts {
	bool json;
	uint64_t count;
	struct table table;
};

static bool print_mount(void *data, const struct mount *m)
{
	struct mounts *all = data;
	_cleanup_free_ char *store = print_quoted(m->source), *point = print_quoted(m->point);

	all->count++;
	if (all->json) {
		json_t *row = json_object();

		bytes_to_json(row, "store", m->source);
		bytes_to_json(row, "mount_point", m->point);
		print_json(row);
		json_decref(row);
	} else {
		table_row(&all->table, (const char *[]){ store, point });
	}
	return false;
}

static int print_mounts(const struct arguments *a)
{
	static const struct table_column columns[] = { { "STORE", false }, { "MOUNTED ON", false } };
	struct mounts all = { .json = arguments_has(a, OPTION_JSON) };
	int result;

	if (!all.json && table_init(&all.table, columns, ARRAY_SIZE(columns)) < 0)
		return cmd_fail(a, EXIT_FAILED, "out of memory");
	result = mounts_each(print_mount, &all);
	table_finish(&all.table);
	if (result < 0)
		return cmd_fail(a, EXIT_FAILED, "/proc/self/mountinfo: %s", strerror(-result));
	if (!all.count)
		return cmd_fail(a, EXIT_NOT_FOUND,
				"no ddbfs is mounted; 'ddbfs mount STORE DIR' mounts one");
	return EXIT_DONE;
}

static bool is_inside_mount(void)
{
	_cleanup_free_ char *path = NULL, *inner = NULL;
	struct mount m = { 0 };
	bool inside = !mounts_resolve(".", true, &path) && mounts_locate(path, &m, &inner) == 1;

	mount_release(&m);
	return inside;
}

int cmd_status(const struct arguments *a)
{
	json_t *result = NULL;
	struct client c;
	int code;

	if (!a->count && !is_inside_mount())
		return print_mounts(a);
	code = client_open(a, arguments_operand(a, 0), true, &c);
	if (code != EXIT_DONE)
		return code;
	code = client_call(&c, json_pack("{ss}", "verb", "status"), NULL, &result);
	if (result && arguments_has(a, OPTION_JSON)) {
		print_json_time(result, "next_due");
		print_json_time(json_object_get(result, "clock"), "now");
		print_json_duration(json_object_get(result, "clock"), "jump");
		print_json_duration(result, "retention");
		print_json(result);
	} else if (result) {
		say_result(result);
	}
	json_decref(result);
	client_close(&c);
	return code;
}
