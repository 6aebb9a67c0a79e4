/* The command line of bubblewrap: what a step sees of the machine. docs/sandbox.md says it in
 * words; the two must agree. */
#ifndef STEPS_SANDBOX_H
#define STEPS_SANDBOX_H

#include "config/runner_config.h"

struct sandbox_places {
	const char *work;        /* writable, at its own path */
	const char *temporary;   /* becomes /tmp */
	const char *change_file; /* readable; may be NULL */
	char *const *mirrors;    /* readable; may be NULL */
};

/* The arguments that run /bin/sh -c RUN inside, NULL-terminated; strv_free(). */
char **sandbox_argv(
    const struct runner_config *c, const struct sandbox_places *places, const char *run);

#endif
