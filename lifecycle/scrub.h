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
	bool verified; /* the thread's own: the structure was, in this pass and this mount */
	int64_t paced_ns; /* what was read so far may not be exceeded before then */
};

#define SCRUB_BLOCK (256 << 10)

/* scrub-walk.c */
/* From where it stands to the end. `block`: of SCRUB_BLOCK. 0, -EINTR, other errno. */
int scrub_pass(struct lifecycle *l, uint8_t *block);

/* For store_verify: a pause, but where something is held, which leaves time to others. True: stop. */
bool scrub_is_stopped(void *scrub, bool held);
/* Counts what was read, and waits until that much may have been. True: stop. */
bool scrub_pace(struct scrub *s, int64_t bytes);
/* Something is wrong with what has that path, or stands there. */
void scrub_found(struct lifecycle *l, const char *path, const char *text);
void scrub_found_at(struct lifecycle *l, const struct place *at, const char *text);
/* Writes down how far it is. */
void scrub_note(struct lifecycle *l);

int scrub_init(struct scrub *s);
void scrub_release(struct scrub *s);

#endif
