/* A program's output as text, piece by piece: what is no UTF-8 becomes U+FFFD, NUL bytes are
 * dropped, and a character that is cut between two pieces is put together again. */
#ifndef STEPS_CLEAN_TEXT_H
#define STEPS_CLEAN_TEXT_H

#include <stddef.h>

#include "base/buf.h"

struct clean_text {
	char held[4]; /* the beginning of a character */
	size_t n_held;
};

/* Appends what is certain. Zero-initialise; nothing to release. */
void clean_text_feed(struct clean_text *c, const char *p, size_t n, struct buf *out);
/* No more is coming: what is held was cut for good. */
void clean_text_end(struct clean_text *c, struct buf *out);

#endif
