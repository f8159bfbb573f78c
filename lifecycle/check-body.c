/*
 * check-body.c - content apart from its item: every chunk is read, so that its
 * seal is verified; every body must have one owner.
 */
#include <inttypes.h>

#include "lifecycle/check.h"
#include "lifecycle/repair.h"

/* ---- reading ------------------------------------------------------------ */

static bool all_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* One block at `offset`; *ret_past: bytes other than zero stand behind the end of the file. */
static int read_block(struct check *c, const struct item *item, uint64_t offset, size_t size, bool *ret_past)
{
	uint64_t inside = item->size > offset ? util_min(item->size - offset, (uint64_t)size) : 0;
	int result = store_body_read(c->store, item->body, offset, c->block, size);

	if (result)
		return result;
	*ret_past = !all_zero(c->block + inside, size - inside);
	c->result.bytes += inside;
	return check_step(c);
}

static void damaged_content(struct check *c, const struct place *at, const struct item *item,
			    uint64_t offset, int error)
{
	if (check_is_aside(c, at->directory)) {
		check_set_aside(c, at, "bytes from %" PRIu64 " on cannot be read", offset);
		return;
	}
	c->result.unreadable += error == -EIO;
	check_problem(c, at,
		      error == -EIO ?
			      "its content cannot be read: the disk gives an error for bytes from %" PRIu64
			      " on (body %" PRIu64 ")" :
			      "its content is damaged: bytes from %" PRIu64
			      " on cannot be read (body %" PRIu64 ")",
		      offset, item->body);
	check_fix(c, &(struct fix){
			     .kind = FIX_ASIDE, .at = *at, .id = item->id, .body = item->body, .size = offset });
}

/* From *offset, which is where it ended, or what is wrong begins at or behind. */
static int read_from(struct check *c, const struct item *item, uint64_t *offset, bool *ret_past)
{
	*ret_past = false;
	for (;;) {
		size_t size;
		int result = store_body_seek(c->store, item->body, *offset, true, offset);

		if (result || *offset >= INT64_MAX)
			return result;
		size = (size_t)util_min((uint64_t)CHECK_BLOCK, INT64_MAX - *offset);
		result = read_block(c, item, *offset, size, ret_past);
		if (result || *ret_past)
			return result;
		*offset += size;
	}
}

int check_reread_body(struct check *c, uint64_t body, uint64_t offset)
{
	struct item item = { .body = body, .size = INT64_MAX };
	bool past;

	return read_from(c, &item, &offset, &past);
}

int check_body(struct check *c, const struct place *at, const struct item *item)
{
	uint64_t offset = 0;
	bool past;
	int result = read_from(c, item, &offset, &past);

	c->result.bodies++;
	if (check_is_damage(result)) {
		damaged_content(c, at, item, offset, result);
		return 0;
	}
	if (!result && past) {
		check_problem(c, at, "its body %" PRIu64 " holds data behind the end of the file",
			      item->body);
		check_fix(c, &(struct fix){ .kind = FIX_TRUNCATE, .id = item->body, .size = item->size });
	}
	return result;
}

/* ---- owners ------------------------------------------------------------- */

static int check_free_row(struct check *c, const struct store_row *row, void *data)
{
	struct key_parts parts;

	if (key_parse(store_codec(c->store), row->key, row->key_size, &parts))
		return 0;
	if (parts.kind == KEY_KIND_FREE_BODY)
		return marks_add(&c->freed, &(struct mark){ .id = parts.id });
	if (!row->damaged)
		return 0;
	check_problem_of(c, "(free space)",
			 "a record of freed space in segment %" PRIu64 " is damaged", parts.id);
	check_fix(c, &(struct fix){ .kind = FIX_FREE });
	return 0;
}

int check_free(struct check *c)
{
	struct key_range range;
	int result;

	key_range_free(&range);
	result = check_range(c, &range, check_free_row, NULL);
	marks_sort(&c->freed);
	return result;
}

static bool marks_have(const struct marks *m, uint64_t id)
{
	size_t i = marks_find(m, id);

	return i < m->count && m->items[i].id == id;
}

/* `names` is sorted by now: the owner is found by its id. */
static void owner_problem(struct check *c, const struct mark *body, const char *what)
{
	size_t i = marks_find(&c->names, body->directory);
	uint64_t directory = i < c->names.count && c->names.items[i].id == body->directory ?
				     c->names.items[i].directory :
				     KEY_ID_NONE;

	check_problem_item(c, directory, body->directory, "body %" PRIu64 " %s", body->id, what);
}

static void check_owners(struct check *c)
{
	for (size_t i = 0; i < c->bodies.count; i++) {
		const struct mark *body = &c->bodies.items[i];

		if (i && body[-1].id == body->id)
			owner_problem(c, body, "belongs to two items");
		if (marks_have(&c->freed, body->id))
			owner_problem(c, body, "is in use and on the list of what is to be freed");
	}
}

int check_bodies(struct check *c)
{
	marks_sort(&c->bodies);
	check_owners(c);
	for (size_t i = 0; i < c->partitions.count; i++) {
		uint64_t body = c->partitions.items[i].id;

		if (marks_have(&c->bodies, body) || marks_have(&c->freed, body))
			continue;
		check_problem_of(c, "(body)",
				 "orphan body %" PRIu64 ": no item has it, and it is not to be freed",
				 body);
		check_fix(c, &(struct fix){ .kind = FIX_BODY, .id = body });
	}
	return 0;
}
