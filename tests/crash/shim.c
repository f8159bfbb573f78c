/*
 * shim.c - see shim.h.
 */
/* Both names of each call are defined here; with this set, the headers would make them one. */
#undef _FILE_OFFSET_BITS

#include "tests/crash/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "store/util.h"

/* The log's memory: this, then records and paths. Shared between processes. */
struct log {
	pthread_mutex_t lock;
	size_t max;
	size_t size;
};

static char watched[4200];
static size_t watched_size;
static struct shim_fault fault;
/* Shared with processes that the watched one forks. */
static struct {
	_Atomic uint64_t calls;
	atomic_bool fired;
} * counted;
static struct log *shared_log;
static bool only_reads; /* the log */
static bool syncs_skipped;
static pthread_rwlock_t under_way = PTHREAD_RWLOCK_INITIALIZER; /* read: a call that is logged */

const char *shim_call_name(enum shim_call call)
{
	static const char *const names[SHIM_CALLS] = { "write",	 "sync",   "allocate", "truncate",
						       "create", "remove", "memory" };

	return names[call];
}

void shim_watch(const char *directory)
{
	if (!realpath(directory, watched))
		abort();
	watched_size = strlen(watched);
}

void shim_skip_syncs(void)
{
	syncs_skipped = true;
}

void shim_arm(const struct shim_fault *f)
{
	fault = (struct shim_fault){ 0 };
	if (!counted)
		counted = mmap(NULL, sizeof(*counted), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counted == MAP_FAILED)
		abort();
	counted->calls = 0;
	counted->fired = false;
	fault = *f;
}

uint64_t shim_count(void)
{
	return counted->calls;
}

bool shim_fired(void)
{
	return counted->fired;
}

/* ---- the log ------------------------------------------------------------------ */

void shim_log_start(size_t max)
{
	pthread_mutexattr_t shared;

	if (shared_log)
		munmap(shared_log, shared_log->max);
	only_reads = false;
	shared_log = mmap(NULL, max, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared_log == MAP_FAILED)
		abort();
	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared_log->lock, &shared);
	shared_log->max = max;
	shared_log->size = (sizeof(struct log) + 15) / 16 * 16;
}

void shim_log_read_only(void)
{
	only_reads = true;
}

static uint8_t *take(size_t size)
{
	uint8_t *memory = (uint8_t *)shared_log + shared_log->size;

	size = (size + 15) / 16 * 16;
	if (shared_log->size + size > shared_log->max || shared_log->size + size > UINT32_MAX) {
		fprintf(stderr, "the log of system calls is full\n");
		abort();
	}
	shared_log->size += size;
	return memory;
}

static void append(enum shim_record_kind kind, const char *path, uint64_t offset, const void *bytes,
		   uint64_t size)
{
	struct shim_record *record;
	uint8_t *name;

	if (!shared_log || only_reads)
		return;
	pthread_mutex_lock(&shared_log->lock);
	record = (struct shim_record *)take(sizeof(*record) + (bytes ? size : 0));
	record->kind = kind;
	record->offset = offset;
	record->size = size;
	if (bytes)
		memcpy(record->bytes, bytes, size);
	name = take(strlen(path) + 1);
	memcpy(name, path, strlen(path) + 1);
	record->path = (uint32_t)(name - (uint8_t *)shared_log);
	record->next = (uint32_t)shared_log->size;
	pthread_mutex_unlock(&shared_log->lock);
}

static uint64_t log_size(void)
{
	uint64_t size = 0;

	if (!shared_log)
		return 0;
	pthread_mutex_lock(&shared_log->lock);
	size = shared_log->size;
	pthread_mutex_unlock(&shared_log->lock);
	return size;
}

bool shim_log_before(const struct shim_record *record, const struct shim_record *sync)
{
	return (uint64_t)((uint8_t *)record - (uint8_t *)shared_log) < sync->offset;
}

void shim_exit(int code)
{
	pthread_rwlock_wrlock(&under_way);
	_exit(code);
}

void shim_note(uint64_t value)
{
	append(SHIM_LOG_NOTE, "", value, NULL, 0);
}

const struct shim_record *shim_log_next(const struct shim_record *record)
{
	size_t at = record ? record->next : (sizeof(struct log) + 15) / 16 * 16;

	return at < shared_log->size ? (struct shim_record *)((uint8_t *)shared_log + at) : NULL;
}

