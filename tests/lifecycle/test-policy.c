/* test-policy.c - policies in words, what is inherited, and what root's minimum does. */
#include <string.h>

#include "tests/lifecycle/fixture.h"

static int parse(const char *name, const char *value, struct policy *policy, const char **ret_hint)
{
	return lifecycle_policy_parse(name, value, strlen(value), policy, ret_hint);
}

START_TEST(durations_are_exact)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "1", SECOND },
		{ "1s", SECOND },
		{ "90m", 90 * MINUTE },
		{ "12h", 12 * HOUR },
		{ "30d", 30 * DAY },
		{ "2w", 14 * DAY },
		{ "100y", 36500 * DAY },
		{ "200y", 73000 * DAY },
		{ "3155760000", INT64_C(3155760000) * SECOND },
		{ "forever", ITEM_FOREVER },
	};
	struct policy policy;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_msg(parse("user.ddbfs.retention", good[i].text, &policy, NULL) == 0, "%s",
			      good[i].text);
		ck_assert_int_eq(policy.retention_ns, good[i].ns);
	}
}
END_TEST

START_TEST(doubtful_values_are_refused_with_a_hint)
{
	static const struct {
		const char *name, *text, *hint;
	} bad[] = {
		{ "user.ddbfs.retention", "1700000000000", "milliseconds" },
		{ "user.ddbfs.retention", "9223372036854775807", "milliseconds" },
		{ "user.ddbfs.retention", "9223372036854775808", "30d" },
		{ "user.ddbfs.retention", "201y", "200y" },
		{ "user.ddbfs.retention", "", "30d" },
		{ "user.ddbfs.retention", "-1", "30d" },
		{ "user.ddbfs.retention", "1.5d", "unit" },
		{ "user.ddbfs.retention", "30 d", "unit" },
		{ "user.ddbfs.retention", "30d\n", "unit" },
		{ "user.ddbfs.retention", "never", "forever" },
		{ "user.ddbfs.grace", "forever", "number" },
		{ "user.ddbfs.grace", "31d", "30d" },
		{ "user.ddbfs.versions", "1000001", "1000000" },
		{ "user.ddbfs.versions", "16x", "number" },
		{ "user.ddbfs.trash_max", "10Z", "unit" },
		{ "user.ddbfs.trash_max", "9999999999P", "more bytes" },
		{ "user.ddbfs.trash_max_entries", "10K", "number of entries" },
		{ "user.ddbfs.low_space", "5%", "unit" },
		{ "user.ddbfs.protect", "maybe", "yes" },
		{ "user.ddbfs.colour", "red", "retention" },
		{ "trusted.ddbfs.colour", "red", "retention" },
	};
	struct policy policy = { .versions = 77 };
	const char *hint;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		hint = NULL;
		ck_assert_int_eq(parse(bad[i].name, bad[i].text, &policy, &hint), -EINVAL);
		ck_assert_msg(hint && strstr(hint, bad[i].hint), "%s=%s: %s", bad[i].name,
			      bad[i].text, hint);
	}
	ck_assert_uint_eq(policy.versions, 77);
	ck_assert_int_eq(lifecycle_policy_parse("user.ddbfs.hold", "1\0", 2, &policy, &hint), -EINVAL);
}
END_TEST

START_TEST(sizes_and_switches_are_read)
{
	struct policy policy = { 0 };

	ck_assert_int_eq(parse("user.ddbfs.trash_max", "10G", &policy, NULL), 0);
	ck_assert_int_eq(policy.trash_max, INT64_C(10) << 30);
	ck_assert_int_eq(parse("user.ddbfs.trash_max", "none", &policy, NULL), 0);
	ck_assert_int_eq(policy.trash_max, 0);
	ck_assert_int_eq(parse("trusted.ddbfs.hold", "on", &policy, NULL), 0);
	ck_assert(policy.hold);
	ck_assert_int_eq(parse("user.ddbfs.hold", "no", &policy, NULL), 0);
	ck_assert(!policy.hold);
	ck_assert(lifecycle_policy_name("user.ddbfs.retention"));
	ck_assert(lifecycle_policy_name("trusted.ddbfs.x"));
	ck_assert(!lifecycle_policy_name("user.comment"));
	ck_assert(!lifecycle_policy_name("user.ddbfs"));
}
END_TEST

