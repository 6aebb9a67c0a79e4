/* The pump between the deliveries on disk and their plans: reads accepted deliveries in
 * their order, up to 64 in hand, those of one pull request or branch strictly one after
 * the other.
 *
 * Rule guarded here: intake comes first. While many of its writes are queued the pump takes
 * small sips with pauses; it never stops altogether. Thread: loop. */
#ifndef DISPATCH_PLANNER_H
#define DISPATCH_PLANNER_H

#include <stdbool.h>

struct asked;
struct dispatch;
struct planner;
struct planning;

struct planner *planner_new(struct dispatch *d);
/* Deliveries may wait. */
void planner_ring(struct planner *pl);
/* Nothing waits and nothing is in hand, as far as this turn of the loop knows. */
bool planner_is_idle(const struct planner *pl);
void planner_close(struct planner *pl);

/* Plans an event that no webhook told of, in turn with the deliveries of its pull request.
 * body: as a webhook of that event would have it; taken (free()). on_done runs once, never
 * inside this call; err 0: planned, or already known. */
void planner_take_synthetic(struct planner *pl, const char *event_name, char *body,
    void (*on_done)(void *owner, int err), void *owner);

/* Plans what somebody asked for, in turn with the deliveries of its pull request. Takes `asked`.
 * on_done runs once, never inside this call. */
void planner_take_asked(
    struct planner *pl, struct asked *asked, void (*on_done)(void *owner, int err), void *owner);

/* ---- for planning.c ---- */
/* It ended; frees it and lets the next of its line begin. */
void planner_finished(struct planner *pl, struct planning *p);

#endif
