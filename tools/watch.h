/*
 * watch.h - does what needs a mount's answer in a child process, so that a
 * daemon that hangs holds up neither the user nor ^C.
 *
 * A process that waits for a FUSE answer may not end even by SIGKILL, so the one
 * that the shell waits for must not be the one that asks.
 */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include "tools/cmd.h"

#define WATCH_FIRST_SECONDS 10 /* until the first beat */
#define WATCH_GRACE_SECONDS 5 /* from a signal, or the last beat after it, to the end */

/*
 * Goes on in a child. The process that was called becomes its watcher: it passes
 * signals on, ends as the child ends, or gives up, said, when the child does not
 * beat in time. `path` (NULL: the working directory) is for the message.
 * Where no child can be made the caller goes on unwatched. *ret_beat: for
 * watch_beat, to stay open until the process ends; -1: unwatched.
 */
void watch_begin(const struct arguments *a, const char *path, int *ret_beat);

/* The mount answered. */
void watch_beat(int beat);

#endif
