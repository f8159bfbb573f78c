#include "tests/model/subject.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lifecycle/internal.h"

void subject_fail(struct subject *s, const char *format, ...)
{
	struct run *run = s->run;
	size_t used = (size_t)snprintf(run->failure, sizeof(run->failure), "operation %d: ", run->at);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(run->failure + used, sizeof(run->failure) - used, format, arguments);
	va_end(arguments);
	fflush(NULL);
	_exit(1);
}

uint8_t subject_byte(uint32_t token, uint32_t offset)
{
	return (uint8_t)(token * 2654435761u >> 24) ^ (uint8_t)(offset * 167u) ^ (uint8_t)(offset >> 8);
}

/* ---- what lifecycle tells and asks --------------------------------------------- */

static void changed(void *data, const struct lifecycle_change *change)
{
	struct subject *s = data;

	CK(s, s->changed < SUBJECT_CHANGES, "too many changes told");
	s->changes[s->changed++] = *change;
}

struct place subject_place(const struct subject *s, int name)
{
	const struct model_name *n = &s->m->names[name];
	struct place at = {
		.directory = s->m->nodes[n->directory].id,
		.state = n->deleted ? KEY_DEL : KEY_ACT,
		.seq = n->deleted ? n->seq : 0,
	};

	snprintf(at.name, sizeof(at.name), "%s", model_text(n->text));
	return at;
}

static bool locate(void *data, uint64_t id, struct place *ret_place)
{
	struct subject *s = data;

	if (id == KEY_ID_ROOT) {
		*ret_place = (struct place){ .directory = KEY_ID_NONE, .state = KEY_ACT };
		return true;
	}
	for (int n = 1; n < s->m->names_count; n++)
		if (s->m->names[n].node && s->m->nodes[s->m->names[n].node].id == id) {
			*ret_place = subject_place(s, n);
			return true;
		}
	return false;
}

/* As fs/ has it: the last name of a file keeps it while it is open. The model may be ahead: the store says which is the last. */
static bool busy(void *data, uint64_t id, const struct place *only)
{
	struct subject *s = data;
	struct store_value value = { 0 };
	struct item link;
	uint32_t others;

	for (int i = MODEL_ROOT; i < s->m->nodes_count; i++) {
		if (s->m->nodes[i].id != id || !s->m->nodes[i].open)
			continue;
		if (!only || record_get_link(s->store, id, true, &value, &link))
			return true;
		others = link.links_live - (only->state == KEY_ACT);
		store_value_release(&value);
		return !others;
	}
	return false;
}

static const struct lifecycle_change *told(const struct subject *s, int name)
{
	const struct model_name *n = &s->m->names[name];

	for (size_t i = s->changed; i-- > 0;) {
		const struct lifecycle_change *c = &s->changes[i];

		/* What was destroyed at once has no node any more, but was told of all the same. */
		if (c->to.name[0] && c->to.state == KEY_DEL && c->from.state == KEY_ACT &&
		    c->id == s->m->nodes[n->node].id && c->to.directory == s->m->nodes[n->directory].id &&
		    !strcmp(c->to.name, model_text(n->text)))
			return c;
	}
	return NULL;
}

static void learn_batch(struct subject *s, struct model_name *n, uint64_t seq)
{
	struct model_batch *b = &s->m->batches[n->batch];

	CK(s, !n->batch == !seq, "%s is of batch %lu", model_text(n->text), (unsigned long)seq);
	if (!n->batch)
		return;
	for (int i = 1; i < s->m->batches_count && !b->seq; i++)
		CK(s, s->m->batches[i].seq != seq, "%s joined another deletion's batch",
		   model_text(n->text));
	b->seq = b->seq ? b->seq : seq;
	CK(s, b->seq == seq, "%s is not of the batch it should be of", model_text(n->text));
}

/* When a purged entry goes, and which purge took it. */
static void learn_purge(struct subject *s, int name)
{
	struct model_name *n = &s->m->names[name];
	struct model_batch *b = &s->m->batches[n->purge_batch];
	struct place at = subject_place(s, name);
	struct store_value value = { 0 };
	struct trash_row row;
	struct item item;
	struct key key;

	CK(s, !record_get_item(s->store, &at, true, &value, &item), "purged %s is not there", at.name);
	store_value_release(&value);
	CK(s, llabs(item.deletion.destroy_ns - n->destroy_ns) < MODEL_SECOND / 20,
	   "%s, purged, goes at %ld, not %ld", at.name, (long)item.deletion.destroy_ns,
	   (long)n->destroy_ns);
	n->destroy_ns = item.deletion.destroy_ns;
	key_due(n->destroy_ns, n->seq, &key);
	CK(s, !store_get(s->store, &key, true, &value), "purged %s has no row", at.name);
	CK(s, !record_decode_trash(store_codec(s->store), &value, &row), "row of %s", at.name);
	store_value_release(&value);
	b->seq = b->seq ? b->seq : row.batch;
	CK(s, b->seq == row.batch, "%s is of another purge", at.name);
}

