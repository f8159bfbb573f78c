/*
 * cmd-policy.c - the friendly face of the policy attributes of directories.
 *
 * They are the extended attributes user.ddbfs.NAME (trusted.ddbfs.NAME for
 * root's minimum), set and removed by the ordinary system calls: the file
 * system checks rights and values, here only words are found for what it said.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include "fs/bytes.h"
#include "lifecycle/lifecycle.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/table.h"
#include "tools/watch.h"

#define VALUE_MAX 256

static const char *const names[] = { "retention", "versions",  "temporary",
				     "grace",	  "trash_max", "trash_max_entries",
				     "low_space", "protect",   "hold" };

static const struct table_column columns[] = {
	{ "POLICY", false },
	{ "IN FORCE", false },
	{ "SET", false },
	{ "SET ON", false },
};

/* The value that is set on `path` itself. Its length; 0: none. */
static size_t value_on(const char *path, const char *prefix, const char *name, char value[VALUE_MAX])
{
	_cleanup_free_ char *full = print_format("%s%s", prefix, name);
	ssize_t size = getxattr(path, full, value, VALUE_MAX - 1);

	if (size <= 0)
		return 0;
	value[size] = '\0';
	return (size_t)size;
}

/* The nearest directory from `path` up to the mount point that sets `name` with that prefix. NULL: none. */
static char *setter(const struct client *c, const char *prefix, const char *name, char value[VALUE_MAX])
{
	_cleanup_free_ char *inner = strdup(c->inner);

	while (inner) {
		_cleanup_free_ char *path = client_shown(c, inner);
		char *slash = strrchr(inner, '/');

		if (value_on(path, prefix, name, value))
			return util_steal(path);
		if (!inner[1])
			break;
		slash[slash == inner] = '\0';
	}
	return NULL;
}

static int64_t number_in_force(const json_t *result, const char *name)
{
	_cleanup_free_ char *key_ns = print_format("%s_ns", name);
	const json_t *time = json_object_get(result, key_ns), *value = json_object_get(result, name);

	return time		      ? json_integer_value(time) :
	       json_is_boolean(value) ? json_is_true(value) :
					json_integer_value(value);
}

/* Of a policy in which this alone was set, any value. */
static bool is_in_force(const json_t *result, const char *prefix, const char *name, const char *value)
{
	_cleanup_free_ char *full = print_format("%s%s", prefix, name);
	struct policy p = { 0 };

	if (lifecycle_policy_parse(full, value, strlen(value), &p, NULL) < 0)
		return false;
	return number_in_force(result, name) ==
	       (p.retention_ns | p.temporary_ns | p.grace_ns | (int64_t)p.trash_max |
		(int64_t)p.trash_max_entries | (int64_t)p.low_space | p.versions | p.protect | p.hold);
}

/* Who set what is in force: the owner of a directory, or root, whose minimum goes before a lesser value. */
static char *decider(const struct client *c, const json_t *result, const char *name, char value[VALUE_MAX])
{
	char least[VALUE_MAX] = "";
	_cleanup_free_ char *user = setter(c, POLICY_PREFIX_USER, name, value);
	_cleanup_free_ char *root = setter(c, POLICY_PREFIX_TRUSTED, name, least);

	if (!root || (user && is_in_force(result, POLICY_PREFIX_USER, name, value)) ||
	    !is_in_force(result, POLICY_PREFIX_TRUSTED, name, least))
		return util_steal(user);
	memcpy(value, least, VALUE_MAX);
	return util_steal(root);
}

static char *in_force(const json_t *result, const char *name)
{
	_cleanup_free_ char *key_ns = print_format("%s_ns", name);
	const json_t *time = json_object_get(result, key_ns), *value = json_object_get(result, name);
	char text[PRINT_TIME_MAX];
	int64_t number = json_integer_value(value);

	if (time)
		return print_format("%s", json_integer_value(time) ?
						  print_duration(json_integer_value(time), text) :
					  !strcmp(name, "retention") ? "destroyed at once" :
								       "off");
	if (json_is_boolean(value))
		return print_format("%s", json_is_true(value) ? "yes" : "no");
	if (!strcmp(name, "trash_max"))
		return print_format("%s", number ? print_size((uint64_t)number, text) : "no limit");
	if (!strcmp(name, "low_space"))
		return print_format("%s", number ? print_size((uint64_t)number, text) : "off");
	if (!strcmp(name, "trash_max_entries") && !number)
		return print_format("no limit");
	return print_format("%lld", (long long)number);
}

static void print_policies(const struct client *c, json_t *result)
{
	struct table t;

	if (table_init(&t, columns, ARRAY_SIZE(columns)) < 0)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		char value[VALUE_MAX] = "";
		_cleanup_free_ char *where = decider(c, result, names[i], value);
		_cleanup_free_ char *force = in_force(result, names[i]);
		_cleanup_free_ char *quoted = where ? print_quoted(where) : print_format("(default)");
		_cleanup_free_ char *set = where ? print_quoted(value) : print_format("-");

		table_row(&t, (const char *[]){ names[i], force, set, quoted });
	}
	table_finish(&t);
}

