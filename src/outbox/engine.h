/* Works through the rows of the outbox (store/outbox.h): claims the rows that are due, has each one sent, and records
 * how it ended.
 *
 * A part of Outpost that sends something makes one engine and registers its kinds of effect: the lane of each kind, and
 * the functions that send one effect. The engine does the rest: it claims rows while their lane has room, shares a lane
 * among its targets, paces the writes on GitHub, retries with back-off, and puts rows back when the service stops. It knows
 * neither GitHub nor the texts. The database has everything that the engine has, so a crash loses nothing: the next start
 * finds the rows that were being sent.
 *
 * Thread: loop, every function. Owns: the part that made it, with engine_close() and then engine_free(). */
#pragma once

#include "loop/loop.h"
#include "outbox/pacing.h"
#include "store/outbox.h"

/* One claimed row on its way. A kind embeds it as the first member of its own struct. */
struct effect {
	/* for the kind */
	struct engine *engine;
	struct outbox_row row;
	bool is_uncertain; /* in and out: it may have arrived, and this is not recorded; see struct outbox_done */
	struct error why;  /* the kind sets it before effect_end() */
	int n_writes;      /* content writes that effect_may_write() has let go */
	/* how it ended: effect_end() sets it */
	enum outbox_result result;
	int64_t next_ms; /* wall clock */

	/* the engine's own */
	const struct effect_kind *kind;
	struct engine_lane *lane;
	struct lane_target *target;
	TAILQ_ENTRY(effect) link, parked_link;
	int64_t first_mono_ms; /* when the row was first due: the wall clock may jump meanwhile */
	enum { EFFECT_PARKED, EFFECT_BEGUN, EFFECT_ENDED } step;
	struct outbox_done done;
	struct timer *timer; /* to record the end again */
};

/* How one kind of effect is sent. */
struct effect_kind {
	enum outbox_kind kind;
	int lane;     /* index into the engine's lanes; several kinds may share one */
	size_t bytes; /* of the struct that begins with a struct effect; zero-initialised before begin() */
	/* Sends it. Every effect that was begun ends in one call of effect_end(), inside this call or later. */
	void (*begin)(struct effect *e);
	/* The service stops, or must not act: cuts off the request on the wire, so that effect_end() comes soon. Afterwards
	 * effect_may_go_on() is false, and the kind starts no further request. */
	void (*cancel)(struct effect *e);
	/* Frees the memory that begin() and later steps allocated, not the struct. The engine also calls it for an effect
	 * that was not begun. */
	void (*release)(struct effect *e);
	/* The party at the other end, for sharing a lane and for logs; free(). NULL: one target for the whole lane. */
	char *(*target_name)(const struct effect *e);
};

/* How many rows of a lane may be claimed, and how many of these begun. A row that is claimed and cannot begin yet waits in
 * memory for a place. While more than half of the lane is free (a quarter, for a target that answers), a target may use as much
 * as it likes; beyond that, a sixteenth of the lane. While it answers, its other rows stay unclaimed. Else the engine puts them
 * off: for a moment if the target is new, and for a few seconds if it is silent. */
struct lane_limits {
	int claimed;
	int begun;            /* of them */
	int begun_per_target; /* of these, to one target */
};

struct engine_options {
	struct loop *loop;
	struct store *store;
	void *owner;                            /* engine_owner() */
	const struct effect_kind *const *kinds; /* borrowed, as all of this; static tables */
	size_t n_kinds;
	const struct lane_limits *lanes; /* the urgent first; engine_limit_lane() changes them */
	size_t n_lanes;
	int writes_per_minute; /* for effect_may_write(); 0: the kinds do not call it */
	/* The log events for when the store cannot claim, and when it cannot record the end of a row (NULL: no line). */
	const char *claim_failed_event, *settle_failed_event;
	/* Runs once for each effect when it ends, before the end is recorded: for logs and counters. NULL: nothing. */
	void (*on_end)(struct effect *e);
};

