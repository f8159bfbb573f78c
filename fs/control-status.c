/*
 * control-status.c - "status": what is; and the text of `/.ddbfs/stats`.
 *
 * status: result version, store, mount_point, pid, trash_name, read_only,
 * retention_ns, live, trash, destroyed, restored, next_due_ns, space, engine,
 * clock.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/access.h"
#include "fs/bytes.h"
#include "fs/control-internal.h"
#include "store/util.h"

json_t *job_amount(int64_t items, int64_t bytes)
{
	return json_pack("{sI sI}", "items", (json_int_t)items, "bytes", (json_int_t)bytes);
}

/* What the files in the directory `at` occupy, and one level of directories below; 0 if it cannot be read. */
static uint64_t occupied(int at, const char *name, bool deeper)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	uint64_t bytes = 0;
	struct dirent *entry;
	struct stat st;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (deeper && S_ISDIR(st.st_mode))
			bytes += occupied(fd, entry->d_name, false);
	}
	if (directory)
		closedir(directory);
	else if (fd >= 0)
		close(fd);
	return bytes;
}

json_t *job_space(struct job *j)
{
	struct store_space s;

	if (store_space(job_store(j), &s))
		return NULL;
	return json_pack("{sI sI sI sI}", "used",
			 (json_int_t)occupied(AT_FDCWD, j->control->host.store_path, true), "free",
			 (json_int_t)s.free_bytes, "total", (json_int_t)s.total_bytes, "reserve",
			 (json_int_t)s.reserve_bytes);
}

int64_t job_next_due(struct job *j)
{
	struct store_query q = { .limit = 1, .attributes_only = true };
	struct store_page page = { 0 };
	struct key_parts parts;
	int64_t due = ITEM_FOREVER;

	key_range_due(ITEM_FOREVER - 1, &q.range);
	if (store_query(job_store(j), &q, &page) == 0 && page.count &&
	    key_parse(store_codec(job_store(j)), page.rows[0].key, page.rows[0].key_size, &parts) == 0)
		due = parts.due_ns;
	store_page_release(&page);
	return due;
}

/* ---- status ------------------------------------------------------------------------ */

static json_t *engine_to_json(struct job *j)
{
	struct store_status s = { 0 };

	store_status(job_store(j), &s);
	return json_pack("{sb si ss* sI sI sI sI sI sI sb}", "read_only", s.read_only, "error",
			 s.error, "problem", s.problem, "checkpoints", (json_int_t)s.checkpoints,
			 "syncs", (json_int_t)s.syncs, "journal_bytes", (json_int_t)s.journal_bytes,
			 "overlay_bytes", (json_int_t)s.overlay_bytes, "replayed",
			 (json_int_t)s.replayed, "free_pending", (json_int_t)s.free_pending,
			 "memory_locked", s.memory_locked);
}

static void add_line(void *data, const char *line)
{
	json_t *row = json_object();

	bytes_to_json(row, "found", line);
	json_array_append_new(data, row);
}

static json_t *scrub_to_json(struct job *j)
{
	struct scrub_status s;
	json_t *lines = json_array();

	lifecycle_scrub_status(job_lifecycle(j), &s);
	/* Names of others' files are not for everybody. */
	if (j->actor.uid == 0 || j->actor.uid == geteuid())
		lifecycle_scrub_found(job_lifecycle(j), add_line, lines);
	return json_pack("{sb sb sI sI sI sI sI so}", "enabled", s.enabled, "active", s.active,
			 "items", (json_int_t)s.items, "bytes", (json_int_t)s.bytes, "found",
			 (json_int_t)s.found, "last_found", (json_int_t)s.last_found, "finished_ns",
			 (json_int_t)s.finished_ns, "findings", lines);
}

static json_t *clock_to_json(struct job *j)
{
	int64_t jump_ns = 0;
	bool suspect = lifecycle_clock_suspect(job_lifecycle(j), &jump_ns);

	return json_pack("{sI sb sI}", "now_ns", (json_int_t)store_now_ns(job_store(j)), "suspect",
			 suspect, "jump_ns", (json_int_t)(suspect ? jump_ns : 0));
}

static json_t *destroyed_to_json(const int64_t c[STORE_COUNTERS_MAX])
{
	return json_pack("{sI sI sI sI}", "user", (json_int_t)c[COUNTER_DESTROYED_USER], "expired",
			 (json_int_t)c[COUNTER_DESTROYED_EXPIRED], "evicted",
			 (json_int_t)c[COUNTER_DESTROYED_EVICTED], "versions",
			 (json_int_t)c[COUNTER_DESTROYED_VERSIONS]);
}

