/* The cause of a failure, as far as the evidence shows it: KNOWN, BASE, FLAKY, NEW, in this order, or else
 * UNCLASSIFIED. docs/attribution.md has the decision table, and every rule with the scenario that requires it.
 *
 * A failure that a change caused is never excused. So only evidence excuses a failure, similarity does not, and each
 * unknown fact counts against an excuse.
 *
 * Thread: any; pure functions. Ownership: results borrow known_url from the facts, which borrow all their pointers.
 * verdict/attribution_facts.h collects the facts. */
#pragma once

#include "model/failure_text.h"
#include "model/states.h"
#include "model/statistics.h"

#define ATTRIBUTIONS(X)                                                                                                \
	X(KNOWN) /* an issue is registered for it */                                                                   \
	X(BASE)  /* red before this change, too */                                                                     \
	X(FLAKY) /* passed in another run on this commit, before or after */                                           \
	X(NEW)   /* green on the merge base */                                                                         \
	X(UNCLASSIFIED)

/* A comment about red cells waits this long for the evidence, and then shows the known part. GitHub mostly answers
 * within two seconds. */
enum { EVIDENCE_WAIT_MS = 15 * 1000 };

#define ATTRIBUTION_VALUE(e) ATTRIBUTION_##e,
/* N_ATTRIBUTIONS: the cell is not red, so it has no attribution */
enum attribution { ATTRIBUTIONS(ATTRIBUTION_VALUE) N_ATTRIBUTIONS };
#define RECORD_C_ATTRIBUTION enum attribution
#define RECORD_T_ATTRIBUTION RECORD_WORD, &attribution_words
WORDS_DECLARE(attribution);
bool attribution_counts_against_change(enum attribution a); /* NEW, UNCLASSIFIED */
/* FAIL and ERROR are attributed. A MISS has no result, so nothing can show its cause: it stays UNCLASSIFIED. */
bool attribution_applies(enum test_status s);

/* How the test ended in the failed job on one commit of the base branch. */
enum base_outcome {
	BASE_GREEN,
	BASE_RED,
	BASE_MIXED, /* both on this commit */
	BASE_SKIPPED,
};
struct base_run {
	enum base_outcome outcome;
	bool is_experiment;          /* the outcome is an experiment's, or one agrees with it */
	struct failure_mark mark;    /* where it is red or mixed */
	bool varies;                 /* its runs on this commit failed alike, but with different numbers */
	int n_red, n_red_alike;      /* runs and experiments there that failed; and that failed alike */
	int64_t experiment_ended_ms; /* of the first one with this outcome; 0: none */
	bool is_other_build;         /* it documents another device or version of the extension */
	int distance;                /* commits before the merge base; 0: the merge base itself; negative: newer */
	int64_t job;
	char sha[41];
};

/* One failure: a test, red in one job in one way. Everything below is about the same test in the same job. */
struct attribution_facts {
	struct failure_mark mark;
	bool is_specific;   /* no unrelated incident is known that says the same */
	bool is_outage;     /* most tests of its job say the same, or tests of unrelated changes do at the same time */
	bool is_job_outage; /* the first of these: more than half of its job's tests */
	bool is_alike_settled;    /* attribution_is_settled_outage() of another of these */
	bool is_push;             /* its change is a pushed commit, whose base is its parent */
	bool accepts_experiments; /* experiments can still show more: the runner takes them */
	bool lacks_experiment;    /* its runner takes them, but one gave no result */
	const char *known_url;    /* of the first known issue that matches; NULL: none */

	bool is_base_known; /* the merge base is known */
	int max_distance;   /* a tested commit farther from the merge base does not count */
	/* Tested commits of the branch near the merge base, newest first (the distance grows). */
	const struct base_run *base;
	size_t n_base;
	/* Between the red runs around the merge base a commit reverts something, or lands it again. */
	bool has_revert_near;
	/* Since the branch was green a commit landed that names this pull request: it has landed before. */
	bool has_own_landing;
	/* … or one of the same author. */
	bool has_own_commit;
	/* Between the red runs around the merge base a commit touches a file of the change, or is one that it reverts. */
	bool has_related_commit;
	/* Of pull requests whose merge base lies between them: those that passed this test, and those of other authors
	 * that failed alike. */
	int n_passed_near, n_red_near;
	/* The first change that failed alike and may have landed is the author's, or touches the same files. */
	bool may_be_own;

	/* On this very commit, besides the failure itself. */
	int64_t
	    passed_here_job; /* the newest pass of an experiment, else of another attempt or an older round; 0: none */
	bool passed_on_other_build; /* but on another device or version of the extension */
	/* Another test that failed alike in this job did not run again, or failed alike again: it may have broken this one. */
	bool is_alike_red;
	bool is_alike_green;          /* one of them passed when it ran again */
	int n_failed_again;           /* other attempts and experiments that were red, too */
	int n_failed_so_again;        /* of these: in the same words */
	int64_t experiment_failed_ms; /* when the newest one on the head that was red began; 0: none */
	int n_alike_again;            /* sum of n_failed_so_again over all failures of this commit with this key */
	bool numbers_vary;            /* two of its failures on one commit differ in their numbers alone */
	/* In this pull request, over all its heads. */
	struct rate here;
	struct rate here_whole; /* without experiments: other tests ran before this one */

	/* On changes of other authors. */
	struct rate elsewhere; /* their runs, and those that failed alike */
	int n_seen;            /* changes on which it failed alike */
	int n_proved;          /* of these: independent ones on which it failed and passed on one commit */
};

struct attribution_result {
	enum attribution attribution; /* N_ATTRIBUTIONS: the rule does not apply */
	int64_t evidence_job;         /* 0: none */
	const char *known_url;        /* KNOWN: borrowed from the facts */
	unsigned needs;               /* experiments that would help to decide: NEEDS_… (model/experiment.h) */
	char reason[200];             /* one line of Outpost's own words, no Markdown; never empty */
};

/* Most tests of the job have one message, because of a bad machine or of the change. This test failed in every run,
 * also after the merge base had passed in an experiment. So the change is the cause. */
bool attribution_is_settled_outage(const struct attribution_facts *f);
struct attribution_result attribute(const struct attribution_facts *f);
/* UNCLASSIFIED, for a failure that cannot be compared. */
struct attribution_result attribution_without_facts(const char *reason);
/* The result for a cell with both failures: the more severe one, because a cell is excused only if each of its failures
 * is. `needs` has the needs of both. */
struct attribution_result attribution_worse(const struct attribution_result *a, const struct attribution_result *b);
