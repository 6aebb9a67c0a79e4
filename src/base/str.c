#include "base/str.h"

#include <errno.h>
#include <inttypes.h>

bool str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool str_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

int parse_int64(const char *s, int64_t *ret)
{
	const char *digits = *s == '-' ? s + 1 : s;
	char *end;
	intmax_t value;

	if (*digits < '0' || *digits > '9')
		return ERR_INVALID;
	errno = 0;
	value = strtoimax(s, &end, 10);
	if (errno || *end != '\0' || value < INT64_MIN || value > INT64_MAX)
		return ERR_INVALID;
	*ret = value;
	return 0;
}

/* Length of the valid sequence at s, 0 when there is none within n bytes. */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return n >= 2 && (s[1] & 0xc0) == 0x80 ? 2 : 0;
	if (s[0] >= 0xe0 && s[0] <= 0xef) {
		unsigned char lo = s[0] == 0xe0 ? 0xa0 : 0x80, hi = s[0] == 0xed ? 0x9f : 0xbf;

		return n >= 3 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 ? 3 : 0;
	}
	if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		unsigned char lo = s[0] == 0xf0 ? 0x90 : 0x80, hi = s[0] == 0xf4 ? 0x8f : 0xbf;

		return n >= 4 && s[1] >= lo && s[1] <= hi && (s[2] & 0xc0) == 0x80 &&
			       (s[3] & 0xc0) == 0x80
			   ? 4
			   : 0;
	}
	return 0;
}

bool utf8_is_valid(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + n;

	while (p < end) {
		size_t len = utf8_sequence(p, (size_t)(end - p));

		if (!len)
			return false;
		p += len;
	}
	return true;
}

size_t utf8_cut(const char *s, size_t n, size_t max)
{
	if (n <= max)
		return n;
	while (max > 0 && ((unsigned char)s[max] & 0xc0) == 0x80)
		max--;
	return max;
}

enum { EDIT_MAX = 64 }; /* longer words are not compared */

static size_t edit_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b), row[EDIT_MAX];

	if (n >= EDIT_MAX || m >= EDIT_MAX)
		return EDIT_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t above = row[j], best = diagonal + (a[i - 1] != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[m];
}

static const char *nearer_than(size_t best, const char *s, const char *const *list)
{
	const char *found = NULL;

	for (; *list; list++) {
		size_t d = edit_distance(s, *list);

		if (d < best) {
			best = d;
			found = *list;
		}
	}
	return found;
}

const char *str_nearest(const char *s, const char *const *list)
{
	return nearer_than(1 + strlen(s) / 2, s, list);
}

const char *str_least_far(const char *s, const char *const *list)
{
	return nearer_than(EDIT_MAX, s, list);
}

static bool is_name_part(const char *s, size_t n)
{
	if (n == 0 || n > 100 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
			(s[i] >= '0' && s[i] <= '9') || s[i] == '_' || s[i] == '.' || s[i] == '-'))
			return false;
	return true;
}

bool is_repository_name(const char *s)
{
	const char *slash = strchr(s, '/');

	return slash && is_name_part(s, (size_t)(slash - s)) &&
	       is_name_part(slash + 1, strlen(slash + 1));
}

bool is_sha1(const char *s)
{
	return strspn(s, "0123456789abcdef") == 40 && s[40] == '\0';
}
