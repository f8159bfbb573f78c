/*
 * plan.h - a known sequence of transactions: whatever becomes of a store that
 * was doing them, it must hold the first n of them and nothing else.
 *
 * Each puts an item, counts, writes bytes to a body (from one byte to several
 * chunks), and now and then frees, cuts or zeroes one, or deletes an item.
 */
#ifndef TESTS_CRASH_PLAN_H
#define TESTS_CRASH_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

/* Does transaction number `n` (from 0). The result of store_transact. */
int plan_do(struct store *s, uint64_t n);
/* How many were done, by the store's own counter. 0 or negative errno. */
int plan_count(struct store *s, uint64_t *ret_count);
/* Whether the store holds exactly the first `n`. 0, or -EBADMSG and why in `ret_text`. */
int plan_check(struct store *s, uint64_t n, char *ret_text, size_t text_size);

#endif
