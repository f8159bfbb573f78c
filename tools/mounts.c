#include "tools/mounts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "store/util.h"

void mount_release(struct mount *m)
{
	if (!m)
		return;
	free(m->point);
	free(m->root);
	free(m->source);
	free(m->type);
	*m = (struct mount){ 0 };
}

/* /proc/self/mountinfo writes space, tab, newline and backslash as \ooo. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static char *copy_field(char *field)
{
	unescape(field);
	return strdup(field);
}

/* "id parent major:minor root point options [optional ...] - type source options". 1, 0 for another form, -ENOMEM. */
static int parse_line(char *line, struct mount *ret_mount)
{
	char *fields[6], *at = line, *type, *source;
	unsigned major_number, minor_number;

	for (unsigned i = 0; i < ARRAY_SIZE(fields); i++)
		if (!(fields[i] = strsep(&at, " ")))
			return 0;
	do {
		type = strsep(&at, " ");
	} while (type && strcmp(type, "-") != 0);
	type = strsep(&at, " ");
	source = strsep(&at, " ");
	if (!type || !source || sscanf(fields[2], "%u:%u", &major_number, &minor_number) != 2)
		return 0;
	*ret_mount = (struct mount){
		.point = copy_field(fields[4]),
		.root = copy_field(fields[3]),
		.source = copy_field(source),
		.type = copy_field(type),
		.device = makedev(major_number, minor_number),
	};
	if (ret_mount->point && ret_mount->root && ret_mount->source && ret_mount->type)
		return 1;
	mount_release(ret_mount);
	return -ENOMEM;
}

/* Calls `row` for every mount in the order they were made; it may take what it wants out of *mount. */
static int each_mount(void (*row)(void *data, struct mount *mount), void *data)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t capacity = 0;
	int result = 0;

	if (!f)
		return -errno;
	while (result >= 0 && getline(&line, &capacity, f) > 0) {
		struct mount m = { 0 };

		line[strcspn(line, "\n")] = '\0';
		result = parse_line(line, &m);
		if (result == 1)
			row(data, &m);
		mount_release(&m);
	}
	free(line);
	fclose(f);
	return util_min(result, 0);
}

struct search {
	const char *path;
	bool exact; /* the mount at `path`, else the one that `path` is in */
	bool inside; /* or: one below `path` */
	dev_t device; /* or: the whole of this file system, where 0 is not asked for */
	struct mount found;
};

bool mounts_is_below(const char *path, const char *directory)
{
	size_t size = strlen(directory);

	if (size == 1)
		return true;
	return !strncmp(path, directory, size) && (path[size] == '/' || !path[size]);
}

/* Of two mounts that fit, the deeper one hides the other, and the later of two at one place. */
static void search_row(void *data, struct mount *m)
{
	struct search *s = data;
	bool fits;

	if (s->device)
		fits = m->device == s->device && !strcmp(m->root, "/");
	else if (s->inside)
		fits = mounts_is_below(m->point, s->path) && strcmp(m->point, s->path) != 0;
	else if (s->exact)
		fits = !strcmp(m->point, s->path);
	else
		fits = mounts_is_below(s->path, m->point) &&
		       (!s->found.point || strlen(m->point) >= strlen(s->found.point));
	if (!fits)
		return;
	mount_release(&s->found);
	s->found = *m;
	*m = (struct mount){ 0 };
}

static int search(struct search *s, struct mount *ret_mount)
{
	int result = each_mount(search_row, s);

	if (result < 0) {
		mount_release(&s->found);
		return result;
	}
	if (!s->found.point)
		return 0;
	*ret_mount = s->found;
	return 1;
}

int mounts_find(const char *point, struct mount *ret_mount)
{
	struct search s = { .path = point, .exact = true };

	return search(&s, ret_mount);
}

int mounts_inside(const char *point, struct mount *ret_mount)
{
	struct search s = { .path = point, .inside = true };

	return search(&s, ret_mount);
}

struct listing {
	bool (*row)(void *data, const struct mount *mount);
	void *data;
	bool stopped;
};

static void listing_row(void *data, struct mount *m)
{
	struct listing *l = data;

	if (!l->stopped && !strcmp(m->type, MOUNTS_TYPE))
		l->stopped = l->row(l->data, m);
}

