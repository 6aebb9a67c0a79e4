/* Turns for everything that is read from the store to be shown. Anybody may ask for it, and how
 * long it takes is for others to decide: a change with 100,000 verdicts takes hundreds of megabytes while it is
 * read and written down.
 *
 * - A few answers are in the making at once. The planner, which asks the same readers of the store,
 *   waits for these few at most.
 * - Requests for the same answer are served from one making, as long as it has not begun. One that
 *   has begun may miss what was committed since, and a page that asks again because it was told of
 *   a change must not get that.
 * - Those that wait stand in lines, one for each client, and the lines take turns. So a client that
 *   asks for a thousand pages delays its own.
 * - When too many answers wait, the newest of the longest line is refused at once; where no line is
 *   longer than the newcomer's would be, that is the newcomer.
 *
 * For web/ only. Thread: loop. */
#ifndef WEB_GATE_H
#define WEB_GATE_H

#include <stdbool.h>

#include "http/server.h"

enum { WEB_GATE_MAKING_MAX = 3, WEB_GATE_WAITING_MAX = 200 };

struct web_gate;

/* refuse: answers a request for which there is no turn: too many wait, the service stops, or its
 * client is leaving. */
struct web_gate *web_gate_new(void (*refuse)(struct http_request *r));
/* Refuses all that wait, and all that come later. */
void web_gate_close(struct web_gate *g);
/* Closed before; it lives on until the last turn is over. */
void web_gate_free(struct web_gate *g);

/* Has r answered by make(), which runs once, now or later, for r or for another request of the same
 * target, and sees to one web_gate_answer() for the request that it was given. The user pointer and
 * the on_gone of each request are the gate's until its answer. */
void web_gate_ask(struct web_gate *g, struct http_request *r,
    void (*make)(struct http_request *r, void *owner), void *owner);
/* The answer for r is made: runs `send` for r and for all that wait for the same, which answers
 * the request that it is given. For a request that did not come through a gate it runs once. */
void web_gate_answer(
    struct http_request *r, void (*send)(struct http_request *r, void *answer), void *answer);

#endif
