/* How long things took: times of some rows, and what most of them did not pass. */
#ifndef STORE_PERCENTILE_H
#define STORE_PERCENTILE_H

#include "base/buf.h"
#include "store/db.h"

struct times {
	int64_t *ms; /* none is below 0 */
	size_t n, max;
};

struct times times_new(size_t max); /* times_release() */
void times_release(struct times *t);
/* A column of a row; NULL is no time, nor is one behind the first max. */
void times_add(struct times *t, const struct rows *r, int column);
void times_add_ms(struct times *t, int64_t ms);
/* As bytes for a column, and from it; NULL is none. Sorts t. */
void times_pack(struct times *t, struct buf *out);
void times_add_packed(struct times *t, const struct rows *r, int column);
/* The smallest that `percent` of them do not pass; -1: there is none. */
int64_t percentile(const struct times *t, size_t percent);

#endif
