/*
 * engine-local-sync.c - durability on request and by the clock: the group sync,
 * and the thread that syncs and checkpoints.
 *
 * Group sync: one leader for all who wait. Under the commit lock it takes S, the
 * last transaction; then it syncs every segment that was written, then the
 * journals. Everything up to S is durable then: all data that a record up to S
 * names was written before the record. The journal is one stream, so syncing
 * only the segments of one's own file would make records of other files durable
 * whose data is not.
 *
 * The thread's rhythm: sync 1 s after the first change; checkpoint when the
 * generation is full, 30 s after its first change, 5 s after the last, 1 s after
 * a body was freed. Memory is given back 5 s after it was used. Without changes it
 * touches no disk, and without requests it sleeps.
 */
#include "store/engine-local.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "store/guard.h"
#include "store/last-words.h"

#define SECOND_NS INT64_C(1000000000)
#define SYNC_AFTER_NS SECOND_NS
#define CHECKPOINT_AFTER_NS (30 * SECOND_NS)
#define CHECKPOINT_IDLE_NS (5 * SECOND_NS)
#define CHECKPOINT_FREED_NS SECOND_NS
#define REST_AFTER_NS (5 * SECOND_NS)
#define RETRY_AFTER_NS SECOND_NS /* after a checkpoint that failed */

static int64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * SECOND_NS + t.tv_nsec;
}

int64_t local_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

int local_fail(struct engine_local *e, int error, const char *words)
{
	int none = 0;

	/* The words first: whoever sees the error finds them. */
	if (!e->error)
		e->problem = words;
	if (atomic_compare_exchange_strong(&e->error, &none, error))
		last_words_leave(e->dir_fd, words);
	pthread_mutex_lock(&e->control_lock);
	pthread_cond_broadcast(&e->wake);
	pthread_cond_broadcast(&e->done);
	pthread_mutex_unlock(&e->control_lock);
	return -EIO;
}

int local_fail_journal(struct engine_local *e, int error)
{
	return local_fail(e, error,
			  error == -ENOENT ? "the store's files were removed while it was in use" :
					     "the journal could not be synced to the disk");
}

/* ---- the group sync ----------------------------------------------------- */

static int sync_journals(struct engine_local *e, const bool files[JOURNAL_FILES], unsigned current)
{
	int r = 0;

	/* The older one first: a cut in it would end the log before the newer. */
	if (files[!current])
		r = journal_sync(e->journal, !current);
	if (r == 0 && files[current])
		r = journal_sync(e->journal, current);
	return r;
}

/* Tells the journal how far it is durable, so that damage below is known for what it is. Best effort. */
static void append_mark(struct engine_local *e, uint64_t seq)
{
	pthread_mutex_lock(&e->commit);
	if (!e->error && journal_room(e->journal) >= journal_record_size(0) &&
	    journal_append(e->journal, JOURNAL_MARK, e->last_seq, seq, "", 0) == -EROFS)
		local_fail(e, -EIO, "a journal record could neither be written nor taken back");
	pthread_mutex_unlock(&e->commit);
}

static int lead(struct engine_local *e, uint64_t *ret_seq)
{
	bool files[JOURNAL_FILES];
	unsigned current;
	uint64_t seq;
	int r;

	pthread_mutex_lock(&e->commit);
	atomic_store(&e->unsynced_ns, 0);
	seq = e->last_seq;
	current = journal_current(e->journal);
	memcpy(files, e->journal_dirty, sizeof(files));
	memset(e->journal_dirty, 0, sizeof(e->journal_dirty));
	pthread_mutex_unlock(&e->commit);
	r = segments_sync(e->segments, false);
	if (r < 0)
		return local_fail(e, r, "file data could not be synced to the disk");
	r = sync_journals(e, files, current);
	if (r < 0)
		return local_fail_journal(e, r);
	e->syncs++;
	*ret_seq = seq;
	return 0;
}

/* Under the group's lock, which is let go meanwhile. */
static int lead_group(struct engine_local *e)
{
	uint64_t seq = 0;
	int r;

	e->group_leads = true;
	pthread_mutex_unlock(&e->group_lock);
	r = lead(e, &seq);
	pthread_mutex_lock(&e->group_lock);
	if (r == 0 && seq > e->durable_seq)
		e->durable_seq = seq;
	e->group_leads = false;
	pthread_cond_broadcast(&e->group_done);
	return r;
}

