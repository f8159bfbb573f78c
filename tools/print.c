#include "tools/print.h"

#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/bytes.h"
#include "store/clock.h"
#include "store/item.h"
#include "store/util.h"

enum caution {
	PLAIN,
	QUOTE, /* the shell would take it apart */
	ESCAPE, /* the terminal would obey it, or nobody could see it */
};

/* Invisible characters, and those that turn the direction of writing around. */
static bool is_unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) ||
	       (c >= 0xe000 && c <= 0xf8ff) || c >= 0xe0000;
}

static enum caution caution(const char *bytes)
{
	enum caution worst = *bytes ? PLAIN : QUOTE;
	size_t size = strlen(bytes);
	uint32_t c;

	if (*bytes == '-' || *bytes == '~' || *bytes == '#')
		worst = QUOTE;
	while (size) {
		size_t length = bytes_character(bytes, size, &c);

		if (!length || is_unsafe(c))
			return ESCAPE;
		if (c < 0x80 && strchr(" '\"\\$`&|;<>()*?[]{}!", (int)c))
			worst = QUOTE;
		bytes += length;
		size -= length;
	}
	return worst;
}

static void append_text(struct buffer *b, const char *text)
{
	buffer_append(b, text, strlen(text));
}

static void append_escaped(struct buffer *b, uint8_t byte)
{
	static const char from[] = "\n\t\r\033\\'", to[] = "ntre\\'";
	const char *known = byte ? strchr(from, byte) : NULL;
	char octal[8];

	if (known) {
		buffer_append_u8(b, '\\');
		buffer_append_u8(b, (uint8_t)to[known - from]);
		return;
	}
	snprintf(octal, sizeof(octal), "\\%03o", byte);
	append_text(b, octal);
}

static void append_escaping(struct buffer *b, const char *bytes)
{
	size_t size = strlen(bytes);
	uint32_t c;

	append_text(b, "$'");
	while (size) {
		size_t length = bytes_character(bytes, size, &c);
		bool bad = !length || is_unsafe(c) || c == '\\' || c == '\'';

		length = length ? length : 1;
		for (size_t i = 0; i < length; i++) {
			if (bad)
				append_escaped(b, (uint8_t)bytes[i]);
			else
				buffer_append_u8(b, (uint8_t)bytes[i]);
		}
		bytes += length;
		size -= length;
	}
	append_text(b, "'");
}

static void append_quoting(struct buffer *b, const char *bytes)
{
	append_text(b, "'");
	for (; *bytes; bytes++) {
		if (*bytes == '\'')
			append_text(b, "'\\''");
		else
			buffer_append_u8(b, (uint8_t)*bytes);
	}
	append_text(b, "'");
}

static void __attribute__((noreturn)) end_without_memory(void)
{
	fputs("ddbfs: out of memory\n", stderr);
	exit(EXIT_FAILURE);
}

char *print_quoted(const char *bytes)
{
	struct buffer b = { 0 };

	switch (caution(bytes)) {
	case PLAIN:
		append_text(&b, bytes);
		break;
	case QUOTE:
		append_quoting(&b, bytes);
		break;
	case ESCAPE:
		append_escaping(&b, bytes);
		break;
	}
	buffer_append_u8(&b, 0);
	if (b.failed)
		end_without_memory();
	return (char *)b.bytes;
}

char *print_format(const char *format, ...)
{
	char *text;
	va_list list;

	va_start(list, format);
	if (vasprintf(&text, format, list) < 0)
		end_without_memory();
	va_end(list);
	return text;
}

const char *print_size(uint64_t bytes, char buffer[PRINT_SIZE_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double amount = (double)bytes;
	unsigned unit = 0;

	while (amount >= 1023.95 && unit + 1 < ARRAY_SIZE(units)) {
		amount /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(buffer, PRINT_SIZE_MAX, "%u B", (unsigned)bytes);
	else
		snprintf(buffer, PRINT_SIZE_MAX, "%.1f %s", amount, units[unit]);
	return buffer;
}

const char *print_time(int64_t ns, char buffer[PRINT_TIME_MAX])
{
	time_t seconds = ns / CLOCK_SECOND_NS;
	struct tm tm;
	char zone[8];

	if (ns == ITEM_FOREVER)
		return "never";
	if (ns <= 0 || !localtime_r(&seconds, &tm))
		return "-";
	strftime(buffer, PRINT_TIME_MAX - 8, "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buffer + strlen(buffer), 8, "%.3s:%.2s", zone, zone + 3);
	return buffer;
}

const char *print_time_exact(int64_t ns, char buffer[PRINT_TIME_MAX])
{
	/* Rounded down, also before 1970: the fraction counts onwards. */
	int64_t fraction = (ns % CLOCK_SECOND_NS + CLOCK_SECOND_NS) % CLOCK_SECOND_NS;
	time_t seconds = ns / CLOCK_SECOND_NS - (ns % CLOCK_SECOND_NS < 0);
	char whole[PRINT_TIME_MAX - 16];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm))
		return "-";
	strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buffer, PRINT_TIME_MAX, "%s.%09uZ", whole, (unsigned)fraction);
	return buffer;
}

