/* What the database knows of the failures of one accelerator in one change, as the rules of model/attribution.h want
 * it: attribution_facts.c reads the failures, attribution_runs.c how the same tests did in the same jobs on this commit,
 * on the base and in experiments, attribution_elsewhere.c what other changes say. Inside a writer's transaction; every
 * question has an index and a bound, so that a report of 20,000 red tests does not hold the writer. */
#ifndef STORE_ATTRIBUTION_FACTS_H
#define STORE_ATTRIBUTION_FACTS_H

#include "model/attribution.h"
#include "store/db.h"
#include "store/key.h"

/* Evidence counts only from the same job: its runner, workflow and name, whatever its id. */
struct job_name {
	char *runner, *workflow, *name;
	int64_t
	    own_test; /* the test that stands for the job itself, where it is one of the cells; 0: it is not */
	size_t first_failure, n_failures;
};

enum {
	FAILURES_MAX = 64, /* of one cell; with more nothing excuses it */
	COMPARED_MAX =
	    2000, /* failures of one report that are looked for elsewhere; more at once are no flakes */
	OUTAGES_MAX = 32, /* jobs that failed with one key, the newest */
};

/* A test, red in one job in one way. */
struct red_failure {
	size_t cell, job; /* in the lists of the case */
	int64_t test_id, job_id;
	struct attribution_facts facts; /* facts.base is this: */
	struct base_run *base;
	struct seen { /* in the run that is being read */
		bool has_pass, has_red, has_skip, is_alike;
		struct failure_mark mark; /* the red one; the one that is alike if there is one */
		int64_t job_id;
	} seen;
};

struct red_cell {
	int64_t test_id;
	char *suite, *test, *dtype;
	int n_failures;      /* FAILURES_MAX: there may be more */
	size_t last_failure; /* while they are read: the last that was found */
	char *known_url;
	/* as it stands; was_reason NULL: not looked at yet */
	enum attribution was;
	char *was_reason, *was_url;
	int64_t was_job;
	unsigned was_needs;
};

struct attribution_case {
	struct db *d;
	int64_t change_id, number, now_ms; /* number: a PR of it, 0: none */
	const char *accelerator;
	int64_t window_ms;
	int distance;
	bool is_push;
	struct repository_key key;
	char *head_sha, *ref, *merge_base_sha, *author; /* ref: the branch, without refs/heads/ */
	struct red_cell *cells;                         /* by test_id */
	size_t n_cells;
	struct job_name *jobs; /* in which one of the cells is red */
	size_t n_jobs;
	struct red_failure *failures; /* by job, then test_id */
	size_t n_failures;
	struct outages { /* of the last key that was asked for */
		int64_t key, at_ms[OUTAGES_MAX];
		size_t n;
	} outages;
};

/* The change, its red cells that are attributed at all, and their failures. False: there is nothing to attribute.
 * attribution_case_release() either way. Set in the facts: mark, is_push. */
bool attribution_case_read(struct attribution_case *c);
void attribution_case_release(struct attribution_case *c);

/* Another run of a job: an attempt, or the same job on another commit. */
struct job_run {
	size_t job;
	int64_t id, n_tests;
};
/* What the tests that failed in that job did in this run of it: `seen` of each of its failures. */
void attribution_read_run(struct attribution_case *c, const struct job_run *run);
/* Adds one result to what was seen of a failure. */
void attribution_see(struct red_failure *f, enum test_status status,
    const struct failure_mark *mark, int64_t job_id);
/* What was seen of it is another run of its own commit: counts it where it is red. */
void attribution_failed_again(struct red_failure *f);
/* One more outcome on a commit of the base branch, in `base` of the facts. A failure in an outage counts like a skipped
 * test. */
void attribution_add_base(
    struct attribution_case *c, struct red_failure *f, const struct base_run *run);
/* Whether most tests of a job of this accelerator failed with the key within twelve hours of the end of that job. */
bool attribution_is_outage(struct attribution_case *c, int64_t key, int64_t job_id);

/* The failures of a test in a job: the first of *ret_n; they are neighbours. */
struct red_failure *attribution_failures_of(
    const struct attribution_case *c, size_t job, int64_t test_id, size_t *ret_n);

/* NULL: not known, which may be the same person. */
bool attribution_is_same_author(const char *a, const char *b);

/* Each of these fills in the facts that it names, of all failures, and reads no other fact but `mark`. */
void attribution_read_own_runs(
    struct attribution_case *c); /* passed_here_job, n_failed_again, numbers_vary, here */
void attribution_read_base_runs(
    struct attribution_case *c); /* is_base_known, base, has_revert_near */
void attribution_read_experiments(
    struct attribution_case *c); /* adds to those; takes_experiments */
/* has_own_landing, has_own_commit, has_related_commit; after the two above */
void attribution_read_landed(struct attribution_case *c);
void attribution_read_meaning(
    struct attribution_case *c); /* is_specific, is_outage, is_job_outage */
/* may_be_own, elsewhere, n_seen, n_proved; only of failures that the other facts do not decide. */
void attribution_read_elsewhere(struct attribution_case *c);

#endif
