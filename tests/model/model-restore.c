/*
 * model-restore.c - back out of the trash: what the model says of restoring an
 * entry, a directory with its batch, a missing way, and of undo.
 */
#include <errno.h>
#include <string.h>

#include "tests/model/model.h"

/* ---- one name ---------------------------------------------------------------------- */

/* A directory has the time from before what `batch` deleted in it; from then on it is known to have it. */
static void settle_time(struct model_node *directory, int batch)
{
	if (batch && directory->saved_batch == batch)
		directory->mtime_ns = directory->saved_mtime_ns;
	directory->saved_batch = batch ? batch : -1;
	directory->saved_mtime_ns = directory->mtime_ns;
}

static void revive(struct model *m, int name)
{
	struct model_name *n = &m->names[name];
	struct model_node *node = &m->nodes[n->node];

	if (node->directory && n->deleted)
		settle_time(node, n->batch);
	m->restored += n->deleted;
	if (!n->deleted)
		return;
	m->batches[n->batch].restored++;
	if (m->batches[n->batch].open)
		m->batches[n->batch].noted = m->batches[n->batch].count;
}

static int alternative(const struct model *m, int directory, int text)
{
	for (int n = 1; n < MODEL_RENAMED; n++)
		if (!model_find(m, directory, text % MODEL_TEXTS + n * MODEL_TEXTS))
			return text % MODEL_TEXTS + n * MODEL_TEXTS;
	return -1;
}

static int check_victim(const struct model *m, int name, int victim)
{
	bool directory = m->nodes[m->names[victim].node].directory;

	if (m->nodes[m->names[name].node].directory != directory)
		return directory ? -EISDIR : -ENOTDIR;
	return 0;
}

/* The name alone. A directory that came back, and was not touched since, keeps its time. */
static int restore_one(struct model *m, const struct model_actor *a, int name, int directory,
		       int text, unsigned flags)
{
	struct model_standing st = model_stand(m, name);
	int victim = model_find(m, directory, text), result = 0;
	struct model_node *parent = &m->nodes[directory];
	struct model_name *n = &m->names[name];
	int64_t mtime_ns;
	bool untouched;

	if (!st.deleted || !st.visible)
		return -ENOENT;
	if (victim && flags & MODEL_NOREPLACE)
		return -EEXIST;
	if (victim && flags & MODEL_RENAME) {
		text = alternative(m, directory, text);
		victim = 0;
	}
	if (victim && m->names[victim].node == n->node)
		return 0;
	if (victim)
		result = check_victim(m, name, victim);
	if (!result && m->nodes[n->node].directory && model_is_below(m, directory, n->node))
		result = -EINVAL;
	if (!result)
		result = model_may_move(m, a->uid, name, directory, victim);
	untouched = parent->saved_batch && parent->saved_mtime_ns == parent->mtime_ns &&
		    n->directory == directory;
	mtime_ns = parent->mtime_ns;
	if (!result && victim)
		result = model_trash(m, a, victim, MODEL_REPLACED, m->nodes[n->node].id, false, false);
	if (result)
		return result;
	revive(m, name);
	model_move(m, name, directory, text);
	parent->mtime_ns = untouched && !victim ? mtime_ns : m->now_ns;
	if (victim)
		model_trashed(m, victim);
	return 0;
}

/* ---- what went with a directory ------------------------------------------------------- */

static int newest_of(const struct model *m, int directory, int text, int batch, bool purged_too)
{
	int found = 0;

	model_each(m, directory, n)
	{
		const struct model_name *x = &m->names[n];

		if (x->deleted && x->text == text && x->batch == batch &&
		    x->cause == MODEL_REMOVED && (purged_too || !(x->purged || x->doomed)) &&
		    (!found || x->order > m->names[found].order))
			found = n;
	}
	return found;
}

