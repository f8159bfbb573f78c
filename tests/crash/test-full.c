/*
 * test-full.c - a disk that is full: the operation that would fill it is told
 * so, nothing else is; everything can be deleted, moved to the trash and back,
 * destroyed; and then there is room again, without opening the store anew.
 *
 * On a tmpfs and, where there are loop devices, on ext4, mounted in a namespace
 * of the test's own: needs root, and is skipped without.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/key.h"
#include "store/store.h"
#include "store/util.h"
#include "tests/lib/test.h"

#define MIB (UINT64_C(1) << 20)
#define BODY_FIRST 1000

static char disk[4100], path[4150], image[4150];
static struct store *store;
static uint8_t bytes[1 << 20];

/* ---- a small disk --------------------------------------------------------------- */

static bool run(const char *words)
{
	return system(words) == 0;
}

static bool mount_ext4(unsigned mib)
{
	char command[17000];

	snprintf(image, sizeof(image), "%s/image", test_directory());
	snprintf(command, sizeof(command),
		 "truncate -s %uM %s && mkfs.ext4 -q -F -m 0 %s && mount -o loop %s %s", mib, image,
		 image, image, disk);
	return run(command);
}

static bool mount_tmpfs(unsigned mib)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%um", mib);
	return mount("none", disk, "tmpfs", 0, options) == 0;
}

enum kind {
	TMPFS,
	EXT4,
};

