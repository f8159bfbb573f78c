/*
 * check-path.c - what a fault is told to be of.
 *
 * Of what is live: its path. Of what lies in the trash: the path that shows it
 * there, so that nobody takes a live file of the same name for the damaged one.
 * It is made from keys and guards alone, since records may be what is damaged.
 */
#include <stdio.h>

#include "lifecycle/check.h"
#include "lifecycle/internal.h"

/* The deletion of the name before or after that one: 0 if there is none. */
static uint64_t neighbour(struct store *s, const struct place *at, bool newer, bool readable)
{
	struct store_query query = { .reverse = !newer, .attributes_only = true };
	_cleanup_(store_page_release) struct store_page page = { 0 };
	struct key_parts parts;
	struct place other;
	struct item item;
	struct key after;

	key_range_deleted_name(store_codec(s), at->directory, at->name, &query.range);
	key_item(store_codec(s), at, &after);
	query.after = &after;
	if (store_query(s, &query, &page))
		return 0;
	for (size_t i = 0; i < page.count; i++)
		if ((!readable || !record_row_item(s, &page.rows[i], &other, &item)) &&
		    !key_parse(store_codec(s), page.rows[i].key, page.rows[i].key_size, &parts))
			return parts.seq;
	return 0;
}

/* The name of a deleted item in a view: its own, if it can be read and is the newest such. */
static void shown_name(struct store *s, const struct place *at, char ret_shown[ENTRY_NAME_MAX + 1])
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place live = *at;
	struct item item;
	unsigned digits;

	live.state = KEY_ACT;
	live.seq = 0;
	snprintf(ret_shown, ENTRY_NAME_MAX + 1, "%s", at->name);
	if (!record_get_item(s, at, true, &value, &item) && !neighbour(s, at, true, true)) {
		struct store_value other = { 0 };
		struct guard guard;
		/* In the view of a deleted directory what is live in it comes first. */
		bool taken = !record_get_guard(s, at->directory, &guard) && guard.at.state == KEY_DEL &&
			     !record_get_item(s, &live, true, &other, &item);

		store_value_release(&other);
		if (!taken)
			return;
	}
	digits = entry_name_digits(at->seq, neighbour(s, at, true, false),
				   neighbour(s, at, false, false));
	entry_name_format(at->name, at->seq, digits, ret_shown);
}

/* Puts "/name" before what `path` has. */
static int prepend(char **path, const char *name)
{
	char *longer;

	if (asprintf(&longer, "/%s%s", name, *path ? *path : "") < 0)
		return -ENOMEM;
	free(*path);
	*path = longer;
	return 0;
}

#define DEPTH_MAX 100000 /* more levels are a circle of damaged guards */

int check_trash_path(struct store *s, const struct place *at, char **ret_path)
{
	_cleanup_free_ char *path = NULL;
	struct guard guard = { .at = *at };
	char shown[ENTRY_NAME_MAX + 1];
	size_t deleted = 0; /* bytes at the end of the path: from the outermost deleted name on */
	int result = 0;

	for (unsigned depth = 0; !result && guard.at.directory != KEY_ID_NONE; depth++) {
		snprintf(shown, sizeof(shown), "%s", guard.at.name);
		if (guard.at.state == KEY_DEL)
			shown_name(s, &guard.at, shown);
		result = depth < DEPTH_MAX ? prepend(&path, shown) : -EBADMSG;
		if (!result && guard.at.state == KEY_DEL)
			deleted = strlen(path);
		if (result || guard.at.directory == KEY_ID_ROOT)
			break;
		result = record_get_guard(s, guard.at.directory, &guard);
	}
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (!deleted)
		return CHECK_PATH_LIVE;
	if (asprintf(ret_path, "%.*s/%s%s", (int)(strlen(path) - deleted), path,
		     store_trash_name(s), path + strlen(path) - deleted) < 0)
		return -ENOMEM;
	return 0;
}
