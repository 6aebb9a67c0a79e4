#include "agent/server.h"

#include <assert.h>

#include "agent/hint.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "base/version.h"
#include "model/backoff.h"
#include "model/runner_protocol.h"

enum {
	TELL_AGAIN_MS = 10 * 60 * 1000,
	REREAD_MS = 1000,
	RETRY_AFTER_MAX_S = 3600,
};

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

/* ---- the log's view of it ---- */

static void note_away(struct server *s, const struct server_call *c)
{
	int64_t now = clock_mono_ms();
	const char *hint = hint_text(c->status, c->detail);

	if (!s->away_since_mono_ms)
		s->away_since_mono_ms = now;
	if (now < s->next_told_mono_ms)
		return;
	s->next_told_mono_ms = now + TELL_AGAIN_MS;
	log_event(LOG_WARN, "server_away", LOG_S("server", s->c->server), LOG_S("why", c->detail),
	    LOG_S("hint", hint), LOG_I("for_s", (now - s->away_since_mono_ms) / 1000));
}

static void note_there(struct server *s)
{
	if (s->away_since_mono_ms)
		log_event(LOG_INFO, "server_back", LOG_S("server", s->c->server),
		    LOG_I("after_s", (clock_mono_ms() - s->away_since_mono_ms) / 1000));
	s->away_since_mono_ms = 0;
	s->next_told_mono_ms = 0;
}

static void note_token(struct server *s, const struct server_call *c)
{
	int64_t now = clock_mono_ms();
	char why[sizeof(c->detail) + 32];

	snprintf(why, sizeof(why), "the token was refused: %s", c->detail);
	if (now >= s->next_told_mono_ms) {
		log_event(LOG_ERROR, "token_refused", LOG_S("why", why),
		    LOG_S("token_file", s->c->token_file));
		s->next_told_mono_ms = now + TELL_AGAIN_MS;
	}
	if (now >= s->next_reread_mono_ms)
		server_reread_token(s);
	s->next_reread_mono_ms = now + REREAD_MS;
}

/* ---- answers ---- */

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

/* Outpost says what is missing; a proxy before it that restarts, or a portal, does not. */
static bool is_outposts_own(const struct server_call *c)
{
	json_t *v = server_call_json(c);
	bool is_own = json_get_str(v, "detail") != NULL;

	json_decref(v);
	return is_own;
}

static enum server_word word_of(const struct server_call *c)
{
	if (c->http.err == ERR_CANCELLED)
		return SERVER_STOPPED;
	if (c->status >= 200 && c->status < 300)
		return SERVER_OK;
	switch (c->status) {
	case 404:
		return is_outposts_own(c) ? SERVER_REFUSED : SERVER_LATER;
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

static void read_detail(struct server_call *c)
{
	json_t *v;
	const char *text;

	c->detail[0] = '\0';
	if (c->word == SERVER_OK || c->word == SERVER_STOPPED)
		return;
	if (!c->status) {
		snprintf(c->detail, sizeof(c->detail), "%.250s", c->http.why.text);
		return;
	}
	v = server_call_json(c);
	text = json_get_str(v, "detail");
	snprintf(c->detail, sizeof(c->detail), "%d%s%.200s", c->status, text ? ": " : "",
	    text ? text : "");
	json_decref(v);
}

static void read_retry_after(struct server_call *c)
{
	char text[32];
	int64_t s;

	c->retry_after_ms = 0;
	if (c->status && http_call_header(&c->http, "Retry-After", text, sizeof(text)) &&
	    !parse_int64(text, &s) && s > 0)
		c->retry_after_ms = 1000 * (s < RETRY_AFTER_MAX_S ? s : RETRY_AFTER_MAX_S);
}

static void on_done(struct http_call *http)
{
	struct server_call *c = CONTAINER_OF(http, struct server_call, http);

	c->is_active = false;
	c->status = http->err ? 0 : http->status;
	c->word = word_of(c);
	read_detail(c);
	read_retry_after(c);
	if (c->word == SERVER_LATER)
		note_away(c->server, c);
	else if (c->word == SERVER_TOKEN)
		note_token(c->server, c);
	else if (c->word != SERVER_STOPPED)
		note_there(c->server);
	c->done(c);
}

void server_call_start(struct server *s, struct server_call *c, const char *method,
    const char *content_type, char *path, char *body, size_t body_bytes, int64_t timeout_ms)
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
	    .done = on_done,
	};
	http_call_start(s->client, &c->http);
	c->http.headers = NULL; /* copied */
	free(path);
	free(type);
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
	int64_t ms;

	random_bytes(&random, sizeof(random));
	ms = backoff_delay_ms(n_failures - 1, 0, random / 4294967296.0);
	if (ms > longest_ms)
		ms = longest_ms - longest_ms * (int64_t)(random % 256) / 1024;
	return ms > c->retry_after_ms ? ms : c->retry_after_ms;
}
