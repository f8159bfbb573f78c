/*
 * model.c - nodes, names, what is in force, and where a deleted thing stands.
 */
#include "tests/model/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[MODEL_TEXTS] = { "a", "b", "c", "DEL#a", "a@2026-11-30T16:25:39Z" };

const char *model_text(int text)
{
	static char buffers[4][300];
	static unsigned at;
	char *buffer = buffers[at++ % 4];
	int n = text / MODEL_TEXTS;

	if (!n)
		return texts[text];
	if (n == 1)
		snprintf(buffer, sizeof(buffers[0]), "%s (restored)", texts[text % MODEL_TEXTS]);
	else
		snprintf(buffer, sizeof(buffers[0]), "%s (restored %d)", texts[text % MODEL_TEXTS], n);
	return buffer;
}

void model_init(struct model *m, bool rights, int64_t now_ns)
{
	memset(m, 0, sizeof(*m));
	m->rights = rights;
	m->nodes[MODEL_ROOT] = (struct model_node){
		.id = 1, .directory = true, .mode = rights ? 0777 : 0755, .mask = 0707, .mtime_ns = now_ns
	};
	m->nodes_count = MODEL_ROOT + 1;
	m->names_count = m->batches_count = 1;
}

static void bounded(bool ok, const char *what)
{
	if (ok)
		return;
	printf("# the model is too small: %s\n", what);
	abort();
}

int64_t model_add(int64_t ns, int64_t duration_ns)
{
	int64_t sum;

	return __builtin_add_overflow(ns, duration_ns, &sum) ? MODEL_FOREVER : sum;
}

/* ---- names ------------------------------------------------------------------ */

static void attach(struct model *m, int name, int directory)
{
	m->names[name].directory = directory;
	m->names[name].next = m->nodes[directory].first;
	m->nodes[directory].first = name;
	if (m->nodes[m->names[name].node].directory)
		m->nodes[m->names[name].node].own = name;
}

static void detach(struct model *m, int name)
{
	int *at = &m->nodes[m->names[name].directory].first;

	while (*at != name)
		at = &m->names[*at].next;
	*at = m->names[name].next;
}

int model_name_new(struct model *m, int node, int directory, int text)
{
	bounded(m->names_count < MODEL_NAMES, "names");
	m->names[m->names_count] = (struct model_name){ .node = node, .text = text };
	attach(m, m->names_count, directory);
	return m->names_count++;
}

void model_name_drop(struct model *m, int name)
{
	detach(m, name);
	if (m->nodes[m->names[name].node].own == name)
		m->nodes[m->names[name].node].own = 0;
	m->names[name].node = 0;
}

void model_move(struct model *m, int name, int directory, int text)
{
	struct model_name *n = &m->names[name];

	detach(m, name);
	n->text = text;
	n->deleted = n->purged = n->doomed = false;
	n->batch = n->purge_batch = 0;
	n->seq = 0;
	attach(m, name, directory);
}

int model_find(const struct model *m, int directory, int text)
{
	model_each(m, directory, n) if (m->names[n].text == text && !m->names[n].deleted) return n;
	return 0;
}

int model_links(const struct model *m, int node, bool live_only)
{
	int count = 0;

	for (int n = 1; n < m->names_count; n++)
		count += m->names[n].node == node && !(live_only && m->names[n].deleted);
	return count;
}

void model_touch(struct model *m, int directory)
{
	m->nodes[directory].mtime_ns = m->wall_ns;
}

static int parent_of(const struct model *m, int node)
{
	return node == MODEL_ROOT ? 0 : m->names[m->nodes[node].own].directory;
}

bool model_is_live_directory(const struct model *m, int node)
{
	for (; node != MODEL_ROOT; node = parent_of(m, node))
		if (!m->nodes[node].own || m->names[m->nodes[node].own].deleted)
			return false;
	return true;
}

bool model_is_below(const struct model *m, int node, int ancestor)
{
	for (; node && node != ancestor; node = parent_of(m, node))
		continue;
	return node != 0;
}

/* ---- policies ------------------------------------------------------------------- */

int64_t model_policy(const struct model *m, int directory, enum model_policy which)
{
	static const int64_t usual[MODEL_POLICIES] = {
		[MODEL_RETENTION] = 30 * MODEL_DAY,
		[MODEL_VERSIONS] = 16,
		[MODEL_TEMPORARY] = MODEL_MINUTE,
		[MODEL_GRACE] = 10 * MODEL_MINUTE,
	};

	for (; directory; directory = parent_of(m, directory))
		if (m->nodes[directory].policies & 1u << which)
			return m->nodes[directory].policy[which];
	return usual[which];
}

bool model_any_policy(const struct model *m, enum model_policy which)
{
	for (int i = MODEL_ROOT; i < m->nodes_count; i++)
		if (m->nodes[i].policies & 1u << which)
			return true;
	return false;
}

/* protect implies hold. */
bool model_holds(const struct model *m, int directory)
{
	return model_policy(m, directory, MODEL_HOLD) || model_policy(m, directory, MODEL_PROTECT);
}

static bool is_held_below(const struct model *m, int directory)
{
	if (model_holds(m, directory))
		return true;
	model_each(m, directory, n) if (m->nodes[m->names[n].node].directory &&
					is_held_below(m, m->names[n].node)) return true;
	return false;
}

