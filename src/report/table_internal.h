/* How a table is put together. Private to table*.c. */
#ifndef REPORT_TABLE_INTERNAL_H
#define REPORT_TABLE_INTERNAL_H

#include "report/table.h"

struct table_entry {
	const char *suite, *test, *dtype;
	size_t column;
	const struct verdict_view *verdict; /* or */
	const struct job_view *job;         /* in progress */
};

/* Entries, rows and failures, and what columns count of them. column_of: by the view's index of
 * an accelerator; SIZE_MAX: it is not shown to anybody. */
void table_add_rows(struct table *t, const size_t *column_of);

#endif
