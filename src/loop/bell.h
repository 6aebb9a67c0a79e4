/* When to look for work that lies in the database: soon after something became due, when the next
 * is known to be due, and once a minute in any case, because the wall clock may jump.
 *
 * One look at a time. What rings during a look may have come too late for it, so it is followed by
 * another: no wish waits for the next minute. Thread: loop, everything. */
#ifndef LOOP_BELL_H
#define LOOP_BELL_H

#include "loop/loop.h"

struct bell;

/* look(owner) begins a look, and runs only while none is under way; bell_rest() ends it, inside the
 * call or later. Nothing is looked at before the first bell_now() or bell_ring(). */
struct bell *bell_new(struct loop *l, void (*look)(void *owner), void *owner);
/* A moment from now: one look serves many rings. */
void bell_ring(struct bell *b);
/* Inside this call; during a look, a moment after its end. */
void bell_now(struct bell *b);
/* By then at the latest (wall clock, ms; 0: nothing is asked for). It holds until the next look
 * begins; the earliest counts. */
void bell_by(struct bell *b, int64_t wall_ms);
void bell_rest(struct bell *b);
bool bell_is_looking(const struct bell *b);
/* look() will not run again; a look under way may still end in bell_rest(). */
void bell_stop(struct bell *b);
/* Frees it, after bell_stop() or instead of it. NULL is fine. */
void bell_free(struct bell *b);

#endif