static struct policy policy_of(struct fixture *f, uint64_t directory)
{
	struct policy policy;

	ck_assert_int_eq(lifecycle_policy(f->life, directory, &policy), 0);
	return policy;
}

FIXTURE_TEST(nearest_ancestor_wins)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");
	uint64_t c = make_directory(f, b, "c");

	ck_assert_int_eq(policy_of(f, c).retention_ns, 30 * DAY);
	ck_assert_uint_eq(policy_of(f, c).versions, 16);
	ck_assert_int_eq(policy_of(f, c).temporary_ns, MINUTE);
	ck_assert_int_eq(policy_of(f, c).grace_ns, 10 * MINUTE);
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "10d");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.versions", "5");
	set_policy(f, b, "user.ddbfs.retention", "1d");
	ck_assert_int_eq(policy_of(f, a).retention_ns, 10 * DAY);
	ck_assert_int_eq(policy_of(f, b).retention_ns, DAY);
	ck_assert_int_eq(policy_of(f, c).retention_ns, DAY);
	ck_assert_uint_eq(policy_of(f, c).versions, 5);
	set_policy(f, b, "user.ddbfs.retention", NULL);
	ck_assert_int_eq(policy_of(f, c).retention_ns, 10 * DAY);
}

FIXTURE_TEST(policy_follows_a_renamed_directory)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, KEY_ID_ROOT, "b");
	uint64_t c = make_directory(f, a, "c");

	set_policy(f, a, "user.ddbfs.retention", "1d");
	set_policy(f, b, "user.ddbfs.retention", "2d");
	ck_assert_int_eq(policy_of(f, c).retention_ns, DAY);
	ck_assert_int_eq(rename_item(f, a, "c", b, "c"), 0);
	ck_assert_int_eq(policy_of(f, c).retention_ns, 2 * DAY);
}

FIXTURE_TEST(roots_minimum_cannot_be_undercut)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	struct policy policy;

	set_policy(f, KEY_ID_ROOT, "trusted.ddbfs.retention", "7d");
	set_policy(f, KEY_ID_ROOT, "trusted.ddbfs.versions", "4");
	set_policy(f, KEY_ID_ROOT, "trusted.ddbfs.temporary", "10");
	set_policy(f, KEY_ID_ROOT, "trusted.ddbfs.trash_max", "1G");
	set_policy(f, a, "user.ddbfs.retention", "1d");
	set_policy(f, a, "user.ddbfs.versions", "1");
	set_policy(f, a, "user.ddbfs.trash_max", "1M");
	policy = policy_of(f, a);
	ck_assert_int_eq(policy.retention_ns, 7 * DAY);
	ck_assert_uint_eq(policy.versions, 4);
	ck_assert_int_eq(policy.temporary_ns, 10 * SECOND);
	ck_assert_int_eq(policy.trash_max, INT64_C(1) << 30);
	set_policy(f, a, "user.ddbfs.retention", "30d");
	ck_assert_int_eq(policy_of(f, a).retention_ns, 30 * DAY);
}

FIXTURE_TEST(protect_implies_hold)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	uint64_t b = make_directory(f, a, "b");

	set_policy(f, a, "user.ddbfs.protect", "1");
	ck_assert(policy_of(f, b).hold);
	ck_assert(!policy_of(f, KEY_ID_ROOT).hold);
}

FIXTURE_TEST(changed_retention_is_for_new_deletions)
{
	make_file(f, KEY_ID_ROOT, "a", "");
	make_file(f, KEY_ID_ROOT, "b", "");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "24h");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "a");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "1h");
	rm(f, KEY_ID_ROOT, "b");
	fixture_pass(f, 2 * HOUR);
	ck_assert(is_shown(f, KEY_ID_ROOT, "a"));
	ck_assert(!is_shown(f, KEY_ID_ROOT, "b"));
}

