/* What a check run says: its conclusion and its text, from a change view. Pure.
 *
 * Rule guarded here: only L4 may fail (L3 where the operator wants what CRCR does), and only for
 * what may come from the change. Whatever is the vendor's is neutral, because a required check run
 * that is neutral lets people merge. */
#ifndef REPORT_CHECK_OUTPUT_H
#define REPORT_CHECK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/change_view.h"

enum { CHECK_ANNOTATIONS_MAX = 200 };

struct check_options {
	const char *public_url; /* ours, without a trailing slash */
	const char *bot;        /* the App's slug; NULL: not known */
	bool l3_may_fail;
};

struct check_annotation {
	char *path;
	int64_t line;
	const char *level; /* static: "failure", "warning", "notice" */
	char *title, *message;
};

struct check_output {
	const char *conclusion;               /* static; NULL: in progress */
	char *title;                          /* plain text, one line */
	char *summary;                        /* Markdown, below 60,000 bytes */
	char *text;                           /* the same; NULL: none */
	struct check_annotation *annotations; /* what counts against the change first */
	size_t n_annotations;                 /* at most CHECK_ANNOTATIONS_MAX */
};
void check_output_release(struct check_output *c);

/* One job, v->accelerators[accelerator].jobs[job]. One that its vendor left in progress although
 * its dispatch has ended is over. */
void check_output_of_job(const struct change_view *v, size_t accelerator, size_t job,
    const struct check_options *o, struct check_output *ret);
/* The one for merge bots: always neutral; `text` is a fenced block with report/verdict_json.h. */
void check_output_of_verdict(
    const struct change_view *v, const struct check_options *o, struct check_output *ret);
/* One that is over without a word about its job: `title` and `summary` are our own, static. */
void check_output_of_closed(
    const char *conclusion, const char *title, const char *summary, struct check_output *ret);

#endif
