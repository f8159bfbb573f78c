/*
 * storm-own.c - the names that one process has for itself, in directories full
 * of others', against a model of them.
 */
#include "tests/mount/storm.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static void slot_path(const struct worker *w, const struct slot *s, const char *between, char path[96])
{
	snprintf(path, 96, "d%d/%sown%d.%d", s->where, between, w->number, (int)(s - w->slots));
}

static struct slot *any_slot(struct worker *w, bool used)
{
	for (int tries = 0; tries < 200; tries++) {
		struct slot *s = &w->slots[random_below(&w->random, STORM_SLOTS)];

		if ((s->object != NULL) == used) {
			if (!used)
				s->where = (int)random_below(&w->random, STORM_DIRECTORIES);
			return s;
		}
	}
	return NULL;
}

static struct slot *any_file(struct worker *w)
{
	struct slot *s = any_slot(w, true);

	return s && !s->object->directory ? s : NULL;
}

static struct object *new_object(struct worker *w)
{
	for (int i = 0; i < STORM_SLOTS; i++)
		if (!w->objects[i].names) {
			w->objects[i] = (struct object){ .names = 1 };
			return &w->objects[i];
		}
	return NULL; /* not while a slot is free: each object has one */
}

static void drop_name(struct slot *s)
{
	s->object->names--;
	s->object = NULL;
}

/* ---- checks ------------------------------------------------------------------------ */

static void check_content(struct worker *w, const struct object *o, int fd, const char *path)
{
	ssize_t n = pread(fd, w->buffer, STORM_LARGEST + 1, 0);
	uint32_t tag = 0;
	int worker = -1;

	if (n != (ssize_t)o->size || !storm_whole(w->buffer, (size_t)n, &worker, &tag) ||
	    worker != w->number || tag != o->tag)
		storm_failed(w, "the content of", path, n < 0 ? errno : 0);
}

static void check_attribute(struct worker *w, const struct object *o, const char *path)
{
	uint32_t value = 0;
	ssize_t n = getxattr(path, "user.storm", &value, sizeof(value));

	if (o->attribute ? n != sizeof(value) || value != o->attribute : n >= 0 || errno != ENODATA)
		storm_failed(w, "the attribute of", path, n < 0 ? errno : 0);
}

static void check_slot(struct worker *w, const struct slot *s)
{
	const struct object *o = s->object;
	struct stat st;
	char path[96];
	int fd;

	slot_path(w, s, "", path);
	if (lstat(path, &st)) {
		storm_failed(w, "lstat of its own", path, errno);
		return;
	}
	if (st.st_ino != o->ino || S_ISDIR(st.st_mode) != o->directory ||
	    st.st_nlink != (o->directory ? 2 : (nlink_t)o->names))
		storm_failed(w, "inode, type or links of its own", path, 0);
	check_attribute(w, o, path);
	if (o->directory)
		return;
	fd = open(path, O_RDONLY);
	if (fd < 0)
		storm_failed(w, "open of its own", path, errno);
	else
		check_content(w, o, fd, path);
	close(fd);
}

static void check_removed(struct worker *w, const struct removed *r)
{
	struct stat st;

	if (r->fd < 0)
		return;
	if (fstat(r->fd, &st) || st.st_nlink != 0 || st.st_ino != r->object.ino)
		storm_failed(w, "inode or links of", "a removed file", 0);
	check_content(w, &r->object, r->fd, "a removed file");
}

static void check(struct worker *w)
{
	const struct slot *s = any_slot(w, true);

	if (s)
		check_slot(w, s);
	check_removed(w, &w->removed[random_below(&w->random, STORM_OPEN)]);
}

void own_check_all(struct worker *w)
{
	for (int i = 0; i < STORM_SLOTS; i++)
		if (w->slots[i].object)
			check_slot(w, &w->slots[i]);
	for (int i = 0; i < STORM_OPEN; i++)
		check_removed(w, &w->removed[i]);
}

/* ---- changes ----------------------------------------------------------------------- */

static void write_object(struct worker *w, struct object *o, int fd, const char *path)
{
	o->tag = ++w->tags;
	o->size = storm_size(w);
	storm_fill(w->buffer, w->number, o->tag, o->size);
	if (pwrite(fd, w->buffer, o->size, 0) != (ssize_t)o->size)
		storm_failed(w, "write to", path, errno);
}

static void create(struct worker *w)
{
	struct slot *s = any_slot(w, false);
	struct stat st;
	char path[96];
	int fd;

	if (!s)
		return;
	slot_path(w, s, "", path);
	if (random_once_in(&w->random, 5)) {
		if (mkdir(path, 0755) || lstat(path, &st)) {
			storm_failed(w, "mkdir of its own", path, errno);
			return;
		}
		s->object = new_object(w);
		s->object->directory = true;
	} else {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || fstat(fd, &st)) {
			storm_failed(w, "create of its own", path, errno);
			return;
		}
		s->object = new_object(w);
		write_object(w, s->object, fd, path);
		close(fd);
	}
	s->object->ino = st.st_ino;
}

