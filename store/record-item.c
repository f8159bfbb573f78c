/*
 * record-item.c - items and LINK records to bytes and back.
 *
 * On the path of every request: one allocation to encode, none to decode, and
 * the fixed part is read at its offsets.
 */
#include <sys/stat.h>

#include "store/record-kind.h"
#include "store/record.h"

#define ITEM_FLAGS                                                                         \
	(ITEM_REFERENCE | ITEM_DELETION | ITEM_SPARSE | ITEM_XATTR_APART | ITEM_SHADOWED | \
	 ITEM_POLICY | ITEM_ACL)
#define DELETION_FLAGS (DELETION_PINNED | DELETION_DOOMED | DELETION_PURGED)

static inline uint8_t *add_u8(uint8_t *p, uint8_t v)
{
	*p = v;
	return p + 1;
}

static inline uint8_t *add_le32(uint8_t *p, uint32_t v)
{
	util_put_le32(p, v);
	return p + 4;
}

static inline uint8_t *add_le64(uint8_t *p, uint64_t v)
{
	util_put_le64(p, v);
	return p + 8;
}

#define ITEM_FIXED_SIZE 97 /* up to the name */
#define ITEM_DIRECTORY_SIZE 36
#define ITEM_DELETION_SIZE 61
#define ITEM_LINKS_SIZE 8

static bool time_is_good(const struct timespec *t)
{
	return t->tv_nsec >= 0 && t->tv_nsec < CLOCK_SECOND_NS;
}

static bool mode_is_good(uint32_t mode)
{
	if (mode & ~(uint32_t)(S_IFMT | 07777))
		return false;
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	default:
		return false;
	}
}

static bool directory_is_good(const struct item_directory *d)
{
	return !(d->trash_mask & ~0777u) && d->trash_until_ns >= 0 &&
	       d->saved_batch <= RECORD_NUMBER_MAX && time_is_good(&d->saved_mtime);
}

static bool deletion_is_good(const struct deletion *d)
{
	return d->batch <= RECORD_NUMBER_MAX && d->replaced_by <= RECORD_NUMBER_MAX &&
	       d->expires_ns >= 0 && d->destroy_ns >= 0 && d->cause >= ITEM_REMOVED &&
	       d->cause <= ITEM_TEMPORARY && !(d->flags & ~DELETION_FLAGS);
}

static bool item_is_good(const struct item *i, bool link)
{
	if (!i->id || i->id > RECORD_NUMBER_MAX || i->size > RECORD_NUMBER_MAX || i->body > RECORD_NUMBER_MAX)
		return false;
	if (i->flags & ~(uint32_t)ITEM_FLAGS || !mode_is_good(i->mode))
		return false;
	if (!time_is_good(&i->atime) || !time_is_good(&i->mtime) || !time_is_good(&i->ctime) ||
	    !time_is_good(&i->btime))
		return false;
	if (S_ISDIR(i->mode) && (link || !directory_is_good(&i->directory)))
		return false;
	if (i->flags & ITEM_DELETION && (link || !deletion_is_good(&i->deletion)))
		return false;
	return !link || i->links_live <= i->links_total;
}

/* Only LINK records and the root have no name. */
static bool item_name_is_good(const struct item *i, const char *name, size_t size, bool link)
{
	if (!size)
		return link || i->id == KEY_ID_ROOT;
	return !link && record_name_is_good(name, size);
}

