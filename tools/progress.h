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
	uint64_t done, total; /* the last that were known */
	bool terminal;
	bool on_screen;
};

void progress_begin(struct progress *p, const char *what);
/* A total of 0 is not known. */
void progress_show(struct progress *p, uint64_t done, uint64_t total);
/* The same as last time: something is going on still. */
void progress_tick(struct progress *p);
/* Takes the line away; before anything else is printed. */
void progress_clear(struct progress *p);

#endif
