#include "agent/server.h"

#include "model/runner_protocol.h"
#include "model/schedule.h"

enum { LOG_AGAIN_MS = 10 * 60 * 1000, REREAD_EVERY_MS = 1000, RETRY_AFTER_MAX_S = 3600 };

void server_open(struct server *s, struct loop *l, const struct runner_config *c)
{
	*s = (struct server){.c = c, .loop = l};
	s->client = http_client_new(l, "outpost-runner/" OUTPOST_VERSION);
	if (c->ca_file)
		http_client_use_ca(s->client, c->ca_file);
	s->authorization = secret_ref(c->authorization);
}

void server_close(struct server *s, void (*on_closed)(void *owner), void *owner)
{
	secret_unref(s->authorization);
	s->authorization = NULL;
	http_client_close(s->client, on_closed, owner);
}

void server_reread_token(struct server *s)
{
	struct error e = {0};
	struct secret *authorization;
	int rc = runner_config_read_authorization(s->c, &authorization, &e);

	if (rc) {
		log_event(LOG_ERROR, "token_unreadable", LOG_S("why", e.text));
		s->has_other_token = false;
		return;
	}
	s->has_other_token = !secret_equal(s->authorization, authorization);
	secret_unref(s->authorization);
	s->authorization = authorization;
}

/* Parts of the texts of libcurl 7 and 8 with OpenSSL. The first that occurs counts. */
static const struct {
	const char *part, *hint;
} hints[] = {
    {"certificate has expired", "check this machine's clock"},
    {"certificate is not yet valid", "check this machine's clock"},
    {"alternative certificate subject name", "write the host in `server` as the certificate names it"},
    {"certificate", "where Outpost or a proxy has a CA of its own, name its certificate in ca_file"},
    {"wrong version number", "the server there does not speak TLS: check the port in `server`"},
    {"response 407", "the proxy requires a login: https_proxy=http://USER:PASSWORD@HOST:PORT"},
    {"CONNECT", "the proxy refused: check https_proxy and no_proxy"},
    {"resolve proxy", "check https_proxy"},
    {"resolve host", "check the host in `server` and this machine's DNS (getent hosts HOST); a "
		     "network that is reached through a proxy only needs https_proxy"},
    {"SSL", "the TLS handshake failed: check the port in `server` and what stands between (openssl "
	    "s_client -connect HOST:PORT)"},
    {"TLS", "the TLS handshake failed: check the port in `server` and what stands between (openssl "
	    "s_client -connect HOST:PORT)"},
    {"imed out", "no answer in time: a firewall may drop the connection, or the network needs https_proxy"},
    {"imeout", "no answer in time: a firewall may drop the connection, or the network needs https_proxy"},
    {"too slow", "the network is too slow, or a proxy holds the data back"},
    {"unreachable", "this machine has no route to the server: check its network, or set https_proxy"},
    {"No route", "this machine has no route to the server: check its network, or set https_proxy"},
    {"onnect to", "nothing listens at that host and port: check `server`, the firewall, and whether outpostd runs"},
    {"refused", "nothing listens at that host and port: check `server`, the firewall, and whether outpostd runs"},
    {"Empty reply", "the connection ended without an answer: check the port in `server`, and any "
		    "proxy or firewall between"},
    {"reset", "the connection was cut: check the port in `server`, and any proxy or firewall between"},
    {"HTTP", "the answer is not HTTP: check the port in `server`"},
};

static const struct {
	int status;
	const char *hint;
} status_hints[] = {
    {401, "token_file needs what `outpostctl runner add` printed for this machine; a new token is made the same way"},
    {403, "`name` and `accelerator` must be those of `outpostctl runner add`"},
    {404, "the server there is not Outpost or is older than this program, or `server` has a path too many"},
    {407, "the proxy requires a login: https_proxy=http://USER:PASSWORD@HOST:PORT"},
    {429, "too many requests from this address: wait for a minute"},
};

const char *hint_text(int status, const char *why)
{
	static const char *const variables[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
	bool has_proxy = false;

	for (size_t i = 0; i < ARRAY_LEN(status_hints); i++)
		if (status == status_hints[i].status)
			return status_hints[i].hint;
	if (status)
		return status >= 500 ? "Outpost is starting, busy or stopping, or a proxy does not reach it"
				     : "check `server`: another service may answer there";
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i]);

		has_proxy = has_proxy || (value && *value);
	}
	if (has_proxy && (strstr(why, "onnect to") || strstr(why, "refused")))
		return "https_proxy is set: the proxy may be the one that does not answer";
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strstr(why, hints[i].part))
			return hints[i].hint;
	return "check `server`, this machine's network, and https_proxy";
}

json_t *server_call_json(const struct server_call *c)
{
	json_t *v;

	if (json_parse(buf_str(&c->http.answer), c->http.answer.len, &v, NULL))
		return NULL;
	if (json_is_object(v))
		return v;
	json_decref(v);
	return NULL;
}

static enum server_word classify_answer(const struct server_call *c)
{
	bool is_own;
	json_t *v;

