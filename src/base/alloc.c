#include "base/alloc.h"

#include <stdarg.h>

static void *checked(void *p)
{
	if (!p) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t bytes)
{
	return checked(malloc(bytes ? bytes : 1));
}

void *xcalloc(size_t n, size_t bytes)
{
	return checked(calloc(n ? n : 1, bytes ? bytes : 1));
}

void *xrealloc(void *p, size_t bytes)
{
	return checked(realloc(p, bytes ? bytes : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrdup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
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
	return checked(s);
}
