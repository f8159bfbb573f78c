/*
 * cmd-undo.c - brings back what one `rm`, script or program deleted: the last
 * batch, or a given one; and lists the batches.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/table.h"
#include "tools/taken.h"
#include "tools/units.h"

static const struct table_column columns[] = {
	{ "ID", false }, { "DELETED", false }, { "ENTRIES", true }, { "SIZE", true },
	{ "BY", false }, { "COMMAND", false }, { "STATE", false },  { "FIRST IN", false },
};

struct undo {
	const struct client *client;
	struct table table;
	struct print_user user;
	uint64_t rows;
};

static int64_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool is_json(const struct undo *u)
{
	return arguments_has(u->client->arguments, OPTION_JSON);
}

static char *shown_path(const struct undo *u, const json_t *row, const char *key)
{
	_cleanup_free_ char *inner = NULL, *shown = NULL;

	if (bytes_from_json(row, key, &inner))
		return print_format("-");
	shown = client_shown(u->client, inner);
	return print_quoted(shown);
}

static bool has_path(const json_t *row, const char *key)
{
	_cleanup_free_ char *inner = NULL;

	return bytes_from_json(row, key, &inner) == 0;
}

/* ---- --list ------------------------------------------------------------------ */

static const char *state(const json_t *row)
{
	if (json_is_true(json_object_get(row, "undone")))
		return "undone";
	if (json_is_true(json_object_get(row, "purge")))
		return "purged";
	return json_is_true(json_object_get(row, "open")) ? "open" : "";
}

static void print_batch(void *data, json_t *row)
{
	char when[PRINT_TIME_MAX], count[PRINT_SIZE_MAX * 2], size[PRINT_SIZE_MAX];
	_cleanup_free_ char *command = NULL, *quoted = NULL, *where = NULL;
	struct undo *u = data;

	u->rows++;
	if (is_json(u)) {
		print_json_time(row, "deleted_at");
		print_json(row);
		return;
	}
	if (bytes_from_json(row, "command", &command))
		return;
	quoted = print_quoted(command);
	where = shown_path(u, row, "directory");
	snprintf(count, sizeof(count), "%lld", (long long)integer(row, "count"));
	table_row(&u->table, (const char *[]){
				     json_string_value(json_object_get(row, "id")),
				     print_time(integer(row, "deleted_at_ns"), when),
				     count,
				     print_size((uint64_t)integer(row, "bytes"), size),
				     print_user(&u->user, (uint32_t)integer(row, "uid")),
				     quoted,
				     state(row),
				     where,
			     });
}

static int list(struct client *c)
{
	struct undo u = { .client = c };
	struct client_events events = { .row = print_batch, .data = &u };
	json_t *request = json_pack("{ss sb}", "verb", "batches", "all",
				    arguments_has(c->arguments, OPTION_ALL));
	int code;

	if (!is_json(&u) && table_init(&u.table, columns, ARRAY_SIZE(columns)) < 0) {
		json_decref(request);
		return cmd_fail(c->arguments, EXIT_FAILED, "out of memory");
	}
	code = client_call(c, request, &events, NULL);
	table_finish(&u.table);
	if (code == EXIT_DONE && !u.rows && !is_json(&u))
		puts("nothing to undo");
	return code;
}

/* ---- undo itself --------------------------------------------------------------- */

static void print_entry(void *data, json_t *row)
{
	const char *error = json_string_value(json_object_get(row, "error"));
	struct undo *u = data;

	u->rows++;
	if (is_json(u)) {
		print_json(row);
		return;
	}
	_cleanup_free_ char *path = shown_path(u, row, "path");
	_cleanup_free_ char *in_way = shown_path(u, row, "in_way");
	if (error && has_path(row, "in_way"))
		printf("%-9s%s (%s: %s)\n", "left", path, error, in_way);
	else if (error)
		printf("%-9s%s (%s)\n", "left", path, error);
	else
		printf("%-9s%s\n",
		       arguments_has(u->client->arguments, OPTION_DRY_RUN) ? "would" : "back", path);
}