const char *shim_log_path(const struct shim_record *record)
{
	return (char *)shared_log + record->path;
}

/* ---- which files, which calls ---------------------------------------------------- */

/* The path of a descriptor below the watched directory, or NULL. */
static const char *path_of(int fd, char path[4200])
{
	char link[64];
	ssize_t size;
	int saved = errno;

	if (!watched_size)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, 4199);
	errno = saved;
	if (size < 0)
		return NULL;
	path[size] = 0;
	if ((size_t)size < watched_size || memcmp(path, watched, watched_size) ||
	    (path[watched_size] && path[watched_size] != '/'))
		return NULL;
	path += watched_size + (path[watched_size] == '/');
	return strcmp(path, "lock") && strcmp(path, "lock.mdb") ? path : NULL;
}

static const char *path_at(int dir_fd, const char *name, char path[4200])
{
	char directory[4200];
	const char *below = path_of(dir_fd, directory);

	if (!below || name[0] == '/' || !strcmp(name, "lock"))
		return NULL;
	snprintf(path, 4200, "%s%s%s", below, *below ? "/" : "", name);
	return path;
}

/* Counts the call; kills, or says with which errno it shall fail. */
static int meet_fault(enum shim_call call, bool *ret_now)
{
	uint64_t n;

	*ret_now = false;
	if (!(fault.calls >> call & 1))
		return 0;
	n = ++counted->calls;
	if (!fault.at || n < fault.at || (n > fault.at && !fault.stays))
		return 0;
	counted->fired = true;
	*ret_now = true;
	return fault.error;
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

/* Whether the call is not to be made. */
static bool fails(enum shim_call call)
{
	bool now;
	int error = meet_fault(call, &now);

	if (!now)
		return false;
	if (!error)
		die();
	errno = error;
	return true;
}

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		abort();
	return function;
}

/* ---- memory ---------------------------------------------------------------------------- */

#if !SHIM_SANITIZED

/* What the C library's own are called besides; to ask for them by name would need memory. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : __libc_realloc(memory, size);
}

#endif

/* ---- the calls --------------------------------------------------------------------- */

static bool syncs_each(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_DSYNC);
}