/* The exact times of what was just deleted: the store's own, a few numbers after ours. */
static void learn_times(struct subject *s, int name, const struct item *item)
{
	struct model_name *n = &s->m->names[name];

	CK(s,
	   llabs(item->deletion.expires_ns - n->expires_ns) < MODEL_SECOND / 20 ||
		   n->expires_ns == item->deletion.expires_ns,
	   "%s expires %ld, not %ld", model_text(n->text), (long)item->deletion.expires_ns,
	   (long)n->expires_ns);
	n->expires_ns = item->deletion.expires_ns;
	if (!n->purged)
		n->destroy_ns = item->deletion.destroy_ns;
}

/* Once nothing deleted is left in or below a directory its mask is forgotten, sooner or later. */
static void learn_mask(struct subject *s, int directory)
{
	struct model_node *node = &s->m->nodes[directory];
	struct tree_directory d;

	CK(s, !tree_load(s->store, node->id, &d), "a directory is not there");
	if (!model_has_deleted_below(s->m, directory) && d.own.directory.trash_mask == 0777)
		node->mask = 0707;
	CK(s, (d.own.directory.trash_mask & 0707) == node->mask,
	   "the mask of a directory is %o, not %o", d.own.directory.trash_mask, node->mask);
	tree_release(&d);
}

void subject_learn(struct subject *s)
{
	struct model *m = s->m;

	for (int i = 0; i < m->fresh_count; i++) {
		struct model_name *n = &m->names[m->fresh[i]];
		struct store_value value = { 0 };
		const struct lifecycle_change *change;
		struct place at;
		struct item item;

		if (!n->node || !n->deleted || n->seq)
			continue;
		change = told(s, m->fresh[i]);
		CK(s, change, "nobody was told that %s was deleted", model_text(n->text));
		CK(s, change->to.seq > m->orders || change->to.seq > n->order, "numbers go back");
		n->seq = n->order = change->to.seq;
		at = subject_place(s, m->fresh[i]);
		CK(s, !record_get_item(s->store, &at, true, &value, &item),
		   "deleted %s is not there", model_text(n->text));
		learn_batch(s, n, item.deletion.batch);
		learn_times(s, m->fresh[i], &item);
		store_value_release(&value);
	}
	for (int n = 1; n < m->names_count; n++) {
		if (!m->names[n].node || !m->names[n].deleted)
			continue;
		if (m->names[n].order > m->orders)
			m->orders = m->names[n].order;
		if (m->names[n].purged && !m->names[n].doomed)
			learn_purge(s, n);
	}
	m->fresh_count = 0;
	s->changed = 0;
	for (int i = MODEL_ROOT; i < m->nodes_count && m->rights; i++)
		if (m->nodes[i].directory && (i == MODEL_ROOT || m->nodes[i].own))
			learn_mask(s, i);
}

/* ---- opening ---------------------------------------------------------------------- */

static void open_local(struct subject *s)
{
	struct store_create_options create = { .kdf_level = 3, .journal_bytes = 1 << 20 };
	struct store_open_options open = { .clock = &s->clock.clock, .map_bytes = UINT64_C(256) << 20 };
	struct store_open_report report = { 0 };
	int result;

	/* Half of them with names as tokens. */
	create.names = s->run->history.seed % 2 ? STORE_NAMES_SEALED : STORE_NAMES_ORDERED;
	if (!s->run->opened) {
		result = store_create(s->run->path, &create);
		CK(s, !result, "no store at %s: %d", s->run->path, result);
	}
	result = store_open(s->run->path, &open, &report, &s->store);
	CK(s, !result, "the store does not open: %d %s", result, report.text);
}

static void open_upper(struct subject *s)
{
	struct lifecycle_hooks hooks = { .changed = changed, .busy = busy, .data = s };
	int result = lifecycle_open(s->store, &hooks, &s->life);

	if (!result)
		result = namei_open(s->life, &s->namei);
	CK(s, !result, "lifecycle does not open: %d", result);
}

