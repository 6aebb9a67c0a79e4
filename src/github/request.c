/* One authenticated exchange with GitHub, from its start to the call's done(). At any time a request is in exactly
 * one place: it waits for its token, it waits for its installation's budget, it is sent, or it has ended. So it
 * can be cancelled everywhere, and it ends once.
 *
 * Installations take turns, so one with a long queue or a spent quota delays no other. Content writes wait
 * apart from other requests: a waiting comment delays no dispatch. */

#include "github/github_internal.h"

enum {
	/* A request that would wait longer ends with ERR_BUSY; its row in the database waits instead. */
	WAIT_MS_MAX = 10 * 1000,
	BUSY_MS = 1000,       /* until the next attempt of a request that finds the list full */
	N_WAITING_MAX = 1000, /* of one installation and kind */
};

static void request_begin(struct request *r);

void request_list_init(struct request_list *list)
{
	TAILQ_INIT(&list->head);
	list->n = 0;
}

void request_enter(struct request *r, struct request_list *list)
{
	assert(!r->list);
	TAILQ_INSERT_TAIL(&list->head, r, at);
	list->n++;
	r->list = list;
}

void request_leave(struct request *r)
{
	if (!r->list)
		return;
	TAILQ_REMOVE(&r->list->head, r, at);
	r->list->n--;
	r->list = NULL;
}

const char *request_target(const struct request *r) { return r->repository ? r->repository : "the App"; }

/* ---- the end ---- */

/* It never runs done(): the caller may be inside the function that started the call. */
static void request_end(struct request *r)
{
	request_leave(r);
	request_enter(r, &r->g->ended);
	if (!timer_is_running(r->g->turn))
		timer_start(r->g->turn, 0);
}

void request_run_ended(struct github *g)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&g->ended.head))) {
		struct github_call *call = r->call;

		request_leave(r);
		TAILQ_REMOVE(&g->requests, r, all);
		http_call_release(&r->http);
		FREE_ALL(r->spec.path, r->spec.own_body, r->spec.etag, r->spec.marker, r->repository, r->url);
		free_secret(r->authorization);
		FREE_ALL(r->if_none_match, r);
		call->internal = NULL;
		call->done(call);
	}
	github_check_closed(g);
}

/* Ends the request with an error that is not GitHub's. */
static void PRINTF(5, 6)
    request_fail(struct request *r, int err, bool is_final, int64_t retry_after_ms, const char *fmt, ...)
{
	struct github_result *result = &r->call->result;
	va_list ap;

	result->err = err;
	result->is_final = is_final;
	result->retry_after_ms = retry_after_ms;
	result->why.code = err;
	va_start(ap, fmt);
	vsnprintf(result->why.text, sizeof(result->why.text), fmt, ap);
	va_end(ap);
	request_end(r);
}

void request_fail_like(struct request *r, const struct github_result *why)
{
	bool was_sent = r->call->result.was_sent;

	r->call->result = *why;
	r->call->result.was_sent = was_sent;
	request_end(r);
}

void github_cancel(struct github *g, struct github_call *call)
{
	struct request *r = call->internal;

	if (!r || r->list == &g->ended)
		return;
	if (r->list)
		request_fail(r, ERR_CANCELLED, false, 0, "cancelled");
	else
		http_call_cancel(g->http, &r->http);
}

void github_call_release(struct github_call *call)
{
	json_decref(call->answer);
	call->answer = NULL;
}

/* ---- sending ---- */

/* The request goes out as the App itself, with its JWT, not with a token. */
static bool request_is_as_app(const struct request *r) { return r->is_for_login || r->spec.access == ACCESS_APP; }

/* A refusal of one request says nothing about the others. */
static void note_trouble(const struct request *r)
{
	const struct http_call *http = &r->http;
	struct github_stats *s = &r->g->stats;

	if (http->err == ERR_CANCELLED)
		return;
	*s->trouble = '\0';
	if (!http->err && http->status < 500 && http->status != 401)
		return;
	snprintf(s->trouble, sizeof(s->trouble), "%s", r->call->result.why.text);
	s->trouble_wall_ms = clock_wall_ms();
}

