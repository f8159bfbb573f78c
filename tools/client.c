#include "tools/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/bytes.h"
#include "store/util.h"
#include "tools/interrupt.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/watch.h"

static int fail_resolve(const struct arguments *a, const char *path, int error)
{
	_cleanup_free_ char *quoted = print_quoted(path ? path : "the working directory");

	switch (error) {
	case -ENOTCONN:
		return cmd_fail(a, EXIT_FAILED,
				"%s: in a mount whose daemon is dead; unmount it with 'ddbfs umount' and mount it again",
				quoted);
	case -ENOENT:
		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not there; if it was removed, do: cd \"$PWD\"", quoted);
	case -EINVAL:
		return cmd_fail(a, EXIT_USAGE,
				"%s: has '..' behind a name that does not exist; give the path without it",
				quoted);
	default:
		return cmd_fail(a, EXIT_FAILED, "%s: %s", quoted, strerror(-error));
	}
}

/* The mount and inner path of `path`. */
static int locate(const struct arguments *a, const char *path, bool follow, struct mount *ret_mount,
		  char **ret_inner)
{
	_cleanup_free_ char *resolved = NULL;
	int result = mounts_resolve(path ? path : ".", follow, &resolved);

	if (result < 0)
		return fail_resolve(a, path, result);
	result = mounts_locate(resolved, ret_mount, ret_inner);
	if (result < 0)
		return cmd_fail(a, EXIT_FAILED, "/proc/self/mountinfo: %s", strerror(-result));
	if (result == 0) {
		_cleanup_free_ char *quoted = print_quoted(resolved);

		return cmd_fail(a, EXIT_NOT_FOUND,
				"%s: not inside a mounted ddbfs; give a path in one", quoted);
	}
	return EXIT_DONE;
}

static int fail_control(const struct client *c, int error)
{
	_cleanup_free_ char *quoted = print_quoted(c->mount.point);

	switch (error) {
	case ENOTCONN:
	case ECONNABORTED:
		return cmd_fail(c->arguments, EXIT_FAILED,
				"%s: its daemon is dead; unmount it with 'ddbfs umount' and mount it again",
				quoted);
	case EACCES:
		return cmd_fail(c->arguments, EXIT_FAILED,
				"%s: only the user who mounted it may use it (it was mounted without allow_other)",
				quoted);
	case ENOTTY:
	case ENOSYS:
		return cmd_fail(c->arguments, EXIT_FAILED,
				"%s: its daemon does not know this request; it is of another version: mount it again",
				quoted);
	case EAGAIN:
		return cmd_fail(c->arguments, EXIT_FAILED,
				"%s: too many requests are running; try again later", quoted);
	default:
		return cmd_fail(c->arguments, EXIT_FAILED, "%s: the daemon does not answer: %s",
				quoted, strerror(error));
	}
}

int client_open(const struct arguments *a, const char *path, bool follow, struct client *ret_client)
{
	struct client c = { .arguments = a, .fd = -1 };
	_cleanup_free_ char *control = NULL;
	int code;

	watch_ask(a);
	code = locate(a, path, follow, &c.mount, &c.inner);
	if (code != EXIT_DONE)
		return code;
	control = print_format("%s/" CONTROL_DIRECTORY "/" CONTROL_FILE, c.mount.point);
	if ((c.fd = open(control, O_RDONLY | O_CLOEXEC)) < 0)
		code = fail_control(&c, errno);
	watch_beat(a);
	if (code != EXIT_DONE)
		client_close(&c);
	else
		*ret_client = c;
	return code;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c->inner);
	mount_release(&c->mount);
	*c = (struct client){ .fd = -1 };
}

int client_path(const struct client *c, const char *path, bool follow, char **ret_inner)
{
	struct mount other = { 0 };
	_cleanup_free_ char *inner = NULL;
	int code = locate(c->arguments, path, follow, &other, &inner);
	bool same = code == EXIT_DONE && other.device == c->mount.device;

	mount_release(&other);
	if (code != EXIT_DONE)
		return code;
	if (!same) {
		_cleanup_free_ char *quoted = print_quoted(path), *point = print_quoted(c->mount.point);

		return cmd_fail(c->arguments, EXIT_USAGE,
				"%s: not in the same mount (%s); use one command for each", quoted,
				point);
	}
	*ret_inner = util_steal(inner);
	return EXIT_DONE;
}

char *client_shown(const struct client *c, const char *inner)
{
	bool is_root = !inner[1];

	if (!c->mount.point[1])
		return print_format("%s", inner);
	return print_format("%s%s", c->mount.point, is_root ? "" : inner);
}

/* ---- a call ---------------------------------------------------------------- */

struct call {
	struct client *client;
	const struct client_events *events;
	struct progress progress;
	struct buffer text; /* an incomplete line */
	json_t *last; /* the line that ended the job */
	int interrupt;
	bool cancelled;
	bool unread; /* nobody reads what is printed: neither need anything be said */
};

