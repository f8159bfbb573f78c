/* The table of verbs and options, and the parser that reads it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/util.h"
#include "tests/lib/test.h"
#include "tools/cmd.h"
#include "tools/mount-options.h"

#define WORDS_MAX_TEST 16

static struct arguments parsed;
static char *words[WORDS_MAX_TEST];

/* Parses blank-separated words as `verb`'s; standard error goes nowhere. */
static int parse(const char *verb, const char *line)
{
	static char copy[512];
	char *verb_words[] = { NULL, NULL }, verb_copy[64], *at = copy;
	const struct command *command;
	int count = 0, used, verbs = 0;

	snprintf(verb_copy, sizeof(verb_copy), "%s", verb);
	for (char *w = strtok(verb_copy, " "); w; w = strtok(NULL, " "))
		verb_words[verbs++] = w;
	command = command_find(verbs, verb_words, &used);
	ck_assert_ptr_nonnull(command);
	ck_assert_int_eq(used, verbs);
	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w; (w = strsep(&at, " "));)
		if (*w)
			words[count++] = strcmp(w, "EMPTY") ? w : w + strlen(w);
	arguments_release(&parsed);
	return arguments_parse(command, count, words, &parsed);
}

static void quiet(void)
{
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
}

static void forget(void)
{
	arguments_release(&parsed);
}

START_TEST(options_and_operands_mix)
{
	ck_assert_int_eq(parse("trash restore", "a --to d b --rename c"), EXIT_DONE);
	ck_assert_uint_eq(parsed.count, 3);
	ck_assert_str_eq(arguments_operand(&parsed, 0), "a");
	ck_assert_str_eq(arguments_operand(&parsed, 2), "c");
	ck_assert_str_eq(parsed.values[OPTION_TO], "d");
	ck_assert(arguments_has(&parsed, OPTION_RENAME));
	ck_assert(!arguments_has(&parsed, OPTION_SKIP));
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
	ck_assert_int_eq(parse("trash restore", "--rename -- --to -x"), EXIT_DONE);
	ck_assert_uint_eq(parsed.count, 2);
	ck_assert_str_eq(arguments_operand(&parsed, 0), "--to");
	ck_assert_str_eq(arguments_operand(&parsed, 1), "-x");
}
END_TEST

START_TEST(a_value_follows_or_is_attached)
{
	ck_assert_int_eq(parse("trash list", "--limit=5"), EXIT_DONE);
	ck_assert_str_eq(parsed.values[OPTION_LIMIT], "5");
	ck_assert_int_eq(parse("trash list", "--limit 6"), EXIT_DONE);
	ck_assert_str_eq(parsed.values[OPTION_LIMIT], "6");
	ck_assert_int_eq(parse("mount", "-fo ro s d"), EXIT_DONE);
	ck_assert_str_eq(parsed.values[OPTION_MOUNT_OPTIONS], "ro");
	ck_assert(arguments_has(&parsed, OPTION_FOREGROUND));
	ck_assert_int_eq(parse("mount", "-oro s d"), EXIT_DONE);
	ck_assert_str_eq(parsed.values[OPTION_MOUNT_OPTIONS], "ro");
}
END_TEST

START_TEST(mount_options_add_up_others_do_not)
{
	ck_assert_int_eq(parse("mount", "-o ro -o acl s d"), EXIT_DONE);
	ck_assert_str_eq(parsed.values[OPTION_MOUNT_OPTIONS], "ro,acl");
	ck_assert_int_eq(parse("trash list", "--limit 1 --limit 2"), EXIT_USAGE);
}
END_TEST

START_TEST(wrong_options_are_refused)
{
	ck_assert_int_eq(parse("undo", "--frobnicate"), EXIT_USAGE);
	ck_assert_int_eq(parse("undo", "-x"), EXIT_USAGE);
	ck_assert_int_eq(parse("undo", "--skip=yes"), EXIT_USAGE);
	ck_assert_int_eq(parse("undo", "--only"), EXIT_USAGE);
	ck_assert_int_eq(parse("undo", "--only="), EXIT_USAGE);
	/* Not abbreviated, and not another verb's. */
	ck_assert_int_eq(parse("undo", "--dry"), EXIT_USAGE);
	ck_assert_int_eq(parse("undo", "--create"), EXIT_USAGE);
}
END_TEST

