/* test-trash.c - what a removal leaves, of files, directories, links and replaced ones. */
#include <stdio.h>
#include <string.h>

#include "tests/lifecycle/fixture.h"

FIXTURE_TEST(removed_file_keeps_all_it_was)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t id = make_file(f, d, "f", "words");
	struct entry e;

	fixture_pass(f, 2 * MINUTE);
	rm(f, d, "f");
	ck_assert(!is_live(f, d, "f"));
	ck_assert_int_eq(lifecycle_find(f->life, d, "f", &e), 0);
	ck_assert_uint_eq(e.item.id, id);
	ck_assert_uint_eq(e.item.mode, S_IFREG | 0640);
	ck_assert_uint_eq(e.item.size, 5);
	ck_assert_uint_eq(e.item.deletion.uid, 1000);
	ck_assert_str_eq(e.item.deletion.command, "rm");
	ck_assert_int_eq(e.item.deletion.cause, ITEM_REMOVED);
	assert_about(e.expires_ns - lifecycle_now_ns(f->life), 30 * DAY);
	entry_release(&e);
	ck_assert_uint_eq(count_deleted(f, d), 1);
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 1);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 5);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_ITEMS), 1);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 0);
}

FIXTURE_TEST(removal_fails_as_unlink_and_rmdir_do)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "f", "");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, d, "none", false)), -ENOENT);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, d, "f", true)), -ENOTDIR);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, KEY_ID_ROOT, "d", false)),
			 -EISDIR);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, KEY_ID_ROOT, "d", true)),
			 -ENOTEMPTY);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, 999, "f", false)), -ENOENT);
	ck_assert(is_live(f, d, "f"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
}

FIXTURE_TEST(directory_with_deleted_items_only_is_removed)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct item root;

	make_file(f, d, "f", "x");
	fixture_pass(f, 2 * MINUTE);
	f->disturb = d;
	rm(f, d, "f");
	ck_ok(f, lifecycle_remove(f->life, &f->actor, KEY_ID_ROOT, "d", true));
	ck_assert(!is_live(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, d, "f"));
	root = live_item(f, KEY_ID_NONE, "");
	ck_assert_uint_eq(root.directory.subdirectories, 0);
}

FIXTURE_TEST(one_name_deleted_five_times_is_five_entries)
{
	static const char *const texts[] = { "one", "two", "three", "four", "five" };

	act_as(f, 1000, 100, "writer");
	for (size_t i = 0; i < 5; i++) {
		make_file(f, KEY_ID_ROOT, "f", texts[i]);
		act_as(f, 1000, 200 + (uint32_t)i, "rm");
		rm(f, KEY_ID_ROOT, "f"); /* the clock stands: all within one nanosecond */
		act_as(f, 1000, 100, "writer");
	}
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 5);
	for (size_t i = 5; i-- > 0;) {
		restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "back");
		assert_text(f, KEY_ID_ROOT, "back", texts[i]);
		rename_item(f, KEY_ID_ROOT, "back", KEY_ID_ROOT, texts[i]);
	}
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(names_of_one_file_are_counted)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	struct sweep_result swept;

	make_file(f, d, "a", "shared");
	make_link(f, d, "a", d, "b");
	make_link(f, d, "a", KEY_ID_ROOT, "c");
	fixture_pass(f, 2 * MINUTE);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 6);
	rm(f, d, "a");
	rm(f, KEY_ID_ROOT, "c");
	ck_assert_uint_eq(live_item(f, d, "b").links_live, 1);
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 6);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
	rm(f, d, "b");
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 0);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 6);
	restore(f, d, "a", d, "a");
	restore(f, d, "b", d, "b");
	ck_assert_uint_eq(live_item(f, d, "b").links_live, 2);
	ck_assert_uint_eq(live_item(f, d, "b").links_total, 3);
	assert_text(f, d, "a", "shared");
	ck_assert_int_eq(counter(f, COUNTER_LIVE_BYTES), 6);
	fixture_pass(f, 31 * DAY);
	sweep(f, &swept);
	ck_assert_uint_eq(swept.destroyed, 1);
	ck_assert_uint_eq(live_item(f, d, "b").links_total, 2);
	rm(f, d, "a");
	rm(f, d, "b");
	fixture_pass(f, 31 * DAY);
	sweep(f, &swept);
	ck_assert_uint_eq(swept.destroyed, 2);
	ck_assert_uint_eq(swept.bytes, 6);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
}

