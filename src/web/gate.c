/* The limit on answers in progress keeps the store's two readers and a thread of the pool busy: more at once would not be faster,
 * and each holds everything that it has read. */
#include "web/gate.h"

#include "http/client_group.h"

struct waiter {
	struct turn *turn;
	struct http_request *request;
	TAILQ_ENTRY(waiter) link; /* of the turn's list */
};

/* One answer, and all requests for it. While it waits it is in the line of one of their clients. */
struct turn {
	struct web_gate *gate;
	struct line *line; /* NULL: in progress */
	TAILQ_ENTRY(turn) link;
	char *target;
	TAILQ_HEAD(, waiter) waiters;
	void (*make)(struct http_request *r, void *owner);
	void *owner;
	bool has_waited, is_long;
	int64_t version; /* in progress: of its beginning */
};

TAILQ_HEAD(turn_list, turn);

/* The turns that wait for one client. */
struct line {
	struct http_client_group group;
	TAILQ_ENTRY(line) link;
	struct turn_list turns;
	int n;
};

/* An answer that nothing has changed since. */
struct kept_answer {
	TAILQ_ENTRY(kept_answer) link;
	char *target;
	struct web_answer *answer;
};

struct web_gate {
	void (*refuse)(struct http_request *r);
	TAILQ_HEAD(, line) lines; /* the first has the next turn */
	int n_waiting;            /* turns in all lines */
	struct turn_list making;  /* in progress; n of them */
	int n_making, n_long;
	int64_t (*version)(void *owner);
	void *owner;
	TAILQ_HEAD(, kept_answer) kept; /* the oldest first */
	size_t kept_bytes;
	int64_t kept_version; /* of all of them */
	bool is_going_on, is_closed, is_free;
};

struct web_gate *web_gate_new(void (*refuse)(struct http_request *r))
{
	struct web_gate *g = xcalloc(1, sizeof(*g));

	g->refuse = refuse;
	TAILQ_INIT(&g->lines);
	TAILQ_INIT(&g->making);
	TAILQ_INIT(&g->kept);
	return g;
}

void web_gate_share_begun(struct web_gate *g, int64_t (*version)(void *owner), void *owner)
{
	g->version = version;
	g->owner = owner;
}

/* ---- answers that are kept ---- */

enum { KEPT_MAX_BYTES = 16 << 20, KEPT_ONE_MAX_BYTES = KEPT_MAX_BYTES / 4 };

static void forget_kept(struct web_gate *g, struct kept_answer *k)
{
	TAILQ_REMOVE(&g->kept, k, link);
	g->kept_bytes -= k->answer->n_bytes;
	http_shared_keep(k->answer->body, false);
	k->answer->release(k->answer);
	FREE_ALL(k->target, k);
}

/* Forgets all of them if something has changed. */
static void check_kept(struct web_gate *g)
{
	int64_t version = g->version && !g->is_closed ? g->version(g->owner) : 0;

	while (!TAILQ_EMPTY(&g->kept) && (g->kept_version != version || g->is_closed))
		forget_kept(g, TAILQ_FIRST(&g->kept));
	g->kept_version = version;
}

static const struct web_answer *find_kept(struct web_gate *g, const char *target)
{
	struct kept_answer *k;

	check_kept(g);
	TAILQ_FOREACH (k, &g->kept, link)
		if (str_eq(k->target, target))
			return k->answer;
	return NULL;
}

/* Takes the answer of the turn, which ends. */
static void keep_or_release(struct web_gate *g, struct turn *t, struct web_answer *a)
{
	struct kept_answer *k;

	if (!a->may_be_kept || a->n_bytes > KEPT_ONE_MAX_BYTES || !g->version || g->is_closed ||
	    find_kept(g, t->target) || t->version != g->kept_version) {
		a->release(a);
		return;
	}
	while (g->kept_bytes + a->n_bytes > KEPT_MAX_BYTES)
		forget_kept(g, TAILQ_FIRST(&g->kept));
	k = xcalloc(1, sizeof(*k));
	k->target = t->target;
	t->target = NULL;
	k->answer = a;
	http_shared_keep(a->body, true);
	TAILQ_INSERT_TAIL(&g->kept, k, link);
	g->kept_bytes += a->n_bytes;
}

