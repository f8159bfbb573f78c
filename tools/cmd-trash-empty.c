/*
 * cmd-trash-empty.c - destroys what is in the trash in and below a directory.
 *
 * Hidden at once and destroyed after its grace, so that `undo` can still help;
 * --now waits for nothing. What is deleted while it runs survives.
 */
#include "fs/bytes.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/units.h"

static void say_result(const struct arguments *a, json_t *result)
{
	uint64_t entries = (uint64_t)json_integer_value(json_object_get(result, "entries"));
	uint64_t refused = (uint64_t)json_integer_value(json_object_get(result, "refused"));
	char size[PRINT_SIZE_MAX];

	if (arguments_has(a, OPTION_JSON)) {
		print_json(result);
		return;
	}
	print_size((uint64_t)json_integer_value(json_object_get(result, "bytes")), size);
	printf("%s %llu %s, %s\n",
	       arguments_has(a, OPTION_DRY_RUN) ? "would empty" :
	       arguments_has(a, OPTION_NOW)	? "destroyed" :
						  "emptied",
	       (unsigned long long)entries, print_plural(entries, "entry", "entries"), size);
	if (refused)
		cmd_warn(a, "%llu %s left: they are others', or held", (unsigned long long)refused,
			 print_plural(refused, "entry was", "entries were"));
}

int cmd_trash_empty(const struct arguments *a)
{
	static const struct client_events events = { .what = "emptying" };
	json_t *request, *result = NULL;
	struct client c;
	int64_t age = 0;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	request = json_pack("{ss sb sb}", "verb", "empty", "now", arguments_has(a, OPTION_NOW),
			    "dry_run", arguments_has(a, OPTION_DRY_RUN));
	bytes_to_json(request, "path", c.inner);
	if (arguments_has(a, OPTION_OLDER_THAN) &&
	    units_parse_duration(a->values[OPTION_OLDER_THAN], &age))
		json_object_set_new(request, "older_than_ns", json_integer(age));
	code = client_call(&c, request, &events, &result);
	if (result)
		say_result(a, result);
	json_decref(result);
	client_close(&c);
	return code;
}
