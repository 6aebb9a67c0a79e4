/* Turns for everything that is read from the store and shown. Anyone may request it, and an answer may be large: a change with
 * 100,000 verdicts takes hundreds of megabytes while it is read and written.
 *
 * - A few answers are in progress at a time, of which one is long, so that a reader of the store is left for the others.
 * - Requests for the same answer share it if it has not begun, or if nothing has changed since. Otherwise it may miss newer
 *   commits, and a page that requests again because of an event must not get that.
 * - The gate keeps finished answers until something changes, and sends them without a turn. They take at most 16 MiB, which also stay
 *   after the last request.
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

/* An answer, which begins a struct of its writer. */
struct web_answer {
	void (*send)(struct http_request *r, const struct web_answer *a); /* answers the request that it gets */
	void (*release)(struct web_answer *a);                            /* frees it, with a reference of the body */
	struct http_shared *body;                                         /* NULL: none */
	size_t n_bytes;                                                   /* of memory */
	bool may_be_kept; /* an answer made later is the same until something changes */
};

/* refuse: answers a request that gets no turn: too many wait, the service stops, or its client is leaving. Owns: the caller, with
 * web_gate_free(). */
struct web_gate *web_gate_new(void (*refuse)(struct http_request *r));
/* version: differs when an answer may differ from one that began before. Without it, answers that have begun
 * are not shared, and none is kept. */
void web_gate_share_begun(struct web_gate *g, int64_t (*version)(void *owner), void *owner);
/* Refuses all that wait and all later requests. */
void web_gate_close(struct web_gate *g);
/* After web_gate_close(). It lives on until the last turn is over. */
void web_gate_free(struct web_gate *g);

/* Lets make() answer r. is_long: the answer may have any size. It runs once, now or later, for r or for another request of the same target, and later calls
 * web_gate_answer() once for the request that it got. Until then the gate uses the user pointer and the on_gone of each request. */
void web_gate_submit(struct web_gate *g, struct http_request *r, bool is_long,
    void (*make)(struct http_request *r, void *owner), void *owner);
/* The answer for r is ready: sends it to r and to all requests that wait for the same answer. Takes a. For a request that did not come
 * through a gate it is sent once. */
void web_gate_answer(struct http_request *r, struct web_answer *a);
