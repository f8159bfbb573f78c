/*
 * restore.c - bringing one entry back, to any live directory.
 *
 * What went with a directory comes back first, in steps (restore-tree.c), the
 * directory's own item last: until then all of it is in the trash, and after a
 * crash the same restore goes on. That last step, and all of a file's restore,
 * is one transaction here; what bears the name already goes to the trash in it.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "lifecycle/internal.h"

#define RENAME_TRIES 1000

int restore_tell(struct restoring *r, uint64_t count)
{
	r->done += count;
	return r->progress && r->progress(r->data, r->done) ? -EINTR : 0;
}

void restore_revive(struct item *item, uint64_t seq, int64_t now_ns)
{
	uint64_t by = item->deletion.batch ? item->deletion.batch : seq;

	item->flags &= ~(uint32_t)ITEM_DELETION;
	item->ctime = tree_time(now_ns);
	if (S_ISDIR(item->mode) && by)
		restore_settle_time(item, by);
	item->deletion = (struct deletion){ 0 };
}

void restore_settle_time(struct item *directory, uint64_t by)
{
	struct item_directory *d = &directory->directory;

	/* As it was before the first deletion in it, by the same hand that then removed it. */
	if (d->saved_batch == by)
		directory->mtime = d->saved_mtime;
	d->saved_batch = by;
	d->saved_mtime = directory->mtime;
}

/* ---- one transaction ----------------------------------------------------------------- */

/* All that one restore reads and decides. */
struct comeback {
	struct lifecycle *l;
	struct restoring *r;
	const struct place *at;
	struct place to;
	int64_t now_ns;
	struct store_value value, link_value, victim_value;
	struct item item, link, victim;
	struct guard guard; /* of a directory */
	struct tree_directory parent;
	struct tree_directory from; /* a live directory's, inside a deleted one: counts its sub-directories */
	struct removal removal; /* of the victim */
	bool parent_loaded, from_loaded, replaces, removing;
	bool shadowed; /* a directory with something deleted in it */
	uint64_t topology;
	bool moves; /* a directory to another parent */
};

static void comeback_release(struct comeback *c)
{
	store_value_release(&c->value);
	store_value_release(&c->link_value);
	store_value_release(&c->victim_value);
	if (c->parent_loaded)
		tree_release(&c->parent);
	if (c->from_loaded)
		tree_release(&c->from);
}

static int load_item(struct comeback *c)
{
	struct lifecycle *l = c->l;
	struct standing st;
	int result = record_get_item(l->store, c->at, false, &c->value, &c->item);

	if (!result)
		result = standing_load(l, c->at, &c->item, &st);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	if (!st.deleted || (!st.visible && !st.pinned))
		return -ENOENT;
	if (S_ISDIR(c->item.mode))
		result = record_get_guard(l->store, c->item.id, &c->guard);
	else if (c->item.flags & ITEM_REFERENCE)
		result = record_get_link(l->store, c->item.id, false, &c->link_value, &c->link);
	if (result)
		return result == STORE_ABSENT ? STORE_CONFLICT : result;
	if (S_ISDIR(c->item.mode)) {
		result = shadow_needed(l, c->item.id, NULL);
		c->shadowed = result == 1;
	}
	return util_min(result, 0);
}

static int load_directories(struct comeback *c)
{
	struct lifecycle *l = c->l;
	struct rules rules;
	int result = rules_load(l, c->to.directory, &rules);

	if (!result && !rules.live)
		result = -ENOENT;
	if (!result)
		result = tree_load(l->store, c->to.directory, &c->parent);
	if (result)
		return result;
	c->parent_loaded = true;
	if (c->at->state != KEY_ACT || !S_ISDIR(c->item.mode))
		return 0;
	result = tree_load(l->store, c->at->directory, &c->from);
	c->from_loaded = !result;
	return result;
}

static int check_cycle(struct comeback *c)
{
	int result;

	c->moves = S_ISDIR(c->item.mode) && c->at->directory != c->to.directory;
	if (!c->moves)
		return 0;
	result = tree_is_below(c->l->store, c->to.directory, c->item.id, &c->topology);
	return result == 1 ? -EINVAL : result;
}

/* "name (restored)", "name (restored 2)", ...: as much of the name as then fits. */
static void alternative_name(const char *name, unsigned n, char ret_name[KEY_NAME_MAX + 1])
{
	char suffix[32];
	size_t size;

	if (n == 1)
		snprintf(suffix, sizeof(suffix), " (restored)");
	else
		snprintf(suffix, sizeof(suffix), " (restored %u)", n);
	size = util_min(strlen(name), KEY_NAME_MAX - strlen(suffix));
	/* Not in the middle of a character of UTF-8. */
	while (size && size < strlen(name) && ((unsigned char)name[size] & 0xc0) == 0x80)
		size--;
	memcpy(ret_name, name, size);
	strcpy(ret_name + size, suffix);
}

