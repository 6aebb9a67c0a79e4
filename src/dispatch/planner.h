/* Reads accepted deliveries from disk in their order and plans up to 64 at a time, those of one pull request or branch
 * one after the other.
 *
 * Rule guarded here: intake comes first. While many of its writes are queued, the planner reads one delivery at a time
 * with pauses; it never stops.
 *
 * Thread: loop. Owns: struct dispatch, until planner_close(). */
#ifndef DISPATCH_PLANNER_H
#define DISPATCH_PLANNER_H

#include <stdbool.h>

struct asked;
struct dispatch;
struct planner;
struct planning;

struct planner *planner_new(struct dispatch *d);
/* New deliveries may wait. */
void planner_ring(struct planner *pl);
/* True if, as far as this turn of the loop knows, no delivery waits or is being planned. */
bool planner_is_idle(const struct planner *pl);
/* Frees itself when the last planning has ended, and calls dispatch_part_closed(). */
void planner_close(struct planner *pl);

/* Plans an event without a webhook, in turn with the deliveries of its pull request. body: like that of a webhook of
 * this event; the planner takes it over (free()). on_done runs once, never inside this call; err 0: planned, or
 * already known. */
void planner_take_synthetic(struct planner *pl, const char *event_name, char *body,
    void (*on_done)(void *owner, int err), void *owner);

/* Plans the request of a person, in turn with the deliveries of its pull request. Takes over `asked`. on_done runs once,
 * never inside this call. */
void planner_take_asked(
    struct planner *pl, struct asked *asked, void (*on_done)(void *owner, int err), void *owner);

/* ---- for planning.c ---- */
/* The planning has ended: frees it, and begins the next one of its line. */
void planner_finished(struct planner *pl, struct planning *p);

#endif
