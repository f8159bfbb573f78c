/*
 * engine.h - the table of functions behind store.h. Private to store/.
 *
 * An engine keeps keys in memcmp order and honours the contract that store.h
 * gives for the function of the same name; store.c has validated the arguments
 * (limits, one key once, ranges within one partition) before it calls. Engines
 * are safe for threads by themselves.
 *
 * A counter item (STORE_ADD) is a value whose attributes are
 * STORE_COUNTERS_MAX numbers of 64 bits, little-endian, nothing else, and whose
 * content is empty; its version is that of the last transaction that added.
 */
#ifndef STORE_ENGINE_H
#define STORE_ENGINE_H

#include "store/keyring.h"
#include "store/store.h"

struct engine;

struct engine_ops {
	int (*close)(struct engine *e);
	int (*get)(struct engine *e, const struct key *key, bool attributes_only,
		   struct store_value *ret_value);
	int (*query)(struct engine *e, const struct store_query *query, struct store_page *ret_page);
	int (*transact)(struct engine *e, enum store_purpose purpose, const struct store_op *ops,
			size_t count, uint64_t *ret_version);
	void (*yield)(struct engine *e); /* NULL: transactions never wait */
	int (*body_read)(struct engine *e, uint64_t body, uint64_t offset, void *buffer, size_t size);
	int (*body_seek)(struct engine *e, uint64_t body, uint64_t offset, bool data,
			 uint64_t *ret_offset);
	int (*body_usage)(struct engine *e, uint64_t body, uint64_t *ret_bytes);
	int (*scan)(struct engine *e, const struct key *from, struct key *ret_key);
	int (*verify)(struct engine *e, bool (*stop)(void *data, bool held), void *data,
		      const char **ret_wrong); /* NULL: nothing to verify */
	int (*unused)(struct engine *e, bool give_back, uint64_t *ret_bytes); /* NULL: there is nothing of the kind */
	int (*sync)(struct engine *e);
	int (*checkpoint)(struct engine *e);
	int (*space)(struct engine *e, struct store_space *ret_space);
	void (*status)(struct engine *e, struct store_status *ret_status);
};

/* First member of every engine. */
struct engine {
	const struct engine_ops *ops;
	struct store_limits limits;
};

int engine_memory_open(struct engine **ret_engine);
void engine_memory_inject(struct engine *e, const struct store_faults *faults);

/*
 * Makes the engine's files below the directory `dir_fd`, synced; they hold no
 * item. The caller commits the keyring's header afterwards.
 */
int engine_local_create(int dir_fd, const struct keyring *keyring,
			const struct store_create_options *options);
/*
 * 0, a store_open_error with `report` filled, or a negative errno. Replays,
 * starts the checkpoint thread. The caller holds the store's lock (lock.h) and
 * keeps the keyring where it is until the engine is closed; `dir_fd` is good
 * only during the call.
 */
int engine_local_open(int dir_fd, const struct keyring *keyring, const struct store_open_options *options,
		      struct store_open_report *ret_report, struct engine **ret_engine);

#endif
