/*
 * print.h - names, sizes and times for people's eyes, and JSON for programs.
 *
 * A name may hold any byte, and a terminal obeys some of them. What could
 * confuse either is written as the shell would take it back: 'with space',
 * $'new\nline'. That holds for pipes too: what is shown is one line, whatever a
 * file is called. Programs should ask for --json.
 */
#ifndef TOOLS_PRINT_H
#define TOOLS_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PRINT_SIZE_MAX 16
#define PRINT_TIME_MAX 48

/* malloc'd, never NULL: a command that has no memory for its words ends, saying so. */
char *print_quoted(const char *bytes);
char *print_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "1.5 MiB", "312 B". */
const char *print_size(uint64_t bytes, char buffer[PRINT_SIZE_MAX]);
/* Local time with its zone, to the second: 2026-11-30T17:25:39+01:00; "never" for ITEM_FOREVER, "-" for 0. */
const char *print_time(int64_t ns, char buffer[PRINT_TIME_MAX]);
/* UTC to the nanosecond: 2026-11-30T16:25:39.000000000Z. */
const char *print_time_exact(int64_t ns, char buffer[PRINT_TIME_MAX]);
/* "3 d 4 h", "12 s": the two largest units. */
const char *print_duration(int64_t ns, char buffer[PRINT_TIME_MAX]);
/* The last user asked for: a listing has few, and each look-up opens a file. Zeroed is empty. */
struct print_user {
	bool known;
	uint32_t uid;
	char name[PRINT_TIME_MAX];
};
/* The user's name, or the number; good until the next call. */
const char *print_user(struct print_user *last, uint32_t uid);
/* "1 entry", "3 entries". */
const char *print_plural(uint64_t count, const char *one, const char *many);

/* Whether whoever read standard output is gone. */
bool print_is_unread(void);

/* JSON without a byte that a terminal would obey. malloc'd, never NULL. */
char *print_json_text(const json_t *object);
/* The same as one line on standard output. */
void print_json(const json_t *object);
/* Replaces the integer KEY_ns by KEY, an exact UTC text (null for ITEM_FOREVER). Nothing if it is not there. */
void print_json_time(json_t *object, const char *key);
/* Replaces the integer KEY_ns by KEY_s, seconds (null for ITEM_FOREVER). */
void print_json_duration(json_t *object, const char *key);

#endif