static int find_alternative(struct comeback *c)
{
	char name[KEY_NAME_MAX + 1];

	memcpy(name, c->to.name, sizeof(name));
	for (unsigned n = 1; n <= RENAME_TRIES; n++) {
		struct store_value value = { 0 };
		struct item item;
		int result;

		alternative_name(name, n, c->to.name);
		result = record_get_item(c->l->store, &c->to, true, &value, &item);
		store_value_release(&value);
		if (result == STORE_ABSENT)
			return 0;
		if (result && result != -EBADMSG)
			return result;
	}
	return -EEXIST;
}

/* Whether what stands in the name's place, if anything, is what took it by rename. */
static bool is_replacer(const struct item *item, const struct item *standing)
{
	const struct deletion *d = &item->deletion;

	return standing && item->flags & ITEM_DELETION && d->cause == ITEM_REPLACED &&
	       d->replaced_by == standing->id;
}

/* What bears the name. Two names of one file: 1, nothing is to be done, as rename(2) has it. */
static int load_victim(struct comeback *c)
{
	int result = record_get_item(c->l->store, &c->to, false, &c->victim_value, &c->victim);

	if (result && result != STORE_ABSENT)
		return result;
	if (c->r->flags & RESTORE_SWAP && !is_replacer(&c->item, result ? NULL : &c->victim))
		return -ESTALE;
	if (result)
		return 0;
	if (c->r->flags & RESTORE_NOREPLACE)
		return -EEXIST;
	if (c->r->flags & RESTORE_RENAME)
		return find_alternative(c);
	if (c->victim.id == c->item.id)
		return 1;
	if (S_ISDIR(c->item.mode) != S_ISDIR(c->victim.mode))
		return S_ISDIR(c->victim.mode) ? -EISDIR : -ENOTDIR;
	c->replaces = true;
	return 0;
}

/* By a swap a directory goes with what is in it, as by mv into the trash; a rename wants it empty. */
static bool takes_whole(const struct comeback *c)
{
	return c->r->flags & RESTORE_SWAP && S_ISDIR(c->victim.mode);
}

/* What the parent needs before: marks upwards, and the victim's removal. Both may load it anew. */
static int prepare_parent(struct comeback *c)
{
	struct lifecycle *l = c->l;
	int result;

	if (c->replaces) {
		result = removal_prepare(l, &c->removal, c->r->actor, ITEM_REPLACED, c->item.id,
					 &c->parent, &c->victim, takes_whole(c));
		c->removing = !result;
		return result;
	}
	if (!c->shadowed)
		return 0;
	result = lifecycle_mark_shadows(l, c->parent.id);
	if (result)
		return result;
	tree_release(&c->parent);
	c->parent_loaded = false;
	result = tree_load(l->store, c->to.directory, &c->parent);
	c->parent_loaded = !result;
	return result;
}

static void add_from_trash(struct comeback *c, struct transaction *t)
{
	const struct item *file = c->item.flags & ITEM_REFERENCE ? &c->link : &c->item;
	struct item link = c->link;

	deletion_delete_rows(t, c->at, &c->item.deletion);
	transaction_count_add(t, COUNTER_LIVE_ITEMS, 1);
	transaction_count_add(t, COUNTER_TRASH_ITEMS, -1);
	transaction_count_add(t, COUNTER_RESTORED, 1);
	if (S_ISREG(file->mode) && !(c->item.flags & ITEM_REFERENCE && c->link.links_live)) {
		transaction_count_add(t, COUNTER_LIVE_BYTES, (int64_t)file->size);
		transaction_count_add(t, COUNTER_TRASH_BYTES, -(int64_t)file->size);
	}
	if (!(c->item.flags & ITEM_REFERENCE))
		return;
	link.links_live++;
	link.ctime = tree_time(c->now_ns);
	transaction_put_link(t, &link, c->link.version);
}

/* The row SHD#name in the new parent: of what comes back, or none. */
static int add_shadow(struct comeback *c, struct transaction *t)
{
	struct shadow shadow = { .directory = c->item.id }, old;
	uint64_t version = 0;
	int result;

	if (!c->shadowed)
		return c->replaces && c->victim.flags & ITEM_SHADOWED ? shadow_delete(c->l, t, &c->to) :
									0;
	result = record_get_shadow(c->l->store, c->to.directory, c->to.name, &old, &version);
	if (result && result != STORE_ABSENT)
		return result;
	memcpy(shadow.name, c->to.name, sizeof(shadow.name));
	transaction_put_shadow(t, c->l->store, c->to.directory, &shadow, version);
	return 0;
}

