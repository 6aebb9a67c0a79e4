#include "report/count.h"

void count_append(struct buf *out, size_t n)
{
	if (n < 1000) {
		buf_appendf(out, "%zu", n);
		return;
	}
	count_append(out, n / 1000);
	buf_appendf(out, ",%03zu", n % 1000);
}
