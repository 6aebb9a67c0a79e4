/* An experiment: named tests run again at a named commit, to prove whose a failure is. Pure.
 *
 * The request is what a runner gets of it: `outpost.experiment` of a repository_dispatch or webhook, and the same
 * object in the lease that outpost-runner gets. */
#ifndef MODEL_EXPERIMENT_H
#define MODEL_EXPERIMENT_H

#include <stddef.h>
#include <stdint.h>

/* Whether red tests of a runner may run again by themselves (`reruns` in the accelerator's file). */
enum reruns {
	RERUNS_NONE,  /* they may not */
	RERUNS_TESTS, /* the runner runs just the named tests */
	RERUNS_WHOLE, /* the runner runs everything again */
	N_RERUNS
};
const char *reruns_name(enum reruns r);     /* "none", "tests", "whole" */
enum reruns reruns_parse(const char *name); /* RERUNS_NONE for any other text */

/* Which of the two commits of a pull request an experiment tests. */
enum experiment_side { EXPERIMENT_HEAD, EXPERIMENT_BASE, N_EXPERIMENT_SIDES };
const char *experiment_side_name(enum experiment_side s);     /* "head", "base" */
enum experiment_side experiment_side_parse(const char *name); /* N_EXPERIMENT_SIDES: neither */

/* The sides that would help to decide a red cell, as bits (verdict.needs). */
enum { NEEDS_HEAD = 1 << 0, NEEDS_BASE = 1 << 1 };

/* A list of more tests is not a request. */
enum { EXPERIMENT_TESTS_MAX = 500 };

struct experiment_request {
	int64_t id;
	char *of; /* the dispatch that it explains */
	enum experiment_side side;
	char *sha;         /* the commit to test */
	char **tests;      /* "suite/test", NULL-terminated, never NULL */
	char **jobs;       /* names of the jobs in which they failed; NULL-terminated, never NULL */
	char *environment; /* JSON: what the failed job reported of its machine; NULL: nothing */
};
void experiment_request_release(struct experiment_request *r);

#endif
