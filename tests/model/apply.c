/*
 * apply.c - each kind of operation, on the model and on the store. The model
 * goes first: what it answers is what the store must answer.
 */
#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/access.h"
#include "lifecycle/internal.h"
#include "store/util.h"
#include "tests/model/subject.h"

#define COMPARE_EVERY 8 /* operations; and after each that is about the trash */
#define CONTENT_MAX 9000
#define MODEL_LINKS 256 /* deleted names of one file */

static const struct model_actor deleters[3] = { { 1000, 101, 1, 1 },
						{ 1000, 102, 2, 2 },
						{ 1001, 103, 3, 3 } };

struct context {
	struct subject *s;
	struct run *run;
	struct model *m;
	const struct operation *op;
	struct model_actor who; /* in the model */
	struct actor actor;
	struct rights rights;
	struct patience *patience; /* of an undo */
	int directory, directory2; /* nodes: where the paths lead */
};

static int may_move(void *data, const struct restore_move *move)
{
	struct context *c = data;

	return access_move(c->s->namei, &c->actor, move);
}

static int may_restore(void *data, const struct place *at, const struct item *item)
{
	struct context *c = data;

	return c->m->rights ? access_restore(c->s->namei, &c->actor, at, item, at->directory) : 0;
}

static int may_purge(void *data, const struct place *at, const struct item *item)
{
	struct context *c = data;

	return c->m->rights ? access_purge(c->s->namei, &c->actor, at, item) : 0;
}

static void make_actor(struct context *c)
{
	c->who = deleters[c->op->who];
	c->actor = (struct actor){
		.uid = c->who.uid,
		.gid = c->who.uid,
		.pid = c->who.group,
		.group = c->who.group,
		.session = c->who.session,
		.start = c->who.group,
		.rights = c->m->rights ? &c->rights : NULL,
	};
	c->rights = (struct rights){ may_move, c };
	snprintf(c->actor.command, sizeof(c->actor.command), "command%u", c->who.command);
}

static int follow(const struct model *m, const uint8_t path[HISTORY_DEPTH])
{
	int node = MODEL_ROOT;

	for (int i = 0; i < HISTORY_DEPTH && path[i] != UINT8_MAX; i++) {
		int name = model_find(m, node, path[i]);

		if (!name || !m->nodes[m->names[name].node].directory)
			break;
		node = m->names[name].node;
	}
	return node;
}

static uint64_t id_of(const struct context *c, int node)
{
	return c->m->nodes[node].id;
}

static void same(struct context *c, int expected, int result)
{
	if (getenv("DDBFS_MODEL_TRACE")) {
		printf("# %d: %d (%d expected): ", c->run->at, result, expected);
		history_print_operation(c->op, stdout);
	}
	/* Which of two refusals is met first depends on the order of names. */
	if (c->m->rights && (result == -EPERM || result == -EACCES) &&
	    (expected == -EPERM || expected == -EACCES))
		c->run->refused++;
	else
		CK(c->s, expected == result, "the result is %d, not %d", result, expected);
	c->run->operations++;
	c->run->succeeded[c->op->kind] += result == 0;
}

/* A removal must not happen where the model says it may not: everything else is done by both. */
static int live_name(const struct context *c)
{
	return model_find(c->m, c->directory, c->op->name);
}

/*
 * What the kernel would ask before a change of the live tree, as the model has it
 * and as fs/access.c, which asks where there is no kernel. True: it goes on.
 */
static bool may_change(struct context *c, int directory, int name)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct place at;
	struct tree_directory d;
	struct item item;
	int expected, result;

	if (!c->m->rights)
		return true;
	expected = model_may_change(c->m, c->who.uid, directory, name);
	CK(c->s, !tree_load(c->s->store, id_of(c, directory), &d), "a directory is not there");
	if (name) {
		at = subject_place(c->s, name);
		CK(c->s, !record_get_item(c->s->store, &at, true, &value, &item), "an item is not there");
	}
	result = access_change(&c->actor, &d.own, name ? &item : NULL);
	result = result ? result : access_path(c->s->namei, &c->actor, d.id);
	tree_release(&d);
	if (expected || result)
		same(c, expected, result);
	return !result;
}

