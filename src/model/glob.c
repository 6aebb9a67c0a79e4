#include "model/trigger.h"

#include <stddef.h>

/* Where a [set] ends (its ']'), or NULL when it never does. */
static const char *set_end(const char *p)
{
	const char *q = p + 1;

	if (*q == '!' || *q == '^')
		q++;
	if (*q == ']')
		q++;
	while (*q && *q != ']')
		q++;
	return *q ? q : NULL;
}

static bool set_has(const char *p, const char *end, char c)
{
	const char *q = p + 1;
	bool is_negated = *q == '!' || *q == '^', found = false;

	if (is_negated)
		q++;
	for (; q < end; q++) {
		if (q[1] == '-' && q + 2 < end) {
			found |= c >= q[0] && c <= q[2];
			q += 2;
		} else {
			found |= c == *q;
		}
	}
	return found != is_negated && c != '/';
}

/* One pattern element that is not a star against one character; 0: no match, else its length. */
static size_t match_one(const char *p, char c)
{
	const char *end;

	if (*p == '?')
		return c != '/' ? 1 : 0;
	if (*p == '[' && (end = set_end(p)) != NULL)
		return set_has(p, end, c) ? (size_t)(end - p) + 1 : 0;
	return *p == c ? 1 : 0;
}

/* The classic two-restart-point matcher: a `*` is tried again within its folder, a `**`
 * anywhere, the last of each only, so the time is at most quadratic. */
bool glob_matches(const char *pattern, const char *path)
{
	const char *p = pattern, *s = path;
	const char *star_p = NULL, *star_s = NULL, *deep_p = NULL, *deep_s = NULL;

	while (*s) {
		size_t n;

		if (p[0] == '*' && p[1] == '*') {
			p += 2;
			/* "a" matches double-star-slash-a: the slash belongs to the star. */
			if (*p == '/' && (p - 2 == pattern || p[-3] == '/'))
				p++;
			deep_p = p;
			deep_s = s;
			star_p = NULL;
			continue;
		}
		if (*p == '*') {
			star_p = ++p;
			star_s = s;
			continue;
		}
		n = *p ? match_one(p, *s) : 0;
		if (n) {
			p += n;
			s++;
		} else if (star_p && *star_s != '/') {
			p = star_p;
			s = ++star_s;
		} else if (deep_p) {
			/* A whole-folder star restarts at a folder's beginning only. */
			bool is_folder_star = deep_p[-1] == '/';

			do
				deep_s++;
			while (is_folder_star && *deep_s && deep_s[-1] != '/');
			star_p = NULL;
			p = deep_p;
			s = deep_s;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

bool glob_is_valid(const char *pattern)
{
	if (*pattern == '\0' || *pattern == '/')
		return false;
	for (const char *p = pattern; *p; p++) {
		if (*p != '[')
			continue;
		p = set_end(p);
		if (!p)
			return false;
	}
	return true;
}
