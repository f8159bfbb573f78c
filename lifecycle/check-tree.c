/*
 * check-tree.c - directories and what hangs in them: items, guards, names with
 * their LINK, shadows, xattrs, and the shape of the tree.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "lifecycle/check.h"
#include "lifecycle/damage.h"
#include "lifecycle/repair.h"

static bool places_equal(const struct place *a, const struct place *b)
{
	return a->directory == b->directory && a->state == b->state && a->seq == b->seq &&
	       strcmp(a->name, b->name) == 0;
}

/* ---- one item ----------------------------------------------------------- */

static void xattrs_fix(struct check *c, const struct place *at, int result)
{
	check_fix_read(c, result,
		       &(struct fix){ .kind = FIX_XATTRS, .at = *at, .id = at->name[0] ? 0 : c->link });
}

static int check_xattr_list(struct check *c, const struct place *at, const uint8_t *list, size_t size)
{
	const uint8_t *value;
	const char *name;
	size_t position = 0, value_size;
	int result;

	while ((result = record_xattr_next(list, size, &position, &name, &value, &value_size)) > 0)
		;
	if (result < 0) {
		check_problem(c, at, "its extended attributes are not readable");
		xattrs_fix(c, at, result);
	}
	return 0;
}

/* Of an item or a LINK: both may have their xattrs apart. */
static int check_item_xattrs(struct check *c, const struct place *at, const struct item *item)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	const uint8_t *list;
	size_t size;
	int result;

	if (!(item->flags & ITEM_XATTR_APART))
		return check_xattr_list(c, at, item->xattrs, item->xattrs_size);
	result = marks_add(&c->xattrs, &(struct mark){ .id = item->id });
	if (result)
		return result;
	result = record_get_xattrs(c->store, item->id, &value, &list, &size);
	if (result == STORE_ABSENT || check_is_damage(result)) {
		check_problem(c, at, "its extended attributes, kept apart, are %s", check_words(result));
		xattrs_fix(c, at, result);
		return 0;
	}
	return result ? result : check_xattr_list(c, at, list, size);
}

/* A directory's guard says where it is: it must be where we are. */
static int check_directory_item(struct check *c, const struct place *at, const struct item *item)
{
	struct mark mark = {
		.id = item->id,
		.directory = at->directory,
		.number = item->directory.subdirectories,
		.flags = MARK_DIRECTORY | (at->state == KEY_ACT ? MARK_LIVE : 0),
	};
	struct shadow shadow;
	struct guard guard;
	uint64_t version;
	int result = record_get_guard(c->store, item->id, &guard);

	if (result == STORE_ABSENT || check_is_damage(result)) {
		if (result == STORE_ABSENT)
			check_problem(c, at, "the directory has no guard");
		else
			check_problem(c, at, "the guard of the directory is %s", check_words(result));
		check_fix_read(c, result, &(struct fix){ .kind = FIX_GUARD, .at = *at, .id = item->id });
	} else if (result)
		return result;
	else if (!places_equal(&guard.at, at))
		check_problem(c, at,
			      "the guard of the directory says that it is in directory %" PRIu64
			      " as '%s'%s",
			      guard.at.directory, guard.at.name,
			      guard.at.state == KEY_DEL ? ", deleted" : "");
	if (at->state == KEY_ACT && item->flags & ITEM_SHADOWED) {
		result = record_get_shadow(c->store, at->directory, at->name, &shadow, &version);
		if (result == STORE_ABSENT) {
			check_problem(c, at,
				      "missing shadow: something may have been deleted below this directory, but "
				      "the trash above it does not show it");
			check_fix(c, &(struct fix){ .kind = FIX_SHADOW, .id = item->id });
		} else if (result && !check_is_damage(result))
			return result; /* a damaged one is told where it stands */
	}
	return marks_add(&c->directories, &mark);
}

static void check_numbers(struct check *c, const struct place *at, const struct item *item)
{
	if (item->id != KEY_ID_ROOT && (item->id < KEY_ID_FIRST || item->id >= c->next_id))
		check_problem(c, at, "its id %" PRIu64 " was never given out", item->id);
	if (item->body && (item->body < KEY_ID_FIRST || item->body >= c->next_id))
		check_problem(c, at, "the id %" PRIu64 " of its body was never given out", item->body);
	if (item->body && !S_ISREG(item->mode))
		check_problem(c, at, "it has a body, but is not a regular file");
	if (at->state == KEY_ARC)
		check_problem(c, at, "it is in a state that this version never writes");
}

