/*
 * daemon.h - the process that serves a mount: fork first, then open the store,
 * mount and start threads, and tell the parent how it went.
 */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

#include "tools/cmd.h"
#include "tools/credentials.h"
#include "tools/log.h"
#include "tools/mount-options.h"
#include "tools/words.h"

struct daemon_plan {
	const char *store; /* absolute */
	const char *mount_point; /* absolute, without symbolic links */
	const struct mount_options *options;
	struct credentials *credentials; /* wiped in the daemon once the store is open */
	struct log log; /* fd -1: the system's */
};

/*
 * Starts a daemon and returns when the mount answers, or when it is clear that
 * it will not: EXIT_DONE, or the documented code with the reason in `ret_words`.
 * SIGINT ends the daemon: EXIT_INTERRUPTED.
 */
int daemon_start(const struct daemon_plan *plan, char ret_words[WORDS_MAX]);
/* Serves in this process until it is unmounted. The same results. */
int daemon_foreground(const struct daemon_plan *plan, char ret_words[WORDS_MAX]);

#endif
