/*
 * cmd-df.c - what uses the store's space: live files, the trash and why it is
 * there, and how much of it comes free within a day.
 */
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
	{ "due_day", "  due within a day" },
};

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

		snprintf(items, sizeof(items), "%lld",
			 (long long)json_integer_value(json_object_get(line, "items")));
		print_size((uint64_t)json_integer_value(json_object_get(line, "bytes")), size);
		table_row(&t, (const char *[]){ lines[i].label, items, size });
	}
	print_size((uint64_t)json_integer_value(json_object_get(space, "used")), size);
	table_row(&t, (const char *[]){ "store on disk", "", size });
	print_size((uint64_t)json_integer_value(json_object_get(space, "free")), size);
	table_row(&t, (const char *[]){ "free", "", size });
	table_finish(&t);
}

int cmd_df(const struct arguments *a)
{
	static const struct client_events events = { .what = "adding up" };
	json_t *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	code = client_call(&c, json_pack("{ss}", "verb", "df"), &events, &result);
	if (result && arguments_has(a, OPTION_JSON))
		print_json(result);
	else if (result)
		print_lines(result);
	json_decref(result);
	client_close(&c);
	return code;
}