FIXTURE_TEST(replaced_file_goes_to_the_trash)
{
	uint64_t old = make_file(f, KEY_ID_ROOT, "f", "old");
	uint64_t new = make_file(f, KEY_ID_ROOT, "f.tmp", "newer");
	struct entry e;

	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "f.tmp", KEY_ID_ROOT, "f"), 0);
	assert_text(f, KEY_ID_ROOT, "f", "newer");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "f", &e), 0);
	ck_assert_uint_eq(e.item.id, old);
	ck_assert_uint_eq(e.item.deletion.replaced_by, new);
	ck_assert_int_eq(e.item.deletion.cause, ITEM_REPLACED);
	ck_assert_uint_eq(e.item.deletion.batch, 0);
	entry_release(&e);
	ck_assert_uint_eq(count_batches(f), 0);
}

FIXTURE_TEST(replaced_versions_are_capped)
{
	char text[16];

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.versions", "3");
	make_file(f, KEY_ID_ROOT, "f", "0");
	for (int i = 1; i <= 6; i++) {
		snprintf(text, sizeof(text), "%d", i);
		make_file(f, KEY_ID_ROOT, "f.tmp", text);
		ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "f.tmp", KEY_ID_ROOT, "f"), 0);
	}
	assert_text(f, KEY_ID_ROOT, "f", "6");
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 3);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_VERSIONS), 3);
	restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "back");
	assert_text(f, KEY_ID_ROOT, "back", "5");
}

FIXTURE_TEST(replaced_directory_keeps_what_was_deleted_in_it)
{
	uint64_t first = make_directory(f, KEY_ID_ROOT, "d");

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.versions", "1");
	make_file(f, first, "f", "precious");
	fixture_pass(f, HOUR);
	rm(f, first, "f");
	for (int i = 0; i < 3; i++) {
		make_directory(f, KEY_ID_ROOT, "new");
		ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "new", KEY_ID_ROOT, "d"), 0);
	}
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_VERSIONS), 0);
	restore(f, first, "f", KEY_ID_ROOT, "f");
	assert_text(f, KEY_ID_ROOT, "f", "precious");
}

FIXTURE_TEST(versions_stay_while_the_clock_is_suspect)
{
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.versions", "1");
	make_file(f, KEY_ID_ROOT, "f", "0");
	make_file(f, KEY_ID_ROOT, "g", "1");
	make_file(f, KEY_ID_ROOT, "h", "2");
	test_clock_step(&f->clock, 40 * DAY);
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "g", KEY_ID_ROOT, "f"), 0);
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "h", KEY_ID_ROOT, "f"), 0);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 2);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_VERSIONS), 0);
}

FIXTURE_TEST(version_over_the_cap_that_is_open_waits)
{
	uint64_t first;
	struct place at;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.versions", "1");
	first = make_file(f, KEY_ID_ROOT, "f", "0");
	make_file(f, KEY_ID_ROOT, "g", "1");
	make_file(f, KEY_ID_ROOT, "h", "2");
	f->busy[0] = first;
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "g", KEY_ID_ROOT, "f"), 0);
	at = shown_place(f, KEY_ID_ROOT, "f");
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "h", KEY_ID_ROOT, "f"), 0);
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 1);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 2);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 2);
	f->busy[0] = 0;
	lifecycle_note_released(f->life, first, &at);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_VERSIONS), 1);
}

FIXTURE_TEST(own_temporary_name_makes_no_entry)
{
	make_file(f, KEY_ID_ROOT, "journal", "x");
	fixture_pass(f, 59 * SECOND);
	rm(f, KEY_ID_ROOT, "journal");
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
	ck_assert_uint_eq(count_batches(f), 0);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 0);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
}

