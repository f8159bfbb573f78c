/*
 * session.h - one mount, as the files that serve requests share it. Private to
 * the half of fs/ that knows FUSE.
 *
 * The operations are in ops-dir.c (names), ops-file.c (contents) and ops-attr.c
 * (attributes); ops.c puts them into libfuse's table.
 */
#ifndef FS_SESSION_H
#define FS_SESSION_H

#include <fuse_lowlevel.h>
#include <stdatomic.h>

#include "fs/actor.h"
#include "fs/control.h"
#include "fs/file.h"
#include "fs/fs.h"
#include "fs/loop.h"
#include "fs/namei.h"
#include "fs/node.h"
#include "fs/notify.h"

struct fs {
	const struct fs_options *options;
	const struct fs_events *events;
	struct store *store;
	struct lifecycle *lifecycle;
	struct namei *namei;
	struct node_table *nodes;
	struct actor_cache *actors;
	struct control *control;
	struct fuse_session *session;
	struct loop *loop; /* NULL before requests are served and after */
	struct notifier *notifier;
	struct file_locator locator; /* node_locate */
	atomic_uint handles; /* directories open now */
	atomic_uint flushes; /* threads waiting for pages of the kernel: seek_flush */
	uint32_t uid; /* who mounted: owner of /.ddbfs */
	uint32_t gid;
	int64_t mounted_ns; /* times of /.ddbfs */
	atomic_flag failure_told; /* that the store stopped writing */
	bool unmounted; /* by us */
	uint32_t kernel_flags; /* of INIT, as the kernel sent them */
	bool patched_init; /* the reply to INIT went out */
};

static inline struct fs *session_fs(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

/* libfuse's table of all operations. */
extern const struct fuse_lowlevel_ops session_ops;

/* Device reads and writes with what libfuse 3.14 has no name for: see ops.c. */
extern const struct fuse_custom_io session_io;

#endif