/* Looks for rows that are due from the next turns of the loop on. */
struct engine *engine_new(const struct engine_options *options);
void *engine_owner(const struct engine *n);
/* Both count from the next claim and the next write on. */
void engine_limit_lane(struct engine *n, int lane, struct lane_limits limits);
void engine_limit_writes(struct engine *n, int writes_per_minute);
/* For a part that another node did meanwhile: forgets the content writes that this engine let go, and then counts those of all nodes, the
 * oldest first. */
void engine_forget_writes(struct engine *n);
void engine_note_writes(struct engine *n, int64_t ago_ms, int n_writes);
/* Something may be due: looks within 20 ms (ring), or at once (look). */
void engine_ring(struct engine *n);
void engine_look(struct engine *n);
/* For STORE_NODE (db/store.h). While the daemon must not act, no effect begins, and those that have begun are cut off. Effects that were
 * claimed under an earlier epoch end: their rows belong to others. */
void engine_follow_node(struct engine *n);
/* Claims nothing until it goes on, and puts the rows back that were not begun; engine_n_claimed() is 0 when the others have ended. For a
 * part whose work another node does now. */
void engine_pause(struct engine *n, bool is_paused);
/* Claims nothing more, puts the rows back that were not begun, cancels the others after grace_ms, then runs on_closed
 * once, never inside this call and not before each offer is back. Asynchronous; close it before the store. */
void engine_close(struct engine *n, int64_t grace_ms, void (*on_closed)(void *owner), void *owner);
/* Reserves places for rows that an operation is about to write (store/outbox.h), unless others wait for a place. After the
 * operation the caller passes the offer to engine_adopt() once, which sends the claimed rows and takes all places back. */
void engine_offer(struct engine *n, enum outbox_kind kind, int n_rows, struct outbox_offer *offer);
void engine_adopt(struct engine *n, struct outbox_offer *offer);
bool engine_is_closing(const struct engine *n);
/* After on_closed. NULL is fine. */
void engine_free(struct engine *n);

/* The claimed rows, in no order. engine_next(n, NULL) is the first; NULL after the last. */
struct effect *engine_next(const struct engine *n, const struct effect *e);
int engine_n_claimed(const struct engine *n);
int64_t engine_n_paced(const struct engine *n); /* writes that had to wait, since the start */

/* ---- how an effect ends: each one once ---- */

/* next_ms: for RETRY, NOT_YET and AGAIN. Records e->why. The engine frees the effect some time after this call. */
void effect_end(struct effect *e, enum outbox_result result, int64_t next_ms);
/* It was not tried: the row is due again after a while, or dead when that would be too late (effect_is_too_late()). */
void effect_put_off(struct effect *e, int64_t after_ms);
/* The wall time of the next attempt: after the back-off, or after retry_after_ms if that is longer. False: it would be too
 * late for another attempt (effect_is_too_late()), so the row is dead. */
bool effect_back_off(const struct effect *e, int64_t retry_after_ms, int64_t *ret_next_ms) MUST_CHECK;
/* False: it starts no further request, because the service stops, the daemon must not act now, or the row may belong to another node by
 * now. */
bool effect_may_go_on(const struct effect *e);
/* The same for the owner of a request (struct http_call, struct github_call), which asks when the request leaves. A process that stood
 * still meanwhile must not send what it had prepared. */
bool effect_may_go_out(const void *effect);
/* At that wall time, a day has passed since the row was first due. */
bool effect_is_too_late(const struct effect *e, int64_t at_wall_ms);
/* Whether a content write of this class may go to GitHub now (outbox/pacing.h); it is counted then. False: the effect has
 * ended, and its row is due again when its turn comes. */
bool effect_may_write(struct effect *e, enum write_class class) MUST_CHECK;
/* The party at the other end, as target_name() called it. */
const char *effect_target(const struct effect *e);
