/*
 * storm.c - runs the storm and checks what is left of it.
 *
 *   storm NEW-DIRECTORY SECONDS SEED PROCESSES
 *
 * Prints the seed, what was done each minute and at the end, and what went
 * wrong; exit code 1 if anything did. What is deleted there must expire within
 * half a minute. See storm.h.
 */
#include "tests/mount/storm.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void storm_failed(struct worker *w, const char *what, const char *path, int error)
{
	uint64_t n = __atomic_add_fetch(&w->shared->failures, 1, __ATOMIC_RELAXED);

	if (n <= 40)
		fprintf(stderr, "process %d: %s %s: %s\n", w->number, what, path,
			error ? strerrorname_np(error) : "wrong");
}

void storm_allow(struct worker *w, const char *what, const char *path, int result, const int *allowed)
{
	int error = errno;

	if (result >= 0)
		return;
	for (; *allowed; allowed++)
		if (*allowed == error)
			return;
	storm_failed(w, what, path, error);
}

/* ---- contents ---------------------------------------------------------------------- */

void storm_fill(char *buffer, int worker, uint32_t tag, uint32_t size)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "storm %d %u %u\n", worker, tag, size);

	for (uint32_t i = 0; i < size; i++)
		buffer[i] = (char)('a' + (tag * 7 + i / 3 + i * (uint32_t)worker) % 26);
	memcpy(buffer, line, (size_t)n);
}

bool storm_whole(const char *buffer, size_t size, int *ret_worker, uint32_t *ret_tag)
{
	char line[64] = { 0 }, *expected;
	unsigned tag, own_size;
	int worker;
	bool whole;

	memcpy(line, buffer, util_min(size, sizeof(line) - 1));
	if (sscanf(line, "storm %d %u %u\n", &worker, &tag, &own_size) != 3 || own_size != size)
		return false;
	expected = malloc(size);
	if (!expected)
		return false;
	storm_fill(expected, worker, tag, own_size);
	whole = !memcmp(expected, buffer, size);
	free(expected);
	*ret_worker = worker;
	*ret_tag = tag;
	return whole;
}

uint32_t storm_size(struct worker *w)
{
	switch (random_below(&w->random, 12)) {
	case 0:
		return (uint32_t)(40000 + random_below(&w->random, STORM_LARGEST - 40000));
	case 1:
	case 2:
		return (uint32_t)(2000 + random_below(&w->random, 6000));
	default:
		return (uint32_t)(64 + random_below(&w->random, 1200));
	}
}

/* ---- the run ----------------------------------------------------------------------- */

static void note_duration(struct worker *w, const char *step, int64_t ns)
{
	struct shared_state *s = w->shared;

	__atomic_add_fetch(&s->steps, 1, __ATOMIC_RELAXED);
	if (ns > s->slowest_ns) {
		s->slowest_ns = ns;
		snprintf(s->slowest, sizeof(s->slowest), "%s", step);
	}
	if (ns > STORM_ANSWER_NS)
		storm_failed(w, "took over 30 s:", step, 0);
}

static _Noreturn void work(struct shared_state *shared, int number, uint64_t seed, int64_t until_ns)
{
	struct worker *w = calloc(1, sizeof(*w));

	w->random.state = seed * 1000 + (uint64_t)number;
	w->number = number;
	w->shared = shared;
	w->buffer = malloc(STORM_LARGEST + 1);
	own_init(w);
	for (int64_t t = now_ns(); t < until_ns;) {
		const char *step = random_once_in(&w->random, 2) ? shared_step(w) : own_step(w);
		int64_t end = now_ns();

		note_duration(w, step, end - t);
		t = end;
	}
	own_check_all(w);
	free(w->buffer);
	free(w);
	_exit(0);
}

/* In a directory that must be new: what an earlier run left is not in the model. */
static void make_directories(void)
{
	char path[64];

	for (int d = 0; d < STORM_DIRECTORIES; d++) {
		snprintf(path, sizeof(path), "d%d", d);
		mkdir(path, 0755);
		for (int k = 0; k < STORM_KEPT; k++) {
			snprintf(path, sizeof(path), "d%d/kept%d", d, k);
			if (k % 8 == 0)
				mkdir(path, 0755);
			else
				close(open(path, O_WRONLY | O_CREAT, 0644));
		}
	}
}

static void report(const struct shared_state *s, int64_t ns)
{
	printf("%lld s: %llu steps, %llu wrong, %llu back from the trash, slowest %lld ms (%s)\n",
	       (long long)(ns / 1000000000), (unsigned long long)s->steps, (unsigned long long)s->failures,
	       (unsigned long long)s->adopted, (long long)(s->slowest_ns / 1000000), s->slowest);
	fflush(stdout);
}

