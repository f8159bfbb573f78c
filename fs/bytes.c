#include "fs/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/util.h"

#define BYTES_KEY_MAX 64

size_t bytes_character(const char *text, size_t size, uint32_t *ret_character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *p = (const uint8_t *)text;
	uint32_t c;
	size_t length;

	if (!size)
		return 0;
	if (p[0] < 0x80) {
		*ret_character = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (size < length)
		return 0;
	c = p[0] & (0x7f >> length);
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (c < least[length] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0;
	*ret_character = c;
	return length;
}

bool bytes_is_utf8(const char *text, size_t size)
{
	uint32_t c;

	while (size) {
		size_t length = bytes_character(text, size, &c);

		if (!length)
			return false;
		text += length;
		size -= length;
	}
	return true;
}

/* The text with U+FFFD for each byte that is not UTF-8. */
static json_t *readable(const char *bytes, size_t size)
{
	struct buffer b = { 0 };
	json_t *string;
	uint32_t c;

	while (size) {
		size_t length = bytes_character(bytes, size, &c);

		if (length)
			buffer_append(&b, bytes, length);
		else
			buffer_append(&b, "\xef\xbf\xbd", 3);
		bytes += length ? length : 1;
		size -= length ? length : 1;
	}
	string = b.failed ? NULL : json_stringn((const char *)b.bytes, b.size);
	buffer_release(&b);
	return string;
}

static json_t *hexadecimal(const char *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	struct buffer b = { 0 };
	json_t *string;

	for (size_t i = 0; i < size; i++) {
		buffer_append_u8(&b, (uint8_t)digits[(uint8_t)bytes[i] >> 4]);
		buffer_append_u8(&b, (uint8_t)digits[bytes[i] & 15]);
	}
	string = b.failed ? NULL : json_stringn((const char *)b.bytes, b.size);
	buffer_release(&b);
	return string;
}

int bytes_to_json(json_t *object, const char *key, const char *bytes)
{
	size_t size = strlen(bytes);
	char hex_key[BYTES_KEY_MAX];

	if (bytes_is_utf8(bytes, size))
		return json_object_set_new(object, key, json_stringn(bytes, size)) ? -ENOMEM : 0;
	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	if (json_object_set_new(object, key, readable(bytes, size)) ||
	    json_object_set_new(object, hex_key, hexadecimal(bytes, size)))
		return -ENOMEM;
	return 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static int from_hexadecimal(const char *hex, size_t size, char **ret_bytes)
{
	_cleanup_free_ char *bytes = malloc(size / 2 + 1);

	if (!bytes)
		return -ENOMEM;
	if (size % 2)
		return -EINVAL;
	for (size_t i = 0; i < size / 2; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);

		if (high < 0 || low < 0 || high + low == 0)
			return -EINVAL;
		bytes[i] = (char)(high << 4 | low);
	}
	bytes[size / 2] = '\0';
	*ret_bytes = util_steal(bytes);
	return 0;
}

int bytes_from_json(const json_t *object, const char *key, char **ret_bytes)
{
	char hex_key[BYTES_KEY_MAX];
	json_t *value;

	snprintf(hex_key, sizeof(hex_key), "%s_hex", key);
	value = json_object_get(object, hex_key);
	if (json_is_string(value))
		return from_hexadecimal(json_string_value(value), json_string_length(value), ret_bytes);
	value = json_object_get(object, key);
	if (!value)
		return -ENOENT;
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return -EINVAL;
	*ret_bytes = strdup(json_string_value(value));
	return *ret_bytes ? 0 : -ENOMEM;
}
