/* The two clocks, and RFC 3339 (UTC) in and out. Functions that decide take
 * now_ms as an argument; only the edges read a clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

int64_t clock_wall_ms(void); /* since 1970; may jump: for records only */
int64_t clock_mono_ms(void); /* never jumps: for timeouts */

#define RFC3339_BYTES 32

/* "2026-11-20T12:00:00Z" into out (RFC3339_BYTES). Returns out. Fractions are dropped. */
const char *rfc3339_format(int64_t wall_ms, char *out);
/* Parses RFC 3339 section 5.6 (any offset, fraction allowed). ERR_INVALID otherwise. */
int rfc3339_parse(const char *s, int64_t *ret_wall_ms) MUST_CHECK;

#endif