static void rewrite(struct worker *w)
{
	struct slot *s = any_file(w);
	char path[96];
	int fd;

	if (!s)
		return;
	slot_path(w, s, "", path);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (fd < 0)
		storm_failed(w, "open of its own", path, errno);
	else
		write_object(w, s->object, fd, path);
	close(fd);
}

/* What rename answers for these two, by the book. */
static int rename_expected(const struct object *from, const struct object *to)
{
	if (to && from->directory && !to->directory)
		return ENOTDIR;
	if (to && !from->directory && to->directory)
		return EISDIR;
	return 0;
}

static void move(struct worker *w)
{
	struct slot *from = any_slot(w, true), *to = any_slot(w, random_once_in(&w->random, 2));
	char old[96], new[96];
	int expected;

	if (!from || !to || from == to)
		return;
	slot_path(w, from, "", old);
	slot_path(w, to, "", new);
	expected = rename_expected(from->object, to->object);
	if ((rename(old, new) ? errno : 0) != expected) {
		storm_failed(w, "rename of its own", old, errno);
		return;
	}
	if (expected || (to->object && to->object == from->object))
		return;
	if (to->object)
		drop_name(to);
	to->object = from->object;
	from->object = NULL;
}

static void exchange(struct worker *w)
{
	struct slot *a = any_slot(w, true), *b = any_slot(w, true);
	char old[96], new[96];
	struct object *o;

	if (!a || !b || a == b)
		return;
	slot_path(w, a, "", old);
	slot_path(w, b, "", new);
	if (renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_NOREPLACE) == 0 || errno != EEXIST)
		storm_failed(w, "rename without replacing", old, errno);
	if (renameat2(AT_FDCWD, old, AT_FDCWD, new, RENAME_EXCHANGE)) {
		storm_failed(w, "exchange of its own", old, errno);
		return;
	}
	o = a->object;
	a->object = b->object;
	b->object = o;
}

static void link_own(struct worker *w)
{
	struct slot *from = any_file(w), *to = any_slot(w, false);
	char old[96], new[96];

	if (!from || !to)
		return;
	slot_path(w, from, "", old);
	slot_path(w, to, "", new);
	if (link(old, new)) {
		storm_failed(w, "link of its own", old, errno);
		return;
	}
	to->object = from->object;
	to->object->names++;
}

static void remove_own(struct worker *w)
{
	struct slot *s = any_slot(w, true);
	char path[96];

	if (!s)
		return;
	slot_path(w, s, "", path);
	if (s->object->directory ? rmdir(path) : unlink(path))
		storm_failed(w, "removal of its own", path, errno);
	drop_name(s);
}

static void set_attribute(struct worker *w)
{
	struct slot *s = any_slot(w, true);
	uint32_t value = 1 + (uint32_t)random_below(&w->random, 1000000);
	char path[96];
	int result;

	if (!s)
		return;
	slot_path(w, s, "", path);
	if (s->object->attribute && random_once_in(&w->random, 3)) {
		value = 0;
		result = removexattr(path, "user.storm");
	} else
		result = setxattr(path, "user.storm", &value, sizeof(value), 0);
	if (result)
		storm_failed(w, "set the attribute of", path, errno);
	s->object->attribute = value;
}

/* The last name goes while the file is open; what is open is written later. */
static void remove_open(struct worker *w)
{
	struct removed *r = &w->removed[random_below(&w->random, STORM_OPEN)];
	struct slot *s = any_file(w);
	char path[96];

	if (r->fd >= 0 && random_once_in(&w->random, 2)) {
		if (ftruncate(r->fd, 0))
			storm_failed(w, "ftruncate of", "a removed file", errno);
		write_object(w, &r->object, r->fd, "a removed file");
		return;
	}
	if (!s || s->object->names != 1)
		return;
	close(r->fd);
	slot_path(w, s, "", path);
	r->fd = open(path, O_RDWR);
	r->object = *s->object;
	if (r->fd < 0 || unlink(path))
		storm_failed(w, "removal while open of", path, errno);
	drop_name(s);
}

