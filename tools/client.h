/*
 * client.h - asks a running mount, through its control file.
 *
 * What goes wrong is said here, in the words of cmd_fail(); callers pass the exit
 * code on.
 */
#ifndef TOOLS_CLIENT_H
#define TOOLS_CLIENT_H

#include <jansson.h>

#include "tools/cmd.h"
#include "tools/mounts.h"

struct client {
	const struct arguments *arguments;
	struct mount mount;
	char *inner; /* the path that was asked about, from the file system's root */
	int fd;
};

/*
 * Finds the mount that `path` (NULL: the working directory) is in and opens its
 * control file. `follow`: whether the last name of the path may be a symbolic
 * link to be followed. EXIT_DONE, or said and EXIT_NOT_FOUND, EXIT_FAILED.
 */
int client_open(const struct arguments *a, const char *path, bool follow, struct client *ret_client);
void client_close(struct client *c); /* takes NULL and zeroed with fd -1 */
/* As client_open for another path, which must be in the same mount. *ret_inner is malloc'd. */
int client_path(const struct client *c, const char *path, bool follow, char **ret_inner);
/* The path in this mount as the user sees it: mount point and inner path. malloc'd. */
char *client_shown(const struct client *c, const char *inner);

struct client_events {
	const char *what; /* for the progress line; NULL: none */
	void (*row)(void *data, json_t *row); /* borrowed */
	void *data;
};

/*
 * Sends a request ({"verb": ...}; taken over) and hands on the rows. A first
 * SIGINT cancels the job, which then ends in a state that its result says; where
 * the daemon does not answer any more, or at a second one, the watcher ends it.
 * The job's exit code, its error said; *ret_result (may be NULL) is then a new
 * reference, or NULL.
 */
int client_call(struct client *c, json_t *request, const struct client_events *events,
		json_t **ret_result);

#endif
