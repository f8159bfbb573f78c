/*
 * record-kind.h - the first bytes of every record, and the records of the
 * store's own settings. Private to store/.
 */
#ifndef STORE_RECORD_KIND_H
#define STORE_RECORD_KIND_H

#include "store/item.h"
#include "store/store.h"
#include "store/util.h"

#define RECORD_FORMAT 1
#define RECORD_HEAD_SIZE 2 /* format, kind */

/* Numbers are part of the format. */
enum record_kind {
	RECORD_ITEM = 1,
	RECORD_LINK = 2,
	RECORD_GUARD = 3,
	RECORD_SHADOW = 4,
	RECORD_TRASH = 5,
	RECORD_BATCH = 6,
	RECORD_XATTRS = 7,
	RECORD_IDS = 8,
	RECORD_CLOCK = 9,
};

#define RECORD_NUMBER_MAX INT64_MAX /* of ids, sequence numbers and sizes */

bool record_name_is_good(const char *name, size_t size);
/* A command stands in ITEM_COMMAND_MAX bytes, filled up with NULs. */
void record_put_command(uint8_t *p, const char *command);
bool record_get_command(const uint8_t *p, char ret_command[ITEM_COMMAND_MAX + 1]);

/* Whether the value begins as a record of that kind does. */
bool record_is(const struct store_value *value, enum record_kind kind);

/* With `name` in the place of the item's own. */
int record_encode_item_as(enum record_kind kind, const struct item *item, const char *name,
			  struct buffer *b);
/* Whether the item may have the content it has: inline, no longer than its size. */
bool record_content_is_good(const struct item *item);

/* META "ids": the first id that no block given out covers. */
#define RECORD_META_IDS "ids"
#define RECORD_IDS_SIZE (RECORD_HEAD_SIZE + 8)
void record_encode_ids(uint64_t next, uint8_t ret_bytes[RECORD_IDS_SIZE]);
int record_decode_ids(const struct store_value *value, uint64_t *ret_next);

#define RECORD_META_CLOCK "clock"
/* META "clock": what keeps sequence numbers unique and increasing over mounts. */
struct record_clock {
	uint8_t mount; /* of the last mount */
	uint64_t last_seq; /* none above it was given out, but for those that TRASH shows */
};
#define RECORD_CLOCK_SIZE (RECORD_HEAD_SIZE + 1 + 8)
void record_encode_clock(const struct record_clock *clock, uint8_t ret_bytes[RECORD_CLOCK_SIZE]);
int record_decode_clock(const struct store_value *value, struct record_clock *ret_clock);

#endif
