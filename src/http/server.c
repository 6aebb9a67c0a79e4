/* The server as a whole: its limits, its list of connections, its clock and its end. */
#include "http/server.h"

#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "http/server_internal.h"
#include "http/session.h"

const struct http_limits HTTP_LIMITS_DEFAULT = {
    .max_header_bytes = 16384,
    .max_total_body_bytes = (size_t)128 << 20,
    .max_body_bytes_of_one = (size_t)48 << 20,
    .slow_body_ms = 1000,
    .max_total_unsent_bytes = (size_t)64 << 20,
    .max_connections = 4096,
    .max_connections_of_one = 1024,
    .known_ms = 60 * 60 * 1000,
    .first_byte_timeout_ms = 5000,
    .header_timeout_ms = 10000,
    .body_timeout_ms = 20000,
    .idle_timeout_ms = 75000,
    .write_timeout_ms = 30000,
};

enum {
	FORGET_KNOWN_MS = 60 * 1000,
	KNOWN_MAX = 4096, /* groups */
};

static int64_t min_ms(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Often enough for the shortest limit, and once a second in the daemon. */
static int64_t tick_ms_for(const struct http_limits *l)
{
	int64_t ms = min_ms(min_ms(l->header_timeout_ms, l->body_timeout_ms),
	    min_ms(min_ms(l->idle_timeout_ms, l->write_timeout_ms), l->first_byte_timeout_ms));

	ms /= 4;
	if (ms > 1000)
		return 1000;
	return ms > 5 ? ms : 5;
}

void http_server_note_known(struct http_server *s, const struct http_client_group *g)
{
	int64_t until_ms = loop_now_ms(s->loop) + s->limits.known_ms;
	int64_t so_far_ms = http_group_amount(s->known_until, g);

	if (so_far_ms || http_group_amounts_n(s->known_until) < KNOWN_MAX)
		http_group_amount_add(s->known_until, g, until_ms - so_far_ms);
}

bool http_server_is_known(const struct http_server *s, const struct http_client_group *g)
{
	return http_group_amount(s->known_until, g) > loop_now_ms(s->loop);
}

static void forget_known(struct http_server *s, int64_t now_ms)
{
	if (now_ms < s->forget_known_ms)
		return;
	s->forget_known_ms = now_ms + FORGET_KNOWN_MS;
	http_group_amounts_keep_above(s->known_until, now_ms);
}

static void on_tick(struct timer *t)
{
	struct http_server *s = timer_owner(t);
	int64_t now_ms = loop_now_ms(s->loop);
	bool is_over = s->is_closing && now_ms >= s->close_by_ms;
	struct http_conn *next;

	/* Connections leave the list only in close callbacks, never in here. */
	for (struct http_conn *c = s->conns; c; c = next) {
		next = c->next;
		if (is_over)
			http_conn_drop(c);
		else
			http_conn_check_deadlines(c, now_ms);
	}
	forget_known(s, now_ms);
	http_blocks_trim();
	/* Twice more when the last is gone, so that the trim frees all that is spare. */
	s->n_quiet_ticks = s->n_conns ? 0 : s->n_quiet_ticks + 1;
	if (s->n_quiet_ticks < 3)
		timer_start(s->tick, s->tick_ms);
}

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	s->loop = l;
	s->limits = limits ? *limits : HTTP_LIMITS_DEFAULT;
	if (s->limits.max_header_bytes > HTTP_MAX_HEAD_BYTES)
		s->limits.max_header_bytes = HTTP_MAX_HEAD_BYTES;
	s->bodies.max_bytes = s->limits.max_total_body_bytes;
	s->bodies.max_bytes_of_one = s->limits.max_body_bytes_of_one;
	s->bodies.reserve_bytes = s->limits.max_total_body_bytes / 8;
	s->bodies.of_one = http_group_amounts_new();
	s->open_of = http_group_amounts_new();
	s->known_until = http_group_amounts_new();
	s->tick_ms = tick_ms_for(&s->limits);
	http_blocks_hold();
	s->shared_bytes = http_group_amounts_new();
	s->n_sending = http_group_amounts_new();
	s->tick = timer_new(l, on_tick, s);
	buf_init(&s->out_head, 65536);
	buf_reserve(&s->out_head, 1024);
	return s;
}

