#include "runners/runners_internal.h"

enum { WINDOW_MS = 60 * 1000 };

struct entry {
	char *key; /* owned; of an older window unless `window` is the current one */
	int64_t window;
	int n_calls;
};

/* Open addressing without deletion: a new window makes every entry stale at once. */
struct rate_limit {
	int calls_per_minute;
	size_t keys_max, n_keys;
	size_t n_slots; /* at least twice keys_max, so a search ends soon */
	struct entry *slots;
	int64_t window; /* counts up; 0 before the first call */
	int64_t window_end_ms;
};

struct rate_limit *rate_limit_new(int calls_per_minute, size_t keys_max)
{
	struct rate_limit *l = xcalloc(1, sizeof *l);

	l->calls_per_minute = calls_per_minute;
	l->keys_max = keys_max;
	l->n_slots = 2 * keys_max;
	l->slots = xcalloc(l->n_slots, sizeof *l->slots);
	return l;
}

void rate_limit_free(struct rate_limit *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_slots; i++)
		free(l->slots[i].key);
	free(l->slots);
	free(l);
}

bool rate_limit_admit(struct rate_limit *l, const char *key, int64_t now_mono_ms, int *ret_retry_after_s)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	if (l->window == 0 || now_mono_ms >= l->window_end_ms) {
		l->window++;
		l->window_end_ms = now_mono_ms + WINDOW_MS;
		l->n_keys = 0;
	}
	for (const char *c = key; *c; c++)
		hash = (hash ^ (uint64_t)tolower((unsigned char)*c)) * UINT64_C(1099511628211);
	size_t at = (size_t)hash % l->n_slots;
	while (l->slots[at].window == l->window && strcasecmp(l->slots[at].key, key) != 0)
		at = (at + 1) % l->n_slots;
	struct entry *entry = &l->slots[at];
	if (entry->window != l->window && l->n_keys < l->keys_max) {
		l->n_keys++;
		free(entry->key);
		*entry = (struct entry){.key = xstrdup(key), .window = l->window};
	}
	if (entry->window == l->window && entry->n_calls < l->calls_per_minute) {
		entry->n_calls++;
		return true;
	}
	*ret_retry_after_s = (int)((l->window_end_ms - now_mono_ms + 999) / 1000);
	return false;
}

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

void answer_refused(struct runners *r, struct http_request *q, const struct refusal *x)
{
	struct http_header_line headers[HEADERS_MAX] = {{NULL, NULL}};
	char seconds[16], *text;
	int64_t n_skipped;
	int n = 0;

	if (!q)
		return;
	if (x->status == 401)
		r->counters.n_bad_token++;
	else if (x->status == 403)
		r->counters.n_denied++;
	else if (x->status == 409)
		r->counters.n_conflict++;
	else if (x->status == 429)
		r->counters.n_over_rate++;
	else if (x->status < 500) /* 400, 404, 408, 413 */
		r->counters.n_bad_request++;
	else
		r->counters.n_busy++;
	if (log_limit_pass(&r->refused_lines, loop_now_ms(r->loop), &n_skipped))
		log_event(LOG_WARN, "report_refused", LOG_I("status", x->status), LOG_S("caller", x->caller),
		    LOG_S("client", http_client_address(q)), LOG_S("why", x->why ? x->why : x->detail),
		    LOG_I("more", n_skipped));
	if (x->status == 401)
		headers[n++] = (struct http_header_line){"WWW-Authenticate", "Bearer"};
	if (x->retry_after_s > 0) {
		snprintf(seconds, sizeof seconds, "%d", x->retry_after_s);
		headers[n++] = (struct http_header_line){"Retry-After", seconds};
	}
	json_t *body = json_object();
	json_set_str(body, "detail", x->detail);
	text = json_text(body);
	http_respond(q, x->status, "application/json", headers, text, strlen(text));
	free(text);
	json_decref(body);
}

void refuse_request(struct runners *r, struct http_request *q, int status, const char *detail, const char *caller)
{
	answer_refused(r, q, &(struct refusal){.status = status, .detail = detail, .caller = caller});
}

void refuse_over_rate(
    struct runners *r, struct http_request *q, const char *detail, const char *caller, int retry_after_s)
{
	const struct refusal x = {.status = 429, .detail = detail, .caller = caller, .retry_after_s = retry_after_s};

	answer_refused(r, q, &x);
}

static void on_client_gone(struct http_request *q) { *(struct http_request **)http_user(q) = NULL; }

void forget_gone_client(struct http_request **request)
{
	http_set_user(*request, request);
	http_on_gone(*request, on_client_gone);
}

