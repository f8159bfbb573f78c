#include "tests/lifecycle/fixture.h"

#include <stdio.h>
#include <string.h>

#include "lifecycle/internal.h"

#define RUNS_MAX 5000 /* a body that never ends under faults is a failure */

/* ---- faults -------------------------------------------------------------- */

/* Another client writes everything in one directory anew, as it is. */
static void disturb(struct fixture *f)
{
	uint64_t directory = f->disturb ? f->disturb : KEY_ID_ROOT;
	struct store_query query = { 0 };
	struct store_page page = { 0 };
	struct transaction t = { 0 };
	struct tree_directory d;

	if (tree_load(f->store, directory, &d))
		return;
	tree_put_own(&t, f->store, &d);
	key_range_directory(directory, &query.range);
	query.limit = 40;
	ck_assert_int_eq(store_query(f->store, &query, &page), 0);
	for (size_t i = 0; i < page.count; i++) {
		struct place at;
		struct item item;

		if (!record_row_item(f->store, &page.rows[i], &at, &item))
			transaction_put_item(&t, f->store, &at, &item, item.version);
	}
	ck_assert_int_eq(transaction_commit(&t, f->store, STORE_GROWING, NULL), 0);
	transaction_release(&t);
	store_page_release(&page);
	tree_release(&d);
}

static void before(void *data, uint64_t n)
{
	struct fixture *f = data;

	__atomic_store_n(&f->transactions, n, __ATOMIC_RELAXED); /* some tests have threads */
	if (f->fault == FAULT_OTHER_CLIENT && n == f->fault_at)
		disturb(f);
}

static void inject(struct fixture *f)
{
	struct store_faults faults = { .before = before, .data = f };

	if (f->fault == FAULT_CONFLICT)
		faults.conflict_at = f->fault_at;
	if (f->fault == FAULT_LOST_ANSWER)
		faults.lost_answer_at = f->fault_at;
	if (f->fault == FAULT_ERROR)
		faults.error_at = f->fault_at;
	store_memory_inject(f->store, &faults);
}

void fixture_arm(struct fixture *f, enum fixture_fault fault, uint64_t at)
{
	f->fault = fault;
	f->fault_at = at;
	inject(f);
}

/* ---- opening and closing ---------------------------------------------------- */

static void changed(void *data, const struct lifecycle_change *change)
{
	struct fixture *f = data;

	f->changes[f->changed++ % FIXTURE_CHANGES] = *change;
	if (f->watch)
		f->watch(f->watch_data, change);
}

static bool busy(void *data, uint64_t id, const struct place *only)
{
	struct fixture *f = data;

	if (only && f->known_elsewhere)
		return false;

	for (size_t i = 0; i < ARRAY_SIZE(f->busy); i++)
		if (f->busy[i] == id)
			return true;
	return false;
}

static void open_lifecycle(struct fixture *f)
{
	struct lifecycle_hooks hooks = { .changed = changed, .busy = busy, .data = f };

	ck_ok(f, lifecycle_open(f->store, &hooks, &f->life));
}

static void fixture_open(struct fixture *f, enum store_names names)
{
	test_clock_init(&f->clock);
	ck_assert_int_eq(store_open_memory(&f->clock.clock, names, &f->store), 0);
	ck_assert_int_eq(tree_format(f->store, 0755, 0, 0), 0);
	act_as(f, 1000, 100, "rm");
	open_lifecycle(f);
	inject(f);
}

static void tell_problem(void *data, const char *path, const char *text)
{
	fprintf(stderr, "# %s: %s\n", path, text);
}

static void fixture_close(struct fixture *f)
{
	struct check_result checked;
	struct store_faults none = { 0 };

	lifecycle_close(f->life);
	store_memory_inject(f->store, &none);
	if (!f->keep_problems) {
		ck_assert_int_eq(lifecycle_check(f->store, tell_problem, NULL, NULL, &checked), 0);
		ck_assert_msg(checked.problems == 0,
			      "check found %lu problems after fault %d at %lu of %lu",
			      (unsigned long)checked.problems, f->fault, (unsigned long)f->fault_at,
			      (unsigned long)f->transactions);
	}
	store_close(f->store);
}

void fixture_reopen(struct fixture *f)
{
	lifecycle_close(f->life);
	open_lifecycle(f);
}

