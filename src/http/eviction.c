/* Decides which connection or body makes room when the server is full, so that a new client gets in however many
 * connections and bodies another one keeps open.
 *
 * A connection may be closed while it waits for its client: in a TLS handshake, between two requests, in a head, in a
 * collected body, or while a finished answer is sent. It is never closed while a handler has its request, for example
 * while a delivery is being written.
 *
 * The order: first connections of client groups without an authenticated request within known_ms, then those of other
 * groups, and last connections whose own last request was authenticated or that come from a trusted proxy. Within each
 * class, first those of a group with more than a 16th of all places, the largest group first, and then those that have
 * kept the server waiting longest. A body keeps the server waiting as far as it is behind 64 KiB/s.
 *
 * One search closes a 64th of the places at once, so that its cost is shared by as many new connections. */

#include "http/conn.h"
#include "http/server_internal.h"

enum {
	FLOOR_BYTES_S = 64 * 1024, /* a body at this rate does not keep the server waiting */
	KEPT_PART = 64,            /* of the places: for known clients */
	BATCH_PART = 64,           /* of the places: closed by one search */
	LARGE_PART = 16,           /* of the places: a group with more is large */
	BODY_BATCH_PART = 16,      /* of the memory: freed by one search */
};

struct candidate {
	struct http_conn *conn;
	int rank;           /* 0: a stranger's, 1: a known client's, 2: authenticated itself */
	int64_t n_of_group; /* 0: the group is not large */
	int64_t waited_ms;
};

static int64_t conn_waited_ms(const struct http_conn *c, int64_t now_ms)
{
	int64_t age_ms = now_ms - c->since_ms;

	if (c->state != HTTP_CONN_BODY)
		return age_ms;
	int64_t earned_ms = (int64_t)(c->request->received_bytes * 1000 / FLOOR_BYTES_S);
	return age_ms > earned_ms ? age_ms - earned_ms : 0;
}

/* The connection waits only for its client. */
static bool waits_for_client(const struct http_conn *c)
{
	switch (c->state) {
	case HTTP_CONN_HANDSHAKE:
	case HTTP_CONN_IDLE:
	case HTTP_CONN_HEAD:
	case HTTP_CONN_FLUSH:
	case HTTP_CONN_LINGER:
		return c->is_open && !c->is_feeding;
	case HTTP_CONN_BODY:
		/* A streamed body is its handler's already. */
		return !c->is_feeding && c->request->route->body_mode == HTTP_BODY_WHOLE;
	case HTTP_CONN_HANDLING:
		/* Its answer is made and waits to be taken. */
		return c->is_open && !c->is_feeding && c->request->shared;
	case HTTP_CONN_CLOSED:
		break;
	}
	return false;
}

static int conn_rank(const struct http_conn *c)
{
	if (c->is_exempt || c->is_authenticated)
		return 2;
	return http_server_is_known(c->server, &c->group);
}

static int candidate_compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->n_of_group != y->n_of_group)
		return x->n_of_group > y->n_of_group ? -1 : 1;
	if (x->waited_ms != y->waited_ms)
		return x->waited_ms > y->waited_ms ? -1 : 1;
	return x->conn->since_nth < y->conn->since_nth ? -1 : 1;
}

/* All connections that wait for their client and pass may_give_way() (NULL: all do), in the order in which they are closed;
 * free(). */
static struct candidate *candidates_of(
    struct http_conn *c, bool (*may_give_way)(const struct http_conn *other, const struct http_conn *c), size_t *ret_n)
{
	struct http_server *s = c->server;
	struct candidate *all = xmalloc((size_t)s->n_conns * sizeof(*all));
	int64_t now_ms = loop_now_ms(s->loop);
	struct http_conn *o;
	size_t n = 0;