/* The ".." of a directory is written when it gets another parent. */
static bool may_turn(struct context *c, int name, int to)
{
	const struct model_node *node = &c->m->nodes[c->m->names[name].node];

	return !c->m->rights || !node->directory || to == c->m->names[name].directory ||
	       node->mode & (c->who.uid == node->uid ? 0200 : 02);
}

/* ---- the live tree --------------------------------------------------------------------- */

/* What a file has in it, from now on. */
static void fill(struct context *c, int node, uint32_t number)
{
	struct model_node *file = &c->m->nodes[node];
	uint8_t bytes[CONTENT_MAX];
	struct attr_change cut = { .set = ATTR_SIZE };
	struct inode inode;

	file->token = number;
	/* Most are small; some have a body. */
	file->size = number % 7 ? number % 200 : number % CONTENT_MAX;
	for (uint32_t i = 0; i < file->size; i++)
		bytes[i] = subject_byte(file->token, i);
	CK(c->s, !file_setattr(c->s->namei, &c->s->where, file->id, &cut, &inode), "cutting");
	inode_release(&inode);
	CK(c->s,
	   !file_write(c->s->namei, &c->s->where, file->id, 0, bytes, file->size, false, false, &inode),
	   "writing");
	file->mtime_ns = inode.item.mtime.tv_sec * MODEL_SECOND + inode.item.mtime.tv_nsec;
	CK(c->s, llabs(file->mtime_ns - c->m->wall_ns) < MODEL_SECOND / 20, "mtime after a write");
	inode_release(&inode);
}

static void do_create(struct context *c)
{
	bool directory = c->op->kind == OP_MKDIR;
	struct namei_new what = { .mode = directory ? S_IFDIR | 0755 : S_IFREG | 0640 };
	struct inode inode;
	int name = 0, expected, result;

	if (!may_change(c, c->directory, 0))
		return;
	expected = model_create(c->m, &c->who, c->directory, c->op->name, directory, &name);
	result = namei_create(c->s->namei, &c->actor, id_of(c, c->directory),
			      model_text(c->op->name), &what, &inode);
	same(c, expected, result);
	if (result)
		return;
	c->m->nodes[c->m->names[name].node].id = inode.item.id;
	inode_release(&inode);
	if (!directory)
		fill(c, c->m->names[name].node, c->op->number);
}

static void do_write(struct context *c)
{
	int name = live_name(c);

	if (!name || c->m->nodes[c->m->names[name].node].directory ||
	    model_may_write(c->m, c->who.uid, name))
		return;
	fill(c, c->m->names[name].node, c->op->number);
	c->run->operations++;
	c->run->succeeded[OP_WRITE]++;
}

/* ---- descriptors ---------------------------------------------------------------------- */

#define OPEN_MAX 6

static unsigned open_count(const struct model *m)
{
	unsigned count = 0;

	for (int i = MODEL_ROOT; i < m->nodes_count; i++)
		count += m->nodes[i].open;
	return count;
}

/* The node of the n-th descriptor, or 0. */
static int any_open(const struct context *c)
{
	unsigned count = open_count(c->m), n = count ? c->op->number % count : 0;

	for (int i = MODEL_ROOT; i < c->m->nodes_count && count; i++) {
		if (n < c->m->nodes[i].open)
			return i;
		n -= c->m->nodes[i].open;
	}
	return 0;
}

static void do_open(struct context *c)
{
	int name = live_name(c);

	if (!name || c->m->nodes[c->m->names[name].node].directory ||
	    model_may_write(c->m, c->who.uid, name) || open_count(c->m) == OPEN_MAX)
		return;
	c->m->nodes[c->m->names[name].node].open++;
	c->run->operations++;
	c->run->succeeded[OP_OPEN]++;
}

static void close_one(struct context *c, int node)
{
	struct place places[MODEL_LINKS];
	unsigned count = 0;

	if (--c->m->nodes[node].open)
		return;
	for (int n = 1; n < c->m->names_count && count < MODEL_LINKS; n++)
		if (c->m->names[n].node == node && c->m->names[n].deleted)
			places[count++] = subject_place(c->s, n);
	model_released(c->m, node);
	for (unsigned i = 0; i < count; i++)
		lifecycle_note_released(c->s->life, id_of(c, node), &places[i]);
}

