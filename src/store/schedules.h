/* Periodic runs: when each accelerator's run is due, and the result of each due time. A run is a row from the moment it is
 * due, so a restarted daemon continues it. One transaction turns it into a `nightly` change with its dispatches. Only
 * schedule_run_enter() changes a state.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/db.h"
#include "db/record_rows.h"
#include "db/store.h"
#include "model/accelerator.h"
#include "model/plan.h"
#include "model/record_states.h"
#include "model/schedule.h"

enum { SCHEDULE_REASON_BYTES = 200 };

/* Why a run exists. */
enum schedule_cause {
	CAUSE_SCHEDULE,
	CAUSE_CAUGHT_UP,   /* it was due while Outpost did not run */
	CAUSE_OPERATOR,    /* outpostctl nightly run */
	CAUSE_SELF_REPORT, /* the vendor's own run, reported when it was over */
};

/* A new run in state `reading`; its id. */
int64_t schedule_run_begin(
    struct txn *d, const char *accelerator, int64_t due_ms, enum schedule_cause cause, int64_t now_ms);
/* The only way from one state to another: `done`, `skipped` and `failed` end the run at now_ms. False when the step is not
 * legal: nothing changes then. */
bool schedule_run_enter(struct txn *d, int64_t run_id, enum schedule_run_state to, int64_t now_ms);
/* Ends a run without a dispatch: `to` is skipped or failed, and its outcome has the same name. */
void schedule_run_end(struct txn *d, int64_t run_id, enum schedule_run_state to, const char *reason, int64_t now_ms);
/* A self-report of this change: it belongs to the run of the same change that began in the last twelve hours; else it
 * becomes a run, which has ended. */
void schedule_run_self_reported(
    struct txn *d, int64_t change_id, const char *accelerator, const char *head_sha, int64_t now_ms);
/* The source of the accelerator for a nightly change, as its newest run read it: appended to *list, source_head_release()
 * each. Any thread. */
void schedule_run_source(
    const struct view *d, int64_t change_id, const char *accelerator, struct source_head **list, size_t *n);

/* An accelerator with a schedule. */
struct schedule_entry {
	const char *accelerator;
	const char *const *crons; /* NULL-terminated, at least one */
	const struct schedule *times;
};

/* A run whose heads are to be read (state `reading`). */
#define SCHEDULE_TASK_RECORD(F, S)                                                                                     \
	F(S, INT, id, NULL, "id", "")                                                                                  \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, TIME, due_ms, NULL, "due_ms", "")
RECORD_STRUCT(schedule_task, SCHEDULE_TASK_RECORD);

/* Updates the table to the entries (other accelerators are never due), and begins the due runs: one for each accelerator,
 * however many due times have passed. While an earlier run continues, or when an operator skips it, the run is `skipped`
 * at once, with the reason. A due time counts once, also when the clock is set back past it. */
struct look_at_schedules {
	struct store_op op;
	const struct schedule_entry *entries;
	size_t n_entries;
	int64_t now_ms;
	/* out: every run in state `reading`, older ones too; look_at_schedules_release() */
	struct schedule_task *tasks;
	size_t n;
	int64_t next_ms; /* when the next one is due; 0: none */
	int n_taken, n_skipped;
};
int store_look_at_schedules(struct store *s, struct look_at_schedules *op) MUST_CHECK;
void look_at_schedules_release(struct look_at_schedules *op);

enum schedule_step {
	SCHEDULE_DISPATCHED,
	SCHEDULE_NOTHING_NEW, /* skipped */
	SCHEDULE_NOBODY,      /* failed: no runner takes it */
	SCHEDULE_GONE,        /* it was no longer in state `reading`; nothing was done */
};
/* The heads are known: one transaction writes the change, its dispatches and the run's state. If both heads are those of
 * the newest run with results, and that run was green, the run is `skipped`, unless an operator requested it. */
struct start_schedule_run {
	struct store_op op;
	int64_t run_id;
	const struct plan *plan; /* PLAN_START of a CHANGE_NIGHTLY, for this accelerator alone */
	const char *guid, *body; /* as in apply_plan (store/plans.h) */
	size_t body_bytes;
	const struct source_head *source; /* NULL: it has none */
	int64_t now_ms;
	enum schedule_step step;            /* out */
	char reason[SCHEDULE_REASON_BYTES]; /* out: of NOTHING_NEW and NOBODY */
};
int store_start_schedule_run(struct store *s, struct start_schedule_run *op) MUST_CHECK;

/* The heads could not be read: the run is `failed`, or, while they are read again, stays `reading` with this reason. */
struct fail_schedule_run {
	struct store_op op;
	int64_t run_id;
	const char *reason;
	bool is_tried_again;
	int64_t now_ms;
};
int store_fail_schedule_run(struct store *s, struct fail_schedule_run *op) MUST_CHECK;

/* outpostctl nightly run: a run that is due now. ERR_CONFLICT, with the reason: another one continues. */
struct ask_schedule_run {
	struct store_op op; /* publishes STORE_SCHEDULES */
	const char *accelerator;
	int64_t now_ms;
	int64_t run_id; /* out */
};
int store_ask_schedule_run(struct store *s, struct ask_schedule_run *op) MUST_CHECK;

/* outpostctl nightly skip: skips the next run. ERR_NOT_FOUND: the accelerator has no schedule. */
struct skip_schedule {
	struct store_op op;
	const char *accelerator;
	int64_t next_ms;  /* out: which one */
	bool was_skipped; /* out: it was to be skipped already */
};
int store_skip_schedule(struct store *s, struct skip_schedule *op) MUST_CHECK;

/* `accelerator` as a, its schedule as s and its newest run as r. */
#define SCHEDULE_ROW_RECORD(F, S)                                                                                      \
	F(S, TEXT, accelerator, NULL, "a.name", "")                                                                    \
	F(S, TEXT, crons, NULL, "CASE WHEN s.next_ms IS NOT NULL THEN s.cron END",                                     \
	    "A JSON array; NULL: runs, but no schedule any more.")                                                     \
	F(S, TIME, next_ms, NULL, "s.next_ms", "0: never.")                                                            \
	F(S, BOOL, is_next_skipped, NULL, "s.is_next_skipped", "")                                                     \
	F(S, TIME, due_ms, "due_at", "r.due_ms", "Of the newest run, as all that follow; 0: there is none.")           \
	F(S, TIME, started_ms, "started_at", "r.started_ms", "")                                                       \
	F(S, TIME, ended_ms, "ended_at", "r.ended_ms", "")                                                             \
	F(S, TEXT, cause, "cause", "r.cause", "")                                                                      \
	F(S, TEXT, state, "state", "r.state", "")                                                                      \
	F(S, TEXT, outcome, "outcome", "r.outcome", "")                                                                \
	F(S, TEXT, reason, "reason", "r.reason", "")                                                                   \
	F(S, COMMIT, upstream_sha, "upstream_sha", "r.upstream_sha", "")                                               \
	F(S, TEXT, source_sha, "source_sha", "r.source_sha", "")
RECORD_STRUCT(schedule_row, SCHEDULE_ROW_RECORD); /* its JSON: the newest run */
struct list_schedules {
	struct store_query q;
	const char *accelerator;   /* NULL: all */
	struct schedule_row *list; /* out, by name; list_schedules_release() */
	size_t n;
};
int store_list_schedules(struct store *s, struct list_schedules *q) MUST_CHECK;
void list_schedules_release(struct list_schedules *q);