int cmd_policy_show(const struct arguments *a)
{
	json_t *request, *result = NULL;
	struct client c;
	int code = client_open(a, arguments_operand(a, 0), true, &c);

	if (code != EXIT_DONE)
		return code;
	request = json_pack("{ss}", "verb", "policy");
	bytes_to_json(request, "path", c.inner);
	code = client_call(&c, request, NULL, &result);
	if (result && arguments_has(a, OPTION_JSON)) {
		print_json_duration(result, "retention");
		print_json_duration(result, "temporary");
		print_json_duration(result, "grace");
		print_json(result);
	} else if (result) {
		print_policies(&c, result);
	}
	json_decref(result);
	client_close(&c);
	return code;
}

/* ---- set, unset ------------------------------------------------------------------ */

static bool is_policy(const char *full)
{
	const char *name = strrchr(full, '.');

	for (unsigned i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcmp(name + 1, names[i]))
			return lifecycle_policy_name(full);
	return false;
}

/* "user.ddbfs.NAME"; a name with its prefix is taken as it is. NULL, said: no such policy. */
static char *attribute(const struct arguments *a, const char *name)
{
	char *full = strchr(name, '.') ? strdup(name) : print_format("%s%s", POLICY_PREFIX_USER, name);
	_cleanup_free_ char *quoted = NULL;

	if (full && is_policy(full))
		return full;
	free(full);
	quoted = print_quoted(name);
	cmd_fail(a, EXIT_USAGE, "%s: no such policy; there are " POLICY_NAMES, quoted);
	return NULL;
}

static int fail_attribute(const struct arguments *a, const char *path, const char *name, int error)
{
	_cleanup_free_ char *quoted = print_quoted(path);

	switch (error) {
	case ENOTCONN:
	case ECONNABORTED:
		return cmd_fail(a, EXIT_FAILED,
				"%s: in a mount whose daemon is dead; unmount it with 'ddbfs umount' and mount it again",
				quoted);
	case EPERM:
	case EACCES:
		return cmd_fail(
			a, EXIT_FAILED,
			"%s: only the directory's owner or root may change its policy%s", quoted,
			strncmp(name, "trusted.", 8) ? "" : ", and only root what begins with trusted.");
	case EROFS:
		return cmd_fail(a, EXIT_FAILED, "%s: the mount is read-only; mount it without ro", quoted);
	case ENODATA:
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: %s is not set there; 'ddbfs policy show' says where it is",
				quoted, name);
	case ENOTSUP:
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not inside a mounted ddbfs; give a directory in one", quoted);
	case ENOTDIR:
	case EINVAL:
		return cmd_fail(a, EXIT_USAGE,
				"%s: policy is set on directories that are not in the trash", quoted);
	case ENOENT:
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not there; give a directory in a mounted ddbfs", quoted);
	default:
		return cmd_fail(a, EXIT_FAILED, "%s: %s", quoted, strerror(error));
	}
}

/* "NAME=VALUE" is checked here too, for the sake of the hint, which a system call cannot give. */
static int set_one(const struct arguments *a, const char *path, const char *text, bool apply)
{
	const char *equal = strchr(text, '='), *hint = NULL;
	_cleanup_free_ char *name = equal ? strndup(text, (size_t)(equal - text)) : NULL;
	_cleanup_free_ char *full = NULL, *quoted = print_quoted(text);
	struct policy ignored = { 0 };

	if (!name)
		return cmd_fail(a, EXIT_USAGE, "%s: not of the form NAME=VALUE, as retention=7d", quoted);
	full = attribute(a, name);
	if (!full)
		return EXIT_USAGE;
	if (lifecycle_policy_parse(full, equal + 1, strlen(equal + 1), &ignored, &hint) < 0)
		return cmd_fail(a, EXIT_USAGE, "%s: not a value for this; %s", quoted,
				hint ? hint : "see ddbfs(1)");
	if (apply && setxattr(path, full, equal + 1, strlen(equal + 1), 0) < 0)
		return fail_attribute(a, path, full, errno);
	return EXIT_DONE;
}

static int unset_one(const struct arguments *a, const char *path, const char *name, bool apply)
{
	_cleanup_free_ char *full = attribute(a, name);

	if (!full)
		return EXIT_USAGE;
	return apply && removexattr(path, full) < 0 ? fail_attribute(a, path, full, errno) : EXIT_DONE;
}

/* What is the whole store's has its place on the mount point. */
static int check_place(const struct arguments *a, const char *inner, const char *text)
{
	_cleanup_free_ char *name = strndup(text, strcspn(text, "="));
	_cleanup_free_ char *full = name ? attribute(a, name) : NULL;

	if (!full || !strcmp(inner, "/") || !strchr(text, '=') || !lifecycle_policy_is_stores(full))
		return EXIT_DONE;
	return cmd_fail(a, EXIT_USAGE, "%s: is the whole store's; set it on the mount point", name);
}

