#include "tools/units.h"

#include <string.h>

#include "store/clock.h"

/* Reads digits up to the first other character. NULL: none, or too many. */
static const char *digits(const char *text, int64_t *ret_number)
{
	int64_t number = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *text - '0', &number))
			return NULL;
	*ret_number = number;
	return text;
}

bool units_parse_number(const char *text, int64_t *ret_number)
{
	int64_t number;
	const char *end = digits(text, &number);

	if (!end || *end)
		return false;
	*ret_number = number;
	return true;
}

bool units_parse_duration(const char *text, int64_t *ret_ns)
{
	static const struct {
		char letter;
		int64_t seconds;
	} units[] = { { 's', 1 },     { 'm', 60 },	  { 'h', 3600 },
		      { 'd', 86400 }, { 'w', 7 * 86400 }, { 'y', 365 * 86400 } };
	int64_t number;
	const char *end = digits(text, &number);

	if (!end)
		return false;
	if (!*end && number == 0) {
		*ret_ns = 0;
		return true;
	}
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (end[0] != units[i].letter || end[1])
			continue;
		return !__builtin_mul_overflow(number, units[i].seconds * CLOCK_SECOND_NS, ret_ns);
	}
	return false;
}
