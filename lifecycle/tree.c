/*
 * tree.c - directories as transactions see them, and commits whose answer was
 * lost.
 *
 * A directory is read in two steps, guard and own item; a rename between them
 * shows as an item that is missing or another's, and the guard is read again.
 * An item that is missing under a guard that stands still is damage, not
 * absence.
 */
#include "lifecycle/tree.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define TREE_LOAD_TRIES 16
#define TREE_PATH_MAX (1 << 20)

static int tree_load_once(struct store *s, uint64_t directory, struct tree_directory *d)
{
	int result = record_get_guard(s, directory, &d->guard);

	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	result = record_get_item(s, &d->guard.at, false, &d->value, &d->own);
	if (result)
		return result == STORE_ABSENT ? STORE_CONFLICT : result;
	if (d->own.id == directory && S_ISDIR(d->own.mode))
		return 0;
	store_value_release(&d->value);
	return STORE_CONFLICT;
}

int tree_load(struct store *s, uint64_t directory, struct tree_directory *ret_directory)
{
	struct tree_directory d = { .id = directory };
	uint64_t seen = 0;
	int result;

	for (int tries = 0; tries < TREE_LOAD_TRIES; tries++) {
		result = tree_load_once(s, directory, &d);
		if (!result) {
			*ret_directory = d;
			return 0;
		}
		if (result != STORE_CONFLICT)
			return result;
		if (d.guard.version == seen)
			return -EBADMSG;
		seen = d.guard.version;
	}
	return -EAGAIN;
}

void tree_release(struct tree_directory *d)
{
	if (d)
		store_value_release(&d->value);
}

void tree_put_own(struct transaction *t, struct store *s, const struct tree_directory *d)
{
	bool moves = t->moves;

	transaction_put_item(t, s, &d->guard.at, &d->own, d->own.version);
	t->moves = moves;
}

void tree_check_guard(struct transaction *t, const struct tree_directory *d)
{
	struct key key;

	key_guard(d->id, &key);
	transaction_check(t, &key, STORE_IF_VERSION, d->guard.version);
}

struct timespec tree_time(int64_t ns)
{
	struct timespec ts = { ns / CLOCK_SECOND_NS, ns % CLOCK_SECOND_NS };

	if (ts.tv_nsec < 0) {
		ts.tv_sec--;
		ts.tv_nsec += CLOCK_SECOND_NS;
	}
	return ts;
}

void tree_touch(struct tree_directory *d, int64_t now_ns)
{
	d->own.mtime = tree_time(now_ns);
	d->own.ctime = d->own.mtime;
}

uint32_t tree_plain_mode(const struct item *own)
{
	return own->flags & ITEM_ACL ? own->mode & ~(uint32_t)077 : own->mode;
}

uint32_t tree_mask_regrouped(uint32_t trash_mask)
{
	return (trash_mask & ~070u) | (trash_mask & ((trash_mask & 07) << 3));
}

uint32_t tree_mask_given(uint32_t trash_mask)
{
	uint32_t everybody = trash_mask & trash_mask >> 3 & 07;

	return (trash_mask & ~0700u) | (trash_mask & everybody << 6);
}

int tree_format(struct store *s, uint32_t mode, uint32_t uid, uint32_t gid)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	struct timespec now = tree_time(store_now_ns(s));
	struct guard guard = { .at = { .directory = KEY_ID_NONE, .state = KEY_ACT } };
	struct item root = {
		.id = KEY_ID_ROOT,
		.mode = S_IFDIR | (mode & 07777),
		.uid = uid,
		.gid = gid,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.directory = { .trash_mask = 0777 },
		.links_live = 1,
		.links_total = 1,
		.content = (const uint8_t *)"",
	};
	int result;

	transaction_put_item(&t, s, &guard.at, &root, 0);
	transaction_put_guard(&t, KEY_ID_ROOT, &guard, 0);
	result = tree_commit(&t, s, STORE_GROWING, NULL);
	return result == STORE_CONFLICT ? -EEXIST : result;
}

/* ---- walking upwards ----------------------------------------------------- */

static int tree_topology(struct store *s, uint64_t *ret_version)
{
	struct store_value value = { 0 };
	struct key key;
	int result;

	key_meta(TREE_TOPOLOGY, &key);
	result = store_get(s, &key, true, &value);
	if (result == STORE_ABSENT) {
		*ret_version = 0;
		return 0;
	}
	if (result)
		return result;
	*ret_version = value.version;
	store_value_release(&value);
	return 0;
}

