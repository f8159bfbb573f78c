/*
 * damage.h - items whose record cannot be read: where they are, how they are
 * called, and what can be done with them by their key alone. Private to
 * lifecycle/.
 *
 * The key of a damaged item is true (it is bound to its value outside of the
 * seal, store/value.h), so that its directory, its state and, with ordered
 * names, its name are known. What its record said is not: of a directory the
 * guard still tells id and name, and a new record can be made; a file's body
 * can no longer be found, and stays as one that no item has until `check
 * --quarantine` gives it a name.
 *
 * All of it works on the store alone, for `check` as well as for a mount.
 */
#ifndef LIFECYCLE_DAMAGE_H
#define LIFECYCLE_DAMAGE_H

#include "store/record.h"

/* What is known of a damaged item. */
struct damaged {
	struct place at; /* with sealed names its name may be key_unknown_name's */
	struct key key;
	uint64_t directory; /* it is a directory: its id; else 0 */
	struct guard guard; /* of that directory */
};

/* With sealed names an unknown name is shown as this and the 32 digits of its token. */
#define DAMAGED_PREFIX "damaged-"
/* The name under which a place is shown, and back: false if `shown` is no such name. */
void damaged_show(const struct place *at, char ret_shown[KEY_NAME_MAX + 1]);
bool damaged_unshow(const struct key_codec *c, const char *shown, char ret_name[KEY_NAME_MAX + 1]);

/* Whether a failure is one record's: it cannot be read, or does not belong where it stands. */
static inline bool damaged_is(int result)
{
	return result == -EBADMSG;
}

/*
 * Describes what stands under a key of an item, by its key and, of a directory,
 * its guard, which is searched for among all. 0, STORE_ABSENT (nothing is
 * there, or it can be read), negative errno.
 */
int damaged_load(struct store *s, const struct key *key, struct damaged *ret);
/* The same for a damaged row that was met. */
int damaged_load_row(struct store *s, const struct store_row *row, struct damaged *ret);

/*
 * How it shows: a directory as damaged_remake_directory would make it; else a
 * file of one byte that nobody may read and reading which is an error (an empty
 * one would be archived as if it were whole). Its id is made of its key.
 */
int damaged_stand_in(struct store *s, const struct damaged *d, struct item *ret_item);

/*
 * Gives a directory whose own record cannot be read a new one: with its id, its
 * name and all that is in it, owned by who owns the root, closed to everybody
 * else. `due_ns`: when it is to be destroyed, of one in the trash; the rest of
 * its deletion is taken from its row in TRASH. 0, STORE_CONFLICT, negative errno.
 */
int damaged_remake_directory(struct store *s, uint64_t id, const struct guard *guard, int64_t due_ns);
/* The same at a new place in the live tree, which is free, for one that has no item at all. */
int damaged_adopt_directory(struct store *s, uint64_t id, const struct place *at);
/* Counts what a directory says of what is in it: sub-directories, and until when something deleted is kept. */
int damaged_recount(struct store *s, struct item *directory);
/* Puts the rows that stand beside a deleted item, whatever stood there. */
int damaged_put_rows(struct store *s, struct transaction *t, const struct place *at,
		     const struct item *item);
/*
 * Adds to `t` that a damaged item which is no directory goes, with what stands
 * beside it: at most DAMAGED_OPERATIONS. 0 or negative errno.
 */
#define DAMAGED_OPERATIONS 3
int damaged_add_removal(struct store *s, struct transaction *t, const struct key *key);

#endif
