/* The newest bytes of a stream. */
#ifndef STEPS_TAIL_H
#define STEPS_TAIL_H

#include <stddef.h>

#include "base/buf.h"

struct tail {
	struct buf bytes; /* up to twice max: trimmed now and then, not at every byte */
	size_t max;
	size_t n_dropped;
};

void tail_init(struct tail *t, size_t max_bytes);
void tail_release(struct tail *t);
void tail_clear(struct tail *t);
void tail_add(struct tail *t, const char *p, size_t n);
/* Cuts to max, at the beginning of a character. After it t->bytes is the tail. */
void tail_trim(struct tail *t);

#endif
