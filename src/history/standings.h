/* The state of each accelerator on upstream's branch (model/accelerator_state.h), and its figures of the last 30 days. Both
 * are read from its runs, days and episodes and never from results, so that a page needs only a few rows.
 *
 * Thread: a reader's or the writer's; upstream_branch_put() runs inside a writer's transaction. */
#pragma once

#include "db/db.h"
#include "db/key.h"
#include "model/accelerator.h"
#include "model/accelerator_state.h"

/* The branch of upstream that states refer to: the first of `upstream.branches`. */
struct upstream_branch {
	struct repository_key repository;
	char name[256];
};

/* Stores it in the database, for readers. repository NULL: it stays as it was; branch NULL: there is no branch. */
void upstream_branch_put(struct txn *d, const char *repository, const char *branch);
struct upstream_branch upstream_branch_read(const struct view *d);

/* *ret is zero, or of an earlier call. If the accelerator is not in the registry's mirror, all members are empty and the state is OFF.
 * standing_release(). */
void standing_read(const struct view *d, const char *accelerator, const struct upstream_branch *u, int64_t now_ms,
    struct standing *ret);

#define QUALITY_DAYS_MS (INT64_C(30) * 86400 * 1000)

struct quality {
	struct level_numbers level; /* the numbers by which its level is judged (model/accelerator.h) */
	int64_t n_push_runs, n_push_green;
	int64_t n_episodes;                                         /* red on an upstream branch */
	bool is_overdue;                                            /* red for more than 72 h now */
	int64_t queue_p50_ms, queue_p90_ms, run_p50_ms, run_p90_ms; /* -1: not known */
	int64_t red_since_ms;       /* of its runs on upstream's branches; 0: it is not red */
	bool is_red_in_silence;     /* only by deadlines that passed without a report */
	int64_t unhealthy_since_ms; /* the circuit breaker; 0: its results count */
};
/* From the days of the last 30 days, and from the runs of the one day that is only partly within that time. */
void quality_read(const struct view *d, const char *accelerator, int64_t now_ms, struct quality *ret);
