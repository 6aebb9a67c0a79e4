#include "base/strv.h"

#include <strings.h>

#include "base/alloc.h"

void strv_free(char **v)
{
	for (char **p = v; p && *p; p++)
		free(*p);
	free(v);
}

size_t strv_len(const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

bool strv_contains(const char *const *v, const char *s)
{
	for (; v && *v; v++)
		if (strcmp(*v, s) == 0)
			return true;
	return false;
}

bool strv_contains_nocase(const char *const *v, const char *s)
{
	for (; v && *v; v++)
		if (strcasecmp(*v, s) == 0)
			return true;
	return false;
}

void strv_add(char ***v, const char *s)
{
	size_t n = strv_len((const char *const *)*v);

	*v = xrealloc(*v, (n + 2) * sizeof(**v));
	(*v)[n] = xstrdup(s);
	(*v)[n + 1] = NULL;
}

char **strv_copy(const char *const *v)
{
	size_t n = strv_len(v);
	char **copy = xcalloc(n + 1, sizeof(*copy));

	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(v[i]);
	return copy;
}
