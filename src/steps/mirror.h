/* The bare repository that all jobs with one git_url share: a commit that was fetched once is
 * not fetched again. Under a lock of its own, so that several jobs may use it at once.
 *
 * What is fetched is kept by refs/outpost/DEPTH/SHA; the name is made of a checked SHA and never
 * of anything that a stranger chose. */
#ifndef STEPS_MIRROR_H
#define STEPS_MIRROR_H

#include "steps/job.h"

/* Makes sure that the job's commit, and no other, is there; sets j->mirror. *ret_lock: keeps others
 * from changing it until it is closed. Set also when it fails, or -1. */
int mirror_fetch(struct job *j, int *ret_lock, struct error *e) MUST_CHECK;
/* Forgets old commits and lets git clean up. After the job is over; failures are no matter. */
void mirror_tidy(struct job *j);

#endif
