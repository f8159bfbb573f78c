/*
 * cmd-df.c - what uses the space of a store, or of a directory in it, and how
 * much of it comes free within a day.
 */
#include <string.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/table.h"

static const struct {
	const char *key;
	const char *label;
} lines[] = {
	{ "live", "live files" },
	{ "trash", "trash" },
	{ "removed", "  removed" },
	{ "replaced", "  replaced versions" },
	{ "purged", "  emptied, in their grace" },
	{ "reclaimable", "reclaimable now" },
	{ "held", "held" },
	{ "due_day", "due within a day" },
};

static void print_space(struct table *t, const json_t *space)
{
	static const char *const rows[][2] = { { "used", "store on disk" }, { "free", "free" } };
	char size[PRINT_SIZE_MAX];

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		print_size((uint64_t)json_integer_value(json_object_get(space, rows[i][0])), size);
		table_row(t, (const char *[]){ rows[i][1], "", size });
	}
}

static void print_lines(const json_t *result)
{
	static const struct table_column columns[] = { { "WHAT", false },
						       { "ITEMS", true },
						       { "SIZE", true } };
	const json_t *space = json_object_get(result, "space");
	char items[32], size[PRINT_SIZE_MAX];
	struct table t;

	if (table_init(&t, columns, ARRAY_SIZE(columns)) < 0)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		const json_t *line = json_object_get(result, lines[i].key);

		/* Most stores hold nothing. */
		if (!strcmp(lines[i].key, "held") && !json_integer_value(json_object_get(line, "items")))
			continue;
		snprintf(items, sizeof(items), "%lld",
			 (long long)json_integer_value(json_object_get(line, "items")));
		print_size((uint64_t)json_integer_value(json_object_get(line, "bytes")), size);
		table_row(&t, (const char *[]){ lines[i].label, items, size });
	}
	if (space)
		print_space(&t, space);
	table_finish(&t);
}

int cmd_df(const struct arguments *a)
{
	static const struct client_events events = { .what = "adding up" };
	json_t *request, *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	request = json_pack("{ss}", "verb", "df");
	if (a->count)
		bytes_to_json(request, "path", c.inner);
	code = client_call(&c, request, &events, &result);
	if (result && arguments_has(a, OPTION_JSON))
		print_json(result);
	else if (result)
		print_lines(result);
	json_decref(result);
	client_close(&c);
	return code;
}
