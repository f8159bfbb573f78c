#include "store/keyring.h"

#include <assert.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>

#include "store/header.h"
#include "store/plain.h"
#include "store/util.h"

#define JOURNAL_BYTES_DEFAULT (UINT64_C(32) << 20)

/* In libsodium's guarded memory: not swapped where it may lock, wiped when freed. */
struct secrets {
	uint8_t master[SEAL_KEY_SIZE];
	uint8_t wrapping[SEAL_KEY_SIZE]; /* the key a slot is wrapped with */
	struct seal_key mac;
};

static void secrets_free_p(struct secrets **s)
{
	sodium_free(*s);
}

static void buffer_free_secret_p(uint8_t **bytes)
{
	sodium_free(*bytes);
}

__attribute__((format(printf, 3, 4))) static int report(struct store_open_report *r, int result,
							const char *format, ...)
{
	va_list arguments;

	if (r) {
		va_start(arguments, format);
		vsnprintf(r->text, sizeof(r->text), format, arguments);
		va_end(arguments);
	}
	return result;
}

/* ---- what the user gives ------------------------------------------------ */

static enum header_slot_kind credentials_kind(const struct store_credentials *c)
{
	if (c->passphrase)
		return HEADER_SLOT_PASSPHRASE;
	return c->key_file ? HEADER_SLOT_KEY_FILE : HEADER_SLOT_LOCAL;
}

static int check_passphrase(const char *passphrase, struct store_open_report *r)
{
	size_t size = strlen(passphrase);

	if (size == 0)
		return report(r, -EINVAL, "the passphrase is empty");
	if (size > KEYRING_PASSPHRASE_MAX)
		return report(r, -EINVAL, "the passphrase is longer than %d bytes",
			      KEYRING_PASSPHRASE_MAX);
	return 0;
}

/* BLAKE2b-256 of the file, keyed by the slot's salt: a key file has its full strength already. */
static void key_from_bytes_of_file(const uint8_t *bytes, size_t size,
				   const uint8_t salt[HEADER_SALT_SIZE], uint8_t ret_key[SEAL_KEY_SIZE])
{
	static_assert(HEADER_SALT_SIZE >= crypto_generichash_KEYBYTES_MIN, "");

	crypto_generichash(ret_key, SEAL_KEY_SIZE, bytes, size, salt, HEADER_SALT_SIZE);
}

static int read_key_file(const char *path, const uint8_t salt[HEADER_SALT_SIZE],
			 uint8_t ret_key[SEAL_KEY_SIZE], struct store_open_report *r)
{
	_cleanup_(buffer_free_secret_p) uint8_t *bytes = sodium_malloc(KEYRING_KEY_FILE_MAX);
	size_t size;
	int result;

	if (!bytes)
		return report(r, -ENOMEM, "not enough memory to read a key file");
	result = plain_read(AT_FDCWD, path, 0, KEYRING_KEY_FILE_MAX, bytes, &size);
	if (result == -EINVAL)
		return report(r, result, "the key file %.100s is not a plain file", path);
	if (result == -EFBIG)
		return report(r, result,
			      "the key file %.100s is longer than 1 MiB: is it the right one?", path);
	if (result < 0)
		return report(r, result, "cannot read the key file %.100s: %s", path, strerror(-result));
	if (size < KEYRING_KEY_FILE_MIN)
		return report(r, -EINVAL,
			      "the key file %.100s has %zu bytes; it must have %d random ones or more "
			      "(head -c 32 /dev/urandom)",
			      path, size, KEYRING_KEY_FILE_MIN);
	key_from_bytes_of_file(bytes, size, salt, ret_key);
	return 0;
}

int store_check_credentials(const struct store_credentials *c, struct store_open_report *r)
{
	_cleanup_(secrets_free_p) struct secrets *secrets = NULL;
	uint8_t salt[HEADER_SALT_SIZE] = { 0 };

	if (seal_init() < 0)
		return report(r, -EIO, "libsodium could not be started");
	if (c->passphrase && c->key_file)
		return report(r, -EINVAL, "a passphrase and a key file: give one of them");
	if (c->passphrase)
		return check_passphrase(c->passphrase, r);
	if (!c->key_file)
		return 0;
	secrets = sodium_malloc(sizeof(*secrets));
	if (!secrets)
		return report(r, -ENOMEM, "not enough memory");
	return read_key_file(c->key_file, salt, secrets->wrapping, r);
}

/* ---- slots -------------------------------------------------------------- */