void fixture_crash(struct fixture *f)
{
	lifecycle_free(f->life);
	open_lifecycle(f);
}

void fixture_pass(struct fixture *f, int64_t ns)
{
	test_clock_advance(&f->clock, ns);
}

/* Returns how many transactions the body made. */
static uint64_t run(fixture_body *body, enum store_names names, enum fixture_fault fault, uint64_t at)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint64_t transactions;

	ck_assert_ptr_nonnull(f);
	f->fault = fault;
	f->fault_at = at;
	if (getenv("FIXTURE_TRACE"))
		fprintf(stderr, "# names %d fault %d at %lu\n", names, fault, (unsigned long)at);
	fixture_open(f, names);
	body(f);
	fixture_close(f);
	transactions = f->transactions;
	free(f);
	return transactions;
}

void fixture_run_once(fixture_body *body)
{
	run(body, STORE_NAMES_ORDERED, FAULT_NONE, 0);
	run(body, STORE_NAMES_SEALED, FAULT_NONE, 0);
}

void fixture_run(fixture_body *body)
{
	fixture_run_once(body);
	for (int fault = FAULT_NONE + 1; fault < FAULT_KINDS; fault++) {
		uint64_t at = 1;

		while (run(body, at % 2 ? STORE_NAMES_ORDERED : STORE_NAMES_SEALED,
			   (enum fixture_fault)fault, at) >= at)
			ck_assert_uint_lt(at++, RUNS_MAX);
	}
}

/* ---- making ------------------------------------------------------------------- */

static uint64_t new_id(struct fixture *f)
{
	uint64_t id;

	ck_ok(f, store_new_id(f->store, &id));
	return id;
}

static struct place live_place(uint64_t directory, const char *name)
{
	struct place at = { .directory = directory, .state = KEY_ACT };

	snprintf(at.name, sizeof(at.name), "%s", name);
	return at;
}

static int add_item_once(struct fixture *f, uint64_t parent, const struct item *item,
			 const char *name, const void *bytes, size_t size)
{
	struct place at = live_place(parent, name);
	struct guard guard = { .at = at };
	struct transaction t = { 0 };
	struct tree_directory d;
	int result;

	ck_assert_int_eq(tree_load(f->store, parent, &d), 0);
	transaction_put_item(&t, f->store, &at, item, 0);
	if (item->body)
		transaction_body_write(&t, item->body, 0, bytes, size);
	if (S_ISDIR(item->mode)) {
		transaction_put_guard(&t, item->id, &guard, 0);
		d.own.directory.subdirectories++;
	}
	tree_touch(&d, lifecycle_now_ns(f->life));
	tree_put_own(&t, f->store, &d);
	tree_check_guard(&t, &d);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	transaction_count_add(&t, COUNTER_LIVE_BYTES, S_ISREG(item->mode) ? (int64_t)item->size : 0);
	result = tree_commit(&t, f->store, STORE_GROWING, NULL);
	transaction_release(&t);
	tree_release(&d);
	return result;
}

static uint64_t add_item(struct fixture *f, uint64_t parent, const struct item *item,
			 const char *name, const void *bytes, size_t size)
{
	struct store_retry retry = { 0 };
	int result;

	do
		result = FIXTURE_TRY(f, add_item_once(f, parent, item, name, bytes, size));
	while (store_retry(&retry, &result));
	ck_assert_int_eq(result, 0);
	lifecycle_note_created(f->life, &f->actor, item->id);
	return item->id;
}

static struct item new_item(struct fixture *f, uint32_t mode)
{
	struct timespec now = tree_time(lifecycle_now_ns(f->life));

	return (struct item){
		.id = new_id(f),
		.mode = mode,
		.uid = f->actor.uid,
		.gid = f->actor.gid,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
		.directory = { .trash_mask = S_ISDIR(mode) ? 0777 : 0 },
		.links_live = 1,
		.links_total = 1,
		.content = (const uint8_t *)"",
	};
}

uint64_t make_file(struct fixture *f, uint64_t directory, const char *name, const char *text)
{
	struct item item = new_item(f, S_IFREG | 0640);

	item.content = (const uint8_t *)text;
	item.content_size = item.size = strlen(text);
	return add_item(f, directory, &item, name, NULL, 0);
}

void make_files(struct fixture *f, uint64_t directory, unsigned count)
{
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		make_file(f, directory, name, name);
	}
}