static void count_item(struct check *c, const struct place *at, const struct item *item)
{
	bool live = at->state == KEY_ACT;

	if (live)
		c->counters[COUNTER_LIVE_ITEMS]++;
	else if (item->deletion.cause != ITEM_TEMPORARY)
		c->counters[COUNTER_TRASH_ITEMS]++;
	if (S_ISREG(item->mode) && !(item->flags & ITEM_REFERENCE))
		c->counters[live ? COUNTER_LIVE_BYTES : COUNTER_TRASH_BYTES] += (int64_t)item->size;
}

/* What a name and a LINK have in common. */
static int check_contents(struct check *c, const struct place *at, const struct item *item)
{
	int result = check_item_xattrs(c, at, item);

	return result || !item->body ? result : check_body(c, at, item);
}

static int check_item(struct check *c, const struct place *at, const struct item *item)
{
	struct mark mark = {
		.id = item->id,
		.directory = at->directory,
		.flags = (at->state == KEY_ACT ? MARK_LIVE : 0) |
			 (item->flags & ITEM_REFERENCE ? MARK_REFERENCE : 0),
	};
	int result;

	c->result.items++;
	check_numbers(c, at, item);
	count_item(c, at, item);
	result = marks_add(&c->names, &mark);
	if (!result && item->body && !(item->flags & ITEM_REFERENCE))
		result = marks_add(&c->bodies, &(struct mark){ .id = item->body, .directory = item->id });
	if (!result && S_ISDIR(item->mode))
		result = check_directory_item(c, at, item);
	if (!result && at->state == KEY_DEL)
		result = check_deleted(c, at, item);
	if (!result && !(item->flags & ITEM_REFERENCE))
		result = check_contents(c, at, item);
	return result;
}

/* ---- one partition ------------------------------------------------------ */

struct partition {
	uint64_t id;
	struct place self; /* where its own item is; for telling */
	bool shadowed; /* its own item says so */
	bool live; /* it is where live directories are */
	bool marks_needed; /* something deleted, or a shadow, stands in it */
	uint32_t subdirectories;
};

/* Where it is needed it is found missing, and made, once the wrong one is gone. */
static void drop_row(struct check *c, const struct store_row *row)
{
	struct fix fix = { .kind = FIX_DELETE, .damaged = row->damaged };

	if (key_from_bytes(store_codec(c->store), row->key, row->key_size, &fix.key) == 0)
		check_fix(c, &fix);
}

static int check_shadow(struct check *c, const struct store_row *row, const struct partition *p)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place at = { .directory = p->id, .state = KEY_ACT };
	struct key_parts parts;
	struct shadow shadow;
	struct item item;
	int result;

	if (row->damaged || key_parse(store_codec(c->store), row->key, row->key_size, &parts) ||
	    record_decode_shadow(&row->value, &shadow) ||
	    !key_name_matches(store_codec(c->store), &parts, shadow.name)) {
		check_problem(c, &p->self, "a shadow in this directory is damaged");
		drop_row(c, row);
		return 0;
	}
	memcpy(at.name, shadow.name, sizeof(at.name));
	result = record_get_item(c->store, &at, true, &value, &item);
	if (result == STORE_ABSENT || (!result && (item.id != shadow.directory || !S_ISDIR(item.mode)))) {
		check_problem(c, &at, "stale shadow: no directory %" PRIu64 " bears that name",
			      shadow.directory);
		drop_row(c, row);
	} else if (!result && !(item.flags & ITEM_SHADOWED)) {
		check_problem(c, &at, "the directory has a shadow and does not know of it");
		drop_row(c, row);
	}
	return result && result != STORE_ABSENT && !check_is_damage(result) ? result : 0;
}

/* Of a sealed name, what a listing shows in its place. */
static void damaged_item(struct check *c, const struct partition *p, const struct store_row *row,
			 const struct key_parts *parts)
{
	struct place at = { .directory = p->id, .state = parts->state, .seq = parts->seq };
	struct fix fix = { .kind = FIX_DAMAGED };
	struct place shown = at;

	key_unknown_name(store_codec(c->store), parts, at.name);
	damaged_show(&at, shown.name);
	check_problem(c, &shown, "the item is damaged%s",
		      at.name[0] == '/' ? " (its name is sealed)" : "");
	if (key_from_bytes(store_codec(c->store), row->key, row->key_size, &fix.key) == 0)
		check_fix(c, &fix);
}

