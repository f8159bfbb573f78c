/*
 * cmd-key.c - adds a way to unlock a store, or replaces all there were. The
 * files themselves are not sealed anew: only the master key is wrapped again.
 */
#include <errno.h>

#include "store/util.h"
#include "tools/credentials.h"
#include "tools/print.h"
#include "tools/words.h"

/* A locked store asks, once, if nothing was given. `new` NULL: only looks whether it opens. */
static int change(const struct arguments *a, struct credentials *old,
		  const struct store_credentials *new, bool replace)
{
	struct store_open_report report = { 0 };
	char words[WORDS_MAX];
	int result = store_change_key(a->operands[0], &old->store, new, replace, &report);

	if (result == STORE_WRONG_KEY && !old->given) {
		int code = credentials_ask(a, old);

		if (code != EXIT_DONE)
			return code;
		result = store_change_key(a->operands[0], &old->store, new, replace, &report);
	}
	if (result == -E2BIG)
		return cmd_fail(a, EXIT_FAILED, "all key slots are taken; 'ddbfs key replace' frees them");
	if (result)
		return cmd_fail(a, words_open(a->operands[0], result, &report, words), "%s", words);
	return EXIT_DONE;
}

static int change_key(const struct arguments *a, bool replace)
{
	struct credentials old = { 0 }, new = { 0 };
	int code = credentials_check(a, CREDENTIALS_NEW);

	if (code == EXIT_DONE)
		code = credentials_read(a, CREDENTIALS_PRESENT, false, &old);
	/* The old passphrase is asked for first. */
	if (code == EXIT_DONE && arguments_has(a, OPTION_NEW_PASSPHRASE) && !old.given)
		code = change(a, &old, NULL, false);
	if (code == EXIT_DONE)
		code = credentials_read(a, CREDENTIALS_NEW, true, &new);
	if (code == EXIT_DONE && !new.given)
		code = cmd_fail(a, EXIT_USAGE,
				"no new key; give --new-passphrase, --new-passphrase-file, --new-passphrase-fd or --new-key-file");
	if (code == EXIT_DONE)
		code = change(a, &old, &new.store, replace);
	if (code == EXIT_DONE)
		puts(replace ? "the store opens with the new key only" :
			       "the store opens with the new key too");
	credentials_release(&old);
	credentials_release(&new);
	return code;
}

int cmd_key_add(const struct arguments *a)
{
	return change_key(a, false);
}

int cmd_key_replace(const struct arguments *a)
{
	return change_key(a, true);
}
