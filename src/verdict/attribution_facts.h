/* Collects the facts about the red cells of one accelerator in one change, for the rules of model/attribution.h. Private to
 * verdict/attribution*.c and known_issues.c: attribution_facts.c reads the cells and their failures and calls the functions
 * of the other files, one for each question.
 *
 * Thread: the writer, inside a transaction. Ownership: the case owns all its texts and lists until
 * attribution_case_release(). Each query has an index and a bound, so that a report of 20,000 red tests does not block the
 * writer. */
#pragma once

#include "db/db.h"
#include "db/record_rows.h"
#include "model/attribution.h"

/* Evidence counts only from the same job: the same runner, workflow and name. */
struct job_name {
	char *runner, *workflow, *name;
	int64_t own_test; /* the test that stands for the job itself; 0: it is not one of the cells */
	size_t first_failure, n_failures;
};

enum {
	FAILURES_MAX = 64, /* of one cell; with more nothing excuses it */
	COMPARED_MAX =
	    2000, /* failures of one report that are compared with other changes; more at once are not flakes */
	OUTAGES_KNOWN = 64,
};

/* A test, red in one job in one way. */
struct red_failure {
	size_t cell, job; /* in the lists of the case */
	size_t next_of_cell;
	int64_t test_id, job_id;
	struct attribution_facts facts; /* facts.base is this: */
	struct base_run *base;
	struct seen { /* in the run that is being read */
		bool has_pass, has_red, has_skip, is_alike;
		bool has_waited;          /* an experiment ran it, and it had waited for a good machine */
		struct failure_mark mark; /* of a red result; of one that is alike if there is one */
		int64_t job_id;
	} seen;
};

#define RED_CELL_RECORD(F, S)                                                                                          \
	F(S, ID, test_id, NULL, "v.test_id", "")                                                                       \
	F(S, TEST_STATUS, status, NULL, "v.status", "")                                                                \
	F(S, ATTRIBUTION, was, NULL, "v.attribution", "")                                                              \
	F(S, TEXT, was_reason, NULL, "v.reason", "NULL: not attributed yet.")                                          \
	F(S, ID, was_job, NULL, "v.evidence_job", "")                                                                  \
	F(S, TEXT, was_url, NULL, "v.evidence_url", "")                                                                \
	F(S, INT, was_needs, NULL, "v.needs", "")
struct red_cell { /* without its test's name, which few cells need: attribution_mark() */
	RECORD_MEMBERS(RED_CELL_RECORD)
	int n_failures; /* FAILURES_MAX: there may be more */
	/* The first of its failures, which red_failure.next_of_cell continues; while the failures are read, the newest one. */
	size_t failure;
	char *known_url;
};
RECORD_DECLARE(red_cell);

#define ATTRIBUTED_CHANGE_RECORD(F, S)                                                                                 \
	F(S, BOOL, is_push, NULL, "kind = 'push'", "")                                                                 \
	F(S, TEXT, repository_key, NULL, "repository_key", "")                                                         \
	F(S, TEXT, head_sha, NULL, "head_sha", "")                                                                     \
	F(S, TEXT, full_ref, NULL, "COALESCE(base_ref, ref, '')", "")                                                  \
	F(S, TEXT, merge_base_sha, NULL, "merge_base_sha", "")                                                         \
	F(S, TEXT, author, NULL, "author", "")

struct attribution_case {
	struct txn *d;
	int64_t change_id, number, now_ms; /* number: a PR of it, 0: none */
	const char *accelerator;
	int64_t window_ms;
	int distance;
	RECORD_MEMBERS(ATTRIBUTED_CHANGE_RECORD)
	const char *ref;        /* the branch: full_ref without refs/heads/ */
	struct red_cell *cells; /* by test_id */
	size_t n_cells;
	struct job_name *jobs; /* with a red cell */
	size_t n_jobs;
	struct red_failure *failures; /* by job, then test_id */
	size_t n_failures;
	struct { /* the last comparison of attribution_is_other_build() */
		int64_t other_job, failed_job;
		bool differ;
	} builds;
	struct { /* the last answers of attribution_is_outage(); thousands of failures may have one message */
		struct known_outage {
			int64_t key, job_id;
			bool is;
		} at[OUTAGES_KNOWN];
		size_t n;
	} outages;
	struct others *others; /* the other changes that fact_elsewhere() has read */
	/* Facts may be collected in several transactions, each of which ends soon after this time; 0: in one. */
	int64_t pause_us;
	bool is_paused;
	size_t n_steps;  /* of this transaction */
	size_t question; /* the next one */
	unsigned filled; /* groups of facts */
	size_t next;     /* the failure that the question begins with */
};
RECORD_DECLARE(attribution_case);

