/*
 * journal-replay.c - reading: where the log ends, and what it says.
 *
 * The rule: records count while seal, number and chain hold. D is the highest
 * durable_seq that any record tells of which verifies, wherever it stands. The
 * first record that does not verify is damage if its number is at or below D;
 * above D the log ends there, whatever follows, since pages that were not
 * synced reach the disk in any order.
 */
#include "store/journal-internal.h"
#include "store/seal.h"

#define LOAD_STEP (1 << 20)

static int read_header(struct journal *j, unsigned file, uint64_t offset, struct journal_use *ret_use)
{
	uint8_t block[16 + SEAL_OVERHEAD + JOURNAL_HEADER_SIZE];
	uint8_t ad[JOURNAL_HEADER_AD_SIZE];
	uint8_t plain[JOURNAL_HEADER_SIZE];

	ssize_t n = pread(j->files[file].fd, block, sizeof(block), (off_t)offset);

	/* Once more: what can be read later must not be taken for a header that never was. */
	if (n < 0)
		n = pread(j->files[file].fd, block, sizeof(block), (off_t)offset);
	if (n != (ssize_t)sizeof(block))
		return n < 0 ? -errno : -EBADMSG;
	journal_header_ad(j, file, ad);
	if (memcmp(block, JOURNAL_MAGIC, 8) || util_get_le32(block + 8) != 1 ||
	    util_get_le32(block + 12) ||
	    seal_unbox(journal_key(j, JOURNAL_CHANGES), ad, sizeof(ad), block + 16,
		       sizeof(block) - 16, plain) < 0)
		return -EBADMSG;
	memcpy(ret_use->id, plain, JOURNAL_ID_SIZE);
	memcpy(ret_use->previous, plain + JOURNAL_ID_SIZE, JOURNAL_ID_SIZE);
	ret_use->number = util_get_le64(plain + 2 * JOURNAL_ID_SIZE);
	ret_use->base_seq = util_get_le64(plain + 2 * JOURNAL_ID_SIZE + 8);
	return 0;
}

/* Makes sure that the first `size` bytes of the file are in memory. 0, -EBADMSG (it is not so long), -ENOMEM, -EIO. */
static int load(struct journal *j, struct journal_file *f, size_t size)
{
	size_t want;
	uint8_t *bytes;

	if (size <= f->loaded)
		return 0;
	if (size > j->size)
		return -EBADMSG;
	want = util_max(size, 2 * f->loaded) + LOAD_STEP;
	want = util_min(want, (size_t)j->size);
	bytes = realloc(f->bytes, want);
	if (!bytes)
		return -ENOMEM;
	f->bytes = bytes;
	while (f->loaded < want) {
		ssize_t n = pread(f->fd, f->bytes + f->loaded, want - f->loaded, (off_t)f->loaded);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		f->loaded += (size_t)n;
	}
	return 0;
}

struct record_head {
	enum journal_kind kind;
	size_t size;
	uint64_t seq;
	uint64_t durable_seq;
	uint8_t previous[SEAL_TAG_SIZE];
};

/*
 * Looks at the record at `at` and unseals it in its place: nonce and tag stay,
 * the bytes follow at + JOURNAL_HEAD_SIZE + SEAL_NONCE_SIZE. 0, -EBADMSG (it
 * does not verify), -ENOMEM, -EIO.
 */
static int open_record(struct journal *j, struct journal_file *f, size_t at, struct buffer *plain,
		       struct record_head *ret_head)
{
	uint8_t ad[JOURNAL_AD_SIZE];
	const uint8_t *bytes;
	size_t size;
	int r = load(j, f, at + JOURNAL_HEAD_SIZE);

	if (r < 0)
		return r;
	bytes = f->bytes + at;
	size = util_get_le32(bytes + 4);
	if (util_get_le32(bytes) != JOURNAL_RECORD_MAGIC || size > j->size)
		return -EBADMSG;
	r = load(j, f, at + journal_record_size(size));
	if (r < 0)
		return r;
	bytes = f->bytes + at;
	ret_head->kind = (enum journal_kind)util_get_le32(bytes + 8);
	ret_head->size = size;
	ret_head->seq = util_get_le64(bytes + 16);
	ret_head->durable_seq = util_get_le64(bytes + 24);
	memcpy(ret_head->previous, bytes + 32, SEAL_TAG_SIZE);
	journal_record_ad(j, &f->use, bytes, ad);
	buffer_reset(plain);
	if (!buffer_append(plain, NULL, util_max(size, (size_t)1)))
		return -ENOMEM;
	return seal_unbox(journal_key(j, ret_head->kind), ad, sizeof(ad), bytes + JOURNAL_HEAD_SIZE,
			  size + SEAL_OVERHEAD, plain->bytes);
}

