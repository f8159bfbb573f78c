#include "tools/filters.h"

#include <pwd.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/print.h"
#include "tools/units.h"

static int put_user(const struct arguments *a, json_t *request)
{
	const char *name = a->values[OPTION_BY];
	const struct passwd *user = getpwnam(name);
	int64_t uid;

	if (user)
		uid = user->pw_uid;
	else if (!units_parse_number(name, &uid) || uid > UINT32_MAX) {
		_cleanup_free_ char *quoted = print_quoted(name);

		return cmd_fail(a, EXIT_USAGE, "--by %s: no such user; give a name or a uid", quoted);
	}
	json_object_set_new(request, "uid", json_integer(uid));
	return EXIT_DONE;
}

int filters_put(const struct arguments *a, json_t *request)
{
	int64_t number;

	/* To the daemon, 0 is no limit at all. */
	if (arguments_has(a, OPTION_SINCE) && units_parse_duration(a->values[OPTION_SINCE], &number))
		json_object_set_new(request, "since_ns", json_integer(util_max(number, INT64_C(1))));
	if (arguments_has(a, OPTION_NAME))
		bytes_to_json(request, "name", a->values[OPTION_NAME]);
	if (arguments_has(a, OPTION_LIMIT) && !arguments_has(a, OPTION_SORT) &&
	    units_parse_number(a->values[OPTION_LIMIT], &number))
		json_object_set_new(request, "limit", json_integer(number));
	return arguments_has(a, OPTION_BY) ? put_user(a, request) : EXIT_DONE;
}

int filters_path(const struct arguments *a, const char **ret_path)
{
	const char *path = arguments_operand(a, 0);

	if (arguments_has(a, OPTION_UNDER) && path)
		return cmd_fail(a, EXIT_USAGE, "--under: says what PATH says; give one");
	*ret_path = path ? path : a->values[OPTION_UNDER];
	return EXIT_DONE;
}
