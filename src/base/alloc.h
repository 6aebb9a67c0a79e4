/* Allocation that does not fail: out of memory ends the process. Sizes that a
 * peer chose are checked against a limit before they come here. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

#include "base/err.h"

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t bytes) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull)); /* s not NULL */
char *xstrdup_or_null(const char *s);                                  /* NULL gives NULL */
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) __attribute__((malloc, returns_nonnull));

/* free() and forget, so that ownership ends visibly. */
#define FREE_AND_NULL(p)                                                                           \
	do {                                                                                       \
		free(p);                                                                           \
		(p) = NULL;                                                                        \
	} while (0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct that embeds `member` at `ptr`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