static void note_anchor(const struct buffer *plain, size_t size, struct journal_state *state)
{
	struct journal_anchor anchor;

	if (size != JOURNAL_ANCHOR_SIZE)
		return;
	anchor.applied_seq = util_get_le64(plain->bytes);
	anchor.commit = util_get_le64(plain->bytes + 8);
	memcpy(anchor.meta_hash, plain->bytes + 16, sizeof(anchor.meta_hash));
	anchor.clean = plain->bytes[48] != 0;
	if (state->anchored && anchor.commit < state->anchor.commit)
		return;
	state->anchored = true;
	state->anchor = anchor;
	state->durable_seq = util_max(state->durable_seq, anchor.applied_seq);
}

/* Whatever still verifies after the log's end, for the durable_seq and anchors it tells of. */
static int examine_rest(struct journal *j, struct journal_file *f, size_t at, struct buffer *plain,
			struct journal_state *state)
{
	struct record_head head;
	int r = load(j, f, j->size);

	if (r < 0)
		return r;
	for (; at + JOURNAL_HEAD_SIZE <= j->size; at += JOURNAL_ALIGN) {
		if (util_get_le32(f->bytes + at) != JOURNAL_RECORD_MAGIC)
			continue;
		r = open_record(j, f, at, plain, &head);
		if (r == -EBADMSG)
			continue;
		if (r < 0)
			return r;
		state->durable_seq = util_max(state->durable_seq, head.durable_seq);
		if (head.kind == JOURNAL_ANCHOR)
			note_anchor(plain, head.size, state);
	}
	return 0;
}

/* Whether a record that verifies is the one that comes next. */
static bool follows(const struct record_head *head, const uint8_t chain[SEAL_TAG_SIZE], uint64_t seq)
{
	return !memcmp(head->previous, chain, SEAL_TAG_SIZE) &&
	       head->seq == seq + (head->kind == JOURNAL_CHANGES);
}

/* Follows the records of one file; sets where they end and moves state->end_seq on. */
static int examine_file(struct journal *j, struct journal_file *f, struct journal_state *state)
{
	_cleanup_(buffer_release) struct buffer plain = { 0 };
	uint8_t chain[SEAL_TAG_SIZE];
	struct record_head head;
	size_t at = JOURNAL_START;
	int r;

	memcpy(chain, f->use.id, sizeof(chain));
	state->clean = false;
	for (;;) {
		r = open_record(j, f, at, &plain, &head);
		if (r < 0 && r != -EBADMSG)
			return r;
		if (r < 0 || !follows(&head, chain, state->end_seq))
			break;
		state->end_seq = head.seq;
		state->durable_seq = util_max(state->durable_seq, head.durable_seq);
		if (head.kind == JOURNAL_ANCHOR)
			note_anchor(&plain, head.size, state);
		state->clean = head.kind == JOURNAL_ANCHOR && state->anchor.clean;
		memcpy(chain, f->bytes + at + JOURNAL_HEAD_SIZE + SEAL_NONCE_SIZE + head.size,
		       SEAL_TAG_SIZE);
		at += journal_record_size(head.size);
	}
	f->from = JOURNAL_START;
	f->to = at;
	return state->clean ? 0 : examine_rest(j, f, at, &plain, state);
}

/* 0, or why neither of the two copies can be read from the disk. */
static int examine_headers(struct journal *j)
{
	for (unsigned i = 0; i < JOURNAL_FILES; i++) {
		struct journal_file *f = &j->files[i];

		int first = read_header(j, i, 0, &f->use), r = first;

		if (r < 0)
			r = read_header(j, i, JOURNAL_BLOCK, &f->use);
		f->valid = r == 0;
		f->from = f->to = JOURNAL_START;
		/* A use that is there but cannot be read is none that never began. */
		if (r < 0 && (r != -EBADMSG || first != -EBADMSG))
			return r != -EBADMSG ? r : first;
	}
	return 0;
}

