/* Periodic runs (triggers.schedule): when a run is due, reads upstream's head and the head of the vendor's own code,
 * and makes a `nightly` change of them for that accelerator's runners.
 *
 * Runs are due by the wall clock, and a clock watch notices when it jumps. A due run is a row in the database before
 * its heads are read, so a restarted daemon continues it.
 *
 * Thread: loop. Owns: struct dispatch, until scheduler_close(). */
#ifndef DISPATCH_SCHEDULER_H
#define DISPATCH_SCHEDULER_H

#include "base/crypto.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/plan.h"
#include "loop/bell.h"
#include "store/schedules.h"

struct dispatch;
struct scheduler;

struct scheduler *scheduler_new(struct dispatch *d);
/* Schedules may have changed, or a run was requested. */
void scheduler_ring(struct scheduler *s);
/* Frees itself when its last operation has ended, and calls dispatch_part_closed(). */
void scheduler_close(struct scheduler *s);

/* Shared by scheduler.c, which has the clock and upstream's head, and scheduled_run.c, which has each run until it is
 * dispatched. */

/* Upstream's head from GitHub's last answer. A request carries its ETag, so an unchanged head costs no quota, and one
 * request serves all runs that wait. */
struct upstream_head {
	struct github_branch call;
	bool is_asked;
	char *repository, *branch;    /* of this head; NULL: nothing is known */
	char etag[GITHUB_ETAG_BYTES]; /* "" without a sha */
	char sha[41];
	char *title, *author; /* NULL: unknown */
};

struct scheduled_run {
	struct scheduled_run *next;
	struct scheduler *scheduler;
	int64_t id;
	char *accelerator;
	struct config *config; /* of this attempt; NULL between attempts */
	struct timer *timer;
	int n_tries;
	int64_t first_mono_ms;
	int64_t again_ms; /* from a recorded failure to the next attempt */
	bool waits_for_upstream;
	bool is_asking;  /* the registry is reading `head` */
	bool is_stored;  /* the store runs an operation */
	bool is_refused; /* the run has failed, see `reason` */
	struct head_request head;
	struct source_head source; /* sha NULL: no source, or not read yet */
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
	struct bell *bell;
	struct clock_watch *clock; /* a run becomes due when the clock is put forward */
	bool is_closed;
	struct look_at_schedules look;
	struct config *config; /* of the look that runs */
	struct schedule_entry *entries;
	struct schedule *times;
	struct upstream_head upstream;
	struct scheduled_run *runs;
};

/* ---- scheduler.c ---- */
/* An operation has ended: frees the scheduler if it is closing and this was the last one. */
void scheduler_settle(struct scheduler *s);

/* Requests upstream's head, unless a request is running, and then calls scheduled_run_have_upstream() for each run that
 * waits. */
void upstream_head_ask(struct scheduler *s);

/* ---- scheduled_run.c ---- */
/* Begins a run in state `reading`, unless it has begun already. */
void scheduled_run_take(struct scheduler *s, const struct schedule_task *task);
/* err 0: s->upstream is the head. is_final: retrying does not help. */
void scheduled_run_have_upstream(
    struct scheduled_run *run, int err, const char *why, bool is_final, int64_t wait_ms);
/* Cancels its request. scheduler_settle() frees the run once it is idle. */
void scheduled_run_cancel(struct scheduled_run *run);
bool scheduled_run_is_idle(const struct scheduled_run *run);
void scheduled_run_free(struct scheduled_run *run); /* and unlinks it */

#endif
