/*
 * cmd-trash-restore.c - brings deleted items back: to where they were, or --to.
 *
 * A path may be the item's path in a .trash, or the one it had; then the newest
 * of that name is meant. Each is restored by itself, so that one that cannot
 * be does not keep the others away.
 */
#include <errno.h>
#include <string.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/client.h"
#include "tools/print.h"
#include "tools/taken.h"

/* Of a directory of which a part was back already: what stays in the trash. */
static void say_left(void *data, json_t *row)
{
	const struct client *c = data;
	_cleanup_free_ char *inner = NULL, *shown = NULL, *quoted = NULL;

	if (arguments_has(c->arguments, OPTION_JSON)) {
		print_json(row);
		return;
	}
	if (bytes_from_json(row, "path", &inner))
		return;
	shown = client_shown(c, inner);
	quoted = print_quoted(shown);
	printf("left     %s (%s)\n", quoted, json_string_value(json_object_get(row, "error")));
}

static void say_restored(const struct client *c, json_t *result)
{
	_cleanup_free_ char *inner = NULL, *shown = NULL, *quoted = NULL;
	long long items = json_integer_value(json_object_get(result, "items"));

	if (arguments_has(c->arguments, OPTION_JSON)) {
		print_json(result);
		return;
	}
	if (bytes_from_json(result, "restored_path", &inner))
		return;
	shown = client_shown(c, inner);
	quoted = print_quoted(shown);
	if (json_is_true(json_object_get(result, "skipped")))
		printf("skipped  %s (the name is taken)\n", quoted);
	else if (json_is_true(json_object_get(result, "swapped")))
		printf("restored %s (what replaced it is in the trash)\n", quoted);
	else if (items > 1 || !items)
		printf("restored %s (%lld items)\n", quoted, items);
	else
		printf("restored %s\n", quoted);
}

static int restore_one(const struct arguments *a, const char *path, const char *taken)
{
	_cleanup_free_ char *to = NULL;
	struct client c;
	struct client_events events = { .what = "restoring", .row = say_left, .data = &c };
	json_t *request, *result = NULL;
	int code = client_open(a, path, false, &c);

	if (code != EXIT_DONE)
		return code;
	if (arguments_has(a, OPTION_TO))
		code = client_path(&c, a->values[OPTION_TO], true, &to);
	if (code == EXIT_DONE) {
		request = json_pack("{ss ss}", "verb", "restore", "taken", taken);
		bytes_to_json(request, "path", c.inner);
		if (to)
			bytes_to_json(request, "to", to);
		code = client_call(&c, request, &events, &result);
	}
	if (result)
		say_restored(&c, result);
	json_decref(result);
	client_close(&c);
	return code;
}

int cmd_trash_restore(const struct arguments *a)
{
	const char *taken;
	unsigned done = 0;
	int code = taken_option(a, &taken), worst = EXIT_DONE;

	if (code == EXIT_DONE && arguments_has(a, OPTION_SWAP) && arguments_has(a, OPTION_TO))
		code = cmd_fail(a, EXIT_USAGE, "--swap: goes to where it was, not --to DIR; give one");
	if (code != EXIT_DONE)
		return code;
	for (unsigned i = 0; i < a->count; i++) {
		code = restore_one(a, a->operands[i], taken);
		done += code == EXIT_DONE;
		if (code == EXIT_INTERRUPTED)
			return code;
		worst = code == EXIT_DONE ? worst : code;
	}
	return worst != EXIT_DONE && done ? EXIT_PARTLY : worst;
}
