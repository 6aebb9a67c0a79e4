/* The commit under test as a work tree in the job's work folder. */
#ifndef STEPS_CHECKOUT_H
#define STEPS_CHECKOUT_H

#include "steps/job.h"

/* Blocking. The explanation is git's own last error. ERR_CANCELLED and ERR_TIMEOUT as they are;
 * everything else: the job cannot start. */
int checkout(struct job *j, struct error *e) MUST_CHECK;

#endif
