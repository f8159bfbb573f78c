/*
 * bytes.h - names and paths in JSON.
 *
 * A JSON string is Unicode; a name is any bytes but '/' and NUL. Bytes that are
 * UTF-8 are a string. Others are given twice: under KEY a string for reading,
 * each wrong byte as U+FFFD, and under KEY_hex all the bytes exactly, in
 * hexadecimal. Whoever reads takes KEY_hex where it stands.
 */
#ifndef FS_BYTES_H
#define FS_BYTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Decodes one character. Its length, 1 to 4; 0 if the bytes are not UTF-8
 * (overlong forms, surrogates and what lies beyond U+10FFFF are not).
 */
size_t bytes_character(const char *text, size_t size, uint32_t *ret_character);
bool bytes_is_utf8(const char *text, size_t size);

/* Sets KEY, and KEY_hex if need be. 0 or -ENOMEM. */
int bytes_to_json(json_t *object, const char *key, const char *bytes);
/* *ret_bytes is malloc'd. 0, -ENOENT (neither stands there), -EINVAL (no text, odd hexadecimal, a NUL inside), -ENOMEM. */
int bytes_from_json(const json_t *object, const char *key, char **ret_bytes);

#endif
