/* A job's results as a report document, in the three formats that report_file.h reads: what a
 * vendor handed in as one of them can be taken out as another. Pure; the same job gives the same
 * bytes.
 *
 * Read again, each gives back suite, name, dtype, status, duration, message, trace, place, number,
 * link, environment and how many tests were cut. What is lost: a CTRF test always has a duration (0
 * where it is not known); JUnit and CTRF have a trace for red tests only, and the environment's own
 * members that docs/report.md names; JUnit has a message for tests that are red or skipped, and
 * takes a trace's first line where there is none. */
#ifndef REPORT_JOB_DOCUMENT_H
#define REPORT_JOB_DOCUMENT_H

#include "model/job_detail.h"
#include "report/report_file.h"

/* At most REPORT_FILE_MAX_BYTES: where it would be longer, traces go first, then messages and links.
 * A job without results of its own has the one row that its cell shows (contract 6). NULL: it has
 * not ended, and nothing was reported. free(). */
char *job_document(enum report_format f, const struct job_detail *d, size_t *ret_bytes);

/* "application/xml; charset=utf-8", … */
const char *job_document_type(enum report_format f);

#endif
