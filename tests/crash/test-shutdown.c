/*
 * test-shutdown.c - ext4 stops in mid-stride: what was not on the disk is gone,
 * its own journal included.
 *
 * A file system on a store is worked on by a history that chance made
 * (history.h), with small generations, so that checkpoints and punching are under
 * way as well. At some operation the disk stops. It is mounted again, and all
 * that can be seen of the store, trash, facts, xattrs, links and times too, is
 * what the same history on the engine in memory was at one moment: not before the
 * last sync that had returned, not after the operation under way. `check` finds
 * nothing, before anything is made good and after, and the file system goes on.
 *
 * Needs root and a loop device, and is skipped without.
 *     DDBFS_SHUTDOWN_ROUNDS  how often (20)
 *     DDBFS_SHUTDOWN_SEED    of the random choices
 */
#include <fcntl.h>
#include <linux/ioctl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/files.h"
#include "tests/crash/history.h"

/* As in the kernel's fs/ext4/ext4.h, which exports neither. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define SHUTDOWN_WITHOUT_LOG 2

#define CHANGES 140
#define PATIENCE_US 60000000

/* What the working process tells, in memory shared with it. */
struct progress {
	_Atomic size_t acknowledged, synced;
	atomic_bool stopped; /* the disk: from then on anything may fail */
	atomic_bool wrong; /* something failed before */
};

static char original[4100], image[4100], disk[4100], path[4120];
static enum world_op ops[HISTORY_OPS_MAX];
static struct history history;
static struct progress *progress;
static uint64_t seed;
static unsigned round_number;

