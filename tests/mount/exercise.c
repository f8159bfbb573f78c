/*
 * exercise.c - random reads, writes and everything else that changes or shows
 * a file's contents, through the kernel, against a model in memory.
 *
 *   exercise FILE STATE SEED OPERATIONS [WORD...]
 *
 * The model is kept in STATE between runs, so that a mount may end and begin
 * in between; the first run makes both. Words: `dense` if all of a file is data
 * to SEEK_HOLE (as with the writeback cache). A failure names the seed and the
 * last operations; exit code 1.
 */
#include "tests/mount/exercise.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG 24

struct run {
	const char *path;
	struct test_random random;
	struct exercise_model *model;
	enum exercise_scale scale;
	bool dense;
	int fd, appending;
	uint8_t *map; /* stays over other operations, or NULL */
	uint64_t map_offset, map_size;
	uint8_t *buffer, *other; /* EXERCISE_LARGEST bytes */
	long step;
	char log[LOG][96];
};

static void note(struct run *r, const char *what, uint64_t offset, uint64_t size)
{
	snprintf(r->log[r->step % LOG], sizeof(r->log[0]),
		 "%ld: %s %" PRIu64 " + %" PRIu64 " (size %" PRIu64 ")", r->step, what, offset,
		 size, r->model->size);
}

static _Noreturn void failed(struct run *r, const char *what, int error)
{
	printf("%s: seed %" PRIu64 ", step %ld: %s: %s; the last operations:\n", r->path,
	       r->random.seed, r->step, what, error ? strerrorname_np(error) : "wrong");
	for (long i = util_max(0L, r->step - LOG + 1); i <= r->step; i++)
		if (r->log[i % LOG][0])
			printf("  %s\n", r->log[i % LOG]);
	exit(1);
}

static void must(struct run *r, const char *what, bool holds)
{
	if (!holds)
		failed(r, what, 0);
}

static void call(struct run *r, const char *what, long long result)
{
	if (result < 0)
		failed(r, what, errno);
}

static void random_bytes(struct run *r, uint64_t size)
{
	bool zeros = random_once_in(&r->random, 12);

	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t word = zeros ? 0 : random_next(&r->random);

		memcpy(r->buffer + i, &word, util_min(size - i, UINT64_C(8)));
	}
}

/* ---- operations -------------------------------------------------------------------- */

static void do_write(struct run *r)
{
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	note(r, "write", offset, size);
	random_bytes(r, size);
	must(r, "bytes written", pwrite(r->fd, r->buffer, size, (off_t)offset) == (ssize_t)size);
	model_write(r->model, offset, r->buffer, size);
}

static void do_append(struct run *r)
{
	static const uint64_t ends[SCALES] = { 5000, 200 << 10, EXERCISE_LOW_SIZE,
					       EXERCISE_HIGH_START + EXERCISE_HIGH_SIZE };
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	offset = r->model->size;
	/* Only where the model has a window. */
	if (offset + size > ends[r->scale] || (r->scale == SCALE_HIGH && offset < EXERCISE_HIGH_START))
		return;
	note(r, "append", offset, size);
	random_bytes(r, size);
	must(r, "bytes appended", write(r->appending, r->buffer, size) == (ssize_t)size);
	model_write(r->model, offset, r->buffer, size);
}

static void read_range(struct run *r, uint64_t offset, uint64_t size)
{
	uint64_t there = offset < r->model->size ? util_min(size, r->model->size - offset) : 0;
	ssize_t n = pread(r->fd, r->buffer, size, (off_t)offset);

	call(r, "read", n);
	must(r, "number of bytes read", (uint64_t)n == there);
	must(r, "bytes read", model_equals(r->model, offset, r->buffer, there));
}

static void do_read(struct run *r)
{
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	/* Now and then anywhere. */
	if (random_once_in(&r->random, 10))
		offset = random_below(&r->random, r->model->size + 100);
	note(r, "read", offset, size);
	read_range(r, offset, size);
}

static void do_truncate(struct run *r)
{
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	offset = random_once_in(&r->random, 8) ? 0 : offset;
	note(r, "truncate", offset, 0);
	if (random_once_in(&r->random, 2))
		call(r, "truncate", truncate(r->path, (off_t)offset));
	else
		call(r, "ftruncate", ftruncate(r->fd, (off_t)offset));
	model_resize(r->model, offset);
}

static void do_allocate(struct run *r)
{
	bool keep = random_once_in(&r->random, 2);
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	note(r, keep ? "allocate, keeping the size," : "allocate", offset, size);
	call(r, "fallocate",
	     fallocate(r->fd, keep ? FALLOC_FL_KEEP_SIZE : 0, (off_t)offset, (off_t)size));
	if (!keep && offset + size > r->model->size)
		model_resize(r->model, offset + size);
}

static void do_punch(struct run *r)
{
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	note(r, "punch", offset, size);
	call(r, "fallocate",
	     fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size));
	model_zero(r->model, offset, util_min(offset + size, r->model->size));
}

