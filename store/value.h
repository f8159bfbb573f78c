/*
 * value.h - an item as it stands in the index: version and sizes in clear,
 * then two boxes sealed apart, so that a listing opens only the first.
 *
 * Each box is bound to store, key, version, sizes and its number: no value can
 * be moved to another key, none replaced by an earlier one of the same key
 * without its version showing it. FORMAT.md, "Index", has the bytes.
 */
#ifndef STORE_VALUE_H
#define STORE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/keyring.h"
#include "store/util.h"

#define VALUE_HEAD_SIZE 20
#define VALUE_SIZE_MAX (UINT32_C(1) << 20) /* of a whole value: more is damage */

struct value_head {
	uint64_t version;
	uint32_t attrs_size;
	uint32_t content_size;
};

/* Appends the sealed value. */
void value_seal(const struct keyring *keys, const uint8_t *key, size_t key_size,
		const struct value_head *head, const uint8_t *attrs, const uint8_t *content,
		struct buffer *b);
/* The clear part. 0 or -EBADMSG: sizes do not add up, or the format is unknown. */
int value_head(const uint8_t *bytes, size_t size, struct value_head *ret_head);
/* Where the attributes' box ends: as much of a value as value_unseal reads for them alone. */
size_t value_attrs_end(const struct value_head *head);
/*
 * Whether a value, of VALUE_HEAD_SIZE bytes at least, was sealed under this key,
 * by one byte of it: false means that the key is damaged, and that the item is
 * missing where it was.
 */
bool value_key_holds(const uint8_t *key, size_t key_size, const uint8_t *bytes);
/* Plaintext of the attributes, and of the content if asked for: head->attrs_size (+ head->content_size) bytes. 0 or -EBADMSG. */
int value_unseal(const struct keyring *keys, const uint8_t *key, size_t key_size,
		 const uint8_t *bytes, size_t size, bool attributes_only, uint8_t *ret_plain);

#endif
