/* Periodic runs as rows: what op_schedule.c, op_schedule_run.c and a vendor's self-report share.
 * Inside a writer's transaction. */
#ifndef STORE_SCHEDULE_RUNS_H
#define STORE_SCHEDULE_RUNS_H

#include "model/source_head.h"
#include "store/db.h"
#include "store/schedules.h"

/* X(ENUM, name): why a run is; stored by name */
#define SCHEDULE_CAUSES(X)                                                                         \
	X(SCHEDULE, "schedule")                                                                    \
	X(CAUGHT_UP, "caught_up")     /* it was due while nobody could act */                      \
	X(OPERATOR, "operator")       /* outpostctl nightly run */                                 \
	X(SELF_REPORT, "self_report") /* the vendor's own, told when it was over */

enum schedule_cause {
#define X(e, name) CAUSE_##e,
	SCHEDULE_CAUSES(X)
#undef X
	    N_SCHEDULE_CAUSES
};

/* A new run in state `reading`; its id. */
int64_t schedule_run_begin(struct db *d, const char *accelerator, int64_t due_ms,
    enum schedule_cause cause, int64_t now_ms);
/* It ends without a dispatch: state and outcome are `skipped` or `failed`. */
void schedule_run_end(
    struct db *d, int64_t run_id, const char *state, const char *reason, int64_t now_ms);
/* The accelerator's run that has not ended: its id and due time; 0: none. One whose dispatches
 * have all ended has, whoever did not say so. */
int64_t schedule_run_going(
    struct db *d, const char *accelerator, int64_t now_ms, int64_t *ret_due_ms);
/* "the run of 2026-11-20T02:00:00Z is still going" */
void schedule_going_text(int64_t due_ms, char out[SCHEDULE_REASON_BYTES]);
/* A self-report of this change: it belongs to the run of the same change that began in the last
 * twelve hours, else it is one, which has ended. */
void schedule_run_self_reported(
    struct db *d, int64_t change_id, const char *accelerator, const char *head_sha, int64_t now_ms);
/* The sources of the accelerators for a nightly change, as its newest runs read them: appended to
 * *list, source_head_release() each. */
void schedule_run_source(
    struct db *d, int64_t change_id, const char *accelerator, struct source_head **list, size_t *n);

#endif
