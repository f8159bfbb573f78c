/*
 * probe.h - whether a mount answers, without hanging with one that does not.
 */
#ifndef TOOLS_PROBE_H
#define TOOLS_PROBE_H

#include <sys/types.h>

enum probe {
	PROBE_ANSWERS,
	PROBE_DEAD, /* its daemon is gone: "Transport endpoint is not connected" */
	PROBE_HANGS, /* no answer within PROBE_SECONDS */
	PROBE_CLOSED, /* the caller may not use it */
	PROBE_FAILED, /* another error */
};

#define PROBE_SECONDS 5

/* Asks the ddbfs mounted on `point` for its status in a child process. *ret_pid is the daemon's; 0: not known. */
enum probe probe_mount(const char *point, pid_t *ret_pid);

#endif
