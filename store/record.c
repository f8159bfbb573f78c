/*
 * record.c - records to bytes and back. FORMAT.md, "Records", has the tables.
 *
 * There is one encoding of a record: whatever a decoder takes, the encoder
 * turns into the same bytes again. The rules of what a record may hold are
 * therefore written once for both directions (the *_is_good functions).
 */
#include "store/record.h"

#include <sys/stat.h>

#include "store/record-kind.h"

#define NUMBER_MAX INT64_MAX /* of ids, sequence numbers and sizes */
#define ITEM_FLAGS                                                                                       \
	(ITEM_REFERENCE | ITEM_DELETION | ITEM_SPARSE | ITEM_XATTR_APART | ITEM_SHADOWED | ITEM_POLICY)
#define DELETION_FLAGS (DELETION_PINNED | DELETION_DOOMED | DELETION_PURGED)
#define BATCH_UNDONE (1 << 0)
#define BATCH_PURGE (1 << 1)

/* ---- parts that several records have ------------------------------------ */

static void put_head(struct buffer *b, enum record_kind kind)
{
	buffer_append_u8(b, RECORD_FORMAT);
	buffer_append_u8(b, (uint8_t)kind);
}

static struct reader open_record(const struct store_value *value, enum record_kind kind)
{
	struct reader r = { .bytes = value->attrs, .size = value->attrs_size };

	if (reader_u8(&r) != RECORD_FORMAT || reader_u8(&r) != kind)
		r.failed = true;
	return r;
}

bool record_is(const struct store_value *value, enum record_kind kind)
{
	return value->attrs_size >= RECORD_HEAD_SIZE && value->attrs[0] == RECORD_FORMAT && value->attrs[1] == kind;
}

static uint64_t take_number(struct reader *r)
{
	uint64_t v = reader_le64(r);

	if (v > NUMBER_MAX)
		r->failed = true;
	return v;
}

static bool name_is_good(const char *name, size_t size)
{
	return size <= KEY_NAME_MAX && !memchr(name, '/', size) && !memchr(name, 0, size);
}

/* Names carry their size in one byte, which holds KEY_NAME_MAX. */
static void put_name(struct buffer *b, const char *name)
{
	size_t size = strlen(name);

	buffer_append_u8(b, (uint8_t)size);
	buffer_append(b, name, size);
}

static void take_name(struct reader *r, char ret_name[KEY_NAME_MAX + 1])
{
	size_t size = reader_u8(r);
	const char *name = (const char *)reader_take(r, size);

	if (!name || !name_is_good(name, size)) {
		r->failed = true;
		return;
	}
	memcpy(ret_name, name, size);
	ret_name[size] = 0;
}

/* A command stands in ITEM_COMMAND_MAX bytes, filled up with NULs. */
static void put_command(uint8_t *p, const char *command)
{
	size_t size = strnlen(command, ITEM_COMMAND_MAX);

	memcpy(p, command, size);
	memset(p + size, 0, ITEM_COMMAND_MAX - size);
}

static bool get_command(const uint8_t *p, char ret_command[ITEM_COMMAND_MAX + 1])
{
	size_t size = strnlen((const char *)p, ITEM_COMMAND_MAX);

	for (size_t i = size; i < ITEM_COMMAND_MAX; i++)
		if (p[i])
			return false;
	memcpy(ret_command, p, size);
	memset(ret_command + size, 0, ITEM_COMMAND_MAX + 1 - size);
	return true;
}

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

/* ---- items -------------------------------------------------------------- */

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
	return !(d->trash_mask & ~0777u) && d->trash_until_ns >= 0 && d->saved_batch <= NUMBER_MAX &&
	       time_is_good(&d->saved_mtime);
}

static bool deletion_is_good(const struct deletion *d)
{
	return d->batch <= NUMBER_MAX && d->replaced_by <= NUMBER_MAX && d->expires_ns >= 0 && d->destroy_ns >= 0 &&
	       d->cause >= ITEM_REMOVED && d->cause <= ITEM_TEMPORARY && !(d->flags & ~DELETION_FLAGS);
}

static bool item_is_good(const struct item *i, bool link)
{
	if (!i->id || i->id > NUMBER_MAX || i->size > NUMBER_MAX || i->body > NUMBER_MAX)
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
	return !link && name_is_good(name, size);
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
	put_command(p, d->command);
	return p + ITEM_COMMAND_MAX;
}

/* What follows the fixed part, the name and the xattrs apart. */
static size_t sections_size(uint32_t mode, uint32_t flags, bool link)
{
	return (S_ISDIR(mode) ? ITEM_DIRECTORY_SIZE : 0) + (flags & ITEM_DELETION ? ITEM_DELETION_SIZE : 0) +
	       (link ? ITEM_LINKS_SIZE : 0);
}

