/* A growing byte buffer with a ceiling. The buffer refuses bytes past the ceiling and remembers it, so many appends
 * need only one buf_status() at the end.
 *
 * Thread: a buffer belongs to one thread at a time. Owns: the buffer owns data, until buf_detach().
 * Invariant: data[len] == '\0' whenever data is not NULL. */
#pragma once

struct buf {
	char *data; /* owned; NULL while empty and never grown */
	size_t len;
	size_t cap;
	size_t max;       /* ceiling for len */
	bool is_overflow; /* an append was refused */
};

#define BUF_INIT(max_bytes)                                                                                            \
	{                                                                                                              \
		.max = (max_bytes)                                                                                     \
	}

void buf_init(struct buf *b, size_t max_bytes);
void buf_release(struct buf *b); /* frees; the buffer is empty and usable again */
void buf_clear(struct buf *b);   /* empties it and keeps the memory */
/* Makes room for n more bytes after len. ERR_TOO_BIG: that would be past the ceiling. */
int buf_reserve(struct buf *b, size_t n);
int buf_append(struct buf *b, const void *p, size_t n);
int buf_append_str(struct buf *b, const char *s);
int buf_append_char(struct buf *b, char c);
int buf_appendf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* 0, or ERR_TOO_BIG if an append was refused since the buffer was last emptied. */
int buf_status(const struct buf *b) MUST_CHECK;
/* The text so far, never NULL. Borrowed. */
const char *buf_str(const struct buf *b);
/* Hands the memory over to the caller (free()); the buffer is empty after it. */
char *buf_detach(struct buf *b);
/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);
