/* A report document (JUnit XML, CTRF JSON, Outpost JSON) as results: contract 6.1. Pure; the
 * text is a stranger's: bounded in time, depth, count and size, no entity is expanded, nothing
 * is fetched.
 *
 * Counts are taken from the cases; totals that a document claims are not read. */
#ifndef REPORT_REPORT_FILE_H
#define REPORT_REPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "model/job_report.h"

enum { REPORT_FILE_MAX_BYTES = 32 << 20 };

enum report_format { REPORT_JUNIT, REPORT_CTRF, REPORT_OUTPOST, N_REPORT_FORMATS };
const char *report_format_name(enum report_format f);     /* "junit", "ctrf", "outpost" */
enum report_format report_format_parse(const char *name); /* N_REPORT_FORMATS: none */
/* By its beginning: XML is JUnit; a JSON object is Outpost's or CTRF by its members.
 * N_REPORT_FORMATS: neither XML nor a JSON object. */
enum report_format report_format_guess(const char *text, size_t n);

struct report_file {
	struct test_result *tests; /* at most REPORT_TESTS_MAX; worst ones are never what is cut */
	size_t n_tests;
	size_t n_cut; /* cases that were left out */
	/* Outpost's: the object as JSON text, checked and at most 16 KiB; CTRF's: made of its
	 * own; or NULL */
	char *environment;
};

/* ERR_INVALID: "line 12: …" or "tests[3].status …" says what is wrong and where; also for
 * N_REPORT_FORMATS, and for a document without a single case: it proves nothing. ERR_TOO_BIG.
 * Release also after a failure. */
int report_file_parse(enum report_format f, const char *text, size_t n, struct report_file *ret,
    struct error *e) MUST_CHECK;
/* Adds the cases of `more` (emptied) to `to`, as when a job leaves several files. The first
 * environment counts. `to` may be zero. */
void report_file_merge(struct report_file *to, struct report_file *more);
/* As Outpost JSON, version 1, at most REPORT_FILE_MAX_BYTES: where it would be longer, traces
 * go first, then messages, then links. The same cases give the same bytes. free(). */
char *report_file_text(const struct report_file *r, size_t *ret_bytes);
void report_file_release(struct report_file *r);

#endif
