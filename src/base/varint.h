/* Numbers in as few bytes as they need, for what is stored by the thousand. */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Seven bits a byte, the lowest first; the top bit says that more follow. */
void varint_put(struct buf *out, uint64_t v);
/* The number at *p, which moves behind it. False: there is none before `end`, or it is longer than
 * eight bytes, which no number of ours is. */
bool varint_get(const uint8_t **p, const uint8_t *end, int64_t *ret);

#endif
