/* The verdict in one sentence: the first thing that a maintainer reads. Private to report/. */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include "base/buf.h"
#include "report/table.h"

struct summary_style {
	const char *bold_on, *bold_off;
	void (*append_title)(struct buf *out, const char *title);
};

/* Appends it without a line break: the verdict's sign, what it comes from in bold, then the
 * others. Never says that something passed without a PASS, nor that an unclassified failure is
 * not the change's. */
void summary_append(const struct table *t, const struct summary_style *style, struct buf *out);
/* "1 known, 2 on the base, 3 flaky", or "flaky" where that is all. */
void summary_append_unrelated(const struct table *t, struct buf *out);

#endif