static void do_zero(struct run *r)
{
	bool keep = random_once_in(&r->random, 2);
	uint64_t offset, size;

	model_range(&r->random, r->scale, &offset, &size);
	note(r, keep ? "zero, keeping the size," : "zero", offset, size);
	call(r, "fallocate",
	     fallocate(r->fd, FALLOC_FL_ZERO_RANGE | (keep ? FALLOC_FL_KEEP_SIZE : 0),
		       (off_t)offset, (off_t)size));
	model_zero(r->model, offset, util_min(offset + size, r->model->size));
	if (!keep && offset + size > r->model->size)
		model_resize(r->model, offset + size);
}

static void do_copy(struct run *r)
{
	uint64_t from, to, size, other;
	off_t from_at, to_at;
	ssize_t n;

	model_range(&r->random, random_once_in(&r->random, 4) ? SCALE_CHUNK : r->scale, &from, &size);
	model_range(&r->random, r->scale, &to, &other);
	size = util_min(size, other);
	if (from + size > r->model->size || (from < to ? to - from : from - to) < size)
		return;
	note(r, from < to ? "copy forwards to" : "copy backwards to", to, size);
	from_at = (off_t)from;
	to_at = (off_t)to;
	n = copy_file_range(r->fd, &from_at, r->fd, &to_at, size, 0);
	call(r, "copy_file_range", n);
	must(r, "bytes copied", n > 0 && (uint64_t)n <= size);
	model_read(r->model, from, r->other, (size_t)n);
	model_write(r->model, to, r->other, (size_t)n);
}

/* ---- maps -------------------------------------------------------------------------- */

static void unmap(struct run *r)
{
	if (r->map)
		munmap(r->map, r->map_size);
	r->map = NULL;
}

/* A map of what the file has of the range, or NULL; it may be there from before. */
static uint8_t *mapped(struct run *r, uint64_t *offset, uint64_t *size)
{
	uint64_t start;

	if (*offset >= r->model->size)
		return NULL;
	*size = util_min(*size, r->model->size - *offset);
	if (r->map && *offset >= r->map_offset && *offset + *size <= r->map_offset + r->map_size)
		return r->map + (*offset - r->map_offset);
	unmap(r);
	start = *offset / EXERCISE_UNIT * EXERCISE_UNIT;
	r->map_offset = start;
	r->map_size = *offset + *size - start;
	r->map = mmap(NULL, r->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, (off_t)start);
	if (r->map == MAP_FAILED)
		failed(r, "mmap", errno);
	return r->map + (*offset - start);
}

static void do_map_write(struct run *r)
{
	uint64_t offset, size;
	uint8_t *at;

	model_range(&r->random, r->scale, &offset, &size);
	at = mapped(r, &offset, &size);
	if (!at)
		return;
	note(r, "write by map", offset, size);
	random_bytes(r, size);
	memcpy(at, r->buffer, size);
	model_write(r->model, offset, r->buffer, size);
	if (random_once_in(&r->random, 4))
		call(r, "msync", msync(r->map, r->map_size, MS_SYNC));
	if (random_once_in(&r->random, 3))
		unmap(r);
}

static void do_map_read(struct run *r)
{
	uint64_t offset, size;
	uint8_t *at;

	model_range(&r->random, r->scale, &offset, &size);
	at = mapped(r, &offset, &size);
	if (!at)
		return;
	note(r, "read by map", offset, size);
	must(r, "bytes mapped", model_equals(r->model, offset, at, size));
}

/* ---- the whole file ---------------------------------------------------------------- */

static void open_file(struct run *r)
{
	r->fd = open(r->path, O_RDWR | O_CREAT | (random_once_in(&r->random, 10) ? O_SYNC : 0), 0644);
	call(r, "open", r->fd);
	r->appending = open(r->path, O_WRONLY | O_APPEND);
	call(r, "open for appending", r->appending);
}

static void do_reopen(struct run *r)
{
	note(r, "reopen", 0, 0);
	unmap(r);
	call(r, "close", close(r->fd));
	call(r, "close", close(r->appending));
	open_file(r);
}

