/*
 * actor.c - reads /proc/THREAD/stat and, of processes with several threads,
 * status; keeps the last few answers.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "fs/actor.h"
#include "store/util.h"

#define ACTORS 64
#define KEEP_NS (CLOCK_SECOND_NS / 4)
#define PAUSE_NS \
	(300 * CLOCK_SECOND_NS / 1000000) /* no program is executed and asks for something in less */

struct known {
	int64_t until_ns;
	int64_t asked_ns; /* last */
	uint32_t thread;
	struct actor actor;
};

struct actor_cache {
	pthread_mutex_t lock;
	struct known known[ACTORS]; /* by thread id */
};

int actor_cache_new(struct actor_cache **ret_cache)
{
	struct actor_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	*ret_cache = c;
	return 0;
}

void actor_cache_free(struct actor_cache *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * CLOCK_SECOND_NS + t.tv_nsec;
}

/* The file's beginning as a string; false if there is none. */
static bool read_proc(uint32_t id, const char *file, char *buffer, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", id, file);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, buffer, size - 1);
	if (n <= 0)
		return false;
	buffer[n] = '\0';
	return true;
}

static uint32_t read_process(uint32_t thread)
{
	char text[512];
	unsigned process = 0;

	if (read_proc(thread, "status", text, sizeof(text))) {
		const char *line = strstr(text, "\nTgid:");

		if (line && sscanf(line, "\nTgid: %u", &process) != 1)
			process = 0;
	}
	return process;
}

/* The number in field `wanted`; *at, before the one counted by *field, moves on to it. NULL there: there is no such field. */
static unsigned long long stat_field(const char **at, int *field, int wanted)
{
	for (; *at && *field < wanted; (*field)++)
		*at = strchr(*at + 1, ' ');
	return *at ? strtoull(*at, NULL, 10) : 0;
}

/*
 * proc(5): pid (comm) state ppid pgrp session ...; the 22nd is starttime, the
 * 28th startstack, which tells the programs apart that one process executes one
 * after the other: `sh -c "echo >f; rm f"` ends as rm, which did not make f. The
 * command may contain anything but NUL.
 */
static bool read_stat(struct actor *actor, unsigned *ret_threads)
{
	char text[1024];
	int field = 2;

	if (!read_proc(actor->pid, "stat", text, sizeof(text)))
		return false;
	char *open = strchr(text, '(');
	char *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return false;
	const char *at = close;
	unsigned group = (unsigned)stat_field(&at, &field, 5);
	unsigned session = (unsigned)stat_field(&at, &field, 6);
	unsigned threads = (unsigned)stat_field(&at, &field, 20);
	unsigned long long start = stat_field(&at, &field, 22);
	unsigned long long stack = stat_field(&at, &field, 28);
	if (!at)
		return false;
	size_t length = util_min((size_t)(close - open - 1), (size_t)ITEM_COMMAND_MAX);
	memcpy(actor->command, open + 1, length);
	actor->command[length] = '\0';
	actor->group = group;
	actor->session = session;
	actor->start = (start ^ stack << 16) | 1;
	*ret_threads = threads;
	return true;
}

/* The only thread of a process bears its id; of others, the process must be asked for. */
static void read_actor(uint32_t thread, struct actor *actor)
{
	unsigned threads;

	actor->pid = thread;
	if (!read_stat(actor, &threads)) {
		actor->pid = 0;
		return;
	}
	if (threads == 1)
		return;
	actor->pid = read_process(thread);
	if (actor->pid != thread && !read_stat(actor, &threads))
		actor->start = 0;
}

static bool find_known(struct actor_cache *c, uint32_t thread, const struct actor *actor,
		       int64_t now, struct actor *ret_actor)
{
	struct known *k = &c->known[thread % ACTORS];
	bool found;

	pthread_mutex_lock(&c->lock);
	found = k->thread == thread && k->actor.uid == actor->uid && k->actor.gid == actor->gid &&
		now < k->until_ns && now - k->asked_ns < PAUSE_NS;
	if (found) {
		k->asked_ns = now;
		*ret_actor = k->actor;
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

void actor_find(struct actor_cache *c, uint32_t thread, uint32_t uid, uint32_t gid, struct actor *ret_actor)
{
	struct known known = { .thread = thread, .actor = { .uid = uid, .gid = gid } };
	int64_t now = now_ns();

	if (thread != 0 && find_known(c, thread, &known.actor, now, ret_actor))
		return;
	if (thread != 0)
		read_actor(thread, &known.actor);
	*ret_actor = known.actor;
	known.asked_ns = now;
	known.until_ns = now + KEEP_NS;
	pthread_mutex_lock(&c->lock);
	c->known[thread % ACTORS] = known;
	pthread_mutex_unlock(&c->lock);
}
