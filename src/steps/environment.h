/* The variables that a program gets: never ours as they are, which may hold anything. */
#ifndef STEPS_ENVIRONMENT_H
#define STEPS_ENVIRONMENT_H

#include "steps/job.h"

struct environment {
	char **list; /* "NAME=value", NULL-terminated: for execve() */
	size_t n;
};

void environment_release(struct environment *v); /* wipes it: there are secrets in it */

/* Both add to *v, zero at first; a later value of a name replaces the earlier one. */
/* What every step gets: a basic system's, `environment`, `secrets`, and what the job is. */
void environment_of_step(struct environment *v, const struct job *j);
/* What the git program gets: ours, for proxies and the operator's own git settings, but never
 * another GIT_ variable, and nobody is asked for a password. */
void environment_of_git(struct environment *v);

#endif
