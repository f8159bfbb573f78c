/*
 * lmdb-index.c - the environment and its one writer. Readers: lmdb-reader.c.
 *
 * MDB_NOTLS, so that readers belong to no thread; never NOSYNC, NOMETASYNC,
 * WRITEMAP or NOMEMINIT. The map is 1 TiB of addresses and never resized: the
 * disk is the limit. The environment is opened through /proc/self/fd, since the
 * store's directory is known by descriptor.
 */
#include "store/lmdb-index.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <sys/stat.h>

#include "store/guard.h"
#include "store/lmdb-internal.h"
#include "store/value.h"

#define FULL_BELOW (UINT64_C(1) << 20) /* bytes: a disk with less was full a moment ago */

#define READERS_MAX 1022

int index_error(int r)
{
	switch (r) {
	case MDB_SUCCESS:
		return 0;
	case MDB_NOTFOUND:
		return INDEX_ABSENT;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return -ENOSPC;
	case MDB_READERS_FULL:
		return -EMFILE;
	case MDB_PANIC:
		return -EIO;
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_VERSION_MISMATCH:
	case MDB_INVALID:
	case MDB_PAGE_FULL:
	case MDB_CURSOR_FULL:
	case MDB_INCOMPATIBLE:
		return -EBADMSG;
	default:
		return r > 0 ? -r : -EINVAL;
	}
}

/* ---- environment ------------------------------------------------------- */

static int open_env(int dir_fd, unsigned flags, uint64_t map_bytes, MDB_env **ret_env)
{
	char path[64];
	MDB_env *env;
	int r = mdb_env_create(&env);

	if (r)
		return index_error(r);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	r = mdb_env_set_mapsize(env, map_bytes ? map_bytes : INDEX_MAP_DEFAULT);
	if (!r)
		r = mdb_env_set_maxreaders(env, READERS_MAX);
	if (!r)
		r = mdb_env_open(env, path, flags | MDB_NOTLS, 0600);
	if (r) {
		mdb_env_close(env);
		return index_error(r);
	}
	*ret_env = env;
	return 0;
}

static int open_dbi(MDB_env *env, MDB_dbi *ret_dbi)
{
	MDB_txn *txn;
	int r = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

	if (r)
		return index_error(r);
	r = mdb_dbi_open(txn, NULL, 0, ret_dbi);
	if (r) {
		mdb_txn_abort(txn);
		return index_error(r);
	}
	return index_error(mdb_txn_commit(txn));
}

/* Fixed places in a meta page: LMDB's own constants, checked before LMDB maps the file. */
#define META_FLAGS_AT 10
#define META_FLAG 8
#define META_MAGIC_AT 16
#define META_MAGIC UINT32_C(0xBEEFC0DE)
#define META_VERSION_AT 20
#define META_VERSION 1
#define META_SIZE_AT 40

static bool meta_is_good(const uint8_t *page)
{
	uint32_t words[2], size;
	uint16_t flags;

	memcpy(words, page + META_MAGIC_AT, sizeof(words));
	memcpy(&flags, page + META_FLAGS_AT, sizeof(flags));
	memcpy(&size, page + META_SIZE_AT, sizeof(size));
	return words[0] == META_MAGIC && words[1] == META_VERSION && flags == META_FLAG &&
	       size >= 512 && size <= 65536 && !(size & (size - 1));
}

