/*
 * main.c - finds out what is asked for and has it done.
 *
 * Called as `mount.ddbfs`, `mount.fuse.ddbfs` or `umount.fuse.ddbfs` it is the
 * helper that mount(8) and umount(8) look for.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/print.h"
#include "tools/watch.h"

/* Tables measure and print UTF-8; a plain C locale would have its bytes escaped. */
static void set_locale(void)
{
	setlocale(LC_ALL, "");
	/* Without TZ the C library looks at the file again for each time it prints. */
	setenv("TZ", ":/etc/localtime", 0);
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

/*
 * So that no file that is opened later is taken for one of them. What was closed
 * cannot be read, nor written but for messages: output must not look done.
 */
static void keep_standard_descriptors(void)
{
	static const int flags[] = { O_WRONLY, O_RDONLY, O_WRONLY };

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) < 0)
			exit(EXIT_FAILED);
}

/* What could not be printed must not look like success. */
static int flush(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	/* Nobody reads any more: ends as other programs do. */
	if (print_is_unread()) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	fprintf(stderr, "ddbfs: standard output: %s\n", strerror(errno));
	return code == EXIT_DONE ? EXIT_FAILED : code;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct arguments a;
	int code = arguments_parse(command, argc, argv, &a);

	if (code == EXIT_DONE && arguments_has(&a, OPTION_HELP)) {
		help_command(stdout, command);
	} else if (code == EXIT_DONE) {
		if (command->asks)
			watch_begin(&a);
		code = command->run(&a);
	}
	arguments_release(&a);
	return code;
}

/* "trash" without its second word, or with a wrong one: says which there are. */
static int fail_verb(int argc, char **argv)
{
	_cleanup_free_ char *first = print_quoted(argv[0]), *known = print_format("%s", "");
	size_t size = strlen(argv[0]);

	for (size_t i = 0; i < command_table_count; i++) {
		const char *name = command_table[i].name;
		char *longer;

		if (strncmp(name, argv[0], size) != 0 || name[size] != ' ')
			continue;
		longer = print_format("%s%s%s", known, known[0] ? ", " : "", name + size + 1);
		free(known);
		known = longer;
	}
	if (!known[0])
		return cmd_fail(NULL, EXIT_USAGE, "%s: no such verb; 'ddbfs help' lists them", first);
	if (argc < 2)
		return cmd_fail(NULL, EXIT_USAGE, "%s: needs one of: %s", first, known);
	_cleanup_free_ char *second = print_quoted(argv[1]);
	return cmd_fail(NULL, EXIT_USAGE, "%s %s: no such verb; there are: %s", first, second, known);
}

static int dispatch(int argc, char **argv)
{
	const struct command *command;
	int words;

	if (argc < 1) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")) {
		help_overview(stdout);
		return EXIT_DONE;
	}
	if (!strcmp(argv[0], "--version") || !strcmp(argv[0], "-V"))
		return cmd_version(NULL);
	if (argv[0][0] == '-') {
		_cleanup_free_ char *quoted = print_quoted(argv[0]);

		return cmd_fail(NULL, EXIT_USAGE,
				"%s: no such option; the verb comes first, see 'ddbfs help'", quoted);
	}
	command = command_find(argc, argv, &words);
	return command ? run(command, argc - words, argv + words) : fail_verb(argc, argv);
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;

	name = name ? name + 1 : argc > 0 ? argv[0] : "ddbfs";
	keep_standard_descriptors();
	set_locale();
	signal(SIGPIPE, SIG_IGN);
	/* A limit on the size of files is an error of the write that meets it. */
	signal(SIGXFSZ, SIG_IGN);
	if (!strcmp(name, "mount.ddbfs") || !strcmp(name, "mount.fuse.ddbfs"))
		return flush(helper_mount(argc - 1, argv + 1));
	if (!strcmp(name, "umount.ddbfs") || !strcmp(name, "umount.fuse.ddbfs"))
		return flush(helper_umount(argc - 1, argv + 1));
	return flush(dispatch(argc - 1, argc > 0 ? argv + 1 : argv));
}
