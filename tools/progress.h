/*
 * progress.h - how far something is that may last: on a terminal only, on
 * standard error, and only from the second second on.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "restoring" */
	int64_t begun_ns;
	int64_t shown_ns;
	bool terminal;
	bool on_screen;
};

void progress_begin(struct progress *p, const char *what);
/* A total of 0 is not known. */
void progress_show(struct progress *p, uint64_t done, uint64_t total);
/* Takes the line away; before anything else is printed. */
void progress_clear(struct progress *p);

#endif