uint64_t make_big_file(struct fixture *f, uint64_t directory, const char *name, size_t size)
{
	struct item item = new_item(f, S_IFREG | 0640);
	uint8_t *bytes = malloc(size);
	uint64_t id;

	memset(bytes, 'b', size);
	item.body = new_id(f);
	item.size = size;
	item.content = NULL;
	id = add_item(f, directory, &item, name, bytes, size);
	free(bytes);
	return id;
}

uint64_t make_directory_as(struct fixture *f, uint64_t parent, const char *name, uint32_t mode,
			   uint32_t uid)
{
	struct item item = new_item(f, S_IFDIR | mode);

	item.uid = item.gid = uid;
	return add_item(f, parent, &item, name, NULL, 0);
}

uint64_t make_directory(struct fixture *f, uint64_t parent, const char *name)
{
	return make_directory_as(f, parent, name, 0755, f->actor.uid);
}

/* As a file's first and further names are made: see OPERATIONS, "link f as Q/g". */
static int link_once(struct fixture *f, const struct place *from, const struct place *to)
{
	struct store_value value, link_value = { 0 };
	struct transaction t = { 0 };
	struct tree_directory d;
	struct item item, link, name;
	int result;

	ck_assert_int_eq(record_get_item(f->store, from, false, &value, &item), 0);
	ck_assert_int_eq(tree_load(f->store, to->directory, &d), 0);
	name = (struct item){
		.id = item.id, .flags = ITEM_REFERENCE, .mode = item.mode, .links_live = 1, .links_total = 1
	};
	if (item.flags & ITEM_REFERENCE) {
		ck_assert_int_eq(record_get_link(f->store, item.id, false, &link_value, &link), 0);
	} else {
		link = item;
		link.version = 0;
		link.links_live = link.links_total = 1;
		transaction_put_item(&t, f->store, from, &name, item.version);
	}
	link.links_live++;
	link.links_total++;
	transaction_put_link(&t, &link, link.version);
	transaction_put_item(&t, f->store, to, &name, 0);
	/*
	 * The name that is linked and the own item may be one directory's: they are different
	 * items.
	 */
	tree_touch(&d, lifecycle_now_ns(f->life));
	tree_put_own(&t, f->store, &d);
	tree_check_guard(&t, &d);
	transaction_count_add(&t, COUNTER_LIVE_ITEMS, 1);
	result = tree_commit(&t, f->store, STORE_GROWING, NULL);
	transaction_release(&t);
	store_value_release(&value);
	store_value_release(&link_value);
	tree_release(&d);
	return result;
}

void make_link(struct fixture *f, uint64_t directory, const char *name, uint64_t to_directory,
	       const char *to_name)
{
	struct place from = live_place(directory, name), to = live_place(to_directory, to_name);
	struct store_retry retry = { 0 };
	int result;

	do
		result = FIXTURE_TRY(f, link_once(f, &from, &to));
	while (store_retry(&retry, &result));
	ck_assert_int_eq(result, 0);
}

/* Changes a directory's own item as `change` says, and tells lifecycle. */
static void edit_directory(struct fixture *f, uint64_t directory,
			   void (*change)(struct item *own, void *data), void *data)
{
	struct store_retry retry = { 0 };
	int result;

	do {
		struct transaction t = { 0 };
		struct tree_directory d;

		ck_assert_int_eq(tree_load(f->store, directory, &d), 0);
		change(&d.own, data);
		tree_put_own(&t, f->store, &d);
		result = tree_commit(&t, f->store, STORE_GROWING, NULL);
		transaction_release(&t);
		tree_release(&d);
		if (result == -EIO && f->fault != FAULT_NONE)
			result = STORE_CONFLICT;
	} while (store_retry(&retry, &result));
	ck_assert_int_eq(result, 0);
	lifecycle_note_directory_changed(f->life);
}

static void change_mode(struct item *own, void *data)
{
	own->mode = S_IFDIR | *(uint32_t *)data;
}

void set_mode(struct fixture *f, uint64_t directory, uint32_t mode)
{
	edit_directory(f, directory, change_mode, &mode);
}

static void change_mtime(struct item *own, void *data)
{
	own->mtime = (struct timespec){ *(int64_t *)data, 123456789 };
}

void set_mtime(struct fixture *f, uint64_t directory, int64_t seconds)
{
	edit_directory(f, directory, change_mtime, &seconds);
}

