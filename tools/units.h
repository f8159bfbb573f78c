/*
 * units.h - numbers and times as people write them.
 */
#ifndef TOOLS_UNITS_H
#define TOOLS_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits and nothing else, 0 to INT64_MAX. */
bool units_parse_number(const char *text, int64_t *ret_number);
/* A whole number with s, m, h, d, w or y (365 days) after it; "0" needs no unit. False also if it does not fit. */
bool units_parse_duration(const char *text, int64_t *ret_ns);

#endif
