#include "tools/taken.h"

int taken_option(const struct arguments *a, const char **ret_taken)
{
	static const enum option_id ids[] = { OPTION_SKIP, OPTION_RENAME, OPTION_REPLACE, OPTION_SWAP };
	const char *taken = NULL;

	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!arguments_has(a, ids[i]))
			continue;
		if (taken)
			return cmd_fail(a, EXIT_USAGE, "--%s, --%s: exclude each other; give one",
					taken, option_table[ids[i]].name);
		taken = option_table[ids[i]].name;
	}
	*ret_taken = taken ? taken : "refuse";
	return EXIT_DONE;
}