static void on_http_done(struct http_call *http)
{
	struct request *r = CONTAINER_OF(http, struct request, http);
	struct github *g = r->g;
	enum request_next next = REQUEST_DONE;

	g->n_in_flight--;
	g->stats.n_failures += http->err && http->err != ERR_CANCELLED;
	g->stats.n_answers_4xx += http->status >= 400 && http->status < 500;
	g->stats.n_answers_5xx += http->status >= 500;
	r->call->result.was_sent |= http->was_sent;
	if (!http->err && http->status == 401 && !r->has_new_token) {
		r->has_new_token = true;
		g->stats.n_tokens_refused++;
		if (request_is_as_app(r))
			app_jwt_drop(g); /* the clock may have jumped since it was made */
		else
			token_refused(r);
		next = REQUEST_AGAIN;
	} else {
		answer_read(r);
		note_trouble(r);
		if (!r->call->result.err && r->is_for_login) {
			app_read(r);
			next = r->call->result.err ? REQUEST_DONE : REQUEST_AGAIN;
		} else if (!r->call->result.err && r->spec.needs_login && !g->bot_login) {
			r->spec.page = 1; /* another App was configured since the search began */
			next = REQUEST_AGAIN;
		} else if (!r->call->result.err && r->spec.on_answer) {
			next = r->spec.on_answer(r);
		}
	}
	if (next == REQUEST_AGAIN)
		request_begin(r);
	else
		request_end(r);
	request_pump(g);
	request_run_ended(g);
}

static void request_send(struct request *r)
{
	struct github *g = r->g;
	bool is_as_app = request_is_as_app(r);
	const char *credential = is_as_app ? app_jwt(g) : token_use(r);
	int n = 0;

	if (!credential && is_as_app) {
		request_fail(r, ERR_AUTH, false, 0, "the App's private key cannot sign");
		return;
	}
	if (!credential) { /* the token expired while the request waited */
		request_begin(r);
		return;
	}
	r->generation = g->generation;
	http_call_release(&r->http);
	free(r->url);
	if (r->is_for_login)
		r->url = xasprintf("%s/app", g->api_url);
	else if (r->spec.page)
		r->url = xasprintf("%s%s&page=%d", g->api_url, r->spec.path, r->spec.page);
	else
		r->url = xasprintf("%s%s", g->api_url, r->spec.path);
	r->http = (struct http_call){.method = r->spec.method ? r->spec.method : "GET",
	    .url = r->url,
	    .headers = r->headers,
	    .body = r->spec.own_body ? r->spec.own_body : r->spec.body,
	    .body_bytes = r->spec.own_body ? strlen(r->spec.own_body) : r->spec.body_bytes,
	    .max_answer_bytes = r->spec.max_answer_bytes,
	    .may_go_out = r->call->may_go_out,
	    .going_owner = r->call->going_owner,
	    .done = on_http_done};
	free_secret(r->authorization);
	r->authorization = xasprintf("Authorization: Bearer %s", credential);
	r->headers[n++] = r->authorization;
	r->headers[n++] = "Accept: application/vnd.github+json";
	r->headers[n++] = "X-GitHub-Api-Version: 2022-11-28";
	if (r->http.body)
		r->headers[n++] = "Content-Type: application/json";
	if (r->spec.etag && !r->if_none_match)
		r->if_none_match = xasprintf("If-None-Match: %s", r->spec.etag);
	if (r->if_none_match)
		r->headers[n++] = r->if_none_match;
	r->headers[n] = NULL;
	g->n_in_flight++;
	g->stats.n_requests++;
	http_call_start(g->http, &r->http);
}

/* ---- waiting for budget ---- */

struct account *account_of(struct github *g, int64_t installation_id)
{
	struct account *a;

	STAILQ_FOREACH (a, &g->accounts, link)
		if (a->installation_id == installation_id)
			return a;
	a = xcalloc(1, sizeof(*a));
	a->installation_id = installation_id;
	budget_init(&a->budget, g->writes_per_minute);
	for (int k = 0; k < N_BUDGET_KINDS; k++)
		request_list_init(&a->waiting[k]);
	STAILQ_INSERT_TAIL(&g->accounts, a, link);
	return a;
}

static void request_fail_busy(struct request *r, int64_t wait_ms)
{
	request_fail(r, ERR_BUSY, false, wait_ms, "%s, %s: GitHub's limit allows no request for %lld s", r->spec.what,
	    request_target(r), (long long)((wait_ms + 999) / 1000));
}

void request_queue(struct request *r)
{
	struct account *a = r->account;
	struct request_list *list = &a->waiting[r->spec.kind];
	int64_t wait = budget_wait_ms(&a->budget, r->spec.kind, clock_mono_ms());

	if (r->spec.kind == BUDGET_CONTENT)
		wait += (int64_t)list->n * budget_gap_ms(a->budget.minute.n);
	if (wait > WAIT_MS_MAX) {
		request_fail_busy(r, wait);
		return;
	}
	if (list->n >= N_WAITING_MAX) {
		request_fail(r, ERR_BUSY, false, BUSY_MS, "%s: %d requests wait already", r->spec.what, list->n);
		return;
	}
	request_enter(r, list);
	request_pump(r->g);
}

