/*
 * policy-parse.c - policy xattrs in words: names, durations, sizes, switches.
 *
 * What is doubtful is refused with a hint rather than guessed: a retention in
 * milliseconds by mistake would keep (or lose) everything.
 */
#include "lifecycle/internal.h"

#define YEAR_S (INT64_C(365) * 86400)
#define DURATION_MAX_S \
	(200 * YEAR_S) /* keeps any due time within 64 bits of nanoseconds until the year 2062 */
#define VERSIONS_MAX 1000000

static const char *const names[POLICY_VALUES] = {
	[POLICY_RETENTION] = "retention", [POLICY_VERSIONS] = "versions",
	[POLICY_TEMPORARY] = "temporary", [POLICY_GRACE] = "grace",
	[POLICY_TRASH_MAX] = "trash_max", [POLICY_TRASH_MAX_ENTRIES] = "trash_max_entries",
	[POLICY_LOW_SPACE] = "low_space", [POLICY_PROTECT] = "protect",
	[POLICY_HOLD] = "hold",
};

/* What follows either prefix, or NULL. */
static const char *policy_suffix(const char *xattr)
{
	if (strncmp(xattr, POLICY_PREFIX_USER, strlen(POLICY_PREFIX_USER)) == 0)
		return xattr + strlen(POLICY_PREFIX_USER);
	if (strncmp(xattr, POLICY_PREFIX_TRUSTED, strlen(POLICY_PREFIX_TRUSTED)) == 0)
		return xattr + strlen(POLICY_PREFIX_TRUSTED);
	return NULL;
}

bool lifecycle_policy_name(const char *xattr)
{
	return policy_suffix(xattr) != NULL;
}

bool lifecycle_policy_is_stores(const char *xattr)
{
	const char *suffix = policy_suffix(xattr);

	return suffix && !strcmp(suffix, names[POLICY_LOW_SPACE]);
}

static int policy_value_of(const char *xattr, enum policy_value *ret_value)
{
	const char *suffix = policy_suffix(xattr);

	for (int i = 0; suffix && i < POLICY_VALUES; i++)
		if (strcmp(suffix, names[i]) == 0) {
			*ret_value = (enum policy_value)i;
			return 0;
		}
	return -EINVAL;
}

static int refuse(const char **ret_hint, const char *hint)
{
	if (ret_hint)
		*ret_hint = hint;
	return -EINVAL;
}

static bool is_word(const char *text, size_t size, const char *word)
{
	return strlen(word) == size && memcmp(text, word, size) == 0;
}

/* Decimal digits at the start; *ret_used of them. False: none, or more than 64 bits hold. */
static bool parse_number(const char *text, size_t size, int64_t *ret_number, size_t *ret_used)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < size && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, text[i] - '0', &n))
			return false;
	*ret_number = n;
	*ret_used = i;
	return i > 0;
}

static int64_t duration_unit_s(const char *unit, size_t size)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = { { "", 1 },     { "s", 1 },     { "m", 60 },	 { "min", 60 },
		      { "h", 3600 }, { "d", 86400 }, { "w", 7 * 86400 }, { "y", YEAR_S } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (is_word(unit, size, units[i].name))
			return units[i].seconds;
	return 0;
}

static int parse_duration(const char *text, size_t size, bool forever, int64_t *ret_ns,
			  const char **ret_hint)
{
	int64_t number, unit_s;
	size_t used;

	if (is_word(text, size, "forever")) {
		if (!forever)
			return refuse(ret_hint,
				      "this one cannot be forever; give a number with s, m, h, d, w or y");
		*ret_ns = ITEM_FOREVER;
		return 0;
	}
	if (!parse_number(text, size, &number, &used))
		return refuse(ret_hint,
			      "give a number with s, m, h, d, w or y, as 30d; 0 for none; or forever");
	unit_s = duration_unit_s(text + used, size - used);
	if (!unit_s)
		return refuse(ret_hint,
			      "the unit must be one of s, m, h, d, w, y (seconds if there is none)");
	if (number > DURATION_MAX_S / unit_s) {
		if (unit_s == 1 && used >= 12)
			return refuse(ret_hint,
				      "a number without unit is seconds: are these milliseconds?");
		return refuse(ret_hint, "at most 200y, or forever");
	}
	*ret_ns = number * unit_s * CLOCK_SECOND_NS;
	return 0;
}