static int check_row(struct check *c, const struct store_row *row, void *data)
{
	struct partition *p = data;
	struct key_parts parts;
	struct place at;
	struct item item;
	int result = key_parse(store_codec(c->store), row->key, row->key_size, &parts);

	if (result) {
		check_problem(c, &p->self,
			      "a key in this directory is one that no version of ddbfs writes");
		return 0;
	}
	if (parts.kind == KEY_KIND_SHADOW) {
		p->marks_needed = true;
		return check_shadow(c, row, p);
	}
	if (record_row_item(c->store, row, &at, &item)) {
		p->marks_needed |= parts.state == KEY_DEL;
		damaged_item(c, p, row, &parts);
		return 0;
	}
	/* The root's own item is no name of anything. */
	if (p->id == KEY_ID_NONE && item.id == KEY_ID_ROOT) {
		result = check_directory_item(c, &at, &item);
		return result ? result : check_contents(c, &at, &item);
	}
	if (at.state == KEY_DEL && item.deletion.cause != ITEM_TEMPORARY)
		p->marks_needed = true;
	if (at.state == KEY_ACT && S_ISDIR(item.mode))
		p->subdirectories++;
	result = check_item(c, &at, &item);
	return result ? result : check_step(c);
}

/* Where the directory itself is. One without a guard is told here, once, whatever is in it. */
static int partition_load(struct check *c, struct partition *p)
{
	struct tree_directory d;
	struct guard guard;
	int result;

	if (p->id == KEY_ID_NONE)
		return 0;
	result = record_get_guard(c->store, p->id, &guard);
	if (result == STORE_ABSENT) {
		check_problem(c, &p->self, "items in a directory that is not there");
		check_fix(c, &(struct fix){ .kind = FIX_DIRECTORY, .id = p->id });
		return 0;
	}
	if (check_is_damage(result))
		return 0; /* told with the guards */
	if (result)
		return result;
	p->self = guard.at;
	p->live = guard.at.state == KEY_ACT;
	result = tree_load(c->store, p->id, &d);
	if (!result) {
		p->shadowed = d.own.flags & ITEM_SHADOWED;
		tree_release(&d);
	}
	return check_is_damage(result) ? 0 : result;
}

int check_partition(struct check *c, uint64_t directory)
{
	struct partition p = { .id = directory,
			       .self = { .directory = directory, .state = KEY_ACT, .name = "..." } };
	struct key_range range;
	int result = partition_load(c, &p);

	if (result)
		return result;
	key_range_directory(directory, &range);
	result = check_range(c, &range, check_row, &p);
	if (!result && p.marks_needed && p.live && !p.shadowed && directory != KEY_ID_ROOT) {
		check_problem(c, &p.self,
			      "missing shadow: something was deleted in or below this directory, but the "
			      "trash above it does not show it");
		check_fix(c, &(struct fix){ .kind = FIX_SHADOW, .id = directory });
	}
	return result ? result :
			marks_add(&c->subdirectories,
				  &(struct mark){ directory, 0, p.subdirectories, 0 });
}

/* ---- guards ------------------------------------------------------------- */

static int check_guard(struct check *c, const struct store_row *row, void *data)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct key_parts parts;
	struct guard guard;
	struct item item;
	int result = key_parse(store_codec(c->store), row->key, row->key_size, &parts);

	if (result || row->damaged || record_decode_guard(&row->value, &guard)) {
		check_problem_of(c, "(guard)", "the guard of directory %" PRIu64 " is damaged",
				 result ? 0 : parts.id);
		if (!result)
			check_fix(c, &(struct fix){ .kind = FIX_GUARD, .id = parts.id });
		return 0;
	}
	result = record_get_item(c->store, &guard.at, true, &value, &item);
	if (result == STORE_ABSENT || (!result && (item.id != parts.id || !S_ISDIR(item.mode)))) {
		check_problem(c, &guard.at,
			      "guard without item: directory %" PRIu64 " is not there", parts.id);
		check_fix(c, &(struct fix){ .kind = FIX_DIRECTORY, .id = parts.id });
	} else if (result && !check_is_damage(result))
		return result;
	return 0;
}