void http_server_route(struct http_server *s, const struct http_route *route)
{
	http_routes_add(&s->routes, route);
}

void http_server_fallback(struct http_server *s, const struct http_route *route)
{
	s->routes.fallback = *route;
}

void http_server_trust_proxies(
    struct http_server *s, bool (*is_trusted)(const uint8_t address[16], void *owner), void *owner)
{
	s->is_trusted = is_trusted;
	s->trusted_owner = owner;
}

int http_server_n_connections(const struct http_server *s)
{
	return s->n_open;
}

const struct http_counters *http_server_counters(const struct http_server *s)
{
	return &s->counters;
}

void http_server_times(const struct http_server *s,
    void (*each)(const struct http_route *route, const struct histogram *times, void *owner),
    void *owner)
{
	for (int i = 0; i < s->routes.n; i++)
		each(&s->routes.at[i].route, &s->routes.at[i].times, owner);
}

int http_server_use_tls(
    struct http_server *s, const char *certificate_pem, struct private_key *key, struct error *e)
{
	struct http_tls *tls;
	int rc = http_tls_new(certificate_pem, key, &tls, e);

	if (rc)
		return rc;
	http_tls_free(s->tls);
	s->tls = tls;
	return 0;
}

void http_server_link(struct http_server *s, struct http_conn *c)
{
	c->next = s->conns;
	if (s->conns)
		s->conns->prev = c;
	s->conns = c;
	s->n_conns++;
	if (!timer_is_running(s->tick))
		timer_start(s->tick, s->tick_ms);
}

void http_server_unlink(struct http_server *s, struct http_conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		s->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	s->n_conns--;
}

const char *http_server_date(struct http_server *s)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;

	if (now != s->date_s || s->date[0] == '\0') {
		s->date_s = now;
		gmtime_r(&now, &tm);
		strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	}
	return s->date;
}

static void finish(void *p)
{
	struct http_server *s = p;
	void (*on_closed)(void *owner) = s->on_closed;
	void *owner = s->closed_owner;

	http_routes_release(&s->routes);
	http_blocks_release();
	http_group_amounts_free(s->shared_bytes);
	http_group_amounts_free(s->n_sending);
	http_tls_free(s->tls);
	http_group_amounts_free(s->bodies.of_one);
	http_group_amounts_free(s->open_of);
	http_group_amounts_free(s->known_until);
	buf_release(&s->out_head);
	free(s);
	if (on_closed)
		on_closed(owner);
}

void http_server_check_closed(struct http_server *s)
{
	if (!s->is_closing || s->is_gone || s->n_conns || s->n_listeners)
		return;
	s->is_gone = true;
	timer_close(s->tick);
	/* Behind whatever of this server still waits in the same list. */
	loop_reap(s->loop, finish, s);
}

void http_server_close(
    struct http_server *s, int64_t grace_ms, void (*on_closed)(void *owner), void *owner)
{
	struct http_conn *next;

	if (s->is_closing)
		return;
	s->is_closing = true;
	s->on_closed = on_closed;
	s->closed_owner = owner;
	s->close_by_ms = loop_now_ms(s->loop) + grace_ms;
	s->tick_ms = min_ms(s->tick_ms, grace_ms / 4 > 5 ? grace_ms / 4 : 5);
	timer_start(s->tick, s->tick_ms);
	http_listeners_close(s);
	for (struct http_conn *c = s->conns; c; c = next) {
		next = c->next;
		if (c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_HANDSHAKE)
			http_conn_drop(c);
	}
	http_server_check_closed(s);
}
