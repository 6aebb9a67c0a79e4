/* The server as the agent sees it: requests with the machine's token, and answers sorted by what the
 * agent can do about them. Logs once when the server does not answer and once when it is back.
 *
 * Thread: the loop's. The caller owns its calls and frees them when they are not active. */
#pragma once

#include "config/runner_config.h"
#include "http/client.h"

struct server {
	const struct runner_config *c;
	struct loop *loop;
	struct http_client *client;
	struct secret *authorization; /* the configuration's, or a newer one of the same file */
	bool has_other_token;         /* the last reread found another token in the file */
	int64_t away_since_mono_ms;   /* 0: it answers */
	int64_t next_log_mono_ms;     /* not before: log again that it is away */
	int64_t next_reread_mono_ms;  /* not before: read the token again after a refusal */
};

/* The meaning of an answer to any request. */
enum server_word {
	SERVER_OK,      /* 2xx */
	SERVER_LATER,   /* no answer, or one that may differ next time */
	SERVER_REFUSED, /* 400, 403, 409, 413, Outpost's own 404: asking again does not help */
	SERVER_TOKEN,   /* 401: this token is refused; the file may hold a new one */
	SERVER_STOPPED, /* server_call_cancel() */
};

struct server_call {
	/* in */
	void (*done)(struct server_call *c); /* once a start, on the loop, never inside it */
	void *owner;
	/* out, valid in done and until the next start */
	enum server_word word;
	int status;             /* 0: no answer */
	char detail[256];       /* what went wrong, for people */
	int64_t retry_after_ms; /* what the server asked for; 0: nothing */
	/* private */
	bool is_active;
	struct http_call http;
	struct server *server;
	char *url, *body;
};

void server_open(struct server *s, struct loop *l, const struct runner_config *c);
/* Asynchronous; on_closed comes once. Every call must have come back before. */
void server_close(struct server *s, void (*on_closed)(void *owner), void *owner);
/* Reads the token's file again. If it cannot be read, logs why and keeps the old token. */
void server_reread_token(struct server *s);

/* Takes over `path`, which follows `server:` of the configuration, and `body`, which may be NULL. */
void server_call_start(struct server *s, struct server_call *c, const char *method, const char *content_type,
    char *path, char *body, size_t body_bytes, int64_t timeout_ms);
/* `done` comes with SERVER_STOPPED. Does nothing if the call is not active. */
void server_call_cancel(struct server_call *c);
/* The answer's JSON object, a new reference; NULL if the answer is not a JSON object. */
json_t *server_call_json(const struct server_call *c);
/* Not while active. */
void server_call_release(struct server_call *c);

/* How long to wait after the n-th failure in a row (from 1): at most `longest_ms`, but at least as long
 * as the server asked for. */
int64_t server_delay_ms(const struct server_call *c, int n_failures, int64_t longest_ms);

/* Names the setting to check first if the server cannot be reached or refuses: the texts of libcurl and
 * OpenSSL say what happened, but not which setting it is about. `status`: of the answer, not a success;
 * 0: there was no answer. `why`: the known reason. A static string, never NULL or empty. Thread: any. */
const char *hint_text(int status, const char *why);