static void grow(struct model *m, int directory, int batch)
{
	model_each(m, directory, n)
	{
		int node = m->names[n].node;

		if (!m->names[n].deleted && m->nodes[node].directory && model_has_deleted_below(m, node))
			grow(m, node, batch);
	}
	for (int text = 0; text < MODEL_TEXTS * MODEL_RENAMED; text++) {
		int name = newest_of(m, directory, text, batch, false);

		if (!name || model_find(m, directory, text))
			continue;
		if (m->nodes[m->names[name].node].directory)
			grow(m, m->names[name].node, batch);
		revive(m, name);
		model_move(m, name, directory, text);
		m->done++;
	}
}

static void restore_tree(struct model *m, int directory, int top)
{
	struct model_name *t = &m->names[top];

	if (!model_has_deleted_below(m, directory))
		return;
	grow(m, directory, t->batch);
	if (t->node != directory)
		t->destroy_ns = t->expires_ns;
}

/* ---- entries ------------------------------------------------------------------------------ */

static int check_names(const struct model *m, int name, int victim, unsigned flags)
{
	int result;

	if (!victim || flags & MODEL_RENAME)
		return 0;
	if (flags & MODEL_NOREPLACE)
		return -EEXIST;
	result = check_victim(m, name, victim);
	if (result || !m->nodes[m->names[victim].node].directory)
		return result;
	model_each(m, m->names[victim].node, n) if (!m->names[n].deleted) return -ENOTEMPTY;
	return 0;
}

static int check_target(const struct model *m, const struct model_actor *a, int name, int directory,
			int text, unsigned flags)
{
	int victim = model_find(m, directory, text), result = check_names(m, name, victim, flags);

	return result ? result :
			model_may_move(m, a->uid, name, directory, flags & MODEL_RENAME ? 0 : victim);
}

static int restore_entry(struct model *m, const struct model_actor *a, int name, int directory,
			 int text, unsigned flags)
{
	int result = model_is_live_directory(m, directory) ? 0 : -ENOENT;

	/* A file is asked for in the one step: over another name of itself nothing is done, nor asked. */
	if (!result && m->nodes[m->names[name].node].directory)
		result = check_target(m, a, name, directory, text, flags);
	if (!result && m->nodes[m->names[name].node].directory) {
		struct model_standing st = model_stand(m, name);

		if (!st.deleted || !st.visible)
			return -ENOENT;
		if (m->names[st.top].batch)
			restore_tree(m, m->names[name].node, st.top);
	}
	if (!result)
		result = restore_one(m, a, name, directory, text, flags);
	m->done += !result;
	return result;
}

int model_restore(struct model *m, const struct model_actor *a, int name, int directory, int text,
		  unsigned flags)
{
	return restore_entry(m, a, name, directory, text, flags);
}

/* ---- to the origin --------------------------------------------------------------------------- */

#define DEPTH_MAX 64

struct way {
	int nodes[DEPTH_MAX]; /* outermost first */
	int count, first; /* the first deleted; count: none is */
};

static void collect_way(const struct model *m, int directory, struct way *way)
{
	int reversed[DEPTH_MAX];

	way->count = 0;
	for (int node = directory; node;
	     node = node == MODEL_ROOT ? 0 : m->names[m->nodes[node].own].directory)
		reversed[way->count++] = node;
	way->first = way->count;
	for (int i = 0; i < way->count; i++) {
		way->nodes[i] = reversed[way->count - 1 - i];
		if (way->first == way->count && way->nodes[i] != MODEL_ROOT &&
		    m->names[m->nodes[way->nodes[i]].own].deleted)
			way->first = i;
	}
}

static int check_way(const struct model *m, const struct model_actor *a, const struct way *way,
		     int name, unsigned flags)
{
	int parent = way->nodes[way->first - 1];

	for (int i = way->first; i < way->count; i++) {
		int live = model_find(m, parent, m->names[m->nodes[way->nodes[i]].own].text);

		int result = 0;

		if (live && !m->nodes[m->names[live].node].directory)
			return -ENOTDIR;
		if (!live)
			result = model_may_move(m, a->uid, m->nodes[way->nodes[i]].own, parent, 0);
		if (result)
			return result;
		parent = live ? m->names[live].node : way->nodes[i];
	}
	if (!m->names[name].deleted && parent == m->names[name].directory)
		return 0;
	return check_target(m, a, name, parent, m->names[name].text, flags);
}

