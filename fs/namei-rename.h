/*
 * namei-rename.h - a rename on its way. Private to namei-rename.c and
 * namei-rename-check.c.
 */
#ifndef FS_NAMEI_RENAME_H
#define FS_NAMEI_RENAME_H

#include <sys/stat.h>

#include "fs/namei-internal.h"

/* An item that a rename concerns, as read. */
struct subject {
	bool present;
	struct place at;
	struct item item;
	struct store_value value;
	struct item link; /* of a reference */
	struct store_value link_value;
	struct guard guard; /* of a directory */
};

struct rename {
	struct namei *n;
	const struct actor *actor;
	bool exchange;
	bool replaceable; /* no RENAME_NOREPLACE */
	struct subject old, new; /* what bears the old name, and the new one */
	struct tree_directory parents[2];
	struct tree_directory *from, *to; /* may be one */
	bool topology; /* a directory changes its parent */
	uint64_t topology_version;
	bool removing;
	struct removal removal;
	struct transaction transaction;
};

#define RENAME_NOTHING 16 /* two names of one file: nothing is to be done */

static inline bool subject_is_directory(const struct subject *s)
{
	return s->present && S_ISDIR(s->item.mode);
}

static inline bool rename_crosses(const struct rename *r)
{
	return r->old.at.directory != r->new.at.directory;
}

/* Reads what bears the two names. 0, -ENOENT (nothing bears the old one), -EIO. */
int rename_read(struct rename *r);
/* Whether it may be done: 0, RENAME_NOTHING, or what rename(2) says. */
int rename_check(struct rename *r);

#endif
