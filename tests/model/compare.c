/*
 * compare.c - the store against the model, directory by directory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/util.h"
#include "tests/model/subject.h"

#define TOLERANCE_NS \
	(MODEL_SECOND / 20) /* the store's clock moves on a little with each number drawn */

static bool about(int64_t a, int64_t b)
{
	return a == b || (a < b ? b - a : a - b) < TOLERANCE_NS;
}

static int64_t time_of(const struct timespec *t)
{
	return t->tv_sec * MODEL_SECOND + t->tv_nsec;
}

/* ---- attributes --------------------------------------------------------------------- */

static void compare_content(struct subject *s, const struct model_node *node, const char *name)
{
	uint8_t bytes[16384];
	size_t count;
	int result = file_read(s->namei, &s->where, node->id, 0, bytes, sizeof(bytes), &count);

	CK(s, !result, "%s is not read: %d", name, result);
	CK(s, count == node->size, "%s has %zu bytes, not %u", name, count, node->size);
	for (uint32_t i = 0; i < count; i++)
		CK(s, bytes[i] == subject_byte(node->token, i), "byte %u of %s is another", i, name);
}

static void compare_directory_times(struct subject *s, struct model_node *node, const struct item *item)
{
	CK(s, about(time_of(&item->mtime), node->mtime_ns),
	   "directory %s has mtime %" PRId64 ", not %" PRId64, item->name, time_of(&item->mtime),
	   node->mtime_ns);
	node->mtime_ns = time_of(&item->mtime);
	if (node->saved_batch)
		node->saved_mtime_ns = time_of(&item->directory.saved_mtime);
}

static void compare_item(struct subject *s, int name, const struct item *own)
{
	struct model_node *node = &s->m->nodes[s->m->names[name].node];
	struct store_value value = { 0 };
	struct item link, item = *own;

	if (item.flags & ITEM_REFERENCE) {
		CK(s, !record_get_link(s->store, item.id, true, &value, &link),
		   "%s has no link record", own->name);
		item = link;
	}
	CK(s, S_ISDIR(item.mode) == node->directory && (item.mode & 07777) == node->mode,
	   "%s has mode %o, not %o", own->name, item.mode, node->mode);
	CK(s, item.uid == node->uid, "%s is of user %u", own->name, item.uid);
	if (node->directory) {
		compare_directory_times(s, node, own);
	} else {
		int live = model_links(s->m, s->m->names[name].node, true);
		int total = model_links(s->m, s->m->names[name].node, false);

		CK(s, item.size == node->size, "%s has size %" PRIu64 ", not %u", own->name,
		   item.size, node->size);
		CK(s, time_of(&item.mtime) == node->mtime_ns, "%s has another mtime", own->name);
		if (own->flags & ITEM_REFERENCE)
			CK(s, (int)item.links_live == live && (int)item.links_total == total,
			   "%s has %u live links of %u, not %d of %d", own->name, item.links_live,
			   item.links_total, live, total);
		else
			CK(s, total == 1, "%s has one name, not %d", own->name, total);
		compare_content(s, node, own->name);
	}
	store_value_release(&value);
}

static void compare_deletion(struct subject *s, int name, const struct item *item)
{
	const struct model_name *n = &s->m->names[name];
	static const uint8_t causes[] = {
		[MODEL_REMOVED] = ITEM_REMOVED,		 [MODEL_REPLACED] = ITEM_REPLACED,
		[MODEL_TEMPORARY_NAME] = ITEM_TEMPORARY, [MODEL_EXPIRED] = ITEM_EXPIRED,
		[MODEL_EVICTED] = ITEM_EVICTED,
	};
	const struct deletion *d = &item->deletion;
	char command[32];

	snprintf(command, sizeof(command), "command%u", n->command);
	CK(s, d->uid == n->uid && d->gid == n->uid, "%s was deleted by %u, not %u", item->name,
	   d->uid, n->uid);
	CK(s, !strcmp(d->command, command), "%s was deleted by %s, not %s", item->name, d->command,
	   command);
	CK(s, d->cause == causes[n->cause], "%s has cause %u", item->name, d->cause);
	CK(s, d->replaced_by == n->replaced_by, "%s was replaced by another", item->name);
	CK(s, d->batch == s->m->batches[n->batch].seq, "%s is of another batch", item->name);
	CK(s, about(d->expires_ns, n->expires_ns), "%s expires %" PRId64 ", not %" PRId64,
	   item->name, d->expires_ns, n->expires_ns);
	CK(s, !(d->flags & DELETION_PURGED) == !n->purged, "%s is%s purged", item->name,
	   d->flags & DELETION_PURGED ? "" : " not");
}

