/*
 * view-control.c - see view-control.h.
 */
#include "fs/view-control.h"

#include "store/util.h"

#define INO(kind) (UINT64_C(3) << 61 | (uint64_t)(kind)) /* no item has such an id */

static const struct control_name {
	const char *name;
	enum node_kind kind;
	uint32_t mode;
} names[] = {
	{ CONTROL_FILE, NODE_CONTROL_FILE, S_IFREG | 0666 }, /* whoever asks is asked who he is */
	{ CONTROL_STATS, NODE_CONTROL_STATS, S_IFREG | 0400 },
};

static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
			  "# What was deleted, as ddbfs shows it; backups need not keep it.\n"
			  "# See https://bford.info/cachedir/\n";

bool view_control_is_tag(const struct node *parent, const char *name)
{
	return parent->kind == NODE_VIEW && parent->view == parent->id &&
	       strcmp(name, "CACHEDIR.TAG") == 0;
}

int view_control_enter_tag(const struct view_control *v, uint64_t *ret_node)
{
	return node_enter_control(v->nodes, NODE_CONTROL_TAG, NULL, 0, ret_node);
}

size_t view_control_read_tag(uint64_t offset, size_t size, const char **ret_bytes)
{
	size_t at = util_min(offset, sizeof(tag) - 1);

	*ret_bytes = tag + at;
	return util_min(size, sizeof(tag) - 1 - at);
}

const char *view_control_name(size_t i, uint32_t *ret_mode)
{
	if (i >= ARRAY_SIZE(names))
		return NULL;
	*ret_mode = names[i].mode;
	return names[i].name;
}

static int enter_stats(const struct view_control *v, uint64_t *ret_node)
{
	char *text = NULL;
	size_t size = 0;
	int result = control_stats(v->control, &text, &size);

	if (result)
		return result;
	return node_enter_control(v->nodes, NODE_CONTROL_STATS, text, size, ret_node);
}

int view_control_lookup(const struct view_control *v, const char *name, uint64_t *ret_node)
{
	if (!name)
		return node_enter_control(v->nodes, NODE_CONTROL_DIRECTORY, NULL, 0, ret_node);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(name, names[i].name) != 0)
			continue;
		if (names[i].kind == NODE_CONTROL_STATS)
			return enter_stats(v, ret_node);
		return node_enter_control(v->nodes, names[i].kind, NULL, 0, ret_node);
	}
	return -ENOENT;
}

int view_control_stat(const struct view_control *v, const struct node *node, struct stat *ret_stat)
{
	struct timespec mounted = { v->mounted_ns / CLOCK_SECOND_NS, v->mounted_ns % CLOCK_SECOND_NS };
	struct stat st = { .st_uid = v->uid, .st_gid = v->gid, .st_nlink = 1, .st_blksize = 4096 };
	size_t copied;
	size_t size = 0;
	int result = 0;

	st.st_mode = S_IFDIR | 0555;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].kind == node->kind)
			st.st_mode = names[i].mode;
	if (node->kind == NODE_CONTROL_TAG) {
		st.st_mode = S_IFREG | 0444;
		size = sizeof(tag) - 1;
	} else if (node->kind == NODE_CONTROL_STATS)
		result = node_text(v->nodes, node->node, 0, NULL, 0, &copied, &size);
	if (result)
		return result;
	st.st_size = (off_t)size;
	/* Else a copier that looks for holes takes it to be one. */
	st.st_blocks = (blkcnt_t)(size + 511) / 512;
	st.st_ino = INO(node->kind);
	st.st_atim = st.st_mtim = st.st_ctim = mounted;
	*ret_stat = st;
	return 0;
}