static uint8_t *add_fixed(uint8_t *p, enum record_kind kind, const struct item *i, size_t name_size)
{
	const struct timespec *times[] = { &i->atime, &i->mtime, &i->ctime, &i->btime };

	p = add_u8(p, RECORD_FORMAT);
	p = add_u8(p, (uint8_t)kind);
	util_put_le16(p, (uint16_t)i->flags);
	p = add_le32(p + 2, i->mode);
	p = add_le32(p, i->uid);
	p = add_le32(p, i->gid);
	p = add_le32(p, i->rdev);
	for (size_t n = 0; n < ARRAY_SIZE(times); n++)
		p = add_le32(p, (uint32_t)times[n]->tv_nsec);
	for (size_t n = 0; n < ARRAY_SIZE(times); n++)
		p = add_le64(p, (uint64_t)times[n]->tv_sec);
	p = add_le64(p, i->id);
	p = add_le64(p, i->size);
	p = add_le64(p, i->body);
	p = add_le32(p, (uint32_t)i->xattrs_size);
	return add_u8(p, (uint8_t)name_size);
}

static uint8_t *add_directory(uint8_t *p, const struct item_directory *d)
{
	p = add_le32(p, d->subdirectories);
	p = add_le32(p, d->trash_mask);
	p = add_le64(p, (uint64_t)d->trash_until_ns);
	p = add_le64(p, d->saved_batch);
	p = add_le64(p, (uint64_t)d->saved_mtime.tv_sec);
	return add_le32(p, (uint32_t)d->saved_mtime.tv_nsec);
}

static uint8_t *add_deletion(uint8_t *p, const struct deletion *d)
{
	p = add_le64(p, d->batch);
	p = add_le64(p, d->replaced_by);
	p = add_le64(p, (uint64_t)d->expires_ns);
	p = add_le64(p, (uint64_t)d->destroy_ns);
	p = add_le32(p, d->uid);
	p = add_le32(p, d->gid);
	p = add_le32(p, d->pid);
	p = add_u8(p, d->cause);
	p = add_u8(p, d->flags);
	record_put_command(p, d->command);
	return p + ITEM_COMMAND_MAX;
}

/* What follows the fixed part, the name and the xattrs apart. */
static size_t sections_size(uint32_t mode, uint32_t flags, bool link)
{
	return (S_ISDIR(mode) ? ITEM_DIRECTORY_SIZE : 0) +
	       (flags & ITEM_DELETION ? ITEM_DELETION_SIZE : 0) + (link ? ITEM_LINKS_SIZE : 0);
}

int record_encode_item_as(enum record_kind kind, const struct item *item, const char *name,
			  struct buffer *b)
{
	bool link = kind == RECORD_LINK;
	size_t name_size = strlen(name);
	uint8_t *p;

	if (!item_is_good(item, link) || !item_name_is_good(item, name, name_size, link) ||
	    item->xattrs_size > UINT32_MAX)
		return -EINVAL;
	p = buffer_append(b, NULL,
			  ITEM_FIXED_SIZE + name_size +
				  sections_size(item->mode, item->flags, link) + item->xattrs_size);
	if (!p)
		return -ENOMEM;
	p = add_fixed(p, kind, item, name_size);
	memcpy(p, name, name_size);
	p += name_size;
	if (S_ISDIR(item->mode))
		p = add_directory(p, &item->directory);
	if (item->flags & ITEM_DELETION)
		p = add_deletion(p, &item->deletion);
	if (link) {
		p = add_le32(p, item->links_live);
		p = add_le32(p, item->links_total);
	}
	if (item->xattrs_size)
		memcpy(p, item->xattrs, item->xattrs_size);
	return 0;
}

int record_encode_item(const struct item *item, struct buffer *b)
{
	return record_encode_item_as(RECORD_ITEM, item, item->name, b);
}

int record_encode_link(const struct item *item, struct buffer *b)
{
	return record_encode_item_as(RECORD_LINK, item, "", b);
}

static void get_time(const uint8_t *p, unsigned which, struct timespec *ret_time)
{
	ret_time->tv_nsec = util_get_le32(p + 20 + 4 * which);
	ret_time->tv_sec = (time_t)util_get_le64(p + 36 + 8 * which);
}