START_TEST(wrong_values_are_refused)
{
	ck_assert_int_eq(parse("trash list", "--limit many"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--limit -1"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--limit 9223372036854775808"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--since 5"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--since 5m"), EXIT_DONE);
	ck_assert_int_eq(parse("trash list", "--sort colour"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--sort siz"), EXIT_USAGE);
	ck_assert_int_eq(parse("trash list", "--sort size"), EXIT_DONE);
	ck_assert_int_eq(parse("init", "--names size s"), EXIT_USAGE);
}
END_TEST

START_TEST(operands_are_counted)
{
	ck_assert_int_eq(parse("init", ""), EXIT_USAGE);
	ck_assert_int_eq(parse("init", "a b"), EXIT_USAGE);
	ck_assert_int_eq(parse("init", "EMPTY"), EXIT_USAGE);
	ck_assert_int_eq(parse("version", "x"), EXIT_USAGE);
	ck_assert_int_eq(parse("policy unset", "d"), EXIT_USAGE);
}
END_TEST

START_TEST(help_wins_over_missing_operands)
{
	ck_assert_int_eq(parse("init", "--help"), EXIT_DONE);
	ck_assert(arguments_has(&parsed, OPTION_HELP));
}
END_TEST

/* Every option has words, every verb a summary that reads as one, and all options of a verb differ in letter. */
START_TEST(tables_are_whole)
{
	for (unsigned i = 0; i < OPTION_COUNT; i++) {
		const struct option *o = &option_table[i];

		ck_assert(o->name || o->letter);
		ck_assert_ptr_nonnull(o->help);
		ck_assert_int_eq(o->kind == OPTION_KIND_FLAG, o->value == NULL);
	}
	for (size_t i = 0; i < command_table_count; i++) {
		const struct command *c = &command_table[i];

		ck_assert_ptr_nonnull((void *)(uintptr_t)c->run);
		ck_assert(c->summary[0] >= 'a' && c->summary[0] <= 'z');
		ck_assert_uint_le(c->min, c->max);
		for (unsigned k = 0; k < c->options_count; k++)
			for (unsigned l = 0; l < k; l++) {
				ck_assert_int_ne(c->options[k], c->options[l]);
				ck_assert(!option_table[c->options[k]].letter ||
					  option_table[c->options[k]].letter !=
						  option_table[c->options[l]].letter);
			}
	}
}
END_TEST

/* ---- -o -------------------------------------------------------------------- */

static struct mount_options mounting;

static int parse_mount(const char *text)
{
	mount_options_release(&mounting);
	return mount_options_parse(NULL, text, &mounting);
}

START_TEST(mount_options_are_sorted_by_kind)
{
	ck_assert_int_eq(parse_mount("rw,noauto,user,_netdev,x-systemd.automount,allow_other,noatime,acl,nopoll,log=/l"),
			 EXIT_DONE);
	ck_assert_str_eq(mounting.kernel, "allow_other,noatime");
	ck_assert(mounting.acl);
	ck_assert(!mounting.poll);
	ck_assert(!mounting.read_only);
	ck_assert(!mounting.writeback);
	ck_assert_str_eq(mounting.log, "/l");
	ck_assert_int_eq(parse_mount(NULL), EXIT_DONE);
	ck_assert_ptr_null(mounting.kernel);
	ck_assert(mounting.poll);
}
END_TEST

/* mount(8), "Filesystem-independent mount options": what fstab may hold for any file system. */
START_TEST(generic_mount_options_are_taken)
{
	static const char generic[] =
		"async,atime,auto,comment=words,defaults,dev,diratime,dirsync,exec,group,iversion,lazytime,loud,"
		"mand,_netdev,noatime,noauto,nodev,nodiratime,noexec,nofail,noiversion,nolazytime,nomand,"
		"norelatime,nostrictatime,nosuid,nouser,owner,relatime,ro,rw,silent,strictatime,suid,symfollow,"
		"sync,user,user=name,users,x-initrd.mount,X-mount.mkdir";

	ck_assert_int_eq(parse_mount(generic), EXIT_DONE);
}
END_TEST

START_TEST(the_last_of_ro_and_rw_counts)
{
	ck_assert_int_eq(parse_mount("ro"), EXIT_DONE);
	ck_assert_str_eq(mounting.kernel, "ro");
	ck_assert(mounting.read_only);
	ck_assert_int_eq(parse_mount("ro,rw"), EXIT_DONE);
	ck_assert_ptr_null(mounting.kernel);
	ck_assert(!mounting.read_only);
}
END_TEST

START_TEST(wrong_mount_options_are_refused)
{
	static const char *const wrong[] = { "frobnicate", "log",	 "log=",	"ro=1",
					     "fsname=x",   "subtype=y",	 "Ro",		"=x",
					     "x",	   "remount,ro", "nosymfollow", "context=x" };

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
		ck_assert_msg(parse_mount(wrong[i]) == EXIT_USAGE, "%s was taken", wrong[i]);
}
END_TEST

static void forget_mounting(void)
{
	mount_options_release(&mounting);
}

int main(void)
{
	Suite *suite = suite_create("tools/options");
	TCase *parser = tcase_create("parser"), *mount = tcase_create("mount options");

	tcase_add_checked_fixture(parser, quiet, forget);
	tcase_add_test(parser, options_and_operands_mix);
	tcase_add_test(parser, two_dashes_end_the_options);
	tcase_add_test(parser, a_value_follows_or_is_attached);
	tcase_add_test(parser, mount_options_add_up_others_do_not);
	tcase_add_test(parser, wrong_options_are_refused);
	tcase_add_test(parser, wrong_values_are_refused);
	tcase_add_test(parser, operands_are_counted);
	tcase_add_test(parser, help_wins_over_missing_operands);
	tcase_add_test(parser, tables_are_whole);
	suite_add_tcase(suite, parser);
	tcase_add_checked_fixture(mount, quiet, forget_mounting);
	tcase_add_test(mount, mount_options_are_sorted_by_kind);
	tcase_add_test(mount, generic_mount_options_are_taken);
	tcase_add_test(mount, the_last_of_ro_and_rw_counts);
	tcase_add_test(mount, wrong_mount_options_are_refused);
	suite_add_tcase(suite, mount);
	return test_main(suite);
}
