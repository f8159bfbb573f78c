/*
 * keyring.h - the store's header file: who it is, how its names are kept, and
 * the slots in which the master key lies wrapped.
 *
 * A slot is opened by a passphrase (Argon2id), by a key file, or, in a store
 * made without either, by a random key in the file `key` beside it (0600). The
 * header is replaced whole: written beside, synced, renamed, directory synced.
 */
#ifndef STORE_KEYRING_H
#define STORE_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/seal.h"
#include "store/store.h"

#define KEYRING_FORMAT 1 /* the format this program writes and the newest it reads */
#define KEYRING_STORE_ID_SIZE 16
#define KEYRING_TRASH_NAME_MAX 64

struct keyring {
	uint8_t store_id[KEYRING_STORE_ID_SIZE];
	struct seal_key keys[SEAL_USES]; /* [use]; wiped by keyring_release */
	bool sealed_names;
	char trash_name[KEYRING_TRASH_NAME_MAX + 1];
	uint64_t journal_bytes; /* of each journal, fixed at creation */
};

/*
 * Draws id and master key and writes the header, durably, as `header.new` into
 * `dir_fd`: no store yet. keyring_commit renames it once the engine's files
 * stand. 0 or a negative errno. Slow: Argon2id.
 */
int keyring_create(int dir_fd, const struct store_create_options *options, struct keyring *ret_keyring);
int keyring_commit(int dir_fd);
/* 0, STORE_NOT_A_STORE, STORE_TOO_NEW, STORE_WRONG_KEY, STORE_DAMAGED with `report` filled, or a negative errno. */
int keyring_open(int dir_fd, const struct store_credentials *credentials, struct store_open_report *ret_report,
		 struct keyring *ret_keyring);
int keyring_change(int dir_fd, const struct store_credentials *old_credentials,
		   const struct store_credentials *new_credentials, bool replace);
void keyring_release(struct keyring *k); /* wipes; takes NULL */

#endif
