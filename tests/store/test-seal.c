#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/seal.h"
#include "tests/lib/test.h"

static struct seal_key key_of(uint8_t first)
{
	struct seal_key key;

	for (size_t i = 0; i < sizeof(key.bytes); i++)
		key.bytes[i] = (uint8_t)(first + i);
	return key;
}

/* The AEAD vector of draft-irtf-cfrg-xchacha-03, A.3.1. */
START_TEST(chunk_is_xchacha20_poly1305)
{
	static const char plain[] =
		"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for "
		"the future, sunscreen would be it.";
	static const uint8_t ad[] = { 0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1,
				      0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7 };
	static const uint8_t first[] = { 0xbd, 0x6d, 0x17, 0x9d, 0x3e, 0x83, 0xd4, 0x3b,
					 0x95, 0x76, 0x57, 0x94, 0x93, 0xc0, 0xe9, 0x39 };
	static const uint8_t tag[] = { 0xc0, 0x87, 0x59, 0x24, 0xc1, 0xc7, 0x98, 0x79,
				       0x47, 0xde, 0xaf, 0xd8, 0x78, 0x0a, 0xcf, 0x49 };
	struct seal_key key = key_of(0x80);
	uint8_t nonce[SEAL_NONCE_SIZE], cipher[sizeof(plain) - 1], got[SEAL_TAG_SIZE];

	for (size_t i = 0; i < sizeof(nonce); i++)
		nonce[i] = (uint8_t)(0x40 + i);
	seal_chunk(&key, nonce, ad, sizeof(ad), plain, sizeof(cipher), cipher, got);
	ck_assert_mem_eq(cipher, first, sizeof(first));
	ck_assert_mem_eq(got, tag, sizeof(tag));
}
END_TEST

/* The first vector of vectors_sip128 in SipHash's reference code. */
START_TEST(token_is_siphash_2_4_128)
{
	static const uint8_t expected[SEAL_TOKEN_SIZE] = { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25,
							   0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14,
							   0xc7, 0x55, 0x02, 0x93 };
	uint8_t key[SEAL_TOKEN_SIZE], token[SEAL_TOKEN_SIZE], other[SEAL_TOKEN_SIZE];

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	seal_token(key, "", 0, token);
	ck_assert_mem_eq(token, expected, sizeof(expected));
	seal_token(key, "a", 1, other);
	ck_assert_mem_ne(token, other, sizeof(token));
}
END_TEST

START_TEST(subkeys_are_one_for_each_use)
{
	uint8_t master[SEAL_KEY_SIZE] = { 0 };
	struct seal_key keys[SEAL_USES], again;

	for (int use = 1; use < SEAL_USES; use++)
		seal_derive(master, use, &keys[use]);
	for (int a = 1; a < SEAL_USES; a++)
		for (int b = 1; b < a; b++)
			ck_assert_mem_ne(keys[a].bytes, keys[b].bytes, SEAL_KEY_SIZE);
	seal_derive(master, SEAL_CHUNK, &again);
	ck_assert_mem_eq(again.bytes, keys[SEAL_CHUNK].bytes, SEAL_KEY_SIZE);
	master[31] ^= 1;
	seal_derive(master, SEAL_CHUNK, &again);
	ck_assert_mem_ne(again.bytes, keys[SEAL_CHUNK].bytes, SEAL_KEY_SIZE);
}
END_TEST

#define TEXT_SIZE 37
static const uint8_t text[TEXT_SIZE] = "thirty-seven bytes that are sealed up";

START_TEST(box_opens_to_what_was_sealed)
{
	struct seal_key key = key_of(1);
	uint8_t sealed[TEXT_SIZE + SEAL_OVERHEAD], plain[TEXT_SIZE];

	seal_box(&key, "place", 5, text, TEXT_SIZE, sealed);
	ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, sizeof(sealed), plain), 0);
	ck_assert_mem_eq(plain, text, TEXT_SIZE);
	seal_box(&key, NULL, 0, NULL, 0, sealed);
	ck_assert_int_eq(seal_unbox(&key, NULL, 0, sealed, SEAL_OVERHEAD, plain), 0);
	ck_assert_int_eq(seal_unbox(&key, NULL, 0, sealed, SEAL_OVERHEAD, NULL), 0);
}
END_TEST

START_TEST(box_refuses_every_flipped_bit)
{
	struct seal_key key = key_of(1);
	uint8_t sealed[TEXT_SIZE + SEAL_OVERHEAD], plain[TEXT_SIZE];

	seal_box(&key, "place", 5, text, TEXT_SIZE, sealed);
	for (size_t bit = 0; bit < sizeof(sealed) * 8; bit++) {
		sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, sizeof(sealed), plain), -EBADMSG);
		sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, sizeof(sealed), plain), 0);
}
END_TEST

START_TEST(box_refuses_other_keys_places_and_lengths)
{
	struct seal_key key = key_of(1), other = key_of(2);
	uint8_t sealed[TEXT_SIZE + SEAL_OVERHEAD], plain[TEXT_SIZE];

	seal_box(&key, "place", 5, text, TEXT_SIZE, sealed);
	ck_assert_int_eq(seal_unbox(&other, "place", 5, sealed, sizeof(sealed), plain), -EBADMSG);
	ck_assert_int_eq(seal_unbox(&key, "plac", 4, sealed, sizeof(sealed), plain), -EBADMSG);
	ck_assert_int_eq(seal_unbox(&key, "Place", 5, sealed, sizeof(sealed), plain), -EBADMSG);
	for (size_t size = 0; size < sizeof(sealed); size++)
		ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, size, plain), -EBADMSG);
	ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, SEAL_SIZE_MAX + SEAL_OVERHEAD + 1, plain),
			 -EBADMSG);
	ck_assert_int_eq(seal_unbox(&key, "place", 5, sealed, SIZE_MAX, plain), -EBADMSG);
}
END_TEST

