/*
 * fuzz-journal.c - two journal files written, torn and read again. The input is
 * a list of things that happen to them: records, marks of durability, turns to
 * the other file, bits that flip, sectors that never reached the disk.
 *
 * Whatever happens: what replay hands out are the records that were appended,
 * in order, without a gap, with their bytes; none that is known to be durable is
 * left out without a word; and an undamaged log is read to its end.
 */
#include <fcntl.h>
#include <string.h>

#include "store/journal.h"
#include "store/seal.h"
#include "tests/fuzz/fuzz.h"

#define JOURNAL_SIZE (UINT64_C(1) << 20)
#define RECORD_MAX 1000
#define SECTOR 512

static struct {
	struct keyring keys;
	char path[64];
	int dir_fd;
} disk;

static void make_disk(void)
{
	disk.keys.journal_bytes = JOURNAL_SIZE;
	seal_random(disk.keys.keys, sizeof(disk.keys.keys));
	strcpy(disk.path, access("/dev/shm", W_OK) == 0 ? "/dev/shm/ddbfs-fuzz-XXXXXX" :
							  "/tmp/ddbfs-fuzz-XXXXXX");
	FUZZ_EXPECT(mkdtemp(disk.path));
	disk.dir_fd = open(disk.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_EXPECT(disk.dir_fd >= 0 && journal_create(disk.dir_fd, &disk.keys) == 0);
}

static void remove_disk(void)
{
	unlinkat(disk.dir_fd, "journal.0", 0);
	unlinkat(disk.dir_fd, "journal.1", 0);
	rmdir(disk.path);
}

struct log {
	struct journal *journal;
	uint64_t seq; /* of the last record */
	uint64_t bases[2]; /* of the older use, of the present one */
	uint64_t durable; /* marked so */
	uint8_t files_hurt; /* bit n: something was done to file n */
};

/* What record `seq` says. */
static size_t fill_record(uint64_t seq, uint8_t bytes[RECORD_MAX])
{
	size_t size = (seq * 37) % RECORD_MAX;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seq + i);
	return size;
}

static void append(struct log *l)
{
	uint8_t bytes[RECORD_MAX];
	size_t size = fill_record(l->seq + 1, bytes);

	if (journal_room(l->journal) < journal_record_size(size))
		return;
	FUZZ_EXPECT(journal_append(l->journal, JOURNAL_CHANGES, l->seq + 1, l->durable, bytes, size) == 0);
	l->seq++;
}

static void mark(struct log *l)
{
	if (journal_room(l->journal) < journal_record_size(0))
		return;
	l->durable = l->seq;
	FUZZ_EXPECT(journal_append(l->journal, JOURNAL_MARK, l->seq, l->durable, NULL, 0) == 0);
}

static void turn(struct log *l)
{
	FUZZ_EXPECT(journal_turn(l->journal, l->seq) == 0);
	l->bases[0] = l->bases[1];
	l->bases[1] = l->seq;
	l->files_hurt &= (uint8_t) ~(1 << journal_current(l->journal)); /* its header is new; what follows is old */
}

static void hurt(struct log *l, unsigned file, uint64_t offset, bool sector)
{
	static const uint8_t zeros[SECTOR];
	int fd = openat(disk.dir_fd, file ? "journal.1" : "journal.0", O_RDWR | O_CLOEXEC);
	uint8_t byte;

	FUZZ_EXPECT(fd >= 0);
	if (sector) {
		FUZZ_EXPECT(pwrite(fd, zeros, SECTOR, (off_t)(offset / SECTOR * SECTOR)) == SECTOR);
	} else {
		FUZZ_EXPECT(pread(fd, &byte, 1, (off_t)offset) == 1);
		byte ^= (uint8_t)(1 << offset % 8);
		FUZZ_EXPECT(pwrite(fd, &byte, 1, (off_t)offset) == 1);
	}
	close(fd);
	l->files_hurt |= (uint8_t)(1 << file);
}

/* ---- reading it again ------------------------------------------------------- */

struct replayed {
	uint64_t last;
};

static int check_record(void *data, const struct journal_record *record)
{
	uint8_t bytes[RECORD_MAX];
	struct replayed *r = data;
	size_t size = fill_record(record->seq, bytes);

	FUZZ_EXPECT(record->seq == r->last + 1);
	FUZZ_EXPECT(record->size == size && memcmp(record->bytes, bytes, size) == 0);
	r->last = record->seq;
	return 0;
}

static void read_again(const struct log *l)
{
	struct replayed r = { .last = l->bases[0] };
	struct journal_state state;
	struct journal *j;

	FUZZ_EXPECT(journal_open(disk.dir_fd, &disk.keys, true, &j) == 0);
	FUZZ_EXPECT(journal_examine(j, l->bases[0], &state) == 0);
	if (!state.damage) {
		FUZZ_EXPECT(state.end_seq <= l->seq);
		FUZZ_EXPECT(state.durable_seq <= l->seq);
		FUZZ_EXPECT(state.end_seq >= state.durable_seq);
		FUZZ_EXPECT(journal_replay(j, l->bases[0], state.durable_seq, check_record, &r) == 0);
		FUZZ_EXPECT(r.last == state.end_seq);
	}
	/* A mark in a use before these two is told of by records that came after it, if any did. */
	if (!l->files_hurt)
		FUZZ_EXPECT(!state.damage && state.end_seq == l->seq && state.durable_seq <= l->durable);
	journal_replayed(j);
	journal_close(j);
}

static void run(struct log *l, const uint8_t *input, size_t size)
{
	for (size_t i = 0; i + 3 < size; i += 4) {
		uint64_t offset = ((uint64_t)input[i + 1] << 12 | (uint64_t)input[i + 2] << 4 |
				   input[i + 3] >> 4) %
				  JOURNAL_SIZE;

		switch (input[i] % 8) {
		case 5:
			mark(l);
			break;
		case 6:
			turn(l);
			break;
		case 7:
			hurt(l, input[i + 3] & 1, input[i + 3] & 2 ? offset : offset % 16384,
			     input[i + 3] & 4);
			break;
		default:
			append(l);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct log l = { .seq = 0 };

	if (!disk.dir_fd) {
		FUZZ_EXPECT(seal_init() == 0);
		make_disk();
		atexit(remove_disk);
	}
	FUZZ_EXPECT(journal_open(disk.dir_fd, &disk.keys, false, &l.journal) == 0);
	/* A log of its own, whatever the last input left. */
	turn(&l);
	turn(&l);
	run(&l, input, util_min(size, (size_t)4096));
	read_again(&l);
	journal_close(l.journal);
	return 0;
}
