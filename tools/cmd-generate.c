/*
 * cmd-generate.c - the parts of the manual and of shells' completions that come
 * from the tables. Called by the build.
 */
#include <string.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/mount-options.h"
#include "tools/print.h"

/* ---- manual (scdoc) ------------------------------------------------------------------ */

/* scdoc reads '_' and '*' as emphasis, and '-', '<' or '#' at the start of a line as more. */
static void print_scd(const char *text)
{
	for (; *text; text++) {
		if (strchr("_*\\<>#-", *text))
			putchar('\\');
		putchar(*text);
		if (*text == '\n')
			putchar('\n');
	}
}

static void print_scd_option(enum option_id id)
{
	const struct option *o = &option_table[id];

	if (o->letter)
		printf("*-%c*%s", o->letter, o->name ? ", " : "");
	if (o->name)
		printf("*--%s*", o->name);
	if (o->value) {
		fputs(" ", stdout);
		print_scd(o->value);
	}
	fputs("\n\t", stdout);
	print_scd(o->help);
	fputs("\n\n", stdout);
}

static void print_scd_command(const struct command *c)
{
	fputs("## ddbfs ", stdout);
	print_scd(c->name);
	fputs(c->options_count ? " [OPTIONS] " : " ", stdout);
	print_scd(c->operands);
	fputs("\n\n", stdout);
	putchar(c->summary[0] - 'a' + 'A');
	print_scd(c->summary + 1);
	fputs(".\n\n", stdout);
	if (c->text) {
		print_scd(c->text);
		fputs("\n\n", stdout);
	}
	for (unsigned i = 0; i < c->options_count; i++)
		print_scd_option(c->options[i]);
}

static void print_scd_mount_option(void *data, const char *name, const char *help)
{
	printf("*%s*%s\n\t", name, name[strlen(name) - 1] == '=' ? "FILE" : "");
	print_scd(help);
	fputs("\n\n", stdout);
}

static void generate_man(void)
{
	fputs("# VERBS\n\n", stdout);
	for (size_t i = 0; i < command_table_count; i++)
		if (!command_table[i].hidden)
			print_scd_command(&command_table[i]);
	fputs("# MOUNT OPTIONS\n\n", stdout);
	mount_options_each(print_scd_mount_option, NULL);
	fputs("# EXIT STATUS\n\n", stdout);
	for (const struct exit_meaning *m = exit_meanings; m->words; m++) {
		printf("*%d*\n\t", m->code);
		print_scd(m->words);
		fputs("\n\n", stdout);
	}
}

/* ---- bash ------------------------------------------------------------------------------ */

/* The words of all verbs that begin with `first` (NULL: their first words), each once. */
static void print_words(const char *first)
{
	const char *before = "";

	for (size_t i = 0; i < command_table_count; i++) {
		const struct command *c = &command_table[i];
		const char *word = c->name;
		size_t size = first ? strlen(first) : 0;

		if (c->hidden || (first && (strncmp(word, first, size) != 0 || word[size] != ' ')))
			continue;
		word += first ? size + 1 : 0;
		size = strcspn(word, " ");
		if (strlen(before) >= size && !strncmp(before, word, size))
			continue;
		printf(" %.*s", (int)size, word);
		before = word;
	}
}

static void print_bash_options(const struct command *c)
{
	for (unsigned i = 0; i <= c->options_count; i++) {
		const struct option *o =
			&option_table[i < c->options_count ? c->options[i] : OPTION_HELP];

		if (o->name)
			printf(" --%s", o->name);
		else
			printf(" -%c", o->letter);
	}
}

/* What completes the value of an option: words, or names of files. */
static void print_bash_values(void)
{
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		const struct option *o = &option_table[i];

		if (!o->name || o->kind == OPTION_KIND_FLAG)
			continue;
		printf("	--%s) ", o->name);
		if (o->kind == OPTION_KIND_CHOICE) {
			fputs("COMPREPLY=($(compgen -W '", stdout);
			for (const char *v = o->value; *v; v++)
				putchar(*v == '|' ? ' ' : *v);
			fputs("' -- \"$word\"))", stdout);
		} else if (o->kind == OPTION_KIND_DIRECTORY) {
			fputs("_ddbfs_files -d", stdout);
		} else if (o->kind == OPTION_KIND_FILE) {
			fputs("_ddbfs_files -f", stdout);
		} else {
			fputs("COMPREPLY=()", stdout);
		}
		fputs("; return ;;\n", stdout);
	}
}

