/* One lane of an engine: how many rows it may hold, and which may begin. Pure bookkeeping.
 *
 * A vendor that is down, slow or lying must not delay the others. So within a lane each target (a repository, or a server's
 * host and port) has its own limit, waiting rows of one target keep their order, and targets take turns.
 *
 * Thread: loop. Owns: struct engine. Private to src/outbox. */
#pragma once

#include "loop/bell.h"
#include "outbox/engine.h"

struct lane_target {
	TAILQ_ENTRY(lane_target) link;
	char *name;
	int n_claimed, n_begun;
	TAILQ_HEAD(, effect) parked; /* wait for a place, in order */
};

struct lane {
	struct lane_limits limits;
	int n_claimed, n_begun;
	TAILQ_HEAD(, lane_target)
	targets; /* those with claimed rows; the one served last is at the end */
	/* the engine's */
	struct engine *engine;
	struct bell *bell; /* a look is one claim */
	unsigned kinds;    /* bits 1 << OUTBOX_… */
	struct claim_outbox claim;
	bool is_wanted;     /* engine_look() came during a claim, which may be too late for it */
	bool may_have_more; /* the last claim was filled to its limit, or there was no room for one */
	bool is_filling;    /* inside begin_parked() */
};

void lane_init(struct lane *l);
/* How many rows it may claim now. 0 also while it is nearly full, because one claim for each single row is too many. */
int lane_room(const struct lane *l);
/* The effect is claimed. Takes target_name (free()). */
void lane_add(struct lane *l, struct effect *e, char *target_name);
void lane_remove(struct lane *l, struct effect *e);
/* Lets it wait for a place. False: its target has its share of the lane already. */
bool lane_park(struct lane *l, struct effect *e);
/* Takes a place for the next parked effect that may begin. NULL: no effect may. */
struct effect *lane_next(struct lane *l);
/* Any parked one, without a place. NULL: nothing is parked. */
struct effect *lane_unpark_any(struct lane *l);
/* An effect that lane_next() returned has ended. */
void lane_leave(struct lane *l, struct effect *e);
