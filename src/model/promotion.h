/* How far an accelerator is from the next level, by the criteria of PyTorch's cross-repository CI relay, CRCR
 * (pytorch/rfcs#102, pytorch/test-infra torchci/lib/crcr and clickhouse_queries/crcr_l3_summary). It makes a
 * proposal, never a change: the level is what the vendor's file says. Pure. */
#ifndef MODEL_PROMOTION_H
#define MODEL_PROMOTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"

enum {
	PROMOTION_DAYS = 14,
	DEMOTION_DAYS = 7,
};
#define OVERRUN_MS (INT64_C(3) * 3600 * 1000) /* a job that runs longer overruns */

/* What a level demands; 0 of the last two: does not count. */
struct level_thresholds {
	int64_t tenure_ms;     /* registered at L2 or above, at least */
	int64_t data_ms;       /* since the first job that counts, at least */
	int64_t end_to_end_ms; /* half of the workflow runs take less, from the dispatch on */
	int64_t queue_ms;      /* mean wait of a job for the start of its workflow run: less */
	int overrun_percent;   /* of the jobs that did not time out: less */
	int timeout_percent;   /* of jobs: less */
	int pass_percent;      /* of jobs: at least */
	int deadlines_percent; /* of dispatches that met theirs, at least */
	int64_t reaction_ms;   /* from told of a red main to green, on average, at most */
	/* False: the numbers are necessary and do not suffice. CRCR leaves L4 to the core maintainers. */
	bool is_proposed;
};

/* Completed jobs of pull requests, each name's latest attempt, over some days. */
struct level_window {
	int64_t n_jobs, n_passed, n_timed_out, n_overrun;
	int64_t n_upstream;    /* of those that did not pass: failed by nothing but upstream */
	int64_t end_to_end_ms; /* P50; -1: not known */
	int64_t queue_ms;      /* mean; -1: not known */
};

struct level_numbers {
	struct level_window promotion, demotion; /* of PROMOTION_DAYS and DEMOTION_DAYS */
	int64_t tenure_ms, data_ms;              /* -1: not known */
	int64_t n_dispatches, n_deadlines_met;   /* of 30 days, as reaction_ms */
	int64_t reaction_ms;                     /* -1: never red */
};

enum level_criterion { /* the first that fails is named first */
	CRITERION_TENURE,
	CRITERION_DATA,
	CRITERION_END_TO_END,
	CRITERION_OVERRUN,
	CRITERION_QUEUE,
	CRITERION_TIMEOUT,
	CRITERION_PASS,
	CRITERION_DEADLINES,
	CRITERION_REACTION,
	CRITERION_MAINTAINERS, /* more than numbers is needed */
	N_CRITERIA
};
const char *level_criterion_name(enum level_criterion c); /* "pass_rate", "queue_time", … */

enum level_met { MET_UNKNOWN, MET_NO, MET_YES };
enum level_unit { UNIT_SECONDS, UNIT_SHARE };

/* One criterion, measured. */
struct level_finding {
	enum level_criterion criterion;
	enum level_unit unit;
	bool has_measure;
	double measured, target;
	double
	    with_upstream; /* pass rate: with the failures that upstream caused, as CRCR counts; else as measured */
	/* measured >= target meets it, else measured < target (reaction time: <=) */
	bool is_at_least;
	enum level_met met;
};

enum level_step {
	STEP_UP,   /* what the level demands of one that is to reach it */
	STEP_DOWN, /* what it demands of one that has it: pass rate, timeouts, end-to-end time */
};
/* The criteria of `t` in order; returns how many. */
size_t level_findings(const struct level_numbers *n, const struct level_thresholds *t,
    enum level_step step, struct level_finding ret[N_CRITERIA]);

struct level_proposal {
	enum level level;    /* the one that the numbers carry; equal to the present one: stay */
	unsigned unmet_next; /* bits 1 << enum level_criterion: what the next level still needs */
	unsigned unmet_now;  /* what the present level demands and is not met */
	bool is_silent;      /* no job in the time of a demotion: listed, and nothing is proposed */
};

/* thresholds: of L3 and L4; L2 demands nothing but reports, L1 is the operator's choice and is
 * never proposed nor left. One step at a time. */
struct level_proposal level_propose(enum level now, const struct level_numbers *n,
    const struct level_thresholds *l3, const struct level_thresholds *l4);

#endif
