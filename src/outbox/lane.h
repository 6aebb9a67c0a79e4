/* The places of one lane of an engine, and how its targets share them.
 *
 * A vendor that is down, slow or lying must not delay the others. So within a lane each target (a repository, or a
 * server's host and port) has its own limit, waiting rows of one target keep their order, and targets take turns.
 *
 * Thread: loop, every function. Owns: the engine, which frees its effects; a lane without effects owns no memory. */
#pragma once

#include "outbox/engine.h"

struct lane_target {
	TAILQ_ENTRY(lane_target) link;
	char *name;
	char *address; /* the column `target` of one of its rows */
	int n_claimed, n_begun;
	int64_t since_mono_ms;
	int64_t answered_mono_ms;    /* its last effect that went well; 0: none yet */
	TAILQ_HEAD(, effect) parked; /* wait for a place, in order */
};

struct lane {
	struct lane_limits limits;
	int n_claimed, n_begun;
	int n_reserved;                    /* places for rows that are being written (struct outbox_offer) */
	TAILQ_HEAD(, lane_target) targets; /* those with claimed rows; the one served last is at the end */
	int64_t looked_past_mono_ms;       /* the last claim that left a target out */
};

enum { LANE_LOOK_PAST_MS = 250 };

void lane_init(struct lane *l, struct lane_limits limits);
/* How many rows may be claimed now. 0 also while the lane is nearly full, because one claim for each single row is too many.
 *
 * Further rows of a target that fills the lane and answers stay in the database, because a claim would only put them off. Now and
 * then a claim looks past them for rows of others: *ret_past is the address to leave out then, else NULL. The caller sets
 * looked_past_mono_ms when it makes that claim. */
int lane_room(const struct lane *l, const char **ret_past);
/* The effect is claimed: it has a place until lane_remove(). Takes target_name (free()). */
void lane_add(struct lane *l, struct effect *e, char *target_name);
void lane_remove(struct lane *l, struct effect *e);
/* Lets it wait for its turn. False: its target has its share of the lane already. */
bool lane_park(struct lane *l, struct effect *e);
void lane_unpark(struct effect *e);
/* The next parked effect whose turn has come; it is begun. NULL: no effect may begin. */
struct effect *lane_next(struct lane *l);
/* A begun effect has ended. */
void lane_end(struct lane *l, struct effect *e, bool is_good);
/* The target may answer soon: it answered lately, or is too new to have answered. */
bool lane_target_may_answer(const struct lane_target *t);
