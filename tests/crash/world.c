/*
 * world.c - see world.h: opening, and the tree to begin with.
 */
#include "tests/crash/world.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/crash/world-internal.h"

/* ---- opening ---------------------------------------------------------------- */

void world_init(struct world *w)
{
	*w = (struct world){
		.maker = { .pid = 10, .group = 10, .session = 10, .start = 10, .command = "maker" },
		.remover = { .pid = 40, .group = 40, .session = 40, .start = 40, .command = "remover" },
	};
	test_clock_init(&w->clock);
}

static int open_upper(struct world *w)
{
	int r = lifecycle_open(w->store, NULL, &w->lifecycle);

	if (r == 0)
		r = namei_open(w->lifecycle, &w->namei);
	if (r != 0) {
		lifecycle_close(w->lifecycle);
		w->lifecycle = NULL;
	}
	return r;
}

int world_open(struct world *w, const char *path, const struct store_open_options *options,
	       struct store_open_report *ret_report)
{
	struct store_open_options with_clock = *options;
	int r;

	with_clock.clock = &w->clock.clock;
	r = store_open(path, &with_clock, ret_report, &w->store);
	if (r != 0)
		return r;
	r = open_upper(w);
	if (r != 0) {
		store_close(w->store);
		w->store = NULL;
	}
	return r;
}

int world_open_memory(struct world *w)
{
	return store_open_memory(&w->clock.clock, STORE_NAMES_ORDERED, &w->store);
}

static void close_upper(struct world *w)
{
	struct namei *namei = w->namei;
	struct lifecycle *lifecycle = w->lifecycle;

	w->namei = NULL;
	w->lifecycle = NULL;
	namei_close(namei);
	lifecycle_close(lifecycle);
}

int world_reopen_upper(struct world *w)
{
	close_upper(w);
	return open_upper(w);
}

int world_close(struct world *w)
{
	struct store *s = w->store;

	close_upper(w);
	w->store = NULL;
	return store_close(s);
}

/* ---- names -------------------------------------------------------------------- */

static int walk(struct world *w, char *path, uint64_t *directory)
{
	char *rest;

	for (char *part = strtok_r(path, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		struct inode i = { 0 };
		int r = namei_lookup(w->namei, *directory, part, true, &i);
		bool is_directory = r == 0 && S_ISDIR(i.item.mode);

		if (r == 0)
			*directory = i.item.id;
		inode_release(&i);
		if (r != 0 || !is_directory)
			return r ? r : -ENOTDIR;
	}
	return 0;
}

int world_parent(struct world *w, const char *path, uint64_t *ret_directory, const char **ret_name)
{
	char directory[64] = "";
	const char *slash = strrchr(path, '/');

	*ret_directory = KEY_ID_ROOT;
	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return 0;
	memcpy(directory, path, (size_t)(slash - path));
	return walk(w, directory, ret_directory);
}

int world_look(struct world *w, const char *path, struct inode *ret_inode)
{
	uint64_t parent;
	const char *name;
	int r = world_parent(w, path, &parent, &name);

	return r ? r : namei_lookup(w->namei, parent, name, true, ret_inode);
}

static bool locate(void *data, uint64_t id, struct place *ret_place)
{
	struct world_spot *spot = data;

	if (spot->id != id)
		return false;
	*ret_place = spot->at;
	return true;
}

struct file_locator world_locator(struct world_spot *spot)
{
	return (struct file_locator){ locate, spot };
}

int world_find(struct world *w, const char *path, struct world_spot *ret_spot)
{
	struct inode i = { 0 };
	int r = world_look(w, path, &i);

	if (r == 0)
		*ret_spot = (struct world_spot){ .id = i.item.id, .at = i.at };
	inode_release(&i);
	return r;
}

/* ---- contents ------------------------------------------------------------------ */

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++) {
		if (i % 8 == 0)
			seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> (i % 8 * 8));
	}
}

int world_write(struct world *w, const char *path, uint64_t offset, size_t size, bool append)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	int r = world_find(w, path, &spot);

	if (r != 0)
		return r;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	fill(bytes, size, offset * 31 + size);
	return file_write(w->namei, &where, spot.id, offset, bytes, size, append, false, NULL);
}

