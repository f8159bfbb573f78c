/*
 * cmd-scrub.c - has a mounted store read as a whole, now, to find damage.
 */
#include "tools/client.h"
#include "tools/print.h"

int cmd_scrub(const struct arguments *a)
{
	json_t *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	code = client_call(&c, json_pack("{ss}", "verb", "scrub"), NULL, &result);
	if (result && arguments_has(a, OPTION_JSON))
		print_json(result);
	else if (result)
		puts("reading everything in the background; 'ddbfs status' says how far it is and what it found");
	json_decref(result);
	client_close(&c);
	return code;
}
