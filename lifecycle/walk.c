/*
 * walk.c - everything below a directory, whatever its state.
 *
 * Depth is bounded by memory only: directories yet to be read are a stack of
 * ids, not of calls.
 */
#include <sys/stat.h>

#include "lifecycle/internal.h"

struct walker {
	struct lifecycle *l;
	struct ids todo;
	enum walk (*visit)(void *data, const struct place *at, const struct item *item);
	void *data;
};

static int walk_row(struct walker *w, const struct store_row *row)
{
	struct key_parts parts;
	struct place at;
	struct item item;
	enum walk how;

	/* What cannot be read is passed: check names it. */
	if (key_parse(store_codec(w->l->store), row->key, row->key_size, &parts) ||
	    parts.kind != KEY_KIND_ITEM || record_row_item(w->l->store, row, &at, &item))
		return 0;
	how = w->visit(w->data, &at, &item);
	if (how == WALK_STOP)
		return 1;
	return how == WALK_ON && S_ISDIR(item.mode) ? ids_push(&w->todo, item.id) : 0;
}

static int walk_directory(struct walker *w, uint64_t directory)
{
	struct store_query query = { .attributes_only = true };
	struct store_page page = { 0 };
	struct key next;
	bool more = true;
	int result = 0;

	key_range_directory(directory, &query.range);
	while (more && !result) {
		result = store_query(w->l->store, &query, &page);
		if (result)
			return result;
		for (size_t i = 0; i < page.count && !result; i++)
			result = walk_row(w, &page.rows[i]);
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return result;
}

int walk_below(struct lifecycle *l, uint64_t directory,
	       enum walk (*visit)(void *data, const struct place *at, const struct item *item),
	       void *data)
{
	struct walker w = { .l = l, .visit = visit, .data = data };
	int result = ids_push(&w.todo, directory);

	while (!result && w.todo.count)
		result = walk_directory(&w, w.todo.items[--w.todo.count]);
	free(w.todo.items);
	return result;
}