START_TEST(chunk_is_sealed_in_place)
{
	struct seal_key key = key_of(1);
	uint8_t nonce[SEAL_NONCE_SIZE], tag[SEAL_TAG_SIZE], bytes[TEXT_SIZE];

	memcpy(bytes, text, TEXT_SIZE);
	seal_nonce(nonce);
	seal_chunk(&key, nonce, "7", 1, bytes, TEXT_SIZE, bytes, tag);
	ck_assert_mem_ne(bytes, text, TEXT_SIZE);
	ck_assert_int_eq(seal_unchunk(&key, nonce, tag, "8", 1, bytes, TEXT_SIZE,
				      (uint8_t[TEXT_SIZE]){ 0 }),
			 -EBADMSG);
	ck_assert_int_eq(seal_unchunk(&key, nonce, tag, "7", 1, bytes, TEXT_SIZE, bytes), 0);
	ck_assert_mem_eq(bytes, text, TEXT_SIZE);
}
END_TEST

/* ---- nonces ------------------------------------------------------------- */

#define DRAWN 500

struct drawn {
	uint8_t nonces[DRAWN][SEAL_NONCE_SIZE];
};

static void *draw(void *data)
{
	struct drawn *d = data;

	for (size_t i = 0; i < DRAWN; i++)
		seal_nonce(d->nonces[i]);
	return NULL;
}

static int compare_nonces(const void *a, const void *b)
{
	return memcmp(a, b, SEAL_NONCE_SIZE);
}

static void assert_all_distinct(struct drawn *sets, size_t count)
{
	uint8_t(*all)[SEAL_NONCE_SIZE] = sets[0].nonces;

	qsort(all, count * DRAWN, SEAL_NONCE_SIZE, compare_nonces);
	for (size_t i = 1; i < count * DRAWN; i++)
		ck_assert_mem_ne(all[i - 1], all[i], SEAL_NONCE_SIZE);
}

START_TEST(nonces_differ_between_threads)
{
	static struct drawn sets[4];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, draw, &sets[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_all_distinct(sets, 4);
}
END_TEST

START_TEST(nonces_differ_after_fork)
{
	static struct drawn sets[3];
	uint8_t first[SEAL_NONCE_SIZE];
	int ends[2];

	seal_nonce(first); /* so that a pool is there to be inherited */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(pipe(ends), 0);
		pid_t pid = fork();

		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			draw(&sets[i]);
			for (size_t at = 0; at < sizeof(sets[i]);) {
				ssize_t n = write(ends[1], (uint8_t *)&sets[i] + at,
						  sizeof(sets[i]) - at);

				if (n <= 0)
					_exit(1);
				at += (size_t)n;
			}
			_exit(0);
		}
		close(ends[1]);
		for (size_t at = 0; at < sizeof(sets[i]);) {
			ssize_t n = read(ends[0], (uint8_t *)&sets[i] + at, sizeof(sets[i]) - at);

			ck_assert_int_gt(n, 0);
			at += (size_t)n;
		}
		close(ends[0]);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	}
	draw(&sets[2]);
	assert_all_distinct(sets, 3);
}
END_TEST

START_TEST(macs_depend_on_key_and_bytes)
{
	struct seal_key key = key_of(1), other = key_of(2);
	uint8_t a[SEAL_HASH_SIZE], b[SEAL_HASH_SIZE], hash[SEAL_HASH_SIZE];

	seal_mac(&key, text, TEXT_SIZE, a);
	seal_mac(&key, text, TEXT_SIZE, b);
	ck_assert(seal_equal(a, b, sizeof(a)));
	seal_mac(&other, text, TEXT_SIZE, b);
	ck_assert(!seal_equal(a, b, sizeof(a)));
	seal_mac(&key, text, TEXT_SIZE - 1, b);
	ck_assert(!seal_equal(a, b, sizeof(a)));
	seal_hash(text, TEXT_SIZE, hash);
	ck_assert(!seal_equal(a, hash, sizeof(a)));
}
END_TEST

START_TEST(wipe_leaves_zeros)
{
	uint8_t bytes[64];

	seal_random(bytes, sizeof(bytes));
	seal_wipe(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		ck_assert_uint_eq(bytes[i], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("seal");
	TCase *c = tcase_create("seal");

	if (seal_init() < 0 || seal_init() < 0)
		return EXIT_FAILURE;
	tcase_add_test(c, chunk_is_xchacha20_poly1305);
	tcase_add_test(c, token_is_siphash_2_4_128);
	tcase_add_test(c, subkeys_are_one_for_each_use);
	tcase_add_test(c, box_opens_to_what_was_sealed);
	tcase_add_test(c, box_refuses_every_flipped_bit);
	tcase_add_test(c, box_refuses_other_keys_places_and_lengths);
	tcase_add_test(c, chunk_is_sealed_in_place);
	tcase_add_test(c, nonces_differ_between_threads);
	tcase_add_test(c, nonces_differ_after_fork);
	tcase_add_test(c, macs_depend_on_key_and_bytes);
	tcase_add_test(c, wipe_leaves_zeros);
	suite_add_tcase(suite, c);
	return test_main(suite);
}