	LIST_FOREACH (o, &s->conns, link) {
		if (o == c || !waits_for_client(o) || (may_give_way && !may_give_way(o, c)))
			continue;
		int64_t n_of_group = o->is_exempt ? 0 : http_group_amount(s->open_of, &o->group);
		all[n++] = (struct candidate){.conn = o,
		    .rank = conn_rank(o),
		    .n_of_group = n_of_group > s->limits.max_connections / LARGE_PART ? n_of_group : 0,
		    .waited_ms = conn_waited_ms(o, now_ms)};
	}
	if (n)
		qsort(all, n, sizeof(*all), candidate_compare);
	*ret_n = n;
	return all;
}

static void log_eviction(const struct http_conn *c, const char *what, const char *why)
{
	struct http_server *s = c->server;
	char client[INET6_ADDRSTRLEN];
	int64_t n_skipped;

	if (!log_limit_pass(&s->evicted_log, loop_now_ms(s->loop), &n_skipped))
		return;
	if (c->request)
		snprintf(client, sizeof(client), "%s", http_client_address(c->request));
	else
		http_address_format(c->peer, client);
	log_event(LOG_WARN, "http_evicted", LOG_S("what", what), LOG_S("why", why), LOG_S("client", client),
	    LOG_I("more", n_skipped));
}

/* ---- connections ---- */

static bool is_same_peer(const struct http_conn *other, const struct http_conn *c)
{
	return !other->is_exempt && http_client_group_equal(&other->group, &c->group);
}

/* Closes up to n_max; returns how many. */
static size_t evict_connections(struct http_conn *newcomer, bool is_share, size_t n_max, int64_t *counter)
{
	size_t n;
	struct candidate *all = candidates_of(newcomer, is_share ? is_same_peer : NULL, &n);

	n = n < n_max ? n : n_max;
	for (size_t i = 0; i < n; i++) {
		log_eviction(all[i].conn, "connection", is_share ? "too many of this client" : "the table is full");
		http_conn_drop(all[i].conn);
	}
	*counter += (int64_t)n;
	free(all);
	return n;
}

bool http_evict_for_connection(struct http_conn *c)
{
	struct http_server *s = c->server;
	int max = s->limits.max_connections, share = s->limits.max_connections_of_one;
	int places = conn_rank(c) ? max : max - max / KEPT_PART;

	if (!c->is_exempt && http_group_amount(s->open_of, &c->group) >= share &&
	    evict_connections(c, true, (size_t)(1 + share / BATCH_PART), &s->counters.n_evicted_share) == 0)
		return false;
	if (s->n_open >= places)
		evict_connections(c, false, (size_t)(1 + max / BATCH_PART), &s->counters.n_evicted_full);
	return s->n_open < places;
}

/* ---- bodies ---- */

static bool is_slow_body(const struct http_conn *other, const struct http_conn *c)
{
	return other->state == HTTP_CONN_BODY && other->request->body.cap &&
	       conn_waited_ms(other, loop_now_ms(c->server->loop)) >= c->server->limits.slow_body_ms;
}

static bool is_slow_body_of_same_client(const struct http_conn *other, const struct http_conn *c)
{
	return is_slow_body(other, c) && http_client_group_equal(&other->request->body.group, &c->request->body.group);
}

bool http_evict_for_body(struct http_conn *c, bool is_share)
{
	struct http_server *s = c->server;
	struct http_bodies *b = &s->bodies;
	int64_t *counter = is_share ? &s->counters.n_bodies_evicted_share : &s->counters.n_bodies_evicted_full;
	size_t goal = (is_share ? b->max_bytes_of_one : b->max_bytes) / BODY_BATCH_PART, freed = 0, n, i = 0;
	struct candidate *all = candidates_of(c, is_share ? is_slow_body_of_same_client : is_slow_body, &n);

	for (; i < n && freed < goal; i++) {
		struct http_conn *o = all[i].conn;

		freed += o->request->body.cap;
		log_eviction(o, "body", is_share ? "too many bytes of this client" : "the memory for bodies is full");
		http_conn_refuse(o, 503, "the memory for bodies is full, and this one was slow");
	}
	*counter += (int64_t)i;
	free(all);
	return i > 0;
}