struct xattr_edit {
	const char *name, *value;
	struct buffer list;
};

static void change_policy(struct item *own, void *data)
{
	struct xattr_edit *e = data;

	buffer_reset(&e->list);
	ck_assert_int_eq(record_xattr_edit(own->xattrs, own->xattrs_size, e->name,
					   (const uint8_t *)e->value,
					   e->value ? strlen(e->value) : 0, &e->list),
			 0);
	own->xattrs = e->list.bytes;
	own->xattrs_size = e->list.size;
	own->flags |= ITEM_POLICY;
}

void set_policy(struct fixture *f, uint64_t directory, const char *name, const char *value)
{
	struct xattr_edit e = { .name = name, .value = value };

	edit_directory(f, directory, change_policy, &e);
	lifecycle_note_policy_changed(f->life);
	buffer_release(&e.list);
}

/* ---- renaming: the other user of removals ----------------------------------------- */

struct renaming {
	struct tree_directory from, to;
	struct store_value value, victim_value;
	struct item item, victim;
	struct removal removal;
	bool same, replaces;
};

static void add_rename(struct fixture *f, struct renaming *r, struct transaction *t,
		       const struct place *from, const struct place *to)
{
	struct tree_directory *target = r->same ? &r->from : &r->to;

	transaction_delete_item(t, f->store, from, r->item.version);
	transaction_put_item(t, f->store, to, &r->item, r->replaces ? r->victim.version : 0);
	if (r->replaces)
		lifecycle_removal_add(f->life, &r->removal, target, t);
	if (S_ISDIR(r->item.mode)) {
		struct guard guard;
		uint64_t version;

		ck_assert_int_eq(record_get_guard(f->store, r->item.id, &guard), 0);
		version = guard.version;
		guard.at = *to;
		transaction_put_guard(t, r->item.id, &guard, version);
		r->from.own.directory.subdirectories--;
		target->own.directory.subdirectories++;
	}
	tree_touch(&r->from, lifecycle_now_ns(f->life));
	tree_put_own(t, f->store, &r->from);
	if (!r->same) {
		tree_touch(&r->to, lifecycle_now_ns(f->life));
		tree_put_own(t, f->store, &r->to);
	}
	tree_check_guard(t, target);
}

/* Whether SHD rows must follow: put or deleted at both names. */
static void add_shadows(struct fixture *f, struct renaming *r, struct transaction *t,
			const struct place *from, const struct place *to)
{
	struct shadow shadow, new_shadow = { .directory = r->item.id };
	uint64_t version = 0;
	struct key key;

	if (r->item.flags & ITEM_SHADOWED && S_ISDIR(r->item.mode)) {
		ck_assert_int_eq(
			record_get_shadow(f->store, from->directory, from->name, &shadow, &version), 0);
		key_shadow(store_codec(f->store), from->directory, from->name, &key);
		transaction_delete(t, &key, STORE_IF_VERSION, version);
		if (record_get_shadow(f->store, to->directory, to->name, &shadow, &version))
			version = 0;
		memcpy(new_shadow.name, to->name, sizeof(new_shadow.name));
		transaction_put_shadow(t, f->store, to->directory, &new_shadow, version);
	} else if (r->replaces && r->victim.flags & ITEM_SHADOWED) {
		ck_assert_int_eq(
			record_get_shadow(f->store, to->directory, to->name, &shadow, &version), 0);
		key_shadow(store_codec(f->store), to->directory, to->name, &key);
		transaction_delete(t, &key, STORE_IF_VERSION, version);
	}
}

