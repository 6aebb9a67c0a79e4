/* First come, first served. The limit keeps the store's two readers and a thread of the pool busy:
 * more at once would be no faster, and each holds all that it has read. */
#include "web/gate.h"

#include <assert.h>

#include "base/alloc.h"

enum { IN_THE_MAKING_MAX = 3 };

struct web_gate {
	struct web_turn *first, **last;
	int n_busy;
	bool is_going_on, is_closed, is_free;
};

struct web_gate *web_gate_new(void)
{
	struct web_gate *g = xcalloc(1, sizeof(*g));

	g->last = &g->first;
	return g;
}

static struct web_turn *take_first(struct web_gate *g)
{
	struct web_turn *t = g->first;

	g->first = t->next;
	if (!g->first)
		g->last = &g->first;
	return t;
}

/* A turn that is over inside of begin() only counts: this does not call itself once for each that
 * waits. */
static void go_on(struct web_gate *g)
{
	if (g->is_going_on)
		return;
	g->is_going_on = true;
	while (g->first && (g->is_closed || g->n_busy < IN_THE_MAKING_MAX)) {
		struct web_turn *t = take_first(g);

		if (g->is_closed || (t->has_waited && http_client_has_ended(t->request))) {
			t->refuse(t);
		} else {
			g->n_busy++;
			t->begin(t);
		}
	}
	g->is_going_on = false;
}

void web_turn_take(struct web_gate *g, struct web_turn *t)
{
	t->gate = g;
	t->next = NULL;
	t->has_waited = g->n_busy >= IN_THE_MAKING_MAX;
	*g->last = t;
	g->last = &t->next;
	go_on(g);
}

void web_turn_over(struct web_turn *t)
{
	struct web_gate *g = t->gate;

	g->n_busy--;
	go_on(g);
	if (g->is_free && !g->n_busy)
		free(g);
}

void web_gate_close(struct web_gate *g)
{
	g->is_closed = true;
	go_on(g);
}

void web_gate_free(struct web_gate *g)
{
	assert(!g->first);
	g->is_free = true;
	if (!g->n_busy)
		free(g);
}
