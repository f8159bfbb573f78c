/*
 * cmd-mount.c - mounts a store on a directory. All that can be checked is
 * checked before anything is opened or changed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/util.h"
#include "tools/credentials.h"
#include "tools/daemon.h"
#include "tools/formatting.h"
#include "tools/mount-options.h"
#include "tools/mounts.h"
#include "tools/print.h"
#include "tools/probe.h"
#include "tools/unmounting.h"

struct mounting {
	struct arguments arguments; /* a copy: `-o` options are put in where they have an option of their own */
	struct mount_options options;
	struct credentials credentials;
	char *store;
	char *mount_point;
	char *log_path;
	struct log log;
	bool create; /* and there is none yet */
	char flag[1]; /* "": the value of a flag that was given as -o */
};

static void mounting_release(struct mounting *m)
{
	mount_options_release(&m->options);
	credentials_release(&m->credentials);
	log_close(&m->log);
	free(m->store);
	free(m->mount_point);
	free(m->log_path);
}

/* ---- the mount point --------------------------------------------------------------- */

static int fail_point(const struct arguments *a, const char *path, const char *why)
{
	_cleanup_free_ char *quoted = print_quoted(path);

	return cmd_fail(a, EXIT_MOUNT_POINT, "%s: %s", quoted, why);
}

/* A ddbfs is, or was, mounted at this very place. */
static int deal_with_old_mount(const struct arguments *a, const char *point)
{
	pid_t pid;
	enum probe probe = probe_mount(point, &pid);
	_cleanup_free_ char *quoted = NULL;
	int result;

	if (probe != PROBE_DEAD && probe != PROBE_HANGS)
		return fail_point(a, point, "a ddbfs is mounted there already; unmount it first");
	if (!arguments_has(a, OPTION_FORCE_UNMOUNT))
		return fail_point(
			a, point,
			probe == PROBE_HANGS ?
				"a ddbfs is mounted there that does not answer; give --force-unmount to clean it up" :
				"the daemon of the ddbfs mounted there is dead; do 'ddbfs umount', or give --force-unmount");
	result = unmounting_force(point);
	if (result < 0)
		return fail_point(a, point, strerror(-result));
	quoted = print_quoted(point);
	cmd_warn(a, "%s: a dead mount was cleaned up", quoted);
	return EXIT_DONE;
}

/* Looked for in the list of mounts first: even a stat of a mount that hangs would hang. */
static int check_old_mount(const struct arguments *a, const char *point)
{
	struct mount m = { 0 };
	int found = mounts_find(point, &m);
	bool ours = found == 1 && !strcmp(m.type, MOUNTS_TYPE);

	mount_release(&m);
	return ours ? deal_with_old_mount(a, point) : EXIT_DONE;
}

static int check_point(const struct arguments *a, const char *given, char **ret_point)
{
	_cleanup_free_ char *point = NULL;
	struct stat st;
	int result = mounts_resolve(given, false, &point), code;

	if (result < 0)
		return fail_point(a, given, strerror(-result));
	code = check_old_mount(a, point);
	if (code != EXIT_DONE)
		return code;
	if (lstat(point, &st) < 0)
		return fail_point(a, point,
				  errno == ENOENT ? "no such directory; make it first with mkdir" :
				  errno == ENOTCONN ? "a dead mount is there; unmount it with umount -l" :
						      strerror(errno));
	if (S_ISLNK(st.st_mode))
		return fail_point(a, point, "a symbolic link; give the directory it stands for");
	if (!S_ISDIR(st.st_mode))
		return fail_point(a, point, "not a directory");
	if (!strcmp(point, "/"))
		return fail_point(a, point, "the root of everything cannot be mounted over");
	*ret_point = util_steal(point);
	return EXIT_DONE;
}

/* ---- what must not be inside it ------------------------------------------------------ */

static int check_nesting(const struct mounting *m)
{
	const struct arguments *a = &m->arguments;
	_cleanup_free_ char *here = getcwd(NULL, 0);

	if (mounts_is_below(m->store, m->mount_point))
		return fail_point(a, m->mount_point,
				  "the store lies inside the mount point; keep it elsewhere");
	if (mounts_is_below(m->mount_point, m->store))
		return fail_point(a, m->mount_point,
				  "the mount point lies inside the store; mount elsewhere");
	if (m->log_path && mounts_is_below(m->log_path, m->mount_point))
		return fail_point(a, m->mount_point,
				  "the log lies inside the mount point; write it elsewhere");
	if (here && mounts_is_below(here, m->mount_point))
		return fail_point(a, m->mount_point,
				  "the working directory is inside the mount point; cd out of it first");
	return EXIT_DONE;
}

static bool is_empty(const char *path)
{
	DIR *directory = opendir(path);
	unsigned names = 0;

	while (directory && names <= 2 && readdir(directory))
		names++;
	if (directory)
		closedir(directory);
	return directory && names <= 2;
}

/* There is one, or with --create room for one. */
static int check_store(struct mounting *m)
{
	const struct arguments *a = &m->arguments;
	bool may_create = arguments_has(a, OPTION_CREATE);
	_cleanup_free_ char *quoted = print_quoted(a->operands[0]);
	int result = mounts_resolve(a->operands[0], true, &m->store);
	struct stat st;

	if (result < 0)
		return cmd_fail(a, EXIT_NO_STORE, "%s: cannot find the store: %s", quoted,
				strerror(-result));
	if (!stat(m->store, &st)) {
		m->create = may_create && is_empty(m->store);
		return S_ISDIR(st.st_mode) ?
			       EXIT_DONE :
			       cmd_fail(a, EXIT_NO_STORE, "%s: not a directory, so not a store", quoted);
	}
	if (errno != ENOENT)
		return cmd_fail(a, EXIT_NO_STORE, "%s: cannot find the store: %s", quoted,
				strerror(errno));
	m->create = may_create;
	return may_create ? EXIT_DONE :
			    cmd_fail(a, EXIT_NO_STORE,
				     "%s: no store there; 'ddbfs init' or --create makes one", quoted);
}

