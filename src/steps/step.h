/* One step of a job: its program, inside or outside of the sandbox, and what the log says of it. */
#ifndef STEPS_STEP_H
#define STEPS_STEP_H

#include "steps/job.h"

/* Blocking. Adds the outcome to j->result. *ret_ok: it exited with 0 and the next may run;
 * otherwise the conclusion and its message are set. */
void step_run(struct job *j, const struct runner_step *step, bool *ret_ok);

/* Runs a shell script as a step is run: in the sandbox if there is one, with the steps'
 * environment. As child_run(); on_text may be NULL. */
int step_run_script(struct job *j, const char *run, int64_t timeout_ms,
    void (*on_text)(void *ctx, const char *p, size_t n), struct child_end *ret,
    struct error *e) MUST_CHECK;

/* Sets how the job ends, unless that is known already. */
void job_conclude(struct job *j, const char *conclusion, const char *fmt, ...) PRINTF(3, 4);
/* The same, and where it is known already, the text is added to the message. */
void job_conclude_also(struct job *j, const char *conclusion, const char *text);

#endif
