/* The state that the files of runners/ share. No other folder includes it.
 *
 * Thread: loop. */
#pragma once

#include "runners/credentials.h"
#include "runners/issuer_keys.h"
#include "runners/runners.h"

enum { REPORT_BODY_MAX_BYTES = 2 * 1024 * 1024, REPORTS_PER_MINUTE = 100 };

struct runners {
	struct loop *loop;
	struct store *store;
	struct config *config; /* NULL until configured */
	struct issuer_keys *keys;
	struct credentials *credentials;
	struct claims *claims;
	struct leases *leases;
	struct job_documents *documents; /* NULL: runners_accept_documents() was not called */
	/* Any user of GitHub can get a token for a repository of theirs. Strangers are counted apart, so that they
	 * cannot fill the table of the registered callers. */
	struct rate_limit *registered, *strangers;
	const struct secret *callback_key;
	STAILQ_HEAD(, submission) to_be_read; /* large bodies of reports */
	int n_reading;
	size_t n_read_bytes; /* of those that wait or are read */
	int n_holds;         /* requests that wait for an issuer's keys or for the store; parts that close */
	bool is_stopping;    /* no request is held open any more */
	bool is_closing;
	void (*on_closed)(void *owner);
	void *closed_owner;
	/* strangers can cause these lines */
	struct log_limit refused_lines, ignored_lines, identity_lines;
	struct runners_counters counters;
};

/* Everything that waits for the store or for keys keeps the struct alive: one call of each, in pairs. */
void runners_hold(struct runners *r);
void runners_let_go(struct runners *r);

/* A timer that runs at the earliest of the times that it was set to. Its callback first sets due_ms to 0. */
struct alarm {
	struct loop *loop;
	struct timer *timer;
	int64_t due_ms; /* mono; 0: it does not run */
};
void alarm_init(struct alarm *a, struct loop *l, void (*on_due)(struct timer *t), void *owner);
void alarm_set(struct alarm *a, int64_t due_ms);

/* callback.c */
void report_add_routes(struct runners *r, struct http_server *h);

/* ---- admission.c: checks the token of a request, and answers a request whose token is not good: in one place for every
 * route.
 *
 * A route that collects a body checks twice: when the headers are there, so that a request without a good
 * token is answered before its body takes memory, and when the body is there, because the token may have been
 * revoked meanwhile. ---- */

/* A limit of calls a minute for each name, counted in one window for all names, in bounded memory. It counts at most
 * keys_max names in one minute; calls of further names are over the limit. */
struct rate_limit *rate_limit_new(int calls_per_minute, size_t keys_max);
void rate_limit_free(struct rate_limit *l); /* NULL is fine */
/* Counts a call of `key` (compared without case). False when it is over the limit; then
 * *ret_retry_after_s says when the next window starts (at least 1). */
bool rate_limit_admit(struct rate_limit *l, const char *key, int64_t now_mono_ms, int *ret_retry_after_s);

/* ---- the answers to a report, each counted and logged here. Each function takes the request q, or NULL if the client
 * has left: then it neither answers nor counts ---- */

/* The token after "Bearer " (RFC 6750 section 2.1; the scheme compares without case), or
 * NULL when the header is absent or of another form. Borrowed from the request. */
const char *bearer_token(const struct http_request *q);

/* Of a token that was good when the request came: 401. */
#define TOKEN_REVOKED "the token was revoked"

struct refusal {
	int status;
	const char *detail; /* for the caller: {"detail": …} */
	const char *why;    /* for the log; NULL: the detail. Never a token */
	const char *caller; /* repository or accelerator, NULL while unknown */
	int retry_after_s;  /* 0: no such header */
};
/* Parses a request's body. *ret: an object, else NULL. */
int body_object(const char *body, size_t n, json_t **ret, struct error *e) MUST_CHECK;

/* Answers with the JSON text, and frees it. */
void answer_json_text(struct http_request *q, int status, char *text);
/* The same with a new reference to the body. */
void answer_json(struct http_request *q, int status, json_t *body);
void answer_refused(struct runners *r, struct http_request *q, const struct refusal *x);
/* 429. caller: or NULL. */
void refuse_over_rate(
    struct runners *r, struct http_request *q, const char *detail, const char *caller, int retry_after_s);
/* The same for a refusal that needs no more than this. caller: or NULL. */
void refuse_request(struct runners *r, struct http_request *q, int status, const char *detail, const char *caller);
/* 503: nothing was recorded, the caller may try again. */
void answer_busy(struct runners *r, struct http_request *q, const char *caller, int err);
void answer_ignored(struct runners *r, struct http_request *q, const char *caller, const char *why);
/* 200 with the job's id and page. */
void answer_recorded(struct http_request *q, const struct config *c, const char *status, int64_t job_id);

/* ---- checks; each answers the request if it fails ---- */

/* True if there is a configuration and nothing is closing. False: answered 503. */
bool admit_open(struct runners *r, struct http_request *q);
/* *ret: the holder of `token`, which may have any form. False: answered, with 401 (unknown or revoked), 429 (too many
 * wrong tokens from this address), 403 (its accelerator has left the registry) or 503 (the tokens are not read
 * yet). Call admit_open() first. */
bool admit_token(struct runners *r, struct http_request *q, const char *token, struct credential *ret);
/* The bearer token of any form. NULL: answered, with 503 (closing, or not configured) or 401 (there is none). */
const char *admit_bearer(struct runners *r, struct http_request *q);

/* For requests of machines: admit_open() and admit_token() for the bearer token, which must be a machine's (an API
 * token: 403). */
bool admit_runner(struct runners *r, struct http_request *q, struct credential *ret);
/* Adds a POST route for machines, whose owner is r: a bad token is answered before the body is read. */
void machine_route_add(struct runners *r, struct http_server *h, const char *pattern, size_t max_body_bytes,
    void (*on_request)(struct http_request *q, void *runners));

/* Sets *request to NULL when its client leaves. Uses the request's user and on_gone. */
void forget_gone_client(struct http_request **request);