int check_guards(struct check *c)
{
	struct key_range range;

	key_range_guards(&range);
	return check_range(c, &range, check_guard, NULL);
}

/* ---- names and links ---------------------------------------------------- */

struct links {
	size_t at; /* next of c->names to be looked at */
};

/*
 * The names of one item: one, or several references. Returns how many
 * references there are; *ret_live of them live.
 */
static uint32_t check_names(struct check *c, size_t from, size_t to, uint32_t *ret_live)
{
	const struct mark *first = &c->names.items[from];
	uint32_t references = 0, live = 0;

	for (size_t i = from; i < to; i++) {
		references += c->names.items[i].flags & MARK_REFERENCE ? 1 : 0;
		live += c->names.items[i].flags & MARK_REFERENCE && c->names.items[i].flags & MARK_LIVE ?
				1 :
				0;
	}
	if (to - from > 1 && references < to - from) {
		bool differ = false;

		for (size_t i = from + 1; i < to; i++)
			differ |= (c->names.items[i].flags ^ first->flags) & MARK_LIVE;
		check_problem_item(c, first->directory, first->id,
				   differ ? "the item is in two states: live and deleted (item %" PRIu64
					    ", %zu times)" :
					    "the item stands in two places (item %" PRIu64 ", %zu times)",
				   first->id, to - from);
	}
	*ret_live = live;
	return references;
}

/* Names of items below `id`, which have no LINK. */
static void check_unlinked(struct check *c, struct links *links, uint64_t id)
{
	while (links->at < c->names.count && c->names.items[links->at].id < id) {
		size_t from = links->at;
		const struct mark *mark = &c->names.items[from];
		uint32_t live;

		while (links->at < c->names.count && c->names.items[links->at].id == mark->id)
			links->at++;
		if (check_names(c, from, links->at, &live)) {
			check_problem_item(c, mark->directory, mark->id,
					   "the name refers to item %" PRIu64
					   ", which has no attributes (missing link)",
					   mark->id);
			check_fix(c, &(struct fix){ .kind = FIX_NAMES, .id = mark->id });
		}
	}
}

static void check_link_counts(struct check *c, struct links *links, const struct item *item)
{
	size_t from = links->at;
	uint32_t references, live;

	while (links->at < c->names.count && c->names.items[links->at].id == item->id)
		links->at++;
	references = check_names(c, from, links->at, &live);
	if (!references) {
		check_problem_of(c, "(link)",
				 "item %" PRIu64 " has %" PRIu32 " links and no name refers to it",
				 item->id, item->links_total);
		check_fix(c, &(struct fix){ .kind = FIX_LINK, .id = item->id });
		return;
	}
	if (references < links->at - from)
		check_problem_item(c, c->names.items[from].directory, item->id,
				   "the item is a name's own and a link's as well");
	if (references < item->links_total)
		check_problem_item(c, c->names.items[from].directory, item->id,
				   "missing link reference: the file has %" PRIu32
				   " names, %" PRIu32 " were found",
				   item->links_total, references);
	else if (references > item->links_total || live != item->links_live)
		check_problem_item(c, c->names.items[from].directory, item->id,
				   "wrong link count: %" PRIu32 " names of which %" PRIu32
				   " live, found %" PRIu32 " of which %" PRIu32 " live",
				   item->links_total, item->links_live, references, live);
	if (references != item->links_total || live != item->links_live)
		check_fix(c, &(struct fix){
				     .kind = FIX_LINKS, .id = item->id, .names = references, .live = live });
}

static void count_link(struct check *c, const struct item *item)
{
	if (S_ISREG(item->mode))
		c->counters[item->links_live ? COUNTER_LIVE_BYTES : COUNTER_TRASH_BYTES] +=
			(int64_t)item->size;
}

/* A LINK has no name of its own: it is told of by one that refers to it, looked for when there is something to tell. */
static struct place link_place(struct check *c, const struct links *links, uint64_t id)
{
	struct place at = { .state = KEY_ACT };

	c->link = id;
	if (links->at < c->names.count && c->names.items[links->at].id == id)
		at.directory = c->names.items[links->at].directory;
	return at;
}

