/*
 * seal.h - authenticated encryption, and the only users of libsodium together
 * with keyring.c and the passphrase reader.
 *
 * XChaCha20-Poly1305 (libsodium's crypto_aead_xchacha20poly1305_ietf) with
 * random 24-byte nonces: a restored backup makes counters repeat, random nonces
 * do not. Nonces are drawn in bulk, per thread. Subkeys come from the master
 * key by crypto_kdf (BLAKE2b), one for each use. The additional data binds what
 * is sealed to its place: see FORMAT.md for each use.
 *
 * Buffers: no plaintext, ciphertext or additional data is longer than
 * SEAL_SIZE_MAX; whoever seals more made a mistake (asserted), whoever opens
 * more is told -EBADMSG. A buffer of size 0 may be NULL.
 */
#ifndef STORE_SEAL_H
#define STORE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY_SIZE 32
#define SEAL_NONCE_SIZE 24
#define SEAL_TAG_SIZE 16
#define SEAL_OVERHEAD (SEAL_NONCE_SIZE + SEAL_TAG_SIZE)
#define SEAL_SIZE_MAX ((size_t)1 << 30)
#define SEAL_HASH_SIZE 32
#define SEAL_TOKEN_SIZE 16

/* Numbers are part of the format. */
enum seal_use {
	SEAL_ATTRS = 1, /* first box of a value */
	SEAL_CONTENT = 2, /* second box of a value */
	SEAL_CHUNK = 3, /* file data in segments */
	SEAL_JOURNAL = 4,
	SEAL_ANCHOR = 5,
	SEAL_TOKEN = 6, /* key of the name tokens */
	SEAL_HEADER = 7, /* MAC over the store's header */
	SEAL_USES
};

struct seal_key {
	uint8_t bytes[SEAL_KEY_SIZE];
};

/* Once per process, before any other call here. 0 or -EIO. */
int seal_init(void);
void seal_derive(const uint8_t master[SEAL_KEY_SIZE], enum seal_use use, struct seal_key *ret_key);
void seal_wipe(void *memory, size_t size);
void seal_random(void *memory, size_t size);
/* Never the same twice, in threads and after fork(2) too (a bare clone(2) must not use it). */
void seal_nonce(uint8_t ret_nonce[SEAL_NONCE_SIZE]);

/* Writes nonce, ciphertext, tag: `size` + SEAL_OVERHEAD bytes. `ret_sealed` must not overlap `plain`. */
void seal_box(const struct seal_key *key, const void *ad, size_t ad_size, const void *plain,
	      size_t size, uint8_t *ret_sealed);
/* Opens what seal_box made into `ret_plain` (sealed_size - SEAL_OVERHEAD bytes). 0, or -EBADMSG and nothing written that may be used. */
int seal_unbox(const struct seal_key *key, const void *ad, size_t ad_size, const void *sealed,
	       size_t sealed_size, uint8_t *ret_plain);

/* The same with nonce and tag kept apart, so that the ciphertext is as long as the plaintext. In place is allowed. */
void seal_chunk(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE_SIZE], const void *ad,
		size_t ad_size, const void *plain, size_t size, uint8_t *ret_cipher,
		uint8_t ret_tag[SEAL_TAG_SIZE]);
int seal_unchunk(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE_SIZE],
		 const uint8_t tag[SEAL_TAG_SIZE], const void *ad, size_t ad_size,
		 const void *cipher, size_t size, uint8_t *ret_plain);

/* Unkeyed BLAKE2b-256 of `size` bytes, for the anchor's hash of a meta page and the header's checksum. */
void seal_hash(const void *bytes, size_t size, uint8_t ret_hash[SEAL_HASH_SIZE]);
/* Keyed BLAKE2b-256. Compare with seal_equal. */
void seal_mac(const struct seal_key *key, const void *bytes, size_t size,
	      uint8_t ret_mac[SEAL_HASH_SIZE]);
/* In a time that does not depend on the bytes. */
bool seal_equal(const void *a, const void *b, size_t size);
/* SipHash-2-4-128 of a name (libsodium's crypto_shorthash_siphashx24): what stands for it in a key. */
void seal_token(const uint8_t key[SEAL_TOKEN_SIZE], const void *name, size_t size,
		uint8_t ret_token[SEAL_TOKEN_SIZE]);

#endif
