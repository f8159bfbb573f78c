#include "tests/mount/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The child's exit status, or 255. */
static int joined(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
		return 255;
	return WEXITSTATUS(status);
}

int loop_append(char **a)
{
	int processes = atoi(a[1]), lines = atoi(a[2]), bad = 0;

	for (int p = 0; p < processes; p++) {
		if (fork())
			continue;
		int fd = open(a[0], O_WRONLY | O_APPEND | O_CREAT, 0644);

		for (int i = 0; i < lines; i++)
			if (dprintf(fd, "%d %d\n", p, i) < 0)
				_exit(1);
		_exit(0);
	}
	for (int p = 0; p < processes; p++)
		bad += joined(-1) != 0;
	puts(bad ? "failed" : "ok");
	return 0;
}

int loop_deep(char **a)
{
	int depth = atoi(a[1]), n = 0;
	bool make = !strcmp(a[2], "make");

	if (chdir(a[0]))
		return sys_answer(-1);
	for (; n < depth; n++)
		if ((make && mkdir("d", 0755)) || chdir("d"))
			break;
	if (!make)
		for (int i = 0; i < n; i++)
			if (chdir("..") || rmdir("d"))
				return sys_answer(-1);
	printf("%d\n", n);
	return 0;
}

static int lock_file(int fd, bool whole, bool wait)
{
	struct flock range = { .l_type = F_WRLCK, .l_start = 10, .l_len = 10 };

	if (whole)
		return flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB));
	return fcntl(fd, wait ? F_SETLKW : F_SETLK, &range);
}

int loop_lock(char **a)
{
	bool whole = !strcmp(a[1], "flock");
	int fd = open(a[0], O_RDWR | O_CREAT, 0644), held[2];
	pid_t child;

	if (fd < 0 || pipe(held) || lock_file(fd, whole, false))
		return sys_answer(-1);
	child = fork();
	if (!child) {
		int mine = open(a[0], O_RDWR);

		close(fd); /* else the parent's close does not release it */
		if (!lock_file(mine, whole, false) || (errno != EAGAIN && errno != EACCES))
			_exit(1); /* it was not locked */
		write(held[1], "", 1);
		_exit(lock_file(mine, whole, true) ? 2 : 0);
	}
	read(held[0], &(char){ 0 }, 1);
	usleep(50000);
	close(fd);
	puts(joined(child) ? "failed" : "ok");
	return 0;
}

int loop_make(char **a)
{
	int count = atoi(a[1]), size = atoi(a[2]);

	if (mkdir(a[0], 0755) && errno != EEXIST)
		return sys_answer(-1);
	for (int i = 0; i < count; i++) {
		char path[4096];
		int fd;

		snprintf(path, sizeof(path), "%s/f%d", a[0], i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || (size && dprintf(fd, "%0*d", size, i) < 0) || close(fd))
			return sys_answer(-1);
	}
	return sys_answer(0);
}

static bool wait_for_byte(volatile const char *at, char byte)
{
	for (int i = 0; i < 5000; i++, usleep(1000))
		if (*at == byte)
			return true;
	return false;
}

int loop_mmap(char **a)
{
	size_t size = strtoul(a[1], NULL, 0);
	int fd = open(a[0], O_RDWR | O_CREAT, 0644);
	char *map, byte = 0;
	pid_t child;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return sys_answer(-1);
	child = fork();
	if (!child) {
		int mine = open(a[0], O_RDWR);

		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mine, 0);
		if (map == MAP_FAILED)
			_exit(1);
		map[size - 1] = 'c'; /* seen by the parent's map */
		_exit(!wait_for_byte(map, 'p') || msync(map, size, MS_SYNC));
	}
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return sys_answer(-1);
	if (!wait_for_byte(map + size - 1, 'c') || pwrite(fd, "p", 1, 0) != 1 || joined(child) ||
	    pread(fd, &byte, 1, (off_t)size - 1) != 1 || byte != 'c' || map[0] != 'p')
		puts("failed");
	else
		puts("ok");
	return 0;
}

int loop_open_while_replaced(char **a)
{
	long count = atol(a[1]), failed = 0;
	char other[4096];
	pid_t child;

	snprintf(other, sizeof(other), "%s.new", a[0]);
	child = fork();
	if (!child) {
		for (;;) {
			int fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0644);

			if (fd < 0 || write(fd, "version", 7) != 7 || close(fd) || rename(other, a[0]))
				_exit(1);
		}
	}
	for (long i = 0; i < count; i++) {
		int fd = open(a[0], O_RDONLY);

		if (fd < 0)
			failed++;
		else
			close(fd);
	}
	if (kill(child, SIGKILL) || joined(child) != 255)
		puts("the one who replaced it failed");
	printf("%ld\n", failed);
	return 0;
}