/* What lay in the trash under a free name of its own is a file of its own again. */
static void adopt(struct worker *w, struct slot *s, const char *path)
{
	struct stat st;
	int worker = -1, fd;
	ssize_t n;

	if (lstat(path, &st)) {
		storm_failed(w, "lstat of what was restored,", path, errno);
		return;
	}
	for (int i = 0; i < STORM_OPEN; i++)
		if (w->removed[i].fd >= 0 && w->removed[i].object.ino == st.st_ino) {
			close(w->removed[i].fd);
			w->removed[i].fd = -1;
		}
	for (int i = 0; i < STORM_SLOTS; i++)
		if (w->objects[i].names && w->objects[i].ino == st.st_ino) {
			s->object = &w->objects[i];
			s->object->names++;
			return;
		}
	s->object = new_object(w);
	s->object->ino = st.st_ino;
	s->object->directory = S_ISDIR(st.st_mode);
	s->object->size = S_ISDIR(st.st_mode) ? 0 : (uint32_t)st.st_size;
	if (getxattr(path, "user.storm", &s->object->attribute, 4) < 0 && errno != ENODATA)
		storm_failed(w, "the attribute of what was restored,", path, errno);
	if (s->object->directory)
		return;
	fd = open(path, O_RDONLY);
	n = pread(fd, w->buffer, STORM_LARGEST, 0);
	if (n < 0 || !storm_whole(w->buffer, (size_t)n, &worker, &s->object->tag) || worker != w->number)
		storm_failed(w, "the content of what was restored,", path, n < 0 ? errno : 0);
	close(fd);
}

static void restore(struct worker *w)
{
	struct slot *s = any_slot(w, false);
	char path[96], in_trash[96];

	if (!s)
		return;
	slot_path(w, s, "", path);
	slot_path(w, s, ".trash/", in_trash);
	if (rename(in_trash, path) == 0) {
		__atomic_add_fetch(&w->shared->adopted, 1, __ATOMIC_RELAXED);
		adopt(w, s, path);
	} else if (errno != ENOENT)
		storm_failed(w, "restore of its own", path, errno);
}

/* ---- listing ----------------------------------------------------------------------- */

struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

struct listing {
	int kept, own;
	int count;
	char names[1024][32];
};

static void listed(struct worker *w, struct listing *l, int where, const struct linux_dirent64 *e)
{
	int number, slot;

	for (int i = 0; i < l->count; i++)
		if (!strcmp(l->names[i], e->d_name))
			storm_failed(w, "listed twice:", e->d_name, 0);
	if (l->count < 1024)
		snprintf(l->names[l->count++], sizeof(l->names[0]), "%s", e->d_name);
	if (!strncmp(e->d_name, "kept", 4))
		l->kept++;
	if (sscanf(e->d_name, "own%d.%d", &number, &slot) != 2 || number != w->number)
		return;
	l->own++;
	if (slot < 0 || slot >= STORM_SLOTS || !w->slots[slot].object || w->slots[slot].where != where)
		storm_failed(w, "listed though it is not there:", e->d_name, 0);
	else if (w->slots[slot].object->ino != e->d_ino ||
		 w->slots[slot].object->directory != (e->d_type == DT_DIR))
		storm_failed(w, "listed with another inode or type:", e->d_name, 0);
}

static void list(struct worker *w)
{
	int where = (int)random_below(&w->random, STORM_DIRECTORIES), own = 0, fd;
	size_t size = 400 + random_below(&w->random, random_once_in(&w->random, 3) ? 30000 : 1000);
	_cleanup_free_ struct listing *l = calloc(1, sizeof(*l));
	char path[16];
	long n;

	snprintf(path, sizeof(path), "d%d", where);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	while ((n = syscall(SYS_getdents64, fd, w->buffer, size)) > 0)
		for (long at = 0; at < n;) {
			struct linux_dirent64 *e = (void *)(w->buffer + at);

			listed(w, l, where, e);
			at += e->d_reclen;
		}
	if (n < 0)
		storm_failed(w, "listing of", path, errno);
	close(fd);
	for (int i = 0; i < STORM_SLOTS; i++)
		own += w->slots[i].object && w->slots[i].where == where;
	if (l->kept != STORM_KEPT || l->own != own)
		storm_failed(w, "names missing in", path, 0);
}

/* ---- steps ------------------------------------------------------------------------- */

void own_init(struct worker *w)
{
	for (int i = 0; i < STORM_OPEN; i++)
		w->removed[i].fd = -1;
}

const char *own_step(struct worker *w)
{
	static const struct {
		const char *name;
		void (*run)(struct worker *w);
		unsigned weight;
	} steps[] = {
		{ "own create", create, 7 },
		{ "own rewrite", rewrite, 3 },
		{ "own rename", move, 5 },
		{ "own exchange", exchange, 2 },
		{ "own link", link_own, 3 },
		{ "own removal", remove_own, 3 },
		{ "own attribute", set_attribute, 3 },
		{ "own removal while open", remove_open, 3 },
		{ "own restore", restore, 2 },
		{ "own check", check, 8 },
		{ "list", list, 3 },
	};
	uint64_t at = random_below(&w->random, 42);
	size_t i = 0;

	for (; at >= steps[i].weight; i++)
		at -= steps[i].weight;
	steps[i].run(w);
	return steps[i].name;
}
