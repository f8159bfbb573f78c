/*
 * time.c - the rules of the clock: hide at expiry, destroy late.
 *
 * Expiry hides by the wall clock. Destruction, and the sequence numbers, go by
 * it only while the boot clock bears it out: a wall clock more than an hour
 * ahead of where the boot clock puts it is suspect until somebody confirms it,
 * it ran steadily for a day, or it comes back. Till then nothing is destroyed
 * and the store's clock goes by the boot clock.
 *
 * A wall clock that is behind is never wrong in a way that loses anything: it is
 * believed again once it catches up, or after a day.
 *
 * META "watch" carries this over mounts. In another boot the time between cannot
 * be known and is believed, unless the clock was suspect before.
 */
#include <fcntl.h>

#include "lifecycle/internal.h"

#define META_WATCH "watch"
#define WATCH_RECORD_SIZE (2 + 1 + 8 + 8 + WATCH_BOOT_ID_SIZE)
#define JUMP_NS HOUR_NS
#define STEADY_NS DAY_NS

int64_t time_add(int64_t ns, int64_t duration_ns)
{
	int64_t sum;

	return __builtin_add_overflow(ns, duration_ns, &sum) ? ITEM_FOREVER : sum;
}

/* ---- the rules -------------------------------------------------------------- */

static int64_t watch_expected_ns(const struct watch *w, int64_t boot_ns)
{
	return w->real_ns + (boot_ns - w->boot_ns);
}

static void watch_believe(struct lifecycle *l, struct watch *w, int64_t real_ns, int64_t boot_ns)
{
	w->real_ns = real_ns;
	w->boot_ns = boot_ns;
	w->anchored = true;
	w->behind = false;
	if (w->suspect)
		store_hold_clock(l->store, false, 0, 0);
	w->suspect = false;
}

static void watch_ahead(struct lifecycle *l, struct watch *w, int64_t real_ns, int64_t boot_ns)
{
	int64_t steady_ns = w->suspect_real_ns + (boot_ns - w->suspect_boot_ns);

	if (w->suspect && real_ns - steady_ns <= JUMP_NS && steady_ns - real_ns <= JUMP_NS) {
		if (boot_ns - w->suspect_boot_ns >= STEADY_NS)
			watch_believe(l, w, real_ns, boot_ns);
		return;
	}
	if (!w->suspect)
		store_hold_clock(l->store, true, w->real_ns, w->boot_ns);
	w->suspect = true;
	w->suspect_real_ns = real_ns;
	w->suspect_boot_ns = boot_ns;
}

static void watch_behind(struct lifecycle *l, struct watch *w, int64_t real_ns, int64_t boot_ns)
{
	if (!w->behind)
		w->behind_boot_ns = boot_ns;
	w->behind = true;
	if (w->suspect)
		store_hold_clock(l->store, false, 0, 0);
	w->suspect = false;
	if (boot_ns - w->behind_boot_ns >= STEADY_NS)
		watch_believe(l, w, real_ns, boot_ns);
}

/* Mutex held. Whether it became suspect, or no longer is: then it is to be stored. */
static bool watch_look(struct lifecycle *l, struct watch *w)
{
	int64_t real_ns = clock_now_ns(store_clock(l->store));
	int64_t boot_ns = clock_boot_ns(store_clock(l->store));
	int64_t expected_ns = watch_expected_ns(w, boot_ns);
	bool was = w->suspect;

	if (!w->anchored) {
		if (real_ns >= w->real_ns)
			watch_believe(l, w, real_ns, boot_ns);
	} else if (real_ns - expected_ns > JUMP_NS) {
		watch_ahead(l, w, real_ns, boot_ns);
	} else if (real_ns < expected_ns) {
		watch_behind(l, w, real_ns, boot_ns);
	} else {
		watch_believe(l, w, real_ns, boot_ns);
	}
	return was != w->suspect;
}

int64_t watch_steady_ns(struct lifecycle *l, bool *ret_suspect)
{
	bool changed;

	pthread_mutex_lock(&l->watch.mutex);
	changed = watch_look(l, &l->watch);
	*ret_suspect = l->watch.suspect;
	pthread_mutex_unlock(&l->watch.mutex);
	if (changed)
		watch_store(l);
	return *ret_suspect ? store_now_ns(l->store) : lifecycle_now_ns(l);
}

int64_t lifecycle_now_ns(struct lifecycle *l)
{
	int64_t store_ns = store_now_ns(l->store);

	return util_max(clock_now_ns(store_clock(l->store)), store_ns);
}

int lifecycle_clock_accept(struct lifecycle *l)
{
	const struct clock *clock = store_clock(l->store);

	pthread_mutex_lock(&l->watch.mutex);
	watch_believe(l, &l->watch, clock_now_ns(clock), clock_boot_ns(clock));
	pthread_mutex_unlock(&l->watch.mutex);
	sweeper_expect(l, 0);
	return watch_store(l);
}

