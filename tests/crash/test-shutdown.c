/*
 * test-shutdown.c - ext4 stops in mid-stride: what was not on the disk is gone,
 * its own journal included. A store that was being worked on is mounted again,
 * opened, and must hold what was synced, and a whole number of transactions.
 *
 * Needs root and a loop device, and is skipped without.
 *     DDBFS_SHUTDOWN_ROUNDS  how often (20)
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

#include "store/util.h"
#include "tests/crash/plan.h"
#include "tests/lib/test.h"

/* As in the kernel's fs/ext4/ext4.h, which exports neither. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
#define SHUTDOWN_WITHOUT_LOG 2

struct progress {
	_Atomic uint64_t acknowledged;
	_Atomic uint64_t synced;
	atomic_bool begun;
};

static char image[4100], disk[4100], path[4120];
static struct progress *progress;

static bool run(const char *format, const char *a, const char *b)
{
	char command[9000];

	snprintf(command, sizeof(command), "%s %s %s", format, a, b);
	return system(command) == 0;
}

static bool make_disk(void)
{
	snprintf(image, sizeof(image), "%s/image", test_directory());
	snprintf(disk, sizeof(disk), "%s/disk", test_directory());
	snprintf(path, sizeof(path), "%s/store", disk);
	return mkdir(disk, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       run("truncate -s 200M", image, "") && run("mkfs.ext4 -q -F", image, "") &&
	       run("mount -o loop", image, disk);
}

static void shut_down(void)
{
	uint32_t how = SHUTDOWN_WITHOUT_LOG;
	int fd = open(disk, O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ioctl(fd, SHUTDOWN, &how), 0);
	close(fd);
}

/* In the child, until it is killed or the disk is gone. */
static void work(unsigned round)
{
	struct store_open_report report;
	struct store *s;
	uint64_t n;

	if (store_open(path, &(struct store_open_options){ .generation_bytes = 300 << 10 }, &report, &s) ||
	    plan_count(s, &n))
		_exit(1);
	progress->acknowledged = progress->synced = n;
	progress->begun = true;
	for (;; n++) {
		if (plan_do(s, n))
			pause();
		progress->acknowledged = n + 1;
		if (n % (3 + round % 9) == 0) {
			if (store_sync(s))
				pause();
			progress->synced = n + 1;
		}
	}
}

static void crash(unsigned round)
{
	int status;
	pid_t pid;

	progress->begun = false;
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		work(round);
	for (unsigned i = 0; i < 2000 && !progress->begun; i++)
		usleep(5000);
	ck_assert(progress->begun);
	usleep(20000 + round * 37777 % 250000);
	shut_down();
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert(run("umount", disk, ""));
	ck_assert(run("mount -o loop", image, disk));
}

static uint64_t check(unsigned round)
{
	struct store_open_report report = { 0 };
	char text[200] = "";
	struct store *s;
	uint64_t n;
	int r = store_open(path, &(struct store_open_options){ 0 }, &report, &s);

	ck_assert_msg(r == 0, "round %u: store_open: %d %s", round, r, report.text);
	ck_assert_int_eq(plan_count(s, &n), 0);
	ck_assert_msg(n >= progress->synced && n <= progress->acknowledged + 1,
		      "round %u: %lu transactions, %lu synced, %lu acknowledged", round, n,
		      progress->synced, progress->acknowledged);
	r = plan_check(s, n, text, sizeof(text));
	ck_assert_msg(r == 0, "round %u: of %lu: %s", round, n, text);
	ck_assert_int_eq(store_close(s), 0);
	return n;
}

START_TEST(test_a_disk_that_stops)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	const char *number = getenv("DDBFS_SHUTDOWN_ROUNDS");
	unsigned rounds = number ? (unsigned)strtoul(number, NULL, 0) : 20;
	uint64_t lost = 0, n = 0;

	if (!make_disk()) {
		printf("# skipped: no loop device can be mounted here\n");
		return;
	}
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	ck_assert_int_eq(store_create(path, &options), 0);
	for (unsigned i = 0; i < rounds; i++) {
		crash(i);
		n = check(i);
		lost += progress->acknowledged > n ? progress->acknowledged - n : 0;
	}
	printf("# %u rounds, %lu transactions held, %lu acknowledged ones lost, none that was synced\n",
	       rounds, n, lost);
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
