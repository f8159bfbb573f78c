/*
 * actor.h - who asks: from the thread id the kernel gives to the process, its
 * group, session, start and command, by /proc. Knows no FUSE.
 *
 * The kernel names the THREAD (a threaded deleter has as many ids as threads);
 * batches and temporary names go by processes, the latter by what a process
 * executes. Asking costs some 20 us, so an answer is kept for a quarter of a
 * second while the same thread asks again without a pause: `rm -rf` asks once
 * for thousands of files, and a thread id does not come back that soon.
 */
#ifndef FS_ACTOR_H
#define FS_ACTOR_H

#include "lifecycle/lifecycle.h"

struct actor_cache;

int actor_cache_new(struct actor_cache **ret_cache);
void actor_cache_free(struct actor_cache *c); /* takes NULL */

/* Never fails: what cannot be found out (a thread of another pid namespace, or one that ended) is 0. No supplementary groups. */
void actor_find(struct actor_cache *c, uint32_t thread, uint32_t uid, uint32_t gid,
		struct actor *ret_actor);

#endif