void job_status(struct job *j)
{
	const struct control_host *h = &j->control->host;
	int64_t c[STORE_COUNTERS_MAX] = { 0 };
	struct policy policy = { 0 };
	json_t *result;
	int error = record_get_counters(job_store(j), c);

	if (!error)
		error = lifecycle_policy(job_lifecycle(j), KEY_ID_ROOT, &policy);
	if (error) {
		job_error_errno(j, NULL, error);
		return;
	}
	result = json_pack("{ss si ss sb sI}", "version", DDBFS_VERSION, "pid", (int)getpid(),
			   "trash_name", store_trash_name(job_store(j)), "read_only", h->read_only,
			   "retention_ns", (json_int_t)policy.retention_ns);
	bytes_to_json(result, "store", h->store_path);
	bytes_to_json(result, "mount_point", h->mount_point);
	json_object_set_new(result, "live", job_amount(c[COUNTER_LIVE_ITEMS], c[COUNTER_LIVE_BYTES]));
	json_object_set_new(result, "trash", job_amount(c[COUNTER_TRASH_ITEMS], c[COUNTER_TRASH_BYTES]));
	json_object_set_new(result, "destroyed", destroyed_to_json(c));
	json_object_set_new(result, "restored", json_integer(c[COUNTER_RESTORED]));
	json_object_set_new(result, "next_due_ns", json_integer(job_next_due(j)));
	json_object_set_new(result, "space", job_space(j));
	json_object_set_new(result, "engine", engine_to_json(j));
	json_object_set_new(result, "clock", clock_to_json(j));
	json_object_set_new(result, "scrub", scrub_to_json(j));
	job_result(j, CONTROL_DONE, result);
}

/* ---- /.ddbfs/stats ------------------------------------------------------------------- */

static void stat_line(FILE *f, const char *name, const char *help, const char *type, int64_t value)
{
	fprintf(f, "# HELP ddbfs_%s %s\n# TYPE ddbfs_%s %s\nddbfs_%s %" PRId64 "\n", name, help,
		name, type, name, value);
}

static void stat_destroyed(FILE *f, const int64_t c[STORE_COUNTERS_MAX])
{
	static const struct {
		const char *cause;
		enum item_counter counter;
	} causes[] = {
		{ "user", COUNTER_DESTROYED_USER },
		{ "expired", COUNTER_DESTROYED_EXPIRED },
		{ "evicted", COUNTER_DESTROYED_EVICTED },
		{ "versions", COUNTER_DESTROYED_VERSIONS },
	};

	fputs("# HELP ddbfs_destroyed_total Items destroyed, by cause.\n# TYPE ddbfs_destroyed_total counter\n",
	      f);
	for (unsigned i = 0; i < ARRAY_SIZE(causes); i++)
		fprintf(f, "ddbfs_destroyed_total{cause=\"%s\"} %" PRId64 "\n", causes[i].cause,
			c[causes[i].counter]);
}

static void stat_items(FILE *f, const int64_t c[STORE_COUNTERS_MAX])
{
	stat_line(f, "live_items", "Names of live items.", "gauge", c[COUNTER_LIVE_ITEMS]);
	stat_line(f, "live_bytes", "Sizes of live files, each once.", "gauge", c[COUNTER_LIVE_BYTES]);
	stat_line(f, "trash_items", "Names of deleted items.", "gauge", c[COUNTER_TRASH_ITEMS]);
	stat_line(f, "trash_bytes", "Sizes of files with deleted names only.", "gauge",
		  c[COUNTER_TRASH_BYTES]);
	stat_line(f, "restored_total", "Items restored.", "counter", c[COUNTER_RESTORED]);
	stat_destroyed(f, c);
}

