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

struct attempt {
	struct effect effect; /* first */
	struct dispatch *d;
	struct config *config;       /* as it was at the beginning */
	const struct runner *runner; /* webhook: borrowed from config */
	bool is_on_wire;
	struct payload *payload;      /* the body that it sends or waits for; sender.c releases it */
	TAILQ_ENTRY(attempt) waiting; /* in the payload's list while it loads */
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