static void inherit(struct model *m, int name, const struct model_name *from)
{
	struct model_name *n = &m->names[name];

	n->deleted = true;
	n->seq = 0;
	n->order = ++m->orders;
	n->batch = from->batch;
	m->batches[n->batch].count++;
	n->purge_batch = 0;
	n->expires_ns = from->expires_ns;
	n->destroy_ns = from->destroy_ns;
	n->uid = from->uid;
	n->command = from->command;
	n->cause = from->cause;
	n->replaced_by = 0;
	m->fresh[m->fresh_count++] = name;
}

/* Everything live in a directory but `except` becomes deleted as what is around it was. */
static void bequeath(struct model *m, int directory, int except, const struct model_name *from,
		     uint32_t mask)
{
	struct model_node *node = &m->nodes[directory];
	bool any = false;

	m->batches[from->batch].open = false;
	model_each(m, directory, n)
	{
		if (m->names[n].deleted || m->names[n].text == except)
			continue;
		inherit(m, n, from);
		any = true;
	}
	if (!any)
		return;
	model_narrow(m, directory, mask);
	if (node->until_ns < from->expires_ns)
		node->until_ns = from->expires_ns;
	if (from->batch && node->saved_batch != from->batch) {
		node->saved_batch = from->batch;
		node->saved_mtime_ns = node->mtime_ns;
	}
}

static void way_bequeath(struct model *m, const struct way *way, int last_text)
{
	struct model_name from = { 0 };
	uint32_t mask = m->nodes[way->nodes[way->first - 1]].mask;

	for (int i = way->first; i < way->count; i++) {
		const struct model_name *own = &m->names[m->nodes[way->nodes[i]].own];
		int except = last_text;

		if (own->deleted)
			from = *own;
		if (i + 1 < way->count) {
			const struct model_name *below = &m->names[m->nodes[way->nodes[i + 1]].own];

			except = below->deleted ? -1 : below->text;
		}
		mask &= m->nodes[way->nodes[i]].mask;
		bequeath(m, way->nodes[i], except, &from, mask);
		if (!own->deleted)
			settle_time(&m->nodes[way->nodes[i]], from.batch);
	}
}

static int walk_way(struct model *m, const struct model_actor *a, const struct way *way, int *ret_parent)
{
	int parent = way->nodes[way->first - 1], result = 0;

	for (int i = way->first; i < way->count && !result; i++) {
		int own = m->nodes[way->nodes[i]].own;
		int text = m->names[own].text, live = model_find(m, parent, text);

		if (live) {
			parent = m->names[live].node;
			continue;
		}
		result = restore_one(m, a, own, parent, text, MODEL_NOREPLACE);
		parent = way->nodes[i];
	}
	*ret_parent = parent;
	return result;
}

int model_restore_origin(struct model *m, const struct model_actor *a, int name, unsigned flags)
{
	struct model_standing st = model_stand(m, name);
	int directory = m->names[name].directory, parent = directory, result = 0;
	int text = m->names[name].text;
	struct way way;

	if (!st.deleted || !st.visible)
		return -ENOENT;
	collect_way(m, directory, &way);
	if (way.first < way.count) {
		if (!(flags & MODEL_PARENTS))
			return -ENOENT;
		result = check_way(m, a, &way, name, flags);
		if (result)
			return result;
		way_bequeath(m, &way, m->names[name].deleted ? -1 : text);
		result = walk_way(m, a, &way, &parent);
	}
	if (!result && !m->names[name].deleted && parent == directory) {
		m->done++;
		return 0;
	}
	return result ? result : restore_entry(m, a, name, parent, text, flags);
}

/* ---- undo ------------------------------------------------------------------------------------ */

bool model_batch_is_known(const struct model *m, int batch)
{
	return !m->batches[batch].purge || m->steady_ns - m->batches[batch].last_ns < 29 * MODEL_DAY;
}

