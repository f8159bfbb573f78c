/*
 * engine-local-body.c - reading bodies: the bytes of chunks from segments, and
 * what was changed above them.
 *
 * A chunk may be given back between its look-up and its read, when a newer one
 * has taken its place: one that does not unseal is looked up again, and is
 * damage only if its reference is still the same.
 */
#include "store/engine-local-window.h"

#define READ_MAX (UINT32_C(1) << 20) /* bytes of one pread */
#define TRIES 3
/* What follows a read that goes on where the last one ended is asked of the disk ahead, this far, in steps. */
#define AHEAD_BYTES (UINT32_C(2) << 20)
#define AHEAD_STEP (UINT32_C(512) << 10)

/* Places that a segment does not have are damage, like bytes that do not unseal. */
static int read_place(struct engine_local *e, uint32_t segment, uint32_t offset, void *buffer, size_t size)
{
	int r = segments_read(e->segments, segment, offset, buffer, size);

	return r == -ENOENT || r == -ENODATA ? -EBADMSG : r;
}

int local_chunk_read(struct engine_local *e, uint64_t body, uint64_t index,
		     const struct body_ref *ref, uint8_t *ret_bytes)
{
	int r = read_place(e, ref->segment, ref->offset, ret_bytes, ref->length);

	return r == 0 ? body_chunk_unseal(e->keys, body, index, ref, ret_bytes, ret_bytes) : r;
}

/* The part of the caller's buffer that chunk `i` fills. */
struct target {
	uint8_t *to;
	uint32_t from; /* in the chunk */
	uint32_t size;
};

static struct target target_of(const struct window *w, size_t i, uint64_t offset, uint8_t *buffer,
			       size_t size)
{
	uint64_t start = (w->first + i) * BODY_CHUNK_SIZE;
	uint64_t from = util_max(start, offset), to = util_min(start + BODY_CHUNK_SIZE, offset + size);

	return (struct target){
		.to = buffer + (from - offset),
		.from = (uint32_t)(from - start),
		.size = (uint32_t)(to - from),
	};
}

/* The base's bytes: `cipher` holds ref->length of them. */
static int fill_base(const struct window *w, size_t i, struct target t, uint8_t *cipher)
{
	const struct view *view = &w->views[i];
	uint8_t expanded[BODY_CHUNK_SIZE];
	bool plain = body_units_plain(view->ref.units);
	bool direct = plain && t.from == 0 && t.size >= view->ref.length;
	uint32_t have = util_min(body_ref_end(&view->ref), view->limit);
	uint32_t size = have > t.from ? util_min(have - t.from, t.size) : 0;
	uint8_t *to = direct ? t.to : plain ? cipher : expanded;
	int r = 0;

	if (size)
		r = body_chunk_unseal(w->e->keys, w->body, w->first + i, &view->ref, cipher, to);
	if (r < 0)
		return r;
	if (size && !plain)
		body_expand(&view->ref, to);
	if (size && !direct)
		memcpy(t.to, to + t.from, size);
	memset(t.to + size, 0, t.size - size);
	return 0;
}

static void fill_pieces(const struct window *w, size_t i, struct target t)
{
	const struct view *view = &w->views[i];
	const struct piece *pieces = (struct piece *)w->pieces.bytes + view->pieces;

	for (size_t n = 0; n < view->pieces_count; n++) {
		uint32_t from = util_max(pieces[n].offset, t.from);
		uint32_t to = util_min(pieces[n].offset + pieces[n].size, t.from + t.size);

		if (from < to && pieces[n].zeros)
			memset(t.to + (from - t.from), 0, to - from);
		else if (from < to)
			memcpy(t.to + (from - t.from),
			       w->bytes.bytes + pieces[n].bytes_at + (from - pieces[n].offset),
			       to - from);
	}
}

/* Whether the base is needed for this part: there, and not wholly under pieces that follow each other. */
static bool needs_base(const struct window *w, size_t i, struct target t)
{
	const struct view *view = &w->views[i];
	const struct piece *pieces = (struct piece *)w->pieces.bytes + view->pieces;
	uint32_t reach = t.from;

	if (util_min(body_ref_end(&view->ref), view->limit) <= t.from)
		return false;
	for (size_t n = 0; n < view->pieces_count; n++)
		if (pieces[n].offset <= reach)
			reach = util_max(reach, pieces[n].offset + pieces[n].size);
	return reach < t.from + t.size;
}

/* How many chunks from `i` on lie one behind the other in one segment and are all needed. */
static size_t run_length(const struct window *w, size_t i, uint64_t offset, uint8_t *buffer, size_t size)
{
	const struct body_ref *first = &w->views[i].ref;
	uint64_t end = (uint64_t)first->offset + body_run_size(first->length);
	size_t n = i + 1;

	while (n < w->count && w->views[n].ref.segment == first->segment &&
	       w->views[n].ref.offset == end && end + w->views[n].ref.length - first->offset <= READ_MAX &&
	       needs_base(w, n, target_of(w, n, offset, buffer, size))) {
		end += body_run_size(w->views[n].ref.length);
		n++;
	}
	return n - i;
}

