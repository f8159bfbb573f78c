#include "tests/lib/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- where items are ------------------------------------------------------ */

static struct test_known *known(struct test_tree *t, uint64_t id)
{
	for (size_t i = t->known_count; i-- > 0;)
		if (t->known[i].id == id)
			return &t->known[i];
	return NULL;
}

void test_learn(struct test_tree *t, uint64_t id, const struct place *at)
{
	struct test_known *k;

	pthread_mutex_lock(&t->known_lock);
	k = known(t, id);
	if (!k) {
		if (t->known_count == t->known_capacity) {
			t->known_capacity = t->known_capacity ? 2 * t->known_capacity : 64;
			t->known = realloc(t->known, t->known_capacity * sizeof(*t->known));
			ck_assert_ptr_nonnull(t->known);
		}
		k = &t->known[t->known_count++];
	}
	*k = (struct test_known){ .id = id, .at = *at };
	pthread_mutex_unlock(&t->known_lock);
}

static bool locate(void *data, uint64_t id, struct place *ret_place)
{
	struct test_tree *tree = data;
	struct test_known *k;
	bool found;

	pthread_mutex_lock(&tree->known_lock);
	k = known(tree, id);
	found = k && !k->gone;
	if (found)
		*ret_place = k->at;
	pthread_mutex_unlock(&tree->known_lock);
	return found;
}

static bool same_place(const struct place *a, const struct place *b)
{
	return a->directory == b->directory && a->seq == b->seq && a->state == b->state &&
	       strcmp(a->name, b->name) == 0;
}

static void changed(void *data, const struct lifecycle_change *change)
{
	struct test_tree *t = data;
	struct test_known *k;

	pthread_mutex_lock(&t->known_lock);
	k = known(t, change->id);
	t->changes++;
	t->last_change = *change;
	if (k && same_place(&k->at, &change->from)) {
		if (change->to.name[0])
			k->at = change->to;
		else
			k->gone = true;
	}
	pthread_mutex_unlock(&t->known_lock);
}

/* ---- opening --------------------------------------------------------------- */

static void open_local(struct test_tree *t, bool create)
{
	static unsigned count;
	struct store_create_options options = { .credentials.passphrase = "p",
						.kdf_level = 3,
						.journal_bytes = 1 << 20 };
	/* The thread sanitizer has no room for the usual map of 1 TiB. */
	struct store_open_options open = { .credentials.passphrase = "p",
					   .clock = &t->clock.clock,
					   .map_bytes = UINT64_C(256) << 20 };
	struct store_open_report report = { 0 };

	if (create) {
		snprintf(t->path, sizeof(t->path), "%s/store%u", test_directory(), count++);
		ck_assert_int_eq(store_create(t->path, &options), 0);
	}
	ck_assert_msg(store_open(t->path, &open, &report, &t->store) == 0, "%s", report.text);
}

static void open_upper(struct test_tree *t)
{
	struct lifecycle_hooks hooks = { .changed = changed, .data = t };

	ck_assert_int_eq(lifecycle_open(t->store, &hooks, &t->lifecycle), 0);
	ck_assert_int_eq(namei_open(t->lifecycle, &t->namei), 0);
}

static struct actor make_actor(uint32_t uid, uint32_t pid)
{
	return (struct actor){
		.uid = uid,
		.gid = uid,
		.pid = pid,
		.group = pid,
		.session = pid,
		.start = pid,
		.command = "test",
	};
}

void test_tree_open(struct test_tree *t, enum test_engine engine)
{
	memset(t, 0, sizeof(*t));
	pthread_mutex_init(&t->known_lock, NULL);
	test_clock_init(&t->clock);
	t->engine = engine;
	t->where = (struct file_locator){ locate, t };
	t->root = make_actor(0, 10);
	t->user = make_actor(1000, 20);
	t->other = make_actor(1001, 30);
	t->remover = make_actor(0, 40);
	if (engine == TEST_LOCAL)
		open_local(t, true);
	else
		ck_assert_int_eq(store_open_memory(&t->clock.clock,
						   engine == TEST_MEMORY ? STORE_NAMES_ORDERED :
									   STORE_NAMES_SEALED,
						   &t->store),
				 0);
	ck_assert_int_eq(tree_format(t->store, 0755, 0, 0), 0);
	open_upper(t);
}

