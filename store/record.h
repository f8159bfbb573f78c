/*
 * record.h - typed contents to bytes and back. FORMAT.md has the layouts.
 *
 * Every decoder takes bytes that may be hostile: 0, or -EBADMSG and nothing
 * written; none asserts on them. Encoders append to a buffer and report
 * -ENOMEM. A record begins with its format number and its kind; unknown ones
 * are refused. (Counters are bare numbers: engines write them.)
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "store/item.h"
#include "store/store.h"
#include "store/util.h"

/*
 * The attributes of an item, or of a LINK record (without a name, with the
 * counts of links). -EINVAL for what no item may be: an id of 0 or from 2^63
 * on, nanoseconds of a second and more, a negative time of expiry ...
 */
int record_encode_item(const struct item *item, struct buffer *b);
int record_encode_link(const struct item *item, struct buffer *b);
/*
 * Decodes either; `item->xattrs` and, if the value has it, `item->content` then
 * point into the value. The caller compares names and states with the key
 * (record_get_item, record_get_link and record_row_item do).
 */
int record_decode_item(const struct store_value *value, struct item *ret_item);

int record_encode_guard(const struct guard *guard, struct buffer *b);
int record_decode_guard(const struct store_value *value, struct guard *ret_guard);
int record_encode_shadow(const struct shadow *shadow, struct buffer *b);
int record_decode_shadow(const struct store_value *value, struct shadow *ret_shadow);
int record_encode_trash(const struct trash_row *row, struct buffer *b);
int record_decode_trash(const struct key_codec *c, const struct store_value *value,
			struct trash_row *ret_row);
int record_encode_batch(const struct batch *batch, struct buffer *b);
int record_decode_batch(const struct store_value *value, struct batch *ret_batch);
/* Counter items are written by STORE_ADD alone, that is by engines. An absent one is all zeros. */
#define RECORD_COUNTERS_SIZE (8 * STORE_COUNTERS_MAX)
void record_encode_counters(const int64_t counters[STORE_COUNTERS_MAX],
			    uint8_t ret_bytes[RECORD_COUNTERS_SIZE]);
int record_decode_counters(const struct store_value *value, int64_t ret_counters[STORE_COUNTERS_MAX]);

/*
 * xattr lists: name (NUL-terminated) and value, in order of being set. `next`
 * starts with *at = 0 and returns 1 while there is one, 0 at the end, -EBADMSG.
 */
int record_xattr_next(const uint8_t *list, size_t size, size_t *at, const char **ret_name,
		      const uint8_t **ret_value, size_t *ret_value_size);
/* Copies `list` into `b` with `name` set to `value`, or without it if `value` is NULL. */
int record_xattr_edit(const uint8_t *list, size_t size, const char *name, const uint8_t *value,
		      size_t value_size, struct buffer *b);

/* ---- reading whole records out of a store ----------------------------- */

/*
 * Reads the item at a place and checks that name and state match. `value` owns
 * the memory that the item borrows. 0, STORE_ABSENT, negative errno. References
 * are returned as they are: see record_get_link.
 */
int record_get_item(struct store *s, const struct place *at, bool attributes_only,
		    struct store_value *ret_value, struct item *ret_item);
int record_get_link(struct store *s, uint64_t id, bool attributes_only,
		    struct store_value *ret_value, struct item *ret_item);
int record_get_guard(struct store *s, uint64_t directory, struct guard *ret_guard);
int record_get_shadow(struct store *s, uint64_t directory, const char *name,
		      struct shadow *ret_shadow, uint64_t *ret_version);
int record_get_batch(struct store *s, uint32_t uid, uint64_t seq, struct batch *ret_batch);
int record_get_trash(struct store *s, uint64_t seq, struct trash_row *ret_row, uint64_t *ret_version);
int record_get_counters(struct store *s, int64_t ret_counters[STORE_COUNTERS_MAX]);
/* XATTR item: the list as record_xattr_edit makes it, inside `ret_value`. 0, STORE_ABSENT, negative errno. */
int record_get_xattrs(struct store *s, uint64_t id, struct store_value *ret_value,
		      const uint8_t **ret_list, size_t *ret_size);

/* Decodes a row of a directory's partition: its place and item. 0, -EBADMSG (also when the row is marked damaged). */
int record_row_item(struct store *s, const struct store_row *row, struct place *ret_at,
		    struct item *ret_item);

#include "store/transaction.h"

#endif
