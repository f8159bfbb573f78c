/*
 * util.c - the byte buffer and the reader of hostile bytes.
 *
 * Both carry their failure with them, so that code which appends or reads a
 * whole record checks once, at its end.
 */
#include "store/util.h"

#define BUFFER_CAPACITY_MIN 256

void buffer_release(struct buffer *b)
{
	if (!b)
		return;
	free(b->bytes);
	*b = (struct buffer){ 0 };
}

void buffer_reset(struct buffer *b)
{
	b->size = 0;
	b->failed = false;
}

static bool buffer_reserve(struct buffer *b, size_t more)
{
	size_t need, capacity;
	uint8_t *bytes;

	if (__builtin_add_overflow(b->size, more, &need) || need > SIZE_MAX / 2)
		return false;
	if (need <= b->capacity)
		return true;
	capacity = util_max(b->capacity * 2, (size_t)BUFFER_CAPACITY_MIN);
	capacity = util_max(capacity, need);
	bytes = realloc(b->bytes, capacity);
	if (!bytes)
		return false;
	b->bytes = bytes;
	b->capacity = capacity;
	return true;
}

uint8_t *buffer_append(struct buffer *b, const void *bytes, size_t size)
{
	uint8_t *at;

	/* At least one byte, so that appending nothing to an empty buffer still answers a place. */
	if (b->failed || !buffer_reserve(b, size ? size : 1)) {
		b->failed = true;
		return NULL;
	}
	at = b->bytes + b->size;
	if (bytes && size)
		memcpy(at, bytes, size);
	b->size += size;
	return at;
}

void buffer_append_u8(struct buffer *b, uint8_t v)
{
	buffer_append(b, &v, sizeof(v));
}

void buffer_append_le16(struct buffer *b, uint16_t v)
{
	uint8_t bytes[2];

	util_put_le16(bytes, v);
	buffer_append(b, bytes, sizeof(bytes));
}

void buffer_append_le32(struct buffer *b, uint32_t v)
{
	uint8_t bytes[4];

	util_put_le32(bytes, v);
	buffer_append(b, bytes, sizeof(bytes));
}

void buffer_append_le64(struct buffer *b, uint64_t v)
{
	uint8_t bytes[8];

	util_put_le64(bytes, v);
	buffer_append(b, bytes, sizeof(bytes));
}

const uint8_t *reader_take(struct reader *r, size_t size)
{
	const uint8_t *at;

	if (r->failed || size > r->size - r->at) {
		r->failed = true;
		return NULL;
	}
	at = r->bytes + r->at;
	r->at += size;
	return at;
}

uint8_t reader_u8(struct reader *r)
{
	const uint8_t *p = reader_take(r, 1);

	return p ? *p : 0;
}

uint16_t reader_le16(struct reader *r)
{
	const uint8_t *p = reader_take(r, 2);

	return p ? util_get_le16(p) : 0;
}

uint32_t reader_le32(struct reader *r)
{
	const uint8_t *p = reader_take(r, 4);

	return p ? util_get_le32(p) : 0;
}

uint64_t reader_le64(struct reader *r)
{
	const uint8_t *p = reader_take(r, 8);

	return p ? util_get_le64(p) : 0;
}

bool reader_done(const struct reader *r)
{
	return !r->failed && r->at == r->size;
}

int util_write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t n = pwrite(fd, bytes, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}