static void close_upper(struct test_tree *t)
{
	namei_close(t->namei);
	lifecycle_close(t->lifecycle);
}

void test_tree_close(struct test_tree *t)
{
	close_upper(t);
	ck_assert_int_eq(store_close(t->store), 0);
	free(t->known);
}

void test_tree_reopen(struct test_tree *t)
{
	close_upper(t);
	if (t->engine == TEST_LOCAL) {
		ck_assert_int_eq(store_close(t->store), 0);
		open_local(t, false);
	} else {
		ck_assert_int_eq(store_checkpoint(t->store), 0);
	}
	open_upper(t);
}

void test_faults(struct test_tree *t, const struct store_faults *faults)
{
	static const struct store_faults none;
	uint64_t drawn;

	if (t->engine == TEST_LOCAL)
		return;
	ck_assert_int_eq(store_new_id(t->store, &drawn), 0);
	ck_assert_int_eq(store_new_seq(t->store, &drawn), 0);
	store_memory_inject(t->store, faults ? faults : &none);
}

/* ---- building and looking -------------------------------------------------- */

uint64_t test_make(struct test_tree *t, const struct actor *actor, uint64_t parent,
		   const char *name, uint32_t mode)
{
	struct namei_new what = { .mode = mode, .target = S_ISLNK(mode) ? "target" : NULL };
	struct inode i;
	int result = namei_create(t->namei, actor ? actor : &t->root, parent, name, &what, &i);

	ck_assert_msg(result == 0, "create %s: %d", name, result);
	test_learn(t, i.item.id, &i.at);
	inode_release(&i);
	return i.item.id;
}

uint64_t test_mkdir(struct test_tree *t, uint64_t parent, const char *name)
{
	return test_make(t, NULL, parent, name, S_IFDIR | 0755);
}

uint64_t test_file(struct test_tree *t, uint64_t parent, const char *name, const char *text)
{
	uint64_t id = test_make(t, NULL, parent, name, S_IFREG | 0644);

	ck_assert_int_eq(test_write(t, id, 0, text, strlen(text)), 0);
	return id;
}

struct inode test_look(struct test_tree *t, uint64_t parent, const char *name)
{
	struct inode i;
	int result = namei_lookup(t->namei, parent, name, true, &i);

	ck_assert_msg(result == 0, "look up %s: %d", name, result);
	test_learn(t, i.item.id, &i.at);
	inode_release(&i);
	i.item.xattrs = NULL;
	i.item.xattrs_size = 0;
	return i;
}

bool test_exists(struct test_tree *t, uint64_t parent, const char *name)
{
	struct inode i;
	int result = namei_lookup(t->namei, parent, name, true, &i);

	if (result == -ENOENT)
		return false;
	ck_assert_msg(result == 0, "look up %s: %d", name, result);
	inode_release(&i);
	return true;
}

void test_link(struct test_tree *t, uint64_t parent, const char *name, uint64_t to_parent,
	       const char *to_name)
{
	struct inode from = test_look(t, parent, name), i;

	ck_assert_int_eq(namei_link(t->namei, &t->root, &from.at, to_parent, to_name, &i), 0);
	inode_release(&i);
}

int test_rename(struct test_tree *t, uint64_t parent, const char *name, uint64_t to_parent,
		const char *to_name, unsigned flags)
{
	struct namei_renamed renamed;

	return namei_rename(t->namei, &t->remover, parent, name, to_parent, to_name, flags, &renamed);
}

void test_remove(struct test_tree *t, uint64_t parent, const char *name)
{
	struct inode i = test_look(t, parent, name);
	int result = lifecycle_remove(t->lifecycle, &t->remover, parent, name, S_ISDIR(i.item.mode));

	ck_assert_msg(result == 0, "remove %s: %d", name, result);
}

