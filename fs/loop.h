/*
 * loop.h - the request loop: who reads from the FUSE device, and when he hands
 * that on.
 *
 * One thread leads: it reads a request and serves it itself, so that a quick
 * one costs no hand-over between threads. It looks for the next request
 * without sleeping for some tens of microseconds (a program waiting for one
 * answer usually asks again at once; waking a sleeper costs more than the
 * operation), then sleeps in poll(2). Exactly one thread ever spins: ten of
 * them take the processors from those they wait for.
 *
 * Who is about to wait (fsync, a control job, a long restore, large reads and
 * writes) gives up the lead first: loop_yield. Whoever is stuck for more than
 * a millisecond or two without having said so loses it to a watcher, which
 * sleeps while the mount is idle. So no request ever waits for another's disk.
 */
#ifndef FS_LOOP_H
#define FS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct fuse_session;
struct loop;

/* `busy_poll`: spin where the machine has processors for it. The session is mounted. */
int loop_new(struct fuse_session *session, bool busy_poll, struct loop **ret_loop);
/* Starts the threads: requests are served from now on. */
int loop_start(struct loop *l);
/* Readable (poll) once the session ended by itself: unmounted. */
int loop_end_fd(const struct loop *l);
/* Ends the threads, waiting for requests in service. */
void loop_stop(struct loop *l);
void loop_free(struct loop *l); /* of a loop that was stopped or not started; takes NULL */

/* From a request: another thread reads the device from now on, this one may block. */
void loop_yield(struct loop *l);
/* Whether the calling thread is serving a request. */
bool loop_in_request(const struct loop *l);

struct loop_counts {
	uint64_t requests;
	uint64_t sleeps; /* in poll, for want of requests */
	uint64_t takeovers; /* by the watcher */
	unsigned threads;
};
void loop_count(struct loop *l, struct loop_counts *ret_counts);

#endif
