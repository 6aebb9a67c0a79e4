/* A check run's conclusion (check_output.c) and its text (check_text.c). Private to report/. */
#ifndef REPORT_CHECK_INTERNAL_H
#define REPORT_CHECK_INTERNAL_H

#include "report/check_output.h"

enum {
	CHECK_TEXT_MAX_BYTES = 60000, /* GitHub takes 65,535 characters */
	CHECK_TITLE_MAX_CHARS = 200,
};

/* How a job ended, as its check run tells it. */
enum job_end {
	END_RUNNING,
	END_FAILED,    /* with something that may come from the change */
	END_UNHEALTHY, /* the same, of an accelerator that does not count now */
	END_EXCUSED,   /* all that is red is KNOWN, BASE or FLAKY */
	END_CANCELLED, /* or superseded, before it reported */
	END_MISSED,    /* the vendor gave no result */
	END_PASSED,
	END_DONE, /* measured only */
	END_SKIPPED,
};

/* The cells of one job. */
struct tally {
	size_t n[N_TEST_STATUSES], n_cells;
	size_t n_counting, n_new, n_excused; /* of those that are FAIL or ERROR */
	size_t n_rerunning;                  /* of them, by an experiment */
	bool has_own_cells;                  /* or may have, in a view that was cut */
};

/* NEW or UNCLASSIFIED, or not attributed at all. */
bool check_counts(const struct verdict_view *w);

/* Fills in the summary and the annotations. */
void check_describe_job(const struct change_view *v, size_t accelerator, const struct job_view *job,
    enum job_end end, const struct check_options *o, struct check_output *ret);

#endif
