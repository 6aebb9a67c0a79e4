/* The system call filter that bubblewrap puts on every process of a step: a short list of calls
 * that no test needs and that kernel attacks begin with. All other calls pass. */
#ifndef STEPS_CALL_FILTER_H
#define STEPS_CALL_FILTER_H

#include "config/runner_config.h"

/* The filter as a seccomp program, in a file to be read from its beginning: close(). It holds for
 * the machine's 64-bit calls and for the 32-bit ones that its kernel offers besides. -1: *e. */
int call_filter_open(const struct runner_config *c, struct error *e);

#endif
