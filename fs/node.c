/*
 * node.c - the node table: two chained hash tables over the same records, by
 * node id and by item id, under one mutex.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fs/node-record.h"
#include "store/util.h"

#define STAMPS 256
#define BUCKETS_FIRST 1024
#define ID_CONTROL_DIRECTORY UINT64_C(2)
#define ID_CONTROL_FILE UINT64_C(3)
#define ID_CONTROL_TAG UINT64_C(4)
#define ID_FIRST UINT64_C(16)

struct node_table {
	pthread_mutex_t lock; /* guards all below but the atomics, which are written under it */
	struct record **by_node;
	struct record **by_item;
	size_t buckets; /* of each, a power of two */
	uint64_t nodes;
	uint64_t lookups;
	uint64_t next;
	struct record root;
	_Atomic uint64_t moves;
	_Atomic uint64_t stamps[STAMPS];
};

static size_t bucket(const struct node_table *t, uint64_t id)
{
	return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (t->buckets - 1);
}

static _Atomic uint64_t *stamp_of(struct node_table *t, uint64_t directory)
{
	return &t->stamps[((directory * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % STAMPS];
}

/* ---- the two tables ------------------------------------------------------ */

static struct record *find_node(const struct node_table *t, uint64_t node)
{
	struct record *r = t->by_node[bucket(t, node)];

	while (r && r->node != node)
		r = r->next_node;
	return r;
}

static struct record *first_of_item(const struct node_table *t, uint64_t id)
{
	struct record *r = t->by_item[bucket(t, id)];

	while (r && r->id != id)
		r = r->next_item;
	return r;
}

static struct record *next_of_item(const struct record *r)
{
	uint64_t id = r->id;

	do
		r = r->next_item;
	while (r && r->id != id);
	return (struct record *)r;
}

/* The node that stands for an item in a view, the newest of several: files have one whatever the view. */
static struct record *find_item(const struct node_table *t, uint64_t id, uint64_t view)
{
	for (struct record *r = first_of_item(t, id); r; r = next_of_item(r))
		if (!r->detached && !r->aside && (!r->directory || r->view == view))
			return r;
	return NULL;
}

/* The same of those that the kernel has below the node `parent`, where it is of a directory in a view. */
static struct record *find_below(const struct node_table *t, uint64_t id, uint64_t view, uint64_t parent)
{
	for (struct record *r = first_of_item(t, id); r; r = next_of_item(r))
		if (!r->detached && !r->aside && (!r->directory || r->view == view) &&
		    (r->kind != NODE_VIEW || r->parent == parent))
			return r;
	return NULL;
}

static void insert(struct node_table *t, struct record *r)
{
	struct record **node = &t->by_node[bucket(t, r->node)];
	struct record **item = &t->by_item[bucket(t, r->id)];

	r->next_node = *node;
	*node = r;
	r->next_item = *item;
	*item = r;
}

static void withdraw(struct node_table *t, struct record *r)
{
	struct record **p = &t->by_node[bucket(t, r->node)];

	while (*p != r)
		p = &(*p)->next_node;
	*p = r->next_node;
	p = &t->by_item[bucket(t, r->id)];
	while (*p != r)
		p = &(*p)->next_item;
	*p = r->next_item;
}

/* Doubles the buckets; when memory is short, chains merely grow longer. */
static void grow(struct node_table *t)
{
	size_t old = t->buckets;
	struct record **by_node = calloc(old * 2, sizeof(struct record *));
	struct record **by_item = calloc(old * 2, sizeof(struct record *));
	struct record *all = NULL;

	if (!by_node || !by_item) {
		free(by_node);
		free(by_item);
		return;
	}
	for (size_t i = 0; i < old; i++) {
		for (struct record *r = t->by_node[i], *next; r; r = next) {
			next = r->next_node;
			r->next_node = all;
			all = r;
		}
	}
	free(t->by_node);
	free(t->by_item);
	t->by_node = by_node;
	t->by_item = by_item;
	t->buckets = old * 2;
	for (struct record *r = all, *next; r; r = next) {
		next = r->next_node;
		insert(t, r);
	}
}

int node_table_new(struct node_table **ret_table)
{
	struct node_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->buckets = BUCKETS_FIRST;
	t->by_node = calloc(t->buckets, sizeof(struct record *));
	t->by_item = calloc(t->buckets, sizeof(struct record *));
	t->root.at.name = strdup("");
	if (!t->by_node || !t->by_item || !t->root.at.name) {
		free(t->root.at.name);
		free(t->by_node);
		free(t->by_item);
		free(t);
		return -ENOMEM;
	}
	pthread_mutex_init(&t->lock, NULL);
	t->next = ID_FIRST;
	t->root.node = NODE_ROOT;
	t->root.id = KEY_ID_ROOT;
	t->root.kind = NODE_ITEM;
	t->root.directory = true;
	t->root.writable = true;
	t->nodes = 1;
	insert(t, &t->root);
	*ret_table = t;
	return 0;
}

void node_table_free(struct node_table *t)
{
	if (!t)
		return;
	withdraw(t, &t->root);
	for (size_t i = 0; i < t->buckets; i++) {
		for (struct record *r = t->by_node[i], *next; r; r = next) {
			next = r->next_node;
			record_free(r);
		}
	}
	free(t->root.at.name);
	free(t->by_node);
	free(t->by_item);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- looking ------------------------------------------------------------- */

static bool is_live(struct node_table *t, const struct record *r)
{
	return r == &t->root ||
	       (r->directory && r->kind == NODE_ITEM && r->live_moves == atomic_load(&t->moves) + 1);
}

static void copy_out(struct node_table *t, const struct record *r, struct node *ret_node)
{
	ret_node->node = r->node;
	ret_node->id = r->id;
	ret_node->view = r->view;
	ret_node->kind = (enum node_kind)r->kind;
	ret_node->directory = r->directory;
	ret_node->detached = r->detached;
	ret_node->lost = !r->at.name;
	ret_node->writable = r->writable;
	ret_node->live = is_live(t, r);
	spot_get(&r->at, &ret_node->at);
}

int node_get(struct node_table *t, uint64_t node, struct node *ret_node)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (r)
		copy_out(t, r, ret_node);
	pthread_mutex_unlock(&t->lock);
	return r ? 0 : -ESTALE;
}

uint64_t node_stamp(struct node_table *t, uint64_t directory)
{
	return atomic_load(stamp_of(t, directory));
}

uint64_t node_moves(struct node_table *t)
{
	return atomic_load(&t->moves);
}

uint64_t node_find(struct node_table *t, uint64_t id, uint64_t view)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_item(t, id, view);
	uint64_t node = r ? r->node : 0;
	pthread_mutex_unlock(&t->lock);
	return node;
}

bool node_locate(void *table, uint64_t id, struct place *ret_place)
{
	struct node_table *t = table;

	pthread_mutex_lock(&t->lock);
	struct record *r = first_of_item(t, id);
	bool known = r && r->at.name;
	if (known)
		spot_get(&r->at, ret_place);
	pthread_mutex_unlock(&t->lock);
	return known;
}

void node_count(struct node_table *t, struct node_counts *ret_counts)
{
	pthread_mutex_lock(&t->lock);
	ret_counts->nodes = t->nodes;
	ret_counts->lookups = t->lookups;
	pthread_mutex_unlock(&t->lock);
}

/* ---- entering and forgetting ---------------------------------------------- */

static void count_lookup(struct node_table *t, struct record *r)
{
	r->lookups++;
	t->lookups++;
}

static struct record *add_record(struct node_table *t, uint64_t node)
{
	struct record *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->node = node;
	t->nodes++;
	if (t->nodes > t->buckets)
		grow(t);
	return r;
}

static struct record *enter_new(struct node_table *t, const struct node_entry *entry)
{
	struct record *r = add_record(t, t->next);

	if (!r)
		return NULL;
	r->kind = entry->directory && entry->view ? NODE_VIEW : NODE_ITEM;
	r->id = entry->id;
	r->view = entry->directory ? entry->view : 0;
	r->directory = entry->directory;
	r->writable = entry->live;
	if (r->kind == NODE_VIEW)
		r->parent = entry->parent;
	if (spot_set(&r->at, entry->at) < 0) {
		t->nodes--;
		free(r);
		return NULL;
	}
	t->next++;
	insert(t, r);
	return r;
}

int node_enter(struct node_table *t, const struct node_entry *entry, uint64_t *ret_node)
{
	int result = 0;

	pthread_mutex_lock(&t->lock);
	if (atomic_load(stamp_of(t, entry->at->directory)) != entry->stamp) {
		pthread_mutex_unlock(&t->lock);
		return -EAGAIN;
	}
	struct record *r = find_below(t, entry->id, entry->view, entry->parent);
	if (r)
		result = record_enter(r, entry);
	else if (!(r = enter_new(t, entry)))
		result = -ENOMEM;
	if (result == 0) {
		count_lookup(t, r);
		*ret_node = r->node;
	}
	pthread_mutex_unlock(&t->lock);
	return result;
}

int node_enter_control(struct node_table *t, enum node_kind kind, char *text, size_t size,
		       uint64_t *ret_node)
{
	uint64_t fixed = kind == NODE_CONTROL_DIRECTORY ? ID_CONTROL_DIRECTORY :
			 kind == NODE_CONTROL_FILE	? ID_CONTROL_FILE :
			 kind == NODE_CONTROL_TAG	? ID_CONTROL_TAG :
							  0;

	pthread_mutex_lock(&t->lock);
	struct record *r = fixed ? find_node(t, fixed) : NULL;
	if (!r) {
		r = add_record(t, fixed ? fixed : t->next);
		if (r) {
			r->kind = (uint8_t)kind;
			r->directory = kind == NODE_CONTROL_DIRECTORY;
			r->text = text;
			r->count = (uint32_t)size;
			t->next += !fixed;
			insert(t, r);
		}
	}
	if (r) {
		count_lookup(t, r);
		*ret_node = r->node;
	}
	pthread_mutex_unlock(&t->lock);
	if (!r)
		free(text);
	return r ? 0 : -ENOMEM;
}

int node_text(struct node_table *t, uint64_t node, uint64_t offset, void *buffer, size_t size,
	      size_t *ret_copied, size_t *ret_size)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (!r || r->kind != NODE_CONTROL_STATS) {
		pthread_mutex_unlock(&t->lock);
		return -ESTALE;
	}
	size_t left = offset < r->count ? r->count - (size_t)offset : 0;
	*ret_copied = util_min(size, left);
	*ret_size = r->count;
	if (*ret_copied > 0)
		memcpy(buffer, r->text + offset, *ret_copied);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

/* True as node_forget; the record is gone when nothing is left. */
static bool let_go(struct node_table *t, struct record *r, uint64_t count, struct node *ret_node)
{
	bool release = false;

	r->lookups -= count;
	t->lookups -= count;
	if (r->lookups == 0) {
		release = r->release && r->at.name;
		if (release)
			copy_out(t, r, ret_node);
		withdraw(t, r);
		t->nodes--;
		record_free(r);
	}
	return release;
}

/*
 * The kernel's inode from before the deletion is gone, so what is left came from
 * a view. One look-up forgotten of one can be that of a view, too, whose answer
 * the kernel had no use for: then the file may still be open.
 */
static void forget_before(struct record *r, uint64_t count)
{
	if (r->directory || r->before == 0 || count < r->before)
		return;
	r->in_doubt = r->before == 1;
	r->before = 0;
	r->writable = false;
}

bool node_forget(struct node_table *t, uint64_t node, uint64_t count, struct node *ret_node)
{
	bool release = false;

	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (r && r != &t->root) {
		count = util_min(count, r->lookups);
		if (count < r->lookups)
			forget_before(r, count);
		release = let_go(t, r, count, ret_node);
	}
	pthread_mutex_unlock(&t->lock);
	return release;
}

bool node_take_back(struct node_table *t, uint64_t node, struct node *ret_node)
{
	bool release = false;

	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (r && r != &t->root && r->lookups > 0)
		release = let_go(t, r, 1, ret_node);
	pthread_mutex_unlock(&t->lock);
	return release;
}

/* ---- following what happens ------------------------------------------------ */

void node_detach(struct node_table *t, uint64_t id, uint64_t view, uint64_t parent)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_below(t, id, view, parent);
	if (r && r->directory && r != &t->root)
		r->detached = true;
	pthread_mutex_unlock(&t->lock);
}

