/*
 * entry-name.c - names of older deletions: the name, '@' and the time.
 *
 * There is one spelling of each, so that no form is ever given to two entries.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "lifecycle/internal.h"

static const uint64_t units_ns[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
				     10000,	 1000,	    100,      10,      1 };

/* "name@2026-11-30T16:25:39.041Z" with `digits` (0 to 9) of fraction. */
void entry_name_format(const char *name, uint64_t seq, unsigned digits,
		       char ret_shown[ENTRY_NAME_MAX + 1])
{
	time_t seconds = (time_t)(seq / units_ns[0]);
	uint64_t fraction = seq % units_ns[0] / units_ns[digits];
	char stamp[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	if (digits)
		snprintf(ret_shown, ENTRY_NAME_MAX + 1, "%s@%s.%0*" PRIu64 "Z", name, stamp,
			 (int)digits, fraction);
	else
		snprintf(ret_shown, ENTRY_NAME_MAX + 1, "%s@%sZ", name, stamp);
}

/* Splits such a name. The seqs it can mean are [*ret_from, *ret_to). */
bool entry_name_parse(const char *shown, char ret_name[KEY_NAME_MAX + 1], uint64_t *ret_from,
		      uint64_t *ret_to)
{
	const char *at = strrchr(shown, '@');
	size_t length = at ? (size_t)(at - shown) : 0;
	unsigned digits = 0;
	uint64_t fraction = 0;
	char again[32];
	struct tm tm = { 0 };
	const char *end;
	time_t seconds;

	if (!length || length > KEY_NAME_MAX)
		return false;
	end = strptime(at + 1, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!end)
		return false;
	seconds = timegm(&tm);
	/*
	 * Only the one spelling that entry_name_format uses: no other year of many digits, no 1-digit
	 * month, no 61st second.
	 */
	if (seconds < 0 ||
	    strftime(again, sizeof(again), "%Y-%m-%dT%H:%M:%S", &tm) != (size_t)(end - at - 1) ||
	    memcmp(again, at + 1, (size_t)(end - at - 1)))
		return false;
	if (*end == '.') {
		for (end++; *end >= '0' && *end <= '9' && digits < 9; end++, digits++)
			fraction = fraction * 10 + (uint64_t)(*end - '0');
		if (!digits)
			return false;
	}
	if (strcmp(end, "Z"))
		return false;
	if (__builtin_mul_overflow((uint64_t)seconds, units_ns[0], ret_from) ||
	    __builtin_add_overflow(*ret_from, fraction * units_ns[digits], ret_from) ||
	    __builtin_add_overflow(*ret_from, units_ns[digits], ret_to) || *ret_to > INT64_MAX)
		return false;
	memcpy(ret_name, shown, length);
	ret_name[length] = 0;
	return true;
}

/* The shortest fraction that tells `seq` from its neighbours (0 = none) of the same name. */
unsigned entry_name_digits(uint64_t seq, uint64_t newer, uint64_t older)
{
	static const unsigned steps[] = { 0, 3, 6 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		uint64_t unit = units_ns[steps[i]];

		if (seq / unit != newer / unit && seq / unit != older / unit)
			return steps[i];
	}
	return 9;
}
