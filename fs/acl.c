/*
 * acl.c - the value of system.posix_acl_*: a version and entries of eight bytes
 * (tag, permissions, id), sorted, little-endian. Linux' fs/posix_acl.c has the
 * rules; an ACL without a mask or named entries is but a mode.
 */
#include "fs/acl.h"

#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#define HEAD_SIZE 4
#define ENTRY_SIZE 8

struct acl_entry {
	uint8_t *at; /* the entry's bytes */
	uint16_t tag;
	uint16_t perm;
};

static size_t acl_count(size_t size)
{
	return (size - HEAD_SIZE) / ENTRY_SIZE;
}

static struct acl_entry acl_entry(const void *value, size_t index)
{
	uint8_t *at = (uint8_t *)(uintptr_t)value + HEAD_SIZE + index * ENTRY_SIZE;

	return (struct acl_entry){ at, util_get_le16(at), util_get_le16(at + 2) };
}

/* Where a tag stands in the order, 0 for what is none. */
static unsigned acl_rank(uint16_t tag)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return 1;
	case ACL_USER:
		return 2;
	case ACL_GROUP_OBJ:
		return 3;
	case ACL_GROUP:
		return 4;
	case ACL_MASK:
		return 5;
	case ACL_OTHER:
		return 6;
	default:
		return 0;
	}
}

int acl_check(const void *value, size_t size)
{
	unsigned seen = 0, before = 0;

	if (size < HEAD_SIZE || (size - HEAD_SIZE) % ENTRY_SIZE ||
	    util_get_le32(value) != POSIX_ACL_XATTR_VERSION)
		return -EINVAL;
	for (size_t i = 0; i < acl_count(size); i++) {
		struct acl_entry e = acl_entry(value, i);
		unsigned rank = acl_rank(e.tag);
		bool named = e.tag == ACL_USER || e.tag == ACL_GROUP;

		if (!rank || e.perm & ~07u || rank < before || (rank == before && !named))
			return -EINVAL;
		before = rank;
		seen |= e.tag;
	}
	if ((seen & (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER)) !=
	    (ACL_USER_OBJ | ACL_GROUP_OBJ | ACL_OTHER))
		return -EINVAL;
	return seen & (ACL_USER | ACL_GROUP) && !(seen & ACL_MASK) ? -EINVAL : 0;
}

static bool acl_has_mask(const void *value, size_t size)
{
	for (size_t i = 0; i < acl_count(size); i++)
		if (acl_entry(value, i).tag == ACL_MASK)
			return true;
	return false;
}

/* By how many bits the permissions of an entry stand in the mode; -1: not at all. */
static int acl_shift(uint16_t tag, bool masked)
{
	switch (tag) {
	case ACL_USER_OBJ:
		return 6;
	case ACL_GROUP_OBJ:
		return masked ? -1 : 3;
	case ACL_MASK:
		return 3;
	case ACL_OTHER:
		return 0;
	default:
		return -1;
	}
}

bool acl_to_mode(const void *value, size_t size, uint32_t *mode)
{
	bool masked = acl_has_mask(value, size);
	uint32_t bits = 0;

	for (size_t i = 0; i < acl_count(size); i++) {
		struct acl_entry e = acl_entry(value, i);
		int shift = acl_shift(e.tag, masked);

		if (shift >= 0)
			bits |= (uint32_t)e.perm << shift;
	}
	*mode = (*mode & ~(uint32_t)0777) | bits;
	return acl_count(size) == 3;
}

void acl_chmod(const void *value, size_t size, uint32_t mode, struct buffer *ret_value)
{
	bool masked = acl_has_mask(value, size);
	uint8_t *copy = buffer_append(ret_value, value, size);

	for (size_t i = 0; copy && i < acl_count(size); i++) {
		struct acl_entry e = acl_entry(copy, i);
		int shift = acl_shift(e.tag, masked);

		if (shift >= 0)
			util_put_le16(e.at + 2, mode >> shift & 07);
	}
}

bool acl_create(const void *value, size_t size, uint32_t *mode, struct buffer *ret_value)
{
	bool masked = acl_has_mask(value, size);
	uint8_t *copy = buffer_append(ret_value, value, size);

	if (!copy)
		return false;
	for (size_t i = 0; i < acl_count(size); i++) {
		struct acl_entry e = acl_entry(copy, i);
		int shift = acl_shift(e.tag, masked);

		if (shift >= 0)
			util_put_le16(e.at + 2, e.perm & (*mode >> shift & 07));
	}
	return acl_to_mode(copy, size, mode);
}
