#include "tools/formatting.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle/tree.h"
#include "store/store.h"
#include "store/util.h"
#include "tools/print.h"
#include "tools/words.h"

#define ROOT_MODE 0755

int formatting_check(const struct arguments *a)
{
	const char *name = a->values[OPTION_TRASH_NAME];
	_cleanup_free_ char *quoted = NULL;

	if (arguments_has(a, OPTION_KDF) && !arguments_has(a, OPTION_PASSPHRASE) &&
	    !arguments_has(a, OPTION_PASSPHRASE_FILE) && !arguments_has(a, OPTION_PASSPHRASE_FD))
		return cmd_fail(a, EXIT_USAGE, "--kdf: goes with a passphrase only");
	if (!name)
		return EXIT_DONE;
	if (strlen(name) <= STORE_TRASH_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	    strcmp(name, "..") != 0 && strcmp(name, CONTROL_DIRECTORY) != 0)
		return EXIT_DONE;
	quoted = print_quoted(name);
	return cmd_fail(a, EXIT_USAGE,
			"--trash-name %s: give one name of 1 to %d bytes without '/', not '.', '..' or '%s'",
			quoted, STORE_TRASH_NAME_MAX, CONTROL_DIRECTORY);
}

/* The number store.h gives a level; it is one of the option's choices. */
static unsigned kdf_level(const char *word)
{
	if (word && !strcmp(word, "interactive"))
		return 1;
	return word && !strcmp(word, "sensitive") ? 2 : 0;
}

static enum store_names names(const char *word)
{
	if (!word)
		return STORE_NAMES_DEFAULT;
	return !strcmp(word, "sealed") ? STORE_NAMES_SEALED : STORE_NAMES_ORDERED;
}

/* An empty tree into the new store. */
static int plant(const struct arguments *a, const char *path, const struct credentials *credentials)
{
	struct store_open_options options = { .credentials = credentials->store };
	struct store_open_report report = { 0 };
	char words[WORDS_MAX];
	struct store *s;
	int closed, result = store_open(path, &options, &report, &s);

	if (result)
		return cmd_fail(a, words_open(path, result, &report, words), "%s", words);
	result = tree_format(s, ROOT_MODE, getuid(), getgid());
	closed = store_close(s);
	if (!result)
		result = closed;
	return result ? cmd_fail(a, words_create(path, result, words), "%s", words) : EXIT_DONE;
}

int formatting_make(const struct arguments *a, const char *path, const struct credentials *credentials)
{
	const struct store_create_options create = {
		.credentials = credentials->store,
		.names = names(a->values[OPTION_NAMES]),
		.kdf_level = kdf_level(a->values[OPTION_KDF]),
		.trash_name = a->values[OPTION_TRASH_NAME],
	};
	char words[WORDS_MAX];
	int result = store_create(path, &create);

	if (result)
		return cmd_fail(a, words_create(path, result, words), "%s", words);
	return plant(a, path, credentials);
}