/* ---- lines ---- */

static struct line *find_line(const struct web_gate *g, const struct http_client_group *group)
{
	struct line *l;

	TAILQ_FOREACH (l, &g->lines, link)
		if (http_client_group_equal(&l->group, group))
			return l;
	return NULL;
}

static void enter_line(struct turn *t, const struct http_client_group *group)
{
	struct web_gate *g = t->gate;
	struct line *l = find_line(g, group);

	if (!l) {
		l = xcalloc(1, sizeof(*l));
		l->group = *group;
		TAILQ_INIT(&l->turns);
		TAILQ_INSERT_TAIL(&g->lines, l, link);
	}
	t->line = l;
	TAILQ_INSERT_TAIL(&l->turns, t, link);
	l->n++;
	g->n_waiting++;
}

static void leave_line(struct turn *t)
{
	struct line *l = t->line;

	TAILQ_REMOVE(&l->turns, t, link);
	t->line = NULL;
	t->gate->n_waiting--;
	if (--l->n)
		return;
	TAILQ_REMOVE(&t->gate->lines, l, link);
	free(l);
}

/* ---- turns ---- */

static void turn_free(struct turn *t)
{
	assert(!t->line && TAILQ_EMPTY(&t->waiters));
	FREE_ALL(t->target, t);
}

/* Ends the waiting of the request, which may be answered then. */
static struct http_request *release_waiter(struct waiter *a)
{
	struct http_request *r = a->request;

	TAILQ_REMOVE(&a->turn->waiters, a, link);
	free(a);
	http_on_gone(r, NULL);
	http_set_user(r, NULL);
	return r;
}

static void refuse_turn(struct turn *t)
{
	leave_line(t);
	while (!TAILQ_EMPTY(&t->waiters))
		t->gate->refuse(release_waiter(TAILQ_FIRST(&t->waiters)));
	turn_free(t);
}

static void on_turn_gone(struct http_request *r)
{
	struct waiter *a = http_user(r);
	struct turn *t = a->turn;

	release_waiter(a);
	if (!TAILQ_EMPTY(&t->waiters) || !t->line)
		return;
	leave_line(t);
	turn_free(t);
}

static void add_waiter(struct turn *t, struct http_request *r)
{
	struct waiter *a = xcalloc(1, sizeof(*a));

	a->turn = t;
	a->request = r;
	TAILQ_INSERT_TAIL(&t->waiters, a, link);
	http_set_user(r, a);
	http_on_gone(r, on_turn_gone);
}

/* Begins a turn that left its line. */
static void begin_turn(struct turn *t)
{
	struct waiter *next;

	/* A client that is leaving needs no answer. */
	for (struct waiter *a = TAILQ_FIRST(&t->waiters); t->has_waited && a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (http_client_has_ended(a->request))
			t->gate->refuse(release_waiter(a));
	}
	if (TAILQ_EMPTY(&t->waiters)) {
		turn_free(t);
		return;
	}
	struct http_request *r = TAILQ_FIRST(&t->waiters)->request;
	http_on_gone(r, NULL); /* it stays until it is answered, also if its client leaves */
	t->gate->n_making++;
	t->gate->n_long += t->is_long;
	TAILQ_INSERT_TAIL(&t->gate->making, t, link);
	t->version = t->gate->version ? t->gate->version(t->gate->owner) : 0;
	t->make(r, t->owner);
}

/* The first line whose turn may begin; NULL: none. */
static struct line *find_next_line(const struct web_gate *g)
{
	struct line *l;

	TAILQ_FOREACH (l, &g->lines, link)
		if (g->is_closed ||
		    (g->n_making < WEB_GATE_MAKING_MAX && !(g->n_long && TAILQ_FIRST(&l->turns)->is_long)))
			return l;
	return NULL;
}

