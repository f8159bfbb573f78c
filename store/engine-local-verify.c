/*
 * engine-local-verify.c - is the index's structure whole?
 *
 * A page of LMDB has no checksum. Of 3,000 flipped bits 447 made keys vanish
 * without a word, and 172 raised a signal. Walking the whole index with strict
 * order of keys, every key found again from the root, and the number of entries
 * finds all of those that hide keys; seals find the rest. It is done in a child
 * process, which may be killed or run in circles.
 */
#include "store/engine-local.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define SECONDS_MAX 1800 /* a walk in circles ends then */

struct walk {
	const struct keyring *keys;
	struct key_codec codec;
	struct index_reader *rows, *again;
	struct buffer last; /* key before */
	struct buffer value; /* of the key found again */
	struct buffer plain;
	struct local_verdict *verdict;
	uint64_t count;
};

static int say(struct walk *w, const char *text)
{
	w->verdict->damaged = true;
	snprintf(w->verdict->text, sizeof(w->verdict->text), "%s", text);
	return -EBADMSG;
}

static bool is_after(const struct index_row *row, const struct buffer *last)
{
	int order = memcmp(row->key, last->bytes, util_min(row->key_size, last->size));

	return order > 0 || (order == 0 && row->key_size > last->size);
}

static int check_row(struct walk *w, const struct index_row *row)
{
	struct key_parts parts;
	struct value_head head;
	int r;

	if (w->last.size && !is_after(row, &w->last))
		return say(w, "keys of the database are out of order");
	buffer_reset(&w->last);
	buffer_append(&w->last, row->key, row->key_size);
	if (key_parse(&w->codec, row->key, row->key_size, &parts) < 0)
		return say(w, "the database has a key that no program wrote");
	r = index_get(w->again, row->key, row->key_size, 0, &w->value);
	if (r == -ENOMEM)
		return r;
	if (r != 0 || w->value.size != row->value_size ||
	    memcmp(w->value.bytes, row->value, row->value_size))
		return say(w, "an item of the database cannot be found by its key");
	w->count++;
	if (row->value_size < VALUE_HEAD_SIZE || !value_key_holds(row->key, row->key_size, row->value))
		return say(w, "a key of the database is damaged: an item is missing where it was");
	if (value_head(row->value, row->value_size, &head) < 0) {
		w->verdict->unreadable++;
		return 0;
	}
	buffer_reset(&w->plain);
	if (!buffer_append(&w->plain, NULL, (size_t)head.attrs_size + head.content_size + 1))
		return -ENOMEM;
	if (value_unseal(w->keys, row->key, row->key_size, row->value, row->value_size, false,
			 w->plain.bytes) < 0)
		w->verdict->unreadable++;
	return w->last.failed ? -ENOMEM : 0;
}

static int walk_all(struct walk *w, struct index *index)
{
	static const uint8_t lowest[1];
	struct index_facts facts;
	struct index_row row;
	int r = index_facts(index, false, &facts);

	if (r == 0)
		r = index_seek(w->rows, lowest, sizeof(lowest), false, false, &row);
	while (r == 0) {
		r = check_row(w, &row);
		if (r == 0)
			r = index_step(w->rows, false, &row);
	}
	if (r == -ENOMEM || w->verdict->damaged)
		return r;
	if (r < 0)
		return say(w, "the database cannot be read to its end");
	/* The engine's own item is not among the rows. */
	if (w->count + 1 != facts.entries)
		return say(w, "the database has not as many items as it says");
	return 0;
}

static int verify(int dir_fd, const struct keyring *keys, uint64_t map_bytes, struct local_verdict *verdict)
{
	struct walk w = { .keys = keys, .verdict = verdict };
	struct index *index;
	int r = index_open(dir_fd, true, map_bytes, &index);

	if (r == -EBADMSG)
		return say(&w, "the database's file is damaged");
	if (r < 0)
		return r;
	w.codec.sealed_names = keys->sealed_names;
	memcpy(w.codec.token_key, keys->keys[SEAL_TOKEN].bytes, KEY_TOKEN_SIZE);
	r = index_reader_take(index, &w.rows);
	if (r == 0)
		r = index_reader_take(index, &w.again);
	if (r == 0)
		r = index_reader_renew(w.rows);
	if (r == 0)
		r = index_reader_renew(w.again);
	if (r == 0)
		r = walk_all(&w, index);
	/* The process ends here: nothing is given back. */
	return r;
}

/* All but two: the store's lock among them, which must not outlive the process that took it. */
static void close_others(int a, int b)
{
	int low = util_min(a, b), high = util_max(a, b);

	close_range(3, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

/* Never returns. */
static void run_child(int fd, int dir_fd, const struct keyring *keys, uint64_t map_bytes)
{
	struct local_verdict verdict = { 0 };
	struct rlimit none = { 0 };
	sigset_t alarms;
	int r;

	close_others(fd, dir_fd);
	/* Keys are in this memory: it leaves no core behind. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Whoever opens the store may have blocked it. */
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	alarm(SECONDS_MAX);
	r = verify(dir_fd, keys, map_bytes, &verdict);
	if (r == -EBADMSG)
		r = 0;
	if (r == 0 && write(fd, &verdict, sizeof(verdict)) != sizeof(verdict))
		r = -EIO;
	_exit(r == 0 ? 0 : util_min(-r, 125));
}

static int collect(pid_t pid, int fd, struct local_verdict *ret_verdict)
{
	struct local_verdict verdict;
	ssize_t n;
	int status;

	do
		n = read(fd, &verdict, sizeof(verdict));
	while (n < 0 && errno == EINTR);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return -WEXITSTATUS(status);
	if (!WIFEXITED(status) || n != sizeof(verdict)) {
		verdict = (struct local_verdict){ .damaged = true };
		snprintf(verdict.text, sizeof(verdict.text), "reading the database ended by signal %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
	*ret_verdict = verdict;
	return 0;
}

int local_verify(int dir_fd, const struct keyring *keys, uint64_t map_bytes,
		 struct local_verdict *ret_verdict)
{
	int pipe_fds[2], r;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		r = -errno;
	} else if (pid == 0) {
		close(pipe_fds[0]);
		run_child(pipe_fds[1], dir_fd, keys, map_bytes);
	}
	close(pipe_fds[1]);
	if (pid > 0)
		r = collect(pid, pipe_fds[0], ret_verdict);
	close(pipe_fds[0]);
	return r;
}
