/*
 * cmd-trash-history.c - what became of entries that are no longer in the trash:
 * when and why they were destroyed.
 */
#include <string.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/filters.h"
#include "tools/print.h"
#include "tools/table.h"

static const struct table_column columns[] = {
	{ "DESTROYED", false }, { "WHY", false }, { "DELETED", false }, { "BY", false },
	{ "COMMAND", false },	{ "SIZE", true }, { "PATH", false },
};

struct history {
	const struct client *client;
	struct table table;
	struct print_user user;
	uint64_t rows;
	bool json;
};

static const char *text(const json_t *row, const char *key)
{
	const char *value = json_string_value(json_object_get(row, key));

	return value ? value : "";
}

static void print_row(void *data, json_t *row)
{
	char destroyed[PRINT_TIME_MAX], deleted[PRINT_TIME_MAX], size[PRINT_SIZE_MAX];
	_cleanup_free_ char *inner = NULL, *shown = NULL, *path = NULL, *command = NULL, *by = NULL;
	struct history *h = data;

	h->rows++;
	if (h->json) {
		print_json_time(row, "destroyed_at");
		print_json_time(row, "deleted_at");
		print_json(row);
		return;
	}
	if (bytes_from_json(row, "path", &inner) || bytes_from_json(row, "command", &command))
		return;
	/* Only the end of a very long path is kept. */
	shown = *inner == '/' ? client_shown(h->client, inner) : print_format(".../%s", inner);
	path = print_quoted(shown);
	by = print_quoted(command);
	table_row(
		&h->table,
		(const char *[]){
			print_time(json_integer_value(json_object_get(row, "destroyed_at_ns")), destroyed),
			text(row, "why"),
			print_time(json_integer_value(json_object_get(row, "deleted_at_ns")), deleted),
			print_user(&h->user, (uint32_t)json_integer_value(json_object_get(row, "uid"))),
			by,
			!strcmp(text(row, "type"), "directory") ?
				"dir" :
				print_size((uint64_t)json_integer_value(json_object_get(row, "size")), size),
			path,
		});
}

int cmd_trash_history(const struct arguments *a)
{
	struct history h = { .json = arguments_has(a, OPTION_JSON) };
	struct client_events events = { .what = "reading", .row = print_row, .data = &h };
	json_t *request = json_pack("{ss}", "verb", "history");
	const char *path = NULL;
	struct client c;
	int code = filters_put(a, request);

	if (code == EXIT_DONE)
		code = filters_path(a, &path);
	/* What it is about is no longer there, perhaps not even its directory. */
	if (code == EXIT_DONE)
		code = client_open(a, path, false, &c);
	if (code != EXIT_DONE) {
		json_decref(request);
		return code;
	}
	bytes_to_json(request, "path", c.inner);
	h.client = &c;
	if (!h.json && table_init(&h.table, columns, ARRAY_SIZE(columns)) < 0) {
		json_decref(request);
		code = cmd_fail(a, EXIT_FAILED, "out of memory");
	} else {
		code = client_call(&c, request, &events, NULL);
	}
	table_finish(&h.table);
	if (code == EXIT_DONE && !h.json && !h.rows)
		puts("nothing destroyed here is remembered");
	client_close(&c);
	return code;
}