int test_write(struct test_tree *t, uint64_t id, uint64_t offset, const void *bytes, size_t size)
{
	return file_write(t->namei, &t->where, id, offset, bytes, size, false, false, NULL);
}

void test_content(struct test_tree *t, uint64_t id, const void *bytes, size_t size)
{
	uint8_t *got = malloc(size + 1);
	size_t count;

	ck_assert_ptr_nonnull(got);
	ck_assert_int_eq(file_read(t->namei, &t->where, id, 0, got, size + 1, &count), 0);
	ck_assert_uint_eq(count, size);
	ck_assert_mem_eq(got, bytes, size);
	free(got);
}

void test_text(struct test_tree *t, uint64_t id, const char *text)
{
	test_content(t, id, text, strlen(text));
}

/* ---- whole partitions ------------------------------------------------------- */

/* Calls `row` for each item in a range. */
static void each_item(struct test_tree *t, const struct key_range *range,
		      void (*row)(struct test_tree *t, const struct place *at,
				  const struct item *item, void *data),
		      void *data)
{
	struct store_query query = { .range = *range, .attributes_only = true };
	struct store_page page;
	struct key after;
	bool more;

	do {
		ck_assert_int_eq(store_query(t->store, &query, &page), 0);
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item item;

			ck_assert_int_eq(record_row_item(t->store, &page.rows[i], &at, &item), 0);
			row(t, &at, &item, data);
		}
		more = page.more;
		after = page.next;
		query.after = &after;
		store_page_release(&page);
	} while (more);
}

struct count_name {
	const char *name;
	unsigned count;
};

static void count_row(struct test_tree *t, const struct place *at, const struct item *item, void *data)
{
	struct count_name *c = data;

	c->count += strcmp(at->name, c->name) == 0 && item->deletion.cause != ITEM_TEMPORARY;
}

unsigned test_deleted(struct test_tree *t, uint64_t parent, const char *name)
{
	struct count_name c = { .name = name };
	struct key_range range;

	key_range_deleted(parent, &range);
	each_item(t, &range, count_row, &c);
	return c.count;
}

/* What a walk over everything reachable counts. */
struct recount {
	int64_t live_items, live_bytes, trash_items, trash_bytes;
	uint32_t subdirectories; /* of the directory being walked */
	struct recount_link {
		uint64_t id;
		uint32_t live, total;
	} * links;
	size_t links_count;
};

static void recount_directory(struct test_tree *t, uint64_t directory, struct recount *r);

static void recount_link(struct test_tree *t, const struct place *at, const struct item *item,
			 struct recount *r)
{
	size_t i = 0;

	while (i < r->links_count && r->links[i].id != item->id)
		i++;
	if (i == r->links_count) {
		r->links = realloc(r->links, ++r->links_count * sizeof(*r->links));
		ck_assert_ptr_nonnull(r->links);
		r->links[i] = (struct recount_link){ .id = item->id };
	}
	r->links[i].live += at->state == KEY_ACT;
	r->links[i].total++;
}

static void recount_subdirectory(struct test_tree *t, const struct place *at,
				 const struct item *item, struct recount *r)
{
	uint32_t saved = r->subdirectories;
	struct shadow shadow;
	struct guard guard;
	uint64_t version;

	ck_assert_int_eq(record_get_guard(t->store, item->id, &guard), 0);
	ck_assert_msg(same_place(&guard.at, at), "guard of %s points elsewhere", at->name);
	if (at->state == KEY_ACT && item->flags & ITEM_SHADOWED) {
		ck_assert_int_eq(
			record_get_shadow(t->store, at->directory, at->name, &shadow, &version), 0);
		ck_assert_uint_eq(shadow.directory, item->id);
	}
	r->subdirectories = 0;
	recount_directory(t, item->id, r);
	ck_assert_msg(r->subdirectories == item->directory.subdirectories,
		      "%s says %u sub-directories, has %u", at->name,
		      item->directory.subdirectories, r->subdirectories);
	r->subdirectories = saved + (at->state == KEY_ACT);
}

