/*
 * cmd-help.c - help and version, from the tables.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/mount-options.h"
#include "tools/print.h"

#define WIDTH 80

/* Prints `text` wrapped, each line after `indent` blanks; the first starts where the cursor is, at `column`. */
static void wrap(FILE *f, const char *text, int indent, int column)
{
	while (*text) {
		int size = (int)strcspn(text, " \n");

		if (column > indent && column + 1 + size > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			column = indent;
		} else if (column > indent) {
			fputc(' ', f);
			column++;
		}
		fprintf(f, "%.*s", size, text);
		column += size;
		text += size;
		if (*text == '\n') {
			fprintf(f, "\n\n%*s", indent, "");
			column = indent;
		}
		text += *text != '\0';
	}
	fputc('\n', f);
}

/* "  what            help". */
static void print_entry(FILE *f, const char *what, const char *help, int indent)
{
	int column = fprintf(f, "  %s", what);

	if (column + 2 > indent) {
		fputc('\n', f);
		column = 0;
	}
	fprintf(f, "%*s", indent - column, "");
	wrap(f, help, indent, indent);
}

static void print_option(FILE *f, enum option_id id)
{
	const struct option *o = &option_table[id];
	char what[96];

	if (!o->name)
		snprintf(what, sizeof(what), "-%c %s", o->letter, o->value);
	else if (o->letter)
		snprintf(what, sizeof(what), "-%c, --%s%s%s", o->letter, o->name,
			 o->value ? " " : "", o->value ? o->value : "");
	else
		snprintf(what, sizeof(what), "    --%s%s%s", o->name, o->value ? " " : "",
			 o->value ? o->value : "");
	print_entry(f, what, o->help, 30);
}

static void print_mount_option(void *data, const char *name, const char *help)
{
	char what[64];

	snprintf(what, sizeof(what), "%s%s", name, name[strlen(name) - 1] == '=' ? "FILE" : "");
	print_entry(data, what, help, 26);
}

void help_command(FILE *f, const struct command *c)
{
	fprintf(f, "usage: ddbfs %s [OPTIONS]%s%s\n\n", c->name, c->operands[0] ? " " : "", c->operands);
	wrap(f, c->summary, 0, 0);
	if (c->text) {
		fputc('\n', f);
		wrap(f, c->text, 0, 0);
	}
	fputs("\nOptions\n", f);
	for (unsigned i = 0; i < c->options_count; i++)
		print_option(f, c->options[i]);
	print_option(f, OPTION_HELP);
	if (c->run == cmd_mount) {
		fputs("\nMount options (-o)\n", f);
		mount_options_each(print_mount_option, f);
	}
}

void help_overview(FILE *f)
{
	fputs("usage: ddbfs VERB [OPTIONS] ...\n\n"
	      "A file system in which deleting is not losing: what is deleted lies in the .trash\n"
	      "of its directory until it expires.\n\n"
	      "Verbs\n",
	      f);
	for (size_t i = 0; i < command_table_count; i++) {
		const struct command *c = &command_table[i];
		char what[64];

		if (c->hidden)
			continue;
		snprintf(what, sizeof(what), "%s %s", c->name, c->operands);
		print_entry(f, what, c->summary, 34);
	}
	fputs("\nPATH is anything inside the mount; the working directory if it is not given.\n"
	      "'ddbfs help VERB' says more.\n\n"
	      "Exit codes\n",
	      f);
	for (const struct exit_meaning *m = exit_meanings; m->words; m++)
		fprintf(f, "  %3d  %s\n", m->code, m->words);
}

int cmd_help(const struct arguments *a)
{
	const struct command *c;
	bool found = false;
	int words;

	if (!a->count) {
		help_overview(stdout);
		return EXIT_DONE;
	}
	c = command_find((int)a->count, a->operands, &words);
	if (c && words == (int)a->count) {
		help_command(stdout, c);
		return EXIT_DONE;
	}
	/* The first word of verbs of two, as in "help trash". */
	for (size_t i = 0; i < command_table_count && a->count == 1; i++) {
		size_t size = strlen(a->operands[0]);

		c = &command_table[i];
		if (c->hidden || strncmp(c->name, a->operands[0], size) != 0 || c->name[size] != ' ')
			continue;
		if (found)
			fputc('\n', stdout);
		help_command(stdout, c);
		found = true;
	}
	if (found)
		return EXIT_DONE;
	_cleanup_free_ char *quoted = print_quoted(a->operands[a->count - 1]);
	return cmd_fail(a, EXIT_USAGE, "%s: no such verb; 'ddbfs help' lists them", quoted);
}

int cmd_version(const struct arguments *a)
{
	printf("ddbfs %s\n", DDBFS_VERSION);
	return EXIT_DONE;
}
