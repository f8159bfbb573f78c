#include "tools/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/util.h"
#include "tools/cmd.h"
#include "tools/print.h"

static int words_errno(const char *quoted, int result, char ret_words[WORDS_MAX])
{
	switch (result) {
	case -ENOENT:
	case -ENOTDIR:
		snprintf(ret_words, WORDS_MAX, "%s: no store there; 'ddbfs init' makes one", quoted);
		return EXIT_NO_STORE;
	case -EACCES:
	case -EPERM:
		snprintf(ret_words, WORDS_MAX, "%s: cannot open the store: %s; it belongs to another user",
			 quoted, strerror(-result));
		return EXIT_FAILED;
	default:
		snprintf(ret_words, WORDS_MAX, "%s: cannot open the store: %s", quoted,
			 strerror(-result));
		return EXIT_FAILED;
	}
}

int words_open(const char *path, int result, const struct store_open_report *report,
	       char ret_words[WORDS_MAX])
{
	_cleanup_free_ char *quoted = print_quoted(path);
	const char *text = report->text[0] ? report->text : NULL;

	switch (result) {
	case STORE_NOT_A_STORE:
		snprintf(ret_words, WORDS_MAX, "%s: not a store: %s; 'ddbfs init' makes one",
			 quoted, text ? text : "nothing is there");
		return EXIT_NO_STORE;
	case STORE_TOO_NEW:
		snprintf(ret_words, WORDS_MAX,
			 "%s: made by a later version of ddbfs (format %u); install that one",
			 quoted, report->format);
		return EXIT_NO_STORE;
	case STORE_IN_USE:
		snprintf(ret_words, WORDS_MAX, "%s: in use by process %d; unmount it first", quoted,
			 report->holder_pid);
		return EXIT_IN_USE;
	case STORE_WRONG_KEY:
		snprintf(ret_words, WORDS_MAX, "%s: %s", quoted,
			 text ? text : "wrong passphrase or key file; nothing was changed");
		return EXIT_WRONG_KEY;
	case STORE_DAMAGED:
		snprintf(ret_words, WORDS_MAX, "%s: damaged: %s", quoted,
			 text ? text : "its structure does not verify");
		return EXIT_DAMAGE;
	default:
		return words_errno(quoted, result, ret_words);
	}
}

int words_create(const char *path, int result, char ret_words[WORDS_MAX])
{
	_cleanup_free_ char *quoted = print_quoted(path);

	switch (result) {
	case -EEXIST:
		snprintf(ret_words, WORDS_MAX, "%s: there is a store already; nothing was changed",
			 quoted);
		return EXIT_NOT_EMPTY;
	case -ENOTEMPTY:
		snprintf(ret_words, WORDS_MAX,
			 "%s: the directory is not empty; give an empty or a new one", quoted);
		return EXIT_NOT_EMPTY;
	case -ENOTDIR:
		snprintf(ret_words, WORDS_MAX, "%s: not a directory; give an empty or a new one", quoted);
		return EXIT_NOT_EMPTY;
	case -ENOENT:
		snprintf(ret_words, WORDS_MAX,
			 "%s: the directory above it does not exist; make it first", quoted);
		return EXIT_NOT_FOUND;
	case -EINVAL:
		snprintf(ret_words, WORDS_MAX,
			 "%s: the store would not take its trash name, passphrase or key file", quoted);
		return EXIT_USAGE;
	default:
		snprintf(ret_words, WORDS_MAX, "%s: cannot make the store: %s", quoted,
			 strerror(-result));
		return EXIT_FAILED;
	}
}
