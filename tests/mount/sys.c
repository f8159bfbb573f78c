/*
 * sys.c - makes one system call as its arguments say and prints the answer:
 * `ok`, a value, or the name of the errno. For shell tests that compare errors
 * and reach calls that no ordinary tool makes.
 *
 * Exit code 0 whatever the call answered, 2 for a wrong use of this program.
 */
#include "tests/mount/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct word {
	const char *name;
	long value;
};

/* A number, or a word of the table, or several joined by ','. Exits if it is neither. */
static long words(const struct word *table, const char *text)
{
	char copy[256], *rest = copy, *one;
	long value = 0;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((one = strsep(&rest, ","))) {
		const struct word *w = table;
		char *end;

		for (; w->name && strcmp(w->name, one); w++)
			;
		if (w->name)
			value |= w->value;
		else if (value |= strtol(one, &end, 0), *end || end == one)
			exit(2);
	}
	return value;
}

static const struct word open_words[] = {
	{ "rdonly", O_RDONLY },	  { "wronly", O_WRONLY },	{ "rdwr", O_RDWR },
	{ "creat", O_CREAT },	  { "excl", O_EXCL },		{ "trunc", O_TRUNC },
	{ "append", O_APPEND },	  { "directory", O_DIRECTORY }, { "nofollow", O_NOFOLLOW },
	{ "tmpfile", O_TMPFILE }, { "nonblock", O_NONBLOCK },	{ "path", O_PATH },
	{ "sync", O_SYNC },	  { "direct", O_DIRECT },	{ NULL, 0 },
};
static const struct word rename_words[] = {
	{ "noreplace", RENAME_NOREPLACE },
	{ "exchange", RENAME_EXCHANGE },
	{ "whiteout", RENAME_WHITEOUT },
	{ NULL, 0 },
};
static const struct word type_words[] = {
	{ "file", S_IFREG }, { "fifo", S_IFIFO },  { "socket", S_IFSOCK },
	{ "char", S_IFCHR }, { "block", S_IFBLK }, { NULL, 0 },
};
static const struct word allocate_words[] = {
	{ "plain", 0 },
	{ "keep", FALLOC_FL_KEEP_SIZE },
	{ "punch", FALLOC_FL_PUNCH_HOLE },
	{ "zero", FALLOC_FL_ZERO_RANGE },
	{ "collapse", FALLOC_FL_COLLAPSE_RANGE },
	{ "insert", FALLOC_FL_INSERT_RANGE },
	{ NULL, 0 },
};
static const struct word seek_words[] = {
	{ "hole", SEEK_HOLE },
	{ "data", SEEK_DATA },
	{ "end", SEEK_END },
	{ NULL, 0 },
};
static const struct word access_words[] = {
	{ "r", R_OK }, { "w", W_OK }, { "x", X_OK }, { "f", F_OK }, { NULL, 0 },
};
static const struct word xattr_words[] = {
	{ "any", 0 },
	{ "create", XATTR_CREATE },
	{ "replace", XATTR_REPLACE },
	{ NULL, 0 },
};

int sys_answer(long result)
{
	if (result < 0)
		puts(strerrorname_np(errno));
	else
		puts("ok");
	return 0;
}

static int value(long long result)
{
	if (result < 0)
		return sys_answer(-1);
	printf("%lld\n", result);
	return 0;
}

static mode_t octal(const char *text)
{
	return (mode_t)strtol(text, NULL, 8);
}

/* "now", "omit", or seconds with nanoseconds: 12.000000001, -5.5 */
static struct timespec when(const char *text)
{
	struct timespec t = { 0 };
	char digits[10] = "000000000";
	const char *dot = strchr(text, '.');

	if (!strcmp(text, "now"))
		return (struct timespec){ .tv_nsec = UTIME_NOW };
	if (!strcmp(text, "omit"))
		return (struct timespec){ .tv_nsec = UTIME_OMIT };
	t.tv_sec = strtoll(text, NULL, 10);
	if (dot) {
		memcpy(digits, dot + 1, util_min(strlen(dot + 1), sizeof(digits) - 1));
		t.tv_nsec = atol(digits);
	}
	return t;
}

