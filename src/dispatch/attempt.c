#include "dispatch/attempt.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "dispatch/sender.h"

enum { PAYLOAD_RETRY_MS = 1000 };

bool attempt_is_github(const struct effect *e)
{
	return e->row.kind == OUTBOX_GITHUB_DISPATCH || e->row.kind == OUTBOX_GITHUB_CLOSED ||
	       e->row.kind == OUTBOX_RERUN;
}

char *attempt_target_name(const struct effect *e)
{
	const char *from = e->row.target ? e->row.target : "", *scheme = strstr(from, "://");
	char *name;

	if (attempt_is_github(e)) {
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
	const struct outbox_row *row = &a->effect.row;

	if (row->number > 0)
		return xasprintf("%s/pulls/%lld", a->config->public_url, (long long)row->number);
	/* The same commit may have been pushed, and tested then, too. */
	return xasprintf("%s/commits/%s%s", a->config->public_url, row->head_sha,
	    strcmp(row->event_type, "nightly") == 0 ? "?kind=nightly" : "");
}

/* ---- how it ends ---- */

void attempt_retry(struct attempt *a, int64_t retry_after_ms)
{
	int64_t next_ms;
	bool has_time = effect_back_off(&a->effect, retry_after_ms, &next_ms);

	effect_end(&a->effect, has_time ? OUTBOX_RETRY : OUTBOX_DEAD, next_ms);
}

/* ---- the steps ---- */

static void send_with_payload(struct attempt *a)
{
	struct payload *p = a->want.payload;
	bool is_github = attempt_is_github(&a->effect);
	int rc = a->want.err;

	if (rc == ERR_NOT_FOUND || rc == ERR_INVALID) {
		a->effect.why = a->want.why;
		effect_end(&a->effect, OUTBOX_DEAD, 0);
		return;
	}
	if (rc) {
		effect_put_off(&a->effect, PAYLOAD_RETRY_MS);
		return;
	}
	rc = is_github ? attempt_github_text(a, p) : attempt_webhook_text(a, p);
	payload_release(p);
	if (rc) {
		error_set(&a->effect.why, rc, "the payload does not fit: %s", err_text(rc));
		effect_end(&a->effect, OUTBOX_DEAD, 0);
	} else if (a->d->is_closing) {
		effect_put_off(&a->effect, 0);
	} else {
		a->is_on_wire = true;
		if (is_github)
			attempt_github_send(a);
		else
			attempt_webhook_send(a);
	}
}

static void on_payload(struct payload_want *w)
{
	send_with_payload(CONTAINER_OF(w, struct attempt, want));
}

void attempt_begin(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);
	const char *why;

	a->d = engine_owner(e->engine);
	a->config = config_ref(a->d->config);
	why = attempt_is_github(e) ? attempt_github_check(a) : attempt_webhook_check(a);
	if (!why && e->row.kind == OUTBOX_RERUN)
		why = attempt_rerun_check(a);
	if (why) {
		error_set(&e->why, ERR_INVALID, "%s", why);
		effect_end(e, OUTBOX_DEAD, 0);
		return;
	}
	if (e->row.kind == OUTBOX_RERUN) {
		attempt_rerun_send(a);
		return;
	}
	if (e->row.kind == OUTBOX_WEBHOOK_NOTICE) { /* its body was written with its cause */
		a->text = xstrdup(e->row.text ? e->row.text : "{}");
		a->text_bytes = strlen(a->text);
		a->is_on_wire = true;
		attempt_webhook_send(a);
		return;
	}
	a->want = (struct payload_want){
	    .guid = e->row.delivery_guid,
	    .event_type = e->row.event_type,
	    .sent_action = e->row.sent_action ? e->row.sent_action : "",
	    .done = on_payload,
	};
	if (payloads_get(sender_payloads(a->d->sender), &a->want))
		send_with_payload(a);
}

void attempt_cancel(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);

	if (!a->is_on_wire)
		return; /* it waits for the store, which answers soon */
	if (attempt_is_github(e))
		github_cancel(a->d->deps.github, &a->call.github);
	else
		http_call_cancel(a->d->deps.http_client, &a->call.http);
}

void attempt_release(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);

	config_unref(a->config);
	json_decref(a->rerun);
	free(a->text);
}
