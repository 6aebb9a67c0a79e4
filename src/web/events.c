/* GET /api/v1/events?watch=PATH: server-sent events (WHATWG HTML section 9.2) that name the paths to request again.
 *
 * Commits are collected and events are sent at most once a second, so a vendor that reports a hundred jobs at once does not cause
 * a hundred requests from each page. An idle stream costs its connection and one small block. Nothing is kept for absent clients:
 * each stream begins with one event for each path that it watches, and the answers' ETags show whether it has changed. */
#include "web/events.h"

#include "web/params.h"
#include "web/web_internal.h"

/* ---- watches ---- */

static bool is_row_id(const char *text, int64_t *ret) { return parse_int64(text, ret) == 0 && *ret > 0; }

/* The characters that the configuration allows in an accelerator's name. */
static bool is_accelerator_name(const char *text)
{
	return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

int watch_parse(const char *path, struct watch *ret)
{
	static const char *const wide[] = {
	    "dashboard", "nightly", "platforms", "accelerators", "known", "status", NULL};
	const char *slash = strchr(path, '/'), *rest = slash ? slash + 1 : "";

	*ret = (struct watch){0};
	if (strlen(path) >= sizeof(ret->path))
		return ERR_INVALID;
	memcpy(ret->path, path, strlen(path) + 1);
	if (str_has_prefix(path, "pulls/") && is_row_id(rest, &ret->id))
		ret->kind = WATCH_PULL;
	else if (str_has_prefix(path, "commits/") && is_sha1(rest))
		ret->kind = WATCH_COMMIT;
	else if (str_has_prefix(path, "jobs/") && is_row_id(rest, &ret->id))
		ret->kind = WATCH_JOB;
	else if (str_has_prefix(path, "accelerators/") && is_accelerator_name(rest))
		ret->kind = WATCH_ACCELERATOR;
	else if (strv_contains(wide, path) || (str_has_prefix(path, "platforms/") && is_accelerator_name(rest)))
		ret->kind = WATCH_WIDE;
	else
		return ERR_INVALID;
	return 0;
}

static bool list_has_id(const int64_t *list, size_t n, int64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == id)
			return true;
	return false;
}

const char *watch_name(const struct watch *w)
{
	const char *slash = strchr(w->path, '/');

	return slash ? slash + 1 : w->path;
}

bool watch_is_touched(const struct watch *w, const struct name_touched *n)
{
	const char *name = watch_name(w);

	if (!n || n->touched.is_all)
		return true;
	switch (w->kind) {
	case WATCH_PULL:
		return list_has_id(n->numbers, n->n_numbers, w->id);
	case WATCH_COMMIT:
		return strv_contains((const char *const *)n->shas, name);
	case WATCH_JOB:
		return list_has_id(n->touched.jobs, (size_t)n->touched.n_jobs, w->id);
	case WATCH_ACCELERATOR:
		return strv_contains((const char *const *)n->accelerators, name);
	case WATCH_WIDE:
		break;
	}
	return true;
}

void watch_write_event(struct buf *out, const struct watch *w, int64_t run, int64_t seq)
{
	buf_appendf(out, "id: %llx-%llx\nevent: change\ndata: {\"watch\":\"%s\"}\n\n", (unsigned long long)run,
	    (unsigned long long)seq, w->path);
}

/* ---- streams ---- */

enum {
	STREAMS_MAX = 1000,
	OF_ONE_CLIENT_MAX = STREAMS_MAX / 8, /* so that one client cannot take all places */
	WATCHES_MAX = 8,
	UNSENT_MAX_BYTES = 16 << 10, /* of a client that does not read */
	SEND_EVERY_MS = 1000,
	SEND_WIDE_EVERY_MS = 5000, /* for pages on which every change may show */
	COMMENT_EVERY_MS = 15000,
	FRAMES_MAX_BYTES = 4096,
	BUSY_RETRY_AFTER_S = 5,
};

