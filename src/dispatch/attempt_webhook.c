/* The signed POST to a vendor's own CI.
 *
 * Rules guarded here: it goes only to addresses that the operator allows, whatever the name
 * resolves to at that moment; the vendor's secret signs and is never shown. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/attempt.h"
#include "model/client_payload.h"

enum {
	/* A change whose webhook is larger is cut as for GitHub: so many bodies at once must
	 * fit into memory. */
	WHOLE_BODY_MAX_BYTES = 1024 * 1024,
	ANSWER_MAX_BYTES = 64 * 1024,
};
static const int64_t TOKEN_LASTS_MS = INT64_C(7) * 24 * 3600 * 1000;

const char *attempt_webhook_check(struct attempt *a)
{
	const char *name = a->effect.row.accelerators ? a->effect.row.accelerators[0] : NULL;
	const struct accelerator *accelerator = name ? config_accelerator(a->config, name) : NULL;

	if (accelerator)
		a->runner = accelerator_runner(accelerator, a->effect.row.runner);
	if (!a->runner || a->runner->kind != RUNNER_WEBHOOK)
		return "no longer registered";
	return NULL;
}

int attempt_webhook_text(struct attempt *a, struct payload *p)
{
	const struct outbox_row *row = &a->effect.row;
	int64_t finish_ms = row->finish_by_ms > 0 ? row->finish_by_ms : clock_wall_ms();
	char *callback_url =
	    xasprintf("%s/api/v1/dispatches/%s/jobs", a->config->public_url, row->dispatch_id);
	char *change_url = attempt_change_url(a);
	char *token = callback_token_make(a->d->deps.callback_key, row->dispatch_id,
	    row->accelerators[0], finish_ms + TOKEN_LASTS_MS);
	struct outpost_block block = {
	    .dispatch_id = row->dispatch_id,
	    .action = row->original_action,
	    .accelerators = (const char *const *)row->accelerators,
	    .callback_url = callback_url,
	    .change_url = change_url,
	    .sources = a->effect.row.sources,
	    .n_sources = a->effect.row.n_sources,
	    .experiment = a->effect.row.experiment,
	    .callback_token = token,
	};
	bool is_bounded = payload_body_bytes(p) > WHOLE_BODY_MAX_BYTES;
	int rc =
	    client_payload_text(payload_content(p), &block, is_bounded, &a->text, &a->text_bytes);

	free(callback_url);
	free(change_url);
	free(token);
	return rc;
}

static bool allow_address(const uint8_t address[16], void *owner)
{
	const struct attempt *a = owner;
	const struct config *c = a->config;
	bool is_plain = strncasecmp(a->runner->url, "http:", 5) == 0;

	return network_contains(c->allow_networks, c->n_allow_networks, address) ||
	       (!is_plain && !network_is_private(address));
}

/* RFC 9110, 10.2.3: seconds, or a date. 0: absent or neither. */
static int64_t retry_after_ms(const struct http_call *call)
{
	char text[64];
	struct tm tm = {0};
	int64_t seconds, ms;
	const char *end;

	if (!http_call_header(call, "Retry-After", text, sizeof(text)))
		return 0;
	if (parse_int64(text, &seconds) == 0)
		return seconds > 0 && seconds < INT32_MAX ? seconds * 1000 : 0;
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!end || *end)
		return 0;
	ms = (int64_t)timegm(&tm) * 1000 - clock_wall_ms();
	return ms > 0 ? ms : 0;
}

static void judge_webhook_answer(
    struct attempt *a, int err, int status, int64_t wait_ms, const char *why)
{
	/* An endless answer to a request that was taken is the vendor's own business. */
	bool has_answer = err == 0 || (err == ERR_TOO_BIG && status > 0);

	if (has_answer && status >= 200 && status < 300) {
		effect_end(&a->effect, OUTBOX_OK, 0);
		return;
	}
	if (err == ERR_DENIED) {
		/* Which address a name has in here is not the vendor's to learn: everybody can
		 * read what is kept in the row. */
		log_event(LOG_WARN, "webhook_address_refused",
		    LOG_S("dispatch", a->effect.row.dispatch_id), LOG_S("why", why));
		error_set(&a->effect.why, err, "its host's address may not be reached");
	}
	if (!has_answer) {
		error_set(&a->effect.why, err, "%s", *why ? why : err_text(err));
		if (err == ERR_INVALID)
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			attempt_retry(a, 0);
		return;
	}
	error_set(&a->effect.why, ERR_PROTOCOL, "the vendor's server answered %d%s", status,
	    status >= 300 && status < 400 ? ", and redirects are not followed" : "");
	if (status >= 300 && status < 500 && status != 403 && status != 408 && status != 429)
		effect_end(&a->effect, OUTBOX_DEAD, 0);
	else
		attempt_retry(a, wait_ms);
}

static void on_webhook_answer(struct http_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.http);
	struct error why = call->why;
	int err = call->err, status = call->status;
	int64_t wait_ms = retry_after_ms(call);
	bool was_sent = call->was_sent;

	a->is_on_wire = false;
	http_call_release(call);
	if (err == ERR_CANCELLED) { /* we ourselves cut it off */
		error_set(&a->effect.why, err, "%s", "the service was stopped");
		effect_end(&a->effect, was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET, clock_wall_ms());
		return;
	}
	judge_webhook_answer(a, err, status, wait_ms, why.text);
}

void attempt_webhook_send(struct attempt *a)
{
	const struct runner *r = a->runner;
	bool is_cancel = a->effect.row.kind == OUTBOX_WEBHOOK_CANCEL;
	uint8_t mac[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	char *event =
	    xasprintf("X-Outpost-Event: %s", is_cancel ? "cancel" : a->effect.row.event_type);
	char *delivery = xasprintf("X-Outpost-Delivery: %s", a->effect.row.dispatch_id);
	char *signature;

	hmac_sha256(secret_text(r->secret), secret_bytes(r->secret), a->text, a->text_bytes, mac);
	signature = xasprintf("X-Hub-Signature-256: sha256=%s", hex_encode(mac, sizeof(mac), hex));

	a->call.http = (struct http_call){
	    .method = "POST",
	    .url = r->url,
	    .headers = (const char *const[]){"Content-Type: application/json",
		"Accept: application/json, */*", event, delivery, signature, NULL},
	    .body = a->text,
	    .body_bytes = a->text_bytes,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .allow_address = allow_address,
	    .allow_owner = a,
	    .allow_plain_http = strncasecmp(r->url, "http:", 5) == 0,
	    .done = on_webhook_answer,
	};
	http_call_start(a->d->deps.http_client, &a->call.http);
	free(event);
	free(delivery);
	free(signature);
}