int local_sync_to(struct engine_local *e, uint64_t seq)
{
	bool led = false;
	int r = 0;

	pthread_mutex_lock(&e->group_lock);
	while (r == 0 && e->durable_seq < seq) {
		if (e->error)
			r = -EIO;
		else if (e->group_leads)
			pthread_cond_wait(&e->group_done, &e->group_lock);
		else
			led = (r = lead_group(e)) == 0;
	}
	if (e->error)
		r = -EIO;
	seq = e->durable_seq;
	pthread_mutex_unlock(&e->group_lock);
	if (led)
		append_mark(e, seq);
	return r;
}

int local_sync(struct engine *engine)
{
	struct engine_local *e = local_of(engine);
	uint64_t seq;

	if (e->read_only)
		return 0;
	pthread_mutex_lock(&e->commit);
	seq = e->last_seq;
	pthread_mutex_unlock(&e->commit);
	return local_sync_to(e, seq);
}

/* ---- asking the thread --------------------------------------------------- */

void local_wake(struct engine_local *e)
{
	pthread_mutex_lock(&e->control_lock);
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->control_lock);
}

void local_checkpoint_request(struct engine_local *e)
{
	pthread_mutex_lock(&e->control_lock);
	if (!e->control.requested) {
		e->control.requested = true;
		pthread_cond_signal(&e->wake);
	}
	pthread_mutex_unlock(&e->control_lock);
}

bool local_checkpoint_asked(struct engine_local *e)
{
	bool asked;

	pthread_mutex_lock(&e->control_lock);
	asked = e->control.requested;
	pthread_mutex_unlock(&e->control_lock);
	return asked;
}

int local_checkpoint_wait(struct engine_local *e, bool drain)
{
	struct local_control *c = &e->control;
	uint64_t mine;
	int r = 0;

	pthread_mutex_lock(&e->control_lock);
	mine = ++c->requests;
	c->requested = true;
	c->drain = c->drain || drain;
	pthread_cond_signal(&e->wake);
	while (c->finished < mine && !e->error && !c->stop)
		pthread_cond_wait(&e->done, &e->control_lock);
	r = c->finished >= mine ? c->result : -EIO;
	pthread_mutex_unlock(&e->control_lock);
	return e->error ? -EIO : r;
}

int local_checkpoint(struct engine *engine)
{
	struct engine_local *e = local_of(engine);

	return e->read_only ? 0 : local_checkpoint_wait(e, true);
}

uint64_t local_rotations(struct engine_local *e)
{
	uint64_t rotations;

	pthread_mutex_lock(&e->control_lock);
	rotations = e->control.rotations;
	pthread_mutex_unlock(&e->control_lock);
	return rotations;
}

int local_rotation_wait(struct engine_local *e, uint64_t seen)
{
	struct local_control *c = &e->control;
	uint64_t failures, mine;
	int r = 0;

	pthread_mutex_lock(&e->control_lock);
	mine = ++c->requests;
	c->requested = true;
	pthread_cond_signal(&e->wake);
	failures = c->failures;
	/* An empty generation is not sealed: then the checkpoint ends, and that is all. */
	while (c->rotations == seen && c->failures == failures && c->finished < mine && !e->error &&
	       !c->stop)
		pthread_cond_wait(&e->done, &e->control_lock);
	if (c->rotations == seen && c->failures != failures)
		r = c->result;
	else if (c->rotations == seen && c->finished < mine)
		r = -EIO;
	pthread_mutex_unlock(&e->control_lock);
	return e->error ? -EIO : r;
}

/* ---- the thread ----------------------------------------------------------- */

static void earliest(int64_t *due_ns, int64_t since_ns, int64_t after_ns)
{
	if (since_ns && (!*due_ns || since_ns + after_ns < *due_ns))
		*due_ns = since_ns + after_ns;
}

/* When the next checkpoint is due by the clock, 0 = not at all. */
static int64_t checkpoint_due(struct engine_local *e)
{
	int64_t due_ns = 0, idle_ns = 0;

	if (e->first_ns) {
		earliest(&due_ns, e->first_ns, CHECKPOINT_AFTER_NS);
		earliest(&idle_ns, e->last_ns, CHECKPOINT_IDLE_NS);
		due_ns = util_min(due_ns, idle_ns);
	}
	earliest(&due_ns, e->freed_ns, CHECKPOINT_FREED_NS);
	earliest(&due_ns, e->forget_ns, CHECKPOINT_FREED_NS);
	/* A disk that refused is asked again, by the clock too, but not at once. */
	return e->failed_ns ? e->failed_ns + RETRY_AFTER_NS : due_ns;
}

