/* Turns for answers whose size others decide. A change with 100,000 verdicts takes hundreds of
 * megabytes while it is read and written down; a hundred readers of it at once would take the
 * machine. So a few are in the making, and who comes then waits with nothing but his request; the
 * planner, which asks the same readers of the store, waits for these few at most.
 *
 * For web/ only. Thread: loop. */
#ifndef WEB_GATE_H
#define WEB_GATE_H

#include <stdbool.h>

#include "http/server.h"

struct web_turn {
	/* Runs once, on the loop, at once or later: reads and answers the request, and calls
	 * web_turn_over() when that has happened. */
	void (*begin)(struct web_turn *t);
	/* Runs once instead when nobody wants it any more: the service stops, or the client went
	 * away while it waited. Answers busy; there is no web_turn_over() then. */
	void (*refuse)(struct web_turn *t);
	struct http_request *request;
	/* ---- the gate's ---- */
	struct web_gate *gate;
	struct web_turn *next;
	bool has_waited;
};

struct web_gate *web_gate_new(void);
/* Refuses who waits, and whoever comes. */
void web_gate_close(struct web_gate *g);
/* Closed before, it lives on until the last turn is over. */
void web_gate_free(struct web_gate *g);

/* The turn is the caller's, and lives until refuse() or web_turn_over(). begin, refuse and request
 * are set. */
void web_turn_take(struct web_gate *g, struct web_turn *t);
void web_turn_over(struct web_turn *t);

#endif