/* ---- afterwards -------------------------------------------------------------------- */

struct seen {
	uint64_t ino;
	uint32_t links, names;
	char *path; /* the first of its names */
};

struct census {
	struct worker w; /* to report with */
	struct seen *seen;
	size_t count;
};

static void count_name(struct census *c, const char *path, const struct stat *st)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->seen[i].ino == st->st_ino) {
			c->seen[i].names++;
			return;
		}
	c->seen = reallocarray(c->seen, c->count + 1, sizeof(*c->seen));
	c->seen[c->count++] = (struct seen){ st->st_ino, (uint32_t)st->st_nlink, 1, strdup(path) };
	if (S_ISREG(st->st_mode) && st->st_size) {
		int fd = open(path, O_RDONLY), worker;
		ssize_t n = pread(fd, c->w.buffer, STORM_LARGEST, 0);
		uint32_t tag;

		if (n != st->st_size || !storm_whole(c->w.buffer, (size_t)n, &worker, &tag))
			storm_failed(&c->w, "at the end, the content of", path, n < 0 ? errno : 0);
		close(fd);
	}
}

static void census_of(struct census *c, const char *directory)
{
	DIR *d = opendir(directory);
	struct dirent *e;
	struct stat st;
	char path[4096];

	if (!d)
		storm_failed(&c->w, "at the end, opendir", directory, errno);
	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		if (lstat(path, &st))
			storm_failed(&c->w, "at the end, lstat", path, errno);
		else if (S_ISDIR(st.st_mode))
			census_of(c, path);
		else
			count_name(c, path, &st);
	}
	if (d)
		closedir(d);
}

/*
 * Names in a directory that was deleted whole count until that is destroyed. No
 * directory is read meanwhile, which would tell the kernel anew: it must have
 * been told when they went.
 */
static void await_links(struct census *c, struct seen *seen, int64_t until)
{
	char counts[32];
	struct stat st;

	while (seen->links > seen->names && now_ns() < until) {
		usleep(100000);
		if (lstat(seen->path, &st))
			storm_failed(&c->w, "at the end, lstat", seen->path, errno);
		else
			seen->links = (uint32_t)st.st_nlink;
	}
	snprintf(counts, sizeof(counts), "%u of %u", seen->names, seen->links);
	if (seen->links != seen->names)
		storm_failed(&c->w, "at the end, names found", counts, 0);
}

/* Every file has as many names as it says, and is whole. */
static void check_links(struct shared_state *shared)
{
	struct census c = { .w = { .number = -1, .shared = shared, .buffer = malloc(STORM_LARGEST + 1) } };
	int64_t until = now_ns() + STORM_EXPIRY_NS;
	char path[32];

	for (int d = 0; d < STORM_DIRECTORIES; d++) {
		snprintf(path, sizeof(path), "d%d", d);
		census_of(&c, path);
	}
	for (size_t i = 0; i < c.count; i++) {
		await_links(&c, &c.seen[i], until);
		free(c.seen[i].path);
	}
	printf("%zu files at the end\n", c.count);
	free(c.seen);
	free(c.w.buffer);
}

int main(int argc, char **argv)
{
	struct shared_state *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t start = now_ns(), next = start + INT64_C(60000000000), until;
	int processes = argc == 5 ? atoi(argv[4]) : 0, left = processes, status;

	if (processes < 1 || mkdir(argv[1], 0755) || chdir(argv[1]) || shared == MAP_FAILED) {
		fprintf(stderr, "usage: storm NEW-DIRECTORY SECONDS SEED PROCESSES\n");
		return 2;
	}
	printf("seed %s\n", argv[3]);
	fflush(stdout);
	until = start + atoll(argv[2]) * INT64_C(1000000000);
	make_directories();
	for (int p = 0; p < processes; p++)
		if (!fork())
			work(shared, p, strtoull(argv[3], NULL, 0), until);
	while (left) {
		pid_t ended = waitpid(-1, &status, WNOHANG);

		if (ended > 0 && (left--, status != 0))
			shared->failures++, fprintf(stderr, "a process died: status %d\n", status);
		if (!ended)
			usleep(50000);
		if (now_ns() > next) {
			report(shared, now_ns() - start);
			next += INT64_C(60000000000);
		}
	}
	check_links(shared);
	report(shared, now_ns() - start);
	return shared->failures != 0;
}
