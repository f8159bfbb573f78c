/*
 * scrub.h - reading everything in a mounted store again and again, slowly, so
 * that no damage of the disk stays unseen for ever. Private to lifecycle/; what
 * others need is in lifecycle.h.
 *
 * A pass verifies the index's structure, then reads every item and every byte
 * of every file, at a bounded rate, with the lowest priority for the disk and
 * without any lock. How far it came stands in META: a store that is
 * never mounted for long gets to its end all the same. Nothing is changed.
 */
#ifndef LIFECYCLE_SCRUB_H
#define LIFECYCLE_SCRUB_H

#include <pthread.h>

#include "lifecycle/lifecycle.h"

#define SCRUB_FOUND 16 /* findings that are kept to be shown */

struct scrub {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	pthread_t thread;
	bool running, stop; /* by mutex, as all below */
	bool now; /* asked for: begin at once, and hurry */
	struct scrub_status status;
	char *found[SCRUB_FOUND];
	struct key at; /* where the pass goes on; size 0: at the start */
	int64_t paced_ns; /* what was read so far may not be exceeded before then */
};

int scrub_init(struct scrub *s);
void scrub_release(struct scrub *s);

#endif