/* A run of chunks that was read and is to be unsealed into its places in the caller's buffer. */
struct unsealing {
	const struct window *w;
	size_t first; /* chunk of the window */
	uint64_t offset;
	uint8_t *buffer;
	size_t size;
	uint8_t *scratch; /* the run as the segment has it */
	_Atomic int result;
};

static void unseal_one(void *data, size_t i)
{
	struct unsealing *u = data;
	size_t n = u->first + i;
	uint32_t at = u->w->views[n].ref.offset - u->w->views[u->first].ref.offset;
	int r = fill_base(u->w, n, target_of(u->w, n, u->offset, u->buffer, u->size), u->scratch + at);

	if (r < 0)
		u->result = r;
}

static int fill_run(struct window *w, size_t i, size_t count, uint64_t offset, uint8_t *buffer,
		    size_t size, uint8_t *scratch)
{
	const struct body_ref *first = &w->views[i].ref, *last = &w->views[i + count - 1].ref;
	struct unsealing unsealing = { w, i, offset, buffer, size, scratch, 0 };
	int r = read_place(w->e, first->segment, first->offset, scratch,
			   last->offset + last->length - first->offset);

	if (r == 0)
		crew_run(w->e->crew, unseal_one, &unsealing, count);
	return r < 0 ? r : unsealing.result;
}

/* Chunks that are written in order stand in order, so what comes next is behind this run, in all likelihood. */
static void read_ahead(struct window *w, size_t i, size_t count)
{
	const struct body_ref *first = &w->views[i].ref, *last = &w->views[i + count - 1].ref;
	uint32_t end = last->offset + last->length;

	if (w->ahead && first->offset / AHEAD_STEP != end / AHEAD_STEP)
		segments_advise(w->e->segments, last->segment, end, AHEAD_BYTES);
}

static int fill(struct window *w, uint64_t offset, uint8_t *buffer, size_t size)
{
	size_t scratch_size = util_min(w->count * BODY_CHUNK_SIZE, (size_t)READ_MAX);
	_cleanup_free_ uint8_t *scratch = malloc(scratch_size);
	int r = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < w->count && r == 0;) {
		struct target t = target_of(w, i, offset, buffer, size);
		size_t count = 1;

		if (needs_base(w, i, t)) {
			count = run_length(w, i, offset, buffer, size);
			read_ahead(w, i, count);
			r = fill_run(w, i, count, offset, buffer, size, scratch);
		} else {
			memset(t.to, 0, t.size);
		}
		for (size_t n = i; n < i + count; n++)
			fill_pieces(w, n, target_of(w, n, offset, buffer, size));
		i += count;
	}
	return r;
}

static bool same_refs(const struct view *a, const struct view *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!body_ref_equal(&a[i].ref, &b[i].ref))
			return false;
	return true;
}

static int read_window(struct window *w, uint64_t offset, uint8_t *buffer, size_t size)
{
	struct view before[LOCAL_WINDOW];
	int r = local_window_look(w);

	for (unsigned tries = 0; r == 0; tries++) {
		r = fill(w, offset, buffer, size);
		if (r != -EBADMSG || tries == TRIES)
			break;
		memcpy(before, w->views, sizeof(before));
		r = local_window_look(w);
		if (r == 0 && same_refs(before, w->views, w->count))
			r = -EBADMSG;
	}
	return r;
}

/* Whether the read begins where the last one of the body ended. Threads may race here: it is a hint. */
static bool goes_on(struct engine_local *e, uint64_t body, uint64_t offset, size_t size)
{
	_Atomic uint64_t *place = &e->reading[body % LOCAL_READING];
	/* Body and offset in one number, so that both are of one read. */
	uint64_t here = body * UINT64_C(0x9e3779b97f4a7c15) + offset;

	return atomic_exchange_explicit(place, here + size, memory_order_relaxed) == here;
}

int local_body_read(struct engine *engine, uint64_t body, uint64_t offset, void *buffer, size_t size)
{
	struct engine_local *e = local_of(engine);
	struct window w = { .e = e, .body = body, .ahead = goes_on(e, body, offset, size) };
	uint8_t *to = buffer;
	int r = 0;

	while (size && r == 0) {
		uint64_t first = offset / BODY_CHUNK_SIZE;
		uint64_t end = util_min(offset + size, (first + LOCAL_WINDOW) * BODY_CHUNK_SIZE);

		w.first = first;
		w.count = (end + BODY_CHUNK_SIZE - 1) / BODY_CHUNK_SIZE - first;
		r = read_window(&w, offset, to, end - offset);
		to += end - offset;
		size -= end - offset;
		offset = end;
	}
	local_window_release(&w);
	return r;
}
