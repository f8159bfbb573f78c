/*
 * cmd-trash-list.c - what is in the trash in and below a directory.
 *
 * A deleted directory is one line, whatever went with it. Without --sort the
 * lines come as they are found, so that the first is there at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/filters.h"
#include "tools/print.h"
#include "tools/table.h"
#include "tools/units.h"

static const struct table_column columns[] = {
	{ "DELETED", false }, { "EXPIRES", false }, { "SIZE", true },  { "BY", false },
	{ "COMMAND", false }, { "WHY", false },	    { "PATH", false },
};

struct listing {
	const struct client *client;
	const char *sort; /* NULL: as they come */
	json_t *rows; /* to be sorted */
	struct table table;
	struct print_user user;
	bool json;
	uint64_t count;
	int64_t limit; /* -1: none */
	bool lost; /* no memory for a row */
};

static int64_t integer(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key)
{
	const char *value = json_string_value(json_object_get(row, key));

	return value ? value : "";
}

static void print_text(struct listing *l, json_t *row)
{
	char deleted[PRINT_TIME_MAX], expires[PRINT_TIME_MAX], size[PRINT_SIZE_MAX];
	_cleanup_free_ char *inner = NULL, *shown = NULL, *path = NULL, *command = NULL, *by = NULL;
	bool directory = !strcmp(text(row, "type"), "directory");
	bool deleted_itself = json_object_get(row, "deleted_at_ns") != NULL;

	if (bytes_from_json(row, "shown_path", &inner))
		return;
	bytes_from_json(row, "command", &command);
	shown = client_shown(l->client, inner);
	path = print_quoted(shown);
	by = print_quoted(command ? command : "-");
	table_row(&l->table,
		  (const char *[]){
			  print_time(integer(row, "deleted_at_ns"), deleted),
			  print_time(integer(row, "expires_at_ns"), expires),
			  directory ? "dir" : print_size((uint64_t)integer(row, "size"), size),
			  deleted_itself ? print_user(&l->user, (uint32_t)integer(row, "uid")) : "-",
			  by,
			  text(row, "cause"),
			  path,
		  });
}

static void print_row(struct listing *l, json_t *row)
{
	if (l->limit >= 0 && l->count >= (uint64_t)l->limit)
		return;
	l->count++;
	if (!l->json) {
		print_text(l, row);
		return;
	}
	print_json_time(row, "deleted_at");
	print_json_time(row, "expires_at");
	print_json(row);
}

static void take_row(void *data, json_t *row)
{
	struct listing *l = data;

	if (l->sort)
		l->lost = json_array_append(l->rows, row) < 0 || l->lost;
	else
		print_row(l, row);
}

/* Latest, largest, or first by path. */
static int compare(const void *one, const void *other, void *sort)
{
	const json_t *a = *(json_t *const *)one, *b = *(json_t *const *)other;
	int64_t difference;

	if (!strcmp(sort, "path"))
		return strcmp(text(a, "shown_path"), text(b, "shown_path"));
	difference = !strcmp(sort, "size") ? integer(b, "size") - integer(a, "size") :
					     integer(b, "deleted_at_ns") - integer(a, "deleted_at_ns");
	return difference < 0 ? -1 : difference > 0;
}

static int print_sorted(struct listing *l)
{
	size_t count = json_array_size(l->rows);
	_cleanup_free_ json_t **rows = calloc(count + 1, sizeof(json_t *));

	if (!rows || l->lost)
		return cmd_fail(l->client->arguments, EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < count; i++)
		rows[i] = json_array_get(l->rows, i);
	qsort_r(rows, count, sizeof(json_t *), compare, (void *)(uintptr_t)l->sort);
	for (size_t i = 0; i < count; i++)
		print_row(l, rows[i]);
	return EXIT_DONE;
}

int cmd_trash_list(const struct arguments *a)
{
	struct listing l = { .sort = a->values[OPTION_SORT],
			     .json = arguments_has(a, OPTION_JSON),
			     .limit = -1 };
	struct client_events events = { .what = "searching", .row = take_row, .data = &l };
	struct client c;
	json_t *request = json_pack("{ss}", "verb", "list");
	const char *path = NULL;
	int code = filters_put(a, request), sorted;

	if (code == EXIT_DONE)
		code = filters_path(a, &path);
	if (code == EXIT_DONE)
		code = client_open(a, path, true, &c);
	if (code != EXIT_DONE) {
		json_decref(request);
		return code;
	}
	if (arguments_has(a, OPTION_LIMIT))
		units_parse_number(a->values[OPTION_LIMIT], &l.limit);
	bytes_to_json(request, "path", c.inner);
	l.client = &c;
	l.rows = json_array();
	if (!l.json && table_init(&l.table, columns, ARRAY_SIZE(columns)) < 0)
		code = cmd_fail(a, EXIT_FAILED, "out of memory");
	else
		code = client_call(&c, request, &events, NULL);
	sorted = print_sorted(&l);
	code = code == EXIT_DONE ? sorted : code;
	table_finish(&l.table);
	if (code == EXIT_DONE && !l.json && !l.count && l.limit != 0)
		puts("nothing in the trash here");
	json_decref(l.rows);
	client_close(&c);
	return code;
}
