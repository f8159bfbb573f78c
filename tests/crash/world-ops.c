/*
 * world-ops.c - see world.h: what can be done.
 */
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/world-internal.h"

#define DAY_NS (INT64_C(86400) * CLOCK_SECOND_NS)

/* ---- contents ------------------------------------------------------------------- */

static int create(struct world *w)
{
	return world_create(w, "n", S_IFREG | 0640);
}

static int write_new(struct world *w)
{
	int r = world_create(w, "m", S_IFREG | 0644);

	/* Begun before, if it is repeated. */
	return r && r != -EEXIST ? r : world_write(w, "m", 0, 5000, false);
}

static int append_small(struct world *w)
{
	return world_write(w, "a", 0, 3000, true);
}

static int append_large(struct world *w)
{
	return world_write(w, "b", 0, 70000, true);
}

static int overwrite_part(struct world *w)
{
	return world_write(w, "b", 33000, 100, false);
}

static int overwrite_chunks(struct world *w)
{
	return world_write(w, "b", 32768, 65536, false);
}

static int set_size(struct world *w, const char *path, uint64_t size)
{
	struct attr_change change = { .set = ATTR_SIZE, .size = size };
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	int r = world_find(w, path, &spot);

	return r ? r : file_setattr(w->namei, &where, spot.id, &change, NULL);
}

static int truncate_down(struct world *w)
{
	return set_size(w, "b", 10000);
}

static int truncate_to_nothing(struct world *w)
{
	return set_size(w, "a", 0);
}

static int truncate_up(struct world *w)
{
	return set_size(w, "a", UINT64_C(5) << 30);
}

