#include "tools/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/control.h"
#include "store/util.h"
#include "tools/child.h"
#include "tools/interrupt.h"
#include "tools/print.h"

#define KILLED_MS 500

struct answer {
	int error; /* an errno */
	pid_t pid;
};

/* "pid" of the last line of a job's output. */
static pid_t find_pid(const struct buffer *b)
{
	json_t *line = json_loadb((const char *)b->bytes, b->size, JSON_DISABLE_EOF_CHECK, NULL);
	json_int_t pid = json_integer_value(json_object_get(json_object_get(line, "result"), "pid"));

	json_decref(line);
	return (pid_t)pid;
}

/* Status is one line: no progress, no rows. */
static int ask(int fd, struct answer *answer)
{
	static const char request[] = "{\"verb\": \"status\"}";
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	struct buffer b = { 0 };
	int error = m ? 0 : ENOMEM;

	if (m) {
		m->size = sizeof(request) - 1;
		memcpy(m->text, request, m->size);
	}
	while (!error && !m->done) {
		if (ioctl(fd, CONTROL_CALL, m) < 0)
			error = errno;
		else
			buffer_append(&b, m->text, util_min((size_t)m->size, sizeof(m->text)));
		m->size = 0;
	}
	if (!error)
		answer->pid = find_pid(&b);
	buffer_release(&b);
	return error;
}

static void __attribute__((noreturn)) child(const char *point, int pipe)
{
	struct answer answer = { 0 };
	_cleanup_free_ char *control = print_format("%s/" CONTROL_DIRECTORY "/" CONTROL_FILE, point);
	int fd = open(control, O_RDONLY | O_CLOEXEC);

	answer.error = fd < 0 ? errno : ask(fd, &answer);
	if (write(pipe, &answer, sizeof(answer)) < 0)
		_exit(1);
	_exit(0);
}

static enum probe judge(int error)
{
	switch (error) {
	case 0:
		return PROBE_ANSWERS;
	case ENOTCONN:
	case ECONNABORTED:
		return PROBE_DEAD;
	case EACCES:
	case EPERM:
		return PROBE_CLOSED;
	default:
		return PROBE_FAILED;
	}
}

enum probe probe_mount(const char *point, pid_t *ret_pid)
{
	struct answer answer = { 0 };
	struct pollfd p = { .events = POLLIN };
	enum probe result = PROBE_HANGS;
	int pipes[2];
	pid_t pid;

	*ret_pid = 0;
	if (pipe2(pipes, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		return PROBE_FAILED;
	if (pid == 0) {
		interrupt_unblock();
		child(point, pipes[1]);
	}
	close(pipes[1]);
	p.fd = pipes[0];
	if (poll(&p, 1, PROBE_SECONDS * 1000) > 0) {
		result = read(pipes[0], &answer, sizeof(answer)) == sizeof(answer) ?
				 judge(answer.error) :
				 PROBE_FAILED;
		*ret_pid = answer.pid;
	}
	close(pipes[0]);
	/* Waiting for a FUSE answer ends by SIGKILL; if even that hangs, the child is init's. */
	kill(pid, SIGKILL);
	child_ends(pid, KILLED_MS, NULL);
	return result;
}
