/*
 * cmd-clock.c - confirms a jump of the clock, so that what expired by it may be
 * destroyed.
 */
#include "tools/client.h"

int cmd_clock_accept(const struct arguments *a)
{
	json_t *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	code = client_call(&c, json_pack("{ss}", "verb", "clock-accept"), NULL, &result);
	if (result)
		puts(json_is_true(json_object_get(result, "was_suspect")) ?
			     "the clock is accepted" :
			     "the clock was not in doubt");
	json_decref(result);
	client_close(&c);
	return code;
}
