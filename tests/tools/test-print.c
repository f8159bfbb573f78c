/* Names, sizes, times and progress as people see them; units as people write them; bytes in JSON. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/bytes.h"
#include "store/clock.h"
#include "store/item.h"
#include "store/util.h"
#include "tests/lib/test.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/units.h"

static void check_quoted(const char *bytes, const char *expected)
{
	_cleanup_free_ char *quoted = print_quoted(bytes);

	ck_assert_str_eq(quoted, expected);
}

START_TEST(plain_names_stay_plain)
{
	check_quoted("report.txt", "report.txt");
	check_quoted("a/b@2026-11-30T16:25:39Z", "a/b@2026-11-30T16:25:39Z");
	check_quoted("Größe_日本", "Größe_日本");
}
END_TEST

START_TEST(what_the_shell_takes_apart_is_quoted)
{
	check_quoted("two words", "'two words'");
	check_quoted("it's", "'it'\\''s'");
	check_quoted("", "''");
	check_quoted("-rf", "'-rf'");
	check_quoted("$HOME", "'$HOME'");
	check_quoted("back\\slash", "'back\\slash'");
}
END_TEST

START_TEST(what_a_terminal_obeys_is_escaped)
{
	check_quoted("new\nline", "$'new\\nline'");
	check_quoted("\033[31mred", "$'\\e[31mred'");
	check_quoted("bad\xff'q\\", "$'bad\\377\\'q\\\\'");
	check_quoted("right\xe2\x80\xaeleft", "$'right\\342\\200\\256left'"); /* U+202E turns the line around */
	check_quoted("c1\xc2\x9b", "$'c1\\302\\233'");
	check_quoted("cut\xe2\x82", "$'cut\\342\\202'");
}
END_TEST

/* Whatever two bytes a name holds. */
START_TEST(no_quoted_name_holds_a_control_character)
{
	for (unsigned first = 1; first < 256; first++)
		for (unsigned second = 1; second < 256; second += 7) {
			const char bytes[] = { (char)first, (char)second, 'x', '\0' };
			_cleanup_free_ char *quoted = print_quoted(bytes);

			for (const char *c = quoted; *c; c++)
				ck_assert_msg((uint8_t)*c >= 0x20 && *c != 0x7f, "byte %02x in %s",
					      (uint8_t)*c, quoted);
		}
}
END_TEST

START_TEST(sizes_have_their_unit)
{
	char b[PRINT_SIZE_MAX];

	ck_assert_str_eq(print_size(0, b), "0 B");
	ck_assert_str_eq(print_size(1023, b), "1023 B");
	ck_assert_str_eq(print_size(1024, b), "1.0 KiB");
	ck_assert_str_eq(print_size(1536, b), "1.5 KiB");
	ck_assert_str_eq(print_size((UINT64_C(1) << 20) - 1, b), "1.0 MiB");
	ck_assert_str_eq(print_size(UINT64_MAX, b), "16.0 EiB");
}
END_TEST

START_TEST(times_have_their_zone)
{
	char b[PRINT_TIME_MAX];

	setenv("TZ", "XXX-5:30", 1);
	tzset();
	ck_assert_str_eq(print_time(INT64_C(1796055939) * 1000000000, b), "2026-11-30T21:55:39+05:30");
	ck_assert_str_eq(print_time(ITEM_FOREVER, b), "never");
	ck_assert_str_eq(print_time(0, b), "-");
	ck_assert_str_eq(print_time_exact(INT64_C(1796055939000000001), b),
			 "2026-11-30T16:25:39.000000001Z");
}
END_TEST