/* ---- rows ----------------------------------------------------------------------------- */

static int find_row(const struct subject *s, int directory, const struct place *at)
{
	model_each(s->m, directory, n)
	{
		const struct model_name *x = &s->m->names[n];

		if (x->deleted == (at->state == KEY_DEL) && (!x->deleted || x->seq == at->seq) &&
		    !strcmp(model_text(x->text), at->name))
			return n;
	}
	return 0;
}

static unsigned compare_range(struct subject *s, int directory, struct store_query *query)
{
	struct key next;
	unsigned count = 0;
	bool more = true;

	while (more) {
		struct store_page page = { 0 };

		CK(s, !store_query(s->store, query, &page), "a query");
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item item;
			int name;

			CK(s, !record_row_item(s->store, &page.rows[i], &at, &item), "a row is no item");
			name = find_row(s, directory, &at);
			CK(s, name, "%s%s should not be there",
			   at.state == KEY_DEL ? "deleted " : "", at.name);
			CK(s, item.id == s->m->nodes[s->m->names[name].node].id,
			   "%s is another item", at.name);
			compare_item(s, name, &item);
			if (at.state == KEY_DEL)
				compare_deletion(s, name, &item);
			count++;
		}
		more = page.more;
		next = page.next;
		query->after = &next;
		store_page_release(&page);
	}
	return count;
}

static void compare_rows(struct subject *s, int directory)
{
	struct store_query live = { 0 }, deleted = { 0 };
	unsigned count = 0, expected = 0;

	model_each(s->m, directory, n) expected++;
	key_range_live(s->m->nodes[directory].id, &live.range);
	key_range_deleted(s->m->nodes[directory].id, &deleted.range);
	count = compare_range(s, directory, &live) + compare_range(s, directory, &deleted);
	CK(s, count == expected, "a directory has %u rows, not %u", count, expected);
}

/* ---- what the view shows ------------------------------------------------------------------ */

struct seen {
	struct subject *s;
	int directory;
	bool live;
	unsigned entries;
	struct seen_entry {
		struct place at;
		bool shadow;
		char shown[ENTRY_NAME_MAX + 1];
	} all[512];
};

static bool take_entry(void *data, const struct entry *entry, const struct key *key)
{
	struct seen *seen = data;
	struct subject *s = seen->s;
	struct model_standing st;
	int name = find_row(s, seen->directory, &entry->at);

	CK(s, seen->entries < 512, "a long listing");
	CK(s, name, "the view shows %s, which is not there", entry->shown);
	CK(s, entry->item.id == s->m->nodes[s->m->names[name].node].id, "the view shows another %s",
	   entry->shown);
	seen->all[seen->entries].at = entry->at;
	seen->all[seen->entries].shadow = entry->shadow;
	snprintf(seen->all[seen->entries++].shown, sizeof(seen->all[0].shown), "%s", entry->shown);
	st = model_stand(s->m, name);
	if (entry->shadow) {
		CK(s, seen->live && !st.deleted, "the view shows %s as a way", entry->shown);
		return false;
	}
	CK(s, st.deleted && st.visible, "the view shows %s, which is hidden", entry->shown);
	CK(s, about(entry->expires_ns, st.expires_ns), "%s is shown until %" PRId64 ", not %" PRId64,
	   entry->shown, entry->expires_ns, st.expires_ns);
	return false;
}

static bool shows_below(const struct model *m, int directory)
{
	model_each(m, directory, n)
	{
		struct model_standing st = model_stand(m, n);

		if ((st.deleted && st.visible) || (!st.deleted && m->nodes[m->names[n].node].directory &&
						   shows_below(m, m->names[n].node)))
			return true;
	}
	return false;
}

