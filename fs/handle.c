/*
 * handle.c - keys of the entries an open directory has returned, in blocks.
 *
 * A block is a run of entries that follow one another in the directory. It
 * begins with its base, the key its first entry came after, so that a block
 * whose keys were thinned out can still say from where to list again.
 */
#include <pthread.h>

#include "fs/handle.h"
#include "store/util.h"

struct block {
	uint64_t first; /* cookie of its first entry */
	struct buffer base; /* one key, or empty: the start of the directory */
	struct buffer keys; /* size, partition size, bytes of each; empty when thinned */
	uint32_t *offsets; /* of HANDLE_BLOCK keys; NULL when thinned */
	uint32_t count;
};

struct handle {
	pthread_mutex_t lock;
	uint64_t node;
	struct block *blocks; /* by first cookie */
	size_t count;
	size_t capacity;
	size_t thinned; /* blocks before this one are */
	size_t exact; /* keys in the others */
	uint64_t last; /* greatest cookie given out */
	uint64_t position; /* cookie of what the next entry follows ... */
	struct buffer base; /* ... and its key, or empty: the start */
	bool listed; /* position + 1, if there is such a cookie, was what followed it */
	bool damaged;
};

int handle_new(uint64_t node, struct handle **ret_handle)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	h->node = node;
	*ret_handle = h;
	return 0;
}

static void block_thin(struct block *b)
{
	buffer_release(&b->keys);
	free(b->offsets);
	b->keys = (struct buffer){ 0 };
	b->offsets = NULL;
}

void handle_rewind(struct handle *h)
{
	for (size_t i = 0; i < h->count; i++) {
		block_thin(&h->blocks[i]);
		buffer_release(&h->blocks[i].base);
	}
	h->count = h->thinned = h->exact = 0;
	buffer_reset(&h->base);
	h->position = h->last;
	h->listed = false;
}

void handle_free(struct handle *h)
{
	if (!h)
		return;
	handle_rewind(h);
	free(h->blocks);
	buffer_release(&h->base);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

uint64_t handle_node(const struct handle *h)
{
	return h->node;
}

void handle_lock(struct handle *h)
{
	pthread_mutex_lock(&h->lock);
}

void handle_unlock(struct handle *h)
{
	pthread_mutex_unlock(&h->lock);
}

static void put_key(struct buffer *b, const struct key *key)
{
	buffer_append_le16(b, key->size);
	buffer_append_le16(b, key->partition_size);
	buffer_append(b, key->bytes, key->size);
}

static void get_key(const struct buffer *b, size_t offset, struct key *ret_key)
{
	const uint8_t *p = b->bytes + offset;

	ret_key->size = util_get_le16(p);
	ret_key->partition_size = util_get_le16(p + 2);
	memcpy(ret_key->bytes, p + 4, ret_key->size);
}

/* The block a cookie stands in. There is one, and cookie is not below its first. */
static const struct block *block_of(const struct handle *h, uint64_t cookie)
{
	size_t low = 0;
	size_t high = h->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (h->blocks[middle].first <= cookie)
			low = middle;
		else
			high = middle;
	}
	return &h->blocks[low];
}

/* The key of an entry that was not thinned out. */
static bool find_key(const struct handle *h, uint64_t cookie, struct key *ret_key)
{
	if (h->count == 0 || cookie < h->blocks[0].first || cookie > h->last)
		return false;
	const struct block *b = block_of(h, cookie);
	if (b->offsets)
		get_key(&b->keys, b->offsets[cookie - b->first], ret_key);
	return b->offsets != NULL;
}

/* To the start: what came first is in the first block, since every listing begins there. */
static void seek_start(struct handle *h)
{
	buffer_reset(&h->base);
	h->listed = h->count > 0;
	h->position = h->count > 0 ? h->blocks[0].first - 1 : h->last;
}

bool handle_seek(struct handle *h, uint64_t cookie, struct key *ret_after)
{
	if (h->count == 0 || cookie < h->blocks[0].first) {
		seek_start(h);
		return false;
	}
	h->position = util_min(cookie, h->last);
	h->listed = find_key(h, h->position, ret_after);
	bool found = h->listed;
	if (!found) {
		const struct block *b = block_of(h, h->position);

		found = b->base.size > 0;
		if (found)
			get_key(&b->base, 0, ret_after);
	}
	buffer_reset(&h->base);
	if (found)
		put_key(&h->base, ret_after);
	return found;
}

static void thin_old(struct handle *h)
{
	while (h->exact > HANDLE_EXACT && h->thinned + 1 < h->count) {
		struct block *b = &h->blocks[h->thinned++];

		h->exact -= b->count;
		block_thin(b);
	}
}

/* A block for what follows the position. */
static struct block *add_block(struct handle *h)
{
	if (h->count == h->capacity) {
		size_t capacity = h->capacity ? h->capacity * 2 : 16;
		struct block *grown = realloc(h->blocks, capacity * sizeof(*grown));

		if (!grown)
			return NULL;
		h->blocks = grown;
		h->capacity = capacity;
	}
	struct block *b = &h->blocks[h->count];
	*b = (struct block){ .first = h->last + 1,
			     .offsets = malloc(HANDLE_BLOCK * sizeof(*b->offsets)) };
	buffer_append(&b->base, h->base.bytes, h->base.size);
	if (!b->offsets || b->base.failed || h->base.failed) {
		block_thin(b);
		buffer_release(&b->base);
		return NULL;
	}
	h->count++;
	thin_old(h);
	return &h->blocks[h->count - 1];
}

static bool append(struct handle *h, const struct key *key)
{
	bool at_end = h->listed && h->position == h->last;
	struct block *b = h->count && at_end ? &h->blocks[h->count - 1] : NULL;

	if (!b || b->count == HANDLE_BLOCK)
		b = add_block(h);
	if (!b)
		return false;
	size_t offset = b->keys.size;
	put_key(&b->keys, key);
	if (b->keys.failed) {
		b->keys.failed = false;
		b->keys.size = offset;
		return false;
	}
	b->offsets[b->count++] = (uint32_t)offset;
	h->exact++;
	h->position = ++h->last;
	h->listed = true;
	return true;
}

uint64_t handle_add(struct handle *h, const struct key *key)
{
	struct key known;

	/* Listed before, and nothing came in between: it has a cookie. */
	if (h->listed && find_key(h, h->position + 1, &known) && key_compare(&known, key) == 0)
		h->position++;
	else if (!append(h, key))
		return 0;
	buffer_reset(&h->base);
	put_key(&h->base, key);
	return h->position;
}

void handle_set_damaged(struct handle *h)
{
	h->damaged = true;
}

bool handle_take_damaged(struct handle *h)
{
	bool damaged = h->damaged;

	h->damaged = false;
	return damaged;
}