FIXTURE_TEST(temporary_name_that_is_open_lives_until_it_is_let_go)
{
	uint64_t id = make_file(f, KEY_ID_ROOT, "tmp", "x");
	struct place at = { 0 };

	f->busy[0] = id;
	rm(f, KEY_ID_ROOT, "tmp");
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 1);
	ck_assert_uint_ge(f->changed, 1);
	ck_assert(f->changes[f->changed - 1].temporary);
	at = f->changes[f->changed - 1].to;
	f->busy[0] = 0;
	lifecycle_note_released(f->life, id, &at);
	sweep(f, NULL); /* should the release have met a fault */
	ck_assert_uint_eq(count_deleted(f, KEY_ID_ROOT), 0);
}

FIXTURE_TEST(only_its_maker_removes_a_temporary_name)
{
	make_file(f, KEY_ID_ROOT, "a", "x");
	make_file(f, KEY_ID_ROOT, "b", "x");
	make_file(f, KEY_ID_ROOT, "c", "x");
	ck_assert_int_eq(rename_item(f, KEY_ID_ROOT, "b", KEY_ID_ROOT, "bb"), 0);
	act_as(f, 1000, 101, "other");
	rm(f, KEY_ID_ROOT, "a"); /* another process */
	act_as(f, 1000, 100, "rm");
	rm(f, KEY_ID_ROOT, "bb"); /* renamed meanwhile */
	fixture_pass(f, 61 * SECOND);
	rm(f, KEY_ID_ROOT, "c"); /* too late */
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 3);
}

FIXTURE_TEST(temporary_rule_can_be_switched_off)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	set_policy(f, d, "user.ddbfs.temporary", "0");
	make_file(f, d, "a", "x");
	rm(f, d, "a");
	ck_assert_uint_eq(count_shown(f, d), 1);
}

FIXTURE_TEST(last_name_of_a_file_is_never_temporary)
{
	make_file(f, KEY_ID_ROOT, "tmp", "x");
	make_link(f, KEY_ID_ROOT, "tmp", KEY_ID_ROOT, "object");
	rm(f, KEY_ID_ROOT, "tmp");
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 0);
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "object").links_total, 1);
	rm(f, KEY_ID_ROOT, "object");
	ck_assert_uint_eq(count_shown(f, KEY_ID_ROOT), 1);
}

FIXTURE_TEST(retention_of_nothing_destroys_at_once)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t open;

	set_policy(f, d, "user.ddbfs.retention", "0");
	make_big_file(f, d, "f", 5000);
	open = make_file(f, d, "open", "y");
	fixture_pass(f, 2 * MINUTE);
	rm(f, d, "f");
	f->busy[0] = open;
	rm(f, d, "open");
	ck_assert_uint_eq(count_shown(f, d), 0);
	f->busy[0] = 0;
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, d), 0);
	ck_assert_int_eq(counter(f, COUNTER_TRASH_BYTES), 0);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EXPIRED), 2);
}

FIXTURE_TEST(open_name_that_is_not_the_last_waits_unless_another_is_known)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	set_policy(f, d, "user.ddbfs.retention", "0");
	f->busy[0] = make_file(f, d, "a", "x");
	make_link(f, d, "a", d, "b");
	make_link(f, d, "a", d, "c");
	fixture_pass(f, 2 * MINUTE);
	rm(f, d, "a");
	ck_assert_uint_eq(count_shown(f, d), 0);
	ck_assert_uint_eq(count_deleted(f, d), 1);
	f->known_elsewhere = true;
	rm(f, d, "b");
	ck_assert_uint_eq(count_deleted(f, d), 1);
	sweep(f, NULL);
	ck_assert_uint_eq(count_deleted(f, d), 0);
	assert_text(f, d, "c", "x");
}

