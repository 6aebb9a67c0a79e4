/* Secrets that must not be shown: each becomes `***`, also when it arrives in pieces, overlaps
 * another or is cut off by the end.
 *
 * A guard against accidents: a program that wants to tell its secrets can encode them. */
#ifndef STEPS_MASKS_H
#define STEPS_MASKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { MASK_MIN_BYTES = 4 }; /* shorter ones would mask half of any text */

struct masks;
struct masks *masks_new(void);
void masks_free(struct masks *m); /* wipes them; NULL is fine */
/* The value, and each line of it. What is shorter than MASK_MIN_BYTES is left out. */
void masks_add(struct masks *m, const char *value);
/* The text without them. free(). */
char *masks_text(const struct masks *m, const char *text);

/* The same for a stream. */
struct mask_stream {
	const struct masks *masks;
	struct buf held; /* may be the beginning of a secret */
	size_t n_masked; /* so many bytes at its front are known to belong to one */
	bool is_inside;  /* the last thing written was a mask that may go on */
};
void mask_stream_init(struct mask_stream *s, const struct masks *m);
void mask_stream_release(struct mask_stream *s);
/* Appends to out what is certain; no more is held than the longest secret. */
void mask_stream_feed(struct mask_stream *s, const char *p, size_t n, struct buf *out);
/* No more is coming; ready for the next stream. */
void mask_stream_end(struct mask_stream *s, struct buf *out);

#endif