static void take_line(struct call *k, const char *line, size_t size)
{
	json_t *object = json_loadb(line, size, 0, NULL);
	json_t *value;

	if ((value = json_object_get(object, "progress"))) {
		if (k->events->what)
			progress_show(&k->progress,
				      (uint64_t)json_integer_value(json_object_get(value, "done")),
				      (uint64_t)json_integer_value(json_object_get(value, "total")));
	} else if ((value = json_object_get(object, "row"))) {
		progress_clear(&k->progress);
		if (k->events->row)
			k->events->row(k->events->data, value);
	} else if (object) {
		json_decref(k->last);
		k->last = json_incref(object);
	}
	json_decref(object);
}

static void take_text(struct call *k, const char *text, size_t size)
{
	const char *end;

	while ((end = memchr(text, '\n', size))) {
		size_t length = (size_t)(end - text);

		buffer_append(&k->text, text, length);
		take_line(k, (const char *)k->text.bytes, k->text.size);
		buffer_reset(&k->text);
		text += length + 1;
		size -= length + 1;
	}
	buffer_append(&k->text, text, size);
}

/* 0 or an errno. */
static int exchange(struct call *k, struct control_message *m)
{
	while (ioctl(k->client->fd, CONTROL_CALL, m) < 0)
		if (errno != EINTR)
			return errno;
	watch_beat(k->client->arguments);
	if (m->size > sizeof(m->text))
		return EPROTO;
	take_text(k, m->text, m->size);
	return k->text.failed ? ENOMEM : 0;
}

static int converse(struct call *k, struct control_message *m)
{
	static const char cancel[] = "{\"cancel\": true}";
	int error = exchange(k, m);

	while (!error && !m->done) {
		m->size = 0;
		/* Also when nobody reads the answer any more, as after `| head`: the daemon need not go on. */
		k->unread = k->unread || print_is_unread();
		if (!k->cancelled && (k->unread || interrupt_seen(k->interrupt))) {
			m->size = sizeof(cancel) - 1;
			memcpy(m->text, cancel, m->size);
			k->cancelled = true;
		}
		if (k->events->what)
			progress_tick(&k->progress);
		error = exchange(k, m);
	}
	progress_clear(&k->progress);
	return error;
}

static int put_request(const struct client *c, json_t *request, struct control_message *m)
{
	size_t size = request ? json_dumpb(request, m->text, sizeof(m->text), JSON_COMPACT) : 0;

	json_decref(request);
	if (!size)
		return cmd_fail(c->arguments, EXIT_FAILED, "out of memory");
	if (size > sizeof(m->text))
		return cmd_fail(c->arguments, EXIT_USAGE, "a path or pattern is too long");
	m->size = (uint32_t)size;
	return EXIT_DONE;
}

/* `before`, the path under KEY as the user sees it, `after`; or nothing, if the line has no such path. malloc'd. */
static char *path_words(const struct client *c, const json_t *line, const char *key,
			const char *before, const char *after)
{
	_cleanup_free_ char *inner = NULL, *shown = NULL, *quoted = NULL;

	if (bytes_from_json(line, key, &inner))
		return print_format("%s", "");
	shown = client_shown(c, inner);
	quoted = print_quoted(shown);
	return print_format("%s%s%s", before, quoted, after);
}

static void say_error(const struct client *c, const json_t *line, int code)
{
	_cleanup_free_ char *path = path_words(c, line, "path", "", ": ");
	_cleanup_free_ char *in_way = path_words(c, line, "in_way", ": ", "");
	_cleanup_free_ char *words = NULL;

	if (bytes_from_json(line, "error", &words) == 0)
		cmd_fail(c->arguments, code, "%s%s%s", path, words, in_way);
}

/* The exit code of the last line, and what it says if that is an error. */
static int finish(struct call *k, json_t **ret_result)
{
	json_t *result = json_object_get(k->last, "result");
	int code = (int)json_integer_value(json_object_get(k->last, "exit"));

	if (!k->last)
		return cmd_fail(k->client->arguments, EXIT_FAILED, "the daemon gave no answer");
	if (result && ret_result)
		*ret_result = json_incref(result);
	if (result)
		return code;
	if (!k->unread)
		say_error(k->client, k->last, code);
	return code != EXIT_DONE ? code : EXIT_FAILED;
}

int client_call(struct client *c, json_t *request, const struct client_events *events, json_t **ret_result)
{
	static const struct client_events nothing = { 0 };
	_cleanup_free_ struct control_message *m = calloc(1, sizeof(*m));
	struct call k = { .client = c, .events = events ? events : &nothing, .interrupt = -1 };
	int error, code = m ? put_request(c, request, m) :
			      cmd_fail(c->arguments, EXIT_FAILED, "out of memory");

	if (ret_result)
		*ret_result = NULL;
	if (code != EXIT_DONE)
		return code;
	k.interrupt = interrupt_open();
	progress_begin(&k.progress, k.events->what);
	error = converse(&k, m);
	code = error ? fail_control(c, error) : finish(&k, ret_result);
	if (k.interrupt >= 0)
		close(k.interrupt);
	json_decref(k.last);
	buffer_release(&k.text);
	return code;
}