static struct apply_result apply(struct fixture *f, uint64_t directory, bool dry_run)
{
	struct apply_options o = {
		.directory = directory, .dry_run = dry_run, .retention_ns = -1, .versions = -1
	};
	struct apply_result r;

	ck_ok(f, lifecycle_apply(f->life, &o, &r));
	return r;
}

static int64_t expiry(struct fixture *f, uint64_t directory, const char *shown)
{
	struct entry e;
	int64_t expires_ns;

	ck_assert_int_eq(lifecycle_find(f->life, directory, shown, &e), 0);
	expires_ns = e.expires_ns - (int64_t)e.at.seq;
	entry_release(&e);
	return expires_ns;
}

FIXTURE_TEST(policy_is_applied_to_what_was_deleted_before)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), e = make_directory(f, d, "e");
	struct apply_options would = {
		.directory = d, .dry_run = true, .retention_ns = 2 * DAY, .versions = -1
	};
	struct apply_result r;

	make_file(f, KEY_ID_ROOT, "outside", "x");
	make_big_file(f, d, "old", 5000);
	make_file(f, d, "new", "x");
	make_file(f, e, "nearer", "x");
	fixture_pass(f, HOUR);
	rm(f, KEY_ID_ROOT, "outside");
	rm(f, d, "old");
	rm(f, e, "nearer");
	set_policy(f, e, "user.ddbfs.retention", "40d");
	fixture_pass(f, 3 * DAY);
	rm(f, d, "new");
	ck_ok(f, lifecycle_apply(f->life, &would, &r));
	ck_assert_uint_eq(r.entries, 3);
	ck_assert_uint_eq(r.gone, 1);
	ck_assert_uint_eq(r.gone_bytes, 5000);
	ck_assert_uint_eq(r.sooner, 1);
	ck_assert_uint_eq(r.later, 1);
	assert_about(expiry(f, d, "new"), 30 * DAY);
	set_policy(f, d, "user.ddbfs.retention", "2d");
	r = apply(f, d, false);
	ck_assert(!is_shown(f, d, "old"));
	assert_about(expiry(f, d, "new"), 2 * DAY);
	assert_about(expiry(f, e, "nearer"), 40 * DAY);
	assert_about(expiry(f, KEY_ID_ROOT, "outside"), 30 * DAY);
	/* What has expired stays so, and a second time changes nothing. */
	set_policy(f, d, "user.ddbfs.retention", "1y");
	apply(f, d, false);
	ck_assert(!is_shown(f, d, "old"));
	assert_about(expiry(f, d, "new"), 365 * DAY);
	r = apply(f, d, false);
	ck_assert_uint_eq(r.changed, 0);
	ck_assert_uint_eq(r.entries, 2);
	sweep(f, NULL);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_EXPIRED), 1);
}

FIXTURE_TEST(applied_policy_leaves_trees_whole)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), tree = make_directory(f, d, "tree");
	uint64_t sub = make_directory(f, tree, "sub");
	struct apply_result r;

	set_policy(f, sub, "user.ddbfs.retention", "10d");
	make_file(f, tree, "a", "x");
	make_file(f, sub, "b", "x");
	fixture_pass(f, HOUR);
	rm_rf(f, d, "tree");
	assert_about(expiry(f, d, "tree"), 30 * DAY);
	set_policy(f, d, "user.ddbfs.retention", "1d");
	r = apply(f, d, true);
	ck_assert_uint_eq(r.entries, 1);
	ck_assert_uint_eq(r.sooner, 1);
	apply(f, d, false);
	/* Due when the last of it is. */
	assert_about(expiry(f, d, "tree"), 10 * DAY);
	fixture_pass(f, 5 * DAY);
	sweep(f, NULL);
	ck_assert(is_shown(f, tree, "a"));
	ck_assert(is_shown(f, sub, "b"));
	restore(f, d, "tree", d, "tree");
	assert_text(f, tree, "a", "x");
	assert_text(f, sub, "b", "x");
}

