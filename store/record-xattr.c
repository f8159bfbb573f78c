/*
 * record-xattr.c - lists of extended attributes.
 *
 * An entry is a name, a NUL, four bytes of size, a value. Names are 1 to 255
 * bytes; order is that of being set, and replacing keeps an entry's place.
 */
#include "store/record.h"

#define XATTR_NAME_MAX_BYTES 255

int record_xattr_next(const uint8_t *list, size_t size, size_t *at, const char **ret_name,
		      const uint8_t **ret_value, size_t *ret_value_size)
{
	struct reader r = { .bytes = list, .size = size, .at = *at };
	const uint8_t *name, *end, *value;
	size_t value_size;

	if (*at == size)
		return 0;
	if (*at > size)
		return -EBADMSG;
	name = list + *at;
	end = memchr(name, 0, util_min(size - *at, (size_t)XATTR_NAME_MAX_BYTES + 1));
	if (!end || end == name)
		return -EBADMSG;
	reader_take(&r, (size_t)(end - name) + 1);
	value_size = reader_le32(&r);
	value = reader_take(&r, value_size);
	if (r.failed)
		return -EBADMSG;
	*at = r.at;
	*ret_name = (const char *)name;
	*ret_value = value;
	*ret_value_size = value_size;
	return 1;
}

static void append_entry(struct buffer *b, const char *name, const uint8_t *value, size_t value_size)
{
	buffer_append(b, name, strlen(name) + 1);
	buffer_append_le32(b, (uint32_t)value_size);
	buffer_append(b, value, value_size);
}

int record_xattr_edit(const uint8_t *list, size_t size, const char *name, const uint8_t *value,
		      size_t value_size, struct buffer *b)
{
	size_t at = 0, old_value_size;
	const uint8_t *old_value;
	const char *old_name;
	int result;

	if (!name[0] || strlen(name) > XATTR_NAME_MAX_BYTES || value_size > UINT32_MAX)
		return -EINVAL;
	while ((result = record_xattr_next(list, size, &at, &old_name, &old_value, &old_value_size)) > 0) {
		if (strcmp(old_name, name)) {
			append_entry(b, old_name, old_value, old_value_size);
		} else if (value) {
			append_entry(b, name, value, value_size);
			value = NULL;
		}
	}
	if (result < 0)
		return result;
	if (value)
		append_entry(b, name, value, value_size);
	return b->failed ? -ENOMEM : 0;
}