FIXTURE_TEST(protected_names_stay)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	make_file(f, d, "f", "x");
	make_file(f, d, "g", "y");
	set_policy(f, d, "user.ddbfs.protect", "yes");
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, d, "f", false)), -EPERM);
	ck_assert_int_eq(rename_item(f, d, "g", d, "f"), -EPERM);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_discard(f->life, &f->actor, KEY_ID_ROOT, "d")), -EPERM);
	set_policy(f, d, "user.ddbfs.protect", NULL);
	fixture_pass(f, 2 * MINUTE);
	rm(f, d, "f");
}

FIXTURE_TEST(mask_keeps_a_private_directory_private)
{
	uint64_t home = make_directory_as(f, KEY_ID_ROOT, "home", 0700, 1000);
	uint64_t pub = make_directory_as(f, home, "pub", 0755, 1000);
	uint64_t open = make_directory_as(f, KEY_ID_ROOT, "open", 0755, 1000);

	make_file(f, pub, "f", "secret");
	make_file(f, open, "f", "known");
	fixture_pass(f, 2 * MINUTE);
	rm(f, pub, "f");
	rm(f, open, "f");
	set_mode(f, home, 0755);
	ck_assert_uint_eq(live_item(f, home, "pub").directory.trash_mask, 0700);
	ck_assert_uint_eq(live_item(f, KEY_ID_ROOT, "open").directory.trash_mask, 0755);
	make_file(f, pub, "g", "x");
	fixture_pass(f, 2 * MINUTE);
	rm(f, pub, "g");
	ck_assert_uint_eq(live_item(f, home, "pub").directory.trash_mask, 0700);
}

FIXTURE_TEST(discarded_directory_is_one_item)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");

	make_file(f, sub, "f", "x");
	fixture_pass(f, 2 * MINUTE);
	discard(f, KEY_ID_ROOT, "d");
	ck_assert(!is_live(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, KEY_ID_ROOT, "d"));
	ck_assert(is_shown(f, d, "sub"));
	ck_assert(is_shown(f, sub, "f"));
	ck_assert_int_eq(counter(f, COUNTER_TRASH_ITEMS), 1);
	ck_assert_int_eq(FIXTURE_TRY(f, lifecycle_remove(f->life, &f->actor, sub, "f", false)), -EROFS);
	restore(f, KEY_ID_ROOT, "d", KEY_ID_ROOT, "e");
	assert_text(f, sub, "f", "x");
	rm(f, sub, "f");
	ck_assert(is_shown(f, KEY_ID_ROOT, "e"));
}

FIXTURE_TEST(discarded_directory_is_kept_as_long_as_what_is_in_it)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");
	uint64_t sub = make_directory(f, d, "sub");
	struct entry e;

	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1d");
	set_policy(f, sub, "user.ddbfs.retention", "10d");
	make_file(f, sub, "f", "x");
	fixture_pass(f, 2 * MINUTE);
	rm(f, sub, "f");
	discard(f, KEY_ID_ROOT, "d");
	ck_assert_int_eq(lifecycle_find(f->life, KEY_ID_ROOT, "d", &e), 0);
	assert_about(e.expires_ns - lifecycle_now_ns(f->life), 10 * DAY);
	entry_release(&e);
}

FIXTURE_TEST(shadows_mark_the_way_and_go_when_nothing_is_left)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	uint64_t c = make_directory(f, b, "c");

	make_file(f, c, "f", "x");
	fixture_pass(f, 2 * MINUTE);
	f->disturb = a;
	ck_assert(!is_shown(f, KEY_ID_ROOT, "a"));
	rm(f, c, "f");
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
	ck_assert(is_shown(f, a, "b"));
	ck_assert(is_shown(f, b, "c"));
	ck_assert_int_eq(rename_item(f, a, "b", KEY_ID_ROOT, "z"), 0);
	ck_assert(is_shown(f, KEY_ID_ROOT, "z"));
	fixture_pass(f, 31 * DAY);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "z"));
	ck_assert_uint_eq(count_shown(f, b), 0);
}

