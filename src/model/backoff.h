/* When to try again: exponential with jitter between 1 s and 15 min, 24 h in all. */
#ifndef MODEL_BACKOFF_H
#define MODEL_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_MS   INT64_C(1000)
#define BACKOFF_LONGEST_MS (INT64_C(15) * 60 * 1000)
#define BACKOFF_GIVE_UP_MS (INT64_C(24) * 3600 * 1000)

/* Delay before try number n_attempts + 1. random01 in [0,1). A positive retry_after_ms
 * (what the peer asked for) is a lower bound. */
int64_t backoff_delay_ms(int n_attempts, int64_t retry_after_ms, double random01);
/* True when a thing first tried at first_ms may not be tried again at next_ms. */
bool backoff_is_over(int64_t first_ms, int64_t next_ms);

#endif
