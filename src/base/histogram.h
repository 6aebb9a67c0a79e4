/* How long things take, counted in the buckets that Prometheus wants, from half a millisecond to a
 * minute. Zero-initialise. Not for two threads at once. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#include "base/buf.h"

enum { HISTOGRAM_BUCKETS = 14 };

struct histogram {
	int64_t counts[HISTOGRAM_BUCKETS + 1]; /* the last: longer than every bound */
	int64_t sum_us;
};
/* Less than 0 counts as 0: a wall clock may have gone back. */
void histogram_add(struct histogram *h, int64_t us);
/* Adds what `more` counted. */
void histogram_merge(struct histogram *h, const struct histogram *more);
/* Appends its lines, without HELP and TYPE. labels: "kind=\"page\"" or "". */
void histogram_write(
    struct buf *out, const struct histogram *h, const char *name, const char *labels);

#endif
