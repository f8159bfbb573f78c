/*
 * fsbench.c - times system calls on files: one kind of work a call, the result
 * on standard output as a bare number.
 *
 * Files are DIR/dNNN/fNNNNNN in as many directories as asked for. They are made
 * in order and read in a fixed shuffled one, so that no read-ahead of
 * neighbours flatters a store that keeps them side by side.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STRIDE 7919 /* a prime: i * STRIDE mod n visits every i once, out of order */

static void die(const char *what)
{
	fprintf(stderr, "fsbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long number(const char *text)
{
	return strtol(text, NULL, 10);
}

struct tree {
	const char *root;
	long count, directories;
	char path[4096];
};

static const char *tree_path(struct tree *t, long i)
{
	if (t->directories)
		snprintf(t->path, sizeof(t->path), "%s/d%03ld/f%06ld", t->root, i % t->directories, i);
	else
		snprintf(t->path, sizeof(t->path), "%s/f%06ld", t->root, i);
	return t->path;
}

static long shuffled(const struct tree *t, long i)
{
	return i * STRIDE % t->count;
}

static struct tree tree_of(char **a)
{
	return (struct tree){ .root = a[0], .count = number(a[1]), .directories = number(a[2]) };
}

static void print_us(double start, long count)
{
	printf("%.2f\n", (now_s() - start) * 1e6 / (double)count);
}

static void write_file(const char *path, const char *bytes, size_t size, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd))
		die(path);
}

/* Bytes that do not compress and differ from call to call. */
static char *noise(size_t size)
{
	char *bytes = malloc(size + 8);
	unsigned long x = (unsigned long)getpid() * 2654435761u + 1;

	if (!bytes)
		die("memory");
	for (size_t i = 0; i < size; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, &x, 8);
	}
	return bytes;
}

/* create DIR COUNT DIRECTORIES SIZE: us a file, directories included */
static void work_create(char **a)
{
	struct tree t = tree_of(a);
	size_t size = (size_t)number(a[3]);
	char *bytes = noise(size);
	double start = now_s();

	for (long d = 0; d < t.directories; d++) {
		snprintf(t.path, sizeof(t.path), "%s/d%03ld", t.root, d);
		if (mkdir(t.path, 0755))
			die(t.path);
	}
	for (long i = 0; i < t.count; i++)
		write_file(tree_path(&t, i), bytes, size, O_EXCL);
	print_us(start, t.count);
}

/* stat DIR COUNT DIRECTORIES: us a file */
static void work_stat(char **a)
{
	struct tree t = tree_of(a);
	double start = now_s();
	struct stat st;

	for (long i = 0; i < t.count; i++)
		if (lstat(tree_path(&t, shuffled(&t, i)), &st))
			die(t.path);
	print_us(start, t.count);
}

/* missing DIR COUNT DIRECTORIES: us to learn that a name is not there */
static void work_missing(char **a)
{
	struct tree t = tree_of(a);
	double start = now_s();
	struct stat st;

	for (long i = 0; i < t.count; i++)
		if (!lstat(tree_path(&t, i + 500000), &st) || errno != ENOENT)
			die(t.path);
	print_us(start, t.count);
}

/* read DIR COUNT DIRECTORIES: us to open, read whole and close a file */
static void work_read(char **a)
{
	struct tree t = tree_of(a);
	double start = now_s();
	char bytes[65536];

	for (long i = 0; i < t.count; i++) {
		int fd = open(tree_path(&t, shuffled(&t, i)), O_RDONLY);

		if (fd < 0 || read(fd, bytes, sizeof(bytes)) < 0 || close(fd))
			die(t.path);
	}
	print_us(start, t.count);
}

static long walk(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *e;
	struct stat st;
	long n = 0;

	if (!dir)
		die("opendir");
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			die(e->d_name);
		n++;
		if (S_ISDIR(st.st_mode))
			n += walk(openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY));
	}
	closedir(dir);
	return n;
}

/* walk DIR: us an entry to list and stat everything below */
static void work_walk(char **a)
{
	double start = now_s();

	print_us(start, walk(open(a[0], O_RDONLY | O_DIRECTORY)));
}

/* rename DIR COUNT DIRECTORIES TO: us to move each file into directory TO */
static void work_rename(char **a)
{
	struct tree from = tree_of(a);
	double start = now_s();
	char to[4096];

	for (long i = 0; i < from.count; i++) {
		snprintf(to, sizeof(to), "%s/f%06ld", a[3], i);
		if (rename(tree_path(&from, i), to))
			die(to);
	}
	print_us(start, from.count);
}

/* unlink DIR COUNT DIRECTORIES: us a file */
static void work_unlink(char **a)
{
	struct tree t = tree_of(a);
	double start = now_s();

	for (long i = 0; i < t.count; i++)
		if (unlink(tree_path(&t, i)))
			die(t.path);
	print_us(start, t.count);
}