static int do_rename(char **a)
{
	return sys_answer(renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1],
				    a[2] ? (unsigned)words(rename_words, a[2]) : 0));
}

static int do_link(char **a)
{
	return sys_answer(linkat(AT_FDCWD, a[0], AT_FDCWD, a[1], 0));
}

static int do_symlink(char **a)
{
	return sys_answer(symlink(a[0], a[1]));
}

static int do_unlink(char **a)
{
	return sys_answer(unlink(a[0]));
}

static int do_rmdir(char **a)
{
	return sys_answer(rmdir(a[0]));
}

static int do_mkdir(char **a)
{
	return sys_answer(mkdir(a[0], a[1] ? octal(a[1]) : 0777));
}

static int do_mknod(char **a)
{
	dev_t device = a[2] && a[3] ? makedev((unsigned)atoi(a[2]), (unsigned)atoi(a[3])) : 0;

	return sys_answer(mknod(a[0], (mode_t)words(type_words, a[1]) | 0644, device));
}

static int do_open(char **a)
{
	return sys_answer(open(a[0], (int)words(open_words, a[1]), a[2] ? octal(a[2]) : 0644));
}

/* Opens, writes the text (or nothing, if it is empty), syncs and closes: the first error. */
static int do_write(char **a)
{
	int fd = open(a[0], (int)words(open_words, a[1]), 0644);
	size_t size = strlen(a[2]);

	if (fd < 0 || write(fd, a[2], size) != (ssize_t)size || fsync(fd) < 0)
		return sys_answer(-1);
	return sys_answer(close(fd));
}

static int do_chmod(char **a)
{
	return sys_answer(chmod(a[0], octal(a[1])));
}

static int do_chown(char **a)
{
	return sys_answer(lchown(a[0], (uid_t)atol(a[1]), (gid_t)atol(a[2])));
}

static int do_truncate(char **a)
{
	return sys_answer(truncate(a[0], strtoll(a[1], NULL, 0)));
}

static int do_utimens(char **a)
{
	struct timespec t[2] = { when(a[1]), when(a[2]) };

	return sys_answer(utimensat(AT_FDCWD, a[0], t, AT_SYMLINK_NOFOLLOW));
}

static int do_stat(char **a)
{
	struct stat st;

	return sys_answer(lstat(a[0], &st));
}

static int do_access(char **a)
{
	return sys_answer(faccessat(AT_FDCWD, a[0], (int)words(access_words, a[1]), AT_EACCESS));
}

static int do_readlink(char **a)
{
	char target[4097];
	ssize_t n = readlink(a[0], target, sizeof(target) - 1);

	if (n < 0)
		return sys_answer(-1);
	target[n] = 0;
	puts(target);
	return 0;
}

static int do_setxattr(char **a)
{
	/* A value of the form @N stands for N bytes. */
	size_t size = a[2][0] == '@' ? strtoul(a[2] + 1, NULL, 0) : strlen(a[2]);
	char *bytes = calloc(1, size + 1);

	memset(bytes, 'x', size);
	if (a[2][0] != '@')
		memcpy(bytes, a[2], size);
	sys_answer(lsetxattr(a[0], a[1], bytes, size, a[3] ? (int)words(xattr_words, a[3]) : 0));
	free(bytes);
	return 0;
}

static int do_getxattr(char **a)
{
	char bytes[65537];
	ssize_t n = lgetxattr(a[0], a[1], bytes, a[2] ? strtoul(a[2], NULL, 0) : sizeof(bytes) - 1);

	if (n < 0)
		return sys_answer(-1);
	printf("%.*s\n", (int)n, bytes);
	return 0;
}

static int do_removexattr(char **a)
{
	return sys_answer(lremovexattr(a[0], a[1]));
}

static int do_listxattr(char **a)
{
	char names[65536];
	ssize_t n = llistxattr(a[0], names, sizeof(names));

	if (n < 0)
		return sys_answer(-1);
	for (char *name = names; name < names + n; name += strlen(name) + 1)
		puts(name);
	return 0;
}

