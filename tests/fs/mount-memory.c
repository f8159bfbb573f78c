/*
 * mount-memory.c - mounts a store in memory, for tests of what the kernel takes
 * part in. It is gone with the process.
 *
 *     mount-memory [-o OPTIONS] [-d] [-w] [-a] [-n] [-s] [-c] MOUNTPOINT
 *
 * -o for the kernel and libfuse, -d traces requests, -w has the kernel's
 * writeback cache, -a POSIX ACLs, -n no busy poll, -s sealed names, -c checks
 * the whole store in the end. Prints "mounted" when the mount answers; runs in
 * the foreground until unmounted or told to stop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/fs.h"
#include "lifecycle/lifecycle.h"
#include "store/util.h"

static void on_mounted(void *data)
{
	puts("mounted");
	fflush(stdout);
}

static void on_log(void *data, const char *text)
{
	fprintf(stderr, "mount-memory: %s\n", text);
}

static int usage(void)
{
	fputs("usage: mount-memory [-o OPTIONS] [-d] [-w] [-a] [-n] [-s] [-c] MOUNTPOINT\n", stderr);
	return 2;
}

static void on_problem(void *data, const char *path, const char *text)
{
	fprintf(stderr, "mount-memory: %s: %s\n", path, text);
}

static int check(struct store *store)
{
	struct check_result found = { 0 };
	int result = lifecycle_check(store, on_problem, NULL, NULL, &found);

	if (result == 0)
		printf("checked %llu items, %llu problems\n", (unsigned long long)found.items,
		       (unsigned long long)found.problems);
	return result ? result : found.problems ? -EUCLEAN : 0;
}

static int run(const struct fs_options *options, enum store_names names, bool checked)
{
	const struct fs_events events = { .mounted = on_mounted, .log = on_log };
	struct store *store;
	int result = store_open_memory(NULL, names, &store);

	if (result == 0)
		result = tree_format(store, 0755, geteuid(), getegid());
	if (result == 0)
		result = fs_run(store, options, &events);
	if (result == 0 && checked)
		result = check(store);
	if (result == 0)
		result = store_close(store);
	if (result)
		fprintf(stderr, "mount-memory: %s\n", strerror(-result));
	return result ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct fs_options options = { .source = "memory", .busy_poll = true, .sweeper = true };
	enum store_names names = STORE_NAMES_ORDERED;
	bool checked = false;
	int option;

	while ((option = getopt(argc, argv, "o:dwansc")) != -1) {
		switch (option) {
		case 'o':
			options.fuse_options = optarg;
			break;
		case 'd':
			options.debug = true;
			break;
		case 'w':
			options.writeback = true;
			break;
		case 'a':
			options.acl = true;
			break;
		case 'n':
			options.busy_poll = false;
			break;
		case 's':
			names = STORE_NAMES_SEALED;
			break;
		case 'c':
			checked = true;
			break;
		default:
			return usage();
		}
	}
	if (optind + 1 != argc)
		return usage();
	_cleanup_free_ char *mount_point = realpath(argv[optind], NULL);
	if (!mount_point) {
		perror(argv[optind]);
		return 1;
	}
	options.mount_point = mount_point;
	return run(&options, names, checked);
}
