/*
 * actor.c - reads /proc/THREAD/status and /proc/PROCESS/stat, and keeps the
 * last few answers.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "fs/actor.h"
#include "store/util.h"

#define ACTORS 64
#define KEEP_NS (CLOCK_SECOND_NS / 4)

struct known {
	int64_t until_ns;
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

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
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

/* proc(5): pid (comm) state ppid pgrp session ... starttime is the 22nd. The command may contain anything but NUL. */
static void read_stat(struct actor *actor)
{
	char text[1024];
	unsigned group, session;
	unsigned long long start;

	if (!read_proc(actor->pid, "stat", text, sizeof(text)))
		return;
	char *open = strchr(text, '(');
	char *close = strrchr(text, ')');
	if (!open || !close || close < open)
		return;
	if (sscanf(close + 1,
		   " %*c %*d %u %u %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &group, &session, &start) != 3)
		return;
	size_t length = util_min((size_t)(close - open - 1), (size_t)ITEM_COMMAND_MAX);
	memcpy(actor->command, open + 1, length);
	actor->command[length] = '\0';
	actor->group = group;
	actor->session = session;
	actor->start = start;
}

void actor_find(struct actor_cache *c, uint32_t thread, uint32_t uid, uint32_t gid, struct actor *ret_actor)
{
	struct known *k = &c->known[thread % ACTORS];
	int64_t now = now_ns();
	struct actor actor = { .uid = uid, .gid = gid };

	if (thread == 0) {
		*ret_actor = actor;
		return;
	}
	pthread_mutex_lock(&c->lock);
	bool found = k->thread == thread && k->actor.uid == uid && k->actor.gid == gid &&
		     now < k->until_ns;
	if (found)
		*ret_actor = k->actor;
	pthread_mutex_unlock(&c->lock);
	if (found)
		return;
	actor.pid = read_process(thread);
	if (actor.pid != 0)
		read_stat(&actor);
	pthread_mutex_lock(&c->lock);
	*k = (struct known){ .until_ns = now + KEEP_NS, .thread = thread, .actor = actor };
	pthread_mutex_unlock(&c->lock);
	*ret_actor = actor;
}
