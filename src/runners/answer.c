#include "runners/answer.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"

enum { BUSY_RETRY_AFTER_S = 5, HEADERS_MAX = 3 };

const char *bearer_token(const struct http_request *q)
{
	static const char scheme[] = "Bearer ";
	const char *value = http_header(q, "Authorization");

	if (!value || strncasecmp(value, scheme, strlen(scheme)) != 0)
		return NULL;
	value += strlen(scheme);
	while (*value == ' ')
		value++;
	return *value ? value : NULL;
}

static void count(struct runners_counters *c, int status)
{
	switch (status) {
	case 400:
	case 404:
	case 408:
	case 413:
		c->n_bad_request++;
		break;
	case 401:
		c->n_bad_token++;
		break;
	case 403:
		c->n_denied++;
		break;
	case 409:
		c->n_conflict++;
		break;
	case 429:
		c->n_over_rate++;
		break;
	default:
		c->n_busy++;
		break;
	}
}

void answer_refused(struct runners *r, struct http_request *q, const struct refusal *x)
{
	struct http_header_line headers[HEADERS_MAX] = {{NULL, NULL}};
	json_t *body = json_object();
	char seconds[16], *text;
	int64_t n_skipped;
	int n = 0;

	count(&r->counters, x->status);
	if (log_limit_pass(&r->refused_lines, loop_now_ms(r->loop), &n_skipped))
		log_event(LOG_WARN, "report_refused", LOG_I("status", x->status),
		    LOG_S("caller", x->caller), LOG_S("client", http_client_address(q)),
		    LOG_S("why", x->why ? x->why : x->detail), LOG_I("more", n_skipped));
	if (x->status == 401)
		headers[n++] = (struct http_header_line){"WWW-Authenticate", "Bearer"};
	if (x->retry_after_s > 0) {
		snprintf(seconds, sizeof seconds, "%d", x->retry_after_s);
		headers[n++] = (struct http_header_line){"Retry-After", seconds};
	}
	json_set_str(body, "detail", x->detail);
	text = json_text(body);
	http_respond(q, x->status, "application/json", headers, text, strlen(text));
	free(text);
	json_decref(body);
}

void answer_revoked(struct runners *r, struct http_request *q, const char *caller)
{
	answer_refused(r, q,
	    &(struct refusal){.status = 401, .detail = "the token was revoked", .caller = caller});
}

void answer_busy(struct runners *r, struct http_request *q, const char *caller, int err)
{
	answer_refused(r, q,
	    &(struct refusal){
		.status = 503,
		.detail = "busy: nothing was recorded, try again",
		.why = err_text(err),
		.caller = caller,
		.retry_after_s = BUSY_RETRY_AFTER_S,
	    });
}

void answer_ignored(struct runners *r, struct http_request *q, const char *caller, const char *why)
{
	static const char text[] = "{\"ok\":true,\"status\":\"ignored\"}";
	int64_t n_skipped;

	r->counters.n_ignored++;
	if (log_limit_pass(&r->ignored_lines, loop_now_ms(r->loop), &n_skipped))
		log_event(LOG_INFO, "report_ignored", LOG_S("caller", caller), LOG_S("why", why),
		    LOG_I("more", n_skipped));
	http_respond(q, 200, "application/json", NULL, text, sizeof text - 1);
}

void answer_recorded(
    struct http_request *q, const struct config *c, const char *status, int64_t job_id)
{
	char *url = xasprintf("%s/jobs/%lld", c->public_url, (long long)job_id);
	json_t *body = json_object();
	char *text;

	json_object_set_new(body, "ok", json_true());
	json_set_str(body, "status", status);
	json_set_int(body, "job", job_id);
	json_set_str(body, "report_url", url);
	text = json_text(body);
	http_respond(q, 200, "application/json", NULL, text, strlen(text));
	free(text);
	json_decref(body);
	free(url);
}
