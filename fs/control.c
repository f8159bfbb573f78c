/*
 * control.c - jobs: one thread each, whose output is fetched piece by piece.
 *
 * A job lives from the call that starts it to the call that fetches its last
 * line, or until nobody will do that any more.
 */
#include "fs/access.h"
#include "fs/control-internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "store/util.h"

#define WAIT_NS (CLOCK_SECOND_NS / 10) /* that a call waits for output */
#define JOBS_MAX 64
#define JOBS_PER_USER 8

static const struct {
	const char *name;
	void (*run)(struct job *j);
} verbs[] = {
	{ "apply", job_apply }, { "batches", job_batches }, { "clock-accept", job_clock_accept },
	{ "df", job_df },	{ "empty", job_empty },	    { "history", job_history },
	{ "list", job_list },	{ "policy", job_policy },   { "restore", job_restore },
	{ "scrub", job_scrub }, { "status", job_status },   { "sweep", job_sweep },
	{ "undo", job_undo },
};

/* ---- a job's life ----------------------------------------------------------------- */

static void *run(void *data)
{
	struct job *j = data;
	const char *verb = json_string_value(json_object_get(j->request, "verb"));
	size_t i = 0;

	while (i < ARRAY_SIZE(verbs) && (!verb || strcmp(verbs[i].name, verb) != 0))
		i++;
	if (i < ARRAY_SIZE(verbs))
		verbs[i].run(j);
	else
		job_error(j, CONTROL_FAILED, NULL,
			  "the daemon does not know this request; it is of another version");
	pthread_mutex_lock(&j->control->lock);
	j->ended = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->control->lock);
	return NULL;
}

/* Its thread is not running (any more). */
static void job_free(struct job *j)
{
	pthread_cond_destroy(&j->changed);
	json_decref(j->request);
	free(j->output);
	free((void *)(uintptr_t)j->actor.groups);
	free(j);
}

/* Nobody but the job asks what the kernel would ask. */
static int may_move(void *data, const struct restore_move *move)
{
	struct job *j = data;

	return access_move(j->control->namei, &j->actor, move);
}

static int copy_actor(const struct actor *actor, struct actor *ret_actor)
{
	uint32_t *groups = calloc(actor->groups_count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	if (actor->groups_count)
		memcpy(groups, actor->groups, actor->groups_count * sizeof(*groups));
	*ret_actor = *actor;
	ret_actor->groups = groups;
	return 0;
}

/* All but the thread. `request` is taken over. */
static int job_new(struct control *c, const struct actor *actor, json_t *request, struct job **ret_job)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_condattr_t attributes;

	if (!j || copy_actor(actor, &j->actor) < 0) {
		json_decref(request);
		free(j);
		return -ENOMEM;
	}
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	j->control = c;
	j->rights = (struct rights){ may_move, j };
	j->actor.rights = &j->rights;
	j->request = request;
	j->asked_ns = job_clock_ns();
	*ret_job = j;
	return 0;
}