/* parallel-create DIR COUNT SIZE PROCESSES: us a file of the whole, each process in a directory of its own */
static void work_parallel_create(char **a)
{
	long count = number(a[1]), processes = number(a[3]);
	size_t size = (size_t)number(a[2]);
	double start = now_s();
	int status, bad = 0;

	for (long p = 0; p < processes; p++) {
		char path[4096], *bytes;

		if (fork())
			continue;
		bytes = noise(size);
		snprintf(path, sizeof(path), "%s/p%ld", a[0], p);
		if (mkdir(path, 0755))
			die(path);
		for (long i = 0; i < count / processes; i++) {
			snprintf(path, sizeof(path), "%s/p%ld/f%06ld", a[0], p, i);
			write_file(path, bytes, size, O_EXCL);
		}
		_exit(0);
	}
	for (long p = 0; p < processes; p++)
		bad |= wait(&status) < 0 || status;
	if (bad)
		exit(1);
	print_us(start, count);
}

/* write FILE MIB BLOCK: MB/s, the fsync included */
static void work_write(char **a)
{
	long total = number(a[1]) << 20, block = number(a[2]);
	char *bytes = noise((size_t)block);
	double start = now_s();
	int fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);

	for (long at = 0; at < total; at += block)
		if (write(fd, bytes, (size_t)block) != block)
			die(a[0]);
	if (fsync(fd) || close(fd))
		die(a[0]);
	printf("%.1f\n", (double)total / 1e6 / (now_s() - start));
}

/* sequential-read FILE BLOCK: MB/s */
static void work_sequential_read(char **a)
{
	size_t block = (size_t)number(a[1]);
	char *bytes = malloc(block);
	double start = now_s();
	int fd = open(a[0], O_RDONLY);
	ssize_t n;
	long total = 0;

	while ((n = read(fd, bytes, block)) > 0)
		total += n;
	if (n < 0 || !total)
		die(a[0]);
	printf("%.1f\n", (double)total / 1e6 / (now_s() - start));
}

static off_t random_block(off_t blocks)
{
	static unsigned long x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (off_t)(x % (unsigned long)blocks) * 4096;
}

/* random FILE COUNT read|direct|write|write-sync: 4 KiB operations a second; `write` syncs at the end, `write-sync` each time */
static void work_random(char **a)
{
	int flags = !strcmp(a[2], "direct") ? O_RDONLY | O_DIRECT :
		    a[2][0] == 'w'	    ? O_WRONLY :
					      O_RDONLY;
	int each = !strcmp(a[2], "write-sync"), fd = open(a[0], flags);
	long count = number(a[1]);
	void *page = NULL;
	struct stat st;
	double start;

	if (fd < 0 || fstat(fd, &st) || posix_memalign(&page, 4096, 4096))
		die(a[0]);
	memset(page, 0x5a, 4096);
	start = now_s();
	for (long i = 0; i < count; i++) {
		off_t at = random_block(st.st_size / 4096);
		ssize_t n = a[2][0] == 'w' ? pwrite(fd, page, 4096, at) : pread(fd, page, 4096, at);

		if (n != 4096 || (each && fdatasync(fd)))
			die(a[0]);
	}
	if (a[2][0] == 'w' && fsync(fd))
		die(a[0]);
	printf("%.0f\n", (double)count / (now_s() - start));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_median_us(double *seconds, long count)
{
	qsort(seconds, (size_t)count, sizeof(*seconds), by_value);
	printf("%.1f\n", seconds[count / 2] * 1e6);
}

/* append FILE COUNT SIZE: median us of an append and its fsync */
static void work_append(char **a)
{
	long count = number(a[1]);
	size_t size = (size_t)number(a[2]);
	double *times = calloc((size_t)count, sizeof(*times)), start;
	int fd = open(a[0], O_WRONLY | O_CREAT | O_APPEND, 0644);
	char *bytes = noise(size);

	for (long i = 0; i < count; i++) {
		start = now_s();
		if (write(fd, bytes, size) != (ssize_t)size || fsync(fd))
			die(a[0]);
		times[i] = now_s() - start;
	}
	print_median_us(times, count);
}

/* create-sync DIR COUNT: median us to create a file of 1 KiB, fsync and close it */
static void work_create_sync(char **a)
{
	long count = number(a[1]);
	double *times = calloc((size_t)count, sizeof(*times)), start;
	char path[4096], *bytes = noise(1024);

	for (long i = 0; i < count; i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/f%06ld", a[0], i);
		start = now_s();
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, bytes, 1024) != 1024 || fsync(fd) || close(fd))
			die(path);
		times[i] = now_s() - start;
	}
	print_median_us(times, count);
}

static const struct work {
	const char *name;
	int arguments;
	void (*run)(char **arguments);
} works[] = {
	{ "append", 3, work_append },
	{ "create", 4, work_create },
	{ "create-sync", 2, work_create_sync },
	{ "missing", 3, work_missing },
	{ "parallel-create", 4, work_parallel_create },
	{ "random", 3, work_random },
	{ "read", 3, work_read },
	{ "rename", 4, work_rename },
	{ "sequential-read", 2, work_sequential_read },
	{ "stat", 3, work_stat },
	{ "unlink", 3, work_unlink },
	{ "walk", 1, work_walk },
	{ "write", 3, work_write },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(works) / sizeof(works[0]); i++)
		if (!strcmp(argv[1], works[i].name) && argc == 2 + works[i].arguments) {
			works[i].run(argv + 2);
			return 0;
		}
	fprintf(stderr, "usage: fsbench WORK ARGUMENT... (see the comments of fsbench.c)\n");
	return 2;
}
