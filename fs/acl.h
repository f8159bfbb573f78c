/*
 * acl.h - POSIX ACLs as the kernel keeps them in xattrs: what they do to modes.
 *
 * The kernel enforces them (mount option `acl`); that an ACL and the mode say
 * the same, and that a directory's default ACL is handed down, is left to the
 * file system. Takes hostile bytes.
 */
#ifndef FS_ACL_H
#define FS_ACL_H

#include "store/util.h"

#define ACL_ACCESS "system.posix_acl_access"
#define ACL_DEFAULT "system.posix_acl_default"

/* Whether the value is a whole and orderly ACL: 0, -EINVAL. */
int acl_check(const void *value, size_t size);
/* The permissions an ACL that was checked stands for: replaces 0777 in *mode. True: the mode says it all, no ACL is needed. */
bool acl_to_mode(const void *value, size_t size, uint32_t *mode);
/* Copies an ACL as chmod(2) changes it. */
void acl_chmod(const void *value, size_t size, uint32_t mode, struct buffer *ret_value);
/* The access ACL that an item made with *mode gets from a default one; *mode is what both allow. True: no ACL is needed. */
bool acl_create(const void *value, size_t size, uint32_t *mode, struct buffer *ret_value);

#endif