int index_probe(int dir_fd, uint64_t *ret_size)
{
	_cleanup_close_ int fd =
		openat(dir_fd, "data.mdb", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint8_t first[INDEX_META_SIZE], second[INDEX_META_SIZE];
	uint32_t page_size;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || pread(fd, first, sizeof(first), 0) != sizeof(first) ||
	    !meta_is_good(first))
		return -EBADMSG;
	memcpy(&page_size, first + META_SIZE_AT, sizeof(page_size));
	if (pread(fd, second, sizeof(second), page_size) != sizeof(second) || !meta_is_good(second))
		return -EBADMSG;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int index_create(int dir_fd)
{
	MDB_env *env;
	int r = open_env(dir_fd, 0, INDEX_MAP_NEW, &env);

	if (r < 0)
		return r;
	mdb_env_close(env);
	return 0;
}

/* LMDB would follow a link and write to what is behind it. */
static int check_lock_file(int dir_fd)
{
	struct stat st;

	if (fstatat(dir_fd, "lock.mdb", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) ? 0 : -EBADMSG;
}

int index_open(int dir_fd, bool read_only, uint64_t map_bytes, struct index **ret_index)
{
	struct index *x;
	int dead, r = read_only ? 0 : check_lock_file(dir_fd);
	MDB_stat stat;

	if (r < 0)
		return r;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	x->dir_fd = dir_fd;
	x->map_bytes = map_bytes;
	guard_install();
	/* Whoever only reads holds the store's own lock too: there is no writer, so LMDB's lock file stays untouched. */
	r = open_env(dir_fd, read_only ? MDB_RDONLY | MDB_NOLOCK : 0, map_bytes, &x->env);
	if (r < 0) {
		free(x);
		return r;
	}
	if (!read_only)
		(void)mdb_reader_check(x->env, &dead);
	mdb_env_stat(x->env, &stat);
	x->page_size = stat.ms_psize;
	r = open_dbi(x->env, &x->dbi);
	if (r != 0) {
		mdb_env_close(x->env);
		free(x);
		return r < 0 ? r : -EBADMSG;
	}
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->reopening, NULL);
	*ret_index = x;
	return 0;
}

void index_close(struct index *x)
{
	if (!x)
		return;
	while (x->idle) {
		struct index_reader *next = x->idle->next;

		index_reader_free(x->idle);
		x->idle = next;
	}
	index_write_abort(x);
	mdb_env_close(x->env);
	if (x->dead)
		mdb_env_close(x->dead);
	pthread_mutex_destroy(&x->lock);
	pthread_mutex_destroy(&x->reopening);
	free(x);
}

int index_fd(struct index *x)
{
	int fd = -1;

	mdb_env_get_fd(x->env, &fd);
	return fd;
}

/* ---- the writer -------------------------------------------------------- */

int index_write_begin(struct index *x)
{
	int r = mdb_txn_begin(x->env, NULL, 0, &x->write);

	if (r)
		return index_error(r);
	r = mdb_cursor_open(x->write, x->dbi, &x->write_cursor);
	if (!r)
		return 0;
	index_write_abort(x);
	return index_error(r);
}

int index_write_get(struct index *x, const uint8_t *key, size_t key_size, struct buffer *b)
{
	MDB_val k = index_val(key, key_size), v;
	int r = index_error(mdb_get(x->write, x->dbi, &k, &v));

	if (r != 0)
		return r;
	if (v.mv_size > VALUE_SIZE_MAX)
		return -EBADMSG;
	buffer_reset(b);
	return buffer_append(b, v.mv_data, v.mv_size) ? 0 : -ENOMEM;
}

int index_write_seek(struct index *x, const uint8_t *key, size_t key_size, bool inclusive,
		     struct index_row *ret_row)
{
	MDB_val k = index_val(key, key_size), v;
	int r = index_error(mdb_cursor_get(x->write_cursor, &k, &v, MDB_SET_RANGE));

	if (r == 0 && !inclusive && index_compare(&k, key, key_size) == 0)
		r = index_error(mdb_cursor_get(x->write_cursor, &k, &v, MDB_NEXT));
	if (r == 0 && index_is_state(&k))
		r = index_error(mdb_cursor_get(x->write_cursor, &k, &v, MDB_NEXT));
	if (r != 0)
		return r;
	*ret_row = (struct index_row){
		.key = k.mv_data,
		.key_size = k.mv_size,
		.value = v.mv_data,
		.value_size = v.mv_size,
	};
	return 0;
}

/* LMDB says EIO when it wrote less than it asked for, which is what a disk does that becomes full. */
static int short_write(struct index *x, int r)
{
	struct statvfs vfs;

	if (r == -EIO && fstatvfs(index_fd(x), &vfs) == 0 &&
	    (uint64_t)vfs.f_bavail * vfs.f_frsize < FULL_BELOW)
		return -ENOSPC;
	return r;
}

int index_put(struct index *x, const uint8_t *key, size_t key_size, const uint8_t *value, size_t value_size)
{
	MDB_val k = index_val(key, key_size), v = index_val(value, value_size);
	int r = index_error(mdb_put(x->write, x->dbi, &k, &v, 0));

	return short_write(x, r > 0 ? -EIO : r);
}

int index_delete(struct index *x, const uint8_t *key, size_t key_size)
{
	MDB_val k = index_val(key, key_size);
	int r = index_error(mdb_del(x->write, x->dbi, &k, NULL));

	return r == INDEX_ABSENT ? 0 : r;
}

void index_write_abort(struct index *x)
{
	/* Cursors of a write transaction are closed with it; this one is closed first, as LMDB's manual asks. */
	if (x->write_cursor)
		mdb_cursor_close(x->write_cursor);
	if (x->write)
		mdb_txn_abort(x->write);
	x->write_cursor = NULL;
	x->write = NULL;
}

/* After a meta page could not be written, LMDB refuses everything, reading too. */
static bool refuses_all(struct index *x)
{
	MDB_txn *txn;
	int r = mdb_txn_begin(x->env, NULL, MDB_RDONLY, &txn);

	if (r == 0)
		mdb_txn_abort(txn);
	return r == MDB_PANIC;
}

/* Nothing will be written any more, but what is there can be read. The old environment stays for who reads in it now. */
static void reopen_locked(struct index *x)
{
	struct index_reader *idle;
	MDB_env *env;
	MDB_dbi dbi;

	if (x->dead || open_env(x->dir_fd, MDB_RDONLY | MDB_NOLOCK, x->map_bytes, &env) < 0)
		return;
	if (open_dbi(env, &dbi) != 0) {
		mdb_env_close(env);
		return;
	}
	pthread_mutex_lock(&x->lock);
	x->dead = x->env;
	x->env = env;
	idle = x->idle;
	x->idle = NULL;
	x->idle_count = 0;
	pthread_mutex_unlock(&x->lock);
	while (idle) {
		struct index_reader *next = idle->next;

		index_reader_free(idle);
		idle = next;
	}
}

void index_reopen_for_reading(struct index *x)
{
	pthread_mutex_lock(&x->reopening);
	reopen_locked(x);
	pthread_mutex_unlock(&x->reopening);
}

int index_write_commit(struct index *x)
{
	MDB_txn *txn = x->write;
	int r;

	mdb_cursor_close(x->write_cursor);
	x->write_cursor = NULL;
	x->write = NULL;
	r = index_error(mdb_txn_commit(txn));
	if (r != 0 && refuses_all(x)) {
		index_reopen_for_reading(x);
		return -EIO;
	}
	return short_write(x, r > 0 ? -EIO : r);
}

/* ---- facts ------------------------------------------------------------- */

int index_facts(struct index *x, bool count_free, struct index_facts *ret_facts)
{
	MDB_envinfo info;
	MDB_stat stat;
	uint64_t pages = 0;
	int r = 0;

	mdb_env_info(x->env, &info);
	mdb_env_stat(x->env, &stat);
	if (count_free)
		r = index_free_pages(x, &pages);
	if (r < 0)
		return r;
	*ret_facts = (struct index_facts){
		.commit = info.me_last_txnid,
		.entries = stat.ms_entries,
		.used_bytes = (info.me_last_pgno + 1) * x->page_size,
		.free_bytes = pages * x->page_size,
		.map_bytes = info.me_mapsize,
		.page_size = x->page_size,
	};
	return 0;
}

int index_meta(struct index *x, uint64_t commit, uint8_t ret_meta[INDEX_META_SIZE])
{
	ssize_t n = pread(index_fd(x), ret_meta, INDEX_META_SIZE, (off_t)((commit & 1) * x->page_size));

	return n == INDEX_META_SIZE ? 0 : n < 0 ? -errno : -EBADMSG;
}