static void do_close(struct context *c)
{
	int node = any_open(c);

	if (!node)
		return;
	close_one(c, node);
	c->run->operations++;
	c->run->succeeded[OP_CLOSE]++;
}

static void close_all(struct context *c)
{
	for (int i = MODEL_ROOT; i < c->m->nodes_count; i++)
		while (c->m->nodes[i].open)
			close_one(c, i);
}

static void do_scribble(struct context *c)
{
	int node = any_open(c);

	if (!node)
		return;
	fill(c, node, c->op->number);
	c->run->operations++;
	c->run->succeeded[OP_SCRIBBLE]++;
}

/* Of two live names in one directory that goes whole the model does not know which is met last. */
static bool has_open_twice(const struct model *m, int directory)
{
	for (int i = MODEL_ROOT; i < m->nodes_count; i++) {
		unsigned below = 0;

		if (!m->nodes[i].open)
			continue;
		for (int n = 1; n < m->names_count; n++)
			below += m->names[n].node == i && !m->names[n].deleted &&
				 model_is_below(m, m->names[n].directory, directory);
		if (below > 1)
			return true;
	}
	return false;
}

static void do_chmod(struct context *c)
{
	struct attr_change change = { .set = ATTR_MODE };
	int name = live_name(c);
	struct inode inode;
	struct model_node *node;

	if (!name || (c->m->rights && c->m->nodes[c->m->names[name].node].uid != c->who.uid))
		return;
	node = &c->m->nodes[c->m->names[name].node];
	/* A directory its owner can use. */
	change.mode = (c->op->number & 0777) | (node->directory ? 0700 : 0) |
		      (node->directory && c->m->rights ? c->op->number & 01000 : 0);
	/* One in two is closed to all others, or open to all. */
	if (node->directory && c->m->rights && c->op->number & 02000)
		change.mode = c->op->number & 1 ? 0777 : 0700;
	node->mode = change.mode;
	same(c, 0, file_setattr(c->s->namei, &c->s->where, node->id, &change, &inode));
	inode_release(&inode);
}

static void do_link(struct context *c)
{
	int name = live_name(c), expected, result;
	struct place at;
	struct inode inode;

	if (!name || model_any_policy(c->m, MODEL_TRASH_MAX) || !may_change(c, c->directory2, 0))
		return;
	at = subject_place(c->s, name);
	expected = model_link(c->m, name, c->directory2, c->op->name2);
	result = namei_link(c->s->namei, &c->actor, &at, id_of(c, c->directory2),
			    model_text(c->op->name2), &inode);
	same(c, expected, result);
	if (!result)
		inode_release(&inode);
}

static void do_rename(struct context *c)
{
	bool exchange = c->op->kind == OP_EXCHANGE, noreplace = !exchange && c->op->number % 8 == 0;
	struct namei_renamed renamed;
	int name = live_name(c), other = model_find(c->m, c->directory2, c->op->name2), expected;

	if (name && (!may_change(c, c->directory, name) || !may_change(c, c->directory2, other) ||
		     !may_turn(c, name, c->directory2) ||
		     (exchange && other && !may_turn(c, other, c->directory))))
		return;
	expected = model_rename(c->m, &c->who, c->directory, c->op->name, c->directory2,
				c->op->name2, noreplace, exchange);

	same(c, expected,
	     namei_rename(c->s->namei, &c->actor, id_of(c, c->directory), model_text(c->op->name),
			  id_of(c, c->directory2), model_text(c->op->name2),
			  exchange  ? RENAME_EXCHANGE :
			  noreplace ? RENAME_NOREPLACE :
				      0,
			  &renamed));
}

/* ---- into the trash ------------------------------------------------------------------------ */

static int remove_one(struct context *c, int directory, int text, bool as_directory, bool whole)
{
	uint64_t id = id_of(c, directory);
	int name = model_find(c->m, directory, text), expected, result;

	if (name && !may_change(c, directory, name))
		return -EACCES;
	/* By mv: into the view, and away from its parent. */
	if (name && whole && c->m->rights &&
	    (model_may_take(c->m, c->who.uid, name) || !may_turn(c, name, 0)))
		return -EACCES;
	expected = model_remove(c->m, &c->who, directory, text, as_directory, whole);

	result = whole ? lifecycle_discard(c->s->life, &c->actor, id, model_text(text)) :
			 lifecycle_remove(c->s->life, &c->actor, id, model_text(text), as_directory);
	same(c, expected, result);
	subject_learn(c->s);
	return result;
}

