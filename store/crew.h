/*
 * crew.h - threads that help with work that is cut into equal pieces and waits
 * for nothing: sealing and unsealing chunks.
 *
 * Who has the work does it too, and no helper is waited for that has not begun.
 * On a busy machine one that has begun may lose its processor in the middle: when
 * that was waited for, jobs are done alone for a while, the longer the more often.
 * One job at a time: who comes while another has the helpers works alone. Threads
 * are started with the first job; a machine with one processor gets none.
 */
#ifndef STORE_CREW_H
#define STORE_CREW_H

#include <stddef.h>

struct crew;

int crew_new(struct crew **ret_crew); /* 0, -ENOMEM */
void crew_free(struct crew *c); /* takes NULL; no job may be under way */

/* Calls work(data, i) for each i below `count`, on any threads and in any order, and returns when all are done. */
void crew_run(struct crew *c, void (*work)(void *data, size_t i), void *data, size_t count);

#endif
