#include "tools/mount-options.h"

#include <stdlib.h>
#include <string.h>

#include "store/util.h"
#include "tools/print.h"

enum effect {
	KERNEL, /* handed on */
	IGNORED,
	READ_ONLY, /* handed on too */
	READ_WRITE,
	WRITEBACK,
	ACL,
	NO_POLL,
	NO_SCRUB,
	DEBUG,
	CREATE,
	LOG,
	PASSPHRASE_FILE,
	KEY_FILE,
	REMOUNT, /* refused, in words of its own */
};

struct mount_option {
	const char *name;
	enum effect effect;
	const char *help; /* NULL: of no interest */
};

/* With a '=' at its end, a name takes a value. */
static const struct mount_option table[] = {
	{ "ro", READ_ONLY,
	  "read-only: nothing can be changed, nothing is destroyed; also a store that is too damaged to be written" },
	{ "rw", READ_WRITE, NULL },
	{ "allow_other", KERNEL, "other users may use the mount too, as modes and owners let them" },
	{ "allow_root", KERNEL, "root may use the mount too" },
	{ "writeback", WRITEBACK,
	  "writes are answered by the kernel: faster in small pieces, but what was written lately is lost with the daemon, "
	  "and a full disk shows only at close or fsync" },
	{ "acl", ACL, "POSIX access control lists; each access by others then costs a look-up more" },
	{ "nopoll", NO_POLL,
	  "never wait busily for the next request: saves some processor time, costs speed" },
	{ "noscrub", NO_SCRUB,
	  "do not read everything once a week, slowly, to find what the disk has damaged" },
	{ "create", CREATE, "as --create" },
	{ "log=", LOG, "as --log" },
	{ "passphrase-file=", PASSPHRASE_FILE, "as --passphrase-file" },
	{ "key-file=", KEY_FILE, "as --key-file" },
	{ "default_permissions", KERNEL,
	  "the kernel checks modes and owners also where only root gets in (as it always does otherwise)" },
	{ "noatime", KERNEL, "access times stay as they are" },
	{ "noexec", KERNEL, "no program on it runs" },
	{ "suid", KERNEL, "set-id bits count (root only; nosuid is the default)" },
	{ "dev", KERNEL, "device nodes work (root only; nodev is the default)" },
	{ "debug", DEBUG, "with -f: print every request" },
	{ "atime", KERNEL, NULL },
	{ "exec", KERNEL, NULL },
	{ "nosuid", KERNEL, NULL },
	{ "nodev", KERNEL, NULL },
	{ "sync", KERNEL, NULL },
	{ "async", KERNEL, NULL },
	{ "dirsync", KERNEL, NULL },
	{ "relatime", IGNORED, NULL },
	{ "strictatime", IGNORED, NULL },
	{ "nodiratime", IGNORED, NULL },
	{ "diratime", IGNORED, NULL },
	{ "norelatime", IGNORED, NULL },
	{ "nostrictatime", IGNORED, NULL },
	{ "lazytime", IGNORED, NULL },
	{ "nolazytime", IGNORED, NULL },
	{ "iversion", IGNORED, NULL },
	{ "noiversion", IGNORED, NULL },
	{ "mand", IGNORED, NULL },
	{ "nomand", IGNORED, NULL },
	{ "symfollow", IGNORED, NULL },
	{ "defaults", IGNORED, NULL },
	{ "auto", IGNORED, NULL },
	{ "noauto", IGNORED, NULL },
	{ "nofail", IGNORED, NULL },
	{ "user", IGNORED, NULL },
	{ "user=", IGNORED, NULL },
	{ "nouser", IGNORED, NULL },
	{ "users", IGNORED, NULL },
	{ "owner", IGNORED, NULL },
	{ "group", IGNORED, NULL },
	{ "_netdev", IGNORED, NULL },
	{ "silent", IGNORED, NULL },
	{ "loud", IGNORED, NULL },
	{ "comment=", IGNORED, NULL },
	{ "uhelper=", IGNORED, NULL },
	{ "helper=", IGNORED, NULL },
	{ "remount", REMOUNT, NULL },
};