FIXTURE_TEST(names_of_all_bytes_come_back)
{
	static const char *const names[] = {
		"DEL#1", "ACT#x", "-rf", "new\nline", "\xff\x01", "name@2026-01-01T00:00:00Z",
		"#",	 "...",
	};
	char longest[KEY_NAME_MAX + 1];

	memset(longest, 'n', KEY_NAME_MAX);
	longest[KEY_NAME_MAX] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make_file(f, KEY_ID_ROOT, names[i], names[i]);
	make_file(f, KEY_ID_ROOT, longest, longest);
	fixture_pass(f, 2 * MINUTE);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rm(f, KEY_ID_ROOT, names[i]);
	rm(f, KEY_ID_ROOT, longest);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		restore(f, KEY_ID_ROOT, names[i], KEY_ID_ROOT, names[i]);
		assert_text(f, KEY_ID_ROOT, names[i], names[i]);
	}
	restore(f, KEY_ID_ROOT, longest, KEY_ID_ROOT, longest);
	assert_text(f, KEY_ID_ROOT, longest, longest);
}

FIXTURE_TEST(hooks_hear_of_each_move)
{
	uint64_t id = make_file(f, KEY_ID_ROOT, "f", "x");
	const struct lifecycle_change *change;

	fixture_pass(f, 2 * MINUTE);
	rm(f, KEY_ID_ROOT, "f");
	ck_assert_uint_eq(f->changed, 1);
	change = &f->changes[0];
	ck_assert_uint_eq(change->id, id);
	ck_assert_int_eq(change->from.state, KEY_ACT);
	ck_assert_int_eq(change->to.state, KEY_DEL);
	restore(f, KEY_ID_ROOT, "f", KEY_ID_ROOT, "g");
	ck_assert_uint_eq(f->changed, 2);
	change = &f->changes[1];
	ck_assert_int_eq(change->to.state, KEY_ACT);
	ck_assert_str_eq(change->to.name, "g");
	rm(f, KEY_ID_ROOT, "g");
	fixture_pass(f, 31 * DAY);
	sweep(f, NULL);
	ck_assert_uint_eq(f->changed, 4);
	ck_assert_int_eq(f->changes[3].to.name[0], 0);
}

int main(void)
{
	Suite *suite = suite_create("trash");
	TCase *tcase = tcase_create("trash");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, removed_file_keeps_all_it_was);
	tcase_add_test(tcase, removal_fails_as_unlink_and_rmdir_do);
	tcase_add_test(tcase, directory_with_deleted_items_only_is_removed);
	tcase_add_test(tcase, one_name_deleted_five_times_is_five_entries);
	tcase_add_test(tcase, names_of_one_file_are_counted);
	tcase_add_test(tcase, replaced_file_goes_to_the_trash);
	tcase_add_test(tcase, replaced_versions_are_capped);
	tcase_add_test(tcase, replaced_directory_keeps_what_was_deleted_in_it);
	tcase_add_test(tcase, versions_stay_while_the_clock_is_suspect);
	tcase_add_test(tcase, version_over_the_cap_that_is_open_waits);
	tcase_add_test(tcase, own_temporary_name_makes_no_entry);
	tcase_add_test(tcase, temporary_name_that_is_open_lives_until_it_is_let_go);
	tcase_add_test(tcase, only_its_maker_removes_a_temporary_name);
	tcase_add_test(tcase, temporary_rule_can_be_switched_off);
	tcase_add_test(tcase, last_name_of_a_file_is_never_temporary);
	tcase_add_test(tcase, retention_of_nothing_destroys_at_once);
	tcase_add_test(tcase, open_name_that_is_not_the_last_waits_unless_another_is_known);
	tcase_add_test(tcase, protected_names_stay);
	tcase_add_test(tcase, mask_keeps_a_private_directory_private);
	tcase_add_test(tcase, discarded_directory_is_one_item);
	tcase_add_test(tcase, discarded_directory_is_kept_as_long_as_what_is_in_it);
	tcase_add_test(tcase, shadows_mark_the_way_and_go_when_nothing_is_left);
	tcase_add_test(tcase, names_of_all_bytes_come_back);
	tcase_add_test(tcase, hooks_hear_of_each_move);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
