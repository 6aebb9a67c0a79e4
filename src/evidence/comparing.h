/* Asks GitHub for the commits between a last good and a first bad periodic run where the pushes on
 * record lack some (store/commits_between.h): one question at a time, with growing pauses while there
 * is no answer, and an answer is kept for good. Nobody waits for it: pages link to the comparison
 * meanwhile. Thread: loop. */
#ifndef EVIDENCE_COMPARING_H
#define EVIDENCE_COMPARING_H

#include "evidence/evidence.h"

struct comparing;

/* Starts at once; looks again when STORE_ATTRIBUTION is told. */
struct comparing *comparing_new(const struct evidence_deps *deps);
/* Cancels what is on the wire, then runs on_closed once. Asynchronous. */
void comparing_close(struct comparing *c, void (*on_closed)(void *owner), void *owner);
void comparing_free(struct comparing *c); /* after on_closed and store_close(); NULL is fine */

#endif
