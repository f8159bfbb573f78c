/*
 * lmdb-map.c - letting go of the pages that reading has mapped.
 *
 * The index is read through a mapping, and what was once read stays mapped: of a
 * large store that is all of it. The kernel can take such pages at any time, but
 * they count as the process's own. Unmapped, they stay in the page cache, and
 * the next look-up maps what it needs (a microsecond for 16 pages).
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "store/lmdb-internal.h"

/*
 * LMDB does not tell where its mapping is; the kernel does. Numbers of files
 * repeat on other file systems, and what was changed in a private mapping, a
 * library's data for instance, would be lost: only shared ones are let go.
 */
static void unmap_pages(const char *line, ino_t inode, uint64_t bytes)
{
	uintptr_t start, end;
	uint64_t number;
	char shared;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*3c%c %*s %*s %" SCNu64, &start, &end, &shared,
		   &number) != 4 ||
	    shared != 's' || number != inode)
		return;
	(void)madvise((void *)start, util_min(end - start, (uintptr_t)bytes), MADV_DONTNEED);
}

void index_unmap_pages(struct index *x)
{
	struct index_facts facts;
	char line[512];
	struct stat st;
	FILE *maps;

	if (fstat(index_fd(x), &st) < 0 || index_facts(x, false, &facts) < 0)
		return;
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	while (fgets(line, sizeof(line), maps))
		unmap_pages(line, st.st_ino, facts.used_bytes);
	fclose(maps);
}
