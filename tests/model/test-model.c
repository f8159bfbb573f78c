/*
 * test-model.c - random histories against the model; a failing one is made as
 * short as it can be and kept. See README.md here.
 *
 *     test-model [--histories N] [--operations N] [--seed S] [--jobs N] [--quick]
 *     test-model --replay FILE...
 *
 * Prints TAP. Each history runs in a process of its own, in memory shared with
 * this one: a crash is a failure like any other, and after a kill -9 the next
 * process goes on. --quick ends at the first failure, as it is.
 */
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "tests/model/history.h"

#define HISTORIES 2000
#define OPERATIONS 200
#define RIGHTS_ONE_IN 2
#define LOCAL_ONE_IN \
	25 /* histories on the local store: each kill and remount there is a real one */
#define SECONDS_MAX 120 /* of one history */
#define RUNS_MAX 2000 /* of the minimiser */

struct totals {
	uint64_t histories, operations, succeeded[OP_KINDS], evicted, refused;
};

/* ---- one history -------------------------------------------------------------------- */

static struct run *new_run(void)
{
	struct run *run =
		mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (run == MAP_FAILED) {
		perror("test-model: memory");
		exit(2);
	}
	return run;
}

static int remove_entry(const char *path, const struct stat *attributes, int type, struct FTW *ftw)
{
	return remove(path);
}

static void describe_death(struct run *run, int status)
{
	if (WIFSIGNALED(status))
		snprintf(run->failure, sizeof(run->failure), "operation %d: died of signal %d%s",
			 run->at, WTERMSIG(status), WTERMSIG(status) == SIGALRM ? " (no end)" : "");
	else if (!run->failure[0])
		snprintf(run->failure, sizeof(run->failure), "operation %d: exit status %d",
			 run->at, WEXITSTATUS(status));
}

/* What `run->history` says. True: all was as it should be. */
static bool run_history(struct run *run, bool quiet)
{
	static unsigned stores;
	int status;

	run->at = 0;
	run->operations = run->refused = 0;
	memset(run->succeeded, 0, sizeof(run->succeeded));
	run->killed = run->opened = run->suspect = run->behind = false;
	run->ahead_ns = run->stepped_ns = run->forgotten_ns = 0;
	run->failure[0] = 0;
	snprintf(run->path, sizeof(run->path), "%s/store%u", test_directory(), stores++);
	do {
		pid_t pid;

		fflush(NULL);
		pid = fork();
		if (pid < 0) {
			perror("test-model: fork");
			exit(2);
		}
		if (!pid) {
			if (quiet && !freopen("/dev/null", "w", stderr))
				_exit(2);
			alarm(SECONDS_MAX);
			history_run(run);
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
	} while (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && run->killed);
	if (run->history.engine == HISTORY_LOCAL)
		nftw(run->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	describe_death(run, status);
	return false;
}

/* ---- making a failing one short ------------------------------------------------------- */

static void without(const struct history *h, int from, int count, struct history *ret)
{
	ret->seed = h->seed;
	ret->engine = h->engine;
	ret->rights = h->rights;
	ret->count = h->count - count;
	memcpy(ret->operations, h->operations, (size_t)from * sizeof(h->operations[0]));
	memcpy(ret->operations + from, h->operations + from + count,
	       (size_t)(h->count - from - count) * sizeof(h->operations[0]));
}

/* Delta debugging: pieces are left out, ever smaller ones, as long as it still fails. */
static void minimise(struct run *run)
{
	struct history *shortest = malloc(sizeof(*shortest));
	char failure[sizeof(run->failure)];
	int runs = 0;

	if (!shortest)
		return;
	*shortest = run->history;
	memcpy(failure, run->failure, sizeof(failure));
	/* Nothing after the operation that failed matters. */
	if (run->at > 0 && run->at < shortest->count) {
		run->history.count = run->at;
		if (!run_history(run, true)) {
			*shortest = run->history;
			memcpy(failure, run->failure, sizeof(failure));
		}
	}
	for (int size = shortest->count / 2; size >= 1; size = size > 1 ? size / 2 : 0) {
		bool shorter;

		do {
			shorter = false;
			for (int from = 0; from + size <= shortest->count && runs < RUNS_MAX;) {
				without(shortest, from, size, &run->history);
				runs++;
				if (run_history(run, true)) {
					from += size;
					continue;
				}
				*shortest = run->history;
				memcpy(failure, run->failure, sizeof(failure));
				shorter = true;
			}
		} while (shorter && size == 1 && runs < RUNS_MAX);
	}
	run->history = *shortest;
	memcpy(run->failure, failure, sizeof(failure));
	free(shortest);
}

static void keep(const struct run *run, uint64_t seed, const char *why)
{
	const char *directory = getenv("DDBFS_MODEL_KEEP");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/model-%llu.txt", directory ? directory : "/tmp",
		 (unsigned long long)seed);
	file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "# seed %llu: %s\n", (unsigned long long)seed, why);
	history_print(&run->history, file);
	fclose(file);
	printf("# %d operations are left of it, kept in %s:\n", run->history.count, path);
	for (int i = 0; i < run->history.count; i++) {
		fputs("#   ", stdout);
		history_print_operation(&run->history.operations[i], stdout);
	}
	puts("# repeat it by test-model --replay; once mended, it belongs into tests/model/corpus/");
}

