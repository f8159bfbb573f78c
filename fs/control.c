/*
 * control.c - jobs: one thread each, whose output is fetched piece by piece.
 *
 * A job never waits for whoever fetches while it holds a lock of lifecycle's:
 * saying something only appends. Listings, which could say without end, wait
 * for room between two pages (job_throttle).
 */
#include "fs/control-internal.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fs/bytes.h"
#include "store/util.h"

#define WAIT_NS (CLOCK_SECOND_NS / 10) /* that a call waits for output */
/* Without a call, after which nobody will ask any more: of a process that lives, of one not known. */
#define SILENCE_NS (3600 * CLOCK_SECOND_NS)
#define SILENCE_UNKNOWN_NS (60 * CLOCK_SECOND_NS)
#define LOOK_NS \
	(2 * CLOCK_SECOND_NS) /* how often a job that waits looks whether its caller lives */
#define OUTPUT_HIGH (256u << 10) /* a listing waits above this */
#define OUTPUT_MAX (64u << 20) /* what a job may have said at most: rows beyond are dropped */
#define JOBS_MAX 64
#define JOBS_PER_USER 8

static const struct {
	const char *name;
	void (*run)(struct job *j);
} verbs[] = {
	{ "batches", job_batches }, { "clock-accept", job_clock_accept },
	{ "df", job_df },	    { "empty", job_empty },
	{ "list", job_list },	    { "policy", job_policy },
	{ "restore", job_restore }, { "status", job_status },
	{ "sweep", job_sweep },	    { "undo", job_undo },
};

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

/* Waits for `changed`, with the lock held, until then at the latest. */
static void wait_until(struct job *j, int64_t deadline_ns)
{
	const struct timespec deadline = { deadline_ns / CLOCK_SECOND_NS, deadline_ns % CLOCK_SECOND_NS };

	pthread_cond_timedwait(&j->changed, &j->control->lock, &deadline);
}

/* Whether nobody will ask after the job any more. A reader may stop for long at a pager's page, so its life counts. */
static bool is_abandoned(const struct job *j)
{
	int64_t silence = monotonic_ns() - j->asked_ns;

	if (!j->actor.pid)
		return silence > SILENCE_UNKNOWN_NS;
	return silence > SILENCE_NS || (kill((pid_t)j->actor.pid, 0) < 0 && errno == ESRCH);
}

/* ---- what a job says ----------------------------------------------------------- */

/* With the lock held. A job that finds no memory for its words goes on. */
static void append(struct job *j, const char *line, size_t size)
{
	if (j->size + size + 1 > OUTPUT_MAX)
		return;
	if (j->size + size + 1 > j->capacity) {
		size_t capacity = util_max(j->capacity * 2, j->size + size + 4096);
		char *output = realloc(j->output, capacity);

		if (!output)
			return;
		j->output = output;
		j->capacity = capacity;
	}
	memcpy(j->output + j->size, line, size);
	j->output[j->size + size] = '\n';
	j->size += size + 1;
	pthread_cond_broadcast(&j->changed);
}

/* Takes the object over. */
static void say(struct job *j, json_t *object)
{
	_cleanup_free_ char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	if (!line)
		return;
	pthread_mutex_lock(&j->control->lock);
	append(j, line, strlen(line));
	pthread_mutex_unlock(&j->control->lock);
}

void job_row(struct job *j, json_t *row)
{
	say(j, json_pack("{so}", "row", row));
}

bool job_cancelled(struct job *j)
{
	bool cancelled;

	pthread_mutex_lock(&j->control->lock);
	if (is_abandoned(j))
		j->cancelled = true;
	cancelled = j->cancelled;
	pthread_mutex_unlock(&j->control->lock);
	return cancelled;
}

bool job_progress(struct job *j, uint64_t done, uint64_t total)
{
	bool unread;

	pthread_mutex_lock(&j->control->lock);
	unread = j->size > 0;
	pthread_mutex_unlock(&j->control->lock);
	/* Only the latest count is of interest: none is said on top of what nobody has fetched yet. */
	if (!unread)
		say(j, json_pack("{s{sI sI}}", "progress", "done", (json_int_t)done, "total",
				 (json_int_t)total));
	return job_cancelled(j);
}

void job_last(struct job *j, json_t *line)
{
	say(j, line);
}

void job_result(struct job *j, int exit, json_t *result)
{
	say(j, json_pack("{so si}", "result", result, "exit", exit));
}

void job_error(struct job *j, int exit, const char *path, const char *format, ...)
{
	json_t *line = json_object();
	char words[512];
	va_list list;

	va_start(list, format);
	vsnprintf(words, sizeof(words), format, list);
	va_end(list);
	bytes_to_json(line, "error", words);
	if (path)
		bytes_to_json(line, "path", path);
	json_object_set_new(line, "exit", json_integer(exit));
	say(j, line);
}

void job_error_errno(struct job *j, const char *path, int result)
{
	switch (result) {
	case -ENOENT:
		job_error(j, CONTROL_NOT_FOUND, path, "not there, neither live nor in the trash");
		break;
	case -ENOTDIR:
		job_error(j, CONTROL_NOT_FOUND, path, "a name on the way is no directory");
		break;
	case -EACCES:
	case -EPERM:
		job_error(j, CONTROL_FAILED, path,
			  "not permitted; only who may delete and create there, or root, can");
		break;
	case -EROFS:
		job_error(j, CONTROL_FAILED, path, "the store takes no changes; 'ddbfs status' says why");
		break;
	case -EIO:
	case -EBADMSG:
		job_error(j, CONTROL_FAILED, path,
			  "damaged, or the disk fails; unmount and run 'ddbfs check'");
		break;
	default:
		job_error(j, CONTROL_FAILED, path, "%s", strerror(-result));
	}
}

bool job_throttle(struct job *j)
{
	bool stop;

	pthread_mutex_lock(&j->control->lock);
	while (j->size > OUTPUT_HIGH && !j->cancelled) {
		wait_until(j, monotonic_ns() + LOOK_NS);
		j->cancelled = j->cancelled || is_abandoned(j);
	}
	stop = j->cancelled;
	pthread_mutex_unlock(&j->control->lock);
	return stop;
}

bool job_refused_read_only(struct job *j)
{
	if (j->control->host.read_only)
		job_error(j, CONTROL_FAILED, NULL, "the mount is read-only; mount it without ro");
	return j->control->host.read_only;
}

void job_settle(struct job *j)
{
	if (j->control->host.settle)
		j->control->host.settle(j->control->host.data);
}

bool job_flag(const struct job *j, const char *key)
{
	return json_is_true(json_object_get(j->request, key));
}

int64_t job_number(const struct job *j, const char *key)
{
	return json_integer_value(json_object_get(j->request, key));
}

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
	j->request = request;
	j->asked_ns = monotonic_ns();
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
		if (!j->ended || j->callers || !is_abandoned(j))
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
	int64_t deadline = monotonic_ns() + WAIT_NS;
	size_t size;

	j->asked_ns = monotonic_ns();
	while (!j->size && !j->ended && monotonic_ns() < deadline)
		wait_until(j, deadline);
	size = util_min(j->size, sizeof(m->text));
	if (size) {
		memcpy(m->text, j->output, size);
		memmove(j->output, j->output + size, j->size - size);
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
