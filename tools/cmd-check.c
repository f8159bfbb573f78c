/*
 * cmd-check.c - reads everything in a store that is not mounted, verifies every
 * seal and reference, recounts every counter, and names what is wrong; with
 * --quarantine it does about it what can be done.
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

/* `key` is what the text is called in JSON. */
static void print_told(struct check *c, const char *path, const char *key, const char *text)
{
	_cleanup_free_ char *quoted = path ? print_quoted(path) : NULL;

	progress_clear(&c->progress);
	if (arguments_has(c->arguments, OPTION_JSON)) {
		json_t *row = json_object();

		if (path)
			bytes_to_json(row, "path", path);
		bytes_to_json(row, key, text);
		print_json(row);
		json_decref(row);
	} else {
		printf("%s%s%s%s\n", path ? quoted : "", path ? ": " : "",
		       strcmp(key, "set_aside") ? "" : "set aside: ", text);
	}
}

static void print_problem(void *data, const char *path, const char *text)
{
	print_told(data, path, "problem", text);
}

static void print_aside(void *data, const char *path, const char *text)
{
	print_told(data, path, "set_aside", text);
}

static void print_action(void *data, const char *path, const char *text)
{
	print_told(data, path, "done", text);
}

static bool show_progress(void *data, uint64_t done)
{
	struct check *c = data;

	c->done = done;
	progress_show(&c->progress, done, 0);
	return interrupt_seen(c->interrupt);
}

static void print_json_result(const struct check_result *r, const struct check_result *left)
{
	json_t *row = json_pack("{sI sI sI sI sI sI sI}", "items", (json_int_t)r->items, "bodies",
				(json_int_t)r->bodies, "bytes", (json_int_t)r->bytes, "problems",
				(json_int_t)r->problems, "unreadable",
				(json_int_t)(left ? left->unreadable : r->unreadable), "set_aside",
				(json_int_t)(left ? left->set_aside : r->set_aside), "unused_bytes",
				(json_int_t)r->unused_bytes);

	if (left)
		json_object_set_new(row, "problems_left", json_integer((json_int_t)left->problems));
	print_json(row);
	json_decref(row);
}

static void print_count(uint64_t n, const char *what)
{
	printf("%llu %s%s", (unsigned long long)n, print_plural(n, "problem", "problems"), what);
}

/* `left`: what is left after all was done that can be; NULL: nothing was to be done. */
static void print_result(const struct arguments *a, const struct check_result *r,
			 const struct check_result *left)
{
	uint64_t aside = left ? left->set_aside : r->set_aside;
	char size[PRINT_SIZE_MAX];

	if (arguments_has(a, OPTION_JSON)) {
		print_json_result(r, left);
		return;
	}
	printf("%llu %s, %llu %s, %s: ", (unsigned long long)r->items,
	       print_plural(r->items, "item", "items"), (unsigned long long)r->bodies,
	       print_plural(r->bodies, "body", "bodies"), print_size(r->bytes, size));
	if (!r->problems)
		printf("clean");
	else
		print_count(r->problems, "");
	if (left && left->problems)
		printf(", %llu left", (unsigned long long)left->problems);
	else if (left && r->problems)
		printf(", none left");
	if (aside)
		printf("; %llu damaged in /%s", (unsigned long long)aside, QUARANTINE_NAME);
	putchar('\n');
	if (r->unused_bytes)
		printf("%s on the disk %s\n", print_size(r->unused_bytes, size),
		       left ? "belonged to nothing and went back to it" :
			      "belong to nothing; 'ddbfs check --quarantine' gives them back");
	if (left ? left->unreadable : r->unreadable)
		puts("where the disk gave an error nothing was changed: it may pass; check again, or copy the store to another disk first");
	if (r->problems && !left)
		puts("nothing was changed; 'ddbfs check --quarantine' mends what can be mended and sets the rest aside");
}

static int run(const struct check *c, struct store *s, const struct quarantine_hooks *hooks)
{
	struct check_result found = { 0 }, left = { 0 };
	bool quarantine = arguments_has(c->arguments, OPTION_QUARANTINE);
	int result = quarantine ? lifecycle_quarantine(s, hooks, &found, &left) :
				  lifecycle_check_told(s, hooks, &found);

	if (result < 0)
		return result;
	progress_clear(&((struct check *)hooks->data)->progress);
	print_result(c->arguments, &found, quarantine ? &left : NULL);
	if (quarantine)
		return left.problems ? EXIT_PARTLY : EXIT_DONE;
	return found.problems ? EXIT_DAMAGE : EXIT_DONE;
}

static int check(const struct arguments *a, struct store *s)
{
	struct check c = { .arguments = a, .interrupt = interrupt_open() };
	struct quarantine_hooks hooks = {
		.problem = print_problem,
		.aside = print_aside,
		.action = print_action,
		.progress = show_progress,
		.data = &c,
	};
	const char *changed = arguments_has(a, OPTION_QUARANTINE) ?
				      "what was done is done; run it again" :
				      "nothing was changed";
	int result;

	progress_begin(&c.progress, "checking");
	result = run(&c, s, &hooks);
	progress_clear(&c.progress);
	if (c.interrupt >= 0)
		close(c.interrupt);
	if (result == -EINTR)
		return cmd_fail(a, EXIT_INTERRUPTED, "stopped after %llu items; %s",
				(unsigned long long)c.done, changed);
	if (result < 0)
		return cmd_fail(a, EXIT_FAILED, "cannot go on after %llu items: %s; %s",
				(unsigned long long)c.done, strerror(-result), changed);
	return result;
}

static void print_discarded(const struct arguments *a, const struct store_open_report *report)
{
	const char *text = report->discarded ? report->text :
					       "the journal is whole: nothing was discarded";
	json_t *row;

	if (!arguments_has(a, OPTION_JSON)) {
		puts(text);
		return;
	}
	row = json_pack("{sb ss}", "discarded", report->discarded, "text", text);
	print_json(row);
	json_decref(row);
}

static void print_mended(const struct arguments *a, const struct store_open_report *report)
{
	json_t *row;

	if (!arguments_has(a, OPTION_JSON)) {
		puts(report->text);
		return;
	}
	row = json_pack("{ss ss}", "path", "(store)", "done", report->text);
	print_json(row);
	json_decref(row);
}

/* A locked store asks, once, if nothing was given. */
static int open_store(const struct arguments *a, struct credentials *credentials, struct store **ret_store)
{
	struct store_open_options options = {
		.read_only = !arguments_has(a, OPTION_QUARANTINE) &&
			     !arguments_has(a, OPTION_DISCARD_JOURNAL),
		.discard_journal = arguments_has(a, OPTION_DISCARD_JOURNAL),
		.mend = arguments_has(a, OPTION_QUARANTINE),
		.verify = true,
	};
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
	if (result)
		return cmd_fail(a, words_open(a->operands[0], result, &report, words), "%s", words);
	if (options.discard_journal)
		print_discarded(a, &report);
	if (report.mended)
		print_mended(a, &report);
	return EXIT_DONE;
}

int cmd_check(const struct arguments *a)
{
	struct credentials credentials = { 0 };
	struct store *s = NULL;
	int code = credentials_read(a, CREDENTIALS_PRESENT, false, &credentials), result;

	if (code == EXIT_DONE)
		code = open_store(a, &credentials, &s);
	credentials_release(&credentials);
	if (code != EXIT_DONE)
		return code;
	code = check(a, s);
	result = store_close(s);
	if (result < 0 && code != EXIT_FAILED)
		return cmd_fail(a, EXIT_FAILED, "what was done did not all reach the disk: %s",
				strerror(-result));
	return code;
}
