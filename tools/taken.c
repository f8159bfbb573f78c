#include "tools/taken.h"

int taken_option(const struct arguments *a, const char **ret_taken)
{
	static const enum option_id ids[] = { OPTION_SKIP, OPTION_RENAME, OPTION_REPLACE, OPTION_SWAP };
	const char *taken = "refuse";
	unsigned given = 0;

	for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!arguments_has(a, ids[i]))
			continue;
		taken = option_table[ids[i]].name;
		given++;
	}
	if (given > 1)
		return cmd_fail(a, EXIT_USAGE,
				"the options for a name that is taken exclude each other; give one");
	*ret_taken = taken;
	return EXIT_DONE;
}
