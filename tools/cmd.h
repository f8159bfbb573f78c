/*
 * cmd.h - what the commands of the program share: exit codes, the table of
 * options and the table of verbs.
 *
 * Each option and each verb is described once, in options.c and commands.c.
 * The parser, the dispatcher, `--help`, `help VERB`, the shell completions and
 * the manual page all read those tables, so none can drift from the others.
 */
#ifndef TOOLS_CMD_H
#define TOOLS_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/control.h"

/* What the program exits with. Those that a running mount can answer too are control.h's. */
enum exit_code {
	EXIT_DONE = CONTROL_DONE,
	EXIT_FAILED = CONTROL_FAILED, /* for a reason the message gives */
	EXIT_USAGE = CONTROL_USAGE, /* wrong option, value or request: nothing was changed */
	EXIT_PARTLY = CONTROL_PARTLY, /* some of it could not be done, and is named */
	EXIT_NOT_FOUND = CONTROL_NOT_FOUND, /* nothing there: no such path, entry, batch or mount */
	EXIT_CONFLICT = CONTROL_CONFLICT, /* a name is taken: nothing was moved */
	EXIT_NOT_EMPTY = CONTROL_NOT_EMPTY, /* where a store shall be made there is something */
	EXIT_NO_STORE = 10, /* no store there, or one of a newer format */
	EXIT_IN_USE = 11, /* another process has the store open */
	EXIT_WRONG_KEY = 12, /* wrong or missing passphrase or key file */
	EXIT_MOUNT_POINT = 13, /* the mount point cannot be used */
	EXIT_DAMAGE = 26, /* `check` found something, or the store is too damaged to open */
	EXIT_INTERRUPTED = CONTROL_INTERRUPTED, /* by a signal; the message says how far it came */
};

/* What the exit codes mean, for help and manual. Ends with words == NULL. */
struct exit_meaning {
	int code;
	const char *words;
};
extern const struct exit_meaning exit_meanings[];

enum option_id {
	OPTION_ALL,
	OPTION_APPLY_EXISTING,
	OPTION_BY,
	OPTION_CREATE,
	OPTION_DISCARD_JOURNAL,
	OPTION_DRY_RUN,
	OPTION_FORCE_UNMOUNT,
	OPTION_FOREGROUND,
	OPTION_HELP,
	OPTION_JSON,
	OPTION_KDF,
	OPTION_KEY_FILE,
	OPTION_LAZY,
	OPTION_LIMIT,
	OPTION_LIST,
	OPTION_LOG,
	OPTION_MOUNT_OPTIONS,
	OPTION_NAME,
	OPTION_NAMES,
	OPTION_NEW_KEY_FILE,
	OPTION_NEW_PASSPHRASE,
	OPTION_NEW_PASSPHRASE_FD,
	OPTION_NEW_PASSPHRASE_FILE,
	OPTION_NOW,
	OPTION_OLDER_THAN,
	OPTION_ONLY,
	OPTION_PASSPHRASE,
	OPTION_PASSPHRASE_FD,
	OPTION_PASSPHRASE_FILE,
	OPTION_QUARANTINE,
	OPTION_RENAME,
	OPTION_REPLACE,
	OPTION_SINCE,
	OPTION_SKIP,
	OPTION_SORT,
	OPTION_SWAP,
	OPTION_TO,
	OPTION_TRASH_NAME,
	OPTION_UNDER,
	OPTION_COUNT
};

/* How an option's value is checked before the command runs. */
enum option_kind {
	OPTION_KIND_FLAG,
	OPTION_KIND_TEXT, /* not empty */
	OPTION_KIND_FILE, /* a path, not empty */
	OPTION_KIND_DIRECTORY,
	OPTION_KIND_NUMBER, /* 0 to 2^63 - 1 */
	OPTION_KIND_DURATION, /* units_parse_duration */
	OPTION_KIND_CHOICE, /* one of the words in `value`, separated by '|' */
	OPTION_KIND_LIST, /* may be given several times: joined with commas */
};

struct option {
	const char *name; /* without the dashes */
	char letter; /* 0: none */
	enum option_kind kind;
	const char *value; /* what stands for the value in help; NULL for flags */
	const char *help;
};
extern const struct option option_table[OPTION_COUNT];

struct arguments;

#define COMMAND_UNBOUNDED 0xffffffffu

struct command {
	const char *name; /* "trash list": the words of the verb */
	const char *operands; /* "STORE DIR" */
	unsigned min, max; /* how many operands */
	const char *summary; /* one line, no full stop */
	const char *text; /* paragraphs for the manual and `help VERB` */
	int (*run)(const struct arguments *a);
	bool hidden;
	bool asks; /* a mount, which may hang: it runs watched (watch.h) */
	const enum option_id *options; /* besides --help, which all take */
	unsigned options_count;
};
extern const struct command command_table[];
extern const size_t command_table_count;

/* What was asked for. Values are checked against their option's kind. */
struct arguments {
	const struct command *command;
	char *values[OPTION_COUNT]; /* NULL: not given; "" for a flag */
	char **operands; /* borrowed from argv */
	unsigned count;
	int beat; /* watch.h's; -1: unwatched */
};

static inline bool arguments_has(const struct arguments *a, enum option_id id)
{
	return a->values[id] != NULL;
}

/* Operand `i`, or NULL. */
static inline const char *arguments_operand(const struct arguments *a, unsigned i)
{
	return i < a->count ? a->operands[i] : NULL;
}

/*
 * Parses what follows the verb. EXIT_DONE; EXIT_USAGE, said on standard error.
 * Reorders `argv` so that the operands stand together. Release in any case.
 */
int arguments_parse(const struct command *command, int argc, char **argv, struct arguments *ret_arguments);
void arguments_release(struct arguments *a);

/* The longest verb that `argv` begins with, and how many words it has. NULL: none. */
const struct command *command_find(int argc, char **argv, int *ret_words);

/*
 * Prints "ddbfs VERB: ..." and a newline on standard error and returns `code`,
 * so that a command can end with it. The text says what, why, and what to do.
 */
int cmd_fail(const struct arguments *a, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for something that does not end the command. */
void cmd_warn(const struct arguments *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

int cmd_check(const struct arguments *a);
int cmd_clock_accept(const struct arguments *a);
int cmd_df(const struct arguments *a);
int cmd_generate(const struct arguments *a);
int cmd_help(const struct arguments *a);
int cmd_init(const struct arguments *a);
int cmd_key_add(const struct arguments *a);
int cmd_key_replace(const struct arguments *a);
int cmd_mount(const struct arguments *a);
int cmd_policy_set(const struct arguments *a);
int cmd_policy_show(const struct arguments *a);
int cmd_policy_unset(const struct arguments *a);
int cmd_scrub(const struct arguments *a);
int cmd_status(const struct arguments *a);
int cmd_sweep(const struct arguments *a);
int cmd_trash_empty(const struct arguments *a);
int cmd_trash_history(const struct arguments *a);
int cmd_trash_list(const struct arguments *a);
int cmd_trash_restore(const struct arguments *a);
int cmd_umount(const struct arguments *a);
int cmd_undo(const struct arguments *a);
int cmd_version(const struct arguments *a);

/* Help for one command, as `ddbfs VERB --help` prints it. */
void help_command(FILE *f, const struct command *command);
/* The overview. */
void help_overview(FILE *f);

/* mount(8)'s and umount(8)'s way of calling: `mount.ddbfs STORE DIR -o ...`, `umount.fuse.ddbfs DIR`. */
int helper_mount(int argc, char **argv);
int helper_umount(int argc, char **argv);

#endif
