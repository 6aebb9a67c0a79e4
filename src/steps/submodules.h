/* The submodules of a work tree, and theirs, each by way of a mirror of its own: the second job
 * with the same ones fetches nothing.
 *
 * .gitmodules is the change's, so everything in it is a stranger's: its URLs reach what anybody on
 * the internet reaches and what checkout.allow_networks lists (relay.h), never with a login of
 * ours; its paths are those of git's own tree; nothing that git would run or obey is taken from
 * it. */
#ifndef STEPS_SUBMODULES_H
#define STEPS_SUBMODULES_H

#include "steps/job.h"

/* All below the work folder; relative URLs start from `url`. With the mirrors' lock. */
int submodules_check_out(struct job *j, const char *url, struct error *e) MUST_CHECK;

#endif
