/* The struct that the parts of the dispatcher share, and each part's interface. dispatch_new() makes each part. A part
 * reaches the others only through this struct. Its close function frees it when its last operation has ended, and then
 * calls dispatch_part_closed().
 *
 * Thread: loop. Owns: dispatch_new() and dispatch_free(). */
#pragma once

#include "dispatch/dispatch.h"
#include "model/plan.h"
#include "store/deliveries.h"
#include "store/outbox.h"

struct dispatch {
	struct dispatch_deps deps;
	struct config *config; /* for work that begins now */
	struct dispatch_counters counters;
	struct planner *planner;
	struct sender *sender;
	struct deadline_watch *deadlines;
	struct reconciler *reconciler;
	struct scheduler *scheduler;
	bool is_closing;
	int n_open_parts;
	void (*on_closed)(void *owner);
	void *owner;
};

/* Frees the part at the end of this turn. NULL: it has freed itself. */
void dispatch_part_closed(struct dispatch *d, void *part);

/* ---- the planner: reads accepted deliveries from disk in their order and plans up to 64 at a time, those of one pull
 * request or branch one after the other.
 *
 * Rule guarded here: intake comes first. While many of its writes are queued, the planner reads one delivery at a time
 * with pauses; it never stops. ---- */
struct planning;

struct planner *planner_new(struct dispatch *d);
/* New deliveries may wait. */
void planner_ring(struct planner *pl);
/* A delivery that was just written: plans it without reading it, if none waits before it; it may take guid, event and body. */
void planner_accept(struct planner *pl, struct delivery *delivery);
/* True if, as far as this turn of the loop knows, no delivery waits here or is being planned here. */
bool planner_is_idle(const struct planner *pl);
/* The seat came: reads all deliveries that wait. */
void planner_on_seat(struct planner *pl);
void planner_close(struct planner *pl);
/* Plans an event in turn with the others of its pull request, and takes it over. on_done (or NULL) runs once, never
 * inside this call; err 0: planned, or already known. */
void planner_start(struct planner *pl, struct planning *p, void (*on_done)(void *owner, int err), void *owner);
/* The same for an event without a webhook. body: like that of a webhook of this event; the planner frees it. */
void planner_start_event(
    struct planner *pl, const char *event_name, char *body, void (*on_done)(void *owner, int err), void *owner);
/* For planning.c. The planning has ended: frees it, and begins the next one of its line. */
void planner_finished(struct planner *pl, struct planning *p);

/* ---- the sender: sends the outbox rows of dispatches to GitHub and to vendors' own CI. The engine in src/outbox does
 * the work; sender.c has the kinds of effect and their lanes. ---- */
struct sender *sender_new(struct dispatch *d);
/* There is a new configuration. */
void sender_configure(struct sender *s);
/* Something may be due. */
void sender_ring(struct sender *s);
void sender_follow_node(struct sender *s); /* for STORE_NODE */
/* A body whose requests are in the outbox now, so that it need not be read again. */
struct sender_body {
	const char *guid, *event_type, *sent_action;
	char *body; /* NUL-terminated, and checked; the sender takes it over */
	size_t bytes;
	size_t action_at, action_bytes; /* as in struct event */
};
void sender_offer(struct sender *s, const struct sender_body *b);
/* Keeps places for the requests of a plan. After the plan is written, or has failed, call sender_adopt() once. */
void sender_offer_places(struct sender *s, const struct plan *plan, struct outbox_offer *offer);
void sender_adopt(struct sender *s, struct outbox_offer *offer);
int sender_n_claimed(const struct sender *s);
/* Requests on the wire get two seconds to be answered, then they are cut off. */
void sender_close(struct sender *s);

/* ---- deadlines.c: expires dispatches whose deadline has passed, keeps a clock that jumps from expiring or delaying
 * anything, and deletes data that is older than the retention.
 *
 * Stored due times are wall-clock times, so that they mean something after a restart. When the wall clock jumps
 * (loop/bell.h), every stored due time moves with it before anything else is judged by it or written. ---- */
struct deadline_watch *deadline_watch_new(struct dispatch *d);
/* A deadline may have come nearer. */
void deadline_watch_ring(struct deadline_watch *dl);
/* The seat came. */
void deadline_watch_on_seat(struct deadline_watch *dl);
void deadline_watch_close(struct deadline_watch *dl);

/* ---- the reconciler: finds lost webhooks (reconcile.h) ---- */
struct reconciler *reconciler_new(struct dispatch *d);
/* Looks now, or again after a look that is running. */
void reconciler_ring(struct reconciler *r);
/* The interval may have changed. */
void reconciler_configure(struct reconciler *r);
/* The seat came: forgets what earlier looks found, and looks. When it goes, a look ends with its next step. */
void reconciler_on_seat(struct reconciler *r);
bool reconciler_is_idle(const struct reconciler *r);
void reconciler_close(struct reconciler *r);

/* ---- the scheduler: periodic runs (triggers.schedule) ---- */
struct scheduler *scheduler_new(struct dispatch *d);
/* Schedules may have changed, or a run was requested. */
void scheduler_ring(struct scheduler *s);
/* The seat came, or goes: then the next node continues the runs. */
void scheduler_on_seat(struct scheduler *s, bool has_seat);
bool scheduler_is_idle(const struct scheduler *s);
void scheduler_close(struct scheduler *s);

/* ---- synthetic.c: makes the bodies of lost webhooks from answers of GitHub's API, so that the planner handles a change
 * without a webhook like any other. Pure; free() a returned body. ---- */

/* pull: the API's answer, borrowed. before: the recorded head, or NULL. */
char *synthetic_pull(const char *action, const json_t *pull, const char *repository, const char *before);
/* A push whose webhook was lost. between: all commits from `before` to `after` from GitHub, borrowed; NULL: they are
 * unknown, and the list stays empty. */
struct missed_push {
	const json_t *branch;
	const char *name, *after, *repository, *before;
	const json_t *between;
	bool is_forced;
};
char *synthetic_push(const struct missed_push *m);

/* For a periodic run: {"repository", "ref", "after", "head_sha"}. */
char *synthetic_nightly(const char *repository, const char *branch, const char *head_sha);
