/*
 * model-trash.c - into the trash, and out of it for ever: what the model says of
 * removing, replacing, purging, expiring.
 */
#include <errno.h>
#include <string.h>

#include "tests/model/model.h"

#define EVICTED_AT_ONCE 4 /* versions that one replacement may evict */

static bool is_empty(const struct model *m, int directory)
{
	model_each(m, directory, n) if (!m->names[n].deleted) return false;
	return true;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- in -------------------------------------------------------------------------- */

/* The latest expiry of anything deleted in or below a directory that goes whole. */
static int64_t until_below(const struct model *m, int directory)
{
	int64_t until_ns = m->nodes[directory].until_ns;

	model_each(m, directory, n)
	{
		int node = m->names[n].node;

		if (m->nodes[node].directory && !m->names[n].deleted && model_has_deleted_below(m, node))
			until_ns = max(until_ns, until_below(m, node));
	}
	return until_ns;
}

static bool is_temporary(const struct model *m, const struct model_actor *a, int name, int64_t temporary_ns)
{
	const struct model_node *node = &m->nodes[m->names[name].node];

	if (!temporary_ns || node->made_by != a->group || m->boot_ns - node->made_boot_ns > temporary_ns)
		return false;
	if (node->directory)
		return !node->until_ns && !model_has_deleted_below(m, m->names[name].node);
	return !node->several || model_links(m, m->names[name].node, true) > 1;
}

static void set_times(struct model *m, struct model_name *n, int policies_of)
{
	bool at_once = n->cause == MODEL_TEMPORARY_NAME ||
		       (n->cause == MODEL_REPLACED && !model_policy(m, policies_of, MODEL_VERSIONS));

	n->expires_ns = at_once ? m->now_ns :
				  model_add(m->now_ns, model_policy(m, policies_of, MODEL_RETENTION));
}

static void note_in_parent(struct model *m, const struct model_name *n)
{
	struct model_node *parent = &m->nodes[n->directory];

	if (n->cause != MODEL_TEMPORARY_NAME) {
		model_narrow(m, n->directory, 0707);
		if (n->batch && parent->saved_batch != n->batch) {
			parent->saved_batch = n->batch;
			parent->saved_mtime_ns = parent->mtime_ns;
		}
		parent->until_ns = max(parent->until_ns, n->expires_ns);
	}
	parent->mtime_ns = m->now_ns;
}

int model_trash(struct model *m, const struct model_actor *a, int name, enum model_cause cause,
		uint64_t replaced_by, bool whole, bool try_only)
{
	struct model_name *n = &m->names[name];
	struct model_node *node = &m->nodes[n->node];
	int policies_of = node->directory ? n->node : n->directory;

	if (model_policy(m, n->directory, MODEL_PROTECT))
		return -EPERM;
	if (node->directory && !whole && !is_empty(m, n->node))
		return -ENOTEMPTY;
	if (node->directory && model_policy(m, n->node, MODEL_PROTECT))
		return -EPERM;
	if (try_only)
		return 0;
	if (cause == MODEL_REMOVED && !whole &&
	    is_temporary(m, a, name, model_policy(m, policies_of, MODEL_TEMPORARY)))
		cause = MODEL_TEMPORARY_NAME;
	n->deleted = true;
	n->purged = n->doomed = false;
	n->cause = cause;
	n->replaced_by = replaced_by;
	n->uid = a->uid;
	n->command = a->command;
	n->seq = 0;
	n->order = ++m->orders;
	n->batch = cause == MODEL_REMOVED ? model_batch_join(m, a, false) : 0;
	m->batches[n->batch].count++;
	n->purge_batch = 0;
	set_times(m, n, policies_of);
	if (node->directory)
		n->expires_ns = max(n->expires_ns, whole ? until_below(m, n->node) : node->until_ns);
	n->destroy_ns = n->expires_ns;
	note_in_parent(m, n);
	node->made_by = 0;
	m->fresh[m->fresh_count++] = name;
	return 0;
}

/* The `k`th newest replaced version of a name still there, or 0. */
static int version_over(const struct model *m, int newest, int64_t cap)
{
	uint64_t below = UINT64_MAX;

	for (int64_t kept = 0;; kept++) {
		int found = 0;

		model_each(m, m->names[newest].directory, n)
		{
			const struct model_name *x = &m->names[n];

			if (x->deleted && x->text == m->names[newest].text && x->cause == MODEL_REPLACED &&
			    !x->purged && !x->doomed && !m->nodes[x->node].directory &&
			    x->order < below && (!found || x->order > m->names[found].order))
				found = n;
		}
		if (!found || kept == cap)
			return found;
		below = m->names[found].order;
	}
}

static void doom(struct model *m, int name, enum model_end end)
{
	static const enum model_cause causes[] = {
		[MODEL_BY_USER] = MODEL_REMOVED,
		[MODEL_BY_EXPIRY] = MODEL_EXPIRED,
		[MODEL_BY_VERSIONS] = MODEL_REPLACED,
		[MODEL_BY_EVICTION] = MODEL_EVICTED,
	};
	struct model_name *n = &m->names[name];

	if (n->doomed)
		return;
	n->doomed = true;
	n->cause = n->cause == MODEL_TEMPORARY_NAME ? n->cause : causes[end];
	n->destroy_ns = n->destroy_ns < m->steady_ns ? n->destroy_ns : m->steady_ns;
}

static void evict_versions(struct model *m, int name)
{
	int64_t cap = model_policy(m, m->names[name].directory, MODEL_VERSIONS);
	int directory = m->names[name].directory;

	if (m->suspect || !cap || model_holds(m, directory))
		return;
	for (int i = 0; i < EVICTED_AT_ONCE; i++) {
		int over = version_over(m, name, cap);

		if (!over)
			return;
		if (!model_destroy(m, over, MODEL_BY_VERSIONS))
			doom(m, over, MODEL_BY_VERSIONS);
	}
}

void model_trashed(struct model *m, int name)
{
	const struct model_name *n = &m->names[name];

	if (n->cause == MODEL_REPLACED)
		evict_versions(m, name);
	if (n->node && n->destroy_ns <= m->steady_ns && !m->suspect &&
	    !m->nodes[n->node].directory && !model_is_held(m, name))
		model_destroy(m, name, MODEL_BY_EXPIRY);
}

int model_remove(struct model *m, const struct model_actor *a, int directory, int text,
		 bool as_directory, bool whole)
{
	int name = model_find(m, directory, text);
	int result;

	if (!name)
		return -ENOENT;
	if (!whole && as_directory != m->nodes[m->names[name].node].directory)
		return as_directory ? -ENOTDIR : -EISDIR;
	result = model_trash(m, a, name, MODEL_REMOVED, 0, whole, false);
	if (!result)
		model_trashed(m, name);
	return result;
}

/* ---- rename ------------------------------------------------------------------------ */

static int rename_refusal(const struct model *m, int from, int name, int to, int old,
			  bool noreplace, bool exchange)
{
	int node = m->names[name].node, other = old ? m->names[old].node : 0;
	bool crosses = from != to;

	if (old && noreplace)
		return -EEXIST;
	if (exchange && !old)
		return -ENOENT;
	if (crosses && m->nodes[node].directory && model_is_below(m, to, node))
		return -EINVAL;
	if (crosses && exchange && m->nodes[other].directory && model_is_below(m, from, other))
		return -EINVAL;
	if (node == other)
		return 0;
	if (old && !exchange && m->nodes[node].directory != m->nodes[other].directory)
		return m->nodes[node].directory ? -ENOTDIR : -EISDIR;
	if ((crosses || old) && model_policy(m, from, MODEL_PROTECT))
		return -EPERM;
	if (crosses && old && model_policy(m, to, MODEL_PROTECT))
		return -EPERM;
	return 0;
}

int model_rename(struct model *m, const struct model_actor *a, int from, int from_text, int to,
		 int to_text, bool noreplace, bool exchange)
{
	int name = model_find(m, from, from_text), old = model_find(m, to, to_text), result;

	if (!name)
		return -ENOENT;
	result = rename_refusal(m, from, name, to, old, noreplace, exchange);
	if (result || (old && m->names[name].node == m->names[old].node))
		return result;
	if (old && !exchange) {
		result = model_trash(m, a, old, MODEL_REPLACED, m->nodes[m->names[name].node].id,
				     false, false);
		if (result)
			return result;
	}
	if (exchange)
		model_move(m, old, from, from_text);
	model_move(m, name, to, to_text);
	model_touch(m, to);
	model_touch(m, from);
	m->nodes[m->names[name].node].made_by = 0;
	if (exchange)
		m->nodes[m->names[old].node].made_by = 0;
	else if (old)
		model_trashed(m, old);
	return 0;
}

/* ---- out, for ever ------------------------------------------------------------------- */

/* Who has it open keeps the last name that leads to it, or all deleted ones. */
static bool is_busy(const struct model *m, int name)
{
	int node = m->names[name].node;

	if (m->nodes[node].directory || !m->nodes[node].open)
		return false;
	return model_links(m, node, true) == !m->names[name].deleted;
}

static bool destroy_below(struct model *m, int name, enum model_end end)
{
	int node = m->names[name].node;
	bool gone = !is_busy(m, name);

	if (m->nodes[node].directory)
		model_each(m, node, n) gone &= destroy_below(m, n, end);
	if (!gone)
		return false;
	if (!(m->names[name].deleted && m->names[name].cause == MODEL_TEMPORARY_NAME))
		m->destroyed[end]++;
	model_name_drop(m, name);
	return true;
}

bool model_destroy(struct model *m, int name, enum model_end end)
{
	if (m->nodes[m->names[name].node].directory)
		doom(m, name, end);
	return destroy_below(m, name, end);
}

enum model_end model_end_of(const struct model *m, int name)
{
	const struct model_name *n = &m->names[name];

	if (n->purged)
		return MODEL_BY_USER;
	if (!n->doomed || n->cause == MODEL_EXPIRED)
		return MODEL_BY_EXPIRY;
	if (n->cause == MODEL_REPLACED)
		return MODEL_BY_VERSIONS;
	if (n->cause == MODEL_EVICTED)
		return MODEL_BY_EVICTION;
	return n->expires_ns > m->steady_ns ? MODEL_BY_USER : MODEL_BY_EXPIRY;
}

void model_released(struct model *m, int node)
{
	for (int i = 1; i < m->names_count; i++) {
		const struct model_name *n = &m->names[i];

		/* What went with a directory waits for it. */
		if (n->node != node || !n->deleted || n->destroy_ns > m->steady_ns || m->suspect ||
		    model_is_held(m, i) ||
		    !(n->purged || n->doomed || n->cause == MODEL_TEMPORARY_NAME ||
		      model_stand(m, i).top == i))
			continue;
		model_destroy(m, i, model_end_of(m, i));
	}
}

/* What was begun is ended, whatever holds by now. */
static bool is_begun(const struct model *m, int name)
{
	return m->names[name].doomed && m->nodes[m->names[name].node].directory;
}

static bool shows_nothing(const struct model *m, int directory)
{
	model_each(m, directory, n) if (model_stand(m, n).visible) return false;
	return true;
}

/* What was still live inside what is deleted becomes an entry of that deletion first. */
static void purge_live(struct model *m, const struct model_actor *a, int name, int top)
{
	struct model_name *n = &m->names[name];
	const struct model_name *t = &m->names[top];

	m->batches[t->batch].open = false;
	n->deleted = true;
	n->cause = MODEL_REMOVED;
	n->batch = t->batch;
	m->batches[n->batch].count++;
	n->uid = t->uid;
	n->command = t->command;
	n->expires_ns = t->expires_ns;
	n->replaced_by = 0;
	n->seq = 0;
	n->order = ++m->orders;
	note_in_parent(m, n);
	m->fresh[m->fresh_count++] = name;
}

int model_purge(struct model *m, const struct model_actor *a, int name, bool recursive, int64_t grace_ns)
{
	struct model_name *n = &m->names[name];
	struct model_standing st;
	int batch;

	if (m->nodes[n->node].directory && !recursive && !shows_nothing(m, n->node))
		return -ENOTEMPTY;
	if (model_is_held(m, name))
		return -EPERM;
	st = model_stand(m, name);
	if (!st.deleted || !st.visible)
		return -ENOENT;
	batch = model_batch_join(m, a, true);
	if (grace_ns < 0)
		grace_ns = model_policy(m, n->directory, MODEL_GRACE);
	if (!n->deleted)
		purge_live(m, a, name, st.top);
	n->purged = true;
	n->purge_batch = batch;
	n->destroy_ns = model_add(m->steady_ns, grace_ns);
	if (!grace_ns)
		model_destroy(m, name, MODEL_BY_USER);
	return 0;
}

int model_oldest_after(const struct model *m, uint64_t order, uint64_t end)
{
	int found = 0;

	for (int n = 1; n < m->names_count; n++)
		if (m->names[n].node && m->names[n].deleted && m->names[n].order > order &&
		    m->names[n].order <= end && (!found || m->names[n].order < m->names[found].order))
			found = n;
	return found;
}

static bool is_wanted(const struct model *m, int name, int directory, bool now)
{
	const struct model_name *n = &m->names[name];
	struct model_standing st = model_stand(m, name);

	return st.top == name && n->cause != MODEL_TEMPORARY_NAME &&
	       (st.visible || (now && n->purged)) && model_is_below(m, n->directory, directory);
}

void model_empty(struct model *m, const struct model_actor *a, int directory, bool now,
		 struct model_emptied *ret)
{
	uint64_t end = m->orders, order = 0;
	int name;

	memset(ret, 0, sizeof(*ret));
	while ((name = model_oldest_after(m, order, end))) {
		int result = 0;

		order = m->names[name].order;
		if (!is_wanted(m, name, directory, now))
			continue;
		result = model_may_purge(m, a->uid, name);
		if (result)
			;
		else if (!m->names[name].purged)
			result = model_purge(m, a, name, true, now ? 0 : -1);
		else if (!is_begun(m, name) && model_is_held(m, name))
			result = -EPERM;
		else
			model_destroy(m, name, MODEL_BY_USER);
		ret->entries += !result;
		ret->refused += result == -EPERM || result == -EACCES;
	}
}

/* ---- the sweeper -------------------------------------------------------------------- */

static int next_due(const struct model *m, const int64_t *after_due, uint64_t after_order)
{
	int found = 0;

	for (int n = 1; n < m->names_count; n++) {
		const struct model_name *x = &m->names[n];

		if (!x->node || !x->deleted || x->destroy_ns > m->steady_ns || x->destroy_ns < *after_due ||
		    (x->destroy_ns == *after_due && x->order <= after_order))
			continue;
		if (!found || x->destroy_ns < m->names[found].destroy_ns ||
		    (x->destroy_ns == m->names[found].destroy_ns && x->order < m->names[found].order))
			found = n;
	}
	return found;
}

static void sweep_one(struct model *m, int name)
{
	struct model_name *n = &m->names[name];
	bool alone = n->purged || n->doomed || n->cause == MODEL_TEMPORARY_NAME;
	int top = alone ? name : model_stand(m, name).top;
	struct model_name *t = &m->names[top];

	if (t->destroy_ns > m->steady_ns) {
		n->destroy_ns = t->destroy_ns;
	} else if (is_begun(m, top)) {
		model_destroy(m, top, model_end_of(m, top));
	} else if (t->purged && model_is_held(m, top)) {
		/* The hold came after the purge, and undoes it. */
		t->purged = false;
		t->purge_batch = 0;
		t->destroy_ns = t->expires_ns > m->steady_ns ? t->expires_ns : m->steady_ns + MODEL_DAY;
	} else if (model_is_held(m, top)) {
		t->destroy_ns = m->steady_ns + MODEL_DAY;
	} else {
		model_destroy(m, top, model_end_of(m, top));
	}
}

void model_sweep(struct model *m)
{
	int64_t due_ns = INT64_MIN;
	uint64_t order = 0;
	int name;

	if (m->suspect)
		return;
	while ((name = next_due(m, &due_ns, order))) {
		due_ns = m->names[name].destroy_ns;
		order = m->names[name].order;
		sweep_one(m, name);
	}
}

/* ---- caps ------------------------------------------------------------------------------ */

static uint64_t bytes_below(const struct model *m, int directory, int batch)
{
	uint64_t bytes = 0;

	model_each(m, directory, n)
	{
		const struct model_name *x = &m->names[n];

		if (x->deleted && (!batch || x->batch != batch))
			continue;
		bytes += m->nodes[x->node].directory ? bytes_below(m, x->node, batch) :
						       m->nodes[x->node].size;
	}
	return bytes;
}

static uint64_t weight(const struct model *m, int name, enum model_policy unit)
{
	const struct model_name *n = &m->names[name];

	if (unit == MODEL_TRASH_MAX_ENTRIES)
		return 1;
	return m->nodes[n->node].directory ? bytes_below(m, n->node, n->batch) : m->nodes[n->node].size;
}

static bool is_counted(const struct model *m, int name, int directory)
{
	const struct model_name *n = &m->names[name];

	return n->cause != MODEL_TEMPORARY_NAME && !n->purged && !n->doomed &&
	       model_stand(m, name).top == name && model_is_below(m, n->directory, directory);
}

static void enforce(struct model *m, int directory, enum model_policy unit)
{
	uint64_t limit = (uint64_t)m->nodes[directory].policy[unit], amount = 0, order = 0;
	int name;

	while ((name = model_oldest_after(m, order, m->orders))) {
		order = m->names[name].order;
		amount += is_counted(m, name, directory) ? weight(m, name, unit) : 0;
	}
	if (amount <= limit)
		return;
	/* The oldest go, whole, down to nine tenths. */
	for (order = 0;
	     amount > limit - limit / 10 && (name = model_oldest_after(m, order, m->orders));) {
		uint64_t weighs;

		order = m->names[name].order;
		if (!is_counted(m, name, directory) || model_is_held(m, name))
			continue;
		weighs = weight(m, name, unit);
		if (model_destroy(m, name, MODEL_BY_EVICTION))
			amount -= weighs < amount ? weighs : amount;
	}
}

void model_enforce_caps(struct model *m)
{
	for (int node = MODEL_ROOT; node < m->nodes_count && !m->suspect; node++)
		for (enum model_policy unit = MODEL_TRASH_MAX; unit <= MODEL_TRASH_MAX_ENTRIES; unit++)
			if (m->nodes[node].policies & 1u << unit &&
			    (node == MODEL_ROOT || m->nodes[node].own))
				enforce(m, node, unit);
}
