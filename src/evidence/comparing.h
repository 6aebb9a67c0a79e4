/* Asks GitHub for the commits between the last good and the first bad periodic run if the stored pushes lack some of them
 * (history/commits_between.h). It asks one question at a time, with growing pauses while GitHub does not answer, and keeps an
 * answer for good. Nothing waits for the answer: until then, pages link to GitHub's comparison.
 *
 * Thread: loop. Owns: its request; the caller owns the struct comparing and frees it. */
#ifndef EVIDENCE_COMPARING_H
#define EVIDENCE_COMPARING_H

#include "evidence/evidence.h"

struct comparing;

/* Starts at once; looks again after each STORE_ATTRIBUTION. */
struct comparing *comparing_new(const struct evidence_deps *deps);
/* Cancels the request, then runs on_closed once. Asynchronous. */
void comparing_close(struct comparing *c, void (*on_closed)(void *owner), void *owner);
void comparing_free(struct comparing *c); /* after on_closed and store_close(); NULL is fine */

#endif