static void generate_bash(void)
{
	fputs("# Completions of ddbfs for bash. Made from the program's own table.\n"
	      "_ddbfs_files()\n{\n	compopt -o filenames\n"
	      "	mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$word\")\n}\n\n"
	      "_ddbfs()\n{\n	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}\n"
	      "	local words= opts=\n\n	COMPREPLY=()\n	case $before in\n",
	      stdout);
	print_bash_values();
	fputs("	esac\n	if [ \"$COMP_CWORD\" = 1 ]; then\n		COMPREPLY=($(compgen -W '",
	      stdout);
	print_words(NULL);
	fputs("' -- \"$word\"))\n		return\n	fi\n	case $verb in\n", stdout);
	for (size_t i = 0; i < command_table_count; i++) {
		const char *name = command_table[i].name, *blank = strchr(name, ' ');
		_cleanup_free_ char *first = blank ? strndup(name, (size_t)(blank - name)) : NULL;

		if (!first ||
		    (i && !strncmp(command_table[i - 1].name, name, (size_t)(blank - name) + 1)))
			continue;
		printf("	%s) words='", first);
		print_words(first);
		fputs("'; [ \"$COMP_CWORD\" -gt 2 ] && words= verb=\"$verb ${COMP_WORDS[2]}\" ;;\n",
		      stdout);
	}
	fputs("	help) words='", stdout);
	print_words(NULL);
	fputs("'; [ \"$COMP_CWORD\" -gt 2 ] && words= ;;\n", stdout);
	fputs("	esac\n	case $verb in\n", stdout);
	for (size_t i = 0; i < command_table_count; i++) {
		if (command_table[i].hidden)
			continue;
		printf("	'%s') opts='", command_table[i].name);
		print_bash_options(&command_table[i]);
		fputs("' ;;\n", stdout);
	}
	fputs("	esac\n"
	      "	if [ -n \"$words\" ]; then\n		COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
	      "	elif [ \"${word#-}\" != \"$word\" ]; then\n		COMPREPLY=($(compgen -W \"$opts\" -- \"$word\"))\n"
	      "	else\n		_ddbfs_files -f\n	fi\n}\n"
	      "complete -F _ddbfs ddbfs\n",
	      stdout);
}

/* ---- fish ------------------------------------------------------------------------------ */

/* In single quotes, where fish knows only \' and \\. */
static void print_fish(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('\'');
}

/* The condition under which a command's options are offered. */
static void print_fish_condition(const struct command *c)
{
	printf(" -n '__ddbfs_verb %s'", c->name);
}

static void print_fish_option(const struct command *c, enum option_id id)
{
	const struct option *o = &option_table[id];

	fputs("complete -c ddbfs", stdout);
	print_fish_condition(c);
	if (o->letter)
		printf(" -s %c", o->letter);
	if (o->name)
		printf(" -l %s", o->name);
	if (o->kind == OPTION_KIND_CHOICE) {
		fputs(" -x -a '", stdout);
		for (const char *v = o->value; *v; v++)
			putchar(*v == '|' ? ' ' : *v);
		putchar('\'');
	} else if (o->kind != OPTION_KIND_FLAG) {
		fputs(" -r", stdout);
	}
	fputs(" -d ", stdout);
	print_fish(o->help);
	putchar('\n');
}

static void generate_fish(void)
{
	/* By their place: "undo" after "help", or as the name of a file, is no verb. */
	fputs("# Completions of ddbfs for fish. Made from the program's own table.\n"
	      "function __ddbfs_verb\n"
	      "	set -l words (commandline -opc)\n"
	      "	set -l last (math (count $argv) + 1)\n"
	      "	test (count $words) -ge $last\n"
	      "	and test \"$words[2..$last]\" = \"$argv\"\n"
	      "end\n"
	      "function __ddbfs_first\n"
	      "	set -l words (commandline -opc)\n"
	      "	test (count $words) -eq (math (count $argv) + 1)\n"
	      "	and test \"$words[2..]\" = \"$argv\"\n"
	      "end\n",
	      stdout);
	fputs("complete -c ddbfs -f -n '__ddbfs_first help' -a '", stdout);
	print_words(NULL);
	fputs("'\n", stdout);
	for (size_t i = 0; i < command_table_count; i++) {
		const struct command *c = &command_table[i];
		const char *blank = strchr(c->name, ' ');

		if (c->hidden)
			continue;
		fputs("complete -c ddbfs -f", stdout);
		if (blank)
			printf(" -n '__ddbfs_first %.*s' -a %s", (int)(blank - c->name), c->name,
			       blank + 1);
		else
			printf(" -n __fish_use_subcommand -a %s", c->name);
		fputs(" -d ", stdout);
		print_fish(c->summary);
		putchar('\n');
		if (blank && (!i || strncmp(command_table[i - 1].name, c->name,
					    (size_t)(blank - c->name) + 1) != 0))
			printf("complete -c ddbfs -f -n __fish_use_subcommand -a %.*s\n",
			       (int)(blank - c->name), c->name);
		for (unsigned o = 0; o < c->options_count; o++)
			print_fish_option(c, c->options[o]);
	}
}

int cmd_generate(const struct arguments *a)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = { { "man", generate_man }, { "bash", generate_bash }, { "fish", generate_fish } };
	_cleanup_free_ char *quoted = print_quoted(a->operands[0]);

	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		if (strcmp(parts[i].name, a->operands[0]) != 0)
			continue;
		parts[i].run();
		return EXIT_DONE;
	}
	return cmd_fail(a, EXIT_USAGE, "%s: give man, bash or fish", quoted);
}