static int punch_at(struct world *w, const char *path, uint64_t offset, uint64_t size)
{
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	int r = world_find(w, path, &spot);

	return r ? r :
		   file_allocate(w->namei, &where, spot.id,
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
}

static int punch(struct world *w)
{
	return punch_at(w, "b", 4096, 40000);
}

/* ---- names ------------------------------------------------------------------------ */

static int rename_file(struct world *w)
{
	return world_rename(w, "a", "c", 0);
}

static int rename_directory(struct world *w)
{
	return world_rename(w, "d/sub", "e", 0);
}

static int rename_over(struct world *w)
{
	return world_rename(w, "a", "b", 0);
}

static int rename_into(struct world *w)
{
	return world_rename(w, "b", "d/y", 0);
}

static int exchange(struct world *w)
{
	return world_rename(w, "a", "b", RENAME_EXCHANGE);
}

static int link_file(struct world *w)
{
	return world_link(w, "a", "d/l");
}

static int rm(struct world *w)
{
	return world_remove(w, "b");
}

static int rm_link(struct world *w)
{
	return world_remove(w, "h");
}

static int rm_rf(struct world *w)
{
	static const char *const paths[] = { "d/h2", "d/l", "d/sub/z", "d/sub", "d/x", "d/y" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int r = world_remove(w, paths[i]);

		if (r < 0 && r != -ENOENT && r != -ENOTDIR)
			return r;
	}
	return world_remove(w, "d");
}

/* ---- the trash --------------------------------------------------------------------- */

static int discard(struct world *w)
{
	return lifecycle_discard(w->lifecycle, &w->remover, KEY_ID_ROOT, "d");
}

static int restore_as(struct world *w, const char *shown, const char *name)
{
	struct entry e;
	int r = lifecycle_find(w->lifecycle, KEY_ID_ROOT, shown, &e);

	if (r != 0)
		return r;
	r = lifecycle_restore(w->lifecycle, &w->remover, &e.at, KEY_ID_ROOT, name, 0, NULL, NULL);
	entry_release(&e);
	return r;
}

static int restore(struct world *w)
{
	return restore_as(w, "old", "old");
}

static int restore_directory(struct world *w)
{
	return restore_as(w, "gone", "gone");
}

static int restore_over(struct world *w)
{
	return restore_as(w, "v", "v");
}

static int undo(struct world *w)
{
	struct undo_options options = { .taken = UNDO_SKIP };
	struct undo_result result;

	return lifecycle_undo(w->lifecycle, &w->remover, &options, &result);
}

static int purge_shown(struct world *w, const char *shown)
{
	struct entry e;
	int r = lifecycle_find(w->lifecycle, KEY_ID_ROOT, shown, &e);

	if (r != 0)
		return r;
	r = lifecycle_purge(w->lifecycle, &w->remover, &e.at, true);
	entry_release(&e);
	return r;
}

static int purge(struct world *w)
{
	return purge_shown(w, "v");
}

static int purge_directory(struct world *w)
{
	int r = purge_shown(w, "d");

	return r == -ENOENT ? purge_shown(w, "gone") : r;
}

static int empty_now(struct world *w)
{
	struct empty_options options = { .directory = KEY_ID_ROOT, .now = true };
	struct empty_result result;

	return lifecycle_empty(w->lifecycle, &w->remover, &options, &result);
}

static int expire(struct world *w)
{
	struct sweep_result result = { .more = true };
	int r = 0;

	while (r == 0 && result.more)
		r = lifecycle_sweep(w->lifecycle, 4, &result);
	return r;
}

/* ---- attributes --------------------------------------------------------------------- */

static int set_xattr(struct world *w, const char *path, const char *name, const void *value, size_t size)
{
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	int r = world_find(w, path, &spot);

	return r ? r : file_setxattr(w->namei, &w->maker, &where, spot.id, name, value, size, 0);
}

static int policy(struct world *w)
{
	return set_xattr(w, "d", "user.ddbfs.retention", "1d", 2);
}

static int xattr(struct world *w)
{
	char value[2000];

	memset(value, 'x', sizeof(value));
	return set_xattr(w, "b", "user.large", value, sizeof(value));
}

static int attributes(struct world *w)
{
	struct attr_change change = { .set = ATTR_MODE | ATTR_UID | ATTR_MTIME,
				      .mode = 0600,
				      .uid = 1000,
				      .mtime = { 1234567890, 123000000 } };
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	int r = world_find(w, "a", &spot);

	return r ? r : file_setattr(w->namei, &where, spot.id, &change, NULL);
}

static int special(struct world *w)
{
	int r = world_create(w, "dir", S_IFDIR | 0700);

	if (r == 0 || r == -EEXIST)
		r = world_create(w, "dir/symlink", S_IFLNK | 0777);
	return r == 0 || r == -EEXIST ? world_create(w, "dir/fifo", S_IFIFO | 0600) : r;
}

static int sync_all(struct world *w)
{
	return store_sync(w->store);
}

static int checkpoint(struct world *w)
{
	return store_checkpoint(w->store);
}

/* ---- the large file ------------------------------------------------------------------- */

static int sparse_destroy(struct world *w)
{
	int r = world_remove(w, "sparse");

	return r && r != -ENOENT ? r : empty_now(w);
}

static int sparse_truncate(struct world *w)
{
	return set_size(w, "sparse", WORLD_SPARSE_SIZE / 3);
}

static int sparse_replace(struct world *w)
{
	return world_rename(w, "a", "sparse", 0);
}

/* ---- for long histories ---------------------------------------------------------------- */

#define SOMEWHERE_SIZE (UINT64_C(6) * 32768)

/* From one byte to several chunks, each third time at the beginning of one. */
static int somewhere(struct world *w)
{
	static const size_t sizes[] = { 100, 5000, 32768, 3 * 32768, 40000, 4096, 1, 70000 };
	uint64_t n = (uint64_t)(w->clock.boottime_ns / (100 * CLOCK_SECOND_NS));
	size_t size = sizes[n % ARRAY_SIZE(sizes)];
	uint64_t offset = n * 7919 * 13 % (SOMEWHERE_SIZE - size);
	int r = world_create(w, "w", S_IFREG | 0644);

	if (r && r != -EEXIST)
		return r;
	if (n % 19 == 18)
		return world_remove(w, "w");
	if (n % 11 == 5)
		return set_size(w, "w", offset);
	if (n % 7 == 3)
		return punch_at(w, "w", offset, size);
	return world_write(w, "w", n % 3 ? offset : offset / 32768 * 32768, size, false);
}

static const struct {
	const char *name;
	int (*run)(struct world *w);
} ops[WORLD_OPS] = {
	[WORLD_CREATE] = { "create", create },
	[WORLD_WRITE_NEW] = { "write a new file", write_new },
	[WORLD_APPEND_SMALL] = { "append to a small file", append_small },
	[WORLD_APPEND_LARGE] = { "append to a large file", append_large },
	[WORLD_OVERWRITE_PART] = { "overwrite a part of a chunk", overwrite_part },
	[WORLD_OVERWRITE_CHUNKS] = { "overwrite chunks", overwrite_chunks },
	[WORLD_TRUNCATE] = { "truncate", truncate_down },
	[WORLD_TRUNCATE_TO_NOTHING] = { "truncate to nothing", truncate_to_nothing },
	[WORLD_TRUNCATE_UP] = { "truncate upwards", truncate_up },
	[WORLD_PUNCH] = { "punch", punch },
	[WORLD_RENAME] = { "rename", rename_file },
	[WORLD_RENAME_DIRECTORY] = { "rename a directory", rename_directory },
	[WORLD_RENAME_OVER] = { "rename over", rename_over },
	[WORLD_RENAME_INTO] = { "rename over in a directory", rename_into },
	[WORLD_EXCHANGE] = { "exchange", exchange },
	[WORLD_LINK] = { "link", link_file },
	[WORLD_RM] = { "rm", rm },
	[WORLD_RM_LINK] = { "rm one of two names", rm_link },
	[WORLD_RM_RF] = { "rm -rf", rm_rf },
	[WORLD_DISCARD] = { "mv into the trash", discard },
	[WORLD_RESTORE] = { "restore", restore },
	[WORLD_RESTORE_DIRECTORY] = { "restore a directory", restore_directory },
	[WORLD_RESTORE_OVER] = { "restore over", restore_over },
	[WORLD_UNDO] = { "undo", undo },
	[WORLD_PURGE] = { "purge", purge },
	[WORLD_PURGE_DIRECTORY] = { "purge a directory", purge_directory },
	[WORLD_EMPTY_NOW] = { "empty the trash", empty_now },
	[WORLD_POLICY] = { "set a policy", policy },
	[WORLD_XATTR] = { "set an xattr", xattr },
	[WORLD_ATTRIBUTES] = { "set attributes", attributes },
	[WORLD_SPECIAL] = { "mkdir, symlink, mkfifo", special },
	[WORLD_EXPIRE] = { "expire", expire },
	[WORLD_SYNC] = { "sync", sync_all },
	[WORLD_CHECKPOINT] = { "checkpoint", checkpoint },
	[WORLD_SPARSE_DESTROY] = { "destroy a sparse file", sparse_destroy },
	[WORLD_SPARSE_TRUNCATE] = { "truncate a sparse file", sparse_truncate },
	[WORLD_SPARSE_REPLACE] = { "replace a sparse file", sparse_replace },
	[WORLD_SOMEWHERE] = { "change a file somewhere", somewhere },
	[WORLD_REOPEN] = { "a new process", world_reopen_upper },
};

const char *world_op_name(enum world_op op)
{
	return ops[op].name;
}

void world_step(struct world *w, enum world_op op)
{
	test_clock_advance(&w->clock, op == WORLD_EXPIRE ? 31 * DAY_NS : 100 * CLOCK_SECOND_NS);
}

int world_do(struct world *w, enum world_op op)
{
	return ops[op].run(w);
}