static void do_sync(struct run *r)
{
	note(r, "sync", 0, 0);
	call(r, "fsync", random_once_in(&r->random, 2) ? fsync(r->fd) : fdatasync(r->fd));
	/* What the kernel has cached of it is read anew from now on. */
	if (random_once_in(&r->random, 2))
		posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void do_stat(struct run *r)
{
	struct stat st;

	note(r, "stat", 0, 0);
	call(r, "fstat", fstat(r->fd, &st));
	must(r, "size of an open file", (uint64_t)st.st_size == r->model->size);
	call(r, "stat", stat(r->path, &st));
	must(r, "size of the file", (uint64_t)st.st_size == r->model->size);
}

/* All units between: none has data in a hole, and none that is data was never written. */
static void check_extent(struct run *r, uint64_t from, uint64_t to, bool data)
{
	uint64_t u = from % EXERCISE_UNIT ? from / EXERCISE_UNIT * EXERCISE_UNIT :
					    model_next_unit(from ? from - 1 : UINT64_MAX);

	for (; from < to && u < to; u = model_next_unit(u)) {
		bool wrong = data ? r->model->body && !r->dense && !model_unit_is_written(r->model, u) :
				    model_unit_has_data(r->model, u);

		if (wrong)
			note(r, data ? "data where a hole is:" : "a hole where data is:", u, to - u);
		must(r, data ? "data where a hole is" : "a hole where data is", !wrong);
	}
}

static void do_seek(struct run *r)
{
	uint64_t size = r->model->size, at = 0;
	off_t data, hole;

	note(r, "seek", 0, 0);
	if (random_once_in(&r->random, 2))
		at = random_below(&r->random, size + 1);
	while (at < size) {
		data = lseek(r->fd, (off_t)at, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			failed(r, "SEEK_DATA", errno);
		check_extent(r, at, data < 0 ? size : (uint64_t)data, false);
		if (data < 0)
			break;
		hole = lseek(r->fd, data, SEEK_HOLE);
		call(r, "SEEK_HOLE", hole);
		must(r, "SEEK_HOLE moves on, within the file", hole > data && (uint64_t)hole <= size);
		check_extent(r, (uint64_t)data, (uint64_t)hole, true);
		at = (uint64_t)hole;
	}
	must(r, "SEEK_DATA at the end", lseek(r->fd, (off_t)size, SEEK_DATA) < 0 && errno == ENXIO);
}

static void check_all(struct run *r)
{
	note(r, "check all", 0, 0);
	do_stat(r);
	for (uint64_t at = 0; at < EXERCISE_LOW_SIZE; at += EXERCISE_LARGEST)
		read_range(r, at, EXERCISE_LARGEST);
	for (uint64_t at = EXERCISE_HIGH_START; at < EXERCISE_HIGH_START + EXERCISE_HIGH_SIZE;
	     at += EXERCISE_LARGEST)
		read_range(r, at, EXERCISE_LARGEST);
	do_seek(r);
}

static void do_scale(struct run *r)
{
	r->scale = (enum exercise_scale)random_below(&r->random, SCALES);
	/* A small file is made by emptying it: content that once had a body keeps it. */
	if (r->scale == SCALE_INLINE || random_once_in(&r->random, 3)) {
		note(r, "empty", 0, 0);
		call(r, "ftruncate", ftruncate(r->fd, 0));
		model_resize(r->model, 0);
	}
}

/* ---- the run ----------------------------------------------------------------------- */

static void operate(struct run *r)
{
	static void (*const operations[])(struct run *) = {
		do_write,     do_write,	    do_write,	 do_write,  do_append, do_read, do_read,
		do_read,      do_truncate,  do_allocate, do_punch,  do_punch,  do_zero, do_copy,
		do_map_write, do_map_write, do_map_read, do_reopen, do_sync,   do_stat, do_seek,
	};
	size_t which = random_below(&r->random, ARRAY_SIZE(operations));

	r->log[r->step % LOG][0] = 0;
	if (random_once_in(&r->random, 60))
		do_scale(r);
	else
		operations[which](r);
}

static void load_state(struct run *r, const char *state)
{
	_cleanup_close_ int fd = open(state, O_RDONLY);

	if (fd >= 0 && read(fd, r->model, sizeof(*r->model)) != (ssize_t)sizeof(*r->model))
		failed(r, "the state file", errno);
}

static void save_state(struct run *r, const char *state)
{
	_cleanup_close_ int fd = open(state, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, r->model, sizeof(*r->model)) != (ssize_t)sizeof(*r->model))
		failed(r, "the state file", errno);
}

int main(int argc, char **argv)
{
	struct run r = { 0 };
	long operations = argc >= 5 ? atol(argv[4]) : 0;

	if (operations < 1) {
		fprintf(stderr, "usage: exercise FILE STATE SEED OPERATIONS [dense]\n");
		return 2;
	}
	r.path = argv[1];
	r.random.seed = r.random.state = strtoull(argv[3], NULL, 0);
	r.dense = argc > 5 && !strcmp(argv[5], "dense");
	r.model = calloc(1, sizeof(*r.model));
	r.buffer = malloc(EXERCISE_LARGEST + 8);
	r.other = malloc(EXERCISE_LARGEST + 8);
	load_state(&r, argv[2]);
	open_file(&r);
	check_all(&r);
	for (r.step = 1; r.step <= operations; r.step++)
		operate(&r);
	check_all(&r);
	unmap(&r);
	call(&r, "close", close(r.fd));
	call(&r, "close", close(r.appending));
	save_state(&r, argv[2]);
	free(r.model);
	free(r.buffer);
	free(r.other);
	return 0;
}
