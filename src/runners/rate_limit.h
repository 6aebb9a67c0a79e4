/* So many calls a minute for each name, counted in one window for all, in bounded memory. */
#ifndef RUNNERS_RATE_LIMIT_H
#define RUNNERS_RATE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_limit;

/* At most keys_max names in one minute; calls of further ones are over the limit. */
struct rate_limit *rate_limit_new(int calls_per_minute, size_t keys_max);
void rate_limit_free(struct rate_limit *l); /* NULL is fine */
/* Counts a call of `key` (compared without case). False when it is over the limit; then
 * *ret_retry_after_s says when the next window starts (at least 1). */
bool rate_limit_take(
    struct rate_limit *l, const char *key, int64_t now_mono_ms, int *ret_retry_after_s);

#endif