int tree_is_below(struct store *s, uint64_t directory, uint64_t ancestor, uint64_t *ret_version)
{
	struct guard guard;
	uint64_t version;
	int result = tree_topology(s, &version);

	if (result)
		return result;
	for (unsigned depth = 0; directory != ancestor; depth++) {
		if (depth == TREE_DEPTH_MAX)
			return -EBADMSG;
		if (directory == KEY_ID_NONE) {
			if (ret_version)
				*ret_version = version;
			return 0;
		}
		result = record_get_guard(s, directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
		directory = guard.at.directory;
	}
	if (ret_version)
		*ret_version = version;
	return 1;
}

void tree_put_topology(struct transaction *t, uint64_t version)
{
	static const uint8_t record[] = { TREE_RECORD_FORMAT, TREE_RECORD_TOPOLOGY };
	struct key key;

	key_meta(TREE_TOPOLOGY, &key);
	transaction_put(t, &key, record, sizeof(record), NULL, 0,
			version ? STORE_IF_VERSION : STORE_IF_ABSENT, version);
}

/*
 * A path is built from its end: `bytes` is filled backwards from `size`, and
 * has one more for the NUL.
 */
struct path_builder {
	char *bytes;
	size_t size;
	size_t start;
};

static int path_prepend(struct path_builder *p, const char *name)
{
	size_t length = strlen(name);
	size_t used = p->size - p->start;
	size_t grown;
	char *bytes;

	if (p->start < length + 1) {
		if (used + length + 1 > TREE_PATH_MAX)
			return -ENAMETOOLONG;
		grown = util_max(p->size * 2, used + length + 1);
		grown = util_min(grown, (size_t)TREE_PATH_MAX);
		bytes = malloc(grown + 1);
		if (!bytes)
			return -ENOMEM;
		memcpy(bytes + grown - used, p->bytes + p->start, used);
		free(p->bytes);
		*p = (struct path_builder){ bytes, grown, grown - used };
	}
	p->start -= length;
	memcpy(p->bytes + p->start, name, length);
	p->bytes[--p->start] = '/';
	return 0;
}

static int path_build(struct store *s, const struct place *at, struct path_builder *p)
{
	struct guard guard = { .at = *at };
	int result;

	while (guard.at.directory != KEY_ID_NONE) {
		result = path_prepend(p, guard.at.name);
		if (result)
			return result;
		if (guard.at.directory == KEY_ID_ROOT)
			return 0;
		result = record_get_guard(s, guard.at.directory, &guard);
		if (result)
			return result == STORE_ABSENT ? -ENOENT : result;
	}
	return p->start == p->size ? path_prepend(p, "") : 0;
}

int tree_path(struct store *s, const struct place *at, char **ret_path)
{
	struct path_builder p = { malloc(256), 255, 255 };
	size_t length;
	int result;

	if (!p.bytes)
		return -ENOMEM;
	result = path_build(s, at, &p);
	length = p.size - p.start;
	if (result) {
		free(p.bytes);
		return result;
	}
	memmove(p.bytes, p.bytes + p.start, length);
	p.bytes[length] = '\0';
	*ret_path = p.bytes;
	return 0;
}

/* ---- commits ------------------------------------------------------------- */

/* The operation that tells best whether its transaction took effect: a put, or else a delete. */
static const struct store_op *commit_witness(const struct transaction *t)
{
	const struct store_op *found = NULL;

	for (size_t i = 0; i < t->count; i++) {
		if (t->ops[i].kind == STORE_PUT && t->ops[i].condition != STORE_ANY)
			return &t->ops[i];
		if (t->ops[i].kind == STORE_DELETE && t->ops[i].condition != STORE_ANY && !found)
			found = &t->ops[i];
	}
	return found;
}

static bool bytes_equal(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	return a_size == b_size && (!a_size || memcmp(a, b, a_size) == 0);
}

/* 1: it took effect, 0: it did not, negative errno: not known. */
static int commit_witnessed(struct store *s, const struct store_op *op, uint64_t *ret_version)
{
	struct store_value value = { 0 };
	int result = store_get(s, &op->key, false, &value);

	if (result == STORE_ABSENT)
		return op->kind == STORE_DELETE;
	if (result)
		return result;
	result = op->kind == STORE_PUT &&
		 (op->condition != STORE_IF_VERSION || value.version != op->version) &&
		 bytes_equal(value.attrs, value.attrs_size, op->attrs, op->attrs_size) &&
		 bytes_equal(value.content, value.content_size, op->content, op->content_size);
	if (result && ret_version)
		*ret_version = value.version;
	store_value_release(&value);
	return result;
}

int tree_commit(struct transaction *t, struct store *s, enum store_purpose purpose, uint64_t *ret_version)
{
	const struct store_op *witness;
	uint64_t version = 0;
	int result = transaction_commit(t, s, purpose, &version);

	if (result == -EIO) {
		witness = commit_witness(t);
		if (witness && commit_witnessed(s, witness, &version) == 1)
			result = 0;
	}
	if (!result && ret_version)
		*ret_version = version;
	return result;
}
