/* Shared by the scheduler's files only: the clock (scheduler.c), upstream's head, which all runs
 * share (scheduler_head.c), and each run until it is dispatched (scheduled_run.c). */
#ifndef DISPATCH_SCHEDULER_INTERNAL_H
#define DISPATCH_SCHEDULER_INTERNAL_H

#include "base/id.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/plan.h"
#include "dispatch/scheduler.h"
#include "store/schedules.h"

/* Upstream's head as GitHub said it last: asked again with its ETag, which costs no quota while
 * it is the same, and once for all runs that wait for it. */
struct upstream_head {
	struct github_branch call;
	bool is_asked;
	char *repository, *branch;    /* what the rest is of; NULL: nothing is known */
	char etag[GITHUB_ETAG_BYTES]; /* "" without a sha */
	char sha[41];
	char *title, *author; /* NULL: unknown */
};

struct scheduled_run {
	struct scheduled_run *next;
	struct scheduler *scheduler;
	int64_t id;
	char *accelerator;
	struct config *config; /* of this try; NULL between tries */
	struct timer *timer;
	int n_tries;
	int64_t first_mono_ms;
	int64_t again_ms; /* from the note of a failure to the next try */
	bool waits_for_upstream;
	bool is_asking;  /* `head` is in the registry's hands */
	bool is_stored;  /* an operation is in the store's hands */
	bool is_refused; /* the heads were given up: `reason` */
	struct head_request head;
	struct source_head source; /* sha NULL: it has none */
	struct plan plan;
	char *body;
	char guid[UUID_BYTES];
	char reason[SCHEDULE_REASON_BYTES];
	union {
		struct start_schedule_run start;
		struct fail_schedule_run fail;
	} op;
};

struct scheduler {
	struct dispatch *d;
	struct timer *timer;
	bool was_rung, is_looking, is_closed;
	int64_t looked_wall_ms, next_wall_ms; /* next_wall_ms 0: nothing comes */
	struct look_at_schedules look;
	struct config *config; /* of the look in hand */
	struct schedule_entry *entries;
	struct schedule *times;
	struct upstream_head upstream;
	struct scheduled_run *runs;
};

/* ---- scheduler.c ---- */
/* Something that was in the air is back: the closing may go on. */
void scheduler_settle(struct scheduler *s);

/* ---- scheduler_head.c ---- */
/* Asks unless it is on its way; then scheduled_run_have_upstream() for each run that waits. */
void upstream_head_ask(struct scheduler *s);
void upstream_head_cancel(struct scheduler *s);
void upstream_head_release(struct scheduler *s);

/* ---- scheduled_run.c ---- */
/* A run in state `reading`; nothing is done when it is in hand. */
void scheduled_run_take(struct scheduler *s, const struct schedule_task *task);
/* err 0: s->upstream is it. is_final: another try is of no use. */
void scheduled_run_have_upstream(
    struct scheduled_run *run, int err, const char *why, bool is_final, int64_t wait_ms);
/* Ends what it asks for; it goes when nothing of it is in the air. */
void scheduled_run_cancel(struct scheduled_run *run);
bool scheduled_run_is_idle(const struct scheduled_run *run);
void scheduled_run_free(struct scheduled_run *run); /* and unlinks it */

#endif
