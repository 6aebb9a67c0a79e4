/* GET /api/v1/events?watch=PATH: server-sent events (WHATWG HTML section 9.2) that say what to ask
 * for again.
 *
 * What commits touch is gathered and told once a second at most, so a vendor that reports a hundred
 * jobs at once makes nobody ask a hundred times. An idle stream costs its connection and one small
 * block. Nothing is kept for who is away: the first event of a stream comes at once for each thing
 * that it watches, and the answers' ETags tell whether there was anything. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "web/params.h"
#include "web/watch.h"
#include "web/web_internal.h"

enum {
	STREAMS_MAX = 1000,
	OF_ONE_CLIENT_MAX = STREAMS_MAX / 8, /* so that it cannot take the places of all others */
	WATCHES_MAX = 8,
	UNSENT_MAX_BYTES = 16 << 10, /* of one that does not read */
	TELL_EVERY_MS = 1000,
	TELL_WIDE_EVERY_MS = 5000, /* what anything shows in */
	COMMENT_EVERY_MS = 15000,
	FRAMES_MAX_BYTES = 4096,
	BUSY_RETRY_AFTER_S = 5,
};

struct event_stream {
	struct web_events *events;
	struct http_request *request;
	struct http_client_group client;
	struct event_stream *next, **slot;
	int n;
	struct watch at[];
};

struct web_events {
	struct web *web;
	struct event_stream *streams;
	int n_streams;
	struct http_group_amounts *clients; /* how many streams each has */
	struct store_touched pending;       /* since the last telling */
	bool is_wide_pending;
	struct name_touched names; /* while is_naming */
	bool is_naming;
	struct timer *tell, *comment; /* NULL until the first stream came */
	int64_t told_ms, wide_told_ms;
	int64_t run, seq; /* an event's id */
};

int web_n_event_streams(const struct web *w)
{
	return w->events->n_streams;
}

/* ---- one stream ---- */

static void on_gone(struct http_request *r)
{
	struct event_stream *s = http_user(r);

	*s->slot = s->next;
	if (s->next)
		s->next->slot = s->slot;
	s->events->n_streams--;
	http_group_amount_add(s->events->clients, &s->client, -1);
	free(s);
}

static void send_frames(struct event_stream *s, const struct buf *frames)
{
	if (!frames->len)
		return;
	if (http_stream_pending(s->request) > UNSENT_MAX_BYTES)
		http_stream_cut(s->request);
	else
		http_stream_write(s->request, frames->data, frames->len);
}

/* ---- what is told ---- */

/* An accelerator at L1 does nothing that anybody sees, like one that never was. */
static bool is_hidden(const struct web_events *e, const struct watch *w)
{
	const struct accelerator *a = w->kind == WATCH_ACCELERATOR && e->web->config
					  ? config_accelerator(e->web->config, watch_name(w))
					  : NULL;

	return a && a->level == LEVEL_1;
}

static bool is_due(const struct watch *w, const struct name_touched *names, bool is_wide_due)
{
	return w->kind == WATCH_WIDE ? is_wide_due : names && watch_is_touched(w, names);
}

/* names NULL: only those that look at everything are due. */
static void tell(struct web_events *e, const struct name_touched *names, bool is_wide_due)
{
	struct buf frames = BUF_INIT(FRAMES_MAX_BYTES);

	e->seq++;
	for (struct event_stream *s = e->streams; s; s = s->next) {
		buf_clear(&frames);
		for (int i = 0; i < s->n; i++)
			if (is_due(&s->at[i], names, is_wide_due) && !is_hidden(e, &s->at[i]))
				watch_write_event(&frames, &s->at[i], e->run, e->seq);
		send_frames(s, &frames);
	}
	buf_release(&frames);
}

static void plan_telling(struct web_events *e)
{
	int64_t now_ms = loop_now_ms(e->web->deps.loop), at_ms = INT64_MAX;

	if (e->is_naming || e->web->is_stopping || !e->tell)
		return;
	if (!touched_is_empty(&e->pending))
		at_ms = e->told_ms + TELL_EVERY_MS;
	if (e->is_wide_pending && e->wide_told_ms + TELL_WIDE_EVERY_MS < at_ms)
		at_ms = e->wide_told_ms + TELL_WIDE_EVERY_MS;
	if (at_ms != INT64_MAX)
		timer_start(e->tell, at_ms > now_ms ? at_ms - now_ms : 0);
}

static void tell_now(struct web_events *e, const struct name_touched *names)
{
	int64_t now_ms = loop_now_ms(e->web->deps.loop);
	bool is_wide_due = e->is_wide_pending && now_ms - e->wide_told_ms >= TELL_WIDE_EVERY_MS;

	if (names)
		e->told_ms = now_ms;
	if (is_wide_due) {
		e->is_wide_pending = false;
		e->wide_told_ms = now_ms;
	}
	tell(e, names, is_wide_due);
	plan_telling(e);
}

static void on_named(struct store_query *q)
{
	struct web_events *e = CONTAINER_OF(q, struct web_events, names.q);

	e->is_naming = false;
	/* Who cannot be told what it was is told that it was anything. */
	if (q->err)
		e->names.touched.is_all = true;
	if (!e->web->is_stopping)
		tell_now(e, &e->names);
	name_touched_release(&e->names);
}

