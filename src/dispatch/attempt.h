/* One try at sending one claimed outbox row: its registration looked up, its text made, the
 * request sent, the answer judged. Private to the sender. Thread: loop.
 *
 * Nothing here is remembered between tries: what counts is in the row. */
#ifndef DISPATCH_ATTEMPT_H
#define DISPATCH_ATTEMPT_H

#include "config/config.h"
#include "dispatch/dispatch_internal.h"
#include "dispatch/payloads.h"
#include "github/github.h"
#include "http/client.h"
#include "store/outbox.h"

struct lane;
struct target;

struct attempt {
	/* the sender's */
	struct attempt *next, *next_parked;
	struct lane *lane;
	struct target *target;
	struct outbox_done done;
	struct timer *timer; /* to write the result again */

	struct dispatch *d;
	struct outbox_row row;
	int64_t first_mono_ms;       /* when it was first due: the wall clock may jump meanwhile */
	struct config *config;       /* from the begin on */
	const struct runner *runner; /* webhook: borrowed from config */
	bool is_begun, is_on_wire;
	struct payload_want want;
	json_t *rerun;                /* RERUN: what its text says */
	struct retest_request retest; /* RERUN: when GitHub does not start it again */
	char *text;                   /* the request's body */
	size_t text_bytes;
	union {
		struct github_call github;
		struct http_call http;
	} call;

	/* how it ended */
	enum outbox_result result;
	int64_t next_ms; /* wall clock */
	struct error why;
};

/* Takes the row's content. */
struct attempt *attempt_new(struct dispatch *d, struct outbox_row *row);
void attempt_free(struct attempt *a);
/* Ends with sender_attempt_over(). */
void attempt_begin(struct attempt *a);
/* Cuts it off when it is on the wire; it ends soon. */
void attempt_cancel(struct attempt *a);
/* A result without a try: the row is due again after a while. */
void attempt_put_back(struct attempt *a, int64_t after_ms);

bool attempt_is_github(const struct attempt *a);
/* Who is at the other end, for counting and for logs: a repository in lower case or a URL's
 * host and port; a URL's path and query may hold secrets. free(). */
char *attempt_target_name(const struct attempt *a);

/* ---- among attempt*.c ---- */
void attempt_over(struct attempt *a, enum outbox_result result); /* why is set before */
/* Nothing is tried any more at next_ms. */
bool attempt_is_given_up(const struct attempt *a);
/* Again after the back-off, or dead when that is over. */
void attempt_retry(struct attempt *a, int64_t retry_after_ms);
/* Ends as dead at the end of this turn. */
void attempt_refuse(struct attempt *a, const char *why);
/* attempt_github.c, attempt_webhook.c. check: NULL or why it may not be sent (static). */
const char *attempt_github_check(struct attempt *a);
const char *attempt_webhook_check(struct attempt *a);
int attempt_github_text(struct attempt *a, struct payload *p) MUST_CHECK;
int attempt_webhook_text(struct attempt *a, struct payload *p) MUST_CHECK;
void attempt_github_send(struct attempt *a);
/* What GitHub's no means for the row: again, put back, or dead. */
void attempt_github_failed(struct attempt *a, const struct github_result *r);
void attempt_webhook_send(struct attempt *a);
/* attempt_rerun.c */
const char *attempt_rerun_check(struct attempt *a);
void attempt_rerun_send(struct attempt *a);
/* Of /pulls/N or /commits/SHA; free(). */
char *attempt_change_url(const struct attempt *a);

#endif
