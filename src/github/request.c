/* One authenticated exchange, from the call's start to its done. A request is at any time
 * in exactly one place: waiting for its token, waiting for its budget, in the air, or
 * ended; so it can be cancelled anywhere and ends once. */
#include <assert.h>
#include <stdarg.h>

#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

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

static void request_free(struct request *r)
{
	http_call_release(&r->http);
	free(r->spec.path);
	free(r->spec.own_body);
	free(r->spec.etag);
	free(r->repository);
	free(r->url);
	free_secret(r->authorization);
	free(r->if_none_match);
	free(r->spec.text);
	free(r);
}

/* ---- the end ---- */

/* done is never run from here: the caller may be inside the function that started the call. */
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
		request_free(r);
		call->internal = NULL;
		call->done(call);
	}
	github_check_closed(g);
}

void request_fail(
    struct request *r, int err, bool is_final, int64_t retry_after_ms, const char *fmt, ...)
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

/* ---- the start ---- */

/* Gets the credential; what follows is queue_add() and request_send(). */
static void request_begin(struct request *r)
{
	if (r->g->is_closing) {
		request_fail(r, ERR_CANCELLED, false, 0, "closing");
		return;
	}
	if (r->spec.access == ACCESS_APP) {
		r->account = account_of(r->g, 0);
		queue_add(r);
	} else {
		token_want(r);
	}
}

void request_has_token(struct request *r)
{
	queue_add(r);
}

static struct request *request_new(
    struct github *g, struct github_call *call, const struct request_spec *spec)
{
	struct request *r = xcalloc(1, sizeof(*r));

	json_decref(call->answer);
	call->answer = NULL;
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
	request_begin(request_new(g, call, spec));
}

void request_refuse(struct github *g, struct github_call *call, const char *why)
{
	struct request_spec spec = {.what = ""};

	request_fail(request_new(g, call, &spec), ERR_INVALID, true, 0, "%s", why);
}

bool request_has_repository(
    struct github *g, struct github_call *call, const char *repository, const char *what)
{
	char why[80];

	if (is_repository_name(repository))
		return true;
	snprintf(why, sizeof(why), "%s: not a repository's name", what);
	request_refuse(g, call, why);
	return false;
}

void request_go_to(struct request *r, char *path)
{
	free(r->spec.path);
	r->spec.path = path;
}

void request_go_to_app(struct request *r)
{
	r->spec.access = ACCESS_APP;
	r->spec.answer = ANSWER_OBJECT;
	request_go_to(r, xstrdup("/app"));
}

/* ---- the answer ---- */

static bool is_retried_with_new_credential(struct request *r)
{
	if (r->http.err || r->http.status != 401 || r->has_new_token)
		return false;
	r->has_new_token = true;
	r->g->stats.n_tokens_refused++;
	if (r->spec.access == ACCESS_APP)
		app_jwt_drop(r->g); /* the clock may have jumped since it was made */
	else
		token_refused(r);
	return true;
}

static void count(struct request *r)
{
	struct github_stats *s = &r->g->stats;

	if (r->http.err && r->http.err != ERR_CANCELLED)
		s->n_failures++;
	s->n_answers_4xx += r->http.status >= 400 && r->http.status < 500;
	s->n_answers_5xx += r->http.status >= 500;
}

static void on_http_done(struct http_call *http)
{
	struct request *r = CONTAINER_OF(http, struct request, http);
	struct github *g = r->g;

	g->n_in_flight--;
	r->call->result.was_sent |= http->was_sent;
	count(r);
	if (is_retried_with_new_credential(r)) {
		request_begin(r);
	} else {
		outcome_read(r);
		if (r->call->result.err || !r->spec.on_answer || r->spec.on_answer(r))
			request_end(r);
		else
			request_begin(r);
	}
	queue_pump(g);
	request_run_ended(g);
}

static void set_headers(struct request *r, const char *credential)
{
	int n = 0;

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
}

void request_send(struct request *r)
{
	struct github *g = r->g;
	bool is_app = r->spec.access == ACCESS_APP;
	const char *credential = is_app ? app_jwt(g) : token_use(r);

	if (!credential && is_app) {
		request_fail(r, ERR_AUTH, false, 0, "the App's private key cannot sign");
		return;
	}
	if (!credential) { /* it grew old while the request waited */
		request_begin(r);
		return;
	}
	r->generation = g->generation;
	http_call_release(&r->http);
	free(r->url);
	r->url = xasprintf("%s%s", g->api_url, r->spec.path);
	r->http = (struct http_call){
	    .method = r->spec.method,
	    .url = r->url,
	    .headers = r->headers,
	    .body = r->spec.own_body ? r->spec.own_body : r->spec.body,
	    .body_bytes = r->spec.own_body ? strlen(r->spec.own_body) : r->spec.body_bytes,
	    .max_answer_bytes = r->spec.max_answer_bytes,
	    .done = on_http_done,
	};
	set_headers(r, credential);
	g->n_in_flight++;
	g->stats.n_requests++;
	http_call_start(g->http, &r->http);
}

/* ---- what the caller may do meanwhile ---- */

void github_cancel(struct github *g, struct github_call *call)
{
	struct request *r = call->internal;

	if (!r || r->list == &g->ended)
		return;
	if (!r->list) {
		http_call_cancel(g->http, &r->http);
		return;
	}
	request_fail(r, ERR_CANCELLED, false, 0, "cancelled");
}

void github_call_release(struct github_call *call)
{
	json_decref(call->answer);
	call->answer = NULL;
}
