/* One step of a job: its program, inside or outside of the sandbox, and what the log says of it. */
#ifndef STEPS_STEP_H
#define STEPS_STEP_H

#include "steps/job.h"

/* Blocking. Adds the outcome to j->result. *ret_ok: it exited with 0 and the next may run;
 * otherwise the conclusion and its message are set. */
void step_run(struct job *j, const struct runner_step *step, bool *ret_ok);

/* Sets how the job ends, unless that is known already. */
void job_conclude(struct job *j, const char *conclusion, const char *fmt, ...) PRINTF(3, 4);

#endif