static bool mount_disk(enum kind kind, unsigned mib)
{
	snprintf(disk, sizeof(disk), "%s/disk", test_directory());
	snprintf(path, sizeof(path), "%s/store", disk);
	if (mkdir(disk, 0700) < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	return kind == EXT4 ? mount_ext4(mib) : mount_tmpfs(mib);
}

static void unmount_disk(void)
{
	if (umount(disk) < 0)
		umount2(disk, MNT_DETACH);
}

/* ---- a store on it ----------------------------------------------------------------- */

static void open_store(void)
{
	struct store_open_report report = { 0 };
	int r = store_open(path, &(struct store_open_options){ 0 }, &report, &store);

	ck_assert_msg(r == 0, "store_open: %d %s", r, report.text);
}

static void make_store(void)
{
	struct store_create_options options = { .kdf_level = 3, .journal_bytes = 2 << 20 };

	memset(bytes, 0xa5, sizeof(bytes));
	ck_assert_int_eq(store_create(path, &options), 0);
	open_store();
}

static struct key item_at(uint64_t n, enum key_state state)
{
	struct place place = { .directory = 20 + n % 7,
			       .state = state,
			       .seq = state == KEY_DEL ? 5000 + n : 0 };
	struct key key;

	snprintf(place.name, sizeof(place.name), "file with a name of usual length %lu", n);
	key_item(store_codec(store), &place, &key);
	return key;
}

static struct store_op put(struct key key, enum store_condition condition, size_t size)
{
	return (struct store_op){
		.kind = STORE_PUT, .condition = condition, .key = key, .attrs = bytes, .attrs_size = size
	};
}

/* An item and, of every 16th, a body. */
static int create(uint64_t n, size_t body_size)
{
	struct store_op ops[2] = { put(item_at(n, KEY_ACT), STORE_IF_ABSENT, 180) };

	if (n % 16 == 0 && body_size)
		ops[1] = (struct store_op){ .kind = STORE_BODY_WRITE,
					    .body = BODY_FIRST + n,
					    .bytes = bytes,
					    .length = body_size };
	return store_transact(store, STORE_GROWING, ops, n % 16 || !body_size ? 1 : 2, NULL);
}

/* To the trash: larger there, with two rows more. */
static int trash(uint64_t n)
{
	struct store_op ops[4] = {
		{ .kind = STORE_DELETE, .condition = STORE_IF_PRESENT, .key = item_at(n, KEY_ACT) },
		put(item_at(n, KEY_DEL), STORE_IF_ABSENT, 250),
		put((struct key){ 0 }, STORE_IF_ABSENT, 60),
		put((struct key){ 0 }, STORE_IF_ABSENT, 60),
	};

	key_trash(5000 + n, &ops[2].key);
	key_due(1000000, 5000 + n, &ops[3].key);
	return store_transact(store, STORE_RELEASING, ops, 4, NULL);
}

/* From the trash: back (`restore`), or for good. */
static int untrash(uint64_t n, bool restore)
{
	struct store_op ops[4] = {
		{ .kind = STORE_DELETE, .condition = STORE_IF_PRESENT, .key = item_at(n, KEY_DEL) },
		{ .kind = STORE_DELETE },
		{ .kind = STORE_DELETE },
		put(item_at(n, KEY_ACT), STORE_IF_ABSENT, 180),
	};

	key_trash(5000 + n, &ops[1].key);
	key_due(1000000, 5000 + n, &ops[2].key);
	if (!restore)
		ops[3] = (struct store_op){ .kind = STORE_BODY_FREE, .body = BODY_FIRST + n };
	return store_transact(store, STORE_RELEASING, ops, restore || n % 16 == 0 ? 4 : 3, NULL);
}

/* How many were created before the first ENOSPC. Nothing else may come. */
static uint64_t fill_up(size_t body_size)
{
	uint64_t n = 0;
	int r;

	while ((r = create(n, body_size)) == 0)
		n++;
	ck_assert_int_eq(r, -ENOSPC);
	return n;
}

static uint64_t free_mib(void)
{
	struct statvfs vfs;

	ck_assert_int_eq(statvfs(path, &vfs), 0);
	return (uint64_t)vfs.f_bavail * vfs.f_frsize / MIB;
}

static void expect_all(uint64_t from, uint64_t to, enum key_state state)
{
	for (uint64_t n = from; n < to; n++) {
		struct key key = item_at(n, state);
		struct store_value value;
		int r = store_get(store, &key, true, &value);

		ck_assert_msg(r == 0, "item %lu: %d", n, r);
		store_value_release(&value);
	}
}

static void expect_done(int r, const char *what, uint64_t n)
{
	struct store_status status;

	if (r == 0)
		return;
	store_status(store, &status);
	ck_abort_msg("%s of item %lu: %d (%s)", what, n, r,
		     status.problem ? status.problem : "no problem");
}

/* Everything to the trash, half of it back, the rest destroyed, the other half too; then it is filled again. */
static void live_on(uint64_t count, size_t body_size)
{
	uint64_t again;

	for (uint64_t n = 0; n < count; n++)
		expect_done(trash(n), "deletion", n);
	expect_all(0, count, KEY_DEL);
	for (uint64_t n = 0; n < count / 2; n++)
		expect_done(untrash(n, true), "restoration", n);
	expect_all(0, count / 2, KEY_ACT);
	for (uint64_t n = count / 2; n < count; n++)
		expect_done(untrash(n, false), "destruction", n);
	for (uint64_t n = 0; n < count / 2; n++) {
		expect_done(trash(n), "second deletion", n);
		expect_done(untrash(n, false), "second destruction", n);
	}
	again = fill_up(body_size);
	printf("# %lu items fitted, then %lu; %lu MiB free\n", count, again, free_mib());
	ck_assert_uint_gt(again, count * 7 / 10);
}

static void test_disk(enum kind kind, unsigned mib, size_t body_size)
{
	uint64_t count;

	if (!mount_disk(kind, mib)) {
		printf("# skipped: no such disk can be mounted here\n");
		return;
	}
	make_store();
	count = fill_up(body_size);
	ck_assert_uint_gt(count, 1000);
	/* What fills the rest comes from outside. */
	if (body_size) {
		char command[4500];

		snprintf(command, sizeof(command),
			 "dd if=/dev/zero of=%s/filler bs=64k 2>/dev/null", disk);
		(void)!system(command);
		ck_assert_uint_eq(free_mib(), 0);
	}
	/* It opens on a full disk, with everything. */
	ck_assert_int_eq(store_close(store), 0);
	open_store();
	expect_all(0, count, KEY_ACT);
	live_on(count, body_size);
	ck_assert_int_eq(store_close(store), 0);
	open_store();
	ck_assert_int_eq(store_close(store), 0);
	unmount_disk();
}

START_TEST(test_bodies_fill_the_disk)
{
	test_disk((enum kind)_i, 220, 400000);
}
END_TEST

START_TEST(test_items_fill_the_disk)
{
	test_disk((enum kind)_i, 100, 0);
}
END_TEST

/* The map of the index as the limit, as a disk would be. */
START_TEST(test_a_full_map)
{
	struct store_open_options options = { .map_bytes = 48 << 20 };
	struct store_open_report report = { 0 };
	uint64_t count;

	snprintf(path, sizeof(path), "%s/store", test_directory());
	make_store();
	ck_assert_int_eq(store_close(store), 0);
	ck_assert_int_eq(store_open(path, &options, &report, &store), 0);
	count = fill_up(0);
	ck_assert_uint_gt(count, 1000);
	live_on(count, 0);
	ck_assert_int_eq(store_close(store), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash/full");
	TCase *t = tcase_create("full");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, test_bodies_fill_the_disk, TMPFS, EXT4 + 1);
	tcase_add_loop_test(t, test_items_fill_the_disk, TMPFS, EXT4 + 1);
	tcase_add_test(t, test_a_full_map);
	suite_add_tcase(suite, t);
	return test_main(suite);
}