int loop_open_while_exchanged(char **a)
{
	long count = atol(a[2]), failed = 0;
	pid_t child = fork();

	if (child < 0)
		return sys_answer(-1);
	while (!child)
		if (renameat2(AT_FDCWD, a[0], AT_FDCWD, a[1], RENAME_EXCHANGE))
			_exit(1);
	for (long i = 0; i < 2 * count; i++) {
		int fd = open(a[i % 2], O_RDONLY);

		failed += fd < 0;
		if (fd >= 0)
			close(fd);
	}
	if (kill(child, SIGKILL) || joined(child) != 255)
		puts("the one who exchanged them failed");
	printf("%ld\n", failed);
	return 0;
}

struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

int loop_read_and_unlink(char **a)
{
	size_t size = strtoul(a[1], NULL, 0);
	int fd = open(a[0], O_RDONLY | O_DIRECTORY);
	char *buffer = malloc(size);
	long n, removed = 0;

	while ((n = syscall(SYS_getdents64, fd, buffer, size)) > 0) {
		for (long at = 0; at < n;) {
			struct linux_dirent64 *e = (void *)(buffer + at);

			at += e->d_reclen;
			if (e->d_name[0] == '.' && (!e->d_name[1] || e->d_name[1] == '.'))
				continue;
			if (unlinkat(fd, e->d_name, 0))
				return sys_answer(-1);
			removed++;
		}
	}
	free(buffer);
	if (n < 0)
		return sys_answer(-1);
	printf("%ld\n", removed);
	return 0;
}

