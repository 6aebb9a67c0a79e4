/* The limit on what is in the making keeps the store's two readers and a thread of the pool busy:
 * more at once would be no faster, and each holds all that it has read. */
#include "web/gate.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "http/client_group.h"

struct asker {
	struct turn *turn;
	struct http_request *request;
	struct asker *next, **slot; /* of the turn's list */
};

/* One answer, and all who want it. While it waits it stands in the line of one of their clients. */
struct turn {
	struct web_gate *gate;
	struct line *line; /* NULL: in the making */
	struct turn *next;
	char *target;
	struct asker *askers, **last;
	void (*make)(struct http_request *r, void *owner);
	void *owner;
	bool has_waited;
};

/* A client of whom something waits. */
struct line {
	struct http_client_group group;
	struct line *next;
	struct turn *turns;
	int n;
};

struct web_gate {
	void (*refuse)(struct http_request *r);
	struct line *lines; /* the first has the next turn */
	int n_waiting;      /* turns in all lines */
	int n_making;
	bool is_going_on, is_closed, is_free;
};

struct web_gate *web_gate_new(void (*refuse)(struct http_request *r))
{
	struct web_gate *g = xcalloc(1, sizeof(*g));

	g->refuse = refuse;
	return g;
}

/* ---- lines ---- */

static struct line *find_line(const struct web_gate *g, const struct http_client_group *group)
{
	struct line *l = g->lines;

	while (l && !http_client_group_equal(&l->group, group))
		l = l->next;
	return l;
}

static void append_line(struct web_gate *g, struct line *l)
{
	struct line **at = &g->lines;

	while (*at)
		at = &(*at)->next;
	l->next = NULL;
	*at = l;
}

static void remove_line(struct web_gate *g, struct line *l)
{
	struct line **at = &g->lines;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
}

static void stand(struct turn *t, const struct http_client_group *group)
{
	struct web_gate *g = t->gate;
	struct line *l = find_line(g, group);
	struct turn **at;

	if (!l) {
		l = xcalloc(1, sizeof(*l));
		l->group = *group;
		append_line(g, l);
	}
	at = &l->turns;
	while (*at)
		at = &(*at)->next;
	t->next = NULL;
	t->line = l;
	*at = t;
	l->n++;
	g->n_waiting++;
}

static void leave_line(struct turn *t)
{
	struct line *l = t->line;
	struct turn **at = &l->turns;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	t->line = NULL;
	t->gate->n_waiting--;
	if (--l->n)
		return;
	remove_line(t->gate, l);
	free(l);
}

static int n_before(const struct turn *t)
{
	int n = 0;

	for (const struct turn *other = t->line->turns; other != t; other = other->next)
		n++;
	return n;
}

static struct turn *newest_of_longest(const struct web_gate *g)
{
	const struct line *longest = g->lines;
	struct turn *t;

	for (const struct line *l = g->lines; l; l = l->next)
		if (l->n > longest->n)
			longest = l;
	t = longest->turns;
	while (t->next)
		t = t->next;
	return t;
}

/* ---- turns ---- */

static void turn_free(struct turn *t)
{
	assert(!t->line && !t->askers);
	free(t->target);
	free(t);
}

/* The request is nobody's again. */
static struct http_request *release_asker(struct asker *a)
{
	struct http_request *r = a->request;

	*a->slot = a->next;
	if (a->next)
		a->next->slot = a->slot;
	else
		a->turn->last = a->slot;
	free(a);
	http_on_gone(r, NULL);
	http_set_user(r, NULL);
	return r;
}

static void refuse_turn(struct turn *t)
{
	leave_line(t);
	while (t->askers)
		t->gate->refuse(release_asker(t->askers));
	turn_free(t);
}

static void on_gone(struct http_request *r)
{
	struct asker *a = http_user(r);
	struct turn *t = a->turn;

	release_asker(a);
	if (t->askers || !t->line)
		return;
	leave_line(t);
	turn_free(t);
}

