/* Turns for everything that is read from the store and shown. Anyone may request it, and an answer may be large: a change with
 * 100,000 verdicts takes hundreds of megabytes while it is read and written.
 *
 * - A few answers are in progress at a time.
 * - Requests for the same answer share it if it has not begun, or if nothing has changed since. Otherwise it may miss newer
 *   commits, and a page that requests again because of an event must not get that.
 * - The others wait in one line for each client, and the lines take turns. So a client that requests a thousand pages delays only
 *   itself.
 * - When too many answers wait, the newest of the longest line is refused at once, or the new request if its own line would be the
 *   longest.
 *
 * Private to web/. Thread: loop. */
#pragma once

#include "http/server.h"

enum { WEB_GATE_MAKING_MAX = 3, WEB_GATE_WAITING_MAX = 200 };

struct web_gate;

/* refuse: answers a request that gets no turn: too many wait, the service stops, or its client is leaving. Owns: the caller, with
 * web_gate_free(). */
struct web_gate *web_gate_new(void (*refuse)(struct http_request *r));
/* version: differs when an answer may differ from one that began before. Without it, answers that have begun are not shared. */
void web_gate_share_begun(struct web_gate *g, int64_t (*version)(void *owner), void *owner);
/* Refuses all that wait and all later requests. */
void web_gate_close(struct web_gate *g);
/* After web_gate_close(). It lives on until the last turn is over. */
void web_gate_free(struct web_gate *g);

/* Lets make() answer r. It runs once, now or later, for r or for another request of the same target, and later calls
 * web_gate_answer() once for the request that it got. Until then the gate uses the user pointer and the on_gone of each request. */
void web_gate_submit(
    struct web_gate *g, struct http_request *r, void (*make)(struct http_request *r, void *owner), void *owner);
/* The answer for r is ready: runs `send` for r and for all requests that wait for the same answer; `send` answers the request that it
 * gets. For a request that did not come through a gate it runs once. */
void web_gate_answer(struct http_request *r, void (*send)(struct http_request *r, void *answer), void *answer);
