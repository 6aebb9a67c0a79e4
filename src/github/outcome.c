/* What an answer means for whoever wants the effect: done, again at some time, or never. */
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
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

static int64_t seconds_to_ms(int64_t s, int64_t max_s)
{
	return (s < max_s ? s : max_s) * 1000;
}

static void read_signs(const struct http_call *h, struct budget_signs *s)
{
	static const int64_t day_s = 86400, far_s = INT64_C(1) << 40;
	int64_t retry_s = header_number(h, "Retry-After", -1);
	int64_t reset_s = header_number(h, "X-RateLimit-Reset", 0);

	s->status = h->status;
	s->remaining = header_number(h, "X-RateLimit-Remaining", -1);
	s->reset_wall_ms = seconds_to_ms(reset_s, far_s);
	s->retry_after_ms = retry_s < 0 ? -1 : seconds_to_ms(retry_s, day_s);
	s->is_secondary =
	    h->status == 403 && (strcasestr(buf_str(&h->answer), "secondary rate") ||
				    strcasestr(buf_str(&h->answer), "abuse detection"));
}

static int err_of_status(int status)
{
	switch (status) {
	case 401:
		return ERR_AUTH;
	case 403:
		return ERR_DENIED;
	case 404:
	case 410:
	case 301:
	case 302:
	case 307:
	case 308:
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

/* Contract 5: 4xx is final, but for 403, 408 and 429. A redirect is final too: the
 * repository has another name now, and nobody wrote that into the configuration. */
static bool is_final_status(int status)
{
	return status < 500 && status != 403 && status != 408 && status != 429;
}

/* GitHub's own words, for a person to read. */
static void read_message(const struct request *r, char out[MESSAGE_BYTES])
{
	const char *said = json_get_str(r->call->answer, "message");

	out[0] = '\0';
	if (r->http.status == 404 && r->spec.if_not_found)
		said = r->spec.if_not_found;
	else if (r->http.status >= 300 && r->http.status < 400)
		said = "it was renamed or moved";
	if (said) {
		size_t n = utf8_cut(said, strlen(said), MESSAGE_BYTES - 3);

		snprintf(out, MESSAGE_BYTES, ": %.*s", (int)n, said);
	}
}

static void read_refusal(struct request *r, int64_t limit_ms)
{
	struct github_result *result = &r->call->result;
	const char *on = r->repository ? r->repository : "the App";
	char message[MESSAGE_BYTES];
	int status = r->http.status;
	int64_t retry_s = header_number(&r->http, "Retry-After", 0);

	result->is_final = is_final_status(status);
	if (limit_ms) {
		result->err = error_set(&result->why, ERR_BUSY,
		    "%s, %s: GitHub answered %d: a rate limit, for %lld s", r->spec.what, on,
		    status, (long long)(limit_ms / 1000));
		result->retry_after_ms = limit_ms;
		return;
	}
	if (status >= 500)
		result->retry_after_ms = seconds_to_ms(retry_s, 3600);
	read_message(r, message);
	result->err = error_set(&result->why, err_of_status(status), "%s, %s: GitHub answered %d%s",
	    r->spec.what, on, status, message);
}

static void note_limit(const struct request *r, int64_t limit_ms)
{
	if (!limit_ms)
		return;
	r->g->stats.n_rate_limited++;
	log_event(LOG_WARN, "github_rate_limit", LOG_S("request", r->spec.what),
	    LOG_I("installation", r->account->installation_id), LOG_I("status", r->http.status),
	    LOG_I("wait_ms", limit_ms));
}

static void read_json(struct request *r)
{
	const struct buf *text = &r->http.answer;

	json_decref(r->call->answer);
	r->call->answer = NULL;
	if (text->len && json_parse(text->data, text->len, &r->call->answer, NULL))
		r->call->answer = NULL;
}

static bool is_wanted_kind(const struct request *r)
{
	switch (r->spec.answer) {
	case ANSWER_OBJECT:
		return json_is_object(r->call->answer);
	case ANSWER_ARRAY:
		return json_is_array(r->call->answer);
	case ANSWER_ANY:
		break;
	}
	return true;
}

void outcome_read(struct request *r)
{
	struct github_result *result = &r->call->result;
	struct budget_signs signs;
	int64_t limit_ms;

	result->status = r->http.status;
	if (r->http.err) {
		result->err = error_set(&result->why, r->http.err, "%s, %s: %s", r->spec.what,
		    r->repository ? r->repository : "the App", r->http.why.text);
		/* an answer too big today is too big tomorrow */
		result->is_final = r->http.err == ERR_TOO_BIG || r->http.err == ERR_INVALID;
		return;
	}
	read_signs(&r->http, &signs);
	limit_ms = budget_learn(&r->account->budget, &signs, clock_mono_ms(), clock_wall_ms());
	note_limit(r, limit_ms);
	read_json(r);
	if (r->http.status == 304 && r->spec.etag)
		return;
	if (r->http.status < 200 || r->http.status > 299) {
		read_refusal(r, limit_ms);
		return;
	}
	if (!is_wanted_kind(r))
		result->err = error_set(&result->why, ERR_PROTOCOL,
		    "%s, %s: the answer is not the JSON that it should be", r->spec.what,
		    r->repository ? r->repository : "the App");
}
