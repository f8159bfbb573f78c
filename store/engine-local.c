/*
 * engine-local.c - the local engine put together: made, opened, closed.
 */
#include "store/engine-local.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define LIMIT_OPERATIONS 100
#define LIMIT_TRANSACTION_BYTES (4 << 20)
#define LIMIT_ITEM_BYTES (400 << 10)
/* What keeps an item's node in LMDB's leaf pages, of which one holds two at the least. */
#define LIMIT_INLINE_BYTES 1536
#define LIMIT_WRITE_BYTES (1 << 20)

/* Verified before it is used at every open, and after an unclean end; larger ones by a scrub or a check. */
#define VERIFY_ALWAYS (UINT64_C(128) << 20)
#define VERIFY_UNCLEAN (UINT64_C(1) << 30)

/* ---- making ----------------------------------------------------------------- */

static int put_first_state(int dir_fd, const struct keyring *keys)
{
	struct engine_local e = { .keys = keys };
	int r = index_open(dir_fd, false, INDEX_MAP_NEW, &e.index);

	if (r == 0)
		r = segments_open(dir_fd, false, 1, &e.segments);
	if (r == 0)
		r = index_write_begin(e.index);
	if (r == 0) {
		r = local_state_put(&e, 0);
		if (r == 0)
			r = index_write_commit(e.index);
	}
	segments_close(e.segments);
	index_close(e.index);
	buffer_release(&e.value);
	return r;
}

int engine_local_create(int dir_fd, const struct keyring *keyring,
			const struct store_create_options *options)
{
	int r = segments_create(dir_fd);

	if (r == 0)
		r = journal_create(dir_fd, keyring);
	if (r == 0)
		r = index_create(dir_fd);
	if (r == 0)
		r = put_first_state(dir_fd, keyring);
	if (r == 0 && fsync(dir_fd) < 0)
		r = -errno;
	return r;
}

/* ---- the table ---------------------------------------------------------------- */

static int local_space(struct engine *engine, struct store_space *ret_space)
{
	struct engine_local *e = local_of(engine);
	struct store_space space;
	struct statvfs vfs;
	uint64_t reserve;
	bool allocated;

	if (fstatvfs(e->dir_fd, &vfs) < 0)
		return -errno;
	pthread_mutex_lock(&e->commit);
	reserve = space_reserve(&e->space);
	allocated = !e->space.unsupported;
	pthread_mutex_unlock(&e->commit);
	space.total_bytes = (uint64_t)vfs.f_blocks * vfs.f_frsize;
	space.free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	/* Where the reserve is allocated it is not among what is free. */
	if (!allocated)
		space.free_bytes -= util_min(space.free_bytes, reserve);
	space.used_bytes = space.total_bytes - (uint64_t)vfs.f_bfree * vfs.f_frsize;
	space.reserve_bytes = reserve;
	*ret_space = space;
	return 0;
}

static const char *problem_of(const struct engine_local *e)
{
	if (e->problem)
		return e->problem;
	if (e->unreadable)
		return "file data cannot be read from the disk, and changes that lie above it wait for that: "
		       "run `ddbfs scrub`, and remove the files that it names, or mend the disk";
	return e->unpunched ? "space that was freed cannot be given back to the disk" : NULL;
}

static void local_status(struct engine *engine, struct store_status *ret_status)
{
	struct engine_local *e = local_of(engine);
	struct store_status status = {
		.error = e->error,
		.read_only = e->error != 0 || e->read_only,
		.problem = problem_of(e),
		.checkpoints = e->checkpoints,
		.syncs = e->syncs,
		.replayed = e->replayed,
		.free_pending = e->free_pending,
		.waits = e->waits,
		.longest_wait_ns = e->longest_wait_ns,
	};

	pthread_mutex_lock(&e->commit);
	status.journal_bytes = journal_capacity(e->journal) - journal_room(e->journal);
	pthread_mutex_lock(&e->maps);
	status.overlay_bytes = e->open->bytes + (e->sealed ? e->sealed->bytes : 0);
	pthread_mutex_unlock(&e->maps);
	pthread_mutex_unlock(&e->commit);
	*ret_status = status;
}

