/*
 * store-open.c - the keyring, the engine and the numbers of a store put
 * together, and a store in memory. One in a directory: store-local.c.
 */
#include "store/store-private.h"
#include "store/util.h"

#define TRASH_NAME_DEFAULT ".trash"

struct store *store_new(const struct clock *clock)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->clock = clock ? clock : clock_system();
	s->lock_fd = -1;
	store_seqs_init(s);
	return s;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	store_seqs_release(s);
	seal_wipe(&s->codec, sizeof(s->codec));
	keyring_release(&s->keyring);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	free(s);
}

void store_start(struct store *s)
{
	s->codec.sealed_names = s->keyring.sealed_names;
	memcpy(s->codec.token_key, s->keyring.keys[SEAL_TOKEN].bytes, sizeof(s->codec.token_key));
}

int store_close(struct store *s)
{
	int settled, closed;

	if (!s)
		return 0;
	settled = store_seqs_settle(s);
	closed = s->engine->ops->close(s->engine);
	store_free(s);
	return closed ? closed : settled;
}

int store_open_memory(const struct clock *clock, enum store_names names, struct store **ret_store)
{
	struct store *s;
	int result;

	result = seal_init();
	if (result < 0)
		return result;
	s = store_new(clock);
	if (!s)
		return -ENOMEM;
	seal_random(s->keyring.store_id, sizeof(s->keyring.store_id));
	seal_random(&s->keyring.keys[SEAL_TOKEN], sizeof(s->keyring.keys[SEAL_TOKEN]));
	s->keyring.sealed_names = names == STORE_NAMES_SEALED;
	strcpy(s->keyring.trash_name, TRASH_NAME_DEFAULT);
	result = engine_memory_open(&s->engine);
	if (result < 0) {
		store_free(s);
		return result;
	}
	store_start(s);
	result = store_seqs_claim(s);
	if (result < 0) {
		store_close(s);
		return result;
	}
	*ret_store = s;
	return 0;
}

void store_memory_inject(struct store *s, const struct store_faults *faults)
{
	engine_memory_inject(s->engine, faults);
}