static int derive_passphrase(const char *passphrase, const struct header_slot *slot,
			     uint8_t ret_key[SEAL_KEY_SIZE], struct store_open_report *r)
{
	static_assert(HEADER_SALT_SIZE == crypto_pwhash_argon2id_SALTBYTES, "");

	if (crypto_pwhash_argon2id(ret_key, SEAL_KEY_SIZE, passphrase, strlen(passphrase),
				   slot->salt, slot->passes, (size_t)slot->memory,
				   crypto_pwhash_argon2id_ALG_ARGON2ID13) < 0)
		return report(r, -ENOMEM,
			      "trying the passphrase needs %llu MiB of memory, which are not free",
			      (unsigned long long)(slot->memory >> 20));
	return 0;
}

/* -ENODATA: the file has another size than any that was ever made. */
static int read_local_key(int dir_fd, uint8_t ret_bytes[SEAL_KEY_SIZE])
{
	size_t size;
	int result = plain_read(dir_fd, KEYRING_LOCAL_KEY, O_NOFOLLOW, SEAL_KEY_SIZE, ret_bytes, &size);

	if (result == 0 && size != SEAL_KEY_SIZE)
		return -ENODATA;
	return result;
}

static int derive_local(int dir_fd, const struct header_slot *slot, uint8_t ret_key[SEAL_KEY_SIZE],
			struct store_open_report *r)
{
	_cleanup_(buffer_free_secret_p) uint8_t *bytes = sodium_malloc(SEAL_KEY_SIZE);
	int result;

	if (!bytes)
		return report(r, -ENOMEM, "not enough memory");
	result = read_local_key(dir_fd, bytes);
	if (result == -EACCES || result == -EIO || result == -EMFILE || result == -ENFILE ||
	    result == -ENOMEM)
		return report(r, result, "cannot read the file `key` of the store: %s",
			      strerror(-result));
	if (result == -ENOENT)
		return report(r, STORE_DAMAGED,
			      "the file `key`, which opens this store, is missing: put it back from a backup");
	if (result < 0)
		return report(r, STORE_DAMAGED,
			      "the file `key`, which opens this store, is not as it was made: put it back from a backup");
	key_from_bytes_of_file(bytes, SEAL_KEY_SIZE, slot->salt, ret_key);
	return 0;
}

/* The key that wraps a slot of the kind that the credentials open. */
static int derive_wrapping(int dir_fd, const struct store_credentials *c, const struct header_slot *slot,
			   uint8_t ret_key[SEAL_KEY_SIZE], struct store_open_report *r)
{
	switch (slot->kind) {
	case HEADER_SLOT_PASSPHRASE:
		return derive_passphrase(c->passphrase, slot, ret_key, r);
	case HEADER_SLOT_KEY_FILE:
		return read_key_file(c->key_file, slot->salt, ret_key, r);
	case HEADER_SLOT_LOCAL:
		return derive_local(dir_fd, slot, ret_key, r);
	}
	return -EINVAL;
}

/* Draws the salt and wraps the master key. `slot` has its kind and, for a passphrase, its parameters. */
static int wrap_slot(int dir_fd, const struct store_credentials *c, const struct header *header,
		     struct header_slot *slot, struct secrets *secrets, struct store_open_report *r)
{
	uint8_t ad[HEADER_SLOT_AD_SIZE];
	int result;

	seal_random(slot->salt, sizeof(slot->salt));
	result = derive_wrapping(dir_fd, c, slot, secrets->wrapping, r);
	if (result != 0)
		return result;
	header_slot_ad(header, slot, ad);
	seal_box((const struct seal_key *)secrets->wrapping, ad, sizeof(ad), secrets->master,
		 sizeof(secrets->master), slot->wrapped);
	return 0;
}

static int wrong_key(const struct header *header, enum header_slot_kind given, bool tried,
		     struct store_open_report *r)
{
	bool passphrase = false, key_file = false;

	for (size_t i = 0; i < header->slots_count; i++) {
		passphrase |= header->slots[i].kind == HEADER_SLOT_PASSPHRASE;
		key_file |= header->slots[i].kind == HEADER_SLOT_KEY_FILE;
	}
	if (tried && given == HEADER_SLOT_LOCAL)
		return report(r, STORE_DAMAGED,
			      "the file `key` does not open this store: it is damaged or another store's; "
			      "put it back from a backup");
	if (tried)
		return report(r, STORE_WRONG_KEY,
			      "%s does not open this store: try again; nothing was changed",
			      given == HEADER_SLOT_PASSPHRASE ? "the passphrase" : "the key file");
	if (!passphrase && !key_file)
		return report(r, STORE_WRONG_KEY,
			      "the store has no passphrase and no key file: open it without");
	return report(r, STORE_WRONG_KEY, "the store needs %s%s%s%s", passphrase ? "its passphrase" : "",
		      passphrase && key_file ? " or " : "", key_file ? "its key file" : "",
		      given == HEADER_SLOT_LOCAL ? "" : ", which is not what was given");
}

