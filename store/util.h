/*
 * util.h - the small kit every file may use: cleanup attributes, checked
 * arithmetic, little- and big-endian bytes, a growing byte buffer.
 *
 * Nothing here knows of stores or files.
 */
#ifndef STORE_UTIL_H
#define STORE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline void util_free_p(void *p)
{
	free(*(void **)p);
}

static inline void util_close_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Freed, or closed, when the variable leaves its scope. */
#define _cleanup_free_ __attribute__((cleanup(util_free_p)))
#define _cleanup_close_ __attribute__((cleanup(util_close_p)))
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Hands ownership out of a cleanup variable. */
#define util_steal(p)                      \
	({                                 \
		__typeof__(p) stolen_ = p; \
		p = NULL;                  \
		stolen_;                   \
	})

#define util_min(a, b)                  \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ < b_ ? a_ : b_;      \
	})
#define util_max(a, b)                  \
	({                              \
		__typeof__(a) a_ = (a); \
		__typeof__(b) b_ = (b); \
		a_ > b_ ? a_ : b_;      \
	})

static inline void util_put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void util_put_le32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline void util_put_le64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint16_t util_get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t util_get_le32(const uint8_t *p)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v |= (uint32_t)p[i] << (8 * i);
	return v;
}

static inline uint64_t util_get_le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static inline void util_put_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static inline void util_put_be64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (56 - 8 * i));
}

static inline uint32_t util_get_be32(const uint8_t *p)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | p[i];
	return v;
}

static inline uint64_t util_get_be64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

/* pwrite of all of it, in as many calls as it takes. 0 or negative errno (-EIO: nothing more is taken). */
int util_write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset);

/*
 * A growing run of bytes. Zeroed is empty. Appending to a buffer whose
 * allocation failed does nothing: check `failed` once at the end.
 */
struct buffer {
	uint8_t *bytes;
	size_t size;
	size_t capacity;
	bool failed;
};

void buffer_release(struct buffer *b);
void buffer_reset(struct buffer *b); /* empties, keeps the memory */
/* Appends `size` bytes and returns where they stand, or NULL. `bytes` may be NULL: left unset. */
uint8_t *buffer_append(struct buffer *b, const void *bytes, size_t size);
void buffer_append_u8(struct buffer *b, uint8_t v);
void buffer_append_le16(struct buffer *b, uint16_t v);
void buffer_append_le32(struct buffer *b, uint32_t v);
void buffer_append_le64(struct buffer *b, uint64_t v);

/*
 * Reads bytes that may be hostile: a read past the end sets `failed`, yields
 * zeros or NULL, and leaves the position where it was.
 */
struct reader {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	bool failed;
};

const uint8_t *reader_take(struct reader *r, size_t size);
uint8_t reader_u8(struct reader *r);
uint16_t reader_le16(struct reader *r);
uint32_t reader_le32(struct reader *r);
uint64_t reader_le64(struct reader *r);
bool reader_done(const struct reader *r); /* nothing failed and nothing is left */

#endif