static int check_log(struct mounting *m)
{
	const struct arguments *a = &m->arguments;
	const char *given = a->values[OPTION_LOG];
	int result;

	if (!given)
		return EXIT_DONE;
	result = mounts_resolve(given, true, &m->log_path);
	if (result < 0) {
		_cleanup_free_ char *quoted = print_quoted(given);

		return cmd_fail(a, EXIT_USAGE, "--log %s: %s", quoted, strerror(-result));
	}
	return EXIT_DONE;
}

/* ---- options ------------------------------------------------------------------------- */

/* An `-o name=value` counts as the option of that name, which wins if both are there. */
static void adopt(struct mounting *m, enum option_id id, char *value)
{
	if (!m->arguments.values[id])
		m->arguments.values[id] = value;
}

static int check_options(struct mounting *m)
{
	static const enum option_id creating[] = { OPTION_NAMES, OPTION_KDF, OPTION_TRASH_NAME };
	const struct arguments *a = &m->arguments;
	int code = mount_options_parse(a, a->values[OPTION_MOUNT_OPTIONS], &m->options);

	if (code != EXIT_DONE)
		return code;
	adopt(m, OPTION_CREATE, m->options.create ? m->flag : NULL);
	adopt(m, OPTION_LOG, m->options.log);
	adopt(m, OPTION_PASSPHRASE_FILE, m->options.passphrase_file);
	adopt(m, OPTION_KEY_FILE, m->options.key_file);
	for (unsigned i = 0; i < ARRAY_SIZE(creating); i++)
		if (arguments_has(a, creating[i]) && !arguments_has(a, OPTION_CREATE))
			return cmd_fail(a, EXIT_USAGE,
					"--%s: decided when a store is made; goes with --create only",
					option_table[creating[i]].name);
	if (m->options.debug && !arguments_has(a, OPTION_FOREGROUND))
		return cmd_fail(a, EXIT_USAGE, "-o debug: goes with --foreground only");
	code = formatting_check(a);
	return code == EXIT_DONE ? credentials_check(a, CREDENTIALS_PRESENT) : code;
}

static int open_log(struct mounting *m)
{
	int result;

	m->log.fd = arguments_has(&m->arguments, OPTION_FOREGROUND) ? STDERR_FILENO : -1;
	if (!m->log_path)
		return EXIT_DONE;
	result = log_open(m->log_path, &m->log);
	if (result < 0) {
		_cleanup_free_ char *quoted = print_quoted(m->log_path);

		return cmd_fail(&m->arguments, EXIT_USAGE, "--log %s: cannot write there: %s",
				quoted, strerror(-result));
	}
	return EXIT_DONE;
}

/* ---- mounting ------------------------------------------------------------------------ */

static int serve(struct mounting *m)
{
	bool foreground = arguments_has(&m->arguments, OPTION_FOREGROUND);
	const struct daemon_plan plan = {
		.store = m->store,
		.mount_point = m->mount_point,
		.options = &m->options,
		.credentials = &m->credentials,
		.log = m->log,
	};
	bool given = m->credentials.given;
	char words[WORDS_MAX] = "";
	int code = foreground ? daemon_foreground(&plan, words) : daemon_start(&plan, words);

	if (code == EXIT_WRONG_KEY && !given) {
		code = credentials_ask(&m->arguments, &m->credentials);
		if (code != EXIT_DONE)
			return code;
		code = foreground ? daemon_foreground(&plan, words) : daemon_start(&plan, words);
	}
	if (code != EXIT_DONE)
		return cmd_fail(&m->arguments, code, "%s", words);
	if (words[0] && !foreground)
		cmd_warn(&m->arguments, "%s", words);
	return EXIT_DONE;
}

static int prepare(struct mounting *m)
{
	const struct arguments *a = &m->arguments;
	int code = check_options(m);

	if (code == EXIT_DONE)
		code = check_store(m);
	if (code == EXIT_DONE)
		code = check_point(a, a->operands[1], &m->mount_point);
	if (code == EXIT_DONE)
		code = check_log(m);
	if (code == EXIT_DONE)
		code = check_nesting(m);
	if (code == EXIT_DONE && access("/dev/fuse", F_OK) < 0)
		code = cmd_fail(a, EXIT_MOUNT_POINT,
				"/dev/fuse: %s; load the kernel's module 'fuse'", strerror(errno));
	if (code == EXIT_DONE)
		code = credentials_read(a, CREDENTIALS_PRESENT, m->create, &m->credentials);
	if (code == EXIT_DONE)
		code = open_log(m);
	if (code == EXIT_DONE && m->create)
		code = formatting_make(a, m->store, &m->credentials);
	return code;
}

int cmd_mount(const struct arguments *a)
{
	struct mounting m = { .arguments = *a, .log.fd = -1 };
	int code = prepare(&m);

	if (code == EXIT_DONE)
		code = serve(&m);
	mounting_release(&m);
	return code;
}
