/* Whose fault a failure is, as far as evidence goes: KNOWN, BASE, FLAKY, NEW, in this order, else UNCLASSIFIED.
 * docs/attribution.md has every rule with the scenario that requires it. Pure: the store collects the facts
 * (store/attribution_facts.h).
 *
 * Rule guarded here: a failure that a change caused is never excused. Evidence excuses; similarity does not, and
 * each fact that is not known counts against an excuse. */
#ifndef MODEL_ATTRIBUTION_H
#define MODEL_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/failure_text.h"
#include "model/states.h"
#include "model/statistics.h"

#define ATTRIBUTIONS(X)                                                                            \
	X(KNOWN) /* an issue is registered for it */                                               \
	X(BASE)  /* red before this change as well */                                              \
	X(FLAKY) /* fails without a reason in the change */                                        \
	X(NEW)   /* green on the merge base */                                                     \
	X(UNCLASSIFIED)

enum attribution {
#define X(e) ATTRIBUTION_##e,
	ATTRIBUTIONS(X)
#undef X
	    N_ATTRIBUTIONS /* not red, nothing to attribute */
};
const char *attribution_name(enum attribution a);           /* "KNOWN" …; NULL: nothing */
enum attribution attribution_parse(const char *name);       /* N_ATTRIBUTIONS: none; NULL is fine */
bool attribution_counts_against_change(enum attribution a); /* NEW, UNCLASSIFIED */
/* Whether a cell of this status is attributed at all: FAIL and ERROR. A MISS gave no result, so nothing
 * can show whose it is: it stays UNCLASSIFIED and is the vendor's to look at. */
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
	bool is_experiment;       /* the outcome is an experiment's, or one agrees with it */
	struct failure_mark mark; /* where it is red or mixed */
	bool varies;              /* its runs on this commit failed alike, but with other numbers */
	int distance; /* commits before the merge base; 0: the merge base itself; negative: newer */
	int64_t job;
	char sha[41];
};

/* One failure: a test, red in one job in one way. Everything below is about the same test in the same job. */
struct attribution_facts {
	struct failure_mark mark;
	bool is_specific; /* no unrelated incident is known that says the same */
	bool
	    is_outage; /* most tests of its job say the same, or tests of unrelated changes do at the same time */
	bool is_job_outage;     /* the first of these: more than half of its job's tests */
	bool is_push;           /* its change is a pushed commit, whose base is its parent */
	bool takes_experiments; /* experiments can still show more: the runner takes them */
	const char *known_url;  /* of the first known issue that matches; NULL: none */

	bool is_base_known; /* the merge base is known */
	int max_distance;   /* so many commits from the merge base a tested one may be to count */
	/* Tested commits of the branch near the merge base, newest first (the distance grows). */
	const struct base_run *base;
	size_t n_base;
	/* Between the red runs around the merge base a commit took something back, or put it in again. */
	bool has_revert_near;
	/* Since the branch was green a commit landed that names this pull request: it has landed before. */
	bool has_own_landing;
	/* … or one of the same author. */
	bool has_own_commit;
	/* Between the red runs around the merge base a commit touches a file of the change, or is one that it reverts. */
	bool has_related_commit;
	/* The author, or somebody who touches the same files, had a change that failed so and may have landed, before
	 * anybody else's did. */
	bool may_be_own;

	/* On this very commit, besides the failure itself. */
	int64_t passed_here_job; /* the newest pass; 0: none */
	int n_failed_again;      /* other attempts and experiments that were red as well */
	bool numbers_vary; /* two of its failures on one commit differ in their numbers alone */
	/* In this pull request, over all its heads. */
	struct rate here;

	/* On changes of other people. */
	struct rate elsewhere; /* their runs, and those that failed so */
	int n_seen;            /* on so many changes it failed so */
	int n_proved; /* of these: independent ones on which it failed and passed on one commit */
};

struct attribution_result {
	enum attribution attribution; /* N_ATTRIBUTIONS: the rule does not apply */
	int64_t evidence_job;         /* 0: none */
	const char *known_url;        /* KNOWN: borrowed from the facts */
	unsigned
	    needs; /* NEEDS_HEAD | NEEDS_BASE (model/experiment.h): these would help to decide */
	char reason[200]; /* one line of our own words, no Markdown; never empty */
};

struct attribution_result attribute(const struct attribution_facts *f);
/* UNCLASSIFIED, where there is nothing to compare. */
struct attribution_result attribution_without_facts(const char *reason);
/* A test that is red in several jobs or in several ways is excused only if each of these failures is: the result that
 * stands for both. `needs` is what either needs. */
struct attribution_result attribution_worse(
    const struct attribution_result *a, const struct attribution_result *b);

#endif
