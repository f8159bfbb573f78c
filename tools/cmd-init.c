/*
 * cmd-init.c - makes an empty store in a new or empty directory.
 */
#include "store/util.h"
#include "tools/credentials.h"
#include "tools/formatting.h"
#include "tools/print.h"

static void say_done(const char *path, const struct credentials *credentials)
{
	_cleanup_free_ char *quoted = print_quoted(path);

	printf("made a store in %s\n", quoted);
	if (credentials->passphrase)
		puts("It opens with the passphrase alone: whoever loses that loses the files.");
	else if (credentials->given)
		puts("It opens with the key file alone: keep a copy of it elsewhere.");
	else
		puts("Its key lies inside it: contents are protected against damage, not against whoever can read the store.");
}

int cmd_init(const struct arguments *a)
{
	struct credentials credentials = { 0 };
	int code = formatting_check(a);

	if (code == EXIT_DONE)
		code = credentials_read(a, CREDENTIALS_PRESENT, true, &credentials);
	if (code == EXIT_DONE)
		code = formatting_make(a, a->operands[0], &credentials);
	if (code == EXIT_DONE)
		say_done(a->operands[0], &credentials);
	credentials_release(&credentials);
	return code;
}
