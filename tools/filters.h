/*
 * filters.h - the options that say which entries of the trash are meant, where
 * several commands take them.
 */
#ifndef TOOLS_FILTERS_H
#define TOOLS_FILTERS_H

#include <jansson.h>

#include "tools/cmd.h"

/* Puts --since, --by, --name and --limit into a request, as the daemon takes them. EXIT_DONE; EXIT_USAGE, said. */
int filters_put(const struct arguments *a, json_t *request);
/* PATH, or what --under gives instead; both are too much. NULL: neither. */
int filters_path(const struct arguments *a, const char **ret_path);

#endif
