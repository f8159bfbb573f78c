/*
 * cmd-check.c - reads everything in a store that is not mounted, verifies every
 * seal and reference, recounts every counter, and names what is wrong.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fs/bytes.h"
#include "lifecycle/lifecycle.h"
#include "store/util.h"
#include "tools/credentials.h"
#include "tools/interrupt.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/words.h"

struct check {
	const struct arguments *arguments;
	struct progress progress;
	int interrupt;
	uint64_t done;
};

static void print_problem(void *data, const char *path, const char *text)
{
	_cleanup_free_ char *quoted = path ? print_quoted(path) : NULL;
	struct check *c = data;

	progress_clear(&c->progress);
	if (arguments_has(c->arguments, OPTION_JSON)) {
		json_t *row = json_object();

		if (path)
			bytes_to_json(row, "path", path);
		bytes_to_json(row, "problem", text);
		print_json(row);
		json_decref(row);
	} else {
		printf("%s%s%s\n", path ? quoted : "", path ? ": " : "", text);
	}
}

static bool show_progress(void *data, uint64_t done)
{
	struct check *c = data;

	c->done = done;
	progress_show(&c->progress, done, 0);
	return interrupt_seen(c->interrupt);
}

static void print_result(const struct arguments *a, const struct check_result *r)
{
	char size[PRINT_SIZE_MAX];

	if (arguments_has(a, OPTION_JSON)) {
		json_t *row = json_pack("{sI sI sI sI}", "items", (json_int_t)r->items, "bodies",
					(json_int_t)r->bodies, "bytes", (json_int_t)r->bytes,
					"problems", (json_int_t)r->problems);

		print_json(row);
		json_decref(row);
		return;
	}
	printf("%llu %s, %llu %s, %s: ", (unsigned long long)r->items,
	       print_plural(r->items, "item", "items"), (unsigned long long)r->bodies,
	       print_plural(r->bodies, "body", "bodies"), print_size(r->bytes, size));
	if (r->problems)
		printf("%llu %s\n", (unsigned long long)r->problems,
		       print_plural(r->problems, "problem", "problems"));
	else
		puts("clean");
}

static int check(const struct arguments *a, struct store *s)
{
	struct check c = { .arguments = a, .interrupt = interrupt_open() };
	struct check_result r = { 0 };
	int result;

	progress_begin(&c.progress, "checking");
	result = lifecycle_check(s, print_problem, show_progress, &c, &r);
	progress_clear(&c.progress);
	if (c.interrupt >= 0)
		close(c.interrupt);
	if (result == -EINTR)
		return cmd_fail(a, EXIT_INTERRUPTED, "stopped after %llu items; nothing was changed",
				(unsigned long long)c.done);
	if (result < 0)
		return cmd_fail(a, EXIT_FAILED, "cannot go on after %llu items: %s",
				(unsigned long long)c.done, strerror(-result));
	print_result(a, &r);
	return r.problems ? EXIT_DAMAGE : EXIT_DONE;
}

/* A locked store asks, once, if nothing was given. */
static int open_store(const struct arguments *a, struct credentials *credentials, struct store **ret_store)
{
	struct store_open_options options = { .read_only = true, .verify = true };
	struct store_open_report report = { 0 };
	char words[WORDS_MAX];
	int result, code;

	options.credentials = credentials->store;
	result = store_open(a->operands[0], &options, &report, ret_store);
	if (result == STORE_WRONG_KEY && !credentials->given) {
		code = credentials_ask(a, credentials);
		if (code != EXIT_DONE)
			return code;
		options.credentials = credentials->store;
		result = store_open(a->operands[0], &options, &report, ret_store);
	}
	return result ? cmd_fail(a, words_open(a->operands[0], result, &report, words), "%s", words) :
			EXIT_DONE;
}

int cmd_check(const struct arguments *a)
{
	struct credentials credentials = { 0 };
	struct store *s = NULL;
	int code = credentials_read(a, CREDENTIALS_PRESENT, false, &credentials);

	if (code == EXIT_DONE)
		code = open_store(a, &credentials, &s);
	credentials_release(&credentials);
	if (code != EXIT_DONE)
		return code;
	code = check(a, s);
	store_close(s);
	return code;
}
