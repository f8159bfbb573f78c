/*
 * value.c - seals and unseals items of the index.
 */
#include "store/value.h"

#include "store/key.h"
#include "store/seal.h"

#define VALUE_FORMAT 1
#define VALUE_EPOCH 1 /* of the master key; others come with key rotation */
#define VALUE_CODEC_PLAIN 0

#define AD_MAX (KEYRING_STORE_ID_SIZE + VALUE_HEAD_SIZE + 1 + KEY_MAX)

static size_t fill_ad(const struct keyring *keys, const uint8_t *head, unsigned box,
		      const uint8_t *key, size_t key_size, uint8_t ret_ad[AD_MAX])
{
	uint8_t *p = ret_ad;

	memcpy(p, keys->store_id, KEYRING_STORE_ID_SIZE);
	p += KEYRING_STORE_ID_SIZE;
	memcpy(p, head, VALUE_HEAD_SIZE);
	p += VALUE_HEAD_SIZE;
	*p++ = (uint8_t)box;
	memcpy(p, key, key_size);
	return (size_t)(p - ret_ad) + key_size;
}

/*
 * A byte of the key in the clear head: whatever byte of the key is changed, it is
 * another one, since each step is a bijection. So a key that is damaged, which
 * hides its item, is told from a value that is, which only loses it.
 */
static uint8_t key_byte(const uint8_t *key, size_t key_size)
{
	uint8_t h = 0;

	for (size_t i = 0; i < key_size; i++)
		h = (uint8_t)((h ^ key[i]) * 0x9d);
	return h;
}

bool value_key_holds(const uint8_t *key, size_t key_size, const uint8_t *bytes)
{
	return bytes[3] == key_byte(key, key_size);
}

static size_t box_size(uint32_t plain_size)
{
	return plain_size ? plain_size + SEAL_OVERHEAD : 0;
}

void value_seal(const struct keyring *keys, const uint8_t *key, size_t key_size,
		const struct value_head *head, const uint8_t *attrs, const uint8_t *content,
		struct buffer *b)
{
	uint8_t ad[AD_MAX];
	/* The first box is there even if it is empty: every value has a seal. */
	size_t first = head->attrs_size + SEAL_OVERHEAD, second = box_size(head->content_size);
	uint8_t *p = buffer_append(b, NULL, VALUE_HEAD_SIZE + first + second);

	if (!p)
		return;
	p[0] = VALUE_FORMAT;
	p[1] = VALUE_EPOCH;
	p[2] = VALUE_CODEC_PLAIN;
	p[3] = key_byte(key, key_size);
	util_put_le64(p + 4, head->version);
	util_put_le32(p + 12, head->attrs_size);
	util_put_le32(p + 16, head->content_size);
	seal_box(&keys->keys[SEAL_ATTRS], ad, fill_ad(keys, p, 1, key, key_size, ad), attrs,
		 head->attrs_size, p + VALUE_HEAD_SIZE);
	if (second)
		seal_box(&keys->keys[SEAL_CONTENT], ad, fill_ad(keys, p, 2, key, key_size, ad),
			 content, head->content_size, p + VALUE_HEAD_SIZE + first);
}

int value_head(const uint8_t *bytes, size_t size, struct value_head *ret_head)
{
	struct value_head head;

	if (size < VALUE_HEAD_SIZE + SEAL_OVERHEAD || size > VALUE_SIZE_MAX)
		return -EBADMSG;
	if (bytes[0] != VALUE_FORMAT || bytes[1] != VALUE_EPOCH || bytes[2] != VALUE_CODEC_PLAIN)
		return -EBADMSG;
	head.version = util_get_le64(bytes + 4);
	head.attrs_size = util_get_le32(bytes + 12);
	head.content_size = util_get_le32(bytes + 16);
	if (head.attrs_size > VALUE_SIZE_MAX || head.content_size > VALUE_SIZE_MAX ||
	    size != VALUE_HEAD_SIZE + SEAL_OVERHEAD + head.attrs_size + box_size(head.content_size))
		return -EBADMSG;
	*ret_head = head;
	return 0;
}

size_t value_attrs_end(const struct value_head *head)
{
	return VALUE_HEAD_SIZE + head->attrs_size + SEAL_OVERHEAD;
}

int value_unseal(const struct keyring *keys, const uint8_t *key, size_t key_size,
		 const uint8_t *bytes, size_t size, bool attributes_only, uint8_t *ret_plain)
{
	uint8_t ad[AD_MAX];
	struct value_head head;
	size_t first;
	int r = value_head(bytes, size, &head);

	if (r < 0)
		return r;
	if (key_size > KEY_MAX)
		return -EBADMSG;
	first = head.attrs_size + SEAL_OVERHEAD;
	r = seal_unbox(&keys->keys[SEAL_ATTRS], ad, fill_ad(keys, bytes, 1, key, key_size, ad),
		       bytes + VALUE_HEAD_SIZE, first, ret_plain);
	if (r < 0 || attributes_only || !head.content_size)
		return r;
	return seal_unbox(&keys->keys[SEAL_CONTENT], ad, fill_ad(keys, bytes, 2, key, key_size, ad),
			  bytes + VALUE_HEAD_SIZE + first, head.content_size + SEAL_OVERHEAD,
			  ret_plain + head.attrs_size);
}
