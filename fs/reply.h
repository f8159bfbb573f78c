/*
 * reply.h - results and inodes as the kernel wants them: errno, struct stat,
 * entries with their look-up counts and how long they may be kept.
 */
#ifndef FS_REPLY_H
#define FS_REPLY_H

#include "fs/session.h"

/* Seconds the kernel may keep what only this process changes: without end. */
#define REPLY_FOREVER 1e9
/* The root's attributes: who looks at a mount whose daemon died must see it soon. */
#define REPLY_ROOT 1.0
/* The name of the trash in a live directory: it stays where it is, but below a deleted directory there is none. */
#define REPLY_TRASH_NAME 1.0

/* Answers 0 or a failure. All errno pass here: damage is EIO, and a store that stopped writing is told to the administrator once. */
void reply_result(fuse_req_t req, int result);

void reply_stat(struct fs *fs, const struct inode *inode, struct stat *ret_stat);

/* How an entry goes out. */
struct reply_entry {
	const struct inode *inode;
	uint64_t stamp; /* node_stamp of inode->at.directory before it was read */
	uint64_t parent; /* node of the directory it was found in; of views */
	uint64_t view; /* of that directory */
	bool trash; /* found in a view, or below a deleted directory: not to be kept */
	bool trash_name; /* the view itself, found in its live directory: its name, not its attributes, for a moment */
	bool brief; /* true, but not to be kept: its directory is changing */
};

/*
 * Enters the inode's node, counts the look-up and fills what the kernel is to
 * be told. 0; -EAGAIN: the directory changed, read again; -ENOMEM. Live ones
 * between notify_reply_begin and _end, answer included.
 */
int reply_enter(struct fs *fs, const struct reply_entry *entry, struct fuse_entry_param *ret_param);

/*
 * The same, and answers LOOKUP, MKNOD ... or, with `file`, CREATE. 0: answered;
 * -EAGAIN: not yet, read again.
 */
int reply_entry(fuse_req_t req, const struct reply_entry *entry, struct fuse_file_info *file);

/* Gives up the look-up of an answer that did not reach the kernel, which did not count it. */
void reply_take_back(struct fs *fs, uint64_t node);

/* There is no such name: to be kept if the stamp still stands and it is not of the trash. */
void reply_no_entry(fuse_req_t req, uint64_t directory, uint64_t stamp, bool trash);

/* Answers with the attributes of a node as loaded; `trash`: not to be kept. */
void reply_attributes(fuse_req_t req, const struct inode *inode, bool trash);

#endif