static void print_result(const struct undo *u, json_t *result)
{
	char when[PRINT_TIME_MAX];
	_cleanup_free_ char *command = NULL, *quoted = NULL;
	json_t *batch = json_object_get(result, "batch");
	bool dry_run = arguments_has(u->client->arguments, OPTION_DRY_RUN), purge;
	long long restored = integer(result, "restored");

	if (is_json(u)) {
		print_json_time(batch, "deleted_at");
		print_json(result);
		return;
	}
	if (bytes_from_json(batch, "command", &command))
		return;
	quoted = print_quoted(command);
	purge = json_is_true(json_object_get(batch, "purge"));
	printf("%s %lld %s that %s %s on %s", dry_run ? "would bring back" : "brought back",
	       restored, print_plural((uint64_t)restored, "item", "items"), quoted,
	       purge ? "removed from the trash, into it," : "deleted",
	       print_time(integer(batch, "deleted_at_ns"), when));
	if (integer(result, "already"))
		printf(", %lld back before", (long long)integer(result, "already"));
	if (integer(result, "skipped"))
		printf(", %lld left in the trash", (long long)integer(result, "skipped"));
	if (integer(result, "missing"))
		printf(", %lld no longer there", (long long)integer(result, "missing"));
	putchar('\n');
}

static int undo(struct client *c, const char *id, const char *taken)
{
	const struct arguments *a = c->arguments;
	struct undo u = { .client = c };
	struct client_events events = { .what = "restoring", .row = print_entry, .data = &u };
	json_t *request = json_pack("{ss ss ss* sb}", "verb", "undo", "taken", taken, "batch", id,
				    "dry_run", arguments_has(a, OPTION_DRY_RUN));
	json_t *result = NULL;
	int code;

	if (arguments_has(a, OPTION_ONLY))
		bytes_to_json(request, "only", a->values[OPTION_ONLY]);
	code = client_call(c, request, &events, &result);
	if (result)
		print_result(&u, result);
	json_decref(result);
	return code;
}

static int set_id(const struct arguments *a, const char *text, const char **id)
{
	int64_t number;

	if (*id || !units_parse_number(text, &number) || !number)
		return cmd_fail(a, EXIT_USAGE,
				"%s: not the number of one batch; see 'ddbfs undo --list'", text);
	*id = text;
	return EXIT_DONE;
}

/* It only tells the mount: a mistyped word must not undo something. */
static int set_path(const struct arguments *a, const char *text, const char **path)
{
	_cleanup_free_ char *quoted = print_quoted(text);
	struct stat st;

	if (*path)
		return cmd_fail(a, EXIT_USAGE,
				"%s: neither a second path nor the number of a batch is possible here",
				quoted);
	if (lstat(text, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: %s; PATH is anything in the mount, ID a number of 'ddbfs undo --list'",
				quoted, strerror(errno));
	*path = text;
	return EXIT_DONE;
}

/* PATH and ID in either order. A directory whose name is a number can be given as ./NUMBER. */
static int parse_operands(const struct arguments *a, const char **ret_path, const char **ret_id)
{
	int code = EXIT_DONE;

	*ret_path = NULL;
	*ret_id = NULL;
	for (unsigned i = 0; i < a->count && code == EXIT_DONE; i++) {
		const char *text = a->operands[i];
		bool number = strspn(text, "0123456789") == strlen(text);

		code = number ? set_id(a, text, ret_id) : set_path(a, text, ret_path);
	}
	return code;
}

/* What says how to undo says nothing of a list. */
static int check_options(const struct arguments *a, const char *id)
{
	static const enum option_id undoing[] = { OPTION_SKIP, OPTION_RENAME, OPTION_REPLACE,
						  OPTION_ONLY, OPTION_DRY_RUN };

	if (!arguments_has(a, OPTION_LIST))
		return arguments_has(a, OPTION_ALL) ?
			       cmd_fail(a, EXIT_USAGE, "--all: goes with --list only") :
			       EXIT_DONE;
	if (id)
		return cmd_fail(a, EXIT_USAGE, "--list, %s: either list the batches or undo one", id);
	for (unsigned i = 0; i < ARRAY_SIZE(undoing); i++)
		if (arguments_has(a, undoing[i]))
			return cmd_fail(a, EXIT_USAGE, "--list, --%s: exclude each other; give one",
					option_table[undoing[i]].name);
	return EXIT_DONE;
}

int cmd_undo(const struct arguments *a)
{
	const char *taken, *path, *id;
	struct client c;
	int code = taken_option(a, &taken);

	if (code == EXIT_DONE)
		code = parse_operands(a, &path, &id);
	if (code == EXIT_DONE)
		code = check_options(a, id);
	if (code == EXIT_DONE)
		code = client_open(a, path, true, &c);
	if (code != EXIT_DONE)
		return code;
	code = arguments_has(a, OPTION_LIST) ? list(&c) : undo(&c, id, taken);
	client_close(&c);
	return code;
}
