/*
 * cmd-sweep.c - destroys what is due now and gives its space back now, without
 * waiting for the daemon to come to it.
 */
#include "store/item.h"
#include "tools/client.h"
#include "tools/print.h"

static void say_result(const struct arguments *a, json_t *result)
{
	uint64_t destroyed = (uint64_t)json_integer_value(json_object_get(result, "destroyed"));
	int64_t next = json_integer_value(json_object_get(result, "next_due_ns"));
	char size[PRINT_SIZE_MAX], when[PRINT_TIME_MAX];

	if (arguments_has(a, OPTION_JSON)) {
		print_json_time(result, "next_due");
		print_json(result);
		return;
	}
	printf("destroyed %llu %s, %s\n", (unsigned long long)destroyed,
	       print_plural(destroyed, "item", "items"),
	       print_size((uint64_t)json_integer_value(json_object_get(result, "bytes")), size));
	if (json_is_true(json_object_get(result, "paused")))
		puts("the clock jumped: the rest waits for 'ddbfs clock accept' or a steady day");
	else if (next != ITEM_FOREVER)
		printf("next expiry: %s\n", print_time(next, when));
}

int cmd_sweep(const struct arguments *a)
{
	static const struct client_events events = { .what = "destroying" };
	json_t *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	code = client_call(&c, json_pack("{ss}", "verb", "sweep"), &events, &result);
	if (result)
		say_result(a, result);
	json_decref(result);
	client_close(&c);
	return code;
}
