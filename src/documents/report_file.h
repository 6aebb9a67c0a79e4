/* Reports of test results as documents: JUnit XML, CTRF JSON and Outpost JSON, in and out (docs/report.md).
 * Pure. Thread: any.
 *
 * The text comes from outside: time, depth, count and size are bounded, no entity is expanded, nothing is
 * fetched. Counts are taken from the cases; totals that a document claims are not read. */
#pragma once

#include "model/change_view.h"
#include "model/job_report.h"

enum { REPORT_FILE_MAX_BYTES = 32 << 20 };

enum report_format { REPORT_JUNIT, REPORT_CTRF, REPORT_OUTPOST, N_REPORT_FORMATS };
const char *report_format_name(enum report_format f);     /* "junit", "ctrf", "outpost" */
enum report_format report_format_parse(const char *name); /* N_REPORT_FORMATS: unknown */
/* Looks at the beginning: XML is JUnit; a JSON object is CTRF or Outpost's, by its members. N_REPORT_FORMATS:
 * neither XML nor a JSON object. */
enum report_format report_format_guess(const char *text, size_t n);

struct report_file {
	struct test_result *tests; /* at most REPORT_TESTS_MAX; green ones are cut first */
	size_t n_tests;
	size_t n_cut; /* cases that were left out */
	/* JSON text or NULL: the document's own object, checked and at most 16 KiB, or an object made from
	 * CTRF's or JUnit's members */
	char *environment;
	char *texts; /* of the tests that borrow theirs; or NULL */
};

/* ERR_INVALID: the text names the place and the mistake ("line 12: …", "tests[3].status …"); also for
 * N_REPORT_FORMATS, and for a document without a single case, because it proves nothing. ERR_TOO_BIG. Owns:
 * the caller, who releases *ret also after an error. */
int report_file_parse(
    enum report_format f, const char *text, size_t n, struct report_file *ret, struct error *e) MUST_CHECK;
/* Both in one: *ret_format is the guess. Reads a document of Outpost's of the usual form only once. */
int report_file_read(
    const char *text, size_t n, enum report_format *ret_format, struct report_file *ret, struct error *e) MUST_CHECK;
/* Moves the cases of `more` to `to`, which may be zero: a job may leave several files. The first environment
 * counts. */
void report_file_merge(struct report_file *to, struct report_file *more);
/* Outpost JSON, version 1, at most REPORT_FILE_MAX_BYTES. If it would be longer, the writer leaves out the
 * traces, then the messages, then the links. The same cases give the same bytes. free(). */
char *report_file_text(const struct report_file *r, size_t *ret_bytes);
void report_file_release(struct report_file *r);

/* A job's results as a document of any format, so that a vendor may upload one format and download another.
 * The same job gives the same bytes, at most REPORT_FILE_MAX_BYTES: if it would be longer, the writer leaves
 * out the traces, then messages and links. A job without results of its own has one row, the same as its
 * cell. NULL: the job has not ended, and nothing was reported. free().
 *
 * Reading the document again restores suite, name, dtype, status, duration, message, trace, file and line,
 * number, link, environment and the number of cut tests, except: a CTRF test without a duration gets 0; JUnit
 * and CTRF keep a trace only for red tests, and only the members of the environment that docs/report.md
 * lists; JUnit keeps a message only for tests that are red or skipped, and uses the first line of the trace
 * if there is none. */
char *job_document(enum report_format f, const struct job_detail *d, size_t *ret_bytes);
/* "application/xml; charset=utf-8" or the like. Static. */
const char *job_document_type(enum report_format f);