static void add_asker(struct turn *t, struct http_request *r)
{
	struct asker *a = xcalloc(1, sizeof(*a));

	a->turn = t;
	a->request = r;
	a->slot = t->last;
	*t->last = a;
	t->last = &a->next;
	http_set_user(r, a);
	http_on_gone(r, on_gone);
}

/* Those whose clients are leaving need nothing to be made. */
static void refuse_leaving(struct turn *t)
{
	struct asker *next;

	for (struct asker *a = t->askers; a; a = next) {
		next = a->next;
		if (http_client_has_ended(a->request))
			t->gate->refuse(release_asker(a));
	}
}

static void begin(struct turn *t)
{
	struct http_request *r = t->askers->request;

	/* It stays until it is answered, whether or not its client does. */
	http_on_gone(r, NULL);
	t->gate->n_making++;
	t->make(r, t->owner);
}

/* A turn that is over inside of its begin() only counts: this does not call itself once for each that
 * waits. */
static void go_on(struct web_gate *g)
{
	if (g->is_going_on)
		return;
	g->is_going_on = true;
	while (g->lines && (g->is_closed || g->n_making < WEB_GATE_MAKING_MAX)) {
		struct line *l = g->lines;
		struct turn *t = l->turns;

		if (g->is_closed) {
			refuse_turn(t);
			continue;
		}
		remove_line(g, l);
		append_line(g, l);
		leave_line(t);
		if (t->has_waited)
			refuse_leaving(t);
		if (t->askers)
			begin(t);
		else
			turn_free(t);
	}
	g->is_going_on = false;
}

/* ---- requests ---- */

static struct turn *find_waiting(const struct web_gate *g, const char *target)
{
	for (const struct line *l = g->lines; l; l = l->next)
		for (struct turn *t = l->turns; t; t = t->next)
			if (str_eq(t->target, target))
				return t;
	return NULL;
}

/* The turn stands where it comes soonest. */
static void join(struct turn *t, struct http_request *r)
{
	struct http_client_group group = http_client_group(r);
	const struct line *own = find_line(t->gate, &group);

	add_asker(t, r);
	if ((own ? own->n : 0) >= n_before(t))
		return;
	leave_line(t);
	stand(t, &group);
}

/* Makes room for one more in the client's line. False: with it that line is as long as any. */
static bool has_room(struct web_gate *g, const struct http_client_group *group)
{
	const struct line *own = find_line(g, group);
	struct turn *t;

	if (g->n_waiting < WEB_GATE_WAITING_MAX)
		return true;
	t = newest_of_longest(g);
	if ((own ? own->n : 0) + 1 >= t->line->n)
		return false;
	refuse_turn(t);
	return true;
}

void web_gate_ask(struct web_gate *g, struct http_request *r,
    void (*make)(struct http_request *r, void *owner), void *owner)
{
	struct http_client_group group = http_client_group(r);
	struct turn *t = find_waiting(g, http_target(r));

	if (t) {
		join(t, r);
		return;
	}
	if (g->is_closed || !has_room(g, &group)) {
		g->refuse(r);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	t->gate = g;
	t->target = xstrdup(http_target(r));
	t->last = &t->askers;
	t->make = make;
	t->owner = owner;
	t->has_waited = g->n_making >= WEB_GATE_MAKING_MAX;
	add_asker(t, r);
	stand(t, &group);
	go_on(g);
}

void web_gate_answer(
    struct http_request *r, void (*send)(struct http_request *r, void *answer), void *answer)
{
	struct asker *a = http_user(r);
	struct turn *t = a ? a->turn : NULL;
	struct web_gate *g;

	if (!t) {
		send(r, answer);
		return;
	}
	g = t->gate;
	while (t->askers)
		send(release_asker(t->askers), answer);
	turn_free(t);
	g->n_making--;
	go_on(g);
	if (g->is_free && !g->n_making)
		free(g);
}

void web_gate_close(struct web_gate *g)
{
	g->is_closed = true;
	go_on(g);
}

void web_gate_free(struct web_gate *g)
{
	assert(!g->lines);
	g->is_free = true;
	if (!g->n_making)
		free(g);
}