static void release(struct engine_local *e)
{
	overlay_free(e->open);
	overlay_free(e->sealed);
	journal_close(e->journal);
	segments_close(e->segments);
	index_close(e->index);
	buffer_release(&e->value);
	buffer_release(&e->merged);
	buffer_release(&e->released);
	buffer_release(&e->lost);
	buffer_release(&e->punched);
	crew_free(e->crew);
	util_close_p(&e->dir_fd);
	pthread_cond_destroy(&e->group_done);
	pthread_mutex_destroy(&e->group_lock);
	pthread_cond_destroy(&e->done);
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->control_lock);
	pthread_mutex_destroy(&e->maps);
	pthread_mutex_destroy(&e->commit);
	free(e);
}

static int local_close(struct engine *engine)
{
	struct engine_local *e = local_of(engine);
	int r = 0;

	local_thread_stop(e);
	if (!e->read_only)
		r = e->error ? -EIO : local_checkpoint_last(e);
	release(e);
	return r;
}

static const struct engine_ops local_ops = {
	.close = local_close,
	.get = local_get,
	.query = local_query,
	.transact = local_transact,
	.yield = local_yield,
	.body_read = local_body_read,
	.body_seek = local_body_seek,
	.body_usage = local_body_usage,
	.scan = local_scan,
	.verify = local_verify_running,
	.unused = local_unused,
	.sync = local_sync,
	.checkpoint = local_checkpoint,
	.space = local_space,
	.status = local_status,
};

/* ---- opening ------------------------------------------------------------------- */