/* Fills `secrets` and says which slot it was. */
static int unlock(int dir_fd, const struct store_credentials *c, const struct header *header,
		  struct secrets *secrets, const struct header_slot **ret_slot,
		  struct store_open_report *r)
{
	enum header_slot_kind kind = credentials_kind(c);
	uint8_t ad[HEADER_SLOT_AD_SIZE];
	bool tried = false;

	if (c->passphrase && c->key_file)
		return report(r, -EINVAL, "a passphrase and a key file: give one of them");
	if (c->passphrase && check_passphrase(c->passphrase, r) != 0)
		return STORE_WRONG_KEY;
	for (size_t i = 0; i < header->slots_count; i++) {
		const struct header_slot *slot = &header->slots[i];
		int result;

		if (slot->kind != kind)
			continue;
		result = derive_wrapping(dir_fd, c, slot, secrets->wrapping, r);
		if (result == -EINVAL || result == -EFBIG)
			return STORE_WRONG_KEY; /* no file like that was ever a key: reported in these words */
		if (result != 0)
			return result;
		tried = true;
		header_slot_ad(header, slot, ad);
		if (seal_unbox((const struct seal_key *)secrets->wrapping, ad, sizeof(ad),
			       slot->wrapped, sizeof(slot->wrapped), secrets->master) == 0) {
			*ret_slot = slot;
			return 0;
		}
	}
	return wrong_key(header, kind, tried, r);
}

/* ---- files -------------------------------------------------------------- */

static int write_header(int dir_fd, const struct header *header, const struct seal_key *mac_key)
{
	struct buffer b = { 0 };
	int result = -ENOMEM;

	header_encode(header, mac_key, &b);
	if (!b.failed)
		result = plain_write(dir_fd, KEYRING_HEADER_NEW, b.bytes, b.size);
	buffer_release(&b);
	if (result == 0 && fsync(dir_fd) < 0)
		result = -errno;
	if (result < 0)
		unlinkat(dir_fd, KEYRING_HEADER_NEW, 0);
	return result;
}

int keyring_commit(int dir_fd)
{
	if (renameat(dir_fd, KEYRING_HEADER_NEW, dir_fd, KEYRING_HEADER) < 0 || fsync(dir_fd) < 0)
		return -errno;
	return 0;
}

struct header_file {
	struct header header;
	uint8_t bytes[HEADER_SIZE_MAX + 1];
	size_t size;
};

static int read_header(int dir_fd, struct header_file *ret_file, struct store_open_report *r)
{
	struct header_fault fault = { 0 };
	int result = plain_read(dir_fd, KEYRING_HEADER, O_NOFOLLOW, sizeof(ret_file->bytes),
				ret_file->bytes, &ret_file->size);

	if (result == -ENOENT)
		return report(r, STORE_NOT_A_STORE, "it has no file `header`");
	if (result == -EINVAL)
		return report(r, STORE_NOT_A_STORE, "`header` is not a plain file: this is not a store");
	if (result == -EFBIG)
		ret_file->size = sizeof(ret_file->bytes);
	else if (result < 0)
		return report(r, result, "cannot read the file `header`: %s", strerror(-result));
	result = header_decode(ret_file->bytes, ret_file->size, &ret_file->header, &fault);
	if (r)
		r->format = fault.format;
	if (result == STORE_NOT_A_STORE)
		return report(r, result,
			      "`header` %s: this is not a store, or a damaged one (then put `header` back "
			      "from a backup)",
			      fault.text);
	if (result == STORE_TOO_NEW)
		return report(r, result,
			      "the store has format %u, this program knows %d: use the newer program",
			      fault.format, KEYRING_FORMAT);
	if (result == STORE_DAMAGED)
		return report(r, result, "`header` %s: put it back from a backup", fault.text);
	return result;
}

/* ---- the calls ---------------------------------------------------------- */

static void fill(const struct header *header, const struct secrets *secrets, struct keyring *ret_keyring)
{
	memset(ret_keyring, 0, sizeof(*ret_keyring));
	ret_keyring->memory_locked = sodium_mlock(ret_keyring, sizeof(*ret_keyring)) == 0;
	memcpy(ret_keyring->store_id, header->store_id, sizeof(ret_keyring->store_id));
	memcpy(ret_keyring->trash_name, header->trash_name, sizeof(ret_keyring->trash_name));
	ret_keyring->format = header->format;
	ret_keyring->sealed_names = header->sealed_names;
	ret_keyring->journal_bytes = header->journal_bytes;
	for (int use = 1; use < SEAL_USES; use++)
		seal_derive(secrets->master, use, &ret_keyring->keys[use]);
}

