/* Periodic runs: when each accelerator's is due, and each due time with what became of it. A run
 * is a row from the moment it is due, so a daemon that dies finds it where it was; it becomes a
 * `nightly` change with its dispatches in one transaction. */
#ifndef STORE_SCHEDULES_H
#define STORE_SCHEDULES_H

#include "model/plan.h"
#include "model/schedule.h"
#include "model/source_head.h"
#include "store/store.h"

enum { SCHEDULE_REASON_BYTES = 200 };

/* Who has a schedule. */
struct schedule_entry {
	const char *accelerator;
	const char *const *crons; /* NULL-terminated, at least one */
	const struct schedule *times;
};

/* A run whose heads are to be asked for (state `reading`). */
struct schedule_task {
	int64_t id;
	char *accelerator;
	int64_t due_ms;
};

/* Makes the table follow the entries (whoever is not among them is never due), and takes what is
 * due: one run an accelerator, however many times went by. While an earlier run is going, or when
 * an operator has it left out, the run is `skipped` at once, with the reason. A due time is acted
 * upon once, also when the clock is put back and it comes round again. */
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

/* The heads are known: the change, its dispatches and the run's state in one transaction. Where
 * both heads are those of the newest run that tested anything, and that was green, the run is
 * `skipped`, unless an operator asked for it. */
enum schedule_step {
	SCHEDULE_DISPATCHED,
	SCHEDULE_NOTHING_NEW, /* skipped */
	SCHEDULE_NOBODY,      /* failed: the plan has nobody to hand it to */
	SCHEDULE_GONE,        /* it was not in state `reading` any more; nothing was done */
};
struct start_schedule_run {
	struct store_op op;
	int64_t run_id;
	const struct plan *plan; /* PLAN_START of a CHANGE_NIGHTLY, for this accelerator alone */
	const char *guid, *body; /* as of apply_plan (store/changes.h) */
	size_t body_bytes;
	const struct source_head *source; /* NULL: it has none */
	int64_t now_ms;
	enum schedule_step step;            /* out */
	char reason[SCHEDULE_REASON_BYTES]; /* out: of NOTHING_NEW and NOBODY */
};
int store_start_schedule_run(struct store *s, struct start_schedule_run *op) MUST_CHECK;

/* The heads could not be read: `failed`, or, while they are asked for again, why it is `reading`. */
struct fail_schedule_run {
	struct store_op op;
	int64_t run_id;
	const char *reason;
	bool is_tried_again;
	int64_t now_ms;
};
int store_fail_schedule_run(struct store *s, struct fail_schedule_run *op) MUST_CHECK;

/* outpostctl nightly run: a run that is due now. ERR_CONFLICT, with the reason: one is going. */
struct ask_schedule_run {
	struct store_op op; /* tells STORE_SCHEDULES */
	const char *accelerator;
	int64_t now_ms;
	int64_t run_id; /* out */
};
int store_ask_schedule_run(struct store *s, struct ask_schedule_run *op) MUST_CHECK;

/* outpostctl nightly skip: leaves the next one out. ERR_NOT_FOUND: it has no schedule. */
struct skip_schedule {
	struct store_op op;
	const char *accelerator;
	int64_t next_ms;  /* out: which one */
	bool was_skipped; /* out: it was left out already */
};
int store_skip_schedule(struct store *s, struct skip_schedule *op) MUST_CHECK;

struct schedule_row {
	char *accelerator;
	char *crons;     /* JSON array; NULL: runs, but no schedule any more */
	int64_t next_ms; /* 0: never */
	bool is_next_skipped;
	/* the newest run; due_ms 0: none */
	int64_t due_ms, started_ms, ended_ms;
	char *cause, *state, *outcome, *reason, *upstream_sha, *source_sha;
};
struct list_schedules {
	struct store_query q;
	const char *accelerator;   /* NULL: all */
	struct schedule_row *list; /* out, by name; list_schedules_release() */
	size_t n;
};
int store_list_schedules(struct store *s, struct list_schedules *q) MUST_CHECK;
void list_schedules_release(struct list_schedules *q);

#endif
