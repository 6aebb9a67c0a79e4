/* The conclusion and the text of a check run, from a change view. Pure. Thread: any.
 *
 * Only L4 may fail (L3 if the operator has chosen CRCR's rule), and only for failures that the change may have caused.
 * A failure on the vendor's side is neutral, because a neutral required check run does not block a merge. */
#pragma once

#include "text/table.h"

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
	struct check_annotation *annotations; /* failures that count against the change come first */
	size_t n_annotations;                 /* at most CHECK_ANNOTATIONS_MAX */
};
void check_output_release(struct check_output *c);

/* One job, v->accelerators[accelerator].jobs[job]. A job that its vendor left in progress is over once its
 * dispatch has ended. */
void check_output_of_job(const struct change_view *v, size_t accelerator, size_t job, const struct check_options *o,
    struct check_output *ret);
/* The one for merge bots: always neutral; `text` is a fenced block with verdict_json() of text/summary.h. */
void check_output_of_verdict(const struct table *t, const struct check_options *o, struct check_output *ret);
/* One that ends without a result of its job: `title` and `summary` are our own words, static. */
void check_output_of_closed(const char *conclusion, const char *title, const char *summary, struct check_output *ret);

/* ---- private to check_output.c and check_text.c, which writes the text about one job ---- */

enum {
	CHECK_TEXT_MAX_BYTES = 60000, /* GitHub accepts 65,535 characters */
	CHECK_TITLE_MAX_CHARS = 200,
};

/* How a job ended, for its check run. */
enum job_end {
	END_RUNNING,
	END_FAILED,    /* with a failure that the change may have caused */
	END_UNHEALTHY, /* the same, on an accelerator that does not count now */
	END_EXCUSED,   /* all red cells are KNOWN, BASE or FLAKY */
	END_CANCELLED, /* or superseded, before it reported */
	END_MISSED,    /* the vendor gave no result */
	END_PASSED,
	END_DONE, /* measured only */
	END_SKIPPED,
};

/* NEW or UNCLASSIFIED, or not attributed at all. */
bool check_verdict_counts(const struct verdict_view *w);

/* Fills in the summary and the annotations. */
void check_describe_job(const struct change_view *v, size_t accelerator, const struct job_view *job, enum job_end end,
    const struct check_options *o, struct check_output *ret);
