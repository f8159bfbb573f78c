/*
 * taken.h - what to do where the name of what is restored is taken.
 */
#ifndef TOOLS_TAKEN_H
#define TOOLS_TAKEN_H

#include "tools/cmd.h"

/* "refuse", or the one of --skip, --rename, --replace and --swap that was given. EXIT_DONE; EXIT_USAGE, said, for two of them. */
int taken_option(const struct arguments *a, const char **ret_taken);

#endif