static int check_link(struct check *c, const struct store_row *row, void *data)
{
	struct links *links = data;
	struct key_parts parts;
	struct place at;
	struct item item;
	int result = key_parse(store_codec(c->store), row->key, row->key_size, &parts);

	if (result)
		return 0;
	check_unlinked(c, links, parts.id);
	at = link_place(c, links, parts.id);
	if (row->damaged || record_decode_item(&row->value, &item) || item.id != parts.id) {
		check_problem(c, &at, "attributes of a file with several names are damaged");
		check_fix(c, &(struct fix){ .kind = FIX_NAMES, .id = parts.id });
		while (links->at < c->names.count && c->names.items[links->at].id == parts.id)
			links->at++;
		return 0;
	}
	check_numbers(c, &at, &item);
	count_link(c, &item);
	check_link_counts(c, links, &item);
	if (item.body)
		result = marks_add(&c->bodies, &(struct mark){ .id = item.body, .directory = item.id });
	if (!result)
		result = check_contents(c, &at, &item);
	return result ? result : check_step(c);
}

int check_links(struct check *c)
{
	struct links links = { 0 };
	struct key_range range;
	int result;

	marks_sort(&c->names);
	key_range_links(&range);
	result = check_range(c, &range, check_link, &links);
	if (!result)
		check_unlinked(c, &links, UINT64_MAX);
	return result;
}

/* ---- xattrs ------------------------------------------------------------- */

static int check_xattr_row(struct check *c, const struct store_row *row, void *data)
{
	struct key_parts parts;
	size_t i;

	if (key_parse(store_codec(c->store), row->key, row->key_size, &parts))
		return 0;
	i = marks_find(&c->xattrs, parts.id);
	if (i == c->xattrs.count || c->xattrs.items[i].id != parts.id)
		check_problem_of(c, "(extended attributes)",
				 "extended attributes of item %" PRIu64 ", which is not there",
				 parts.id);
	if (i == c->xattrs.count || c->xattrs.items[i].id != parts.id)
		drop_row(c, row);
	return check_step(c);
}

int check_xattrs(struct check *c)
{
	struct key_range range;

	marks_sort(&c->xattrs);
	key_range_xattrs(&range);
	return check_range(c, &range, check_xattr_row, NULL);
}

/* ---- shape -------------------------------------------------------------- */

static void check_subdirectories(struct check *c)
{
	for (size_t i = 0; i < c->directories.count; i++) {
		const struct mark *d = &c->directories.items[i];
		size_t at = marks_find(&c->subdirectories, d->id);
		uint32_t found = 0;

		if (at < c->subdirectories.count && c->subdirectories.items[at].id == d->id)
			found = c->subdirectories.items[at].number;
		if (found != d->number)
			check_problem_item(c, d->directory, d->id,
					   "the directory counts %" PRIu32
					   " sub-directories, %" PRIu32 " were found",
					   d->number, found);
		if (found != d->number)
			check_fix(c, &(struct fix){ .kind = FIX_SUBDIRECTORIES, .id = d->id });
	}
}

static struct mark *directory_mark(struct check *c, uint64_t id)
{
	size_t i = marks_find(&c->directories, id);

	return i < c->directories.count && c->directories.items[i].id == id ? &c->directories.items[i] :
									      NULL;
}

/* Up from one directory until something already reached; then the same way again, marking it. */
static void check_reach(struct check *c, struct mark *start)
{
	struct mark *d = start;
	bool reached;

	while (d && !(d->flags & (MARK_REACHED | MARK_WALKED)) && d->id != KEY_ID_ROOT) {
		d->flags |= MARK_WALKED;
		d = directory_mark(c, d->directory);
	}
	reached = d && (d->id == KEY_ID_ROOT || d->flags & MARK_REACHED);
	if (d && !reached)
		check_problem_item(c, start->directory, start->id, "the directory lies inside itself");
	for (d = start; d && d->flags & MARK_WALKED; d = directory_mark(c, d->directory)) {
		d->flags &= ~(uint32_t)MARK_WALKED;
		d->flags |= MARK_REACHED; /* what is wrong is told once */
	}
}

int check_shape(struct check *c)
{
	marks_sort(&c->directories);
	marks_sort(&c->subdirectories);
	check_subdirectories(c);
	for (size_t i = 0; i < c->directories.count; i++)
		check_reach(c, &c->directories.items[i]);
	return 0;
}
