/* Allocation that does not fail: running out of memory ends the process. The caller checks sizes that a
 * peer chose against a limit first. Owns: the caller, with free(), or an arena. Thread: any. */
#pragma once

#include "base/err.h"

void *xmalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t bytes) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull)); /* s not NULL */
char *xstrdup_or_null(const char *s);                                  /* NULL gives NULL */
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) __attribute__((malloc, returns_nonnull));

/* Frees p and sets it to NULL, so that the owner cannot use it again. */
#define FREE_AND_NULL(p)                                                                                               \
	do {                                                                                                           \
		free(p);                                                                                               \
		(p) = NULL;                                                                                            \
	} while (0)

/* Frees each of the pointers: FREE_ALL(r->name, r->url); NULL is fine. */
#define FREE_ALL(...) free_all((void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))
void free_all(void *const *list, size_t n);

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Adds one element to the end of `array`, which has `n` elements, and gives its address; its content is not set:
 *
 *   *ARRAY_PUSH(list->jobs, list->n_jobs) = (struct job){.id = id};
 *
 * The room doubles when n is a power of two, so n pushes cost O(n). Start with NULL and 0 and let only this macro grow
 * the array; it may be cut by lowering n. free() it. Both arguments are evaluated more than once. */
#define ARRAY_PUSH(array, n) ((array) = array_grow((array), (size_t)(n), sizeof(*(array))), &(array)[(n)++])
void *array_grow(void *array, size_t n, size_t bytes) __attribute__((returns_nonnull));

/* The struct that embeds `member` at `ptr`. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- arenas: memory that is freed as a whole ----
 *
 * Everything that belongs to one record or list comes from one arena, so its owner needs one release instead of one
 * free() for each text and array. The arena owns all memory that it returned, until arena_release(): do not free() any
 * of it. An arena belongs to one thread at a time. */
struct arena_block;

/* Zero-initialise. An empty arena holds no memory and needs no release. */
struct arena {
	struct arena_block *blocks; /* the newest first */
};

/* `bytes` zero bytes, aligned for every type. Never NULL: running out of memory ends the process. */
void *arena_alloc(struct arena *a, size_t bytes) __attribute__((returns_nonnull));
/* The same for an array of n elements. Aborts if the product overflows. */
void *arena_array(struct arena *a, size_t n, size_t bytes) __attribute__((returns_nonnull));
/* A copy of p[0..n). */
void *arena_memdup(struct arena *a, const void *p, size_t n) __attribute__((returns_nonnull));
/* A copy of s; NULL gives NULL. */
char *arena_strdup(struct arena *a, const char *s);
/* Frees everything; the arena is empty and usable again. */
void arena_release(struct arena *a);
