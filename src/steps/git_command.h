/* The git program, run for a job: nobody is asked anything, no hook and no setting of a
 * repository under test counts, its progress goes to the job's log once a second. */
#ifndef STEPS_GIT_COMMAND_H
#define STEPS_GIT_COMMAND_H

#include "steps/job.h"

struct git_end {
	bool is_done;       /* it exited with 0 */
	bool is_missing;    /* the other side does not have, or does not give, what was asked for */
	char message[1024]; /* the line that says why not; "" when done */
};

/* Blocking. `args` end with NULL. ERR_CANCELLED, ERR_TIMEOUT: the job's time is over; otherwise 0
 * or it could not be run at all. */
int git_run(struct job *j, const char *folder, const char *const *args, struct git_end *ret,
    struct error *e) MUST_CHECK;
/* The same, and fails with the message when git does. */
int git_must(
    struct job *j, const char *folder, const char *const *args, struct error *e) MUST_CHECK;
/* What it prints, without the last line break; "" when it fails. Nothing of it is logged.
 * free(). */
int git_ask(struct job *j, const char *folder, const char *const *args, char **ret,
    struct error *e) MUST_CHECK;
/* The same with all of it, which may hold NUL bytes. */
int git_ask_bytes(struct job *j, const char *folder, const char *const *args, char **ret,
    size_t *ret_n, struct error *e) MUST_CHECK;

#endif
