/*
 * created.c - which process made which item, lately: for temporary names.
 *
 * Ids are given out in order, so a table indexed by their low bits holds the
 * last few thousand items made, in bounded memory. What it forgets is not
 * temporary, that is, it goes to the trash.
 */
#include "lifecycle/internal.h"

int created_init(struct created *c)
{
	pthread_mutex_init(&c->mutex, NULL);
	c->entries = calloc(CREATED_SIZE, sizeof(*c->entries));
	return c->entries ? 0 : -ENOMEM;
}

void created_release(struct created *c)
{
	pthread_mutex_destroy(&c->mutex);
	free(c->entries);
}

static struct created_entry *created_slot(struct created *c, uint64_t id)
{
	return &c->entries[id & (CREATED_SIZE - 1)];
}

void lifecycle_note_created(struct lifecycle *l, const struct actor *actor, uint64_t id)
{
	struct created_entry *slot = created_slot(&l->created, id);

	/* A process without a known start could be another one under the same number. */
	if (!actor->pid || !actor->start)
		return;
	pthread_mutex_lock(&l->created.mutex);
	*slot = (struct created_entry){
		.id = id,
		.start = actor->start,
		.boot_ns = clock_boot_ns(store_clock(l->store)),
		.pid = actor->pid,
	};
	pthread_mutex_unlock(&l->created.mutex);
}

void lifecycle_note_renamed(struct lifecycle *l, uint64_t id)
{
	struct created_entry *slot = created_slot(&l->created, id);

	pthread_mutex_lock(&l->created.mutex);
	if (slot->id == id)
		slot->id = 0;
	pthread_mutex_unlock(&l->created.mutex);
}

bool created_by(struct lifecycle *l, const struct actor *actor, uint64_t id, int64_t within_ns)
{
	const struct created_entry *slot = created_slot(&l->created, id);
	int64_t boot_ns = clock_boot_ns(store_clock(l->store));
	bool same;

	pthread_mutex_lock(&l->created.mutex);
	same = slot->id == id && slot->pid == actor->pid && slot->start == actor->start &&
	       boot_ns - slot->boot_ns <= within_ns;
	pthread_mutex_unlock(&l->created.mutex);
	return same;
}