static int rename_once(struct fixture *f, const struct place *from, const struct place *to)
{
	struct renaming r = { .same = from->directory == to->directory };
	struct transaction t = { 0 };
	int result = record_get_item(f->store, from, false, &r.value, &r.item);

	ck_assert_int_eq(result, 0);
	lifecycle_lock(f->life);
	if (r.item.flags & ITEM_SHADOWED)
		result = lifecycle_mark_shadows(f->life, to->directory);
	ck_assert_int_eq(tree_load(f->store, from->directory, &r.from), 0);
	ck_assert_int_eq(tree_load(f->store, to->directory, &r.to), 0);
	r.replaces = !record_get_item(f->store, to, false, &r.victim_value, &r.victim);
	if (!result && r.replaces)
		result = lifecycle_removal_prepare(f->life, &r.removal, &f->actor, ITEM_REPLACED,
						   r.item.id, r.same ? &r.from : &r.to, &r.victim);
	if (!result) {
		add_rename(f, &r, &t, from, to);
		add_shadows(f, &r, &t, from, to);
		result = tree_commit(&t, f->store, STORE_GROWING, NULL);
		if (r.replaces)
			lifecycle_removal_done(f->life, &r.removal, !result);
		lifecycle_note_renamed(f->life, r.item.id);
		lifecycle_note_directory_changed(f->life);
	}
	lifecycle_unlock(f->life);
	transaction_release(&t);
	store_value_release(&r.value);
	store_value_release(&r.victim_value);
	tree_release(&r.from);
	tree_release(&r.to);
	return result;
}

int rename_item(struct fixture *f, uint64_t from, const char *from_name, uint64_t to, const char *to_name)
{
	struct place a = live_place(from, from_name), b = live_place(to, to_name);
	struct store_retry retry = { 0 };
	int result;

	do
		result = FIXTURE_TRY(f, rename_once(f, &a, &b));
	while (store_retry(&retry, &result));
	return result;
}

/* ---- acting ----------------------------------------------------------------------- */

void act_as(struct fixture *f, uint32_t uid, uint32_t group, const char *command)
{
	f->actor = (struct actor){
		.uid = uid, .gid = uid, .pid = group, .group = group, .session = 1, .start = group
	};
	snprintf(f->actor.command, sizeof(f->actor.command), "%s", command);
}

void rm(struct fixture *f, uint64_t directory, const char *name)
{
	ck_ok(f, lifecycle_remove(f->life, &f->actor, directory, name, false));
}

struct name_list {
	char names[200][KEY_NAME_MAX + 1];
	uint64_t ids[200];
	uint32_t modes[200];
	size_t count;
};

static struct name_list *list_live(struct fixture *f, uint64_t directory)
{
	struct name_list *list = calloc(1, sizeof(*list));
	struct store_query query = { .attributes_only = true };
	struct key next;
	bool more = true;

	key_range_live(directory, &query.range);
	while (more) {
		struct store_page page = { 0 };

		ck_assert_int_eq(store_query(f->store, &query, &page), 0);
		for (size_t i = 0; i < page.count; i++) {
			struct place at;
			struct item item;

			ck_assert_int_eq(record_row_item(f->store, &page.rows[i], &at, &item), 0);
			ck_assert_uint_lt(list->count, ARRAY_SIZE(list->ids));
			memcpy(list->names[list->count], at.name, sizeof(at.name));
			list->ids[list->count] = item.id;
			list->modes[list->count++] = item.mode;
		}
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return list;
}

void rm_rf(struct fixture *f, uint64_t parent, const char *name)
{
	struct item item = live_item(f, parent, name);
	struct name_list *list;

	if (!S_ISDIR(item.mode)) {
		rm(f, parent, name);
		return;
	}
	list = list_live(f, item.id);
	for (size_t i = 0; i < list->count; i++)
		rm_rf(f, item.id, list->names[i]);
	free(list);
	ck_ok(f, lifecycle_remove(f->life, &f->actor, parent, name, true));
}

void discard(struct fixture *f, uint64_t parent, const char *name)
{
	ck_ok(f, lifecycle_discard(f->life, &f->actor, parent, name));
}

int try_restore(struct fixture *f, uint64_t from, const char *shown, uint64_t to, const char *name,
		unsigned flags)
{
	struct place at = shown_place(f, from, shown);

	return FIXTURE_TRY(f, lifecycle_restore(f->life, &f->actor, &at, to, name, flags, NULL, NULL));
}

void restore(struct fixture *f, uint64_t from, const char *shown, uint64_t to, const char *name)
{
	ck_assert_int_eq(try_restore(f, from, shown, to, name, 0), 0);
}

void sweep(struct fixture *f, struct sweep_result *ret_result)
{
	struct sweep_result total = { 0 }, one;

	do {
		ck_ok(f, lifecycle_sweep(f->life, 1000, &one));
		total.destroyed += one.destroyed;
		total.bytes += one.bytes;
	} while (one.more);
	total.next_due_ns = one.next_due_ns;
	total.paused = one.paused;
	if (ret_result)
		*ret_result = total;
}

/* ---- looking -------------------------------------------------------------------------- */

bool is_live(struct fixture *f, uint64_t directory, const char *name)
{
	struct place at = live_place(directory, name);
	struct store_value value = { 0 };
	struct item item;
	int result = record_get_item(f->store, &at, true, &value, &item);

	store_value_release(&value);
	ck_assert(result == 0 || result == STORE_ABSENT);
	return result == 0;
}

bool is_shown(struct fixture *f, uint64_t directory, const char *shown)
{
	struct entry e = { 0 };
	int result = lifecycle_find(f->life, directory, shown, &e);

	ck_assert(result == 0 || result == -ENOENT);
	entry_release(&e);
	return result == 0;
}

struct place shown_place(struct fixture *f, uint64_t directory, const char *shown)
{
	struct entry e = { 0 };
	struct place at;
	int result = lifecycle_find(f->life, directory, shown, &e);

