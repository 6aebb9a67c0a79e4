#include "web/byte_range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Digits at *s; false when there are none. One past what is counted is as good as the most. */
static bool read_number(const char **s, int64_t *ret)
{
	const char *begin = *s;

	for (*ret = 0; **s >= '0' && **s <= '9'; (*s)++)
		*ret = *ret > INT64_MAX / 10 - 1 ? INT64_MAX / 10 : *ret * 10 + (**s - '0');
	return *s != begin;
}

static enum byte_range last_bytes(int64_t n, int64_t bytes, int64_t *ret_from, int64_t *ret_to)
{
	if (n == 0 || bytes == 0)
		return BYTE_RANGE_UNSATISFIABLE;
	*ret_from = n < bytes ? bytes - n : 0;
	*ret_to = bytes;
	return BYTE_RANGE_PART;
}

enum byte_range byte_range_parse(
    const char *text, int64_t bytes, int64_t *ret_from, int64_t *ret_to)
{
	static const char unit[] = "bytes=";
	bool has_from, has_to;
	int64_t from, to;

	if (!text || strncasecmp(text, unit, strlen(unit)) != 0)
		return BYTE_RANGE_NONE;
	text += strlen(unit);
	has_from = read_number(&text, &from);
	if (*text++ != '-')
		return BYTE_RANGE_NONE;
	has_to = read_number(&text, &to);
	if (*text || (!has_from && !has_to) || (has_from && has_to && to < from))
		return BYTE_RANGE_NONE;
	if (!has_from)
		return last_bytes(to, bytes, ret_from, ret_to);
	if (from >= bytes)
		return BYTE_RANGE_UNSATISFIABLE;
	*ret_from = from;
	*ret_to = has_to && to < bytes - 1 ? to + 1 : bytes;
	return BYTE_RANGE_PART;
}
