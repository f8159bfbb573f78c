/*
 * child.h - waits for a child process, but not for ever: one that waits for a
 * daemon that hangs may not end even by SIGKILL.
 */
#ifndef TOOLS_CHILD_H
#define TOOLS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it has ended, or does within `ms`; then it is reaped. *ret_status (may be NULL) as waitpid(2) has it. */
bool child_ends(pid_t pid, unsigned ms, int *ret_status);

#endif
