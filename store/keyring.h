/*
 * keyring.h - the store's header file: who it is, how its names are kept, and
 * the slots in which the master key lies wrapped.
 *
 * A slot is opened by a passphrase (Argon2id), by a key file, or, in a store
 * made without either, by a random key in the file `key` beside it (0600). The
 * header is replaced whole: written beside, synced, renamed, directory synced.
 *
 * Credentials name a passphrase or a key file, not both (-EINVAL). A passphrase
 * is the bytes given, 1 to KEYRING_PASSPHRASE_MAX of them; a key file is a
 * regular file of KEYRING_KEY_FILE_MIN to _MAX bytes, all of which are the key.
 * The header and `key` themselves must be plain files of the store's directory:
 * a symlink in their place is refused, one to a key file is followed.
 */
#ifndef STORE_KEYRING_H
#define STORE_KEYRING_H

#include <stdbool.h>
#include <stdint.h>

#include "store/seal.h"
#include "store/store.h"

#define KEYRING_FORMAT 2 /* the format this program writes and the newest it reads */
#define KEYRING_FORMAT_OLDEST 1 /* all since are subsets of the newest: see keyring_upgrade */
#define KEYRING_STORE_ID_SIZE 16
#define KEYRING_TRASH_NAME_MAX STORE_TRASH_NAME_MAX
#define KEYRING_PASSPHRASE_MAX 1024
#define KEYRING_KEY_FILE_MIN 32 /* what is shorter was typed by somebody: it is a passphrase */
#define KEYRING_KEY_FILE_MAX (1 << 20)

/* Names in the store's directory. */
#define KEYRING_HEADER "header"
#define KEYRING_HEADER_NEW "header.new" /* left by a crash; the next writer replaces it */
#define KEYRING_LOCAL_KEY "key"

/* Holds secrets and is locked in memory where it stands: not to be copied or moved while filled. */
struct keyring {
	uint8_t store_id[KEYRING_STORE_ID_SIZE];
	unsigned format; /* of the header as it was read */
	struct seal_key keys[SEAL_USES]; /* [use]; wiped by keyring_release */
	bool sealed_names;
	char trash_name[KEYRING_TRASH_NAME_MAX + 1];
	uint64_t journal_bytes; /* of each journal, fixed at creation */
	bool memory_locked; /* kept out of swap and core dumps; false where the system refused */
};

/*
 * Draws id and master key and writes the header, durably, as `header.new` into
 * `dir_fd`: no store yet. keyring_commit renames it once the engine's files
 * stand. 0 or a negative errno. Slow: Argon2id.
 */
int keyring_create(int dir_fd, const struct store_create_options *options, struct keyring *ret_keyring);
int keyring_commit(int dir_fd);
/*
 * 0, STORE_NOT_A_STORE, STORE_TOO_NEW, STORE_WRONG_KEY, STORE_DAMAGED, or a
 * negative errno (-ENOMEM: Argon2id's memory is not there); `ret_report` (may
 * be NULL) is filled unless it is 0. Writes nothing. Slow with a passphrase.
 */
int keyring_open(int dir_fd, const struct store_credentials *credentials,
		 struct store_open_report *ret_report, struct keyring *ret_keyring);
/*
 * Adds a slot for the new credentials, or with `replace` leaves that one alone
 * and, durably afterwards, wipes `key` if it opened a slot. A new passphrase is
 * given the Argon2id parameters of the old one, else MODERATE. The master key
 * stays: who kept an older header and its key still has it. 0, as keyring_open,
 * -EINVAL (no or invalid new credentials), -E2BIG (no slot is free).
 */
int keyring_change(int dir_fd, const struct store_credentials *old_credentials,
		   const struct store_credentials *new_credentials, bool replace,
		   struct store_open_report *ret_report);
/*
 * Has the header of an opened store say the format that this program writes,
 * durably, before anything of it is written that an older program does not
 * know. 0 or a negative errno; nothing to do for a store of today's format.
 */
int keyring_upgrade(int dir_fd, struct keyring *k);
void keyring_release(struct keyring *k); /* wipes; takes NULL */

#endif
