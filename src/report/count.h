/* Private to report/. */
#ifndef REPORT_COUNT_H
#define REPORT_COUNT_H

#include <stddef.h>

#include "base/buf.h"

/* "1,234,567": easier to read, and seven bare digits GitHub may take for a commit. */
void count_append(struct buf *out, size_t n);

#endif