/* Puts the older of the valid files first. Returns how many there are. */
static unsigned order_files(struct journal *j, struct journal_file *ret_files[JOURNAL_FILES])
{
	unsigned count = 0;

	for (unsigned i = 0; i < JOURNAL_FILES; i++)
		if (j->files[i].valid)
			ret_files[count++] = &j->files[i];
	if (count == 2 && ret_files[0]->use.number > ret_files[1]->use.number) {
		struct journal_file *older = ret_files[1];

		ret_files[1] = ret_files[0];
		ret_files[0] = older;
	}
	return count;
}

/* The older file, whose records the index already holds: only for the anchors in it. */
static int examine_anchors(struct journal *j, struct journal_file *f, struct journal_state *state)
{
	_cleanup_(buffer_release) struct buffer plain = { 0 };
	uint64_t durable_seq = state->durable_seq;
	int r = examine_rest(j, f, JOURNAL_START, &plain, state);

	state->durable_seq = util_max(durable_seq, state->anchored ? state->anchor.applied_seq : 0);
	return r;
}

static int examine_two(struct journal *j, struct journal_file *older, struct journal_file *newer,
		       uint64_t applied_seq, struct journal_state *state)
{
	int r;

	if (memcmp(newer->use.previous, older->use.id, JOURNAL_ID_SIZE)) {
		state->damage = "the two journals do not belong together";
		return 0;
	}
	if (applied_seq >= newer->use.base_seq) {
		state->end_seq = newer->use.base_seq;
		r = examine_file(j, newer, state);
		if (r == 0 && !state->anchored)
			r = examine_anchors(j, older, state);
		return r;
	}
	state->end_seq = older->use.base_seq;
	r = examine_file(j, older, state);
	if (r < 0)
		return r;
	if (state->end_seq == newer->use.base_seq)
		return examine_file(j, newer, state);
	/* The older one was cut: the newer one never counted, unless it says that it was durable. */
	_cleanup_(buffer_release) struct buffer plain = { 0 };
	return examine_rest(j, newer, JOURNAL_START, &plain, state);
}

int journal_examine(struct journal *j, uint64_t applied_seq, struct journal_state *ret_state)
{
	struct journal_state state = { 0 };
	struct journal_file *files[JOURNAL_FILES];
	unsigned count;
	int r = examine_headers(j);

	if (r < 0)
		return r;
	count = order_files(j, files);
	if (count == 0) {
		state.damage = "no journal has a readable header";
	} else if (applied_seq < files[0]->use.base_seq) {
		state.damage = "the database is older than its journal";
	} else if (count == 1) {
		state.end_seq = files[0]->use.base_seq;
		r = examine_file(j, files[0], &state);
	} else {
		r = examine_two(j, files[0], files[1], applied_seq, &state);
	}
	if (r < 0)
		return r;
	if (!state.damage && state.durable_seq > state.end_seq) {
		state.damage = "a journal record that was on disk is damaged";
		state.cut = applied_seq <= state.end_seq;
	}
	if (!state.damage && applied_seq > state.end_seq)
		state.damage = "the journal is older than the database";
	if (count)
		j->current = (unsigned)(files[count - 1] - j->files);
	*ret_state = state;
	return 0;
}

static int replay_file(struct journal *j, struct journal_file *f, uint64_t applied_seq,
		       uint64_t durable_seq,
		       int (*apply)(void *data, const struct journal_record *record), void *data)
{
	_cleanup_(buffer_release) struct buffer plain = { 0 };
	struct record_head head;

	for (size_t at = f->from; at < f->to; at += journal_record_size(head.size)) {
		int r = open_record(j, f, at, &plain, &head);

		if (r < 0)
			return r;
		if (head.kind != JOURNAL_CHANGES || head.seq <= applied_seq)
			continue;
		r = apply(data, &(struct journal_record){
					.seq = head.seq,
					.bytes = plain.bytes,
					.size = head.size,
					.durable = head.seq <= durable_seq,
				});
		if (r != 0)
			return r;
	}
	return 0;
}

int journal_replay(struct journal *j, uint64_t applied_seq, uint64_t durable_seq,
		   int (*apply)(void *data, const struct journal_record *record), void *data)
{
	struct journal_file *files[JOURNAL_FILES];
	unsigned count = order_files(j, files);
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++)
		r = replay_file(j, files[i], applied_seq, durable_seq, apply, data);
	return r < 0 ? r : 0;
}

void journal_replayed(struct journal *j)
{
	for (unsigned i = 0; i < JOURNAL_FILES; i++) {
		free(j->files[i].bytes);
		j->files[i].bytes = NULL;
		j->files[i].loaded = 0;
	}
}
