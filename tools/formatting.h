/*
 * formatting.h - makes a store and its empty tree, for `init` and `mount --create`.
 */
#ifndef TOOLS_FORMATTING_H
#define TOOLS_FORMATTING_H

#include "tools/cmd.h"
#include "tools/credentials.h"

/* Checks --names, --kdf, --trash-name. EXIT_DONE or EXIT_USAGE, said. */
int formatting_check(const struct arguments *a);
/* Makes the store `path`; the root of its tree is the caller's, mode 0755. EXIT_DONE, or said. May take a second (Argon2id). */
int formatting_make(const struct arguments *a, const char *path, const struct credentials *credentials);

#endif