static int set_kdf_level(unsigned level, struct header_slot *slot)
{
	static const struct {
		uint32_t passes;
		uint64_t memory;
	} levels[] = {
		{ crypto_pwhash_argon2id_OPSLIMIT_MODERATE, crypto_pwhash_argon2id_MEMLIMIT_MODERATE },
		{ crypto_pwhash_argon2id_OPSLIMIT_INTERACTIVE, crypto_pwhash_argon2id_MEMLIMIT_INTERACTIVE },
		{ crypto_pwhash_argon2id_OPSLIMIT_SENSITIVE, crypto_pwhash_argon2id_MEMLIMIT_SENSITIVE },
		{ crypto_pwhash_argon2id_OPSLIMIT_MIN, crypto_pwhash_argon2id_MEMLIMIT_MIN },
	};

	if (level >= ARRAY_SIZE(levels))
		return -EINVAL;
	if (slot->kind == HEADER_SLOT_PASSPHRASE) {
		slot->passes = levels[level].passes;
		slot->memory = levels[level].memory;
	}
	return 0;
}

static int header_from_options(const struct store_create_options *o, struct header *ret_header)
{
	const char *trash_name = o->trash_name ? o->trash_name : ".trash";
	uint64_t journal = o->journal_bytes ? o->journal_bytes : JOURNAL_BYTES_DEFAULT;
	struct header header = { .format = KEYRING_FORMAT, .slots_count = 1 };

	header.slots[0].kind = credentials_kind(&o->credentials);
	if (!header_trash_name_valid(trash_name) || journal < HEADER_JOURNAL_MIN ||
	    journal > HEADER_JOURNAL_MAX || o->names > STORE_NAMES_SEALED ||
	    set_kdf_level(o->kdf_level, &header.slots[0]) < 0)
		return -EINVAL;
	strcpy(header.trash_name, trash_name);
	header.journal_bytes =
		(journal + HEADER_JOURNAL_UNIT - 1) / HEADER_JOURNAL_UNIT * HEADER_JOURNAL_UNIT;
	header.sealed_names =
		o->names == STORE_NAMES_SEALED ||
		(o->names == STORE_NAMES_DEFAULT && header.slots[0].kind != HEADER_SLOT_LOCAL);
	seal_random(header.store_id, sizeof(header.store_id));
	*ret_header = header;
	return 0;
}

static int create_local_key(int dir_fd)
{
	_cleanup_(buffer_free_secret_p) uint8_t *bytes = sodium_malloc(SEAL_KEY_SIZE);

	if (!bytes)
		return -ENOMEM;
	seal_random(bytes, SEAL_KEY_SIZE);
	return plain_write(dir_fd, KEYRING_LOCAL_KEY, bytes, SEAL_KEY_SIZE);
}

int keyring_create(int dir_fd, const struct store_create_options *options, struct keyring *ret_keyring)
{
	_cleanup_(secrets_free_p) struct secrets *secrets = NULL;
	struct header header;
	bool local;
	int result = store_check_credentials(&options->credentials, NULL);

	if (result == 0)
		result = header_from_options(options, &header);
	if (result < 0)
		return result;
	secrets = sodium_malloc(sizeof(*secrets));
	if (!secrets)
		return -ENOMEM;
	seal_random(secrets->master, sizeof(secrets->master));
	seal_derive(secrets->master, SEAL_HEADER, &secrets->mac);
	local = header.slots[0].kind == HEADER_SLOT_LOCAL;
	if (local)
		result = create_local_key(dir_fd);
	if (result == 0)
		result = wrap_slot(dir_fd, &options->credentials, &header, &header.slots[0],
				   secrets, NULL);
	if (result > 0)
		result = -EIO; /* the key just written does not read back */
	if (result == 0)
		result = write_header(dir_fd, &header, &secrets->mac);
	if (result < 0) {
		if (local)
			unlinkat(dir_fd, KEYRING_LOCAL_KEY, 0);
		return result;
	}
	fill(&header, secrets, ret_keyring);
	return 0;
}

/* Reads, unlocks and authenticates. */
static int open_header(int dir_fd, const struct store_credentials *c, struct header_file *ret_file,
		       struct secrets *secrets, const struct header_slot **ret_slot,
		       struct store_open_report *r)
{
	int result;