void node_move(struct node_table *t, uint64_t id, const struct node_spot *from,
	       const struct node_spot *to)
{
	if (from->view == to->view)
		return;
	pthread_mutex_lock(&t->lock);
	struct record *r = find_below(t, id, from->view, from->parent);
	if (r && r->directory) {
		struct record *other = find_below(t, id, to->view, to->parent);

		if (other)
			other->aside = true;
		r->view = to->view;
		r->kind = to->view ? NODE_VIEW : NODE_ITEM;
		if (to->view)
			r->parent = to->parent;
		else
			r->live_moves = 0;
	}
	pthread_mutex_unlock(&t->lock);
}

void node_set_writable(struct node_table *t, uint64_t node)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (r && !r->directory)
		record_seen_live(r);
	pthread_mutex_unlock(&t->lock);
}

void node_set_aside(struct node_table *t, uint64_t node)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	if (r && !r->directory)
		r->aside = true;
	pthread_mutex_unlock(&t->lock);
}

void node_set_purged(struct node_table *t, uint64_t id)
{
	pthread_mutex_lock(&t->lock);
	for (struct record *r = first_of_item(t, id); r; r = next_of_item(r))
		if (!r->directory)
			r->release = true;
	pthread_mutex_unlock(&t->lock);
}

void node_set_live(struct node_table *t, uint64_t node, uint64_t moves)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_node(t, node);
	/* Removed meanwhile, which alone counts as no move. */
	if (r && r->directory && r->kind == NODE_ITEM && r->at.name && r->at.state == KEY_ACT)
		r->live_moves = moves + 1;
	pthread_mutex_unlock(&t->lock);
}

