/* One attempt to send one claimed outbox row: checks that its target is still registered, makes the body, sends the request
 * and judges the answer. Nothing is remembered between attempts: the state is in the row.
 *
 * Every path ends in effect_end() or effect_put_off() of outbox/engine.h, or in attempt_retry().
 *
 * Thread: loop. Owns: the outbox engine. Private to sender.c and attempt.c. */
#pragma once

#include "config/config.h"
#include "dispatch/dispatch_internal.h"
#include "github/github.h"
#include "http/client.h"
#include "model/client_payload.h"
#include "outbox/engine.h"

struct payload;

/* A request for a body. The caller owns it and its texts until it has an outcome. */
struct payload_want {
	/* in */
	const char *guid, *event_type, *sent_action;
	void (*done)(struct payload_want *w);
	/* out */
	int err; /* ERR_NOT_FOUND: no such body (any more); ERR_INVALID: it is no JSON object */
	struct error why;
	struct payload *payload; /* sender.c releases it */
	struct client_payload *content;
	size_t body_bytes; /* of what GitHub sent */
	/* its own */
	struct payload_want *next;
};

struct attempt {
	struct effect effect; /* first */
	struct dispatch *d;
	struct config *config;       /* as it was at the beginning */
	const struct runner *runner; /* webhook: borrowed from config */
	bool is_on_wire;
	struct payload_want want;
	json_t *rerun;                /* RERUN: the row's text */
	struct retest_request retest; /* RERUN: when GitHub does not start it again */
	char *text;                   /* the request's body */
	size_t text_bytes;
	union {
		struct github_call github;
		struct http_call http;
	} call;
};

/* After the back-off, or dead when that would be too late. a->effect.why is set before. */
void attempt_retry(struct attempt *a, int64_t retry_after_ms);

/* check: NULL, or why it may not be sent (static). */
const char *attempt_github_check(struct attempt *a);
const char *attempt_webhook_check(struct attempt *a);
void attempt_github_send(struct attempt *a);
void attempt_webhook_send(struct attempt *a);
void attempt_rerun_send(struct attempt *a);
