#include "store/keyring.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "store/header.h"
#include "tests/lib/test.h"

#define PASSPHRASE "correct horse battery staple"

static const struct store_credentials with_passphrase = { .passphrase = PASSPHRASE };
static const struct store_credentials without;

static char directory[4096];
static char key_path[4200];
static int dir_fd = -1;

/* Each test has a directory of its own. */
static void setup(void)
{
	snprintf(directory, sizeof(directory), "%s", test_directory());
	snprintf(key_path, sizeof(key_path), "%s.keyfile", directory);
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
}

static void teardown(void)
{
	close(dir_fd);
	unlink(key_path);
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

static size_t read_file(const char *name, uint8_t *bytes, size_t size)
{
	int fd = openat(dir_fd, name, O_RDONLY);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	n = read(fd, bytes, size);
	ck_assert_int_ge(n, 0);
	close(fd);
	return (size_t)n;
}

static bool exists(const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(const struct store_credentials *credentials)
{
	struct store_create_options options = { .credentials = *credentials, .kdf_level = 3 };
	struct keyring keyring;

	ck_assert_int_eq(keyring_create(dir_fd, &options, &keyring), 0);
	ck_assert_int_eq(keyring_commit(dir_fd), 0);
	keyring_release(&keyring);
}

static int try_open(const struct store_credentials *credentials, struct store_open_report *ret_report)
{
	struct keyring keyring;
	int result;

	memset(ret_report, 0, sizeof(*ret_report));
	result = keyring_open(dir_fd, credentials, ret_report, &keyring);
	if (result == 0)
		keyring_release(&keyring);
	else
		ck_assert_msg(ret_report->text[0], "a refusal (%d) says why", result);
	return result;
}

static void assert_opens(const struct store_credentials *credentials, int expected, const char *said)
{
	struct store_open_report report;
	int result = try_open(credentials, &report);

	ck_assert_msg(result == expected, "opened with %d (%s), not %d", result, report.text, expected);
	if (said)
		ck_assert_msg(strstr(report.text, said), "'%s' does not say '%s'", report.text, said);
}

/* Names, sizes, modes and times of all files: what a refused open must not change. */
static void snapshot(char *text, size_t size)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	size_t at = 0;
	char lines[16][200];
	size_t count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir))) {
		struct stat st;

		ck_assert_int_eq(fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		if (strcmp(entry->d_name, "..") != 0 && count < 16)
			snprintf(lines[count++], sizeof(lines[0]), "%.80s %ld %o %ld.%09ld\n",
				 entry->d_name, (long)st.st_size, st.st_mode,
				 (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	closedir(dir);
	qsort(lines, count, sizeof(lines[0]), (int (*)(const void *, const void *))strcmp);
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(text + at, size - at, "%s", lines[i]);
}

/* ---- making ------------------------------------------------------------- */

START_TEST(same_keys_come_back)
{
	struct store_create_options options = { .credentials = with_passphrase, .kdf_level = 3 };
	struct keyring made, opened;

	ck_assert_int_eq(keyring_create(dir_fd, &options, &made), 0);
	ck_assert_int_eq(keyring_commit(dir_fd), 0);
	ck_assert_int_eq(keyring_open(dir_fd, &with_passphrase, NULL, &opened), 0);
	ck_assert_mem_eq(made.store_id, opened.store_id, sizeof(made.store_id));
	for (int use = 1; use < SEAL_USES; use++)
		ck_assert_mem_eq(made.keys[use].bytes, opened.keys[use].bytes, SEAL_KEY_SIZE);
	ck_assert_str_eq(opened.trash_name, ".trash");
	ck_assert_uint_eq(opened.journal_bytes, 32 << 20);
	ck_assert(opened.sealed_names);
	keyring_release(&made);
	keyring_release(&opened);
	keyring_release(NULL);
	for (size_t i = 0; i < sizeof(opened); i++)
		ck_assert_uint_eq(((uint8_t *)&opened)[i], 0);
}
END_TEST

START_TEST(two_stores_share_nothing)
{
	struct store_create_options options = { .credentials = with_passphrase, .kdf_level = 3 };
	struct keyring a, b;

	ck_assert_int_eq(keyring_create(dir_fd, &options, &a), 0);
	ck_assert_int_eq(keyring_create(dir_fd, &options, &b), 0);
	ck_assert_mem_ne(a.store_id, b.store_id, sizeof(a.store_id));
	ck_assert_mem_ne(a.keys[1].bytes, b.keys[1].bytes, SEAL_KEY_SIZE);
	keyring_release(&a);
	keyring_release(&b);
}
END_TEST

START_TEST(no_store_before_the_commit)
{
	struct store_create_options options = { .kdf_level = 3 };
	struct keyring keyring;

	assert_opens(&without, STORE_NOT_A_STORE, "no file");
	ck_assert_int_eq(keyring_create(dir_fd, &options, &keyring), 0);
	keyring_release(&keyring);
	assert_opens(&without, STORE_NOT_A_STORE, "no file");
	ck_assert_int_eq(keyring_commit(dir_fd), 0);
	ck_assert(!exists("header.new"));
	assert_opens(&without, 0, NULL);
}
END_TEST

START_TEST(files_are_their_owners_alone)
{
	struct stat st;

	umask(0);
	make(&without);
	ck_assert_int_eq(fstatat(dir_fd, "key", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, 32);
	ck_assert_int_eq(fstatat(dir_fd, "header", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

START_TEST(options_are_kept)
{
	struct store_create_options options = { .names = STORE_NAMES_SEALED,
						.kdf_level = 3,
						.journal_bytes = (1 << 20) + 1,
						.trash_name = "Papierkorb" };
	struct keyring keyring;

	ck_assert_int_eq(keyring_create(dir_fd, &options, &keyring), 0);
	ck_assert_int_eq(keyring_commit(dir_fd), 0);
	keyring_release(&keyring);
	ck_assert_int_eq(keyring_open(dir_fd, &without, NULL, &keyring), 0);
	ck_assert(keyring.sealed_names);
	ck_assert_uint_eq(keyring.journal_bytes, (1 << 20) + 4096);
	ck_assert_str_eq(keyring.trash_name, "Papierkorb");
	keyring_release(&keyring);
}
END_TEST

START_TEST(names_are_ordered_without_a_passphrase)
{
	struct keyring keyring;

	make(&without);
	ck_assert_int_eq(keyring_open(dir_fd, &without, NULL, &keyring), 0);
	ck_assert(!keyring.sealed_names);
	keyring_release(&keyring);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
	static char long_name[KEYRING_TRASH_NAME_MAX + 2], long_phrase[KEYRING_PASSPHRASE_MAX + 2];
	const struct store_create_options wrong[] = {
		{ .kdf_level = 4 },
		{ .kdf_level = 3, .names = 3 },
		{ .kdf_level = 3, .journal_bytes = (1 << 20) - 1 },
		{ .kdf_level = 3, .journal_bytes = (1 << 30) + UINT64_C(1) },
		{ .kdf_level = 3, .trash_name = "" },
		{ .kdf_level = 3, .trash_name = "." },
		{ .kdf_level = 3, .trash_name = ".." },
		{ .kdf_level = 3, .trash_name = ".ddbfs" },
		{ .kdf_level = 3, .trash_name = "a/b" },
		{ .kdf_level = 3, .trash_name = long_name },
		{ .kdf_level = 3, .credentials.passphrase = "" },
		{ .kdf_level = 3, .credentials.passphrase = long_phrase },
		{ .kdf_level = 3, .credentials = { .passphrase = "a", .key_file = "/dev/null" } },
		{ .kdf_level = 3, .credentials.key_file = "/dev/null" },
		{ .kdf_level = 3, .credentials.key_file = "/dev/zero" },
		{ .kdf_level = 3, .credentials.key_file = "/" },
	};
	struct keyring keyring;
	char before[4096] = "", after[4096] = "";

	memset(long_name, 'x', sizeof(long_name) - 1);
	memset(long_phrase, 'x', sizeof(long_phrase) - 1);
	snapshot(before, sizeof(before));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		ck_assert_msg(keyring_create(dir_fd, &wrong[i], &keyring) == -EINVAL,
			      "option set %zu", i);
	snapshot(after, sizeof(after));
	ck_assert_str_eq(before, after);
}
END_TEST

static long locked_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[200];
	long kib = -1;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kib);
	fclose(f);
	return kib;
}

/* Address sanitizer makes mlock a promise only. */
static bool locks_count(void)
{
	static uint8_t page[8192];
	long before = locked_kib();
	bool counted;

	if (mlock(page, sizeof(page)) < 0)
		return true;
	counted = locked_kib() > before;
	munlock(page, sizeof(page));
	return counted;
}

/* In the store as it is opened, too: whoever asks for its status is told the same. */
START_TEST(keys_are_locked_in_memory_or_said_not_to_be)
{
	struct store_open_options options = { 0 };
	struct store_create_options create = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store_open_report report;
	struct store_status status;
	long before = locked_kib();
	char path[4200];
	struct store *s;

	snprintf(path, sizeof(path), "%s/store", directory);
	ck_assert_int_eq(store_create(path, &create), 0);
	ck_assert_int_eq(locked_kib(), before);
	ck_assert_int_eq(store_open(path, &options, &report, &s), 0);
	store_status(s, &status);
	if (locks_count())
		ck_assert_int_eq(status.memory_locked, locked_kib() > before);
	ck_assert_int_eq(store_close(s), 0);
	ck_assert_int_eq(locked_kib(), before);
}
END_TEST

/* ---- wrong keys --------------------------------------------------------- */

START_TEST(wrong_passphrase_writes_nothing)
{
	static char long_phrase[KEYRING_PASSPHRASE_MAX + 2];
	const char *wrong[] = { "",
				"x",
				PASSPHRASE "\n",
				PASSPHRASE " ",
				"Correct horse battery staple",
				"correct horse battery stapl",
				"\xff\xfe",
				long_phrase };
	char before[4096] = "", after[4096] = "";

	memset(long_phrase, 'x', sizeof(long_phrase) - 1);
	make(&with_passphrase);
	snapshot(before, sizeof(before));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_opens(&(struct store_credentials){ .passphrase = wrong[i] }, STORE_WRONG_KEY,
			     "passphrase");
	assert_opens(&without, STORE_WRONG_KEY, "needs its passphrase");
	snapshot(after, sizeof(after));
	ck_assert_str_eq(before, after);
	ck_assert(!exists("key"));
	assert_opens(&with_passphrase, 0, NULL);
}
END_TEST

START_TEST(passphrase_is_its_bytes)
{
	const struct store_credentials odd = { .passphrase = "two\nlines\t\xff\x01" };
	const struct store_credentials longest = { .passphrase = (char[KEYRING_PASSPHRASE_MAX + 1]){ 0 } };

	make(&odd);
	assert_opens(&odd, 0, NULL);
	assert_opens(&(struct store_credentials){ .passphrase = "two" }, STORE_WRONG_KEY, NULL);
	memset((char *)longest.passphrase, 'p', KEYRING_PASSPHRASE_MAX);
	make(&longest);
	assert_opens(&longest, 0, NULL);
}
END_TEST

static void write_key_file(const void *bytes, size_t size)
{
	FILE *f = fopen(key_path, "we");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(key_file_opens)
{
	const struct store_credentials c = { .key_file = key_path };
	uint8_t bytes[100];
	char link[4300];

	seal_init();
	seal_random(bytes, sizeof(bytes));
	write_key_file(bytes, sizeof(bytes));
	make(&c);
	assert_opens(&c, 0, NULL);
	snprintf(link, sizeof(link), "%s.link", key_path);
	ck_assert_int_eq(symlink(key_path, link), 0);
	assert_opens(&(struct store_credentials){ .key_file = link }, 0, NULL);
	unlink(link);
	assert_opens(&without, STORE_WRONG_KEY, "needs its key file");
	assert_opens(&with_passphrase, STORE_WRONG_KEY, "needs its key file");
	write_key_file(bytes, sizeof(bytes) - 1);
	assert_opens(&c, STORE_WRONG_KEY, "key file");
	bytes[99] ^= 1;
	write_key_file(bytes, sizeof(bytes));
	assert_opens(&c, STORE_WRONG_KEY, "key file");
	unlink(key_path);
	assert_opens(&c, -ENOENT, key_path);
}
END_TEST

START_TEST(odd_key_files_are_refused_in_words)
{
	const struct store_credentials c = { .key_file = key_path };
	static uint8_t big[KEYRING_KEY_FILE_MAX + 1];
	struct store_open_report report = { 0 };

	make(&with_passphrase);
	ck_assert_int_eq(store_check_credentials(&c, &report), -ENOENT);
	write_key_file(big, 0);
	ck_assert_int_eq(store_check_credentials(&c, &report), -EINVAL);
	ck_assert_ptr_nonnull(strstr(report.text, "0 bytes"));
	write_key_file(big, KEYRING_KEY_FILE_MIN - 1);
	ck_assert_int_eq(store_check_credentials(&c, &report), -EINVAL);
	write_key_file(big, sizeof(big));
	ck_assert_int_eq(store_check_credentials(&c, &report), -EFBIG);
	write_key_file(big, sizeof(big) - 1);
	ck_assert_int_eq(store_check_credentials(&c, &report), 0);
	write_key_file(big, KEYRING_KEY_FILE_MIN);
	ck_assert_int_eq(store_check_credentials(&c, &report), 0);
	unlink(key_path);
	ck_assert_int_eq(mkfifo(key_path, 0600), 0);
	ck_assert_int_eq(store_check_credentials(&c, &report), -EINVAL);
	ck_assert_ptr_nonnull(strstr(report.text, "not a plain file"));
}
END_TEST

START_TEST(damaged_key_files_of_a_store_are_damage)
{
	struct store_create_options options = { .credentials.key_file = key_path, .kdf_level = 3 };
	struct keyring keyring;
	uint8_t bytes[64] = { 1 };

	/* A store that a key file opens, given one that can be no key: refused, not broken off. */
	write_key_file(bytes, sizeof(bytes));
	ck_assert_int_eq(keyring_create(dir_fd, &options, &keyring), 0);
	ck_assert_int_eq(keyring_commit(dir_fd), 0);
	keyring_release(&keyring);
	write_key_file(bytes, 3);
	assert_opens(&options.credentials, STORE_WRONG_KEY, "3 bytes");
}
END_TEST

START_TEST(passphrase_on_a_store_without_says_so)
{
	make(&without);
	assert_opens(&with_passphrase, STORE_WRONG_KEY, "open it without");
}
END_TEST

START_TEST(both_credentials_are_refused)
{
	make(&with_passphrase);
	assert_opens(&(struct store_credentials){ .passphrase = PASSPHRASE, .key_file = "/etc/passwd" },
		     -EINVAL, "one of them");
}
END_TEST

START_TEST(lost_or_altered_local_key_is_damage)
{
	uint8_t key[40] = { 0 };

	make(&without);
	ck_assert_uint_eq(read_file("key", key, sizeof(key)), 32);
	key[5] ^= 0x10;
	write_file("key", key, 32);
	assert_opens(&without, STORE_DAMAGED, "backup");
	key[5] ^= 0x10;
	write_file("key", key, 32);
	assert_opens(&without, 0, NULL);
	write_file("key", key, 31);
	assert_opens(&without, STORE_DAMAGED, "backup");
	write_file("key", key, 33);
	assert_opens(&without, STORE_DAMAGED, "backup");
	unlinkat(dir_fd, "key", 0);
	assert_opens(&without, STORE_DAMAGED, "missing");
	ck_assert_int_eq(symlinkat("header", dir_fd, "key"), 0);
	assert_opens(&without, STORE_DAMAGED, "backup");
	unlinkat(dir_fd, "key", 0);
	ck_assert_int_eq(mkfifoat(dir_fd, "key", 0600), 0);
	assert_opens(&without, STORE_DAMAGED, "backup");
}
END_TEST

/* ---- damage ------------------------------------------------------------- */

static bool refused(int result)
{
	return result == STORE_NOT_A_STORE || result == STORE_TOO_NEW ||
	       result == STORE_WRONG_KEY || result == STORE_DAMAGED || result == -ENOMEM;
}

START_TEST(every_flipped_bit_is_refused)
{
	struct store_open_report report;
	uint8_t bytes[2048];
	size_t size;

	make(&with_passphrase);
	size = read_file("header", bytes, sizeof(bytes));
	for (size_t bit = 0; bit < size * 8; bit++) {
		int result;

		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		write_file("header", bytes, size);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		result = try_open(&with_passphrase, &report);
		/* Never "wrong passphrase": that would send the user looking in the wrong place. */
		ck_assert_msg(result == STORE_DAMAGED || (result == STORE_NOT_A_STORE && bit < 64),
			      "bit %zu: %d, %s", bit, result, report.text);
	}
	write_file("header", bytes, size);
	assert_opens(&with_passphrase, 0, NULL);
}
END_TEST

/* Somebody who can write the header, but does not know the key. */
static void forge_checksum(uint8_t *bytes, size_t size)
{
	struct seal_key start = { 0 };

	memcpy(start.bytes, bytes, 16);
	seal_mac(&start, bytes + 48, size - 48, bytes + 16);
}

START_TEST(every_forged_field_is_refused)
{
	struct store_open_report report;
	uint8_t original[2048], bytes[2048];
	size_t size;

	make(&with_passphrase);
	size = read_file("header", original, sizeof(original));
	for (size_t bit = 0; bit < size * 8; bit++) {
		int result;

		if (bit / 8 >= 16 && bit / 8 < 48)
			continue;
		/* Up to a GiB for Argon2id, which is allowed: too slow to be tried again and again. */
		if (bit / 8 >= 48 + 96 + 8 + 3 && bit / 8 < 48 + 96 + 16)
			continue;
		memcpy(bytes, original, size);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		forge_checksum(bytes, size);
		write_file("header", bytes, size);
		result = try_open(&with_passphrase, &report);
		ck_assert_msg(refused(result), "bit %zu: %d", bit, result);
	}
}
END_TEST

START_TEST(greedy_parameters_are_refused_at_once)
{
	uint8_t bytes[2048];
	size_t size;

	make(&with_passphrase);
	size = read_file("header", bytes, sizeof(bytes));
	util_put_le64(bytes + 144 + 8, UINT64_C(1) << 40);
	forge_checksum(bytes, size);
	write_file("header", bytes, size);
	assert_opens(&with_passphrase, STORE_DAMAGED, "no version writes");
	util_put_le64(bytes + 144 + 8, 8192);
	util_put_le32(bytes + 144 + 4, UINT32_MAX);
	forge_checksum(bytes, size);
	write_file("header", bytes, size);
	assert_opens(&with_passphrase, STORE_DAMAGED, "no version writes");
}
END_TEST

START_TEST(every_truncation_is_refused)
{
	struct store_open_report report;
	uint8_t bytes[2048];
	size_t size;

	make(&with_passphrase);
	size = read_file("header", bytes, sizeof(bytes));
	for (size_t n = 0; n <= size + 1; n++) {
		int result;

		bytes[size] = 0;
		write_file("header", bytes, n);
		result = try_open(&with_passphrase, &report);
		ck_assert_msg(n == size ? result == 0 :
					  result == STORE_DAMAGED || result == STORE_NOT_A_STORE,
			      "%zu bytes: %d", n, result);
	}
}
END_TEST

START_TEST(newer_format_is_named)
{
	struct store_open_report report;
	uint8_t bytes[HEADER_SIZE_MAX] = { 0 };
	size_t size;

	make(&with_passphrase);
	size = read_file("header", bytes, sizeof(bytes));
	for (size_t n = size; n <= sizeof(bytes); n += sizeof(bytes) - size) {
		util_put_le32(bytes + 8, 7);
		util_put_le32(bytes + 12, (uint32_t)n);
		forge_checksum(bytes, n);
		write_file("header", bytes, n);
		ck_assert_int_eq(try_open(&with_passphrase, &report), STORE_TOO_NEW);
		ck_assert_uint_eq(report.format, 7);
		ck_assert_ptr_nonnull(strstr(report.text, "format 7"));
	}
}
END_TEST

START_TEST(other_files_are_no_store)
{
	static uint8_t big[HEADER_SIZE_MAX + 100];

	write_file("header", "", 0);
	assert_opens(&without, STORE_NOT_A_STORE, "empty");
	write_file("header",
		   "\x7f"
		   "ELF and so on",
		   14);
	assert_opens(&without, STORE_NOT_A_STORE, "not a store");
	write_file("header", big, sizeof(big));
	assert_opens(&without, STORE_NOT_A_STORE, "not a store");
	memcpy(big, "ddbfs\r\n\x1a", 8);
	write_file("header", big, sizeof(big));
	assert_opens(&without, STORE_DAMAGED, "size");
	seal_init();
	for (int i = 0; i < 200; i++) {
		seal_random(big, 400);
		write_file("header", big, 400);
		assert_opens(&without, STORE_NOT_A_STORE, NULL);
	}
	unlinkat(dir_fd, "header", 0);
	ck_assert_int_eq(mkdirat(dir_fd, "header", 0700), 0);
	assert_opens(&without, STORE_NOT_A_STORE, "plain file");
	unlinkat(dir_fd, "header", AT_REMOVEDIR);
	ck_assert_int_eq(mkfifoat(dir_fd, "header", 0600), 0);
	assert_opens(&without, STORE_NOT_A_STORE, "plain file");
	unlinkat(dir_fd, "header", 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", dir_fd, "header"), 0);
	assert_opens(&without, STORE_NOT_A_STORE, "plain file");
}
END_TEST

/* A slot of one store means nothing in another's header. */
START_TEST(slots_cannot_be_moved_between_stores)
{
	uint8_t mine[2048], other[2048];
	size_t size;

	make(&with_passphrase);
	size = read_file("header", other, sizeof(other));
	make(&(struct store_credentials){ .passphrase = "mine" });
	ck_assert_uint_eq(read_file("header", mine, sizeof(mine)), size);
	memcpy(mine + 144, other + 144, 128);
	forge_checksum(mine, size);
	write_file("header", mine, size);
	assert_opens(&with_passphrase, STORE_WRONG_KEY, NULL);
}
END_TEST

/* ---- changing ----------------------------------------------------------- */

START_TEST(added_key_opens_and_the_old_one_too)
{
	const struct store_credentials added = { .passphrase = "another" };

	make(&with_passphrase);
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase, &added, false, NULL), 0);
	assert_opens(&added, 0, NULL);
	assert_opens(&with_passphrase, 0, NULL);
	assert_opens(&(struct store_credentials){ .passphrase = "neither" }, STORE_WRONG_KEY, NULL);
	ck_assert(!exists("header.new"));
}
END_TEST

START_TEST(replaced_key_opens_no_more)
{
	const struct store_credentials replacing = { .passphrase = "another" };

	make(&with_passphrase);
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase, &replacing, true, NULL), 0);
	assert_opens(&replacing, 0, NULL);
	assert_opens(&with_passphrase, STORE_WRONG_KEY, NULL);
}
END_TEST

START_TEST(replacing_the_local_key_wipes_it)
{
	const struct store_credentials cheap = { .key_file = key_path };
	uint8_t bytes[32] = { 7 }, key[32], wiped[32] = { 0 };
	char link[4300];
	struct keyring before, after;

	make(&without);
	write_key_file(bytes, sizeof(bytes));
	ck_assert_int_eq(keyring_open(dir_fd, &without, NULL, &before), 0);
	snprintf(link, sizeof(link), "%s.second", directory);
	ck_assert_int_eq(linkat(dir_fd, "key", AT_FDCWD, link, 0), 0);
	ck_assert_int_eq(keyring_change(dir_fd, &without, &cheap, false, NULL), 0);
	ck_assert(exists("key"));
	assert_opens(&without, 0, NULL);
	ck_assert_int_eq(keyring_change(dir_fd, &without, &cheap, true, NULL), 0);
	ck_assert(!exists("key"));
	ck_assert_uint_eq(read_file(link, key, sizeof(key)), sizeof(key));
	unlink(link);
	ck_assert_mem_eq(key, wiped, sizeof(key));
	assert_opens(&without, STORE_WRONG_KEY, "needs its key file");
	ck_assert_int_eq(keyring_open(dir_fd, &cheap, NULL, &after), 0);
	ck_assert_mem_eq(before.keys[1].bytes, after.keys[1].bytes, SEAL_KEY_SIZE);
	ck_assert_mem_eq(before.store_id, after.store_id, sizeof(before.store_id));
	keyring_release(&before);
	keyring_release(&after);
}
END_TEST

START_TEST(refused_change_writes_nothing)
{
	char before[4096] = "", after[4096] = "";
	const struct store_credentials wrong = { .passphrase = "wrong" };

	make(&with_passphrase);
	snapshot(before, sizeof(before));
	ck_assert_int_eq(keyring_change(dir_fd, &wrong, &wrong, true, NULL), STORE_WRONG_KEY);
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase, &without, true, NULL), -EINVAL);
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase,
					&(struct store_credentials){ .passphrase = "" }, true, NULL),
			 -EINVAL);
	snapshot(after, sizeof(after));
	ck_assert_str_eq(before, after);
}
END_TEST

