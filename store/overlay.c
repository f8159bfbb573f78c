/*
 * overlay.c - one generation: its arena and its items. Bodies: overlay-body.c.
 */
#include "store/overlay.h"

#include <assert.h>

#include "store/overlay-internal.h"
#include "store/seal.h"
#include "store/util.h"

#define BLOCK_SIZE (256 * 1024)
#define ALIGN 16

struct overlay_block {
	struct overlay_block *next;
	size_t size;
	size_t used;
	uint8_t bytes[] __attribute__((aligned(ALIGN)));
};

int overlay_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	int order = memcmp(a, b, util_min(a_size, b_size));

	if (order)
		return order;
	return a_size < b_size ? -1 : a_size > b_size;
}

static int overlay_item_compare(struct overlay_item *a, struct overlay_item *b)
{
	return overlay_compare(a->key, a->key_size, b->key, b->key_size);
}

RB_GENERATE(overlay_items, overlay_item, by_key, overlay_item_compare)

struct overlay *overlay_new(void)
{
	struct overlay *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	RB_INIT(&o->items);
	RB_INIT(&o->chunks);
	RB_INIT(&o->bodies);
	seal_random(&o->seed, sizeof(o->seed));
	return o;
}

void overlay_free(struct overlay *o)
{
	if (!o)
		return;
	while (o->blocks) {
		struct overlay_block *next = o->blocks->next;

		free(o->blocks);
		o->blocks = next;
	}
	free(o);
}

int overlay_reserve(struct overlay *o, size_t size)
{
	struct overlay_block *block = o->blocks;
	size_t capacity = util_max(size, (size_t)BLOCK_SIZE);

	if (block && block->size - block->used >= size)
		return 0;
	block = malloc(sizeof(*block) + capacity);
	if (!block)
		return -ENOMEM;
	block->size = capacity;
	block->used = 0;
	block->next = o->blocks;
	o->blocks = block;
	o->bytes += sizeof(*block) + capacity;
	return 0;
}

/* Within what overlay_reserve made sure of. */
void *overlay_allocate(struct overlay *o, size_t size)
{
	struct overlay_block *block = o->blocks;
	void *memory;

	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	assert(block && block->size - block->used >= size);
	memory = block->bytes + block->used;
	block->used += size;
	return memory;
}

static uint64_t hash_step(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint32_t hash_key(const struct overlay *o, const uint8_t *key, size_t key_size)
{
	uint64_t hash = hash_step(o->seed, key_size);
	uint64_t word;

	for (; key_size >= sizeof(word); key += sizeof(word), key_size -= sizeof(word)) {
		memcpy(&word, key, sizeof(word));
		hash = hash_step(hash, word);
	}
	word = 0;
	memcpy(&word, key, key_size);
	return (uint32_t)hash_step(hash, word);
}

static struct overlay_item *find_hashed(struct overlay *o, const uint8_t *key, size_t key_size,
					uint32_t hash)
{
	struct overlay_item *item = o->hashed[hash % OVERLAY_BUCKETS];

	while (item && (item->hash != hash || overlay_compare(key, key_size, item->key, item->key_size)))
		item = item->next_hashed;
	return item;
}

struct overlay_item *overlay_find(struct overlay *o, const uint8_t *key, size_t key_size)
{
	return find_hashed(o, key, key_size, hash_key(o, key, key_size));
}

struct overlay_item *overlay_seek(struct overlay *o, const uint8_t *key, size_t key_size,
				  bool inclusive, bool reverse)
{
	struct overlay_item *item = RB_ROOT(&o->items);
	struct overlay_item *best = NULL;

	while (item) {
		int order = overlay_compare(key, key_size, item->key, item->key_size);

		if (!order && inclusive)
			return item;
		if (reverse ? order > 0 : order < 0)
			best = item;
		if (order < 0 || (!order && reverse))
			item = RB_LEFT(item, by_key);
		else
			item = RB_RIGHT(item, by_key);
	}
	return best;
}

struct overlay_item *overlay_step(struct overlay_item *item, bool reverse)
{
	return reverse ? RB_PREV(overlay_items, NULL, item) : RB_NEXT(overlay_items, NULL, item);
}

struct overlay_item *overlay_first(struct overlay_item *upper, struct overlay_item *lower, bool reverse)
{
	int order;

	if (!upper || !lower)
		return upper ? upper : lower;
	order = overlay_compare(upper->key, upper->key_size, lower->key, lower->key_size);
	if (order == 0)
		return upper;
	return (order < 0) == !reverse ? upper : lower;
}

static struct overlay_item *item_make(struct overlay *o, const uint8_t *key, size_t key_size,
				      size_t partition_size)
{
	uint32_t hash = hash_key(o, key, key_size);
	struct overlay_item *item = find_hashed(o, key, key_size, hash);

	if (item)
		return item;
	item = overlay_allocate(o, sizeof(*item) + key_size);
	*item = (struct overlay_item){
		.key_size = (uint16_t)key_size,
		.partition_size = (uint16_t)partition_size,
		.hash = hash,
		.next_hashed = o->hashed[hash % OVERLAY_BUCKETS],
	};
	memcpy(item->key, key, key_size);
	o->hashed[hash % OVERLAY_BUCKETS] = item;
	RB_INSERT(overlay_items, &o->items, item);
	o->count++;
	return item;
}

void overlay_put(struct overlay *o, const uint8_t *key, size_t key_size, size_t partition_size,
		 uint64_t version, const uint8_t *attrs, size_t attrs_size, const uint8_t *content,
		 size_t content_size)
{
	struct overlay_item *item = item_make(o, key, key_size, partition_size);
	size_t size = attrs_size + content_size;

	if (size > item->capacity) {
		item->value = overlay_allocate(o, size);
		item->capacity = (uint32_t)size;
	}
	if (attrs_size)
		memcpy(item->value, attrs, attrs_size);
	if (content_size)
		memcpy(item->value + attrs_size, content, content_size);
	item->attrs_size = (uint32_t)attrs_size;
	item->content_size = (uint32_t)content_size;
	item->version = version;
	item->deleted = false;
}

void overlay_delete(struct overlay *o, const uint8_t *key, size_t key_size, size_t partition_size,
		    uint64_t version)
{
	struct overlay_item *item = item_make(o, key, key_size, partition_size);

	item->attrs_size = item->content_size = 0;
	item->version = version;
	item->deleted = true;
}