int world_create(struct world *w, const char *path, uint32_t mode)
{
	struct namei_new what = { .mode = mode, .target = S_ISLNK(mode) ? "somewhere" : NULL };
	uint64_t parent;
	const char *name;
	int r = world_parent(w, path, &parent, &name);

	return r ? r : namei_create(w->namei, &w->maker, parent, name, &what, NULL);
}

int world_rename(struct world *w, const char *from, const char *to, unsigned flags)
{
	struct namei_renamed renamed;
	uint64_t old_parent, new_parent;
	const char *old_name, *new_name;
	int r = world_parent(w, from, &old_parent, &old_name);

	if (r == 0)
		r = world_parent(w, to, &new_parent, &new_name);
	return r ? r :
		   namei_rename(w->namei, &w->remover, old_parent, old_name, new_parent, new_name,
				flags, &renamed);
}

int world_link(struct world *w, const char *from, const char *to)
{
	struct world_spot spot = { 0 };
	struct file_locator where = world_locator(&spot);
	uint64_t parent;
	const char *name;
	int r = world_find(w, from, &spot);

	if (r == 0)
		r = world_parent(w, to, &parent, &name);
	return r ? r : file_link(w->namei, &w->maker, &where, spot.id, parent, name, NULL);
}

int world_remove(struct world *w, const char *path)
{
	struct inode i = { 0 };
	uint64_t parent;
	const char *name;
	int r = world_look(w, path, &i);
	bool directory = r == 0 && S_ISDIR(i.item.mode);

	inode_release(&i);
	if (r == 0)
		r = world_parent(w, path, &parent, &name);
	return r ? r : lifecycle_remove(w->lifecycle, &w->remover, parent, name, directory);
}

/* ---- the tree to begin with ------------------------------------------------------- */

static void must(int r, const char *what)
{
	ck_assert_msg(r == 0, "%s: %d", what, r);
}

static void file(struct world *w, const char *path, size_t size)
{
	must(world_create(w, path, S_IFREG | 0644), path);
	if (size)
		must(world_write(w, path, 0, size, false), path);
}

static void directory(struct world *w, const char *path)
{
	must(world_create(w, path, S_IFDIR | 0755), path);
}

static void pass(struct world *w)
{
	test_clock_advance(&w->clock, 100 * CLOCK_SECOND_NS);
}

static void fill_tree(struct world *w)
{
	file(w, "a", 20);
	file(w, "b", 100000);
	directory(w, "d");
	file(w, "d/x", 500);
	file(w, "d/y", 40000);
	directory(w, "d/sub");
	file(w, "d/sub/z", 10);
	file(w, "h", 3000);
	must(world_link(w, "h", "d/h2"), "link");
	file(w, "v", 5000);
	file(w, "old", 50000);
	directory(w, "gone");
	file(w, "gone/one", 100);
	file(w, "gone/two", 60000);
}

static void fill_trash(struct world *w)
{
	pass(w);
	must(world_remove(w, "old"), "rm");
	pass(w);
	must(world_remove(w, "gone/one"), "rm");
	must(world_remove(w, "gone/two"), "rm");
	must(world_remove(w, "gone"), "rmdir");
	pass(w);
	file(w, "v.new", 6000);
	must(world_rename(w, "v.new", "v", 0), "rename");
	pass(w);
}

void world_begin(struct world *w)
{
	must(tree_format(w->store, 0755, 0, 0), "format");
	must(open_upper(w), "open");
	fill_tree(w);
	fill_trash(w);
}

void world_make_sparse(struct world *w, unsigned chunks)
{
	uint64_t step = WORLD_SPARSE_SIZE / chunks / 32768 * 32768;

	file(w, "sparse", 0);
	for (unsigned i = 0; i < chunks; i++)
		must(world_write(w, "sparse", i * step, 32768, false), "write");
	must(world_write(w, "sparse", WORLD_SPARSE_SIZE - 1, 1, false), "write");
	pass(w);
}