/* A turn that ends inside of its begin_turn() does not continue the others: this loop does, so the stack does not grow. */
static void continue_turns(struct web_gate *g)
{
	struct line *l;

	if (g->is_going_on)
		return;
	g->is_going_on = true;
	while ((l = find_next_line(g)) != NULL) {
		struct turn *t = TAILQ_FIRST(&l->turns);

		if (g->is_closed) {
			refuse_turn(t);
			continue;
		}
		TAILQ_REMOVE(&g->lines, l, link); /* the next turn is another client's */
		TAILQ_INSERT_TAIL(&g->lines, l, link);
		leave_line(t);
		begin_turn(t);
	}
	g->is_going_on = false;
}

/* ---- requests ---- */

/* Lets r share an answer that is in progress and that nothing has changed since. */
static bool join_begun_turn(struct web_gate *g, struct http_request *r)
{
	struct turn *t;

	if (!g->version)
		return false;
	TAILQ_FOREACH (t, &g->making, link)
		if (t->version == g->version(g->owner) && str_eq(t->target, http_target(r))) {
			add_waiter(t, r);
			return true;
		}
	return false;
}

/* Lets r share a turn for the same answer that waits, and moves the turn to the line in which it comes soonest. */
static bool join_turn(struct web_gate *g, struct http_request *r, const struct http_client_group *group)
{
	const struct line *own = find_line(g, group), *l;
	struct turn *t;
	int n_before;

	TAILQ_FOREACH (l, &g->lines, link) {
		n_before = 0;
		TAILQ_FOREACH (t, &l->turns, link) {
			if (str_eq(t->target, http_target(r))) {
				add_waiter(t, r);
				if ((own ? own->n : 0) < n_before) {
					leave_line(t);
					enter_line(t, group);
				}
				return true;
			}
			n_before++;
		}
	}
	return false;
}

/* Makes room for one more in the client's line. Returns false if that line would be the longest. */
static bool make_room(struct web_gate *g, const struct http_client_group *group)
{
	const struct line *own = find_line(g, group);
	struct line *longest = TAILQ_FIRST(&g->lines), *l;

	if (g->n_waiting < WEB_GATE_WAITING_MAX)
		return true;
	TAILQ_FOREACH (l, &g->lines, link)
		if (l->n > longest->n)
			longest = l;
	if ((own ? own->n : 0) + 1 >= longest->n)
		return false;
	refuse_turn(TAILQ_LAST(&longest->turns, turn_list));
	return true;
}

void web_gate_submit(struct web_gate *g, struct http_request *r, bool is_long,
    void (*make)(struct http_request *r, void *owner), void *owner)
{
	struct http_client_group group = http_client_group(r);
	const struct web_answer *kept = find_kept(g, http_target(r));
	struct turn *t;

	if (kept) {
		kept->send(r, kept);
		return;
	}
	if (join_begun_turn(g, r) || join_turn(g, r, &group))
		return;
	if (g->is_closed || !make_room(g, &group)) {
		g->refuse(r);
		return;
	}
	t = xcalloc(1, sizeof(*t));
	t->gate = g;
	t->target = xstrdup(http_target(r));
	TAILQ_INIT(&t->waiters);
	t->make = make;
	t->owner = owner;
	t->is_long = is_long;
	t->has_waited = g->n_making >= WEB_GATE_MAKING_MAX || (is_long && g->n_long);
	add_waiter(t, r);
	enter_line(t, &group);
	continue_turns(g);
}

void web_gate_answer(struct http_request *r, struct web_answer *a)
{
	struct waiter *first = http_user(r);
	struct turn *t = first ? first->turn : NULL;

	if (!t) {
		a->send(r, a);
		a->release(a);
		return;
	}
	struct web_gate *g = t->gate;
	while (!TAILQ_EMPTY(&t->waiters))
		a->send(release_waiter(TAILQ_FIRST(&t->waiters)), a);
	TAILQ_REMOVE(&g->making, t, link);
	keep_or_release(g, t, a);
	g->n_making--;
	g->n_long -= t->is_long;
	turn_free(t);
	continue_turns(g);
	if (g->is_free && !g->n_making)
		free(g);
}

void web_gate_close(struct web_gate *g)
{
	g->is_closed = true;
	check_kept(g);
	continue_turns(g);
}

void web_gate_free(struct web_gate *g)
{
	assert(TAILQ_EMPTY(&g->lines) && TAILQ_EMPTY(&g->kept));
	g->is_free = true;
	if (!g->n_making)
		free(g);
}