/* ---- many ------------------------------------------------------------------------------- */

static void add_up(struct totals *totals, const struct run *run)
{
	totals->histories++;
	totals->operations += run->operations;
	totals->refused += run->refused;
	totals->evicted += run->model.destroyed[MODEL_BY_EVICTION];
	for (int i = 0; i < OP_KINDS; i++)
		totals->succeeded[i] += run->succeeded[i];
}

static bool run_seed(struct run *run, uint64_t seed, int operations, bool quick, struct totals *totals)
{
	history_generate(&run->history, seed, operations);
	run->history.engine = seed % LOCAL_ONE_IN == 0 ? HISTORY_LOCAL :
			      seed % 2		       ? HISTORY_MEMORY :
							 HISTORY_MEMORY_SEALED;
	run->history.rights = seed % RIGHTS_ONE_IN == 0;
	if (run_history(run, quick)) {
		add_up(totals, run);
		return true;
	}
	printf("# seed %llu failed: %s\n", (unsigned long long)seed, run->failure);
	if (quick)
		return false;
	minimise(run);
	keep(run, seed, run->failure);
	return false;
}

/* What one of the jobs does: every `jobs`th seed. Its totals go through the pipe. */
static bool run_share(uint64_t first, unsigned histories, unsigned job, unsigned jobs,
		      int operations, bool quick, struct totals *totals)
{
	struct run *run = new_run();
	bool ok = true;

	for (unsigned i = job; i < histories && ok; i += jobs)
		ok = run_seed(run, first + i, operations, quick, totals);
	munmap(run, sizeof(*run));
	return ok;
}

static bool run_all(uint64_t first, unsigned histories, unsigned jobs, int operations, bool quick)
{
	struct totals *totals = mmap(NULL, jobs * sizeof(*totals), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct totals sum = { 0 };
	bool ok = true;
	int status;

	if (totals == MAP_FAILED)
		return false;
	fflush(NULL);
	for (unsigned job = 0; job < jobs; job++) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (!pid) {
			/* exit, not _exit: it has a temporary directory to remove. */
			ok = run_share(first, histories, job, jobs, operations, quick, &totals[job]);
			exit(!ok);
		}
	}
	while (wait(&status) > 0)
		ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	for (unsigned job = 0; job < jobs; job++) {
		sum.histories += totals[job].histories;
		sum.operations += totals[job].operations;
		sum.refused += totals[job].refused;
		sum.evicted += totals[job].evicted;
		for (int i = 0; i < OP_KINDS; i++)
			sum.succeeded[i] += totals[job].succeeded[i];
	}
	printf("# seeds %llu to %llu: %llu histories of %d, %llu operations; of them %llu restores, %llu undos, "
	       "%llu purges, %llu opens, %llu writes to what was open, %llu evicted, %llu refused for want of rights\n",
	       (unsigned long long)first, (unsigned long long)(first + histories - 1),
	       (unsigned long long)sum.histories, operations, (unsigned long long)sum.operations,
	       (unsigned long long)(sum.succeeded[OP_RESTORE] + sum.succeeded[OP_ORIGIN]),
	       (unsigned long long)sum.succeeded[OP_UNDO],
	       (unsigned long long)sum.succeeded[OP_PURGE], (unsigned long long)sum.succeeded[OP_OPEN],
	       (unsigned long long)sum.succeeded[OP_SCRIBBLE], (unsigned long long)sum.evicted,
	       (unsigned long long)sum.refused);
	munmap(totals, jobs * sizeof(*totals));
	return ok;
}

