/*
 * notify.h - tells the kernel what changed behind its back: names that a
 * control job or the sweeper brought or took away.
 *
 * Names and attributes of the live tree are cached by the kernel without end.
 * A thread of its own sends the invalidations, because the kernel may hold them
 * up until a request is answered: from inside a request, or with a lock held
 * that a request waits for, that never ends.
 *
 * An answer that was computed before such a change, and arrives after the
 * change's invalidation, would undo it. So whoever answers with something to be
 * cached does so between notify_reply_begin and notify_reply_end, and asks in
 * between whether the directory's stamp (node.h) still stands; the notifier
 * lets such answers go out first.
 */
#ifndef FS_NOTIFY_H
#define FS_NOTIFY_H

#include "fs/node.h"

struct fuse_session;
struct notifier;

int notify_start(struct fuse_session *session, struct node_table *nodes, struct notifier **ret_notifier);
/* Ends the thread while requests are still served; what was not sent and what comes after is dropped. */
void notify_stop(struct notifier *n);
void notify_free(struct notifier *n); /* takes NULL; stopped before */

/* None of these blocks or fails; without memory, the kernel is told that all names may have changed. */
/* A name in a directory, of the live tree (view 0) or a view, is another or gone. */
void notify_entry(struct notifier *n, uint64_t directory, uint64_t view, const char *name);
/* Attributes of an item, as the live tree shows it. */
void notify_attributes(struct notifier *n, uint64_t id);
/* Attributes and pages of one node. */
void notify_contents(struct notifier *n, uint64_t node);

/* Returns when the kernel knows of all of the above that came before this call; false after 30 s. Never from a request. */
bool notify_settle(struct notifier *n);

void notify_reply_begin(struct notifier *n);
void notify_reply_end(struct notifier *n);

uint64_t notify_count(struct notifier *n); /* sent so far */

#endif
