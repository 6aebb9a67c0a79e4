/* The report files that the steps left, as the job's report.json. */
#ifndef STEPS_REPORT_PICKUP_H
#define STEPS_REPORT_PICKUP_H

#include "steps/job.h"
#include "steps/report_find.h"

/* `before`: what the patterns matched before the first step: a file that came with the checkout
 * and that no step touched says nothing about this run.
 *
 * 0: all is well; *ret_has_report tells whether there is a report.json. ERR_INVALID: a report is
 * missing, wrong or too large, or the job was cancelled; the explanation says which; report.json may be there all the same, from the
 * good files. ERR_IO and the like: it could not be written. */
int report_pickup(struct job *j, const struct found_files *before, bool *ret_has_report,
    struct error *e) MUST_CHECK;

#endif