static int remove_all(struct context *c, int directory, int name)
{
	int node = c->m->names[name].node, text = c->m->names[name].text, result = 0;

	for (int below = 0;
	     below < MODEL_TEXTS * MODEL_RENAMED && c->m->nodes[node].directory && !result; below++) {
		int child = model_find(c->m, node, below);

		if (child)
			result = remove_all(c, node, child);
	}
	return result ? result : remove_one(c, directory, text, c->m->nodes[node].directory, false);
}

static void do_remove(struct context *c)
{
	int name = live_name(c);

	if (c->op->kind == OP_RM_RF && name)
		remove_all(c, c->directory, name);
	else if (c->op->kind == OP_DISCARD && name && has_open_twice(c->m, c->m->names[name].node))
		return;
	else if (c->op->kind != OP_RM_RF)
		remove_one(c, c->directory, c->op->name, c->op->kind == OP_RMDIR,
			   c->op->kind == OP_DISCARD);
}

/* ---- out of it --------------------------------------------------------------------------------- */

/* The n-th of what a view shows: entries, and what is in deleted directories. 0: nothing. */
static int any_entry(const struct context *c)
{
	const struct model *m = c->m;
	uint32_t count = 0;

	for (int pass = 0; pass < 2; pass++) {
		uint32_t n = count ? c->op->number % count : 0;

		if (pass && !count)
			return 0;
		for (int i = 1; i < m->names_count; i++) {
			struct model_standing st;

			if (!m->names[i].node || !m->nodes[m->names[i].directory].id)
				continue;
			st = model_stand(m, i);
			if (!st.deleted || !st.visible)
				continue;
			if (pass && !n--)
				return i;
			count += !pass;
		}
	}
	return 0;
}

/* A refusal in the middle of a long restore leaves what came back: protected targets are not tried. */
static bool is_protected_somewhere(const struct context *c)
{
	return model_any_policy(c->m, MODEL_PROTECT);
}

struct patience {
	uint64_t left;
};

static bool stop_after(void *data, uint64_t done)
{
	struct patience *p = data;

	return p->left-- == 0;
}

static bool stop_undo_after(void *data, uint64_t done, uint64_t total)
{
	struct context *c = data;

	return stop_after(c->patience, done);
}

static int restore_call(struct context *c, const struct place *at, unsigned flags, struct patience *p)
{
	return c->op->kind == OP_ORIGIN ?
		       lifecycle_restore_origin(c->s->life, &c->actor, at, flags,
						p ? stop_after : NULL, p, NULL) :
		       lifecycle_restore(c->s->life, &c->actor, at, id_of(c, c->directory2),
					 model_text(c->op->name2), flags, p ? stop_after : NULL, p);
}

/* What is broken off may be called again, also by the process that comes after. */
static void between(struct context *c)
{
	if (c->op->number >> 20 & 1)
		subject_remount(c->s);
}

static unsigned subject_flags(unsigned flags)
{
	return (flags & MODEL_NOREPLACE ? RESTORE_NOREPLACE : 0) |
	       (flags & MODEL_RENAME ? RESTORE_RENAME : 0) |
	       (flags & MODEL_PARENTS ? RESTORE_PARENTS : 0);
}

/* What was renamed already would be so again: "a (restored) (restored)", for which the model has no number. */
static bool renames_run_out(const struct context *c)
{
	for (int n = 1; n < c->m->names_count; n++)
		if (c->m->names[n].node && c->m->names[n].text >= MODEL_TEXTS &&
		    (model_stand(c->m, n).deleted ||
		     c->m->names[n].text >= MODEL_TEXTS * (MODEL_RENAMED - 2)))
			return true;
	return false;
}