static void get_fixed(const uint8_t *p, struct item *i)
{
	i->flags = util_get_le16(p + 2);
	i->mode = util_get_le32(p + 4);
	i->uid = util_get_le32(p + 8);
	i->gid = util_get_le32(p + 12);
	i->rdev = util_get_le32(p + 16);
	get_time(p, 0, &i->atime);
	get_time(p, 1, &i->mtime);
	get_time(p, 2, &i->ctime);
	get_time(p, 3, &i->btime);
	i->id = util_get_le64(p + 68);
	i->size = util_get_le64(p + 76);
	i->body = util_get_le64(p + 84);
	i->xattrs_size = util_get_le32(p + 92);
}

static void get_directory(const uint8_t *p, struct item_directory *d)
{
	d->subdirectories = util_get_le32(p);
	d->trash_mask = util_get_le32(p + 4);
	d->trash_until_ns = (int64_t)util_get_le64(p + 8);
	d->saved_batch = util_get_le64(p + 16);
	d->saved_mtime.tv_sec = (time_t)util_get_le64(p + 24);
	d->saved_mtime.tv_nsec = util_get_le32(p + 32);
}

static bool get_deletion(const uint8_t *p, struct deletion *d)
{
	d->batch = util_get_le64(p);
	d->replaced_by = util_get_le64(p + 8);
	d->expires_ns = (int64_t)util_get_le64(p + 16);
	d->destroy_ns = (int64_t)util_get_le64(p + 24);
	d->uid = util_get_le32(p + 32);
	d->gid = util_get_le32(p + 36);
	d->pid = util_get_le32(p + 40);
	d->cause = p[44];
	d->flags = p[45];
	return record_get_command(p + 46, d->command);
}

/* The bytes after the fixed part. The caller has checked that all of them are there. */
static bool get_sections(const uint8_t *p, bool link, size_t name_size, struct item *i)
{
	memcpy(i->name, p, name_size);
	i->name[name_size] = 0;
	p += name_size;
	if (S_ISDIR(i->mode)) {
		get_directory(p, &i->directory);
		p += ITEM_DIRECTORY_SIZE;
	} else {
		i->directory = (struct item_directory){ 0 };
	}
	if (i->flags & ITEM_DELETION) {
		if (!get_deletion(p, &i->deletion))
			return false;
		p += ITEM_DELETION_SIZE;
	} else {
		i->deletion = (struct deletion){ 0 };
	}
	i->links_live = link ? util_get_le32(p) : 1;
	i->links_total = link ? util_get_le32(p + 4) : 1;
	p += link ? ITEM_LINKS_SIZE : 0;
	i->xattrs = i->xattrs_size ? p : NULL;
	return true;
}

bool record_content_is_good(const struct item *i)
{
	if (!i->content_size)
		return true;
	return (S_ISREG(i->mode) || S_ISLNK(i->mode)) && !i->body && !(i->flags & ITEM_REFERENCE) &&
	       i->content_size <= i->size;
}

int record_decode_item(const struct store_value *value, struct item *ret_item)
{
	const uint8_t *p = value->attrs;
	struct item item, *i = &item;
	bool link = record_is(value, RECORD_LINK);
	size_t name_size;

	if ((!link && !record_is(value, RECORD_ITEM)) || value->attrs_size < ITEM_FIXED_SIZE)
		return -EBADMSG;
	name_size = p[96];
	get_fixed(p, i);
	if (value->attrs_size != ITEM_FIXED_SIZE + name_size + sections_size(i->mode, i->flags, link) +
					 (uint64_t)i->xattrs_size)
		return -EBADMSG;
	if (!get_sections(p + ITEM_FIXED_SIZE, link, name_size, i) || !item_is_good(i, link) ||
	    !item_name_is_good(i, i->name, name_size, link))
		return -EBADMSG;
	i->version = value->version;
	i->content = value->content;
	i->content_size = value->content ? value->content_size : 0;
	if (!record_content_is_good(i))
		return -EBADMSG;
	*ret_item = item;
	return 0;
}