static void open_store(struct subject *s)
{
	if (s->run->history.engine == HISTORY_LOCAL)
		open_local(s);
	else if (!s->store)
		CK(s,
		   !store_open_memory(&s->clock.clock,
				      s->run->history.engine == HISTORY_MEMORY ? STORE_NAMES_ORDERED :
										 STORE_NAMES_SEALED,
				      &s->store),
		   "no store in memory");
}

void subject_open(struct subject *s, struct run *run)
{
	int result = 0;

	memset(s, 0, sizeof(*s));
	s->run = run;
	s->m = &run->model;
	s->where = (struct file_locator){ locate, s };
	test_clock_init(&s->clock);
	if (run->opened) {
		s->clock.realtime_ns = run->realtime_ns;
		s->clock.boottime_ns = run->boottime_ns;
	}
	open_store(s);
	if (!run->opened)
		result = tree_format(s->store, run->history.rights ? 0777 : 0755, 0, 0);
	CK(s, !result, "the store is not formatted: %d", result);
	open_upper(s);
	if (!run->opened)
		model_init(s->m, run->history.rights, lifecycle_now_ns(s->life));
	run->opened = true;
}

void subject_close(struct subject *s)
{
	namei_close(s->namei);
	lifecycle_close(s->life);
	if (s->run->history.engine != HISTORY_LOCAL)
		return;
	CK(s, !store_close(s->store), "the store does not close");
	s->store = NULL;
}

static void reopened(struct subject *s)
{
	s->run->forgotten_ns = 0;
	model_forget_process(s->m);
	s->run->suspect_boot_ns = s->run->behind_boot_ns = s->clock.boottime_ns;
}

void subject_remount(struct subject *s)
{
	subject_close(s);
	open_store(s);
	open_upper(s);
	reopened(s);
}

void subject_crash(struct subject *s)
{
	model_recount_open(s->m);
	s->run->ahead_ns += s->run->forgotten_ns;
	reopened(s);
	if (s->run->history.engine == HISTORY_LOCAL) {
		s->run->realtime_ns = s->clock.realtime_ns;
		s->run->boottime_ns = s->clock.boottime_ns;
		s->run->killed = true;
		kill(getpid(), SIGKILL);
	}
	namei_close(s->namei);
	lifecycle_free(s->life);
	open_upper(s);
}

/* ---- time -------------------------------------------------------------------------- */

/* The rules of lifecycle/README.md, "The clock". */
static void believe(struct run *run)
{
	run->forgotten_ns += run->ahead_ns;
	run->ahead_ns = 0;
}

static void judge_clock(struct run *run, int64_t boot_ns)
{
	bool was = run->suspect;

	if (run->ahead_ns > MODEL_HOUR) {
		if (!run->suspect)
			run->suspect_boot_ns = boot_ns;
		run->suspect = boot_ns - run->suspect_boot_ns < MODEL_DAY || !run->suspect;
		run->behind = false;
		if (!run->suspect) {
			believe(run);
			run->stepped_ns = 0;
		}
		/* A change of mind is written down, with where the clocks stand. */
		if (was != run->suspect)
			run->forgotten_ns = 0;
		return;
	}
	run->suspect = false;
	if (was)
		run->forgotten_ns = 0;
	if (run->ahead_ns >= 0) {
		believe(run);
		run->behind = false;
		return;
	}
	if (!run->behind)
		run->behind_boot_ns = boot_ns;
	run->behind = boot_ns - run->behind_boot_ns < MODEL_DAY;
	if (!run->behind) {
		believe(run);
		run->stepped_ns = 0;
	}
}

void subject_time(struct subject *s)
{
	struct model *m = s->m;
	int64_t jump_ns;
	bool suspect;

	judge_clock(s->run, s->clock.boottime_ns);
	suspect = lifecycle_clock_suspect(s->life, &jump_ns);
	CK(s, suspect == s->run->suspect, "the clock is%s suspect", suspect ? "" : " not");
	m->suspect = suspect;
	m->wall_ns = s->clock.realtime_ns;
	m->now_ns = lifecycle_now_ns(s->life);
	m->steady_ns = suspect ? store_now_ns(s->store) : m->now_ns;
	m->boot_ns = s->clock.boottime_ns;
	CK(s, m->now_ns >= s->clock.realtime_ns, "the time is behind the clock's");
	m->done = 0;
	m->fresh_count = 0;
	s->changed = 0;
}