/* The option that `text` ("name", "name=value") is, and its value. A wrong form of a known one (a value missing or too many): NULL too. */
static const struct mount_option *find(const char *text, const char **ret_value)
{
	const char *equal = strchr(text, '=');
	size_t size = equal ? (size_t)(equal - text) + 1 : strlen(text);

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		if (strlen(table[i].name) != size || memcmp(table[i].name, text, size) != 0)
			continue;
		*ret_value = equal ? equal + 1 : NULL;
		return &table[i];
	}
	return NULL;
}

static int fail_unknown(const struct arguments *a, const char *text)
{
	_cleanup_free_ char *quoted = print_quoted(text);
	size_t size = strcspn(text, "=");

	for (unsigned i = 0; i < ARRAY_SIZE(table); i++) {
		const char *name = table[i].name;

		if (strcspn(name, "=") != size || memcmp(name, text, size) != 0)
			continue;
		return cmd_fail(a, EXIT_USAGE, "-o %s: this option %s", quoted,
				name[size] ? "needs a value" : "takes no value");
	}
	return cmd_fail(a, EXIT_USAGE, "-o %s: no such mount option; see 'ddbfs help mount'", quoted);
}

static int set_text(const struct arguments *a, const char *name, const char *value, char **text)
{
	if (!*value)
		return cmd_fail(a, EXIT_USAGE, "-o %s: needs a value", name);
	free(*text);
	*text = print_format("%s", value);
	return EXIT_DONE;
}

static void append_kernel(struct mount_options *o, const char *name)
{
	char *longer = print_format("%s%s%s", o->kernel ? o->kernel : "", o->kernel ? "," : "", name);

	free(o->kernel);
	o->kernel = longer;
}

static int apply(const struct arguments *a, const struct mount_option *option, const char *value,
		 struct mount_options *o)
{
	switch (option->effect) {
	case KERNEL:
		append_kernel(o, option->name);
		break;
	case READ_ONLY:
	case READ_WRITE:
		o->read_only = option->effect == READ_ONLY;
		break;
	case WRITEBACK:
		o->writeback = true;
		break;
	case ACL:
		o->acl = true;
		break;
	case NO_POLL:
		o->poll = false;
		break;
	case NO_SCRUB:
		o->no_scrub = true;
		break;
	case DEBUG:
		o->debug = true;
		break;
	case CREATE:
		o->create = true;
		break;
	case LOG:
		return set_text(a, option->name, value, &o->log);
	case PASSPHRASE_FILE:
		return set_text(a, option->name, value, &o->passphrase_file);
	case KEY_FILE:
		return set_text(a, option->name, value, &o->key_file);
	case REMOUNT:
		return cmd_fail(a, EXIT_USAGE,
				"-o remount: the options of a mount cannot be changed; unmount it with 'ddbfs umount', and mount it again with the new ones");
	case IGNORED:
		break;
	}
	return EXIT_DONE;
}

static int take(const struct arguments *a, const char *text, struct mount_options *o)
{
	const char *value = NULL;
	const struct mount_option *option = find(text, &value);

	if (option)
		return apply(a, option, value, o);
	if (!strncmp(text, "x-", 2) || !strncmp(text, "X-", 2))
		return EXIT_DONE;
	return fail_unknown(a, text);
}

int mount_options_parse(const struct arguments *a, const char *text, struct mount_options *options)
{
	_cleanup_free_ char *copy = text ? strdup(text) : NULL;
	char *at = copy, *word;
	int code = EXIT_DONE;

	options->poll = true;
	while (code == EXIT_DONE && (word = strsep(&at, ",")))
		if (*word)
			code = take(a, word, options);
	if (code == EXIT_DONE && options->read_only)
		append_kernel(options, "ro");
	return code;
}

void mount_options_release(struct mount_options *o)
{
	free(o->kernel);
	free(o->log);
	free(o->passphrase_file);
	free(o->key_file);
	*o = (struct mount_options){ 0 };
}

void mount_options_each(void (*row)(void *data, const char *name, const char *help), void *data)
{
	for (unsigned i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].help)
			row(data, table[i].name, table[i].help);
}
