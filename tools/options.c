/*
 * options.c - the table of options and the parser that reads it.
 *
 * Long options are not abbreviated: `--re` must not mean --replace today and be
 * refused tomorrow. Options may stand before and after operands; "--" ends them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/print.h"
#include "tools/units.h"

#define FLAG OPTION_KIND_FLAG

const struct option option_table[OPTION_COUNT] = {
	[OPTION_ALL] = { "all", 'a', FLAG, NULL, "those of all users, not only one's own" },
	[OPTION_APPLY_EXISTING] = { "apply-existing", 0, FLAG, NULL,
				    "let what was deleted before follow the policy too" },
	[OPTION_BY] = { "by", 0, OPTION_KIND_TEXT, "USER", "only what this user (name or uid) deleted" },
	[OPTION_CREATE] = { "create", 0, FLAG, NULL, "make the store first if there is none" },
	[OPTION_DISCARD_JOURNAL] = { "discard-journal", 0, FLAG, NULL,
				     "give up what a damaged journal held; a copy of it is kept" },
	[OPTION_DRY_RUN] = { "dry-run", 'n', FLAG, NULL, "say what would be done and do nothing" },
	[OPTION_FORCE_UNMOUNT] = { "force-unmount", 0, FLAG, NULL,
				   "clean up a mount whose daemon is dead or hangs" },
	[OPTION_FOREGROUND] = { "foreground", 'f', FLAG, NULL,
				"stay in the foreground, log to standard error" },
	[OPTION_HELP] = { "help", 'h', FLAG, NULL, "print this help" },
	[OPTION_JSON] = { "json", 0, FLAG, NULL, "JSON instead of text, one object a line" },
	[OPTION_KDF] = { "kdf", 0, OPTION_KIND_CHOICE, "interactive|moderate|sensitive",
			 "how costly guessing the passphrase shall be" },
	[OPTION_KEY_FILE] = { "key-file", 0, OPTION_KIND_FILE, "FILE", "the bytes of FILE are the key" },
	[OPTION_LAZY] = { "lazy", 'l', FLAG, NULL, "detach now, end when the last file is closed" },
	[OPTION_LIMIT] = { "limit", 0, OPTION_KIND_NUMBER, "N", "at most N lines" },
	[OPTION_LIST] = { "list", 0, FLAG, NULL, "list what can be undone" },
	[OPTION_LOG] = { "log", 0, OPTION_KIND_FILE, "FILE", "log to FILE instead of the system's log" },
	[OPTION_MOUNT_OPTIONS] = { NULL, 'o', OPTION_KIND_LIST, "OPTIONS",
				   "mount options, separated by commas (see below)" },
	[OPTION_NAME] = { "name", 0, OPTION_KIND_TEXT, "PATTERN",
			  "only names that match, as the shell's patterns" },
	[OPTION_NAMES] = { "names", 0, OPTION_KIND_CHOICE, "ordered|sealed",
			   "how names are kept in keys: plain, or as keyed tokens" },
	[OPTION_NEW_KEY_FILE] = { "new-key-file", 0, OPTION_KIND_FILE, "FILE",
				  "the new key: the bytes of FILE" },
	[OPTION_NEW_PASSPHRASE] = { "new-passphrase", 0, FLAG, NULL, "ask for the new passphrase, twice" },
	[OPTION_NEW_PASSPHRASE_FD] = { "new-passphrase-fd", 0, OPTION_KIND_NUMBER, "N",
				       "read the new passphrase from file descriptor N" },
	[OPTION_NEW_PASSPHRASE_FILE] = { "new-passphrase-file", 0, OPTION_KIND_FILE, "FILE",
					 "read the new passphrase from FILE" },
	[OPTION_NOW] = { "now", 0, FLAG, NULL,
			 "destroy at once, without the grace in which undo could help" },
	[OPTION_OLDER_THAN] = { "older-than", 0, OPTION_KIND_DURATION, "AGE",
				"only what was deleted longer ago than this, as 90s, 15m, 12h, 30d, 4w" },
	[OPTION_ONLY] = { "only", 0, OPTION_KIND_TEXT, "PATTERN", "only entries whose name matches" },
	[OPTION_PASSPHRASE] = { "passphrase", 0, FLAG, NULL, "ask for the passphrase on the terminal" },
	[OPTION_PASSPHRASE_FD] = { "passphrase-fd", 0, OPTION_KIND_NUMBER, "N",
				   "read the passphrase from file descriptor N" },
	[OPTION_PASSPHRASE_FILE] = { "passphrase-file", 0, OPTION_KIND_FILE, "FILE",
				     "read the passphrase from the first line of FILE" },
	[OPTION_QUARANTINE] = { "quarantine", 0, FLAG, NULL,
				"mend what can be mended, set aside what is damaged" },
	[OPTION_RENAME] = { "rename", 0, FLAG, NULL,
			    "where a name is taken, restore as \"NAME (restored)\"" },
	[OPTION_REPLACE] = { "replace", 0, FLAG, NULL,
			     "where a name is taken, its bearer goes to the trash" },
	[OPTION_SINCE] = { "since", 0, OPTION_KIND_DURATION, "AGE",
			   "only what was deleted within this time, as 90s, 15m, 12h, 30d, 4w" },
	[OPTION_SKIP] = { "skip", 0, FLAG, NULL, "where a name is taken, leave that entry in the trash" },
	[OPTION_SORT] = { "sort", 0, OPTION_KIND_CHOICE, "time|size|path",
			  "sort by this, the latest or largest first" },
	[OPTION_SWAP] = { "swap", 0, FLAG, NULL,
			  "put back what a rename replaced; what replaced it goes to the trash" },
	[OPTION_TO] = { "to", 0, OPTION_KIND_DIRECTORY, "DIR", "restore into DIR instead of where it was" },
	[OPTION_TRASH_NAME] = { "trash-name", 0, OPTION_KIND_TEXT, "NAME",
				"name of the trash in every directory" },
	[OPTION_UNDER] = { "under", 0, OPTION_KIND_DIRECTORY, "DIR", "only what was in or below DIR" },
};

/*
 * One line, whatever the words hold. Names in them are quoted already; texts
 * that come from elsewhere may not be.
 */
