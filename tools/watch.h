/*
 * watch.h - does what needs a mount's answer in a child process, so that a
 * daemon that hangs holds up neither the user nor ^C.
 *
 * A process that waits for a FUSE answer may not end even by SIGKILL, so the one
 * that the shell waits for must not be the one that asks, nor ever wait for it
 * without looking at signals.
 */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

#include "tools/cmd.h"

#define WATCH_FIRST_SECONDS 10 /* from the first question to a mount until it beats */
#define WATCH_GRACE_SECONDS 5 /* from a signal, or the last beat after it, to the end */

/*
 * Goes on in a child. The process that was called becomes its watcher: it passes
 * signals on, ends as the child ends, or gives up, said, when the child does not
 * beat in time. Sets a->beat. Where no child can be made the caller goes on unwatched.
 */
void watch_begin(struct arguments *a);

/* A mount is asked that may not have answered yet: it has WATCH_FIRST_SECONDS from now. */
void watch_ask(const struct arguments *a);
/* The mount answered. */
void watch_beat(const struct arguments *a);

#endif