static int parse_bytes(const char *text, size_t size, int64_t *ret_bytes, const char **ret_hint)
{
	static const char units[] = "KMGTP";
	const char *unit;
	int64_t number;
	size_t used;
	int shift = 0;

	if (is_word(text, size, "none")) {
		*ret_bytes = 0;
		return 0;
	}
	if (!parse_number(text, size, &number, &used) || size - used > 1)
		return refuse(ret_hint,
			      "give a number of bytes, or with K, M, G, T or P; 0 or none for no limit");
	if (used < size) {
		unit = text[used] ? strchr(units, text[used]) : NULL;
		if (!unit)
			return refuse(ret_hint,
				      "the unit must be one of K, M, G, T, P (bytes if there is none)");
		shift = 10 * (int)(unit - units + 1);
	}
	if (number > INT64_MAX >> shift)
		return refuse(ret_hint, "that is more bytes than any file system holds");
	*ret_bytes = number << shift;
	return 0;
}

static int parse_entries(const char *text, size_t size, int64_t *ret_number, const char **ret_hint)
{
	size_t used;

	if (is_word(text, size, "none")) {
		*ret_number = 0;
		return 0;
	}
	if (!parse_number(text, size, ret_number, &used) || used < size)
		return refuse(ret_hint, "give a number of entries; 0 or none for no limit");
	return 0;
}

static int parse_versions(const char *text, size_t size, int64_t *ret_number, const char **ret_hint)
{
	int64_t number;
	size_t used;

	if (!parse_number(text, size, &number, &used) || used < size || number > VERSIONS_MAX)
		return refuse(ret_hint, "give a number from 0 to 1000000");
	*ret_number = number;
	return 0;
}

static int parse_switch(const char *text, size_t size, int64_t *ret_on, const char **ret_hint)
{
	static const char *const words[] = { "0", "1", "no", "yes", "off", "on", "false", "true" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (is_word(text, size, words[i])) {
			*ret_on = i % 2;
			return 0;
		}
	return refuse(ret_hint, "give yes or no (or 1, 0, on, off, true, false)");
}

int policy_parse_value(const char *xattr, const char *text, size_t size,
		       enum policy_value *ret_which, int64_t *ret_number, const char **ret_hint)
{
	enum policy_value which;
	int result;

	if (policy_value_of(xattr, &which))
		return refuse(ret_hint, "the policies are " POLICY_NAMES);
	*ret_which = which;
	switch (which) {
	case POLICY_RETENTION:
		return parse_duration(text, size, true, ret_number, ret_hint);
	case POLICY_TEMPORARY:
	case POLICY_GRACE:
		result = parse_duration(text, size, false, ret_number, ret_hint);
		return result || *ret_number <= POLICY_GRACE_MAX_NS ? result :
								      refuse(ret_hint, "at most 30d");
	case POLICY_VERSIONS:
		return parse_versions(text, size, ret_number, ret_hint);
	case POLICY_TRASH_MAX:
	case POLICY_LOW_SPACE:
		return parse_bytes(text, size, ret_number, ret_hint);
	case POLICY_TRASH_MAX_ENTRIES:
		return parse_entries(text, size, ret_number, ret_hint);
	default:
		return parse_switch(text, size, ret_number, ret_hint);
	}
}

void policy_set_value(struct policy *policy, enum policy_value which, int64_t number)
{
	switch (which) {
	case POLICY_RETENTION:
		policy->retention_ns = number;
		break;
	case POLICY_VERSIONS:
		policy->versions = (uint32_t)number;
		break;
	case POLICY_TEMPORARY:
		policy->temporary_ns = number;
		break;
	case POLICY_GRACE:
		policy->grace_ns = number;
		break;
	case POLICY_TRASH_MAX:
		policy->trash_max = number;
		break;
	case POLICY_TRASH_MAX_ENTRIES:
		policy->trash_max_entries = number;
		break;
	case POLICY_LOW_SPACE:
		policy->low_space = number;
		break;
	case POLICY_PROTECT:
		policy->protect = number;
		break;
	default:
		policy->hold = number;
		break;
	}
}

int lifecycle_policy_parse(const char *xattr, const char *value, size_t size, struct policy *policy,
			   const char **ret_hint)
{
	enum policy_value which;
	int64_t number;
	int result = policy_parse_value(xattr, value, size, &which, &number, ret_hint);

	if (!result && policy)
		policy_set_value(policy, which, number);
	return result;
}
