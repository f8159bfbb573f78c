/*
 * helper.c - how mount(8) and umount(8) call for a file system:
 *
 *     mount.ddbfs STORE DIR [-sfnv] [-N namespace] [-o options] [-t type]
 *     umount.fuse.ddbfs DIR [-flnrv] [-N namespace] [-t type]
 *
 * Their letters are turned into the options of `ddbfs mount` and `ddbfs umount`.
 */
#include <stdlib.h>
#include <string.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/print.h"

#define HELPER_WORDS 16

struct helper {
	const struct command *command;
	char *words[HELPER_WORDS]; /* what `ddbfs VERB` would have got; borrowed from argv or constant */
	int count;
	bool fake;
};

static void helper_add(struct helper *h, const char *word)
{
	if (h->count < HELPER_WORDS)
		h->words[h->count++] = (char *)(uintptr_t)word;
}

static int fail_helper(const struct helper *h, const char *word)
{
	_cleanup_free_ char *quoted = print_quoted(word);

	return cmd_fail(&(struct arguments){ .command = h->command }, EXIT_USAGE,
			"%s: not understood", quoted);
}

/* Letters that need nothing done: no mtab, verbose, read-only remount (umount -r), sloppy (unknown -o are refused all the same). */
static bool is_ignored(char letter)
{
	return letter == 'n' || letter == 'v' || letter == 'r' || letter == 's';
}

/* One word "-xyz"; *at moves over the value of a letter that has one. */
static int take_letters(struct helper *h, int argc, char **argv, int *at, bool mounting)
{
	for (const char *letter = argv[*at] + 1; *letter; letter++) {
		bool has_value = *letter == 'N' || *letter == 't' || (mounting && *letter == 'o');
		const char *value = has_value && letter[1] ? letter + 1 : NULL;

		if (has_value && !value && ++*at < argc)
			value = argv[*at];
		if (has_value && !value)
			return fail_helper(h, letter);
		if (mounting && *letter == 'o') {
			helper_add(h, "-o");
			helper_add(h, value);
		} else if (*letter == 'f') {
			h->fake = mounting;
			if (!mounting)
				helper_add(h, "--force-unmount");
		} else if (!mounting && *letter == 'l') {
			helper_add(h, "--lazy");
		} else if (!has_value && !is_ignored(*letter)) {
			return fail_helper(h, argv[*at]);
		}
		if (has_value)
			break;
	}
	return EXIT_DONE;
}

static int helper_run(struct helper *h, int argc, char **argv, bool mounting)
{
	struct arguments a;
	int code = EXIT_DONE;

	for (int at = 0; at < argc && code == EXIT_DONE; at++) {
		if (argv[at][0] == '-' && argv[at][1])
			code = take_letters(h, argc, argv, &at, mounting);
		else
			helper_add(h, argv[at]);
	}
	if (code != EXIT_DONE)
		return code;
	if (h->count == HELPER_WORDS)
		return cmd_fail(NULL, EXIT_USAGE, "too many arguments");
	code = arguments_parse(h->command, h->count, h->words, &a);
	if (code == EXIT_DONE && !h->fake)
		code = h->command->run(&a);
	arguments_release(&a);
	return code;
}

static int helper_start(const char *verb, int argc, char **argv, bool mounting)
{
	char *words[] = { (char *)(uintptr_t)verb };
	int count;
	struct helper h = { .command = command_find(1, words, &count) };

	return helper_run(&h, argc, argv, mounting);
}

int helper_mount(int argc, char **argv)
{
	return helper_start("mount", argc, argv, true);
}

int helper_umount(int argc, char **argv)
{
	return helper_start("umount", argc, argv, false);
}