FIXTURE_TEST(applied_policy_heeds_minimum_hold_purges_and_rights)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d"), h = make_directory(f, d, "h");
	struct apply_result r;
	struct place at;

	make_file(f, d, "f", "x");
	make_file(f, d, "purged", "x");
	make_file(f, h, "held", "x");
	set_policy(f, h, "user.ddbfs.hold", "yes");
	fixture_pass(f, HOUR);
	rm(f, d, "f");
	rm(f, d, "purged");
	rm(f, h, "held");
	at = shown_place(f, d, "purged");
	ck_ok(f, lifecycle_purge(f->life, &f->actor, &at, false));
	set_policy(f, d, "user.ddbfs.retention", "0");
	set_policy(f, d, "trusted.ddbfs.retention", "7d");
	r = apply(f, d, false);
	ck_assert_uint_eq(r.refused, 1);
	assert_about(expiry(f, d, "f"), 7 * DAY);
	assert_about(expiry(f, h, "held"), 30 * DAY);
	ck_ok(f, lifecycle_undo(f->life, &f->actor, &(struct undo_options){ 0 },
				&(struct undo_result){ 0 }));
	ck_assert(is_shown(f, d, "purged"));
}

FIXTURE_TEST(applied_caps_evict_versions_and_oldest)
{
	uint64_t d = make_directory(f, KEY_ID_ROOT, "d");

	for (int i = 0; i < 6; i++) {
		make_file(f, d, "new", "x");
		ck_ok(f, rename_item(f, d, "new", d, "f"));
		fixture_pass(f, MINUTE);
	}
	ck_assert_uint_eq(count_shown(f, d), 5);
	set_policy(f, d, "user.ddbfs.versions", "3");
	apply(f, d, false);
	ck_assert_uint_eq(count_shown(f, d), 3);
	ck_assert_int_eq(counter(f, COUNTER_DESTROYED_VERSIONS), 2);
	set_policy(f, d, "user.ddbfs.trash_max_entries", "2");
	sweep(f, NULL);
	ck_assert_uint_eq(count_shown(f, d), 3);
	apply(f, d, false);
	sweep(f, NULL);
	ck_assert_uint_le(count_shown(f, d), 2);
}

FIXTURE_TEST(longest_and_endless_retention_are_kept)
{
	uint64_t a = make_directory(f, KEY_ID_ROOT, "a");
	struct sweep_result swept;

	set_policy(f, a, "user.ddbfs.retention", "forever");
	set_policy(f, KEY_ID_ROOT, "user.ddbfs.retention", "200y");
	make_file(f, a, "x", "");
	make_file(f, KEY_ID_ROOT, "y", "");
	fixture_pass(f, HOUR);
	rm(f, a, "x");
	sweep(f, &swept);
	ck_assert_int_eq(swept.next_due_ns, ITEM_FOREVER);
	rm(f, KEY_ID_ROOT, "y");
	fixture_pass(f, 199 * 365 * DAY);
	sweep(f, NULL);
	ck_assert(is_shown(f, KEY_ID_ROOT, "y"));
	fixture_pass(f, 2 * 365 * DAY);
	sweep(f, NULL);
	ck_assert(!is_shown(f, KEY_ID_ROOT, "y"));
	ck_assert(is_shown(f, a, "x"));
}

int main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tcase = tcase_create("policy");

	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, durations_are_exact);
	tcase_add_test(tcase, doubtful_values_are_refused_with_a_hint);
	tcase_add_test(tcase, sizes_and_switches_are_read);
	tcase_add_test(tcase, nearest_ancestor_wins);
	tcase_add_test(tcase, policy_follows_a_renamed_directory);
	tcase_add_test(tcase, roots_minimum_cannot_be_undercut);
	tcase_add_test(tcase, protect_implies_hold);
	tcase_add_test(tcase, changed_retention_is_for_new_deletions);
	tcase_add_test(tcase, policy_is_applied_to_what_was_deleted_before);
	tcase_add_test(tcase, applied_policy_leaves_trees_whole);
	tcase_add_test(tcase, applied_policy_heeds_minimum_hold_purges_and_rights);
	tcase_add_test(tcase, applied_caps_evict_versions_and_oldest);
	tcase_add_test(tcase, longest_and_endless_retention_are_kept);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
