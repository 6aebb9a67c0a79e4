/* How far an accelerator is from the next level: 30 days of numbers against thresholds. It makes
 * a proposal, never a change: the level is what the vendor's file says. Pure. */
#ifndef MODEL_PROMOTION_H
#define MODEL_PROMOTION_H

#include <stdbool.h>
#include <stdint.h>

#include "model/accelerator.h"

struct level_thresholds {
	int pass_percent;      /* of push runs, at least */
	int deadlines_percent; /* of dispatches that met theirs, at least */
	int n_runs;            /* completed push runs, at least */
	int64_t queue_ms;      /* 9 of 10 wait at most so long for their start; 0: any */
	int64_t run_ms;        /* 9 of 10 take at most so long; 0: any */
	int64_t reaction_ms;   /* from told of a red main to green, on average, at most; 0: any */
};

struct level_numbers {
	int64_t n_push_runs, n_push_green;
	int64_t n_dispatches, n_deadlines_met;
	int64_t queue_p90_ms, run_p90_ms; /* -1: not known */
	int64_t n_episodes;               /* red on main */
	int64_t reaction_ms;              /* mean of them; -1: none */
	bool is_overdue;                  /* red for more than 72 h now */
};

enum level_criterion { /* the first that fails is named first */
	CRITERION_RUNS,
	CRITERION_PASS,
	CRITERION_DEADLINES,
	CRITERION_QUEUE,
	CRITERION_RUN,
	CRITERION_REACTION,
	CRITERION_OVERDUE,
	N_CRITERIA
};
const char *level_criterion_name(enum level_criterion c); /* "pass_rate", "queue_time", … */

struct level_proposal {
	enum level level;    /* the one that the numbers carry; equal to the present one: stay */
	unsigned unmet_next; /* bits 1 << enum level_criterion: what the next level still needs */
	unsigned unmet_now;  /* what the present level demands and is not met */
};

/* thresholds: of L3 and L4; L2 demands nothing but reports, L1 is the operator's choice and is
 * never proposed nor left. One step at a time. */
struct level_proposal level_propose(enum level now, const struct level_numbers *n,
    const struct level_thresholds *l3, const struct level_thresholds *l4);

#endif