/* Signals are for the thread that serves the mount. */
static int start_thread(struct job *j)
{
	sigset_t all, old;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	result = -pthread_create(&j->thread, NULL, run, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return result;
}

/* Takes a job out of the list, with the lock held. */
static void unlink_job(struct control *c, struct job *j)
{
	struct job **at = &c->jobs;

	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
}

/* Jobs that have ended and that nobody asks after. */
static void collect(struct control *c)
{
	struct job *old = NULL, *next;

	pthread_mutex_lock(&c->lock);
	for (struct job *j = c->jobs; j; j = next) {
		next = j->next;
		if (!j->ended || j->callers || !job_is_abandoned(j))
			continue;
		unlink_job(c, j);
		j->next = old;
		old = j;
	}
	pthread_mutex_unlock(&c->lock);
	for (; old; old = next) {
		next = old->next;
		pthread_join(old->thread, NULL);
		job_free(old);
	}
}

static bool too_many(const struct control *c, uint32_t uid)
{
	unsigned all = 0, own = 0;

	for (const struct job *j = c->jobs; j; j = j->next) {
		all++;
		own += j->actor.uid == uid;
	}
	return all >= JOBS_MAX || own >= JOBS_PER_USER;
}

static int start(struct control *c, const struct actor *actor, const struct control_message *m,
		 uint64_t *ret_id)
{
	json_t *request = json_loadb(m->text, m->size, 0, NULL);
	struct job *j;
	int result;

	collect(c);
	if (!json_is_object(request)) {
		json_decref(request);
		return -EINVAL;
	}
	result = job_new(c, actor, request, &j);
	if (result)
		return result;
	pthread_mutex_lock(&c->lock);
	result = too_many(c, actor->uid) ? -EAGAIN : start_thread(j);
	if (!result) {
		*ret_id = j->id = ++c->last_job;
		j->next = c->jobs;
		c->jobs = j;
	}
	pthread_mutex_unlock(&c->lock);
	if (result)
		job_free(j);
	return result;
}

static struct job *find(struct control *c, uint64_t id, uint32_t uid)
{
	struct job *j = c->jobs;

	while (j && (j->id != id || j->actor.uid != uid))
		j = j->next;
	return j;
}

/* With the lock held: moves output into the message. True: those were the last lines. */
static bool fetch(struct job *j, struct control_message *m)
{
	int64_t deadline = job_clock_ns() + WAIT_NS;
	size_t size;

	j->asked_ns = job_clock_ns();
	while (!j->size && !j->ended && job_clock_ns() < deadline)
		job_wait_until(j, deadline);
	size = util_min(j->size, sizeof(m->text));
	if (size) {
		memcpy(m->text, j->output + j->at, size);
		j->at += size;
		j->size -= size;
	}
	pthread_cond_broadcast(&j->changed);
	m->job = j->id;
	m->size = (uint32_t)size;
	m->done = j->ended && !j->size;
	return m->done;
}

/* A call's text beside a job's number: nothing, or the wish to stop it. */
static bool is_cancel(const struct control_message *m)
{
	json_t *request = m->size ? json_loadb(m->text, m->size, 0, NULL) : NULL;
	bool cancel = json_is_true(json_object_get(request, "cancel"));

	json_decref(request);
	return cancel;
}

int control_call(struct control *c, const struct actor *actor, struct control_message *message)
{
	uint64_t id = message->job;
	bool cancel, last = false;
	struct job *j;

	if (message->size > sizeof(message->text))
		return -EINVAL;
	if (!id) {
		int result = start(c, actor, message, &id);

		if (result)
			return result;
	}
	cancel = message->job && is_cancel(message);
	pthread_mutex_lock(&c->lock);
	j = find(c, id, actor->uid);
	if (j) {
		j->cancelled = j->cancelled || cancel;
		j->callers++;
		last = fetch(j, message);
		/* Another call may wait for the same job: the last one takes it away. */
		last = --j->callers == 0 && last;
		if (last)
			unlink_job(c, j);
	}
	pthread_mutex_unlock(&c->lock);
	if (last) {
		pthread_join(j->thread, NULL);
		job_free(j);
	}
	return j ? 0 : -ENOENT;
}

int control_open(struct namei *n, const struct control_host *host, struct control **ret_control)
{
	struct control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->namei = n;
	c->host = *host;
	pthread_mutex_init(&c->lock, NULL);
	*ret_control = c;
	return 0;
}

void control_close(struct control *c)
{
	struct job *next;

	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	for (struct job *j = c->jobs; j; j = j->next) {
		j->cancelled = true;
		pthread_cond_broadcast(&j->changed);
	}
	pthread_mutex_unlock(&c->lock);
	for (struct job *j = c->jobs; j; j = next) {
		next = j->next;
		pthread_join(j->thread, NULL);
		job_free(j);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}
