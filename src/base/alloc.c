#include "base/alloc.h"

#include <stdarg.h>
#include <stdint.h>

static void *checked_memory(void *p)
{
	if (!p) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t bytes)
{
	return checked_memory(malloc(bytes ? bytes : 1));
}

void *xcalloc(size_t n, size_t bytes)
{
	return checked_memory(calloc(n ? n : 1, bytes ? bytes : 1));
}

void *xrealloc(void *p, size_t bytes)
{
	return checked_memory(realloc(p, bytes ? bytes : 1));
}

void *array_grow(void *array, size_t n, size_t bytes)
{
	size_t total;

	if (n & (n - 1))
		return array;
	if (__builtin_mul_overflow(n ? 2 * n : 1, bytes, &total))
		return checked_memory(NULL);
	return xrealloc(array, total);
}

char *xstrdup(const char *s)
{
	return checked_memory(strdup(s));
}

char *xstrdup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
	return checked_memory(strndup(s, n));
}

void *xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *xasprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return checked_memory(s);
}

void free_all(void *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
}
