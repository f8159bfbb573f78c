/*
 * journal.c - writing: headers, records, marks, anchors.
 */
#include "store/journal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "store/journal-internal.h"
#include "store/seal.h"

static const char *const journal_names[JOURNAL_FILES] = { "journal.0", "journal.1" };

const struct seal_key *journal_key(const struct journal *j, enum journal_kind kind)
{
	return &j->keys->keys[kind == JOURNAL_ANCHOR ? SEAL_ANCHOR : SEAL_JOURNAL];
}

void journal_record_ad(const struct journal *j, const struct journal_use *use,
		       const uint8_t head[JOURNAL_HEAD_SIZE], uint8_t ret_ad[JOURNAL_AD_SIZE])
{
	memcpy(ret_ad, j->keys->store_id, KEYRING_STORE_ID_SIZE);
	memcpy(ret_ad + KEYRING_STORE_ID_SIZE, use->id, JOURNAL_ID_SIZE);
	memcpy(ret_ad + KEYRING_STORE_ID_SIZE + JOURNAL_ID_SIZE, head, JOURNAL_HEAD_SIZE);
}

void journal_header_ad(const struct journal *j, unsigned file, uint8_t ret_ad[JOURNAL_HEADER_AD_SIZE])
{
	memcpy(ret_ad, j->keys->store_id, KEYRING_STORE_ID_SIZE);
	memcpy(ret_ad + KEYRING_STORE_ID_SIZE, JOURNAL_MAGIC, 8);
	util_put_le32(ret_ad + KEYRING_STORE_ID_SIZE + 8, 1);
	util_put_le32(ret_ad + KEYRING_STORE_ID_SIZE + 12, file);
}

/* Both copies of the header in one write. */
static int write_header(struct journal *j, unsigned file, const struct journal_use *use)
{
	uint8_t plain[JOURNAL_HEADER_SIZE];
	uint8_t ad[JOURNAL_HEADER_AD_SIZE];
	uint8_t blocks[JOURNAL_START] = { 0 };

	memcpy(plain, use->id, JOURNAL_ID_SIZE);
	memcpy(plain + JOURNAL_ID_SIZE, use->previous, JOURNAL_ID_SIZE);
	util_put_le64(plain + 2 * JOURNAL_ID_SIZE, use->number);
	util_put_le64(plain + 2 * JOURNAL_ID_SIZE + 8, use->base_seq);
	journal_header_ad(j, file, ad);
	memcpy(blocks, JOURNAL_MAGIC, 8);
	util_put_le32(blocks + 8, 1);
	seal_box(journal_key(j, JOURNAL_CHANGES), ad, sizeof(ad), plain, sizeof(plain), blocks + 16);
	memcpy(blocks + JOURNAL_BLOCK, blocks, JOURNAL_BLOCK);
	return util_write_all(j->files[file].fd, blocks, sizeof(blocks), 0);
}

