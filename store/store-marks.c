/*
 * store-marks.c - what META says was given out, as it stands in the store: the
 * numbers in memory may be ahead of it only by what was never used.
 */
#include "store/record-kind.h"
#include "store/store-private.h"

static int read_ids(struct store *s, uint64_t *ret_next)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key key;
	int result;

	key_meta(RECORD_META_IDS, &key);
	result = store_get(s, &key, true, &value);
	if (result == STORE_ABSENT) {
		*ret_next = KEY_ID_FIRST;
		return 0;
	}
	return result ? result : record_decode_ids(&value, ret_next);
}

static int read_last_seq(struct store *s, uint64_t *ret_last)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct record_clock mark;
	struct key key;
	int result;

	key_meta(RECORD_META_CLOCK, &key);
	result = store_get(s, &key, true, &value);
	if (result == STORE_ABSENT) {
		*ret_last = 0;
		return 0;
	}
	if (!result)
		result = record_decode_clock(&value, &mark);
	if (!result)
		*ret_last = mark.last_seq;
	return result;
}

void store_marks_state(struct store *s, int *ret_ids, int *ret_clock)
{
	uint64_t unused;

	*ret_ids = read_ids(s, &unused);
	*ret_clock = read_last_seq(s, &unused);
}

int store_marks(struct store *s, uint64_t *ret_next_id, uint64_t *ret_last_seq)
{
	int result = read_ids(s, ret_next_id);

	return result ? result : read_last_seq(s, ret_last_seq);
}
