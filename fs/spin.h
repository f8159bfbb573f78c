/*
 * spin.h - whether it pays to look for the next request without sleeping. Knows
 * no FUSE.
 *
 * A program that waits for one answer usually asks again at once, and waking a
 * sleeper costs more than most operations. But spinning takes a processor: it
 * is given up where there is only one (or a quota of less than two), while it
 * finds nothing, and for a moment after the spinner was made to wait for a
 * processor itself. One thread at a time uses a struct spin.
 */
#ifndef FS_SPIN_H
#define FS_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_NS 50000 /* 20 us are too short for most programs, 300 no better */

struct spin {
	bool enabled;
	int credit; /* hits less misses, bounded; none left: no spinning */
	unsigned skipped; /* occasions since then */
	int64_t after_ns; /* not before: the machine was loaded */
};

void spin_init(struct spin *s, bool wanted);
bool spin_allowed(struct spin *s, int64_t now_ns);
/* Between two looks, at `before_ns` and `now_ns`, nothing else was done. */
void spin_looked(struct spin *s, int64_t before_ns, int64_t now_ns);
void spin_ended(struct spin *s, bool found);

#endif