static void do_restore(struct context *c)
{
	static const unsigned flags[] = { 0, MODEL_NOREPLACE, MODEL_RENAME, MODEL_NOREPLACE };
	unsigned flag = flags[c->op->number >> 8 & 3];
	struct patience p = { c->op->number >> 12 & 7 };
	bool interrupted = c->op->number >> 16 % 4 == 0;
	int name = any_entry(c), expected, result;
	struct place at;

	if (!name || is_protected_somewhere(c) || (flag & MODEL_RENAME && renames_run_out(c)))
		return;
	at = subject_place(c->s, name);
	if (c->op->kind == OP_ORIGIN) {
		flag |= c->op->number >> 10 & 3 ? MODEL_PARENTS : 0;
		expected = model_restore_origin(c->m, &c->who, name, flag);
	} else {
		if (c->op->name2 >= MODEL_TEXTS)
			return;
		expected = model_restore(c->m, &c->who, name, c->directory2, c->op->name2, flag);
	}
	result = restore_call(c, &at, subject_flags(flag), interrupted ? &p : NULL);
	if (result == -EINTR) {
		between(c);
		result = restore_call(c, &at, subject_flags(flag), NULL);
	}
	same(c, expected, result);
}

/* Which batch, 0: none. Every other time a certain one is asked for. */
static int any_batch(const struct context *c)
{
	int last = model_last_batch(c->m, &c->who);

	/* Of one that was destroyed at once nobody told the number. */
	if (last > 0 && c->m->batches[last].seq && c->op->number >> 4 & 1)
		return last;
	for (int i = c->m->batches_count - 1; i > 0; i--)
		if (c->m->batches[i].seq && model_batch_has_rows(c->m, i) &&
		    model_batch_is_known(c->m, i) && c->op->number >> (5 + i % 8) & 1)
			return i;
	return 0;
}

static void trace_entry(void *data, const char *path, const struct item *item, int result)
{
	printf("#    %s: %d\n", path, result);
}

static int undo_call(struct context *c, int batch, bool by_id, enum model_taken taken, bool dry,
		     struct patience *p, struct undo_result *ret)
{
	struct undo_options options = {
		.batch = by_id ? c->m->batches[batch].seq : 0,
		.taken = (enum undo_taken)taken,
		.dry_run = dry,
		.allowed = may_restore,
		.progress = p ? stop_undo_after : NULL,
		.entry = getenv("DDBFS_MODEL_TRACE") ? trace_entry : NULL,
		.data = c,
	};

	c->patience = p;

	return lifecycle_undo(c->s->life, &c->actor, &options, ret);
}

static void do_undo(struct context *c)
{
	enum model_taken taken = (enum model_taken)(c->op->number & 3);
	bool dry = (c->op->number >> 2 & 3) == 0, interrupted = !dry && (c->op->number >> 16 & 3) == 0;
	struct patience p = { c->op->number >> 12 & 7 };
	int batch = any_batch(c), expected, result;
	bool by_id = batch != model_last_batch(c->m, &c->who) || interrupted;
	bool before = batch > 0 && c->m->batches[batch].undone;
	struct undo_result undone;
	struct model_undone mine;

	if (batch <= 0 || is_protected_somewhere(c) || (taken == MODEL_RENAMES && renames_run_out(c)))
		return;
	expected = model_undo(c->m, &c->who, batch, taken, dry, &mine);
	result = undo_call(c, batch, by_id, taken, dry, interrupted ? &p : NULL, &undone);
	if (result == -EINTR) {
		between(c);
		result = undo_call(c, batch, by_id, taken, dry, NULL, &undone);
		/* All that was left is what he may not have back. */
		if (!expected && mine.refused && result == -EACCES) {
			c->m->batches[batch].undone = before;
			return;
		}
		same(c, expected, result);
		return;
	}
	same(c, expected, result);
	if (result || dry)
		return;
	CK(c->s, undone.batch.seq == c->m->batches[batch].seq, "another batch was undone");
	CK(c->s, undone.restored == mine.restored && undone.skipped == mine.skipped,
	   "%lu back and %lu skipped, not %lu and %lu", (unsigned long)undone.restored,
	   (unsigned long)undone.skipped, (unsigned long)mine.restored, (unsigned long)mine.skipped);
}

/* ---- for ever ------------------------------------------------------------------------------------- */