int loop_remove_against_create(char **a)
{
	int rounds = atoi(a[1]), violations = 0;
	char file[4096];

	snprintf(file, sizeof(file), "%s/f", a[0]);
	for (int i = 0; i < rounds; i++) {
		int removed, created;
		pid_t child;

		mkdir(a[0], 0755);
		child = fork();
		if (!child)
			_exit(open(file, O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 ? errno : 0);
		if (i % 3)
			usleep((useconds_t)(i % 7) * 30);
		removed = rmdir(a[0]) ? errno : 0;
		created = joined(child);
		if ((removed == 0) == (created == 0))
			violations++;
		if (removed && removed != ENOTEMPTY)
			violations++;
		if (created && created != ENOENT)
			violations++;
		unlink(file);
		rmdir(a[0]);
	}
	printf("%d\n", violations);
	return 0;
}

int loop_look_while_renamed(char **a)
{
	static const char *const places[] = { "x/inner", "y/inner", "x/inner" };
	int missed = 0, failed = 0;
	pid_t child = fork();

	if (child < 0)
		return sys_answer(-1);
	while (!child)
		if (rename("a/f", "b/f") || rename("b/f", "a/f"))
			_exit(errno);
	for (int i = 0; i < 2 * atoi(a[0]) && !failed; i++) {
		char seen[64];
		struct stat st;

		snprintf(seen, sizeof(seen), ".trash/%s", places[i % 2]);
		missed += stat(seen, &st) != 0;
		failed = rename(places[i % 2], places[i % 2 + 1]);
	}
	kill(child, SIGKILL);
	joined(child);
	if (failed)
		return sys_answer(-1);
	printf("%d\n", missed);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static long microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int list_through(const char *path)
{
	DIR *dir = opendir(path);

	while (dir && readdir(dir))
		;
	return dir ? closedir(dir) : -1;
}

/* Longest, middle, and that of one in a hundred, of what `create`, `unlink` and `list` took each. */
static void print_pace(const char *what, long *all, int count)
{
	qsort(all, (size_t)count, sizeof(*all), by_size);
	printf("%s %ld %ld %ld\n", what, all[count - 1], all[count / 2], all[(size_t)count * 99 / 100]);
}

int loop_pace(char **a)
{
	int count = atoi(a[1]);
	long *all = count > 0 ? calloc((size_t)count, 3 * sizeof(*all)) : NULL;
	long *create = all, *unlinked = all + count, *list = all + 2 * count;
	char path[4096];

	for (int i = 0; all && i < count; i++) {
		long start = microseconds();
		int fd;

		snprintf(path, sizeof(path), "%s/pace%d", a[0], i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || close(fd))
			return sys_answer(-1);
		create[i] = microseconds() - start;
		start = microseconds();
		if (list_through(a[0]))
			return sys_answer(-1);
		list[i] = microseconds() - start;
		start = microseconds();
		if (unlink(path))
			return sys_answer(-1);
		unlinked[i] = microseconds() - start;
	}
	if (!all)
		return 2;
	print_pace("create", create, count);
	print_pace("unlink", unlinked, count);
	print_pace("list", list, count);
	free(all);
	return 0;
}

int loop_seekdir(char **a)
{
	DIR *dir = opendir(a[0]);
	long at[4096];
	char names[4096][256];
	int n = 0, bad = 0;
	struct dirent *e;

	if (!dir)
		return sys_answer(-1);
	for (at[0] = telldir(dir); n < 4095 && (e = readdir(dir)); at[++n] = telldir(dir))
		snprintf(names[n], sizeof(names[n]), "%s", e->d_name);
	for (int i = n - 1; i >= 0; i--) {
		seekdir(dir, at[i]);
		e = readdir(dir);
		bad += !e || strcmp(e->d_name, names[i]) != 0;
	}
	closedir(dir);
	printf("%d of %d wrong\n", bad, n);
	return 0;
}

int loop_temporary(char **a)
{
	int fd = open(a[0], O_RDWR | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || dprintf(fd, "%s", a[1]) < 0 || unlink(a[0]))
		return sys_answer(-1);
	return sys_answer(close(fd));
}

struct deleter {
	const char *directory;
	char (*names)[256];
	int count, step, first;
	int removed;
};

static void *delete_some(void *data)
{
	struct deleter *d = data;
	char path[4096];

	for (int i = d->first; i < d->count; i += d->step) {
		snprintf(path, sizeof(path), "%s/%s", d->directory, d->names[i]);
		d->removed += unlink(path) == 0;
	}
	return NULL;
}

int loop_unlink_by_threads(char **a)
{
	int threads = atoi(a[0]), count = 0, removed = 0;
	char(*names)[256] = malloc(sizeof(*names) * 100000);
	DIR *dir = opendir(a[1]);
	struct deleter d[64];
	pthread_t thread[64];
	struct dirent *e;

	if (!dir || threads < 1 || threads > 64)
		return sys_answer(-1);
	while (count < 100000 && (e = readdir(dir)))
		if (e->d_type == DT_REG)
			snprintf(names[count++], sizeof(*names), "%s", e->d_name);
	closedir(dir);
	for (int i = 0; i < threads; i++) {
		d[i] = (struct deleter){ a[1], names, count, threads, i, 0 };
		pthread_create(&thread[i], NULL, delete_some, &d[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		removed += d[i].removed;
	}
	free(names);
	printf("%d\n", removed);
	return 0;
}

int loop_copy_while_mapped(char **a)
{
	size_t size = strtoul(a[2], NULL, 0), at = strtoul(a[3], NULL, 0);
	char *cp[] = { (char[]){ "cp" }, a[0], a[1], NULL };
	int fd = open(a[0], O_RDWR | O_CREAT, 0644);
	char *map;
	pid_t child;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return sys_answer(-1);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return sys_answer(-1);
	memcpy(map + at, "mapped", 6);
	/* Not fork: a child that leaves its copy of the map writes it back. */
	if (posix_spawnp(&child, "cp", NULL, NULL, cp, environ))
		return sys_answer(-1);
	puts(joined(child) ? "failed" : "ok");
	return 0;
}

/* Pieces of 4 KiB: data, hole, data, hole, data. */
int loop_fill_holes(char **a)
{
	int fd = open(a[0], O_RDWR | O_CREAT | O_TRUNC, 0644);
	char piece[4096], *map;

	memset(piece, 'x', sizeof(piece));
	for (int i = 0; fd >= 0 && i < 5; i += 2)
		if (pwrite(fd, piece, sizeof(piece), (off_t)sizeof(piece) * i) < 0)
			return sys_answer(-1);
	map = mmap(NULL, 5 * sizeof(piece), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return sys_answer(-1);
	memcpy(map + sizeof(piece), piece, sizeof(piece));
	memcpy(map + 3 * sizeof(piece), piece, sizeof(piece));
	printf("%lld\n", (long long)lseek(fd, 0, SEEK_HOLE));
	return 0;
}

int loop_link_many(char **a)
{
	int count = atoi(a[2]);
	char path[4096];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/l%d", a[1], i);
		if (link(a[0], path))
			return sys_answer(-1);
	}
	return sys_answer(0);
}