const char *print_duration(int64_t ns, char buffer[PRINT_TIME_MAX])
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = { { "y", 365 * 86400 }, { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	int64_t seconds = ns / CLOCK_SECOND_NS;
	unsigned i = 0;

	if (ns == ITEM_FOREVER)
		return "forever";
	if (seconds == 0 && ns > 0)
		return "less than 1 s";
	while (i + 1 < ARRAY_SIZE(units) && seconds < units[i].seconds)
		i++;
	snprintf(buffer, PRINT_TIME_MAX, "%lld %s", (long long)(seconds / units[i].seconds),
		 units[i].name);
	seconds %= units[i].seconds;
	if (i + 1 < ARRAY_SIZE(units) && seconds / units[i + 1].seconds) {
		size_t used = strlen(buffer);

		snprintf(buffer + used, PRINT_TIME_MAX - used, " %lld %s",
			 (long long)(seconds / units[i + 1].seconds), units[i + 1].name);
	}
	return buffer;
}

const char *print_user(struct print_user *last, uint32_t uid)
{
	const struct passwd *user;

	if (last->known && last->uid == uid)
		return last->name;
	user = getpwuid(uid);
	if (user && strlen(user->pw_name) < sizeof(last->name))
		snprintf(last->name, sizeof(last->name), "%s", user->pw_name);
	else
		snprintf(last->name, sizeof(last->name), "%u", uid);
	last->uid = uid;
	last->known = true;
	return last->name;
}

const char *print_plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

bool print_is_unread(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return poll(&p, 1, 0) > 0 && (p.revents & POLLERR);
}

/* As \uXXXX; what is beyond 16 bits as two of them. */
static void append_json_escape(struct buffer *b, uint32_t c)
{
	char text[16];

	if (c >= 0x10000)
		snprintf(text, sizeof(text), "\\u%04X\\u%04X", 0xd800 + ((c - 0x10000) >> 10),
			 0xdc00 + ((c - 0x10000) & 0x3ff));
	else
		snprintf(text, sizeof(text), "\\u%04X", c);
	append_text(b, text);
}

/* Outside of strings, which may hold them, JSON has none of the characters that are escaped here. */
char *print_json_text(const json_t *object)
{
	_cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
	struct buffer b = { 0 };
	size_t size = text ? strlen(text) : 0;
	uint32_t c;

	for (const char *at = text; size;) {
		size_t length = bytes_character(at, size, &c);

		if (length && is_unsafe(c))
			append_json_escape(&b, c);
		else
			buffer_append(&b, at, length ? length : 1);
		length = length ? length : 1;
		at += length;
		size -= length;
	}
	buffer_append_u8(&b, 0);
	if (!text || b.failed)
		end_without_memory();
	return (char *)b.bytes;
}

void print_json(const json_t *object)
{
	_cleanup_free_ char *text = print_json_text(object);

	puts(text);
}

void print_json_time(json_t *object, const char *key)
{
	char key_ns[64], text[PRINT_TIME_MAX];
	json_t *value;

	snprintf(key_ns, sizeof(key_ns), "%s_ns", key);
	value = json_object_get(object, key_ns);
	if (!value)
		return;
	if (json_integer_value(value) == ITEM_FOREVER)
		json_object_set_new(object, key, json_null());
	else
		json_object_set_new(object, key,
				    json_string(print_time_exact(json_integer_value(value), text)));
	json_object_del(object, key_ns);
}

void print_json_duration(json_t *object, const char *key)
{
	char key_ns[64], key_s[64];
	json_t *value;
	json_int_t ns;

	snprintf(key_ns, sizeof(key_ns), "%s_ns", key);
	snprintf(key_s, sizeof(key_s), "%s_s", key);
	value = json_object_get(object, key_ns);
	if (!value)
		return;
	ns = json_integer_value(value);
	if (ns == ITEM_FOREVER)
		json_object_set_new(object, key_s, json_null());
	else if (ns % CLOCK_SECOND_NS)
		json_object_set_new(object, key_s, json_real((double)ns / (double)CLOCK_SECOND_NS));
	else
		json_object_set_new(object, key_s, json_integer(ns / CLOCK_SECOND_NS));
	json_object_del(object, key_ns);
}
