/*
 * shim.h - the system calls by which a process changes the files of a store,
 * taken over: counted, logged, made to fail, or the last thing it does.
 *
 * The executable defines pwrite, fdatasync and so on itself and exports them,
 * so that liblmdb calls them too. Files outside of the watched directory, and
 * locks, pass through unseen.
 */
#ifndef TESTS_CRASH_SHIM_H
#define TESTS_CRASH_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A sanitizer has its own malloc. GCC says so by a macro, Clang by a feature. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHIM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHIM_SANITIZED 1
#endif
#endif
#ifndef SHIM_SANITIZED
#define SHIM_SANITIZED 0
#endif

enum shim_call {
	SHIM_WRITE, /* pwrite, write, writev */
	SHIM_SYNC, /* fsync, fdatasync */
	SHIM_ALLOCATE, /* fallocate, punching too */
	SHIM_TRUNCATE,
	SHIM_CREATE, /* openat that makes a file, mkdirat, renameat */
	SHIM_REMOVE, /* unlinkat */
	SHIM_MEMORY, /* malloc, calloc, realloc: not a change of a file. Never under a sanitizer, which has its own */
	SHIM_CALLS,
};

const char *shim_call_name(enum shim_call call);

/* Watches the files below `directory` (no trailing slash). Before any thread. */
void shim_watch(const char *directory);
/* Syncs of watched files are counted and may fail, but nothing is waited for: only power loss would tell. */
void shim_skip_syncs(void);

struct shim_fault {
	uint64_t at; /* the n-th call of a kind in `calls` (from 1), counted from shim_arm on; 0 = none */
	unsigned calls; /* bits: 1 << enum shim_call */
	int error; /* it fails with this errno; 0: the process is killed before it is done */
	bool stays; /* all later ones fail too */
	bool half; /* a write is done by half first */
};

void shim_arm(const struct shim_fault *fault);
/* Calls of the fault's kinds since then. */
uint64_t shim_count(void);
bool shim_fired(void);

/* ---- the log --------------------------------------------------------------- */

/* Order is the order in which the calls returned. */
enum shim_record_kind {
	SHIM_LOG_WRITE, /* `size` bytes at `offset` */
	SHIM_LOG_WRITE_SYNCED, /* through a descriptor that syncs each write */
	SHIM_LOG_PUNCH,
	SHIM_LOG_TRUNCATE, /* to `offset` */
	SHIM_LOG_CREATE,
	SHIM_LOG_REMOVE,
	SHIM_LOG_SYNC, /* of a file */
	SHIM_LOG_SYNC_DIRECTORY,
	SHIM_LOG_NOTE, /* `offset` is what shim_note was given */
};

struct shim_record {
	enum shim_record_kind kind;
	uint32_t path; /* offset of the relative path, 0-terminated, in the log */
	uint32_t next; /* offset of the next record */
	uint64_t offset;
	uint64_t size;
	uint8_t bytes[];
};

/* Memory shared with child processes that are forked afterwards. A log there was before is gone. */
void shim_log_start(size_t max);
/* This process, and those it forks from now on, add nothing to it. */
void shim_log_read_only(void);
/* What the process knows by now: for the log only. */
void shim_note(uint64_t value);
/* Ends the process, but between a call and its record: what was done and not logged the next one would build on. */
void shim_exit(int code);
/* NULL at the end; `record` of NULL: the first. */
const struct shim_record *shim_log_next(const struct shim_record *record);
const char *shim_log_path(const struct shim_record *record);
/* Whether `record` was there when the call that `sync` tells of began. */
bool shim_log_before(const struct shim_record *record, const struct shim_record *sync);

#endif
