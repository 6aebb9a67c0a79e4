/* Bubblewrap around a step: what the step sees of the machine. docs/sandbox.md says it in words;
 * the two must agree. */
#ifndef STEPS_SANDBOX_H
#define STEPS_SANDBOX_H

#include "config/runner_config.h"

struct sandbox_places {
	const char *work;        /* writable, at its own path */
	const char *temporary;   /* becomes /tmp */
	const char *change_file; /* readable; may be NULL */
	const char *tests_file;  /* readable; may be NULL */
	char *const *mirrors;    /* readable; may be NULL */
};

struct sandbox {
	char **argv; /* runs /bin/sh -c RUN inside; NULL-terminated */
	/* bubblewrap's other arguments, which name the machine's folders, are not on its command
	 * line, because the step can read that; and the system call filter */
	int args_fd, filter_fd;
};

/* For a child_spec with the same two descriptors. The program starts once for each sandbox_open().
 * sandbox_close() also after a failure. */
int sandbox_open(const struct runner_config *c, const struct sandbox_places *places,
    const char *run, struct sandbox *ret, struct error *e) MUST_CHECK;
void sandbox_close(struct sandbox *s);

#endif