static void do_purge(struct context *c)
{
	bool recursive = c->op->number >> 16 & 1;
	struct store_value value = { 0 };
	int name = any_entry(c), expected, result;
	struct item item;
	struct place at;

	if (!name)
		return;
	at = subject_place(c->s, name);
	expected = model_may_purge(c->m, c->who.uid, name);
	CK(c->s, !record_get_item(c->s->store, &at, true, &value, &item), "an entry is not there");
	result = may_purge(c, &at, &item);
	store_value_release(&value);
	if (expected || result) {
		same(c, expected, result);
		return;
	}
	expected = model_purge(c->m, &c->who, name, recursive, -1);
	same(c, expected, lifecycle_purge(c->s->life, &c->actor, &at, recursive));
}

static void do_empty(struct context *c)
{
	struct empty_options options = { .directory = id_of(c, c->directory),
					 .now = c->op->number & 1,
					 .dry_run = (c->op->number >> 1 & 3) == 0,
					 .allowed = may_purge,
					 .data = c };
	struct model_emptied mine;
	struct empty_result emptied;

	if (!options.dry_run)
		model_empty(c->m, &c->who, c->directory, options.now, &mine);
	same(c, 0, lifecycle_empty(c->s->life, &c->actor, &options, &emptied));
	if (!options.dry_run)
		CK(c->s, emptied.entries == mine.entries && emptied.refused == mine.refused,
		   "emptied %lu and refused %lu, not %lu and %lu", (unsigned long)emptied.entries,
		   (unsigned long)emptied.refused, (unsigned long)mine.entries,
		   (unsigned long)mine.refused);
}

static void sweep_to_the_end(struct context *c, uint64_t budget)
{
	struct sweep_result swept;
	int result;

	do {
		result = lifecycle_sweep(c->s->life, budget, &swept);
		CK(c->s, !result, "a sweep: %d", result);
		CK(c->s, swept.paused == c->m->suspect, "destruction is%s paused",
		   swept.paused ? "" : " not");
	} while (swept.more);
}

/* Has the trash below each cap measured: without, that happens only where something was deleted. True: there is one. */
static bool expect_caps(struct context *c)
{
	bool any = false;

	for (int i = MODEL_ROOT; i < c->m->nodes_count; i++) {
		struct rules rules;

		if (!(c->m->nodes[i].policies & (1u << MODEL_TRASH_MAX | 1u << MODEL_TRASH_MAX_ENTRIES)) ||
		    (i != MODEL_ROOT && !c->m->nodes[i].own))
			continue;
		any = true;
		lifecycle_lock(c->s->life);
		if (!rules_load(c->s->life, id_of(c, i), &rules))
			cap_expect(c->s->life, &rules);
		lifecycle_unlock(c->s->life);
	}
	return any;
}

static void do_sweep(struct context *c)
{
	bool capped = expect_caps(c);

	/* What is put off by the first (held, or with its directory) the second finds so. */
	model_sweep(c->m);
	model_enforce_caps(c->m);
	model_sweep(c->m);
	/* A pass that ends with its budget is content with being under the cap. */
	sweep_to_the_end(c, capped ? 1000 : 1 + c->op->number % 5);
	sweep_to_the_end(c, 1000);
	same(c, 0, 0);
	subject_learn(c->s);
	subject_compare(c->s);
	subject_compare_counters(c->s);
}

/* ---- policies, time, the process ------------------------------------------------------------------ */

