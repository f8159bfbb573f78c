/*
 * item.h - typed contents of what the partitions hold.
 *
 * A struct here is a value: plain memory, copied freely, except for the two
 * pointers of struct item, which borrow from the value it was decoded from.
 * record.h turns each into bytes and back.
 */
#ifndef STORE_ITEM_H
#define STORE_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "store/key.h"

enum item_flag {
	ITEM_REFERENCE = 1 << 0, /* one of several names: attributes, content and xattrs are those of LINK `id` */
	ITEM_DELETION = 1 << 1, /* `deletion` is filled: the item is in state KEY_DEL */
	ITEM_SPARSE = 1 << 2, /* the body may have holes: ask store_body_usage for st_blocks */
	ITEM_XATTR_APART = 1 << 3, /* xattrs stand in XATTR `id`, not in the item */
	ITEM_SHADOWED = 1 << 4, /* directories: SHD#name stands in the parent (and upwards) */
	ITEM_POLICY = 1 << 5, /* directories: some of the xattrs are policy */
	ITEM_ACL = 1 << 6, /* directories: there is an access ACL, and the group's bits of the mode are its mask */
};

/* Why an item was deleted. Numbers are part of the format. */
enum item_cause {
	ITEM_REMOVED = 1, /* unlink, rmdir, mv into .trash */
	ITEM_REPLACED = 2, /* by a rename onto its name */
	ITEM_EXPIRED = 3, /* time to live of a live item (later) */
	ITEM_EVICTED = 4, /* made room (later) */
	ITEM_TEMPORARY = 5, /* a temporary name: never shown, destroyed when nobody has it open */
};

enum deletion_flag {
	DELETION_PINNED = 1 << 0, /* being restored: not to be destroyed before `destroy_ns` */
	DELETION_DOOMED = 1 << 1, /* being destroyed: never visible again */
	DELETION_PURGED = 1 << 2, /* removed from the trash by hand: hidden, destroyed after its grace */
};

#define ITEM_COMMAND_MAX 15 /* bytes, as Linux' comm */

/* What is known of a deletion. When: the `seq` of the place. */
struct deletion {
	uint64_t batch; /* seq of its batch's opening, 0 = none */
	uint64_t replaced_by; /* id of the item that took its name: ITEM_REPLACED; of an undone ITEM_REMOVED, the one that came back */
	int64_t expires_ns; /* hidden from then on; ITEM_FOREVER = never */
	int64_t destroy_ns; /* the time in its EXP row; not before expires_ns unless purged */
	uint32_t uid; /* who */
	uint32_t gid;
	uint32_t pid;
	uint8_t cause; /* enum item_cause */
	uint8_t flags; /* enum deletion_flag */
	char command[ITEM_COMMAND_MAX + 1];
};

#define ITEM_FOREVER INT64_MAX

/* What directories have besides. */
struct item_directory {
	uint32_t subdirectories; /* live ones; st_nlink is two more */
	uint32_t trash_mask; /* 0777: permission bits that nobody had at some deletion are cleared */
	int64_t trash_until_ns; /* the latest expiry of anything deleted in here, 0 = none */
	uint64_t saved_batch; /* batch that last deleted in here, or that a restore brought it back from ... */
	struct timespec saved_mtime; /* ... and mtime before its first deletion, or as it came back */
};

struct item {
	uint64_t id; /* st_ino; of a directory: its partition */
	uint64_t version; /* of the value it was read from, not encoded */
	uint32_t flags; /* enum item_flag */
	uint32_t mode; /* type and permissions */
	uint32_t uid;
	uint32_t gid;
	uint32_t rdev; /* as Linux' new_encode_dev: major, minor in 32 bits */
	uint64_t size;
	uint64_t body; /* 0 = the content is inline (or there is none) */
	struct timespec atime, mtime, ctime, btime; /* tv_nsec 0 to 999,999,999, seconds may be negative */
	struct item_directory directory; /* S_ISDIR */
	struct deletion deletion; /* ITEM_DELETION */
	uint32_t links_live; /* LINK records: names in state ACT ... */
	uint32_t links_total; /* ... and all names; 1 and 1 elsewhere */
	char name[KEY_NAME_MAX + 1]; /* must match the key; "" for LINK records and the root */
	const uint8_t *xattrs; /* encoded list, see record.h; borrowed */
	size_t xattrs_size;
	const uint8_t *content; /* inline: file bytes or symlink target; borrowed; NULL if not read */
	size_t content_size;
};

/* DIR: where a directory's own item is, or (deleted) was put. */
struct guard {
	uint64_t version; /* not encoded */
	struct place at;
};

/* SHD: below this live sub-directory something may have been deleted. */
struct shadow {
	uint64_t directory;
	char name[KEY_NAME_MAX + 1];
};

/* TRASH and EXP: the key of the deleted item, and enough to select without reading it. */
struct trash_row {
	struct key key;
	uint64_t batch;
	uint32_t uid;
	uint8_t cause;
};

struct batch {
	uint64_t version; /* not encoded */
	uint64_t seq; /* its id; first deletion's seq is not below */
	uint64_t last_seq; /* 0 while open */
	uint64_t count; /* entries; 0 while open */
	uint64_t bytes;
	uint64_t restored; /* entries of it that came back */
	uint64_t directory; /* where the first deletion was */
	uint32_t uid;
	uint32_t session; /* process session id (setsid) of the first deleter */
	uint32_t group; /* process group */
	bool undone;
	bool purge; /* it is of purges out of the trash */
	char command[ITEM_COMMAND_MAX + 1];
};

/* Counter items, in META. */
#define ITEM_COUNTERS "counters"
enum item_counter {
	COUNTER_LIVE_ITEMS, /* names in state ACT, the root excepted */
	COUNTER_LIVE_BYTES, /* sizes of regular files with a live name, each inode once */
	COUNTER_TRASH_ITEMS, /* names in state DEL, ITEM_TEMPORARY excepted */
	COUNTER_TRASH_BYTES, /* sizes of regular files with deleted names only, each inode once */
	COUNTER_DESTROYED_USER, /* destructions by cause, ever */
	COUNTER_DESTROYED_EXPIRED,
	COUNTER_DESTROYED_EVICTED,
	COUNTER_DESTROYED_VERSIONS,
	COUNTER_RESTORED,
};

#endif
