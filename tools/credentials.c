#include "tools/credentials.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tools/passphrase.h"
#include "tools/print.h"
#include "tools/units.h"

static const enum option_id sets[][4] = {
	[CREDENTIALS_PRESENT] = { OPTION_PASSPHRASE, OPTION_PASSPHRASE_FILE, OPTION_PASSPHRASE_FD,
				  OPTION_KEY_FILE },
	[CREDENTIALS_NEW] = { OPTION_NEW_PASSPHRASE, OPTION_NEW_PASSPHRASE_FILE,
			      OPTION_NEW_PASSPHRASE_FD, OPTION_NEW_KEY_FILE },
};

void credentials_release(struct credentials *c)
{
	passphrase_free(c->passphrase);
	free(c->key_file);
	*c = (struct credentials){ 0 };
}

int credentials_check(const struct arguments *a, enum credentials_set set)
{
	const char *first = NULL;

	for (unsigned i = 0; i < ARRAY_SIZE(sets[set]); i++) {
		enum option_id id = sets[set][i];

		if (!arguments_has(a, id))
			continue;
		if (first)
			return cmd_fail(a, EXIT_USAGE, "--%s, --%s: exclude each other; give one",
					first, option_table[id].name);
		first = option_table[id].name;
	}
	return EXIT_DONE;
}

/* `where` is as it shall be shown. */
static int fail_passphrase(const struct arguments *a, const char *where, int error)
{
	switch (error) {
	case -EINVAL:
		return cmd_fail(a, EXIT_USAGE,
				"%s: not a passphrase: it must have 1 to %d bytes in one line, no NUL",
				where, PASSPHRASE_MAX);
	case -ENOTTY:
		return cmd_fail(a, EXIT_USAGE,
				"there is no terminal to ask for the passphrase; use --passphrase-file, --passphrase-fd or --key-file");
	default:
		return cmd_fail(a, error == -ENOENT ? EXIT_USAGE : EXIT_FAILED,
				"%s: cannot read the passphrase: %s", where, strerror(-error));
	}
}

static int ask(const struct arguments *a, const char *prompt, bool twice, char **ret_passphrase)
{
	char *first = NULL, *second = NULL;
	int result = passphrase_ask(prompt, &first);
	bool same;

	if (result < 0)
		return fail_passphrase(a, "the passphrase", result);
	if (twice) {
		result = passphrase_ask("Once more: ", &second);
		same = !result && !strcmp(first, second);
		passphrase_free(second);
		if (!same) {
			passphrase_free(first);
			return result < 0 ?
				       fail_passphrase(a, "the passphrase", result) :
				       cmd_fail(a, EXIT_USAGE, "the two passphrases differ; try again");
		}
	}
	*ret_passphrase = first;
	return EXIT_DONE;
}

static void warn_if_open(const struct arguments *a, const char *quoted, const struct stat *st)
{
	if (S_ISREG(st->st_mode) && (st->st_mode & 077))
		cmd_warn(a, "%s: others may read this file; better: chmod 600", quoted);
}

static int read_file(const struct arguments *a, const char *path, char **ret_passphrase)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : passphrase_read(fd, ret_passphrase);
	_cleanup_free_ char *quoted = print_quoted(path);
	struct stat st;

	if (result < 0)
		return fail_passphrase(a, quoted, result);
	if (!fstat(fd, &st))
		warn_if_open(a, quoted, &st);
	return EXIT_DONE;
}

static int read_fd(const struct arguments *a, const char *number, char **ret_passphrase)
{
	_cleanup_free_ char *where = print_format("file descriptor %s", number);
	int64_t fd = -1;
	int result;

	if (!units_parse_number(number, &fd) || fd > INT_MAX)
		return cmd_fail(a, EXIT_USAGE, "%s: not a file descriptor", number);
	result = passphrase_read((int)fd, ret_passphrase);
	if (result == -EBADF)
		return cmd_fail(a, EXIT_USAGE, "%s: is not open; use a redirection such as %s<FILE",
				where, number);
	return result < 0 ? fail_passphrase(a, where, result) : EXIT_DONE;
}

/* The store reads it again; that it can be a key at all is a matter of usage. */
static int find_key_file(const struct arguments *a, const char *path, char **ret_path)
{
	const struct store_credentials c = { .key_file = path };
	struct store_open_report report = { 0 };
	_cleanup_free_ char *quoted = print_quoted(path);
	struct stat st;

	if (store_check_credentials(&c, &report) < 0)
		return cmd_fail(a, EXIT_USAGE, "%s", report.text);
	*ret_path = realpath(path, NULL);
	if (!*ret_path)
		return cmd_fail(a, EXIT_USAGE, "%s: %s", quoted, strerror(errno));
	if (!stat(*ret_path, &st))
		warn_if_open(a, quoted, &st);
	return EXIT_DONE;
}

void credentials_protect(void)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_DUMPABLE, 0);
	setrlimit(RLIMIT_CORE, &none);
}

int credentials_read(const struct arguments *a, enum credentials_set set, bool twice,
		     struct credentials *ret_credentials)
{
	const char *file = a->values[sets[set][1]], *fd = a->values[sets[set][2]],
		   *key = a->values[sets[set][3]];
	struct credentials c = { 0 };
	int code = credentials_check(a, set);

	if (code != EXIT_DONE)
		return code;
	credentials_protect();
	if (arguments_has(a, sets[set][0]))
		code = ask(a, set == CREDENTIALS_NEW ? "New passphrase: " : "Passphrase: ", twice,
			   &c.passphrase);
	else if (file)
		code = read_file(a, file, &c.passphrase);
	else if (fd)
		code = read_fd(a, fd, &c.passphrase);
	else if (key)
		code = find_key_file(a, key, &c.key_file);
	if (code != EXIT_DONE)
		return code;
	c.store = (struct store_credentials){ .passphrase = c.passphrase, .key_file = c.key_file };
	c.given = c.passphrase || c.key_file;
	*ret_credentials = c;
	return EXIT_DONE;
}

int credentials_ask(const struct arguments *a, struct credentials *c)
{
	int result = passphrase_ask("Passphrase: ", &c->passphrase);

	if (result == -ENOTTY)
		return cmd_fail(a, EXIT_WRONG_KEY,
				"the store is locked; give --passphrase-file, --passphrase-fd or --key-file");
	if (result < 0)
		return fail_passphrase(a, "the passphrase", result);
	c->store.passphrase = c->passphrase;
	c->given = true;
	return EXIT_DONE;
}