bool node_is_live(struct node_table *t, uint64_t id)
{
	pthread_mutex_lock(&t->lock);
	struct record *r = find_item(t, id, 0);
	bool live = r && is_live(t, r);
	pthread_mutex_unlock(&t->lock);
	return live;
}

void node_changed(void *table, const struct lifecycle_change *change)
{
	struct node_table *t = table;

	pthread_mutex_lock(&t->lock);
	atomic_fetch_add(stamp_of(t, change->from.directory), 1);
	if (change->to.name[0] != '\0')
		atomic_fetch_add(stamp_of(t, change->to.directory), 1);
	/* Nothing else is less live for an empty one: rm -r asks after no directory above it again. */
	if (S_ISDIR(change->mode) && change->from.state != change->to.state && !change->empty)
		atomic_fetch_add(&t->moves, 1);
	for (struct record *r = first_of_item(t, change->id); r; r = next_of_item(r))
		record_follow(r, change);
	pthread_mutex_unlock(&t->lock);
}

bool node_has_other(struct node_table *t, uint64_t id, const struct place *at)
{
	bool other = false;

	pthread_mutex_lock(&t->lock);
	for (struct record *r = first_of_item(t, id); r && !other; r = next_of_item(r))
		other = !r->directory && r->at.name && !record_is_only_at(r, at);
	pthread_mutex_unlock(&t->lock);
	return other;
}

bool node_busy(void *table, uint64_t id, const struct place *only)
{
	struct node_table *t = table;
	bool busy = false;

	pthread_mutex_lock(&t->lock);
	for (struct record *r = first_of_item(t, id); r && !busy; r = next_of_item(r))
		busy = !r->directory && (r->writable || r->in_doubt) &&
		       (!only || record_is_only_at(r, only));
	pthread_mutex_unlock(&t->lock);
	return busy;
}