static const struct {
	enum model_policy which;
	const char *name, *value;
	int64_t number;
} policies[] = {
	{ MODEL_TRASH_MAX, "trash_max", "200", 200 },
	{ MODEL_TRASH_MAX, "trash_max", "4000", 4000 },
	{ MODEL_TRASH_MAX, "trash_max", NULL, 0 },
	{ MODEL_TRASH_MAX_ENTRIES, "trash_max_entries", "1", 1 },
	{ MODEL_TRASH_MAX_ENTRIES, "trash_max_entries", "4", 4 },
	{ MODEL_TRASH_MAX_ENTRIES, "trash_max_entries", "12", 12 },
	{ MODEL_TRASH_MAX_ENTRIES, "trash_max_entries", NULL, 0 },
#define CAP_POLICIES 7 /* those above */
	{ MODEL_RETENTION, "retention", "1h", MODEL_HOUR },
	{ MODEL_RETENTION, "retention", "0", 0 },
	{ MODEL_RETENTION, "retention", "60d", 60 * MODEL_DAY },
	{ MODEL_RETENTION, "retention", "forever", MODEL_FOREVER },
	{ MODEL_RETENTION, "retention", NULL, 0 },
	{ MODEL_VERSIONS, "versions", "1", 1 },
	{ MODEL_VERSIONS, "versions", "1", 1 },
	{ MODEL_VERSIONS, "versions", "1", 1 },
	{ MODEL_VERSIONS, "versions", "1", 1 },
	{ MODEL_VERSIONS, "versions", "0", 0 },
	{ MODEL_VERSIONS, "versions", NULL, 0 },
	{ MODEL_TEMPORARY, "temporary", "0", 0 },
	{ MODEL_TEMPORARY, "temporary", "1h", MODEL_HOUR },
	{ MODEL_GRACE, "grace", "0", 0 },
	{ MODEL_GRACE, "grace", "2h", 2 * MODEL_HOUR },
	{ MODEL_GRACE, "grace", NULL, 0 },
	{ MODEL_HOLD, "hold", "yes", 1 },
	{ MODEL_HOLD, "hold", NULL, 0 },
	{ MODEL_HOLD, "hold", NULL, 0 },
	{ MODEL_PROTECT, "protect", "yes", 1 },
	{ MODEL_PROTECT, "protect", NULL, 0 },
	{ MODEL_PROTECT, "protect", NULL, 0 },
};

/* Caps that overlap evict in the order in which they were met; and what a name of several weighs is roughly said. */
static bool is_too_much(const struct context *c, size_t i)
{
	if (policies[i].which != MODEL_TRASH_MAX && policies[i].which != MODEL_TRASH_MAX_ENTRIES)
		return false;
	if (model_any_policy(c->m, MODEL_TRASH_MAX) || model_any_policy(c->m, MODEL_TRASH_MAX_ENTRIES))
		return true;
	for (int n = MODEL_ROOT; n < c->m->nodes_count && policies[i].which == MODEL_TRASH_MAX; n++)
		if (c->m->nodes[n].several)
			return true;
	return false;
}

static void set_policy(struct context *c, int node, size_t i)
{
	struct model_node *n = &c->m->nodes[node];
	struct actor root = c->actor;
	char name[64];

	/* Taken back they are by root; set, by who may. */
	if (!c->m->rights || !policies[i].value)
		root.uid = root.gid = 0;
	else if (n->uid != c->who.uid) {
		snprintf(name, sizeof(name), "user.ddbfs.%s", policies[i].name);
		same(c, -EPERM,
		     file_setxattr(c->s->namei, &root, &c->s->where, n->id, name, policies[i].value,
				   strlen(policies[i].value), 0));
		return;
	}
	snprintf(name, sizeof(name), "user.ddbfs.%s", policies[i].name);
	n->policy[policies[i].which] = policies[i].number;
	if (policies[i].value) {
		n->policies |= 1u << policies[i].which;
		same(c, 0,
		     file_setxattr(c->s->namei, &root, &c->s->where, n->id, name, policies[i].value,
				   strlen(policies[i].value), 0));
	} else if (n->policies & 1u << policies[i].which) {
		n->policies &= ~(1u << policies[i].which);
		same(c, 0, file_removexattr(c->s->namei, &root, &c->s->where, n->id, name));
	}
}

static void do_policy(struct context *c)
{
	bool cap = c->op->kind == OP_CAP;
	size_t i = cap ? c->op->number % CAP_POLICIES :
			 CAP_POLICIES + c->op->number % (ARRAY_SIZE(policies) - CAP_POLICIES);

	if (policies[i].value && is_too_much(c, i))
		return;
	if ((cap || c->directory != MODEL_ROOT) && policies[i].value) {
		set_policy(c, c->directory, i);
		return;
	}
	/* What is taken back is taken back everywhere: few histories would get on with protect and hold. */
	for (int node = MODEL_ROOT; node < c->m->nodes_count && !policies[i].value; node++)
		if (c->m->nodes[node].policies & 1u << policies[i].which &&
		    model_is_live_directory(c->m, node))
			set_policy(c, node, i);
}

