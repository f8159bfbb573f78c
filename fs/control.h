/*
 * control.h - what no plain file operation expresses: the requests that the
 * `ddbfs` program makes of a running mount.
 *
 * A request is an ioctl on MOUNT/.ddbfs/control (mode 0666): since files are
 * never opened in the daemon, an ioctl is what carries both a question and an
 * answer, and the caller's identity. The first call (job = 0) carries a JSON
 * object, `{"verb": "undo", ...}`; its answer has a job number and what output
 * there is so far; further calls with that number bring more until `done`. A
 * further call with text of its own, `{"cancel": true}`, stops the job between
 * two steps; so does the end of the process that asked. Jobs act with the uid,
 * gid and groups of the caller of the first call and answer only that uid.
 *
 * The output is a stream of bytes: lines of JSON, each ended by '\n'; one may
 * arrive in pieces. {"row": {...}}, {"progress": {"done": n, "total": n}} (a
 * total of 0 is not known), and last {"result": {...}, "exit": code} or
 * {"error": "words", "exit": code}, with "path" if it is about one, and "in_way"
 * if another one is the cause. Numbers above 2^53 that are no times are strings.
 *
 * Bytes that are not UTF-8 (names, paths) have no JSON string: see bytes.h.
 * control.c lists the verbs; the head of each one's file says what it takes and gives.
 */
#ifndef FS_CONTROL_H
#define FS_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define CONTROL_DIRECTORY ".ddbfs"
#define CONTROL_FILE "control"
#define CONTROL_STATS "stats"
#define CONTROL_TEXT_MAX 12272

struct control_message {
	uint64_t job; /* in: 0 = a new request; out: its number */
	uint32_t size; /* in: of the request's text, 0 when asking for more; out: of the lines */
	uint32_t done; /* out: 1 = these were the last lines */
	char text[CONTROL_TEXT_MAX];
};

/* "exit" of a job's last line: what the program exits with. */
enum control_exit {
	CONTROL_DONE = 0,
	CONTROL_FAILED = 1,
	CONTROL_USAGE = 2,
	CONTROL_PARTLY = 3,
	CONTROL_NOT_FOUND = 4,
	CONTROL_CONFLICT = 5,
	CONTROL_NOT_EMPTY = 6,
	CONTROL_INTERRUPTED = 130,
};

#define CONTROL_CALL _IOWR('d', 1, struct control_message)

/* ---- daemon's side ----------------------------------------------------- */

struct namei;
struct actor;
struct control;

struct control_host {
	/* Called after a job changed names behind the kernel's back and before its result is sent: returns when the kernel knows. */
	void (*settle)(void *data);
	void (*stats)(void *data, char **ret_text, size_t *ret_size); /* the mount's own lines of `stats`, malloc'd */
	void *data;
	const char *store_path;
	const char *mount_point;
	bool read_only; /* a mount that changes nothing: so do its jobs */
};

int control_open(struct namei *n, const struct control_host *host, struct control **ret_control);
void control_close(struct control *c); /* cancels and joins jobs; takes NULL */
/* Starts or continues a job; waits up to 100 ms for output, so call it off the request loop. 0 or a negative errno for the ioctl. `actor` with groups; copied. */
int control_call(struct control *c, const struct actor *actor, struct control_message *message);
/* Text exposition (Prometheus): counters, space, engine, mount. malloc'd. */
int control_stats(struct control *c, char **ret_text, size_t *ret_size);

#endif