static int do_fallocate(char **a)
{
	int fd = open(a[0], O_WRONLY);

	if (fd < 0)
		return sys_answer(-1);
	return sys_answer(fallocate(fd, (int)words(allocate_words, a[1]), strtoll(a[2], NULL, 0),
				    strtoll(a[3], NULL, 0)));
}

static int do_seek(char **a)
{
	int fd = open(a[0], O_RDONLY);

	if (fd < 0)
		return sys_answer(-1);
	return value(lseek(fd, strtoll(a[2], NULL, 0), (int)words(seek_words, a[1])));
}

static int do_copy(char **a)
{
	int from = open(a[0], O_RDONLY), to = open(a[1], O_WRONLY | O_CREAT, 0644);
	off_t from_at = strtoll(a[2], NULL, 0), to_at = strtoll(a[3], NULL, 0);

	if (from < 0 || to < 0)
		return sys_answer(-1);
	return value(copy_file_range(from, &from_at, to, &to_at, strtoul(a[4], NULL, 0), 0));
}

static int do_statvfs(char **a)
{
	struct statvfs s;

	if (statvfs(a[0], &s) < 0)
		return sys_answer(-1);
	printf("%lu %lu %lu\n", s.f_namemax, (unsigned long)(s.f_blocks > 0),
	       (unsigned long)(s.f_bfree <= s.f_blocks));
	return 0;
}

static int do_syncdir(char **a)
{
	int fd = open(a[0], O_RDONLY | O_DIRECTORY);

	return sys_answer(fd < 0 ? -1 : fsync(fd));
}

static const struct verb {
	const char *name;
	int arguments; /* at least */
	int (*run)(char **arguments);
} verbs[] = {
	{ "access", 2, do_access },
	{ "chmod", 2, do_chmod },
	{ "chown", 3, do_chown },
	{ "copy", 5, do_copy },
	{ "fallocate", 4, do_fallocate },
	{ "getxattr", 2, do_getxattr },
	{ "link", 2, do_link },
	{ "listxattr", 1, do_listxattr },
	{ "mkdir", 1, do_mkdir },
	{ "mknod", 2, do_mknod },
	{ "open", 2, do_open },
	{ "readlink", 1, do_readlink },
	{ "removexattr", 2, do_removexattr },
	{ "rename", 2, do_rename },
	{ "rmdir", 1, do_rmdir },
	{ "seek", 3, do_seek },
	{ "setxattr", 3, do_setxattr },
	{ "stat", 1, do_stat },
	{ "statvfs", 1, do_statvfs },
	{ "symlink", 2, do_symlink },
	{ "syncdir", 1, do_syncdir },
	{ "truncate", 2, do_truncate },
	{ "unlink", 1, do_unlink },
	{ "utimens", 3, do_utimens },
	{ "write", 3, do_write },
	/* sys-loops.c */
	{ "append", 3, loop_append },
	{ "copy-while-mapped", 4, loop_copy_while_mapped },
	{ "deep", 3, loop_deep },
	{ "fill-holes", 1, loop_fill_holes },
	{ "link-many", 3, loop_link_many },
	{ "lock", 2, loop_lock },
	{ "look-while-renamed", 1, loop_look_while_renamed },
	{ "make", 3, loop_make },
	{ "mmap", 2, loop_mmap },
	{ "open-while-exchanged", 3, loop_open_while_exchanged },
	{ "open-while-replaced", 2, loop_open_while_replaced },
	{ "pace", 2, loop_pace },
	{ "read-and-unlink", 2, loop_read_and_unlink },
	{ "remove-against-create", 2, loop_remove_against_create },
	{ "seekdir", 1, loop_seekdir },
	{ "temporary", 2, loop_temporary },
	{ "unlink-by-threads", 2, loop_unlink_by_threads },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(argv[1], verbs[i].name) && argc - 2 >= verbs[i].arguments)
			return verbs[i].run(argv + 2);
	fprintf(stderr, "usage: sys VERB ARGUMENT...; verbs:");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(stderr, " %s", verbs[i].name);
	fprintf(stderr, "\n");
	return 2;
}