	if (c->http.err == ERR_CANCELLED)
		return SERVER_STOPPED;
	if (c->status >= 200 && c->status < 300)
		return SERVER_OK;
	switch (c->status) {
	case 404:
		/* Outpost explains its 404 in `detail`. A proxy in front of it that restarts, or a portal, does not. */
		v = server_call_json(c);
		is_own = json_get_str(v, "detail") != NULL;
		json_decref(v);
		return is_own ? SERVER_REFUSED : SERVER_LATER;
	case 400:
	case 403:
	case 409:
	case 413:
		return SERVER_REFUSED;
	case 401:
		return SERVER_TOKEN;
	default:
		return SERVER_LATER;
	}
}

static void on_http_done(struct http_call *http)
{
	struct server_call *c = CONTAINER_OF(http, struct server_call, http);
	struct server *s = c->server;
	int64_t retry_after_s, now = clock_mono_ms();
	char retry_after[32], why[sizeof(c->detail) + 32];

	c->is_active = false;
	c->status = http->err ? 0 : http->status;
	c->word = classify_answer(c);
	c->detail[0] = '\0';
	if (c->word != SERVER_OK && c->word != SERVER_STOPPED && !c->status) {
		snprintf(c->detail, sizeof(c->detail), "%.250s", c->http.why.text);
	} else if (c->word != SERVER_OK && c->word != SERVER_STOPPED) {
		json_t *v = server_call_json(c);
		const char *text = json_get_str(v, "detail");
		snprintf(c->detail, sizeof(c->detail), "%d%s%.200s", c->status, text ? ": " : "", text ? text : "");
		json_decref(v);
	}
	c->retry_after_ms = 0;
	if (c->status && http_call_header(&c->http, "Retry-After", retry_after, sizeof(retry_after)) &&
	    !parse_int64(retry_after, &retry_after_s) && retry_after_s > 0)
		c->retry_after_ms = 1000 * (retry_after_s < RETRY_AFTER_MAX_S ? retry_after_s : RETRY_AFTER_MAX_S);
	if (c->word == SERVER_LATER) {
		if (!s->away_since_mono_ms)
			s->away_since_mono_ms = now;
		if (now >= s->next_log_mono_ms) {
			s->next_log_mono_ms = now + LOG_AGAIN_MS;
			log_event(LOG_WARN, "server_away", LOG_S("server", s->c->server), LOG_S("why", c->detail),
			    LOG_S("hint", hint_text(c->status, c->detail)),
			    LOG_I("for_s", (now - s->away_since_mono_ms) / 1000));
		}
	} else if (c->word == SERVER_TOKEN) {
		snprintf(why, sizeof(why), "the token was refused: %s", c->detail);
		if (now >= s->next_log_mono_ms) {
			log_event(LOG_ERROR, "token_refused", LOG_S("why", why), LOG_S("token_file", s->c->token_file));
			s->next_log_mono_ms = now + LOG_AGAIN_MS;
		}
		/* The token may have been replaced. */
		if (now >= s->next_reread_mono_ms)
			server_reread_token(s);
		s->next_reread_mono_ms = now + REREAD_EVERY_MS;
	} else if (c->word != SERVER_STOPPED) {
		if (s->away_since_mono_ms)
			log_event(LOG_INFO, "server_back", LOG_S("server", s->c->server),
			    LOG_I("after_s", (now - s->away_since_mono_ms) / 1000));
		s->away_since_mono_ms = 0;
		s->next_log_mono_ms = 0;
	}
	c->done(c);
}

void server_call_start(struct server *s, struct server_call *c, const char *method, const char *content_type,
    char *path, char *body, size_t body_bytes, int64_t timeout_ms)
{
	char *type = xasprintf("Content-Type: %s", content_type);
	const char *const headers[] = {secret_text(s->authorization), type, NULL};

	assert(!c->is_active);
	server_call_release(c);
	c->server = s;
	c->is_active = true;
	c->url = xasprintf("%s%s", s->c->server, path);
	c->body = body;
	c->http = (struct http_call){
	    .method = method,
	    .url = c->url,
	    .headers = headers,
	    .body = body ? body : "",
	    .body_bytes = body_bytes,
	    .max_answer_bytes = LEASE_OFFER_MAX_BYTES,
	    .total_timeout_ms = timeout_ms,
	    .done = on_http_done,
	};
	http_call_start(s->client, &c->http);
	c->http.headers = NULL; /* copied */
	FREE_ALL(path, type);
}

void server_call_cancel(struct server_call *c)
{
	if (c->is_active)
		http_call_cancel(c->server->client, &c->http);
}

void server_call_release(struct server_call *c)
{
	assert(!c->is_active);
	http_call_release(&c->http);
	FREE_AND_NULL(c->url);
	FREE_AND_NULL(c->body);
}

int64_t server_delay_ms(const struct server_call *c, int n_failures, int64_t longest_ms)
{
	uint32_t random;

	random_bytes(&random, sizeof(random));
	int64_t ms = backoff_delay_ms(n_failures - 1, 0, random / 4294967296.0);
	if (ms > longest_ms)
		ms = longest_ms - longest_ms * (int64_t)(random % 256) / 1024;
	return ms > c->retry_after_ms ? ms : c->retry_after_ms;
}