static void __attribute__((format(printf, 2, 0)))
vsay(const struct arguments *a, const char *format, va_list list)
{
	_cleanup_free_ char *words = NULL;

	if (vasprintf(&words, format, list) < 0)
		return;
	for (char *c = words; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (a && a->command)
		fprintf(stderr, "ddbfs %s: %s\n", a->command->name, words);
	else
		fprintf(stderr, "ddbfs: %s\n", words);
}

int cmd_fail(const struct arguments *a, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsay(a, format, list);
	va_end(list);
	return code;
}

void cmd_warn(const struct arguments *a, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsay(a, format, list);
	va_end(list);
}

/* The id of the command's option with this name (of `size` bytes) or letter; OPTION_COUNT: it has none. */
static enum option_id find_option(const struct command *c, const char *name, size_t size, char letter)
{
	for (unsigned i = 0; i <= c->options_count; i++) {
		enum option_id id = i < c->options_count ? c->options[i] : OPTION_HELP;
		const struct option *o = &option_table[id];

		if (letter ? o->letter == letter :
			     o->name && strlen(o->name) == size && !memcmp(o->name, name, size))
			return id;
	}
	return OPTION_COUNT;
}

/* The option as the user should see it: "--name" or "-o". */
static const char *spelled(enum option_id id, char *buffer, size_t size)
{
	if (option_table[id].name)
		snprintf(buffer, size, "--%s", option_table[id].name);
	else
		snprintf(buffer, size, "-%c", option_table[id].letter);
	return buffer;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t size = strlen(value);

	for (const char *at = choices; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (size && !strncmp(at, value, size) && (at[size] == '|' || !at[size]))
			return true;
	}
	return false;
}

/* Whether the value suits the option; if not, *ret_why says what would. */
static bool value_is_valid(const struct option *o, const char *value, const char **ret_why)
{
	int64_t number;

	switch (o->kind) {
	case OPTION_KIND_CHOICE:
		*ret_why = o->value;
		return is_choice(o->value, value);
	case OPTION_KIND_NUMBER:
		*ret_why = "a whole number";
		return units_parse_number(value, &number);
	case OPTION_KIND_DURATION:
		*ret_why = "a time such as 90s, 15m, 12h, 30d or 4w";
		return units_parse_duration(value, &number);
	default:
		*ret_why = "something";
		return *value != '\0';
	}
}

static int set_value(struct arguments *a, enum option_id id, const char *value)
{
	char name[64];
	char *joined = NULL;
	const char *why;

	if (option_table[id].kind != FLAG && !value_is_valid(&option_table[id], value, &why)) {
		_cleanup_free_ char *quoted = print_quoted(value);

		return cmd_fail(a, EXIT_USAGE, "%s %s: not valid; give %s",
				spelled(id, name, sizeof(name)), quoted, why);
	}
	if (a->values[id] && option_table[id].kind == OPTION_KIND_LIST) {
		if (asprintf(&joined, "%s,%s", a->values[id], value) < 0)
			return cmd_fail(a, EXIT_FAILED, "out of memory");
		free(a->values[id]);
		a->values[id] = joined;
		return EXIT_DONE;
	}
	if (a->values[id] && option_table[id].kind != FLAG)
		return cmd_fail(a, EXIT_USAGE, "%s: given twice; give it once",
				spelled(id, name, sizeof(name)));
	free(a->values[id]);
	a->values[id] = strdup(value ? value : "");
	return a->values[id] ? EXIT_DONE : cmd_fail(a, EXIT_FAILED, "out of memory");
}

static int unknown_option(const struct arguments *a, const char *text)
{
	_cleanup_free_ char *quoted = print_quoted(text);

	return cmd_fail(a, EXIT_USAGE, "%s: no such option; see 'ddbfs help %s'", quoted,
			a->command->name);
}

static int missing_value(const struct arguments *a, enum option_id id)
{
	char name[64];

	return cmd_fail(a, EXIT_USAGE, "%s: needs a value: %s", spelled(id, name, sizeof(name)),
			option_table[id].value);
}

/* "--name", "--name=value", "--name value". *at moves over what was used. */
static int parse_long(struct arguments *a, int argc, char **argv, int *at)
{
	const char *name = argv[*at] + 2;
	const char *value = strchr(name, '=');
	enum option_id id =
		find_option(a->command, name, value ? (size_t)(value - name) : strlen(name), 0);

	if (id == OPTION_COUNT)
		return unknown_option(a, argv[*at]);
	if (option_table[id].kind == FLAG) {
		if (value)
			return cmd_fail(a, EXIT_USAGE, "--%s: takes no value", option_table[id].name);
		return set_value(a, id, NULL);
	}
	if (value)
		return set_value(a, id, value + 1);
	if (*at + 1 >= argc)
		return missing_value(a, id);
	return set_value(a, id, argv[++*at]);
}

/* "-abc", "-o value", "-ovalue". */
static int parse_letters(struct arguments *a, int argc, char **argv, int *at)
{
	int code = EXIT_DONE;

	for (const char *letter = argv[*at] + 1; *letter && code == EXIT_DONE; letter++) {
		enum option_id id = find_option(a->command, NULL, 0, *letter);

		if (id == OPTION_COUNT)
			return unknown_option(a, argv[*at]);
		if (option_table[id].kind == FLAG) {
			code = set_value(a, id, NULL);
			continue;
		}
		if (letter[1])
			return set_value(a, id, letter + 1);
		if (*at + 1 >= argc)
			return missing_value(a, id);
		return set_value(a, id, argv[++*at]);
	}
	return code;
}

static int check_count(const struct arguments *a)
{
	const struct command *c = a->command;

	if (a->count < c->min)
		return cmd_fail(a, EXIT_USAGE, "something is missing; usage: ddbfs %s [OPTIONS] %s",
				c->name, c->operands);
	if (a->count > c->max) {
		_cleanup_free_ char *quoted = print_quoted(a->operands[c->max]);

		return cmd_fail(a, EXIT_USAGE, "%s: one too many; usage: ddbfs %s [OPTIONS] %s",
				quoted, c->name, c->operands);
	}
	for (unsigned i = 0; i < a->count; i++)
		if (!a->operands[i][0])
			return cmd_fail(a, EXIT_USAGE,
					"an empty name was given; usage: ddbfs %s [OPTIONS] %s",
					c->name, c->operands);
	return EXIT_DONE;
}

int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *ret_arguments)
{
	struct arguments *a = ret_arguments;
	int code = EXIT_DONE;

	*a = (struct arguments){ .command = command, .operands = argv, .beat = -1 };
	for (int at = 0; at < argc && code == EXIT_DONE; at++) {
		if (!strcmp(argv[at], "--")) {
			while (++at < argc)
				argv[a->count++] = argv[at];
		} else if (!strncmp(argv[at], "--", 2)) {
			code = parse_long(a, argc, argv, &at);
		} else if (argv[at][0] == '-' && argv[at][1]) {
			code = parse_letters(a, argc, argv, &at);
		} else {
			argv[a->count++] = argv[at];
		}
	}
	if (code != EXIT_DONE || arguments_has(a, OPTION_HELP))
		return code;
	return check_count(a);
}

void arguments_release(struct arguments *a)
{
	for (unsigned i = 0; i < OPTION_COUNT; i++)
		free(a->values[i]);
	*a = (struct arguments){ 0 };
}
