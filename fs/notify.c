/*
 * notify.c - a queue and the thread that empties it, batch by batch.
 *
 * Where a batch has many names, and the kernel knows FUSE_NOTIFY_INC_EPOCH
 * (Linux 6.16), one message makes it ask again for every name it has; libfuse
 * 3.14 has no call for it, so its sixteen bytes are written here.
 */
#include "fs/notify.h"

#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>

#include "store/util.h"

#define NOTIFY_INC_EPOCH 8 /* enum fuse_notify_code of newer headers */
#define NAMES_MANY 64 /* in one batch: an epoch costs less, though every name is looked up again */
#define SETTLE_S 30

enum note_kind {
	NOTE_ENTRY,
	NOTE_ATTRIBUTES,
	NOTE_CONTENTS,
};

struct note {
	struct note *next;
	enum note_kind kind;
	uint64_t id; /* directory, item or node */
	uint64_t view;
	char name[];
};

struct notifier {
	struct fuse_session *session;
	struct node_table *nodes;
	pthread_t thread;
	pthread_rwlock_t replies; /* read: an answer is going out; written only to let those end */
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;
	pthread_cond_t sent;
	struct note *first, **last;
	uint64_t queued; /* notes so far ... */
	uint64_t done; /* ... and of those, sent */
	bool overflow; /* a note was lost for want of memory */
	_Atomic bool stopping;
	bool no_epoch; /* the thread's own: the kernel does not know it */
	_Atomic uint64_t messages;
};

static void push(struct notifier *n, enum note_kind kind, uint64_t id, uint64_t view, const char *name)
{
	size_t size = strlen(name) + 1;
	struct note *note = malloc(sizeof(*note) + size);

	if (note) {
		*note = (struct note){ .kind = kind, .id = id, .view = view };
		memcpy(note->name, name, size);
	}
	pthread_mutex_lock(&n->lock);
	/* Only when it has nothing to do does it wait. */
	if (n->done == n->queued++)
		pthread_cond_signal(&n->wake);
	if (note) {
		*n->last = note;
		n->last = &note->next;
	} else {
		n->overflow = true;
	}
	pthread_mutex_unlock(&n->lock);
}

void notify_entry(struct notifier *n, uint64_t directory, uint64_t view, const char *name)
{
	push(n, NOTE_ENTRY, directory, view, name);
}

void notify_attributes(struct notifier *n, uint64_t id)
{
	push(n, NOTE_ATTRIBUTES, id, 0, "");
}

void notify_contents(struct notifier *n, uint64_t node)
{
	push(n, NOTE_CONTENTS, node, 0, "");
}

/* ---- the thread ------------------------------------------------------------ */

static bool send_epoch(struct notifier *n)
{
	struct fuse_out_header header = { .len = sizeof(header), .error = NOTIFY_INC_EPOCH };

	if (n->no_epoch)
		return false;
	n->no_epoch = write(fuse_session_fd(n->session), &header, sizeof(header)) !=
		      (ssize_t)sizeof(header);
	return !n->no_epoch;
}

/* -ENOENT, the kernel has no such name or inode in memory, is as good as success. */
static void send_note(struct notifier *n, const struct note *note)
{
	uint64_t node = note->kind == NOTE_CONTENTS ? note->id :
						      node_find(n->nodes, note->id, note->view);

	if (node == 0)
		return;
	if (note->kind == NOTE_ENTRY)
		fuse_lowlevel_notify_inval_entry(n->session, node, note->name, strlen(note->name));
	else
		fuse_lowlevel_notify_inval_inode(n->session, node,
						 note->kind == NOTE_CONTENTS ? 0 : -1, 0);
	atomic_fetch_add_explicit(&n->messages, 1, memory_order_relaxed);
}

static bool same_note(const struct note *a, const struct note *b)
{
	return a && a->kind == b->kind && a->id == b->id && a->view == b->view &&
	       strcmp(a->name, b->name) == 0;
}

static void send_batch(struct notifier *n, const struct note *first, bool overflow)
{
	const struct note *before = NULL;
	size_t names = 0;
	bool epoch;

	pthread_rwlock_wrlock(&n->replies);
	pthread_rwlock_unlock(&n->replies);
	for (const struct note *note = first; note; note = note->next)
		names += note->kind == NOTE_ENTRY && note->view == 0;
	epoch = (names > NAMES_MANY || overflow) && send_epoch(n);
	for (const struct note *note = first; note && !atomic_load(&n->stopping); note = note->next) {
		if (epoch && note->kind == NOTE_ENTRY)
			continue;
		if (!same_note(before, note))
			send_note(n, note);
		before = note;
	}
}

static void free_notes(struct note *first)
{
	for (struct note *next; first; first = next) {
		next = first->next;
		free(first);
	}
}

static void *notifier_main(void *data)
{
	struct notifier *n = data;

	pthread_mutex_lock(&n->lock);
	while (!atomic_load(&n->stopping)) {
		if (n->done == n->queued) {
			pthread_cond_wait(&n->wake, &n->lock);
			continue;
		}
		struct note *batch = n->first;
		uint64_t upto = n->queued;
		bool overflow = n->overflow;

		n->first = NULL;
		n->last = &n->first;
		n->overflow = false;
		pthread_mutex_unlock(&n->lock);
		send_batch(n, batch, overflow);
		free_notes(batch);
		pthread_mutex_lock(&n->lock);
		n->done = upto;
		pthread_cond_broadcast(&n->sent);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* ---- start, stop, settle ------------------------------------------------------ */

int notify_start(struct fuse_session *session, struct node_table *nodes, struct notifier **ret_notifier)
{
	struct notifier *n = calloc(1, sizeof(*n));
	pthread_rwlockattr_t writer_first;
	int result;

	if (!n)
		return -ENOMEM;
	n->session = session;
	n->nodes = nodes;
	n->last = &n->first;
	pthread_rwlockattr_init(&writer_first);
	pthread_rwlockattr_setkind_np(&writer_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&n->replies, &writer_first);
	pthread_rwlockattr_destroy(&writer_first);
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->sent, NULL);
	result = pthread_create(&n->thread, NULL, notifier_main, n);
	if (result) {
		free(n);
		return -result;
	}
	(void)pthread_setname_np(n->thread, "notify");
	*ret_notifier = n;
	return 0;
}

void notify_stop(struct notifier *n)
{
	pthread_mutex_lock(&n->lock);
	atomic_store(&n->stopping, true);
	pthread_cond_broadcast(&n->wake);
	pthread_cond_broadcast(&n->sent);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
}

void notify_free(struct notifier *n)
{
	if (!n)
		return;
	free_notes(n->first);
	pthread_rwlock_destroy(&n->replies);
	pthread_mutex_destroy(&n->lock);
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->sent);
	free(n);
}

bool notify_settle(struct notifier *n)
{
	struct timespec until;
	bool settled;
	int result = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	pthread_mutex_lock(&n->lock);
	uint64_t upto = n->queued;
	while (n->done < upto && !atomic_load(&n->stopping) && result == 0)
		result = pthread_cond_timedwait(&n->sent, &n->lock, &until);
	settled = n->done >= upto;
	pthread_mutex_unlock(&n->lock);
	return settled;
}

void notify_reply_begin(struct notifier *n)
{
	pthread_rwlock_rdlock(&n->replies);
}

void notify_reply_end(struct notifier *n)
{
	pthread_rwlock_unlock(&n->replies);
}

uint64_t notify_count(struct notifier *n)
{
	return atomic_load(&n->messages);
}