/* Looks at all that is asked for before it changes anything. */
static int each(const struct arguments *a, int (*change)(const struct arguments *a, const char *path,
							 const char *text, bool apply))
{
	_cleanup_free_ char *resolved = NULL, *inner = NULL, *quoted = print_quoted(a->operands[0]);
	struct mount m = { 0 };
	int result = mounts_resolve(a->operands[0], true, &resolved), code = EXIT_DONE;
	unsigned i;

	if (result < 0)
		return fail_attribute(a, a->operands[0], "", -result);
	if (mounts_locate(resolved, &m, &inner) != 1)
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not inside a mounted ddbfs; give a directory in one", quoted);
	mount_release(&m);
	for (i = 1; i < a->count && code == EXIT_DONE; i++) {
		code = change(a, resolved, a->operands[i], false);
		if (code == EXIT_DONE)
			code = check_place(a, inner, a->operands[i]);
	}
	if (code != EXIT_DONE || arguments_has(a, OPTION_DRY_RUN))
		return code;
	for (i = 1; i < a->count && code == EXIT_DONE; i++) {
		code = change(a, resolved, a->operands[i], true);
		watch_beat(a);
	}
	return code != EXIT_DONE && i > 2 ? EXIT_PARTLY : code;
}

/* ---- --apply-existing -------------------------------------------------------------- */

static void print_applied(const struct arguments *a, json_t *result)
{
	long long changed = json_integer_value(json_object_get(result, "changed"));
	long long refused = json_integer_value(json_object_get(result, "refused"));
	char size[PRINT_SIZE_MAX];

	if (arguments_has(a, OPTION_JSON)) {
		print_json(result);
		return;
	}
	print_size((uint64_t)json_integer_value(json_object_get(result, "gone_bytes")), size);
	printf("%s %lld of %lld %s: %lld go now (%s), %lld sooner, %lld later\n",
	       arguments_has(a, OPTION_DRY_RUN) ? "would change" : "changed", changed,
	       (long long)json_integer_value(json_object_get(result, "entries")),
	       print_plural((uint64_t)changed, "entry", "entries"),
	       (long long)json_integer_value(json_object_get(result, "gone")), size,
	       (long long)json_integer_value(json_object_get(result, "sooner")),
	       (long long)json_integer_value(json_object_get(result, "later")));
	if (refused)
		cmd_warn(a, "%lld %s left: they are others', or held", refused,
			 print_plural((uint64_t)refused, "entry was", "entries were"));
}

/* The values that a dry run is to take as set. Only these two say anything of what is deleted already. */
static int put_values(const struct arguments *a, json_t *request)
{
	struct policy p = { .retention_ns = -1, .versions = UINT32_MAX };

	for (unsigned i = 1; i < a->count; i++) {
		const char *equal = strchr(a->operands[i], '=');
		_cleanup_free_ char *name = strndup(a->operands[i], (size_t)(equal - a->operands[i]));
		_cleanup_free_ char *full = name ? attribute(a, name) : NULL;

		if (!full)
			return EXIT_USAGE;
		if (!strncmp(full, POLICY_PREFIX_TRUSTED, strlen(POLICY_PREFIX_TRUSTED)))
			return cmd_fail(a, EXIT_USAGE,
					"%s: root's minimum cannot be tried with --dry-run; set it, then try without a value",
					full);
		lifecycle_policy_parse(full, equal + 1, strlen(equal + 1), &p, NULL);
	}
	if (p.retention_ns >= 0)
		json_object_set_new(request, "retention_ns", json_integer(p.retention_ns));
	if (p.versions != UINT32_MAX)
		json_object_set_new(request, "versions", json_integer(p.versions));
	return EXIT_DONE;
}

static int apply(const struct arguments *a)
{
	static const struct client_events events = { .what = "applying" };
	bool dry_run = arguments_has(a, OPTION_DRY_RUN);
	json_t *request, *result = NULL;
	struct client c;
	int code = client_open(a, a->operands[0], true, &c);

	if (code != EXIT_DONE)
		return code;
	request = json_pack("{ss sb}", "verb", "apply", "dry_run", dry_run);
	bytes_to_json(request, "path", c.inner);
	code = dry_run ? put_values(a, request) : EXIT_DONE;
	if (code == EXIT_DONE)
		code = client_call(&c, request, &events, &result);
	else
		json_decref(request);
	if (result)
		print_applied(a, result);
	json_decref(result);
	client_close(&c);
	return code;
}

int cmd_policy_set(const struct arguments *a)
{
	bool existing = arguments_has(a, OPTION_APPLY_EXISTING);
	int code;

	if (a->count < 2 && !existing)
		return cmd_fail(a, EXIT_USAGE, "nothing to set; give NAME=VALUE, as retention=7d");
	if (arguments_has(a, OPTION_DRY_RUN) && !existing)
		return cmd_fail(a, EXIT_USAGE, "--dry-run: goes with --apply-existing only");
	code = each(a, set_one);
	return code == EXIT_DONE && existing ? apply(a) : code;
}

int cmd_policy_unset(const struct arguments *a)
{
	return each(a, unset_one);
}
