/*
 * mount-options.h - what follows `-o`, as mount(8) and fstab give it.
 *
 * Three kinds: those ddbfs understands itself, those of the kernel (handed on),
 * and those that are ignored, because they concern only mount(8) or systemd
 * (noauto, user, _netdev, x-...) or change nothing here (lazytime, diratime,
 * iversion, mand). Anything else is named and refused; so is what would be a
 * promise not kept (nosymfollow, context=).
 */
#ifndef TOOLS_MOUNT_OPTIONS_H
#define TOOLS_MOUNT_OPTIONS_H

#include <stdbool.h>

#include "tools/cmd.h"

struct mount_options {
	char *kernel; /* "ro,allow_other": what goes to the kernel and libfuse; NULL: nothing */
	bool read_only;
	bool writeback;
	bool acl;
	bool poll;
	bool debug;
	bool no_scrub;
	bool create;
	char *log; /* NULL: not given */
	char *passphrase_file;
	char *key_file;
};

/* Fills *options, which is zeroed. `text` may be NULL. EXIT_DONE or EXIT_USAGE, said. Release in any case. */
int mount_options_parse(const struct arguments *a, const char *text, struct mount_options *options);
void mount_options_release(struct mount_options *options);

/* For help and manual: what there is. Calls `row` for each that users should know. */
void mount_options_each(void (*row)(void *data, const char *name, const char *help), void *data);

#endif
