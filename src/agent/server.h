/* The server as the agent sees it: requests with the machine's token, and answers sorted into
 * what can be done about them. Tells the log when the server is away and when it is back, once.
 *
 * Thread: loop. */
#ifndef AGENT_SERVER_H
#define AGENT_SERVER_H

#include "base/json.h"
#include "config/runner_config.h"
#include "http/client.h"

struct server {
	const struct runner_config *c;
	struct loop *loop;
	struct http_client *client;
	struct secret *authorization; /* the configuration's, or a newer one of the same file */
	bool has_other_token;         /* the file held another one when it was read again last */
	int64_t away_since_mono_ms;   /* 0: it answers */
	int64_t next_told_mono_ms;    /* that it is away */
	int64_t next_reread_mono_ms;  /* of the token, after a refusal */
};

/* What an answer means, whatever was asked. */
enum server_word {
	SERVER_OK,      /* 2xx */
	SERVER_LATER,   /* no answer, or one that may be another next time */
	SERVER_REFUSED, /* 400, 403, 409, 413, Outpost's own 404: asking again does not help */
	SERVER_TOKEN,   /* 401: with this token; it may be rotated */
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
	/* */
	bool is_active;
	struct http_call http;
	struct server *server;
	char *url, *body;
};

void server_open(struct server *s, struct loop *l, const struct runner_config *c);
/* Asynchronous; every call was done before it. */
void server_close(struct server *s, void (*on_closed)(void *owner), void *owner);
/* Reads the token's file. What is wrong with it is logged; the old one stays then. */
void server_reread_token(struct server *s);

/* `path` is what follows server:; `body` may be NULL, is the call's from here on (free()). */
void server_call_start(struct server *s, struct server_call *c, const char *method,
    const char *content_type, char *path, char *body, size_t body_bytes, int64_t timeout_ms);
/* done comes with SERVER_STOPPED. Nothing where it is not under way. */
void server_call_cancel(struct server_call *c);
/* The answer's JSON object, a new reference; NULL when it is none. */
json_t *server_call_json(const struct server_call *c);
/* Not while active. */
void server_call_release(struct server_call *c);

/* How long to wait after the n-th failure in a row (from 1), at most `longest_ms` but for what
 * the server asked for. */
int64_t server_delay_ms(const struct server_call *c, int n_failures, int64_t longest_ms);

#endif
