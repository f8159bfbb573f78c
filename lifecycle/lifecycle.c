/*
 * lifecycle.c - opening and closing, and the lock of the tree.
 *
 * The lock is two mutexes. Whoever wants it holds `turn` while he waits, so that
 * a thread which gives the lock up between the steps of long work and takes it
 * again at once queues behind those who came meanwhile: nobody waits for more
 * than one step. Only one background step stands in that queue. A step is bounded
 * by what it does and, since a disk may take its time, by how long it holds the
 * lock; what it has to read it reads before, and what it wrote is given time to
 * get to its place before the next one, so that it never waits with the lock held.
 */
#include "lifecycle/internal.h"

static const struct lifecycle_hooks no_hooks;

static int lifecycle_init(struct lifecycle *l, struct store *s, const struct lifecycle_hooks *hooks)
{
	int result;

	l->store = s;
	l->hooks = hooks ? *hooks : no_hooks;
	pthread_mutex_init(&l->turn, NULL);
	pthread_mutex_init(&l->background, NULL);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->watch.mutex, NULL);
	hold_init(&l->hold);
	room_init(&l->room);
	result = rules_init(&l->rules);
	if (!result)
		result = within_init(&l->within);
	if (!result)
		result = created_init(&l->created);
	if (!result)
		result = scrub_init(&l->scrub);
	return result ? result : sweeper_init(&l->sweeper);
}

void lifecycle_free(struct lifecycle *l)
{
	while (l->batches) {
		struct open_batch *next = l->batches->next;

		free(l->batches);
		l->batches = next;
	}
	sweeper_release(&l->sweeper);
	scrub_release(&l->scrub);
	watch_release(&l->watch);
	room_release(&l->room);
	caps_release(&l->caps);
	created_release(&l->created);
	rules_release(&l->rules);
	within_release(&l->within);
	hold_release(&l->hold);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->background);
	pthread_mutex_destroy(&l->turn);
	free(l);
}

int lifecycle_open(struct store *s, const struct lifecycle_hooks *hooks, struct lifecycle **ret_lifecycle)
{
	struct lifecycle *l = calloc(1, sizeof(*l));
	struct guard root;
	int result;

	if (!l)
		return -ENOMEM;
	result = lifecycle_init(l, s, hooks);
	if (!result)
		result = record_get_guard(s, KEY_ID_ROOT, &root);
	/* Of a store that is open for reading alone, what these write is left to the next opening. */
	if (!result)
		result = watch_open(l);
	if (!result || result == -EROFS)
		result = batch_recover(l);
	if (result && result != -EROFS) {
		lifecycle_free(l);
		return result == STORE_ABSENT ? -ENOENT : result;
	}
	*ret_lifecycle = l;
	return 0;
}

void lifecycle_close(struct lifecycle *l)
{
	int64_t next_ns;

	if (!l)
		return;
	lifecycle_scrub_stop(l);
	lifecycle_sweeper_stop(l);
	/* What cannot be written now is made up for by the next open: see batch_recover. */
	lifecycle_lock(l);
	batch_close_idle(l, true, &next_ns);
	lifecycle_unlock(l);
	watch_store(l);
	lifecycle_free(l);
}

struct store *lifecycle_store(struct lifecycle *l)
{
	return l->store;
}

void lifecycle_lock(struct lifecycle *l)
{
	pthread_mutex_lock(&l->turn);
	pthread_mutex_lock(&l->lock);
	pthread_mutex_unlock(&l->turn);
}

void lifecycle_lock_background(struct lifecycle *l)
{
	store_yield(l->store);
	pthread_mutex_lock(&l->background);
	lifecycle_lock(l);
	pthread_mutex_unlock(&l->background);
	hold_begin(&l->hold);
}

void lifecycle_unlock(struct lifecycle *l)
{
	hold_end(&l->hold);
	pthread_mutex_unlock(&l->lock);
}

bool lifecycle_hold_is_over(const struct lifecycle *l)
{
	return hold_is_over(&l->hold);
}

void lifecycle_holds(struct lifecycle *l, struct lifecycle_holds *ret_holds)
{
	lifecycle_lock(l);
	*ret_holds = l->hold.seen;
	lifecycle_unlock(l);
}

bool lifecycle_is_busy(struct lifecycle *l, uint64_t id, const struct place *only)
{
	return l->hooks.busy && l->hooks.busy(l->hooks.data, id, only);
}

void lifecycle_notify_changed(struct lifecycle *l, const struct lifecycle_change *change)
{
	if (l->hooks.changed)
		l->hooks.changed(l->hooks.data, change);
}