static int add_directory(struct comeback *c, struct transaction *t)
{
	struct guard guard = { .at = c->to };
	int result;

	transaction_put_guard(t, c->item.id, &guard, c->guard.version);
	if (c->moves)
		tree_put_topology(t, c->topology);
	c->parent.own.directory.subdirectories++;
	if (c->from_loaded) {
		c->from.own.directory.subdirectories -= c->from.own.directory.subdirectories > 0;
		result = c->item.flags & ITEM_SHADOWED ? shadow_delete(c->l, t, c->at) : 0;
		if (result)
			return result;
	}
	return add_shadow(c, t);
}

/*
 * The parent's times move on as with any new name; unless it came back itself,
 * and nothing touched it since: then it still has the time that was saved for
 * it. That is told from the directory alone, so that a restore which was broken
 * off leaves the same times when it is done again.
 */
static void touch_parent(struct comeback *c)
{
	const struct item_directory *d = &c->parent.own.directory;
	struct timespec mtime = c->parent.own.mtime;
	bool untouched = d->saved_batch && d->saved_mtime.tv_sec == mtime.tv_sec &&
			 d->saved_mtime.tv_nsec == mtime.tv_nsec && c->at->directory == c->parent.id;

	tree_touch(&c->parent, c->now_ns);
	if (untouched)
		c->parent.own.mtime = mtime;
}

static int add_all(struct comeback *c, struct transaction *t)
{
	struct item back = c->item;
	uint64_t batch = c->item.deletion.batch;
	int result;

	restore_revive(&back, c->at->seq, c->now_ns);
	back.flags &= ~(uint32_t)ITEM_SHADOWED;
	back.flags |= c->shadowed ? ITEM_SHADOWED : 0;
	transaction_put_item(t, c->l->store, &c->to, &back, c->replaces ? c->victim.version : 0);
	transaction_delete_item(t, c->l->store, c->at, c->item.version);
	if (c->at->state == KEY_DEL)
		add_from_trash(c, t);
	result = S_ISDIR(c->item.mode) ? add_directory(c, t) : 0;
	if (result)
		return result;
	touch_parent(c);
	if (c->replaces)
		removal_add(c->l, &c->removal, &c->parent, t, takes_whole(c));
	tree_put_own(t, c->l->store, &c->parent);
	tree_check_guard(t, &c->parent);
	/* In the trash, so its times are what they were. */
	if (c->from_loaded)
		tree_put_own(t, c->l->store, &c->from);
	return batch_add_restored(c->l, t, c->item.deletion.uid, batch, 1);
}

static int comeback_commit(struct comeback *c)
{
	_cleanup_(step_release) struct step step = { 0 };
	int result = add_all(c, &step.t);

	step_moved(&step, &c->item, c->at, &c->to);
	if (!result)
		result = step_commit(c->l, &step, STORE_RELEASING);
	return result;
}

int restore_ask(const struct restoring *r, const struct restore_move *move)
{
	const struct rights *rights = r->actor->rights;

	return rights ? rights->restore(rights->data, move) : 0;
}

static int check_rights(const struct comeback *c)
{
	const struct restore_move move = {
		.from = c->at,
		.item = &c->item,
		.parent = &c->parent,
		.victim = c->replaces ? &c->victim : NULL,
	};

	return restore_ask(c->r, &move);
}

static int restore_once(struct comeback *c)
{
	bool suspect;
	int result = load_item(c);

	if (!result)
		result = load_directories(c);
	if (!result)
		result = load_victim(c);
	if (result == 1) {
		c->r->to = c->to;
		return 0;
	}
	if (!result)
		result = check_cycle(c);
	if (!result)
		result = check_rights(c);
	if (!result)
		result = prepare_parent(c);
	if (result)
		return result;
	watch_steady_ns(c->l, &suspect);
	c->now_ns = lifecycle_now_ns(c->l);
	result = comeback_commit(c);
	if (c->removing)
		lifecycle_removal_done(c->l, &c->removal, !result);
	if (!result && S_ISDIR(c->item.mode))
		lifecycle_note_directory_changed(c->l);
	if (!result)
		c->r->to = c->to;
	return result;
}

int restore_one(struct lifecycle *l, struct restoring *r, const struct place *at, uint64_t parent,
		const char *name)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		struct comeback c = { .l = l, .r = r, .at = at };

		c.to = (struct place){ .directory = parent, .state = KEY_ACT };
		memcpy(c.to.name, name, strlen(name) + 1);
		result = restore_once(&c);
		comeback_release(&c);
	} while (store_retry(&retry, &result));
	/* A mark that stays is only a mark. */
	if (!result)
		shadow_prune(l, at->directory, at);
	return result;
}

