/*
 * space.c - see space.h.
 */
#include "store/space.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/util.h"

/* A random change copies a leaf page and a share of the branches above it: 6.4 MiB were measured for 1,000. */
#define COST_PER_ITEM 6656
/* Runs that are let go are listed next to each other, and forgotten in the commit that follows. */
#define COST_PER_CHUNK 384
#define COST_BASE (UINT64_C(256) << 10)
/* Allocated beyond the reserve while the disk has it: two full generations of 8,000 items. */
#define ROOM_MAX (UINT64_C(108) << 20)
#define ROOM_MIN (UINT64_C(16) << 20)
#define STEP_MIN (UINT64_C(1) << 20)

void space_init(struct space *s, int fd)
{
	*s = (struct space){ .fd = fd };
}

uint64_t space_reserve(const struct space *s)
{
	return SPACE_CHECKPOINTS + SPACE_PER_ITEM * s->entries;
}

/* Blocks ahead and free pages inside; of these a quarter is not counted, since large values need neighbours. */
static uint64_t available(const struct space *s)
{
	uint64_t end = util_min(s->allocated, s->map);

	return (end > s->used ? end - s->used : 0) + s->inside / 4 * 3;
}

static uint64_t wanted_room(const struct space *s)
{
	uint64_t room = util_max(s->used, ROOM_MIN);

	return util_min(room, ROOM_MAX);
}

/* Halves what it asks for until the disk agrees. */
static void allocate_to(struct space *s, uint64_t to)
{
	struct stat st;

	while (to >= s->allocated + STEP_MIN) {
		if (fallocate(s->fd, FALLOC_FL_KEEP_SIZE, (off_t)s->allocated,
			      (off_t)(to - s->allocated)) == 0) {
			s->allocated = to;
			return;
		}
		if (errno == EOPNOTSUPP || errno == ENOSYS) {
			s->unsupported = true;
			return;
		}
		/* Part of it may have been given. */
		if (fstat(s->fd, &st) == 0) {
			uint64_t given = util_min((uint64_t)st.st_blocks * 512, to);

			s->allocated = util_max(s->allocated, given);
		}
		to = s->allocated + (to - s->allocated) / 2;
	}
}

static void estimate(struct space *s)
{
	struct statvfs vfs;

	if (fstatvfs(s->fd, &vfs) == 0)
		s->allocated = s->used + (uint64_t)vfs.f_bavail * vfs.f_frsize / 2;
}

void space_refresh(struct space *s, const struct index_facts *facts)
{
	uint64_t to;

	s->used = facts->used_bytes;
	s->inside = facts->free_bytes;
	s->entries = facts->entries;
	s->map = facts->map_bytes;
	s->allocated = util_max(s->allocated, s->used);
	to = s->used + space_reserve(s) + wanted_room(s);
	if (!s->unsupported)
		allocate_to(s, util_min(to, s->map));
	if (s->unsupported)
		estimate(s);
}

bool space_tight(const struct space *s)
{
	return available(s) < space_reserve(s) + wanted_room(s);
}

static uint64_t cost(const struct space *s, const struct space_pending *p)
{
	uint64_t by_items = (uint64_t)p->items * COST_PER_ITEM;
	uint64_t by_chunks = (uint64_t)p->chunks * COST_PER_CHUNK;
	/* No checkpoint copies more than there is, and what it adds came from memory. */
	uint64_t by_bytes = s->used + 2 * (uint64_t)p->bytes;

	return p->items ? COST_BASE + util_min(by_items, by_bytes) + by_chunks : 0;
}

bool space_admits(const struct space *s, enum store_purpose purpose,
		  const struct space_pending pending[2])
{
	uint64_t needed = cost(s, &pending[0]) + cost(s, &pending[1]);
	uint64_t items = pending[0].items + pending[1].items;

	if (purpose == STORE_GROWING)
		needed += space_reserve(s) + SPACE_PER_ITEM * items;
	return needed <= available(s);
}

bool space_presses(const struct space *s, const struct space_pending *open)
{
	uint64_t a = available(s), reserve = space_reserve(s);
	uint64_t room = a > reserve ? a - reserve : 0;

	return cost(s, open) > util_max(room / 2, a / 4);
}