/* Reads the change and its red cells that are attributed at all. False: there is nothing to attribute.
 * attribution_case_release() either way. */
bool attribution_case_read(struct attribution_case *c);
void attribution_case_release(struct attribution_case *c);
/* A transaction that may pause works for so many microseconds, and then up to its next attribution_must_pause(). */
void attribution_begin_part(struct attribution_case *c, int64_t us);
/* Asked after each step of a long loop. It looks at the time once in many steps, so that each part has some. */
bool attribution_must_pause(struct attribution_case *c);
/* NULL: the test has no red cell. */
const struct red_cell *attribution_cell(const struct attribution_case *c, int64_t test_id);
/* The mark of a failure with these texts (each may be NULL). It reads the name of the test. */
struct failure_mark attribution_mark(const struct attribution_case *c, const struct red_cell *cell,
    enum test_status status, const char *message, const char *trace);

/* Another run of a job: an attempt, or the same job on another commit. */
struct job_run {
	size_t job;
	int64_t id, n_tests;
};
/* Sets `seen` of each failure of the job: how the test ended in this run. */
void attribution_read_run(struct attribution_case *c, const struct job_run *run);
/* Adds one result to `seen` of a failure. */
void attribution_see(struct red_failure *f, enum test_status status, const struct failure_mark *mark, int64_t job_id);
/* Whether the reports of both jobs name different devices or versions of the extension, which may be the cause of a
 * failure. */
bool attribution_is_other_build(struct attribution_case *c, int64_t other_job, int64_t failed_job);
/* `seen` is another run of this commit. Counts it if it is red. */
void attribution_failed_again(struct red_failure *f);
/* Adds an outcome on a commit of the base branch to `base` of the facts. A failure in an outage counts like a skipped
 * test. */
void attribution_add_base(struct attribution_case *c, struct red_failure *f, const struct base_run *run);
/* Whether most tests of a job of this accelerator failed with the key within twelve hours of the end of that job. */
bool attribution_is_outage(struct attribution_case *c, int64_t key, int64_t job_id);

/* The failures of a test in a job: the first of *ret_n in a row. */
struct red_failure *attribution_failures_of(
    const struct attribution_case *c, size_t job, int64_t test_id, size_t *ret_n);

/* NULL: not known, and so perhaps the same person. */
bool attribution_is_same_author(const char *a, const char *b);

/* ---- the questions ----
 *
 * Each function asks the database one question about all failures of the case, and fills one group of facts. The table
 * QUESTIONS in attribution_facts.c lists the groups that each function reads and fills. attribution_collect_facts() calls
 * all of them in this order, and checks it. False: it pauses, and goes on with the next call. */
bool attribution_collect_facts(struct attribution_case *c);

/* known_issues.c: which registered issue matches the cell? Records that it matched. */
void fact_known(struct attribution_case *c);
/* attribution_base.c: how did the tests end on the base branch near the merge base, and which commits landed between these
 * runs? */
void fact_branch(struct attribution_case *c);
void fact_landed(struct attribution_case *c);
/* attribution_here.c: how did the tests end in other attempts on this commit and on older heads of the pull request? Can
 * experiments run, and what did the ended ones show on the head and on the merge base? */
void fact_this_commit(struct attribution_case *c);
void fact_accepts_experiments(struct attribution_case *c);
void fact_experiments(struct attribution_case *c);
/* attribution_message.c: do unrelated failures have the same message, and which tests of the same job? */
void fact_message(struct attribution_case *c); /* begins with failure c->next, and pauses */
void fact_same_message(struct attribution_case *c);
/* attribution_elsewhere.c: which other changes failed in the same way? Only for failures that the other facts do not decide. */
void fact_elsewhere(struct attribution_case *c); /* begins with failure c->next, and pauses */
void others_free(struct others *o);              /* NULL is fine */