static void stat_engine(FILE *f, struct store *s, const char *path)
{
	struct store_status status = { 0 };
	struct store_space space = { 0 };

	store_status(s, &status);
	stat_line(f, "store_read_only", "1 after a failed write: nothing is written any more.",
		  "gauge", status.read_only);
	stat_line(f, "checkpoints_total", "Checkpoints since the mount.", "counter",
		  (int64_t)status.checkpoints);
	stat_line(f, "syncs_total", "Syncs since the mount.", "counter", (int64_t)status.syncs);
	stat_line(f, "journal_bytes", "Bytes of the journal in use.", "gauge",
		  (int64_t)status.journal_bytes);
	stat_line(f, "overlay_bytes", "Bytes of changes held in memory.", "gauge",
		  (int64_t)status.overlay_bytes);
	stat_line(f, "free_pending", "Runs and bodies waiting to be given back.", "gauge",
		  (int64_t)status.free_pending);
	stat_line(f, "store_gets_total", "Items read one by one since the mount.", "counter",
		  (int64_t)status.gets);
	stat_line(f, "store_queries_total", "Ranges read since the mount.", "counter",
		  (int64_t)status.queries);
	stat_line(f, "store_rows_total", "Items that those ranges held.", "counter",
		  (int64_t)status.rows);
	stat_line(f, "memory_locked", "1 if keys cannot reach swap.", "gauge", status.memory_locked);
	if (store_space(s, &space))
		return;
	stat_line(f, "space_used_bytes", "Bytes on disk of this store.", "gauge",
		  (int64_t)occupied(AT_FDCWD, path, true));
	stat_line(f, "space_free_bytes", "Bytes that writes may still use.", "gauge",
		  (int64_t)space.free_bytes);
	stat_line(f, "space_reserve_bytes", "Bytes kept for deletions.", "gauge",
		  (int64_t)space.reserve_bytes);
}

/* What others may have had to wait for. */
static void stat_holds(FILE *f, struct lifecycle *l, struct store *s)
{
	struct store_status status = { 0 };
	struct lifecycle_holds holds;

	store_status(s, &status);
	lifecycle_holds(l, &holds);
	stat_line(f, "background_steps_total", "Steps of sweeping and other long work since the mount.",
		  "counter", (int64_t)holds.steps);
	stat_line(f, "background_longest_hold_microseconds",
		  "What one of them held others up for at the most.", "gauge", holds.longest_ns / 1000);
	stat_line(f, "background_longest_own_hold_microseconds",
		  "... but for what it waited for a processor.", "gauge", holds.longest_own_ns / 1000);
	stat_line(f, "background_long_steps_total",
		  "Steps that by that count held others up for more than 10 ms.", "counter",
		  (int64_t)holds.long_steps);
	stat_line(f, "store_waits_total", "Changes that waited for a checkpoint since the mount.",
		  "counter", (int64_t)status.waits);
	stat_line(f, "store_longest_wait_microseconds", "... and how long one did at the most.",
		  "gauge", status.longest_wait_ns / 1000);
}

static void stat_scrub(FILE *f, struct lifecycle *l)
{
	struct scrub_status s;

	lifecycle_scrub_status(l, &s);
	stat_line(f, "scrub_active", "1 while everything is being read, to find damage.", "gauge",
		  s.active);
	stat_line(f, "scrub_found", "Damaged things found in this scrub.", "gauge", (int64_t)s.found);
	stat_line(f, "scrub_last_found", "Damaged things found in the last scrub that ended.",
		  "gauge", (int64_t)s.last_found);
	stat_line(f, "scrub_items", "Items read in this scrub since the mount.", "gauge",
		  (int64_t)s.items);
	stat_line(f, "scrub_bytes", "Bytes read in this scrub since the mount.", "gauge",
		  (int64_t)s.bytes);
	stat_line(f, "scrub_finished_seconds", "When the last scrub ended, since 1970; 0: none did.",
		  "gauge", s.finished_ns / CLOCK_SECOND_NS);
}

int control_stats(struct control *c, char **ret_text, size_t *ret_size)
{
	struct store *s = namei_store(c->namei);
	int64_t counters[STORE_COUNTERS_MAX] = { 0 }, jump_ns = 0;
	char *text = NULL, *own = NULL;
	size_t size = 0, own_size = 0;
	FILE *f;
	int result = record_get_counters(s, counters);

	if (result)
		return result;
	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	stat_items(f, counters);
	stat_engine(f, s, c->host.store_path);
	stat_holds(f, namei_lifecycle(c->namei), s);
	stat_scrub(f, namei_lifecycle(c->namei));
	stat_line(f, "clock_suspect", "1 while a jump of the clock keeps things from being destroyed.",
		  "gauge", lifecycle_clock_suspect(namei_lifecycle(c->namei), &jump_ns));
	if (c->host.stats)
		c->host.stats(c->host.data, &own, &own_size);
	if (own)
		fwrite(own, 1, own_size, f);
	free(own);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}
