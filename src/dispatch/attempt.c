#include "dispatch/attempt.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dispatch/sender.h"
#include "model/backoff.h"

enum { AGAIN_SOON_MS = 1000 };

struct attempt *attempt_new(struct dispatch *d, struct outbox_row *row)
{
	struct attempt *a = xcalloc(1, sizeof(*a));

	a->d = d;
	a->row = *row;
	a->first_mono_ms = clock_mono_ms() - (clock_wall_ms() - a->row.first_ms);
	memset(row, 0, sizeof(*row));
	return a;
}

void attempt_free(struct attempt *a)
{
	timer_close(a->timer);
	outbox_row_release(&a->row);
	config_unref(a->config);
	json_decref(a->rerun);
	free(a->text);
	free(a);
}

bool attempt_is_github(const struct attempt *a)
{
	return a->row.kind == OUTBOX_GITHUB_DISPATCH || a->row.kind == OUTBOX_GITHUB_CLOSED ||
	       a->row.kind == OUTBOX_RERUN;
}

char *attempt_target_name(const struct attempt *a)
{
	const char *from = a->row.target ? a->row.target : "", *scheme = strstr(from, "://");
	char *name;

	if (attempt_is_github(a)) {
		name = xstrdup(from);
	} else {
		if (scheme)
			from = scheme + 3;
		name = xstrndup(from, strcspn(from, "/?#"));
	}
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return name;
}

char *attempt_change_url(const struct attempt *a)
{
	if (a->row.number > 0)
		return xasprintf("%s/pulls/%lld", a->config->public_url, (long long)a->row.number);
	/* The same commit may have been pushed, and tested then, too. */
	return xasprintf("%s/commits/%s%s", a->config->public_url, a->row.head_sha,
	    strcmp(a->row.event_type, "nightly") == 0 ? "?kind=nightly" : "");
}

/* ---- how it ends ---- */

void attempt_over(struct attempt *a, enum outbox_result result)
{
	a->result = result;
	sender_attempt_over(a->d->sender, a);
}

static void be_over(void *p)
{
	struct attempt *a = p;

	sender_attempt_over(a->d->sender, a);
}

void attempt_refuse(struct attempt *a, const char *why)
{
	error_set(&a->why, ERR_INVALID, "%s", why);
	a->result = OUTBOX_DEAD;
	loop_reap(a->d->deps.loop, be_over, a);
}

bool attempt_is_given_up(const struct attempt *a)
{
	int64_t after_ms = a->next_ms - clock_wall_ms();

	return backoff_is_over(a->first_mono_ms, clock_mono_ms() + after_ms);
}

static void put_back(struct attempt *a, int64_t after_ms)
{
	a->result = OUTBOX_NOT_YET;
	a->next_ms = clock_wall_ms() + after_ms;
	if (!a->d->is_closing && attempt_is_given_up(a)) {
		a->result = OUTBOX_DEAD;
		error_set(&a->why, ERR_TIMEOUT, "it could not be sent within a day");
	}
}

void attempt_put_back(struct attempt *a, int64_t after_ms)
{
	put_back(a, after_ms);
	loop_reap(a->d->deps.loop, be_over, a);
}

void attempt_retry(struct attempt *a, int64_t retry_after_ms)
{
	int64_t delay_ms =
	    backoff_delay_ms(a->row.n_attempts + 1, retry_after_ms, dispatch_random01());

	a->next_ms = clock_wall_ms() + delay_ms;
	attempt_over(a, attempt_is_given_up(a) ? OUTBOX_DEAD : OUTBOX_RETRY);
}

/* ---- what happens in between ---- */

/* The body is there, or is not. True when the request went out, else it has an outcome. */
static bool send_with(struct attempt *a)
{
	struct payload *p = a->want.payload;
	bool is_github = attempt_is_github(a);
	int rc;

	if (a->want.err == ERR_NOT_FOUND || a->want.err == ERR_INVALID) {
		a->why = a->want.why;
		a->result = OUTBOX_DEAD;
		return false;
	}
	if (a->want.err) {
		put_back(a, AGAIN_SOON_MS);
		return false;
	}
	rc = is_github ? attempt_github_text(a, p) : attempt_webhook_text(a, p);
	payload_release(p);
	if (rc) {
		error_set(&a->why, rc, "the payload does not fit: %s", err_text(rc));
		a->result = OUTBOX_DEAD;
		return false;
	}
	if (a->d->is_closing) {
		put_back(a, 0);
		return false;
	}
	a->is_on_wire = true;
	if (is_github)
		attempt_github_send(a);
	else
		attempt_webhook_send(a);
	return true;
}

/* Its text was written with its cause. */
static void send_notice(struct attempt *a)
{
	a->text = a->row.text ? a->row.text : xstrdup("{}");
	a->text_bytes = strlen(a->text);
	a->row.text = NULL;
	a->is_on_wire = true;
	attempt_webhook_send(a);
}

static void on_payload(struct payload_want *w)
{
	struct attempt *a = CONTAINER_OF(w, struct attempt, want);

	if (!send_with(a))
		sender_attempt_over(a->d->sender, a);
}

void attempt_begin(struct attempt *a)
{
	const char *why;

	a->is_begun = true;
	a->config = config_ref(a->d->config);
	why = attempt_is_github(a) ? attempt_github_check(a) : attempt_webhook_check(a);
	if (!why && a->row.kind == OUTBOX_RERUN)
		why = attempt_rerun_check(a);
	if (why) {
		attempt_refuse(a, why);
		return;
	}
	if (a->row.kind == OUTBOX_RERUN) {
		attempt_rerun_send(a);
		return;
	}
	if (a->row.kind == OUTBOX_WEBHOOK_NOTICE) {
		send_notice(a);
		return;
	}
	a->want = (struct payload_want){
	    .guid = a->row.delivery_guid,
	    .event_type = a->row.event_type,
	    .sent_action = a->row.sent_action ? a->row.sent_action : "",
	    .done = on_payload,
	};
	if (payloads_get(sender_payloads(a->d->sender), &a->want) && !send_with(a))
		loop_reap(a->d->deps.loop, be_over, a);
}

void attempt_cancel(struct attempt *a)
{
	if (!a->is_on_wire)
		return; /* the store has it, and answers soon */
	if (attempt_is_github(a))
		github_cancel(a->d->deps.github, &a->call.github);
	else
		http_call_cancel(a->d->deps.http_client, &a->call.http);
}
