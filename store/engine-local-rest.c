/*
 * engine-local-rest.c - giving memory back when there is less to do.
 *
 * What was read of the index is unmapped every 5 s while it is read. When nothing
 * was done for as long after that, memory that was freed goes back to the system:
 * of generations, of LMDB's copies of pages, of whatever else the process let go.
 */
#include "store/engine-local.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

void local_touch(struct engine_local *e)
{
	int64_t none = 0;

	if (atomic_compare_exchange_strong(&e->touched_ns, &none, local_now_ns()))
		local_wake(e);
}

void local_rest(struct engine_local *e)
{
	if (e->touched_ns) {
		e->touched_ns = 0;
		e->rested_ns = local_now_ns();
		index_unmap_pages(e->index);
		return;
	}
	e->rested_ns = 0;
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