static void recount_row(struct test_tree *t, const struct place *at, const struct item *item, void *data)
{
	struct recount *r = data;
	bool live = at->state == KEY_ACT;
	bool temporary = item->deletion.cause == ITEM_TEMPORARY;

	if (live)
		r->live_items++;
	else if (!temporary)
		r->trash_items++;
	if (item->flags & ITEM_REFERENCE)
		recount_link(t, at, item, r);
	else if (S_ISREG(item->mode) && live)
		r->live_bytes += (int64_t)item->size;
	else if (S_ISREG(item->mode))
		r->trash_bytes += (int64_t)item->size;
	if (S_ISDIR(item->mode))
		recount_subdirectory(t, at, item, r);
}

/* A mark stands for the live sub-directory that has its name. */
static void check_shadows(struct test_tree *t, uint64_t directory)
{
	struct store_query query = { .attributes_only = true };
	struct store_page page;

	key_range_shadows(directory, &query.range);
	ck_assert_int_eq(store_query(t->store, &query, &page), 0);
	for (size_t i = 0; i < page.count; i++) {
		struct shadow shadow;
		struct inode live;

		ck_assert_int_eq(record_decode_shadow(&page.rows[i].value, &shadow), 0);
		ck_assert_msg(namei_lookup(t->namei, directory, shadow.name, true, &live) == 0,
			      "stray mark of %s", shadow.name);
		ck_assert_uint_eq(live.item.id, shadow.directory);
		ck_assert(live.item.flags & ITEM_SHADOWED);
		inode_release(&live);
	}
	store_page_release(&page);
}

static void recount_directory(struct test_tree *t, uint64_t directory, struct recount *r)
{
	struct key_range range;

	key_range_live(directory, &range);
	each_item(t, &range, recount_row, r);
	key_range_deleted(directory, &range);
	each_item(t, &range, recount_row, r);
	check_shadows(t, directory);
}

static void check_links(struct test_tree *t, struct recount *r)
{
	for (size_t i = 0; i < r->links_count; i++) {
		struct store_value value;
		struct item link;

		ck_assert_int_eq(record_get_link(t->store, r->links[i].id, true, &value, &link), 0);
		ck_assert_uint_eq(link.links_live, r->links[i].live);
		ck_assert_uint_eq(link.links_total, r->links[i].total);
		if (S_ISREG(link.mode) && link.links_live)
			r->live_bytes += (int64_t)link.size;
		else if (S_ISREG(link.mode))
			r->trash_bytes += (int64_t)link.size;
		store_value_release(&value);
	}
}

static void tell_problem(void *data, const char *path, const char *text)
{
	ck_abort_msg("%s: %s", path, text);
}

void test_consistent(struct test_tree *t)
{
	struct check_result checked;
	struct place root = { .directory = KEY_ID_NONE, .state = KEY_ACT };
	int64_t counters[STORE_COUNTERS_MAX];
	struct recount r = { 0 };
	struct inode i;

	ck_assert_int_eq(namei_load(t->namei, &root, true, &i), 0);
	recount_directory(t, KEY_ID_ROOT, &r);
	ck_assert_uint_eq(i.item.directory.subdirectories, r.subdirectories);
	inode_release(&i);
	check_links(t, &r);
	ck_assert_int_eq(record_get_counters(t->store, counters), 0);
	ck_assert_int_eq(counters[COUNTER_LIVE_ITEMS], r.live_items);
	ck_assert_int_eq(counters[COUNTER_LIVE_BYTES], r.live_bytes);
	ck_assert_int_eq(counters[COUNTER_TRASH_ITEMS], r.trash_items);
	ck_assert_int_eq(counters[COUNTER_TRASH_BYTES], r.trash_bytes);
	free(r.links);
	ck_assert_int_eq(lifecycle_check(t->store, tell_problem, NULL, NULL, &checked), 0);
	ck_assert_uint_eq(checked.problems, 0);
}