bool model_batch_has_rows(const struct model *m, int batch)
{
	for (int n = 1; n < m->names_count; n++) {
		const struct model_name *x = &m->names[n];

		if (x->node && x->deleted &&
		    (m->batches[batch].purge ? x->purged && !x->doomed && x->purge_batch == batch :
					       x->batch == batch))
			return true;
	}
	return false;
}

#define UNDO_NOTHING 0 /* all of it is back */
#define UNDO_SOMETHING 1 /* to bring back, or at least to tell of what is gone */
#define UNDO_UNKNOWN 2 /* its record may have been dropped by now, or not */

static int batch_worth(const struct model *m, int batch)
{
	const struct model_batch *b = &m->batches[batch];
	unsigned rows = 0, stays = 0;

	for (int n = 1; n < m->names_count; n++) {
		const struct model_name *x = &m->names[n];

		if (!x->node || !x->deleted)
			continue;
		if (b->purge ? x->purged && !x->doomed && x->purge_batch == batch &&
				       x->expires_ns > m->now_ns :
			       x->batch == batch && x->cause == MODEL_REMOVED && !x->replaced_by &&
				       model_stand(m, n).visible)
			return UNDO_SOMETHING;
		rows += x->batch == batch;
		stays += x->batch == batch && x->cause == MODEL_REMOVED && x->replaced_by;
	}
	if (b->purge || b->restored + stays == b->count)
		return UNDO_NOTHING;
	return rows || m->steady_ns - b->last_ns < MODEL_DAY - MODEL_HOUR ? UNDO_SOMETHING : UNDO_UNKNOWN;
}

static int last_batch(const struct model *m, const struct model_actor *a, bool same_session)
{
	for (int i = m->batches_count - 1; i > 0; i--) {
		const struct model_batch *b = &m->batches[i];
		int worth;

		if (b->uid != a->uid || b->undone || (same_session && b->session != a->session))
			continue;
		worth = batch_worth(m, i);
		if (worth)
			return worth == UNDO_SOMETHING ? i : -1;
	}
	return 0;
}

int model_last_batch(const struct model *m, const struct model_actor *a)
{
	int batch = last_batch(m, a, true);

	return batch ? batch : last_batch(m, a, false);
}

struct top {
	int name;
	uint64_t order;
	uint64_t newer; /* id of what took its name in the same batch: it stays */
};

/* The id of what the batch deleted under the same name last, if that was later; 0. */
static uint64_t deleted_again(const struct model *m, int name)
{
	const struct model_name *x = &m->names[name];
	int last = newest_of(m, x->directory, x->text, x->batch, true);

	if (x->cause == MODEL_REMOVED && x->replaced_by)
		return x->replaced_by;
	return last && m->names[last].order > x->order ? m->nodes[m->names[last].node].id : 0;
}

/* Newest first. */
static int collect_tops(const struct model *m, int batch, struct top tops[MODEL_NAMES])
{
	uint64_t below = UINT64_MAX;
	int count = 0;

	for (;;) {
		int found = 0;

		for (int n = 1; n < m->names_count; n++)
			if (m->names[n].node && m->names[n].deleted && m->names[n].batch == batch &&
			    m->names[n].order < below &&
			    (!found || m->names[n].order > m->names[found].order))
				found = n;
		if (!found)
			return count;
		below = m->names[found].order;
		if (model_stand(m, found).top == found)
			tops[count++] = (struct top){ found, below, deleted_again(m, found) };
	}
}

static int allowed(const struct model *m, const struct model_actor *a, int name)
{
	return model_may_move(m, a->uid, name, m->names[name].directory, 0);
}

static int undo_purge(struct model *m, const struct model_actor *a, int batch, bool dry,
		      struct model_undone *ret)
{
	for (int n = 1; n < m->names_count; n++) {
		struct model_name *x = &m->names[n];

		if (!x->node || !x->purged || x->doomed || x->purge_batch != batch)
			continue;
		if (allowed(m, a, n)) {
			ret->skipped++;
			ret->refused++;
			continue;
		}
		if (dry || x->expires_ns > m->now_ns)
			ret->restored++;
		else
			ret->missing++;
		if (dry || x->expires_ns <= m->now_ns)
			continue;
		x->purged = false;
		x->purge_batch = 0;
		x->destroy_ns = x->expires_ns;
	}
	return 0;
}

