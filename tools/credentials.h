/*
 * credentials.h - from options to what unlocks a store.
 */
#ifndef TOOLS_CREDENTIALS_H
#define TOOLS_CREDENTIALS_H

#include "store/store.h"
#include "tools/cmd.h"

struct credentials {
	struct store_credentials store; /* borrows from below */
	char *passphrase;
	char *key_file; /* absolute: a daemon changes its directory */
	bool given; /* by an option: not to be asked for */
};
void credentials_release(struct credentials *c); /* wipes; takes zeroed */

/* Which options to read: those of the store as it is, or the --new ones. */
enum credentials_set {
	CREDENTIALS_PRESENT,
	CREDENTIALS_NEW,
};

/* Checks only that not two of them are given. EXIT_DONE or EXIT_USAGE, said. */
int credentials_check(const struct arguments *a, enum credentials_set set);
/*
 * Reads what the options name. `twice`: a passphrase asked for on the terminal
 * is asked for again, since a typing error would lock a new store for good.
 * EXIT_DONE; EXIT_USAGE or EXIT_FAILED, said.
 */
int credentials_read(const struct arguments *a, enum credentials_set set, bool twice,
		     struct credentials *ret_credentials);
/* Nothing was given and the store did not open without: asks, if there is a terminal. EXIT_DONE; EXIT_WRONG_KEY, said. */
int credentials_ask(const struct arguments *a, struct credentials *c);

/*
 * Passphrases and keys are in this process's memory from now on: no core file
 * may hold them, nobody else may look. By credentials_read, too.
 */
void credentials_protect(void);

#endif
