/* Work that is due by the wall clock: a bell decides when to look for it in the database, and a clock watch notices
 * when the wall clock jumps.
 *
 * Thread: loop. Owns: the caller, with bell_free() and clock_watch_free(). */
#pragma once

#include "loop/loop.h"

/* Looks for due work shortly after new work was announced (bell_ring), when work becomes due (bell_by), after a pause
 * when a look failed (bell_retry), and at least once a minute, because the wall clock may jump.
 *
 * Only one look runs at a time. A ring during a look may be too late for that look, so another look follows it. */
struct bell;

/* look(owner) begins a look; bell_rest() ends it, inside the callback or later. The callback never runs while
 * a look is running, and not before the first bell_now() or bell_ring(). */
struct bell *bell_new(struct loop *l, void (*look)(void *owner), void *owner);
/* Looks 20 ms from now, so that one look serves many rings. */
void bell_ring(struct bell *b);
/* Looks inside this call; during a look, shortly after it ends; after bell_retry(), at the end of the pause. */
void bell_now(struct bell *b);
/* Looks at that time at the latest (wall clock, ms since 1970; 0: no request). The earliest request counts,
 * until the next look begins. */
void bell_by(struct bell *b, int64_t wall_ms);
/* Ends the look. */
void bell_rest(struct bell *b);
/* The look could not do its work, for example because the store is busy. Ends the look, if one is running, and
 * looks again after a pause. The pause is half a second after the first failure and doubles with each failure in
 * a row, up to 4 s; requests for an earlier look do not shorten it. */
void bell_retry(struct bell *b);
bool bell_is_looking(const struct bell *b);
/* look() does not run again; a look that is running may still end in bell_rest(). */
void bell_stop(struct bell *b);
/* Frees it, with or without an earlier bell_stop(). NULL is fine. */
void bell_free(struct bell *b);

/* ---- the clock watch ---- */

/* Compares the wall clock with the monotonic one every five seconds, and whenever its owner asks. Slow drift (NTP
 * slewing) is not a jump. */
struct clock_watch;

/* on_jump(by_ms, owner) runs for each jump, on the loop: by_ms > 0 means that the clock was put forward. */
struct clock_watch *clock_watch_new(struct loop *l, void (*on_jump)(int64_t by_ms, void *owner), void *owner);
/* Compares the clocks now, before something is written or decided with the wall clock. on_jump may run inside. */
void clock_watch_look(struct clock_watch *w);
/* NULL is fine. */
void clock_watch_free(struct clock_watch *w);

/* ---- the comparison, pure ---- */
#define CLOCK_JUMP_MS INT64_C(5000)
struct clock_offset {
	int64_t ahead_ms; /* wall minus monotonic, at the last comparison */
	bool is_set;
};
/* By how much the wall clock jumped since the last comparison; 0: by CLOCK_JUMP_MS at most. */
int64_t clock_offset_jump(struct clock_offset *o, int64_t wall_ms, int64_t mono_ms);
