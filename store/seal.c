#include "store/seal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* crypto_kdf's context: eight bytes, part of the format. */
#define KDF_CONTEXT "ddbfs-v1"

/*
 * A getrandom(2) for each nonce would cost more than sealing a small value: 64
 * are drawn at once. The one mutable static thing in the store: a nonce belongs
 * to no store, and a pool that threads shared would need a lock on the path of
 * every write. What is left of a pool is public bytes, so nothing is wiped.
 */
#define POOL_NONCES 64

struct nonce_pool {
	size_t left;
	uint8_t nonces[POOL_NONCES][SEAL_NONCE_SIZE];
};

static _Thread_local struct nonce_pool pool;

/* Runs in the child, whose only thread is the one that forked: the others' pools do not exist there. */
static void pool_forget(void)
{
	pool.left = 0;
}

static pthread_once_t init_once = PTHREAD_ONCE_INIT;

/* sodium_init may be called again; a fork handler must be registered once. */
static void init_fork(void)
{
	if (pthread_atfork(NULL, NULL, pool_forget) != 0)
		abort();
}

int seal_init(void)
{
	if (sodium_init() < 0)
		return -EIO;
	pthread_once(&init_once, init_fork);
	return 0;
}

void seal_derive(const uint8_t master[SEAL_KEY_SIZE], enum seal_use use, struct seal_key *ret_key)
{
	static_assert(SEAL_KEY_SIZE == crypto_kdf_KEYBYTES, "the master key is crypto_kdf's");
	static_assert(sizeof(KDF_CONTEXT) - 1 == crypto_kdf_CONTEXTBYTES, "the context is crypto_kdf's");

	crypto_kdf_derive_from_key(ret_key->bytes, sizeof(ret_key->bytes), (uint64_t)use,
				   KDF_CONTEXT, master);
}

void seal_wipe(void *memory, size_t size)
{
	sodium_memzero(memory, size);
}

void seal_random(void *memory, size_t size)
{
	randombytes_buf(memory, size);
}

void seal_nonce(uint8_t ret_nonce[SEAL_NONCE_SIZE])
{
	if (pool.left == 0) {
		randombytes_buf(pool.nonces, sizeof(pool.nonces));
		pool.left = POOL_NONCES;
	}
	memcpy(ret_nonce, pool.nonces[--pool.left], SEAL_NONCE_SIZE);
}

void seal_box(const struct seal_key *key, const void *ad, size_t ad_size, const void *plain,
	      size_t size, uint8_t *ret_sealed)
{
	seal_nonce(ret_sealed);
	seal_chunk(key, ret_sealed, ad, ad_size, plain, size, ret_sealed + SEAL_NONCE_SIZE,
		   ret_sealed + SEAL_NONCE_SIZE + size);
}

int seal_unbox(const struct seal_key *key, const void *ad, size_t ad_size, const void *sealed,
	       size_t sealed_size, uint8_t *ret_plain)
{
	const uint8_t *bytes = sealed;

	if (sealed_size < SEAL_OVERHEAD)
		return -EBADMSG;
	return seal_unchunk(key, bytes, bytes + sealed_size - SEAL_TAG_SIZE, ad, ad_size,
			    bytes + SEAL_NONCE_SIZE, sealed_size - SEAL_OVERHEAD, ret_plain);
}

void seal_chunk(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE_SIZE], const void *ad,
		size_t ad_size, const void *plain, size_t size, uint8_t *ret_cipher,
		uint8_t ret_tag[SEAL_TAG_SIZE])
{
	static_assert(SEAL_NONCE_SIZE == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "");
	static_assert(SEAL_KEY_SIZE == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "");
	static_assert(SEAL_TAG_SIZE == crypto_aead_xchacha20poly1305_ietf_ABYTES, "");
	assert(size <= SEAL_SIZE_MAX && ad_size <= SEAL_SIZE_MAX);

	crypto_aead_xchacha20poly1305_ietf_encrypt_detached(ret_cipher, ret_tag, NULL, plain, size,
							    ad, ad_size, NULL, nonce, key->bytes);
}

int seal_unchunk(const struct seal_key *key, const uint8_t nonce[SEAL_NONCE_SIZE],
		 const uint8_t tag[SEAL_TAG_SIZE], const void *ad, size_t ad_size,
		 const void *cipher, size_t size, uint8_t *ret_plain)
{
	if (size > SEAL_SIZE_MAX || ad_size > SEAL_SIZE_MAX)
		return -EBADMSG;
	if (crypto_aead_xchacha20poly1305_ietf_decrypt_detached(ret_plain, NULL, cipher, size, tag,
								ad, ad_size, nonce, key->bytes) < 0)
		return -EBADMSG;
	return 0;
}

void seal_hash(const void *bytes, size_t size, uint8_t ret_hash[SEAL_HASH_SIZE])
{
	crypto_generichash(ret_hash, SEAL_HASH_SIZE, bytes, size, NULL, 0);
}

void seal_mac(const struct seal_key *key, const void *bytes, size_t size, uint8_t ret_mac[SEAL_HASH_SIZE])
{
	crypto_generichash(ret_mac, SEAL_HASH_SIZE, bytes, size, key->bytes, sizeof(key->bytes));
}

bool seal_equal(const void *a, const void *b, size_t size)
{
	return sodium_memcmp(a, b, size) == 0;
}

void seal_token(const uint8_t key[SEAL_TOKEN_SIZE], const void *name, size_t size,
		uint8_t ret_token[SEAL_TOKEN_SIZE])
{
	static_assert(SEAL_TOKEN_SIZE == crypto_shorthash_siphashx24_KEYBYTES, "");
	static_assert(SEAL_TOKEN_SIZE == crypto_shorthash_siphashx24_BYTES, "");

	crypto_shorthash_siphashx24(ret_token, name, size, key);
}
