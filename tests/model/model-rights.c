/*
 * model-rights.c - who may do what: what the kernel asks in the live tree, and
 * what is asked of the trash, where a directory shows no more than it let others
 * see at each deletion in it.
 *
 * Two users without a common group: each is the owner, or one of the others.
 */
#include <errno.h>

#include "tests/model/model.h"

#define WRITE 2
#define SEARCH 1

static int parent_of(const struct model *m, int node)
{
	return node == MODEL_ROOT || !m->nodes[node].own ? 0 : m->names[m->nodes[node].own].directory;
}

static int passes(const struct model *m, uint32_t uid, int node, uint32_t mask, uint32_t want)
{
	uint32_t bits = m->nodes[node].mode & mask;

	if (uid == m->nodes[node].uid)
		bits >>= 6;
	return want & ~bits & 7 ? -EACCES : 0;
}

/* Every directory on the way, as a view shows it from the last live one on if the way leads through the trash. */
static int may_search(const struct model *m, uint32_t uid, int directory)
{
	int plain = 0, masked = 0, in_view = 0;
	bool below_deleted = false;

	for (int node = directory; node; node = parent_of(m, node)) {
		bool deleted = node != MODEL_ROOT && m->names[m->nodes[node].own].deleted;

		plain = plain ? plain : passes(m, uid, node, 0777, SEARCH);
		masked = masked ? masked : passes(m, uid, node, m->nodes[node].mask, SEARCH);
		if (deleted || below_deleted)
			in_view = masked;
		below_deleted = deleted;
	}
	return in_view ? in_view : plain;
}

static int sticky(const struct model *m, uint32_t uid, int directory, int name)
{
	const struct model_node *d = &m->nodes[directory];

	if (!name || !(d->mode & 01000) || uid == d->uid || uid == m->nodes[m->names[name].node].uid)
		return 0;
	return -EPERM;
}

int model_may_change(const struct model *m, uint32_t uid, int directory, int name)
{
	int result = m->rights ? passes(m, uid, directory, 0777, WRITE | SEARCH) : 0;

	if (!m->rights)
		return 0;
	result = result ? result : sticky(m, uid, directory, name);
	return result ? result : may_search(m, uid, directory);
}

int model_may_write(const struct model *m, uint32_t uid, int name)
{
	int result = m->rights ? may_search(m, uid, m->names[name].directory) : 0;

	return result || !m->rights ? result : passes(m, uid, m->names[name].node, 0777, WRITE);
}

int model_may_take(const struct model *m, uint32_t uid, int name)
{
	int directory = m->names[name].directory;
	int result = passes(m, uid, directory, m->nodes[directory].mask, WRITE | SEARCH);

	result = result ? result : sticky(m, uid, directory, name);
	return result ? result : may_search(m, uid, directory);
}

int model_may_move(const struct model *m, uint32_t uid, int name, int parent, int victim)
{
	int node = m->names[name].node;
	int result = m->rights ? model_may_take(m, uid, name) : 0;

	if (!m->rights)
		return 0;
	result = result ? result : passes(m, uid, parent, 0777, WRITE | SEARCH);
	result = result ? result : sticky(m, uid, parent, victim);
	result = result ? result : may_search(m, uid, parent);
	/* Its ".." is written. */
	if (!result && m->nodes[node].directory && parent != m->names[name].directory)
		result = passes(m, uid, node, m->nodes[node].mask, WRITE);
	return result;
}

static int may_empty(const struct model *m, uint32_t uid, int directory)
{
	int result = 0;

	model_each(m, directory, n)
	{
		const struct model_name *x = &m->names[n];

		if (x->deleted && (x->purged || x->doomed || x->cause == MODEL_TEMPORARY_NAME))
			continue;
		result = passes(m, uid, directory, m->nodes[directory].mask, WRITE | SEARCH);
		result = result ? result : sticky(m, uid, directory, n);
		if (!result && m->nodes[x->node].directory)
			result = may_empty(m, uid, x->node);
		if (result)
			return result;
	}
	return 0;
}

int model_may_purge(const struct model *m, uint32_t uid, int name)
{
	int node = m->names[name].node;
	int result = m->rights ? model_may_take(m, uid, name) : 0;

	return result || !m->rights || !m->nodes[node].directory ? result : may_empty(m, uid, node);
}

/* What others could do in a directory by way of those above it, and, of its owner, whether he could come to it at all. */
static uint32_t reach(const struct model *m, int directory)
{
	const struct model_node *own = &m->nodes[directory];
	bool others = true, owner = true;

	for (int node = parent_of(m, directory); node; node = parent_of(m, node)) {
		others = others && m->nodes[node].mode & 01;
		owner = owner && (m->nodes[node].mode & 011 || m->nodes[node].uid == own->uid);
	}
	return (owner ? 0700 : 0) | (others ? own->mode & 07 : 0);
}

void model_narrow(struct model *m, int directory, uint32_t mask)
{
	m->nodes[directory].mask &= mask & reach(m, directory);
}