static int create_file(int dir_fd, const char *name, uint64_t size)
{
	static const uint8_t zeros[1 << 16];
	_cleanup_close_ int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	for (uint64_t at = 0; at < size; at += sizeof(zeros)) {
		int r = util_write_all(fd, zeros, util_min((uint64_t)sizeof(zeros), size - at), at);

		if (r < 0)
			return r;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int journal_create(int dir_fd, const struct keyring *keys)
{
	struct journal_use use = { .number = 1 };
	struct journal *j;
	int r;

	for (unsigned i = 0; i < JOURNAL_FILES; i++) {
		r = create_file(dir_fd, journal_names[i], keys->journal_bytes);
		if (r < 0)
			return r;
	}
	r = journal_open(dir_fd, keys, false, &j);
	if (r < 0)
		return r;
	seal_random(use.id, sizeof(use.id));
	r = write_header(j, 0, &use);
	if (r == 0)
		r = journal_sync(j, 0);
	journal_close(j);
	return r;
}

static int open_file(int dir_fd, const char *name, uint64_t size, bool read_only)
{
	struct stat st;
	int fd = openat(dir_fd, name,
			(read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? -EBADMSG : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size)
		return fd;
	close(fd);
	return -EBADMSG;
}

int journal_open(int dir_fd, const struct keyring *keys, bool read_only, struct journal **ret_journal)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->keys = keys;
	j->size = keys->journal_bytes;
	j->at = JOURNAL_START;
	for (unsigned i = 0; i < JOURNAL_FILES; i++)
		j->files[i].fd = -1;
	for (unsigned i = 0; i < JOURNAL_FILES; i++) {
		int fd = open_file(dir_fd, journal_names[i], j->size, read_only);

		if (fd < 0) {
			journal_close(j);
			return fd;
		}
		j->files[i].fd = fd;
	}
	*ret_journal = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < JOURNAL_FILES; i++) {
		free(j->files[i].bytes);
		util_close_p(&j->files[i].fd);
	}
	buffer_release(&j->scratch);
	free(j);
}

unsigned journal_current(const struct journal *j)
{
	return j->current;
}

uint64_t journal_base_seq(const struct journal *j)
{
	return j->files[j->current].use.base_seq;
}

bool journal_has_later(const struct journal *j)
{
	const struct journal_file *other = &j->files[!j->current];

	return other->valid && other->use.base_seq > journal_base_seq(j);
}

int journal_turn(struct journal *j, uint64_t base_seq)
{
	/* A current use that begins beyond never counted: it is replaced, or the log would have a gap before it for good. */
	unsigned target = base_seq < journal_base_seq(j) ? j->current : !j->current;
	struct journal_file *from = &j->files[!target];
	struct journal_file *to = &j->files[target];
	struct journal_use use = { .base_seq = base_seq, .number = j->files[j->current].use.number + 1 };
	int r;

	memcpy(use.previous, from->use.id, JOURNAL_ID_SIZE);
	seal_random(use.id, sizeof(use.id));
	r = write_header(j, target, &use);
	if (r < 0)
		return r;
	to->use = use;
	to->valid = true;
	j->current = target;
	j->at = JOURNAL_START;
	memcpy(j->chain, use.id, sizeof(j->chain));
	return 0;
}

size_t journal_record_size(size_t size)
{
	size += JOURNAL_HEAD_SIZE + SEAL_OVERHEAD;
	return (size + JOURNAL_ALIGN - 1) / JOURNAL_ALIGN * JOURNAL_ALIGN;
}

size_t journal_room(const struct journal *j)
{
	return j->size - j->at;
}

size_t journal_capacity(const struct journal *j)
{
	return j->size - JOURNAL_START;
}

static void fill_head(const struct journal *j, enum journal_kind kind, uint64_t seq,
		      uint64_t durable_seq, size_t size, uint8_t head[JOURNAL_HEAD_SIZE])
{
	util_put_le32(head, JOURNAL_RECORD_MAGIC);
	util_put_le32(head + 4, (uint32_t)size);
	util_put_le32(head + 8, kind);
	util_put_le32(head + 12, 0);
	util_put_le64(head + 16, seq);
	util_put_le64(head + 24, durable_seq);
	memcpy(head + 32, j->chain, SEAL_TAG_SIZE);
}

/* A record cut short must not stand where the next one will: its first bytes are taken away. */
static int take_back(struct journal *j, int error)
{
	static const uint8_t nothing[JOURNAL_HEAD_SIZE];
	size_t size = util_min(sizeof(nothing), (size_t)(j->size - j->at));

	return util_write_all(j->files[j->current].fd, nothing, size, j->at) < 0 ? -EROFS : error;
}

int journal_append(struct journal *j, enum journal_kind kind, uint64_t seq, uint64_t durable_seq,
		   const void *bytes, size_t size)
{
	const struct journal_use *use = &j->files[j->current].use;
	size_t record_size = journal_record_size(size);
	uint8_t ad[JOURNAL_AD_SIZE];
	uint8_t *record;
	int r;

	if (record_size > journal_room(j))
		return -EFBIG;
	buffer_reset(&j->scratch);
	record = buffer_append(&j->scratch, NULL, record_size);
	if (!record) {
		buffer_release(&j->scratch);
		j->scratch = (struct buffer){ 0 };
		return -ENOMEM;
	}
	memset(record + record_size - JOURNAL_ALIGN, 0, JOURNAL_ALIGN);
	fill_head(j, kind, seq, durable_seq, size, record);
	journal_record_ad(j, use, record, ad);
	seal_box(journal_key(j, kind), ad, sizeof(ad), bytes, size, record + JOURNAL_HEAD_SIZE);
	r = util_write_all(j->files[j->current].fd, record, record_size, j->at);
	if (r < 0)
		return take_back(j, r);
	memcpy(j->chain, record + JOURNAL_HEAD_SIZE + SEAL_NONCE_SIZE + size, SEAL_TAG_SIZE);
	j->at += record_size;
	return 0;
}

int journal_append_anchor(struct journal *j, uint64_t seq, uint64_t durable_seq,
			  const struct journal_anchor *anchor)
{
	uint8_t bytes[JOURNAL_ANCHOR_SIZE];

	util_put_le64(bytes, anchor->applied_seq);
	util_put_le64(bytes + 8, anchor->commit);
	memcpy(bytes + 16, anchor->meta_hash, sizeof(anchor->meta_hash));
	bytes[48] = anchor->clean;
	return journal_append(j, JOURNAL_ANCHOR, seq, durable_seq, bytes, sizeof(bytes));
}

int journal_sync(struct journal *j, unsigned file)
{
	struct stat st;

	if (fdatasync(j->files[file].fd) < 0 || fstat(j->files[file].fd, &st) < 0)
		return -errno;
	/* On the disk, but nobody will find it there. */
	return st.st_nlink ? 0 : -ENOENT;
}
