#include <stdalign.h>

static void *checked_memory(void *p)
{
	if (!p) {
		fputs("out of memory\n", stderr);
		abort();
	}
	return p;
}

void *xmalloc(size_t bytes) { return checked_memory(malloc(bytes ? bytes : 1)); }

void *xcalloc(size_t n, size_t bytes) { return checked_memory(calloc(n ? n : 1, bytes ? bytes : 1)); }

void *xrealloc(void *p, size_t bytes) { return checked_memory(realloc(p, bytes ? bytes : 1)); }

void *array_grow(void *array, size_t n, size_t bytes)
{
	size_t total;

	if (n & (n - 1))
		return array;
	if (__builtin_mul_overflow(n ? 2 * n : 1, bytes, &total))
		return checked_memory(NULL);
	return xrealloc(array, total);
}

char *xstrdup(const char *s) { return checked_memory(strdup(s)); }

char *xstrdup_or_null(const char *s) { return s ? xstrdup(s) : NULL; }

char *xstrndup(const char *s, size_t n) { return checked_memory(strndup(s, n)); }

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

/* ---- arenas ---- */

enum {
	FIRST_BLOCK_BYTES = 1024, /* most records fit into one block */
	BLOCK_BYTES_MAX = 64 * 1024,
};

struct arena_block {
	struct arena_block *next;
	size_t n_used, n_bytes;
	alignas(max_align_t) char data[];
};

/* The address of `bytes` bytes. Each block is twice as large as the one before it, so an arena of any
 * size has few blocks. A piece larger than the next block gets a block of its own size. */
static void *arena_take(struct arena *a, size_t bytes)
{
	struct arena_block *b = a->blocks;
	const size_t align = alignof(max_align_t);
	size_t n_bytes = b ? 2 * b->n_bytes : FIRST_BLOCK_BYTES;

	checked_memory(bytes > SIZE_MAX / 2 ? NULL : a);
	size_t rounded = (bytes + align - 1) / align * align;
	if (!b || b->n_bytes - b->n_used < rounded) {
		if (n_bytes > BLOCK_BYTES_MAX)
			n_bytes = BLOCK_BYTES_MAX;
		if (n_bytes < rounded)
			n_bytes = rounded;
		b = xmalloc(sizeof(*b) + n_bytes);
		b->next = a->blocks;
		b->n_used = 0;
		b->n_bytes = n_bytes;
		a->blocks = b;
	}
	void *p = b->data + b->n_used;
	b->n_used += rounded;
	return p;
}

void *arena_alloc(struct arena *a, size_t bytes) { return memset(arena_take(a, bytes), 0, bytes); }

void *arena_array(struct arena *a, size_t n, size_t bytes)
{
	size_t total;

	/* SIZE_MAX is more than there is, so arena_take() aborts. */
	return arena_alloc(a, __builtin_mul_overflow(n, bytes, &total) ? SIZE_MAX : total);
}

void *arena_memdup(struct arena *a, const void *p, size_t n)
{
	void *copy = arena_take(a, n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s) { return s ? arena_memdup(a, s, strlen(s) + 1) : NULL; }

void arena_release(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *b = a->blocks;

		a->blocks = b->next;
		free(b);
	}
}