struct event_stream {
	struct web_events *events;
	struct http_request *request;
	struct http_client_group client;
	LIST_ENTRY(event_stream) link;
	int n;
	struct watch at[];
};

struct web_events {
	struct web *web;
	LIST_HEAD(, event_stream) streams;
	int n_streams;
	struct http_group_amounts *clients; /* how many streams each has */
	struct store_touched pending;       /* since the events were sent last */
	bool is_wide_pending;
	struct name_touched names; /* while is_naming */
	bool is_naming;
	struct timer *send, *comment; /* NULL until the first stream begins */
	int64_t sent_ms, wide_sent_ms;
	int64_t run, seq; /* an event's id */
};

int web_n_event_streams(const struct web *w) { return w->events->n_streams; }

/* ---- one stream ---- */

static void on_stream_gone(struct http_request *r)
{
	struct event_stream *s = http_user(r);

	LIST_REMOVE(s, link);
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

/* ---- the events ---- */

static void plan_sending(struct web_events *e)
{
	int64_t now_ms = loop_now_ms(e->web->deps.loop), at_ms = INT64_MAX;

	if (e->is_naming || e->web->is_stopping || !e->send)
		return;
	if (!touched_is_empty(&e->pending))
		at_ms = e->sent_ms + SEND_EVERY_MS;
	if (e->is_wide_pending && e->wide_sent_ms + SEND_WIDE_EVERY_MS < at_ms)
		at_ms = e->wide_sent_ms + SEND_WIDE_EVERY_MS;
	if (at_ms != INT64_MAX)
		timer_start(e->send, at_ms > now_ms ? at_ms - now_ms : 0);
}

/* names NULL: only the watches of wide pages are due. */
static void send_due_events(struct web_events *e, const struct name_touched *names)
{
	int64_t now_ms = loop_now_ms(e->web->deps.loop);
	bool is_wide_due = e->is_wide_pending && now_ms - e->wide_sent_ms >= SEND_WIDE_EVERY_MS;
	struct buf frames = BUF_INIT(FRAMES_MAX_BYTES);
	struct event_stream *s;

	if (names)
		e->sent_ms = now_ms;
	if (is_wide_due) {
		e->is_wide_pending = false;
		e->wide_sent_ms = now_ms;
	}
	e->seq++;
	LIST_FOREACH (s, &e->streams, link) {
		buf_clear(&frames);
		for (int i = 0; i < s->n; i++) {
			const struct watch *w = &s->at[i];
			const struct accelerator *a = w->kind == WATCH_ACCELERATOR && e->web->config
							  ? config_accelerator(e->web->config, watch_name(w))
							  : NULL;
			bool is_due = w->kind == WATCH_WIDE ? is_wide_due : names && watch_is_touched(w, names);

			/* An accelerator at L1 is invisible, like one that is not registered. */
			if (is_due && !(a && a->level == LEVEL_1))
				watch_write_event(&frames, w, e->run, e->seq);
		}
		send_frames(s, &frames);
	}
	buf_release(&frames);
	plan_sending(e);
}

static void on_named(struct store_query *q)
{
	struct web_events *e = CONTAINER_OF(q, struct web_events, names.q);

	e->is_naming = false;
	/* If the names are unknown, everything counts as changed. */
	if (q->err)
		e->names.touched.is_all = true;
	if (!e->web->is_stopping)
		send_due_events(e, &e->names);
	name_touched_release(&e->names);
}

static void on_send_timer(struct timer *t)
{
	struct web_events *e = timer_owner(t);
	int64_t now_ms = loop_now_ms(e->web->deps.loop);

	if (touched_is_empty(&e->pending) || now_ms - e->sent_ms < SEND_EVERY_MS) {
		send_due_events(e, NULL);
		return;
	}
	e->names = (struct name_touched){.q.done = on_named, .touched = e->pending};
	if (store_name_touched(e->web->deps.store, &e->names)) {
		name_touched_release(&e->names);
		timer_start(t, SEND_EVERY_MS);
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
	plan_sending(e);
}

/* Comments keep the connection alive in proxies, and reveal a client that has vanished. */
static void on_comment_timer(struct timer *t)
{
	struct web_events *e = timer_owner(t);
	const struct buf line = {.data = (char *)(uintptr_t) ":\n\n", .len = 3};
	struct event_stream *s;

	LIST_FOREACH (s, &e->streams, link)
		send_frames(s, &line);
	timer_start(t, COMMENT_EVERY_MS);
}

/* ---- the request ---- */

static void begin_stream(struct web_events *e, struct http_request *r, const struct watch *at, int n)
{
	static const struct http_header_line headers[] = {{"Cache-Control", "no-store"},
	    {"Access-Control-Allow-Origin", "*"}, {"X-Accel-Buffering", "no"}, {NULL, NULL}};
	struct event_stream *s = xcalloc(1, sizeof(*s) + (size_t)n * sizeof(*at));
	struct buf frames = BUF_INIT(FRAMES_MAX_BYTES);

	if (!e->send) {
		e->send = timer_new(e->web->deps.loop, on_send_timer, e);
		e->comment = timer_new(e->web->deps.loop, on_comment_timer, e);
		timer_start(e->comment, COMMENT_EVERY_MS);
	}
	s->events = e;
	s->request = r;
	s->client = http_client_group(r);
	http_group_amount_add(e->clients, &s->client, 1);
	s->n = n;
	memcpy(s->at, at, (size_t)n * sizeof(*at));
	LIST_INSERT_HEAD(&e->streams, s, link);
	e->n_streams++;
	http_set_user(r, s);
	http_on_gone(r, on_stream_gone);
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

	while (n < WATCHES_MAX && (rc = http_query_nth(p->r, "watch", n, path, sizeof(path))) != ERR_NOT_FOUND) {
		if (rc || watch_parse(path, &at[n]))
			params_wrong(p, "watch",
			    "must be a path such as pulls/7, commits/SHA, jobs/3, accelerators/NAME, dashboard, "
			    "nightly or platforms");
		n++;
	}
	if (n == 0)
		params_wrong(p, "watch", "is missing: it names the path to watch");
	else if (http_query_nth(p->r, "watch", WATCHES_MAX, more, sizeof(more)) != ERR_NOT_FOUND)
		params_wrong(p, "watch", "appears more than eight times");
	return n;
}

void web_on_events(struct http_request *r, void *owner)
{
	struct web *w = owner;
	struct params p = {.r = r};
	struct watch at[WATCHES_MAX];
	struct http_client_group client = http_client_group(r);
	int n = read_watches(&p, at);

	if (params_refuse(&p))
		return;
	if (http_group_amount(w->events->clients, &client) >= OF_ONE_CLIENT_MAX)
		web_respond_too_many(r, "this address has reached its limit of open event streams");
	else if (w->is_stopping || w->events->n_streams >= STREAMS_MAX)
		http_respond_busy(r, BUSY_RETRY_AFTER_S);
	else if (str_eq(http_method(r), "HEAD"))
		http_respond(r, 200, "text/event-stream", NULL, "", 0);
	else
		begin_stream(w->events, r, at, n);
}

void web_cut_events(struct web *w)
{
	struct web_events *e = w->events;
	struct event_stream *s;

	LIST_FOREACH (s, &e->streams, link)
		http_stream_cut(s->request);
	timer_close(e->send);
	timer_close(e->comment);
	e->send = e->comment = NULL;
}

void web_free_events(struct web *w)
{
	http_group_amounts_free(w->events->clients);
	free(w->events);
}

void web_open_events(struct web *w)
{
	w->events = xcalloc(1, sizeof(*w->events));
	w->events->web = w;
	LIST_INIT(&w->events->streams);
	w->events->clients = http_group_amounts_new();
	w->events->run = w->started_wall_ms;
	w->events->sent_ms = w->events->wide_sent_ms = -SEND_WIDE_EVERY_MS;
	store_subscribe(w->deps.store, STORE_CHANGES, on_changes, w->events);
}
