/* The variables that a program gets: never ours as they are, which may hold anything. */
#ifndef STEPS_ENVIRONMENT_H
#define STEPS_ENVIRONMENT_H

#include "steps/job.h"

struct environment {
	char **list; /* "NAME=value", NULL-terminated: for execve() */
	size_t n;
};

void environment_release(struct environment *v); /* wipes it: there are secrets in it */

/* All add to *v, zero at first; a later value of a name replaces the earlier one. */
/* What every step gets: a basic system's, `environment`, `secrets`, and what the job is. */
void environment_of_step(struct environment *v, const struct job *j);
/* The environment of the git program: a few variables of ours, and `home`, a folder with the settings that
 * git reads as the user's. git asks no person for a password. GIT_FOR_OPERATOR: also the operator's
 * proxies, ssh agent and Kerberos tickets, which are never for a change's URLs. `proxy`: the one proxy
 * that git uses, NULL: none of ours. It may hold a password, so it is not an argument of git: every user
 * of the machine can read those. */
enum git_environment { GIT_FOR_NOBODY, GIT_FOR_OPERATOR };
void environment_of_git(
    struct environment *v, const char *home, enum git_environment whose, const char *proxy);
/* What a program gets that tries what the machine can do: a basic system's. */
void environment_of_check(struct environment *v);

#endif