static bool is_taken(const struct model *m, int name)
{
	return model_find(m, m->names[name].directory, m->names[name].text) != 0;
}

static int undo_top(struct model *m, const struct model_actor *a, int name, enum model_taken taken,
		    bool dry)
{
	static const unsigned flags[] = {
		[MODEL_REFUSE] = MODEL_PARENTS | MODEL_NOREPLACE,
		[MODEL_SKIP] = MODEL_PARENTS | MODEL_NOREPLACE,
		[MODEL_RENAMES] = MODEL_PARENTS | MODEL_RENAME,
		[MODEL_REPLACES] = MODEL_PARENTS,
	};

	if (!model_stand(m, name).visible)
		return -ENOENT;
	if (allowed(m, a, name))
		return allowed(m, a, name);
	if ((taken == MODEL_REFUSE || taken == MODEL_SKIP) && is_taken(m, name))
		return -EEXIST;
	if (dry) {
		m->done++;
		return 0;
	}
	return model_restore_origin(m, a, name, flags[taken]);
}

static int undone(struct model *m, int batch, bool dry, const struct model_undone *ret)
{
	if (dry)
		return 0;
	if (ret->refused && !ret->restored)
		return -EACCES;
	m->batches[batch].undone = true;
	return 0;
}

/* What went with a directory in which its name is live by now stays, and says why. */
static void note_resident(struct model *m, const struct model_actor *a, int batch, int name)
{
	struct model_name *n = &m->names[name];
	int live;

	if (!n->node || !n->deleted || n->batch != batch || n->cause != MODEL_REMOVED ||
	    n->purged || n->replaced_by || model_stand(m, name).top == name)
		return;
	live = model_find(m, n->directory, n->text);
	if (live && !allowed(m, a, name))
		n->replaced_by = m->nodes[m->names[live].node].id;
}

int model_undo(struct model *m, const struct model_actor *a, int batch, enum model_taken taken,
	       bool dry, struct model_undone *ret)
{
	static struct top tops[MODEL_NAMES];
	int count, result = 0;

	memset(ret, 0, sizeof(*ret));
	m->batches[batch].open = false;
	if (m->batches[batch].purge) {
		undo_purge(m, a, batch, dry, ret);
		return undone(m, batch, dry, ret);
	}
	count = collect_tops(m, batch, tops);
	for (int i = 0; i < count && taken == MODEL_REFUSE; i++)
		if (!tops[i].newer && !allowed(m, a, tops[i].name) &&
		    model_stand(m, tops[i].name).visible && is_taken(m, tops[i].name))
			return -EEXIST;
	for (int n = 1; n < m->names_count && !dry; n++)
		note_resident(m, a, batch, n);
	for (int i = 0; i < count && !dry; i++)
		if (tops[i].newer && m->names[tops[i].name].cause == MODEL_REMOVED &&
		    !m->names[tops[i].name].purged && !allowed(m, a, tops[i].name))
			m->names[tops[i].name].replaced_by = tops[i].newer;
	for (int i = 0; i < count; i++) {
		const struct model_name *n = &m->names[tops[i].name];

		if (tops[i].newer || !n->node || !n->deleted || n->order != tops[i].order)
			continue;
		result = undo_top(m, a, tops[i].name, taken, dry);
		if (result == -EEXIST || result == -ENOTDIR || result == -EISDIR || result == -ENOTEMPTY)
			ret->skipped++;
		else if (result == -EACCES || (result == -EPERM && m->rights))
			ret->skipped++, ret->refused++;
		else if (result == -ENOENT)
			ret->missing++;
		else if (result)
			return result;
	}
	ret->restored = m->done;
	return undone(m, batch, dry, ret);
}
