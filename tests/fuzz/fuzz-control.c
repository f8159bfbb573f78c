/*
 * fuzz-control.c - requests to a running mount, by a user who may not do much.
 *
 * Whatever he sends is answered by whole lines of JSON and an exit code that
 * there is; what lies in another's private directory stays as it is, and no
 * answer has its name.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/control.h"
#include "fs/namei.h"
#include "lifecycle/tree.h"
#include "store/util.h"
#include "tests/fuzz/fuzz.h"

#define SECRET "well-kept-name"
#define ANSWER_MAX (64u << 20)

/* Made once: opening a store for each input would be most of the work. */
static struct world {
	struct store *store;
	struct lifecycle *lifecycle;
	struct namei *namei;
	struct control *control;
	uint64_t private;
} world;

static const struct actor root = { .pid = 1, .start = 1, .command = "maker" };
static const struct actor remover = { .pid = 2, .start = 2, .command = "remover" };

static uint64_t make(const struct actor *actor, uint64_t parent, const char *name, uint32_t mode)
{
	struct namei_new what = { .mode = mode };
	struct inode i = { 0 };
	uint64_t id;

	FUZZ_EXPECT(namei_create(world.namei, actor, parent, name, &what, &i) == 0);
	id = i.item.id;
	inode_release(&i);
	return id;
}

static void open_root_to_all(void)
{
	const struct place at = { .directory = KEY_ID_NONE, .state = KEY_ACT };
	const struct attr_change change = { .set = ATTR_MODE, .mode = S_IFDIR | 0777 };
	struct inode i = { 0 };

	FUZZ_EXPECT(namei_setattr(world.namei, &at, &change, &i) == 0);
	inode_release(&i);
}

static void remove_it(uint64_t parent, const char *name, bool directory)
{
	FUZZ_EXPECT(lifecycle_remove(world.lifecycle, &remover, parent, name, directory) == 0);
}

static void make_world(void)
{
	const struct control_host host = { .store_path = "/store", .mount_point = "/mnt" };
	uint64_t d;

	FUZZ_EXPECT(store_open_memory(NULL, STORE_NAMES_ORDERED, &world.store) == 0);
	FUZZ_EXPECT(tree_format(world.store, 0777, 0, 0) == 0);
	FUZZ_EXPECT(lifecycle_open(world.store, NULL, &world.lifecycle) == 0);
	FUZZ_EXPECT(namei_open(world.lifecycle, &world.namei) == 0);
	FUZZ_EXPECT(control_open(world.namei, &host, &world.control) == 0);
	open_root_to_all();
	world.private = make(&root, KEY_ID_ROOT, "private", S_IFDIR | 0700);
	make(&root, world.private, SECRET, S_IFREG | 0644);
	remove_it(world.private, SECRET, false);
	d = make(&root, KEY_ID_ROOT, "d", S_IFDIR | 0777);
	make(&root, d, "f", S_IFREG | 0666);
	make(&root, d, "g", S_IFREG | 0666);
	remove_it(d, "f", false);
	remove_it(d, "g", false);
	remove_it(KEY_ID_ROOT, "d", true);
	make(&root, KEY_ID_ROOT, "d", S_IFREG | 0666);
}

static void check_last_line(const json_t *line)
{
	static const int codes[] = { CONTROL_DONE,	CONTROL_FAILED,	    CONTROL_USAGE,
				     CONTROL_PARTLY,	CONTROL_NOT_FOUND,  CONTROL_CONFLICT,
				     CONTROL_NOT_EMPTY, CONTROL_INTERRUPTED };
	json_int_t code = json_integer_value(json_object_get(line, "exit"));
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		known = known || codes[i] == code;
	FUZZ_EXPECT(known && json_is_integer(json_object_get(line, "exit")));
	FUZZ_EXPECT(json_object_get(line, "result") || json_is_string(json_object_get(line, "error")));
}

/* Every line is an object; the last one says how it ended, and no other does. */
static void check_answer(char *text)
{
	bool ended = false;
	char *line;

	while ((line = strsep(&text, "\n")) && *line) {
		json_t *object = json_loads(line, 0, NULL);

		FUZZ_EXPECT(json_is_object(object) && !ended);
		if (!json_object_get(object, "row") && !json_object_get(object, "progress")) {
			check_last_line(object);
			ended = true;
		}
		json_decref(object);
	}
	FUZZ_EXPECT(ended);
}

static bool is_echo(const uint8_t *bytes, size_t size)
{
	return memmem(bytes, size, SECRET, strlen(SECRET)) != NULL;
}

static void ask(const uint8_t *bytes, size_t size)
{
	struct actor user = { .uid = 1000, .gid = 1000, .pid = (uint32_t)getpid() };
	struct control_message *m = calloc(1, sizeof(*m));
	struct buffer answer = { 0 };
	int result;

	if (!m)
		return;
	m->size = (uint32_t)size;
	memcpy(m->text, bytes, size);
	do {
		result = control_call(world.control, &user, m);
		FUZZ_EXPECT(m->size <= sizeof(m->text) || result);
		if (result == 0)
			buffer_append(&answer, m->text, m->size);
		m->size = 0;
	} while (result == 0 && !m->done && answer.size < ANSWER_MAX);
	FUZZ_EXPECT(result == 0 || result == -EINVAL || result == -ENOMEM);
	buffer_append_u8(&answer, 0);
	if (result == 0 && !answer.failed) {
		FUZZ_EXPECT(is_echo(bytes, size) || !strstr((char *)answer.bytes, SECRET));
		check_answer((char *)answer.bytes);
	}
	buffer_release(&answer);
	free(m);
}

static void check_world(void)
{
	struct entry e = { 0 };

	FUZZ_EXPECT(lifecycle_find(world.lifecycle, world.private, SECRET, &e) == 0);
	entry_release(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (size > CONTROL_TEXT_MAX)
		return 0;
	if (!world.control)
		make_world();
	ask(bytes, size);
	check_world();
	return 0;
}