	ck_assert_msg(result == 0, "%s is not shown: %d (fault %d at %lu)", shown, result, f->fault,
		      (unsigned long)f->fault_at);
	at = e.at;
	entry_release(&e);
	return at;
}

static bool count_row(void *data, const struct entry *entry, const struct key *key)
{
	++*(unsigned *)data;
	return false;
}

unsigned count_shown(struct fixture *f, uint64_t directory)
{
	unsigned count = 0;

	ck_assert_int_eq(lifecycle_list(f->life, directory, NULL, count_row, &count), 0);
	return count;
}

unsigned count_deleted(struct fixture *f, uint64_t directory)
{
	struct store_query query = { .attributes_only = true };
	unsigned count = 0;
	struct key next;
	bool more = true;

	key_range_deleted(directory, &query.range);
	while (more) {
		struct store_page page = { 0 };

		ck_assert_int_eq(store_query(f->store, &query, &page), 0);
		count += (unsigned)page.count;
		more = page.more;
		next = page.next;
		query.after = &next;
		store_page_release(&page);
	}
	return count;
}

struct item live_item(struct fixture *f, uint64_t directory, const char *name)
{
	struct place at = live_place(directory, name);
	struct store_value value = { 0 }, link_value = { 0 };
	struct item item, link;

	ck_assert_msg(record_get_item(f->store, &at, true, &value, &item) == 0, "%s is not there", name);
	if (item.flags & ITEM_REFERENCE) {
		ck_assert_int_eq(record_get_link(f->store, item.id, true, &link_value, &link), 0);
		link.flags |= ITEM_REFERENCE;
		item = link;
	}
	store_value_release(&value);
	store_value_release(&link_value);
	item.xattrs = item.content = NULL;
	item.xattrs_size = item.content_size = 0;
	return item;
}

void assert_text(struct fixture *f, uint64_t directory, const char *name, const char *text)
{
	struct place at = live_place(directory, name);
	struct store_value value = { 0 }, link_value = { 0 };
	struct item item;

	ck_assert_msg(record_get_item(f->store, &at, false, &value, &item) == 0, "%s is not there", name);
	if (item.flags & ITEM_REFERENCE)
		ck_assert_int_eq(record_get_link(f->store, item.id, false, &link_value, &item), 0);
	ck_assert_uint_eq(item.content_size, strlen(text));
	ck_assert_mem_eq(item.content, text, item.content_size);
	store_value_release(&value);
	store_value_release(&link_value);
}

int64_t counter(struct fixture *f, enum item_counter which)
{
	int64_t counters[STORE_COUNTERS_MAX];

	ck_assert_int_eq(record_get_counters(f->store, counters), 0);
	return counters[which];
}

struct batch_rows {
	struct batch last;
	unsigned count;
};

static bool batch_row(void *data, const struct batch *batch)
{
	struct batch_rows *rows = data;

	if (!rows->count++)
		rows->last = *batch;
	return false;
}

static struct batch_rows list_batches(struct fixture *f)
{
	struct batch_rows rows = { 0 };

	ck_assert_int_eq(lifecycle_batches(f->life, UINT32_MAX, batch_row, &rows), 0);
	return rows;
}

struct batch last_batch(struct fixture *f)
{
	struct batch_rows rows = list_batches(f);

	ck_assert_uint_gt(rows.count, 0);
	return rows.last;
}

unsigned count_batches(struct fixture *f)
{
	return list_batches(f).count;
}