bool lifecycle_clock_suspect(struct lifecycle *l, int64_t *ret_jump_ns)
{
	const struct clock *clock = store_clock(l->store);
	struct watch *w = &l->watch;
	bool suspect;

	watch_steady_ns(l, &suspect);
	if (!suspect)
		return false;
	pthread_mutex_lock(&w->mutex);
	*ret_jump_ns = clock_now_ns(clock) - watch_expected_ns(w, clock_boot_ns(clock));
	pthread_mutex_unlock(&w->mutex);
	return true;
}

/* ---- over mounts ------------------------------------------------------------- */

/*
 * Which boot of the machine this is: the boot clock starts anew with it. All
 * zeros where that is not to be known.
 */
static void read_boot_id(uint8_t ret_id[WATCH_BOOT_ID_SIZE])
{
	char text[64];
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text));
	size_t digits = 0;

	memset(ret_id, 0, WATCH_BOOT_ID_SIZE);
	for (ssize_t i = 0; i < size && digits < 2 * WATCH_BOOT_ID_SIZE; i++) {
		int digit = text[i] >= 'a' ? text[i] - 'a' + 10 : text[i] - '0';

		if (digit < 0 || digit > 15)
			continue;
		ret_id[digits / 2] |= (uint8_t)(digit << (digits % 2 ? 0 : 4));
		digits++;
	}
}

static void watch_encode(const struct watch *w, int64_t boot_ns, uint8_t *p)
{
	p[0] = TREE_RECORD_FORMAT;
	p[1] = TREE_RECORD_WATCH;
	p[2] = w->suspect;
	util_put_le64(p + 3, (uint64_t)(w->anchored ? watch_expected_ns(w, boot_ns) : w->real_ns));
	util_put_le64(p + 11, (uint64_t)boot_ns);
	memcpy(p + 19, w->boot_id, WATCH_BOOT_ID_SIZE);
}

static int watch_put(struct lifecycle *l)
{
	_cleanup_(transaction_release) struct transaction t = { 0 };
	const struct clock *clock = store_clock(l->store);
	uint8_t record[WATCH_RECORD_SIZE];
	struct key key;

	pthread_mutex_lock(&l->watch.mutex);
	watch_encode(&l->watch, clock_boot_ns(clock), record);
	pthread_mutex_unlock(&l->watch.mutex);
	key_meta(META_WATCH, &key);
	/* One process owns the watch: the last one to write it is right. */
	transaction_put(&t, &key, record, sizeof(record), NULL, 0, STORE_ANY, 0);
	return transaction_commit(&t, l->store, STORE_RELEASING, NULL);
}

int watch_store(struct lifecycle *l)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = watch_put(l);
	while (store_retry(&retry, &result));
	return result;
}

static int watch_decode(struct lifecycle *l, const struct store_value *value)
{
	const uint8_t *p = value->attrs;
	struct watch *w = &l->watch;
	const struct clock *clock = store_clock(l->store);
	int64_t real_ns, boot_ns = clock_boot_ns(clock);
	bool suspect;

	if (value->attrs_size != WATCH_RECORD_SIZE || p[0] != TREE_RECORD_FORMAT ||
	    p[1] != TREE_RECORD_WATCH || p[2] > 1)
		return -EBADMSG;
	suspect = p[2];
	real_ns = (int64_t)util_get_le64(p + 3);
	w->real_ns = real_ns;
	w->boot_ns = (int64_t)util_get_le64(p + 11);
	w->anchored = true;
	if (memcmp(p + 19, w->boot_id, WATCH_BOOT_ID_SIZE) != 0 || w->boot_ns > boot_ns) {
		/*
		 * Another boot. A clock that was suspect stays so, counted from where it should
		 * have been.
		 */
		w->boot_ns = boot_ns;
		w->anchored = suspect;
	}
	return 0;
}

int watch_open(struct lifecycle *l)
{
	_cleanup_(store_value_release) struct store_value value = { 0 };
	const struct clock *clock = store_clock(l->store);
	struct watch *w = &l->watch;
	struct key key;
	int result;

	read_boot_id(w->boot_id);
	key_meta(META_WATCH, &key);
	result = store_get(l->store, &key, true, &value);
	if (!result)
		result = watch_decode(l, &value);
	else if (result == STORE_ABSENT) {
		w->real_ns = clock_now_ns(clock);
		w->boot_ns = clock_boot_ns(clock);
		w->anchored = true;
		result = 0;
	}
	if (result)
		return result;
	pthread_mutex_lock(&w->mutex);
	watch_look(l, w);
	pthread_mutex_unlock(&w->mutex);
	return watch_store(l);
}

void watch_release(struct watch *w)
{
	pthread_mutex_destroy(&w->mutex);
}
