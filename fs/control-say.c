/*
 * control-say.c - what a job says to whoever asked for it.
 *
 * Saying something only appends, and never waits: a job may hold a lock of
 * lifecycle's. Listings, which could say without end, wait for room between two
 * pages (job_throttle).
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

/* Without a call, after which nobody will ask any more: of a process that lives, of one not known. */
#define SILENCE_NS (3600 * CLOCK_SECOND_NS)
#define SILENCE_UNKNOWN_NS (60 * CLOCK_SECOND_NS)
#define LOOK_NS \
	(2 * CLOCK_SECOND_NS) /* how often a job that waits looks whether its caller lives */
#define OUTPUT_HIGH (256u << 10) /* a listing waits above this */
#define OUTPUT_MAX (32u << 20) /* unread: further rows are dropped, not its result */

int64_t job_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

void job_wait_until(struct job *j, int64_t deadline_ns)
{
	const struct timespec deadline = { deadline_ns / CLOCK_SECOND_NS, deadline_ns % CLOCK_SECOND_NS };

	pthread_cond_timedwait(&j->changed, &j->control->lock, &deadline);
}

/* A reader may stop for long at a pager's page, so its life counts. */
bool job_is_abandoned(const struct job *j)
{
	int64_t silence = job_clock_ns() - j->asked_ns;

	if (!j->actor.pid)
		return silence > SILENCE_UNKNOWN_NS;
	return silence > SILENCE_NS || (kill((pid_t)j->actor.pid, 0) < 0 && errno == ESRCH);
}

/* ---- what a job says ----------------------------------------------------------- */

/* Room for `size` bytes more, what was fetched being forgotten. */
static bool make_room(struct job *j, size_t size)
{
	size_t capacity;
	char *output;

	if (j->at && j->at >= j->size) {
		memmove(j->output, j->output + j->at, j->size);
		j->at = 0;
	}
	if (j->at + j->size + size <= j->capacity)
		return true;
	capacity = util_max(j->capacity * 2, j->at + j->size + size + 4096);
	output = realloc(j->output, capacity);
	if (!output)
		return false;
	j->output = output;
	j->capacity = capacity;
	return true;
}

/* With the lock held. A job that finds no memory for its words goes on. */
static void append(struct job *j, const char *line, size_t size)
{
	if (!make_room(j, size + 1))
		return;
	memcpy(j->output + j->at + j->size, line, size);
	j->output[j->at + j->size + size] = '\n';
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
	bool full;

	pthread_mutex_lock(&j->control->lock);
	full = j->size > OUTPUT_MAX;
	pthread_mutex_unlock(&j->control->lock);
	if (full)
		json_decref(row);
	else
		say(j, json_pack("{so}", "row", row));
}

bool job_cancelled(struct job *j)
{
	bool cancelled;

	pthread_mutex_lock(&j->control->lock);
	if (job_is_abandoned(j))
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
		job_wait_until(j, job_clock_ns() + LOOK_NS);
		j->cancelled = j->cancelled || job_is_abandoned(j);
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

const char *job_type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

bool job_flag(const struct job *j, const char *key)
{
	return json_is_true(json_object_get(j->request, key));
}

int64_t job_number(const struct job *j, const char *key)
{
	return json_integer_value(json_object_get(j->request, key));
}
