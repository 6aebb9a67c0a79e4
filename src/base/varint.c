#include "base/varint.h"

void varint_put(struct buf *out, uint64_t v)
{
	while (v >= 0x80) {
		buf_append_char(out, (char)(v | 0x80));
		v >>= 7;
	}
	buf_append_char(out, (char)v);
}

bool varint_get(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; *p < end && shift < 56; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = (int64_t)v;
			return true;
		}
	}
	return false;
}
