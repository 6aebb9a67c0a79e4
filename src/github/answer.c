/* The meaning of an answer: the request succeeded, may be tried again at some time, or can never succeed. */

#include "github/github_internal.h"

enum { MESSAGE_BYTES = 200 };

static int64_t header_number(const struct http_call *h, const char *name, int64_t fallback)
{
	char text[24];
	int64_t v;

	if (!http_call_header(h, name, text, sizeof(text)) || parse_int64(text, &v) || v < 0)
		return fallback;
	return v;
}

static int64_t seconds_to_ms(int64_t s, int64_t max_s) { return (s < max_s ? s : max_s) * 1000; }

static int err_of_status(int status)
{
	switch (status) {
	case 401:
		return ERR_AUTH;
	case 403:
		return ERR_DENIED;
	case 301 ... 302:
	case 307 ... 308:
	case 404:
	case 410:
		return ERR_NOT_FOUND;
	case 408:
		return ERR_TIMEOUT;
	case 409:
		return ERR_CONFLICT;
	case 429:
		return ERR_BUSY;
	default:
		return status >= 500 ? ERR_NETWORK : ERR_INVALID;
	}
}

static void read_refusal(struct request *r, int64_t limit_ms)
{
	struct github_result *result = &r->call->result;
	const char *on = request_target(r);
	char message[MESSAGE_BYTES] = "";
	int status = r->http.status;

	/* A 4xx is final except 403, 408 and 429. A redirect is final too: the repository was renamed, and the
	 * configuration has its old name. */
	result->is_final = status < 500 && status != 403 && status != 408 && status != 429;
	if (limit_ms) {
		result->err = error_set(&result->why, ERR_BUSY, "%s, %s: GitHub answered %d: a rate limit, for %lld s",
		    r->spec.what, on, status, (long long)(limit_ms / 1000));
		result->retry_after_ms = limit_ms;
		return;
	}
	if (status >= 500)
		result->retry_after_ms = seconds_to_ms(header_number(&r->http, "Retry-After", 0), 3600);
	/* ": " and an explanation for people, in GitHub's words where it gave some; or "". */
	const char *text = json_get_str(r->call->answer, "message");
	if (status == 404 && r->spec.if_not_found)
		text = r->spec.if_not_found;
	else if (status >= 300 && status < 400)
		text = "it was renamed or moved";
	if (text) {
		size_t n = utf8_cut(text, strlen(text), MESSAGE_BYTES - 3);

		snprintf(message, MESSAGE_BYTES, ": %.*s", (int)n, text);
	}
	result->err = error_set(
	    &result->why, err_of_status(status), "%s, %s: GitHub answered %d%s", r->spec.what, on, status, message);
}

void answer_read(struct request *r)
{
	struct github_result *result = &r->call->result;
	struct buf *text = &r->http.answer;
	enum answer_kind kind = r->is_for_login ? ANSWER_OBJECT : r->spec.answer;
	static const int64_t day_s = 86400, far_s = INT64_C(1) << 40;
	int status = r->http.status;

	result->status = status;
	if (r->http.err) {
		result->err = error_set(
		    &result->why, r->http.err, "%s, %s: %s", r->spec.what, request_target(r), r->http.why.text);
		/* an answer that is too big will be too big the next time */
		result->is_final = r->http.err == ERR_TOO_BIG || r->http.err == ERR_INVALID;
		return;
	}
	int64_t retry_s = header_number(&r->http, "Retry-After", -1);
	struct budget_signs signs = {.status = status,
	    .remaining = header_number(&r->http, "X-RateLimit-Remaining", -1),
	    .reset_wall_ms = seconds_to_ms(header_number(&r->http, "X-RateLimit-Reset", 0), far_s),
	    .retry_after_ms = retry_s < 0 ? -1 : seconds_to_ms(retry_s, day_s),
	    .is_secondary = status == 403 && (strcasestr(buf_str(text), "secondary rate") ||
						 strcasestr(buf_str(text), "abuse detection"))};
	int64_t blocked_until_ms = r->account->budget.blocked_until_ms;
	int64_t limit_ms = budget_learn(&r->account->budget, &signs, clock_mono_ms(), clock_wall_ms());
	if (r->account->budget.blocked_until_ms > blocked_until_ms && r->g->on_limit)
		r->g->on_limit(r->g->limit_owner);
	if (limit_ms) {
		r->g->stats.n_rate_limited++;
		log_event(LOG_WARN, "github_rate_limit", LOG_S("request", r->spec.what),
		    LOG_I("installation", r->account->installation_id), LOG_I("status", status),
		    LOG_I("wait_ms", limit_ms));
	}
	github_call_release(r->call);
	if (text->len)
		json_replace_nuls(text->data, text->len);
	if (text->len && json_parse(text->data, text->len, &r->call->answer, NULL))
		r->call->answer = NULL;
	if (status == 304 && r->spec.etag)
		return;
	if (status < 200 || status > 299)
		read_refusal(r, limit_ms);
	else if ((kind == ANSWER_OBJECT && !json_is_object(r->call->answer)) ||
		 (kind == ANSWER_ARRAY && !json_is_array(r->call->answer)))
		result->err = error_set(&result->why, ERR_PROTOCOL, "%s, %s: the answer is not the expected JSON",
		    r->spec.what, request_target(r));
}

/* The Link header (RFC 8288): <URL>; rel="next", <URL>; rel="last" */
char *answer_next_url(const struct request *r)
{
	char link[4096];
	const char *at = link, *end;

	if (!http_call_header(&r->http, "Link", link, sizeof(link)))
		return NULL;
	while ((at = strchr(at, '<')) && (end = strchr(at, '>'))) {
		const char *following = strchr(end, '<');
		const char *rel = strcasestr(end, "rel=\"next\"");

		if (rel && (!following || rel < following))
			return xstrndup(at + 1, (size_t)(end - at - 1));
		at = end;
	}
	return NULL;
}

bool answer_has_next(const struct request *r)
{
	char *url = answer_next_url(r);
	bool has_next = url != NULL;

	free(url);
	return has_next;
}