static unsigned long number(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

/* ---- the disk ---------------------------------------------------------------------- */

static bool run(const char *format, const char *a, const char *b)
{
	char command[9000];

	snprintf(command, sizeof(command), "%s %s %s", format, a, b);
	return system(command) == 0;
}

static bool make_disk(void)
{
	snprintf(original, sizeof(original), "%s/original", test_directory());
	snprintf(image, sizeof(image), "%s/image", test_directory());
	snprintf(disk, sizeof(disk), "%s/disk", test_directory());
	snprintf(path, sizeof(path), "%s/store", disk);
	return mkdir(disk, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       run("truncate -s 200M", image, "") && run("mkfs.ext4 -q -F", image, "") &&
	       run("mount -o loop", image, disk);
}

static int open_disk(void)
{
	int fd = open(disk, O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* What was there when the work began is there after it. */
static void put_store(void)
{
	int fd;

	files_copy(original, path);
	fd = open_disk();
	ck_assert_int_eq(syncfs(fd), 0);
	close(fd);
}

static void stop_disk(void)
{
	uint32_t how = SHUTDOWN_WITHOUT_LOG;
	int fd = open_disk();

	progress->stopped = true;
	ck_assert_int_eq(ioctl(fd, SHUTDOWN, &how), 0);
	close(fd);
}

/* ---- the work ------------------------------------------------------------------------ */

/* In the child, which waits to be killed when it is done, or the disk is gone. */
static void work(void)
{
	struct store_open_options options = { .generation_bytes = 300 << 10 };
	struct store_open_report why;
	struct world w;

	history_begin(&history, &w);
	if (world_open(&w, path, &options, &why))
		_exit(1);
	for (size_t i = 0; i < history.count; i++) {
		world_step(&w, ops[i]);
		if (world_do(&w, ops[i]) != history.results[i]) {
			progress->wrong = !progress->stopped;
			break;
		}
		progress->acknowledged = i + 1;
		if (!history_is_change(ops[i]))
			progress->synced = i + 1;
	}
	for (;;)
		pause();
}

/* The disk stops soon after operation `at`, while the next ones are under way. */
static void crash(size_t at)
{
	unsigned waited = 0;
	int status;
	pid_t pid;

	memset(progress, 0, sizeof(*progress));
	fflush(NULL);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		work();
	for (; progress->acknowledged < at && !progress->wrong && waited < PATIENCE_US; waited += 100)
		usleep(100);
	usleep((useconds_t)(files_random(&seed) % 4000));
	stop_disk();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_msg(!progress->wrong && waited < PATIENCE_US,
		      "round %u: %s fails or hangs, and the disk does not", round_number,
		      world_op_name(ops[progress->acknowledged]));
	ck_assert(run("umount", disk, ""));
	ck_assert(run("mount -o loop", image, disk));
}

/* ---- and after it ---------------------------------------------------------------------- */

static void expect_sound(struct world *w)
{
	struct store_open_options options = { .read_only = true, .clock = &w->clock.clock };
	struct store_open_report why = { 0 };
	int r = store_open(path, &options, &why, &w->store);

	ck_assert_msg(r == 0, "round %u: it does not open for check: %d %s", round_number, r, why.text);
	ck_assert_msg(world_check(w) == 0, "round %u: check finds faults", round_number);
	ck_assert_int_eq(store_close(w->store), 0);
}

static void open_again(struct world *w)
{
	struct store_open_report why = { 0 };
	int r = world_open(w, path, &(struct store_open_options){ 0 }, &why);

	ck_assert_msg(r == 0, "round %u: it does not open: %d %s", round_number, r, why.text);
}

/* What is in it, which is what the history had. The caller frees it. */
static char *expect_state(struct world *w)
{
	struct buffer text = { 0 };

	world_dump(w, &text);
	ck_assert_msg(history_has(&history, (char *)text.bytes, progress->synced,
				  progress->acknowledged + 1),
		      "round %u: another state than after %zu operations, %zu synced", round_number,
		      progress->acknowledged, progress->synced);
	return (char *)text.bytes;
}

static void expect_use(struct world *w)
{
	static const enum world_op more[] = { WORLD_SPECIAL, WORLD_SOMEWHERE, WORLD_RM, WORLD_CHECKPOINT };
	struct store_status status;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		int r;

		world_step(w, more[i]);
		r = world_do(w, more[i]);
		ck_assert_msg(r == 0 || r == -EEXIST || r == -ENOENT, "round %u: %s: %d",
			      round_number, world_op_name(more[i]), r);
	}
	store_status(w->store, &status);
	ck_assert_uint_eq(status.free_pending, 0);
}

/* Whether the last operation that was acknowledged was lost: it had not been synced. */
static bool check(void)
{
	_cleanup_free_ char *text = NULL;
	struct world w;

	history_begin_after(&history, &w, progress->acknowledged);
	expect_sound(&w);
	open_again(&w);
	text = expect_state(&w);
	expect_use(&w);
	ck_assert_int_eq(world_close(&w), 0);
	expect_sound(&w);
	for (size_t i = history.ends[progress->acknowledged]; i < history.states_count; i++)
		if (strcmp(history.states[i], text) == 0)
			return false;
	return true;
}

static bool run_round(void)
{
	struct history_rhythm rhythm = { .sync_every = 3 + round_number % 9, .checkpoint_every = 40 };
	bool lost;

	seed = number("DDBFS_SHUTDOWN_SEED", 20261201) + round_number * UINT64_C(0x9e3779b97f4a7c15) + 1;
	history = (struct history){ .ops = ops };
	history.count = history_choose_any(&rhythm, CHANGES, &seed, ops);
	history_run(&history);
	files_remove(original);
	history_make_store(&history, original);
	put_store();
	crash(1 + files_random(&seed) % (history.count - 1));
	lost = check();
	history_release(&history);
	return lost;
}

START_TEST(test_a_disk_that_stops)
{
	unsigned long rounds = number("DDBFS_SHUTDOWN_ROUNDS", 20), lost = 0, behind = 0, last = 0;

	if (!make_disk()) {
		printf("# skipped: no loop device can be mounted here\n");
		return;
	}
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	for (round_number = 0; round_number < rounds; round_number++) {
		lost += run_round();
		behind += progress->acknowledged;
		last += progress->acknowledged - progress->synced;
	}
	printf("# %lu rounds: %lu operations acknowledged, %lu of them not synced when the disk stopped, in %lu rounds some lost, all else was there\n",
	       rounds, behind, last, lost);
	umount2(disk, MNT_DETACH);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/shutdown");
	TCase *t = tcase_create("shutdown");

	tcase_set_timeout(t, 280);
	tcase_add_test(t, test_a_disk_that_stops);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