int record_encode_item_as(enum record_kind kind, const struct item *item, const char *name, struct buffer *b)
{
	bool link = kind == RECORD_LINK;
	size_t name_size = strlen(name);
	uint8_t *p;

	if (!item_is_good(item, link) || !item_name_is_good(item, name, name_size, link) ||
	    item->xattrs_size > UINT32_MAX)
		return -EINVAL;
	p = buffer_append(b, NULL,
			  ITEM_FIXED_SIZE + name_size + sections_size(item->mode, item->flags, link) +
				  item->xattrs_size);
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
	return get_command(p + 46, d->command);
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
	if (value->attrs_size !=
	    ITEM_FIXED_SIZE + name_size + sections_size(i->mode, i->flags, link) + (uint64_t)i->xattrs_size)
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

/* ---- guards and shadows ------------------------------------------------- */

static bool place_is_good(const struct place *at)
{
	if (at->directory > NUMBER_MAX || at->seq > NUMBER_MAX || at->state > KEY_DEL)
		return false;
	if (!at->name[0] && (at->directory != KEY_ID_NONE || at->state != KEY_ACT))
		return false;
	return (at->state == KEY_ACT) == !at->seq;
}

int record_encode_guard(const struct guard *guard, struct buffer *b)
{
	if (!place_is_good(&guard->at) || !name_is_good(guard->at.name, strlen(guard->at.name)))
		return -EINVAL;
	put_head(b, RECORD_GUARD);
	buffer_append_u8(b, (uint8_t)guard->at.state);
	buffer_append_le64(b, guard->at.directory);
	buffer_append_le64(b, guard->at.seq);
	put_name(b, guard->at.name);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_guard(const struct store_value *value, struct guard *ret_guard)
{
	struct reader r = open_record(value, RECORD_GUARD);
	struct guard g = { .version = value->version };
	uint8_t state = reader_u8(&r);

	if (state > KEY_DEL)
		return -EBADMSG;
	g.at.state = (enum key_state)state;
	g.at.directory = take_number(&r);
	g.at.seq = take_number(&r);
	take_name(&r, g.at.name);
	if (!reader_done(&r) || !place_is_good(&g.at))
		return -EBADMSG;
	*ret_guard = g;
	return 0;
}

int record_encode_shadow(const struct shadow *shadow, struct buffer *b)
{
	size_t size = strlen(shadow->name);

	if (!shadow->directory || shadow->directory > NUMBER_MAX || !size || !name_is_good(shadow->name, size))
		return -EINVAL;
	put_head(b, RECORD_SHADOW);
	buffer_append_le64(b, shadow->directory);
	put_name(b, shadow->name);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_shadow(const struct store_value *value, struct shadow *ret_shadow)
{
	struct reader r = open_record(value, RECORD_SHADOW);
	struct shadow s = { 0 };

	s.directory = take_number(&r);
	take_name(&r, s.name);
	if (!reader_done(&r) || !s.directory || !s.name[0])
		return -EBADMSG;
	*ret_shadow = s;
	return 0;
}

/* ---- rows of the trash -------------------------------------------------- */

int record_encode_trash(const struct trash_row *row, struct buffer *b)
{
	if (row->batch > NUMBER_MAX || row->cause < ITEM_REMOVED || row->cause > ITEM_TEMPORARY || !row->key.size ||
	    row->key.size > KEY_MAX)
		return -EINVAL;
	put_head(b, RECORD_TRASH);
	buffer_append_u8(b, row->cause);
	buffer_append_le32(b, row->uid);
	buffer_append_le64(b, row->batch);
	buffer_append_le16(b, row->key.size);
	buffer_append(b, row->key.bytes, row->key.size);
	return b->failed ? -ENOMEM : 0;
}

int record_decode_trash(const struct key_codec *c, const struct store_value *value, struct trash_row *ret_row)
{
	struct reader r = open_record(value, RECORD_TRASH);
	uint8_t cause = reader_u8(&r);
	uint32_t uid = reader_le32(&r);
	uint64_t batch = take_number(&r);
	size_t key_size = reader_le16(&r);
	const uint8_t *key = reader_take(&r, key_size);
	struct key_parts parts;

	if (!reader_done(&r) || cause < ITEM_REMOVED || cause > ITEM_TEMPORARY)
		return -EBADMSG;
	if (key_parse(c, key, key_size, &parts) < 0 || parts.kind != KEY_KIND_ITEM || parts.state != KEY_DEL)
		return -EBADMSG;
	ret_row->cause = cause;
	ret_row->uid = uid;
	ret_row->batch = batch;
	return key_from_bytes(c, key, key_size, &ret_row->key);
}

/* ---- batches ------------------------------------------------------------ */

static bool batch_is_good(const struct batch *batch)
{
	return batch->seq && batch->seq <= NUMBER_MAX && batch->last_seq <= NUMBER_MAX &&
	       batch->count <= NUMBER_MAX && batch->bytes <= NUMBER_MAX &&
	       batch->restored <= NUMBER_MAX && batch->directory <= NUMBER_MAX;
}

int record_encode_batch(const struct batch *batch, struct buffer *b)
{
	uint8_t *command;

	if (!batch_is_good(batch))
		return -EINVAL;
	put_head(b, RECORD_BATCH);
	buffer_append_u8(b, (batch->undone ? BATCH_UNDONE : 0) | (batch->purge ? BATCH_PURGE : 0));
	buffer_append_le64(b, batch->seq);
	buffer_append_le64(b, batch->last_seq);
	buffer_append_le64(b, batch->count);
	buffer_append_le64(b, batch->bytes);
	buffer_append_le64(b, batch->restored);
	buffer_append_le64(b, batch->directory);
	buffer_append_le32(b, batch->uid);
	buffer_append_le32(b, batch->session);
	buffer_append_le32(b, batch->group);
	command = buffer_append(b, NULL, ITEM_COMMAND_MAX);
	if (!command)
		return -ENOMEM;
	put_command(command, batch->command);
	return 0;
}

int record_decode_batch(const struct store_value *value, struct batch *ret_batch)
{
	struct reader r = open_record(value, RECORD_BATCH);
	struct batch batch = { .version = value->version };
	uint8_t flags = reader_u8(&r);
	const uint8_t *command;

	batch.undone = flags & BATCH_UNDONE;
	batch.purge = flags & BATCH_PURGE;
	batch.seq = reader_le64(&r);
	batch.last_seq = reader_le64(&r);
	batch.count = reader_le64(&r);
	batch.bytes = reader_le64(&r);
	batch.restored = reader_le64(&r);
	batch.directory = reader_le64(&r);
	batch.uid = reader_le32(&r);
	batch.session = reader_le32(&r);
	batch.group = reader_le32(&r);
	command = reader_take(&r, ITEM_COMMAND_MAX);
	if (!reader_done(&r) || flags & ~(BATCH_UNDONE | BATCH_PURGE) || !get_command(command, batch.command) ||
	    !batch_is_good(&batch))
		return -EBADMSG;
	*ret_batch = batch;
	return 0;
}

/* ---- counters and the store's own settings ------------------------------ */

void record_encode_counters(const int64_t counters[STORE_COUNTERS_MAX], uint8_t ret_bytes[RECORD_COUNTERS_SIZE])
{
	for (size_t i = 0; i < STORE_COUNTERS_MAX; i++)
		util_put_le64(ret_bytes + 8 * i, (uint64_t)counters[i]);
}

int record_decode_counters(const struct store_value *value, int64_t ret_counters[STORE_COUNTERS_MAX])
{
	if (value->attrs_size != RECORD_COUNTERS_SIZE || value->content_size)
		return -EBADMSG;
	for (size_t i = 0; i < STORE_COUNTERS_MAX; i++)
		ret_counters[i] = (int64_t)util_get_le64(value->attrs + 8 * i);
	return 0;
}

void record_encode_ids(uint64_t next, uint8_t ret_bytes[RECORD_IDS_SIZE])
{
	ret_bytes[0] = RECORD_FORMAT;
	ret_bytes[1] = RECORD_IDS;
	util_put_le64(ret_bytes + RECORD_HEAD_SIZE, next);
}

int record_decode_ids(const struct store_value *value, uint64_t *ret_next)
{
	struct reader r = open_record(value, RECORD_IDS);
	uint64_t next = take_number(&r);

	if (!reader_done(&r) || next < KEY_ID_FIRST)
		return -EBADMSG;
	*ret_next = next;
	return 0;
}

void record_encode_clock(const struct record_clock *clock, uint8_t ret_bytes[RECORD_CLOCK_SIZE])
{
	ret_bytes[0] = RECORD_FORMAT;
	ret_bytes[1] = RECORD_CLOCK;
	ret_bytes[2] = clock->mount;
	util_put_le64(ret_bytes + 3, clock->last_seq);
}

int record_decode_clock(const struct store_value *value, struct record_clock *ret_clock)
{
	struct reader r = open_record(value, RECORD_CLOCK);
	uint8_t mount = reader_u8(&r);
	uint64_t last_seq = take_number(&r);

	if (!reader_done(&r))
		return -EBADMSG;
	ret_clock->mount = mount;
	ret_clock->last_seq = last_seq;
	return 0;
}