static ssize_t watched_write(int fd, const char *path, const void *bytes, size_t size, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) = real("pwrite");
	bool now;
	int error = meet_fault(SHIM_WRITE, &now);
	ssize_t n;

	if (now && fault.half && size > 1)
		(void)!next(fd, bytes, size / 2, offset);
	if (now && !error)
		die();
	if (now) {
		errno = error;
		return -1;
	}
	pthread_rwlock_rdlock(&under_way);
	n = next(fd, bytes, size, offset);
	if (n > 0)
		append(syncs_each(fd) ? SHIM_LOG_WRITE_SYNCED : SHIM_LOG_WRITE, path,
		       (uint64_t)offset, bytes, (uint64_t)n);
	pthread_rwlock_unlock(&under_way);
	return n;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t);
	char memory[4200];
	const char *path = path_of(fd, memory);

	if (path)
		return watched_write(fd, path, bytes, size, offset);
	next = real("pwrite");
	return next(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off_t offset)
{
	return pwrite(fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	ssize_t (*next)(int, const void *, size_t);
	char memory[4200];
	const char *path = path_of(fd, memory);
	ssize_t n;

	if (path) {
		n = watched_write(fd, path, bytes, size, lseek(fd, 0, SEEK_CUR));
		if (n > 0)
			lseek(fd, n, SEEK_CUR);
		return n;
	}
	next = real("write");
	return next(fd, bytes, size);
}

/* One after the other in memory that is not the program's: that is made to run out. */
static uint8_t *join_parts(const struct iovec *parts, int count, size_t *ret_size)
{
	size_t size = 0, at = 0;
	uint8_t *all;

	for (int i = 0; i < count; i++)
		size += parts[i].iov_len;
	all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		abort();
	for (int i = 0; i < count; i++) {
		memcpy(all + at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	*ret_size = size;
	return all;
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	ssize_t (*next)(int, const struct iovec *, int);
	char memory[4200];
	const char *path = path_of(fd, memory);
	uint8_t *all;
	size_t size;
	ssize_t n;

	if (!path) {
		next = real("writev");
		return next(fd, parts, count);
	}
	all = join_parts(parts, count, &size);
	n = watched_write(fd, path, all, size, lseek(fd, 0, SEEK_CUR));
	if (n > 0)
		lseek(fd, n, SEEK_CUR);
	munmap(all, size);
	return n;
}

static int watched_sync(int fd, const char *name)
{
	int (*next)(int) = real(name);
	char memory[4200];
	const char *path = path_of(fd, memory);
	uint64_t begin = path ? log_size() : 0;
	struct stat st;
	int r;

	if (path && fails(SHIM_SYNC))
		return -1;
	/* Where calls are only logged the disk need not be waited for, but others get time to come in between. */
	if (path && syncs_skipped)
		r = 0;
	else
		r = path && shared_log ? usleep(400) : next(fd);
	if (path && r == 0 && fstat(fd, &st) == 0)
		append(S_ISDIR(st.st_mode) ? SHIM_LOG_SYNC_DIRECTORY : SHIM_LOG_SYNC, path, begin,
		       NULL, 0);
	return r;
}

int fsync(int fd)
{
	return watched_sync(fd, "fsync");
}

int fdatasync(int fd)
{
	return watched_sync(fd, "fdatasync");
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
	int (*next)(int, int, off_t, off_t) = real("fallocate");
	char memory[4200];
	const char *path = path_of(fd, memory);
	int r;

	if (path && fails(SHIM_ALLOCATE))
		return -1;
	pthread_rwlock_rdlock(&under_way);
	r = next(fd, mode, offset, size);
	if (path && r == 0 && (mode & FALLOC_FL_PUNCH_HOLE))
		append(SHIM_LOG_PUNCH, path, (uint64_t)offset, NULL, (uint64_t)size);
	pthread_rwlock_unlock(&under_way);
	return r;
}

int fallocate64(int fd, int mode, off_t offset, off_t size)
{
	return fallocate(fd, mode, offset, size);
}

int ftruncate(int fd, off_t size)
{
	int (*next)(int, off_t) = real("ftruncate");
	char memory[4200];
	const char *path = path_of(fd, memory);
	int r;

	if (path && fails(SHIM_TRUNCATE))
		return -1;
	pthread_rwlock_rdlock(&under_way);
	r = next(fd, size);
	if (path && r == 0)
		append(SHIM_LOG_TRUNCATE, path, (uint64_t)size, NULL, 0);
	pthread_rwlock_unlock(&under_way);
	return r;
}

int ftruncate64(int fd, off_t size)
{
	return ftruncate(fd, size);
}

int openat(int dir_fd, const char *name, int flags, ...)
{
	int (*next)(int, const char *, int, ...) = real("openat");
	char memory[4200];
	const char *path = NULL;
	mode_t mode = 0;
	va_list list;
	int fd;

	if (flags & O_CREAT) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
		path = path_at(dir_fd, name, memory);
	}
	if (path && fails(SHIM_CREATE))
		return -1;
	pthread_rwlock_rdlock(&under_way);
	fd = next(dir_fd, name, flags, mode);
	if (path && fd >= 0)
		append(SHIM_LOG_CREATE, path, 0, NULL, 0);
	pthread_rwlock_unlock(&under_way);
	return fd;
}

int openat64(int dir_fd, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list list;

	if (flags & O_CREAT) {
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	return openat(dir_fd, name, flags, mode);
}

/* Counted as what makes a name, but not logged: a log is of files. */
int mkdirat(int dir_fd, const char *name, mode_t mode)
{
	int (*next)(int, const char *, mode_t) = real("mkdirat");
	char memory[4200];

	if (path_at(dir_fd, name, memory) && fails(SHIM_CREATE))
		return -1;
	return next(dir_fd, name, mode);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	int (*next)(int, const char *, int, const char *) = real("renameat");
	char memory[4200];

	if (path_at(to_fd, to, memory) && fails(SHIM_CREATE))
		return -1;
	return next(from_fd, from, to_fd, to);
}

int unlinkat(int dir_fd, const char *name, int flags)
{
	int (*next)(int, const char *, int) = real("unlinkat");
	char memory[4200];
	const char *path = path_at(dir_fd, name, memory);
	int r;

	if (path && fails(SHIM_REMOVE))
		return -1;
	pthread_rwlock_rdlock(&under_way);
	r = next(dir_fd, name, flags);
	if (path && r == 0)
		append(SHIM_LOG_REMOVE, path, 0, NULL, 0);
	pthread_rwlock_unlock(&under_way);
	return r;
}