/* ---- kept ones ------------------------------------------------------------------------------ */

static bool replay(struct run *run, const char *path)
{
	FILE *file = fopen(path, "r");
	int wrong;

	if (!file) {
		printf("# %s: %s\n", path, strerror(errno));
		return false;
	}
	wrong = history_parse(&run->history, file);
	fclose(file);
	if (wrong) {
		printf("# %s:%d: no operation\n", path, wrong);
		return false;
	}
	if (run_history(run, false))
		return true;
	printf("# %s: %s\n", path, run->failure);
	return false;
}

static bool replay_corpus(void)
{
	const char *directory = getenv("DDBFS_MODEL_CORPUS");
	struct run *run = new_run();
	char pattern[4096];
	glob_t found;
	bool ok;

	snprintf(pattern, sizeof(pattern), "%s/*.txt", directory ? directory : "tests/model/corpus");
	ok = glob(pattern, 0, NULL, &found) == 0;
	if (!ok)
		printf("# no kept histories at %s\n", pattern);
	for (size_t i = 0; ok && i < found.gl_pathc; i++)
		ok &= replay(run, found.gl_pathv[i]);
	globfree(&found);
	munmap(run, sizeof(*run));
	return ok;
}

/* ---- the command line ------------------------------------------------------------------------ */

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || end == text) {
		fprintf(stderr, "test-model: %s is no number\n", text);
		exit(2);
	}
	return n;
}

static unsigned long from_environment(const char *name, unsigned long usual)
{
	return getenv(name) ? number(getenv(name)) : usual;
}

static int tell(int n, bool ok, const char *name)
{
	printf("%sok %d - %s\n", ok ? "" : "not ", n, name);
	fflush(stdout);
	return !ok;
}

static int replay_files(char **paths)
{
	struct run *run = new_run();
	int n = 0, failed = 0;

	for (; *paths; paths++)
		failed += tell(++n, replay(run, *paths), *paths);
	printf("1..%d\n", n);
	return failed > 0;
}

int main(int argc, char **argv)
{
	unsigned histories = (unsigned)from_environment("DDBFS_MODEL_HISTORIES", HISTORIES), jobs = 2;
	uint64_t seed = from_environment("DDBFS_TEST_SEED", 1);
	int operations = OPERATIONS, failed = 0;
	bool quick = false;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--replay") && more)
			return replay_files(argv + i + 1);
		if (!strcmp(argv[i], "--histories") && more)
			histories = (unsigned)number(argv[++i]);
		else if (!strcmp(argv[i], "--operations") && more)
			operations = (int)number(argv[++i]);
		else if (!strcmp(argv[i], "--seed") && more)
			seed = number(argv[++i]);
		else if (!strcmp(argv[i], "--jobs") && more)
			jobs = (unsigned)number(argv[++i]);
		else if (!strcmp(argv[i], "--quick"))
			quick = true;
		else
			return fprintf(stderr, "test-model: what is %s?\n", argv[i]), 2;
	}
	if (operations < 1 || operations > HISTORY_OPERATIONS || !jobs)
		return 2;
	if (!quick)
		failed += tell(1, replay_corpus(), "kept histories are what the model says");
	failed += tell(1 + !quick, run_all(seed, histories, jobs, operations, quick),
		       "random histories are what the model says");
	printf("1..%d\n", 1 + !quick);
	return failed > 0;
}