bool model_is_held(const struct model *m, int name)
{
	const struct model_name *n = &m->names[name];

	return model_holds(m, n->directory) ||
	       (m->nodes[n->node].directory && is_held_below(m, n->node));
}

/* Temporary names are as if they had never been. */
bool model_has_deleted_below(const struct model *m, int directory)
{
	model_each(m, directory, n)
	{
		const struct model_name *x = &m->names[n];

		if (x->deleted ? x->cause != MODEL_TEMPORARY_NAME :
				 m->nodes[x->node].directory && model_has_deleted_below(m, x->node))
			return true;
	}
	return false;
}

/* ---- standing --------------------------------------------------------------------- */

/*
 * Going up from a name: deletions of one batch, one around the other, are one
 * deletion, and the outermost of them says how long it is kept.
 */
struct model_standing model_stand(const struct model *m, int name)
{
	struct model_standing st = { .visible = true, .expires_ns = MODEL_FOREVER };
	int group = 0; /* the outermost deletion met so far of those that belong together */
	bool first = true;

	for (int n = name; n; n = m->nodes[m->names[n].directory].own) {
		const struct model_name *x = &m->names[n];

		if (!x->deleted)
			continue;
		if (group && !(x->batch && x->batch == m->names[group].batch)) {
			st.visible &= m->names[group].expires_ns > m->now_ns;
			first = false;
		}
		group = n;
		st.deleted = true;
		st.visible &= !x->purged && !x->doomed && x->cause != MODEL_TEMPORARY_NAME;
		if (first) {
			st.top = n;
			st.expires_ns = x->expires_ns;
		}
	}
	if (group)
		st.visible &= m->names[group].expires_ns > m->now_ns;
	return st;
}

struct model_counters model_count(const struct model *m)
{
	struct model_counters c = { 0 };

	for (int n = 1; n < m->names_count; n++) {
		if (!m->names[n].node)
			continue;
		c.live_items += !m->names[n].deleted;
		c.trash_items += m->names[n].deleted && m->names[n].cause != MODEL_TEMPORARY_NAME;
	}
	for (int i = MODEL_ROOT; i < m->nodes_count; i++) {
		if (m->nodes[i].directory || !model_links(m, i, false))
			continue;
		*(model_links(m, i, true) ? &c.live_bytes : &c.trash_bytes) += m->nodes[i].size;
	}
	return c;
}

/* ---- batches ---------------------------------------------------------------------- */

int model_batch_join(struct model *m, const struct model_actor *a, bool purge)
{
	for (int i = 1; i < m->batches_count; i++) {
		struct model_batch *b = &m->batches[i];
		bool old = b->last_boot_ns - b->opened_boot_ns >= MODEL_HOUR;

		if (!b->open || b->uid != a->uid || b->group != a->group || b->purge != purge)
			continue;
		if (b->last_boot_ns + (old ? MODEL_SECOND : MODEL_MINUTE) > m->boot_ns) {
			b->last_boot_ns = m->boot_ns;
			b->last_ns = m->steady_ns;
			return i;
		}
		b->open = false;
	}
	bounded(m->batches_count < MODEL_BATCHES, "batches");
	m->batches[m->batches_count] = (struct model_batch){
		.uid = a->uid,
		.group = a->group,
		.session = a->session,
		.purge = purge,
		.open = true,
		.opened_boot_ns = m->boot_ns,
		.last_boot_ns = m->boot_ns,
		.last_ns = m->steady_ns,
	};
	return m->batches_count++;
}

void model_recount_open(struct model *m)
{
	for (int i = 1; i < m->batches_count; i++) {
		struct model_batch *b = &m->batches[i];
		bool had = b->count;

		if (!b->open)
			continue;
		b->count = b->restored;
		for (int n = 1; n < m->names_count; n++)
			b->count += m->names[n].node && m->names[n].deleted && m->names[n].batch == i;
		/* That it had some is told by its record alone. */
		if (had && !b->count)
			b->count = 1;
		if (b->count < b->noted)
			b->count = b->noted;
	}
}

void model_forget_process(struct model *m)
{
	for (int i = 1; i < m->batches_count; i++)
		m->batches[i].open = false;
	for (int i = 1; i < m->nodes_count; i++)
		m->nodes[i].made_by = m->nodes[i].open = 0;
}

/* ---- making ------------------------------------------------------------------------ */

int model_create(struct model *m, const struct model_actor *a, int directory, int text,
		 bool is_directory, int *ret_name)
{
	if (model_find(m, directory, text))
		return -EEXIST;
	bounded(m->nodes_count < MODEL_NODES, "nodes");
	m->nodes[m->nodes_count] = (struct model_node){
		.directory = is_directory,
		.mode = is_directory ? 0755 : 0640,
		.uid = a->uid,
		.mask = 0707,
		.mtime_ns = m->wall_ns,
		.made_by = a->group,
		.made_boot_ns = m->boot_ns,
	};
	*ret_name = model_name_new(m, m->nodes_count++, directory, text);
	model_touch(m, directory);
	return 0;
}

int model_link(struct model *m, int name, int directory, int text)
{
	int node = m->names[name].node;

	if (model_find(m, directory, text))
		return -EEXIST;
	if (m->nodes[node].directory)
		return -EPERM;
	m->nodes[node].several = true;
	model_name_new(m, node, directory, text);
	model_touch(m, directory);
	return 0;
}