static void on_tell(struct timer *t)
{
	struct web_events *e = timer_owner(t);
	int64_t now_ms = loop_now_ms(e->web->deps.loop);

	if (touched_is_empty(&e->pending) || now_ms - e->told_ms < TELL_EVERY_MS) {
		tell_now(e, NULL);
		return;
	}
	e->names = (struct name_touched){.q.done = on_named, .touched = e->pending};
	if (store_name_touched(e->web->deps.store, &e->names)) {
		name_touched_release(&e->names);
		timer_start(t, TELL_EVERY_MS);
		return;
	}
	e->is_naming = true;
	e->pending = (struct store_touched){0};
}

static void on_changes(unsigned topics, void *owner)
{
	struct web_events *e = owner;

	(void)topics;
	if (!e->n_streams)
		return;
	touched_merge(&e->pending, store_touched(e->web->deps.store));
	e->is_wide_pending = true;
	plan_telling(e);
}

/* So that proxies keep the line, and one that vanished is noticed. */
static void on_comment(struct timer *t)
{
	struct web_events *e = timer_owner(t);
	const struct buf line = {.data = (char *)(uintptr_t) ":\n\n", .len = 3};

	for (struct event_stream *s = e->streams; s; s = s->next)
		send_frames(s, &line);
	timer_start(t, COMMENT_EVERY_MS);
}

/* ---- the request ---- */

static void start_timers(struct web_events *e)
{
	if (e->tell)
		return;
	e->tell = timer_new(e->web->deps.loop, on_tell, e);
	e->comment = timer_new(e->web->deps.loop, on_comment, e);
	timer_start(e->comment, COMMENT_EVERY_MS);
}

static void begin(struct web_events *e, struct http_request *r, const struct watch *at, int n)
{
	static const struct http_header_line headers[] = {{"Cache-Control", "no-store"},
	    {"Access-Control-Allow-Origin", "*"}, {"X-Accel-Buffering", "no"}, {NULL, NULL}};
	struct event_stream *s = xcalloc(1, sizeof(*s) + (size_t)n * sizeof(*at));
	struct buf frames = BUF_INIT(FRAMES_MAX_BYTES);

	start_timers(e);
	s->events = e;
	s->request = r;
	s->client = http_client_group(r);
	http_group_amount_add(e->clients, &s->client, 1);
	s->n = n;
	memcpy(s->at, at, (size_t)n * sizeof(*at));
	s->next = e->streams;
	s->slot = &e->streams;
	if (s->next)
		s->next->slot = &s->next;
	e->streams = s;
	e->n_streams++;
	http_set_user(r, s);
	http_on_gone(r, on_gone);
	http_stream_begin(r, 200, "text/event-stream", headers, NULL);
	buf_append_str(&frames, "retry: 2000\n\n");
	for (int i = 0; i < n; i++)
		watch_write_event(&frames, &s->at[i], e->run, e->seq);
	send_frames(s, &frames);
	buf_release(&frames);
}

static int read_watches(struct params *p, struct watch *at)
{
	char path[WATCH_BYTES], more[2];
	int n = 0, rc;

	while (n < WATCHES_MAX &&
	       (rc = http_query_nth(p->r, "watch", n, path, sizeof(path))) != ERR_NOT_FOUND) {
		if (rc || watch_parse(path, &at[n]))
			params_wrong(p, "watch",
			    "must be a path such as pulls/7, commits/SHA, jobs/3, "
			    "accelerators/NAME, dashboard, nightly or platforms");
		n++;
	}
	if (n == 0)
		params_wrong(p, "watch", "says what is watched, and is missing");
	else if (http_query_nth(p->r, "watch", WATCHES_MAX, more, sizeof(more)) != ERR_NOT_FOUND)
		params_wrong(p, "watch", "comes more than eight times");
	return n;
}

static void on_events(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct params p = PARAMS_INIT(r);
	struct watch at[WATCHES_MAX];
	struct http_client_group client = http_client_group(r);
	int n = read_watches(&p, at);

	if (params_refuse(&p))
		return;
	if (http_group_amount(w->events->clients, &client) >= OF_ONE_CLIENT_MAX)
		web_respond_too_many(
		    r, "this address has as many streams of events at once as one may");
	else if (w->is_stopping || w->events->n_streams >= STREAMS_MAX)
		http_respond_busy(r, BUSY_RETRY_AFTER_S);
	else if (str_eq(http_method(r), "HEAD"))
		http_respond(r, 200, "text/event-stream", NULL, "", 0);
	else
		begin(w->events, r, at, n);
}

void web_cut_events(struct web *w)
{
	struct web_events *e = w->events;

	for (struct event_stream *s = e->streams; s; s = s->next)
		http_stream_cut(s->request);
	timer_close(e->tell);
	timer_close(e->comment);
	e->tell = e->comment = NULL;
}

void web_free_events(struct web *w)
{
	http_group_amounts_free(w->events->clients);
	free(w->events);
}

void web_add_event_routes(struct web *w)
{
	w->events = xcalloc(1, sizeof(*w->events));
	w->events->web = w;
	w->events->clients = http_group_amounts_new();
	w->events->run = w->started_wall_ms;
	w->events->told_ms = w->events->wide_told_ms = -TELL_WIDE_EVERY_MS;
	store_subscribe(w->deps.store, STORE_CHANGES, on_changes, w->events);
	web_add_stream(w, "/api/v1/events", on_events);
}