static void init_locks(struct engine_local *e)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&e->commit, NULL);
	pthread_mutex_init(&e->maps, NULL);
	pthread_mutex_init(&e->control_lock, NULL);
	pthread_mutex_init(&e->group_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &monotonic);
	pthread_cond_init(&e->done, &monotonic);
	pthread_cond_init(&e->group_done, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static struct engine_local *engine_new(const struct keyring *keys, const struct store_open_options *options)
{
	struct engine_local *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->engine.ops = &local_ops;
	e->engine.limits = (struct store_limits){
		.operations = LIMIT_OPERATIONS,
		.transaction_bytes = LIMIT_TRANSACTION_BYTES,
		.item_bytes = LIMIT_ITEM_BYTES,
		.inline_bytes = LIMIT_INLINE_BYTES,
		.write_bytes = LIMIT_WRITE_BYTES,
	};
	e->keys = keys;
	e->codec.sealed_names = keys->sealed_names;
	memcpy(e->codec.token_key, keys->keys[SEAL_TOKEN].bytes, KEY_TOKEN_SIZE);
	e->read_only = options->read_only;
	e->discard = options->discard_journal;
	e->generation_bytes = options->generation_bytes ? options->generation_bytes :
							  LOCAL_GENERATION_BYTES;
	e->dir_fd = -1;
	init_locks(e);
	e->open = overlay_new();
	if (e->open && crew_new(&e->crew) == 0)
		return e;
	release(e);
	return NULL;
}

int local_damaged(struct store_open_report *report, const char *what)
{
	snprintf(report->text, sizeof(report->text),
		 "%s; nothing was changed: restore the store from a backup", what);
	return STORE_DAMAGED;
}

static int verify(struct engine_local *e, const struct store_open_options *options,
		  struct store_open_report *report)
{
	struct local_verdict verdict;
	int r = local_verify(e->dir_fd, e->keys, options->map_bytes, &verdict);

	if (r < 0)
		return r;
	if (verdict.damaged)
		return local_damaged(report, verdict.text);
	if (verdict.unreadable)
		e->problem = "items of the store are damaged: run `ddbfs check`";
	return 0;
}

/* Opens the three kinds of files, the index after it was looked at. */
static int open_files(struct engine_local *e, const struct store_open_options *options,
		      struct store_open_report *report, struct local_state *ret_state)
{
	uint64_t size;
	int r = index_probe(e->dir_fd, &size);

	if (r == -EBADMSG)
		return local_damaged(report, "the file data.mdb is missing or not a database");
	if (r == 0)
		r = journal_open(e->dir_fd, e->keys, e->read_only, &e->journal);
	if (r == -EBADMSG)
		return local_damaged(report, "a journal is missing or has not its size");
	if (r == 0 && (options->verify || size < VERIFY_ALWAYS))
		r = verify(e, options, report);
	if (r != 0)
		return r;
	r = index_open(e->dir_fd, e->read_only, options->map_bytes, &e->index);
	if (r == -EBADMSG)
		return local_damaged(report, "data.mdb cannot be opened, or lock.mdb is not a plain file");
	if (r == 0)
		r = local_state_read(e, ret_state);
	if (r == -EBADMSG || r == -EIO)
		return local_damaged(report, "the database does not say what it holds");
	if (r == 0)
		r = segments_open(e->dir_fd, e->read_only, ret_state->next_segment, &e->segments);
	return r == -EBADMSG ? local_damaged(report, "the directory of segments is missing") : r;
}

/* Whether FREE lists anything. */
static int look_for_free(struct engine_local *e)
{
	struct index_reader *reader;
	struct key_range range;
	struct key_parts parts;
	struct index_row row;
	int r = index_reader_take(e->index, &reader);

	if (r < 0)
		return r;
	key_range_free(&range);
	r = index_reader_renew(reader);
	if (r == 0)
		r = index_seek(reader, range.from.bytes, range.from.size, true, false, &row);
	if (r == 0 && key_parse(&e->codec, row.key, row.key_size, &parts) == 0 &&
	    (parts.kind == KEY_KIND_FREE_BODY || parts.kind == KEY_KIND_FREE_RUN))
		e->free_bodies = e->free_runs = true;
	index_reader_give(e->index, reader);
	return r < 0 ? r : 0;
}

/* What a writer does after the replay: its commit, a fresh journal, the thread. */
static int start(struct engine_local *e, const struct local_state *state, bool clean)
{
	int r = clean ? 0 : local_reclaim(e, state);

	space_init(&e->space, index_fd(e->index));
	if (r == 0)
		r = look_for_free(e);
	/* After a kill, what is replayed may be in the page cache only. */
	for (unsigned i = 0; i < JOURNAL_FILES && r == 0 && !clean; i++)
		r = journal_sync(e->journal, i);
	e->durable_seq = e->last_seq;
	if (r == 0)
		r = local_checkpoint_replayed(e);
	if (r == 0 && (e->free_bodies || e->free_runs))
		e->control.requested = e->control.drain = true;
	return r == 0 ? local_thread_start(e) : r;
}

static int open_engine(struct engine_local *e, const struct store_open_options *options,
		       struct store_open_report *report)
{
	struct local_state state;
	uint64_t size = 0;
	bool clean = false;
	int r = open_files(e, options, report, &state);

	if (r != 0)
		return r;
	e->applied_seq = state.applied_seq;
	r = local_replay(e, report, &clean);
	if (r == 0 && !clean && !options->verify && index_probe(e->dir_fd, &size) == 0 &&
	    size >= VERIFY_ALWAYS && size < VERIFY_UNCLEAN)
		r = verify(e, options, report);
	if (r != 0 || e->read_only)
		return r;
	r = start(e, &state, clean);
	if (r != LOCAL_UNREADABLE)
		return r;
	snprintf(report->text, sizeof(report->text),
		 "file data cannot be read from the disk, and changes in the journal lie above it; they are kept: "
		 "mount the store read-only, mend the disk, or give up what cannot be read with "
		 "`ddbfs check --discard-journal`");
	return STORE_DAMAGED;
}

int engine_local_open(int dir_fd, const struct keyring *keyring, const struct store_open_options *options,
		      struct store_open_report *ret_report, struct engine **ret_engine)
{
	struct engine_local *e = engine_new(keyring, options);
	int r;

	if (!e)
		return -ENOMEM;
	e->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	r = e->dir_fd < 0 ? -errno : open_engine(e, options, ret_report);
	if (r != 0) {
		release(e);
		return r;
	}
	*ret_engine = &e->engine;
	return 0;
}