/* Each under a name of its own that leads back to it; the newest under its very name. */
static void compare_shown(const struct seen *seen)
{
	struct subject *s = seen->s;

	for (unsigned i = 0; i < seen->entries; i++) {
		const struct seen_entry *e = &seen->all[i];
		struct entry found = { 0 };
		bool newest = true;
		int result;

		/* A way gives way to an entry of its name: it is still SUB/.trash. */
		if (e->shadow)
			continue;
		result = lifecycle_find(s->life, s->m->nodes[seen->directory].id, e->shown, &found);
		CK(s, !result, "%s is shown but not found: %d", e->shown, result);
		CK(s, !found.shadow && found.at.seq == e->at.seq && !strcmp(found.at.name, e->at.name),
		   "%s leads to another", e->shown);
		entry_release(&found);
		for (unsigned k = 0; k < seen->entries; k++) {
			CK(s, k == i || seen->all[k].shadow || strcmp(seen->all[k].shown, e->shown),
			   "%s is shown twice", e->shown);
			newest &= seen->all[k].shadow || strcmp(seen->all[k].at.name, e->at.name) ||
				  seen->all[k].at.state != e->at.state ||
				  seen->all[k].at.seq <= e->at.seq;
		}
		if (newest && e->at.state == KEY_DEL && seen->live)
			CK(s, !strcmp(e->shown, e->at.name), "the newest %s is shown as %s",
			   e->at.name, e->shown);
	}
}

static bool shows_entry_named(const struct model *m, int directory, int text)
{
	model_each(m, directory, n)
	{
		struct model_standing st = model_stand(m, n);

		if (m->names[n].text == text && st.deleted && st.visible)
			return true;
	}
	return false;
}

static void compare_view(struct subject *s, int directory)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	unsigned expected = 0, shown = 0;
	int result;

	CK(s, seen, "memory");
	*seen = (struct seen){ .s = s,
			       .directory = directory,
			       .live = model_is_live_directory(s->m, directory) };
	result = lifecycle_list(s->life, s->m->nodes[directory].id, NULL, take_entry, seen);
	CK(s, !result, "a view is not listed: %d", result);
	model_each(s->m, directory, n)
	{
		struct model_standing st = model_stand(s->m, n);
		bool way = !st.deleted && s->m->nodes[s->m->names[n].node].directory &&
			   shows_below(s->m, s->m->names[n].node) &&
			   !shows_entry_named(s->m, directory, s->m->names[n].text);
		bool found = false;

		expected += st.deleted && st.visible;
		for (unsigned i = 0; i < seen->entries && way && !found; i++)
			found = seen->all[i].shadow &&
				!strcmp(seen->all[i].at.name, model_text(s->m->names[n].text));
		CK(s, !way || found, "the view does not show the way to what was deleted below %s",
		   model_text(s->m->names[n].text));
	}
	for (unsigned i = 0; i < seen->entries; i++)
		shown += !seen->all[i].shadow;
	CK(s, shown == expected, "the view shows %u entries, not %u", shown, expected);
	compare_shown(seen);
	free(seen);
}

static void compare_below(struct subject *s, int directory)
{
	compare_rows(s, directory);
	compare_view(s, directory);
	model_each(s->m, directory, n) if (s->m->nodes[s->m->names[n].node].directory)
		compare_below(s, s->m->names[n].node);
}

void subject_compare(struct subject *s)
{
	compare_below(s, MODEL_ROOT);
}

void subject_compare_counters(struct subject *s)
{
	struct model_counters mine = model_count(s->m);
	int64_t is[STORE_COUNTERS_MAX];
	const int64_t should[][2] = {
		{ COUNTER_LIVE_ITEMS, mine.live_items },
		{ COUNTER_LIVE_BYTES, mine.live_bytes },
		{ COUNTER_TRASH_ITEMS, mine.trash_items },
		{ COUNTER_TRASH_BYTES, mine.trash_bytes },
		{ COUNTER_DESTROYED_USER, (int64_t)s->m->destroyed[MODEL_BY_USER] },
		{ COUNTER_DESTROYED_EXPIRED, (int64_t)s->m->destroyed[MODEL_BY_EXPIRY] },
		{ COUNTER_DESTROYED_VERSIONS, (int64_t)s->m->destroyed[MODEL_BY_VERSIONS] },
		{ COUNTER_DESTROYED_EVICTED, (int64_t)s->m->destroyed[MODEL_BY_EVICTION] },
		{ COUNTER_RESTORED, (int64_t)s->m->restored },
	};

	CK(s, !record_get_counters(s->store, is), "no counters");
	for (size_t i = 0; i < ARRAY_SIZE(should); i++)
		CK(s, is[should[i][0]] == should[i][1], "counter %d is %" PRId64 ", not %" PRId64,
		   (int)should[i][0], is[should[i][0]], should[i][1]);
}

/* ---- check --------------------------------------------------------------------------------- */

static void on_problem(void *data, const char *path, const char *text)
{
	subject_fail(data, "check: %s: %s", path, text);
}

void subject_check(struct subject *s)
{
	struct check_result checked;
	int result = lifecycle_check(s->store, on_problem, NULL, s, &checked);

	CK(s, !result, "check: %d", result);
}