static void wait_until(struct engine_local *e, int64_t due_ns)
{
	struct timespec until = { .tv_sec = due_ns / SECOND_NS, .tv_nsec = due_ns % SECOND_NS };

	if (due_ns)
		pthread_cond_timedwait(&e->wake, &e->control_lock, &until);
	else
		pthread_cond_wait(&e->wake, &e->control_lock);
}

static int64_t rest_due(struct engine_local *e)
{
	int64_t due_ns = 0;

	earliest(&due_ns, e->touched_ns ? e->touched_ns : e->rested_ns, REST_AFTER_NS);
	return due_ns;
}

enum work {
	WORK_CHECKPOINT,
	WORK_SYNC,
	WORK_REST,
};

/* Sleeps until there is something to do. Under the control lock. */
static enum work wait_for_work(struct engine_local *e)
{
	struct local_control *c = &e->control;

	for (;;) {
		int64_t now_ns = clock_ns(CLOCK_MONOTONIC), checkpoint_ns = checkpoint_due(e),
			sync_ns = 0, due_ns = rest_due(e);

		if (c->requested || c->stop)
			return WORK_CHECKPOINT;
		if (!e->error) {
			earliest(&sync_ns, e->unsynced_ns, SYNC_AFTER_NS);
			if (checkpoint_ns && checkpoint_ns <= now_ns)
				return WORK_CHECKPOINT;
			if (sync_ns && sync_ns <= now_ns)
				return WORK_SYNC;
			earliest(&due_ns, checkpoint_ns, 0);
			earliest(&due_ns, sync_ns, 0);
		}
		if (rest_due(e) && rest_due(e) <= now_ns)
			return WORK_REST;
		wait_until(e, due_ns);
	}
}

static int checkpoint(struct engine_local *e, bool drain)
{
	int r = e->error ? -EIO : local_checkpoint_run(e);

	if (r == 0)
		r = drain ? local_free_drain(e) : local_free_punch(e, false);
	e->failed_ns = r < 0 ? clock_ns(CLOCK_MONOTONIC) : 0;
	return r;
}

/* Under the control lock, which is let go meanwhile. */
static void answer_requests(struct engine_local *e)
{
	struct local_control *c = &e->control;
	uint64_t requests = c->requests;
	bool drain = c->drain;
	int r;

	c->requested = c->drain = false;
	pthread_mutex_unlock(&e->control_lock);
	r = checkpoint(e, drain);
	pthread_mutex_lock(&e->control_lock);
	c->finished = requests;
	c->result = r;
	c->failures += r < 0;
	pthread_cond_broadcast(&e->done);
}

static void sync_by_clock(struct engine_local *e)
{
	pthread_mutex_unlock(&e->control_lock);
	(void)local_sync(&e->engine);
	pthread_mutex_lock(&e->control_lock);
}

static void rest(struct engine_local *e)
{
	pthread_mutex_unlock(&e->control_lock);
	local_rest(e);
	pthread_mutex_lock(&e->control_lock);
}

static void *run(void *data)
{
	struct engine_local *e = data;

	guard_fatal(true);
	pthread_mutex_lock(&e->control_lock);
	while (!e->control.stop) {
		switch (wait_for_work(e)) {
		case WORK_CHECKPOINT:
			if (!e->control.stop)
				answer_requests(e);
			break;
		case WORK_SYNC:
			sync_by_clock(e);
			break;
		case WORK_REST:
			rest(e);
			break;
		}
	}
	pthread_cond_broadcast(&e->done);
	pthread_mutex_unlock(&e->control_lock);
	guard_fatal(false);
	return NULL;
}

/* Signals are for whoever runs the store: but for those that its own reads raise, this thread takes none. */
int local_thread_start(struct engine_local *e)
{
	sigset_t others, old;
	int r;

	sigfillset(&others);
	sigdelset(&others, SIGBUS);
	sigdelset(&others, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &others, &old);
	r = pthread_create(&e->thread, NULL, run, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	e->thread_runs = r == 0;
	if (r == 0)
		(void)pthread_setname_np(e->thread, "checkpoint");
	return -r;
}

void local_thread_stop(struct engine_local *e)
{
	if (!e->thread_runs)
		return;
	pthread_mutex_lock(&e->control_lock);
	e->control.stop = true;
	pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->control_lock);
	pthread_join(e->thread, NULL);
	e->thread_runs = false;
}