	if (seal_init() < 0)
		return report(r, -EIO, "libsodium could not be started");
	result = read_header(dir_fd, ret_file, r);
	if (result == 0)
		result = unlock(dir_fd, c, &ret_file->header, secrets, ret_slot, r);
	if (result != 0)
		return result;
	seal_derive(secrets->master, SEAL_HEADER, &secrets->mac);
	if (!header_authentic(ret_file->bytes, ret_file->size, &secrets->mac))
		return report(r, STORE_DAMAGED,
			      "`header` was changed by something that does not know the key: put it back from a backup");
	return 0;
}

int keyring_open(int dir_fd, const struct store_credentials *credentials,
		 struct store_open_report *ret_report, struct keyring *ret_keyring)
{
	_cleanup_(secrets_free_p) struct secrets *secrets = NULL;
	_cleanup_free_ struct header_file *file = malloc(sizeof(*file));
	const struct header_slot *slot;
	int result;

	if (seal_init() < 0)
		return report(ret_report, -EIO, "libsodium could not be started");
	secrets = sodium_malloc(sizeof(*secrets));
	if (!file || !secrets)
		return report(ret_report, -ENOMEM, "not enough memory");
	result = open_header(dir_fd, credentials, file, secrets, &slot, ret_report);
	if (result == 0)
		fill(&file->header, secrets, ret_keyring);
	return result;
}

/* Wraps the master key into one slot more, or into the only one. */
static int add_slot(int dir_fd, struct header *header, const struct header_slot *opened,
		    struct secrets *secrets, const struct store_credentials *c, bool replace)
{
	struct header_slot slot = { .kind = credentials_kind(c) };
	int result;

	set_kdf_level(0, &slot);
	if (slot.kind == HEADER_SLOT_PASSPHRASE && opened->kind == HEADER_SLOT_PASSPHRASE) {
		slot.passes = opened->passes;
		slot.memory = opened->memory;
	}
	if (replace)
		header->slots_count = 0;
	if (header->slots_count == HEADER_SLOTS_MAX)
		return -E2BIG;
	result = wrap_slot(dir_fd, c, header, &slot, secrets, NULL);
	if (result == 0)
		header->slots[header->slots_count++] = slot;
	return result;
}

int keyring_change(int dir_fd, const struct store_credentials *old_credentials,
		   const struct store_credentials *new_credentials, bool replace,
		   struct store_open_report *ret_report)
{
	_cleanup_(secrets_free_p) struct secrets *secrets = NULL;
	_cleanup_free_ struct header_file *file = malloc(sizeof(*file));
	const struct header_slot *opened;
	int result = new_credentials ? store_check_credentials(new_credentials, ret_report) : 0;

	if (result == 0 && new_credentials && credentials_kind(new_credentials) == HEADER_SLOT_LOCAL)
		result = -EINVAL;
	if (result < 0)
		return result;
	secrets = sodium_malloc(sizeof(*secrets));
	if (!file || !secrets)
		return -ENOMEM;
	result = open_header(dir_fd, old_credentials, file, secrets, &opened, ret_report);
	if (!new_credentials)
		return result;
	if (result == 0)
		result = add_slot(dir_fd, &file->header, opened, secrets, new_credentials, replace);
	if (result == 0)
		result = write_header(dir_fd, &file->header, &secrets->mac);
	if (result == 0)
		result = keyring_commit(dir_fd);
	if (result == 0 && replace)
		plain_wipe(dir_fd, KEYRING_LOCAL_KEY, SEAL_KEY_SIZE);
	return result;
}

int keyring_upgrade(int dir_fd, struct keyring *k)
{
	_cleanup_free_ struct header_file *file = NULL;
	const struct seal_key *mac_key = &k->keys[SEAL_HEADER];
	int result;

	if (k->format == KEYRING_FORMAT)
		return 0;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	result = read_header(dir_fd, file, NULL);
	if (result == 0 && !header_authentic(file->bytes, file->size, mac_key))
		result = STORE_DAMAGED;
	if (result > 0)
		return -EIO; /* it was whole when it was opened */
	if (result == 0)
		result = write_header(dir_fd, &file->header, mac_key);
	if (result == 0)
		result = keyring_commit(dir_fd);
	if (result == 0)
		k->format = KEYRING_FORMAT;
	return result;
}

void keyring_release(struct keyring *k)
{
	if (!k)
		return;
	if (k->memory_locked)
		sodium_munlock(k, sizeof(*k));
	sodium_memzero(k, sizeof(*k));
}