static void do_pass(struct context *c)
{
	static const int64_t times[] = { 10 * MODEL_SECOND, 2 * MODEL_MINUTE, 70 * MODEL_MINUTE,
					 MODEL_DAY,	    12 * MODEL_DAY,   40 * MODEL_DAY };

	test_clock_advance(&c->s->clock, times[c->op->number % ARRAY_SIZE(times)]);
}

/* A jump, and the next one takes it back. */
static void do_step(struct context *c)
{
	static const int64_t steps[] = { 400 * MODEL_DAY, 2 * MODEL_HOUR, -30 * MODEL_MINUTE };
	struct run *run = c->run;
	int64_t ns = run->stepped_ns ? -run->stepped_ns : steps[c->op->number % ARRAY_SIZE(steps)];

	run->stepped_ns = run->stepped_ns ? 0 : ns;
	run->ahead_ns += ns;
	test_clock_step(&c->s->clock, ns);
}

static void do_accept(struct context *c)
{
	same(c, 0, lifecycle_clock_accept(c->s->life));
	c->run->ahead_ns = c->run->stepped_ns = c->run->forgotten_ns = 0;
	c->run->suspect = c->run->behind = false;
}

static void do_remount(struct context *c)
{
	close_all(c);
	subject_learn(c->s);
	subject_remount(c->s);
}

static void do_kill(struct context *c)
{
	subject_crash(c->s);
}

/* ---- histories ----------------------------------------------------------------------------------------- */

static void (*const appliers[OP_KINDS])(struct context *c) = {
	[OP_CREATE] = do_create,   [OP_MKDIR] = do_create,	[OP_WRITE] = do_write,
	[OP_CHMOD] = do_chmod,	   [OP_LINK] = do_link,		[OP_RENAME] = do_rename,
	[OP_EXCHANGE] = do_rename, [OP_UNLINK] = do_remove,	[OP_RMDIR] = do_remove,
	[OP_RM_RF] = do_remove,	   [OP_DISCARD] = do_remove,	[OP_RESTORE] = do_restore,
	[OP_ORIGIN] = do_restore,  [OP_UNDO] = do_undo,		[OP_PURGE] = do_purge,
	[OP_EMPTY] = do_empty,	   [OP_POLICY] = do_policy,	[OP_PASS] = do_pass,
	[OP_STEP] = do_step,	   [OP_ACCEPT] = do_accept,	[OP_SWEEP] = do_sweep,
	[OP_REMOUNT] = do_remount, [OP_KILL] = do_kill,		[OP_OPEN] = do_open,
	[OP_CLOSE] = do_close,	   [OP_SCRIBBLE] = do_scribble, [OP_CAP] = do_policy,
};

static bool is_about_the_trash(uint8_t kind)
{
	return kind == OP_RESTORE || kind == OP_ORIGIN || kind == OP_UNDO || kind == OP_PURGE ||
	       kind == OP_EMPTY || kind == OP_SWEEP || kind == OP_REMOUNT || kind == OP_KILL;
}

static void apply(struct subject *s, const struct operation *op)
{
	struct context c = { .s = s, .run = s->run, .m = s->m, .op = op };

	/* Time passes between any two, so that each leaves times of its own. */
	test_clock_advance(&s->clock, MODEL_SECOND * (1 + op->number % 3));
	subject_time(s);
	make_actor(&c);
	c.directory = follow(s->m, op->path);
	c.directory2 = follow(s->m, op->path2);
	appliers[op->kind](&c);
	subject_learn(s);
}

static void finish(struct subject *s)
{
	struct operation sweep = { .kind = OP_SWEEP };

	apply(s, &sweep);
	subject_compare(s);
	subject_check(s);
	subject_close(s);
}

void history_run(struct run *run)
{
	struct subject *s = calloc(1, sizeof(*s));

	if (!s)
		_exit(2);
	subject_open(s, run);
	if (run->killed)
		subject_time(s);
	run->killed = false;
	if (run->at)
		subject_compare(s);
	while (run->at < run->history.count) {
		const struct operation *op = &run->history.operations[run->at++];

		apply(s, op);
		if (is_about_the_trash(op->kind) || run->at % COMPARE_EVERY == 0) {
			subject_time(s);
			subject_compare(s);
		}
	}
	finish(s);
	fflush(NULL);
	_exit(0);
}