START_TEST(slots_are_eight)
{
	char phrase[8] = "p0";

	make(&with_passphrase);
	for (int i = 1; i < HEADER_SLOTS_MAX; i++) {
		phrase[1] = (char)('0' + i);
		ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase,
						&(struct store_credentials){ .passphrase = phrase },
						false, NULL),
				 0);
	}
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase,
					&(struct store_credentials){ .passphrase = "ninth" }, false, NULL),
			 -E2BIG);
	for (int i = 1; i < HEADER_SLOTS_MAX; i++) {
		phrase[1] = (char)('0' + i);
		assert_opens(&(struct store_credentials){ .passphrase = phrase }, 0, NULL);
	}
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase,
					&(struct store_credentials){ .passphrase = "ninth" }, true, NULL),
			 0);
	assert_opens(&with_passphrase, STORE_WRONG_KEY, NULL);
}
END_TEST

START_TEST(leftover_of_a_crash_is_replaced)
{
	const struct store_credentials added = { .passphrase = "another" };

	make(&with_passphrase);
	write_file("header.new", "half a header", 13);
	assert_opens(&with_passphrase, 0, NULL);
	ck_assert_int_eq(keyring_change(dir_fd, &with_passphrase, &added, false, NULL), 0);
	assert_opens(&added, 0, NULL);
	ck_assert(!exists("header.new"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("keyring");
	TCase *c = tcase_create("keyring");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, same_keys_come_back);
	tcase_add_test(c, two_stores_share_nothing);
	tcase_add_test(c, no_store_before_the_commit);
	tcase_add_test(c, files_are_their_owners_alone);
	tcase_add_test(c, options_are_kept);
	tcase_add_test(c, names_are_ordered_without_a_passphrase);
	tcase_add_test(c, wrong_options_are_refused);
	tcase_add_test(c, keys_are_locked_in_memory_or_said_not_to_be);
	tcase_add_test(c, wrong_passphrase_writes_nothing);
	tcase_add_test(c, passphrase_is_its_bytes);
	tcase_add_test(c, key_file_opens);
	tcase_add_test(c, odd_key_files_are_refused_in_words);
	tcase_add_test(c, damaged_key_files_of_a_store_are_damage);
	tcase_add_test(c, passphrase_on_a_store_without_says_so);
	tcase_add_test(c, both_credentials_are_refused);
	tcase_add_test(c, lost_or_altered_local_key_is_damage);
	tcase_add_test(c, every_flipped_bit_is_refused);
	tcase_add_test(c, every_forged_field_is_refused);
	tcase_add_test(c, greedy_parameters_are_refused_at_once);
	tcase_add_test(c, every_truncation_is_refused);
	tcase_add_test(c, newer_format_is_named);
	tcase_add_test(c, other_files_are_no_store);
	tcase_add_test(c, slots_cannot_be_moved_between_stores);
	tcase_add_test(c, added_key_opens_and_the_old_one_too);
	tcase_add_test(c, replaced_key_opens_no_more);
	tcase_add_test(c, replacing_the_local_key_wipes_it);
	tcase_add_test(c, refused_change_writes_nothing);
	tcase_add_test(c, slots_are_eight);
	tcase_add_test(c, leftover_of_a_crash_is_replaced);
	suite_add_tcase(suite, c);
	return test_main(suite);
}
