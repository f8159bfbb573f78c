/*
 * words.h - results of the store as words and exit codes: the one place.
 */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

#include "store/store.h"

#define WORDS_MAX 1024

/*
 * Why store_open(path) gave `result` (not 0), what to do, and the exit code for
 * it. `path` appears quoted.
 */
int words_open(const char *path, int result, const struct store_open_report *report,
	       char ret_words[WORDS_MAX]);
/* The same for store_create. */
int words_create(const char *path, int result, char ret_words[WORDS_MAX]);

#endif