START_TEST(times_before_1970_are_exact_too)
{
	char b[PRINT_TIME_MAX];

	ck_assert_str_eq(print_time_exact(0, b), "1970-01-01T00:00:00.000000000Z");
	ck_assert_str_eq(print_time_exact(-1, b), "1969-12-31T23:59:59.999999999Z");
	ck_assert_str_eq(print_time_exact(INT64_C(-1000000000), b), "1969-12-31T23:59:59.000000000Z");
	ck_assert_str_eq(print_time_exact(INT64_C(-1500000000), b), "1969-12-31T23:59:58.500000000Z");
	ck_assert_str_eq(print_time_exact(INT64_MIN, b), "1677-09-21T00:12:43.145224192Z");
}
END_TEST

START_TEST(durations_have_two_units)
{
	char b[PRINT_TIME_MAX];

	ck_assert_str_eq(print_duration(INT64_C(30) * 86400 * 1000000000, b), "30 d");
	ck_assert_str_eq(print_duration(INT64_C(90061) * 1000000000, b), "1 d 1 h");
	ck_assert_str_eq(print_duration(INT64_C(61) * 1000000000, b), "1 min 1 s");
	ck_assert_str_eq(print_duration(5, b), "less than 1 s");
	ck_assert_str_eq(print_duration(ITEM_FOREVER, b), "forever");
}
END_TEST

START_TEST(numbers_and_durations_are_exact_or_refused)
{
	static const char *const wrong[] = {
		"", "s", "5", "-1s", "1.5h", "1h ", " 1h", "1hh", "1M", "9223372036854775807s", "99999999999999999999s", "0x1s"
	};
	int64_t n;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
		ck_assert_msg(!units_parse_duration(wrong[i], &n), "%s was taken", wrong[i]);
	ck_assert(units_parse_duration("0", &n) && n == 0);
	ck_assert(units_parse_duration("90s", &n) && n == INT64_C(90) * 1000000000);
	ck_assert(units_parse_duration("4w", &n) && n == INT64_C(28) * 86400 * 1000000000);
	ck_assert(units_parse_number("9223372036854775807", &n) && n == INT64_MAX);
	ck_assert(!units_parse_number("9223372036854775808", &n));
	ck_assert(!units_parse_number("+1", &n));
}
END_TEST

/* ---- bytes in JSON ------------------------------------------------------------ */

/* What a terminal would obey is written as JSON can: the value is the same. */
START_TEST(json_for_a_terminal_is_harmless)
{
	static const char bytes[] = "del\x7f c1\xc2\x9b"
				    "31m \xe2\x80\xae"
				    "bidi \xf3\xa0\x80\x81 \xc3\xa9 \n\033";
	json_t *object = json_object(), *back;
	_cleanup_free_ char *text = NULL, *read = NULL;

	ck_assert_int_eq(bytes_to_json(object, "k", bytes), 0);
	text = print_json_text(object);
	ck_assert_str_eq(text, "{\"k\":\"del\\u007F c1\\u009B31m \\u202Ebidi \\uDB40\\uDC01 \xc3\xa9 \\n\\u001B\"}");
	back = json_loads(text, 0, NULL);
	ck_assert_int_eq(bytes_from_json(back, "k", &read), 0);
	ck_assert_str_eq(read, bytes);
	json_decref(back);
	json_decref(object);
}
END_TEST

static void check_json(const char *bytes, const char *expected)
{
	_cleanup_free_ char *text = NULL, *back = NULL;
	json_t *object = json_object();

	ck_assert_int_eq(bytes_to_json(object, "k", bytes), 0);
	text = json_dumps(object, JSON_COMPACT);
	ck_assert_str_eq(text, expected);
	ck_assert_int_eq(bytes_from_json(object, "k", &back), 0);
	ck_assert_str_eq(back, bytes);
	json_decref(object);
}

START_TEST(bytes_survive_json)
{
	check_json("plain", "{\"k\":\"plain\"}");
	check_json("\n\"", "{\"k\":\"\\n\\\"\"}");
	check_json("", "{\"k\":\"\"}");
	check_json("a\xff", "{\"k\":\"a\xef\xbf\xbd\",\"k_hex\":\"61ff\"}");
	check_json("\xc0\x80", "{\"k\":\"\xef\xbf\xbd\xef\xbf\xbd\",\"k_hex\":\"c080\"}"); /* overlong */
	check_json("\xed\xa0\x80",
		   "{\"k\":\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"k_hex\":\"eda080\"}"); /* surrogate */
}
END_TEST