static void admit_machine_headers(struct http_request *q, void *runners)
{
	struct credential who;

	admit_runner(runners, q, &who);
}

void machine_route_add(struct runners *r, struct http_server *h, const char *pattern, size_t max_body_bytes,
    void (*on_request)(struct http_request *q, void *runners))
{
	http_server_route(h, &(struct http_route){
				 .method = "POST",
				 .pattern = pattern,
				 .max_body_bytes = max_body_bytes,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = admit_machine_headers,
				 .on_request = on_request,
				 .owner = r,
			     });
}

void answer_busy(struct runners *r, struct http_request *q, const char *caller, int err)
{
	const struct refusal x = {
	    503, "busy: nothing was recorded, try again", err_text(err), caller, BUSY_RETRY_AFTER_S};

	answer_refused(r, q, &x);
}

void answer_ignored(struct runners *r, struct http_request *q, const char *caller, const char *why)
{
	int64_t n_skipped;

	if (!q)
		return;
	r->counters.n_ignored++;
	if (log_limit_pass(&r->ignored_lines, loop_now_ms(r->loop), &n_skipped))
		log_event(
		    LOG_INFO, "report_ignored", LOG_S("caller", caller), LOG_S("why", why), LOG_I("more", n_skipped));
	answer_json_text(q, 200, xstrdup("{\"ok\":true,\"status\":\"ignored\"}"));
}

int body_object(const char *body, size_t n, json_t **ret, struct error *e)
{
	struct error why = {0};
	int err = json_parse(body, n, ret, &why);

	if (err)
		return error_set(e, err, "the body is not JSON: %s", why.text);
	if (json_is_object(*ret))
		return 0;
	json_decref(*ret);
	*ret = NULL;
	return error_set(e, ERR_INVALID, "the body is not a JSON object");
}

void answer_json_text(struct http_request *q, int status, char *text)
{
	if (q)
		http_respond(q, status, "application/json", NULL, text, strlen(text));
	free(text);
}

void answer_json(struct http_request *q, int status, json_t *body)
{
	answer_json_text(q, status, json_text(body));
	json_decref(body);
}

void answer_recorded(struct http_request *q, const struct config *c, const char *status, int64_t job_id)
{
	char *url = xasprintf("%s/jobs/%lld", c->public_url, (long long)job_id);

	answer_json(q, 200,
	    json_pack(
		"{s:b, s:s, s:I, s:s}", "ok", true, "status", status, "job", (json_int_t)job_id, "report_url", url));
	free(url);
}

bool admit_open(struct runners *r, struct http_request *q)
{
	bool is_ending = r->is_closing || r->is_stopping;

	if (r->config && !is_ending)
		return true;
	answer_busy(r, q, NULL, is_ending ? ERR_CLOSING : ERR_BUSY);
	return false;
}

bool admit_token(struct runners *r, struct http_request *q, const char *token, struct credential *ret)
{
	int retry_after_s = 0;
	char *detail;

	switch (credentials_check(r->credentials, token, http_client_address(q), ret, &retry_after_s)) {
	case CREDENTIAL_GOOD:
		if (config_accelerator(r->config, ret->accelerator)) {
			http_note_authenticated(q);
			return true;
		}
		detail = xasprintf("the accelerator %s has left the registry", ret->accelerator);
		refuse_request(r, q, 403, detail, ret->accelerator);
		free(detail);
		break;
	case CREDENTIAL_WRONG:
		refuse_request(r, q, 401, "the token is not valid, or was revoked", NULL);
		break;
	case CREDENTIAL_OVER_RATE:
		refuse_over_rate(r, q, "too many wrong tokens from this address", NULL, retry_after_s);
		break;
	case CREDENTIAL_UNREAD:
		answer_busy(r, q, NULL, ERR_BUSY);
		break;
	}
	return false;
}

const char *admit_bearer(struct runners *r, struct http_request *q)
{
	const char *token = bearer_token(q);

	if (!r->config || r->is_closing)
		answer_busy(r, q, NULL, r->is_closing ? ERR_CLOSING : ERR_BUSY);
	else if (token)
		return token;
	else
		refuse_request(r, q, 401, "Authorization: Bearer is missing", NULL);
	return NULL;
}

bool admit_runner(struct runners *r, struct http_request *q, struct credential *ret)
{
	const char *token = admit_open(r, q) ? admit_bearer(r, q) : NULL;

	if (!token || !admit_token(r, q, token, ret))
		return false;
	if (ret->kind == TOKEN_RUNNER)
		return true;
	refuse_request(
	    r, q, 403, "an API token cannot claim work: a machine needs a token of `runner add`", ret->accelerator);
	return false;
}