/* One round: each account may send, or end, its first request of each kind. False: no request was sent or ended.
 * *wake_ms is at most the wait of each request that must wait. */
static bool accounts_send_round(struct github *g, int64_t *wake_ms)
{
	int64_t now = clock_mono_ms();
	struct account *first = g->turn_of ? g->turn_of : STAILQ_FIRST(&g->accounts), *a = first;
	bool has_sent = false;

	do {
		for (int k = 0; k < N_BUDGET_KINDS; k++) {
			enum budget_kind kind = (enum budget_kind)k;
			struct request *r = TAILQ_FIRST(&a->waiting[kind].head);
			int64_t wait = r ? budget_wait_ms(&a->budget, kind, now) : 0;
			bool is_too_long = wait > WAIT_MS_MAX;

			if (!r)
				continue;
			if (!is_too_long && (wait || g->n_in_flight >= g->max_concurrent)) {
				if (wait && wait < *wake_ms)
					*wake_ms = wait;
				continue;
			}
			request_leave(r);
			if (is_too_long) {
				request_fail_busy(r, wait);
			} else {
				budget_spend(&a->budget, kind, now);
				request_send(r);
			}
			has_sent = true;
			g->turn_of = STAILQ_NEXT(a, link);
		}
		a = STAILQ_NEXT(a, link) ? STAILQ_NEXT(a, link) : STAILQ_FIRST(&g->accounts);
	} while (a != first);
	return has_sent;
}

void request_pump(struct github *g)
{
	int64_t wake_ms = INT64_MAX;

	/* Sending may queue another request: the loop below serves it, not a nested call. */
	g->must_pump_again = true;
	if (g->is_pumping || g->is_closing)
		return;
	g->is_pumping = true;
	while (g->must_pump_again) {
		g->must_pump_again = false;
		do
			wake_ms = INT64_MAX;
		while (accounts_send_round(g, &wake_ms));
	}
	g->is_pumping = false;
	if (wake_ms != INT64_MAX)
		timer_start(g->wake, wake_ms);
}

/* ---- the start ---- */

/* Gets the credential; request_queue() and request_send() follow. */
static void request_begin(struct request *r)
{
	if (r->g->is_closing) {
		request_fail(r, ERR_CANCELLED, false, 0, "closing");
		return;
	}
	r->is_for_login = r->spec.needs_login && !r->g->bot_login;
	if (request_is_as_app(r)) {
		r->account = account_of(r->g, 0);
		request_queue(r);
	} else {
		token_want(r);
	}
}

static struct request *request_new(struct github *g, struct github_call *call, const struct request_spec *spec)
{
	struct request *r = xcalloc(1, sizeof(*r));

	github_call_release(call);
	memset(&call->result, 0, sizeof(call->result));
	call->internal = r;
	r->g = g;
	r->call = call;
	r->spec = *spec;
	r->repository = xstrdup_or_null(spec->repository);
	r->spec.repository = r->repository;
	TAILQ_INSERT_TAIL(&g->requests, r, all);
	return r;
}

void request_start(struct github *g, struct github_call *call, const struct request_spec *spec)
{
	struct request *r = request_new(g, call, spec);

	if (r->repository && !is_repository_name(r->repository))
		request_fail(r, ERR_INVALID, true, 0, "%s: not the name of a repository", spec->what);
	else
		request_begin(r);
}

void request_refuse(struct github *g, struct github_call *call, const char *why)
{
	struct request_spec spec = {.what = ""};

	request_fail(request_new(g, call, &spec), ERR_INVALID, true, 0, "%s", why);
}

void request_write(struct github *g, struct github_call *call, enum access access, const char *method, const char *what,
    const char *repository, char *path, json_t *body)
{
	request_start(g, call,
	    &(struct request_spec){.access = access,
		.kind = BUDGET_CONTENT,
		.what = what,
		.repository = repository,
		.method = method,
		.path = path,
		.own_body = json_text(body),
		.answer = ANSWER_OBJECT});
	json_decref(body);
}

enum request_next request_next_page(struct request *r, int pages_max)
{
	bool is_last = r->spec.page >= pages_max || !answer_has_next(r);

	github_call_release(r->call);
	if (is_last)
		return REQUEST_DONE;
	r->spec.page++;
	return REQUEST_AGAIN;
}