START_TEST(wrong_bytes_in_json_are_refused)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "{}", -ENOENT },
		{ "{\"k\": 5}", -EINVAL },
		{ "{\"k\": \"a\\u0000b\"}", -EINVAL },
		{ "{\"k_hex\": \"6\"}", -EINVAL },
		{ "{\"k_hex\": \"6g\"}", -EINVAL },
		{ "{\"k_hex\": \"6100\"}", -EINVAL },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *object = json_loads(cases[i].text, JSON_ALLOW_NUL, NULL);
		_cleanup_free_ char *bytes = NULL;

		ck_assert_ptr_nonnull(object);
		ck_assert_int_eq(bytes_from_json(object, "k", &bytes), cases[i].result);
		json_decref(object);
	}
}
END_TEST

/* What progress shows on `shown` (which `seen` reads) in its first second, and after that. */
static void show_progress(int shown, int seen, char ret_early[256], char ret_late[256])
{
	int saved = dup(STDERR_FILENO);
	struct progress p;
	ssize_t got;

	dup2(shown, STDERR_FILENO);
	progress_begin(&p, "restoring");
	progress_show(&p, 5, 10);
	got = read(seen, ret_early, 255);
	ret_early[util_max(got, (ssize_t)0)] = '\0';
	p.begun_ns -= 2 * CLOCK_SECOND_NS;
	progress_show(&p, 6, 10);
	progress_clear(&p);
	got = read(seen, ret_late, 255);
	ret_late[util_max(got, (ssize_t)0)] = '\0';
	dup2(saved, STDERR_FILENO);
	close(saved);
}

START_TEST(progress_is_for_terminals_and_what_lasts)
{
	_cleanup_close_ int terminal = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
	char early[256], late[256];
	int pipes[2];

	ck_assert_int_ge(terminal, 0);
	ck_assert_int_eq(grantpt(terminal), 0);
	ck_assert_int_eq(unlockpt(terminal), 0);
	slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	ck_assert_int_ge(slave, 0);
	ck_assert_int_eq(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
	show_progress(slave, terminal, early, late);
	ck_assert_str_eq(early, "");
	ck_assert_ptr_nonnull(strstr(late, "restoring [##################------------] 6 of 10"));
	/* Taken away again. */
	ck_assert_str_eq(late + strlen(late) - 4, "\r\033[K");

	ck_assert_int_eq(pipe2(pipes, O_NONBLOCK), 0);
	show_progress(pipes[1], pipes[0], early, late);
	ck_assert_str_eq(early, "");
	ck_assert_str_eq(late, "");
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tools/print");
	TCase *all = tcase_create("all");

	tcase_add_test(all, plain_names_stay_plain);
	tcase_add_test(all, what_the_shell_takes_apart_is_quoted);
	tcase_add_test(all, what_a_terminal_obeys_is_escaped);
	tcase_add_test(all, no_quoted_name_holds_a_control_character);
	tcase_add_test(all, sizes_have_their_unit);
	tcase_add_test(all, times_have_their_zone);
	tcase_add_test(all, times_before_1970_are_exact_too);
	tcase_add_test(all, durations_have_two_units);
	tcase_add_test(all, numbers_and_durations_are_exact_or_refused);
	tcase_add_test(all, bytes_survive_json);
	tcase_add_test(all, json_for_a_terminal_is_harmless);
	tcase_add_test(all, wrong_bytes_in_json_are_refused);
	tcase_add_test(all, progress_is_for_terminals_and_what_lasts);
	suite_add_tcase(suite, all);
	return test_main(suite);
}