/* ---- whole entries ---------------------------------------------------------------------- */

/* Before a long restore: what will refuse its last step is found out first. */
static int check_victim(struct lifecycle *l, const struct restoring *r, const struct item *item,
			const struct item *victim)
{
	struct key_range range;
	int result;

	if (r->flags & RESTORE_NOREPLACE)
		return -EEXIST;
	if (S_ISDIR(item->mode) != S_ISDIR(victim->mode))
		return S_ISDIR(victim->mode) ? -EISDIR : -ENOTDIR;
	if (!S_ISDIR(victim->mode) || r->flags & RESTORE_SWAP)
		return 0;
	key_range_live(victim->id, &range);
	result = range_is_empty(l->store, &range);
	return result == 1 ? 0 : result ? result : -ENOTEMPTY;
}

int restore_check(struct lifecycle *l, const struct restoring *r, const struct place *at,
		  const struct item *item, uint64_t parent, const char *name)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	_cleanup_(tree_release) struct tree_directory directory = { 0 };
	struct restore_move move = { .from = at, .item = item, .parent = &directory };
	struct place to = { .directory = parent, .state = KEY_ACT };
	struct item victim;
	int result = tree_load(l->store, parent, &directory);

	if (result)
		return result;
	memcpy(to.name, name, strlen(name) + 1);
	result = record_get_item(l->store, &to, true, &value, &victim);
	if (result && result != STORE_ABSENT)
		return result;
	if (r->flags & RESTORE_SWAP && !is_replacer(item, result ? NULL : &victim))
		return -ESTALE;
	if (!result && !(r->flags & RESTORE_RENAME)) {
		move.victim = &victim;
		result = check_victim(l, r, item, &victim);
		if (result)
			return result;
	}
	return restore_ask(r, &move);
}

static int check_target(struct lifecycle *l, const struct restoring *r, const struct place *at,
			const struct item *item, uint64_t parent, const char *name)
{
	struct rules rules;
	int result = rules_load(l, parent, &rules);

	if (result || !rules.live)
		return result ? result : -ENOENT;
	return restore_check(l, r, at, item, parent, name);
}

static int restore_below(struct lifecycle *l, struct restoring *r, const struct place *at,
			 const struct item *item)
{
	struct standing st;
	int result = standing_load(l, at, item, &st);

	if (result)
		return result;
	if (!st.deleted || (!st.visible && !st.pinned))
		return -ENOENT;
	return st.deletion.batch ? restore_tree(l, r, item->id, st.deletion.batch, &st.top) : 0;
}

int restore_entry(struct lifecycle *l, struct restoring *r, const struct place *at, uint64_t parent,
		  const char *name)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	struct outgoing out = { 0 };
	size_t size = strlen(name);
	struct item item;
	int result;

	if (!size || strchr(name, '/'))
		return -EINVAL;
	if (size > KEY_NAME_MAX)
		return -ENAMETOOLONG;
	result = record_get_item(l->store, at, true, &value, &item);
	if (result)
		return result == STORE_ABSENT ? -ENOENT : result;
	/* What is long is refused before it begins; a file's restore is one step, which asks all of this itself. */
	if (S_ISDIR(item.mode) || r->flags & RESTORE_SWAP)
		result = check_target(l, r, at, &item, parent, name);
	if (!result && S_ISDIR(item.mode))
		result = restore_below(l, r, at, &item);
	if (result)
		return result;
	/* By a swap a directory goes whole. */
	if (r->flags & RESTORE_SWAP)
		outgoing_begin(l, &out, parent, name);
	lifecycle_lock(l);
	result = restore_one(l, r, at, parent, name);
	lifecycle_unlock(l);
	outgoing_end(l, &out);
	return result ? result : restore_tell(r, 1);
}

int lifecycle_restore_as(struct lifecycle *l, const struct actor *actor, const struct place *at,
			 uint64_t parent, const char *name, unsigned flags,
			 bool (*progress)(void *data, uint64_t done), void *data, char **ret_path)
{
	struct restoring r = { .actor = actor, .flags = flags, .progress = progress, .data = data };
	int result = restore_entry(l, &r, at, parent, name);

	/* All was done when the last item was told. */
	if (result == -EINTR && r.to.name[0])
		result = 0;
	return result || !ret_path ? result : tree_path(l->store, &r.to, ret_path);
}

int lifecycle_restore(struct lifecycle *l, const struct actor *actor, const struct place *at,
		      uint64_t parent, const char *name, unsigned flags,
		      bool (*progress)(void *data, uint64_t done), void *data)
{
	return lifecycle_restore_as(l, actor, at, parent, name, flags, progress, data, NULL);
}