int mounts_each(bool (*row)(void *data, const struct mount *mount), void *data)
{
	struct listing l = { row, data, false };

	return each_mount(listing_row, &l);
}

/* ---- paths --------------------------------------------------------------- */

/* The working directory; what the shell remembers of it, if it was removed. */
static int working_directory(char **ret_path)
{
	char *path = getcwd(NULL, 0);
	const char *remembered = getenv("PWD");

	if (path && path[0] == '/') {
		*ret_path = path;
		return 0;
	}
	free(path);
	if (!remembered || remembered[0] != '/')
		return -ENOENT;
	*ret_path = strdup(remembered);
	return *ret_path ? 0 : -ENOMEM;
}

static int make_absolute(const char *path, char **ret_path)
{
	_cleanup_free_ char *base = NULL;
	int result;

	if (path[0] == '/') {
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	result = working_directory(&base);
	if (result < 0)
		return result;
	return asprintf(ret_path, "%s/%s", base, path) < 0 ? -ENOMEM : 0;
}

/* Moves the last name of `path` in front of *tail. 1; 0: there is only the root left; -EINVAL for ".."; -ENOMEM. */
static int move_last(char *path, char **tail)
{
	size_t size = strlen(path);
	char *slash, *longer;

	while (size > 1 && path[size - 1] == '/')
		path[--size] = '\0';
	slash = strrchr(path, '/');
	if (!slash[1])
		return 0;
	if (!strcmp(slash + 1, ".."))
		return -EINVAL;
	if (strcmp(slash + 1, ".") != 0) {
		if (asprintf(&longer, "/%s%s", slash + 1, *tail ? *tail : "") < 0)
			return -ENOMEM;
		free(*tail);
		*tail = longer;
	}
	slash[slash == path] = '\0';
	return 1;
}

/* "." or ".." as the last name, whatever slashes follow. */
static bool ends_in_dots(const char *path)
{
	size_t size = strlen(path), dots = 0;

	while (size > 1 && path[size - 1] == '/')
		size--;
	while (size && path[size - 1] == '.' && dots < 3) {
		size--;
		dots++;
	}
	return dots >= 1 && dots <= 2 && size && path[size - 1] == '/';
}

static bool is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ESTALE;
}

int mounts_resolve(const char *path, bool follow, char **ret_path)
{
	_cleanup_free_ char *head = NULL, *tail = NULL, *real = NULL;
	int result = make_absolute(path, &head);

	if (result < 0)
		return result;
	if (!follow && !ends_in_dots(head) && (result = move_last(head, &tail)) < 0)
		return result;
	while (!(real = realpath(head, NULL))) {
		if (!is_missing(errno))
			return -errno;
		result = move_last(head, &tail);
		if (result <= 0)
			return result ? result : -ENOENT;
	}
	if (asprintf(ret_path, "%s%s", tail && !real[1] ? "" : real, tail ? tail : "") < 0)
		return -ENOMEM;
	return 0;
}

/* Where the whole file system of a bind mount is mounted: there the control file is. 1, 0 or negative errno. */
static int find_whole(struct mount *m)
{
	struct search s = { .device = m->device };
	struct mount whole = { 0 };
	int result;

	if (!strcmp(m->root, "/"))
		return 1;
	result = search(&s, &whole);
	if (result == 1) {
		mount_release(m);
		*m = whole;
	}
	return result;
}

int mounts_locate(const char *resolved, struct mount *ret_mount, char **ret_inner)
{
	struct search s = { .path = resolved };
	struct mount m = { 0 };
	const char *rest;
	char *inner = NULL;
	int result = search(&s, &m);

	if (result <= 0)
		return result;
	if (strcmp(m.type, MOUNTS_TYPE) != 0) {
		mount_release(&m);
		return 0;
	}
	rest = resolved + (m.point[1] ? strlen(m.point) : 0);
	if (asprintf(&inner, "%s%s", m.root[1] ? m.root : "",
		     *rest     ? rest :
		     m.root[1] ? "" :
				 "/") < 0)
		result = -ENOMEM;
	else
		result = find_whole(&m);
	if (result != 1) {
		free(inner);
		mount_release(&m);
		return result;
	}
	*ret_mount = m;
	*ret_inner = inner;
	return 1;
}
